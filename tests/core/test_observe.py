"""R-READ, R-TABLE-2/3/4, R-ID-5: what a reply means. Rows named B… follow published reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.observation import DelaySource, Kind, Observation
from jobtrack.core.observe import observe
from jobtrack.core.operation import Operation
from jobtrack.core.place import Condition, Gap
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Sent, Trouble
from jobtrack.core.table import (
    FieldType,
    Hint,
    HintUnit,
    Instant,
    Meaning,
    OpenStates,
    Pick,
    ProviderTable,
    ResultSpec,
    Rule,
    StatePart,
    StateType,
)
from tests.core.builders import JSON, OPERATION, T0, TABLE, S, answered, at, body, jsonpath, rows, table

RESULT = {"url": "https://files.provider.example/r/1"}
DATE = ("Date", "Mon, 07 Jan 2030 12:00:00 GMT")


def seen(
    reply: Answered | NoAnswer, by: ProviderTable = TABLE, operation: Operation = OPERATION, now: datetime = T0
) -> Observation:
    return observe(by, reply, operation=operation, now=now)


def job(status: object, **more: object) -> dict[str, object]:
    return {"id": "job-1", "status": status, **more}


def rule(then: Meaning, *conditions: Condition) -> Rule:
    return Rule(conditions=conditions, then=then)


def code(*codes: int) -> Condition:
    return Condition(at=at("http"), equals=codes)


def says(place: str, *values: str | int | bool) -> Condition:
    return Condition(at=body(place), equals=values)


# --- 1. no answer -----------------------------------------------------------------------------------

NO_ANSWERS = [
    (
        trouble,
        {Trouble.TARGET_DENIED: Kind.TARGET_DENIED, Trouble.CREDENTIAL: Kind.DENIED}.get(
            trouble, Kind.TRANSPORT_FAILURE
        ),
    )
    for trouble in Trouble
]


@pytest.mark.parametrize(("trouble", "kind"), NO_ANSWERS)
def test_no_answer_is_never_a_job_state(trouble: Trouble, kind: Kind) -> None:
    told = seen(NoAnswer(sent=Sent.MAYBE, trouble=trouble, detail="reset by https://h.example/a?sig=secret\n"))
    assert told == Observation(kind=kind, trouble=trouble, detail="reset by https://h.example/a?*** ")


def test_no_answer_always_has_a_sentence() -> None:
    assert seen(NoAnswer(sent=Sent.NEVER, trouble=Trouble.DNS)).detail == "no answer: dns"


# --- 2. what HTTP itself says -----------------------------------------------------------------------

PROTOCOL = [
    (401, Kind.DENIED),
    (403, Kind.DENIED),
    (429, Kind.RATE_LIMITED),
    (500, Kind.TRANSPORT_FAILURE),
    (503, Kind.TRANSPORT_FAILURE),
    (599, Kind.TRANSPORT_FAILURE),
    (404, Kind.NOT_FOUND),
    (410, Kind.NOT_FOUND),
    (304, Kind.INVALID_RESPONSE),  # B033: never "unchanged, so still running"
    (300, Kind.TARGET_DENIED),
    (301, Kind.TARGET_DENIED),
    (399, Kind.TARGET_DENIED),
    (303, Kind.TARGET_DENIED),
    (400, Kind.INVALID_RESPONSE),
    (408, Kind.INVALID_RESPONSE),
    (100, Kind.INVALID_RESPONSE),
    (0, Kind.INVALID_RESPONSE),
    (999, Kind.INVALID_RESPONSE),
]
BODIES = [
    answered(job("succeeded", result=RESULT)),
    answered(raw=b"<html>"),
    replace(answered({}), flaw=Flaw.OVERSIZED),
]


@pytest.mark.parametrize("reply", BODIES, ids=["a success body", "a page", "a flaw"])
@pytest.mark.parametrize(("status", "kind"), PROTOCOL)
def test_a_protocol_signal_counts_whatever_the_body_says(status: int, kind: Kind, reply: Answered) -> None:
    told = seen(replace(reply, status=status))
    assert (told.kind, told.http, told.kept) == (kind, status, {})
    assert f"HTTP {status}" in told.detail


READ = [
    (401, Kind.DENIED),
    (403, Kind.DENIED),
    (429, Kind.RATE_LIMITED),
    (503, Kind.TRANSPORT_FAILURE),
    (304, Kind.INVALID_RESPONSE),
    (404, Kind.PENDING),
    (303, Kind.PENDING),
    (409, Kind.PENDING),
]


@pytest.mark.parametrize(("status", "kind"), READ)
def test_read_http_opens_bodies_but_never_protocol_signals(status: int, kind: Kind) -> None:
    by = table({"read_http": frozenset(range(600))})
    assert seen(answered(job("running"), status), by).kind is kind


@pytest.mark.parametrize("status", [400, 404, 409, 425, 429, 503, 303])
def test_a_rule_that_names_the_code_says_otherwise(status: int) -> None:
    """R-TABLE-4: an error code that means pending."""
    by = table({"rules": (rule(Meaning.PENDING, code(400, 404, 409, 425, 429, 503, 303), says("/code", "NOT_READY")),)})
    told = seen(answered({"code": "NOT_READY"}, status), by)
    assert (told.kind, told.label, told.http) == (Kind.PENDING, f"{status} + NOT_READY", status)
    assert seen(answered({"code": "OTHER"}, status), by).kind is not Kind.PENDING
    assert seen(answered(raw=b"<html>", status=status), by).kind is not Kind.PENDING


@pytest.mark.parametrize("status", [401, 403, 304])
def test_no_rule_overrides_denied_access(status: int) -> None:
    by = table({"rules": (rule(Meaning.PENDING, code(401, 403, 304)),)})
    assert seen(answered(job("running"), status), by).kind is not Kind.PENDING


def test_a_rule_without_the_code_does_not_reach_an_error_answer() -> None:
    by = table({"rules": (rule(Meaning.PENDING, says("/status", "running")),)})
    assert seen(answered(job("running"), 503), by).kind is Kind.TRANSPORT_FAILURE


OVERRIDES = [
    (Meaning.FAILURE, {"code": "X"}, Kind.FAILURE),
    (Meaning.FAILURE, {"code": "X", "id": "job-1"}, Kind.FAILURE),
    (Meaning.FAILURE, {"code": "X", "id": "job-2"}, Kind.JOB_ID_MISMATCH),
    (Meaning.SUCCESS, {"code": "X", "result": RESULT}, Kind.JOB_ID_MISMATCH),
    (Meaning.SUCCESS, {"code": "X", "result": RESULT, "id": "job-1"}, Kind.SUCCESS),
    (Meaning.NOT_FOUND, {"code": "X", "id": "job-2"}, Kind.NOT_FOUND),
]


@pytest.mark.parametrize(("then", "document", "kind"), OVERRIDES)
def test_an_error_answer_may_lack_the_echo_but_not_contradict_it(then: Meaning, document: object, kind: Kind) -> None:
    by = table({"rules": (rule(then, code(409), says("/code", "X")),)})
    assert seen(answered(document, 409), by).kind is kind


REDIRECTS = [
    (
        (("Location", "https://evil.example/x?sig=secret"),),
        "a redirect that the table does not declare to https://evil.example/x?***",
    ),
    ((), "a redirect that the table does not declare to nowhere"),
]


@pytest.mark.parametrize(("headers", "words"), REDIRECTS)
def test_a_redirect_names_its_target_without_secrets(headers: tuple[tuple[str, str], ...], words: str) -> None:
    assert seen(Answered(status=302, headers=headers)).detail == f"HTTP 302: {words}"


# --- 3. bodies that cannot be read ------------------------------------------------------------------

UNREADABLE = [
    (Answered(status=200, flaw=Flaw.OVERSIZED), "the body is larger than the limit"),  # B027
    (Answered(status=200, flaw=Flaw.UNDECODABLE), "the body has a Content-Encoding that cannot be undone"),
    (answered(raw=b""), "the body is empty"),  # B029, variant
    (replace(answered(raw=b""), status=204), "the body is empty"),  # B029, variant
    (
        Answered(status=200, headers=(("Content-Type", "text/html"),), body=b"<html>"),
        "the media type is 'text/html', not JSON",
    ),
    (
        Answered(status=200, headers=(("Content-Type", "text/plain"),), body=b'"running"'),
        "the body is JSON, but not an object",
    ),
    (answered([job("running")]), "the body is JSON, but not an object"),
    (answered("running"), "the body is JSON, but not an object"),
    (answered(raw=b"null"), "the body is JSON, but not an object"),
    (answered(raw=b'{"id":"job-1","status":NaN}'), "the body has NaN, which is not JSON"),
    (answered(raw=b"\xef\xbb\xbf\xef\xbb\xbf{}"), "the body is not JSON (line 1, column 1)"),  # B023
    (answered(raw='{"status":"running"}'.encode("utf-16")), "the body is not UTF-8"),  # B023
    (
        answered(raw=b'{"id":"job-1","status":"running","status":"succeeded"}'),
        "a member on the way to /status appears more than once",
    ),
    (
        answered(raw=b'{"id":"job-1","id":"job-1","status":"running"}'),
        "a member on the way to /id appears more than once",
    ),
    (answered(raw=b"[" * 100_000), "the body is nested deeper than 100 levels"),
    (answered({"id": "job-1"}), "no state at /status (absent)"),
    (answered(job(None)), "no state at /status (null)"),
    (answered(job(3)), "the state at /status is not of type string"),
    (answered(job(["running"])), "the state at /status is not of type string"),
]


@pytest.mark.parametrize(("reply", "detail"), UNREADABLE)
def test_what_cannot_be_read_is_invalid(reply: Answered, detail: str) -> None:
    told = seen(reply)
    assert (told.kind, told.detail) == (Kind.INVALID_RESPONSE, detail)


READABLE = [
    (answered(raw=b'\xef\xbb\xbf{"id":"job-1","status":"running"}'), Kind.PENDING),  # B023
    (
        Answered(status=200, headers=(("Content-Type", "text/plain"),), body=b'{"id":"job-1","status":"running"}'),
        Kind.PENDING,
    ),
    (Answered(status=200, body=b'{"id":"job-1","status":"running"}'), Kind.PENDING),
    (answered(raw=b'{"id":"job-1","status":"running","x":1,"x":2}'), Kind.PENDING),
    (answered(job("succeeded", result=RESULT), 202), Kind.SUCCESS),
    (answered(job("failed")), Kind.FAILURE),
    (answered(job("cancelled")), Kind.CANCELLED),
]


@pytest.mark.parametrize(("reply", "kind"), READABLE)
def test_what_is_readable(reply: Answered, kind: Kind) -> None:
    told = seen(reply)
    assert (told.kind, told.detail, told.readable) == (kind, "", True)


HTTP_STATE = table(
    {
        "echo": None,
        "state": (StatePart(at=at("http"), type=StateType.INTEGER),),
        "rows": rows(pending=[202], success=[200]),
        "result": ResultSpec(require=((body("/Files"), FieldType.ARRAY),)),
    }
)
HTTP_STATES = [
    (answered(raw=b"", status=202), Kind.PENDING, "202"),  # B029
    (answered({"Files": [{"Url": "x"}]}), Kind.SUCCESS, "200"),  # B029
    (answered({}), Kind.INVALID_RESULT, "200"),  # B029
    (answered(raw=b""), Kind.INVALID_RESULT, "200"),
    (answered(raw=b"<html>"), Kind.INVALID_RESPONSE, "200"),
    (answered([1]), Kind.INVALID_RESPONSE, "200"),
    (answered(raw=b"", status=204), Kind.UNKNOWN_STATE, "204"),
    (replace(answered(raw=b"", status=202), flaw=Flaw.OVERSIZED), Kind.INVALID_RESPONSE, ""),
]


@pytest.mark.parametrize(("reply", "kind", "label"), HTTP_STATES)
def test_a_state_in_the_http_code_needs_no_body(reply: Answered, kind: Kind, label: str) -> None:
    told = seen(reply, HTTP_STATE)
    assert (told.kind, told.label) == (kind, label)


# --- 4. one item of a list --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("none_means", "document", "kind"),
    [
        (Meaning.NOT_FOUND, {"jobs": [job("running"), {"id": "job-2"}]}, Kind.PENDING),
        (Meaning.NOT_FOUND, {"jobs": [{"id": "job-2", "status": "succeeded"}]}, Kind.NOT_FOUND),
        (Meaning.PENDING, {"jobs": []}, Kind.PENDING),
        (Meaning.INVALID, {"jobs": []}, Kind.INVALID_RESPONSE),
        (Meaning.NOT_FOUND, {"jobs": [job("running"), job("failed")]}, Kind.INVALID_RESPONSE),
        (Meaning.NOT_FOUND, {"jobs": None}, Kind.INVALID_RESPONSE),
    ],
)
def test_pick_one_of_a_list(none_means: Meaning, document: object, kind: Kind) -> None:
    by = table({"pick": Pick(list_at=body("/jobs"), id_at=body("/id"), none_means=none_means)})
    assert seen(answered(document), by).kind is kind


ROOT_LISTS = [
    ({"pick": Pick(list_at=body(""), id_at=body("/id"))}, [job("running")]),
    ({"echo": None, "state": (StatePart(at=jsonpath(0, "status")),)}, [job("running")]),
    ({"echo": None, "state": (StatePart(at=body("/0/status")),)}, [job("running")]),
    (
        {"state": (), "echo": None, "rules": (rule(Meaning.PENDING, Condition(at=jsonpath(0, "x"), gap=Gap.ABSENT)),)},
        [],
    ),
]


@pytest.mark.parametrize(("status", "document"), ROOT_LISTS)
def test_a_list_at_the_root_is_read_only_if_the_table_looks_into_it(
    status: Mapping[str, object], document: object
) -> None:
    assert seen(answered(document), table(status)).kind is Kind.PENDING
    assert seen(answered(document)).kind is Kind.INVALID_RESPONSE


@pytest.mark.parametrize(("document", "kind"), [([1], Kind.SUCCESS), ([], Kind.INVALID_RESULT)])
def test_a_result_may_be_a_list_at_the_root(document: object, kind: Kind) -> None:
    spec = ResultSpec(require=((body(""), FieldType.ARRAY),))
    by = replace(HTTP_STATE, status=replace(HTTP_STATE.status, result=spec))
    assert seen(answered(document), by).kind is kind


LISTED_STATES = rows(pending=["PROVISIONING", "PENDING", "RUNNING"], success=["STOPPED"])
LISTED = {
    "echo": None,
    "result": ResultSpec(),
    "state": (StatePart(at=jsonpath("tasks", 0, "lastStatus")),),
    "rows": LISTED_STATES,
}
MISSING = rule(Meaning.NOT_FOUND, Condition(at=jsonpath("failures", 0, "reason"), equals=("MISSING",)))
NOT_YET = {"tasks": [], "failures": [{"reason": "MISSING", "id": "t-1"}]}


def test_an_answer_that_lists_the_job_as_missing() -> None:
    """B037: a declared way of saying "not found"; undeclared it is no index error."""
    with_rule = table({**LISTED, "rules": (MISSING,)})
    assert seen(answered(NOT_YET), with_rule).kind is Kind.NOT_FOUND
    assert (
        seen(answered({"tasks": [{"id": "t-1", "lastStatus": "RUNNING"}], "failures": []}), with_rule).kind
        is Kind.PENDING
    )
    assert seen(answered(NOT_YET), table(LISTED)).kind is Kind.INVALID_RESPONSE


# --- 5. and 6. rules, echo --------------------------------------------------------------------------

NOT_ABOUT_THE_JOB = [
    (Meaning.NOT_FOUND, Kind.NOT_FOUND),
    (Meaning.RATE_LIMITED, Kind.RATE_LIMITED),
    (Meaning.INVALID, Kind.INVALID_RESPONSE),
]


@pytest.mark.parametrize(("then", "kind"), NOT_ABOUT_THE_JOB)
def test_a_rule_can_say_that_the_answer_is_not_about_the_job(then: Meaning, kind: Kind) -> None:
    by = table({"rules": (rule(then, says("/error_code", "E7")),)})
    told = seen(answered({"error_code": "E7"}), by)
    assert (told.kind, told.label, told.detail) == (kind, "E7", f"a rule of the table says {then}")


ECHOES = [
    (job("succeeded", result=RESULT), Kind.SUCCESS),
    ({**job("succeeded", result=RESULT), "id": "job-B"}, Kind.JOB_ID_MISMATCH),  # B033
    ({**job("succeeded", result=RESULT), "id": "JOB-1"}, Kind.JOB_ID_MISMATCH),  # B033
    ({**job("paused"), "id": "job-B"}, Kind.JOB_ID_MISMATCH),
    ({"status": "succeeded", "result": RESULT}, Kind.JOB_ID_MISMATCH),  # B033
    ({**job("running"), "id": None}, Kind.JOB_ID_MISMATCH),
    ({**job("running"), "id": 1}, Kind.JOB_ID_MISMATCH),
]


@pytest.mark.parametrize(("document", "kind"), ECHOES)
def test_the_answer_must_be_about_this_job(document: object, kind: Kind) -> None:
    told = seen(answered(document, 200, ("ETag", 'W/"const"'), ("Age", "37")))
    assert (told.kind, bool(told.kept)) == (kind, False)


NUMERIC = [
    ("70403117937023", b'{"data":{"id":70403117937023,"status":3}}', Kind.PENDING),
    ("20180814033130818988", b'{"data":{"id":20180814033130818988,"status":3}}', Kind.PENDING),
    ("70403117937023", b'{"data":{"id":7.0403117937023e13,"status":10}}', Kind.JOB_ID_MISMATCH),
    ("0", b'{"data":{"id":0,"status":3}}', Kind.PENDING),
    ("1", b'{"data":{"id":true,"status":3}}', Kind.JOB_ID_MISMATCH),
]


@pytest.mark.parametrize(("job_id", "raw", "kind"), NUMERIC)
def test_numeric_job_ids_are_exact(job_id: str, raw: bytes, kind: Kind) -> None:
    """B031: never a match by float, never an overflow."""
    by = table(
        {
            "echo": body("/data/id"),
            "state": (StatePart(at=body("/data/status"), type=StateType.INTEGER),),
            "rows": rows(pending=[1, 2, 3], success=[10]),
        }
    )
    assert seen(answered(raw=raw), by, replace(OPERATION, job_id=job_id)).kind is kind


# --- 7. the state -----------------------------------------------------------------------------------


def test_an_unlisted_state_is_unknown_and_starts_nothing() -> None:
    """B011: neither done nor failed nor still waiting."""
    told = seen(answered(job("Paused", result=RESULT)))
    assert (told.kind, told.label, told.kept, told.readable) == (Kind.UNKNOWN_STATE, "Paused", {}, False)
    assert told.detail == "the state 'Paused' is not in the table"


AZURE = table(
    {
        "echo": None,
        "rows": rows(pending=["InProgress"], success=["Succeeded"], failure=["Failed"], cancelled=["Canceled"]),
    }
)
SPELLINGS = [
    ("INPROGRESS", "InProgress"),
    ("succeeded", "Succeeded"),
    ("Succeeded ", "Succeeded"),
    ("Cancelled", "Canceled"),
]


@pytest.mark.parametrize(("word", "near"), SPELLINGS)
def test_the_nearest_declared_state_is_named(word: str, near: str) -> None:
    """B015: another spelling is another word, and the message says which one was meant."""
    told = seen(answered({"status": word}), AZURE)
    assert (told.kind, told.label, told.nearest) == (Kind.UNKNOWN_STATE, word, near)
    assert told.detail == f"the state {word!r} is not in the table; the nearest declared one is {near!r}"


def test_letter_case_is_folded_only_where_declared() -> None:
    folded = table({"state": (StatePart(at=body("/status"), fold=True),)})
    assert seen(answered(job("RUNNING")), folded).kind is Kind.PENDING
    assert seen(answered(job("RUNNING ")), folded).kind is Kind.UNKNOWN_STATE


EXACT = [
    (StateType.INTEGER, [10], 10, Kind.PENDING),
    (StateType.INTEGER, [10], 10.0, Kind.INVALID_RESPONSE),
    (StateType.INTEGER, [1], True, Kind.INVALID_RESPONSE),
    (StateType.INTEGER, [10], "10", Kind.INVALID_RESPONSE),
    (StateType.INTEGER, [10], 11, Kind.UNKNOWN_STATE),
    (StateType.BOOLEAN, [True], True, Kind.PENDING),
    (StateType.BOOLEAN, [True], False, Kind.UNKNOWN_STATE),
    (StateType.BOOLEAN, [True], 1, Kind.INVALID_RESPONSE),
    (StateType.STRING, ["no"], "no", Kind.PENDING),
    (StateType.STRING, ["no"], False, Kind.INVALID_RESPONSE),
]


@pytest.mark.parametrize(("kind_of_state", "declared", "value", "kind"), EXACT)
def test_state_types_are_exact(kind_of_state: StateType, declared: list[object], value: object, kind: Kind) -> None:
    by = table({"state": (StatePart(at=body("/status"), type=kind_of_state),), "rows": rows(pending=declared)})
    assert seen(answered(job(value)), by).kind is kind


@pytest.mark.parametrize(("value", "label"), [(False, "false"), (11, "11")])
def test_labels_of_other_types(value: object, label: str) -> None:
    kind_of_state = StateType.BOOLEAN if isinstance(value, bool) else StateType.INTEGER
    by = table(
        {
            "state": (StatePart(at=body("/status"), type=kind_of_state),),
            "rows": rows(pending=[True if label == "false" else 10]),
        }
    )
    assert seen(answered(job(value)), by).label == label


E_ = Gap.EITHER
DATABRICKS = table(
    {
        "echo": None,
        "result": ResultSpec(),
        "error": (body("/state/state_message"),),
        "state": (StatePart(at=body("/state/life_cycle_state")), StatePart(at=body("/state/result_state"))),
        "rows": rows(
            pending=[("PENDING", E_), ("RUNNING", E_), ("TERMINATING", Gap.NULL)],
            success=[("TERMINATED", "SUCCESS")],
            failure=[("TERMINATED", "FAILED"), ("TERMINATED", "TIMEDOUT"), ("INTERNAL_ERROR", E_)],
            cancelled=[("TERMINATED", "CANCELED"), ("SKIPPED", E_)],
        ),
    }
)
TWO_FIELDS = [
    (
        {"life_cycle_state": "TERMINATED", "result_state": "FAILED", "state_message": "notebook raised"},
        Kind.FAILURE,
        "TERMINATED + FAILED",
    ),
    ({"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"}, Kind.SUCCESS, "TERMINATED + SUCCESS"),
    ({"life_cycle_state": "TERMINATED"}, Kind.UNKNOWN_STATE, "TERMINATED + absent"),
    ({"life_cycle_state": "RUNNING", "result_state": "SUCCESS"}, Kind.UNKNOWN_STATE, "RUNNING + SUCCESS"),
    (
        {"life_cycle_state": "TERMINATED", "result_state": "UPSTREAM_FAILED"},
        Kind.UNKNOWN_STATE,
        "TERMINATED + UPSTREAM_FAILED",
    ),
    ({"life_cycle_state": "RUNNING"}, Kind.PENDING, "RUNNING + absent"),
    ({"life_cycle_state": "RUNNING", "result_state": None}, Kind.PENDING, "RUNNING + null"),
    ({"life_cycle_state": "TERMINATING", "result_state": None}, Kind.PENDING, "TERMINATING + null"),
    ({"life_cycle_state": "TERMINATING"}, Kind.UNKNOWN_STATE, "TERMINATING + absent"),
    ({"result_state": "SUCCESS"}, Kind.INVALID_RESPONSE, ""),
]


@pytest.mark.parametrize(("state", "kind", "label"), TWO_FIELDS)
def test_a_state_of_two_fields(state: dict[str, object], kind: Kind, label: str) -> None:
    """B017: only the declared combinations mean anything."""
    told = seen(answered({"state": state}), DATABRICKS)
    assert (told.kind, told.label, told.error) == (kind, label, str(state.get("state_message", "")))


POISON = [
    ('{"id":"job-1","status":"failed","error":"disk\\u0000 full"}', Kind.FAILURE, "failed", "disk\ufffd full"),
    ('{"id":"job-1","status":"failed","error":"half \\ud800 pair"}', Kind.FAILURE, "failed", "half \ufffd pair"),
    ('{"id":"job-1","status":"fai\\u0000led"}', Kind.UNKNOWN_STATE, "fai\ufffdled", ""),
    ('{"id":"job-1","status":"failed","error":"ok","extra":{"k\\u0000":["\\u0000"]}}', Kind.FAILURE, "failed", "ok"),
]


@pytest.mark.parametrize(("text", "kind", "label", "error"), POISON)
def test_text_that_no_database_takes(text: str, kind: Kind, label: str, error: str) -> None:
    """B025: told and stored; a word is never matched after cleaning."""
    told = seen(answered(raw=text.encode()))
    assert (told.kind, told.label, told.error) == (kind, label, error)


CITE = "https://provider.example/docs/states"
OPEN = [
    (OpenStates(cite=CITE), "Validating", Kind.PENDING),
    (OpenStates(cite=CITE, starts_with=("Val", "Up")), "Updating", Kind.PENDING),
    (OpenStates(cite=CITE, starts_with=("Val",)), "Updating", Kind.UNKNOWN_STATE),
    (OpenStates(cite=CITE), "", Kind.UNKNOWN_STATE),
    (OpenStates(cite=CITE), " Validating", Kind.UNKNOWN_STATE),
    (OpenStates(cite=CITE), "Valid\x00", Kind.UNKNOWN_STATE),
    (OpenStates(cite=CITE), "SUCCEEDED", Kind.UNKNOWN_STATE),
    (OpenStates(cite=CITE), "Succeeded", Kind.SUCCESS),
]


@pytest.mark.parametrize(("contract", "word", "kind"), OPEN)
def test_open_states_by_the_providers_contract(contract: OpenStates, word: str, kind: Kind) -> None:
    by = table(
        {
            "open": contract,
            "echo": None,
            "result": ResultSpec(),
            "rows": rows(success=["Succeeded"], failure=["Failed"]),
        }
    )
    assert seen(answered({"status": word}), by).kind is kind


def test_open_states_need_a_whole_word() -> None:
    assert seen(answered({"status": 3}), table({**HTTP_OPEN, "open": OpenStates(cite=CITE)})).kind is Kind.UNKNOWN_STATE
    composite = replace(DATABRICKS, status=replace(DATABRICKS.status, open=OpenStates(cite=CITE)))
    assert seen(answered({"state": {"life_cycle_state": "NEW"}}), composite).kind is Kind.UNKNOWN_STATE
    assert seen(answered({"state": {"life_cycle_state": "NEW", "result_state": "X"}}), composite).kind is Kind.PENDING


HTTP_OPEN = {"echo": None, "state": (StatePart(at=body("/status"), type=StateType.INTEGER),), "rows": rows(pending=[1])}

DONE_FLAG = table(
    {
        "echo": None,
        "state": (),
        "rows": (),
        "result": ResultSpec(),
        "rules": (
            rule(Meaning.INVALID, Condition(at=body("/errors"), present=True)),
            rule(Meaning.FAILURE, says("/done", True), Condition(at=body("/error"), present=True)),
            rule(Meaning.SUCCESS, says("/done", True), Condition(at=body("/response"), present=True)),
            rule(Meaning.PENDING, Condition(at=body("/done"), present=False)),
            rule(Meaning.PENDING, says("/done", False)),
            rule(Meaning.ATTENTION, says("/phase", "held", "waiting"), says("/kind", "job")),
        ),
    }
)
RULES = [
    ({"done": True, "error": {"code": 3}}, Kind.FAILURE, "true"),
    ({"done": True, "response": {}}, Kind.SUCCESS, "true"),
    ({"done": False}, Kind.PENDING, "false"),
    ({}, Kind.PENDING, "pending"),
    ({"errors": []}, Kind.INVALID_RESPONSE, "invalid"),
    ({"done": True}, Kind.UNKNOWN_STATE, "true"),
    ({"done": "true"}, Kind.UNKNOWN_STATE, "true"),
    ({"done": 1, "phase": "held", "kind": "job"}, Kind.ATTENTION, "held + job"),
    ({"done": 1.5, "phase": ["x"]}, Kind.UNKNOWN_STATE, ""),
]


@pytest.mark.parametrize(("document", "kind", "label"), RULES)
def test_rules_in_order(document: object, kind: Kind, label: str) -> None:
    told = seen(answered(document), DONE_FLAG)
    assert (told.kind, told.label) == (kind, label)


def test_a_rule_that_cannot_be_told_stops_the_reading() -> None:
    told = seen(answered(raw=b'{"done":true,"done":false,"response":1}'), DONE_FLAG)
    assert (told.kind, told.detail) == (Kind.INVALID_RESPONSE, "a member on the way to /done appears more than once")


def test_the_nearest_combination_of_a_rule_is_named() -> None:
    told = seen(answered({"done": 0, "phase": "waitin", "kind": "job"}), DONE_FLAG)
    assert (told.label, told.nearest) == ("0 + waitin + job", "waiting + job")


# --- 8. what success must carry ---------------------------------------------------------------------


def success(spec: ResultSpec, document: object, **changes: object) -> Observation:
    by = table({"echo": None, "state": (), "rows": (), "rules": (rule(Meaning.SUCCESS),), "result": spec}, **changes)
    return seen(answered(document), by)


F = FieldType
TYPES = [
    (F.ANY, [0, False, "", [], {}, "x"], [None]),
    (F.STRING, ["x"], ["", 1, None, ["x"]]),
    (F.INTEGER, [0, 10**30], [1.0, True, "1", None]),
    (F.NUMBER, [0, 1.5], [True, "1", None]),
    (F.BOOLEAN, [True, False], [1, "true", None]),
    (F.ARRAY, [[1]], [[], {}, "x", None]),
    (F.OBJECT, [{}, {"a": 1}], [[], None]),
    (
        F.URL,
        ["https://files.provider.example/a"],
        ["/a", "", 7, None, "javascript:alert(1)", "//files.provider.example/a"],
    ),
]
HOSTS = ("https://files.provider.example",)


@pytest.mark.parametrize(("wanted", "value"), [(wanted, value) for wanted, good, _ in TYPES for value in good])
def test_success_with_its_result(wanted: FieldType, value: object) -> None:
    assert success(ResultSpec(require=((body("/r"), wanted),), hosts=HOSTS), {"r": value}).kind is Kind.SUCCESS


@pytest.mark.parametrize(("wanted", "value"), [(wanted, value) for wanted, _, bad in TYPES for value in bad])
def test_success_without_its_result(wanted: FieldType, value: object) -> None:
    spec = ResultSpec(require=((body("/r"), wanted),), hosts=HOSTS)
    told = success(spec, {"r": value})
    assert (told.kind, "/r" in told.detail) == (Kind.INVALID_RESULT, True)
    assert success(spec, {}).detail == "success without /r (absent)"


@pytest.mark.parametrize(("wanted", "value"), [(F.STRING, ""), (F.ARRAY, [])])
def test_an_empty_result_is_valid_if_the_table_says_so(wanted: FieldType, value: object) -> None:
    """R-READ-6."""
    assert success(ResultSpec(require=((body("/r"), wanted),), empty_ok=True), {"r": value}).kind is Kind.SUCCESS


@pytest.mark.parametrize(("levels", "kind"), [(20, Kind.SUCCESS), (21, Kind.INVALID_RESULT), (90, Kind.INVALID_RESULT)])
@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_what_is_kept_is_not_nested_deeper_than_every_database_takes(
    levels: int, kind: Kind, wrap: Callable[[object], object]
) -> None:
    """INV-12, INV-42: MariaDB refuses JSON of more than 31 levels, so the answer could never be stored."""
    value: object = 1
    for _ in range(levels):
        value = wrap(value)
    assert success(ResultSpec(keep=(("rows", body("/r")),)), {"r": value}).kind is kind


DENIED_URLS = [
    ("http://files.provider.example/a", "an address that is not a plain https URL"),
    ("https://evil.example/a?sig=secret", "https://evil.example"),
    ("https://u:p@files.provider.example/a", "an address that is not a plain https URL"),
    ("https://files.provider.example\\@evil.example/", "an address that is not a plain https URL"),
    ("https://files.provider.example:8443/", "https://files.provider.example:8443"),
    ("https://127.0.0.1/", "https://127.0.0.1"),
    ("ftp://files.provider.example/a", "an address that is not a plain https URL"),
]


@pytest.mark.parametrize(("url", "words"), DENIED_URLS)
def test_a_result_on_another_host_is_a_denied_target(url: str, words: str) -> None:
    told = seen(answered(job("succeeded", result={"url": url})))
    assert (told.kind, told.kept) == (Kind.TARGET_DENIED, {})
    assert told.detail == f"the result URL at /result/url points to {words}, which the table does not allow"


def test_result_hosts_take_parameters() -> None:
    spec = ResultSpec(require=((body("/r"), F.URL),), hosts=("https://{region}.files.example",))
    by = table({"echo": None, "rows": rows(success=["ok"]), "result": spec})
    reply = answered({"status": "ok", "r": "https://eu.files.example/1"})
    assert seen(reply, by, replace(OPERATION, params={"region": "eu"})).kind is Kind.SUCCESS
    assert seen(reply, by, replace(OPERATION, params={"region": "us"})).kind is Kind.TARGET_DENIED
    assert seen(reply, by).kind is Kind.TARGET_DENIED


ONE_OF = [
    ({"a": "x"}, Kind.SUCCESS),
    ({"b": "x", "a": None}, Kind.SUCCESS),
    ({"b": "x", "a": ""}, Kind.SUCCESS),
    ({"a": "x", "b": "x"}, Kind.INVALID_RESULT),
    ({}, Kind.INVALID_RESULT),
    ({"a": "", "b": []}, Kind.INVALID_RESULT),
]


@pytest.mark.parametrize(("document", "kind"), ONE_OF)
def test_exactly_one_of(document: object, kind: Kind) -> None:
    assert success(ResultSpec(one_of=(body("/a"), body("/b"))), document).kind is kind


REPEATS = [
    (ResultSpec(require=((body("/r"), F.ANY),)), b'{"r":1,"r":2}', "a member on the way to /r appears more than once"),
    (ResultSpec(one_of=(body("/r"),)), b'{"r":1,"r":2}', "a member on the way to /r appears more than once"),
    (ResultSpec(keep=(("r", body("/r")),)), b'{"r":1,"r":2}', "a member on the way to /r appears more than once"),
    (
        ResultSpec(keep=(("r", body("/r")),)),
        b'{"r":[1,{"a":{"b":1,"b":2}}]}',
        "a member inside /r appears more than once",
    ),
]


@pytest.mark.parametrize(("spec", "raw", "detail"), REPEATS)
def test_a_repeated_member_makes_no_result(spec: ResultSpec, raw: bytes, detail: str) -> None:
    by = table({"echo": None, "state": (), "rows": (), "rules": (rule(Meaning.SUCCESS),), "result": spec})
    told = seen(answered(raw=raw), by)
    assert (told.kind, told.detail, told.kept) == (Kind.INVALID_RESPONSE, detail, {})


def kept(**places: str) -> tuple[tuple[str, object], ...]:
    return tuple((name, at(place)) for name, place in places.items())


def test_what_is_kept_is_plain_storable_json() -> None:
    spec = ResultSpec(
        keep=kept(rows="/rows", deep="/deep", none="/none", null="/null", code="http", kind="header:content-type")
    )  # type: ignore[arg-type]
    told = success(spec, {"rows": 3, "deep": {"k\x00": ["\ud800", 1.5, None, True]}, "null": None, "other": "x"})
    assert told.kept == {
        "rows": 3,
        "deep": {"k\ufffd": ["\ufffd", 1.5, None, True]},
        "none": None,
        "null": None,
        "code": 200,
        "kind": "application/json",
    }
    assert type(told.kept["deep"]) is dict


@pytest.mark.parametrize(
    ("length", "kind"), [(16384 - len('{"r":""}'), Kind.SUCCESS), (16385 - len('{"r":""}'), Kind.INVALID_RESULT)]
)
def test_what_is_kept_is_small(length: int, kind: Kind) -> None:
    told = success(ResultSpec(keep=kept(r="/r")), {"r": "x" * length})  # type: ignore[arg-type]
    assert (told.kind, bool(told.kept)) == (kind, kind is Kind.SUCCESS)


def test_urls_of_a_secret_result_are_never_kept() -> None:
    """INV-33: such a URL is a capability, path included."""
    spec = ResultSpec(keep=kept(r="/r", rows="/rows"), secret=True)  # type: ignore[arg-type]
    told = success(
        spec, {"r": {"a": "https://h.example/CANARY", "b": ["see //x and https://h/CANARY", "//h/CANARY"]}, "rows": 3}
    )
    assert told.kept == {"r": {"a": "***", "b": ["***", "***"]}, "rows": 3}


BATCH = table(
    {
        "echo": None,
        "rows": rows(pending=["in_progress"], success=["completed"], failure=["failed"], expired=["expired"]),
        "result": ResultSpec(require=((body("/output_file_id"), F.STRING),), keep=kept(output="/output_file_id")),  # type: ignore[arg-type]
        "error": (body("/errors/data/0/message"), body("/error_file_id")),
        "progress": (body("/request_counts/completed"), body("/request_counts/total")),
    }
)
BATCHES = [
    ({"status": "completed", "output_file_id": None}, Kind.INVALID_RESULT),
    ({"status": "completed", "output_file_id": ""}, Kind.INVALID_RESULT),
    ({"status": "completed"}, Kind.INVALID_RESULT),
    ({"status": "expired", "output_file_id": "f-1"}, Kind.EXPIRED),
]


@pytest.mark.parametrize(("document", "kind"), BATCHES)
def test_completed_with_nothing_but_failed_items(document: dict[str, object], kind: Kind) -> None:
    """B040: completed without its output is no success; nothing partial is handed on."""
    told = seen(answered({**document, "error_file_id": "f-2", "request_counts": {"total": 9, "completed": 0}}), BATCH)
    assert (told.kind, told.error, told.progress, told.kept) == (kind, "f-2", "0/9", {})


# --- what else an answer carries --------------------------------------------------------------------

PROGRESS = [
    ({"request_counts": {"completed": 3, "total": 9}}, "3/9"),
    ({"request_counts": {"completed": 3}}, "3/?"),
    ({"request_counts": {}}, ""),
    ({"request_counts": {"completed": "x" * 200, "total": [1]}}, "x" * 99 + "…"),
]


@pytest.mark.parametrize(("document", "progress"), PROGRESS)
def test_progress(document: dict[str, object], progress: str) -> None:
    assert seen(answered({"status": "in_progress", **document}), BATCH).progress == progress


ERRORS = [
    ({"error": "Bearer CANARY failed"}, "Bearer *** failed"),
    ({"error": {"message": "é", "code": 3}}, '{"message": "é", "code": 3}'),
    ({"error": "x" * 600}, "x" * 499 + "…"),
    ({"error": None}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("document", "error"), ERRORS)
def test_the_providers_error_is_redacted_and_bounded(document: dict[str, object], error: str) -> None:
    assert seen(answered(job("failed", **document))).error == error
    assert seen(answered(job("failed", **document), 503)).error == error


REQUEST_IDS = [
    ((("X-Request-ID", "r-1"),), "r-1"),
    ((("x-ms-request-id", "m-1"), ("request-id", "r-2")), "r-2"),
    ((("x-amzn-requestid", "a\x00" + "b" * 200),), "a\ufffd" + "b" * 125 + "…"),
    ((("x-request-id", ""), ("x-correlation-id", "c-1")), "c-1"),
    ((), ""),
]


@pytest.mark.parametrize(("headers", "expected"), REQUEST_IDS)
def test_the_providers_own_request_id(headers: tuple[tuple[str, str], ...], expected: str) -> None:
    assert seen(Answered(status=503, headers=headers)).request_id == expected


EXPIRING = table({"expires_at": Instant(at=body("/expires_at"), unit=HintUnit.EPOCH_SECONDS)})
EPOCH = int(T0.timestamp())
OVERDUE = [
    ("running", EPOCH + 300, (DATE,), 600, False),  # B065: compared with the provider's own clock
    ("running", EPOCH - 1, (DATE,), -600, True),
    ("running", EPOCH + 300, (), 600, True),
    ("running", EPOCH, (DATE,), 0, False),
    ("running", "soon", (DATE,), 0, False),
    ("failed", EPOCH - 1, (DATE,), 0, False),
]


@pytest.mark.parametrize(("state", "expires_at", "headers", "skew", "overdue"), OVERDUE)
def test_overdue(
    state: str, expires_at: object, headers: tuple[tuple[str, str], ...], skew: int, overdue: bool
) -> None:
    """R-READ-3: still running past the provider's own stated expiry."""
    told = seen(answered(job(state, expires_at=expires_at), 200, *headers), EXPIRING, now=T0 + skew * S)
    assert (told.overdue, told.expires_at) == (
        overdue,
        None if expires_at == "soon" else T0 + (int(str(expires_at)) - EPOCH) * S,
    )


