"""What permits a submission to be sent (again), as rows (R-SUB-4, INV-18). Flow tests show the ways as a whole."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobtrack.core.actions import Idempotency, LookupSpec, SubmitMeaning
from jobtrack.core.decide import Conclude, Stop
from jobtrack.core.escalation import Reason
from jobtrack.core.evidence import evidence_of, handover_of
from jobtrack.core.observation import DelaySource, Guidance, Kind, Observation
from jobtrack.core.operation import Operation, OperationState, Spent
from jobtrack.core.recover import (
    MARGIN,
    Doubt,
    Follow,
    Later,
    LookUp,
    Rest,
    Scene,
    Send,
    after_lookup,
    after_submission,
    lapsed,
    may_repeat,
    permission,
    plan,
)
from jobtrack.core.submission import Handover, LookupKind, LookupSeen, SubmitSeen
from jobtrack.core.table import ProviderTable
from jobtrack.core.terms import permits
from tests.core.test_decide import BUDGET, NOW, OPERATION, TABLE
from tests.flow.test_submit import KEY, PROVEN, SUBMIT, UNPROVEN

S = timedelta(seconds=1)
D = TABLE.limits.total

READY = replace(
    OPERATION,
    state=OperationState.READY,
    job_id="",
    accepted_at=None,
    not_before=None,
    budget=replace(BUDGET, submissions=3, lookups=4),
    submit_by=NOW + 600 * S,
    idempotency_key="op-1",
    fingerprint="f" * 64,
    sealed="sealed",
    permits="key idempotency-key\nabsence",
)
DOUBTFUL = replace(
    READY,
    state=OperationState.UNCONFIRMED,
    doubt="time-out",
    spent=Spent(submissions=1),
    first_sent_at=NOW - 60 * S,
    last_sent_at=NOW - 40 * S,
    recover_until=NOW + 3000 * S,
)
ABSENT = replace(DOUBTFUL, doubt="")


def table(*, lookup: LookupSpec | None = None, key: Idempotency | None = None, **more: Any) -> ProviderTable:
    return replace(TABLE, submit=replace(SUBMIT, lookup=lookup, idempotency=key, **more))


def key_for(left: timedelta) -> Idempotency:
    """A key that ends ``left`` from now."""
    return replace(KEY, lifetime=60 * S + left)


REPLAYS = replace(KEY, replays_errors=True)
USED_UP = replace(DOUBTFUL, spent=Spent(submissions=3))

PERMITTED = [
    ("nothing says so", table(), DOUBTFUL, ""),
    ("the key holds", table(key=KEY), DOUBTFUL, "idempotency"),
    ("the key holds just long enough", table(key=key_for(D + MARGIN + S)), DOUBTFUL, "idempotency"),
    ("the answer could come after the key has ended", table(key=key_for(D + MARGIN)), DOUBTFUL, ""),
    ("the key has ended", table(key=key_for(-S)), DOUBTFUL, ""),
    ("the first answer was no answer", table(key=REPLAYS), DOUBTFUL, "idempotency"),
    ("errors are replayed", table(key=REPLAYS), replace(DOUBTFUL, doubt_http=500), ""),
    ("errors are not replayed", table(key=KEY), replace(DOUBTFUL, doubt_http=500), "idempotency"),
    ("the provider said that it has a job", table(key=KEY), replace(DOUBTFUL, acceptance_seen=True), ""),
    ("the attempts are used", table(key=KEY), USED_UP, ""),
    ("the recovery deadline has passed", table(key=KEY), replace(DOUBTFUL, recover_until=NOW), ""),
    ("a person granted a look-up only", table(key=KEY), replace(DOUBTFUL, last_look=True), ""),
    ("nothing was ever sent under the key", table(key=KEY), replace(DOUBTFUL, first_sent_at=None), ""),
    ("proven absent", table(lookup=PROVEN), ABSENT, "absent"),
    ("proven absent, but the provider had said otherwise", table(), replace(ABSENT, acceptance_seen=True), ""),
    ("proven absent, attempts used", table(), replace(ABSENT, spent=Spent(submissions=3)), ""),
    ("the table submits nothing any more", TABLE, DOUBTFUL, ""),
    ("the key came with a later table", table(key=KEY), replace(DOUBTFUL, permits="absence"), ""),
    ("a later table names another header", table(key=replace(KEY, header="Key")), DOUBTFUL, ""),
    ("absence became a proof with a later table", table(lookup=PROVEN), replace(ABSENT, permits=""), ""),
    ("absence is no proof any more", table(lookup=UNPROVEN), ABSENT, ""),
]


@pytest.mark.parametrize(
    ("spec", "operation", "expected"), [row[1:] for row in PERMITTED], ids=[r[0] for r in PERMITTED]
)
def test_what_permits_a_repeat(spec: ProviderTable, operation: Operation, expected: str) -> None:
    assert permission(spec, operation, now=NOW) == expected
    assert may_repeat(spec, operation, NOW) is bool(expected)


LATE_EVIDENCE = {"job_id": "job-1", "status_url": "", "params": {"region": "eu"}, "sealed": ""}
HANDED = Handover(job_id="job-1", params={"region": "eu"})
UNSENT = Reason.SUBMISSION_UNSENT
UNKNOWN = Reason.SUBMISSION_UNKNOWN

PLANS = [
    ("a first time", table(), READY, Send(because="first")),
    ("again, proven unsent", table(), replace(READY, first_sent_at=NOW), Send(because="unsent")),
    ("too early", table(), replace(READY, not_before=NOW + S), Rest(at=NOW + S)),
    ("its time is over", table(), replace(READY, submit_by=NOW), UNSENT),
    ("its attempts are used", table(), replace(READY, spent=Spent(submissions=3)), UNSENT),
    (
        "a person grants one more",
        table(),
        replace(READY, submit_by=NOW, spent=Spent(submissions=3), last_look=True, look_until=NOW + S),
        Send(because="person"),
    ),
    ("a person's grant is over", table(), replace(READY, submit_by=NOW, last_look=True, look_until=NOW), UNSENT),
    ("look up first", table(lookup=PROVEN, key=KEY), DOUBTFUL, LookUp()),
    (
        "after a look-up that settled nothing the key is better",
        table(lookup=PROVEN, key=KEY),
        replace(DOUBTFUL, spent=Spent(submissions=1, lookups=1)),
        Send(because="idempotency"),
    ),
    ("no look-up left", table(lookup=UNPROVEN), replace(DOUBTFUL, spent=Spent(submissions=1, lookups=4)), UNKNOWN),
    ("no time left to look up", table(lookup=UNPROVEN), replace(DOUBTFUL, recover_until=NOW), UNKNOWN),
    ("proven absent", table(lookup=PROVEN), ABSENT, Send(because="absent")),
    ("proven absent, attempts used", table(lookup=PROVEN), replace(ABSENT, spent=Spent(submissions=3)), UNSENT),
    ("late evidence", table(), replace(DOUBTFUL, evidence=LATE_EVIDENCE), Follow(handover=HANDED)),
    ("late evidence needs no submit", TABLE, replace(DOUBTFUL, evidence=LATE_EVIDENCE), Follow(handover=HANDED)),
    ("a table without submit, in doubt", TABLE, DOUBTFUL, UNKNOWN),
    ("a table without submit, unsent", TABLE, READY, UNSENT),
    (
        "a grant to submit again that nobody took up, in doubt",
        table(),
        replace(READY, doubt="time-out", submit_by=NOW - S, last_look=True, look_until=NOW),
        UNKNOWN,
    ),
]


@pytest.mark.parametrize(("spec", "operation", "expected"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS])
def test_the_next_step(spec: ProviderTable, operation: Operation, expected: object) -> None:
    step = plan(spec, operation, now=NOW)
    assert (step.question.reason if isinstance(step, Stop) else step) == expected


@pytest.mark.parametrize(
    "state", [s for s in OperationState if s not in (OperationState.READY, OperationState.UNCONFIRMED)]
)
def test_no_other_state_may_submit(state: OperationState) -> None:
    """R-SUB-1."""
    assert not may_repeat(table(key=KEY, lookup=PROVEN), replace(DOUBTFUL, state=state), NOW)


def test_a_submission_that_lapsed_is_a_doubt_from_the_end_of_its_lease() -> None:
    """Its worker may have sent until then: a look-up's settle time counts from there."""
    out = replace(ABSENT, state=OperationState.SUBMITTING, recover_until=None, last_sent_at=NOW - 40 * S)
    after = lapsed(table(lookup=PROVEN), out, sent_by=NOW - 10 * S, now=NOW)
    assert (after.state, after.last_sent_at) == (OperationState.UNCONFIRMED, NOW - 10 * S)
    assert after.doubt
    assert after.recover_until == NOW + SUBMIT.recovery.deadline
    assert lapsed(None, out, sent_by=NOW, now=NOW).recover_until is None


