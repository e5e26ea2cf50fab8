"""Two small lists beside the operations: results that were fetched, and verified webhooks. Reading only.

Of a result neither its link nor the places of its files are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from jobtrack.core.text import clean
from jobtrack_django import conf, facts, sentences
from jobtrack_django.admin import searching
from jobtrack_django.admin.base import Moment, ReadOnlyAdmin, beside, exact, shortened, shows
from jobtrack_django.admin.keyset import Order
from jobtrack_django.models import JobResult, Operation, WebhookReceipt
from jobtrack_django.store import DjangoStore

NOTHING: Final = "–"
"""Django fills an empty cell of a list only: on the page of a row it writes "None"."""

LAST_RECEIVED: Final = Order(name="received", columns=("received_at", "id"), descending=True)


class _BesideAdmin(ReadOnlyAdmin[Any]):
    """Each row leads to its operation; it has no more to tell than the list shows."""

    list_display_links = None
    search_fields = ("operation_id",)  # only switches the search box on
    search_help_text = searching.HELP

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return searching.found(request, queryset, search_term, searching.operations, "operation_id"), False

    def at_hand(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        now = DjangoStore(conf.settings().database).now()
        opens = shows(self.admin_site, Operation, request)
        for row in rows:
            row.jobtrack_now, row.jobtrack_opens = now, opens

    @admin.display(description=_("operation"))
    def about(self, row: Any) -> str:
        if not row.operation_id:
            return NOTHING
        name = shortened(row.operation_id)
        if not getattr(row, "jobtrack_opens", False):
            return name
        args, site = [quote(row.operation_id)], self.admin_site.name
        url = reverse("admin:jobtrack_operation_change", args=args, current_app=site)
        return format_html('<a href="{}">{}</a>', url, name)


class JobResultAdmin(_BesideAdmin):
    list_display = ("about", "stands", "names", "used", "fetched")
    fields = readonly_fields = ("about", "stands", "names", "used", "fetched_then")

    def for_list(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.defer("link")

    @admin.display(description=_("result"))
    def stands(self, row: JobResult) -> SafeString:
        return beside(str(facts.RESULTS.get(row.state, row.state)), clean(sentences.told(row.detail), 160))

    @admin.display(description=_("files"))
    def names(self, row: JobResult) -> str:
        files = row.to_core().files
        return ", ".join(clean(file.name, 80) for file in files[:3]) + (" …" if len(files) > 3 else "") or NOTHING

    @admin.display(description=_("status requests"))
    def used(self, row: JobResult) -> int:
        return row.reads

    @admin.display(description=_("fetched"))
    def fetched_then(self, row: JobResult) -> str:
        return exact(row.fetched_at) if row.fetched_at else NOTHING

    @admin.display(description=_("fetched"), empty_value="–")
    def fetched(self, row: JobResult) -> SafeString | None:
        return Moment(at=row.fetched_at, now=row.jobtrack_now).cell if row.fetched_at else None  # type: ignore[attr-defined]


class WebhookReceiptAdmin(_BesideAdmin):
    list_display = ("received", "provided", "notice", "job", "about")
    fields = readonly_fields = ("received_then", "provided", "notice", "job", "about")

    def list_order(self, request: HttpRequest, chosen: Mapping[str, str | None]) -> Order:
        return LAST_RECEIVED

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return searching.found(request, queryset, search_term, searching.receipts), False

    @admin.display(description=_("received"))
    def received_then(self, row: WebhookReceipt) -> SafeString:
        return exact(row.received_at)

    @admin.display(description=_("received"))
    def received(self, row: WebhookReceipt) -> SafeString:
        return Moment(at=row.received_at, now=row.jobtrack_now).cell  # type: ignore[attr-defined]

    @admin.display(description=_("provider, account"))
    def provided(self, row: WebhookReceipt) -> SafeString:
        return beside(row.provider, row.account)

    @admin.display(description=_("number at the provider"))
    def notice(self, row: WebhookReceipt) -> SafeString:
        return shortened(clean(row.notice_id, 200))

    @admin.display(description=_("job"))
    def job(self, row: WebhookReceipt) -> str:
        return shortened(clean(row.job_id, 500)) if row.job_id else NOTHING
