"""Requests as tables write them, filled with values: quoted for their place, whole leaves in bodies, no language.

Placeholders are ``{name}``, ``{+name}`` (a path only: slashes stay), ``{name:int}`` (a body only), and for what the
caller gave ``{payload}``, ``{payload/a/b}`` (JSON Pointer) and ``{payload/a?}`` (left out where it is absent).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from jobtrack.core import sentences_request as say
from jobtrack.core.place import BodyKind, Gap, RequestSpec
from jobtrack.core.sentences_answer import ROOT
from jobtrack.errors import UsageError

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,63}")
FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = "application/json"

_NAME = r"(?:payload(?P<pointer>(?:/[^{}?]*)?)(?P<optional>\??)|(?P<name>[A-Za-z_][A-Za-z0-9_-]*))"
PLACEHOLDER = re.compile(rf"\{{(?P<spread>\+?){_NAME}\}}")
LEAF = re.compile(rf"\{{{_NAME}(?P<int>:int)?\}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What placeholders stand for."""

    texts: Mapping[str, str]  # by name
    payload: Mapping[str, object] = field(default_factory=dict)  # by JSON Pointer; "" is the whole; {}: there is none

    def of(self, placeholder: re.Match[str]) -> object:
        """The value of a placeholder; ``Gap.ABSENT`` only for an optional one.

        Raises:
            UsageError: There is no value.
        """
        pointer, name = placeholder["pointer"], placeholder["name"]
        if pointer is None:
            return self.text(name)
        if not self.payload:
            return self.text("payload" + pointer)
        seen = self.at(pointer)
        if seen is Gap.ABSENT and not placeholder["optional"]:
            raise UsageError(say.NEEDS_PAYLOAD.of(place=pointer or ROOT.of()), pointer=pointer)
        return seen

    def text(self, name: str) -> str:
        if name not in self.texts:
            raise UsageError(say.NO_VALUE.of(name=f"{{{name}}}"), parameters=[name])
        return self.texts[name]

    def at(self, pointer: str) -> object:
        """The value at a pointer into the payload, or ``Gap.ABSENT``."""
        known, rest = pointer, []
        while known not in self.payload:
            if not known:
                return Gap.ABSENT
            known, _, token = known.rpartition("/")
            rest.append(token)
        value = self.payload[known]
        for token in reversed(rest):
            value = member(value, token.replace("~1", "/").replace("~0", "~"))
        return value


def member(value: object, token: str) -> object:
    """A member of an object or an item of a list by its canonical index; ``Gap.ABSENT`` if there is none."""
    if isinstance(value, dict):
        return value.get(token, Gap.ABSENT)
    if isinstance(value, list) and token.isascii() and token.isdigit() and str(int(token[:9])) == token:
        return value[int(token)] if int(token) < len(value) else Gap.ABSENT
    return Gap.ABSENT


# --- texts -------------------------------------------------------------------------------------------


def plain(value: str) -> str:
    return value


def fill(
    template: str,
    values: Values,
    encode: Callable[[str], str] = plain,
    spread: Callable[[str], str] | None = None,
) -> str | None:
    """Replace placeholders: ``{name}`` through ``encode``, ``{+name}`` through ``spread`` where slashes may stay.

    Returns:
        The text; None if an optional part of the payload is absent.

    Raises:
        UsageError: A placeholder has no value, or one that is no text for this place.
    """
    pieces: list[str] = []
    end = 0
    for match in PLACEHOLDER.finditer(template):
        value = values.of(match)
        if value is Gap.ABSENT:
            return None
        pieces += [template[end : match.start()], (spread if spread and match["spread"] else encode)(scalar(value))]
        end = match.end()
    return "".join(pieces) + template[end:]


def scalar(value: object) -> str:
    """Text of a JSON value that can stand inside a text.

    Raises:
        UsageError: It is null, a list or an object.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise UsageError(say.NOT_WRITABLE.of())


def path(template: str, values: Values) -> str:
    """The path of an address.

    Raises:
        UsageError: A value is missing, or would change the path.
    """
    filled = fill(template, values, _segment, _segments)
    if filled is None:
        raise UsageError(say.PATH_NEEDS_ALL.of())
    return filled


def query(pairs: tuple[tuple[str, str], ...], values: Values) -> str:
    """The query of an address, without the question mark; pairs whose optional value is absent are left out."""
    filled = ((name, fill(value, values)) for name, value in pairs)
    return urlencode([(name, value) for name, value in filled if value is not None], quote_via=quote)


def header(template: str, values: Values) -> str | None:
    """The value of a header; None if it is left out."""
    return fill(template, values, printable)


def printable(value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise UsageError(say.HEADER_ASCII.of())
    return value


def _segment(value: str) -> str:
    if value in ("", ".", ".."):
        raise UsageError(say.SEGMENT_NOT.of())
    if CONTROL.search(value):
        raise UsageError(say.PATH_CONTROL.of())
    return quote(value, safe="")


def _segments(value: str) -> str:
    if "?" in value or "#" in value or "\\" in value:
        raise UsageError(say.SPANS_NOT.of())
    return "/".join(_segment(segment) for segment in value.split("/"))


# --- bodies ------------------------------------------------------------------------------------------


def content(spec: RequestSpec, values: Values) -> object:
    """What the body says, before it is written: the JSON value, the form's fields, or the GraphQL document."""
    if spec.body_kind is not BodyKind.GRAPHQL:
        return None if spec.body_kind is BodyKind.NONE else leaves(spec.body, values)
    # GraphQL: the query text is code of the table; only its variables take values.
    parts = spec.body if isinstance(spec.body, Mapping) else {}
    return {"query": parts.get("query", ""), "variables": leaves(parts.get("variables", {}), values)}


def written(kind: BodyKind, value: object) -> tuple[str, bytes]:
    """Content type and bytes; "" and nothing for a request without a body."""
    if kind is BodyKind.NONE:
        return "", b""
    if kind is BodyKind.FORM:
        return FORM_TYPE, _form(value)
    return JSON_TYPE, json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _form(fields: object) -> bytes:
    named = fields.items() if isinstance(fields, dict) else ()
    texts = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in named]
    return urlencode(texts).encode("ascii")


def leaves(value: object, values: Values) -> object:
    """A copy with every whole-leaf placeholder replaced; a member whose optional value is absent is left out.

    Raises:
        UsageError: A placeholder has no value, or ``:int`` none that is an integer.
    """
    filled = _leaves(value, values)
    if filled is Gap.ABSENT:
        raise UsageError(say.BODY_OPTIONAL.of())
    return filled


def _leaves(value: object, values: Values) -> object:
    match value:
        case str():
            leaf = LEAF.fullmatch(value)
            return _leaf(leaf, values) if leaf else value
        case Mapping():
            named = ((str(name), _leaves(item, values)) for name, item in value.items())
            return {name: item for name, item in named if item is not Gap.ABSENT}
        case list() | tuple():
            return [filled for item in value if (filled := _leaves(item, values)) is not Gap.ABSENT]
        case _:
            return value


def _leaf(leaf: re.Match[str], values: Values) -> object:
    value = values.of(leaf)
    if not leaf["int"] or value is Gap.ABSENT:
        return value
    if not isinstance(value, str) or not INTEGER.fullmatch(value):
        raise UsageError(say.NEEDS_INTEGER.of(name=leaf[0].removesuffix(":int}") + "}"))
    return int(value)
