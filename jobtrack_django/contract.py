"""Puts together what ``Operation.outcome()`` tells: the row, its open questions, its newest request and its table."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from jobtrack.core.escalation import Reason
from jobtrack.core.outcome import LastRequest, outcome
from jobtrack.worker.wiring import get_runtime
from jobtrack_django.models import AuditEntry, Escalation, Operation
from jobtrack_django.store import DjangoStore


def contract(row: Operation, *, now: datetime | None = None) -> dict[str, Any]:
    """The contract of R-SUB-8 for this row as it was loaded. Nothing is sent and nothing is written.

    Args:
        now: by the database's clock, if that is known: then it takes two queries, else three.
    """
    using = row._state.db or "default"  # noqa: SLF001 - documented by Django
    asked = Escalation.objects.using(using).open().filter(operation_id=row.pk).order_by("pk")
    reasons = list(asked.values_list("reason", flat=True))
    told = outcome(
        row.to_core(),
        [Reason(word) for word in reasons if word in set(Reason)],
        now=now or DjangoStore(using).now(),
        table=get_runtime().tables.get(row.provider),
        last=_last_request(row.pk, using),
    )
    return {**told, "needs_decision": reasons}  # also one that only a newer release knows


def _last_request(operation_id: str, using: str) -> LastRequest | None:
    entry = AuditEntry.objects.using(using).of_requests().filter(operation=operation_id).last()
    if entry is None:
        return None
    told = json.loads(entry.body)
    seen = told["observation"]
    return LastRequest(at=told["at"], http=seen["http"], trouble=seen["trouble"], request_id=seen["request_id"])
