"""How an operation came to its job: its key, its attempts, its doubt; and what happens beside the job.

What is sealed is never read here, and of a late acceptance only the job's id is told (INV-33).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.template.defaultfilters import filesizeformat

from jobtrack.core.text import clean
from jobtrack_django import facts, sentences
from jobtrack_django.admin.base import Moment
from jobtrack_django.models import JobResult, Operation

_DIGEST = 12
"""Characters of a digest that are shown: enough to compare two by eye."""


def unaccepted(operation: Operation) -> str:
    """What is known about the acceptance while none is written down; "" if one is."""
    if operation.accepted_at is not None:
        return ""
    return facts.unaccepted(
        operation.state,
        sent=operation.first_sent_at is not None,
        doubt=operation.doubt,
        seen=operation.acceptance_seen,
        evidence=operation.evidence,
    )


def submission(operation: Operation, now: datetime) -> dict[str, Any] | None:
    """The facts of a submission; None for a job that was submitted elsewhere."""
    if not operation.fingerprint:
        return None
    return {
        "key": operation.idempotency_key if "key " in operation.permits else "",  # else it was not sent
        "fingerprint": operation.fingerprint[:_DIGEST],
        "predecessor": operation.predecessor,
        "by": None if operation.first_sent_at else Moment.of(operation.submit_by, now),
        "first": Moment.of(operation.first_sent_at, now),
        "last": Moment.of(operation.last_sent_at, now),
        "doubt": sentences.told(operation.doubt),
        "until": Moment.of(operation.recover_until, now),
        "late_job": operation.evidence.get("job_id", "") if operation.evidence else "",
    }


def beside_the_job(operation: Operation, now: datetime) -> dict[str, Any] | None:
    """Cancellation, notices and the result; None if there is nothing to tell. One query."""
    row = JobResult.objects.using(operation._state.db).filter(pk=operation.pk).first()  # noqa: SLF001 - documented by Django
    told = {
        "cancellation": str(facts.CANCELLATIONS.get(operation.cancel_state, operation.cancel_state)),
        "noticed": Moment.of(operation.noticed_at, now),
        "result": _result(row, now) if row else None,
    }
    return told if any(told.values()) else None


def _result(row: JobResult, now: datetime) -> dict[str, Any]:
    """A result with its files. Neither their places in the storage nor any link is shown."""
    result = row.to_core()
    return {
        "stands": str(facts.RESULTS.get(result.state, result.state)),
        "detail": clean(sentences.told(result.detail), 500),
        "reads": result.reads,
        "fetched": Moment.of(result.fetched_at, now),
        "files": [
            {
                "name": clean(file.name),
                "size": filesizeformat(file.size),
                "sha256": file.sha256[:_DIGEST],
                "complete": file.complete,
            }
            for file in result.files
        ],
    }
