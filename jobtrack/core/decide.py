"""What to do next: pure, total, and recomputable from what is stored with each decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from jobtrack.core import sentences_question as say
from jobtrack.core.backoff import local_delay, spread, steep_delay
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.observation import DelaySource, Kind, Observation
from jobtrack.core.operation import Operation, OperationState, Spent
from jobtrack.core.reply import Trouble
from jobtrack.core.schedule import duration
from jobtrack.core.table import ProviderTable
from jobtrack.core.text import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Look again later."""

    not_before: datetime  # floor for sending; may lie past the deadline (R-POLL-3)
    at: datetime  # next wake-up: never past the deadline or an untold business deadline
    delay: timedelta  # from now to ``not_before``
    source: DelaySource
    floor: datetime  # a webhook may bring the look forward to here: guidance holds, our own backoff does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclude:
    """The job ended; so does the operation (R-END-1)."""

    state: OperationState  # terminal
    cause: str = ""  # of `failed`
    question: Question | None = None  # asked although it ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Nothing more is sent until a person decides."""

    question: Question


Decision = Wait | Conclude | Stop

_STOPS = {
    Kind.ATTENTION: Reason.PROVIDER_WAITS,
    Kind.UNKNOWN_STATE: Reason.UNKNOWN_STATE,
    Kind.INVALID_RESPONSE: Reason.INVALID_RESPONSE,
    Kind.JOB_ID_MISMATCH: Reason.JOB_ID_MISMATCH,
    Kind.INVALID_RESULT: Reason.INVALID_RESULT,
    Kind.DENIED: Reason.AUTHORIZATION_DENIED,
    Kind.TARGET_DENIED: Reason.TARGET_DENIED,
}
"""Observations that stop whatever the budgets say (R-READ-2, R-READ-4)."""

_ENDS = {
    Kind.FAILURE: (OperationState.FAILED, Reason.PROVIDER_FAILURE),
    Kind.CANCELLED: (OperationState.CANCELLED, Reason.PROVIDER_CANCELLED),
    Kind.EXPIRED: (OperationState.EXPIRED, Reason.PROVIDER_EXPIRED),
}


_SOON = timedelta(days=3)
"""So close to the removal of a job a person is told when it comes; a weekend fits in."""


def charge(spent: Spent, observation: Observation) -> Spent:
    """Counters after an answer. The status request itself was debited by the claim (R-BUDGET-2, R-BUDGET-3)."""
    if observation.kind is Kind.RATE_LIMITED:
        return replace(spent, rate_limited=spent.rate_limited + 1)
    if observation.kind is Kind.TRANSPORT_FAILURE and observation.trouble is not Trouble.LATE:
        return replace(spent, transport_failures=spent.transport_failures + 1)
    return spent


def guided(operation: Operation, observation: Observation, now: datetime) -> Operation:
    """The row with the wait that an answer asks for: whatever is decided next keeps to it (INV-04)."""
    wait = observation.guidance.wait if observation.guidance else None
    if wait is None:
        return operation
    return replace(operation, not_before=max(now + wait, operation.not_before or now))


def decide(
    table: ProviderTable, operation: Operation, observation: Observation, *, now: datetime, draw: float
) -> Decision:
    """What follows from one observation.

    Args:
        table: the newest table.
        operation: the row after the claim, with ``spent`` already charged for this observation.
        observation: what the reply means.
        now: the store's clock when the answer was complete.
        draw: uniform in [0, 1), for jitter.
    """
    kind = observation.kind
    end = ended(operation, observation)
    if end is not None:
        return end
    if kind in _STOPS:
        return _stop(_STOPS[kind], observation.detail or observation.label)
    over = _over(table, operation, observation, now)
    if over is not None:
        return _with_retention(over, table, operation, now)
    return _wait(table, operation, observation, now, draw)


def decide_unsent(operation: Operation, *, now: datetime, table: ProviderTable | None = None) -> Decision:
    """What follows when a due row may not send: its deadline or budget is over, or it was only woken to be told.

    Args:
        operation: the row after the claim.
        now: the store's clock.
        table: the newest table; None: this worker has none.
    """
    over = _exhausted(operation, now)
    if over is not None:
        return over if table is None else _with_retention(over, table, operation, now)
    floor = max(operation.hint_floor or now, now)
    return _parked(operation, operation.not_before or now, now, _source(operation), floor)


_NAMES_A_STATE = frozenset({Kind.UNKNOWN_STATE, Kind.INVALID_RESULT})
"""Answers that name a state although nothing can be concluded from it."""


