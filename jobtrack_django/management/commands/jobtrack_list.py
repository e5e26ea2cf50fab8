"""``manage.py jobtrack_list``."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from jobtrack.core.operation import OperationState
from jobtrack_django import conf, words
from jobtrack_django.asides import failing_events, open_reasons, with_failing_follow_ups, with_open_questions
from jobtrack_django.management.told import ToldCommand
from jobtrack_django.models import Operation
from jobtrack_django.storable import storable

_MOST = 100_000

_CHUNK = 1000
"""Rows whose questions and follow-ups are read at once; a database takes only so many ids in one query."""

_COLUMNS = ("id", "state", "provider", "provider_state", "requests", "next look", "because")


class Command(ToldCommand):
    help = "List operations, the newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--state", choices=[state.value for state in OperationState], help="only this state")
        parser.add_argument("--provider", help="only this provider table")
        parser.add_argument("--needs-decision", action="store_true", help="only those with an open question")
        parser.add_argument("--limit", type=int, default=50, help="most operations (default: 50)")
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *_: Any, **options: Any) -> None:
        rows = _filtered(**options)[: min(max(options["limit"], 0), _MOST)]
        if options["json"]:
            for row in rows:
                self.stdout.write(json.dumps(row.outcome()))
            return
        told = with_failing_follow_ups(with_open_questions(rows))
        table = [_COLUMNS, *map(_line, told.iterator(_CHUNK))]
        widths = [max(len(line[column]) for line in table) for column in range(len(_COLUMNS))]
        for line in table:
            self.stdout.write("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _filtered(*, state: str | None, provider: str | None, needs_decision: bool, **_: Any) -> Any:
    rows = Operation.objects.using(conf.settings().database).order_by("-created_at", "id")
    if state:
        rows = rows.filter(state=state)
    if provider:
        rows = rows.by_provider(storable(provider))
    return rows.needs_decision() if needs_decision else rows


def _line(row: Operation) -> tuple[str, ...]:
    return (
        row.id,
        row.state,
        row.provider,
        row.provider_state or "-",
        f"{row.spent_status_requests}/{row.limit_status_requests}",
        _utc(row.wake_at) if row.wake_at and not row.lease_until else "-",
        "; ".join(_because(row)) or "-",
    )


def _utc(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%SZ}"


def _because(row: Operation) -> Iterator[str]:
    """Why the next look is when it is, what a person is asked or else why it failed, and what does not get through."""
    if row.lease_until:
        yield str(words.UNDER_WAY).format(_utc(row.lease_until))
    elif row.wake_at:
        yield row.delay_source
    asked = open_reasons(row) or [row.cause]
    if any(asked):
        yield ", ".join(asked)
    failing = failing_events(row)
    if failing:
        yield f"{', '.join(failing)} failing"
