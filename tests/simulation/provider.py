"""Requests on their way to the provider, its own log of them, and the transport that sends them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from jobtrack.core.reply import Answered, NoAnswer, Reply, Request
from jobtrack.core.table import ProviderTable
from jobtrack.ports import Sink
from tests.simulation.machine import MS, SECOND, Machine, Task
from tests.simulation.tables import TOLERATED_US

Kind = str
"""What a request is for: "status", "submit" or "lookup"."""


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """One request and what came of it; the truth that the checks compare with."""

    op: str
    fence: int
    kind: Kind
    request: Request
    departed_us: int
    done_us: int  # when the reply is complete, or the sender gives up
    checked_us: int  # when the sender could last look at its watch
    arrived_us: int | None = None
    reply: Reply | None = None
    truth: str = "soft"  # of a status answer: see `oracle.outcomes`; of another: see `submissions`
    word: str = ""  # the provider's word for the state, if the answer is an honest one
    wait_us: int | None = None  # guidance
    job_ids: tuple[str, ...] = ()  # named by the answer to a submission or look-up, as jobs of this operation
    received_us: int | None = None  # when the sender had the reply in hand
    committed: bool = False  # what it said was written
    task: Task | None = None  # the sender's

    @property
    def late(self) -> bool:
        """The sender stood still between its last look at its watch and the sending: nobody can do better (INV-14)."""
        return self.departed_us - self.checked_us >= TOLERATED_US

    @property
    def key(self) -> tuple[str, int]:
        return self.op, self.fence

    @property
    def unsent(self) -> bool:
        """Proven: nothing of it reached the provider."""
        return isinstance(self.reply, NoAnswer) and self.reply.sent == "never"


def kind_of(request: Request) -> Kind:
    """What the provider takes a request for."""
    if request.method == "POST":
        return "submit"
    return "lookup" if urlsplit(request.url).path == "/jobs" else "status"


@dataclass(slots=True, kw_only=True)
class Provider:
    """Requests travel by themselves: neither a stop nor the death of their sender calls them back."""

    machine: Machine
    answers: dict[Kind, Callable[[Exchange], None]]  # decides the reply at the instant of arrival
    log: list[Exchange] = field(default_factory=list)  # in order of arrival

    def depart(self, request: Request, *, checked_us: int, on_arrival: Arrival) -> Exchange:
        machine = self.machine
        travel_us = machine.chance.randrange(1, 300 * MS)
        exchange = Exchange(
            op=request.operation_id,
            fence=request.fence,
            kind=kind_of(request),
            request=request,
            departed_us=machine.clock.us,
            done_us=machine.clock.us + travel_us + machine.chance.randrange(1, 600 * MS),
            checked_us=checked_us,
            task=machine.task,
        )
        on_arrival.departs(exchange)
        machine.after(travel_us, lambda: self._arrive(exchange, on_arrival))
        return exchange

    def _arrive(self, exchange: Exchange, on_arrival: Arrival) -> None:
        self.answers[exchange.kind](exchange)
        if exchange.unsent:
            return
        exchange.arrived_us = self.machine.clock.us
        self.machine.note(f"{exchange.kind} arrives {exchange.op}:{exchange.fence}")
        self.log.append(exchange)
        on_arrival.arrives(exchange)


class Arrival(ABC):
    """What is told about requests on their way (the checks)."""

    @abstractmethod
    def departs(self, exchange: Exchange) -> None: ...

    @abstractmethod
    def arrives(self, exchange: Exchange) -> None: ...


@dataclass(slots=True, kw_only=True)
class SimTransport:
    """``ports.Transport`` of one process: sends all requests at once and yields replies as they complete."""

    machine: Machine
    provider: Provider
    checks: Arrival
    late_rate: float = 0.0  # how often it stands still with the answer to a submission in hand
    slots: int = 100

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        checked_us = self.machine.clock.us
        self.machine.point("before send")
        sent = [
            (self.provider.depart(request, checked_us=checked_us, on_arrival=self.checks), request)
            for request, _ in requests
        ]
        while sent:
            sent.sort(key=lambda pair: (pair[0].done_us, pair[0].op))
            exchange, request = sent[0]
            if exchange.reply is None or self.machine.clock.us < exchange.done_us:
                # A reply may prove to come later than it seemed when it left.
                self.machine.sleep_until(max(exchange.done_us, self.machine.clock.us + MS))
                continue
            del sent[0]
            self.machine.point("after submission" if exchange.kind == "submit" else "after reply")
            if exchange.kind == "submit" and self.machine.happens(self.late_rate, "an acceptance was held for long"):
                held_us = self.machine.chance.randrange(2 * SECOND, 9 * SECOND)
                self.machine.disturb(held_us)
                self.machine.sleep(held_us)
            exchange.received_us = self.machine.clock.us
            yield request, exchange.reply

    def download(
        self, request: Request, table: ProviderTable, sink: Sink, *, total: timedelta, max_bytes: int
    ) -> Answered | NoAnswer:
        raise AssertionError("no job of this world has a result to fetch")
