"""What became of the questions that were decided together: the page of a batch, going on, and what is tried again."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise as Text
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from jobtrack.core.escalation import Option
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import words
from jobtrack_django.admin import bulk
from jobtrack_django.admin.base import Moment, ReadOnlyAdmin, exact, lenient_settings, shows
from jobtrack_django.bulk import Why
from jobtrack_django.models import DecisionBatch, DecisionItem, Escalation
from jobtrack_django.storable import storable

if TYPE_CHECKING:
    from jobtrack_django.admin.escalations import EscalationAdmin

OUTCOMES: Final[dict[str, Text]] = {
    DecisionItem.PENDING: lazy("still to be decided"),
    DecisionItem.FAILED: lazy("failed"),
    DecisionItem.REFUSED: lazy("refused"),
    DecisionItem.SKIPPED: lazy("skipped"),
    DecisionItem.DONE: lazy("decided"),
}
"""In the order in which they need somebody."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # full width as well
_CONTROL = ("\t", "\r", "\n")


_UNSEEN = " \t\r\n\x00\xa0\u200b\u200e\u200f\u2060\ufeff"
"""What a spreadsheet may leave out at the beginning of a cell."""


def plain(cell: object) -> str:
    """A cell that a spreadsheet takes as text, whatever a provider or a caller wrote."""
    text = str(cell)
    begins = text.lstrip(_UNSEEN)
    return f"'{text}" if text.startswith(_CONTROL) or begins.startswith(_FORMULA) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One question of a batch, with what became of it."""

    item: DecisionItem
    escalation: Escalation
    asked: str
    why: str  # "" if it was decided or still has to be
    by: str  # who decided it, and what, if that was not this batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The questions with one outcome."""

    label: str
    rows: list[Row]


