"""One choice for many questions: the preview of what would become of each, and the POST that begins to decide.

What becomes of a question comes from ``jobtrack_django.bulk``; the pages of a batch are in ``batches``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise as Text
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from jobtrack.core.escalation import BULK, Option, Refusal
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import bulk, compat, conf, sentences, words
from jobtrack_django.admin import logged
from jobtrack_django.admin.base import ReadOnlyAdmin, filtered, lenient_settings, shows
from jobtrack_django.admin.choices import choice_of
from jobtrack_django.bulk import Chosen, Verdict, Why
from jobtrack_django.models import DecisionBatch, DecisionItem, Escalation, Operation
from jobtrack_django.policy import person_of, right_of

if TYPE_CHECKING:
    from jobtrack_django.admin.escalations import EscalationAdmin

_SALT: Final = "jobtrack.bulk"
_PREVIEW_AGE_S: Final = 24 * 60 * 60
"""How old a preview may be when it is sent: older ones are shown anew."""

WHY: Final[Mapping[str, Text]] = {
    Why.DECIDED: lazy("It is already decided."),
    Why.CHANGED: lazy("It has changed since it was shown."),
    Why.UNKNOWN: lazy("A newer release of jobtrack asks this, and this one does not know the word."),
    Why.PERMISSION: lazy("You may not choose this for it."),
    Why.SUBMITS: lazy("This would submit a job. Decide it on its own page."),
    Why.TWO: lazy("This site wants the word of two people for it. Decide it on its own page."),
    "option_not_allowed": lazy("It is not offered for this question now."),
}
"""Why a question is not decided together with others, besides the refusals that are told everywhere."""


def why(detail: str) -> str:
    """What an item says, in words; a failure is a sentence already, or the name of an error."""
    if detail in set(Refusal):
        return str(words.REFUSALS[Refusal(detail)])
    return str(WHY.get(detail) or sentences.told(detail))


class BulkForm(forms.Form):
    """A reason, the same for all questions."""

    reason = forms.CharField(
        label=lazy("Why do you decide so?"),
        help_text=lazy("Kept for ever in the audit, with your name. Write no passwords or personal data."),
        widget=forms.Textarea(attrs={"rows": 4, "cols": 80, "aria-describedby": "id_reason_helptext"}),
        max_length=2000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question of a preview."""

    escalation: Escalation
    asked: str
    done: str  # what will happen; "" if it will not be decided
    not_done: str
    why: str  # why it will not be decided; "" if it will


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a person chose and saw. It travels signed, so that nothing is decided that they have not seen."""

    option: Option
    chosen: tuple[Chosen, ...]
    previewed_at: datetime
    retry_of: int | None = None

    def signed(self, request: HttpRequest) -> str:
        """For this person only."""
        rows = [[each.id, each.version, each.verdict.outcome, each.verdict.detail] for each in self.chosen]
        told = [person_of(request.user), self.option.value, self.previewed_at.isoformat(), self.retry_of, rows]
        return signing.dumps(told, salt=_SALT, compress=True)

    @classmethod
    def read(cls, request: HttpRequest, option: Option, text: str) -> Selection | None:
        """None: not what this person was shown, or too long ago."""
        try:
            user, named, at, retry_of, rows = signing.loads(text, salt=_SALT, max_age=_PREVIEW_AGE_S)
        except signing.BadSignature:
            return None
        if (user, named) != (person_of(request.user), option.value):
            return None
        chosen = tuple(
            Chosen(id=pk, version=version, verdict=Verdict(outcome=outcome, detail=detail))
            for pk, version, outcome, detail in rows
        )
        return cls(option=option, chosen=chosen, previewed_at=datetime.fromisoformat(at), retry_of=retry_of)


def _for_many(option: Option) -> compat.Act:
    def act(model_admin: EscalationAdmin, request: HttpRequest, queryset: QuerySet[Escalation]) -> HttpResponse | None:
        limit = conf.settings().bulk_limit
        ids = list(queryset.values_list("pk", flat=True)[: limit + 1])
        if len(ids) > limit:
            told = _("At most %(limit)d questions are decided at once. Nothing was changed: choose fewer, by a filter.")
            model_admin.message_user(request, told % {"limit": limit}, messages.ERROR)
            return None
        return preview(model_admin, request, option, ids)

    return act


def _for_one(option: Option) -> compat.Act:
    """Leads to the option's own page: nothing is decided inside the transaction of an action."""

    def act(model_admin: EscalationAdmin, request: HttpRequest, queryset: QuerySet[Escalation]) -> HttpResponse:
        args = [queryset.values_list("pk", flat=True).get(), option.value]
        url = reverse("admin:jobtrack_escalation_decide", args=args, current_app=model_admin.admin_site.name)
        return HttpResponseRedirect(filtered(model_admin, request, url))

    return act


