"""A broker that loses, doubles, delays, reorders, refuses, swallows and forgets messages, and its workers' port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tests.simulation.machine import SECOND, Machine, us
from tests.simulation.plan import Plan

Message = tuple[str, tuple[str, ...]]
"""What to do ("poll" or "deliver") and the opaque ids to do it with."""

HORIZON = timedelta(seconds=10)


@dataclass(slots=True, kw_only=True)
class Broker:
    """One queue. ``arrived`` is called when a message may be handed to a worker."""

    machine: Machine
    plan: Plan
    arrived: Callable[[], None] = lambda: None
    ready: list[Message] = field(default_factory=list)
    _flushes: int = 0

    def start(self) -> None:
        if "flush" in self.plan.rates:
            self.machine.after(3 * SECOND, self._flush)

    @property
    def down(self) -> bool:
        """Nothing can be published: never, or every other few seconds."""
        if self.plan.kind == "no broker":
            return True
        return (
            "outage" in self.plan.rates and not self.machine.healed and self.machine.clock.us // (4 * SECOND) % 2 == 1
        )

    def publish(self, message: Message, delay_us: int) -> bool:
        machine, rate = self.machine, self.plan.rate
        if self.down:
            machine.count("the broker was down")
            return False
        if machine.happens(rate("refuse"), "a message was refused"):
            return False
        if "swallow" in self.plan.rates and not machine.healed:
            machine.count("every message was swallowed")
            return True
        if machine.happens(rate("lose"), "a message was lost"):
            return True
        copies = machine.chance.randint(2, 10) if machine.happens(rate("double"), "a message was doubled") else 1
        for _ in range(copies):
            late = machine.chance.randrange(15 * SECOND) if machine.happens(rate("delay"), "a message was late") else 0
            self._queue(message, delay_us + late)
        return True

    def redeliver(self, message: Message) -> None:
        """Its worker died; the broker may hand the message out again after a while."""
        if not self.down and self.machine.chance.random() < 0.5:
            self.machine.count("a message was delivered again")
            self._queue(message, 5 * SECOND)

    def take(self) -> Message:
        place = 0
        if len(self.ready) > 1 and self.machine.happens(self.plan.rate("shuffle"), "messages were reordered"):
            place = self.machine.chance.randrange(len(self.ready))
        return self.ready.pop(place)

    def _queue(self, message: Message, delay_us: int) -> None:
        born = self._flushes
        self.machine.after(delay_us, lambda: self._arrive(message, born))

    def _arrive(self, message: Message, born: int) -> None:
        if born == self._flushes:
            self.ready.append(message)
            self.arrived()

    def _flush(self) -> None:
        if not self.machine.healed:
            self.machine.count("the queue was flushed")
            self._flushes += 1
            self.ready.clear()
            self.machine.after(self.machine.chance.randint(2, 8) * SECOND, self._flush)


@dataclass(slots=True, kw_only=True)
class SimScheduler:
    """``ports.Scheduler`` of one process."""

    machine: Machine
    broker: Broker

    @property
    def horizon(self) -> timedelta:
        return timedelta(seconds=-1) if self.broker.plan.kind == "no broker" else HORIZON

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        self.machine.point("before wake")
        done = delay <= HORIZON and self.broker.publish(("poll", (operation_id,)), us(delay))
        self.machine.point("after wake")
        return done

    def wake_now(self, ids: Sequence[str]) -> int:
        return self._all("poll", ids)

    def deliver(self, delivery_ids: Sequence[str]) -> int:
        return self._all("deliver", delivery_ids)

    def report_conflict(self, operation_id: str) -> bool:
        self.machine.point("before conflict")
        return self.broker.publish(("conflict", (operation_id,)), 0)

    def _all(self, what: str, ids: Sequence[str]) -> int:
        done = 0
        while done < len(ids):
            size = self.machine.chance.randint(1, 3)
            self.machine.point("before publish")
            if not self.broker.publish((what, tuple(ids[done : done + size])), 0):
                break
            done = min(done + size, len(ids))
            self.machine.point("after publish")
        return done
