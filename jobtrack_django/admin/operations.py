"""Operations: what was accepted, observed and concluded, and the story behind it. Reading only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobtrack_django import conf, words
from jobtrack_django.admin.base import (
    ChoiceFilter,
    Moment,
    ProviderFilter,
    ReadOnlyAdmin,
    beside,
    shortened,
    shows,
)
from jobtrack_django.admin.sheet import sheet
from jobtrack_django.asides import failing_events, open_reasons, with_failing_follow_ups, with_open_questions
from jobtrack_django.models import Escalation, Operation
from jobtrack_django.storable import storable
from jobtrack_django.store import DjangoStore


class StateFilter(ChoiceFilter):
    title = _("state")
    parameter_name = column = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [(str(state), str(label)) for state, label in words.STATES.items()]


class OperationAdmin(ReadOnlyAdmin[Operation]):
    list_display = ("called", "stands", "next_look", "last_word", "job", "created")
    list_filter = (StateFilter, ProviderFilter, "created_at")
    search_fields = ("id",)  # only switches the search box on; `get_search_results` says what is searched
    search_help_text = _("The whole id, job id or reference, exactly as it is written.")
    ordering = ("-created_at",)
    change_form_template = "jobtrack/admin/operation.html"

    def get_search_results(
        self,
        request: HttpRequest,
        queryset: QuerySet[Operation],
        search_term: str,
    ) -> tuple[QuerySet[Operation], bool]:
        """Exact, so that three indexes answer; a pattern would read the whole table."""
        term = storable(search_term.strip())
        if not term:
            return queryset, False
        return queryset.filter(Q(pk=term) | Q(job_id=term) | Q(reference=term)), False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Operation]:
        return with_failing_follow_ups(with_open_questions(super().get_queryset(request)))

    @admin.display(description=_("id, reference"), ordering="id")
    def called(self, operation: Operation) -> SafeString:
        return beside(shortened(operation.pk), operation.reference)

    @admin.display(description=_("state, because"), ordering="state")
    def stands(self, operation: Operation) -> SafeString:
        """With what a person is asked, else why it failed, and which follow-ups do not get through."""
        asked = ", ".join(map(words.reason_title, open_reasons(operation)))
        failing = ", ".join(failing_events(operation))
        because = (asked or words.reason_title(operation.cause), failing and gettext("%s failing") % failing)
        return beside(words.state_label(operation.state), "; ".join(filter(None, because)))

    @admin.display(description=_("job, provider"))
    def job(self, operation: Operation) -> SafeString:
        return beside(shortened(operation.job_id), f"{operation.provider} / {operation.account}")

    @admin.display(description=_("provider's last word"), empty_value="–")
    def last_word(self, operation: Operation) -> str | None:
        return operation.provider_state or None

    @admin.display(description=_("next look, and why"), empty_value="–")
    def next_look(self, operation: Operation) -> str | None:
        if operation.wake_at is None:
            return None
        if operation.lease_until is not None:
            return str(words.UNDER_WAY).format(f"{operation.lease_until:%Y-%m-%d %H:%M:%S} UTC")
        return f"{operation.wake_at:%Y-%m-%d %H:%M:%S} UTC: {words.delay_label(operation.delay_source)}"

    @admin.display(description=_("created"), ordering="created_at")
    def created(self, operation: Operation) -> str:
        return f"{operation.created_at:%Y-%m-%d %H:%M:%S} UTC"

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
        links = {"questions": questions, "questions_open": shows(self.admin_site, Escalation, request)}
        shown = {**context, **sheet(obj, now), **links}
        return super().render_change_form(request, shown, *args, **kwargs)
