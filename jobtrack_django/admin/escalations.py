"""Needs decision: questions to a person, and the options their reasons allow.

What may be chosen comes from ``core.escalation.options`` and what it does from ``core.grant``; here is no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from jobtrack.core.escalation import Option, Reason
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import conf, words
from jobtrack_django.admin import deciding
from jobtrack_django.admin.base import (
    ChoiceFilter,
    Moment,
    ProviderFilter,
    ReadOnlyAdmin,
    beside,
    lenient_settings,
    shortened,
)
from jobtrack_django.models import Escalation
from jobtrack_django.policy import may_choose
from jobtrack_django.store import DjangoStore


class OpenFilter(admin.SimpleListFilter):
    """Open questions unless others are asked for: the page is a list of things to do."""

    title = _("decision")
    parameter_name = "decided"
    EVERY, NO, YES = "all", "no", "yes"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [(self.NO, _("needs a decision")), (self.YES, _("decided")), (self.EVERY, _("all"))]

    def value(self) -> str:
        return super().value() or self.NO

    def choices(self, changelist: Any) -> Iterator[Any]:
        yield from list(super().choices(changelist))[1:]  # "all" is a choice of its own, and not the default

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = {self.NO: {"decided_at__isnull": True}, self.YES: {"decided_at__isnull": False}}
        return queryset.filter(**wanted.get(self.value(), {}))


class ReasonFilter(ChoiceFilter):
    title = _("reason")
    parameter_name = column = "reason"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [(reason.value, str(words.QUESTIONS[reason].title)) for reason in Reason]


class OperationProviderFilter(ProviderFilter):
    column = "operation__provider"


class EscalationAdmin(ReadOnlyAdmin[Escalation]):
    list_display = ("question", "effect", "since", "about", "last_word", "decision")
    list_filter = (OpenFilter, ReasonFilter, OperationProviderFilter)
    ordering = (F("decided_at").desc(nulls_first=True), "opened_at")  # who has waited longest comes first
    change_form_template = "jobtrack/admin/escalation.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Escalation]:
        return super().get_queryset(request).select_related("operation")

    @admin.display(description=_("question"))
    def question(self, escalation: Escalation) -> str:
        return words.reason_title(escalation.reason)

    @admin.display(description=_("operation, provider"))
    def about(self, escalation: Escalation) -> SafeString:
        operation = escalation.operation
        return beside(shortened(operation.pk), f"{operation.provider} / {operation.account}")

    @admin.display(description=_("provider's last word"), empty_value="–")
    def last_word(self, escalation: Escalation) -> str | None:
        return escalation.operation.provider_state or None

    @admin.display(description=_("meanwhile"))
    def effect(self, escalation: Escalation) -> Any:
        return _("stopped") if escalation.blocking else _("not stopped by this")

    @admin.display(description=_("waiting since"), ordering="opened_at")
    def since(self, escalation: Escalation) -> SafeString:
        moment = Moment.of(escalation.opened_at, DjangoStore(conf.settings().database).now())
        assert moment is not None  # every question was opened at some time
        return moment.html

    @admin.display(description=_("decision"), empty_value="–")
    def decision(self, escalation: Escalation) -> str | None:
        if escalation.decided_at is None:
            return None
        return f"{words.option_label(escalation.option)}, {escalation.actor}"

    def has_option_permission(self, request: HttpRequest, option: Option, obj: Escalation | None = None) -> bool:
        """Whether this person may choose ``option``. Override it for rules of your own, per provider for example."""
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

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj: Escalation = kwargs["obj"]  # Django names its arguments; nothing is added here, so there is one
        title = capfirst(words.reason_title(obj.reason))
        shown = {**context, "title": title, **deciding.evidence(self, request, get_runtime(), obj)}
        return super().render_change_form(request, shown, *args, **kwargs)
