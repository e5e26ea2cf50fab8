"""How a report stands, in words for the person who asked for it. Page and JSON view show the same words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.contenttypes.models import ContentType

from example_project.reports.models import Report
from jobtrack_django.models import Operation

AFTER_A_PERSON_S = 15
"""How often a page asks again while a person has to decide: they may take their time."""


class Words(NamedTuple):
    tone: str  # class name for the style sheet
    state: str
    sentence: str


_UNDER_WAY = Words("", "in progress", "ACME is working on it.")

_WORDS = {
    "escalated": Words("ask", "waits for a decision", "Something unexpected came up. A person decides how to go on."),
    "succeeded": Words("good", "ready", "The report is ready."),
    "failed": Words("bad", "failed", "ACME could not make the report."),
    "cancelled": Words("bad", "cancelled", "The export was cancelled at ACME."),
    "expired": Words("bad", "expired", "ACME has dropped the export."),
    "abandoned": Words("bad", "given up", "We have stopped following this export."),
}
"""State of the operation -> what its owner reads; all other states are under way."""

_ROWS = {
    "rows": "Rows",
    "provider": "ACME says",
    "progress": "Progress",
    "error": "Error",
    "looks": "Asked",
    "next": "Asks again",
    "deadline": "At the latest",
}


class Row(NamedTuple):
    key: str
    label: str
    text: str  # "" hides the row


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A report and how it stands."""

    report: Report
    operation: Operation | None
    words: Words
    outcome: dict[str, Any] = field(default_factory=dict)  # jobtrack's contract (R-SUB-8)
    details: dict[str, str] = field(default_factory=dict)  # what is in it, in words
    retry_after_s: int | None = None  # when asking again makes sense; None: nothing is going to change

    @property
    def rows(self) -> list[Row]:
        return [Row(key, label, self.details.get(key, "")) for key, label in _ROWS.items()]

    @property
    def shown(self) -> dict[str, str]:
        """Every word of the page that can change."""
        return {**self.words._asdict(), **self.details}


def standings(reports: Iterable[Report]) -> list[Standing]:
    """In brief, for a list: two queries for any number of reports."""
    listed = list(reports)
    kind = ContentType.objects.get_for_model(Report)
    found = Operation.objects.filter(content_type=kind, object_id__in=[str(report.pk) for report in listed])
    newest = {operation.object_id: operation for operation in found.order_by("created_at")}
    return [_brief(report, newest.get(str(report.pk))) for report in listed]


def _brief(report: Report, operation: Operation | None) -> Standing:
    words = _WORDS.get(operation.state, _UNDER_WAY) if operation else _UNDER_WAY
    return Standing(report=report, operation=operation, words=words)


def standing(report: Report) -> Standing:
    """In full, for a page."""
    operation = Operation.objects.for_object(report).order_by("created_at").last()
    outcome = operation.outcome() if operation else {}
    return Standing(
        report=report,
        operation=operation,
        words=_brief(report, operation).words,
        outcome=outcome,
        details=_details(report, outcome) if outcome else {},
        retry_after_s=_retry_after_s(report, outcome),
    )


def _retry_after_s(report: Report, outcome: dict[str, Any]) -> int | None:
    state = outcome.get("state")
    if state == "succeeded":
        return None if report.rows is not None else 1  # the follow-up is about to run
    return AFTER_A_PERSON_S if state == "escalated" else outcome.get("retry_after_s")


def _details(report: Report, outcome: dict[str, Any]) -> dict[str, str]:
    used, next_look_at = outcome["status_requests"], outcome["next_look_at"]
    return {
        "rows": "" if report.rows is None else f"{report.rows:,}",
        "provider": outcome["observed"]["state"] or "",
        "progress": (outcome["progress"] or "") if next_look_at else "",  # of a job that has ended it says nothing
        "error": outcome["error"] or "",
        "looks": f"{used['used']} of at most {used['allowed']} times",
        "next": _clock(next_look_at),
        "deadline": _clock(outcome["deadline"]) if next_look_at else "",
    }


def _clock(instant: str | None) -> str:
    return f"{datetime.fromisoformat(instant):%H:%M:%S} UTC" if instant else ""
