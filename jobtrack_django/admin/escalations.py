"""Needs decision: questions to a person, and the options their reasons allow.

What may be chosen comes from ``core.escalation.options`` and what it does from ``core.grant``; here is no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from jobtrack.core.escalation import Option, Risk
from jobtrack.core.text import clean
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import compat, conf, sentences, words
from jobtrack_django.admin import deciding, evidence, searching, subjects
from jobtrack_django.admin.base import (
    ChoiceFilter,
    Moment,
    ProviderFilter,
    ValueFilter,
    beside,
    lenient_settings,
    shortened,
)
from jobtrack_django.admin.bulk import BulkDecisions
from jobtrack_django.admin.keyset import Order
from jobtrack_django.models import Escalation
from jobtrack_django.policy import lapse_of, may_choose
from jobtrack_django.store import DjangoStore

RISKS: Final = {Risk.HIGH: ("▲", _("high")), Risk.MEDIUM: ("◆", _("medium")), Risk.LOW: ("▽", _("low"))}
"""A sign and a word for each risk."""

RISKIEST: Final = Order(name="risk", columns=("risk", "opened_at", "id"), held=("decided_at",))
OLDEST: Final = Order(name="age", columns=("opened_at", "id"), held=("decided_at",))
JUST_DECIDED: Final = Order(name="decided", columns=("decided_at", "opened_at", "id"), descending=True)
NEWEST: Final = Order(name="newest", columns=("id",), descending=True)

_DETAIL: Final = 80
"""Most characters of what was seen, in the list."""

# Columns of operations that the list does not show; some are long.
_UNSHOWN: Final = (
    *("sealed", "params", "permits", "evidence", "kept", "error", "doubt", "status_url", "progress"),
    *("on_success", "on_failure", "on_end", "audit_head", "table_digest"),
)


class OpenFilter(admin.SimpleListFilter):
    """Open questions unless others are asked for: the page is a list of things to do. A search finds all."""

    title = _("decision")
    parameter_name = "decided"
    EVERY, NO, YES = "all", "no", "yes"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [(self.NO, _("needs a decision")), (self.YES, _("decided")), (self.EVERY, _("all"))]

    def value(self) -> str:
        value = super().value()
        if value in (self.EVERY, self.NO, self.YES):
            return str(value)
        return self.EVERY if self.request.GET.get("q", "").strip() else self.NO

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Not "all" before a search: open and decided questions have no order in common that an index has."""
        offered = list(super().choices(changelist))[1:]
        yield from offered if self.value() == self.EVERY else offered[:-1]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = {self.NO: {"decided_at__isnull": True}, self.YES: {"decided_at__isnull": False}}
        return queryset.filter(**wanted.get(self.value(), {}))


class OrderFilter(admin.SimpleListFilter):
    """What comes first of the open questions. Chosen here and not in a column: each order has its index."""

    title = _("first")
    parameter_name = "first"
    AGE = "oldest"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [("", _("highest risk, then oldest")), (self.AGE, _("oldest"))]

    def value(self) -> str:
        return self.AGE if super().value() == self.AGE else ""

    def choices(self, changelist: Any) -> Iterator[Any]:
        yield from list(super().choices(changelist))[1:]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset


class RiskFilter(ChoiceFilter):
    title = _("risk")
    parameter_name = column = "risk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [(str(risk.value), f"{sign} {word}") for risk, (sign, word) in RISKS.items()]

    def value(self) -> str | None:
        value = super().value()
        return value if value in {str(risk.value) for risk in Risk} else None


def _among_open(request: HttpRequest) -> str | None:
    return "decided_at" if request.GET.get(OpenFilter.parameter_name, OpenFilter.NO) == OpenFilter.NO else None


class ReasonFilter(ValueFilter):
    title = _("reason")
    parameter_name = column = "reason"

    def among(self, request: HttpRequest) -> str | None:
        return _among_open(request)

    def label(self, value: str) -> str:
        return words.reason_title(value)


class OpenProviderFilter(ProviderFilter):
    def among(self, request: HttpRequest) -> str | None:
        return _among_open(request)


