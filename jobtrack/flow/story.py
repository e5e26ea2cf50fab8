"""What the audit entries say (R-AUDIT-1): enough to recompute each decision, and no secret (R-AUDIT-3)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, assert_never

from jobtrack.core.decide import Conclude, Decision, Stop, Wait
from jobtrack.core.escalation import Question
from jobtrack.core.observation import Observation
from jobtrack.core.operation import Operation
from jobtrack.core.recover import Doubt, Fate, Follow, Later, Rest
from jobtrack.core.table import ProviderTable

VERSION = 1


def instant(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def counters(operation: Operation) -> dict[str, Any]:
    """Every counter with its limit; each entry carries all of them (INV-09)."""
    spent, budget = operation.spent, operation.budget
    return {
        "status_requests": [spent.status_requests, budget.status_requests],
        "transport_failures": [spent.transport_failures, budget.transport_failures],
        "rate_limited": [spent.rate_limited, budget.rate_limited],
        "extensions": [spent.extensions, budget.extensions],
        "submissions": [spent.submissions, budget.submissions],
        "lookups": [spent.lookups, budget.lookups],
        "deadline": instant(budget.deadline),
        "needed_by": instant(budget.needed_by),
    }


def decision(value: Decision) -> dict[str, Any]:
    match value:
        case Wait():
            return {
                "do": "wait",
                "at": instant(value.at),
                "not_before": instant(value.not_before),
                "delay_s": round(value.delay.total_seconds(), 3),
                "source": value.source.value,
            }
        case Conclude():
            return {"do": "conclude", "state": value.state.value, "cause": value.cause or None}
        case Stop():
            return {"do": "stop", "reason": value.question.reason.value, "detail": value.question.detail}
    assert_never(value)


def fate(value: Fate) -> dict[str, Any]:
    """What became of a submission, and what comes next; ids are no secrets, handles and URLs are left out."""
    match value:
        case Follow():
            end = value.end
            return {
                "do": "follow",
                "job_id": value.handover.job_id,
                "end": None if end is None else {"state": end.state.value, "cause": end.cause or None},
            }
        case Later():
            return {"do": "later", "at": instant(value.at), "source": value.source.value}
        case Doubt():
            return {
                "do": "doubt",
                "why": value.why,
                "at": None if value.question else instant(value.at),
                "source": value.source.value,
                "until": instant(value.until),
                "acceptance_seen": value.seen,
                "reason": value.question.reason.value if value.question else None,
            }
        case Rest():
            return {"do": "rest", "at": instant(value.at)}
        case Conclude() | Stop():
            return decision(value)
    assert_never(value)


def observation(value: Observation) -> dict[str, Any]:
    guidance = value.guidance
    return {
        "kind": value.kind.value,
        "label": value.label,
        "detail": value.detail,
        "http": value.http,
        "trouble": value.trouble.value if value.trouble else None,
        "request_id": value.request_id,
        "progress": value.progress,
        "error": value.error,
        "guidance": None
        if guidance is None
        else {
            "raw": guidance.raw,
            "wait_s": None if guidance.wait is None else guidance.wait.total_seconds(),
            "source": guidance.source.value,
            "problem": guidance.problem,
        },
    }


def table_mark(table: ProviderTable | None) -> dict[str, Any] | None:
    """Which table a decision was made with (R-TABLE-8)."""
    return None if table is None else {"id": table.id, "revision": table.revision, "digest": table.digest}


def entry(event: str, operation: Operation, *, at: datetime, **details: Any) -> dict[str, Any]:
    """The common frame of every entry."""
    return {
        "v": VERSION,
        "event": event,
        "at": instant(at),
        "state": operation.state.value,
        "fence": operation.fence,
        "spent": counters(operation),
        **details,
    }


def questions(asked: tuple[Question, ...]) -> list[dict[str, Any]]:
    return [{"reason": question.reason.value, "blocking": question.blocking} for question in asked]