def seen(meaning: SubmitMeaning | None, kind: Kind = Kind.INVALID_RESPONSE, **more: Any) -> SubmitSeen:
    guidance = more.pop("guidance", None)
    return SubmitSeen(meaning=meaning, observation=Observation(kind=kind, detail="said", guidance=guidance), **more)


def test_what_a_table_permits_is_told_by_its_places() -> None:
    assert permits(replace(SUBMIT, idempotency=KEY, lookup=PROVEN)) == "key idempotency-key\nabsence"
    assert permits(replace(SUBMIT, idempotency=Idempotency(query="request_id"))) == "key request_id"
    assert permits(replace(SUBMIT, lookup=UNPROVEN)) == ""


def scene(spec: ProviderTable, operation: Operation = READY) -> Scene:
    sent = replace(operation, state=OperationState.SUBMITTING, spent=Spent(submissions=operation.spent.submissions + 1))
    return Scene(table=spec, operation=replace(sent, first_sent_at=NOW - S, last_sent_at=NOW), now=NOW, draw=0.0)


def test_an_address_that_is_not_allowed_stops_although_nothing_was_sent() -> None:
    fate = after_submission(scene(table()), seen(None, Kind.TARGET_DENIED))
    assert isinstance(fate, Stop)
    assert fate.question.reason is Reason.TARGET_DENIED


