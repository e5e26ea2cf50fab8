"""Rules of fetching a result, as rows (R-END-4, R-SEC-1, R-READ-6, INV-30)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core import fetch as rules
from jobtrack.core.actions import FetchSpec, NextPage
from jobtrack.core.fetch import Fault, Range
from jobtrack.core.jsontext import JsonObject
from jobtrack.core.place import Header
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Sent, Trouble
from jobtrack.core.table import Pick, ResultSpec, Retention
from tests.core.builders import OPERATION, T0, S, answer, answered, body, members, table

SPEC = FetchSpec(redirects=("https://storage.example",), credential_hosts=("https://data.provider.example",))
API, FILES, DATA = "https://api.provider.example", "https://files.provider.example", "https://data.provider.example"


@pytest.mark.parametrize(
    ("url", "fetched", "followed", "credential"),
    [
        (f"{API}/r", True, True, True),
        (f"{FILES}/r?sig=1", True, True, False),
        (f"{DATA}/r", True, True, True),
        ("https://storage.example/r", False, True, False),
        ("https://evil.example/r", False, False, False),
        ("http://files.provider.example/r", False, False, False),
        ("https://files.provider.example:8443/r", False, False, False),
        ("https://user@files.provider.example/r", False, False, False),
        ("https://files.provider.example.evil.example/r", False, False, False),
        ("https://files.provider.example\\@evil.example/r", False, False, False),
        (f"{FILES}/a/../r", False, False, False),
        ("", False, False, False),
    ],
)
def test_who_is_asked_and_who_gets_the_credential(url: str, fetched: bool, followed: bool, credential: bool) -> None:
    known = table()
    assert rules.may_fetch(url, known, SPEC, {}) is fetched
    assert rules.may_follow(url, known, SPEC, {}) is followed
    assert rules.gets_credential(url, known, SPEC, {}) is credential


@pytest.mark.parametrize(
    ("url", "secret", "plain"),
    [
        (f"{API}/r", False, True),
        (f"{API}/r", True, False),
        (f"{API}/r?x=1", False, False),
        (f"{API}/r#x", False, False),
        (f"{FILES}/r", False, False),
    ],
)
def test_which_links_are_no_capabilities(url: str, secret: bool, plain: bool) -> None:
    assert rules.is_plain(url, table({"result": ResultSpec(hosts=(FILES,), secret=secret)}), {}) is plain


@pytest.mark.parametrize(
    ("base", "reference", "url"),
    [
        (f"{API}/v1/jobs/1", "/files/1", f"{API}/files/1"),
        (f"{API}/v1/jobs/1", "out", f"{API}/v1/jobs/out"),
        (f"{API}/v1/jobs/1?x=1", "?page=2", f"{API}/v1/jobs/1?page=2"),
        (f"{API}/v1", "//evil.example/x", "https://evil.example/x"),
        (f"{API}/v1", "https://[", ""),
        (f"{API}/v1", "", ""),
        (f"{API}/v1", 7, ""),
        (f"{API}/v1", None, ""),
    ],
)
def test_references_are_resolved(base: str, reference: object, url: str) -> None:
    assert rules.resolved(base, reference) == url


@pytest.mark.parametrize(
    ("method", "status", "onward"),
    [("GET", 302, "GET"), ("GET", 308, "GET"), ("POST", 303, "GET"), ("POST", 301, "GET"), ("POST", 307, "")],
)
def test_a_redirect_never_repeats_what_is_no_plain_reading(method: str, status: int, onward: str) -> None:
    assert rules.after_redirect(method, status) == onward


# --- documents ---------------------------------------------------------------------------------------


def test_the_first_link_that_is_there_counts() -> None:
    seen = answer(members(b="", c="/x"), 200, ("Location", "/y"))
    places = (body("/a"), body("/b"), body("/c"), Header("Location"))
    assert rules.link_in(places, seen, f"{API}/v1") == f"{API}/x"
    assert rules.link_in((Header("location"),), seen, f"{API}/v1") == f"{API}/y"
    assert rules.link_in((body("/a"),), seen, f"{API}/v1") == ""


def test_the_item_of_a_list_that_is_this_job_is_looked_into() -> None:
    known = table({"pick": Pick(list_at=body("/jobs"), id_at=body("/id"))})
    found = rules.status_document(known, answered({"jobs": [{"id": "x"}, {"id": "job-1", "url": "u"}]}), "job-1")
    assert not isinstance(found, Fault)
    assert found.document == {"id": "job-1", "url": "u"}
    assert isinstance(rules.status_document(known, answered({"jobs": []}), "job-1"), Fault)


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (7, "7"), (True, ""), (1.5, ""), (None, ""), ([], ""), ({}, "")]
)
def test_only_texts_and_integers_fill_a_request(value: object, text: str) -> None:
    assert rules.scalar(value) == text


@pytest.mark.parametrize(
    ("places", "document", "items"),
    [
        (("/out", "/err"), {"out": "f1", "err": "f2"}, [("f1", "out"), ("f2", "err")]),
        (("/out", "/err"), {"out": None, "err": "f2"}, [("f2", "err")]),
        (("/out", "/err"), {"out": 7}, [(7, "out")]),
        (("/out", "/err"), {}, []),
        (("/out",), {"out": ["a"]}, [(["a"], "out")]),  # a list of places is never a place of a list
        (("/f/0", "/f/1"), {"f": ["a", "b"]}, [("a", "0"), ("b", "1")]),
        (("/a/id", "/b/ID"), {"b": members(ID="f2")}, [("f2", "")]),
        (("", "/.."), {"..": "x"}, [({"..": "x"}, ""), ("x", "")]),
    ],
)
def test_each_place_with_a_value_is_an_item(
    places: tuple[str, ...], document: dict[str, object], items: list[tuple[object, str]]
) -> None:
    seen = rules.items_of(tuple(map(body, places)), answer(members(**document)))
    assert not isinstance(seen, Fault)
    assert [(item.value, item.name) for item in seen] == items


def test_a_place_that_cannot_be_read_is_no_missing_place() -> None:
    twice = JsonObject([("out", "f1"), ("out", "f2")])
    seen = rules.items_of((body("/out"), body("/err")), answer(twice))
    assert isinstance(seen, Fault)
    assert (seen.said, seen.stale) == ("The place /out of the answer cannot be read.", True)


def test_values_of_the_next_request_must_all_be_there() -> None:
    seen = answer(members(a="1", b=2, c=None))
    assert rules.hop_values((("x", body("/a")), ("y", body("/b"))), seen) == {"x": "1", "y": "2"}
    assert isinstance(rules.hop_values((("x", body("/a")), ("z", body("/c"))), seen), Fault)


@pytest.mark.parametrize(
    ("value", "spec", "content"),
    [
        ({"a": "ö"}, {}, b'{"a": "\\u00f6"}'),
        (False, {}, b"false"),
        (0, {}, b"0"),
        ("", {"empty_ok": True}, b'""'),
        ("", {}, None),
        ([], {}, None),
        ("long", {"max_bytes": 3}, None),
        (JsonObject([("a", 1), ("a", 2)]), {}, None),
        ("\ud800", {}, b'"\\ud800"'),
    ],
)
def test_a_value_becomes_one_json_file(value: object, spec: dict[str, object], content: bytes | None) -> None:
    made = rules.inline(replace(SPEC, **spec), value)  # type: ignore[arg-type]
    assert (None if isinstance(made, Fault) else made) == content


@pytest.mark.parametrize(
    ("ways", "seen", "url"),
    [
        (None, answer(members(next="x")), ""),
        (NextPage(url=body("/next")), answer(members(next="/p?n=2")), f"{API}/p?n=2"),
        (NextPage(url=body("/next")), answer(members(next=None)), ""),
        (NextPage(token=body("/next"), query="t"), answer(members(next="a b")), f"{API}/l?x=1&t=a%20b"),
        (NextPage(token=body("/next"), query="x"), answer(members(next=2)), f"{API}/l?x=2"),
        (NextPage(token=body("/next"), query="t", end="END"), answer(members(next="END")), ""),
        (NextPage(token=Header("X-Next"), query="t"), answer(None, 200, ("x-next", "2")), f"{API}/l?x=1&t=2"),
        (NextPage(link=True), answer(None, 200, ("Link", "</l?p=2>; rel=next")), f"{API}/l?p=2"),
        (NextPage(link=True), answer(None, 200, ("Link", "</l?p=0>; rel=prev")), ""),
        (NextPage(url=body("/next")), answer(members(next=[1])), Fault),
    ],
)
def test_where_the_next_page_is(ways: NextPage | None, seen: object, url: object) -> None:
    found = rules.next_page(FetchSpec(next=ways), seen, f"{API}/l?x=1")  # type: ignore[arg-type]
    assert isinstance(found, Fault) if url is Fault else found == url


@pytest.mark.parametrize(
    ("ways", "inside"),
    [
        (None, False),
        (NextPage(link=True), False),
        (NextPage(token=Header("X"), query="t"), False),
        (NextPage(token=body("/t"), query="t"), True),
        (NextPage(url=body("/t")), True),
    ],
)
def test_whether_a_page_must_be_searched(ways: NextPage | None, inside: bool) -> None:
    assert rules.next_in_body(FetchSpec(next=ways)) is inside


# --- what an answer is worth --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "final", "stale", "wait"),
    [
        (NoAnswer(sent=Sent.MAYBE, trouble=Trouble.READ_TIMEOUT), False, False, None),
        (NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED), True, False, None),
        (Answered(status=200, flaw=Flaw.OVERSIZED), True, False, None),
        (Answered(status=200, flaw=Flaw.UNDECODABLE), False, False, None),
        (Answered(status=302), True, False, None),
        (Answered(status=404), False, False, None),
        (Answered(status=410), False, True, None),
        (Answered(status=403), False, True, None),
        (Answered(status=500), False, False, None),
        (Answered(status=503, headers=(("Retry-After", "9"),)), False, False, 9 * S),
    ],
)
def test_what_a_bad_answer_means(reply: object, final: bool, stale: bool, wait: timedelta | None) -> None:
    fault = rules.fault_of(reply, table(), T0)  # type: ignore[arg-type]
    assert (fault.final, fault.stale, fault.wait) == (final, stale, wait)


@pytest.mark.parametrize(
    ("content_type", "types", "fits"),
    [
        ("text/csv; charset=utf-8", (), True),
        (None, (), True),
        ("TEXT/HTML", (), False),
        ("application/xhtml+xml", (), False),
        ("text/html", ("text/html",), True),
        ("Text/CSV", ("text/csv",), True),
        ("application/json", ("text/csv",), False),
        (None, ("text/csv",), False),
    ],
)
def test_which_types_are_results(content_type: str | None, types: tuple[str, ...], fits: bool) -> None:
    headers = () if content_type is None else (("Content-Type", content_type),)
    fault = rules.type_fault(FetchSpec(types=types), Answered(status=200, headers=headers))
    assert (fault is None) is fits


def test_a_hostile_type_does_not_reach_the_text() -> None:
    headers = (("Content-Type", "https://evil.example/?sig=SIGSECRET"),)
    fault = rules.type_fault(FetchSpec(types=("text/csv",)), Answered(status=200, headers=headers))
    assert fault is not None
    assert "SIGSECRET" not in fault.said


@pytest.mark.parametrize(
    ("etag", "strong"),
    [('"v1"', '"v1"'), ('W/"v1"', ""), ("v1", ""), ('""', ""), (None, ""), ('"a"b"', ""), ('"' + "x" * 151 + '"', "")],
)
def test_only_a_strong_validator_proves_the_same_bytes(etag: str | None, strong: str) -> None:
    assert rules.strong_etag(Answered(status=200, headers=() if etag is None else (("ETag", etag),))) == strong


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("bytes 4-9/10", Range(start=4, end=9, whole=10)),
        ("bytes 4-9/*", Range(start=4, end=9, whole=None)),
        ("bytes 9-4/10", None),
        ("bytes 4-10/10", None),
        ("bytes */10", None),
        ("items 4-9/10", None),
        ("", None),
    ],
)
def test_a_part_says_which_part_it_is(text: str, found: Range | None) -> None:
    assert rules.range_of(Answered(status=206, headers=(("Content-Range", text),))) == found


def partial(text: str, **headers: str) -> Answered:
    return Answered(status=206, headers=(("Content-Range", text), *headers.items()))


@pytest.mark.parametrize(
    ("reply", "offset", "room", "fine"),
    [
        (Answered(status=200), 0, 10, True),
        (Answered(status=200, headers=(("Content-Length", "10"),)), 0, 10, True),
        (Answered(status=200, headers=(("Content-Length", "11"),)), 0, 10, False),
        (Answered(status=200, headers=(("Content-Length", "14"),)), 4, 10, True),
        (partial("bytes 4-9/10"), 4, 10, True),
        (partial("bytes 4-9/10", ETag='"v1"'), 4, 10, True),
        (partial("bytes 4-9/10", ETag='"v2"'), 4, 10, False),
        (partial("bytes 4-9/10"), 5, 10, False),
        (partial("bytes 0-9/10"), 0, 10, False),
        (partial("bytes 4-9/10", **{"Content-Length": "11"}), 4, 10, False),
    ],
)
def test_a_body_is_judged_before_its_first_byte(reply: Answered, offset: int, room: int, fine: bool) -> None:
    fault = rules.begin_fault(SPEC, reply, offset=offset, etag='"v1"', room=room)
    assert (fault is None) is fine


@pytest.mark.parametrize(
    ("reply", "size", "empty_ok", "fine"),
    [
        (Answered(status=200), 1, False, True),
        (Answered(status=200), 0, False, False),
        (Answered(status=200), 0, True, True),
        (partial("bytes 4-9/10"), 10, False, True),
        (partial("bytes 4-9/10"), 9, False, False),
        (partial("bytes 4-8/10"), 9, False, False),
        (partial("bytes 4-8/*"), 9, False, True),
    ],
)
def test_a_file_is_judged_after_its_last_byte(reply: Answered, size: int, empty_ok: bool, fine: bool) -> None:
    assert (rules.end_fault(FetchSpec(empty_ok=empty_ok), reply, size=size) is None) is fine


# --- names and times ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "number", "taken", "name", "own"),
    [
        ("report.csv", 1, (), "report.csv", True),
        ("report.csv", 2, ("report.csv",), "report-2.csv", False),
        ("REPORT.csv", 3, ("report.csv", "report-2.csv"), "REPORT-3.csv", False),
        ("../../etc/passwd", 1, (), "passwd", True),
        ("C:\\temp\\a b.txt", 1, (), "a_b.txt", True),
        (".hidden", 1, (), "hidden", True),
        ("häß\u202egpj.exe", 1, (), "häß_gpj.exe", True),
        ("", 4, (), "result-4", False),
        ("..", 4, (), "result-4", False),
        (None, 0, (), "result", False),
        (None, 1, ("result-1",), "result-1-2", False),
        (17, 1, (), "17", True),
        ({"a": 1}, 2, (), "result-2", False),
        ("x" * 200 + ".csv", 1, (), "x" * 76 + ".csv", True),
        ("\ud800", 1, (), "result-1", False),
    ],
)
def test_names_are_cleaned_and_unique(
    wanted: object, number: int, taken: tuple[str, ...], name: str, own: bool
) -> None:
    assert rules.file_name(wanted, number, taken) == (name, own)


@pytest.mark.parametrize(
    ("link", "reads", "attempt", "serves"),
    [
        ("u", 1, 2, True),
        ("u", 1, 3, True),
        ("u", 1, 4, False),
        ("u", 2, 4, True),
        ("", 1, 2, False),
        ("u", 0, 1, False),
    ],
)
def test_a_kept_link_serves_for_three_tries(link: str, reads: int, attempt: int, serves: bool) -> None:
    assert rules.link_serves(link, reads, attempt) is serves


def test_retention_counts_from_the_end_of_the_job() -> None:
    """R-TABLE-5."""
    row, keeping = replace(OPERATION, observed_at=T0), table(retention=Retention(result=timedelta(days=1)))
    assert rules.kept_until(table(), row) is None
    assert rules.kept_until(keeping, replace(row, observed_at=None)) is None
    assert rules.kept_until(keeping, row) == T0 + timedelta(days=1)
    assert rules.retention_said(table(), row, T0) == ""
    assert "keeps the result until 2030-01-08 12:00" in rules.retention_said(keeping, row, T0)
    assert "kept results until" in rules.retention_said(keeping, row, T0 + timedelta(days=2))
