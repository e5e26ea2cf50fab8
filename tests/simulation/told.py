"""What the provider says about a job that it has: the truth, or something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from jobtrack.testing import answer, no_answer
from tests.simulation.machine import SECOND, Machine
from tests.simulation.plan import PROVIDER, Job, Plan
from tests.simulation.provider import Exchange
from tests.simulation.tables import TOTAL_US


def account_is_down(machine: Machine, plan: Plan, job: Job) -> bool:
    """For a while now and then, one account after the other: what a breaker is for."""
    if "account_down" not in plan.rates or machine.healed:
        return False
    down = machine.clock.us // (6 * SECOND) % 4 == (1 if job.account == "north" else 2)
    if down:
        machine.count("provider: account_down")
    return down


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A job that the provider has."""

    job: Job
    id: str
    since_us: int


class Told:
    """What the provider says about a job."""

    def __init__(self, machine: Machine, plan: Plan, find: Callable[[str], Known | None]) -> None:
        self.machine = machine
        self.plan = plan
        self.find = find  # by the provider's id
        self._faults = [name for name in PROVIDER if name in plan.rates and name != "account_down"]

    def fill(self, exchange: Exchange) -> None:
        """Answer a status request."""
        job = self.find(unquote(urlsplit(exchange.request.url).path.rpartition("/")[2]))
        if job is None:
            exchange.reply = answer(404, json={"error": "no such job"})
            return
        if account_is_down(self.machine, self.plan, job.job):
            self._refused(exchange, job)
            return
        for fault in self._faults:
            if self.machine.happens(self.plan.rate(fault), f"provider: {fault}"):
                getattr(self, f"_{fault}")(exchange, job)
                return
        self._honest(exchange, job)

    def word(self, known: Known) -> str:
        spent_us, job = self.machine.clock.us - known.since_us, known.job
        if spent_us >= job.takes_us and job.end is not None:
            return job.end
        if job.pauses and 0.4 * job.takes_us < spent_us < 0.7 * job.takes_us:
            return "paused"
        return "queued" if spent_us < SECOND else "running"

    def _honest(self, exchange: Exchange, job: Known, headers: dict[str, str] | None = None) -> None:
        exchange.word = self.word(job)
        exchange.truth = "word"
        more = {"rows": 7} if exchange.word == "succeeded" else {}
        exchange.reply = answer(json={"id": job.id, "status": exchange.word, **more}, headers=headers)

    def _asked_to_wait(self, exchange: Exchange, seconds: int) -> dict[str, str]:
        exchange.wait_us = seconds * SECOND
        return {"Retry-After": str(seconds)}

    def _hint_200(self, exchange: Exchange, job: Known) -> None:
        self._honest(exchange, job, self._asked_to_wait(exchange, self.machine.chance.randint(1, 12)))

    def _long_hint(self, exchange: Exchange, job: Known) -> None:
        wait = self._asked_to_wait(exchange, self.machine.chance.randint(13, 90))
        if self.machine.chance.random() < 0.5:
            self._honest(exchange, job, wait)
        else:
            exchange.reply = answer(self.machine.chance.choice((429, 503)), headers=wait)

    def _hint_429(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = answer(429, headers=self._asked_to_wait(exchange, self.machine.chance.randint(1, 8)))

    def _hint_503(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = answer(503, headers=self._asked_to_wait(exchange, self.machine.chance.randint(1, 8)))

    def _plain_429(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = answer(429)

    def _server_error(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = answer(self.machine.chance.choice((500, 502, 503, 504)), text="try later")

    def _timeout(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = no_answer("read_timeout")
        exchange.done_us = exchange.departed_us + TOTAL_US

    def _lost(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = no_answer("connection_lost")

    def _refused(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = no_answer("connect_refused")

    def _unlisted(self, exchange: Exchange, job: Known) -> None:
        word = self.machine.chance.choice(("Running", "succeeded ", "no", "", None, 1, True, ["running"]))
        self._stopping(exchange, {"id": job.id, "status": word, "rows": 7})

    def _wrong_id(self, exchange: Exchange, job: Known) -> None:
        self._stopping(exchange, {"id": "another", "status": "succeeded", "rows": 7})

    def _no_result(self, exchange: Exchange, job: Known) -> None:
        self._stopping(exchange, {"id": job.id, "status": "succeeded"})

    def _html(self, exchange: Exchange, job: Known) -> None:
        exchange.truth = "must stop"
        exchange.reply = answer(text="<html>succeeded</html>", headers={"Content-Type": "text/html"})

    def _stopping(self, exchange: Exchange, body: dict[str, object]) -> None:
        """Nothing that may be believed; its wish to be left alone is kept to all the same."""
        exchange.truth = "must stop"
        wait = self.machine.chance.randint(2, 20)
        headers = self._asked_to_wait(exchange, wait) if self.machine.chance.random() < 0.5 else {}
        exchange.reply = answer(json=body, headers=headers)

    def _not_found(self, exchange: Exchange, job: Known) -> None:
        exchange.reply = answer(404, json={"error": "no such job"})

    def _denied(self, exchange: Exchange, job: Known) -> None:
        exchange.truth = "denied"
        exchange.reply = answer(self.machine.chance.choice((401, 403)))
