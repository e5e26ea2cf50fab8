"""The few numbers that a monitoring system should watch, and whether something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from jobtrack.core.escalation import Risk
from jobtrack_django.dashboard.history import History, history
from jobtrack_django.dashboard.now import SILENT, standing

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
    told = {
        "needs_decision": asked.total.count,
        "needs_decision_high_risk": asked.risks.get(Risk.HIGH, 0),
        "due": due.count.count,
        "overdue_lag_s": round(due.lag.total_seconds(), 3),
        "looks": past.total.looks,
        "early": past.total.early,
        "over_budget": past.total.over,
        "without_next_step": stands.adrift,
        "ended_or_asked_share": _share(past, asked.total.count, stands.adrift),
        "heartbeat_age_s": ages,
        "figures_age_s": _age(past.rolled_at, stands.at),
        "days": days,
    }
    return {**told, "problems": list(_problems(told))}


def _share(past: History, asked: int, adrift: int) -> float | None:
    """Of what should have come to an end or to a question by now; None: nothing should have."""
    arrived = past.total.ends + asked
    return round(arrived / (arrived + adrift), 6) if arrived + adrift else None


def _age(at: datetime | None, now: datetime) -> float | None:
    return None if at is None else round((now - at).total_seconds(), 1)


def _problems(told: Mapping[str, Any]) -> Iterator[str]:
    """What must be zero and is not, and a sweeper that is not there while there is work."""
    yield from (name for name in ("early", "over_budget", "without_next_step") if told[name])
    swept_s = told["heartbeat_age_s"].get(SWEEPER)
    if told["due"] and (swept_s is None or swept_s > SILENT.total_seconds()):
        yield "not_swept"
