"""What the provider does with submissions, and what its look-ups show: the ground truth about every effect."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from jobtrack.core.reply import Reply
from jobtrack.testing import answer, no_answer
from tests.simulation.machine import MS, SECOND, Machine, us
from tests.simulation.plan import LOOKUP, SUBMIT, Job, Plan
from tests.simulation.provider import Exchange
from tests.simulation.tables import KEY_LIFETIME, KEYED, LATE_US, SETTLE_US, TOTAL_US
from tests.simulation.told import Known, account_is_down


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A job that a submission made."""

    op: str
    id: str
    since_us: int
    fence: int  # of the submission that made it
    late: bool  # its sender had stood still


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The provider's jobs, by the keys and references it was given."""

    machine: Machine
    jobs: dict[str, Job]
    effects: list[Effect] = field(default_factory=list)
    keys: dict[str, tuple[int, str]] = field(default_factory=dict)  # key -> when it came first, job id

    def of(self, op: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.op == op]

    def shown(self, op: str) -> list[str]:
        """Ids that a look-up shows by now."""
        now_us = self.machine.clock.us
        return [effect.id for effect in self.of(op) if now_us >= effect.since_us + SETTLE_US]

    def find(self, job_id: str) -> Known | None:
        for job in self.jobs.values():
            if not job.way and job.id == job_id:
                return Known(job=job, id=job_id, since_us=job.starts_us)
        for effect in self.effects:
            if effect.id == job_id:
                return Known(job=self.jobs[effect.op], id=job_id, since_us=effect.since_us)
        return None

    def make(self, exchange: Exchange, delay_us: int = 0) -> tuple[str, bool]:
        """The job of a submission, and whether it was there before: a key that is remembered makes no second one."""
        job, now_us = self.jobs[exchange.op], self.machine.clock.us
        key = dict(exchange.request.headers).get("Idempotency-Key", "")
        if key and job.way in KEYED:
            first_us, job_id = self.keys.get(key, (None, ""))
            if first_us is not None and now_us < first_us + us(KEY_LIFETIME):
                self.machine.count("a key was recognised")
                return job_id, True
            if first_us is not None:
                self.machine.count("a key had been forgotten")
        number = sum(made.op == exchange.op for made in self.effects) + 1
        effect = Effect(
            op=exchange.op,
            id=f"{job.id}-{number}",
            since_us=now_us + delay_us,
            fence=exchange.fence,
            late=exchange.late,
        )
        self.effects.append(effect)
        if key:
            self.keys[key] = (now_us, effect.id)
        return effect.id, False


