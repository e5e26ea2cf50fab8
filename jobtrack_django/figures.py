"""Figures of each day, so that no page has to count operations (R-METRIC).

``roll_up`` is called while chores are run, in any number of processes. A day's figures are counted from its rows again
and only ever rise: what was pruned meanwhile stays told. Requests are counted once each, from the audit entries, behind
a bookmark. Days are days in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import takewhile
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, F, Max, Q, QuerySet, Sum

from jobtrack.core.early import came_early
from jobtrack_django.models import AuditEntry, DailyFigure, Escalation, Operation
from jobtrack_django.statements import retried
from jobtrack_django.store import DjangoStore

KEPT_DAYS: Final = 90
"""So many finished days are counted after the fact."""

STEPS: Final = 8
"""Most days in one call."""

FRESH: Final = timedelta(minutes=5)
"""Today is counted again after so long."""

HOURLY: Final = timedelta(hours=1)
SETTLED: Final = timedelta(hours=6)
"""A finished day is counted again, hourly, until so long after its end."""

BATCH: Final = 1000
BATCHES: Final = 10
"""Audit entries read at once, and how often in one call."""

BEHIND: Final = timedelta(minutes=2)
"""Audit entries younger than this are left for later: one with a smaller id may not be committed yet."""

BUCKETS: Final = (1, 5, 15, 60, 300, 900, 3600, 21600, 86400)
"""Seconds of detection lag that are told apart: how many ends were seen within each."""

ENDED, ASKED, STARTED, LAG, LAG_MOST = "ended", "asked", "started", "lag", "lag_most"
REQUESTS, SUBMISSIONS, OVER, LOOKS, EARLY = "requests", "submissions", "over", "looks", "early"
"""Measures; some are followed by ``:`` and a state, a reason or seconds."""

ROLLED, READ = "rolled", "read"
"""Marks among the figures: the day was counted; the audit was read up to the entry ``count``."""

_OUTSET: Final = date(1970, 1, 1)  # the day of the bookmark

Found = dict[tuple[str, str], tuple[int, float | None]]
"""Count and total by provider and measure."""


def figures(using: str) -> QuerySet[DailyFigure]:
    """All figures of providers, without the marks."""
    return DailyFigure.objects.using(using).exclude(provider="")


def due(using: str) -> bool:
    """Whether there is something to count. Two reads of a few rows."""
    now = DjangoStore(using).now()
    if _days_due(using, now):
        return True
    mark = _mark(using)
    return mark is None or now - mark.measured_at > BEHIND + timedelta(minutes=1)


def roll_up(using: str) -> int:
    """Count what is due, some days and some thousand audit entries at most.

    Returns:
        How many days and audit entries were counted.
    """
    now = DjangoStore(using).now()
    days = _days_due(using, now)[:STEPS]
    for day in days:
        retried(using, partial(_keep, using, day, _found(using, day), now))
    return len(days) + _read_audit(using, now)


def rolled_at(using: str, day: date) -> datetime | None:
    """When the figures of ``day`` were counted last."""
    return _marks(using, [day]).get(day)


# --- days -------------------------------------------------------------------------------------------


def utc_day(at: datetime) -> date:
    """The day of an instant."""
    return at.astimezone(UTC).date()


def midnight(day: date) -> datetime:
    """The first instant of ``day``."""
    return datetime.combine(day, time(), tzinfo=UTC)


def _days_due(using: str, now: datetime) -> list[date]:
    """The newest first, since that is what people look at."""
    today = utc_day(now)
    days = [today - timedelta(days=back) for back in range(KEPT_DAYS + 1)]
    counted = _marks(using, days)
    return [day for day in days if _is_due(day, counted.get(day), now)]


def _is_due(day: date, counted: datetime | None, now: datetime) -> bool:
    if counted is None:
        return True
    end = midnight(day) + timedelta(days=1)
    if counted >= end + SETTLED:
        return False
    return now - counted >= (FRESH if counted < end else HOURLY)


def _marks(using: str, days: Iterable[date]) -> dict[date, datetime]:
    marks = DailyFigure.objects.using(using).filter(day__in=list(days), provider="", measure=ROLLED)
    return dict(marks.values_list("day", "measured_at"))


def _found(using: str, day: date) -> Found:
    start = midnight(day)
    end = start + timedelta(days=1)
    operations = Operation.objects.using(using).order_by()
    ended = operations.filter(ended_at__gte=start, ended_at__lt=end)
    started = operations.filter(created_at__gte=start, created_at__lt=end).values("provider").annotate(n=Count("pk"))
    opened = Escalation.objects.using(using).order_by().filter(opened_at__gte=start, opened_at__lt=end)
    asked = opened.values("operation__provider", "reason").annotate(n=Count("pk"))
    found: Found = {(row["provider"], STARTED): (row["n"], None) for row in started}
    found |= {(row["operation__provider"], f"{ASKED}:{row['reason']}"): (row["n"], None) for row in asked}
    found.update(_ends(ended))
    found.update(_lags(ended))
    return found


def _ends(ended: QuerySet[Operation]) -> Iterator[tuple[tuple[str, str], tuple[int, float | None]]]:
    over = (
        Q(spent_status_requests__gt=F("limit_status_requests"))
        | Q(spent_submissions__gt=F("limit_submissions"))
        | Q(spent_lookups__gt=F("limit_lookups"))
    )
    spent: dict[str, list[int]] = {}
    by_state = ended.values("provider", "state").annotate(
        n=Count("pk"),
        requests=Sum("spent_status_requests"),
        submissions=Sum("spent_submissions"),
        over=Count("pk", filter=over),
    )
    for row in by_state:
        yield (row["provider"], f"{ENDED}:{row['state']}"), (row["n"], None)
        known = spent.setdefault(row["provider"], [0, 0, 0, 0])
        new = (row["n"], row["requests"], row["submissions"], row["over"])
        spent[row["provider"]] = [old + more for old, more in zip(known, new, strict=True)]
    for provider, (count, requests, submissions, beyond) in spent.items():
        yield (provider, REQUESTS), (count, float(requests))
        yield (provider, SUBMISSIONS), (count, float(submissions))
        yield (provider, OVER), (beyond, None)


def _lags(ended: QuerySet[Operation]) -> Iterator[tuple[tuple[str, str], tuple[int, float | None]]]:
    within = {f"within_{bound}": Count("pk", filter=Q(seen_within__lte=timedelta(seconds=bound))) for bound in BUCKETS}
    seen: QuerySet[Any, Any] = ended.filter(seen_within__isnull=False).values("provider")
    for row in seen.annotate(n=Count("pk"), total=Sum("seen_within"), most=Max("seen_within"), **within):
        provider = row["provider"]
        yield (provider, LAG), (row["n"], row["total"].total_seconds())
        yield (provider, LAG_MOST), (row["n"], row["most"].total_seconds())
        for bound in BUCKETS:
            yield (provider, f"{LAG}:{bound}"), (row[f"within_{bound}"], None)


def _keep(using: str, day: date, found: Found, now: datetime) -> None:
    """Raise what is stored to what was found. Each statement stands alone, so two processes cannot block each other."""
    rows = DailyFigure.objects.using(using)
    known = rows.filter(day=day).values_list("provider", "measure", "count", "total")
    stored = {(provider, measure): (count, total) for provider, measure, count, total in known}
    new = [
        DailyFigure(day=day, provider=key[0], measure=key[1], count=count, total=total, measured_at=now)
        for key, (count, total) in sorted(found.items())
        if key not in stored and count
    ]
    rows.bulk_create(new, ignore_conflicts=True)
    for (provider, measure), (count, total) in sorted(found.items()):
        if stored.get((provider, measure), (count, total)) != (count, total):
            # Rows that were pruned are missing from what was found: a figure never falls.
            lower = rows.filter(day=day, provider=provider, measure=measure, count__lte=count)
            lower.update(count=count, total=total, measured_at=now)
    rows.bulk_create([DailyFigure(day=day, provider="", measure=ROLLED, measured_at=now)], ignore_conflicts=True)
    rows.filter(day=day, provider="", measure=ROLLED, measured_at__lt=now).update(measured_at=now)


# --- requests, from the audit -----------------------------------------------------------------------


def _mark(using: str) -> DailyFigure | None:
    return DailyFigure.objects.using(using).filter(day=_OUTSET, provider="", measure=READ).first()


def _read_audit(using: str, now: datetime) -> int:
    count = 0
    for _ in range(BATCHES):
        read, more = _read_batch(using, now)
        count += read
        if not more:
            break
    return count


def _read_batch(using: str, now: datetime) -> tuple[int, bool]:
    """Judge the entries behind the bookmark; how many, and whether there are more."""
    rows = DailyFigure.objects.using(using)
    first = DailyFigure(day=_OUTSET, provider="", measure=READ, measured_at=midnight(_OUTSET))
    mark = _mark(using)
    if mark is None:
        rows.bulk_create([first], ignore_conflicts=True)
        mark = _mark(using) or first
    entries = AuditEntry.objects.using(using).filter(pk__gt=mark.count).order_by("pk").with_answer_before()
    columns = ("pk", "at", "body", "operation__provider", "before")
    old = list(takewhile(lambda row: row[1] <= now - BEHIND, entries.values_list(*columns)[:BATCH]))
    more = len(old) == BATCH
    last, upto = (old[-1][0], old[-1][1]) if old else (mark.count, mark.measured_at)
    moved = {"count": last, "measured_at": upto if more else now - BEHIND}
    added: dict[tuple[date, str, str], int] = {}
    for _pk, at, body, provider, before in old:
        early = came_early(body, before)
        if early is not None:
            day = utc_day(at)
            added[day, provider, LOOKS] = added.get((day, provider, LOOKS), 0) + 1
            added[day, provider, EARLY] = added.get((day, provider, EARLY), 0) + early
    ours = retried(using, partial(_add, using, mark, moved, added, now))
    return (len(old), more) if ours else (0, False)


def _add(
    using: str, mark: DailyFigure, moved: Mapping[str, Any], added: Mapping[tuple[date, str, str], int], now: datetime
) -> bool:
    """Move the bookmark and add what lay before it, together. False: another process was first, nothing is written."""
    rows = DailyFigure.objects.using(using)
    with transaction.atomic(using=using):
        if not rows.filter(pk=mark.pk, count=mark.count).update(**moved):
            return False
        keys = sorted(added)
        fresh = [DailyFigure(day=day, provider=name, measure=measure, measured_at=now) for day, name, measure in keys]
        rows.bulk_create(fresh, ignore_conflicts=True)
        for day, provider, measure in keys:
            counted = rows.filter(day=day, provider=provider, measure=measure)
            counted.update(count=F("count") + added[day, provider, measure], measured_at=now)
    return True
