"""Places in an answer as a table writes them, turned into locators (R-TABLE-4)."""

from __future__ import annotations

import re
from functools import cache

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError
from jsonpath.selectors import IndexSelector, NameSelector

from jobtrack.core.place import Body, Header, HttpStatus, Locator

_ESCAPE = re.compile(r"~(?![01])")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class BadPlace(ValueError):
    """A place that cannot be read; the text says what to write."""


def body(text: str) -> Body:
    """A place in the JSON body.

    Args:
        text: A JSON Pointer (RFC 6901), or a singular JSONPath (RFC 9535) that starts with ``$``.

    Raises:
        BadPlace: If it is neither, or may lead to more than one value.
    """
    if text.startswith("/"):
        return Body(_pointer(text), text)
    if text.startswith("$"):
        return Body(_path(text), text, pointer=False)
    raise BadPlace(f"{text} is no place; write /{text} or $.{text}.")


def keyed(text: str) -> Locator:
    """A place written as a key: ``/a/b``, ``$.a[0]``, ``header X-Name`` or ``http``.

    Raises:
        BadPlace: If it is none of these.
    """
    if text == "http":
        return HttpStatus()
    if text.startswith("header "):
        return header(text.removeprefix("header "))
    return body(text)


def header(name: str) -> Header:
    """A response header.

    Raises:
        BadPlace: If the name cannot be one.
    """
    if not _HEADER.fullmatch(name):
        raise BadPlace(f"{name} is no header name; write letters, digits and hyphens, such as X-State.")
    return Header(name)


def _pointer(text: str) -> tuple[str, ...]:
    if _ESCAPE.search(text):
        raise BadPlace(f"{text} has a ~ that stands alone; write ~0 for ~ and ~1 for /.")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:])


@cache
def _environment() -> JSONPathEnvironment:
    return JSONPathEnvironment(strict=True)


def _path(text: str) -> tuple[str | int, ...]:
    try:
        compiled = _environment().compile(text)
    except JSONPathError as error:
        raise BadPlace(
            f"{text} is no JSONPath ({str(error).splitlines()[0]}); write it like $.items[0].state."
        ) from None
    if not isinstance(compiled, JSONPath) or not compiled.singular_query():
        raise BadPlace(f"{text} may find several values; name one, with an index such as [0] or with pick.")
    return tuple(_token(segment.selectors[0]) for segment in compiled.segments)


def _token(selector: object) -> str | int:
    if isinstance(selector, IndexSelector):
        return selector.index
    assert isinstance(selector, NameSelector)  # a singular query has no other selectors
    return selector.name
