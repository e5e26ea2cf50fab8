"""R-SUB-2, INV-18: what an answer to a submission proves; what the table does not list proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.accept import ENDS, observe_submission
from jobtrack.core.actions import AcceptedSpec, IdPlace, SubmitMeaning, SubmitRule
from jobtrack.core.observation import DelaySource, Kind
from jobtrack.core.place import Condition, Header, RequestSpec
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Reply, Sent, Trouble
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover, SubmitSeen
from jobtrack.core.table import FieldType, Param, ParamPattern, ProviderTable, ResultSpec
from tests.core.builders import SENT, SUBMITTED, T0, TABLE, S, answered, at, body, submitting

M = SubmitMeaning
LISTED: Mapping[str, object] = {
    "final_http": frozenset({200}),
    "already_http": frozenset({409}),
    "rejected_http": frozenset({400, 422}),
    "denied_http": frozenset({401}),
    "busy_http": frozenset({429}),
    "mismatch_http": frozenset({418}),
}
LISTING = submitting(LISTED)
RESULT = {"url": "https://files.provider.example/r/1"}


def seen(reply: Reply, by: ProviderTable = LISTING, sent: SubmitBytes = SENT) -> SubmitSeen:
    return observe_submission(by, reply, operation=SUBMITTED, sent=sent, now=T0)


def rule(then: SubmitMeaning, **conditions: object) -> SubmitRule:
    """Conditions by place; ``http`` is the code."""
    return SubmitRule(
        conditions=tuple(
            Condition(at=at("http" if name == "http" else f"/{name}"), equals=(value,))
            for name, value in conditions.items()
        ),  # type: ignore[arg-type]
        then=then,
    )


# --- no answer --------------------------------------------------------------------------------------

KINDS = {Trouble.TARGET_DENIED: Kind.TARGET_DENIED, Trouble.CREDENTIAL: Kind.DENIED}


@pytest.mark.parametrize("trouble", list(Trouble))
@pytest.mark.parametrize(("sent", "meaning"), [(Sent.NEVER, None), (Sent.MAYBE, M.UNKNOWN)])
def test_without_an_answer_only_the_way_of_failing_proves_something(
    trouble: Trouble, sent: Sent, meaning: SubmitMeaning | None
) -> None:
    told = seen(NoAnswer(sent=sent, trouble=trouble))
    assert (told.meaning, told.observation.kind) == (meaning, KINDS.get(trouble, Kind.TRANSPORT_FAILURE))
    assert (told.observation.trouble, told.observation.http, told.handover) == (trouble, None, None)


# --- codes ------------------------------------------------------------------------------------------

CODES = [
    (202, M.ACCEPTED, Kind.PENDING),
    (409, M.ALREADY, Kind.PENDING),
    (400, M.REJECTED, Kind.INVALID_RESPONSE),
    (422, M.REJECTED, Kind.INVALID_RESPONSE),
    (401, M.DENIED, Kind.DENIED),
    (429, M.BUSY, Kind.RATE_LIMITED),
    (418, M.MISMATCH, Kind.INVALID_RESPONSE),
]


@pytest.mark.parametrize(("code", "meaning", "kind"), CODES)
def test_listed_codes_prove_what_the_table_says(code: int, meaning: SubmitMeaning, kind: Kind) -> None:
    told = seen(answered({"id": "job-1"}, code))
    assert (told.meaning, told.observation.kind, told.observation.http) == (meaning, kind, code)
    assert told.observation.detail == f"HTTP {code} is listed as {meaning}"
    taken = meaning in (M.ACCEPTED, M.ALREADY)
    assert told.handover == (Handover(job_id="job-1") if taken else None)


UNLISTED = [
    (200, Kind.INVALID_RESPONSE),
    (201, Kind.INVALID_RESPONSE),
    (204, Kind.INVALID_RESPONSE),
    (304, Kind.TARGET_DENIED),
    (307, Kind.TARGET_DENIED),
    (400, Kind.INVALID_RESPONSE),
    (401, Kind.DENIED),
    (403, Kind.DENIED),
    (404, Kind.INVALID_RESPONSE),
    (409, Kind.INVALID_RESPONSE),
    (412, Kind.INVALID_RESPONSE),
    (422, Kind.INVALID_RESPONSE),
    (429, Kind.RATE_LIMITED),
    (500, Kind.TRANSPORT_FAILURE),
    (503, Kind.TRANSPORT_FAILURE),
    (100, Kind.INVALID_RESPONSE),
    (999, Kind.INVALID_RESPONSE),
]


@pytest.mark.parametrize(("code", "kind"), UNLISTED)
@pytest.mark.parametrize("document", [{"id": "job-1"}, {"error": "bad request"}])
def test_what_is_not_listed_proves_nothing(code: int, kind: Kind, document: object) -> None:
    """Neither 4xx, nor 401, nor 429, nor 5xx: a proxy may have answered after the provider took the job."""
    told = seen(answered(document, code), submitting())
    assert (told.meaning, told.observation.kind, told.handover) == (M.UNKNOWN, kind, None)
    assert f"HTTP {code}" in told.observation.detail


@given(st.integers(0, 999).filter(lambda code: code != 202), st.binary(max_size=40))
def test_no_body_makes_an_unlisted_code_prove_something(code: int, raw: bytes) -> None:
    assert seen(answered(raw=raw, status=code), submitting()).meaning is M.UNKNOWN


def test_5xx_can_be_listed() -> None:
    told = seen(answered({}, 503, ("Retry-After", "7")), submitting({"busy_http": frozenset({503})}))
    assert (told.meaning, told.observation.kind) == (M.BUSY, Kind.RATE_LIMITED)
    assert told.observation.guidance
    assert (told.observation.guidance.wait, told.observation.guidance.source) == (
        7 * S,
        DelaySource.PROVIDER_RETRY_AFTER,
    )


def test_a_table_that_lost_its_submission_explains_nothing() -> None:
    assert seen(answered({"id": 1}, 202), TABLE).meaning is M.UNKNOWN


def test_an_answer_brings_what_every_answer_brings() -> None:
    reply = answered({"error": "no token=abc\nhere"}, 400, ("X-Request-Id", "r-1"), ("Retry-After", "x"))
    told = seen(reply).observation
    assert (told.request_id, told.error) == ("r-1", "no token=*** here")
    assert told.guidance
    assert told.guidance.problem


# --- preconditions ----------------------------------------------------------------------------------

CONDITIONED = submitting({"preconditions": ("If-Match",)})


def test_a_failed_precondition_is_a_proven_rejection() -> None:
    """R-SUB-7."""
    carried = replace(SENT, headers=(*SENT.headers, ("if-match", '"1"')))
    assert seen(answered(raw=b"<html>", status=412), CONDITIONED, carried).meaning is M.REJECTED
    assert seen(answered({}, 412), CONDITIONED).meaning is M.UNKNOWN
    assert seen(answered({}, 412), submitting(), carried).meaning is M.UNKNOWN
    assert seen(answered({}, 409), CONDITIONED, carried).meaning is M.UNKNOWN


# --- rules ------------------------------------------------------------------------------------------

RULES = submitting(
    {
        **LISTED,
        "rules": (
            rule(M.ALREADY, http=400, code="exists"),
            rule(M.BUSY, http=202, code="later"),
            rule(M.REJECTED, http=400),
        ),
        "already_http": frozenset({400}),
    }
)
RULED = [
    ({"code": "exists", "id": "j"}, 400, M.ALREADY),
    ({"code": "Exists"}, 400, M.REJECTED),
    ({"code": "later", "id": "j"}, 202, M.BUSY),
    ({"code": "now", "id": "j"}, 202, M.ACCEPTED),
]


@pytest.mark.parametrize(("document", "code", "meaning"), RULED)
def test_the_first_rule_that_holds_wins_over_the_lists(document: object, code: int, meaning: SubmitMeaning) -> None:
    assert seen(answered(document, code), RULES).meaning is meaning


UNREADABLE = [
    answered(raw=b"<html>", status=400),
    answered(raw=b"", status=400),
    answered(raw=b'{"code":"exists","code":"x"}', status=400),
    Answered(status=400, body=b"{}", flaw=Flaw.OVERSIZED),
    Answered(status=400, headers=(("Content-Type", "text/html"),), body=b'{"code":"exists"}'),
]


@pytest.mark.parametrize("reply", UNREADABLE)
def test_a_rule_that_cannot_be_read_proves_nothing(reply: Answered) -> None:
    told = seen(reply, RULES)
    assert (told.meaning, told.observation.kind) == (M.UNKNOWN, Kind.INVALID_RESPONSE)
    assert seen(reply).meaning is M.REJECTED  # the list alone needs no body


# --- acceptance -------------------------------------------------------------------------------------

CUT = [
    answered(raw=b"<html>", status=202),
    answered(raw=b'{"id":"jo', status=202),
    answered(raw=b'{"id":"a","id":"b"}', status=202),
    Answered(status=202, body=b'{"id":"job-1"}', flaw=Flaw.OVERSIZED),
    Answered(status=202, body=b'{"id":"job-1"}', flaw=Flaw.UNDECODABLE),
    Answered(status=202, headers=(("Content-Type", "text/html"),), body=b'{"id":"job-1"}'),
]


@pytest.mark.parametrize("reply", CUT)
def test_an_unreadable_acceptance_is_unknown(reply: Answered) -> None:
    told = seen(reply)
    assert (told.meaning, told.observation.kind, told.handover) == (M.UNKNOWN, Kind.INVALID_RESPONSE, None)
    assert "listed as accepted, but it cannot be read" in told.observation.detail


def test_already_submitted_needs_no_body() -> None:
    told = seen(answered(raw=b"<html>", status=409))
    assert (told.meaning, told.observation.kind, told.handover) == (M.ALREADY, Kind.PENDING, None)


@pytest.mark.parametrize("raw", [b"{}", b'{"id":true}', b'{"id":7.04e13}', b'{"id":null}', b""])
@pytest.mark.parametrize(("code", "meaning"), [(202, M.ACCEPTED), (409, M.ALREADY)])
def test_accepted_without_an_id_is_accepted(raw: bytes, code: int, meaning: SubmitMeaning) -> None:
    told = seen(answered(raw=raw, status=code))
    assert (told.meaning, told.observation.kind, told.handover) == (meaning, Kind.PENDING, None)
    assert ", but " in told.observation.detail


FOLLOWED = AcceptedSpec(job_id=(IdPlace(parts=(body("/id"),)),), status_url=(Header("Location"),))


def test_a_forbidden_address_is_told_as_such() -> None:
    by = submitting({"accepted": FOLLOWED})
    told = seen(answered({}, 202, ("Location", "https://evil.example/1?sig=secret")), by)
    assert (told.meaning, told.observation.kind, told.handover) == (M.ACCEPTED, Kind.TARGET_DENIED, None)
    assert "https://evil.example" in told.observation.detail
    assert "secret" not in told.observation.detail
    told = seen(answered({"id": 1}, 202, ("Location", "https://evil.example/1")), by)
    assert (told.meaning, told.observation.kind, told.handover) == (M.ACCEPTED, Kind.PENDING, Handover(job_id="1"))


# --- answers that are status answers ----------------------------------------------------------------

SUCCEEDED = {"id": "job-1", "status": "succeeded", "result": RESULT}


def test_a_final_answer_is_read_as_the_end() -> None:
    told = seen(answered(SUCCEEDED))
    assert (told.meaning, told.observation.kind, told.handover) == (M.FINAL, Kind.PENDING, Handover(job_id="job-1"))
    assert told.status
    assert told.status.kind is Kind.SUCCESS
    told = seen(answered({"status": "failed", "error": "no"}))
    assert (told.meaning, told.handover, told.status and told.status.kind) == (M.FINAL, None, Kind.FAILURE)


def test_a_final_answer_may_have_a_code_that_no_status_answer_has() -> None:
    told = seen(answered({"status": "failed"}, 422), submitting({"final_http": frozenset({422})}))
    assert (told.meaning, told.status and told.status.kind) == (M.FINAL, Kind.FAILURE)


NO_ENDS = [
    (answered({"id": "job-1", "status": "running"}), Handover(job_id="job-1"), "its state is running"),
    (answered({"id": "job-1", "status": "odd"}), Handover(job_id="job-1"), "'odd' is not in the table"),
    (answered({"status": "succeeded"}), None, "success without /result/url"),
    (answered({}), None, "no state at /status"),
    (answered(raw=b"<html>"), None, "not JSON"),
    (answered(raw=b""), None, "the body is empty"),
]


@pytest.mark.parametrize(("reply", "handover", "words"), NO_ENDS)
def test_a_final_answer_without_an_end_is_unknown(reply: Answered, handover: Handover | None, words: str) -> None:
    told = seen(reply)
    assert (told.meaning, told.status, told.handover) == (M.UNKNOWN, None, handover)
    assert words in told.observation.detail


READS = submitting({"accepted": replace(FOLLOWED, reads_status=True)})
STATUS = [
    (SUCCEEDED, Kind.SUCCESS),
    ({"id": "job-1", "status": "failed"}, Kind.FAILURE),
    ({"id": "job-1", "status": "cancelled"}, Kind.CANCELLED),
    ({"id": "job-1", "status": "running"}, None),
    ({"id": "job-1", "status": "odd"}, None),
    ({"id": "job-1", "status": "succeeded"}, None),
    ({"id": "job-1"}, None),
]


@pytest.mark.parametrize(("document", "kind"), STATUS)
def test_an_acceptance_may_tell_an_end(document: object, kind: Kind | None) -> None:
    told = seen(answered(document, 202), READS)
    assert (told.meaning, told.handover) == (M.ACCEPTED, Handover(job_id="job-1"))
    assert (told.status and told.status.kind) == kind
    assert seen(answered(document, 202)).status is None


def test_an_end_in_an_acceptance_without_an_id_counts() -> None:
    told = seen(answered({"status": "failed"}, 202), READS)
    assert (told.meaning, told.handover, told.status and told.status.kind) == (M.ACCEPTED, None, Kind.FAILURE)


def test_a_parameter_of_the_answer_counts_for_its_own_result() -> None:
    spec = AcceptedSpec(job_id=FOLLOWED.job_id, params=(("region", body("/region")),), reads_status=True)
    by = submitting(
        {"accepted": spec},
        status={
            "result": ResultSpec(require=((body("/url"), FieldType.URL),), hosts=("https://{region}.files.example",))
        },
        params={"region": Param(source="answer", pattern=ParamPattern.DNS_LABEL)},
    )
    document = {"id": 1, "status": "succeeded", "region": "eu", "url": "https://eu.files.example/1"}
    told = seen(answered(document, 202), by)
    assert told.status
    assert told.handover == Handover(job_id="1", params={"region": "eu"})


# --- any reply --------------------------------------------------------------------------------------

TABLES = [LISTING, RULES, READS, submitting(), TABLE, submitting(status={"request": RequestSpec()})]


@given(
    st.sampled_from(TABLES),
    st.integers(0, 999),
    st.binary(max_size=80) | st.sampled_from([b'{"id":"a"}', b'{"id":1,"status":"failed"}', b'{"status":"succeeded"}']),
    st.sampled_from([(), (("Location", "//x"),), (("Location", "/v1/jobs/1"),), (("Content-Type", "text/html"),)]),
)
def test_any_answer_becomes_one_storable_value(
    by: ProviderTable, code: int, raw: bytes, headers: tuple[tuple[str, str], ...]
) -> None:
    told = seen(Answered(status=code, headers=headers, body=raw), by)
    assert told.meaning is not None
    assert told.observation.http == code
    assert len(told.observation.detail) <= 500
    assert told.meaning is not M.FINAL or (told.status is not None and told.status.kind in ENDS)
    assert told.status is None or told.status.kind in ENDS
