"""The caller's objects that a page of operations belongs to: one query for each kind of object, wherever they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from jobtrack.core.text import clean
from jobtrack_django.models import Operation

_LONGEST = 80
"""Most characters of a name in a list."""

_ATTACHED = "jobtrack_subject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a list shows of the caller's object."""

    kind: str  # the name of its model
    name: str  # its own name if this person may see it, else its key
    url: str = ""  # its page in this admin; "": it has none, or this person may not see it
    gone: bool = False  # there is no such object, as far as this person can see

    @property
    def cell(self) -> SafeString:
        """Name and kind on two lines, as a link if there is a page."""
        name = format_html('<a href="{}">{}</a>', self.url, self.name) if self.url else self.name
        kind = _("%(kind)s, not found") % {"kind": self.kind} if self.gone else self.kind
        return format_html('{} <span class="jobtrack-aside">{}</span>', name, kind)


def subjects(site: admin.AdminSite, request: HttpRequest, operations: Iterable[Operation]) -> Mapping[str, Subject]:
    """The objects of these operations, by the operation's id; an operation without one is left out."""
    wanted: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for operation in operations:
        if operation.content_type_id is not None:
            wanted[operation.content_type_id][operation.object_id].append(operation.pk)
    found: dict[str, Subject] = {}
    for kind, keys in wanted.items():
        told = _of_one_kind(site, request, kind, list(keys))
        found |= {operation: told[key] for key, operations in keys.items() for operation in operations}
    return found


def _of_one_kind(site: admin.AdminSite, request: HttpRequest, kind: int, keys: list[str]) -> dict[str, Subject]:
    model = _model(kind)
    if model is None:
        return {key: Subject(kind=_("unknown kind"), name=clean(key, _LONGEST), gone=True) for key in keys}
    name = str(capfirst(model._meta.verbose_name))  # noqa: SLF001 - documented by Django
    if not site.is_registered(model) or not site.get_model_admin(model).has_view_or_change_permission(request):
        return {key: Subject(kind=name, name=clean(key, _LONGEST)) for key in keys}
    there = _objects(site.get_model_admin(model), request, model, keys)
    return {key: _subject(site, request, name, key, there.get(key)) for key in keys}


def _model(kind: int) -> type[Model] | None:
    """The model of a number that operations keep; None: it is not of this site any more."""
    try:
        return ContentType.objects.get_for_id(kind).model_class()
    except ContentType.DoesNotExist:
        return None


def _objects(model_admin: Any, request: HttpRequest, model: type[Model], keys: list[str]) -> dict[str, Model]:
    """Those that this person's list of them has, by the key as the operation keeps it."""
    pk = model._meta.pk  # noqa: SLF001 - documented by Django
    values: dict[Any, str] = {}
    for key in keys:
        try:
            value = pk.to_python(key)
            getattr(pk, "target_field", pk).run_validators(value)
        except (ValidationError, ValueError, TypeError, OverflowError):
            continue  # the model has another kind of key now
        values[value] = key
    rows = model_admin.get_queryset(request).order_by().filter(pk__in=list(values)) if values else ()
    return {values[row.pk]: row for row in rows if row.pk in values}


def _subject(site: admin.AdminSite, request: HttpRequest, kind: str, key: str, row: Model | None) -> Subject:
    if row is None:
        return Subject(kind=kind, name=clean(key, _LONGEST), gone=True)
    if not site.get_model_admin(type(row)).has_view_or_change_permission(request, row):
        return Subject(kind=kind, name=clean(key, _LONGEST))
    meta = row._meta  # noqa: SLF001 - documented by Django
    try:
        page = f"admin:{meta.app_label}_{meta.model_name}_change"
        url = reverse(page, args=[quote(row.pk)], current_app=site.name)
    except NoReverseMatch:
        url = ""
    return Subject(kind=kind, name=clean(str(row), _LONGEST) or key, url=url)


def attach(site: admin.AdminSite, request: HttpRequest, operations: Iterable[Operation]) -> None:
    """Have the caller's objects of one page at hand, for ``cell``."""
    rows = list(operations)
    found = subjects(site, request, rows)
    for operation in rows:
        setattr(operation, _ATTACHED, found.get(operation.pk))


def cell(operation: Operation) -> SafeString | None:
    """What a list shows of an operation that ``attach`` has found; None: it belongs to no object."""
    subject: Subject | None = getattr(operation, _ATTACHED, None)
    return subject.cell if subject else None
