"""R-READ-1, INV-12: strict JSON; everything else ends in one value."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.jsontext import MAX_DEPTH, JsonObject, Malformed, parse

BOM = b"\xef\xbb\xbf"
OBJECT = b'{"id":"job-1","status":"running"}'
READ = {"id": "job-1", "status": "running"}

GOOD = [
    (OBJECT, "application/json", READ),
    (OBJECT, "application/json; charset=utf-8", READ),
    (OBJECT, 'Application/JSON; Charset="UTF-8"', READ),
    (OBJECT, "application/json; charset=us-ascii", READ),
    (OBJECT, "application/problem+json; x=1", READ),
    (OBJECT, "text/json", READ),
    (OBJECT, "text/plain", READ),
    (OBJECT, None, READ),
    (OBJECT, "", READ),
    (BOM + OBJECT, "application/json; charset=utf-8", READ),  # B023
    (BOM + OBJECT, "application/json", READ),  # B023
    (b' {"a": 20180814033130818988} ', None, {"a": 20180814033130818988}),  # B031
    (b'{"a":' + b"9" * 4300 + b"}", None, {"a": int("9" * 4300)}),
    (b'{"a":1e-400,"b":-0,"c":1.5}', None, {"a": 0.0, "b": 0, "c": 1.5}),
    (b'{"a":"\\u0000\\ud800"}', None, {"a": "\x00\ud800"}),
    (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None, None),
    (b"[" * MAX_DEPTH + b"]" * 99 + b",[]]", None, None),
    (b'["' + b"[" * 200 + b'\\"[{"]', None, ["[" * 200 + '"[{']),
    (b"[" + b"[]," * 200 + b"{}]", None, [[]] * 200 + [{}]),
]


@pytest.mark.parametrize(("body", "content_type", "expected"), GOOD)
def test_what_is_read(body: bytes, content_type: str | None, expected: object) -> None:
    read = parse(body, content_type)
    assert not isinstance(read, Malformed)
    assert expected is None or read == expected


BAD = [
    (b"", None, "the body is empty"),
    (b" \r\n", "application/json", "the body is empty"),
    (BOM + BOM + OBJECT, None, "the body is not JSON (line 1, column 1)"),  # B023
    (OBJECT.decode().encode("utf-16"), "application/json", "the body is not UTF-8"),  # B023
    (OBJECT.decode().encode("utf-16-le"), None, "the body is not JSON (line 1, column 2)"),
    (OBJECT.decode().encode("utf-32-be"), None, "the body is not JSON (line 1, column 1)"),
    (OBJECT, "application/json; charset=utf-16", "the charset is 'utf-16', not UTF-8"),
    (OBJECT, "application/json; charset=latin-1", "the charset is 'latin-1', not UTF-8"),
    (b'{"a":"\xff"}', None, "the body is not UTF-8"),
    (b'"\xed\xa0\x80"', None, "the body is not UTF-8"),
    (b"<html></html>", "text/html", "the media type is 'text/html', not JSON"),
    (OBJECT, "application/xml", "the media type is 'application/xml', not JSON"),
    (OBJECT, "image/svg+json", "the media type is 'image/svg+json', not JSON"),
    (b"<html></html>", "text/plain", "the body is not JSON (line 1, column 1)"),
    (b'{"a":NaN}', None, "the body has NaN, which is not JSON"),
    (b"-Infinity", None, "the body has -Infinity, which is not JSON"),
    (b'{"a":1e999}', None, "the body has a number that is too large"),
    (b'{"a":' + b"9" * 4301 + b"}", None, "the body has a number of more than 4300 digits"),
    (b"[" * 101 + b"]" * 101, None, "the body is nested deeper than 100 levels"),
    (b'["]",' * 101 + b"1" + b"]" * 101, None, "the body is nested deeper than 100 levels"),
    (b'{"a":' * 100_000, None, "the body is nested deeper than 100 levels"),
    (b'{"a":1}}', None, "the body is not JSON (line 1, column 8)"),
    (b"{'a':1}", None, "the body is not JSON (line 1, column 2)"),
    (b'{"a":1,}', None, None),
    (b'{"a\x00":1}', None, None),
]


@pytest.mark.parametrize(("body", "content_type", "problem"), BAD)
def test_what_is_refused(body: bytes, content_type: str | None, problem: str | None) -> None:
    read = parse(body, content_type)
    assert isinstance(read, Malformed)
    assert problem in (None, read.problem)


def test_the_digits_that_this_process_allows_do_not_matter() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert parse(b"9" * 700, None) == Malformed("the body has a number that is too long for this process")
    finally:
        sys.set_int_max_str_digits(before)


def test_repeated_members_are_remembered_where_they_are() -> None:
    read = parse(b'{"status":"running","status":"done","in":{"a":1,"b":2,"b":2}}', None)
    assert isinstance(read, JsonObject)
    assert (read, read.duplicates) == ({"status": "done", "in": {"a": 1, "b": 2}}, {"status"})
    inner = read["in"]
    assert isinstance(inner, JsonObject)
    assert inner.duplicates == {"b"}


@given(
    st.binary(max_size=60) | st.text('{}[]":,\\0aeE.-+n ', max_size=40).map(str.encode),
    st.none() | st.text(max_size=40),
)
def test_any_bytes_are_read_or_refused(body: bytes, content_type: str | None) -> None:
    parse(body, content_type)
