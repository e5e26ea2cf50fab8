"""The panels of the dashboard: each a picture and, beneath it, the same numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobtrack_django import figures, words
from jobtrack_django.dashboard import say
from jobtrack_django.dashboard.charts import Bar, Chart, bars, columns
from jobtrack_django.dashboard.history import BURNT, ENDS, History, Sums
from jobtrack_django.dashboard.now import Moving, Questions

_MOST_BARS = 12
"""Providers that are drawn; the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One question about the site, answered."""

    id: str  # unique on the page
    title: str
    says: str  # the answer in a sentence
    chart: Chart | None  # None: there is nothing to draw
    head: Sequence[str]
    rows: Sequence[Sequence[str]]  # the first cell names the row
    legend: Sequence[tuple[str, str]] = ()  # CSS class and meaning
    folded: bool = False  # the table is long: it is opened by who wants it
    cut: str = ""  # what the picture leaves out; "": nothing


def waiting(asked: Questions) -> Panel:
    title = _("Open questions by reason and age")
    rows = [
        (words.reason_title(one.reason), *map(say.number, one.ages), say.number(one.count), say.span(one.oldest))
        for one in asked.reasons
    ]
    drawn = [
        Bar(
            label=words.reason_title(one.reason),
            parts=[("plain", sum(one.ages[:3])), ("bad", sum(one.ages[3:]))],
            value=say.number(one.count),
        )
        for one in asked.reasons
    ]
    says = ngettext(
        "%(count)s question waits for a person.", "%(count)s questions wait for a person.", asked.total.count
    ) % {"count": say.bounded(asked.total)}
    return Panel(
        id="questions",
        title=title,
        says=says if rows else _("Nobody is asked anything."),
        chart=bars("questions", title, says, drawn) if drawn else None,
        head=[
            _("reason"),
            *(_("up to 1 hour"), _("1 to 8 hours"), _("8 to 24 hours"), _("1 to 7 days"), _("longer")),
            *(_("all"), _("oldest")),
        ],
        rows=rows,
        legend=[("plain", _("up to a day")), ("bad", _("longer than a day"))],
    )


def standing(states: Sequence[Moving]) -> Panel:
    title = _("Open operations by state")
    rows = [
        (
            words.state_label(each.state),
            say.bounded(each.count),
            *([say.NOTHING] * 2 if each.asks else map(say.number, (each.adrift, each.past))),
        )
        for each in states
    ]
    drawn = [
        Bar(
            label=words.state_label(each.state),
            parts=[("plain", max(each.count.count - each.adrift - each.past, 0)), ("bad", each.adrift + each.past)],
            value=say.bounded(each.count),
        )
        for each in states
    ]
    says = _("Operations that have not ended, in the state that they are in now.")
    return Panel(
        id="states",
        title=title,
        says=says,
        chart=bars("states", title, says, drawn),
        head=[_("state"), _("operations"), _("without a next step"), _("past their deadline")],
        rows=rows,
        legend=[("plain", _("on their way, or waiting for a person")), ("bad", _("stranded: must be 0"))],
    )


def ended_well(past: History) -> Panel:
    title = _("Ended well")
    named = [(name, sums) for name, sums in past.providers.items() if sums.ends]
    rows = [_ends(name, sums) for name, sums in named]
    if len(rows) > 1:
        rows.append(_ends(_("all"), past.total))
    drawn = [
        Bar(
            label=name,
            parts=[("well", sums.well / sums.ends), ("other", 1 - sums.well / sums.ends)],
            value=say.share(sums.well, sums.ends),
        )
        for name, sums in sorted(named, key=lambda one: -one[1].ends)[:_MOST_BARS]
    ]
    says = _("%(well)s of %(ends)s jobs that ended were successful (%(share)s).") % {
        "well": say.number(past.total.well),
        "ends": say.number(past.total.ends),
        "share": say.share(past.total.well, past.total.ends),
    }
    return Panel(
        id="ended",
        title=title,
        says=says if rows else _("No job has ended in this time."),
        chart=bars("ended", title, says, drawn, full=1) if drawn else None,
        head=[_("provider"), _("ended"), *map(words.state_label, ENDS), _("share that ended well")],
        rows=rows,
        legend=[("well", words.state_label("succeeded")), ("other", _("otherwise"))],
        cut=_cut(len(named)),
    )


def _cut(providers: int) -> str:
    if providers <= _MOST_BARS:
        return ""
    told = {"drawn": say.number(_MOST_BARS), "all": say.number(providers)}
    return _("Drawn: %(drawn)s of %(all)s providers. The table has all.") % told


def _ends(name: str, sums: Sums) -> tuple[str, ...]:
    each = (say.number(sums.ended(state)) for state in ENDS)
    return (name, say.number(sums.ends), *each, say.share(sums.well, sums.ends))


def each_day(past: History) -> Panel:
    title = _("Jobs that ended, by day")
    days = [(day, past.daily.get(day, Sums())) for day in past.days]
    drawn = [
        Bar(
            label=say.day(day),
            parts=[("well", sums.well), ("other", sums.ends - sums.well)],
            value=say.number(sums.ends),
            tip=f"{say.day(day)}: {say.number(sums.ends)}",
        )
        for day, sums in days
    ]
    says = _("From %(first)s to %(last)s, in UTC.") % {
        "first": say.day(past.days[0]),
        "last": say.day(past.days[-1]),
    }
    return Panel(
        id="days",
        title=title,
        says=says,
        chart=columns("days", title, says, drawn),
        head=[_("day"), _("ended"), words.state_label("succeeded"), _("share that ended well")],
        rows=[
            (say.day(day), say.number(sums.ends), say.number(sums.well), say.share(sums.well, sums.ends))
            for day, sums in reversed(days)
            if sums.ends
        ],
        legend=[("well", words.state_label("succeeded")), ("other", _("otherwise"))],
        folded=True,
    )


def lag(past: History) -> Panel:
    title = _("How soon the end of a job is seen")
    total = past.total
    seen = total.counts.get(figures.LAG, 0)
    drawn, before, low = [], 0, 0
    for bound in figures.BUCKETS:
        within = total.counts.get(f"{figures.LAG}:{bound}", 0)
        label = _("%(low)s to %(high)s") % {"low": say.seconds(low), "high": say.seconds(bound)}
        drawn.append(Bar(label=label, parts=[("plain", within - before)], value=say.number(within - before)))
        before, low = within, bound
    drawn.append(Bar(label=_("longer"), parts=[("bad", seen - before)], value=say.number(seen - before)))
    says = _("Half were seen within %(half)s, 95 of 100 within %(most)s after the look before.") % {
        "half": _within(total, 0.5),
        "most": _within(total, 0.95),
    }
    return Panel(
        id="lag",
        title=title,
        says=says if seen else _("No end was seen in this time."),
        chart=bars("lag", title, says, drawn) if seen else None,
        head=[_("provider"), _("ends seen"), _("mean"), _("half within"), _("95 of 100 within"), _("longest")],
        rows=[
            (
                name,
                say.number(sums.counts[figures.LAG]),
                say.seconds(sums.lag_mean_s),
                _within(sums, 0.5),
                _within(sums, 0.95),
                say.seconds(sums.lag_most_s),
            )
            for name, sums in past.providers.items()
            if sums.counts.get(figures.LAG)
        ],
    )


def _within(sums: Sums, share: float) -> str:
    """A bound that holds; the longest itself if that is less."""
    bounds = (sums.lag_within_s(share), sums.lag_most_s)
    return say.seconds(min((bound for bound in bounds if bound is not None), default=None))


def requests(past: History) -> Panel:
    title = _("Requests per job")
    named = [(name, sums, sums.per_job(figures.REQUESTS)) for name, sums in past.providers.items()]
    told = [(name, sums, mean) for name, sums, mean in named if mean is not None]
    says = _("Status requests that a job took until it ended, on average: %(mean)s.") % {
        "mean": say.mean(past.total.per_job(figures.REQUESTS))
    }
    drawn = [
        Bar(label=name, parts=[("plain", mean)], value=say.mean(mean))
        for name, _sums, mean in sorted(told, key=lambda one: -one[2])[:_MOST_BARS]
    ]
    return Panel(
        id="requests",
        title=title,
        says=says if told else _("No job has ended in this time."),
        chart=bars("requests", title, says, drawn) if drawn else None,
        head=[_("provider"), _("jobs"), _("status requests per job"), _("submissions per job")],
        rows=[
            (
                name,
                say.number(sums.counts[figures.REQUESTS]),
                say.mean(mean),
                say.mean(sums.per_job(figures.SUBMISSIONS)),
            )
            for name, sums, mean in told
        ],
        cut=_cut(len(told)),
    )


def obeyed(past: History) -> Panel:
    title = _("The providers' wishes when to be asked")
    days = [(day, past.daily.get(day, Sums())) for day in past.days]
    drawn = [
        Bar(
            label=say.day(day),
            parts=[("plain", sums.looks - sums.early), ("bad", sums.early)],
            value=say.number(sums.looks),
            tip=f"{say.day(day)}: {early_of(sums)}",
        )
        for day, sums in days
    ]
    says = early_of(past.total)
    return Panel(
        id="guidance",
        title=title,
        says=says,
        chart=columns("guidance", title, says, drawn) if past.total.looks else None,
        head=[_("provider"), _("looks"), _("too early")],
        rows=[
            (name, say.number(sums.looks), say.number(sums.early))
            for name, sums in past.providers.items()
            if sums.looks
        ],
        legend=[("plain", _("when it was allowed")), ("bad", _("too early"))],
    )


def early_of(sums: Sums) -> str:
    """Looks that came before the provider allowed them; there must be none (INV-04)."""
    told = {"early": say.number(sums.early), "looks": say.number(sums.looks)}
    return (
        ngettext("%(early)s of %(looks)s look came early", "%(early)s of %(looks)s looks came early", sums.looks) % told
    )


def burnt(past: History) -> Panel:
    title = _("Budgets used up")
    reasons = [(reason, past.total.burnt(reason)) for reason in BURNT]
    count = sum(number for _reason, number in reasons)
    says = ngettext(
        "Once a job used up what its table grants, and a person was asked.",
        "%(count)s times a job used up what its table grants, and a person was asked.",
        count,
    ) % {"count": say.number(count)}
    drawn = [
        Bar(label=words.reason_title(reason), parts=[("bad", number)], value=say.number(number))
        for reason, number in reasons
    ]
    return Panel(
        id="budgets",
        title=title,
        says=says if count else _("No job has used up its budgets in this time."),
        chart=bars("budgets", title, says, drawn) if count else None,
        head=[_("provider"), *map(words.reason_title, BURNT)],
        rows=[
            (name, *(say.number(sums.burnt(reason)) for reason in BURNT))
            for name, sums in past.providers.items()
            if any(sums.burnt(reason) for reason in BURNT)
        ],
    )
