"""Runs a case: the real flow on a virtual clock, with the memory store and the scripted answers.

cases = load_cases(Path("case.yaml"), find_table)
report = run_case(cases[0])
assert report.differences == ()
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from jobtrack.core.operation import Operation
from jobtrack.core.outcome import verdict
from jobtrack.core.reply import Answered, NoAnswer, Request
from jobtrack.core.table import ProviderTable
from jobtrack.errors import UsageError
from jobtrack.flow.poll import poll
from jobtrack.flow.track import track
from jobtrack.ports import Runtime
from jobtrack.records import Escalation
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing.cases import Case, CaseError, Scripted, load_cases
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.expectations import Difference, differences
from jobtrack.testing.runtime import memory_runtime

MAX_LOOKS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One look, as its audit entry tells it."""

    at: timedelta  # since the start
    reply: str  # "HTTP 200", "read_timeout"; "" if nothing was sent
    observation: str  # an observation Kind; "" if nothing was sent
    label: str  # the provider's word
    decision: str  # "wait", a terminal state, or the reason of a stop
    delay_s: float | None  # of a wait, in seconds
    source: str | None  # of a wait: a DelaySource
    guidance: str | None  # as the provider sent it; None: none
    detail: str  # one sentence about a stop or an odd answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a case."""

    name: str
    steps: tuple[Step, ...]
    operation: Operation  # as it was left
    escalations: tuple[Escalation, ...]  # the open ones
    outcome: str  # "pending", "unknown" or a terminal state
    unasked: int  # replies that no request asked for
    differences: tuple[Difference, ...]

    @property
    def good(self) -> bool:
        return not self.differences


class _OutOfReplies(Exception):
    """The script is over: the look that found this out does not count."""


class _Script:
    """The provider: answers as written, in order."""

    slots = 1

    def __init__(self, replies: Sequence[Scripted]) -> None:
        self.left = list(replies)

    @property
    def next_at(self) -> timedelta:
        """When the next answer is asked for at the earliest, since the start."""
        return (self.left[0].at if self.left else None) or timedelta(0)

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        for request, _ in requests:
            if not self.left:
                raise _OutOfReplies
            yield request, self.left.pop(0).reply


def run_case(case: Case) -> Report:
    """Run a case to its end, or until an answer is wanted that it does not give.

    Raises:
        CaseError: its table refuses the operation (a parameter is missing, the job id cannot be used).
    """
    clock = VirtualClock(case.started_at)
    store = MemoryStore(clock)
    script = _Script(case.replies)
    # The longest delay of all is drawn with the number just below 1.
    draw = min(case.draw, 1 - 2**-53)
    runtime = memory_runtime(case.table, provider=script, clock=clock, store=store, draw=lambda: draw)
    needed_by = None if case.needed_by is None else case.started_at + case.needed_by
    try:
        (operation,) = track(runtime, [replace(case.tracking, needed_by=needed_by)])
    except UsageError as error:
        raise CaseError(f"{case.name} cannot start: {error.message}") from error
    left = _run(runtime, clock, script, operation.id)
    return _report(case, store, left, unasked=len(script.left))


def _run(runtime: Runtime, clock: VirtualClock, script: _Script, operation_id: str) -> Operation:
    """Jump from wake-up to wake-up; the operation as it was before a look that had no answer."""
    for _ in range(MAX_LOOKS):
        (row,) = runtime.store.get([operation_id])
        if row.wake_at is None:
            return row
        clock.advance_to(max(row.wake_at, clock.start + script.next_at))
        try:
            poll(runtime, [operation_id])
        except _OutOfReplies:
            return row
    message = f"still not at rest after {MAX_LOOKS} looks"
    raise RuntimeError(message)


# --- what came of it --------------------------------------------------------------------------------


def _report(case: Case, store: MemoryStore, operation: Operation, *, unasked: int) -> Report:
    entries = [json.loads(entry.text) for entry in store.audit[operation.id]]
    steps = tuple(_step(entry, case.started_at) for entry in entries if "decision" in entry)
    escalations = tuple(store.open_escalations(operation.id))
    outcome = verdict(operation, [each.reason for each in escalations])
    report = Report(
        name=case.name,
        steps=steps,
        operation=operation,
        escalations=escalations,
        outcome=outcome,
        unasked=unasked,
        differences=(),
    )
    return replace(report, differences=tuple(differences(case.expect, actual(report))))


def _step(entry: dict[str, Any], started_at: datetime) -> Step:
    seen, decided = entry["observation"] or {}, entry["decision"]
    guidance = seen.get("guidance")
    http = seen.get("http")
    return Step(
        at=datetime.fromisoformat(entry["at"]) - started_at,
        reply=f"HTTP {http}" if http is not None else seen.get("trouble") or "",
        observation=seen.get("kind", ""),
        label=seen.get("label", ""),
        decision=decided.get("reason") or decided.get("state") or decided["do"],
        delay_s=decided.get("delay_s"),
        source=decided.get("source"),
        guidance=guidance["raw"] if guidance else None,
        detail=decided.get("detail") or seen.get("detail", ""),
    )


def actual(report: Report) -> dict[str, Any]:
    """The values that expectations are held against, by their keys."""
    asked = [step for step in report.steps if step.observation]
    operation = report.operation
    ended = operation.wake_at is None and bool(report.steps)
    return {
        "decisions": [step.decision for step in asked],
        "observations": [step.observation for step in asked],
        "delays": [step.delay_s for step in asked],
        "sources": [step.source for step in asked],
        "guidance": [step.guidance for step in asked],
        "state": operation.state.value,
        "outcome": report.outcome,
        "reason": sorted(each.reason.value for each in report.escalations),
        "provider_state": operation.provider_state,
        "error": operation.error,
        "ended_after": report.steps[-1].at.total_seconds() if ended else None,
        "says": " ".join(each.detail for each in report.escalations),
        "kept": dict(operation.kept),
        "counters": {
            "status_requests": operation.spent.status_requests,
            "transport_failures": operation.spent.transport_failures,
            "rate_limited": operation.spent.rate_limited,
        },
    }


__all__ = ["Case", "Report", "Step", "load_cases", "run_case"]
