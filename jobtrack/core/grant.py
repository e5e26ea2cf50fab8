"""What a person's choice permits: each option writes its own grant, and nothing else (R-ESC-3, R-ESC-4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from jobtrack.core.escalation import Option
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.table import Extension


def grant(
    operation: Operation,
    option: Option,
    *,
    blocking: bool,
    extension: Extension | None,
    look: timedelta,
    now: datetime,
) -> Operation:
    """The operation after a decision. Counters never fall; only limits rise (INV-02).

    Args:
        blocking: whether the question had stopped the operation; an advisory one is only acknowledged by CLOSE.
        extension: what the table grants; needed for EXTEND.
        look: how long the single request of LOOK_AGAIN may wait to be sent.
        now: the store's clock.
    """
    match option:
        case Option.EXTEND:
            if extension is None:
                raise ValueError("an extension needs what the table grants")
            return _extended(operation, extension, now)
        case Option.LOOK_AGAIN | Option.ACCESS_REPAIRED:
            return _one_look(operation, look, now)
        case Option.RETRY_DELIVERY:
            return operation
        case Option.CLOSE:
            if operation.terminal or not blocking:
                return operation
            return replace(
                operation,
                state=OperationState.ABANDONED,
                wake_at=None,
                not_before=None,
                wake_until=None,
                last_look=False,
            )
    assert_never(option)


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
