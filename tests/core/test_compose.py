"""R-ID-2, R-ID-3, R-SUB-7, INV-17: a submission is written down once: exact bytes, one key, one fingerprint."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.actions import Idempotency
from jobtrack.core.compose import MAX_BODY, MAX_DEPTH, Prepared, idempotency_key, prepare
from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.request import submit_request
from jobtrack.core.table import Param, ParamPattern, ProviderTable
from jobtrack.errors import UsageError
from tests.core.builders import OPERATION, SENT, SUBMIT, TABLE, body, submitting

HOST = "https://api.provider.example"


def prepared(by: ProviderTable | None = None, payload: object = None, **given: object) -> Prepared:
    told: dict[str, object] = {
        "operation_id": "op-1",
        "account": "default",
        "payload": {"name": "n"} if payload is None else payload,
        "params": {},
    }
    return prepare(by or submitting(), **{**told, **given})  # type: ignore[arg-type]


def asking(path: str = "/v1/jobs", **request: object) -> ProviderTable:
    spec: dict[str, object] = {"method": "POST", "path": path, "body_kind": BodyKind.JSON, "body": "{payload}"}
    return submitting({"request": RequestSpec(**{**spec, **request})})  # type: ignore[arg-type]


# --- the bytes --------------------------------------------------------------------------------------


def test_the_bytes_are_complete_but_for_the_attempt_and_the_credential() -> None:
    sent = prepared(payload={"b": 1, "a": [True, None, 1.5, "é"]}).submission
    assert (sent.method, sent.url) == ("POST", f"{HOST}/v1/jobs")
    assert sent.headers == (("Accept", "application/json"), ("Content-Type", "application/json"))
    assert sent.body == b'{"b":1,"a":[true,null,1.5,"\\u00e9"]}'


def test_an_attempt_adds_its_own_id_and_nothing_else() -> None:
    request = submit_request(TABLE, OPERATION, SENT)
    assert (request.method, request.url, request.body) == (SENT.method, SENT.url, SENT.body)
    assert request.headers == (*SENT.headers, ("X-Request-Id", "op-1:7"))
    assert (request.operation_id, request.fence, request.origins) == ("op-1", 7, (HOST,))


def test_a_table_without_submissions_submits_nothing() -> None:
    with pytest.raises(UsageError, match="does not submit jobs"):
        prepared(TABLE)


PAYLOAD = {"job": {"name": "a b", "n": 7, "tags": ["x", {"y": 1}], "a/b~c": "odd", "off": False}}
BODIES = [
    ("{payload}", PAYLOAD),
    ({"in": "{payload/job}"}, {"in": PAYLOAD["job"]}),
    ({"n": "{payload/job/n}", "y": "{payload/job/tags/1/y}"}, {"n": 7, "y": 1}),
    ({"odd": "{payload/job/a~1b~0c}"}, {"odd": "odd"}),
    ({"a": "{payload/job/nothing?}", "b": ["{payload/no?}", "{payload/job/n?}"]}, {"b": [7]}),
    (
        {"id": "{operation_id}", "key": "{idempotency_key}", "ref": "{reference}"},
        {"id": "op-1", "key": "op-1", "ref": "r 7"},
    ),
    ({"text": "job {operation_id}", "x": 1}, {"text": "job {operation_id}", "x": 1}),
]


@pytest.mark.parametrize(("template", "expected"), BODIES)
def test_bodies_take_parts_of_the_payload_with_their_types(template: object, expected: object) -> None:
    sent = prepared(asking(body=template), PAYLOAD, reference="r 7").submission
    assert json.loads(sent.body) == expected


MISSING = [
    ({"a": "{payload/job/tags/2}"}, "needs a value at /job/tags/2 of the payload"),
    ({"a": "{payload/job/tags/01}"}, "needs a value at /job/tags/01"),
    ({"a": "{payload/job/tags/-}"}, "needs a value at /job/tags/-"),
    ({"a": "{payload/job/name/x}"}, "needs a value at /job/name/x"),
    ({"a": "{reference}"}, r"no value for \{reference\}"),
    ({"a": "{job_id}"}, r"no value for \{job_id\}"),
    ("{payload/no?}", "leaves the whole body to an optional value"),
]


@pytest.mark.parametrize(("template", "message"), MISSING)
def test_a_body_that_lacks_a_value_is_refused(template: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(asking(body=template), PAYLOAD)


def test_addresses_and_headers_take_scalars_quoted_for_their_place() -> None:
    by = asking(
        "/v1/{payload/job/name}/{+payload/path}",
        query=(("n", "{payload/job/n}"), ("off", "{payload/job/off}"), ("no", "{payload/no?}")),
        headers=(("X-Name", "<{payload/job/name}>"), ("X-No", "{payload/no?}"), ("X-Request-Id", "mine")),
    )
    sent = prepared(by, {**PAYLOAD, "path": "a b/c"}).submission
    assert sent.url == f"{HOST}/v1/a%20b/a%20b/c?n=7&off=false"
    assert dict(sent.headers) == {"Accept": "application/json", "Content-Type": "application/json", "X-Name": "<a b>"}


REFUSED = [
    ("/v1/{payload/x}", {"x": ""}, "may not be empty"),
    ("/v1/{payload/x}", {"x": ".."}, "may not be empty, '.' or '..'"),
    ("/v1/{payload/x}", {"x": "a\nb"}, "control characters"),
    ("/v1/{payload/x}", {"x": "a\x00"}, "control characters"),
    ("/v1/{payload/x}", {"x": {"a": 1}}, "cannot be written into an address"),
    ("/v1/{payload/x}", {"x": None}, "null, a list or an object"),
    ("/v1/{payload/x?}", {}, "a path needs all of its values"),
    ("/v1/{+payload/x}", {"x": "a/../b"}, "may not be empty, '.' or '..'"),
    ("/v1/{+payload/x}", {"x": "a?b"}, "may not have"),
    ("/v1/{payload/x}", {"x": "y" * 9000}, "too large"),
]


@pytest.mark.parametrize(("path", "payload", "message"), REFUSED)
def test_values_that_would_change_the_address_are_refused(path: str, payload: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(asking(path), payload)


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_a_value_is_exactly_one_segment_and_one_query_value(text: str) -> None:
    by = asking("/v1/{payload/x}/end", query=(("q", "{payload/x}"),))
    try:
        parts = urlsplit(prepared(by, {"x": text}).submission.url)
    except UsageError:
        return
    segments = parts.path.split("/")
    assert (segments[:2], segments[3:]) == (["", "v1"], ["end"])
    assert parse_qsl(parts.query, keep_blank_values=True) == [("q", text)]


@pytest.mark.parametrize("text", ["é", "a\r\nX-Admin: 1", "x\u2028"])
def test_a_header_takes_printable_ascii_only(text: str) -> None:
    with pytest.raises(UsageError, match="printable ASCII"):
        prepared(asking(headers=(("X-Name", "{payload/x}"),)), {"x": text})


def test_forms_and_graphql() -> None:
    form = asking(
        body_kind=BodyKind.FORM, body={"a": "{payload/job/name}", "n": "{payload/job/n}", "z": "{payload/no?}"}
    )
    sent = prepared(form, PAYLOAD).submission
    assert (dict(sent.headers)["Content-Type"], sent.body) == ("application/x-www-form-urlencoded", b"a=a+b&n=7")
    document = {"query": "mutation {x}", "variables": {"input": "{payload/job}"}}
    sent = prepared(asking(body_kind=BodyKind.GRAPHQL, body=document), PAYLOAD).submission
    assert json.loads(sent.body) == {"query": "mutation {x}", "variables": {"input": PAYLOAD["job"]}}
    sent = prepared(asking(method="PUT", body_kind=BodyKind.NONE)).submission
    assert (sent.method, sent.body, dict(sent.headers)) == ("PUT", b"", {"Accept": "application/json"})


def test_a_submission_may_have_the_tables_own_condition() -> None:
    """PUT with If-None-Match: * creates and never overwrites."""
    sent = prepared(asking("/v1/jobs/{operation_id}", method="PUT", headers=(("If-None-Match", "*"),))).submission
    assert ("If-None-Match", "*") in sent.headers


def test_parameters_fill_the_host_and_those_of_the_answer_are_not_given() -> None:
    params = {
        "region": Param(source="caller", pattern=ParamPattern.DNS_LABEL),
        "shard": Param(source="answer", pattern=ParamPattern.SLUG),
    }
    by = replace(submitting(), hosts=("https://{region}.api.example",), params=params)
    assert prepared(by, params={"region": "eu"}).submission.url == "https://eu.api.example/v1/jobs"
    with pytest.raises(UsageError, match="the provider tells the parameter 'shard'"):
        prepared(by, params={"region": "eu", "shard": "s"})
    with pytest.raises(UsageError, match="needs the parameter 'region'"):
        prepared(by, params={})


@pytest.mark.parametrize("name", ["operation_id", "reference"])
def test_ids_without_control_characters(name: str) -> None:
    with pytest.raises(UsageError, match="has a control character"):
        prepared(**{name: "a\x00b"})


# --- the payload ------------------------------------------------------------------------------------


class Word(StrEnum):
    A = "a"


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


UNSAYABLE = [
    ({"a": [1, {"b": math.nan}]}, "at /a/1/b is not a finite number"),
    ({"a": -math.inf}, "at /a is not a finite number"),
    ({"a": b"x"}, "at /a is of type bytes"),
    ({"a": date(2030, 1, 1)}, "at /a is of type date"),
    ({"a": Decimal(1)}, "at /a is of type Decimal"),
    ({"a": {1}}, "at /a is of type set"),
    ({"a": {1: 2}}, "at /a has a member whose name is of type int"),
    ({"a/b": {None: 2}}, "at /a~1b has a member whose name is of type NoneType"),
    ({"a": "\ud800"}, "at /a has a lone surrogate"),
    ({"\udfff": 1}, "the payload has a lone surrogate"),
    ({"a": {"\udfff": math.nan}}, "lone surrogate"),
    ({"a": 1 << 20_000}, "at /a is a number with too many digits"),
    (deep(MAX_DEPTH + 1), "nested deeper than 50 levels"),
    (object(), "the payload is of type object"),
    ("x" * (MAX_BODY - 1), "too large"),
]


@pytest.mark.parametrize(("payload", "message"), UNSAYABLE)
def test_a_payload_that_json_cannot_say_is_refused_with_its_place(payload: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(payload=payload)


def test_a_payload_is_copied_plainly() -> None:
    assert prepared(payload={"a": Word.A, "b": (1, deep(MAX_DEPTH - 3))}).submission.body.startswith(
        b'{"a":"a","b":[1,[['
    )
    assert prepared(payload="x" * (MAX_BODY - 2)).submission.body[:2] == b'"x'


# --- the key ----------------------------------------------------------------------------------------


def keyed(kind: BodyKind = BodyKind.JSON, template: object = "{payload}", **rule: object) -> ProviderTable:
    request = RequestSpec(method="POST", path="/v1/jobs", query=(("a", "b"),), body_kind=kind, body=template)
    return submitting({"request": request, "idempotency": Idempotency(**rule)})  # type: ignore[arg-type]


def test_the_key_is_put_where_the_table_says() -> None:
    assert prepared(keyed(header="Idempotency-Key")).submission.headers[-1] == ("Idempotency-Key", "op-1")
    assert prepared(keyed(query="request id"), operation_id="a&b").submission.url.endswith("?a=b&request%20id=a%26b")
    assert prepared(keyed(query="a")).submission.url.endswith("/v1/jobs?a=op-1")
    assert json.loads(prepared(keyed(body=body("/meta/key"))).submission.body) == {"name": "n", "meta": {"key": "op-1"}}
    form = keyed(BodyKind.FORM, {"n": "{payload/name}"}, body=body("/key"))
    assert prepared(form).submission.body == b"n=n&key=op-1"
    graphql = keyed(
        BodyKind.GRAPHQL, {"query": "q", "variables": {"in": "{payload}"}}, body=body("/in/clientMutationId")
    )
    assert json.loads(prepared(graphql).submission.body)["variables"] == {
        "in": {"name": "n", "clientMutationId": "op-1"}
    }


@pytest.mark.parametrize(
    ("by", "payload", "message"),
    [
        (keyed(body=body("/key")), [1], "has no member /key"),
        (keyed(body=body("/name/key")), {"name": "n"}, "has no member /name/key"),
        (keyed(body=body("")), {"name": "n"}, "has no member"),
        (keyed(body=body("/key")), {"key": "mine"}, "the payload has /key already"),
        (keyed(BodyKind.NONE, body=body("/key")), {}, "has no member /key"),
        (keyed(header="Idempotency-Key"), {}, "printable ASCII"),
    ],
)
def test_a_key_without_a_place_is_refused(by: ProviderTable, payload: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(by, payload, operation_id="é")


def test_a_payload_may_repeat_the_key() -> None:
    assert json.loads(prepared(keyed(body=body("/key")), {"key": "op-1"}).submission.body) == {"key": "op-1"}


def test_the_key_belongs_to_the_operation() -> None:
    """Fixed for ever: a changed derivation would submit stored operations under a second key."""
    assert (prepared().key, prepared(keyed(header="K")).key) == ("op-1", "op-1")
    key = prepared(keyed(header="K", uuid=True)).key
    assert key == idempotency_key(Idempotency(uuid=True), "op-1") == "a38f36bf-9412-5ad8-8434-be6aa1716e6b"
    assert (uuid.UUID(key).version, uuid.UUID(key).variant) == (5, uuid.RFC_4122)
    assert prepared(keyed(header="K", uuid=True), operation_id="op-2").key != key


# --- preconditions ----------------------------------------------------------------------------------

CONDITIONED = submitting({"preconditions": ("If-Match", "X-Version")})


def test_preconditions_go_along_as_the_table_names_them() -> None:
    sent = prepared(CONDITIONED, preconditions={"if-match": '"v1"'}).submission
    assert sent.headers[-1] == ("If-Match", '"v1"')


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"If-None-Match": "*"}, "lists no precondition 'If-None-Match'"),
        ({"If-Match": '"a"', "if-match": '"b"'}, "given twice"),
        ({"If-Match": ""}, "is empty"),
        ({"If-Match": " x"}, "spaces around it"),
        ({"If-Match": 7}, "no text"),
        ({"If-Match": '"é"'}, "printable ASCII"),
        ({"If-Match": "a\r\nb: c"}, "printable ASCII"),
    ],
)
def test_other_preconditions_are_refused(given_: Mapping[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        prepared(CONDITIONED, preconditions=given_)


# --- the fingerprint --------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def shuffled(value: object) -> object:
    """The same value with the members of every object in another order."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(list(value))}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(json_values)
