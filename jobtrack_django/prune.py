"""Remove the rows of operations that ended long ago, and keep the proof of what they were (R-AUDIT-2, INV-40).

A batch goes in three steps: choose, prove, remove. The proof is on the disk and verified before the one transaction
that removes anything; that transaction first writes down that the ids stay taken and what their chains ended with.
Whatever ends the process, each operation is wholly there, or pruned with a proof that names it. At worst a file
is left that proves operations which are still there; the next run proves them again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connections, transaction
from django.db.models import Exists, F, OuterRef, ProtectedError, Q, QuerySet, RestrictedError
from django.db.models.functions import Coalesce

from jobtrack.core.operation import OPEN_STATES, TERMINAL
from jobtrack_django import conf
from jobtrack_django.audit_export import signing_key
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import (
    AuditEntry,
    DecisionBatch,
    DecisionItem,
    Delivery,
    Escalation,
    FollowUpReceipt,
    Heartbeat,
    JobResult,
    Notice,
    Operation,
    PrunedOperation,
    WebhookReceipt,
)
from jobtrack_django.proofs import Proof, prove, usable
from jobtrack_django.prune_files import delete_listed, list_files
from jobtrack_django.statements import clock, retried

BOUND = 100_000
"""How far a dry run counts."""

_ENTRIES = 20_000
"""Most audit entries of one batch, unless a single operation has more."""

_HELD = (ProtectedError, RestrictedError, IntegrityError)
"""A row of the site points at an operation, and must not lose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is to be removed, and where its proof goes."""

    older_than: timedelta  # since the operation ended, by the database's clock
    proofs: Path  # absolute, an existing folder
    batch: int = 500  # most operations of one transaction
    limit: int | None = None  # most operations of one run; None: all
    delete_files: bool = False  # fetched results go from the storage too


@dataclass(slots=True, kw_only=True)
class Pruned:
    """What a run did."""

    operations: int = 0
    entries: int = 0
    proofs: int = 0
    moved: int = 0  # changed while they were proven; the next run takes them
    files: int = 0
    kept_files: int = 0  # that the storage did not delete; the next run tries again
    beside: int = 0  # old receipts, signs of life and empty bulk decisions
    broken: dict[str, str] = field(default_factory=dict)  # operation id -> what is wrong with its chain
    held: list[str] = field(default_factory=list)  # ids of operations that rows of the site point at
    stopped: bool = False  # before everything was done

    @property
    def clean(self) -> bool:
        """Nothing needs a person."""
        return not (self.broken or self.held or self.kept_files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a run would find, each counted up to ``BOUND``."""

    ready: int
    waiting: int  # ended as long ago, with an open question or a follow-up that is still to run


def survey(older_than: timedelta) -> Survey:
    """Count what could go now; nothing is written."""
    using = conf.settings().database
    until = clock(using) - older_than
    old = {"operation__ended_at__lt": until, "operation__state__in": TERMINAL}
    asked = _asked(using).filter(**old).order_by().values("operation_id")
    undelivered = _undelivered(using).filter(**old).order_by().values("operation_id")
    return Survey(
        ready=_ready(using, until).order_by()[:BOUND].count(),
        # From what is open, which is little; the other way round every old operation would be read.
        waiting=asked.union(undelivered).order_by()[:BOUND].count(),
    )


def prune(
    terms: Terms, *, stop: Callable[[], bool] = lambda: False, tell: Callable[[Proof, Pruned], None] = lambda *_: None
) -> Pruned:
    """Remove old operations batch by batch.

    Args:
        terms: what and where.
        stop: asked before each batch; True ends the run there.
        tell: called after each batch with its proof and what was done so far.

    Raises:
        UsageError: the folder for proofs cannot be used.
        CredentialError: the key for signing proofs cannot be resolved.
        StoreError: a proof does not verify; its batch is untouched.
        OSError: a proof cannot be written; its batch is untouched.
    """
    folder, key, using = usable(terms.proofs), signing_key(), conf.settings().database
    until, done, last = clock(using) - terms.older_than, Pruned(), None
    _date_ends(using, terms.batch)
    if terms.delete_files:
        _delete_files(folder, done)
    while not (done.stopped or done.operations == terms.limit):
        most = terms.batch if terms.limit is None else min(terms.batch, terms.limit - done.operations)
        rows = _chosen(using, until, last, most)
        if not rows:
            done.beside = _forget(using, until, terms.batch)
            break
        last = (rows[-1].ended_at, rows[-1].pk)
        proof = prove(folder, {row.pk: (row.audit_seq, row.audit_head) for row in rows}, key=key)
        done.broken |= proof.broken
        done.proofs += bool(proof.name)
        _remove_all(_Batch(using=using, until=until, terms=terms, proof=proof), list(proof.heads), done)
        if terms.delete_files:
            _delete_files(folder, done)
        tell(proof, done)
        done.stopped = stop()
    return done


