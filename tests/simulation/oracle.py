"""The checks. They look at the rows after every store call and at the provider's own log, never at the flows' word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from jobtrack.core.audit import verify
from jobtrack.core.escalation import Reason, Resolution
from jobtrack.core.gate import GateState
from jobtrack.core.operation import Operation, OperationState
from jobtrack.records import Claim, Commit, Committed, Delivery
from jobtrack.stores.memory import MemoryStore
from tests.simulation.doubts import Doubts
from tests.simulation.machine import SECOND, START, Machine, Process, us
from tests.simulation.plan import Plan
from tests.simulation.provider import Arrival, Exchange
from tests.simulation.submissions import Ledger
from tests.simulation.tables import FIRST, MIN_INTERVAL_US, TOLERATED_US, TOTAL_US, WORDS

_S = OperationState

MOVES = {
    _S.READY: frozenset({_S.READY, _S.SUBMITTING, _S.ESCALATED, _S.ABANDONED}),
    _S.SUBMITTING: frozenset({_S.SUBMITTING, _S.READY, _S.UNCONFIRMED, _S.RUNNING, _S.FAILED, _S.ESCALATED}),
    _S.UNCONFIRMED: frozenset({_S.UNCONFIRMED, _S.SUBMITTING, _S.RUNNING, _S.ESCALATED}),
    _S.RUNNING: frozenset({_S.RUNNING, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.EXPIRED, _S.ESCALATED, _S.ABANDONED}),
    _S.ESCALATED: frozenset({_S.ESCALATED, _S.READY, _S.SUBMITTING, _S.UNCONFIRMED, _S.RUNNING, _S.ABANDONED}),
}
"""Moves, written down a second time; ended operations have none. No answer to a submission is an end of the job here."""

ENDS = {"succeeded": _S.SUCCEEDED, "failed": _S.FAILED, "canceled": _S.CANCELLED, "expired": _S.EXPIRED}
GOES_ON = frozenset({_S.RUNNING, _S.ESCALATED})
ACTIVE = frozenset({_S.READY, _S.SUBMITTING, _S.UNCONFIRMED, _S.RUNNING})

SLACK_US = 12 * SECOND
"""After its last instant: lease, grace and sweep period twice over, and a look (INV-06)."""

_COUNTERS = ("status_requests", "transport_failures", "rate_limited", "extensions", "submissions", "lookups")


class Violation(BaseException):
    """An invariant does not hold. Not an ordinary error: no flow may swallow it."""


@dataclass(slots=True, kw_only=True)
class Truth:
    """What is known about one operation from outside its row."""

    sent: int = 0
    floor_us: int = 0  # no request before this: guidance whose commit was applied
    stopped: bool = False  # an answer asks for a person; no request until one decided
    last: Exchange | None = None  # the last one to arrive
    lost_guidance: int = 0


@dataclass(slots=True, kw_only=True)
class Oracle(Arrival):
    machine: Machine
    plan: Plan
    store: MemoryStore
    ledger: Ledger
    doubts: Doubts = field(init=False)
    exchanges: dict[tuple[str, int], Exchange] = field(default_factory=dict)
    truths: dict[str, Truth] = field(default_factory=dict)
    granted: dict[tuple[str, int], int] = field(default_factory=dict)  # when, by the clock of the world
    decided: set[str] = field(default_factory=set)
    returned: Counter[str] = field(default_factory=Counter)  # handlers that came to their end
    gates_read: dict[str, dict[tuple[str, str], GateState]] = field(default_factory=dict)
    _known: dict[str, Operation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.doubts = Doubts(machine=self.machine, store=self.store, ledger=self.ledger, demand=self.demand)

    def demand(self, holds: bool, invariant: str, said: str) -> None:
        if not holds:
            raise Violation(f"{invariant}: {said}")

    # --- the store ----------------------------------------------------------------------------------

    def after_call(
        self, process: Process, method: str, args: tuple[Any, ...], named: dict[str, Any], result: Any
    ) -> None:
        """Compare what changed with what this method may change."""
        if method == "gates":
            self.gates_read[process.name] = result
        elif method == "resolve":
            self.doubts.resolved(args[1].id, args[0].option, args[0].job_id)
        for op, row in self.store.rows.items():
            old = self._known.get(op)
            if old is row:
                continue
            if old is not None:
                self._changed(old, row, method)
                if method == "claim":
                    self._claimed(process, old, row)
            self._known[op] = row
        if method == "claim":
            self._granted(result)
        elif method == "commit":
            for commit, committed in zip(args[0], result, strict=True):
                self._committed(commit, committed)
        elif method == "resolve":
            self._resolved(args[0], args[1])
        self._counted(method, args, named, result)

    def _counted(self, method: str, args: tuple[Any, ...], named: dict[str, Any], result: Any) -> None:
        """What only has to be met now and then."""
        if method == "move_gate" and result:
            self.machine.count(f"gate: {args[3].reason.value or 'open'}{' probe' if args[3].probe else ''}")
        elif method == "note" and named.get("question") is not None:
            self.machine.count(f"asked: {named['question'].reason.value}")
        elif method == "fail_delivery" and named["question"] is not None:
            self.machine.count("asked: delivery_failed")

    def _changed(self, old: Operation, new: Operation, method: str) -> None:
        op = new.id
        chain = self.store.audit[op]
        self.demand(new.audit_seq == len(chain) == chain[-1].seq, "INV-09", f"{op} counts {new.audit_seq} entries")
        if old.terminal:
            kept = replace(old, audit_seq=new.audit_seq, audit_head=new.audit_head)  # late evidence is added
            self.demand(kept == new, "INV-07", f"{op} had ended as {old.state} and was changed by {method}")
            return
        self.demand(new.state in MOVES[old.state], "INV-08", f"{op} went from {old.state} to {new.state}")
        told = method in ("commit", "resolve") or new.state is old.state
        self.demand(told and (method != "commit" or new.audit_seq > old.audit_seq), "INV-09", f"{method} left no entry")
        self._scheduled(new)
        self.doubts.changed(old, new)
        for name in _COUNTERS:
            less = getattr(new.spent, name) < getattr(old.spent, name)
            over = getattr(new.spent, name) > getattr(new.budget, name)
            self.demand(not less, "INV-02", f"{op}: {name} fell")
            self.demand(not over, "INV-01", f"{op}: {name} is over its limit")
        for name in (*_COUNTERS, "deadline"):
            was, limit = getattr(old.budget, name), getattr(new.budget, name)
            accepted = name == "deadline" and not old.job_id and bool(new.job_id)  # it counts from the acceptance
            permitted = name == "submissions" and old.last_look  # a person's grant is spent
            fine = limit == was or accepted or (limit > was and (method == "resolve" or permitted))
            self.demand(fine, "INV-02", f"{op}: the limit {name} was moved by {method}")
        moved = new.fence != old.fence
        self.demand(moved == (method == "claim"), "INV-13", f"{op}: fence {old.fence} -> {new.fence} by {method}")

    def _scheduled(self, row: Operation) -> None:
        """An active row is woken by its last instant, or when its lease ends; all others rest."""
        if row.state not in ACTIVE:
            read = bool(row.evidence) and row.state is _S.ESCALATED  # a late acceptance is going to be read
            rests = read or (row.wake_at is None and row.lease is None)
            self.demand(rests, "INV-06", f"{row.id} is {row.state} but scheduled")
            return
        until = max(_last(row), self.machine.clock(), row.lease.until if row.lease else _last(row))
        in_time = row.wake_at is not None and row.wake_at <= until
        self.demand(in_time, "INV-06", f"{row.id} sleeps until {row.wake_at}, past {until}")

    def _claimed(self, process: Process, old: Operation, new: Operation) -> None:
        op, now = new.id, self.machine.clock()
        self.demand(new.fence == old.fence + 1, "INV-13", f"{op}: fence {old.fence} -> {new.fence}")
        free = old.lease is None or old.lease.until <= now
        self.demand(free, "INV-13", f"{op} was taken under a lease until {old.lease}")
        leased = new.lease is not None and us(new.lease.until - now) >= TOTAL_US
        debits = new.spent.status_requests - old.spent.status_requests
        if debits == 0:
            return
        self.demand(leased, "INV-14", f"{op}: the lease ends before its request may")
        self.demand(debits == 1, "INV-01", f"{op}: {debits} requests debited at once")
        early = old.not_before is not None and now < old.not_before
        self.demand(not early, "INV-05", f"{op} was granted before its floor")
        alive = now < max(old.last_instant, old.budget.deadline)
        self.demand(alive, "INV-06", f"{op} was granted a request after its deadline")
        gate = self.gates_read.get(process.name, {}).get((new.provider, new.account))
        held = gate is not None and gate.reason == "guidance" and gate.held_until is not None and now < gate.held_until
        self.demand(not held, "INV-44", f"{op} was granted a request at a gate that it knew to be closed")

    def _granted(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            spent, budget = claim.operation.spent, claim.operation.budget
            if claim.granted or claim.operation.state is not _S.RUNNING:
                self.granted[claim.operation.id, claim.operation.fence] = self.machine.clock.us
            else:
                self.machine.count("claimed only to be told")
            if claim.granted and spent.status_requests == budget.status_requests:
                self.machine.count("the last request of a budget was granted")

    def _committed(self, commit: Commit, committed: Committed) -> None:
        wanted = commit.operation
        if committed is Committed.STALE:
            self.machine.count("late answer kept as evidence")
            row = self.store.rows[wanted.id]
            kept = not commit.evidence or row.terminal or bool(row.job_id or row.evidence or row.acceptance_seen)
            self.demand(kept, "INV-15", f"{row.id}: a late acceptance of {wanted.job_id} is nowhere")
            return
        if commit.entry["event"] == "look_up":  # each page is a request of its own, written down before it is sent
            self.granted[wanted.id, wanted.fence] = self.machine.clock.us
        if commit.entry["event"] == "evidence":
            self.machine.count("a late acceptance was read")
        truth = self.truth(wanted.id)
        for question in commit.questions:
            self._asked(wanted, question.reason)
        if wanted.not_before is not None and wanted.not_before > wanted.last_instant:
            self.machine.count("the floor lies past the deadline")
        exchange = self.exchanges.get((wanted.id, wanted.fence))
        if exchange is not None and exchange.kind != "status":
            self._answered(exchange)
            return
        if wanted.state in ACTIVE and wanted.state is not _S.RUNNING:
            return
        if exchange is None or exchange.received_us is None:
            self.demand(wanted.state in GOES_ON, "INV-11", f"{wanted.id} became {wanted.state} without an answer")
            if commit.entry["event"] == "poll":
                self.machine.count("claimed but not sent after a stop")
            return
        expected = _outcomes(exchange, commit.table.revision if commit.table else 1)
        said = f"{wanted.id} became {wanted.state} by an answer that means {exchange.truth} {exchange.word}"
        self.demand(wanted.state in expected, "INV-08" if _S.ESCALATED in expected else "INV-11", said)
        exchange.committed = True
        truth.stopped = expected == {_S.ESCALATED}
        if exchange.wait_us is not None:
            truth.floor_us = max(truth.floor_us, exchange.received_us + exchange.wait_us)

    def _answered(self, exchange: Exchange) -> None:
        """What a submission or a look-up was answered is written; `doubts` judges what."""
        exchange.committed = exchange.received_us is not None
        if exchange.wait_us is not None and exchange.received_us is not None:
            truth = self.truth(exchange.op)
            truth.floor_us = max(truth.floor_us, exchange.received_us + exchange.wait_us)

    def _asked(self, operation: Operation, reason: Reason) -> None:
        self.machine.count(f"asked: {reason.value}")
        if reason is Reason.DEADLINE_EXCEEDED:
            # A worker may have been slow by what it tolerates itself between claim and request.
            early_us = us(operation.budget.deadline - self.machine.clock())
            self.demand(early_us <= TOLERATED_US, "INV-06", f"{operation.id} was told over {early_us} us early")

    def _resolved(self, resolution: Resolution, wanted: Operation) -> None:
        key = resolution.escalation_id
        self.demand(key not in self.decided, "INV-28", f"escalation {key} was decided twice")
        self.decided.add(key)
        if wanted.state is _S.RUNNING:
            self.truth(wanted.id).stopped = False

    def truth(self, op: str) -> Truth:
        return self.truths.setdefault(op, Truth())

    # --- the provider's log -------------------------------------------------------------------------

    def departs(self, exchange: Exchange) -> None:
        before = self.exchanges.get(exchange.key)
        paged = before is not None and before.kind == exchange.kind == "lookup" and before.received_us is not None
        self.demand(before is None or paged, "INV-03", f"{exchange.key} was sent twice")
        self.demand(exchange.key in self.granted, "INV-03", f"{exchange.key} was sent without a claim")
        self.exchanges[exchange.key] = exchange
        old_us = exchange.checked_us - self.granted[exchange.key]
        self.demand(old_us <= TOLERATED_US, "INV-14", f"{exchange.key} was sent although its claim was {old_us} us old")
        if exchange.kind != "status":
            self.doubts.departs(exchange)
        if exchange.late:
            self.machine.count("sent late after a stop")

    def arrives(self, exchange: Exchange) -> None:
        op, now_us = exchange.op, self.machine.clock.us
        row, truth = self.store.rows[op], self.truth(op)
        if exchange.kind == "status":
            truth.sent += 1
            enough = truth.sent <= row.spent.status_requests <= row.budget.status_requests
            self.demand(enough, "INV-01", f"{op}: {truth.sent} sent, {row.spent.status_requests} debited")
        last, truth.last = truth.last, exchange
        if exchange.late or (last is not None and last.late):
            return  # a stop between the last check and the sending: nobody can do better (INV-14)
        self.demand(not row.terminal, "INV-07", f"{op} was asked about after its end")
        self.demand(not truth.stopped, "INV-08", f"{op} was asked about although a person must decide")
        self.demand(now_us >= truth.floor_us, "INV-04", f"{op} was asked {truth.floor_us - now_us} us too early")
        if last is not None and last.arrived_us is not None:
            self.demand(now_us >= last.done_us, "INV-14", f"{op}: two requests at the same time")
            gap_us = now_us - last.arrived_us
            self._uncommitted(last, now_us)
            apart = gap_us >= MIN_INTERVAL_US or "status" not in (exchange.kind, last.kind)
            self.demand(apart, "INV-05", f"{op}: two requests within {gap_us} us")

    def _uncommitted(self, last: Exchange, now_us: int) -> None:
        """Guidance is only lost with the process that had it in hand, or with its commit.

        One process has the answers of a whole batch in hand, so the bound holds for each operation.
        """
        if last.wait_us is None or last.committed or now_us >= last.done_us + last.wait_us:
            return
        self.machine.count("guidance was lost before its commit")
        truth = self.truth(last.op)
        truth.lost_guidance += 1
        lost, faults = truth.lost_guidance, self.machine.process_faults
        self.demand(lost <= faults, "INV-04", f"{last.op}: {lost} guidances were lost, with {faults} stops and deaths")

    # --- follow-ups ---------------------------------------------------------------------------------

    def runs(self, delivery: Delivery) -> None:
        row = self.store.rows[delivery.operation_id]
        self.demand(row.terminal, "INV-22", f"{delivery.id} ran before the end was stored")
        self.demand(delivery.event in _events(row), "INV-21", f"{delivery.id} ran for an operation that {row.state}")

    # --- in time, and at the end --------------------------------------------------------------------

    def in_time(self) -> None:
        """INV-06: past its last instant and a slack, every operation has ended or a person was asked."""
        quiet_us = self.machine.disturbed_us
        self._questions()
        for row in self.store.rows.values():
            if row.state in ACTIVE:
                last_us = max(us(_last(row) - START), quiet_us)
                behind = self.machine.clock.us - last_us - SLACK_US
                self.demand(
                    behind <= 0, "INV-06", f"{row.id} is still {row.state} {behind / SECOND} s after its last word"
                )

    def _questions(self) -> None:
        """INV-28: an escalated operation has one open blocking question, any other none; no advisory one twice."""
        asked = [e for e in self.store.escalations.values() if e.closed_at is None]
        blocking = sorted(e.operation_id for e in asked if e.blocking)
        stopped = sorted(row.id for row in self.store.rows.values() if row.state is _S.ESCALATED)
        self.demand(blocking == stopped, "INV-28", f"{stopped} are stopped, questions are open for {blocking}")
        advisory = [(e.operation_id, e.reason) for e in asked if not e.blocking]
        self.demand(len(advisory) == len(set(advisory)), "INV-28", f"asked twice: {advisory}")

    def at_end(self) -> None:
        self._questions()
        self.doubts.at_end()
        report = verify(self.store.export())
        self.demand(report.good, "INV-36", f"the audit does not verify: {report}")
        for job in self.plan.jobs:
            row = self.store.rows[job.op]
            self.demand(row.state not in ACTIVE, "INV-06", f"{job.op} never came to an end")
            self.demand(row.lease is None, "INV-13", f"{job.op} is at rest under a lease")
            self._followed(row)
            self._succeeded(row)

    def _followed(self, row: Operation) -> None:
        boxes = {box.delivery.event for box in self.store.outbox.values() if box.delivery.operation_id == row.id}
        expected = _events(row) if row.terminal else set()
        self.demand(boxes == expected, "INV-21", f"{row.id} has follow-ups {boxes}, not {expected}")
        gave_up = any(
            item.reason is Reason.DELIVERY_FAILED and item.operation_id == row.id
            for item in self.store.escalations.values()
        )
        for event in expected:
            runs = self.returned[f"{row.id}:{event}"]
            self.demand(runs >= 1 or gave_up, "INV-21", f"{row.id}:{event} was never delivered")
            self.demand(
                runs - 1 <= self.machine.process_faults, "INV-21", f"{row.id}:{event} was delivered {runs} times"
            )

    def _succeeded(self, row: Operation) -> None:
        """INV-10: with an honest provider and roomy limits nobody is asked and the job's success is seen."""
        job = next(job for job in self.plan.jobs if job.op == row.id)
        roomy = job.status_requests == 200 and job.deadline_us == 200 * SECOND and job.end == "succeeded"
        # A submission whose sender dies may be nobody's to prove.
        if roomy and self.plan.honest and not job.refused and (not job.way or self.plan.steady):
            asked = [e.reason.value for e in self.store.escalations.values() if e.operation_id == row.id]
            callers = {Reason.DELIVERY_FAILED.value, Reason.IDEMPOTENCY_CONFLICT.value}  # trouble of their own making
            false = [reason for reason in asked if reason not in callers]
            self.demand(row.state is _S.SUCCEEDED and not false, "INV-10", f"{row.id} is {row.state}, asked: {false}")
            self.machine.count("roomy job of an honest provider")


def _last(row: Operation) -> datetime:
    """What limits this state, or the end of a person's grant, which may still be under way."""
    limits = {_S.READY: row.submit_by, _S.UNCONFIRMED: row.recover_until}
    limit = limits.get(row.state) or row.budget.deadline
    return max(limit, row.look_until or limit)


def _events(row: Operation) -> set[str]:
    """The follow-ups that this end calls for."""
    if row.state is _S.ABANDONED:
        names = {"on_end"}
    else:
        names = {"on_success" if row.state is _S.SUCCEEDED else "on_failure", "on_end"}
    return {name for name in names if getattr(row, name)}


def _outcomes(exchange: Exchange, revision: int) -> frozenset[OperationState]:
    """The states that an answer may lead to."""
    if exchange.truth == "must stop":
        return frozenset({_S.ESCALATED})
    if exchange.truth == "word":
        listed = exchange.word in WORDS or (exchange.word == "paused" and revision > FIRST.revision)
        if not listed:
            return frozenset({_S.ESCALATED})
        if exchange.word in ENDS:
            return frozenset({ENDS[exchange.word]})
    return GOES_ON
