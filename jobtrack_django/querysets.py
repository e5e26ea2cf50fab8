"""Words for sets of rows. Reading only: ``DjangoStore`` is the one writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from django.db import models
from django.db.models import OuterRef, Q, Subquery

from jobtrack.core.operation import TERMINAL
from jobtrack_django.fields import DatabaseNow

if TYPE_CHECKING:
    from jobtrack_django.models import AuditEntry, Delivery, Escalation, Operation  # noqa: F401 - in quotes below


def unleased() -> Q:
    """Nobody holds the row: no lease, or one that is over by the database's clock."""
    return Q(lease_until__isnull=True) | Q(lease_until__lte=DatabaseNow())


def undispatched() -> Q:
    """No wake-up message is out, or it has taken too long."""
    return Q(wake_until__isnull=True) | Q(wake_until__lte=DatabaseNow())


class OperationQuerySet(models.QuerySet["Operation"]):
    def open(self) -> OperationQuerySet:
        """Not ended: still moving, or waiting for a person."""
        return self.exclude(state__in=TERMINAL)

    def due(self) -> OperationQuerySet:
        """Time to look, and nobody is looking."""
        return self.filter(unleased(), wake_at__lte=DatabaseNow())

    def needs_decision(self) -> OperationQuerySet:
        """With an open question to a person, blocking or not."""
        open_questions = Q(escalations__decided_at__isnull=True, escalations__isnull=False)
        return self.filter(open_questions).distinct()

    def for_object(self, subject: models.Model) -> OperationQuerySet:
        """Those linked to an object of the caller."""
        from django.contrib.contenttypes.models import ContentType

        kind = ContentType.objects.get_for_model(subject, for_concrete_model=False)
        return self.filter(content_type=kind, object_id=str(subject.pk))

    def by_provider(self, provider: str) -> OperationQuerySet:
        """Those read with one provider table, given by its id."""
        return self.filter(provider=provider)


class EscalationQuerySet(models.QuerySet["Escalation"]):
    def open(self) -> EscalationQuerySet:
        """Questions nobody has answered."""
        return self.filter(decided_at__isnull=True)


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def due(self) -> DeliveryQuerySet:
        """Time for an attempt, and nobody is making one."""
        return self.filter(unleased(), delivered_at__isnull=True, due_at__lte=DatabaseNow())

    def failing(self) -> DeliveryQuerySet:
        """Not delivered although an attempt was made: its handler raised, or never came back."""
        return self.filter(~Q(last_error="") | Q(attempts__gt=1), delivered_at__isnull=True)


# Entries are canonical JSON: text inside one of its strings cannot look like this.
_LOOKS = Q(body__contains='"event":"poll"')
_ACCEPTANCES = Q(body__contains='"event":"submission"') & Q(body__contains='"do":"follow"')


class AuditQuerySet(models.QuerySet["AuditEntry"]):
    """Append-only: an entry is never changed or removed (INV-40)."""

    def of_requests(self) -> AuditQuerySet:
        """Those that tell what a status request showed. Text inside a JSON string cannot look like this."""
        return self.filter(body__contains='"observation":{')

    def with_answer_before(self) -> models.QuerySet[Any]:
        """Each entry with ``before``: the body of the last answer in its chain that came in time to count."""
        chain = self.model._base_manager.using(self.db).filter(  # noqa: SLF001 - Django's documented name
            operation_id=OuterRef("operation_id"), seq__lt=OuterRef("seq")
        )
        answers = chain.filter(_LOOKS | _ACCEPTANCES).exclude(body__contains='"late":true').order_by("-seq")
        return self.annotate(before=Subquery(answers.values("body")[:1]))

    def update(self, **_: Any) -> NoReturn:
        refuse()

    def delete(self) -> NoReturn:
        refuse()

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        refuse()

    def _raw_delete(self, *_: Any, **__: Any) -> NoReturn:
        refuse()


def refuse() -> NoReturn:
    raise TypeError("Audit entries are written once: they are never changed or deleted.")
