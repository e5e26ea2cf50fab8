"""Operations: what was accepted, observed and concluded, and the story behind it. Reading only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobtrack_django import conf, words
from jobtrack_django.admin import searching, subjects
from jobtrack_django.admin.base import (
    ChoiceFilter,
    Moment,
    ProviderFilter,
    ReadOnlyAdmin,
    beside,
    exact,
    shortened,
    shows,
)
from jobtrack_django.admin.bundling import bundle_url, route
from jobtrack_django.admin.keyset import Order
from jobtrack_django.admin.sheet import sheet
from jobtrack_django.asides import failing_events, open_reasons, with_failing_follow_ups, with_open_questions
from jobtrack_django.models import Escalation, Operation
from jobtrack_django.store import DjangoStore


class StateFilter(ChoiceFilter):
    title = _("state")
    parameter_name = column = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [(str(state), str(label)) for state, label in words.STATES.items()]


class CreatedFilter(admin.SimpleListFilter):
    title = _("created")
    parameter_name = "created"
    column = "created_at"
    _WITHIN: Final = {"1": timedelta(days=1), "7": timedelta(days=7), "30": timedelta(days=30)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, Any]]:
        return [("1", _("in the last 24 hours")), ("7", _("in the last 7 days")), ("30", _("in the last 30 days"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        within = self._WITHIN.get(self.value() or "")
        return queryset if within is None else queryset.filter(created_at__gte=DjangoStore(queryset.db).now() - within)


NEWEST: Final = Order(name="newest", columns=("created_at", "id"), descending=True)


class OperationAdmin(ReadOnlyAdmin[Operation]):
    list_display = ("called", "stands", "next_look", "last_word", "job", "subject", "created")
    list_filter = (StateFilter, ProviderFilter, CreatedFilter)
    search_fields = ("id",)  # only switches the search box on; `get_search_results` says what is searched
    search_help_text = searching.HELP
    change_form_template = "jobtrack/admin/operation.html"

    def list_order(self, request: HttpRequest, chosen: Mapping[str, str | None]) -> Order:
        return NEWEST

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Operation], search_term: str
    ) -> tuple[QuerySet[Operation], bool]:
        return searching.found(request, queryset, search_term, searching.operations), False

    def for_list(self, rows: QuerySet[Operation]) -> QuerySet[Operation]:
        rows = rows.defer("sealed", "params", "permits", "evidence", "kept", "error", "doubt")  # some are long
        return with_failing_follow_ups(with_open_questions(rows))

    def at_hand(self, request: HttpRequest, rows: Sequence[Operation]) -> None:
        subjects.attach(self.admin_site, request, rows)

    @admin.display(description=_("id, reference"))
    def called(self, operation: Operation) -> SafeString:
        return beside(shortened(operation.pk), operation.reference)

    @admin.display(description=_("state, because"))
    def stands(self, operation: Operation) -> SafeString:
        """With what a person is asked, else why it failed, and which follow-ups do not get through."""
        asked = ", ".join(map(words.reason_title, open_reasons(operation)))
        failing = ", ".join(map(words.follow_up_label, failing_events(operation)))
        because = (asked or words.reason_title(operation.cause), failing and gettext("%s failing") % failing)
        return beside(words.state_label(operation.state), "; ".join(filter(None, because)))

    @admin.display(description=_("job, provider"))
    def job(self, operation: Operation) -> SafeString:
        return beside(shortened(operation.job_id), f"{operation.provider} / {operation.account}")

    @admin.display(description=_("provider's last word"), empty_value="–")
    def last_word(self, operation: Operation) -> str | None:
        return operation.provider_state or None

    @admin.display(description=_("next look, and why"), empty_value="–")
    def next_look(self, operation: Operation) -> SafeString | None:
        if operation.wake_at is None:
            return None
        if operation.lease_until is not None:
            return format_html(str(words.UNDER_WAY), exact(operation.lease_until))
        return format_html("{}: {}", exact(operation.wake_at), words.delay_label(operation.delay_source))

    @admin.display(description=_("belongs to"), empty_value="–")
    def subject(self, operation: Operation) -> SafeString | None:
        return subjects.cell(operation)

    @admin.display(description=_("created"))
    def created(self, operation: Operation) -> SafeString:
        return exact(operation.created_at)

    def get_urls(self) -> list[URLPattern]:
        return [route(self), *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        obj: Operation = kwargs["obj"]  # Django names its arguments; nothing is added here, so there is one
        using = conf.settings().database
        now = DjangoStore(using).now()
        questions = [
            (question, words.reason_title(question.reason), Moment.of(question.opened_at, now))
            for question in obj.escalations.using(using)
        ]
        links = {
            "questions": questions,
            "questions_open": shows(self.admin_site, Escalation, request),
            "bundle_url": bundle_url(self.admin_site, request, obj),
        }
        shown = {**context, **sheet(obj, now), **links}
        return super().render_change_form(request, shown, *args, **kwargs)
