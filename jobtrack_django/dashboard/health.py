"""The few numbers that a monitoring system should watch, and whether something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from jobtrack.core.escalation import Risk
from jobtrack_django.dashboard.history import History, history
from jobtrack_django.dashboard.now import SILENT, Standing, standing

SWEEPER = "sweeper"


def health(using: str, days: int) -> dict[str, Any]:
    """Numbers as JSON takes them. ``problems`` names what is wrong; it is empty if nothing is.

    Args:
        days: how far the figures of days reach back, today included.
    """
    stands = standing(using)
    past = history(using, stands.at, days)
    asked, due = stands.questions, stands.overdue
    ages: dict[str, float] = {}
    for beat in reversed(stands.beats):  # the last heard of comes last
        ages[beat.kind] = round((stands.at - beat.seen_at).total_seconds(), 1)
    arrived, should = ended_or_asked(stands, past)
    told = {
        "needs_decision": asked.total.count,
        "needs_decision_high_risk": asked.risks.get(Risk.HIGH, 0),
        "due": due.count.count,
        "overdue_lag_s": round(due.lag.total_seconds(), 3),
        "looks": past.total.looks,
        "early": past.total.early,
        "over_budget": past.total.over,
        "without_next_step": stands.adrift,
        "past_deadline": stands.past,
        "open_all_read": stands.all_read,
        "ended_or_asked_share": 1_000_000 * arrived // should / 1_000_000 if should else None,  # 1.0: all
        "notices_failed": stands.failed_notices.count,
        "notices_late": stands.late_notices.count,
        "heartbeat_age_s": ages,
        "figures_age_s": _age(past.rolled_at, stands.at),
        "days": days,
    }
    return {**told, "problems": list(_problems(told, stands))}


def ended_or_asked(stands: Standing, past: History) -> tuple[int, int]:
    """Operations that came to their end in these days or wait for a person, and how many should have (R-METRIC)."""
    arrived = past.total.ends + stands.waiting
    return arrived, arrived + stands.adrift + stands.past


def _age(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else round((now - at).total_seconds(), 1)


def _problems(told: Mapping[str, Any], stands: Standing) -> Iterator[str]:
    """What must be zero and is not; work that nobody looks at; a sweeper that is not there while there is work."""
    zero = ("early", "over_budget", "without_next_step", "past_deadline", "notices_failed", "notices_late")
    yield from (name for name in zero if told[name])
    if stands.overdue.late:
        yield "overdue"
    swept_s = told["heartbeat_age_s"].get(SWEEPER)
    if told["due"] and (swept_s is None or swept_s > SILENT.total_seconds()):
        yield "not_swept"
