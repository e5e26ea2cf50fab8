"""R-SUB-8, R-CALL-2, R-FACT: the contract for callers, and its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jobtrack.core.actions import AcceptedSpec, CancelSpec, Idempotency, LookupSpec, SubmitSpec
from jobtrack.core.escalation import Reason
from jobtrack.core.operation import TERMINAL, Budget, Lease, Operation, OperationState, Spent
from jobtrack.core.outcome import LastRequest, outcome, verdict
from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.reply import Trouble
from jobtrack.core.table import Param, ParamPattern
from tests.core.builders import OPERATION, T0, TABLE, S, table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "outcome.md").read_text(encoding="utf-8")
SCHEMA = json.loads((resources.files("jobtrack.catalog") / "schema" / "outcome-1.json").read_text(encoding="utf-8"))
VALID = Draft202012Validator(SCHEMA)
ESCALATED = replace(OPERATION, state=OperationState.ESCALATED)

UNCLEAR = {
    *(Reason.UNKNOWN_STATE, Reason.INVALID_RESPONSE, Reason.JOB_ID_MISMATCH),
    *(Reason.INVALID_RESULT, Reason.JOB_NOT_FOUND, Reason.TARGET_DENIED, Reason.SUBMISSION_UNKNOWN),
}

HOUR = timedelta(hours=1)
LOOKUP = LookupSpec(
    request=RequestSpec(path="/v1/jobs/by-ref/{operation_id}", query=(("key", "{idempotency_key}"),)), found=()
)
SUBMIT = SubmitSpec(request=RequestSpec(method="POST", path="/v1/jobs"), accepted=AcceptedSpec())
KEYED = replace(SUBMIT, idempotency=Idempotency(header="Idempotency-Key", lifetime=HOUR))
READY = Operation(
    id="op-1",
    provider="acme",
    account="default",
    job_id="",
    state=OperationState.READY,
    budget=replace(OPERATION.budget, submissions=5, lookups=10),
    created_at=T0,
    accepted_at=None,
    fingerprint="f" * 64,
    idempotency_key="key-s3cret",
    submit_by=T0 + HOUR,
    wake_at=T0,
    permits="key idempotency-key",
)
ASKED = replace(
    READY,
    state=OperationState.UNCONFIRMED,
    spent=Spent(submissions=1),
    first_sent_at=T0,
    last_sent_at=T0 + 30 * S,
    recover_until=T0 + HOUR,
    doubt="read timeout",
)


def told(operation: Operation, *reasons: Reason, at: timedelta = S * 0, **known: object) -> dict[str, object]:
    """An outcome, checked by the published schema."""
    value = outcome(operation, reasons, now=T0 + at, **known)
    assert [error.message for error in VALID.iter_errors(value)] == []
    return value


@pytest.mark.parametrize("reason", Reason)
def test_a_limit_of_the_observer_is_never_a_failure(reason: Reason) -> None:
    """R-FACT-2."""
    assert verdict(ESCALATED, [reason]) == ("unknown" if reason in UNCLEAR else "pending")


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_end_is_told_as_it_is_whatever_is_asked_about_it(state: OperationState) -> None:
    assert verdict(replace(OPERATION, state=state), [Reason.STATE_CONTRADICTION, Reason.UNKNOWN_STATE]) == state.value


def test_what_was_sent_without_an_answer_is_unknown() -> None:
    assert verdict(replace(OPERATION, state=OperationState.UNCONFIRMED), []) == "unknown"
    assert verdict(OPERATION, []) == "pending"


# --- when to ask again ------------------------------------------------------------------------------

WAITS = [(None, None), (T0 + 40 * S, 41), (T0 + 0.2 * S, 1), (T0, 1), (T0 - 40 * S, 1)]


@pytest.mark.parametrize(("wake_at", "retry_after_s"), WAITS)
def test_asking_again_makes_sense_after_the_next_look(wake_at, retry_after_s) -> None:
    value = told(replace(OPERATION, wake_at=wake_at))
    assert (value["retry_after_s"], value["next_look_at"]) == (retry_after_s, wake_at and wake_at.isoformat())


def test_why_the_next_look_is_when_it_is_and_that_one_is_under_way() -> None:
    waiting = replace(OPERATION, wake_at=T0 + 40 * S, delay_source="gate")
    asking = replace(waiting, lease=Lease(owner="w1", until=T0 + 40 * S))
    rows = [waiting, asking, replace(waiting, wake_at=None), replace(waiting, delay_source="")]
    because = [told(row)["next_look_because"] for row in rows]
    assert because == ["gate", "under_way", None, None]


# --- a submission whose outcome nobody knows -------------------------------------------------------

UNDER_WAY = replace(
    ASKED, state=OperationState.SUBMITTING, recover_until=None, lease=Lease(owner="w", until=T0 + 30 * S)
)
STOPPED = replace(ASKED, state=OperationState.ESCALATED, wake_at=None)
WORDS = [
    (READY, (), "pending"),  # nothing was sent
    (replace(READY, recover_until=T0), (), "pending"),  # proven: what was sent before was not accepted
    (UNDER_WAY, (), "pending"),
    (replace(UNDER_WAY, lease=Lease(owner="w", until=T0)), (), "unknown"),  # its worker is gone: it may have sent
    (replace(UNDER_WAY, recover_until=T0 + HOUR), (), "unknown"),  # a repeat, while the first attempt is in doubt
    (ASKED, (), "unknown"),
    (STOPPED, (Reason.SUBMISSION_UNKNOWN,), "unknown"),
    (STOPPED, (Reason.SUBMISSION_UNSENT,), "pending"),  # proven: nothing was accepted
    (STOPPED, (Reason.SEAL_BROKEN,), "unknown"),
    (replace(READY, state=OperationState.ESCALATED), (Reason.SEAL_BROKEN,), "pending"),
    (replace(STOPPED, recover_until=None, acceptance_seen=True), (Reason.TABLE_MISSING,), "unknown"),
    (replace(ASKED, state=OperationState.RUNNING, accepted_at=T0, job_id="j"), (Reason.CANCEL_UNKNOWN,), "pending"),
]


@pytest.mark.parametrize(("operation", "reasons", "word"), WORDS)
def test_a_submission_is_unknown_exactly_while_it_may_have_been_heard_without_proof(operation, reasons, word) -> None:
    """R-SUB-2, R-FACT-2."""
    assert told(operation, *reasons, table=table(submit=SUBMIT))["outcome"] == word


def test_while_a_request_is_under_way_asking_again_soon_makes_sense() -> None:
    """R-CALL-2: its lease ends long after its answer."""
    leased = replace(UNDER_WAY, wake_at=T0 + 30 * S, lease=Lease(owner="w", until=T0 + 30 * S))
    assert told(leased)["retry_after_s"] == 2


RETRY = [
    ("not sent yet", READY, KEYED, S, True),
    ("not sent yet, and no key is needed for a first time", READY, SUBMIT, S, True),
    ("too late to send it for the first time", READY, KEYED, HOUR, False),
    ("all attempts used", replace(READY, spent=Spent(submissions=5)), KEYED, S, False),
    ("under way", UNDER_WAY, KEYED, S, False),
    ("in doubt, the key is fresh", ASKED, KEYED, 60 * S, True),
    ("in doubt, the key is too old", ASKED, KEYED, 2 * HOUR, False),
    ("B051: no key and no look-up", ASKED, SUBMIT, 60 * S, False),
    ("a look-up that has not said absent", ASKED, replace(SUBMIT, lookup=LOOKUP), 60 * S, False),
    ("the provider said that it has a job", replace(ASKED, acceptance_seen=True), KEYED, 60 * S, False),
    ("a late answer names a job", replace(ASKED, evidence={"job_id": "j"}), KEYED, 60 * S, False),
    ("a person decides", STOPPED, KEYED, 60 * S, False),
    ("tracked", replace(OPERATION, state=OperationState.READY), KEYED, S, False),
]


@pytest.mark.parametrize(
    ("operation", "submit", "at", "allowed"), [row[1:] for row in RETRY], ids=[row[0] for row in RETRY]
)
def test_a_machine_may_submit_again_only_where_table_and_row_permit_it_now(operation, submit, at, allowed) -> None:
    """R-SUB-4, R-SUB-5."""
    assert told(operation, at=at, table=table(submit=submit))["retry_allowed"] is allowed


def test_nothing_is_allowed_without_a_table_and_for_a_job_that_has_ended() -> None:
    ended = {told(replace(ASKED, state=state), table=table(submit=KEYED))["retry_allowed"] for state in TERMINAL}
    assert (ended, told(READY)["retry_allowed"], told(READY)["cancel"]["allowed"]) == ({False}, False, False)


BY_REF = {"method": "GET", "path": "/v1/jobs/by-ref/op-1"}
SECRETS = RequestSpec(path="/v1/{region}/{idempotency_key}/{handle}/{payload/name}/{reference}")
SETTLES = [
    (ASKED, LOOKUP, BY_REF),
    (STOPPED, LOOKUP, BY_REF),
    (replace(ASKED, id="a/b?c"), LOOKUP, {"method": "GET", "path": "/v1/jobs/by-ref/a%2Fb%3Fc"}),
    (ASKED, None, None),  # nothing can prove it
    (READY, LOOKUP, None),  # there is nothing to settle
    (UNDER_WAY, LOOKUP, None),
    (
        replace(ASKED, params={"region": "eu"}, reference="invoice 7"),
        LookupSpec(request=SECRETS, found=()),
        {"method": "GET", "path": "/v1/eu/{idempotency_key}/{handle}/{payload/name}/invoice%207"},
    ),
]


@pytest.mark.parametrize(("operation", "lookup", "expected"), SETTLES)
def test_a_look_up_settles_an_unknown_submission_and_its_path_holds_no_secret(operation, lookup, expected) -> None:
    """R-SUB-3, R-SUB-5."""
    reasons = (Reason.SUBMISSION_UNKNOWN,) if operation.state is OperationState.ESCALATED else ()
    value = told(operation, *reasons, table=table(submit=replace(SUBMIT, lookup=lookup)))
    assert value["reconcile"] == expected
    assert "s3cret" not in json.dumps(value)


def test_the_doubt_stays_on_record_after_it_has_been_settled() -> None:
    """R-FACT-3."""
    settled = replace(ASKED, state=OperationState.RUNNING, accepted_at=T0 + 60 * S, job_id="job-1")
    value = told(settled, table=table(submit=KEYED))
    assert (value["outcome"], value["reconcile"]) == ("pending", {"method": "GET", "path": "/v1/jobs/job-1"})
    assert value["submission"] == {
        "attempts": {"used": 1, "allowed": 5},
        "lookups": {"used": 0, "allowed": 10},
        "submit_by": "2030-01-07T13:00:00+00:00",
        "first_sent_at": "2030-01-07T12:00:00+00:00",
        "last_sent_at": "2030-01-07T12:00:30+00:00",
        "recover_until": "2030-01-07T13:00:00+00:00",
        "doubt": "read timeout",
        "doubt_http": None,
    }


# --- cancelling -------------------------------------------------------------------------------------

CANCEL = CancelSpec(request=RequestSpec(method="POST", path="/v1/jobs/{job_id}/cancel"), effect="Stops it.")
TWICE = replace(CANCEL, repeatable=True)
BY_URL = replace(CANCEL, request=RequestSpec(method="DELETE"))
CANCELS = [
    (OPERATION, CANCEL, True),
    (ESCALATED, CANCEL, True),
    (OPERATION, None, False),
    (READY, CANCEL, False),
    (ASKED, CANCEL, False),
    (UNDER_WAY, CANCEL, False),
    (replace(OPERATION, state=OperationState.SUCCEEDED), CANCEL, False),
    (replace(OPERATION, job_id=""), CANCEL, False),
    (replace(OPERATION, job_id=""), BY_URL, True),
    (replace(OPERATION, cancel_state="requested"), TWICE, False),
    (replace(OPERATION, cancel_state="accepted"), TWICE, False),
    (replace(OPERATION, cancel_state="refused"), CANCEL, True),
    (replace(OPERATION, cancel_state="unknown"), CANCEL, False),
    (replace(OPERATION, cancel_state="unknown"), TWICE, True),
]


@pytest.mark.parametrize(("operation", "cancel", "allowed"), CANCELS)
def test_a_cancellation_may_be_asked_for_where_it_is_documented_and_there_is_a_job(operation, cancel, allowed) -> None:
    """R-END-5: what was asked says nothing about the job."""
    value = told(operation, table=table(cancel=cancel))
    effect = cancel.effect if cancel else None
    assert value["cancel"] == {"state": operation.cancel_state or None, "allowed": allowed, "effect": effect}
    assert value["outcome"] == verdict(replace(operation, cancel_state=""), [], now=T0)


# --- what the last request showed -------------------------------------------------------------------


def test_the_last_request_and_the_last_confirmed_state_are_kept_apart() -> None:
    """R-FACT-1: a look that failed says nothing about the job and erases nothing."""
    seen = replace(OPERATION, provider_state="running", provider_state_since=T0, observed_at=T0 + 5 * S, last_http=503)
    last = LastRequest(at="2030-01-07T12:00:09+00:00", http=503, trouble=None, request_id="req-9")
    value = told(seen, at=9 * S, last=last)
    assert value["observed"] == {
        "state": "running",
        "since": "2030-01-07T12:00:00+00:00",
        "at": "2030-01-07T12:00:05+00:00",
    }
    assert value["transport_observation"] == {
        "at": "2030-01-07T12:00:09+00:00",
        "http": 503,
        "trouble": None,
        "request_id": "req-9",
    }


def test_before_the_first_request_nothing_was_observed() -> None:
    value = told(OPERATION)
    assert value["transport_observation"] is None
    assert value["observed"] == {"state": None, "since": None, "at": None}
    assert value["correlation_id"] == value["operation_id"] == "op-1"


# --- what settles it --------------------------------------------------------------------------------

SECRET_QUERY = RequestSpec(path="/v1/jobs/{job_id}", query=(("account", "{job_id}"), ("key", "s3cret")))
POST = RequestSpec(method="POST", path="/v1/{project}/jobs:read", body_kind=BodyKind.JSON, body={"id": "{job_id}"})
PROJECT = {"project": Param(source="caller", pattern=ParamPattern.SLUG)}
QUESTIONS = [
    (TABLE, {}, {"method": "GET", "path": "/v1/jobs/job-1"}),
    (table({"request": SECRET_QUERY}), {}, {"method": "GET", "path": "/v1/jobs/job-1"}),
    (TABLE, {"job_id": "a/b?c"}, {"method": "GET", "path": "/v1/jobs/a%2Fb%3Fc"}),
    (
        table({"request": POST}, params=PROJECT),
        {"params": {"project": "p1"}},
        {"method": "POST", "path": "/v1/p1/jobs:read"},
    ),
    (table({"request": POST}, params=PROJECT), {}, None),  # the newest table asks for more than the operation has
    (table({"request": RequestSpec()}), {"status_url": "https://api.provider.example/cap/s3cret"}, None),
    (None, {}, None),
]


@pytest.mark.parametrize(("known", "changes", "expected"), QUESTIONS)
def test_the_question_that_settles_it_has_no_host_query_or_secret(known, changes, expected) -> None:
    value = told(replace(OPERATION, **changes), table=known)
    assert value["reconcile"] == expected
    assert "s3cret" not in json.dumps(value)


# --- the page ---------------------------------------------------------------------------------------


def test_the_page_shows_and_explains_every_key() -> None:
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    last = LastRequest(at=T0.isoformat(), http=200, trouble=None)
    value = told(replace(ASKED, state=OperationState.RUNNING, job_id="j", accepted_at=T0), table=TABLE, last=last)
    assert list(shown) == list(value) == list(SCHEMA["properties"]) == SCHEMA["required"]
    nested = [key for key, inside in shown.items() if isinstance(inside, dict) and key != "kept"]
    assert [list(shown[key]) for key in nested] == [list(value[key]) for key in nested]
    rows = {key: PAGE.split(f"| `{key}` |")[1].split("\n")[0] for key in value if f"| `{key}` |" in PAGE}
    assert list(rows) == list(value)
    unnamed = [(key, name) for key in nested for name in value[key] if f"`{name}`" not in rows[key]]
    assert unnamed == []


def test_the_example_of_the_page_is_true() -> None:
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    operation = replace(
        ASKED,
        state=OperationState.RUNNING,
        job_id="job-1",
        accepted_at=T0,
        last_sent_at=T0,
        recover_until=None,
        doubt="",
        id="0197-example",
        reference="invoice 7",
        wake_at=T0 + 100 * S,
        delay_source="provider_retry_after",
        provider_state="running",
        provider_state_since=T0 + 5 * S,
        observed_at=T0 + 30 * S,
        progress="40",
        last_http=503,
        spent=Spent(status_requests=3, transport_failures=1, submissions=1),
    )
    last = LastRequest(at=(T0 + timedelta(seconds=60)).isoformat(), http=503, trouble=None, request_id="req_81")
    assert told(operation, at=61 * S, table=table(cancel=CANCEL), last=last) == shown


# --- the schema -------------------------------------------------------------------------------------


def test_the_schema_is_sound_and_refuses_what_is_no_outcome() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    good = told(ASKED, table=table(submit=KEYED))
    wrong = {"outcome": "lost", "state": "gone", "retry_allowed": 1, "retry_after_s": 0, "accepted_at": "yesterday"}
    wrong |= {"submission": {}, "cancel": None, "reconcile": {"method": "GET", "path": "https://a/b"}, "version": 2}
    assert [key for key, value in wrong.items() if VALID.is_valid({**good, key: value})] == []
    assert [key for key in good if VALID.is_valid({k: v for k, v in good.items() if k != key})] == []
    assert VALID.is_valid({**good, "a key of a later release": 1})


INSTANTS = st.none() | st.integers(-7200, 7200).map(lambda s: T0 + s * S)
TEXTS = st.text(max_size=10)


@settings(max_examples=60, deadline=None)
@given(
    operation=st.builds(
        Operation,
        id=st.text(min_size=1, max_size=10),
        provider=st.just("acme"),
        account=TEXTS,
        job_id=TEXTS,
        state=st.sampled_from(OperationState),
        budget=st.builds(
            Budget,
            deadline=INSTANTS.filter(bool),
            **{
                name: st.integers(0, 9)
                for name in ("status_requests", "transport_failures", "rate_limited", "submissions")
            },
        ),
        spent=st.builds(Spent, submissions=st.integers(0, 9), lookups=st.integers(0, 9)),
        created_at=st.just(T0),
        lease=st.none() | st.builds(Lease, owner=st.just("w"), until=INSTANTS.filter(bool)),
        **dict.fromkeys(("accepted_at", "wake_at", "observed_at", "submit_by", "recover_until"), INSTANTS),
        **dict.fromkeys(("first_sent_at", "last_sent_at", "provider_state_since"), INSTANTS),
        **dict.fromkeys(("fingerprint", "doubt", "progress", "error", "reference", "delay_source"), TEXTS),
        cause=st.sampled_from(["", "submission_rejected", "provider_failure"]),
        cancel_state=st.sampled_from(["", "requested", "accepted", "refused", "unknown"]),
        acceptance_seen=st.booleans(),
        doubt_http=st.none() | st.integers(100, 599),
    ),
    reasons=st.lists(st.sampled_from(Reason), max_size=3),
    known=st.sampled_from(
        [None, TABLE, table(submit=KEYED, cancel=CANCEL), table(submit=replace(SUBMIT, lookup=LOOKUP))]
    ),
    last=st.none()
    | st.builds(
        LastRequest,
        at=st.just(T0.isoformat()),
        http=st.none() | st.integers(100, 599),
        trouble=st.none() | st.sampled_from(Trouble).map(str),
        request_id=TEXTS,
    ),
)
def test_every_outcome_fits_the_published_schema(operation, reasons, known, last) -> None:
    value = told(operation, *reasons, table=known, last=last)
    assert json.loads(json.dumps(value)) == value
    assert value["outcome"] != "failed" or operation.state is OperationState.FAILED
