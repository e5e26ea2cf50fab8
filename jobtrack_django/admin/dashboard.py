"""The dashboard as a page of the admin. It reads, in a fixed number of bounded queries, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from jobtrack.core.escalation import Risk
from jobtrack.core.gate import HoldReason
from jobtrack_django import conf
from jobtrack_django.admin.base import Moment, ReadOnlyAdmin, shows
from jobtrack_django.dashboard import now as read
from jobtrack_django.dashboard import panels, say
from jobtrack_django.dashboard.health import SWEEPER, ended_or_asked
from jobtrack_django.dashboard.history import WINDOWS, History, history
from jobtrack_django.models import AccountGate, Dashboard, Escalation, Notice, Operation

REFRESH_S = 60
"""The page loads itself again after so long, if it is asked to by ``?refresh=60``."""

_OLD = timedelta(hours=1)
"""Figures that are older are told as a trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One number that is read at a glance."""

    title: str
    value: str | SafeString
    note: str | SafeString = ""
    bad: bool = False  # somebody should look at it
    url: str = ""  # where to look; "": nowhere, or this person may not


class DashboardAdmin(ReadOnlyAdmin[Dashboard]):
    """Stands in the list of pages; whoever may see operations may see it."""

    class Media:
        css: ClassVar = {"all": ["jobtrack/admin.css", "jobtrack/dashboard.css"]}

    def has_view_permission(self, request: HttpRequest, obj: Dashboard | None = None) -> bool:
        return bool(request.user.is_active and getattr(request.user, "has_perm", bool)("jobtrack.view_operation"))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def get_urls(self) -> list[URLPattern]:
        """One page, under the name by which the admin finds lists and under a plain one."""
        page = self.admin_site.admin_view(require_safe(self.page))
        return [
            path("", page, name="jobtrack_dashboard_changelist"),
            path("", page, name="jobtrack_dashboard"),
        ]

    def page(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        using = conf.settings().database
        stands, days = read.standing(using), _chosen(request)
        now, past = stands.at, history(using, stands.at, days)
        refreshes = request.GET.get("refresh") == str(REFRESH_S)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Dashboard"),
            "opts": self.opts,
            "media": self.media,
            "tiles": list(self._tiles(request, stands, past)),
            "panels": [
                panels.waiting(stands.questions),
                panels.standing(stands.states),
                panels.ended_well(past),
                panels.each_day(past),
                panels.lag(past),
                panels.requests(past),
                panels.obeyed(past),
                panels.burnt(past),
            ],
            "gates": [_gate(gate, now) for gate in stands.gates],
            "beats": [(beat, _kind(beat.kind), Moment.of(beat.seen_at, now)) for beat in stands.beats],
            "windows": [(each, each == days) for each in WINDOWS],
            "days": days,
            "refreshes": refreshes,
            "refresh_s": REFRESH_S,
            "now": Moment.of(now, now),
            "counted": Moment.of(past.rolled_at, now),
        }
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "jobtrack/admin/dashboard.html", context)
        if refreshes:
            response["Refresh"] = str(REFRESH_S)
        return response

    def _tiles(self, request: HttpRequest, stands: read.Standing, past: History) -> Iterator[Tile]:
        asked, due = stands.questions, stands.overdue
        high = asked.risks.get(Risk.HIGH, 0)
        yield Tile(
            title=_("Needs decision"),
            value=say.bounded(asked.total),
            note=_risks(asked),
            bad=high > 0,
            url=self._link(request, Escalation),
        )
        yield Tile(
            title=_("Due, and nobody looks"),
            value=say.bounded(due.count),
            note=_("the first one for %s") % say.span(due.lag) if due.count.count else "",
            bad=due.late,
        )
        yield self._unseen(request, stands)
        yield from _stranded(stands, past)
        yield Tile(
            title=_("Guidance obeyed"),
            value=panels.early_of(past.total),
            note=_("must be 0"),
            bad=past.total.early > 0,
        )
        yield Tile(
            title=_("Over budget"),
            value=say.number(past.total.over),
            note=_("must be 0"),
            bad=past.total.over > 0,
        )
        yield _sweeping(stands)
        yield self._notices(request, stands)
        yield _counted(past, stands.at)

    def _unseen(self, request: HttpRequest, stands: read.Standing) -> Tile:
        first = stands.unseen
        if first is None:
            return Tile(title=_("Oldest look"), value=say.NOTHING, note=_("nothing runs"))
        url = self._link(request, Operation, first.operation_id)
        note = _("of the operations that began first") if first.partial else _("of all that run")
        return Tile(title=_("Oldest look"), value=_("%s ago") % say.span(stands.at - first.since), note=note, url=url)

    def _notices(self, request: HttpRequest, stands: read.Standing) -> Tile:
        failed, late = stands.failed_notices, stands.late_notices
        return Tile(
            title=_("Notices that failed"),
            value=say.bounded(failed),
            note=_("%s more wait for too long") % say.bounded(late) if late.count else "",
            bad=bool(failed.count or late.count),
            url=self._link(request, Notice),
        )

    def _link(self, request: HttpRequest, model: type[Model], pk: str | None = None) -> str:
        """The list of ``model``, or one row; "" if this person may not see it."""
        if not shows(self.admin_site, model, request):
            return ""
        page, arguments = ("changelist", []) if pk is None else ("change", [quote(pk)])
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}"  # noqa: SLF001 - documented by Django
        return reverse(name, args=arguments, current_app=self.admin_site.name)


def _chosen(request: HttpRequest) -> int:
    """The days that the address asks for; the shortest of those offered if it asks for others."""
    wanted = request.GET.get("days", "")
    return next((days for days in WINDOWS if str(days) == wanted), WINDOWS[0])


def _risks(asked: read.Questions) -> str:
    """How many of each risk, the highest first."""
    told = {
        "high": say.number(asked.risks.get(Risk.HIGH, 0)),
        "medium": say.number(asked.risks.get(Risk.MEDIUM, 0)),
        "low": say.number(asked.risks.get(Risk.LOW, 0)),
    }
    return _("risk: %(high)s high, %(medium)s medium, %(low)s low") % told


def _stranded(stands: read.Standing, past: History) -> Iterator[Tile]:
    """Whether every operation came to an end or to a person, or is on its way there (R-METRIC, INV-01)."""
    yield Tile(
        title=_("Without a next step"),
        value=say.number(stands.adrift),
        note=_("must be 0") if stands.all_read else _first(_("must be 0; the %s oldest in each state were read")),
        bad=stands.adrift > 0,
    )
    arrived, should = ended_or_asked(stands, past)
    if stands.past:
        note = ngettext(
            "%(count)s is past its deadline, and nobody was asked",
            "%(count)s are past their deadline, and nobody was asked",
            stands.past,
        ) % {"count": say.number(stands.past)}
    elif stands.all_read:
        note = _("must be all")
    else:
        note = _first(_("must be all; the %s oldest in each state were read"))
    yield Tile(title=_("Ended or asked"), value=say.share(arrived, should), note=note, bad=arrived < should)


def _first(note: str) -> str:
    """How far was read."""
    return note % say.number(read.MOST)


def _sweeping(stands: read.Standing) -> Tile:
    beats = stands.beats
    last = next((beat for beat in beats if beat.kind == SWEEPER), None)
    if last is None:
        return Tile(title=_("Last swept"), value=_("never"), note=_("no sweeper was ever heard of"), bad=True)
    alive = sum(not beat.silent for beat in beats)
    note = ngettext("%(count)s process is alive", "%(count)s processes are alive", alive) % {"count": alive}
    return Tile(
        title=_("Last swept"), value=_("%s ago") % say.span(stands.at - last.seen_at), note=note, bad=last.silent
    )


def _counted(past: History, now: datetime) -> Tile:
    title = _("Figures as of")
    if past.rolled_at is None:
        return Tile(title=title, value=_("never"), note=_("today was not counted yet"), bad=True)
    age = now - past.rolled_at
    return Tile(title=title, value=_("%s ago") % say.span(age), bad=age > _OLD)


def _gate(gate: AccountGate, now: datetime) -> tuple[AccountGate, str, Moment | None]:
    held: Mapping[str, str] = {
        HoldReason.GUIDANCE: _("the provider asked to wait; it opens by itself"),
        HoldReason.AUTH: _("access was denied; a person has to repair it"),
        HoldReason.BREAKER: _("the account does not answer; one request at a time tests it"),
    }
    return gate, held.get(gate.reason, gate.reason), Moment.of(gate.held_until, now)


def _kind(kind: str) -> str:
    return {"sweeper": _("sweeper"), "worker": _("worker")}.get(kind, kind)