# --- which ----------------------------------------------------------------------------------------------


def _date_ends(using: str, most: int) -> None:
    """Workers of an earlier release, during an update, write no end: the last look's instant stands for it."""
    rows = Operation.objects.using(using).filter(ended_at__isnull=True).order_by()
    found = undated = rows.filter(state__in=TERMINAL)
    if connections[using].vendor == "mysql":
        # There the rows of all open operations would be read, from all over the disk: here two indexes are compared.
        found = rows.filter(~Exists(Operation.objects.using(using).filter(pk=OuterRef("pk"), state__in=OPEN_STATES)))
    while keys := list(found.values_list("pk", flat=True)[:most]):
        seen = Coalesce(F("observed_at"), F("accepted_at"), F("created_at"))
        undated.filter(pk__in=keys).update(ended_at=seen)


def _old(using: str, until: datetime) -> QuerySet[Operation]:
    return Operation.objects.using(using).filter(ended_at__lt=until, state__in=TERMINAL)


def _rested(using: str) -> Q:
    """Nobody is asked anything, and nothing is still to run.

    A follow-up or errand that no longer is due, and whose question is closed, was given up by a person. A result
    that is still wanted has an errand that is due.
    """
    asked, undelivered = (rows.filter(operation=OuterRef("pk")) for rows in (_asked(using), _undelivered(using)))
    return ~Q(Exists(asked)) & ~Q(Exists(undelivered)) & Q(lease_until__isnull=True)


def _asked(using: str) -> QuerySet[Escalation]:
    return Escalation.objects.using(using).open()


def _undelivered(using: str) -> QuerySet[Delivery]:
    return Delivery.objects.using(using).filter(due_at__isnull=False)


def _ready(using: str, until: datetime) -> QuerySet[Operation]:
    return _old(using, until).filter(_rested(using))


def _chosen(using: str, until: datetime, last: tuple[Any, str] | None, most: int) -> list[Operation]:
    """The next ones by age, after those that this run has seen: what stays is not looked at again and again."""
    rows = _ready(using, until)
    if last is not None:
        ended_at, key = last
        rows = rows.filter(Q(ended_at__gt=ended_at) | Q(ended_at=ended_at, pk__gt=key), ended_at__gte=ended_at)
    found = list(rows.only("ended_at", "audit_seq", "audit_head").order_by("ended_at", "pk")[:most])
    sums = accumulate(row.audit_seq for row in found)
    return [row for row, entries in zip(found, sums, strict=True) if entries <= _ENTRIES] or found[:1]


# --- removing -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    using: str
    until: datetime
    terms: Terms
    proof: Proof


def _remove_all(batch: _Batch, ids: list[str], done: Pruned) -> None:
    """Remove them in one transaction; where rows of the site hold some of them back, halves are tried."""
    if not ids:
        return
    try:
        gone, moved, broken = retried(batch.using, partial(_remove, batch, ids))
    except _HELD:
        if len(ids) == 1:
            done.held += ids
            return
        for part in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
            _remove_all(batch, part, done)
        return
    done.operations += len(gone)
    done.entries += sum(batch.proof.heads[each][0] for each in gone)
    done.moved += moved
    done.broken |= broken