class BulkDecisions(ReadOnlyAdmin[Escalation]):
    """The part of the page of questions that decides many at once."""

    actions = compat.decision_actions(_for_many, _for_one)

    if TYPE_CHECKING:

        def has_option_permission(self, request: HttpRequest, option: Option, obj: Escalation | None = None) -> bool:
            """See ``EscalationAdmin``."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Where all that match are chosen, no row has to be ticked: without scripts there is no box that ticks many."""
        if request.POST.get("select_across") == "1" and ACTION_CHECKBOX_NAME not in request.POST:
            sent = request.POST.copy()
            sent[ACTION_CHECKBOX_NAME] = "0"  # Django asks for one, and then takes all that match
            request.POST = sent  # type: ignore[assignment]  # the stubs know only what cannot be changed
        return super().changelist_view(request, {"module_name": _("questions"), **(extra_context or {})})

    def may_decide_many(self, request: HttpRequest, option: Option) -> bool:
        """Whether this person may choose ``option`` for many questions; each is asked about again."""
        return (
            option in BULK
            and self.admin_site.is_registered(DecisionBatch)
            and self.has_view_permission(request)
            and request.user.has_perm("jobtrack.decide_in_bulk")
            and self.has_option_permission(request, option)
        )

    def may_decide(self, request: HttpRequest, option: Option) -> bulk.May:
        """Whether this person may choose ``option`` for a question."""
        return lambda row: self.has_view_permission(request, row) and self.has_option_permission(request, option, row)

    def get_urls(self) -> list[URLPattern]:
        """The second step of a decision about many questions; not inside a transaction of the request."""

        def begin(request: HttpRequest, option: str) -> HttpResponse:
            return _begin(self, request, option)  # type: ignore[arg-type]  # the class that this is a part of

        view = transaction.non_atomic_requests(using=lenient_settings().database)(require_http_methods(["POST"])(begin))
        route = path("bulk/<slug:option>/", self.admin_site.admin_view(view), name="jobtrack_escalation_bulk")
        return [route, *super().get_urls()]


def _permissions(option: Option) -> None:
    """The checks that the actions of an option name."""

    def bulk_permission(self: BulkDecisions, request: HttpRequest) -> bool:
        return self.may_decide_many(request, option)

    def choose_permission(self: BulkDecisions, request: HttpRequest) -> bool:
        return self.has_option_permission(request, option)

    setattr(BulkDecisions, f"has_bulk_{option.value}_permission", bulk_permission)
    setattr(BulkDecisions, f"has_choose_{option.value}_permission", choose_permission)


for _option in Option:
    _permissions(_option)


def preview(
    model_admin: EscalationAdmin,
    request: HttpRequest,
    option: Option,
    ids: Iterable[int],
    *,
    retry_of: int | None = None,
    form: BulkForm | None = None,
) -> HttpResponse:
    """What would become of each question. Writes nothing; the number of queries does not depend on how many there are.

    Args:
        form: what was sent and could not be taken.
    """
    rows, selection = _weighed(model_admin, request, option, ids, retry_of)
    wanted = [row for row in rows if not row.why]
    label = words.option_label(option.value)
    count = ngettext("%(count)d question", "%(count)d questions", len(wanted)) % {"count": len(wanted)}
    context = {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "preserved_filters": model_admin.get_preserved_filters(request),
        "title": _("%(option)s: %(questions)s?") % {"option": label, "questions": count},
        "label": label,
        "wanted": wanted,
        "left_out": [row for row in rows if row.why],
        "not_done": sorted({row.not_done for row in wanted}),
        "limit": conf.settings().bulk_limit,
        "form": form or BulkForm(),
        "chosen": selection.signed(request),
        "opens": shows(model_admin.admin_site, Operation, request),
        "url": reverse("admin:jobtrack_escalation_bulk", args=[option.value], current_app=model_admin.admin_site.name),
    }
    request.current_app = model_admin.admin_site.name  # as Django's own pages do
    return TemplateResponse(request, "jobtrack/admin/bulk_preview.html", context)


