"""Pages of a list by key: each begins behind a row, so page 2 and page 20,000 cost the same.

An offset reads all that it skips, and numbered pages need a count of the whole table. Here are "next" and "previous".
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core.exceptions import ValidationError
from django.db import connections
from django.db.models import BooleanField, F, Func, Model, OrderBy, Q, QuerySet, Value
from django.db.models.lookups import GreaterThan, LessThan
from django.http import HttpRequest

from jobtrack_django.storable import storable

_LONGEST = 4000
"""Most characters of a cursor: an id of 200 characters fits, whatever script it is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A total order of the rows, one that an index has."""

    name: str  # stands in cursors, so that a cursor of another order is not taken for one of this
    columns: tuple[str, ...]  # names of columns, never null; the last one is unique
    descending: bool = False  # all of them
    held: tuple[str, ...] = ()  # columns of the index, in front, that a filter holds at one value

    def by(self, using: str, *, back: bool = False) -> list[OrderBy]:
        """For ``order_by`` in the database ``using``.

        PostgreSQL finds the index only if the held columns are named; MySQL and MariaDB sort all rows if they are.
        """
        down = self.descending != back
        held = () if connections[using].vendor == "mysql" else self.held
        return [F(name).desc() if down else F(name).asc() for name in (*held, *self.columns)]

    def to_count(self, using: str) -> list[OrderBy]:
        """For rows that are counted: without what tells equal rows apart, so that the index alone is read.

        MySQL and MariaDB read an index alone anyway; told an order, they may sort all rows by it to count some.
        """
        if connections[using].vendor == "mysql":
            return [OrderBy(Func(template="NULL", output_field=BooleanField()))]  # they know it as none
        return self.by(using)[:-1] or self.by(using)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where a page begins: behind a row or, going back, before it."""

    back: bool
    values: tuple[Any, ...]  # the row's, of the order's columns

    @classmethod
    def at(cls, order: Order, row: Model, *, back: bool) -> str:
        """The text that stands in a link."""
        fields = [row._meta.get_field(name) for name in order.columns]  # noqa: SLF001 - documented by Django
        told = [order.name, back, *(field.value_to_string(row) for field in fields)]  # type: ignore[union-attr]
        return urlsafe_b64encode(json.dumps(told, ensure_ascii=False).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str, order: Order, model: type[Model]) -> Cursor | None:
        """None: not a cursor of this order. People cut links, and others make them up."""
        try:
            padding = "=" * (-len(text) % 4)
            told = json.loads(urlsafe_b64decode(text[:_LONGEST] + padding))
            name, back, *values = told
            if (name, type(back), len(values)) != (order.name, bool, len(order.columns)):
                return None
            pairs = zip(order.columns, values, strict=True)
            return cls(back=back, values=tuple(_value(model, column, value) for column, value in pairs))
        except (ValueError, TypeError, OverflowError, RecursionError, ValidationError):
            return None


def _field(model: type[Model], column: str) -> Any:
    """What a column holds; of a key of another table, what that one holds."""
    field = model._meta.get_field(column)  # noqa: SLF001 - documented by Django
    return getattr(field, "target_field", field)


def _value(model: type[Model], column: str, text: object) -> Any:
    """The value of a column.

    Raises:
        ValueError: a database would not take it.
        ValidationError: it is no value of this column.
    """
    if not isinstance(text, str) or storable(text) != text:
        raise ValueError
    value = _field(model, column).clean(text, None)
    if value is None or (isinstance(value, datetime) and (value.tzinfo is None or not 1 < value.year < 9999)):
        raise ValueError
    return value


class _Row(Func):
    """``(a, b)``. PostgreSQL and SQLite compare rows by going straight to that place of an index."""

    template = "(%(expressions)s)"
    output_field = BooleanField()  # Django asks for one; nothing is made of it


def beyond(rows: QuerySet[Any], order: Order, cursor: Cursor) -> QuerySet[Any]:
    """The rows on the far side of a cursor."""
    down = order.descending != cursor.back
    if connections[rows.db].vendor == "mysql":
        return rows.filter(_ranges(order.columns, cursor.values, "lt" if down else "gt"))
    named = zip(order.columns, cursor.values, strict=True)
    values = [Value(value, output_field=_field(rows.model, name)) for name, value in named]
    compare = LessThan if down else GreaterThan
    return rows.filter(compare(_Row(*map(F, order.columns)), _Row(*values)))


def _ranges(columns: Sequence[str], values: Sequence[Any], sign: str) -> Q:
    """The same for MySQL and MariaDB, which read the whole index for a comparison of rows, but know ranges."""
    column, value = columns[0], values[0]
    further = Q(**{f"{column}__{sign}": value})
    return further | Q(**{column: value}) & _ranges(columns[1:], values[1:], sign) if columns[1:] else further


if TYPE_CHECKING:
    from jobtrack_django.admin.base import ReadOnlyAdmin


class KeysetChangeList(ChangeList):
    """Django's list with pages by key. Filters, search and actions see the same rows as ever."""

    keyset = True
    model_admin: ReadOnlyAdmin[Any]
    order: Order
    first_link = previous_link = next_link = ""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        simple = (spec for spec in self.filter_specs if isinstance(spec, SimpleListFilter))
        chosen = {str(spec.parameter_name): spec.value() for spec in simple}
        self.order = self.model_admin.list_order(request, chosen)
        return self.order.by(queryset.db)

    def get_ordering_field_columns(self) -> Any:
        return {}  # no column sorts: few orders have an index

    def get_results(self, request: HttpRequest) -> None:
        """One page, and whether there are others; rows are counted up to a limit."""
        cursor = Cursor.read(request.GET.get(PAGE_VAR, ""), self.order, self.model)
        rows = self._read(cursor)
        if cursor and len(rows) < (self.list_per_page if cursor.back else 1):
            # Nothing is left there, or less than a page before it: this is the beginning.
            cursor, rows = None, self._read(None)
        more = len(rows) > self.list_per_page
        rows = rows[: self.list_per_page]
        back = cursor is not None and cursor.back
        if back:
            rows.reverse()
        self.model_admin.at_hand(request, rows)
        self._link(rows, before=more if back else cursor is not None, behind=back or more)
        self.result_list = rows
        self._count(request)

    def _read(self, cursor: Cursor | None) -> list[Any]:
        """The rows from a cursor on, one more than a page has; going back, the nearest comes first."""
        rows = self.model_admin.for_list(self.queryset)
        if cursor is not None:
            rows = beyond(rows, self.order, cursor).order_by(*self.order.by(rows.db, back=cursor.back))
        return list(rows[: self.list_per_page + 1])

    def _link(self, rows: Sequence[Any], *, before: bool, behind: bool) -> None:
        if before:
            self.first_link = self.get_query_string()
            self.previous_link = self.get_query_string({PAGE_VAR: Cursor.at(self.order, rows[0], back=True)})
        if behind:
            self.next_link = self.get_query_string({PAGE_VAR: Cursor.at(self.order, rows[-1], back=False)})

    def _count(self, request: HttpRequest) -> None:
        rows = self.queryset.order_by(*self.order.to_count(self.queryset.db))
        paginator = self.model_admin.get_paginator(request, rows.values("pk"), self.list_per_page)
        self.paginator = paginator
        self.result_count = paginator.count
        self.at_least = self.result_count >= getattr(paginator, "MOST", self.result_count + 1)
        self.show_full_result_count = False
        # "12 results (Show all)" beside the search box is for searches.
        self.full_result_count = None if self.query else self.result_count
        self.show_admin_actions = bool(self.result_list)
        self.can_show_all = self.multi_page = False  # there are no numbered pages
