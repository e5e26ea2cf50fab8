"""What a chaos test asks of the project, each in a process of its own: ``python -m tests.chaos.project.drive VERB``.

Prints one JSON document.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import django

from tests.chaos.project import celery_app

SOME = 10
"""Submissions of one transaction: others can write in between."""


def migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def track(count: str, polls: str, wait: str) -> dict[str, Any]:
    """Follow jobs; their ids say how they behave."""
    from jobtrack.flow.track import Tracking
    from jobtrack.flow.track import track as flow_track
    from jobtrack.worker.wiring import get_runtime

    started = time.monotonic()
    jobs = [f"j-{number}-{polls}-{wait}" for number in range(int(count))]
    flow_track(
        get_runtime(),
        [
            Tracking(
                operation_id=f"op-{job}", provider="chaos", job_id=job, on_success="tests.chaos.project.followup.ready"
            )
            for job in jobs
        ],
    )
    return {"seconds": time.monotonic() - started, "counts": get_runtime().scheduler.counts}  # type: ignore[attr-defined]


def submit(count: str, *kinds: str) -> dict[str, Any]:
    """Submit jobs, some with each transaction; their ids say how they fare (see ``tests.chaos.doubtful``)."""
    from jobtrack_django import submit_many

    started = time.monotonic()
    for start in range(0, int(count), SOME):
        for kind in kinds:
            tasks = [
                {"operation_id": f"{kind}-{number}", "payload": {"rows": number, "note": "x" * 200}}
                for number in range(start, min(start + SOME, int(count)))
            ]
            submit_many(kind, tasks)
    return {"seconds": time.monotonic() - started}


def duplicate(operation_id: str, copies: str, countdown_s: str) -> None:
    """The message a poll would publish, many times over, the same task id each time (B054)."""
    from django.conf import settings

    for _ in range(int(copies)):
        celery_app.send_task(
            "jobtrack.wake",
            args=(operation_id,),
            task_id=f"{operation_id}:0",
            countdown=float(countdown_s),
            queue=settings.JOBTRACK["QUEUE"],
        )


def view(job: str) -> dict[str, Any]:
    """A page that calls track(), and how long the visitor waited for it."""
    from django.test import Client

    started = time.monotonic()
    answer = Client().get(f"/start/{job}")
    return {"status": answer.status_code, "seconds": time.monotonic() - started}


def ask(count: str) -> list[str]:
    """Operations that go on and ask a person meanwhile; returns the ids of the questions."""
    from jobtrack.core.escalation import Question, Reason
    from jobtrack.worker.wiring import get_runtime
    from jobtrack_django.models import Escalation

    track(count, "1000", "5")
    asked = Question(reason=Reason.BUSINESS_DEADLINE_EXCEEDED, detail="late")
    for number in range(int(count)):
        get_runtime().store.note(f"op-j-{number}-1000-5", {"event": "asked"}, question=asked)
    return [str(pk) for pk in Escalation.objects.values_list("pk", flat=True)]


def alive() -> dict[str, int]:
    """How many processes have given a sign of life, by kind."""
    from collections import Counter

    from jobtrack_django.models import Heartbeat

    return Counter(Heartbeat.objects.values_list("kind", flat=True))


def dump() -> dict[str, Any]:
    """All rows, and whether the audit chains verify."""
    from jobtrack.core import audit
    from jobtrack_django.models import AuditEntry, Delivery, Escalation, Operation

    entries = list(AuditEntry.objects.order_by("operation_id", "seq"))
    lines = [audit.entry_line(e.operation_id, e.seq, e.prev, e.hash, e.body) for e in entries]
    heads = {row.id: (row.audit_seq, row.audit_head) for row in Operation.objects.all()}
    report = audit.verify([*lines, audit.closing_line(heads, at="2026-01-01T00:00:00+00:00")])
    return {
        "operations": list(
            Operation.objects.values(
                *("id", "job_id", "state", "fence", "spent_status_requests", "limit_status_requests"),
                *("provider", "spent_submissions", "limit_submissions", "idempotency_key", "sealed"),
            )
        ),
        "audit": [{"operation": e.operation_id, **json.loads(e.body), "written_at": e.at.isoformat()} for e in entries],
        "audit_faults": [str(fault) for fault in report.faults],
        "delivered": list(Delivery.objects.exclude(delivered_at=None).values_list("operation_id", flat=True)),
        "escalations": list(Escalation.objects.values("operation_id", "reason", "detail")),
    }


VERBS = {verb.__name__: verb for verb in (migrate, track, submit, duplicate, view, ask, alive, dump)}


def main() -> None:
    django.setup()
    verb, *arguments = sys.argv[1:]
    sys.stdout.write(json.dumps(VERBS[verb](*arguments)) + "\n")


if __name__ == "__main__":
    main()
