"""R-SUB-3, R-SUB-4, INV-19, B049: a look-up finds exactly the operation's job; absence is said only if all was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.actions import IdPlace, LookupSpec, NextPage, Segment, SentText
from jobtrack.core.locate import Answer, Unreadable
from jobtrack.core.lookup import read_lookup
from jobtrack.core.observation import Kind
from jobtrack.core.paging import linked, next_of, with_query
from jobtrack.core.place import BodyKind, Header, RequestSpec
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Reply, Sent, Trouble
from jobtrack.core.request import lookup_request
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover, LookupKind, LookupSeen
from jobtrack.core.table import Param, ParamPattern, ProviderTable
from jobtrack.errors import UsageError
from tests.core.builders import SENT, SUBMITTED, T0, TABLE, answered, body, jsonpath, members, submitting

HOST = "https://api.provider.example"
K = LookupKind
ID = (IdPlace(parts=(body("/id"),)),)
ONE = LookupSpec(request=RequestSpec(path="/v1/jobs/by-ref/{operation_id}"), found=ID, absent_http=frozenset({404}))
MANY = LookupSpec(
    request=RequestSpec(path="/v1/jobs", query=(("ref", "{operation_id}"), ("page_token", "first"))),
    found=ID,
    items=body("/jobs"),
    match=((body("/reference"), "{operation_id}"),),
    absent_http=frozenset({404}),
    next=NextPage(token=body("/next"), query="page_token", end="null"),
)


def by(spec: LookupSpec) -> ProviderTable:
    return submitting({"lookup": spec})


def seen(
    reply: Reply,
    spec: LookupSpec = MANY,
    *,
    known: Sequence[Handover] = (),
    page: str = "",
    sent: SubmitBytes | None = SENT,
) -> LookupSeen:
    return read_lookup(by(spec), reply, operation=SUBMITTED, sent=sent, now=T0, known=known, page=page)


def job(job_id: object, reference: object = "op-1", **more: object) -> dict[str, object]:
    return {"id": job_id, "reference": reference, **more}


def page_of(*jobs: object, **more: object) -> Answered:
    return answered({"jobs": list(jobs), **more})


# --- what proves nothing ----------------------------------------------------------------------------

UNREADABLE = [
    (NoAnswer(sent=Sent.NEVER, trouble=Trouble.DNS), Kind.TRANSPORT_FAILURE),
    (NoAnswer(sent=Sent.MAYBE, trouble=Trouble.READ_TIMEOUT), Kind.TRANSPORT_FAILURE),
    (NoAnswer(sent=Sent.NEVER, trouble=Trouble.CREDENTIAL), Kind.DENIED),
    (answered({}, 500), Kind.TRANSPORT_FAILURE),
    (answered({"jobs": []}, 503), Kind.TRANSPORT_FAILURE),
    (answered({"jobs": []}, 429), Kind.RATE_LIMITED),
    (answered({"jobs": []}, 401), Kind.DENIED),
    (answered({"jobs": []}, 403), Kind.DENIED),
    (answered({"jobs": []}, 410), Kind.INVALID_RESPONSE),
    (answered({"jobs": []}, 400), Kind.INVALID_RESPONSE),
    (answered({"jobs": []}, 302), Kind.TARGET_DENIED),
    (answered(raw=b"<html>"), Kind.INVALID_RESPONSE),
    (answered(raw=b""), Kind.INVALID_RESPONSE),
    (replace(answered(raw=b""), status=204), Kind.INVALID_RESPONSE),
    (answered(raw=b'{"jobs":[]'), Kind.INVALID_RESPONSE),
    (answered(raw=b'{"jobs":[],"jobs":[]}'), Kind.INVALID_RESPONSE),
    (Answered(status=200, body=b'{"jobs":[]}', flaw=Flaw.OVERSIZED), Kind.INVALID_RESPONSE),
    (answered({}), Kind.INVALID_RESPONSE),
    (answered({"jobs": None}), Kind.INVALID_RESPONSE),
    (answered({"jobs": {}}), Kind.INVALID_RESPONSE),
    (answered({"error": "busy"}), Kind.INVALID_RESPONSE),
    (answered([]), Kind.INVALID_RESPONSE),
    (answered(None), Kind.INVALID_RESPONSE),
]


@pytest.mark.parametrize(("reply", "kind"), UNREADABLE)
def test_an_answer_without_a_list_proves_nothing(reply: Reply, kind: Kind) -> None:
    known = (Handover(job_id="7"),)
    told = seen(reply, known=known)
    assert (told.kind, told.observation.kind, told.found) == (K.UNREADABLE, kind, known)
    assert told.observation.detail


# --- one job ----------------------------------------------------------------------------------------

ONE_JOB = [
    (answered({"id": "job-1"}), K.FOUND, ("job-1",)),
    (answered({"id": 0}), K.FOUND, ("0",)),
    (answered({}), K.ABSENT, ()),
    (answered({"id": None}), K.ABSENT, ()),
    (answered([]), K.ABSENT, ()),
    (answered({}, 404), K.ABSENT, ()),
    (answered(raw=b"<html>", status=404), K.ABSENT, ()),
    (answered({"id": True}), K.UNREADABLE, ()),
    (answered({"id": 1.0}), K.UNREADABLE, ()),
    (answered({"id": ""}), K.UNREADABLE, ()),
    (answered({"id": ".."}), K.UNREADABLE, ()),
    (answered(raw=b'{"id":"a","id":"b"}'), K.UNREADABLE, ()),
    (answered(None), K.UNREADABLE, ()),
    (answered("job-1"), K.UNREADABLE, ()),
    (answered(raw=b"<html>"), K.UNREADABLE, ()),
]


@pytest.mark.parametrize(("reply", "kind", "found"), ONE_JOB)
def test_an_answer_about_one_job(reply: Reply, kind: LookupKind, found: tuple[str, ...]) -> None:
    told = seen(reply, ONE)
    assert (told.kind, tuple(job.job_id for job in told.found)) == (kind, found)
    assert told.items == (1 if reply.status == 200 and kind is not K.UNREADABLE else told.items)  # type: ignore[union-attr]


def test_an_answer_about_another_job_is_not_about_ours() -> None:
    spec = replace(ONE, match=((body("/reference"), "{operation_id}"),))
    assert seen(answered(job("a")), spec).kind is K.FOUND
    assert seen(answered(job("a", "op-2")), spec).kind is K.ABSENT


def test_an_id_without_a_place_of_its_own() -> None:
    """DESIGN's own example: the first item of a list that the provider has searched."""
    spec = replace(ONE, found=(IdPlace(parts=(jsonpath("items", 0, "id"),)),))
    assert seen(answered({"items": [{"id": 5}]}), spec).found == (Handover(job_id="5"),)
    assert seen(answered({"items": []}), spec).kind is K.ABSENT


