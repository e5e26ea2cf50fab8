"""Find what is due and nobody has in hand: lost messages, dead workers, deadlines, undelivered follow-ups (R-OWN-3)."""

from __future__ import annotations

from dataclasses import dataclass

from jobtrack.flow.deliver import deliver
from jobtrack.flow.poll import poll
from jobtrack.ports import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What one round did."""

    found: int  # due operations
    published: int  # of them, woken by a message
    polled: int  # of them, looked at here
    deliveries: int  # due follow-ups, published or run here
    more: bool  # the batch was full: sweep again at once


def sweep(runtime: Runtime, *, limit: int = 200, inline: bool = False) -> Swept:
    """One round. Any number of sweepers may run; the claim makes that safe.

    Args:
        limit: most rows of a round.
        inline: look at due operations here instead of publishing wake-ups (no broker needed). A round whose
            publishing fails does so by itself: with no broker at all every operation still ends or escalates (INV-06).
    """
    due = runtime.store.due(limit=limit, grace=runtime.timing.grace)
    published = 0 if inline else runtime.scheduler.wake_now(due.operations) if due.operations else 0
    polled = len(poll(runtime, due.operations)) if published < len(due.operations) else 0
    if due.deliveries and (inline or runtime.scheduler.deliver(due.deliveries) < len(due.deliveries)):
        deliver(runtime, due.deliveries)
    return Swept(
        found=len(due.operations),
        published=published,
        polled=polled,
        deliveries=len(due.deliveries),
        more=due.more,
    )
