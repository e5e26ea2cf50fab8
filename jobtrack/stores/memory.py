"""A store in memory, with the same contract as the database's: for tests, `replay` and the simulator.

It obeys the same contract suite as the Django store. One lock makes each method one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jobtrack.core import meanwhile
from jobtrack.core.audit import GENESIS, canonical, closing_line, entry_line, seal
from jobtrack.core.decide import contradiction
from jobtrack.core.escalation import Question, Reason, Resolution
from jobtrack.core.gate import OPEN, GateState
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Lease, Operation, OperationState
from jobtrack.core.table import ProviderTable
from jobtrack.errors import AlreadyDecided, StaleEvidence, StoreError
from jobtrack.ports import RUNNING
from jobtrack.records import (
    Claim,
    Commit,
    Committed,
    Delivery,
    Due,
    Followup,
)
from jobtrack.stores.memory_questions import MemoryQuestions


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One audit entry as stored."""

    seq: int
    previous: str
    digest: str
    text: str


@dataclass(slots=True, kw_only=True)
class _Outbox:
    delivery: Delivery
    due_at: datetime | None  # None: no further attempt by machine
    owner: str = ""
    lease_until: datetime | None = None
    delivered: bool = False
    error: str = ""
    wake_until: datetime | None = None


@dataclass(slots=True)
class MemoryStore(MemoryQuestions):
    """``ports.Store`` over dictionaries. ``clock`` plays the database's clock."""

    audit: dict[str, list[Entry]] = field(default_factory=dict)
    outbox: dict[str, _Outbox] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)  # digest -> text
    _gates: dict[tuple[str, str], GateState] = field(default_factory=dict)

    def now(self) -> datetime:
        return self.clock()

    # --- operations -----------------------------------------------------------------------------

    def add(self, operations: Sequence[Operation], entry: Mapping[str, Any], table: ProviderTable) -> list[Operation]:
        with self._lock:
            self.tables.setdefault(table.digest, table.text)
            for operation in operations:
                if operation.id not in self.rows:
                    self.rows[operation.id] = operation
                    self._append(operation.id, entry)
            return [self.rows[operation.id] for operation in operations]

    def get(self, ids: Iterable[str]) -> list[Operation]:
        with self._lock:
            return [self.rows[i] for i in ids if i in self.rows]

    def claim(
        self,
        ids: Sequence[str],
        *,
        owner: str,
        lease: timedelta,
        floor: timedelta,
        debit: bool = True,
        states: frozenset[OperationState] = RUNNING,
    ) -> list[Claim]:
        with self._lock:
            now = self.clock()
            claims = []
            for row in self.get(dict.fromkeys(ids)):
                if row.state in states and _due(row, now):
                    granted = debit and _granted(row, now)
                    taken = _taken(row, Lease(owner=owner, until=now + lease), granted, now + floor)
                    self.rows[row.id] = taken
                    claims.append(Claim(operation=taken, granted=granted, now=now))
            return claims

    def commit(self, commits: Sequence[Commit]) -> list[Committed]:
        return [self._commit(commit) for commit in commits]

    def _commit(self, commit: Commit) -> Committed:
        wanted = commit.operation
        with self._lock:
            row = self.rows[wanted.id]
            if row.fence != wanted.fence or row.lease is None or row.terminal:
                self._keep_late(row, commit)
                return Committed.STALE
            now = self.clock()
            self._replace(row, meanwhile.merged(row, wanted, now), commit.entry)
            if commit.table is not None:
                self.tables.setdefault(commit.table.digest, commit.table.text)
            if row.state is OperationState.ESCALATED and wanted.state is not row.state:
                self._settle_by_evidence(wanted, now)
            second = meanwhile.second_job(row, wanted)
            for question in (*commit.questions, *((second,) if second else ())):
                self._ask(wanted.id, question)
            self._follow(wanted.id, commit.followups)
            return Committed.DONE

    def _keep_late(self, row: Operation, commit: Commit) -> None:
        self.rows[row.id] = meanwhile.with_evidence(row, commit.evidence or {}, self.clock())
        self._append(row.id, {**commit.entry, "late": True})
        contradicted = contradiction(row, commit.operation)
        if contradicted is not None:
            self._ask(row.id, contradicted)

    def _settle_by_evidence(self, wanted: Operation, now: datetime) -> None:
        for asked in self.open_escalations(wanted.id):
            if asked.blocking:
                answer = meanwhile.settled_by_evidence(asked.id, asked.version, wanted.job_id)
                self._close(asked, replace(answer, at=now))

    def hold(self, ids: Sequence[str], *, until: datetime, source: DelaySource | None = None) -> None:
        with self._lock:
            now = self.clock()
            for row in self.get(ids):
                if _due(row, now):
                    because = row.delay_source if source is None else source.value
                    self.rows[row.id] = replace(row, wake_at=until, wake_until=None, delay_source=because)

    def unmark(self, ids: Sequence[str]) -> None:
        with self._lock:
            for row in self.get(ids):
                self.rows[row.id] = replace(row, wake_until=None)

    def due(self, *, limit: int, grace: timedelta) -> Due:
        with self._lock:
            now = self.clock()
            rows = sorted((row for row in self.rows.values() if _due(row, now)), key=lambda row: (row.wake_at, row.id))
            found = [row for row in rows if row.wake_until is None or row.wake_until <= now][:limit]
            for row in found:
                self.rows[row.id] = replace(row, wake_until=now + grace)
            boxes = [key for key, box in self.outbox.items() if _deliverable(box, now) and not _out(box, now)][:limit]
            for key in boxes:
                self.outbox[key].wake_until = now + grace
            return Due(
                operations=tuple(row.id for row in found),
                deliveries=tuple(boxes),
                more=len(found) == limit or len(boxes) == limit,
            )

    def next_due_at(self) -> datetime | None:
        with self._lock:
            instants = [
                max(row.wake_at, row.lease.until) if row.lease else row.wake_at
                for row in self.rows.values()
                if row.wake_at is not None
            ]
            instants += [
                max(box.due_at, box.lease_until) if box.lease_until else box.due_at
                for box in self.outbox.values()
                if box.due_at is not None and not box.delivered
            ]
            return min(instants, default=None)

    def overdue_lag(self) -> timedelta:
        with self._lock:
            now = self.clock()
            waits = [now - row.wake_at for row in self.rows.values() if row.wake_at is not None and _due(row, now)]
            return max(waits, default=timedelta(0))

    def _replace(self, row: Operation, wanted: Operation, entry: Mapping[str, Any]) -> None:
        _refuse(row, wanted)
        self.rows[row.id] = replace(wanted, audit_seq=row.audit_seq, audit_head=row.audit_head)
        self._append(row.id, entry)

    def _append(self, operation_id: str, entry: Mapping[str, Any]) -> None:
        chain = self.audit.setdefault(operation_id, [])
        previous = chain[-1].digest if chain else GENESIS
        seq, text = len(chain) + 1, canonical(entry)
        digest = seal(previous, operation_id, seq, text)
        chain.append(Entry(seq=seq, previous=previous, digest=digest, text=text))
        self.rows[operation_id] = replace(self.rows[operation_id], audit_seq=seq, audit_head=digest)

    def export(self, *, key: bytes | None = None) -> list[str]:
        """All chains as the lines of an audit export."""
        with self._lock:
            lines = [
                entry_line(operation_id, entry.seq, entry.previous, entry.digest, entry.text)
                for operation_id, chain in self.audit.items()
                for entry in chain
            ]
            heads = {i: (chain[-1].seq, chain[-1].digest) for i, chain in self.audit.items()}
            return [*lines, closing_line(heads, at=self.clock().isoformat(), key=key)]

    # --- outside a look -------------------------------------------------------------------------

    def note(
        self,
        operation_id: str,
        entry: Mapping[str, Any],
        *,
        question: Question | None = None,
        errand: Followup | None = None,
        cancel_state: str | None = None,
    ) -> Operation:
        if question is not None and question.blocking:
            raise StoreError("A note stops no operation.", operation=operation_id, reason=question.reason.value)
        with self._lock:
            self._known(operation_id)
            self._append(operation_id, entry)
            if question is not None:
                self._ask(operation_id, question)
            self._aside(operation_id, errand, cancel_state)
            return self.rows[operation_id]

    def _aside(self, operation_id: str, errand: Followup | None, cancel_state: str | None) -> None:
        if cancel_state is not None:
            self.rows[operation_id] = replace(self.rows[operation_id], cancel_state=cancel_state)
        if errand is not None:
            self._follow(operation_id, [errand])
            box = self.outbox[errand.delivery_of(operation_id)]
            box.delivered, box.due_at, box.wake_until = False, self.clock(), None
            box.delivery = replace(box.delivery, attempts=0)

    # --- the account gate -----------------------------------------------------------------------

    def gates(self, accounts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], GateState]:
        with self._lock:
            return {account: self._gates.get(account, OPEN) for account in accounts}

    def move_gate(self, provider: str, account: str, before: GateState, after: GateState) -> bool:
        with self._lock:
            if self._gates.get((provider, account), OPEN).version != before.version:
                return False
            self._gates[provider, account] = replace(after, version=before.version + 1)
            return True

    # --- escalations ----------------------------------------------------------------------------

    def following(self, provider: str, account: str, job_id: str) -> list[str]:
        with self._lock:
            wanted = (provider, account, job_id)
            return [row.id for row in self.rows.values() if (row.provider, row.account, row.job_id) == wanted]

    def asks(self, provider: str, account: str, reason: Reason) -> bool:
        with self._lock:
            rows = (
                self.rows[i.operation_id] for i in self.escalations.values() if i.reason is reason and not i.closed_at
            )
            return any((row.provider, row.account) == (provider, account) for row in rows)

    def resolve(
        self,
        resolution: Resolution,
        wanted: Operation,
        entry: Mapping[str, Any],
        *,
        followups: tuple[Followup, ...] = (),
        redeliver: bool = False,
        errand: Followup | None = None,
        cancel_state: str | None = None,
    ) -> Resolution:
        with self._lock:
            now = self.clock()
            escalation = self.escalation(resolution.escalation_id)
            if escalation.resolution is not None:
                raise AlreadyDecided(
                    f"Already decided by {escalation.resolution.actor}.", actor=escalation.resolution.actor
                )
            row = self.rows[wanted.id]
            # An advisory question is only acknowledged: the row may have moved on, and stays as it is.
            moves = escalation.blocking
            if escalation.version != resolution.version or (moves and (row.terminal or row.fence != wanted.fence)):
                raise StaleEvidence("The escalation changed since it was shown.")
            if moves and meanwhile.overtaken(row, wanted, resolution.option):
                raise StaleEvidence("A late answer has just named the provider's job.")
            if moves:
                _refuse(row, wanted)
            stored = replace(resolution, at=now)
            self._close(escalation, stored)
            if wanted.state is OperationState.ABANDONED:
                for other in self.open_escalations(wanted.id):
                    if other.blocking:
                        self._close(other, stored)
            if moves:
                self._replace(row, meanwhile.decided(row, wanted), entry)
            else:
                self._append(row.id, entry)
            self._follow(wanted.id, followups)
            self._aside(wanted.id, errand, cancel_state)
            if redeliver:
                self._redeliver(wanted.id, now)
            return stored

    # --- follow-ups -----------------------------------------------------------------------------

    def _follow(self, operation_id: str, followups: Iterable[Followup]) -> None:
        now = self.clock()
        for followup in followups:
            key = followup.delivery_of(operation_id)
            delivery = Delivery(
                id=key,
                operation_id=operation_id,
                event=followup.event,
                handler=followup.handler,
                attempts=0,
                now=now,
            )
            self.outbox.setdefault(key, _Outbox(delivery=delivery, due_at=now))

    def _redeliver(self, operation_id: str, now: datetime) -> None:
        for box in self.outbox.values():
            if box.delivery.operation_id == operation_id and box.delivery.handler and not box.delivered:
                box.due_at, box.wake_until = now, None
                box.delivery = replace(box.delivery, attempts=0)

    def take_delivery(self, delivery_id: str, *, owner: str, lease: timedelta) -> Delivery | None:
        with self._lock:
            now = self.clock()
            box = self.outbox.get(delivery_id)
            if box is None or not _deliverable(box, now):
                return None
            box.owner, box.lease_until, box.wake_until = owner, now + lease, None
            box.delivery = replace(box.delivery, attempts=box.delivery.attempts + 1, now=now)
            return box.delivery

    def close_delivery(self, delivery: Delivery, *, owner: str) -> bool:
        with self._lock:
            box = self.outbox[delivery.id]
            if box.owner != owner or box.delivered:
                return False
            box.delivered, box.owner, box.lease_until, box.due_at = True, "", None, None
            return True

    def fail_delivery(
        self, delivery: Delivery, *, owner: str, error: str, again_in: timedelta | None, question: Question | None
    ) -> None:
        with self._lock:
            box = self.outbox[delivery.id]
            if box.owner != owner:
                return
            box.owner, box.lease_until, box.error = "", None, error
            box.due_at = None if again_in is None else self.clock() + again_in
            if question is not None:
                self._ask(delivery.operation_id, question)

    # --- looking, for tests ---------------------------------------------------------------------

    def reasons(self, operation_id: str) -> list[Reason]:
        """Reasons of the open escalations."""
        return [item.reason for item in self.open_escalations(operation_id)]