def test_a_failure_before_sending_after_a_doubt_leaves_the_doubt() -> None:
    fate = after_submission(scene(table(key=KEY), DOUBTFUL), seen(None, Kind.TRANSPORT_FAILURE))
    assert isinstance(fate, Doubt)
    assert fate.why == "time-out"


def test_a_wait_past_the_time_to_submit_asks_a_person_now() -> None:
    wait = Guidance(source=DelaySource.PROVIDER_RETRY_AFTER, raw="9000", wait=9000 * S)
    fate = after_submission(scene(table()), seen(SubmitMeaning.BUSY, guidance=wait))
    assert isinstance(fate, Stop)
    assert fate.question.reason is UNSENT


def test_a_busy_answer_is_tried_later_as_asked() -> None:
    wait = Guidance(source=DelaySource.PROVIDER_RETRY_AFTER, raw="90", wait=90 * S)
    fate = after_submission(scene(table()), seen(SubmitMeaning.BUSY, guidance=wait))
    assert fate == Later(at=NOW + 90 * S, source=DelaySource.PROVIDER_RETRY_AFTER)


def test_a_rejection_asks_nobody_if_failures_just_close() -> None:
    fate = after_submission(scene(table(), replace(READY, escalate_ends=False)), seen(SubmitMeaning.REJECTED))
    assert fate == Conclude(state=OperationState.FAILED, cause="submission_rejected")


def test_an_end_that_a_submission_cannot_come_to_is_followed_instead() -> None:
    expired = Observation(kind=Kind.EXPIRED, label="expired")
    with_id = seen(SubmitMeaning.FINAL, handover=Handover(job_id="job-1"), status=expired)
    assert after_submission(scene(table()), with_id) == Follow(handover=Handover(job_id="job-1"), status=expired)
    without = after_submission(scene(table()), seen(SubmitMeaning.FINAL, status=expired))
    assert isinstance(without, Doubt)
    assert without.seen


def test_a_key_used_with_other_content_is_never_sent_again() -> None:
    fate = after_submission(scene(table(key=KEY)), seen(SubmitMeaning.MISMATCH))
    assert isinstance(fate, Doubt)
    assert fate.seen
    assert fate.question is not None


def looked(kind: LookupKind, *, answered: Kind = Kind.PENDING, **more: Any) -> LookupSeen:
    return LookupSeen(
        kind=kind, observation=Observation(kind=answered, detail="said", guidance=more.pop("guidance", None)), **more
    )


def look(operation: Operation, spec: ProviderTable) -> Scene:
    return Scene(table=spec, operation=operation, now=NOW, draw=0.0)


def test_absence_is_proof_once_it_has_settled_and_not_before() -> None:
    spec = table(lookup=PROVEN)  # 30 s
    settled = after_lookup(look(DOUBTFUL, spec), looked(LookupKind.ABSENT))
    assert isinstance(settled, Doubt)
    assert (settled.why, settled.at) == ("", NOW)
    early = after_lookup(look(replace(DOUBTFUL, last_sent_at=NOW - 29 * S), spec), looked(LookupKind.ABSENT))
    assert isinstance(early, Doubt)
    assert early.why == "time-out"


def test_absence_never_outweighs_the_providers_own_word() -> None:
    claimed = replace(DOUBTFUL, acceptance_seen=True)
    fate = after_lookup(look(claimed, table(lookup=PROVEN)), looked(LookupKind.ABSENT))
    assert isinstance(fate, Doubt)
    assert fate.why == "time-out"


def test_a_look_up_that_is_refused_access_asks_for_it() -> None:
    fate = after_lookup(look(DOUBTFUL, table(lookup=PROVEN)), looked(LookupKind.UNREADABLE, answered=Kind.DENIED))
    assert isinstance(fate, Stop)
    assert fate.question.reason is Reason.AUTHORIZATION_DENIED


def test_a_wait_that_a_look_up_was_given_is_kept_also_before_a_repeat() -> None:
    """INV-04."""
    wait = Guidance(source=DelaySource.PROVIDER_RETRY_AFTER, raw="90", wait=90 * S)
    for spec, operation in ((table(lookup=PROVEN), DOUBTFUL), (table(lookup=UNPROVEN, key=KEY), DOUBTFUL)):
        fate = after_lookup(look(operation, spec), looked(LookupKind.ABSENT, guidance=wait))
        assert isinstance(fate, Doubt)
        assert fate.at >= NOW + 90 * S


def test_evidence_holds_what_is_needed_and_nothing_open_that_is_secret() -> None:
    followed = replace(OPERATION, params={"region": "eu"}, sealed="token")
    kept = evidence_of(followed)
    assert kept == {
        "job_id": OPERATION.job_id,
        "status_url": OPERATION.status_url,
        "params": {"region": "eu"},
        "sealed": "token",
    }
    assert handover_of(kept).params == {"region": "eu"}
    assert handover_of({"params": "odd"}) == Handover()
