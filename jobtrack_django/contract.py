"""Puts together what ``Operation.outcome()`` tells: the row, its open questions, its newest request and its table."""

from __future__ import annotations

import json
from typing import Any

from jobtrack.core.outcome import LastRequest, outcome
from jobtrack.worker.wiring import get_runtime
from jobtrack_django.models import AuditEntry, Operation
from jobtrack_django.store import DjangoStore


def contract(row: Operation) -> dict[str, Any]:
    """The contract of R-SUB-8 for this row as it was loaded. Three queries, no request."""
    store = DjangoStore(row._state.db or "default")  # noqa: SLF001 - documented by Django
    return outcome(
        row.to_core(),
        [question.reason for question in store.open_escalations(row.pk)],
        now=store.now(),
        table=get_runtime().tables.get(row.provider),
        last=_last_request(row.pk, store.using),
    )


def _last_request(operation_id: str, using: str) -> LastRequest | None:
    entry = AuditEntry.objects.using(using).of_requests().filter(operation=operation_id).last()
    if entry is None:
        return None
    told = json.loads(entry.body)
    seen = told["observation"]
    return LastRequest(at=told["at"], http=seen["http"], trouble=seen["trouble"], request_id=seen["request_id"])
