"""How the follow-ups of an operation stand, for pages and commands. Read from the deliveries; nothing is written."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from jobtrack.core.text import clean, redact
from jobtrack_django.models import Delivery, Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """One follow-up of an operation that has ended."""

    event: str  # "on_success" | "on_failure" | "on_end"
    handler: str
    attempts: int  # since it was written, or since a person let it run again
    delivered_at: datetime | None  # None: its handler has not returned yet
    next_attempt_at: datetime | None  # None: delivered, or a person has to decide
    last_error: str  # cleaned; "": no attempt has failed, or it is delivered

    def as_json(self) -> dict[str, Any]:
        """With instants as texts, and None where there is no error."""
        instants = {
            name: at.isoformat() if at else None
            for name, at in (("delivered_at", self.delivered_at), ("next_attempt_at", self.next_attempt_at))
        }
        return {**asdict(self), **instants, "last_error": self.last_error or None}


def follow_ups(operation: Operation) -> list[FollowUp]:
    """Those that the end of ``operation`` has called for; one query."""
    rows = Delivery.objects.using(operation._state.db).filter(operation_id=operation.pk)  # noqa: SLF001 - documented by Django
    return [
        FollowUp(
            event=row.event,
            handler=clean(row.handler),
            attempts=row.attempts,
            delivered_at=row.delivered_at,
            next_attempt_at=row.due_at,
            last_error=clean(redact(row.last_error)),
        )
        for row in rows
    ]
