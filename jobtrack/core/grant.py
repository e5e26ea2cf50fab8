"""What a person's choice permits: each option writes its own grant, and nothing else (R-ESC-3, R-ESC-4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from jobtrack.core.escalation import Option
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.table import Extension, ProviderTable


def grant(
    operation: Operation,
    option: Option,
    *,
    blocking: bool,
    table: ProviderTable | None,
    look: timedelta,
    now: datetime,
) -> Operation:
    """The operation after a decision. Counters never fall; only limits rise (INV-02).

    Args:
        operation: the row; for ATTACH_JOB with the job already named (``flow.fate.accept``).
        blocking: whether the question had stopped the operation; an advisory one is only acknowledged.
        table: the newest table; None: this machine has none, and only options that need none are offered.
        look: how long the single request of a grant may wait to be sent.
        now: the store's clock.
    """
    match option:
        case Option.EXTEND:
            if table is None or table.budget.extension is None:
                raise ValueError("an extension needs what the table grants")
            return _extended(operation, table.budget.extension, now)
        case Option.LOOK_AGAIN | Option.ACCESS_REPAIRED:
            return _one_step(operation, table, look, now)
        case Option.LOOK_UP:
            return _one_lookup(operation, table, look, now)
        case Option.RESUBMIT:
            return _resubmitted(operation, table, look, now)
        case Option.ATTACH_JOB:
            return _attached(operation, now)
        case Option.CANCEL:
            return _one_look(operation, look, now) if blocking and operation.accepted_at else operation
        case Option.RETRY_DELIVERY | Option.FETCH_AGAIN:
            return operation
        case Option.CLOSE:
            return operation if operation.terminal or not blocking else _abandoned(operation)
    assert_never(option)


def submits(after: Operation) -> bool:
    """Whether a grant leads to a submission. Such a one is for a person who looks at this very operation."""
    return after.state in (OperationState.READY, OperationState.SUBMITTING)


def _abandoned(operation: Operation) -> Operation:
    return replace(
        operation,
        state=OperationState.ABANDONED,
        wake_at=None,
        not_before=None,
        wake_until=None,
        last_look=False,
        sealed="",
    )


def _one_step(operation: Operation, table: ProviderTable | None, look: timedelta, now: datetime) -> Operation:
    """One request of the kind that was stopped: a look, a look-up, or the submission of what was never accepted."""
    if operation.accepted_at is not None:
        return _one_look(operation, look, now)
    if operation.doubt:
        return replace(_one_lookup(operation, table, look, now), last_look=False)
    at = max(now, operation.not_before or now)
    budget = replace(operation.budget, submissions=max(operation.budget.submissions, operation.spent.submissions + 1))
    submit_by = max(operation.submit_by or at, at + look)
    sent = replace(operation, budget=budget, submit_by=submit_by)
    return replace(_granted(sent, OperationState.READY, look, now), last_look=False)


def _resubmitted(operation: Operation, table: ProviderTable | None, look: timedelta, now: datetime) -> Operation:
    """One submission; if its answer is lost as well, the way out of the doubt begins anew."""
    requests = table.submit.recovery.requests if table and table.submit and table.submit.lookup else 0
    budget = operation.budget
    fresh = replace(budget, lookups=max(budget.lookups, operation.spent.lookups + requests))
    again = replace(operation, budget=fresh, recover_until=None)
    return _granted(again, OperationState.READY, look, now)


def _one_lookup(operation: Operation, table: ProviderTable | None, look: timedelta, now: datetime) -> Operation:
    """One look-up with all its pages; it permits no submission."""
    lookup = table.submit.lookup if table and table.submit else None
    pages = lookup.pages if lookup and lookup.next else 1
    budget = operation.budget
    more = replace(budget, lookups=max(budget.lookups, operation.spent.lookups + pages))
    at = max(now, operation.not_before or now)
    until = max(operation.recover_until or at, at + look)
    return _granted(replace(operation, budget=more, recover_until=until), OperationState.UNCONFIRMED, look, now)


def _granted(operation: Operation, state: OperationState, look: timedelta, now: datetime) -> Operation:
    """Due now, for one request within ``look``; the provider's own wish when to be asked outlives impatience."""
    at = max(now, operation.not_before or now)
    return replace(
        operation,
        state=state,
        wake_at=at,
        wake_until=None,
        last_look=True,
        look_until=at + look,
        delay_source=DelaySource.MANUAL_EXTENSION.value,
    )


def _attached(operation: Operation, now: datetime) -> Operation:
    """Followed like any accepted job, for as long as the table granted at the start."""
    budget = operation.budget
    deadline = budget.deadline if budget.follow_for is None else now + budget.follow_for
    return replace(
        operation,
        state=OperationState.RUNNING,
        budget=replace(budget, deadline=deadline),
        wake_at=now,
        not_before=None,
        wake_until=None,
        last_look=False,
        delay_source=DelaySource.MANUAL_EXTENSION.value,
    )


def _raised(operation: Operation, budget: Budget, by: int) -> Budget:
    """Room for ``by`` more requests, whatever each of them meets."""
    spent = operation.spent
    return replace(
        budget,
        status_requests=max(budget.status_requests, spent.status_requests + by),
        transport_failures=max(budget.transport_failures, spent.transport_failures + 1),
        rate_limited=max(budget.rate_limited, spent.rate_limited + 1),
    )


def _extended(operation: Operation, extension: Extension, now: datetime) -> Operation:
    budget = operation.budget
    longer = replace(
        budget,
        deadline=max(budget.deadline, now) + extension.time,
        status_requests=max(budget.status_requests, operation.spent.status_requests) + extension.status_requests,
        transport_failures=max(
            budget.transport_failures, operation.spent.transport_failures + extension.status_requests
        ),
        rate_limited=max(budget.rate_limited, operation.spent.rate_limited + extension.status_requests),
    )
    spent = replace(operation.spent, extensions=operation.spent.extensions + 1)
    return _resumed(replace(operation, budget=longer, spent=spent, resumed_at=now), now)


def _one_look(operation: Operation, look: timedelta, now: datetime) -> Operation:
    until = max(now, operation.not_before or now) + look
    one_more = replace(operation, budget=_raised(operation, operation.budget, 1), last_look=True, look_until=until)
    return _resumed(one_more, now)


def _resumed(operation: Operation, now: datetime) -> Operation:
    # The provider's own wish when to be asked outlives a person's impatience (INV-04), but not the deadline (INV-06).
    return replace(
        operation,
        state=OperationState.RUNNING,
        wake_at=max(now, min(operation.not_before or now, operation.last_instant)),
        wake_until=None,
        delay_source=DelaySource.MANUAL_EXTENSION.value,
    )