def seen(operation: Operation, observation: Observation, table: ProviderTable, now: datetime) -> Operation:
    """The row with what this answer showed; a failed look never erases an earlier fact (R-FACT-3)."""
    row = replace(
        operation,
        last_http=observation.http,
        revision=max(operation.revision, table.revision),
        table_digest=table.digest,
        missing_since=None,
        error=observation.error or operation.error,
    )
    if not observation.readable and not (observation.kind in _NAMES_A_STATE and observation.label):
        return row
    changed = observation.label != operation.provider_state
    return replace(
        row,
        observed_at=now,
        provider_state=observation.label,
        provider_state_since=now if changed else operation.provider_state_since,
        progress=observation.progress or operation.progress,
        expires_at=observation.expires_at or operation.expires_at,
        kept=dict(observation.kept) if observation.kind is Kind.SUCCESS else operation.kept,
    )


def business_question(operation: Operation, *, now: datetime) -> Question | None:
    """The business deadline's question, once, while the operation goes on (R-BUDGET-1)."""
    needed_by = operation.budget.needed_by
    if needed_by is None or operation.needed_by_told or now < needed_by:
        return None
    said = operation.provider_state or say.NOTHING_YET.of()
    return Question(
        reason=Reason.BUSINESS_DEADLINE_EXCEEDED, detail=say.NEEDED_BY.of(instant=spoken(needed_by), last=said)
    )


def contradiction(stored: Operation, late: Operation) -> Question | None:
    """What a person is told when a late answer names another end, or another job, than the stored one.

    (R-END-1, R-READ-7; a second job of one operation may cost money twice: R-ESC-6)

    Args:
        stored: the row as it is; it stays so.
        late: the row as the late look would have left it.
    """
    other = _another_job(stored, late)
    if other:
        return Question(reason=Reason.STATE_CONTRADICTION, detail=clean(other, 500))
    if not stored.terminal or not late.terminal or stored.state is late.state:
        return None
    detail = say.ENDED_OTHERWISE.of(state=stored.state, late=late.state)
    return Question(reason=Reason.STATE_CONTRADICTION, detail=detail)


def _another_job(stored: Operation, late: Operation) -> str:
    """That a late answer names a job which nobody follows, as a sentence; "" if it does not."""
    if late.job_id:
        known = stored.job_id or str(stored.evidence.get("job_id", ""))
        if known and known != late.job_id:
            return say.OTHER_JOB.of(known=known, job=late.job_id)
        if not known and stored.terminal:
            return say.ENDED_AND_NAMES.of(state=stored.state, job=late.job_id)
        return ""
    urls = (stored.status_url or str(stored.evidence.get("status_url", "")), late.status_url)
    if not stored.job_id and all(urls) and urls[0] != urls[1]:
        return say.OTHER_ADDRESS.of()
    news = late.accepted_at is not None or (late.acceptance_seen and not stored.acceptance_seen)
    if stored.terminal and stored.accepted_at is None and news:
        return say.ENDED_AND_HAS_JOB.of(state=stored.state)
    return ""


