"""What comes beside the looks: notes, notices of providers, and results (R-SEC-3, R-END-4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from jobtrack import records
from jobtrack.core import meanwhile
from jobtrack.core import operation as core
from jobtrack.core.escalation import Question
from jobtrack.core.operation import OperationState
from jobtrack.errors import StoreError
from jobtrack_django.chain import ChainedRows, core_of
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import JobResult, Operation, WebhookReceipt
from jobtrack_django.statements import clock, retried
from jobtrack_django.storable import identity


class Notices(ChainedRows):
    """The part of the store that no look writes."""

    def now(self) -> datetime:
        virtual = DatabaseNow.virtual
        now: datetime = virtual() if virtual else clock(self.using)
        return now

    def note(
        self,
        operation_id: str,
        entry: Mapping[str, Any],
        *,
        question: Question | None = None,
        errand: records.Followup | None = None,
        cancel_state: str | None = None,
    ) -> core.Operation:
        if question is not None and question.blocking:
            raise StoreError("A note stops no operation.", operation=operation_id, reason=question.reason.value)
        with transaction.atomic(using=self.using):
            current = self._lock(operation_id)
            self._note(current, entry, **({} if cancel_state is None else {"cancel_state": cancel_state}))
            if question is not None:
                self._ask(current, [question])
            if errand is not None:
                self._arm(operation_id, errand)
            return core_of(self._operations().get(pk=operation_id))

    # --- notices of providers -------------------------------------------------------------------

    def receive(self, receipts: Sequence[records.Receipt]) -> list[bool]:
        return [retried(self.using, partial(self._receive, receipt)) for receipt in receipts]

    def _receive(self, receipt: records.Receipt) -> bool:
        columns = WebhookReceipt.from_core(receipt)
        known = {name: columns[name] for name in ("provider", "account", "notice_id")}
        # Asked first: a notice that comes again and again costs no write.
        if self._rows(WebhookReceipt).filter(**known).exists():
            return False
        try:
            with transaction.atomic(using=self.using):
                self._rows(WebhookReceipt).create(**columns, received_at=DatabaseNow())
        except IntegrityError:
            return False
        return True

    def forget_receipts(self, before: datetime) -> int:
        """Delete receipts of notices that will not come again; returns how many."""
        deleted, _ = self._rows(WebhookReceipt).filter(received_at__lt=before).delete()
        return int(deleted)

    def hint(self, receipts: Sequence[records.Receipt]) -> list[str]:
        jobs, ids = defaultdict(set), defaultdict(set)
        for each in receipts:
            if each.operation_id:
                ids[each.provider, each.account].add(identity(Operation, "id", each.operation_id))
            else:
                jobs[each.provider, each.account].add(identity(Operation, "job_id", each.job_id))
        meant = Q(pk__in=())
        for provider, account in sorted({*jobs, *ids}):
            named = Q(pk__in=ids[provider, account]) | Q(job_id__in=jobs[provider, account] - {""})
            meant |= Q(named, provider=provider, account=account)
        rows = self._operations().filter(meant, state=OperationState.RUNNING).order_by("pk")
        return [key for key in rows.values_list("pk", flat=True) if self._hint(key)]

    def _hint(self, operation_id: str) -> bool:
        """True if its next look moved."""
        with transaction.atomic(using=self.using):
            current = self._lock(operation_id)
            if current.state is not OperationState.RUNNING:
                return False
            sooner = meanwhile.hinted(current, self.now())
            names = ("hinted", "noticed_at", "wake_at", "not_before", "wake_until", "delay_source")
            self._operations().filter(pk=operation_id).update(**{name: getattr(sooner, name) for name in names})
            return sooner.wake_at != current.wake_at

    def receipts_of(self, operation: core.Operation) -> list[records.Receipt]:
        means = Q(operation_id=operation.id)
        if operation.job_id:
            means |= Q(job_id=operation.job_id)
        rows = self._rows(WebhookReceipt).filter(means, provider=operation.provider, account=operation.account)
        return [row.to_core() for row in rows.order_by("pk")]

    # --- results --------------------------------------------------------------------------------

    def result(self, operation_id: str) -> records.JobResult | None:
        row = self._rows(JobResult).filter(pk=operation_id).first()
        return None if row is None else row.to_core()

    def keep_result(self, result: records.JobResult) -> None:
        columns = JobResult.from_core(result)
        with transaction.atomic(using=self.using):
            self._lock(result.operation_id)
            kept = self._rows(JobResult).filter(pk=result.operation_id)
            if kept.exclude(state=records.ResultState.COMPLETE).update(**columns) or kept.exists():
                return
            self._rows(JobResult).create(operation_id=result.operation_id, **columns)
