"""The list of apps: "Needs decision" comes first of jobtrack's, with how many questions are open.

A site's own list of apps is wrapped, whatever it does; only jobtrack's entry in it is changed.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib import admin
from django.db import Error, connections, transaction
from django.http import HttpRequest
from django.utils.connection import ConnectionDoesNotExist
from django.utils.functional import lazy
from django.utils.translation import gettext as _

from jobtrack.errors import ConfigurationError
from jobtrack_django import conf
from jobtrack_django.admin.escalations import OLDEST
from jobtrack_django.models import Escalation

_MOST = 99
"""Questions are counted so far: more are as many as one more."""

_KEPT = "_jobtrack_open_questions"


def put_first(site: admin.AdminSite) -> None:
    """Have ``site`` show what needs a decision on top of jobtrack's list. Done twice, it is done once."""
    inner = site.get_app_list
    if getattr(inner, _KEPT, False):
        return

    @wraps(inner)
    def get_app_list(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        apps = inner(request, *args, **kwargs)
        for app in apps:
            if app.get("app_label") == Escalation._meta.app_label:  # noqa: SLF001 - documented by Django
                app["models"] = _sorted(request, app["models"])
        return apps

    setattr(get_app_list, _KEPT, True)
    site.get_app_list = get_app_list  # type: ignore[method-assign]  # Django has no other place for it


def _sorted(request: HttpRequest, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = [entry for entry in entries if entry.get("model") is Escalation]
    for entry in first:
        if entry.get("perms", {}).get("view"):
            entry["name"] = _counted(request, str(entry["name"]))
    return [*first, *(entry for entry in entries if entry.get("model") is not Escalation)]


def _label(request: HttpRequest, name: str) -> str:
    """The name with the number; the number is asked for once a request."""
    if not hasattr(request, _KEPT):
        setattr(request, _KEPT, open_questions())
    count: int | None = getattr(request, _KEPT)
    if not count:
        return name
    number = f"{_MOST}+" if count > _MOST else str(count)
    return _("%(name)s (%(number)s)") % {"name": name, "number": number}


_counted = lazy(_label, str)
"""Nothing is counted unless a page shows it: not every page of an admin has the list of apps."""


def open_questions() -> int | None:
    """How many questions are open, at most 100; None: not known, since there is no such table yet or no database."""
    try:
        using = conf.settings().database
        connection = connections[using]
        rows = Escalation.objects.using(using).open().order_by(*OLDEST.to_count(using)).values("pk")[: _MOST + 1]
        if not connection.in_atomic_block:
            return rows.count()
        with transaction.atomic(using=using):  # an error would end the transaction of the page
            return rows.count()
    except (Error, ConnectionDoesNotExist, ConfigurationError):
        return None
