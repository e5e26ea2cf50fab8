"""The facts of one operation, laid out for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.utils.html import format_html
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobtrack_django import facts, sentences, words
from jobtrack_django.admin.base import Moment, apart
from jobtrack_django.admin.submission import beside_the_job, submission, unaccepted
from jobtrack_django.followups import FollowUp, follow_ups
from jobtrack_django.models import Operation
from jobtrack_django.narrative import LIMIT, Fold, Line, check_chain, history, story, webhooks


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """One budget."""

    name: str
    used: int
    allowed: int

    @property
    def text(self) -> str:
        """In one phrase."""
        return _("%(name)s: %(used)s of %(allowed)s") % {"name": self.name, "used": self.used, "allowed": self.allowed}


def sheet(operation: Operation, now: datetime) -> dict[str, Any]:
    """Everything the pages say about an operation; a query each for entries, webhooks, follow-ups and result."""
    entries = history(operation)
    told = story(entries, webhooks(operation))
    return {
        "operation": operation,
        "state": words.state_label(operation.state),
        "conclusion": facts.conclusion(operation.state, operation.cause, accepted=operation.accepted_at is not None),
        "accepted": Moment.of(operation.accepted_at, now),
        "error": facts.error(operation.state, operation.error),
        "unaccepted": unaccepted(operation),
        "submission": submission(operation, now),
        "beside": beside_the_job(operation, now),
        "observed": Moment.of(operation.observed_at, now),
        "since": Moment.of(operation.provider_state_since, now),
        "expires": Moment.of(operation.expires_at, now),
        "elapsed": apart(operation.accepted_at, now) if operation.accepted_at else "",
        "last_answer": _last_answer(told, now),
        "deadline": Moment.of(operation.deadline, now),
        "needed_by": Moment.of(operation.needed_by, now),
        "under_way": _under_way(operation, now),
        "next_look": Moment.of(operation.wake_at, now),
        "not_before": Moment.of(operation.not_before, now) if (operation.not_before or now) > now else None,
        "next_why": words.delay_label(operation.delay_source),
        "counters": (counters := _counters(operation)),
        "main_counters": [each for each in counters if each.used],
        "follow_ups": [_follow_up(told, now) for told in follow_ups(operation)],
        "story": [_row(line, now) for line in told],
        "chain": check_chain(operation, entries),
        "limit": LIMIT if operation.audit_seq > LIMIT else None,
    }


def _under_way(operation: Operation, now: datetime) -> str:
    """That a request is under way; "" if none is."""
    until = Moment.of(operation.lease_until, now)
    return format_html(str(words.UNDER_WAY), until.html) if until else ""


def _row(told: Line | Fold, now: datetime) -> dict[str, Any]:
    """A line with its moment, or a fold with the lines in it."""
    if isinstance(told, Fold):
        return {"text": told.text, "folded": [_row(line, now) for line in told.lines]}
    return {"line": told, "moment": Moment.of(told.at, now)}


def _follow_up(told: FollowUp, now: datetime) -> dict[str, Any]:
    """A follow-up with its moments."""
    delivered, following = Moment.of(told.delivered_at, now), Moment.of(told.next_attempt_at, now)
    return {
        "told": told,
        "event": words.follow_up_label(told.event),
        "delivered": delivered,
        "next": following,
        "error": sentences.told(told.last_error),
    }


def _counters(operation: Operation) -> Sequence[Counter]:
    names = {
        "status_requests": _("Status requests"),
        "transport_failures": _("Requests without a usable answer"),
        "rate_limited": _("“Too many requests” answers"),
        "extensions": _("Extensions"),
        "submissions": _("Submissions"),
        "lookups": _("Look-ups"),
    }
    submits = {"submissions", "lookups"}  # of a job that was submitted elsewhere they would only be noise
    return [
        Counter(name=label, used=getattr(operation, f"spent_{name}"), allowed=getattr(operation, f"limit_{name}"))
        for name, label in names.items()
        if name not in submits or getattr(operation, f"limit_{name}")
    ]


def _last_answer(told: Sequence[Line | Fold], now: datetime) -> dict[str, Any] | None:
    """The HTTP status that came last, and when; it may be older than the last request."""
    lines = [line for part in told for line in (part.lines if isinstance(part, Fold) else (part,))]
    last = next((line for line in reversed(lines) if line.http is not None), None)
    return None if last is None else {"http": last.http, "at": Moment.of(last.at, now)}


def duration(value: timedelta) -> str:
    """A length of time in the reader's words, exact where it is short: "15 minutes", "1 hour, 30 minutes"."""
    if value < timedelta(minutes=1):  # Django would call it 0 minutes
        seconds = value.total_seconds()
        return ngettext("%(count)s second", "%(count)s seconds", ceil(seconds)) % {"count": f"{seconds:g}"}
    start = datetime(2000, 1, 1)  # noqa: DTZ001 - only the difference counts
    return timesince(start, start + value)
