"""Follow-ups, delivered at least once (R-END-2, INV-21 to 23)."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F

from jobtrack import records
from jobtrack.core.escalation import Question
from jobtrack_django.chain import ChainedRows
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Delivery
from jobtrack_django.statements import after
from jobtrack_django.storable import storable


class Outbox(ChainedRows):
    """The part of the store that leases and closes deliveries."""

    def take_delivery(self, delivery_id: str, *, owner: str, lease: timedelta) -> records.Delivery | None:
        row = Delivery.objects.using(self.using).filter(pk=delivery_id)
        with transaction.atomic(using=self.using, durable=True):
            taken = row.due().update(
                attempts=F("attempts") + 1, lease_owner=owner, lease_until=after(lease), wake_until=None
            )
            found = row.filter(lease_owner=owner).first() if taken else None
        if found is None or found.lease_until is None:
            return None
        return records.Delivery(
            id=found.pk,
            operation_id=found.operation_id,
            event=found.event,
            handler=found.handler,
            attempts=found.attempts,
            now=found.lease_until - lease,
        )

    def close_delivery(self, delivery: records.Delivery, *, owner: str) -> bool:
        leased = self._rows(Delivery).filter(pk=delivery.id, lease_owner=owner, delivered_at__isnull=True)
        return bool(
            leased.update(delivered_at=DatabaseNow(), due_at=None, lease_owner="", lease_until=None, last_error="")
        )

    def fail_delivery(
        self,
        delivery: records.Delivery,
        *,
        owner: str,
        error: str,
        again_in: timedelta | None,
        question: Question | None,
    ) -> None:
        leased = self._rows(Delivery).filter(pk=delivery.id, lease_owner=owner, delivered_at__isnull=True)
        with transaction.atomic(using=self.using):
            current = self._lock(delivery.operation_id)
            failed = leased.update(
                last_error=storable(error),
                due_at=None if again_in is None else after(again_in),
                lease_owner="",
                lease_until=None,
            )
            if failed and question is not None:
                self._ask(current, [question])
