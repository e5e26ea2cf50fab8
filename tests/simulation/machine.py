"""A machine of virtual time: actors in greenlets that a seeded scheduler interleaves, stops and kills at every effect.

Time is counted in whole microseconds. One actor runs at a time; it gives way only in ``point`` and ``sleep``, so what
lies between two of them is atomic, and the seed alone decides everything.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from greenlet import greenlet

MS = 1_000
SECOND = 1_000 * MS
START = datetime(2030, 1, 7, 12, 0, tzinfo=UTC)


NASTY = {
    f"{when} {what}": weight
    for when in ("before", "after")
    for what, weight in {
        **dict.fromkeys(("claim", "send", "wake"), 5.0),
        **dict.fromkeys(("reply", "commit"), 12.0),
        "submission": 20.0,
        **dict.fromkeys(("handler", "close_delivery", "move_gate", "resolve"), 20.0),
    }.items()
}
"""Places where stops and deaths are drawn more often: a process is seldom there, and much hangs on it."""


class Killed(BaseException):
    """The process is gone: nothing of it runs any more. No handler of ordinary errors may stop this."""


class Outage(Exception):
    """The database cannot be reached, or the connection broke before its reply."""


def us(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return duration // timedelta(microseconds=1)


@dataclass(slots=True)
class Clock:
    """The database's clock: the only one that the whole world shares."""

    us: int = 0

    def __call__(self) -> datetime:
        return START + timedelta(microseconds=self.us)


@dataclass(slots=True, kw_only=True, eq=False)
class Process:
    """One operating system process: a worker, a sweeper, or a web process of the staff."""

    name: str
    kill_rate: float = 0.0  # at each point
    pause_rate: float = 0.0
    outage_rate: float = 0.0  # of each store call
    busy: bool = False
    dead: bool = False


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """One piece of work of a process."""

    process: Process
    name: str
    fiber: greenlet
    broken: bool = False  # it was killed, or ended by a database error: what it had in hand may be lost


@dataclass(slots=True, kw_only=True)
class Machine:
    """Events in order of time; ties fall by chance. ``restart`` is told when a process died."""

    chance: random.Random
    clock: Clock = field(default_factory=Clock)
    counts: Counter[str] = field(default_factory=Counter)
    trace: list[tuple[int, str, str]] = field(default_factory=list)
    restart: Callable[[Process], None] = lambda process: None
    longest_pause_us: int = 9 * SECOND
    healed: bool = False
    disturbed_us: int = 0  # until when processes or the database were disturbed
    process_faults: int = 0
    task: Task | None = None
    tasks: set[Task] = field(default_factory=set)
    _events: list[tuple[int, float, int, Callable[[], object]]] = field(default_factory=list)
    _hub: greenlet = field(default_factory=greenlet.getcurrent)
    _number: int = 0

    # --- events -------------------------------------------------------------------------------------

    def at(self, instant_us: int, call: Callable[[], object]) -> None:
        self._number += 1
        heapq.heappush(self._events, (max(instant_us, self.clock.us), self.chance.random(), self._number, call))

    def after(self, delay_us: int, call: Callable[[], object]) -> None:
        self.at(self.clock.us + delay_us, call)

    def run(self, over: Callable[[], bool]) -> None:
        """Run until ``over`` says so or nothing will ever happen again."""
        while self._events and not over():
            self.clock.us, _, _, call = heapq.heappop(self._events)
            call()

    def note(self, what: str) -> None:
        self.trace.append((self.clock.us, self.task.process.name if self.task else "-", what))

    # --- actors -------------------------------------------------------------------------------------

    def spawn(self, process: Process, name: str, work: Callable[[], object], ended: Callable[[bool], None]) -> None:
        """Run ``work`` in ``process``; ``ended(killed)`` is called after it."""

        def body() -> None:
            killed = False
            try:
                work()
            except Outage:
                task.broken = True
                self.count("a task ended by a database error")
            except Killed:
                task.broken = killed = True
            self.tasks.discard(task)
            process.busy = False
            ended(killed)
            if killed and not process.dead:
                process.dead = True
                self.restart(process)

        process.busy = True
        task = Task(process=process, name=name, fiber=greenlet(body, parent=self._hub))
        self.tasks.add(task)
        self.after(0, lambda: self._resume(task))

    def _resume(self, task: Task) -> None:
        self.task = task
        task.fiber.switch()
        self.task = None

    def stop(self) -> None:
        """End what still runs, as switching off the machine would."""
        self.restart = lambda process: None
        for task in sorted(self.tasks, key=lambda task: task.name):
            self.task = task
            if task.fiber:  # it has begun
                task.fiber.throw(Killed)
        self.task = None

    def sleep(self, delay_us: int) -> None:
        task = self._now_running()
        self.after(delay_us, lambda: self._resume(task))
        self._hub.switch()

    def sleep_until(self, instant_us: int) -> None:
        if instant_us > self.clock.us:
            self.sleep(instant_us - self.clock.us)

    def point(self, name: str) -> None:
        """A place where the actor may be killed, stopped for long, or overtaken by others."""
        task = self._now_running()
        process = task.process
        self.note(name)
        luck = self.chance.random()
        if not self.healed:
            weight = NASTY.get(name, 1.0)
            if luck < process.kill_rate * weight:
                self.disturb(0)
                self.count(f"killed {name}")
                raise Killed(name)
            if luck < (process.kill_rate + process.pause_rate) * weight:
                self._pause(name)
                return
        if luck > 0.6:  # the others go on at once
            self.sleep(self.chance.randrange(1, 30 * MS))

    def _pause(self, name: str) -> None:
        length_us = self.chance.choice((500 * MS, 3 * SECOND, self.longest_pause_us))
        length_us = self.chance.randrange(length_us // 2, length_us)
        self.disturb(length_us)
        self.count(f"stopped {name}")
        self.sleep(length_us)

    def disturb(self, length_us: int) -> None:
        """Something keeps this process from working until then; limits in time count from its end."""
        self.process_faults += 1
        self.disturbed_us = max(self.disturbed_us, self.clock.us + length_us)

    def happens(self, rate: float, what: str) -> bool:
        """True, and counted, at this rate while faults are on."""
        if self.healed or rate <= 0 or self.chance.random() >= rate:
            return False
        self.count(what)
        return True

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def _now_running(self) -> Task:
        assert self.task is not None, "only actors have effects"
        return self.task