def test_a_client_chosen_id_and_an_id_in_a_name() -> None:
    spec = replace(ONE, found=(IdPlace(parts=(SentText("{payload/name}"),)),))
    assert seen(answered({}), spec).found == (Handover(job_id="n-1"),)
    spec = replace(ONE, found=(IdPlace(parts=(Segment(body("/name"), -1),)),))
    assert seen(answered({"name": "operations/9"}), spec).found == (Handover(job_id="9"),)


def test_an_address_that_is_not_allowed_is_not_absence() -> None:
    spec = replace(ONE, found=(), status_url=(body("/url"),))
    assert seen(answered({"url": "/v1/jobs/9"}), spec).found == (Handover(status_url=f"{HOST}/v1/jobs/9"),)
    assert seen(answered({"url": "9"}), spec).found == (Handover(status_url=f"{HOST}/v1/jobs/by-ref/9"),)
    assert seen(answered({"url": "https://evil.example/"}), spec).kind is K.UNREADABLE
    assert seen(answered({}), spec).kind is K.ABSENT


def test_a_parameter_of_an_absent_job_is_absent_with_it() -> None:
    table = replace(
        by(replace(ONE, params=(("region", body("/region")),))),
        params={"region": Param(source="answer", pattern=ParamPattern.SLUG)},
    )
    told = [
        read_lookup(table, answered(document), operation=SUBMITTED, sent=None, now=T0)
        for document in ({}, {"id": 1}, {"id": 1, "region": "eu"})
    ]
    assert [one.kind for one in told] == [K.ABSENT, K.UNREADABLE, K.FOUND]
    assert told[2].found == (Handover(job_id="1", params={"region": "eu"}),)