def _remove(batch: _Batch, ids: Sequence[str]) -> tuple[list[str], int, dict[str, str]]:
    """What was removed, how many have moved meanwhile, and what turned out to be broken."""
    heads, broken = batch.proof.heads, {}
    with transaction.atomic(using=batch.using, durable=True):
        locked = _locked(batch.using, ids)
        # A statement of its own: the condition must see what was committed while the lock was waited for.
        found = list(_ready(batch.using, batch.until).filter(pk__in=locked))
        same = [row for row in found if (row.audit_seq, row.audit_head) == heads[row.pk]]
        for row in found:
            if row not in same and row.audit_seq <= heads[row.pk][0]:
                broken[row.pk] = "the chain goes on after the head that its row names"
        if same:
            _write_down(same, batch)
            _delete(batch, [row.pk for row in same])
    return [row.pk for row in same], len(ids) - len(same) - len(broken), broken


def _locked(using: str, ids: Sequence[str]) -> list[str]:
    """Lock the rows. Those that somebody is writing are left: neither side waits for the other, so none deadlocks."""
    rows = Operation.objects.using(using).filter(pk__in=ids).order_by("pk")
    features = connections[using].features
    if not features.has_select_for_update:
        rows.order_by().update(fence=F("fence"))  # SQLite: a transaction that reads first may not write any more
        return list(rows.values_list("pk", flat=True))
    rows = rows.select_for_update(skip_locked=features.has_select_for_update_skip_locked)
    return list(rows.values_list("pk", flat=True))


def _write_down(rows: Sequence[Operation], batch: _Batch) -> None:
    """That the ids stay taken, and what their chains ended with. On PostgreSQL nothing may go before this is there."""
    copied = ("provider", "account", "state", "ended_at", "audit_seq", "audit_head")
    remains = [
        PrunedOperation(
            operation_id=row.pk,
            proof=batch.proof.name,
            pruned_at=DatabaseNow(),
            **{name: getattr(row, name) for name in copied},
        )
        for row in rows
    ]
    PrunedOperation.objects.using(batch.using).bulk_create(remains)


def _delete(batch: _Batch, ids: Sequence[str]) -> None:
    """Everything that hangs on the operations, and then the operations. Entries of the admin's log stay."""

    def rows(model: type[Any], **of: Any) -> Any:
        return model._base_manager.using(batch.using).filter(**of)  # noqa: SLF001 - documented by Django

    asked = list(rows(Escalation, operation__in=ids).values_list("pk", flat=True))
    delivered = list(rows(Delivery, operation__in=ids).values_list("pk", flat=True))
    if batch.terms.delete_files:
        results = rows(JobResult, operation__in=ids).values_list("pk", "files")
        list_files(batch.terms.proofs / batch.proof.name, dict(results))
    rows(Notice, escalation__in=asked).delete()
    rows(DecisionItem, escalation__in=asked).delete()
    rows(Escalation, pk__in=asked).delete()
    rows(FollowUpReceipt, pk__in=delivered).delete()
    rows(Delivery, pk__in=delivered).delete()
    rows(JobResult, operation__in=ids).delete()
    # The one place where audit entries go. The model refuses it, so that no page and no script can do it by accident;
    # their chain is in a verified file, and its head is written down above.
    rows(AuditEntry, operation__in=ids)._raw_delete(batch.using)  # noqa: SLF001
    rows(Operation, pk__in=ids).delete()  # by Django, so that it does with a site's foreign keys what they say


def _delete_files(folder: Path, done: Pruned) -> None:
    deleted, kept = delete_listed(folder)
    done.files += deleted
    done.kept_files = kept


# --- what else is old -----------------------------------------------------------------------------------


def _forget(using: str, until: datetime, most: int) -> int:
    """Receipts of notices that will not come again, signs of life of old processes, bulk decisions without items."""
    old = (
        WebhookReceipt.objects.using(using).filter(received_at__lt=until),
        Heartbeat.objects.using(using).filter(seen_at__lt=until),
        DecisionBatch.objects.using(using).filter(finished_at__lt=until, items__isnull=True),
    )
    return sum(_forget_rows(rows, most) for rows in old)


def _forget_rows(rows: QuerySet[Any], most: int) -> int:
    forgotten = 0
    while keys := list(rows.values_list("pk", flat=True)[:most]):
        rows.model._base_manager.using(rows.db).filter(pk__in=keys).delete()  # noqa: SLF001 - documented by Django
        forgotten += len(keys)
    return forgotten