def test_the_order_of_members_does_not_count(payload: object) -> None:
    told = prepared(payload={"in": payload})
    assert told == prepared(payload={"in": payload})
    assert told.fingerprint == prepared(payload={"in": shuffled(payload)}).fingerprint


@given(json_values, json_values)
def test_different_content_differs(left: object, right: object) -> None:
    def text(value: object) -> str:
        return json.dumps(value, sort_keys=True)

    same = prepared(payload={"in": left}).fingerprint == prepared(payload={"in": right}).fingerprint
    assert same is (text(left) == text(right))


def test_everything_that_counts_is_in_the_fingerprint() -> None:
    caller = {"x": Param(source="caller", pattern=ParamPattern.SLUG)}
    by = replace(CONDITIONED, params=caller)
    told = {"params": {"x": "1"}}
    prints = [
        prepared(by, {"n": 1}, **told),
        prepared(by, {"n": 1.0}, **told),
        prepared(by, {"n": True}, **told),
        prepared(by, {"n": "1"}, **told),
        prepared(by, {"n": 1}, params={"x": "2"}),
        prepared(by, {"n": 1}, **told, account="other"),
        prepared(by, {"n": 1}, **told, operation_id="op-2"),
        prepared(by, {"n": 1}, **told, preconditions={"If-Match": "a"}),
        prepared(by, {"n": 1}, **told, preconditions={"X-Version": "a"}),
        prepared(replace(by, id="other"), {"n": 1}, **told),
    ]
    assert len({one.fingerprint for one in prints}) == len(prints)
    assert prepared(by, {"n": 1}, **told, reference="r").fingerprint == prints[0].fingerprint


