"""What a notice of a provider does: it is stored, and brings the next look of what it means forward (R-SEC-3, INV-26).

It never sets a state, never sends a request, and never asks before the provider's guidance or the account's gate
allow it: the look it brings forward is an ordinary one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from jobtrack.core.operation import Operation
from jobtrack.core.webhook import Notice
from jobtrack.flow.settle import wake
from jobtrack.ports import Runtime
from jobtrack.records import Receipt


def receipts_for(notices: Iterable[Notice], *, provider: str, account: str) -> list[Receipt]:
    """The verified notices as records; provider and account are those whose secret proved them."""
    return [
        Receipt(
            provider=provider,
            account=account,
            notice_id=notice.notice_id,
            job_id=notice.job_id,
            operation_id=notice.operation_id,
        )
        for notice in notices
    ]


def receive(runtime: Runtime, receipts: Sequence[Receipt]) -> list[Receipt]:
    """Commit the receipts; returns those that are new. Only then may the provider be answered."""
    return [one for one, new in zip(receipts, runtime.store.receive(receipts), strict=True) if new]


def bring_forward(runtime: Runtime, receipts: Sequence[Receipt]) -> list[str]:
    """Let the operations that are meant be looked at as soon as they may be; returns the ids that moved.

    However many notices mean an operation, only the first moves it, so only that one publishes a wake-up.
    """
    moved = runtime.store.hint(receipts) if receipts else []
    if moved:
        _announce(runtime, runtime.store.get(moved), runtime.store.now())
    return moved


def hear(runtime: Runtime, receipts: Sequence[Receipt]) -> list[str]:
    """Store receipts, then bring the next looks forward; returns the ids of operations that moved.

    A notice that came before does nothing. If this process ends between the two steps, the hint is lost and the look
    comes at its own time: a hint only ever saves waiting.
    """
    return bring_forward(runtime, receive(runtime, receipts))


def recall(runtime: Runtime, operation: Operation) -> list[str]:
    """After an acceptance was committed: do what notices that came before it could not.

    A notice is committed before it looks for its operation, and an acceptance before it looks for notices, so
    whichever comes second sees the other.
    """
    return bring_forward(runtime, runtime.store.receipts_of(operation))


def _announce(runtime: Runtime, rows: Sequence[Operation], now: datetime) -> None:
    """One message for each row at most, due ones together; what is not announced, the sweeper has on time.

    A row under a live lease is left alone: the commit that ends the lease sees the hint.
    """
    waits = {
        row.id: (row.wake_at - now, row)
        for row in rows
        if row.wake_at is not None and (row.lease is None or row.lease.until <= now)
    }
    due = [i for i, (wait, _) in waits.items() if wait <= timedelta(0)]
    if due and not runtime.scheduler.wake_now(due):
        runtime.store.unmark(due)
    for wait, row in waits.values():
        if timedelta(0) < wait <= runtime.scheduler.horizon:
            wake(runtime, row, now=now)
        elif wait > timedelta(0):
            runtime.store.unmark([row.id])