class DecisionBatchAdmin(ReadOnlyAdmin[DecisionBatch]):
    """Seen by who may view bulk decisions, and by whoever has begun one. Only they go on with it."""

    list_display = ("choice", "begun_by", "begun", "ended")
    list_display_links = ("choice",)
    actions = None
    change_form_template = "jobtrack/admin/bulk_result.html"

    def has_view_permission(self, request: HttpRequest, obj: DecisionBatch | None = None) -> bool:
        return super().has_view_permission(request, obj) or (obj is not None and self._is_own(request, obj))

    @admin.display(description=lazy("decision"))
    def choice(self, batch: DecisionBatch) -> str:
        return words.option_label(batch.option)

    @admin.display(description=lazy("begun by"))
    def begun_by(self, batch: DecisionBatch) -> str:
        return batch.actor

    @admin.display(description=lazy("begun"), ordering="id")
    def begun(self, batch: DecisionBatch) -> SafeString:
        return exact(batch.created_at)

    @admin.display(description=lazy("finished"))
    def ended(self, batch: DecisionBatch) -> str:
        return exact(batch.finished_at) if batch.finished_at else _("not finished")

    def get_urls(self) -> list[URLPattern]:
        """What can be done with a batch. Its page is Django's own page of a row."""
        wrap = self.admin_site.admin_view
        go_on = transaction.non_atomic_requests(using=lenient_settings().database)(
            require_http_methods(["POST"])(self._go_on)
        )
        return [
            path("<int:object_id>/go-on/", wrap(go_on), name="jobtrack_decisionbatch_go_on"),
            path("<int:object_id>/retry/", wrap(require_safe(self._retry)), name="jobtrack_decisionbatch_retry"),
            path("<int:object_id>/csv/", wrap(require_safe(self._csv)), name="jobtrack_decisionbatch_csv"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        batch: DecisionBatch = kwargs["obj"]  # Django names its arguments; nothing is added here, so there is one
        rows = _rows(batch)
        now = get_runtime().store.now()
        groups = [(outcome, [row for row in rows if row.item.outcome == outcome]) for outcome in OUTCOMES]
        may = self._may(request, batch)
        again = _again(rows, own=self._is_own(request, batch))
        shown = {
            **context,
            "title": _("%(option)s: what became of it") % {"option": words.option_label(batch.option)},
            "batch": batch,
            "label": words.option_label(batch.option),
            "begun": Moment.of(batch.created_at, now),
            "ended": Moment.of(batch.finished_at, now),
            "groups": [Group(label=str(OUTCOMES[outcome]), rows=found) for outcome, found in groups if found],
            "may_go_on": may and self._is_own(request, batch) and batch.finished_at is None,
            "again": _retry_label(len(again)) if may and again else "",
            "opens": shows(self.admin_site, Escalation, request),
            "batch_opens": self.has_view_permission(request),
        }
        return super().render_change_form(request, shown, *args, **kwargs)

    def _go_on(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Decide what is still pending: in the name of the person who began, so nobody else may."""
        batch = self._batch(request, object_id)
        if not (self._is_own(request, batch) and self._may(request, batch)):
            raise PermissionDenied
        return bulk.decide_on(self._questions(), request, batch)

    def _retry(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """The preview of a new batch, with each question as it is now. Changes nothing."""
        batch = self._batch(request, object_id)
        if not self._may(request, batch):
            raise PermissionDenied
        ids = [row.escalation.pk for row in _again(_rows(batch), own=self._is_own(request, batch))]
        return bulk.preview(self._questions(), request, Option(batch.option), ids, retry_of=batch.pk)

    def _csv(self, request: HttpRequest, object_id: int) -> HttpResponse:
        batch = self._batch(request, object_id)
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="bulk-decision-{batch.pk}.csv"'
        response["X-Content-Type-Options"] = "nosniff"
        writer = csv.writer(response)
        for line in _lines(_rows(batch)):
            writer.writerow([plain(cell) for cell in line])
        return response

    def _batch(self, request: HttpRequest, object_id: int) -> DecisionBatch:
        batch = self.get_object(request, str(object_id))
        if batch is None:
            raise Http404
        if not self.has_view_permission(request, batch):
            raise PermissionDenied
        return batch

    def _may(self, request: HttpRequest, batch: DecisionBatch) -> bool:
        """Whether this person may choose the batch's option for many questions."""
        if batch.option not in set(Option) or not self.admin_site.is_registered(Escalation):
            return False
        return self._questions().may_decide_many(request, Option(batch.option))

    def _questions(self) -> EscalationAdmin:
        """The page of the questions on the same site."""
        page: Any = self.admin_site.get_model_admin(Escalation)
        found: EscalationAdmin = page
        return found

    @staticmethod
    def _is_own(request: HttpRequest, batch: DecisionBatch) -> bool:
        return bool(batch.actor == storable(request.user.get_username(), 255))


def _rows(batch: DecisionBatch) -> list[Row]:
    items: QuerySet[DecisionItem] = batch.items.select_related("escalation__operation")
    return [_row(item) for item in items]


def _row(item: DecisionItem) -> Row:
    escalation = item.escalation
    quiet = item.outcome in (DecisionItem.DONE, DecisionItem.PENDING)
    by = ""
    if item.detail == Why.DECIDED and escalation.decided_at is not None:
        told = _("%(actor)s decided “%(option)s”.")
        by = told % {"actor": escalation.actor, "option": words.option_label(escalation.option)}
    return Row(
        item=item,
        escalation=escalation,
        asked=words.reason_title(escalation.reason),
        why="" if quiet else bulk.why(item.detail),
        by=by,
    )


def _again(rows: list[Row], *, own: bool) -> list[Row]:
    """What is worth another try: what failed or had changed, and what somebody else has left."""
    left = {DecisionItem.FAILED} if own else {DecisionItem.FAILED, DecisionItem.PENDING}
    tried = [row for row in rows if row.item.outcome in left or row.item.detail == Why.CHANGED]
    return [row for row in tried if row.escalation.decided_at is None]


def _retry_label(count: int) -> str:
    told = ngettext("Try %(count)d question again…", "Try %(count)d questions again…", count)
    return told % {"count": count}


def _lines(rows: list[Row]) -> Iterator[list[object]]:
    yield [
        _("question"),
        _("reason"),
        _("operation"),
        _("reference"),
        _("provider"),
        _("account"),
        _("outcome"),
        _("because"),
    ]
    for row in rows:
        operation = row.escalation.operation
        yield [
            row.escalation.pk,
            row.asked,
            operation.pk,
            operation.reference,
            operation.provider,
            operation.account,
            OUTCOMES.get(row.item.outcome, row.item.outcome),
            row.by or row.why,
        ]