def test_guidance_is_read_on_every_answer() -> None:
    hinted = table({"hints": (Hint(at=body("/next"), unit=HintUnit.SECONDS),)})
    for status in (200, 202, 401, 404, 429, 503):
        told = seen(answered(job("running", next=9), status, ("Retry-After", "7")), hinted).guidance
        assert told is not None
        assert (told.source, told.wait) == (DelaySource.PROVIDER_POLL_HINT, 9 * S)


# --- totality ---------------------------------------------------------------------------------------

FULL = table(
    {
        "rules": (
            rule(Meaning.PENDING, code(503, 409), says("/status", "running")),
            rule(Meaning.NOT_FOUND, says("/status", "gone"), Condition(at=body("/x"), gap=Gap.EITHER)),
            rule(Meaning.FAILURE, Condition(at=body("/x"), above=3), Condition(at=body("/x"), same_as=body("/id"))),
        ),
        "hints": (Hint(at=body("/x"), unit=HintUnit.TIMESTAMP),),
        "expires_at": Instant(at=body("/x"), unit=HintUnit.EPOCH_SECONDS),
        "progress": (body("/x"), body("/result")),
        "open": OpenStates(cite=CITE, starts_with=("o",)),
        "result": ResultSpec(
            require=((body("/result/url"), F.URL),), keep=kept(x="/x", url="/result/url"), hosts=HOSTS
        ),  # type: ignore[arg-type]
    }
)
PICKED = replace(
    FULL, status=replace(FULL.status, pick=Pick(list_at=body("/x"), id_at=body("/id"), none_means=Meaning.NOT_FOUND))
)
ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=20)
HEADER_TEXT = st.binary(max_size=20).map(lambda raw: raw.decode("latin-1"))
HEADER_NAMES = st.sampled_from(["Retry-After", "Date", "Content-Type", "X-Request-Id", "Location"]) | HEADER_TEXT
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.sampled_from(["running", "succeeded", "job-1", "https://"])
)

