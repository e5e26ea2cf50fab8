"""Questions to a person, and the answers (R-ESC, INV-28)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NoReturn

from django.db import transaction

from jobtrack import records
from jobtrack.core import meanwhile
from jobtrack.core import operation as core
from jobtrack.core.escalation import Proposal, Reason, Resolution
from jobtrack.core.operation import OperationState
from jobtrack.core.sentences_question import NO_QUESTION
from jobtrack.errors import AlreadyDecided, OperationNotFound, StaleEvidence, StoreError
from jobtrack_django.chain import ChainedRows, after_head
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Delivery, Escalation
from jobtrack_django.statements import after
from jobtrack_django.storable import storable, text_limit


class Decisions(ChainedRows):
    """The part of the store that keeps escalations."""

    def escalation(self, escalation_id: str) -> records.Escalation:
        row = self._rows(Escalation).filter(pk=_key(escalation_id)).first()
        if row is None:
            raise OperationNotFound(NO_QUESTION.of(question=repr(escalation_id)), escalation_id=escalation_id)
        found: records.Escalation = row.to_core()
        return found

    def open_escalations(self, operation_id: str) -> list[records.Escalation]:
        rows = self._rows(Escalation).filter(operation_id=operation_id, decided_at__isnull=True)
        return [row.to_core() for row in rows.order_by("pk")]

    def following(self, provider: str, account: str, job_id: str) -> list[str]:
        rows = self._operations().filter(provider=provider, account=account, job_id=job_id)
        return list(rows.values_list("pk", flat=True))

    def asks(self, provider: str, account: str, reason: Reason) -> bool:
        about = {"operation__provider": provider, "operation__account": account}
        asked: bool = self._rows(Escalation).filter(reason=reason.value, decided_at__isnull=True, **about).exists()
        return asked

    def resolve(
        self,
        resolution: Resolution,
        wanted: core.Operation,
        entry: Mapping[str, Any],
        *,
        followups: tuple[records.Followup, ...] = (),
        redeliver: bool = False,
        errand: records.Followup | None = None,
        cancel_state: str | None = None,
    ) -> Resolution:
        with transaction.atomic(using=self.using):
            current = self._lock(wanted.id)
            self._decide(resolution, wanted.id)
            ended = current.terminal and wanted.state is current.state
            if ended or not self.escalation(resolution.escalation_id).blocking:
                self._note(current, entry)  # acknowledged; the operation goes on, or has ended, as it is
            else:
                _refuse_moved(current, wanted)
                if meanwhile.overtaken(current, wanted, resolution.option):
                    raise StaleEvidence("A late answer has just named the provider's job.", operation_id=wanted.id)
                self._write(after_head(meanwhile.decided(current, wanted), current), entry, {current.state})
            if cancel_state is not None:
                self._operations().filter(pk=wanted.id).update(cancel_state=cancel_state)
            self._follow(wanted.id, followups)
            if errand is not None:
                self._arm(wanted.id, errand)
            if redeliver:
                undelivered = self._rows(Delivery).filter(operation_id=wanted.id, delivered_at__isnull=True)
                undelivered = undelivered.exclude(handler="")  # errands have questions of their own
                undelivered.update(due_at=DatabaseNow(), wake_until=None, attempts=0)
        return self.escalation(resolution.escalation_id).resolution or resolution

    def propose(
        self, escalation_id: str, proposal: Proposal, entry: Mapping[str, Any], *, version: int
    ) -> records.Escalation:
        with transaction.atomic(using=self.using):
            asked = self.escalation(escalation_id)
            current = self._lock(asked.operation_id)
            rows = self._rows(Escalation).filter(pk=_key(escalation_id), decided_at__isnull=True, version=version)
            if not rows.update(**_proposed(proposal), version=version + 1):
                self._refuse_late(escalation_id)
            self._note(current, entry)
            return self.escalation(escalation_id)

    def unanswered(
        self, reason: Reason, *, since: timedelta, limit: int, after_id: str = ""
    ) -> list[records.Escalation]:
        rows = self._rows(Escalation).filter(
            reason=reason.value, decided_at__isnull=True, opened_at__lte=after(-since), pk__gt=_key(after_id)
        )
        return [row.to_core() for row in rows.order_by("pk")[:limit]]

    def _settle_by_evidence(self, operation: core.Operation) -> None:
        """A machine took the operation on: the question that had stopped it is answered by what it found."""
        for row in self._rows(Escalation).filter(operation_id=operation.id, open_blocking=True):
            answer = meanwhile.settled_by_evidence(str(row.pk), row.version, operation.job_id)
            self._rows(Escalation).filter(pk=row.pk).update(**_decided(answer))

    def _decide(self, resolution: Resolution, operation_id: str) -> None:
        """Close the question, once, and only as the person saw it (INV-28)."""
        asked = self._rows(Escalation).filter(pk=_key(resolution.escalation_id), operation_id=operation_id)
        seen = asked.filter(decided_at__isnull=True, version=resolution.version)
        if seen.update(**_decided(resolution)):
            return
        self._refuse_late(resolution.escalation_id)

    def _refuse_late(self, escalation_id: str) -> NoReturn:
        """Say who was first, or that the question has changed."""
        found = self.escalation(escalation_id)
        if found.resolution is not None:
            who, what = found.resolution.actor, found.resolution.option.value
            raise AlreadyDecided(f"{who} has already decided this: {what}.", actor=who, option=what)
        raise StaleEvidence("The question has changed since it was shown.", version=found.version)


def _refuse_moved(current: core.Operation, wanted: core.Operation) -> None:
    """A person's grant is for the operation they saw. Only late evidence may have come to a stopped one."""
    same = current.state is OperationState.ESCALATED or current.audit_seq == wanted.audit_seq
    if current.fence != wanted.fence or not same:
        raise StaleEvidence("The operation has moved on since it was shown.", operation_id=wanted.id)
    refused = meanwhile.refusal(current, wanted)
    if refused:
        raise StoreError(refused, operation=wanted.id)


def _decided(resolution: Resolution) -> dict[str, Any]:
    return {
        "option": resolution.option.value,
        "actor": storable(resolution.actor, 255),
        "actor_reason": storable(resolution.reason),
        "job_id": storable(resolution.job_id, text_limit(Escalation, "job_id")),
        "seen_version": resolution.version,
        "decided_at": DatabaseNow(),
        "open_blocking": None,
        "open_advisory": None,
    }


def _proposed(proposal: Proposal) -> dict[str, Any]:
    return {
        "proposed_option": proposal.option.value,
        "proposed_by": storable(proposal.actor, 255),
        "proposed_person": storable(proposal.person, text_limit(Escalation, "proposed_person")),
        "proposed_why": storable(proposal.reason),
        "proposed_job": storable(proposal.job_id, text_limit(Escalation, "proposed_job")),
        "proposed_at": DatabaseNow(),
    }


def _key(text: str) -> int:
    """A row key from its text; anything else names no row."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
