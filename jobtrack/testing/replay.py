"""Runs a case: the real flow on a virtual clock, with the memory store and the scripted answers.

cases = load_cases(Path("case.yaml"), find_table)
report = run_case(cases[0])
assert report.differences == ()
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jobtrack.core.escalation import options
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.outcome import verdict
from jobtrack.core.recover import may_repeat
from jobtrack.errors import UsageError
from jobtrack.flow.advance import advance
from jobtrack.flow.deliver import deliver
from jobtrack.flow.submit import Submission, submit
from jobtrack.flow.track import Tracking, track
from jobtrack.ports import Runtime
from jobtrack.records import Escalation, JobResult
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing.cases import Case, CaseError, Scripted, load_cases
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.doing import Doing, perform
from jobtrack.testing.expectations import Difference, differences
from jobtrack.testing.runtime import memory_runtime
from jobtrack.testing.script import Asked, Over, Script

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
    result: JobResult | None  # None: nobody asked for it
    asked: tuple[Asked, ...]  # every request that was answered
    unasked: int  # replies that no request asked for
    differences: tuple[Difference, ...]

    @property
    def good(self) -> bool:
        return not self.differences


@dataclass(slots=True, kw_only=True)
class _Play:
    """One run of a case."""

    case: Case
    clock: VirtualClock = field(init=False)
    store: MemoryStore = field(init=False)
    script: Script = field(init=False)
    runtime: Runtime = field(init=False)
    begins: Tracking | Submission = field(init=False)
    operation_id: str = ""
    errand: str = ""  # event of the errand at hand
    differences: list[Difference] = field(default_factory=list)

    def __post_init__(self) -> None:
        case = self.case
        self.clock = VirtualClock(case.started_at)
        self.store = MemoryStore(self.clock)
        self.script = Script(case.replies, kind=self.kind)
        # The longest delay of all is drawn with the number just below 1.
        draw = min(case.draw, 1 - 2**-53)
        self.runtime = memory_runtime(
            case.table, provider=self.script, clock=self.clock, store=self.store, draw=lambda: draw
        )
        needed_by = None if case.needed_by is None else case.started_at + case.needed_by
        self.begins = replace(case.begins, needed_by=needed_by)

    def begin(self) -> None:
        """Store the operation; raises UsageError if its table refuses it."""
        begins = self.begins
        stored = submit(self.runtime, [begins]) if isinstance(begins, Submission) else track(self.runtime, [begins])
        self.operation_id = stored[0].id

    def run(self) -> Operation:
        """Jump from one thing that is due to the next; the operation as it was before a look that had no answer."""
        todo = list(self.case.doing)
        for number in range(MAX_LOOKS):
            (row,) = self.store.get([self.operation_id])
            look_at, errand_at = self._look_at(row), self._errand_at()
            step_at = self.clock.start + todo[0].at if todo and todo[0].at is not None else None
            instants = [instant for instant in (step_at, errand_at, look_at) if instant is not None]
            if not instants and not todo:
                return row
            now = self.clock.advance_to(min(instants, default=self.clock()))
            try:
                if todo and (not instants or (step_at is not None and step_at <= now)):
                    self._do(todo.pop(0), number)
                elif errand_at is not None and errand_at <= now:
                    self._run_errands(now)
                else:
                    advance(self.runtime, [self.operation_id])
            except Over:
                return row
        message = f"still not at rest after {MAX_LOOKS} looks"
        raise RuntimeError(message)

    def kind(self) -> str:
        """What the request at hand is for."""
        if self.errand:
            return self.errand
        (row,) = self.store.get([self.operation_id])
        return _KINDS.get(row.state, "status")

    def _look_at(self, row: Operation) -> datetime | None:
        return None if row.wake_at is None else max(row.wake_at, self.clock.start + self.script.next_at)

    def _errand_at(self) -> datetime | None:
        due = [box.due_at for box in self._boxes()]
        return max(min(due), self.clock.start + self.script.next_at) if due else None

    def _boxes(self) -> list[Any]:
        return [box for box in self.store.outbox.values() if box.due_at is not None and not box.delivered]

    def _run_errands(self, now: datetime) -> None:
        for box in self._boxes():
            if box.due_at <= now:
                self.errand = box.delivery.event
                try:
                    deliver(self.runtime, [box.delivery.id])
                finally:
                    self.errand = ""

    def _do(self, step: Doing, number: int) -> None:
        submission = self.begins if isinstance(self.begins, Submission) else None
        came = perform(self.runtime, step, self.operation_id, submission, number)
        if came != step.expect:
            what = f"do: {step.action}"
            self.differences.append(Difference(line=step.line, what=what, expected=step.expect, actual=came))


_KINDS = {OperationState.SUBMITTING: "submit", OperationState.UNCONFIRMED: "lookup"}
"""What a request is for, by the state in which it is sent."""


def run_case(case: Case) -> Report:
    """Run a case to its end, or until an answer is wanted that it does not give.

    Raises:
        CaseError: its table refuses the operation (a parameter is missing, the job id cannot be used).
    """
    play = _Play(case=case)
    try:
        play.begin()
    except UsageError as error:
        raise CaseError(f"{case.name} cannot start: {error.message}") from error
    return _report(play, play.run())


# --- what came of it --------------------------------------------------------------------------------


def _report(play: _Play, operation: Operation) -> Report:
    case, store = play.case, play.store
    entries = [json.loads(entry.text) for entry in store.audit[operation.id]]
    escalations = tuple(store.open_escalations(operation.id))
    report = Report(
        name=case.name,
        steps=tuple(_step(entry, case.started_at) for entry in entries if "decision" in entry),
        operation=operation,
        escalations=escalations,
        outcome=verdict(operation, [each.reason for each in escalations]),
        result=store.result(operation.id),
        asked=tuple(play.script.log),
        unasked=len(play.script.left),
        differences=(),
    )
    unmet = differences(case.expect, actual(report, case, play))
    return replace(report, differences=(*play.script.differences, *play.differences, *unmet))


def _step(entry: dict[str, Any], started_at: datetime) -> Step:
    seen, decided = entry["observation"] or {}, entry["decision"]
    guidance = seen.get("guidance")
    http = seen.get("http")
    return Step(
        at=datetime.fromisoformat(entry["at"]) - started_at,
        reply=f"HTTP {http}" if http is not None else seen.get("trouble") or "",
        observation=entry.get("meaning") or entry.get("kind") or seen.get("kind", ""),
        label=seen.get("label", ""),
        decision=decided.get("reason") or (decided.get("end") or decided).get("state") or decided["do"],
        delay_s=_delay_s(entry, decided),
        source=decided.get("source"),
        guidance=guidance["raw"] if guidance else None,
        detail=decided.get("detail") or seen.get("detail", ""),
    )


def _delay_s(entry: dict[str, Any], decided: dict[str, Any]) -> float | None:
    if "delay_s" in decided or not decided.get("at"):
        return decided.get("delay_s")
    return (datetime.fromisoformat(decided["at"]) - datetime.fromisoformat(entry["at"])).total_seconds()


def actual(report: Report, case: Case, play: _Play) -> dict[str, Any]:
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
            "submissions": operation.spent.submissions,
            "lookups": operation.spent.lookups,
            "result_reads": report.result.reads if report.result else 0,
        },
        "job_id": operation.job_id,
        "posts": len(play.script.posts()),
        "keys": play.script.keys(case.table),
        "contents": play.script.contents(),
        "options": sorted({o.value for e in report.escalations for o in options(e.reason, operation, case.table)}),
        "retry_allowed": may_repeat(case.table, operation, play.clock()),
        "cancel": str(operation.cancel_state) or "none",
        "result": report.result.state.value if report.result else "none",
        "files": {file.name: file.size for file in report.result.files if file.complete} if report.result else {},
    }


__all__ = ["Case", "Report", "Scripted", "Step", "load_cases", "run_case"]
