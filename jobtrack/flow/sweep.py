"""Find what is due and nobody has in hand: lost messages, dead workers, deadlines, undelivered follow-ups (R-OWN-3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from jobtrack.flow.advance import advance
from jobtrack.flow.deliver import deliver
from jobtrack.ports import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one round did."""

    found: int  # due operations
    published: int  # of them, woken by a message
    polled: int  # of them, looked at here
    deliveries: int  # due follow-ups, published or run here
    more: bool  # the batch was full: sweep again at once


class Silent:
    """``ports.Scheduler`` of a process that looks by itself: it publishes nothing, so no row has a message out."""

    horizon = timedelta(-1)

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:  # noqa: ARG002
        return False

    def wake_now(self, ids: Sequence[str]) -> int:  # noqa: ARG002
        return 0

    def deliver(self, delivery_ids: Sequence[str]) -> int:  # noqa: ARG002
        return 0

    def report_conflict(self, operation_id: str) -> bool:  # noqa: ARG002
        return False

    def attend(self) -> bool:
        return False


def sweep(runtime: Runtime, *, limit: int = 200, inline: bool = False) -> Swept:
    """One round. Any number of sweepers may run; the claim makes that safe.

    Args:
        limit: most rows of a round.
        inline: look at due operations here instead of publishing wake-ups (no broker needed). A round whose
            publishing fails does so by itself: with no broker at all every operation still ends or escalates (INV-06).
    """
    if inline:
        runtime = replace(runtime, scheduler=Silent())
    due = runtime.store.due(limit=limit, grace=runtime.timing.grace)
    over = _over(runtime, due.operations)
    others = [operation_id for operation_id in due.operations if operation_id not in over]
    published = runtime.scheduler.wake_now(others) if others else 0
    here = due.operations if published < len(others) else over
    polled = len(advance(runtime, here)) if here else 0
    if due.deliveries and runtime.scheduler.deliver(due.deliveries) < len(due.deliveries):
        deliver(runtime, due.deliveries)
    _attend(runtime)
    return Swept(
        found=len(due.operations),
        published=published,
        polled=polled,
        deliveries=len(due.deliveries),
        more=due.more,
    )


def _attend(runtime: Runtime) -> None:
    """See that somebody does the chores: a worker, or else this process."""
    runtime.chores.beat("sweeper")
    if runtime.chores.due() and not runtime.scheduler.attend():
        runtime.chores.run()


def _over(runtime: Runtime, ids: Sequence[str]) -> list[str]:
    """Those past their last instant: only a decision is left, so no message is needed, nor a broker that keeps it."""
    if not ids:
        return []
    now = runtime.store.now()
    return [row.id for row in runtime.store.get(ids) if now >= row.last_instant]
