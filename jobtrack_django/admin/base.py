"""What all pages have in common: nobody writes a row here, and lists stay cheap on large tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import BadRequest
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobtrack_django import conf
from jobtrack_django.admin.keyset import KeysetChangeList, Order
from jobtrack_django.admin.loose import values_of
from jobtrack_django.storable import storable

M = TypeVar("M", bound=Model)

_MINUTE = timedelta(minutes=1)

_TAIL = 8
"""Characters of a shortened id that stay at its end. Ids made in the same moment begin alike."""

if TYPE_CHECKING:

    class _ModelAdmin(admin.ModelAdmin[M]): ...

else:

    class _ModelAdmin(admin.ModelAdmin):
        """Django's own; generic for the type checker only."""

        def __class_getitem__(cls, _model: type[Model]) -> type:
            return cls


def lenient_settings() -> conf.Settings:
    """The settings while the site starts: mistakes in them are for `manage.py check` to tell, so it must get there."""
    return conf.read(getattr(settings, conf.NAME, {}))[0]


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # Django's class is not generic at run time
    """Counts at most ``MOST`` rows: nobody reads page 21, and counting a large table takes seconds."""

    MOST = 1_000

    @cached_property
    def count(self) -> int:
        rows = self.object_list[: self.MOST]
        return rows.count() if isinstance(rows, QuerySet) else len(rows)