class AgeFilter(admin.SimpleListFilter):
    title = _("asked")
    parameter_name = "asked"
    NEW = "new"
    _OVER: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [
            (self.NEW, _("less than an hour ago")),
            ("hour", _("more than an hour ago")),
            ("day", _("more than a day ago")),
            ("week", _("more than a week ago")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None or (value != self.NEW and value not in self._OVER):
            return queryset
        limit = DjangoStore(queryset.db).now() - self._OVER.get(value, self._OVER["hour"])
        if value != self.NEW:
            return queryset.filter(opened_at__lte=limit)
        rows = queryset.filter(opened_at__gte=limit)
        if request.GET.get(OpenFilter.parameter_name) == OpenFilter.YES:
            # Nothing is decided before it is asked: so the index of this order knows where to end.
            rows = rows.filter(decided_at__gte=limit)
        return rows


class EscalationAdmin(BulkDecisions):
    list_display = ("question", "risky", "since", "provided", "subject", "called", "last_word", "decision")
    list_filter = (OpenFilter, OrderFilter, RiskFilter, ReasonFilter, OpenProviderFilter, AgeFilter)
    search_fields = ("id",)  # only switches the search box on; `get_search_results` says what is searched
    search_help_text = searching.HELP_QUESTIONS
    change_form_template = "jobtrack/admin/escalation.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Escalation]:
        return super().get_queryset(request).select_related("operation")

    def list_order(self, request: HttpRequest, chosen: Mapping[str, str | None]) -> Order:
        """By risk and age; all of one reason have one risk, so there age alone is the same."""
        match chosen.get(OpenFilter.parameter_name):
            case OpenFilter.YES:
                return JUST_DECIDED
            case OpenFilter.EVERY:
                return NEWEST
        by_age = chosen.get(OrderFilter.parameter_name) or chosen.get(ReasonFilter.parameter_name)
        return OLDEST if by_age else RISKIEST

    def for_list(self, rows: QuerySet[Escalation]) -> QuerySet[Escalation]:
        return rows.defer("actor_reason", "proposed_why", *(f"operation__{name}" for name in _UNSHOWN))

    def at_hand(self, request: HttpRequest, rows: Sequence[Escalation]) -> None:
        now = DjangoStore(conf.settings().database).now()
        for row in rows:
            setattr(row, "jobtrack_now", now)  # noqa: B010 - read once for a page, not once for a row
        subjects.attach(self.admin_site, request, [row.operation for row in rows])

    def nothing(self, request: HttpRequest) -> str:
        return gettext("Nothing needs a decision.")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Escalation], search_term: str
    ) -> tuple[QuerySet[Escalation], bool]:
        return searching.found(request, queryset, search_term, searching.questions), False

    @admin.display(description=_("question"))
    def question(self, escalation: Escalation) -> SafeString:
        """The reason, what is asked, and the beginning of what was seen."""
        title = capfirst(words.reason_title(escalation.reason))
        ask = str(words.question(escalation.reason).ask) if words.knows(escalation.reason) else ""
        return beside(beside(title, ask), clean(sentences.told(escalation.detail), _DETAIL))

    @admin.display(description=_("risk"))
    def risky(self, escalation: Escalation) -> SafeString:
        """A sign and a word, and whether the operation stands still meanwhile."""
        sign, word = RISKS.get(Risk(escalation.risk), RISKS[Risk.MEDIUM]) if escalation.risk in set(Risk) else ("", "")
        risk = format_html(
            '<span class="jobtrack-risk jobtrack-risk-{}"><span aria-hidden="true">{}</span> {}</span>',
            *(escalation.risk, sign, word or escalation.risk),
        )
        return beside(risk, gettext("stopped") if escalation.blocking else gettext("not stopped by this"))

    @admin.display(description=_("waiting since"))
    def since(self, escalation: Escalation) -> SafeString:
        now = getattr(escalation, "jobtrack_now", None) or DjangoStore(conf.settings().database).now()
        return Moment(at=escalation.opened_at, now=now).cell

    @admin.display(description=_("provider, account"))
    def provided(self, escalation: Escalation) -> SafeString:
        operation = escalation.operation
        return beside(operation.provider, operation.account)

    @admin.display(description=_("belongs to"), empty_value="–")
    def subject(self, escalation: Escalation) -> SafeString | None:
        return subjects.cell(escalation.operation)

    @admin.display(description=_("operation, reference"))
    def called(self, escalation: Escalation) -> SafeString:
        return beside(shortened(escalation.operation_id), escalation.operation.reference)

    @admin.display(description=_("provider's last word"), empty_value="–")
    def last_word(self, escalation: Escalation) -> str | None:
        return escalation.operation.provider_state or None

    def otherwise(self, escalation: Escalation) -> str:
        """What the site chooses by itself, and when; "" if the reason is not known."""
        if not words.knows(escalation.reason):
            return ""
        lapse = lapse_of(escalation.reason)
        if lapse is None:
            return gettext("it goes on waiting") if escalation.blocking else gettext("the question stays open")
        now = getattr(escalation, "jobtrack_now", None) or DjangoStore(conf.settings().database).now()
        when = Moment(at=escalation.opened_at + lapse.after, now=now)
        option = words.option_label(lapse.option.value)
        if when.at <= now:
            return gettext("%(option)s, due now") % {"option": option}
        return gettext("%(option)s %(when)s") % {"option": option, "when": when.away}

    @admin.display(description=_("decision, or if nobody acts"), empty_value="–")
    def decision(self, escalation: Escalation) -> SafeString | None:
        """What was decided and by whom; of an open question, what is proposed, and what happens if nobody acts."""
        if escalation.decided_at is not None:
            return beside(words.option_label(escalation.option), escalation.actor)
        otherwise = self.otherwise(escalation)
        if escalation.proposed_option:
            proposed = {"option": words.option_label(escalation.proposed_option), "name": escalation.proposed_by}
            told = gettext("%(option)s, proposed by %(name)s") % proposed
            return beside(gettext("⚑ waits for a second person"), "; ".join(filter(None, (told, otherwise))))
        return beside(otherwise, "") if otherwise else None

    def has_option_permission(self, request: HttpRequest, option: Option, obj: Escalation | None = None) -> bool:
        """Whether this person may choose ``option``. Override it for rules of your own, per provider for example.

        Args:
            obj: the question; None: for any question at all. Where that is refused, menus of actions leave it out.
        """
        return may_choose(request.user, option, obj.operation if obj else None)

    def get_urls(self) -> list[URLPattern]:
        """One address for each option: GET asks for confirmation, POST decides.

        Not inside a transaction of the request: what is decided is committed before anybody is woken up.
        """

        def decide(request: HttpRequest, object_id: int, option: str) -> HttpResponse:
            return deciding.decide(self, request, object_id, option)

        view = require_http_methods(["GET", "HEAD", "POST"])(decide)
        view = transaction.non_atomic_requests(using=lenient_settings().database)(view)
        route = path(
            "<int:object_id>/decide/<slug:option>/",
            self.admin_site.admin_view(view),
            name="jobtrack_escalation_decide",
        )
        return [route, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """As Django's; who may not see the question is told what is missing: the link of a notice may reach anybody."""
        try:
            return super().change_view(request, object_id, form_url, extra_context)
        except PermissionDenied:
            if request.method != "GET":
                raise
        page = {**self.admin_site.each_context(request), "title": gettext("You may not see this question.")}
        return TemplateResponse(request, "jobtrack/admin/denied.html", page, status=403)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj: Escalation = kwargs["obj"]  # Django names its arguments; nothing is added here, so there is one
        title = capfirst(words.reason_title(obj.reason))
        shown = {**context, "title": title, **evidence.evidence(self, request, get_runtime(), obj)}
        offered = {button.option for button in shown["buttons"] if button.open}
        shown["action_form"] = compat.menu_of(context.get("action_form"), offered)
        return super().render_change_form(request, shown, *args, **kwargs)
