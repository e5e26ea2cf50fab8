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
"""One request as the provider's own log has it."""

_WHY = {
    "first_delay": "first look",
    "local_backoff": "our own backoff",
    "provider_retry_after": "the provider's Retry-After",
    "provider_poll_hint": "the provider's hint",
    "manual_extension": "a person extended it",
    "webhook": "a webhook came",
    "gate": "the account is held back",
    "deadline": "waits for the deadline",
}

_ON_ITS_WAY = timedelta(seconds=0.5)
"""What a request may take from our clock to the provider's log; both are on this machine."""

_AFTER_A_NOTICE = timedelta(seconds=20)
"""How soon after a webhook the look must come, even on a busy machine; without one it would take twice as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One scenario as the database has it at one moment."""

    scenario: Scenario
    operation_id: str
    job_id: str  # "": none is known
    state: OperationState
    requests: int  # status requests used
    allowed: int
    deadline: datetime
    submissions: int = 1  # submission requests used
    lookups: int = 0  # look-ups used
    reads: int = 0  # status requests for the result used
    operations: int = 1  # of the report
    asking: bool = False  # a request is under way
    wake_at: datetime | None = None  # None: nothing is to come
    delay_source: str = ""
    said: str = ""  # the provider's last word
    doubt: str = ""  # why it is not known whether the provider has the job
    reasons: tuple[str, ...] = ()  # of the open questions
    detail: str = ""  # of the newest one
    rows: int | None = None  # on the report; None: the follow-up has not run
    cancel_state: str = ""

    @property
    def settled(self) -> bool:
        """Nothing more happens by itself."""
        if self.scenario.reason is not None and not self.reasons:
            return False
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
    if progress.state is OperationState.SUCCEEDED:
        return "its result is being fetched"
    if progress.state is OperationState.READY:
        return "to be submitted"
    if progress.state is OperationState.UNCONFIRMED:
        return f"perhaps accepted: {progress.doubt}"
    if progress.wake_at is None:
        return ""
    said = f", said {progress.said}" if progress.said else ""
    return _WHY.get(progress.delay_source, progress.delay_source) + said


# --- the verdict --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the provider's own log says about one operation."""

    posts: list[Seen]  # submissions
    made: int  # exports that came of them
    lookups: int
    looks: list[Seen]  # status requests, without those for the result
    reads: int  # status requests for the result
    cancels: int
    files: tuple[str, ...]  # answers to requests for the file
    notices: list[Seen]


def truth(end: Progress, log: Sequence[Seen]) -> Truth:
    """Sort what the provider saw of an operation, oldest first."""
    own = [entry for entry in log if entry["request_id"].rpartition(":")[0] == end.operation_id]
    about = [entry for entry in log if entry["job"] == end.job_id and end.job_id]
    of = {kind: [entry for entry in own if entry["kind"] == kind] for kind in ("submit", "lookup", "cancel")}
    status = [entry for entry in about if entry["kind"] == "status"]
    # Reads for the result begin when the last look has ended the operation.
    return Truth(
        posts=of["submit"],
        made=sum(bool(entry["made"]) for entry in own),
        lookups=len(of["lookup"]),
        looks=status[: end.requests],
        reads=len(status[end.requests :]),
        cancels=len(of["cancel"]),
        files=tuple(entry["word"] for entry in about if entry["kind"] == "file"),
        notices=[entry for entry in about if entry["kind"] == "notice"],
    )


def judge(end: Progress, log: Sequence[Seen]) -> list[str]:
    """What is wrong with the end of a scenario, in phrases; nothing if it is as its table says.

    Args:
        end: as the database has it when nothing more is to come.
        log: the provider's record of all requests, oldest first.
    """
    saw = truth(end, log)
    checks = [*_ended(end), *_submitted(end, saw), *_followed(end, saw), *_fetched(end, saw)]
    return [problem for good, problem in checks if not good]


Check = tuple[bool, str]


def _ended(end: Progress) -> list[Check]:
    scenario = end.scenario
    reasons = (scenario.reason.value,) if scenario.reason else ()
    return [
        (end.state is scenario.state, f"it is {end.state}, not {scenario.state}"),
        (end.reasons == reasons, f"it asks {_listed(end.reasons)}, not {_listed(reasons)}"),
    ]


