"""Wake-ups as Celery messages.

The row is the schedule and the claim decides who looks, so a message may be late, lost, doubled or early without
harm (R-OWN-3). That allows what a message that *mattered* would not: publishing gives up after a short time,
nothing is retried, and failures stay here.
"""

from __future__ import annotations

import logging
import math
import secrets
import uuid
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from celery import Celery
from celery.app import app_or_default

from jobtrack.worker import broker
from jobtrack.worker.publisher import Message, Publisher

log = logging.getLogger("jobtrack.worker")

WAKE = "jobtrack.wake"
POLL = "jobtrack.poll"  # what an earlier version called it; workers still know it
DELIVER = "jobtrack.deliver"
REPORT_CONFLICT = "jobtrack.report_conflict"
ATTEND = "jobtrack.attend"

IDS_PER_MESSAGE = 20
"""Rows woken by one message: few messages for a burst, yet enough of them to employ several workers."""

NOTHING = timedelta(seconds=-1)
"""The horizon when no delay at all can be announced."""

CONFLICT_KEPT = timedelta(days=1)
"""How long the report of a conflict may wait for a worker: no sweep would find it again."""

MOST_WAITING = 50
"""The sweeper adds nothing to a queue in which more messages than this wait; it then looks at the rows itself."""


class CeleryScheduler:
    """Implements ``ports.Scheduler`` with Celery.

    Args:
        app: The Celery app; None: the current one.
        queue: Name of the queue for all messages of jobtrack.
        horizon: No countdown is longer; lowered further to what the broker bears.
        grace: How long after its time a message may still run; the sweeper repeats a wake-up after as long.
    """

    def __init__(
        self,
        *,
        app: Celery | None = None,
        queue: str = "jobtrack",
        horizon: timedelta = timedelta(seconds=30),
        grace: timedelta = timedelta(seconds=30),
    ) -> None:
        self._app = app_or_default(app)
        self._grace = grace
        self._publisher = Publisher(self._app, queue=queue)
        self._told = False
        self._horizon = broker.horizon(self._app, horizon)
        broker.our_queue(self._app, queue)
        self._whole_seconds = broker.quorum(self._app)

    @property
    def horizon(self) -> timedelta:
        """The longest countdown; negative while nothing can be published, so that the sweeper has every row on time."""
        return NOTHING if self._publisher.resting() or self._app.conf.task_always_eager else self._horizon

    @property
    def counts(self) -> Counter[str]:
        """Messages by fate since the start of the process: ``published``, ``failed``, ``skipped``, ``refused``."""
        return self._publisher.counts

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        """Ask for a look in ``delay``. A delay beyond the horizon is left to the sweeper."""
        if delay > self._horizon or self._refused():
            return False
        countdown_s = self._countdown_s(delay)
        message = Message(
            task=WAKE,
            id=f"{operation_id}:{fence}:{secrets.token_hex(4)}",
            args=(operation_id,),
            countdown_s=countdown_s,
            expires_s=(countdown_s or 0) + self._grace.total_seconds(),
            root=operation_id,
        )
        return self._publisher.publish([message]) == 1

    def wake_now(self, ids: Sequence[str]) -> int:
        """Ask for looks at due rows, several with one message; returns how many rows were announced."""
        if self._refused():
            return 0
        parts = [tuple(ids[start : start + IDS_PER_MESSAGE]) for start in range(0, len(ids), IDS_PER_MESSAGE)]
        messages = [self._at_once(WAKE, part) for part in parts]
        published = self._publisher.publish(messages, most_waiting=MOST_WAITING)
        return len(ids) if published else 0

    def deliver(self, delivery_ids: Sequence[str]) -> int:
        """Ask for deliveries, each by a message of its own: a handler may take its time."""
        if self._refused():
            return 0
        return self._publisher.publish([self._at_once(DELIVER, (delivery_id,)) for delivery_id in delivery_ids])

    def report_conflict(self, operation_id: str) -> bool:
        """Have a worker write down that this id came with other content: the caller's transaction may roll back."""
        if self._refused():
            return False
        return self._publisher.publish([self._at_once(REPORT_CONFLICT, (operation_id,), kept=CONFLICT_KEPT)]) == 1

    def attend(self) -> bool:
        """Have a worker do the chores, unless it has more than enough to do."""
        if self._refused():
            return False
        return self._publisher.publish([self._at_once(ATTEND, ())], most_waiting=MOST_WAITING) == 1

    def _at_once(self, task: str, args: tuple[str, ...], *, kept: timedelta | None = None) -> Message:
        kept_s = (self._grace if kept is None else kept).total_seconds()
        return Message(task=task, id=str(uuid.uuid4()), args=args, expires_s=kept_s)

    def _countdown_s(self, delay: timedelta) -> float | None:
        seconds = delay.total_seconds()
        if seconds <= 0:
            return None
        return float(max(1, math.ceil(seconds))) if self._whole_seconds else seconds

    def _refused(self) -> bool:
        """Eager mode ignores countdowns and runs a task inside its publisher: each look would nest the next."""
        if not self._app.conf.task_always_eager:
            return False
        self.counts["refused"] += 1
        if not self._told:
            self._told = True
            log.warning("task_always_eager is on: no wake-ups are published. In tests use jobtrack.testing.run_due().")
        return True