def spoken(instant: datetime) -> str:
    """An instant as a person reads it, with its zone."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def ended(operation: Operation, observation: Observation) -> Conclude | None:
    """How the job ended, if this observation says so; None if it does not."""
    if observation.kind is Kind.SUCCESS:
        return Conclude(state=OperationState.SUCCEEDED)
    return _ended(operation, observation) if observation.kind in _ENDS else None


def _ended(operation: Operation, observation: Observation) -> Conclude:
    state, reason = _ENDS[observation.kind]
    detail = observation.error or observation.detail or observation.label
    return Conclude(
        state=state,
        cause="provider_failure" if state is OperationState.FAILED else "",
        question=Question(reason=reason, detail=detail) if operation.escalate_ends else None,
    )


def _stop(reason: Reason, detail: str) -> Stop:
    return Stop(question=Question(reason=reason, detail=detail))


def _over(table: ProviderTable, operation: Operation, observation: Observation, now: datetime) -> Stop | None:
    """Limits that an answer can reach, in the order a person would want to hear of them."""
    spent, budget = operation.spent, operation.budget
    if observation.kind is Kind.NOT_FOUND and now >= _known_by(table, operation, now):
        return _stop(Reason.JOB_NOT_FOUND, observation.detail)
    if observation.kind is Kind.RATE_LIMITED and spent.rate_limited >= budget.rate_limited:
        return _stop(Reason.RATE_LIMITED, say.RATE_LIMITED.of(count=spent.rate_limited))
    if observation.kind is Kind.TRANSPORT_FAILURE and observation.trouble in table.status.stop_on:
        detail = say.STOPS_ON.of(trouble=observation.trouble, why=observation.detail)
        return _stop(Reason.TRANSPORT_FAILURES_EXHAUSTED, detail)
    if observation.kind is Kind.TRANSPORT_FAILURE and spent.transport_failures >= budget.transport_failures:
        detail = say.REQUESTS_FAILED.of(count=spent.transport_failures, why=observation.detail)
        return _stop(Reason.TRANSPORT_FAILURES_EXHAUSTED, detail)
    if observation.kind is Kind.PENDING:
        return _slow(table, operation, observation, now) or _exhausted(operation, now, observation.label)
    return _exhausted(operation, now, observation.label)


def _known_by(table: ProviderTable, operation: Operation, now: datetime) -> datetime:
    """Until when "not found" means "not visible yet": for a while after acceptance, and after a notice."""
    limits = table.status.not_found
    after_notice = now if operation.noticed_at is None else operation.noticed_at + limits.after_notice
    return max((operation.accepted_at or now) + limits.window, after_notice)


def _slow(table: ProviderTable, operation: Operation, observation: Observation, now: datetime) -> Stop | None:
    """Contradictions of a job that says it is still running (R-READ-3)."""
    resumed = operation.resumed_at
    told = resumed is not None and observation.expires_at is not None and observation.expires_at <= resumed
    if observation.overdue and not told:
        return _stop(Reason.JOB_OVERDUE, say.OVERDUE.of(word=observation.label))
    limit, since = table.status.stall_after, operation.provider_state_since
    if since is not None and resumed is not None:
        since = max(since, resumed)
    unchanged = observation.label == operation.provider_state
    if limit is not None and since is not None and unchanged and now >= since + limit:
        return _stop(Reason.STALLED, say.STALLED.of(word=observation.label, instant=spoken(since)))
    return None


def _exhausted(operation: Operation, now: datetime, label: str = "") -> Stop | None:
    """The observer's own limits: they end the observation, never the job (R-FACT-2).

    ``label`` is the state that this very answer named; "" if it named none.
    """
    if operation.last_look and now < operation.last_instant:
        return None
    said = label or operation.provider_state or say.NOTHING_YET.of()
    if now >= operation.budget.deadline:
        detail = say.DEADLINE_PASSED.of(instant=spoken(operation.budget.deadline), last=said)
        return _stop(Reason.DEADLINE_EXCEEDED, detail)
    if operation.spent.status_requests >= operation.budget.status_requests:
        detail = say.REQUESTS_USED.of(most=operation.budget.status_requests, last=said)
        return _stop(Reason.REQUEST_BUDGET_EXHAUSTED, detail)
    return None


_FULL_STOPS = (".", "!", "?", "…", "。")
"""What a sentence ends with, also one of a provider."""


def _with_retention(stop: Stop, table: ProviderTable, operation: Operation, now: datetime) -> Stop:
    """Say how much time a person has: a job may end after we stopped looking, and be removed (R-FACT-2)."""
    told = []
    if table.retention.job is not None and operation.accepted_at is not None:
        until = operation.accepted_at + table.retention.job
        if until <= now:
            told.append(say.KEPT_JOB.of(instant=spoken(until)))
        elif until <= now + _SOON:
            told.append(say.KEEPS_JOB.of(instant=spoken(until)))
    if table.retention.result is not None:
        told.append(say.KEEPS_RESULT_FOR.of(length=duration(table.retention.result)))
    detail = stop.question.detail
    if told and detail and not detail.endswith(_FULL_STOPS):
        detail = f"{detail}."
    return Stop(question=replace(stop.question, detail=" ".join(filter(None, (detail, *told)))))


def _source(operation: Operation) -> DelaySource:
    return DelaySource(operation.delay_source) if operation.delay_source else DelaySource.LOCAL_BACKOFF


def _wait(table: ProviderTable, operation: Operation, observation: Observation, now: datetime, draw: float) -> Wait:
    polling = table.polling
    polls = max(operation.spent.status_requests - 1, 0)
    guidance = observation.guidance
    soonest = now + polling.min_interval
    if guidance is not None and guidance.wait is not None and guidance.wait >= polling.min_interval:
        asked = now + guidance.wait
        return _parked(operation, now + spread(guidance.wait, draw), now, guidance.source, asked)
    if observation.kind is Kind.RATE_LIMITED:
        not_before = now + steep_delay(polling, polls, operation.spent.rate_limited, draw)
        return _parked(operation, not_before, now, DelaySource.LOCAL_BACKOFF, not_before)
    return _parked(operation, now + local_delay(polling, polls, draw), now, DelaySource.LOCAL_BACKOFF, soonest)


def _parked(operation: Operation, not_before: datetime, now: datetime, source: DelaySource, floor: datetime) -> Wait:
    limits = [not_before, operation.last_instant]
    needed_by = operation.budget.needed_by
    # The question of a business deadline that has passed is asked in this very commit.
    if needed_by is not None and not operation.needed_by_told and needed_by > now:
        limits.append(needed_by)
    at = max(min(limits), now)
    delay = max(not_before - now, timedelta(0))
    return Wait(not_before=not_before, at=at, delay=delay, source=source, floor=floor)
