"""What a person needs to decide: the question, the operation, the choices, and what happens without one (R-ESC-2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobtrack.core.text import clean
from jobtrack.ports import Runtime
from jobtrack_django import conf, sentences, words
from jobtrack_django.admin.base import Moment, shows
from jobtrack_django.admin.bundling import bundle_url
from jobtrack_django.admin.choices import Choice, choices_of
from jobtrack_django.admin.sheet import sheet
from jobtrack_django.admin.subjects import subjects
from jobtrack_django.models import Escalation, Notice, Operation
from jobtrack_django.policy import lapse_of, person_of
from jobtrack_django.storable import storable

if TYPE_CHECKING:
    from jobtrack_django.admin.escalations import EscalationAdmin

_SHORT = 400
"""Characters of the evidence that are read at a glance; the whole of a longer one is folded away."""

_NOTICES = 20
"""Most notices that are shown, the newest ones."""


def evidence(model_admin: EscalationAdmin, request: HttpRequest, runtime: Runtime, escalation: Escalation) -> Any:
    """Everything that the pages of a question say."""
    now = runtime.store.now()
    known, detail = words.knows(escalation.reason), sentences.told(escalation.detail)
    answer = escalation if escalation.decided_at else None
    choices = [] if answer or not known else _choices(model_admin, request, runtime, escalation)
    return {
        **sheet(escalation.operation, now),
        **_answered(answer, request, now),
        "escalation": escalation,
        "operation_opens": shows(model_admin.admin_site, Operation, request),
        "subject": subjects(model_admin.admin_site, request, [escalation.operation]).get(escalation.operation_id),
        "bundle_url": bundle_url(model_admin.admin_site, request, escalation.operation),
        "table": runtime.tables.get(escalation.operation.provider),
        "known": known,
        "question": words.question(escalation.reason),
        "detail": detail,
        "short": clean(detail, _SHORT) if len(detail) > _SHORT else "",
        "opened": Moment.of(escalation.opened_at, now),
        "nobody": _if_nobody_acts(escalation, choices, now),
        "proposed": None if answer else _proposed(runtime, escalation, request, now),
        "asked_again": _asked_again(escalation) if answer else None,
        "told": [_told(notice, now) for notice in _notices(escalation)],
        "buttons": [choice for choice in choices if choice.refusal is None],
        "refused_choices": [choice for choice in choices if choice.refusal is not None and choice.fits],
        "other_choices": [choice for choice in choices if choice.refusal is not None and not choice.fits],
    }


def _choices(
    model_admin: EscalationAdmin, request: HttpRequest, runtime: Runtime, escalation: Escalation
) -> list[Choice]:
    user = request.user
    return choices_of(
        runtime, escalation, user, may=lambda option: model_admin.has_option_permission(request, option, escalation)
    )


def _answered(answer: Escalation | None, request: HttpRequest, now: datetime) -> dict[str, Any]:
    return {
        "answer": answer,
        "answer_is_yours": answer is not None and answer.actor == _name(request),
        "answer_label": words.option_label(answer.option) if answer else "",
        "answer_why": sentences.reason(answer.actor, answer.actor_reason) if answer else "",
        "decided": Moment.of(answer.decided_at if answer else None, now),
    }


def _asked_again(escalation: Escalation) -> Escalation | None:
    """The newest other question about the same operation that is open; None: nothing is asked any more."""
    rows = Escalation.objects.using(conf.settings().database).open().filter(operation_id=escalation.operation_id)
    return rows.exclude(pk=escalation.pk).select_related("operation").order_by("-pk").first()


def _name(request: HttpRequest) -> str:
    """This person as the rows name them."""
    return str(storable(request.user.get_username(), 255))


# --- the first of two people ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A first person's open word, where the site asks for two."""

    option: str
    label: str
    actor: str
    why: str
    job_id: str
    at: Moment | None
    own: bool  # this person's own
    stands: bool  # whoever said it may still say it


def _proposed(runtime: Runtime, escalation: Escalation, request: HttpRequest, now: datetime) -> Proposed | None:
    option, first = escalation.proposed_option, escalation.proposal
    if not option or first is None:
        return None
    return Proposed(
        option=option,
        label=words.option_label(option),
        actor=first.actor,
        why=first.reason,
        job_id=escalation.proposed_job,
        at=Moment.of(escalation.proposed_at, now),
        own=first.is_of(_name(request), person_of(request.user)),
        stands=runtime.stands(first, escalation.operation.to_core()),
    )


# --- nobody, and who was told -----------------------------------------------------------------------


def _if_nobody_acts(escalation: Escalation, choices: list[Choice], now: datetime) -> SafeString:
    """What happens then: nothing, or what the site has chosen for this reason, and when."""
    lapse = lapse_of(escalation.reason) if choices else None
    chosen = next((each for each in choices if lapse and each.option is lapse.option and each.refusal is None), None)
    if lapse is None or chosen is None or chosen.submits:  # as ``flow.lapse`` passes them over
        waits = _("Nothing: it waits.") if escalation.blocking else _("Nothing: the question stays open.")
        return format_html("{}", waits)
    moment = Moment(at=escalation.opened_at + lapse.after, now=now)
    chosen_then = _("This site chooses “%s” by itself.") % chosen.label
    return format_html("{} {}", chosen_then, moment.html)


def _notices(escalation: Escalation) -> list[Notice]:
    rows = Notice.objects.using(conf.settings().database).filter(escalation=escalation)
    return list(rows.order_by("-pk")[:_NOTICES])[::-1]


def _told(notice: Notice, now: datetime) -> dict[str, Any]:
    """One notice with how its delivery stands. Neither addresses nor links are shown."""
    stands = {
        Notice.SENT: _("sent"),
        Notice.DROPPED: _("not needed any more: it was decided first"),
        Notice.FAILED: _("not delivered"),
    }.get(notice.outcome)
    waits = _("being tried again") if notice.attempts else _("not sent yet")
    return {
        "notifier": clean(notice.notifier),
        "again": notice.turn > 1,
        "stands": stands or (waits if notice.due_at else notice.outcome or _("not sent")),
        "at": Moment.of(notice.sent_at or notice.due_at, now),
        "error": "" if notice.outcome == Notice.SENT else clean(sentences.told(notice.last_error), 300),
    }
