"""The checks of submissions: what may be sent, what may be believed, and that no job is lost or made twice."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from jobtrack.core.escalation import Option, Reason
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.reply import Request
from jobtrack.stores.memory import MemoryStore
from tests.simulation.machine import START, Machine, us
from tests.simulation.provider import Exchange
from tests.simulation.submissions import Ledger
from tests.simulation.tables import KEY_LIFETIME, KEYED, PROOF_AFTER, PROVING, TOTAL_US

_S = OperationState

BEFORE = frozenset({_S.READY, _S.SUBMITTING, _S.UNCONFIRMED, _S.ESCALATED})
"""States in which there may be no job yet."""

Demand = Callable[[bool, str, str], None]


@dataclass(slots=True, kw_only=True)
class Doubts:
    """Judges every submission by the provider's own truth and by what was known when it left."""

    machine: Machine
    store: MemoryStore
    ledger: Ledger
    demand: Demand
    submissions: dict[str, list[Exchange]] = field(default_factory=lambda: defaultdict(list))
    lookups: dict[str, list[Exchange]] = field(default_factory=lambda: defaultdict(list))
    approved: Counter[str] = field(default_factory=Counter)  # resubmissions that staff has permitted
    used: Counter[str] = field(default_factory=Counter)  # of them, sent
    attached: set[str] = field(default_factory=set)
    works: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # what the site was told "yes" for

    # --- what leaves --------------------------------------------------------------------------------

    def departs(self, exchange: Exchange) -> None:
        row = self.store.rows[exchange.op]
        if exchange.kind == "lookup":
            self.lookups[exchange.op].append(exchange)
            sent, limits = len(self.lookups[exchange.op]), (row.spent.lookups, row.budget.lookups)
        else:
            self._intended(exchange, row)
            self._same(exchange, row)
            self._permitted(exchange)
            self.submissions[exchange.op].append(exchange)
            sent, limits = len(self.submissions[exchange.op]), (row.spent.submissions, row.budget.submissions)
        fits = sent <= limits[0] <= limits[1]
        self.demand(fits, "INV-01", f"{exchange.op}: {sent} {exchange.kind}s sent, debited and allowed {limits}")

    def _intended(self, exchange: Exchange, row: Operation) -> None:
        """The attempt is written down, under a lease that outlives it."""
        if exchange.late:
            return
        intent = row.state is _S.SUBMITTING and row.fence == exchange.fence and row.lease is not None
        self.demand(intent, "INV-17", f"{exchange.op} was sent while it was {row.state}, fence {row.fence}")
        ends_us = us(row.lease.until - START) if row.lease else 0
        self.demand(exchange.checked_us + TOTAL_US <= ends_us, "INV-14", f"{exchange.op}: the lease ends before it may")

    def _same(self, exchange: Exchange, row: Operation) -> None:
        key = dict(exchange.request.headers).get("Idempotency-Key", "")
        keyed = self.ledger.jobs[exchange.op].way in KEYED
        self.demand(key == row.idempotency_key or not keyed, "INV-17", f"{exchange.op} was sent with the key {key!r}")
        for first in self.submissions[exchange.op][:1]:
            same = _content(first.request) == _content(exchange.request)
            self.demand(same, "INV-17", f"{exchange.op} was sent with other bytes than at first")

    def _permitted(self, exchange: Exchange) -> None:
        """INV-18: nothing is repeated without (a) to (e)."""
        op = exchange.op
        open_ends = [earlier for earlier in self.submissions[op] if not _proven_not_taken(earlier)]
        if not open_ends:
            self.machine.count("repeated: proven not taken" if self.submissions[op] else "a first submission")
        elif self.approved[op] > self.used[op]:
            self.used[op] += 1
            self.machine.count("repeated: a person said so")
        elif self._key_holds(exchange):
            self.machine.count("repeated: the key holds")
        elif self._proven_absent(exchange, open_ends):
            self.machine.count("repeated: proven absent")
        else:
            said = [f"{earlier.truth} at {earlier.departed_us}" for earlier in open_ends]
            self.demand(False, "INV-18", f"{op} was submitted again on a guess, after {said}")

    def _key_holds(self, exchange: Exchange) -> bool:
        first = self.submissions[exchange.op][0]
        in_time = exchange.checked_us + TOTAL_US < first.departed_us + us(KEY_LIFETIME)
        return self.ledger.jobs[exchange.op].way in KEYED and in_time

    def _proven_absent(self, exchange: Exchange, open_ends: list[Exchange]) -> bool:
        if self.ledger.jobs[exchange.op].way not in PROVING:
            return False
        since_us = max(_ended_us(earlier) for earlier in open_ends) + us(PROOF_AFTER)
        return any(
            seen.truth == "absent" and seen.received_us is not None and seen.received_us >= since_us
            for seen in self.lookups[exchange.op]
        )

    def taken(self, op: str, work: str) -> None:
        """INV-20: one operation id is one piece of work."""
        self.works[op].add(work)
        self.demand(len(self.works[op]) == 1, "INV-20", f"{op} stands for {sorted(self.works[op])}")

    # --- what is written ----------------------------------------------------------------------------

    def changed(self, old: Operation, new: Operation) -> None:
        op = new.id
        if new.evidence and not old.evidence:
            self.machine.count("a late acceptance became evidence")
        kept = not old.job_id or new.job_id == old.job_id
        self.demand(kept, "INV-15", f"{op} followed {old.job_id}, now {new.job_id}")
        constant = (new.idempotency_key, new.fingerprint) == (old.idempotency_key, old.fingerprint)
        self.demand(constant, "INV-17", f"{op}: the key or the fingerprint was changed")
        if old.state not in BEFORE or new.state is old.state or not self.ledger.jobs[op].way:
            return
        if new.state is _S.RUNNING and not old.job_id:
            self._followed(new)
        elif new.state is _S.FAILED:
            refused = any(seen.truth == "rejected" and seen.received_us for seen in self.submissions[op])
            self.demand(refused, "INV-19", f"{op} failed, but the provider has refused nothing")
        elif new.state in (_S.SUCCEEDED, _S.CANCELLED, _S.EXPIRED):
            self.demand(bool(old.job_id), "INV-19", f"{op} became {new.state} without a job")

    def _followed(self, row: Operation) -> None:
        """The job is one of this operation's own, and somebody has said so."""
        own = [effect.id for effect in self.ledger.of(row.id)]
        self.demand(row.job_id in own, "INV-19", f"{row.id} follows {row.job_id!r}, its own are {own}")
        answers = [*self.submissions[row.id], *self.lookups[row.id]]
        said = row.job_id in self.attached or any(row.job_id in seen.job_ids for seen in answers if seen.received_us)
        self.demand(said, "INV-19", f"{row.id} follows {row.job_id}, which nobody has named")

    def resolved(self, op: str, option: Option, job_id: str) -> None:
        if option is Option.RESUBMIT:
            self.approved[op] += 1
        if option is Option.ATTACH_JOB:
            self.attached.add(job_id)

    # --- at the end ---------------------------------------------------------------------------------

    def at_end(self) -> None:
        for op, job in self.ledger.jobs.items():
            if job.way:
                self._once(op)
                self._kept(op)
                self._counted(op)

    def _once(self, op: str) -> None:
        """INV-18: one effect, those that staff has permitted, and those of a sender that stood still."""
        made = self.ledger.of(op)
        excused = self.used[op] + sum(effect.late for effect in made)
        self.demand(len(made) <= 1 + excused, "INV-18", f"{op} has {len(made)} jobs: {made}")
        if len(made) == 1:
            self.machine.count("exactly one job")
        elif made:
            self.machine.count("more than one job, as permitted")

    def _kept(self, op: str) -> None:
        """INV-15: an id that a living process had in hand is in the row, its evidence or its audit."""
        row = self.store.rows[op]
        unknown = row.state is _S.ESCALATED and Reason.SUBMISSION_UNKNOWN in self.store.reasons(op)
        texts = [row.job_id, str(dict(row.evidence)), *(entry.text for entry in self.store.audit[op])]
        entries = [json.loads(entry.text) for entry in self.store.audit[op]]
        told = {entry["fence"] for entry in entries if entry["event"] == "submission"}
        for exchange in self.submissions[op]:
            broken = exchange.received_us is None or exchange.task is None or exchange.task.broken
            self.demand(broken or exchange.fence in told, "INV-09", f"{op}: fence {exchange.fence} has no entry")
            for job_id in () if broken else exchange.job_ids:
                found = any(job_id in text for text in texts)
                self.demand(found, "INV-15", f"{op}: the answer of fence {exchange.fence} named {job_id}, now lost")
                self.demand(not unknown, "INV-15", f"{op}: nobody acts on {job_id}, which an answer has named")

    def _counted(self, op: str) -> None:
        for exchange in self.submissions[op]:
            if exchange.received_us is None:
                self.machine.count("a submission's sender did not live to see the answer")
            elif not exchange.committed:
                self.machine.count("an answer to a submission was not written in time")


def _content(request: Request) -> tuple[object, ...]:
    headers = sorted(pair for pair in request.headers if pair[0].lower() != "x-request-id")
    return request.method, request.url, headers, request.body


def _proven_not_taken(earlier: Exchange) -> bool:
    """The attempt made no job, and that is written down."""
    return earlier.committed and (earlier.unsent or earlier.truth in ("busy", "denied"))


def _ended_us(earlier: Exchange) -> int:
    """When an attempt ended, as far as our side can know: with its answer, or else it began with its check."""
    return earlier.received_us if earlier.committed and earlier.received_us is not None else earlier.checked_us