class ReadOnlyAdmin(_ModelAdmin[M]):
    """Rows are shown, never written: the flows are the only writers."""

    actions: Any = None
    change_list_template = "jobtrack/admin/change_list.html"
    list_per_page = 50
    paginator = BoundedPaginator
    show_facets = admin.ShowFacets.NEVER  # they count the whole table, once for each choice
    show_full_result_count = False
    sortable_by = ()  # few orders have an index: those are offered beside the list

    class Media:
        css: ClassVar = {"all": ["jobtrack/admin.css", "jobtrack/lists.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        # Decisions are made on these pages: they read the database that takes the writes.
        return super().get_queryset(request).using(conf.settings().database)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def list_order(self, request: HttpRequest, chosen: Mapping[str, str | None]) -> Order:
        """The order of the list.

        Args:
            chosen: what is chosen in each filter, by the filter's parameter.
        """
        return Order(name="newest", columns=(self.opts.pk.attname,), descending=True)

    def for_list(self, rows: QuerySet[M]) -> QuerySet[M]:
        """The rows with what a list shows of others, and without columns that it does not show."""
        return rows

    def at_hand(self, request: HttpRequest, rows: Sequence[M]) -> None:
        """Attach to the rows of one page what they need from elsewhere, in a fixed number of queries."""

    def nothing(self, request: HttpRequest) -> str:
        """What an empty list says."""
        return _("There is nothing yet.")

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only what the filters offer. Django allows every column of the model, with or without an index."""
        offered = self.get_list_filter(request) if request else self.list_filter
        return any(_takes(each, lookup) for each in offered)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> M | None:
        if storable(object_id) != object_id:
            return None  # no database has such a key, and some refuse to be asked for it
        return super().get_object(request, object_id, from_field)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if any(
            storable(text) != text for name in request.GET if name != SEARCH_VAR for text in request.GET.getlist(name)
        ):
            raise BadRequest("No row has such a text.")
        told = {"title": capfirst(self.opts.verbose_name_plural), "nothing": self.nothing(request)}
        return super().changelist_view(request, {**told, **(extra_context or {})})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


def shows(site: admin.AdminSite, model: type[Model], request: HttpRequest) -> bool:
    """Whether this person may open pages of ``model`` on this site; a link for anybody else would end in an error."""
    return site.is_registered(model) and site.get_model_admin(model).has_view_permission(request)


def filtered(model_admin: admin.ModelAdmin[Any], request: HttpRequest, url: str) -> str:
    """``url`` with the filters of the list that this person comes from; of the list itself, as they were there."""
    kept: dict[str, Any] = {"preserved_filters": model_admin.get_preserved_filters(request), "opts": model_admin.opts}
    return add_preserved_filters(kept, url)


def _takes(offered: Any, lookup: str) -> bool:
    """Whether an entry of ``list_filter`` uses this parameter."""
    if isinstance(offered, type):
        return getattr(offered, "parameter_name", None) == lookup
    field = offered if isinstance(offered, str) else offered[0]
    return lookup == field or lookup.startswith(f"{field}__")


class ChoiceFilter(admin.SimpleListFilter):
    """A filter with an equality on ``column``, which starts an index."""

    column = ""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.column: self.value()}) if self.value() else queryset


class ValueFilter(ChoiceFilter):
    """A filter that offers the values which are there, found by an index; and what is chosen, if it is not there."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        there = values_of(model_admin.model, self.column, conf.settings().database, held=self.among(request))
        chosen = {self.value()} - {None, *there}
        return [(value, self.label(value)) for value in (*there, *chosen) if value]

    def among(self, request: HttpRequest) -> str | None:
        """A column that must be null for a value to be offered; None: all values are."""
        return None

    def label(self, value: str) -> str:
        return value


class ProviderFilter(ValueFilter):
    title = lazy("provider")
    parameter_name = column = "provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An instant for people: exact in UTC, in their own zone, and how far away it is.

    It makes its own HTML because Django's templates silently turn instants into the current time zone.
    """

    at: datetime
    now: datetime

    @classmethod
    def of(cls, at: datetime | None, now: datetime) -> Moment | None:
        return None if at is None else cls(at=at, now=now)

    @property
    def exact(self) -> SafeString:
        """UTC, and the reader's zone if that is another."""
        utc = self.at.astimezone(UTC)
        time = format_html('<time datetime="{}">{}</time>', utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S} UTC")
        try:
            local = self.at.astimezone(get_current_timezone())
        except OverflowError:
            return time  # at the end of the calendar
        if not local.utcoffset():
            return time
        day = "%H:%M:%S %Z" if local.date() == utc.date() else "%Y-%m-%d %H:%M:%S %Z"
        return format_html('{} <span class="jobtrack-quiet">({})</span>', time, local.strftime(day))

    @property
    def html(self) -> SafeString:
        """As ``exact``, and how long ago or ahead."""
        return format_html('{} <span class="jobtrack-quiet">· {}</span>', self.exact, self.away)

    @property
    def cell(self) -> SafeString:
        """For lists: how long ago or ahead, and below it the exact instant."""
        return beside(self.away, self.exact)

    @property
    def away(self) -> str:
        """How long ago or ahead, in the reader's words."""
        if self.at > self.now:
            return _("in %s") % apart(self.now, self.at)
        return _("just now") if self.now - self.at < _MINUTE else _("%s ago") % apart(self.at, self.now)


def exact(at: datetime) -> SafeString:
    """An instant in UTC and in the reader's zone, without how far away it is."""
    return Moment(at=at, now=at).exact


def apart(earlier: datetime, later: datetime) -> str:
    """How far apart two instants are, in the reader's words; Django would call less than a minute 0 minutes."""
    return timesince(earlier, later) if later - earlier >= _MINUTE else _("less than a minute")


def beside(text: str, aside: str) -> SafeString:
    """Two facts in one cell of a list, on two lines; "" leaves the second out."""
    line = format_html(' <span class="jobtrack-aside">{}</span>', aside) if aside else ""
    return format_html("{}{}", text, line)


def shortened(text: str) -> SafeString:
    """An id that fits into a list: its middle gives way, its end stays; whole for screen readers and when copied."""
    head, tail = (text[:-_TAIL], text[-_TAIL:]) if len(text) > 2 * _TAIL else ("", text)
    return format_html('<code class="jobtrack-id" title="{}"><span>{}</span>{}</code>', text, head, tail)