def _submitted(end: Progress, saw: Truth) -> list[Check]:
    """However it went, there is one export at most, and each submission was counted (R-SUB-4, INV-18)."""
    scenario, posts = end.scenario, len(saw.posts)
    keys = {entry["key"] for entry in saw.posts}
    return [
        (saw.made == scenario.exports, f"ACME made {saw.made} exports, not {scenario.exports}"),
        (posts in scenario.posts, f"ACME saw {posts} submissions, not {_either(scenario.posts)}"),
        (posts == end.submissions, f"ACME saw {posts} submissions, the row counts {end.submissions}"),
        (saw.lookups == end.lookups, f"ACME saw {saw.lookups} look-ups, the row counts {end.lookups}"),
        (len(keys) == 1, f"the submissions had {len(keys)} idempotency keys"),
        (end.operations == 1, f"the report has {end.operations} operations"),
    ]


def _followed(end: Progress, saw: Truth) -> list[Check]:
    scenario, looks = end.scenario, saw.looks
    cancels = int(scenario.cancel)
    return [
        (len(looks) == end.requests, f"ACME saw {len(looks)} looks, the row counts {end.requests}"),
        (end.requests <= end.allowed, f"{end.requests} requests are more than the {end.allowed} allowed"),
        (_decided(scenario, looks), f"ACME's answer '{scenario.word}' did not decide"),
        (_early(looks) == 0, f"{_early(looks)} requests came before ACME allowed them"),
        (_late(end, looks) == 0, f"{_late(end, looks)} requests came after the deadline"),
        (saw.cancels == cancels, f"ACME was asked {saw.cancels} times to cancel, not {cancels}"),
        *_noticed(scenario, saw),
    ]


def _noticed(scenario: Scenario, saw: Truth) -> list[Check]:
    """Two webhooks cost one look, and it comes at once (R-SEC-3, INV-26)."""
    heard = [entry["http"] for entry in saw.notices]
    checks = [(heard == [204] * scenario.notices, f"its webhooks were answered {heard}")]
    if not saw.notices:
        return checks
    first = _at(saw.notices[0])
    waits = [_at(entry) - first for entry in saw.looks if _at(entry) > first]
    checks.append((len(waits) == 1, f"{len(waits)} looks came after its webhooks, not 1"))
    checks.append((all(wait < _AFTER_A_NOTICE for wait in waits), "its webhooks did not bring the look forward"))
    return checks


def _fetched(end: Progress, saw: Truth) -> list[Check]:
    """A result is fetched without submitting anything again (R-END-4)."""
    succeeded = end.scenario.state is OperationState.SUCCEEDED
    files = end.scenario.files if end.scenario.files is not None else ("file",) * succeeded
    return [
        (saw.files == files, f"its file was asked for with these answers: {_listed(saw.files)}, not {_listed(files)}"),
        (saw.reads == end.reads, f"ACME saw {saw.reads} reads for its result, the record counts {end.reads}"),
        (not succeeded or end.rows is not None, "its report has no rows"),
    ]


def expected(scenario: Scenario) -> str:
    """What must come of a scenario, in short."""
    reason = scenario.reason.value if scenario.reason else ""
    return _short(scenario.state.value, reason, _either(scenario.posts), scenario.exports)


def found(end: Progress, log: Sequence[Seen]) -> str:
    """What has come of it, by the row and by the provider's log."""
    saw = truth(end, log)
    return _short(end.state.value, ", ".join(end.reasons), str(len(saw.posts)), saw.made)


def _either(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))


def _short(state: str, reasons: str, posts: str, exports: int) -> str:
    asks = f", asks {reasons}" if reasons else ""
    return f"{posts} POST, {exports} export, {state}{asks}"


def _listed(reasons: Sequence[str]) -> str:
    return ", ".join(reasons) or "nothing"


def _decided(scenario: Scenario, looks: Sequence[Seen]) -> bool:
    """The deciding answer was the last one, and came as often as it may."""
    words = [entry["word"] for entry in looks]
    if not scenario.word:
        return words == []
    return words[-1:] == [scenario.word] and scenario.times in (None, words.count(scenario.word))


def _at(entry: Seen) -> datetime:
    return datetime.fromisoformat(entry["at"])


def _early(looks: Sequence[Seen]) -> int:
    """Requests that came sooner than the answer before them allowed (R-POLL-2)."""
    times = [_at(entry) for entry in looks]
    waits = [timedelta(seconds=entry["wait_s"]) for entry in looks]
    return sum(later - earlier < wait for earlier, later, wait in zip(times, times[1:], waits, strict=False))


def _late(end: Progress, looks: Sequence[Seen]) -> int:
    """Requests after the deadline (R-BUDGET-2)."""
    return sum(_at(entry) > end.deadline + _ON_ITS_WAY for entry in looks)
