"""R-SUB-6, R-ID-1, INV-30: how to follow a job is read exactly, checked strictly, and never made up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.actions import AcceptedSpec, IdPart, IdPlace, LookupSpec, Segment, SentText, SentUrl, UrlPlace
from jobtrack.core.handover import MAX_TEXT, Lacking, context_of, read_handover
from jobtrack.core.jsontext import parse
from jobtrack.core.locate import Answer, Unreadable
from jobtrack.core.place import Body, BodyKind, Header, RequestSpec
from jobtrack.core.request import MAX_JOB_ID
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover
from jobtrack.core.table import Param, ParamPattern, ProviderTable
from jobtrack.core.target import resolve
from tests.core.builders import SENT, STATUS, SUBMITTED, body, members, submitting

HOST = "https://api.provider.example"
LOCATION = Header("Location")


def ids(*parts: IdPart, joiner: str = "") -> tuple[IdPlace, ...]:
    return (IdPlace(parts=parts, joiner=joiner),)


def taken(
    document: object = None,
    *headers: tuple[str, str],
    raw: bytes | None = None,
    by: ProviderTable | None = None,
    sent: SubmitBytes | None = SENT,
    **accepted: object,
) -> Handover | Lacking | Unreadable:
    spec = AcceptedSpec(**{"job_id": ids(body("/id")), **accepted})  # type: ignore[arg-type]
    content = json.dumps(document).encode() if raw is None else raw
    answer = Answer(status=202, headers=headers, document=parse(content, "application/json"))
    known = by or submitting({"accepted": spec})
    return read_handover(context_of(known, SUBMITTED, sent, SENT.url), spec, answer)


# --- job ids ----------------------------------------------------------------------------------------

EXACT = [
    (b'{"id":"job-1"}', "job-1"),
    (b'{"id":70403117937023}', "70403117937023"),  # B031
    (b'{"id":20180814033130818988}', "20180814033130818988"),  # B031
    (b'{"id":0}', "0"),  # B031
    (b'{"id":-7}', "-7"),
    (b'{"id":"0"}', "0"),
    (b'{"id":" a b "}', " a b "),
    (b'{"id":"J\xc3\xb6b/1?x"}', "Jöb/1?x"),
]


@pytest.mark.parametrize(("raw", "job_id"), EXACT)
def test_an_id_is_kept_exactly_as_it_was_given(raw: bytes, job_id: str) -> None:
    assert taken(raw=raw) == Handover(job_id=job_id)


NO_IDS = [
    (b'{"id":7.0403117937023e13}', "neither a text nor an integer"),  # B031
    (b'{"id":true}', "neither a text nor an integer"),  # B031
    (b'{"id":{}}', "neither a text nor an integer"),
    (b'{"id":[]}', "neither a text nor an integer"),
    (b'{"id":""}', "neither a text nor an integer"),
    (b'{"id":null}', "no job id"),  # B031
    (b"{}", "no job id"),
    (b"[]", "no job id"),
    (b'"job-1"', "no job id"),
    (b'{"id":".."}', "may not be '..'"),
    (b'{"id":"a\\u0000b"}', "control character"),
    (b'{"id":"a\\ud800"}', "control character"),
    (b'{"id":"%s"}' % (b"x" * (MAX_JOB_ID + 1)), "more than 500 characters"),
    (b'{"request_id":"r-1"}', "no job id"),  # a request id is not a job id
]


@pytest.mark.parametrize(("raw", "problem"), NO_IDS)
def test_what_cannot_be_an_id_is_none(raw: bytes, problem: str) -> None:
    lacking = taken(raw=raw)
    assert isinstance(lacking, Lacking)
    assert problem in lacking.problem


URLS = [
    ("/v1/jobs/a%20b", -1, "a b"),
    ("/v1/jobs/j-1/", -1, "j-1"),
    ("/v1/jobs/j-1?x=/y#/z", -1, "j-1"),
    ("https://other.example/v1/jobs/j-1", -1, "j-1"),
    ("//other.example/v1/jobs/j-1", 2, "j-1"),
    ("projects/p/operations/9", -1, "9"),
    ("projects/p/operations/9", 1, "p"),
    ("/v1/jobs/a%2Fb", -1, "a/b"),
]


@pytest.mark.parametrize(("url", "index", "job_id"), URLS)
def test_an_id_can_be_a_segment_of_a_url(url: str, index: int, job_id: str) -> None:
    assert taken({}, ("location", url), job_id=ids(Segment(LOCATION, index))) == Handover(job_id=job_id)
    assert taken({"name": url}, job_id=ids(Segment(body("/name"), index))) == Handover(job_id=job_id)


NO_SEGMENTS = [
    ("/v1/jobs", 2, "has no segment 2"),
    ("/v1/jobs", -3, "has no segment -3"),
    ("https://other.example", -1, "is empty"),
    ("/v1/%ff", -1, "is no text"),
    ("/v1/%2e%2e", -1, "may not be '..'"),
    ("/v1/a\tb", -1, "control character"),
    ("/v1/a%00", -1, "control character"),
]


@pytest.mark.parametrize(("url", "index", "problem"), NO_SEGMENTS)
def test_a_url_without_that_segment_has_no_id(url: str, index: int, problem: str) -> None:
    lacking = taken({}, ("Location", url), job_id=ids(Segment(LOCATION, index)))
    assert isinstance(lacking, Lacking)
    assert problem in lacking.problem


def test_the_first_place_with_an_id_counts() -> None:
    places = (*ids(body("/id")), *ids(Header("X-Job")), *ids(body("/job/id")))
    assert taken({"id": 1, "job": {"id": 2}}, job_id=places) == Handover(job_id="1")
    assert taken({"id": True, "job": {"id": 2}}, ("x-job", "h"), job_id=places) == Handover(job_id="h")
    assert taken({"job": {"id": 2}}, job_id=places) == Handover(job_id="2")
    assert taken({"id": True}, job_id=places) == Lacking("the value at /id is neither a text nor an integer")
    assert taken({}, job_id=places) == Lacking("the answer has no job id", nothing=True)


def test_a_composite_id_has_all_of_its_parts_or_is_none() -> None:
    place = ids(body("/a"), body("/b"), joiner=":")
    assert taken({"a": "x", "b": 7}, job_id=place) == Handover(job_id="x:7")
    assert taken({"a": "x"}, job_id=place) == Lacking("the answer has no job id", nothing=True)
    assert isinstance(taken({"a": "x", "b": False}, job_id=place), Lacking)


CHOSEN = [
    ("{operation_id}", "op-1"),
    ("jobs/{operation_id}", "jobs/op-1"),
    ("{payload/name}", "n-1"),
    ("{payload/rows}", "3"),
    ("{payload/nothing}", None),
    ("{payload/nothing?}", None),
    ("{payload}", None),
    ("{unknown}", None),
]


@pytest.mark.parametrize(("template", "job_id"), CHOSEN)
def test_the_client_may_have_chosen_the_id(template: str, job_id: str | None) -> None:
    expected = Handover(job_id=job_id) if job_id else Lacking("the answer has no job id", nothing=True)
    assert taken({}, job_id=ids(SentText(template))) == expected


def shape(path: str = "/v1/jobs", **request: object) -> RequestSpec:
    return RequestSpec(method="PUT", path=path, **request)  # type: ignore[arg-type]


JSON = BodyKind.JSON
SENT_PLACES = [
    (shape(body_kind=JSON, body={"job": {"n": "{payload/name}"}}), {"body": b'{"job":{"n":"x"}}'}, "x"),
    (shape(body_kind=JSON, body={"job": "{payload}"}), {"body": b'{"job":{"name":"x"}}'}, "x"),
    (shape(body_kind=JSON, body={"job": ["{payload/name}"]}), {"body": b'{"job":["x"]}'}, "x"),
    (shape(body_kind=JSON, body={"job": ["{payload/name}", "{payload/z?}"]}), {"body": b'{"job":["x"]}'}, None),
    (shape(body_kind=JSON, body={"job": "{payload/name}", "z": "{payload/z?}"}), {"body": b'{"job":"x"}'}, "x"),
    (shape(body_kind=JSON, body={"job": "{operation_id}", "n": 1}), {"body": b'{"job":"x","n":1}'}, None),
    (shape(body_kind=JSON, body={"job": "{payload/other}"}), {"body": b'{"job":"x"}'}, None),
    (shape(body_kind=JSON, body={"job": "{payload/name}"}), {"body": b"[1]"}, None),
    (shape(body_kind=JSON, body={"job": "{payload/name}"}), {"body": b"\xff"}, None),
    (shape(body_kind=BodyKind.FORM, body={"n": "{payload/name}"}), {"body": b"n=x+y"}, "x y"),
    (
        shape(body_kind=BodyKind.GRAPHQL, body={"query": "q", "variables": {"n": "{payload/name}"}}),
        {"body": b'{"query":"q","variables":{"n":"x"}}'},
        "x",
    ),
    (shape("/v1/jobs/{payload/name}"), {"url": f"{HOST}/v1/jobs/x%2Fy?a=b"}, "x/y"),
    (shape("/v1/jobs/n-{payload/name}:run"), {"url": f"{HOST}/v1/jobs/n-x:run"}, "x"),
    (shape("/v1/jobs/{payload/a}-{payload/name}"), {"url": f"{HOST}/v1/jobs/a-x"}, None),
    (shape("/v2/jobs/{payload/name}/x"), {"url": f"{HOST}/v1/jobs/x"}, None),
    (shape("/v1/other-{payload/name}"), {"url": f"{HOST}/v1/x"}, None),
    (shape(query=(("z", "y"), ("n", "{payload/name}"))), {"url": f"{HOST}/v1/jobs?n=x%26y"}, "x&y"),
    (shape(headers=(("X-Z", "y"), ("X-Name", "{payload/name}"))), {"headers": (("x-name", "x"),)}, "x"),
]


@pytest.mark.parametrize(("request_", "sent", "job_id"), SENT_PLACES)
def test_parts_of_the_payload_are_read_back_out_of_the_bytes(
    request_: RequestSpec, sent: Mapping[str, object], job_id: str | None
) -> None:
    spec = AcceptedSpec(job_id=ids(SentText("{payload/name}")))
    by = submitting({"request": request_, "accepted": spec})
    told = taken({}, by=by, sent=replace(SENT, **sent), job_id=spec.job_id)  # type: ignore[arg-type]
    assert told == (Handover(job_id=job_id) if job_id else Lacking("the answer has no job id", nothing=True))


def test_nothing_is_read_back_once_the_submission_is_erased() -> None:
    assert isinstance(taken({}, sent=None, job_id=ids(SentText("{payload/name}"))), Lacking)
    assert isinstance(taken({}, by=replace(submitting(), submit=None), job_id=ids(SentText("{payload/name}"))), Lacking)


# --- status URLs ------------------------------------------------------------------------------------

FOLLOWED: tuple[UrlPlace, ...] = (Header("Operation-Location"), LOCATION, body("/status_url"))
ALLOWED = [
    ("https://api.provider.example/v1/jobs/1?sig=x", f"{HOST}/v1/jobs/1?sig=x"),
    ("HTTPS://API.provider.example:443/v1/jobs/1", "HTTPS://API.provider.example:443/v1/jobs/1"),
    ("/v1/jobs/1", f"{HOST}/v1/jobs/1"),
    ("jobs/1", f"{HOST}/v1/jobs/1"),
    ("?id=1", f"{HOST}/v1/jobs?id=1"),
    ("/v1/jobs/1#part", f"{HOST}/v1/jobs/1"),
    ("/v1/jobs/a%20b", f"{HOST}/v1/jobs/a%20b"),
    ("/v1/a:b", f"{HOST}/v1/a:b"),
    ("/v1/jobs?next=../x", f"{HOST}/v1/jobs?next=../x"),
]


@pytest.mark.parametrize(("told", "url"), ALLOWED)
def test_an_address_is_resolved_against_the_submission(told: str, url: str) -> None:
    """RFC 3986, 5.2."""
    assert taken({}, ("Location", told), status_url=FOLLOWED) == Handover(status_url=url)
    assert taken({"status_url": told}, status_url=FOLLOWED) == Handover(status_url=url)


DENIED = [
    "https://evil.example/v1/jobs/1",
    "https://api.provider.example.evil.example/",
    "//evil.example/v1",
    "//api.provider.example/v1/jobs/1",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://user@api.provider.example/",
    "https://api.provider.example@evil.example/",
    "https://api.provider.example:8443/",
    "http://api.provider.example/v1/jobs/1",
    "https://api。provider。example/",
    "https://api.provider.example\uff0e/",
    "https://api.provider.example./",
    "/v1/jobs/%00",
    "/v1/jobs/%0a1",
    "/v1/jobs/1%7F",
    "/v1/jobs/\t1",
    " /v1/jobs/1",
    "/v1/../admin",
    "/v1/%2e%2E/admin",
    "/v1/.%2e/admin",
    "/v1/..%2fadmin",
    "/v1/..%5cadmin",
    "../admin",
    "./x",
    ".",
    "https:/v1/jobs/1",
    "https:v1",
    "https:///v1",
    "javascript:alert(1)",
    "data:,x",
    "file:///etc/passwd",
    "https://[::1/",
    "#part",
    "x" * (MAX_TEXT + 1),
]


@pytest.mark.parametrize("told", DENIED)
def test_an_address_that_is_there_and_not_allowed_is_a_refusal(told: str) -> None:
    lacking = taken({"status_url": "/v1/jobs/1"}, ("Location", told), status_url=FOLLOWED)
    assert isinstance(lacking, Lacking)
    assert lacking.denied
    assert "header Location points to" in lacking.problem


@pytest.mark.parametrize("told", [7, True, [], {}, ["/v1/jobs/1"]])
def test_an_address_is_a_text(told: object) -> None:
    lacking = taken({"status_url": told}, status_url=FOLLOWED)
    assert isinstance(lacking, Lacking)
    assert lacking.denied


@pytest.mark.parametrize("told", [None, ""])
def test_no_address_is_no_refusal(told: object) -> None:
    assert taken({"status_url": told, "id": 1}, ("Location", ""), status_url=FOLLOWED) == Handover(job_id="1")


def test_a_job_id_builds_the_address_if_the_other_one_is_refused() -> None:
    assert taken({"id": 1}, ("Location", "https://evil.example/"), status_url=FOLLOWED) == Handover(job_id="1")


def test_a_refusal_still_names_the_job() -> None:
    """INV-15: without an address of the table nothing else would keep the job id."""
    by = submitting(status={"request": RequestSpec()})
    lacking = taken({"id": 1}, ("Location", "https://evil.example/a?sig=s"), by=by, status_url=FOLLOWED)
    problem = (
        "the address at header Location points to https://evil.example, which the table does not allow (the job is 1)"
    )
    assert lacking == Lacking(problem, denied=True)
    alone = taken({"id": "a"}, by=by)
    assert alone == Lacking(
        "the job a cannot be followed: table acme builds no status address and the operation has none"
    )


def test_the_submission_itself_may_be_the_address() -> None:
    assert taken({}, job_id=(), status_url=(SentUrl(),)) == Handover(status_url=SENT.url)
    spec = AcceptedSpec(status_url=(SentUrl(),))
    moved = replace(submitting({"accepted": spec}), hosts=("https://new.example",))
    refused = read_handover(context_of(moved, SUBMITTED, SENT, SENT.url), spec, Answer(status=202, document={}))
    assert isinstance(refused, Lacking)
    assert refused.denied


PATHS = [
    ("/v1/jobs/1", True),
    ("/v1/jobs", True),
    ("/v1/jobsx", False),
    ("/v1", False),
    ("/v2/jobs/1", False),
    ("/v1/%6Aobs/1", False),
    ("/r/eu/1", True),
    ("/r/us/1", False),
]


@pytest.mark.parametrize(("path", "allowed"), PATHS)
def test_the_path_begins_with_whole_segments(path: str, allowed: bool) -> None:
    spec = AcceptedSpec(status_url=FOLLOWED, paths=("/v1/jobs/", "/r/{region}", "/x/{nothing}"))
    by = submitting({"accepted": spec})
    operation = replace(SUBMITTED, params={"region": "eu"})
    answer = Answer(status=202, headers=(("Location", path),), document={})
    told = read_handover(context_of(by, operation, SENT, SENT.url), spec, answer)
    assert isinstance(told, Handover if allowed else Lacking)


@given(st.text(st.characters(codec=None, categories=None), max_size=40))
def test_whatever_a_provider_says_the_address_is_on_an_allowed_host(told: str) -> None:
    seen = taken({}, ("Location", told), status_url=FOLLOWED)
    assert not isinstance(seen, Handover) or seen.status_url.lower().startswith((HOST + "/", HOST + ":443", HOST + "?"))


@given(st.text(alphabet="/\\.%25eE2fF:@?#htps a", max_size=12))
def test_a_relative_address_never_leaves_its_host(told: str) -> None:
    resolved = resolve(told, SENT.url)
    assert resolved == "" or ":" in told or resolved.startswith(f"{HOST}/")


# --- parameters and handles -------------------------------------------------------------------------

REGION = {"region": Param(source="answer", pattern=ParamPattern.DNS_LABEL)}


def regional(**accepted: object) -> ProviderTable:
    spec = AcceptedSpec(job_id=ids(body("/id")), params=(("region", body("/region")),), **accepted)  # type: ignore[arg-type]
    return replace(submitting({"accepted": spec}), params=REGION, hosts=(HOST, "https://{region}.api.example"))


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        ("eu", ""),
        (7, ""),
        ("eu.evil.example", "cannot be the parameter region"),
        ("", "neither a text nor an integer"),
        (None, "nothing at /region"),
        (True, "neither a text nor an integer"),
    ],
)
def test_parameters_of_the_answer_fit_their_patterns(region: object, problem: str) -> None:
    by = regional()
    assert by.submit
    told = taken({"id": 1, "region": region}, by=by, params=by.submit.accepted.params)
    assert told == Handover(job_id="1", params={"region": str(region)}) if not problem else isinstance(told, Lacking)
    assert not isinstance(told, Lacking) or problem in told.problem


def test_a_parameter_of_the_answer_opens_its_own_host_only() -> None:
    by = regional(status_url=FOLLOWED)
    assert by.submit
    told = {"params": by.submit.accepted.params, "status_url": FOLLOWED, "by": by}
    eu = ("Location", "https://eu.api.example/1")
    assert taken({"region": "eu"}, eu, **told) == Handover(status_url=eu[1], params={"region": "eu"})
    assert isinstance(taken({"region": "us"}, eu, **told), Lacking)


def test_a_parameter_that_the_table_does_not_know_is_none() -> None:
    assert taken({"id": 1, "x": "y"}, params=(("x", body("/x")),)) == Lacking(
        "the value at /x cannot be the parameter x"
    )


def polled_by_handle() -> ProviderTable:
    """A provider that is asked with a secret, not with its job id."""
    request = RequestSpec(method="POST", path="/get", body_kind=BodyKind.JSON, body={"token": "{handle}"})
    return replace(submitting(), status=replace(STATUS, request=request))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"id": 1, "token": "s3cret"}, Handover(job_id="1", handle="s3cret")),
        ({"token": "s3cret"}, Handover(handle="s3cret")),
        ({"id": 1}, Lacking("there is nothing at /token")),
        ({"id": 1, "token": "a\nb"}, Lacking("the handle at /token has control characters or is too long")),
        (
            {"id": 1, "token": "x" * (MAX_TEXT + 1)},
            Lacking("the handle at /token has control characters or is too long"),
        ),
        ({"id": 1, "token": True}, Lacking("the value at /token is neither a text nor an integer")),
        ({}, Lacking("the answer has no job id", nothing=True)),
    ],
)
def test_a_handle_is_a_secret_of_its_own(document: object, expected: object) -> None:
    assert taken(document, by=polled_by_handle(), handle=body("/token")) == expected


# --- bodies that cannot be read ---------------------------------------------------------------------


@pytest.mark.parametrize("raw", [b"<html>", b'{"id":', b'{"id":NaN}'])
def test_a_body_that_would_have_to_be_read_and_cannot_be_proves_nothing(raw: bytes) -> None:
    assert isinstance(taken(raw=raw), Unreadable)
    assert isinstance(taken(raw=raw, job_id=ids(Segment(body("/url"), 0))), Unreadable)
    assert isinstance(taken(raw=raw, job_id=(), status_url=FOLLOWED), Unreadable)
    assert isinstance(taken(raw=raw, by=polled_by_handle(), job_id=(), handle=body("/token")), Unreadable)


def test_a_body_that_need_not_be_read_may_be_anything() -> None:
    both = (*ids(body("/id")), *ids(Header("X-Job")))
    assert taken(None, ("X-Job", "j"), raw=b"<html>", job_id=both) == Handover(job_id="j")
    assert taken(None, ("Location", "/1"), raw=b"<html>", status_url=FOLLOWED) == Handover(status_url=f"{HOST}/1")
    assert taken(raw=b"<html>", job_id=ids(Header("X-Job"))) == Lacking("the answer has no job id", nothing=True)


def test_an_empty_body_is_read_and_has_nothing() -> None:
    assert taken(raw=b"") == Lacking("the answer has no job id", nothing=True)


TWICE = [
    (b'{"id":1,"id":2}', {}),
    (b'{"id":1,"url":"/a","url":"/b"}', {"status_url": (body("/url"),)}),
    (b'{"id":1,"t":"a","t":"b"}', {"handle": body("/t")}),
    (b'{"id":1,"t":"a","t":"b"}', {"params": (("t", body("/t")),)}),
    (b'{"id":1,"id":2}', {"job_id": ids(Segment(body("/id"), 0))}),
]


@pytest.mark.parametrize(("raw", "accepted"), TWICE)
def test_a_member_that_is_told_twice_is_not_chosen_from(raw: bytes, accepted: Mapping[str, object]) -> None:
    assert isinstance(taken(raw=raw, **accepted), Unreadable)


def test_an_item_of_a_look_up_is_read_by_its_own_places() -> None:
    spec = LookupSpec(
        request=RequestSpec(path="/v1/jobs"), found=ids(body("/id")), status_url=(Body(("url",), "/url"),)
    )
    context = context_of(submitting(), SUBMITTED, None, f"{HOST}/v1/jobs?ref=1")
    answer = Answer(status=200, document=members(id=7, url="/v1/jobs/7"))
    assert read_handover(context, spec, answer) == Handover(job_id="7", status_url=f"{HOST}/v1/jobs/7")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_to_one_value(raw: bytes) -> None:
    assert isinstance(taken(raw=raw, status_url=FOLLOWED), Handover | Lacking | Unreadable)