@pytest.mark.parametrize(
    ("ignored", "left", "right", "same"),
    [
        ("/at", {"n": 1, "at": 5}, {"n": 1, "at": 6}, True),
        ("/at", {"n": 1, "at": 5}, {"n": 1}, True),
        ("/at", {"n": 1, "at": 5}, {"n": 2, "at": 5}, False),
        ("/meta/at", {"meta": {"at": 5, "x": 1}}, {"meta": {"at": 6, "x": 1}}, True),
        ("/meta/at", {"meta": {"at": 5, "x": 1}}, {"meta": {"at": 5, "x": 2}}, False),
        ("/list/0/at", {"list": [{"at": 5}, 1]}, {"list": [{"at": 6}, 1]}, True),
        ("/list/0", {"list": [5, 1]}, {"list": [6, 1]}, True),
        ("/list/0", {"list": [5, 1]}, {"list": [5, 2]}, False),
        ("/list/9", {"list": [5, 1]}, {"list": [5, 2]}, False),
        ("", {"n": 1}, {"n": 2}, False),
    ],
)
def test_ignored_members_do_not_count_but_are_sent(ignored: str, left: object, right: object, same: bool) -> None:
    """B053: a timestamp outside the fingerprint does not make another operation."""
    by = submitting({"ignore": (body(ignored),)})
    assert (prepared(by, left).fingerprint == prepared(by, right).fingerprint) is same
    assert json.loads(prepared(by, left).submission.body) == left


def test_the_standard_submission_is_as_its_table_says() -> None:
    assert prepared().submission.url == f"{HOST}{SUBMIT.request.path}"