# --- lists ------------------------------------------------------------------------------------------

OTHERS = [job(f"x{number}", f"op-{number + 2}") for number in range(3)]
LISTS = [
    ([], K.ABSENT, ()),
    (OTHERS, K.ABSENT, ()),
    ([*OTHERS, job("a")], K.FOUND, ("a",)),
    ([job("a"), *OTHERS, job("b")], K.MANY, ("a", "b")),
    ([job("a"), job("a", status="x")], K.FOUND, ("a",)),
    ([job(7), job("7")], K.FOUND, ("7",)),
    ([job("a", "OP-1")], K.ABSENT, ()),  # B049: letter case
    ([job("a", " op-1")], K.ABSENT, ()),
    ([job("a", "op-10")], K.ABSENT, ()),
    ([job("a", None), {"id": "b"}, None, 7, "op-1", []], K.ABSENT, ()),
    ([job("a", ["op-1"])], K.ABSENT, ()),
    ([job(None)], K.UNREADABLE, ()),
    ([{"reference": "op-1"}], K.UNREADABLE, ()),
    ([job(True)], K.UNREADABLE, ()),
    ([job("a"), job({})], K.UNREADABLE, ()),
]


@pytest.mark.parametrize(("jobs", "kind", "found"), LISTS)
def test_an_item_matches_exactly_or_not_at_all(jobs: list[object], kind: LookupKind, found: tuple[str, ...]) -> None:
    told = seen(page_of(*jobs))
    assert (told.kind, tuple(one.job_id for one in told.found)) == (kind, found)
    assert told.items == (0 if kind is K.MANY else len(jobs)) or kind is K.MANY
    assert told.observation.kind is (Kind.INVALID_RESPONSE if kind is K.UNREADABLE else Kind.PENDING)


def test_an_item_that_says_a_thing_twice_is_unreadable() -> None:
    assert seen(answered(raw=b'{"jobs":[{"id":1,"reference":"x","reference":"op-1"}]}')).kind is K.UNREADABLE


def test_without_a_condition_every_item_is_ours() -> None:
    spec = replace(MANY, match=())
    assert seen(page_of({"id": 1}), spec).kind is K.FOUND
    assert seen(page_of({"id": 1}, {"id": 2}), spec).kind is K.MANY


MATCHES = [
    ("jobs/{operation_id}", "jobs/op-1", K.FOUND),
    ("{payload/name}", "n-1", K.FOUND),
    ("{payload/rows}", 3, K.FOUND),
    ("{payload/rows}", "3", K.ABSENT),
    ("{payload/rows}", 3.0, K.ABSENT),
    ("n={payload/rows}", "n=3", K.FOUND),
    ("{payload/nothing}", "x", K.UNREADABLE),
    ("{reference}", "", K.UNREADABLE),  # the caller gave none: it must not match every job without one
]


@pytest.mark.parametrize(("template", "value", "kind"), MATCHES)
def test_what_an_item_must_say(template: str, value: object, kind: LookupKind) -> None:
    spec = replace(MANY, match=((body("/reference"), template),))
    assert seen(page_of(job("a", value)), spec).kind is kind


# --- pages ------------------------------------------------------------------------------------------

A, B = Handover(job_id="a"), Handover(job_id="b")


def test_a_further_page_is_neither_absence_nor_all() -> None:
    assert seen(page_of(next="p2")) == replace(seen(page_of(next="p2")), kind=K.MORE, next="p2", found=())
    told = seen(page_of(job("a"), next="p2"))
    assert (told.kind, told.found, told.next, told.items) == (K.MORE, (A,), "p2", 1)


