"""The two steps of a decision: a page that names the consequence, and the POST that decides or proposes.

All that is built here is a ``Resolution``; ``flow.resolve`` accepts or refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from jobtrack.core.escalation import Option, Resolution
from jobtrack.errors import DecisionError, OptionNotAllowed, SecondPersonNeeded
from jobtrack.flow.resolve import propose, resolve
from jobtrack.ports import Runtime
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import sentences, words
from jobtrack_django.admin.base import filtered
from jobtrack_django.admin.choices import Choice
from jobtrack_django.admin.evidence import evidence
from jobtrack_django.admin.forms import DecisionForm, form_of
from jobtrack_django.admin.logged import log
from jobtrack_django.models import Escalation
from jobtrack_django.policy import person_of, right_of

if TYPE_CHECKING:
    from jobtrack_django.admin.escalations import EscalationAdmin

INSTEAD = "instead"
"""Name of the second button of a second person, who proposes another job than the first."""


def decide(model_admin: EscalationAdmin, request: HttpRequest, object_id: int, name: str) -> HttpResponse:
    """GET: ask for confirmation. POST: decide or propose, or say why not and keep what the person wrote."""
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
            decided = _act(runtime, request, escalation, _resolution(request, escalation, option, form.cleaned_data))
        except DecisionError as error:
            escalation = model_admin.get_object(request, str(object_id)) or escalation
            complaint = _about_the_job(error, form, escalation)
            if complaint:
                form.add_error("job_id", complaint)
            else:
                refused = True  # the page shows from the rows which of the reasons it was
                form = _form(option, escalation, None, **form.written)
        else:
            return _done(model_admin, request, escalation, option, decided=decided)
    context = evidence(model_admin, request, runtime, escalation)
    return _ask(model_admin, request, option, {**context, "form": form, "refused": refused})


def _act(runtime: Runtime, request: HttpRequest, escalation: Escalation, resolution: Resolution) -> bool:
    """True: it is decided. False: it is proposed, and another person has to say so too (four eyes).

    Which of the two is tried hangs on the row alone; that one person never decides is held by the flow.
    """
    first = escalation.proposal
    if resolution.option in runtime.four_eyes:
        stands = first is not None and runtime.stands(first, escalation.operation.to_core())
        begins = first is None or first.option is not resolution.option or not stands
        if begins or INSTEAD in request.POST:
            propose(runtime, resolution)
            return False
    resolve(runtime, resolution)
    return True


def _form(option: Option, escalation: Escalation, given: QueryDict | None, **written: Any) -> DecisionForm:
    first = escalation.proposal
    named = first.job_id if first is not None and first.option is option else ""
    initial = {"version": escalation.version, "job_id": named, **written}
    operation = escalation.operation
    return form_of(option, doubtful=bool(operation.doubt))(given, initial=initial, operation_id=operation.pk)


def _about_the_job(error: DecisionError, form: DecisionForm, escalation: Escalation) -> str:
    """What is wrong with the job that was named: the person mends it on the same page. "" if it is something else."""
    if "job_id" not in form.fields:
        return ""
    if isinstance(error, OptionNotAllowed) and "job_id" in error.context:
        return sentences.told(error.message)
    first = escalation.proposal
    if isinstance(error, SecondPersonNeeded) and first is not None and first.job_id != form.cleaned_data["job_id"]:
        return _("%(actor)s proposed another job: “%(job)s”. Nothing was changed.") % {
            "actor": first.actor,
            "job": first.job_id,
        }
    return ""


def _resolution(request: HttpRequest, escalation: Escalation, option: Option, given: dict[str, Any]) -> Resolution:
    return Resolution(
        escalation_id=str(escalation.pk),
        option=option,
        actor=request.user.get_username(),
        reason=given["reason"],
        version=given["version"],
        job_id=given.get("job_id", ""),
        person=person_of(request.user),
        permission=right_of(request.user, option),
    )


def _done(
    model_admin: EscalationAdmin, request: HttpRequest, escalation: Escalation, option: Option, *, decided: bool
) -> HttpResponse:
    """The audit chain has it already; Django's own history and the person are told as well."""
    label = words.option_label(option.value)
    named = {"option": label, "question": escalation}
    if decided:
        log(model_admin, request, escalation, lambda: _("Decided: %s.") % words.option_label(option.value))
        messages.success(request, _("Decided: “%(option)s” for %(question)s.") % named)
    else:
        log(model_admin, request, escalation, lambda: _("Proposed: %s.") % words.option_label(option.value))
        told = _("Proposed: “%(option)s” for %(question)s. Nothing happens until another person confirms it.")
        messages.success(request, told % named)
    site = model_admin.admin_site.name
    url = reverse("admin:jobtrack_escalation_change", args=[escalation.pk], current_app=site)
    return HttpResponseRedirect(filtered(model_admin, request, url))


def _ask(model_admin: EscalationAdmin, request: HttpRequest, option: Option, context: dict[str, Any]) -> HttpResponse:
    button = next((button for button in context["buttons"] if button.option is option), None)
    label = words.option_label(option.value)
    own = button is not None and button.two and button.own
    names_job = option is Option.ATTACH_JOB
    page = {
        **model_admin.admin_site.each_context(request),
        **context,
        "opts": model_admin.opts,
        "preserved_filters": model_admin.get_preserved_filters(request),
        "title": _("%(option)s: %(operation)s?") % {"option": label, "operation": context["operation"]},
        "label": label,
        "button": button,
        "step": _step(label, button),
        "own": own,
        "instead": names_job and button is not None and button.two and button.proposal is not None,
        "writes": button is not None and (names_job or not own),
        "refused": context["refused"] or button is None,
    }
    status = 409 if page["refused"] else 200
    request.current_app = model_admin.admin_site.name  # as Django's own pages do
    return TemplateResponse(request, "jobtrack/admin/decide.html", page, status=status)


def _step(label: str, button: Choice | None) -> str:
    """What the second step does, on its button."""
    if button is None or not button.two:
        return _("Yes: %s") % label
    if button.proposal is None:
        return _("Propose: %s") % label
    return _("Confirm: %s") % label
