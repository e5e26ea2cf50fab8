"""Notices: who was told of which question, and what became of it. Reading only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobtrack_django import conf, sentences
from jobtrack_django.admin.base import Moment, ReadOnlyAdmin, beside
from jobtrack_django.models import Notice
from jobtrack_django.notify.plan import AGAIN
from jobtrack_django.questions import reason_title

OUTCOMES = {
    Notice.WAITING: lazy("waiting"),
    Notice.SENT: lazy("sent"),
    Notice.DROPPED: lazy("not needed any more"),
    Notice.FAILED: lazy("failed"),
}


class OutcomeFilter(admin.SimpleListFilter):
    title = lazy("outcome")
    parameter_name = "outcome"
    _WAITING = "waiting"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [(outcome or self._WAITING, str(label)) for outcome, label in OUTCOMES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = self.value()
        if wanted is None:
            return queryset
        return queryset.filter(outcome=Notice.WAITING if wanted == self._WAITING else wanted)


class NotifierFilter(admin.SimpleListFilter):
    """The notifiers of this site, by their names in the settings."""

    title = lazy("notifier")
    parameter_name = "notifier"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        return [(name, name) for name in conf.settings().notifiers]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(notifier=self.value()) if self.value() else queryset


class NoticeAdmin(ReadOnlyAdmin[Notice]):
    list_display = ("question", "told", "state", "sent", "tries")
    list_display_links = ("told",)
    list_filter = (OutcomeFilter, NotifierFilter)
    list_select_related = ("escalation",)
    ordering = ("-id",)
    fields = ("question", "told", "state", "due", "sent", "tries", "message")
    readonly_fields = fields

    @admin.display(description=lazy("question"))
    def question(self, row: Notice) -> SafeString:
        text = beside(reason_title(row.escalation.reason), row.escalation.operation_id)
        try:
            url = reverse(f"{self.admin_site.name}:jobtrack_escalation_change", args=[row.escalation_id])
        except NoReverseMatch:
            return text
        return format_html('<a href="{}">{}</a>', url, text)

    @admin.display(description=lazy("notifier"), ordering="notifier")
    def told(self, row: Notice) -> SafeString:
        return beside(row.notifier, _("reminder") if row.turn == AGAIN else "")

    @admin.display(description=lazy("outcome"))
    def state(self, row: Notice) -> SafeString:
        return beside(str(OUTCOMES.get(row.outcome, row.outcome)), sentences.told(row.last_error))

    @admin.display(description=lazy("due"))
    def due(self, row: Notice) -> str:
        return self._moment(row.due_at)

    @admin.display(description=lazy("sent"))
    def sent(self, row: Notice) -> str:
        return self._moment(row.sent_at)

    @admin.display(description=lazy("attempts"))
    def tries(self, row: Notice) -> int:
        return row.attempts

    @admin.display(description=lazy("message id"))
    def message(self, row: Notice) -> str:
        return row.message_id or "-"

    def _moment(self, at: datetime | None) -> str:
        return "-" if at is None else Moment(at=at, now=at).exact
