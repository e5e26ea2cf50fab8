"""How a scenario of the demo goes: a line for the table, and a verdict at its end. Pure: no clock, no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from example_project.board import Line
from example_project.scenarios import Scenario
from jobtrack.core.operation import TERMINAL, OperationState

Seen = Mapping[str, Any]
"""One status request as the provider's own log has it."""

_WHY = {
    "first_delay": "first look",
    "local_backoff": "our own backoff",
    "provider_retry_after": "the provider's Retry-After",
    "provider_poll_hint": "the provider's hint",
    "manual_extension": "a person extended it",
    "gate": "the account is held back",
    "deadline": "waits for the deadline",
}

_ON_ITS_WAY = timedelta(seconds=0.5)
"""What a request may take from our clock to the provider's log; both are on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One scenario as the database has it at one moment."""

    scenario: Scenario
    job_id: str
    state: OperationState
    requests: int  # status requests used
    allowed: int
    deadline: datetime
    asking: bool = False  # a request is under way
    wake_at: datetime | None = None  # None: nothing is to come
    delay_source: str = ""
    said: str = ""  # the provider's last word
    reasons: tuple[str, ...] = ()  # of the open questions
    detail: str = ""  # of the newest one
    rows: int | None = None  # on the report; None: the follow-up has not run

    @property
    def settled(self) -> bool:
        """Nothing more happens by itself."""
        if self.state is OperationState.SUCCEEDED:
            return self.rows is not None
        return self.state in TERMINAL or self.state is OperationState.ESCALATED


def line(progress: Progress, now: datetime) -> Line:
    """One line of the table."""
    return Line(
        scenario=progress.scenario.name,
        state=progress.state.value,
        polls=f"{progress.requests}/{progress.allowed}",
        next_look="asking" if progress.asking else _until(progress.wake_at, now),
        why=_why(progress),
    )


def _until(instant: datetime | None, now: datetime) -> str:
    if instant is None:
        return "-"
    seconds = (instant - now).total_seconds()
    return "now" if seconds <= 0 else f"in {seconds:.0f} s"


def _why(progress: Progress) -> str:
    if progress.reasons:
        return f"{', '.join(progress.reasons)}: {progress.detail}"
    if progress.rows is not None:
        return f"stored, {progress.rows} rows"
    if progress.wake_at is None:
        return ""
    said = f", said {progress.said}" if progress.said else ""
    return _WHY.get(progress.delay_source, progress.delay_source) + said


def judge(end: Progress, log: Sequence[Seen]) -> list[str]:
    """What is wrong with the end of a scenario, in phrases; nothing if it is as its table says.

    Args:
        end: as the database has it when nothing more is to come.
        log: the provider's record of all status requests, oldest first.
    """
    scenario = end.scenario
    seen = [entry for entry in log if entry["job"] == end.job_id]
    reasons = (scenario.reason.value,) if scenario.reason else ()
    checks = [
        (end.state is scenario.state, f"it is {end.state}, not {scenario.state}"),
        (end.reasons == reasons, f"it asks {_listed(end.reasons)}, not {_listed(reasons)}"),
        (len(seen) == end.requests, f"ACME saw {len(seen)} requests, the row counts {end.requests}"),
        (end.requests <= end.allowed, f"{end.requests} requests are more than the {end.allowed} allowed"),
        (_decided(scenario, seen), f"ACME's answer '{scenario.word}' did not decide"),
        (_early(seen) == 0, f"{_early(seen)} requests came before ACME allowed them"),
        (_late(end, seen) == 0, f"{_late(end, seen)} requests came after the deadline"),
        (scenario.state is not OperationState.SUCCEEDED or end.rows is not None, "its report has no rows"),
    ]
    return [problem for good, problem in checks if not good]


def _listed(reasons: Sequence[str]) -> str:
    return ", ".join(reasons) or "nothing"


def _decided(scenario: Scenario, seen: Sequence[Seen]) -> bool:
    """The deciding answer was the last one, and came as often as it may."""
    words = [entry["word"] for entry in seen]
    return words[-1:] == [scenario.word] and scenario.times in (None, words.count(scenario.word))


def _early(seen: Sequence[Seen]) -> int:
    """Requests that came sooner than the answer before them allowed (R-POLL-2)."""
    times = [datetime.fromisoformat(entry["at"]) for entry in seen]
    waits = [timedelta(seconds=entry["wait_s"]) for entry in seen]
    return sum(later - earlier < wait for earlier, later, wait in zip(times, times[1:], waits, strict=False))


def _late(end: Progress, seen: Sequence[Seen]) -> int:
    """Requests after the deadline (R-BUDGET-2)."""
    return sum(datetime.fromisoformat(entry["at"]) > end.deadline + _ON_ITS_WAY for entry in seen)