def _weighed(
    model_admin: EscalationAdmin, request: HttpRequest, option: Option, ids: Iterable[int], retry_of: int | None
) -> tuple[list[Row], Selection]:
    using = conf.settings().database
    found = Escalation.objects.using(using).select_related("operation").in_bulk(list(ids))
    runtime = get_runtime()
    now, may = runtime.store.now(), model_admin.may_decide(request, option)
    rows, chosen = [], []
    for escalation in (found[pk] for pk in ids if pk in found):
        verdict = bulk.foresee(runtime, option, escalation, may=may, now=now)
        chosen.append(Chosen(id=escalation.pk, version=escalation.version, verdict=verdict))
        wanted = verdict.outcome == DecisionItem.PENDING
        told = choice_of(runtime, escalation, request.user, option, may=lambda _: True, now=now) if wanted else None
        rows.append(
            Row(
                escalation=escalation,
                asked=words.reason_title(escalation.reason),
                done=told.done if told else "",
                not_done=told.not_done if told else "",
                why=why(verdict.detail),
            )
        )
    return rows, Selection(option=option, chosen=tuple(chosen), previewed_at=now, retry_of=retry_of)


def _begin(model_admin: EscalationAdmin, request: HttpRequest, name: str) -> HttpResponse:
    """Keep the batch, decide what the time allows, and show what became of each."""
    option = next((known for known in BULK if known.value == name), None)
    if option is None:
        raise Http404
    if not model_admin.may_decide_many(request, option):
        raise PermissionDenied
    selection = Selection.read(request, option, request.POST.get("chosen", ""))
    if selection is None:
        told = _("Nothing was changed: what you chose is no longer known. Choose the questions again.")
        model_admin.message_user(request, told, messages.ERROR)
        url = reverse("admin:jobtrack_escalation_changelist", current_app=model_admin.admin_site.name)
        return HttpResponseRedirect(filtered(model_admin, request, url))
    form = BulkForm(request.POST)
    if not form.is_valid():
        ids = [each.id for each in selection.chosen]
        return preview(model_admin, request, option, ids, retry_of=selection.retry_of, form=form)
    batch = bulk.begin(
        option,
        selection.chosen,
        actor=request.user.get_username(),
        reason=form.cleaned_data["reason"],
        previewed_at=selection.previewed_at,
        retry_of=selection.retry_of,
    )
    return decide_on(model_admin, request, batch)


def decide_on(model_admin: EscalationAdmin, request: HttpRequest, batch: DecisionBatch) -> HttpResponse:
    """Decide what is pending while the time lasts, and show where it stands. One message, however many there were."""
    option, label = Option(batch.option), words.option_label(batch.option)

    def log(row: Escalation) -> None:
        logged.log(model_admin, request, row, lambda: _("Decided: %s.") % words.option_label(batch.option))

    decider = bulk.Decider(
        may=model_admin.may_decide(request, option),
        person=person_of(request.user),
        permission=right_of(request.user, option),
    )
    left = bulk.go_on(get_runtime(), batch, decider=decider, log=log)
    done = batch.items.filter(outcome=DecisionItem.DONE).count()
    told = ngettext("“%(option)s”: %(done)d question decided.", "“%(option)s”: %(done)d questions decided.", done)
    message = told % {"option": label, "done": done}
    model_admin.message_user(request, message, messages.WARNING if left or not done else messages.SUCCESS)
    site = model_admin.admin_site.name
    return HttpResponseRedirect(reverse("admin:jobtrack_decisionbatch_change", args=[batch.pk], current_app=site))
