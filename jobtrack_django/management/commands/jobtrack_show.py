"""``manage.py jobtrack_show ID``."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jobtrack.worker.wiring import get_runtime
from jobtrack_django import words
from jobtrack_django.api import get_operation
from jobtrack_django.bundle import as_text, bundle
from jobtrack_django.followups import follow_ups
from jobtrack_django.management.told import ToldCommand
from jobtrack_django.models import Operation
from jobtrack_django.narrative import Fold, Line, check_chain, history, story, webhooks


class Command(ToldCommand):
    help = "Show how an operation stands and what has happened to it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", help="id of the operation")
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument(
            "--bundle", action="store_true", help="a support bundle: pseudonyms, no content, no address"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        operation = get_operation(options["id"])
        if options["bundle"]:
            self.stdout.write(as_text(bundle(get_runtime(), operation)), ending="")
            return
        if options["json"]:
            told = [json.loads(entry.body) for entry in operation.audit.order_by("seq")]
            called = [each.as_json() for each in follow_ups(operation)]
            self.stdout.write(json.dumps({"outcome": operation.outcome(), "follow_ups": called, "story": told}))
            return
        entries = history(operation)
        told_lines = map(_line, story(entries, webhooks(operation)))
        chain = check_chain(operation, entries).text
        for line in (*_head(operation), f"  {chain}", "", *told_lines, *_followed(operation), *_questions(operation)):
            self.stdout.write(line)


def _head(operation: Operation) -> Iterator[str]:
    facts = operation.outcome()
    requests = facts["status_requests"]
    yield f"{operation.id}: {operation.state} ({facts['outcome']})"
    yield f"  job {operation.job_id!r} at {operation.provider}, account {operation.account}"
    yield f"  last word of the provider: {operation.provider_state or '-'} (HTTP {operation.last_http or '-'})"
    yield f"  status requests: {requests['used']} of {requests['allowed']}; deadline {facts['deadline']}"
    if operation.lease_until:
        yield f"  {str(words.UNDER_WAY).format(_utc(operation.lease_until))}"
    elif facts["next_look_at"]:
        yield f"  next look: {facts['next_look_at']} ({facts['next_look_because']})"
    if operation.error:
        yield f"  error: {operation.error}"


def _line(told: Line | Fold) -> str:
    """One entry of the story, or several looks without news, on one line."""
    if isinstance(told, Fold):
        return f"{'':20}  {told.text}"
    return f"{_utc(told.at)}  {told.title}: {' '.join(told.sentences)}"


def _followed(operation: Operation) -> Iterator[str]:
    """Where the end of the operation has got to in the site's own code."""
    for each in follow_ups(operation):
        if each.delivered_at:
            stands = f"delivered {_utc(each.delivered_at)}"
        elif each.next_attempt_at:
            stands = f"NOT DELIVERED, next attempt {_utc(each.next_attempt_at)}"
        else:
            stands = "NOT DELIVERED, no further attempt until a person decides"
        error = f"; last error: {each.last_error}" if each.last_error else ""
        yield f"follow-up {each.event} ({each.handler}): {stands}; attempts: {each.attempts}{error}"


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def _questions(operation: Operation) -> Iterator[str]:
    for question in operation.escalations.filter(decided_at__isnull=True):
        yield f"NEEDS A DECISION: {question.reason}: {question.detail}"
