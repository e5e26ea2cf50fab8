"""How a report stands, in words for the person who asked for it. The pages show nothing else of jobtrack."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.contenttypes.models import ContentType

from example_project.reports.models import Report
from jobtrack_django import cancel_effect
from jobtrack_django.models import Operation


class Words(NamedTuple):
    tone: str  # class name for the style sheet
    state: str
    sentence: str


_ORDERED = Words("", "ordered", "The export is about to be sent to ACME.")
_UNDER_WAY = Words("", "in progress", "ACME is working on it.")

_WORDS = {
    "ready": _ORDERED,
    "submitting": _ORDERED,
    "unconfirmed": Words(
        "", "not confirmed", "ACME may have the export or not. We are finding out, and order nothing twice meanwhile."
    ),
    "escalated": Words("ask", "waits for a decision", "Something unexpected came up. A person decides how to go on."),
    "succeeded": Words("good", "ready", "The report is ready."),
    "failed": Words("bad", "failed", "ACME could not make the report."),
    "cancelled": Words("bad", "cancelled", "The export was cancelled at ACME."),
    "expired": Words("bad", "expired", "ACME has dropped the export."),
    "abandoned": Words("bad", "given up", "We have stopped following this export."),
}
"""State of the operation -> what its owner reads; all other states are under way."""

_CANCELLING = {
    "requested": "ACME is being asked to cancel it.",
    "accepted": "ACME has agreed. The export is cancelled when ACME's status says so.",
    "refused": "ACME has refused: the export goes on.",
    "unknown": "ACME may have heard it or not.",
}


class Row(NamedTuple):
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A report and how it stands."""

    report: Report
    operation: Operation | None
    words: Words
    outcome: dict[str, Any] = field(default_factory=dict)  # jobtrack's contract (R-SUB-8)
    effect: str | None = None  # of a cancellation; None: it cannot be asked for
    rows: tuple[Row, ...] = ()

    @property
    def changes(self) -> bool:
        """Something is going to happen by itself."""
        stored = self.outcome.get("outcome") != "succeeded" or self.report.rows is not None
        return self.outcome.get("retry_after_s") is not None or not stored


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
    operation = report.operation
    if operation is None:
        return _brief(report, None)
    outcome = operation.outcome()
    return Standing(
        report=report,
        operation=operation,
        words=_brief(report, operation).words,
        outcome=outcome,
        effect=cancel_effect(operation),
        rows=tuple(row for row in _rows(report, outcome) if row.text),
    )


def _rows(report: Report, outcome: dict[str, Any]) -> list[Row]:
    used, next_look_at = outcome["status_requests"], outcome["next_look_at"]
    return [
        Row("Rows", "" if report.rows is None else f"{report.rows:,}"),
        Row("ACME says", outcome["observed"]["state"] or ""),
        # Of a job that has ended it says nothing.
        Row("Progress", (outcome["progress"] or "") if next_look_at else ""),
        Row("Error", outcome["error"] or ""),
        Row("Cancellation", _CANCELLING.get(outcome["cancel"]["state"], "") if next_look_at else ""),
        Row("Asked", f"{used['used']} of at most {used['allowed']} times"),
        Row("Asks again", _clock(next_look_at)),
        Row("At the latest", _clock(outcome["deadline"]) if next_look_at else ""),
    ]


def _clock(instant: str | None) -> str:
    return f"{datetime.fromisoformat(instant):%H:%M:%S} UTC" if instant else ""
