"""The provider: what is true about each job, what it says about it, and its own log of what it was asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from jobtrack.core.place import Body, RequestSpec
from jobtrack.core.reply import Answered, NoAnswer, Reply, Request
from jobtrack.core.table import (
    BudgetSpec,
    Extension,
    FieldType,
    GatePolicy,
    Meaning,
    NotFound,
    Polling,
    ProviderTable,
    RequestLimits,
    ResultSpec,
    StatePart,
    StateRow,
    StatusSpec,
)
from jobtrack.testing import answer, no_answer
from tests.simulation.machine import MS, SECOND, Machine, us
from tests.simulation.plan import PROVIDER, Job, Plan

S = timedelta(seconds=1)
WORDS = {
    "queued": Meaning.PENDING,
    "running": Meaning.PENDING,
    "succeeded": Meaning.SUCCESS,
    "failed": Meaning.FAILURE,
    "canceled": Meaning.CANCELLED,
    "expired": Meaning.EXPIRED,
}


def _rows(words: dict[str, Meaning]) -> tuple[StateRow, ...]:
    return tuple(StateRow(values=(word,), meaning=meaning) for word, meaning in words.items())


def _at(name: str) -> Body:
    return Body(tokens=(name,), source=f"/{name}")


FIRST = ProviderTable(
    id="acme",
    name="ACME",
    docs="https://acme.example",
    revision=1,
    digest="digest-1",
    text="table text 1",
    hosts=("https://api.acme.example",),
    status=StatusSpec(
        request=RequestSpec(path="/jobs/{job_id}"),
        echo=_at("id"),
        state=(StatePart(at=_at("status")),),
        rows=_rows(WORDS),
        result=ResultSpec(require=((_at("rows"), FieldType.INTEGER),)),
        not_found=NotFound(window=3 * S),
    ),
    polling=Polling(first=S, base=S, factor=1.5, cap=4 * S, min_interval=0.5 * S),
    budget=BudgetSpec(extension=Extension(time=20 * S, status_requests=4)),
    gate=GatePolicy(max_hold=12 * S, breaker_failures=3, breaker_hold=3 * S),
    limits=RequestLimits(connect=0.5 * S, read=S, total=S),
)
SECOND_EDITION = replace(
    FIRST,
    revision=2,
    digest="digest-2",
    text="table text 2",
    status=replace(FIRST.status, rows=_rows({**WORDS, "paused": Meaning.PENDING})),
)
MIN_INTERVAL_US = us(FIRST.polling.min_interval)
TOTAL_US = us(FIRST.limits.total)
TOLERATED_US = TOTAL_US // 2
"""A stop of half the margin, between a worker's last look at its watch and the sending, is what a lease bears."""


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """One request and what came of it; the truth that the checks compare with."""

    op: str
    fence: int
    departed_us: int
    done_us: int  # when the reply is complete, or the sender gives up
    checked_us: int  # when the sender could last look at its watch
    arrived_us: int | None = None
    reply: Reply | None = None
    truth: str = "soft"  # see `oracle.OUTCOMES`
    word: str = ""  # the provider's word for the state, if the answer is an honest one
    wait_us: int | None = None  # guidance
    received_us: int | None = None  # when the sender had the reply in hand
    committed: bool = False  # what it said was written

    @property
    def late(self) -> bool:
        """The sender stood still between its last look at its watch and the sending: nobody can do better (INV-14)."""
        return self.departed_us - self.checked_us >= TOLERATED_US

    @property
    def key(self) -> tuple[str, int]:
        return self.op, self.fence


