"""The two steps of a decision: a page that names the consequence, and the POST that decides.

All that is built here is a ``Resolution``; ``flow.resolve`` accepts or refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from jobtrack.core.escalation import Option, Reason, Resolution, options
from jobtrack.core.grant import grant
from jobtrack.errors import DecisionError, OptionNotAllowed
from jobtrack.flow.resolve import look_of, resolve
from jobtrack.ports import Runtime
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import words
from jobtrack_django.admin.base import Moment, shows
from jobtrack_django.admin.forms import DecisionForm, form_of
from jobtrack_django.admin.sheet import sheet
from jobtrack_django.admin.stakes import numbers
from jobtrack_django.models import Escalation, Operation
from jobtrack_django.storable import storable

if TYPE_CHECKING:
    from jobtrack_django.admin.escalations import EscalationAdmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """One option, with what it costs and whether this person may press it."""

    option: Option
    label: str
    cost: str
    done: str
    not_done: str
    permission: str
    permitted: bool
    url: str


def evidence(model_admin: EscalationAdmin, request: HttpRequest, runtime: Runtime, escalation: Escalation) -> Any:
    """What a person needs to decide (R-ESC-2): the question, the operation, and the allowed options."""
    now = runtime.store.now()
    known = words.knows(escalation.reason)
    answer = escalation if escalation.decided_at else None
    return {
        **sheet(escalation.operation, now),
        "escalation": escalation,
        "operation_opens": shows(model_admin.admin_site, Operation, request),
        "table": runtime.tables.get(escalation.operation.provider),
        "known": known,
        "question": words.question(escalation.reason),
        "opened": Moment.of(escalation.opened_at, now),
        "answer": answer,
        "answer_is_yours": answer is not None and answer.actor == storable(request.user.get_username(), 255),
        "answer_label": words.option_label(answer.option) if answer else "",
        "decided": Moment.of(escalation.decided_at, now),
        "buttons": list(_buttons(model_admin, request, runtime, escalation)) if known and not answer else [],
    }


def _buttons(
    model_admin: EscalationAdmin, request: HttpRequest, runtime: Runtime, escalation: Escalation
) -> Iterator[Button]:
    operation = escalation.operation.to_core()
    table, now = runtime.tables.get(operation.provider), runtime.store.now()
    look = look_of(runtime, table)
    looks_up = table is not None and table.submit is not None and table.submit.lookup is not None
    for option in options(Reason(escalation.reason), operation, table):
        after = grant(operation, option, blocking=escalation.blocking, table=table, look=look, now=now)
        accepted = operation.accepted_at is not None
        choice = words.choice(option, after.state, accepted=accepted, looks_up=looks_up)
        named = numbers(operation, after, table, now)
        idle = str(choice.idle) if choice.idle and after == operation else ""
        yield Button(
            option=option,
            label=str(choice.label),
            cost=idle or str(choice.cost).format(**named),
            done=idle or str(choice.done).format(**named),
            not_done=_("Nothing is sent to the provider.") if idle else str(choice.not_done),
            permission=choice.permission,
            permitted=model_admin.has_option_permission(request, option, escalation),
            url=_url(model_admin, "decide", escalation.pk, option.value),
        )


def decide(model_admin: EscalationAdmin, request: HttpRequest, object_id: int, name: str) -> HttpResponse:
    """GET: ask for confirmation. POST: decide, or say why not and keep what the person wrote."""
    option = next((known for known in Option if known.value == name), None)
    escalation = model_admin.get_object(request, str(object_id))
    if option is None or escalation is None:
        raise Http404
    if not model_admin.has_view_permission(request, escalation):
        raise PermissionDenied
    if not model_admin.has_option_permission(request, option, escalation):
        raise PermissionDenied
    runtime, refused = get_runtime(), False
    form = _form(option, escalation, request.POST if request.method == "POST" else None)
    answerable = words.knows(escalation.reason) and escalation.decided_at is None
    if form.is_valid() and answerable:
        try:
            resolve(runtime, _resolution(request, escalation, option, form.cleaned_data))
        except DecisionError as error:
            escalation = model_admin.get_object(request, str(object_id)) or escalation
            if _about_a_field(error, form):
                form.add_error("job_id", error.message)
            else:
                refused = True  # the page shows from the rows which of the three it was
                form = _form(option, escalation, None, **form.written)
        else:
            return _done(model_admin, request, escalation, option)
    context = evidence(model_admin, request, runtime, escalation)
    return _ask(model_admin, request, option, {**context, "form": form, "refused": refused})


def _form(option: Option, escalation: Escalation, given: QueryDict | None, **written: Any) -> DecisionForm:
    initial = {"version": escalation.version, **written}
    return form_of(option)(given, initial=initial, operation_id=escalation.operation_id)


def _about_a_field(error: DecisionError, form: DecisionForm) -> bool:
    """Whether the job that was named is what is wrong: the person mends it on the same page."""
    return isinstance(error, OptionNotAllowed) and "job_id" in error.context and "job_id" in form.fields


def _resolution(request: HttpRequest, escalation: Escalation, option: Option, given: dict[str, Any]) -> Resolution:
    return Resolution(
        escalation_id=str(escalation.pk),
        option=option,
        actor=request.user.get_username(),
        reason=given["reason"],
        version=given["version"],
        job_id=given.get("job_id", ""),
    )


def _done(model_admin: EscalationAdmin, request: HttpRequest, escalation: Escalation, option: Option) -> HttpResponse:
    """The audit chain has it already; Django's own history and the person are told as well."""
    label = words.option_label(option.value)
    model_admin.log_change(request, escalation, _("Decided: %s.") % label)
    messages.success(request, _("Decided: “%(option)s” for %(question)s.") % {"option": label, "question": escalation})
    return HttpResponseRedirect(_url(model_admin, "change", escalation.pk))


def _url(model_admin: EscalationAdmin, page: str, *args: object) -> str:
    return reverse(f"admin:jobtrack_escalation_{page}", args=args, current_app=model_admin.admin_site.name)


def _ask(model_admin: EscalationAdmin, request: HttpRequest, option: Option, context: dict[str, Any]) -> HttpResponse:
    button = next((button for button in context["buttons"] if button.option is option), None)
    label = words.option_label(option.value)
    page = {
        **model_admin.admin_site.each_context(request),
        **context,
        "opts": model_admin.opts,
        "title": f"{label}: {context['operation']}?",
        "label": label,
        "button": button,
        "refused": context["refused"] or button is None,
    }
    status = 409 if page["refused"] else 200
    request.current_app = model_admin.admin_site.name  # as Django's own pages do
    return TemplateResponse(request, "jobtrack/admin/decide.html", page, status=status)