PAGES = [
    ((), page_of(job("a")), K.FOUND, (A,)),
    ((A,), page_of(*OTHERS), K.FOUND, (A,)),
    ((A,), page_of(job("a")), K.FOUND, (A,)),
    ((A,), page_of(job("b")), K.MANY, (A, B)),
    ((A,), page_of(job("b"), next="p3"), K.MANY, (A, B)),
    ((A,), page_of(next="p3"), K.MORE, (A,)),
    ((A,), answered({}, 503), K.UNREADABLE, (A,)),  # B049
    ((), page_of(), K.ABSENT, ()),
    ((), answered({}, 404), K.UNREADABLE, ()),  # a token that is over is no absence
    ((), page_of(next="p2"), K.UNREADABLE, ()),  # B049: the same page for ever
]


@pytest.mark.parametrize(("known", "reply", "kind", "found"), PAGES)
def test_pages_add_up(known: tuple[Handover, ...], reply: Reply, kind: LookupKind, found: tuple[Handover, ...]) -> None:
    told = seen(reply, known=known, page="p2")
    assert (told.kind, told.found) == (kind, found)


TOKENS = [("p2", "p2"), (7, "7"), (0, "0"), ("", ""), (None, ""), ("null", "")]


@pytest.mark.parametrize(("told", "token"), TOKENS)
def test_tokens(told: object, token: str) -> None:
    assert seen(page_of(next=told)).next == token


@pytest.mark.parametrize("token", [True, 1.5, {}, ["p2"], "a\nb", "\ud800", "x" * 8001])
def test_what_is_no_token_leaves_the_rest_unread(token: object) -> None:
    assert seen(page_of(next=token)).kind is K.UNREADABLE


def test_a_token_may_be_in_a_header_or_told_twice() -> None:
    spec = replace(MANY, next=NextPage(token=Header("X-Next"), query="t"))
    assert seen(answered({"jobs": []}, 200, ("x-next", "p2")), spec).next == "p2"
    assert seen(page_of(), spec).kind is K.ABSENT
    assert seen(answered(raw=b'{"jobs":[],"next":"a","next":"b"}')).kind is K.UNREADABLE


BY_URL = replace(MANY, next=NextPage(url=body("/next")))
FIRST = f"{HOST}/v1/jobs?ref=op-1&page_token=first"
NEXT_URLS = [
    ("/v1/jobs?page=2", K.MORE, f"{HOST}/v1/jobs?page=2"),
    ("?page=2", K.MORE, f"{HOST}/v1/jobs?page=2"),
    (f"{HOST}/v1/jobs?page=2#x", K.MORE, f"{HOST}/v1/jobs?page=2"),
    (FIRST, K.UNREADABLE, ""),
    ("https://evil.example/v1/jobs", K.UNREADABLE, ""),
    ("//evil.example/v1/jobs", K.UNREADABLE, ""),
    ("http://api.provider.example/v1/jobs", K.UNREADABLE, ""),
    ("/../x", K.UNREADABLE, ""),
    (7, K.MORE, f"{HOST}/v1/7"),
    (None, K.ABSENT, ""),
]


@pytest.mark.parametrize(("told", "kind", "url"), NEXT_URLS)
def test_the_next_page_by_url_is_on_the_tables_hosts(told: object, kind: LookupKind, url: str) -> None:
    one = seen(page_of(next=told), BY_URL)
    assert (one.kind, one.next) == (kind, url)


def test_a_forbidden_next_page_is_told_as_such() -> None:
    assert seen(page_of(next="https://evil.example/"), BY_URL).observation.kind is Kind.TARGET_DENIED


LINKS = [
    ('</2>; rel="next"', "/2"),
    ("</2>; rel=next", "/2"),
    ('</2>;rel="prev next"; title="x"', "/2"),
    ('</1>; rel="prev", </2>; rel="next"; x="a, b; c"', "/2"),
    ('</1>; title="; rel=next"; rel="last"', ""),
    ('</2>; rel="nextish"', ""),
    ("/2; rel=next", ""),
    ("", ""),
]


