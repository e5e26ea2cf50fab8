"""What lists tell beside an operation's own columns: one query more for each kind, for any number of rows."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet

from jobtrack_django.models import Delivery, Escalation, Operation


def with_open_questions(rows: QuerySet[Operation]) -> QuerySet[Operation]:
    """Have the open questions at hand, for ``open_reasons``."""
    questions = Escalation.objects.using(rows.db).open().order_by("pk")
    return rows.prefetch_related(Prefetch("escalations", questions, to_attr="open_questions"))


def with_failing_follow_ups(rows: QuerySet[Operation]) -> QuerySet[Operation]:
    """Have the failing follow-ups at hand, for ``failing_events``."""
    failing = Delivery.objects.using(rows.db).failing()
    return rows.prefetch_related(Prefetch("deliveries", failing, to_attr="failing_deliveries"))


def open_reasons(row: Operation) -> list[str]:
    """Why a person is asked, as it is stored; of a row that ``with_open_questions`` has found."""
    return [question.reason for question in getattr(row, "open_questions")]  # noqa: B009 - an attribute of the prefetch


def failing_events(row: Operation) -> list[str]:
    """Follow-ups that have failed and are not delivered; of a row that ``with_failing_follow_ups`` has found."""
    return [delivery.event for delivery in getattr(row, "failing_deliveries")]  # noqa: B009 - as above
