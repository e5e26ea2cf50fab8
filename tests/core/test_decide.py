"""R-POLL, R-BUDGET, R-READ, R-FACT-2: what follows from each observation, as rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.decide import Conclude, Stop, Wait, business_question, charge, contradiction, decide, decide_unsent
from jobtrack.core.escalation import Reason
from jobtrack.core.observation import DelaySource, Guidance, Kind, Observation
from jobtrack.core.operation import Budget, Operation, OperationState, Spent
from jobtrack.core.place import RequestSpec
from jobtrack.core.reply import Trouble
from jobtrack.core.table import NotFound, Polling, ProviderTable, Retention, StatusSpec

S = timedelta(seconds=1)
T0 = datetime(2030, 1, 7, 12, tzinfo=UTC)
NOW = T0 + 100 * S
TABLE = ProviderTable(
    id="acme",
    name="ACME",
    docs="https://acme.example",
    revision=1,
    digest="d",
    text="",
    hosts=("https://api.acme.example",),
    status=StatusSpec(request=RequestSpec(path="/j/{job_id}"), not_found=NotFound(window=120 * S), stall_after=500 * S),
    polling=Polling(first=2 * S, base=2 * S, factor=2, cap=60 * S),
)
BUDGET = Budget(deadline=T0 + 3600 * S, status_requests=50, transport_failures=5, rate_limited=10)
OPERATION = Operation(
    id="op-1",
    provider="acme",
    account="default",
    job_id="job-1",
    state=OperationState.RUNNING,
    budget=BUDGET,
    created_at=T0,
    accepted_at=T0,
    spent=Spent(status_requests=1),
    provider_state="running",
    provider_state_since=T0,
)
LONGEST = 1 - 2**-53


def said(kind: Kind, wait: float | None = None, **more: object) -> Observation:
    guidance = None
    if wait is not None:
        guidance = Guidance(source=DelaySource.PROVIDER_RETRY_AFTER, raw="x", wait=wait * S)
    return Observation(kind=kind, label="running", http=200, guidance=guidance, **more)  # type: ignore[arg-type]


def decided(observation: Observation, operation: Operation = OPERATION, now: datetime = NOW) -> Wait | Conclude | Stop:
    return decide(TABLE, operation, observation, now=now, draw=LONGEST)


ENDS = [
    (Kind.SUCCESS, OperationState.SUCCEEDED, "", None),
    (Kind.FAILURE, OperationState.FAILED, "provider_failure", Reason.PROVIDER_FAILURE),
    (Kind.CANCELLED, OperationState.CANCELLED, "", Reason.PROVIDER_CANCELLED),
    (Kind.EXPIRED, OperationState.EXPIRED, "", Reason.PROVIDER_EXPIRED),
]


@pytest.mark.parametrize(("kind", "state", "cause", "reason"), ENDS)
def test_a_terminal_state_ends_the_operation(
    kind: Kind, state: OperationState, cause: str, reason: Reason | None
) -> None:
    decision = decided(said(kind), now=BUDGET.deadline + S)  # an answer to a request sent before it still counts
    assert isinstance(decision, Conclude)
    asked = decision.question.reason if decision.question else None
    assert (decision.state, decision.cause, asked) == (state, cause, reason)


@pytest.mark.parametrize("kind", [Kind.FAILURE, Kind.CANCELLED, Kind.EXPIRED])
def test_an_operation_that_just_closes_asks_nobody(kind: Kind) -> None:
    decision = decided(said(kind), replace(OPERATION, escalate_ends=False))
    assert isinstance(decision, Conclude)
    assert decision.question is None


def spent(**counts: int) -> Operation:
    return replace(OPERATION, spent=Spent(**{"status_requests": 1, **counts}))


STOPS = [
    (said(Kind.ATTENTION), OPERATION, NOW, Reason.PROVIDER_WAITS),
    (said(Kind.UNKNOWN_STATE), OPERATION, NOW, Reason.UNKNOWN_STATE),
    (said(Kind.INVALID_RESPONSE), OPERATION, NOW, Reason.INVALID_RESPONSE),
    (said(Kind.JOB_ID_MISMATCH), OPERATION, NOW, Reason.JOB_ID_MISMATCH),
    (said(Kind.INVALID_RESULT), OPERATION, NOW, Reason.INVALID_RESULT),
    (said(Kind.DENIED), OPERATION, NOW, Reason.AUTHORIZATION_DENIED),
    (said(Kind.TARGET_DENIED), OPERATION, NOW, Reason.TARGET_DENIED),
    (said(Kind.NOT_FOUND), OPERATION, T0 + 120 * S, Reason.JOB_NOT_FOUND),
    (said(Kind.RATE_LIMITED), spent(rate_limited=10), NOW, Reason.RATE_LIMITED),
    (said(Kind.TRANSPORT_FAILURE), spent(transport_failures=5), NOW, Reason.TRANSPORT_FAILURES_EXHAUSTED),
    (said(Kind.PENDING, overdue=True), OPERATION, NOW, Reason.JOB_OVERDUE),
    (said(Kind.PENDING), OPERATION, T0 + 500 * S, Reason.STALLED),
    (said(Kind.PENDING), OPERATION, BUDGET.deadline, Reason.STALLED),
    (said(Kind.RATE_LIMITED), OPERATION, BUDGET.deadline, Reason.DEADLINE_EXCEEDED),
    (said(Kind.PENDING), spent(status_requests=50), NOW, Reason.REQUEST_BUDGET_EXHAUSTED),
    (said(Kind.TRANSPORT_FAILURE), spent(status_requests=50), NOW, Reason.REQUEST_BUDGET_EXHAUSTED),
]


@pytest.mark.parametrize(("observation", "operation", "now", "reason"), STOPS)
def test_what_stops_and_asks_a_person(
    observation: Observation, operation: Operation, now: datetime, reason: Reason
) -> None:
    decision = decided(observation, operation, now)
    assert isinstance(decision, Stop)
    assert (decision.question.reason, decision.question.blocking) == (reason, True)


def test_an_error_the_table_stops_on_is_not_tried_again() -> None:
    """R-TABLE-5: which errors of the network are retried."""
    table = replace(TABLE, status=replace(TABLE.status, stop_on=frozenset({Trouble.TLS})))
    kinds = {}
    for trouble in (None, *Trouble):
        seen = said(Kind.TRANSPORT_FAILURE, trouble=trouble, detail="no certificate")
        kinds[trouble] = decide(table, spent(transport_failures=1), seen, now=NOW, draw=LONGEST)
    stop = kinds.pop(Trouble.TLS)
    assert isinstance(stop, Stop)
    assert (stop.question.reason, stop.question.detail) == (
        Reason.TRANSPORT_FAILURES_EXHAUSTED,
        "The table stops at once on tls: no certificate",
    )
    assert {type(decision) for decision in kinds.values()} == {Wait}


DAY = timedelta(days=1)
RETENTIONS = [
    (Retention(), 40 * DAY, ""),
    (Retention(job=30 * DAY), 26 * DAY, ""),
    (Retention(job=30 * DAY), 27 * DAY, " The provider keeps the job until 2030-02-06 12:00:00 UTC."),
    (Retention(job=30 * DAY), 30 * DAY, " The provider kept the job until 2030-02-06 12:00:00 UTC only."),
    (Retention(result=24 * 3600 * S), 26 * DAY, " The provider keeps a result for 1d after the job has ended."),
    (
        Retention(job=30 * DAY, result=1800 * S),
        29 * DAY,
        (
            " The provider keeps the job until 2030-02-06 12:00:00 UTC."
            " The provider keeps a result for 30m after the job has ended."
        ),
    ),
]


@pytest.mark.parametrize(("retention", "age", "told"), RETENTIONS)
def test_a_person_is_told_how_long_the_provider_keeps_things(retention: Retention, age: timedelta, told: str) -> None:
    """R-TABLE-5, R-FACT-2: at every limit of our own looking, and when the job is not found."""
    table, now = replace(TABLE, retention=retention), T0 + age
    asked = [
        decide_unsent(OPERATION, now=now, table=table),
        *(
            decide(table, spent(transport_failures=5), said(kind, detail="Gone."), now=now, draw=LONGEST)
            for kind in (Kind.NOT_FOUND, Kind.RATE_LIMITED, Kind.TRANSPORT_FAILURE, Kind.PENDING)
        ),
    ]
    plain = [
        decide_unsent(OPERATION, now=now),
        *(
            decide(TABLE, spent(transport_failures=5), said(kind, detail="Gone."), now=now, draw=LONGEST)
            for kind in (Kind.NOT_FOUND, Kind.RATE_LIMITED, Kind.TRANSPORT_FAILURE, Kind.PENDING)
        ),
    ]
    for stop, bare in zip(asked, plain, strict=True):
        assert isinstance(stop, Stop)
        assert isinstance(bare, Stop)
        assert stop.question.detail == bare.question.detail + told
    other = decide(table, OPERATION, said(Kind.UNKNOWN_STATE, detail="odd"), now=now, draw=LONGEST)
    assert isinstance(other, Stop)
    assert other.question.detail == "odd"


@pytest.mark.parametrize(
    ("detail", "first"),
    [("Gone", "Gone. "), ("Gone.", "Gone. "), ("Gone!", "Gone! "), ("Go…", "Go… "), ("", "")],
)
def test_what_was_seen_and_how_long_it_is_kept_are_two_sentences(detail: str, first: str) -> None:
    """What was seen may have no full stop of its own."""
    table = replace(TABLE, retention=Retention(result=24 * 3600 * S))
    stop = decide(table, OPERATION, said(Kind.NOT_FOUND, detail=detail), now=T0 + 26 * DAY, draw=LONGEST)
    assert isinstance(stop, Stop)
    assert stop.question.detail == f"{first}The provider keeps a result for 1d after the job has ended."


WAITS = [
    (said(Kind.PENDING), 2.0, DelaySource.LOCAL_BACKOFF),
    (said(Kind.NOT_FOUND), 2.0, DelaySource.LOCAL_BACKOFF),
    (said(Kind.TRANSPORT_FAILURE), 2.0, DelaySource.LOCAL_BACKOFF),
    (said(Kind.RATE_LIMITED), 2.0, DelaySource.LOCAL_BACKOFF),  # rate_limited counts are the charge's business
    (said(Kind.PENDING, wait=20), 22.0, DelaySource.PROVIDER_RETRY_AFTER),
    (said(Kind.RATE_LIMITED, wait=20), 22.0, DelaySource.PROVIDER_RETRY_AFTER),
    (said(Kind.TRANSPORT_FAILURE, wait=20), 22.0, DelaySource.PROVIDER_RETRY_AFTER),
    (said(Kind.PENDING, wait=0), 2.0, DelaySource.LOCAL_BACKOFF),
]


@pytest.mark.parametrize(("observation", "delay_s", "source"), WAITS)
def test_what_waits_how_long_and_why(observation: Observation, delay_s: float, source: DelaySource) -> None:
    decision = decided(observation)
    assert isinstance(decision, Wait)
    assert (decision.delay, decision.source) == (pytest.approx(delay_s * S, abs=S / 1000), source)
    assert decision.not_before == decision.at == NOW + decision.delay


def test_silent_429_answers_back_off_steeply() -> None:
    delays = []
    for count in (1, 2, 3):
        decision = decided(said(Kind.RATE_LIMITED), spent(rate_limited=count, status_requests=count))
        assert isinstance(decision, Wait)
        delays.append(decision.delay / S)
    assert delays == pytest.approx([8, 64, 240], rel=1e-6)


def test_guidance_past_the_deadline_waits_for_the_deadline_and_keeps_the_floor() -> None:
    decision = decided(said(Kind.TRANSPORT_FAILURE, wait=999_999))
    assert isinstance(decision, Wait)
    assert (decision.at, decision.source) == (BUDGET.deadline, DelaySource.PROVIDER_RETRY_AFTER)
    assert decision.not_before >= NOW + 999_999 * S


def test_a_business_deadline_is_a_wake_up_of_its_own_and_is_told_once() -> None:
    needed_by = NOW + 10 * S
    operation = replace(OPERATION, budget=replace(BUDGET, needed_by=needed_by))
    decision = decided(said(Kind.PENDING, wait=100), operation)
    assert isinstance(decision, Wait)
    assert (decision.at, decision.not_before) == (needed_by, NOW + decision.delay)
    assert business_question(operation, now=NOW) is None
    question = business_question(operation, now=needed_by)
    assert question is not None
    assert (question.reason, question.blocking) == (Reason.BUSINESS_DEADLINE_EXCEEDED, False)
    assert business_question(replace(operation, needed_by_told=True), now=needed_by) is None
    parked = decide_unsent(replace(operation, not_before=NOW + 100 * S), now=needed_by)
    assert isinstance(parked, Wait)
    assert parked.at == NOW + 100 * S


def test_a_row_that_may_not_send_stops_at_its_limits_or_is_parked_at_its_floor() -> None:
    late = decide_unsent(OPERATION, now=BUDGET.deadline)
    broke = decide_unsent(spent(status_requests=50), now=NOW)
    early = decide_unsent(replace(OPERATION, not_before=NOW + 7 * S, delay_source="provider_poll_hint"), now=NOW)
    assert isinstance(late, Stop)
    assert isinstance(broke, Stop)
    assert isinstance(early, Wait)
    assert (late.question.reason, broke.question.reason) == (
        Reason.DEADLINE_EXCEEDED,
        Reason.REQUEST_BUDGET_EXHAUSTED,
    )
    assert (early.at, early.source) == (NOW + 7 * S, DelaySource.PROVIDER_POLL_HINT)


def test_a_persons_look_may_wait_past_the_deadline_but_not_for_ever() -> None:
    until = BUDGET.deadline + 300 * S
    looking = replace(OPERATION, last_look=True, look_until=until, not_before=BUDGET.deadline + 60 * S)
    parked = decide_unsent(looking, now=BUDGET.deadline + S)
    assert isinstance(parked, Wait)
    assert parked.at == looking.not_before
    assert isinstance(decide_unsent(looking, now=until), Stop)


def test_an_extension_restarts_the_stall_clock_and_accepts_the_expiry_that_was_told() -> None:
    resumed = replace(OPERATION, resumed_at=T0 + 500 * S)
    assert isinstance(decided(said(Kind.PENDING), resumed, T0 + 900 * S), Wait)
    assert isinstance(decided(said(Kind.PENDING), resumed, T0 + 1000 * S), Stop)
    told = said(Kind.PENDING, overdue=True, expires_at=T0 + 400 * S)
    news = said(Kind.PENDING, overdue=True, expires_at=T0 + 600 * S)
    assert isinstance(decided(told, resumed, T0 + 700 * S), Wait)
    assert isinstance(decided(news, resumed, T0 + 700 * S), Stop)


_S = OperationState
ENDS = [
    (_S.SUCCEEDED, _S.FAILED, True),
    (_S.FAILED, _S.SUCCEEDED, True),
    (_S.ABANDONED, _S.SUCCEEDED, True),
    (_S.SUCCEEDED, _S.SUCCEEDED, False),
    (_S.SUCCEEDED, _S.RUNNING, False),
    (_S.SUCCEEDED, _S.ESCALATED, False),
    (_S.RUNNING, _S.FAILED, False),
]


@pytest.mark.parametrize(("stored", "late", "asked"), ENDS)
def test_a_late_answer_contradicts_an_end_only_with_another_end(
    stored: OperationState, late: OperationState, asked: bool
) -> None:
    """R-END-1, R-READ-7, B047."""
    question = contradiction(replace(OPERATION, state=stored), replace(OPERATION, state=late))
    assert (question is not None) == asked
    if question is not None:
        assert (question.reason, question.blocking) == (Reason.STATE_CONTRADICTION, False)
        assert stored in question.detail
        assert late in question.detail


CHARGES = [
    (said(Kind.RATE_LIMITED), Spent(rate_limited=1)),
    (said(Kind.TRANSPORT_FAILURE), Spent(transport_failures=1)),
    (said(Kind.TRANSPORT_FAILURE, trouble=Trouble.LATE), Spent()),
    (said(Kind.PENDING), Spent()),
    (said(Kind.DENIED), Spent()),
]


@pytest.mark.parametrize(("observation", "expected"), CHARGES)
def test_each_answer_is_charged_to_its_own_budget(observation: Observation, expected: Spent) -> None:
    assert charge(Spent(), observation) == expected


@given(
    kind=st.sampled_from(sorted(Kind)),
    wait=st.none() | st.integers(0, 10**7),
    used=st.integers(1, 60),
    seconds=st.integers(0, 5000),
    draw=st.floats(0, 1, exclude_max=True),
)
def test_no_wait_undercuts_guidance_the_least_interval_or_passes_the_deadline(
    kind: Kind, wait: int | None, used: int, seconds: int, draw: float
) -> None:
    """INV-04, INV-05 for every kind of answer, error paths included."""
    now = T0 + seconds * S
    decision = decide(TABLE, spent(status_requests=used), said(kind, wait=wait), now=now, draw=draw)
    if isinstance(decision, Wait):
        assert decision.not_before >= now + max(TABLE.polling.min_interval, (wait or 0) * S)
        assert now <= decision.at <= BUDGET.deadline
        assert used < BUDGET.status_requests
