"""Start to follow a job that the provider already has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jobtrack.core.backoff import first_delay
from jobtrack.core.guidance import YEARS
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.request import check_job_id, check_params, status_url, target_allowed
from jobtrack.core.sealed import Sealed
from jobtrack.core.table import ProviderTable
from jobtrack.errors import IdempotencyConflict, TableMissing, UsageError
from jobtrack.flow import story
from jobtrack.flow.hear import recall
from jobtrack.flow.settle import wake
from jobtrack.ports import Runtime

LONGEST = timedelta(days=3660)
"""Longest deadline a caller may ask for: every instant that follows from it stays one that databases keep."""

MOST = 1_000_000
"""Largest budget a caller may ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a caller may say about any operation. None: as the table grants."""

    operation_id: str
    provider: str
    account: str = "default"
    params: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""
    on_success: str = ""
    on_failure: str = ""
    on_end: str = ""
    escalate_ends: bool | None = None
    deadline: timedelta | None = None  # from now; of a submission: from its acceptance
    needed_by: datetime | None = None
    status_requests: int | None = None
    transport_failures: int | None = None
    rate_limited: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracking(Wishes):
    """What a caller says about a job that the provider has."""

    job_id: str
    status_url: str = ""  # given by the provider at submission; "": built from the table
    accepted_at: datetime | None = None  # None: now


def track(runtime: Runtime, trackings: Sequence[Tracking], *, announce: bool = True) -> list[Operation]:
    """Store one operation for each job and ask for its first look. The same operation id twice is one operation.

    Args:
        announce: publish the first wake-ups now. False: the caller does it after its own commit.

    Returns:
        The stored operations, in the order given.

    Raises:
        TableMissing: no table with that id.
        UsageError: a job id, parameter, URL, instant or limit that cannot be accepted.
        IdempotencyConflict: the operation id is known with another provider, account or job (R-ID-4).
    """
    now = runtime.store.now()
    stored: list[Operation] = []
    for tracking in trackings:
        table = runtime.tables.get(tracking.provider)
        if table is None:
            raise TableMissing(f"There is no usable provider table {tracking.provider!r}.", table=tracking.provider)
        wanted = begin(
            table, tracking, now=now, draw=runtime.draw(), horizon=runtime.scheduler.horizon, grace=runtime.timing.grace
        )
        if "?" in tracking.status_url:  # may be a capability: kept sealed only
            secret = Sealed(status_url=tracking.status_url)
            wanted = replace(wanted, status_url="", sealed=runtime.vault.seal(wanted.id, secret))
        entry = story.entry("track", wanted, at=now, job_id=wanted.job_id, table=story.table_mark(table))
        (found,) = runtime.store.add([wanted], entry, table)
        _refuse_other_content(table, tracking, wanted, found)
        stored.append(found)
    if announce:
        for operation in stored:
            announce_first(runtime, operation, now=now)
    return stored


def announce_first(runtime: Runtime, operation: Operation, *, now: datetime) -> None:
    """Publish the first wake-up if it lies within the horizon; later ones are the sweeper's.

    A notice that came before us brings the first look forward.
    """
    table = runtime.tables.get(operation.provider)
    if table is not None and table.webhook is not None and operation.fence == 0 and recall(runtime, operation):
        return
    if operation.fence == 0 and operation.wake_at is not None and operation.wake_until is not None:
        wake(runtime, operation, now=now)


def begin(
    table: ProviderTable, tracking: Tracking, *, now: datetime, draw: float, horizon: timedelta, grace: timedelta
) -> Operation:
    """The first row of an operation: its address and its budgets are fixed here (authority stays as granted)."""
    check_job_id(tracking.job_id)
    check_params(table, tracking.params)
    refuse_naive("accepted_at", tracking.accepted_at)
    refuse_naive("needed_by", tracking.needed_by)
    refuse_far("needed_by", tracking.needed_by)
    url = tracking.status_url
    if url and not target_allowed(url, table, tracking.params):
        raise UsageError(f"The table {table.id!r} does not allow the host of this status URL.", table=table.id)
    if not url:
        url = status_url(table, job_id=tracking.job_id, params=tracking.params)
    wake_at = now + first_delay(table.polling, draw)
    budget = granted_budget(table, tracking, now)
    return Operation(
        **said(table, tracking),
        job_id=tracking.job_id,
        state=OperationState.RUNNING,
        status_url=url,
        budget=budget,
        created_at=now,
        accepted_at=min(tracking.accepted_at or now, now),  # a provider's clock may run ahead of ours
        wake_at=min(wake_at, budget.deadline, budget.needed_by or wake_at),
        not_before=wake_at,
        hint_floor=now + table.polling.min_interval,
        wake_until=wake_at + grace if wake_at - now <= horizon else None,
        delay_source=DelaySource.FIRST_DELAY.value,
    )


def said(table: ProviderTable, wishes: Wishes) -> dict[str, Any]:
    """Fields of a first row that only repeat what the caller said, or name the table."""
    kept = {name: getattr(wishes, name) for name in ("account", "reference", "on_success", "on_failure", "on_end")}
    escalate = table.on_failure == "escalate" if wishes.escalate_ends is None else wishes.escalate_ends
    return {
        **kept,
        "id": wishes.operation_id,
        "provider": table.id,
        "params": dict(wishes.params),
        "escalate_ends": escalate,
        "revision": table.revision,
        "table_digest": table.digest,
    }


def granted_budget(table: ProviderTable, wishes: Wishes, now: datetime) -> Budget:
    """What the table grants, unless the caller wishes something else. Raises UsageError for what is no limit."""
    granted = table.budget
    deadline: Any = granted.deadline if wishes.deadline is None else wishes.deadline  # a caller may pass anything
    if not isinstance(deadline, timedelta) or not timedelta(0) < deadline <= LONGEST:
        raise UsageError(f"deadline must be a timedelta above 0 and at most {LONGEST.days} days.")
    limits = {
        name: getattr(granted, name) if getattr(wishes, name) is None else getattr(wishes, name)
        for name in ("status_requests", "transport_failures", "rate_limited")
    }
    for name, limit in limits.items():
        if type(limit) is not int or not 1 <= limit <= MOST:
            raise UsageError(f"{name} must be a whole number from 1 to {MOST}, not {limit!r}.")
    return Budget(
        deadline=now + deadline,
        needed_by=wishes.needed_by,
        extensions=granted.extension.times if granted.extension else 0,
        **limits,
    )


def refuse_naive(name: str, instant: object) -> None:
    """Raises UsageError unless ``instant`` is None or a datetime with a time zone."""
    if instant is not None and not (isinstance(instant, datetime) and instant.utcoffset() is not None):
        raise UsageError(f"{name} must be a datetime with a time zone.")


def refuse_far(name: str, instant: datetime | None) -> None:
    """Raises UsageError if ``instant``, which is kept as it is, is in a year that not everybody can show."""
    if instant is not None and instant.year not in YEARS:
        raise UsageError(f"{name} must be in the years {YEARS.start} to {YEARS.stop - 1}.")


def _refuse_other_content(table: ProviderTable, tracking: Tracking, wanted: Operation, found: Operation) -> None:
    """What the caller says must be the same. Parameters of the account stay as granted, whatever they are now."""
    given = ("status_url",) if wanted.status_url and tracking.status_url else ()
    for name in ("provider", "account", "job_id", *given):
        if getattr(wanted, name) != getattr(found, name):
            raise IdempotencyConflict(
                f"Operation {wanted.id!r} is already known with another {name.replace('_', ' ')}.", field=name
            )
    said = [name for name, param in table.params.items() if param.source == "caller"]
    if any(wanted.params[name] != found.params.get(name) for name in said):
        raise IdempotencyConflict(f"Operation {wanted.id!r} is already known with other parameters.", field="params")
