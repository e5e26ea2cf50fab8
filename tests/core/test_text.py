"""R-SEC-4, R-AUDIT-3: provider text is storable, bounded and without secrets."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.text import clean, redact, storable, tell

CLEANED = [
    ("plain", "plain"),
    ("Succeeded ", "Succeeded "),
    ("disk\x00 full", "disk\ufffd full"),  # B025
    ("half \ud800 pair", "half \ufffd pair"),  # B025
    ("two\r\nlines\tand\u2028more", "two  lines and more"),
    ("\x1b[31mred\x1b[0m", "\ufffdred\ufffd"),
    ("bell\x07 c1\x9b", "bell\ufffd c1\ufffd"),
    ("abc\u202edcba", "abc\ufffddcba"),
    ("zero\u200bwidth\ufeff", "zero\ufffdwidth\ufffd"),
    ("smile 😀 é", "smile 😀 é"),
]


@pytest.mark.parametrize(("text", "expected"), CLEANED)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@pytest.mark.parametrize(
    ("text", "limit", "expected"), [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("ab", 1, "…")]
)
def test_clean_is_bounded(text: str, limit: int, expected: str) -> None:
    assert clean(text, limit) == expected


@given(st.text(st.characters(codec=None, categories=None)), st.integers(1, 50))
def test_clean_text_is_always_one_storable_line(text: str, limit: int) -> None:
    line = clean(text, limit)
    line.encode("utf-8")
    assert len(line) <= limit
    assert "\x00" not in line
    assert len(line.splitlines()) <= 1
    assert clean(line, limit) == line


def test_storable_changes_only_what_a_database_refuses() -> None:
    assert storable("a\x00b\ud800c\nd\u202e") == "a\ufffdb\ufffdc\nd\u202e"


REDACTED = [
    ("https://h.example/a/b?sig=s3cret&x=1", "https://h.example/a/b?***"),
    ("https://h.example/a/b#token", "https://h.example/a/b#***"),
    ("https://user:pw@h.example/a", "https://h.example/a"),
    ("https://user:pw@h.example", "https://h.example"),
    (
        "see <https://h.example/x?sig=1>, then https://h.example/y",
        "see <https://h.example/x?***>, then https://h.example/y",
    ),
    ("s3://bucket/key?X-Amz-Signature=1", "s3://bucket/key?***"),
    ("Authorization: Bearer abc.def", "Authorization: ***"),
    ("authorization=Basic dXNlcjpwdw==", "authorization=***"),
    ('{"Authorization": "Bearer abc"}', '{"Authorization": "***"}'),
    ("sent bearer hush-hush to you", "sent bearer *** to you"),
    ("sent Basic dXNlcjpwdw== to you", "sent Basic *** to you"),
    ("the basic subscription is enough", "the basic subscription is enough"),
    ("api_key=abc123&next=1", "api_key=***&next=1"),
    ("token: abc", "token: ***"),
    ('"access_token":"abc","x":1', '"access_token":"***","x":1'),
    ("client_secret = abc", "client_secret = ***"),
    ("password=hunter2", "password=***"),
    ("/relative?X-Amz-Signature=abc&a=1", "/relative?X-Amz-Signature=***&a=1"),
    ("?sig=abc", "?sig=***"),
    ("/v1?key=AIzaSyA", "/v1?key=***"),
    ("unknown key: model", "unknown key: model"),
    ("max_tokens: 4096 design: flat", "max_tokens: 4096 design: flat"),
    ("Set-Cookie: sid=abc; Path=/", "Set-Cookie: ***; Path=/"),
    ("Incorrect API key provided: sk-abcdefghijklmnopqrst.", "Incorrect API key provided: ***."),
    ("got eyJhbGciOiJI.eyJzdWIi.c2ln and AKIAABCDEFGHIJKLMNOP", "got *** and ***"),
    ("disk full", "disk full"),
]


@pytest.mark.parametrize(("text", "expected"), REDACTED)
def test_redact(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_texts_that_differ_only_in_a_signature_become_equal() -> None:
    first, second = (f"GET https://files.example/r/1?e=9&sig={sig} failed" for sig in ("aaa", "bbb"))
    assert redact(first) == redact(second)


URL_WORDS = ["https://", "h.example", "u:p@", "/p", "?", "#", "sig", "=", ":", "&"]
OTHER_WORDS = [
    "token",
    "Bearer ",
    "basic ",
    "***",
    '"',
    "'",
    "authorization",
    "key",
    "CANARY",
    "secret",
    "\n",
    "<",
    ",",
    "-",
    "_",
    " ",
]
WORDS = st.sampled_from([*URL_WORDS, *OTHER_WORDS, "sk-abcdefghijklmnopqrst", "eyJabcdefgh."])


@given(st.lists(WORDS, max_size=14).map("".join) | st.text())
def test_redact_is_idempotent(text: str) -> None:
    once = redact(text)
    assert redact(once) == once
    assert tell(once) == clean(once)


@pytest.mark.parametrize(
    "piece", ["a.", "eyJaaaaaaaa-", "token", "bearer ", "basic a", "https://", "\x1b[0", "sk-", "key ", "u@"]
)
def test_hostile_text_is_read_in_linear_time(piece: str) -> None:
    started = time.perf_counter()
    tell(piece * ((1 << 20) // len(piece)))
    assert time.perf_counter() - started < 8  # a quadratic reading takes minutes
