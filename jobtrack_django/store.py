"""The store on Django's ORM: the only writer of jobtrack's rows.

Every claim is one conditional UPDATE and every commit a compare-and-set, so that the promises rest on nothing but
row updates and unique keys, alike on PostgreSQL, MySQL/MariaDB and SQLite (INV-13, INV-42). ``SKIP LOCKED`` only
saves waiting. The database's clock judges leases, deadlines and wake-ups (INV-45). Every statement names the write
database, so that a router can never answer from a lagging replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial, reduce
from operator import or_
from typing import Any, cast

from django.db import IntegrityError, OperationalError, connections, transaction
from django.db.models import F, Min, Q, QuerySet
from django.db.models.functions import Coalesce, Greatest

from jobtrack import records
from jobtrack.core import meanwhile
from jobtrack.core import operation as core
from jobtrack.core.audit import GENESIS
from jobtrack.core.decide import contradiction
from jobtrack.core.gate import OPEN, GateState
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import TERMINAL, OperationState, may_move
from jobtrack.core.table import ProviderTable
from jobtrack.errors import StoreError
from jobtrack.ports import RUNNING
from jobtrack_django.chain import Link, after_head, core_of
from jobtrack_django.decisions import Decisions
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import AccountGate, Delivery, Operation, TableText
from jobtrack_django.notices import Notices
from jobtrack_django.outbox import Outbox
from jobtrack_django.querysets import undispatched, unleased
from jobtrack_django.remains import refuse_pruned
from jobtrack_django.statements import Terms, after, claim, lost_race, retried
from jobtrack_django.storable import storable


class DjangoStore(Decisions, Outbox, Notices):
    """Implements ``jobtrack.ports.Store``.

    Args:
        using: alias of the database that takes the writes.
    """

    def __init__(self, using: str = "default") -> None:
        super().__init__(using)
        self._texts_kept: set[str] = set()

    # --- operations -----------------------------------------------------------------------------

    def add(
        self, operations: Sequence[core.Operation], entry: Mapping[str, Any], table: ProviderTable
    ) -> list[core.Operation]:
        return retried(self.using, partial(self._add, operations, entry, table))

    def _add(
        self, operations: Sequence[core.Operation], entry: Mapping[str, Any], table: ProviderTable
    ) -> list[core.Operation]:
        with transaction.atomic(using=self.using):
            self._keep_text(table)
            return [self._stored(operation.id) or self._insert(operation, entry) for operation in operations]

    def _stored(self, operation_id: str) -> core.Operation | None:
        return next(iter(self.get([operation_id])), None)

    def _insert(self, operation: core.Operation, entry: Mapping[str, Any]) -> core.Operation:
        link = Link.of(replace(operation, audit_seq=0, audit_head=GENESIS), entry)
        columns = Operation.from_core(replace(operation, audit_seq=link.seq, audit_head=link.hash))
        try:
            with transaction.atomic(using=self.using):
                Operation(**columns).save(using=self.using, force_insert=True)
                refuse_pruned(operation.id, self.using)  # not before: while the new row is there, none can be pruned
                self._append(link)
        except IntegrityError:
            # Somebody else was first with this id. A plain read sees their row and takes no lock: on MySQL each loser
            # shares a lock on the row, and two that ask for more deadlock (INV-20). A snapshot needs the locking read.
            row = self._operations().filter(pk=operation.id).first()
            row = row or self._operations().select_for_update().filter(pk=operation.id).first()
            if row is None:
                refuse_pruned(operation.id, self.using)
                raise
            return core_of(row)
        return self.get([operation.id])[0]

    def get(self, ids: Iterable[str]) -> list[core.Operation]:
        wanted = list(ids)
        rows = self._operations().in_bulk(wanted)
        return [rows[operation_id].to_core() for operation_id in wanted if operation_id in rows]

    def claim(
        self,
        ids: Sequence[str],
        *,
        owner: str,
        lease: timedelta,
        floor: timedelta,
        debit: bool = True,
        states: frozenset[OperationState] = RUNNING,
    ) -> list[records.Claim]:
        rows: list[Operation] = []
        terms = Terms(lease=lease, floor=floor, debit=debit, states=states)
        try:
            with transaction.atomic(using=self.using, durable=True):
                free = self._unlocked(ids)
                if free and claim(self.using, free, terms, owner=owner):
                    rows = list(self._operations().filter(pk__in=free, lease_owner=owner))
        except OperationalError as error:
            if not lost_race(error):
                raise
            return []  # the other side has the rows; a claim that failed is a claim that found nothing
        rows.sort(key=lambda row: ids.index(row.pk))
        return [_as_claim(row, lease) for row in rows]

    def _unlocked(self, ids: Sequence[str]) -> list[str]:
        """The ids in one order for all, without rows somebody is writing: batches neither wait nor deadlock."""
        wanted = sorted(set(ids))
        if len(wanted) < 2 or not self._can_skip_locked():
            return wanted
        rows = self._operations().filter(pk__in=wanted).order_by("pk")
        return list(rows.select_for_update(skip_locked=True).values_list("pk", flat=True))

    def hold(self, ids: Sequence[str], *, until: datetime, source: DelaySource | None = None) -> None:
        because = {} if source is None else {"delay_source": source.value}
        due = self._operations().filter(unleased(), pk__in=ids, wake_at__lte=DatabaseNow())
        due.update(wake_at=until, wake_until=None, **because)

    def unmark(self, ids: Sequence[str]) -> None:
        self._operations().filter(pk__in=ids, wake_until__isnull=False).update(wake_until=None)

    # --- commits --------------------------------------------------------------------------------

    def commit(self, commits: Sequence[records.Commit]) -> list[records.Committed]:
        return [retried(self.using, partial(self._commit, commit)) for commit in commits]

    def _commit(self, commit: records.Commit) -> records.Committed:
        with transaction.atomic(using=self.using):
            wanted = commit.operation
            if not self._write(wanted, commit.entry, _QUIETLY[wanted.state], lease_until__isnull=False, hinted=False):
                current = self._lock(wanted.id)
                if current.fence != wanted.fence or current.lease is None or current.terminal:
                    self._keep_late(current, commit)
                    return records.Committed.STALE
                self._write_over(current, commit)
            self._ask(wanted, commit.questions)
            self._follow(wanted.id, commit.followups)
            if commit.table is not None:
                self._keep_text(commit.table)
        return records.Committed.DONE

    def _keep_late(self, current: core.Operation, commit: records.Commit) -> None:
        """The answer came too late: it is evidence (R-READ-7, INV-14, INV-15)."""
        known = meanwhile.with_evidence(current, commit.evidence or {}, self.now())
        beside: dict[str, Any] = {}
        if known is not current:
            beside = {
                "evidence": storable(known.evidence),
                "acceptance_seen": known.acceptance_seen,
                "doubt": storable(known.doubt),
                "wake_at": known.wake_at,
                "wake_until": known.wake_until,
            }
        self._note(current, {**commit.entry, "late": True}, **beside)
        contradicted = contradiction(current, commit.operation)
        if contradicted is not None:
            self._ask(current, (contradicted,))

    def _write_over(self, current: core.Operation, commit: records.Commit) -> None:
        """Rare: something came to the row meanwhile, or this answers a question. The row is locked."""
        wanted = commit.operation
        refused = meanwhile.refusal(current, wanted)
        if refused:
            raise StoreError(refused, operation=wanted.id)
        row = meanwhile.merged(current, wanted, self.now())
        self._write(after_head(row, current), commit.entry, {current.state})
        if current.state is OperationState.ESCALATED and wanted.state is not current.state:
            self._settle_by_evidence(wanted)
        second = meanwhile.second_job(current, wanted)
        if second is not None:
            self._ask(wanted, (second,))

    def _keep_text(self, table: ProviderTable) -> None:
        """Each digest's text once. What this process saw committed is not written again with every poll."""
        if table.digest in self._texts_kept:
            return
        text = TableText(
            digest=table.digest,
            table_id=table.id,
            revision=table.revision,
            text=storable(table.text),
            first_seen_at=cast("Any", DatabaseNow()),
        )
        self._rows(TableText).bulk_create([text], ignore_conflicts=True)

        def remember_text() -> None:
            self._texts_kept.add(table.digest)

        transaction.on_commit(remember_text, using=self.using)

    # --- due work -------------------------------------------------------------------------------

    def due(self, *, limit: int, grace: timedelta) -> records.Due:
        try:
            with transaction.atomic(using=self.using):
                operations = self._dispatch(self._operations().due().order_by("wake_at"), limit, grace)
                follow_ups = Delivery.objects.using(self.using).due().order_by("due_at", "pk")
                deliveries = self._dispatch(follow_ups, limit, grace)
        except OperationalError as error:
            if not lost_race(error):
                raise
            return records.Due()  # another sweeper is at it
        return records.Due(
            operations=tuple(operations),
            deliveries=tuple(deliveries),
            more=limit in (len(operations), len(deliveries)),
        )

    def _dispatch(self, due: QuerySet[Any], limit: int, grace: timedelta) -> list[Any]:
        rows = due.filter(undispatched())
        if connections[self.using].features.has_select_for_update:
            rows = rows.select_for_update(skip_locked=self._can_skip_locked())
        keys = list(rows.values_list("pk", flat=True)[:limit])
        if keys:
            due.model._base_manager.using(self.using).filter(pk__in=keys).update(wake_until=after(grace))  # noqa: SLF001
        return keys

    def next_due_at(self) -> datetime | None:
        waiting = self._operations().filter(wake_at__isnull=False)
        undelivered = self._rows(Delivery).filter(delivered_at__isnull=True, due_at__isnull=False)
        instants = [
            rows.aggregate(soonest=Min(Greatest(F(name), Coalesce(F("lease_until"), F(name)))))["soonest"]
            for rows, name in ((waiting, "wake_at"), (undelivered, "due_at"))
        ]
        return min((instant for instant in instants if instant is not None), default=None)

    def overdue_lag(self) -> timedelta:
        oldest = self._operations().due().order_by("wake_at").annotate(clock=DatabaseNow())
        row = oldest.values_list("clock", "wake_at").first()
        return row[0] - row[1] if row else timedelta(0)

    # --- gates ----------------------------------------------------------------------------------

    def gates(self, accounts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], GateState]:
        found = dict.fromkeys(accounts, OPEN)
        wanted = [Q(provider=provider, account=account) for provider, account in found]
        if wanted:
            rows = self._rows(AccountGate).filter(reduce(or_, wanted))
            found |= {(row.provider, row.account): row.to_core() for row in rows}
        return found

    def move_gate(self, provider: str, account: str, before: GateState, after: GateState) -> bool:
        state = {
            "reason": after.reason.value,
            "held_until": after.held_until,
            "streak": after.streak,
            "probe": after.probe,
            "version": before.version + 1,
        }
        if before.version:
            stored = self._rows(AccountGate).filter(provider=provider, account=account, version=before.version)
            return bool(stored.update(**state))
        try:
            with transaction.atomic(using=self.using):
                self._rows(AccountGate).create(provider=provider, account=account, **state)
        except IntegrityError:
            return False
        return True

    # --- small helpers --------------------------------------------------------------------------

    def _can_skip_locked(self) -> bool:
        return bool(connections[self.using].features.has_select_for_update_skip_locked)


_UNASKED = frozenset(OperationState) - {OperationState.ESCALATED}
"""States in which no question waits for an answer that the look would have to give."""

_QUIETLY = {
    target: frozenset(
        source
        for source in OperationState
        if source not in TERMINAL and may_move(source, target) and source in {target, *_UNASKED}
    )
    for target in OperationState
}
"""From where a look brings an operation to each state without more ado; never from a terminal one (INV-07, INV-08)."""


def _as_claim(row: Operation, lease: timedelta) -> records.Claim:
    operation = row.to_core()
    if operation.lease is None:
        raise StoreError(f"The claim of operation {row.pk} left no lease.", operation_id=row.pk)
    return records.Claim(operation=operation, granted=row.lease_granted, now=operation.lease.until - lease)