@pytest.mark.parametrize(("header", "target"), LINKS)
def test_the_next_page_by_link_header(header: str, target: str) -> None:
    """RFC 8288."""
    headers = (("Content-Type", "x"), ("link", header))
    assert linked(Answer(status=200, headers=headers)) == target
    spec = replace(MANY, next=NextPage(link=True))
    assert seen(answered({"jobs": []}, 200, *headers[1:]), spec).next == (HOST + target if target else "")


def test_a_list_without_pages_ends_with_its_page() -> None:
    assert seen(page_of(next="p2"), replace(MANY, next=None)).kind is K.ABSENT
    assert next_of(NextPage(), Answer(status=200, document=members(next="x"))) == ""


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_any_link_header_is_read(header: str) -> None:
    assert isinstance(next_of(NextPage(link=True), Answer(status=200, headers=(("Link", header),))), str | Unreadable)


# --- the request ------------------------------------------------------------------------------------


def test_the_request_is_as_the_table_writes_it() -> None:
    request = lookup_request(by(MANY), SUBMITTED)
    assert (request.method, request.url, request.body) == ("GET", FIRST, b"")
    assert request.headers[-1] == ("X-Request-Id", "op-1:7")


def test_a_page_replaces_its_parameter_or_the_address() -> None:
    assert lookup_request(by(MANY), SUBMITTED, page="a&b").url == f"{HOST}/v1/jobs?ref=op-1&page_token=a%26b"
    assert lookup_request(by(BY_URL), SUBMITTED, page=f"{HOST}/v1/jobs?page=2").url == f"{HOST}/v1/jobs?page=2"
    assert lookup_request(by(ONE), SUBMITTED, page="p2").url == f"{HOST}/v1/jobs/by-ref/op-1"
    with pytest.raises(UsageError, match="does not allow this address"):
        lookup_request(by(BY_URL), SUBMITTED, page="https://evil.example/")
    assert with_query(f"{HOST}/a", "x y", "1") == f"{HOST}/a?x%20y=1"


def test_a_look_up_takes_what_is_known() -> None:
    request = RequestSpec(
        method="POST",
        path="/search/{payload/name}",
        body_kind=BodyKind.JSON,
        body={"key": "{idempotency_key}", "rows": "{payload/rows}"},
    )
    asked = by(replace(MANY, request=request))
    sent = lookup_request(asked, SUBMITTED, SENT)
    assert (sent.url, sent.body) == (f"{HOST}/search/n-1", b'{"key":"op-1","rows":3}')
    with pytest.raises(UsageError, match=r"no value for \{payload/rows\}"):
        lookup_request(asked, SUBMITTED)
    assert seen(page_of(), replace(MANY, request=request), sent=None).kind is K.UNREADABLE


@pytest.mark.parametrize("table", [TABLE, submitting()])
def test_a_table_without_a_look_up_asks_nothing(table: ProviderTable) -> None:
    with pytest.raises(UsageError, match="has no look-up"):
        lookup_request(table, SUBMITTED)
    told = read_lookup(table, answered({"id": 1}), operation=SUBMITTED, sent=None, now=T0)
    assert told.kind is K.UNREADABLE


@given(
    st.sampled_from([ONE, MANY, BY_URL, replace(MANY, items=body(""))]),
    st.integers(0, 999) | st.just(200),
    st.binary(max_size=60)
    | st.sampled_from([b'{"jobs":[]}', b'{"jobs":[{"reference":"op-1","id":1}],"next":"\\ud800"}', b"[]"]),
    st.sampled_from(["", "p2", f"{HOST}/v1/jobs"]),
)
def test_any_answer_becomes_one_value(spec: LookupSpec, code: int, raw: bytes, page: str) -> None:
    told = seen(answered(raw=raw, status=code), spec, page=page)
    assert told.kind is not K.ABSENT or code == 404 or code in range(200, 300)
    assert (told.kind is K.MORE) is bool(told.next)
    assert told.kind is not K.FOUND or len(told.found) == 1