def _refuse(row: Operation, wanted: Operation) -> None:
    refused = meanwhile.refusal(row, wanted)
    if refused:
        raise StoreError(refused, operation=row.id)


def _due(row: Operation, now: datetime) -> bool:
    free = row.lease is None or row.lease.until <= now
    return row.wake_at is not None and row.wake_at <= now and free


def _granted(row: Operation, now: datetime) -> bool:
    if row.state is not OperationState.RUNNING:
        return False
    budget_left = now < row.budget.deadline and row.spent.status_requests < row.budget.status_requests
    looking = row.last_look and row.look_until is not None and now < row.look_until
    return (row.not_before is None or now >= row.not_before) and (budget_left or looking)


def _taken(row: Operation, lease: Lease, granted: bool, floor: datetime) -> Operation:
    taken = replace(row, fence=row.fence + 1, lease=lease, wake_at=lease.until, wake_until=None, hinted=False)
    if not granted:
        return taken
    return replace(
        taken,
        spent=replace(row.spent, status_requests=row.spent.status_requests + 1),
        not_before=max(floor, row.not_before or floor),
        last_look=False,
    )


def _deliverable(box: _Outbox, now: datetime) -> bool:
    free = box.lease_until is None or box.lease_until <= now
    return not box.delivered and box.due_at is not None and box.due_at <= now and free


def _out(box: _Outbox, now: datetime) -> bool:
    return box.wake_until is not None and box.wake_until > now
