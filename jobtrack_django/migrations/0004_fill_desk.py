"""Fills the new columns of rows that are there already: in batches, and from where it stopped if it is interrupted."""

from typing import Any

from django.db import migrations
from django.db.models import F, OuterRef, Subquery
from django.db.models.functions import Coalesce

BATCH = 5000
TERMINAL = ["succeeded", "failed", "cancelled", "expired", "abandoned"]
HIGH = [
    *("submission_unknown", "idempotency_conflict", "state_contradiction", "job_id_mismatch", "cancel_unknown"),
    *("seal_broken", "result_unavailable", "authorization_denied"),
]
LOW = [
    *("business_deadline_exceeded", "provider_failure", "provider_cancelled", "provider_expired"),
    *("submission_rejected", "guidance_too_long"),
]


def fill(apps: Any, schema_editor: Any) -> None:
    using = schema_editor.connection.alias
    operations = apps.get_model("jobtrack", "Operation").objects.using(using)
    escalations = apps.get_model("jobtrack", "Escalation").objects.using(using)
    operation = operations.filter(pk=OuterRef("operation_id"))
    in_batches(
        escalations.filter(provider=""),
        provider=Subquery(operation.values("provider")[:1]),
        account=Subquery(operation.values("account")[:1]),
    )
    in_batches(escalations.filter(reason__in=HIGH).exclude(risk=1), risk=1)
    in_batches(escalations.filter(reason__in=LOW).exclude(risk=3), risk=3)
    in_batches(
        operations.filter(state__in=TERMINAL, ended_at__isnull=True),
        ended_at=Coalesce(F("observed_at"), F("accepted_at"), F("created_at")),
    )


def in_batches(rows: Any, **values: Any) -> None:
    while True:
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH])
        if not keys or not rows.model._base_manager.using(rows.db).filter(pk__in=keys).update(**values):
            return


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("jobtrack", "0003_desk"),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=False),
    ]
