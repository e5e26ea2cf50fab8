"""The sweeper: finds due rows that nobody has in hand and sees that somebody looks.

It runs in a thread of its own in the main process of any worker. Any number may run: each row is found by one of
them, and the claim decides in any case. Nothing here touches the event loop of the worker.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from celery import bootsteps
from celery.signals import celeryd_init

from jobtrack.flow import sweep as sweep_flow
from jobtrack.flow.sweep import Swept
from jobtrack.worker import broker
from jobtrack.worker.wiring import get_runtime

log = logging.getLogger("jobtrack.worker")

BUSY_S = 0.25
"""Pause in seconds while rows fall due."""

LONGEST_BACKOFF_S = 30.0

BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What a worker must know when it starts."""

    queue: str = "jobtrack"
    sweep: bool = True  # run the sweeper in this worker
    interval_s: float = 1.0  # longest pause between two rounds


def next_pause(previous_s: float, swept: Swept, *, interval_s: float) -> float:
    """Seconds to the next round: short while rows fall due, then twice as long each time, up to the interval."""
    if swept.more:
        return 0.0
    if swept.found or swept.deliveries:
        return min(BUSY_S, interval_s)
    return min(max(previous_s * 2, BUSY_S), interval_s)


def backoff(failures: int, *, interval_s: float) -> float:
    """Seconds to wait after ``failures`` (>= 1) failed rounds in a row."""
    return max(interval_s, min(LONGEST_BACKOFF_S, interval_s * 2.0 ** min(failures, 10)))


class Sweeper:
    """A thread that calls ``sweep`` until it is stopped.

    Args:
        sweep: One round. It may raise: the next round comes later then.
        interval_s: Longest pause between two rounds.
        after_round: Called in the thread after each round; gives database connections back.
        draw: Uniform numbers in [0, 1), for pauses that differ by up to a fifth.
    """

    def __init__(
        self,
        sweep: Callable[[], Swept],
        *,
        interval_s: float,
        after_round: Callable[[], None],
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._sweep = sweep
        self._interval_s = interval_s
        self._after_round = after_round
        self._draw = draw
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self.run, name="jobtrack-sweeper", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask the thread to end and wait a short time: a round under way may finish."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def run(self) -> None:
        """Sweep until stopped."""
        pause_s, failures = self._interval_s, 0
        while not self._stopped.is_set():
            try:
                pause_s, failures = next_pause(pause_s, self._sweep(), interval_s=self._interval_s), 0
            except Exception as error:  # noqa: BLE001 - the database may be away; whatever it is, try again later
                failures += 1
                pause_s = backoff(failures, interval_s=self._interval_s)
                # The text of a database error may hold its address or values of a row.
                log.warning("A sweep failed (%s); the next one follows in %.0f s.", type(error).__name__, pause_s)
            finally:
                self._after_round()
            self._stopped.wait(pause_s * (0.8 + 0.4 * self._draw()))


def sweep_once() -> Swept:
    """One round with the runtime of this process. While the broker takes no messages the rows are looked at here."""
    return sweep_flow.sweep(get_runtime(), limit=BATCH)


class SweeperStep(bootsteps.StartStopStep):
    """Runs a sweeper as long as a worker runs. The pool comes first, so that it forks before there is a thread."""

    requires = ("celery.worker.components:Pool",)
    sweeper: Sweeper | None = None

    def start(self, _worker: object) -> None:
        options = _installed.read()
        self.sweeper = Sweeper(sweep_once, interval_s=options.interval_s, after_round=_installed.after_round)
        self.sweeper.start()

    def stop(self, _worker: object) -> None:
        if self.sweeper is not None:
            self.sweeper.stop()

    def terminate(self, worker: object) -> None:
        self.stop(worker)


@dataclass(slots=True)
class _Installed:
    read: Callable[[], WorkerOptions] = WorkerOptions
    after_round: Callable[[], None] = lambda: None


_installed = _Installed()


def install(read: Callable[[], WorkerOptions], *, after_round: Callable[[], None]) -> None:
    """Prepare every Celery worker started in this process: it reads our queue and runs a sweeper.

    ``celeryd_init`` is sent after the project's modules (and with them Django) are set up and before the worker
    chooses its queues and builds its steps, so nothing is asked of the project's ``celery.py``.

    Args:
        read: Gives the options when a worker starts.
        after_round: Called in the sweeper's thread after each round.
    """
    _installed.read, _installed.after_round = read, after_round
    celeryd_init.connect(prepare, weak=False, dispatch_uid="jobtrack.worker.prepare")


def prepare(instance: object = None, **_signal: object) -> None:
    """Add our tasks, our queue and the sweeper to a worker that is about to start.

    Without ``-Q`` the worker then reads our queue besides its default one. With ``-Q`` the choice is the caller's.
    """
    app = getattr(instance, "app", None)
    if app is None:
        return
    import_module("jobtrack.worker.tasks")  # registers them, also where the project discovers no tasks
    options = _installed.read()
    app.amqp.queues.select_add(broker.our_queue(app, options.queue))
    if options.sweep:
        app.steps["worker"].add(SweeperStep)