NAMES = st.sampled_from(["id", "status", "result", "url", "error", "x"]) | ANY_TEXT
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)
CONTENTS = (
    st.binary(max_size=40)
    | VALUES.map(lambda value: json.dumps(value).encode())
    | ANY_TEXT.map(lambda t: json.dumps(job("succeeded", x=t, result=RESULT)).encode())
)
REPLIES = st.builds(
    Answered,
    status=st.sampled_from([200, 202, 302, 401, 404, 409, 429, 503]) | st.integers(-1, 1000),
    headers=st.lists(st.tuples(HEADER_NAMES, HEADER_TEXT), max_size=3).map(tuple) | st.just(JSON),
    body=CONTENTS,
    flaw=st.none() | st.sampled_from(Flaw),
)
TROUBLES = st.builds(NoAnswer, sent=st.sampled_from(Sent), trouble=st.sampled_from(Trouble), detail=ANY_TEXT)


@given(REPLIES | TROUBLES, st.sampled_from([TABLE, FULL, PICKED, HTTP_STATE, DATABRICKS, DONE_FLAG]))
def test_any_reply_becomes_one_storable_observation(reply: Answered | NoAnswer, by: ProviderTable) -> None:
    """INV-12: nothing a provider sends raises, and everything it says can be stored."""
    told = seen(reply, by)
    texts = (told.label, told.detail, told.request_id, told.progress, told.error, told.nearest)
    limits = (200, 500, 128, 100, 500, 200)
    for text, limit in zip(texts, limits, strict=True):
        text.encode()
        assert "\x00" not in text
        assert len(text) <= limit
    stored = json.dumps(told.kept, ensure_ascii=False, allow_nan=False)
    assert len(stored.encode()) <= 2 * 16384
    assert "\\u0000" not in stored
    assert (told.http is None) == isinstance(reply, NoAnswer)
    assert not told.kept or told.kind is Kind.SUCCESS
