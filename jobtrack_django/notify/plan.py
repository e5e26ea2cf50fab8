"""Who is told of a new question, and when: rows written in the transaction that opens it, so that none is lost."""

from __future__ import annotations

from collections.abc import Mapping

from jobtrack_django import conf
from jobtrack_django.conf import NotifierSettings
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Escalation, Notice
from jobtrack_django.statements import after

FIRST, AGAIN = 1, 2
"""Turns: the question was opened; nobody has acted."""


def plan(using: str, escalation: Escalation) -> None:
    """Write the notices of a question that was just opened: one for each notifier that wants it, and each turn."""
    notices = planned(escalation, conf.settings().notifiers)
    if notices:
        Notice.objects.using(using).bulk_create(notices)


def planned(escalation: Escalation, notifiers: Mapping[str, NotifierSettings]) -> list[Notice]:
    """The rows, not written yet."""
    turns = [
        (name, turn, delay)
        for name, notifier in notifiers.items()
        if wants(notifier, escalation)
        for turn, delay in ((FIRST, notifier.after), (AGAIN, notifier.remind and notifier.after + notifier.remind))
        if delay is not None
    ]
    return [
        Notice(escalation_id=escalation.pk, notifier=name, turn=turn, due_at=after(delay) if delay else DatabaseNow())
        for name, turn, delay in turns
    ]


def wants(notifier: NotifierSettings, escalation: Escalation) -> bool:
    """Whether ``notifier`` is told of such a question."""
    return (
        escalation.risk <= notifier.risk
        and (not notifier.reasons or escalation.reason in notifier.reasons)
        and (not notifier.providers or escalation.provider in notifier.providers)
    )
