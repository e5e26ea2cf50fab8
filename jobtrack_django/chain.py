"""An operation's row and what hangs on it, written together: audit entry, questions, follow-ups.

Each transaction starts by writing the operation's row: that serialises what follows, also on SQLite, where a
transaction that reads first may not write any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, cast

from django.db.models import DurationField, ExpressionWrapper, F, Model, Q

from jobtrack import records
from jobtrack.core import operation as core
from jobtrack.core.audit import canonical, seal
from jobtrack.core.escalation import Question, risk
from jobtrack.core.operation import OperationState
from jobtrack.core.sentences_question import NO_OPERATION
from jobtrack.errors import OperationNotFound
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import AuditEntry, Delivery, Escalation, Operation
from jobtrack_django.notify.plan import plan
from jobtrack_django.storable import storable

_FIXED = frozenset(
    {
        *("id", "provider", "account", "created_at", "reference", "escalate_ends"),
        *("on_success", "on_failure", "on_end", "predecessor", "idempotency_key", "fingerprint", "permits"),
        *("hinted", "noticed_at", "cancel_state"),
    }
)
"""Columns that no look or decision writes: what the operation is, what was granted and named at its start, and what
comes beside the looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The next entry of an operation's audit chain."""

    operation_id: str
    seq: int
    previous: str
    hash: str
    text: str

    @classmethod
    def of(cls, operation: core.Operation, entry: Mapping[str, Any]) -> Link:
        text = canonical(storable(entry))
        seq, previous = operation.audit_seq + 1, operation.audit_head
        digest = seal(previous, operation.id, seq, text)
        return cls(operation_id=operation.id, seq=seq, previous=previous, hash=digest, text=text)


def after_head(wanted: core.Operation, current: core.Operation) -> core.Operation:
    """``wanted``, chained to the entry that is now the last one."""
    return replace(wanted, audit_seq=current.audit_seq, audit_head=current.audit_head)


def core_of(row: Operation) -> core.Operation:
    """The record of a row, for callers whose queries are not typed."""
    return row.to_core()


_UNPROPOSED = {
    **dict.fromkeys(("proposed_option", "proposed_by", "proposed_why", "proposed_at")),
    **dict.fromkeys(("proposed_job", "proposed_person"), ""),
}
"""A first person's word was about the evidence of its time."""


def _place(question: Question) -> dict[str, Any]:
    """The unique place an open question takes: one blocking, one advisory for each reason."""
    if question.blocking:
        return {"open_blocking": True}
    return {"open_advisory": True, "reason": question.reason.value}


def _ended(operation: core.Operation) -> dict[str, Any]:
    """When it ended, and how long after the look before: so late, at most, was its end seen (R-METRIC).

    To be written before other columns: MySQL lets an expression see what stands on its left in the same statement.
    """
    ended: dict[str, Any] = {"ended_at": DatabaseNow()}
    if operation.state is OperationState.ABANDONED:
        return ended
    gap = ExpressionWrapper(DatabaseNow() - F("observed_at"), output_field=DurationField())
    return {"seen_within": gap, **ended}


class ChainedRows:
    """Base of the store: its write alias, and writes that keep the audit chain whole.

    Args:
        using: alias of the database that takes the writes.
    """

    def __init__(self, using: str = "default") -> None:
        self.using = using

    def _operations(self) -> Any:
        return Operation.objects.using(self.using)

    def _rows(self, model: type[Model]) -> Any:
        return model._base_manager.using(self.using)  # noqa: SLF001 - Django's documented name

    def _lock(self, operation_id: str) -> core.Operation:
        """The row, read after writing it: a lock that every database has, SQLite included."""
        if not self._operations().filter(pk=operation_id).update(fence=F("fence")):
            raise OperationNotFound(NO_OPERATION.of(operation=repr(operation_id)), operation_id=operation_id)
        return core_of(self._operations().get(pk=operation_id))

    def _write(
        self,
        operation: core.Operation,
        entry: Mapping[str, Any],
        before: AbstractSet[OperationState],
        **expected: Any,
    ) -> bool:
        """Compare-and-set of the row, then its audit entry.

        False: fence, audit head, state, job or what else is ``expected`` is not so, and nothing was written.
        """
        link = Link.of(operation, entry)
        rows = self._operations().filter(
            Q(job_id="") | Q(job_id=operation.job_id),
            Q(accepted_at__isnull=True) | Q(accepted_at=operation.accepted_at),
            pk=operation.id,
            fence=operation.fence,
            audit_seq=operation.audit_seq,
            audit_head=operation.audit_head,
            state__in=sorted(before),
            **expected,
        )
        columns = Operation.from_core(replace(operation, audit_seq=link.seq, audit_head=link.hash))
        written = {name: value for name, value in columns.items() if name not in _FIXED}
        if operation.terminal:
            written = {**_ended(operation), **written}
        if not rows.update(**written):
            return False
        self._append(link)
        return True

    def _note(self, current: core.Operation, entry: Mapping[str, Any], **beside: Any) -> None:
        """An audit entry that moves nothing: late evidence (R-READ-7, INV-14), an acknowledgement.

        ``beside`` are columns to be written with it.
        """
        link = Link.of(current, entry)
        self._operations().filter(pk=current.id).update(audit_seq=link.seq, audit_head=link.hash, **beside)
        self._append(link)

    def _append(self, link: Link) -> None:
        AuditEntry(
            operation_id=link.operation_id,
            seq=link.seq,
            prev=link.previous,
            hash=link.hash,
            body=link.text,
            at=cast("Any", DatabaseNow()),
        ).save(using=self.using, force_insert=True)

    def _ask(self, operation: core.Operation, questions: Sequence[Question]) -> None:
        """Open each question, or renew the evidence of the open one in its place. The operation's row is locked."""
        for question in questions:
            place = _place(question)
            known = {
                "reason": question.reason.value,
                "risk": risk(question.reason),
                "detail": storable(question.detail),
            }
            taken = self._rows(Escalation).filter(operation_id=operation.id, **place)
            if taken.update(**known, **_UNPROPOSED, version=F("version") + 1):
                continue
            asked = self._rows(Escalation).create(
                operation_id=operation.id,
                provider=operation.provider,
                account=operation.account,
                blocking=question.blocking,
                opened_at=DatabaseNow(),
                **{**place, **known},
            )
            plan(self.using, asked)

    def _follow(self, operation_id: str, followups: Sequence[records.Followup]) -> None:
        for followup in followups:
            self._rows(Delivery).get_or_create(
                operation_id=operation_id,
                event=followup.event,
                defaults={
                    "id": followup.delivery_of(operation_id),
                    "handler": followup.handler,
                    "due_at": DatabaseNow(),
                },
            )

    def _arm(self, operation_id: str, errand: records.Followup) -> None:
        """Write the errand, or make it due again with fresh attempts. An attempt under way goes on to its end."""
        self._follow(operation_id, [errand])
        written = self._rows(Delivery).filter(operation_id=operation_id, event=errand.event)
        written.update(due_at=DatabaseNow(), wake_until=None, attempts=0, delivered_at=None)
