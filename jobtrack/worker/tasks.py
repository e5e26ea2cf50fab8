"""The tasks. Their arguments are opaque ids only; everything else is read from the rows (INV-24).

Signatures accept anything, because a message may come from an older or a newer release: what is not an id is
ignored, and the row decides. No task is retried by Celery: what failed is still in its row, and due again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from celery import shared_task

from jobtrack.flow import advance as advance_flow
from jobtrack.flow import deliver as deliver_flow
from jobtrack.flow import submit as submit_flow
from jobtrack.flow import sweep as sweep_flow
from jobtrack.ports import Runtime
from jobtrack.worker.scheduler import ATTEND, DELIVER, POLL, REPORT_CONFLICT, WAKE
from jobtrack.worker.wiring import get_runtime

SWEEP = "jobtrack.sweep"

MOST_IDS = 500
"""Ids read from one message; more can only be a forged one."""

LONGEST_ID = 250  # an operation id has at most 200 characters, a delivery id adds its event

SWEEP_BATCH = 200


def opaque_ids(args: Iterable[object]) -> list[str]:
    """The ids among the arguments of a message, flat, once each, in their order."""
    flat = (item for arg in args for item in (arg if isinstance(arg, list | tuple) else (arg,)))
    ids = (item for item in flat if isinstance(item, str) and 0 < len(item) <= LONGEST_ID)
    return list(dict.fromkeys(ids))[:MOST_IDS]


class Drain:
    """Looks at other due rows while a worker is at it, so that a burst needs few messages.

    At most once in ``every_s`` seconds in a process unless it is asked for, by one thread at a time, and for at
    most ``budget_s`` seconds: draining helps, but must not keep a worker from its other queues.
    """

    def __init__(self, *, batch: int = 50, every_s: float = 1.0, budget_s: float = 5.0) -> None:
        self._batch = batch
        self._every_s = every_s
        self._budget_s = budget_s
        self._next = 0.0
        self._lock = threading.Lock()

    def run(self, runtime: Runtime, *, asked: bool) -> int:
        """Advance due rows; returns how many there were."""
        if not self._lock.acquire(blocking=False):
            return 0
        try:
            started = runtime.elapsed()
            if not asked and started < self._next:
                return 0
            self._next = started + self._every_s
            return self._run_until(runtime, started + self._budget_s)
        finally:
            self._lock.release()

    def _run_until(self, runtime: Runtime, end: float) -> int:
        count, more = 0, True
        while more and runtime.elapsed() < end:
            due = runtime.store.due(limit=self._batch, grace=runtime.timing.grace)
            if due.operations:
                advance_flow.advance(runtime, due.operations)
            if due.deliveries:
                runtime.scheduler.deliver(due.deliveries)
            count, more = count + len(due.operations), due.more
        return count


drain = Drain()


@shared_task(name=WAKE, ignore_result=True, acks_late=True, max_retries=0, send_events=False, serializer="json")
def wake(*args: object, **hints: object) -> None:
    """Advance the named operations, then a bounded number of other due ones. No ids: only the latter."""
    del hints  # reserved for later releases
    runtime, ids = get_runtime(), opaque_ids(args)
    runtime.chores.beat("worker")
    if ids:
        advance_flow.advance(runtime, ids)
    drain.run(runtime, asked=not ids)


@shared_task(name=POLL, ignore_result=True, acks_late=True, max_retries=0, send_events=False, serializer="json")
def poll(*args: object, **hints: object) -> None:
    """As ``wake``, for messages of an earlier version: in the queue, or from a web process not yet renewed."""
    wake(*args, **hints)


@shared_task(name=DELIVER, ignore_result=True, acks_late=True, max_retries=0, send_events=False, serializer="json")
def deliver(*args: object, **hints: object) -> None:
    """Run the follow-up handlers of the named deliveries in this process."""
    del hints
    ids = opaque_ids(args)
    if ids:
        deliver_flow.deliver(get_runtime(), ids)


@shared_task(
    name=REPORT_CONFLICT, ignore_result=True, acks_late=True, max_retries=0, send_events=False, serializer="json"
)
def report_conflict(*args: object, **hints: object) -> None:
    """Write down that an operation's id came with other content (R-ID-4). What came is not in the message."""
    del hints
    for operation_id in opaque_ids(args)[:1]:
        submit_flow.report_conflict(get_runtime(), operation_id)


@shared_task(name=ATTEND, ignore_result=True, acks_late=True, max_retries=0, send_events=False, serializer="json")
def attend(*args: object, **hints: object) -> None:
    """Do the chores that are due: notices to people, lapsed questions, figures."""
    del args, hints
    runtime = get_runtime()
    runtime.chores.beat("worker")
    runtime.chores.run()


@shared_task(name=SWEEP, ignore_result=True, acks_late=True, max_retries=0, send_events=False, serializer="json")
def sweep(*args: object, **hints: object) -> None:
    """One round of the sweeper, for Celery beat. Give the entry ``expires`` as long as its interval."""
    del args, hints
    sweep_flow.sweep(get_runtime(), limit=SWEEP_BATCH)
