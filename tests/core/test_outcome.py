"""R-SUB-8, R-CALL-2, R-FACT: the contract for callers, and its page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from jobtrack.core.escalation import Reason
from jobtrack.core.operation import TERMINAL, Lease, OperationState
from jobtrack.core.outcome import LastRequest, outcome, verdict
from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.table import Param, ParamPattern
from tests.core.builders import OPERATION, T0, TABLE, S, table

PAGE = (Path(__file__).parents[2] / "docs" / "outcome.md").read_text(encoding="utf-8")
ESCALATED = replace(OPERATION, state=OperationState.ESCALATED)

UNCLEAR = {
    *(Reason.UNKNOWN_STATE, Reason.INVALID_RESPONSE, Reason.JOB_ID_MISMATCH),
    *(Reason.INVALID_RESULT, Reason.JOB_NOT_FOUND, Reason.TARGET_DENIED),
}


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
    told = outcome(replace(OPERATION, wake_at=wake_at), [], now=T0)
    assert (told["retry_after_s"], told["next_look_at"]) == (retry_after_s, wake_at and wake_at.isoformat())


def test_why_the_next_look_is_when_it_is_and_that_one_is_under_way() -> None:
    waiting = replace(OPERATION, wake_at=T0 + 40 * S, delay_source="gate")
    asking = replace(waiting, lease=Lease(owner="w1", until=T0 + 40 * S))
    rows = [waiting, asking, replace(waiting, wake_at=None), replace(waiting, delay_source="")]
    because = [outcome(row, [], now=T0)["next_look_because"] for row in rows]
    assert because == ["gate", "under_way", None, None]


def test_no_machine_may_submit_again() -> None:
    states = {outcome(replace(OPERATION, state=state), [], now=T0)["retry_allowed"] for state in OperationState}
    assert states == {False}


# --- what the last request showed -------------------------------------------------------------------


def test_the_last_request_and_the_last_confirmed_state_are_kept_apart() -> None:
    """R-FACT-1: a look that failed says nothing about the job and erases nothing."""
    seen = replace(OPERATION, provider_state="running", provider_state_since=T0, observed_at=T0 + 5 * S, last_http=503)
    last = LastRequest(at="2030-01-07T12:00:09+00:00", http=503, trouble=None, request_id="req-9")
    told = outcome(seen, [], now=T0 + 9 * S, last=last)
    assert told["observed"] == {
        "state": "running",
        "since": "2030-01-07T12:00:00+00:00",
        "at": "2030-01-07T12:00:05+00:00",
    }
    assert told["transport_observation"] == {
        "at": "2030-01-07T12:00:09+00:00",
        "http": 503,
        "trouble": None,
        "request_id": "req-9",
    }


def test_before_the_first_request_nothing_was_observed() -> None:
    told = outcome(OPERATION, [], now=T0)
    assert told["transport_observation"] is None
    assert told["observed"] == {"state": None, "since": None, "at": None}
    assert told["correlation_id"] == told["operation_id"] == "op-1"


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
    told = outcome(replace(OPERATION, **changes), [], now=T0, table=known)
    assert told["reconcile"] == expected
    assert "s3cret" not in json.dumps(told)


# --- the page ---------------------------------------------------------------------------------------


def test_the_page_shows_and_explains_every_key() -> None:
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    told = outcome(OPERATION, [], now=T0, table=TABLE, last=LastRequest(at="", http=200, trouble=None))
    assert list(shown) == list(told)
    nested = [key for key, value in shown.items() if isinstance(value, dict) and key != "kept"]
    assert [list(shown[key]) for key in nested] == [list(told[key]) for key in nested]
    assert [key for key in told if f"| `{key}` |" not in PAGE] == []


def test_the_example_of_the_page_is_true() -> None:
    (shown,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    operation = replace(
        OPERATION,
        id="0197-example",
        reference="invoice 7",
        wake_at=T0 + 100 * S,
        delay_source="provider_retry_after",
        provider_state="running",
        provider_state_since=T0 + 5 * S,
        observed_at=T0 + 30 * S,
        progress="40",
        last_http=503,
        spent=replace(OPERATION.spent, status_requests=3, transport_failures=1),
    )
    last = LastRequest(at=(T0 + timedelta(seconds=60)).isoformat(), http=503, trouble=None, request_id="req_81")
    assert outcome(operation, [], now=T0 + 61 * S, table=TABLE, last=last) == shown