class Told:
    """What the provider says to one request."""

    def __init__(self, machine: Machine, plan: Plan, jobs: dict[str, Job]) -> None:
        self.machine = machine
        self.plan = plan
        self.jobs = jobs
        self._faults = [name for name in PROVIDER if name in plan.rates and name != "account_down"]

    def fill(self, exchange: Exchange) -> None:
        """Decide the reply at the instant of arrival."""
        job = self.jobs[exchange.op]
        if self._account_is_down(job):
            self._refused(exchange, job)
            return
        for fault in self._faults:
            if self.machine.happens(self.plan.rate(fault), f"provider: {fault}"):
                getattr(self, f"_{fault}")(exchange, job)
                return
        self._honest(exchange, job)

    def word(self, job: Job) -> str:
        spent_us = self.machine.clock.us - job.starts_us
        if spent_us >= job.takes_us and job.end is not None:
            return job.end
        if job.pauses and 0.4 * job.takes_us < spent_us < 0.7 * job.takes_us:
            return "paused"
        return "queued" if spent_us < SECOND else "running"

    def _account_is_down(self, job: Job) -> bool:
        """For a while now and then, one account after the other: what a breaker is for."""
        if "account_down" not in self.plan.rates or self.machine.healed:
            return False
        down = self.machine.clock.us // (6 * SECOND) % 4 == (1 if job.account == "north" else 2)
        if down:
            self.machine.count("provider: account_down")
        return down

    def _honest(self, exchange: Exchange, job: Job, headers: dict[str, str] | None = None) -> None:
        exchange.word = self.word(job)
        exchange.truth = "word"
        more = {"rows": 7} if exchange.word == "succeeded" else {}
        exchange.reply = answer(json={"id": job.id, "status": exchange.word, **more}, headers=headers)

    def _asked_to_wait(self, exchange: Exchange, seconds: int) -> dict[str, str]:
        exchange.wait_us = seconds * SECOND
        return {"Retry-After": str(seconds)}

    def _hint_200(self, exchange: Exchange, job: Job) -> None:
        self._honest(exchange, job, self._asked_to_wait(exchange, self.machine.chance.randint(1, 12)))

    def _long_hint(self, exchange: Exchange, job: Job) -> None:
        wait = self._asked_to_wait(exchange, self.machine.chance.randint(13, 90))
        if self.machine.chance.random() < 0.5:
            self._honest(exchange, job, wait)
        else:
            exchange.reply = answer(self.machine.chance.choice((429, 503)), headers=wait)

    def _hint_429(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = answer(429, headers=self._asked_to_wait(exchange, self.machine.chance.randint(1, 8)))

    def _hint_503(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = answer(503, headers=self._asked_to_wait(exchange, self.machine.chance.randint(1, 8)))

    def _plain_429(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = answer(429)

    def _server_error(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = answer(self.machine.chance.choice((500, 502, 503, 504)), text="try later")

    def _timeout(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = no_answer("read_timeout")
        exchange.done_us = exchange.departed_us + TOTAL_US

    def _lost(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = no_answer("connection_lost")

    def _refused(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = no_answer("connect_refused")

    def _unlisted(self, exchange: Exchange, job: Job) -> None:
        word = self.machine.chance.choice(("Running", "succeeded ", "no", "", None, 1, True, ["running"]))
        self._stopping(exchange, {"id": job.id, "status": word, "rows": 7})

    def _wrong_id(self, exchange: Exchange, job: Job) -> None:
        self._stopping(exchange, {"id": "another", "status": "succeeded", "rows": 7})

    def _no_result(self, exchange: Exchange, job: Job) -> None:
        self._stopping(exchange, {"id": job.id, "status": "succeeded"})

    def _html(self, exchange: Exchange, job: Job) -> None:
        exchange.truth = "must stop"
        exchange.reply = answer(text="<html>succeeded</html>", headers={"Content-Type": "text/html"})

    def _stopping(self, exchange: Exchange, body: dict[str, object]) -> None:
        """Nothing that may be believed; its wish to be left alone is kept to all the same."""
        exchange.truth = "must stop"
        wait = self.machine.chance.randint(2, 20)
        headers = self._asked_to_wait(exchange, wait) if self.machine.chance.random() < 0.5 else {}
        exchange.reply = answer(json=body, headers=headers)

    def _not_found(self, exchange: Exchange, job: Job) -> None:
        exchange.reply = answer(404, json={"error": "no such job"})

    def _denied(self, exchange: Exchange, job: Job) -> None:
        exchange.truth = "denied"
        exchange.reply = answer(self.machine.chance.choice((401, 403)))


@dataclass(slots=True, kw_only=True)
class Provider:
    """Requests travel by themselves: neither a stop nor the death of their sender calls them back."""

    machine: Machine
    told: Told
    exchanges: dict[tuple[str, int], Exchange] = field(default_factory=dict)
    log: list[Exchange] = field(default_factory=list)  # in order of arrival

    def depart(self, request: Request, *, checked_us: int, on_arrival: Arrival) -> Exchange:
        machine = self.machine
        travel_us = machine.chance.randrange(1, 300 * MS)
        exchange = Exchange(
            op=request.operation_id,
            fence=request.fence,
            departed_us=machine.clock.us,
            done_us=machine.clock.us + travel_us + machine.chance.randrange(1, 600 * MS),
            checked_us=checked_us,
        )
        on_arrival.departs(exchange)
        machine.after(travel_us, lambda: self._arrive(exchange, on_arrival))
        return exchange

    def _arrive(self, exchange: Exchange, on_arrival: Arrival) -> None:
        self.told.fill(exchange)
        if isinstance(exchange.reply, NoAnswer) and exchange.reply.sent == "never":
            return
        exchange.arrived_us = self.machine.clock.us
        self.machine.note(f"arrives {exchange.op}:{exchange.fence}")
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
            self.machine.point("after reply")
            exchange.received_us = self.machine.clock.us
            yield request, exchange.reply
