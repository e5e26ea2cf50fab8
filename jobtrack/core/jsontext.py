"""Strict JSON: what a provider may send and still be read (R-READ-1).

Python's own reader takes NaN, infinities, UTF-16 and repeated members, and fails in three different ways on deep
or long input. Here each of these ends in one value, ``Malformed``.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass

from jobtrack.core import sentences_answer as say

MAX_DEPTH = 100
MAX_DIGITS = 4300

_BOM = b"\xef\xbb\xbf"
_CHARSETS = frozenset({"", "utf-8", "utf8", "us-ascii"})
_MEDIA_TYPES = frozenset({"", "application/json", "text/json", "text/plain"})
_MARKS = re.compile(r'\\.|["\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Malformed:
    """The body cannot be read. ``problem`` is a clause without any part of the body."""

    problem: str
    empty: bool = False  # there is no body at all


class JsonObject(dict[str, object]):
    """A JSON object that remembers which members came more than once: a fault only if somebody reads them."""

    __slots__ = ("duplicates",)

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.duplicates: frozenset[str] = frozenset()
        if len(self) != len(pairs):
            times = Counter(name for name, _ in pairs)
            self.duplicates = frozenset(name for name in self if times[name] > 1)


class _Refused(ValueError):
    """Leaves the JSON decoder with a clause of ours."""


def parse(body: bytes, content_type: str | None) -> object | Malformed:
    """Read a JSON body.

    Args:
        body: The bytes, decompressed. One byte-order mark is accepted.
        content_type: Value of ``Content-Type``; None or "" if the answer has none. Anything that does not claim
            to be JSON (or plain text) in UTF-8 is refused.

    Returns:
        The value, objects as ``JsonObject``, or ``Malformed``. Never raises.
    """
    problem = _media_problem(content_type or "")
    if problem:
        return Malformed(problem)
    if not body.strip():
        return Malformed(say.EMPTY.of(), empty=True)
    try:
        text = body.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        return Malformed(say.NOT_UTF8.of())
    if _too_deep(text):
        return Malformed(say.TOO_DEEP.of(most=MAX_DEPTH))
    return _decode(text)


def _media_problem(content_type: str) -> str:
    media, *parameters = (part.strip().lower() for part in content_type[:200].split(";"))
    if media not in _MEDIA_TYPES and not (media.startswith("application/") and media.endswith("+json")):
        return say.MEDIA_TYPE.of(media=ascii(media)[:80])
    charset = next((part[8:].strip('"') for part in parameters if part.startswith("charset=")), "")
    return "" if charset in _CHARSETS else say.CHARSET.of(charset=ascii(charset)[:40])


def _too_deep(text: str) -> bool:
    """A scan, not a recursion limit: the same text is refused in every process."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth, quoted = 0, False
    for match in _MARKS.finditer(text):
        mark = match[0]
        if mark == '"':
            quoted = not quoted
        elif not quoted and mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif not quoted and mark in "]}":
            depth -= 1
    return False


def _decode(text: str) -> object | Malformed:
    try:
        value: object = json.loads(
            text, object_pairs_hook=JsonObject, parse_int=_integer, parse_float=_number, parse_constant=_constant
        )
    except _Refused as refused:
        return Malformed(str(refused))
    except json.JSONDecodeError as error:
        return Malformed(say.NOT_JSON.of(line=error.lineno, column=error.colno))
    return value


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _Refused(say.TOO_MANY_DIGITS.of(most=MAX_DIGITS))
    try:
        return int(digits)
    except ValueError:  # the process may allow fewer digits than we do
        raise _Refused(say.TOO_LONG_HERE.of()) from None


def _number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _Refused(say.TOO_LARGE.of())
    return number


def _constant(name: str) -> object:
    raise _Refused(say.NO_NUMBER.of(word=name))
