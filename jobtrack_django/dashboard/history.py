"""What the figures of the days tell. Two queries, whatever the number of operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Final

from django.db.models import Max, Q, Sum

from jobtrack.core.escalation import Reason
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack_django import figures

WINDOWS: Final = (7, 30, 90)
"""Days that can be chosen, today included."""

ENDS: Final = tuple(state.value for state in OperationState if state in TERMINAL)

BURNT: Final = tuple(
    reason.value
    for reason in (
        Reason.DEADLINE_EXCEEDED,
        Reason.REQUEST_BUDGET_EXHAUSTED,
        Reason.TRANSPORT_FAILURES_EXHAUSTED,
        Reason.RATE_LIMITED,
    )
)
"""Questions that say that a budget was used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Figures added up, by measure."""

    counts: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)  # the largest total of one day

    def ended(self, state: str) -> int:
        return self.counts.get(f"{figures.ENDED}:{state}", 0)

    @property
    def ends(self) -> int:
        return sum(map(self.ended, ENDS))

    @property
    def well(self) -> int:
        return self.ended(OperationState.SUCCEEDED.value)

    @property
    def looks(self) -> int:
        return self.counts.get(figures.LOOKS, 0)

    @property
    def early(self) -> int:
        return self.counts.get(figures.EARLY, 0)

    @property
    def over(self) -> int:
        return self.counts.get(figures.OVER, 0)

    def burnt(self, reason: str) -> int:
        return self.counts.get(f"{figures.ASKED}:{reason}", 0)

    def per_job(self, measure: str) -> float | None:
        """Mean of ``requests`` or ``submissions`` of ended jobs; None: none has ended."""
        count = self.counts.get(measure, 0)
        return self.totals.get(measure, 0.0) / count if count else None

    @property
    def lag_mean_s(self) -> float | None:
        return self.per_job(figures.LAG)

    @property
    def lag_most_s(self) -> float | None:
        return self.most.get(figures.LAG_MOST)

    def lag_within_s(self, share: float) -> float | None:
        """Seconds within which this share of ends was seen; None: none was seen, or it took longer than all bounds."""
        count = self.counts.get(figures.LAG, 0)
        within = ((bound, self.counts.get(f"{figures.LAG}:{bound}", 0)) for bound in figures.BUCKETS)
        return next((bound for bound, seen in within if count and seen >= share * count), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The figures of some days up to today."""

    days: tuple[date, ...]
    total: Sums
    providers: Mapping[str, Sums]  # by name
    daily: Mapping[date, Sums]  # days without figures are missing
    rolled_at: datetime | None  # when today's figures were counted last


def history(using: str, now: datetime, days: int) -> History:
    today = figures.utc_day(now)
    span = tuple(today - timedelta(days=back) for back in range(days - 1, -1, -1))
    rows = figures.figures(using).filter(day__gte=span[0], day__lte=today).order_by()
    sums = {"n": Sum("count"), "sum": Sum("total"), "most": Max("total")}
    shown = Q(measure__startswith=f"{figures.ENDED}:") | Q(measure__in=(figures.LOOKS, figures.EARLY))
    by_provider: list[Any] = list(rows.values("provider", "measure").annotate(**sums))
    by_day = rows.filter(shown).values("day", "measure").annotate(**sums)
    return History(
        days=span,
        total=_added(by_provider),
        providers=_grouped(by_provider, "provider"),
        daily=_grouped(by_day, "day"),
        rolled_at=figures.rolled_at(using, today),
    )


def _grouped(rows: Any, key: str) -> dict[Any, Sums]:
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return {name: _added(group) for name, group in sorted(groups.items())}


def _added(rows: Sequence[Mapping[str, Any]]) -> Sums:
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    most: dict[str, float] = {}
    for row in rows:
        measure = row["measure"]
        counts[measure] = counts.get(measure, 0) + int(row["n"])
        if row["sum"] is not None:
            totals[measure] = totals.get(measure, 0.0) + row["sum"]
            most[measure] = max(most.get(measure, 0.0), row["most"])
    return Sums(counts=counts, totals=totals, most=most)
