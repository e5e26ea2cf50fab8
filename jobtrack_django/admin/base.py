"""What both pages have in common: nobody writes a row here, and lists stay cheap on large tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _

from jobtrack_django import conf
from jobtrack_django.runtime import catalog

M = TypeVar("M", bound=Model)

if TYPE_CHECKING:

    class _ModelAdmin(admin.ModelAdmin[M]): ...

else:

    class _ModelAdmin(admin.ModelAdmin):
        """Django's own; generic for the type checker only."""

        def __class_getitem__(cls, _model: type[Model]) -> type:
            return cls


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # Django's class is not generic at run time
    """Counts at most ``MOST`` rows: nobody reads page 201, and counting a large table takes seconds."""

    MOST = 10_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list[: self.MOST]
        return rows.count() if isinstance(rows, QuerySet) else len(rows)


class ReadOnlyAdmin(_ModelAdmin[M]):
    """Rows are shown, never written: the flows are the only writers."""

    actions = None
    list_per_page = 50
    paginator = BoundedPaginator
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        # Decisions are made on these pages: they read the database that takes the writes.
        return super().get_queryset(request).using(conf.settings().database)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


class ChoiceFilter(admin.SimpleListFilter):
    """A filter whose choices are known without asking the database; ``column`` starts an index."""

    column = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


def provider_lookups() -> Sequence[tuple[str, str]]:
    """The tables this site knows, by the names of their files."""
    return [(name, name) for name in catalog().ids()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An instant for people: exact in UTC, in their own zone, and how far away it is."""

    at: datetime  # aware, UTC
    local: datetime | None  # in the reader's zone; None: that is UTC
    away: str

    @classmethod
    def of(cls, at: datetime | None, now: datetime) -> Moment | None:
        if at is None:
            return None
        local = at.astimezone(get_current_timezone())
        away = _("%s ago") % timesince(at, now) if at <= now else _("in %s") % timesince(now, at)
        return cls(at=at.astimezone(UTC), local=local if local.utcoffset() else None, away=away)

    def html(self) -> SafeString:
        """For a cell of a list."""
        return render_to_string("jobtrack/admin/moment.html", {"moment": self})