class Desk:
    """Answers submissions and look-ups."""

    def __init__(self, machine: Machine, plan: Plan, ledger: Ledger) -> None:
        self.machine = machine
        self.plan = plan
        self.ledger = ledger

    # --- submissions --------------------------------------------------------------------------------

    def submit(self, exchange: Exchange) -> None:
        """Take a submission, or not, and say so, or not. ``truth`` is what an honest reader may conclude."""
        job = self.ledger.jobs[exchange.op]
        exchange.truth = "unknown"
        if account_is_down(self.machine, self.plan, job):
            self._submit_refused(exchange)
            return
        for fault in SUBMIT:
            if self.machine.happens(self.plan.rate(fault), f"provider: {fault}"):
                getattr(self, f"_{fault}")(exchange)
                return
        self._taken(exchange)

    def _taken(self, exchange: Exchange) -> None:
        job = self.ledger.jobs[exchange.op]
        if job.refused:
            exchange.truth = "rejected"
            exchange.reply = answer(422, json={"error": "no such work"})
            return
        job_id, before = self.ledger.make(exchange)
        exchange.job_ids = (job_id,)
        if before and job.way == "key":
            exchange.truth = "already"
            exchange.reply = answer(409, json={"error": "known", "id": job_id})
        else:
            exchange.truth = "accepted"
            exchange.reply = answer(202, json={"id": job_id})

    def _makes(self, exchange: Exchange, reply: Reply, *, delay_us: int = 0) -> None:
        """The job comes to be, and nobody can see it in the reply."""
        if not self.ledger.jobs[exchange.op].refused:
            self.ledger.make(exchange, delay_us)
        exchange.reply = reply

    def _submit_lost(self, exchange: Exchange) -> None:
        self._makes(exchange, no_answer("connection_lost"))

    def _submit_timeout(self, exchange: Exchange) -> None:
        exchange.done_us = exchange.departed_us + TOTAL_US
        self._makes(exchange, no_answer("read_timeout"))

    def _submit_500(self, exchange: Exchange) -> None:
        self._makes(exchange, answer(self.machine.chance.choice((500, 502, 504)), text="oops"))

    def _submit_late(self, exchange: Exchange) -> None:
        delay_us = self.machine.chance.randrange(100 * MS, LATE_US)
        self._makes(exchange, no_answer("connection_lost"), delay_us=delay_us)

    def _submit_no_id(self, exchange: Exchange) -> None:
        if self.ledger.jobs[exchange.op].refused:
            self._taken(exchange)
            return
        exchange.truth = "accepted"
        self._makes(exchange, answer(202, json={"id": self.machine.chance.choice((None, "", True, ["x"]))}))

    def _submit_cut(self, exchange: Exchange) -> None:
        text = self.machine.chance.choice(('{"id": "jo', "<html>accepted</html>", ""))
        self._makes(exchange, answer(202, text=text, headers={"Content-Type": "application/json"}))

    def _submit_gone(self, exchange: Exchange) -> None:
        exchange.reply = no_answer("connection_lost")

    def _submit_503(self, exchange: Exchange) -> None:
        """No job is made, which the code does not prove; its wish to wait may outlive the key."""
        exchange.reply = answer(503, text="try later", headers=self._wait(exchange, 20))

    def _submit_refused(self, exchange: Exchange) -> None:
        exchange.reply = no_answer("connect_refused")

    def _submit_busy(self, exchange: Exchange) -> None:
        exchange.truth = "busy"
        exchange.reply = answer(429, headers=self._wait(exchange, 14))

    def _wait(self, exchange: Exchange, longest_s: int) -> dict[str, str]:
        if self.machine.chance.random() < 0.5:
            return {}
        seconds = self.machine.chance.randint(1, longest_s)
        exchange.wait_us = seconds * SECOND
        return {"Retry-After": str(seconds)}

    def _submit_denied(self, exchange: Exchange) -> None:
        exchange.truth = "denied"
        exchange.reply = answer(self.machine.chance.choice((401, 403)))

    # --- look-ups -----------------------------------------------------------------------------------

    def look_up(self, exchange: Exchange) -> None:
        """One page of the list of jobs with this reference. ``truth`` "absent": complete, honest, and not there."""
        exchange.truth = "unreadable"
        for fault in LOOKUP:
            if self.machine.happens(self.plan.rate(fault), f"provider: {fault}"):
                getattr(self, f"_{fault}")(exchange)
                return
        self._listed(exchange, last=True)

    def _page(self, exchange: Exchange) -> int:
        return int(parse_qs(urlsplit(exchange.request.url).query).get("page", ["1"])[0])

    def _listed(self, exchange: Exchange, *, last: bool, with_own: bool = True, next_page: int = 0) -> None:
        """Jobs of others stand there too, one of them with our reference in another letter case."""
        own = self.ledger.shown(exchange.op) if with_own else []
        jobs = [{"id": f"job-{n}", "ref": f"other-{n}"} for n in range(2)]
        jobs.append({"id": "job-upper", "ref": exchange.op.upper()})
        jobs += [{"id": job_id, "ref": exchange.op} for job_id in own]
        exchange.job_ids = tuple(own)
        if last:
            exchange.truth = "found" if own else "absent"
        else:
            exchange.truth = "more"
        exchange.reply = answer(json={"jobs": jobs, "next": None if last else str(next_page)})

    def _lookup_pages(self, exchange: Exchange) -> None:
        """The job stands on the second page only."""
        page = self._page(exchange)
        self._listed(exchange, last=page > 1, with_own=page > 1, next_page=2)

    def _lookup_endless(self, exchange: Exchange) -> None:
        self._listed(exchange, last=False, with_own=False, next_page=self._page(exchange) + 1)

    def _lookup_503(self, exchange: Exchange) -> None:
        exchange.reply = answer(503, text="try later")

    def _lookup_lost(self, exchange: Exchange) -> None:
        exchange.reply = no_answer(self.machine.chance.choice(("read_timeout", "connection_lost")))

    def _lookup_html(self, exchange: Exchange) -> None:
        exchange.reply = answer(text="<html>nothing found</html>", headers={"Content-Type": "text/html"})
