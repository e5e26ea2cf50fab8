"""Single values of a checked tree: durations, numbers, places."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from jobtrack.catalog import places
from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Leaf, Node
from jobtrack.core.place import Body, Gap, Header, HttpStatus, Locator

LONGEST = timedelta(days=366)
NOWHERE = Body((), "")
"""Stands for a place that could not be read; its finding refuses the table."""

_DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_GAPS: dict[Leaf, Gap] = {"absent": Gap.ABSENT, "null": Gap.NULL, None: Gap.NULL, "either": Gap.EITHER}


def fill(node: Node | None, **readers: Callable[[Node], object]) -> dict[str, Any]:
    """Arguments of a record: each key that stands in the mapping, read by its reader. The rest keeps its default."""
    if node is None:
        return {}
    return {key: reader(item) for key, reader in readers.items() if (item := node.get(key)) is not None}


def text(node: Node) -> str:
    return str(node.value)


def whole(node: Node) -> int:
    assert isinstance(node.value, int)
    return node.value


def number(node: Node) -> float:
    assert isinstance(node.value, int | float)
    return float(node.value)


def flag(node: Node) -> bool:
    return node.value is True


def texts(node: Node) -> tuple[str, ...]:
    return tuple(text(item) for item in node.items())


def named(node: Node) -> tuple[tuple[str, str], ...]:
    """Names and texts of a mapping, in order."""
    return tuple((key, text(item)) for key, item in node.pairs())


def gap(node: Node) -> Gap:
    return _GAPS[node.leaf()]


class Reader:
    """Reads values that may be wrong although they fit the schema; each such value is reported."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def duration(self, node: Node) -> timedelta:
        match = _DURATION.fullmatch(text(node))
        assert match is not None  # the schema has the same pattern
        length = timedelta(**{_UNITS[match[2]]: int(match[1])})
        if length > LONGEST:
            self.report.add(node.mark, node.path, "too_long", f"{node.text} is longer than a year; write at most 366d.")
            return LONGEST
        return length

    def body(self, node: Node) -> Body:
        try:
            return places.body(text(node))
        except places.BadPlace as problem:
            self.report.add(node.mark, node.path, "place", str(problem))
            return NOWHERE

    def place(self, node: Node) -> Locator:
        if isinstance(node.value, dict):
            name = node.get("header")
            return HttpStatus() if name is None else Header(text(name))
        return self.body(node)

    def places(self, node: Node) -> tuple[Locator, ...]:
        return tuple(self.place(item) for item in node.items())

    def keyed(self, node: Node, key: str) -> Locator:
        """The place that a key of a mapping names."""
        try:
            return places.keyed(key)
        except places.BadPlace as problem:
            self.report.add(node.key_mark(key), (*node.path, key), "place", str(problem))
            return NOWHERE

    def body_or_header(self, node: Node, body_key: str) -> Body | Header:
        """One of two keys of a mapping: a place in the body, or a header."""
        place, name = node.get(body_key), node.get("header")
        if (place is None) == (name is None):
            self.report.add(node.mark, node.path, "place", f"Write either {body_key} or header here, not both or none.")
            return NOWHERE
        return Header(text(name)) if name is not None else self.body(place or node)
