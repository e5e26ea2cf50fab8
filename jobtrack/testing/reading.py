"""Typed values of a strict YAML tree; each wrong one is a finding that says what to write."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from jobtrack.catalog import strict
from jobtrack.catalog.findings import Finding, Mark, Report
from jobtrack.catalog.nodes import Node
from jobtrack.errors import ConfigurationError

MAX_BYTES = 4 << 20
MAX_COUNT = 100_000
_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class CaseError(ConfigurationError):
    """A case or a reply that cannot be read. ``context["findings"]`` holds every finding as a mapping."""

    code: ClassVar[str] = "case_invalid"


def refuse(source: str, findings: Sequence[Finding]) -> CaseError:
    """The error for a text with these findings; its message lists them, one a line."""
    lines = "\n".join(f"  {finding}" for finding in findings)
    count = "1 mistake" if len(findings) == 1 else f"{len(findings)} mistakes"
    message = f"{source} has {count}:\n{lines}"
    return CaseError(message, source=source, findings=[asdict(finding) for finding in findings])


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        CaseError: it is missing, a folder, too large, or not UTF-8 text.
    """
    try:
        with path.open("rb") as file:
            return decode(file.read(MAX_BYTES + 1), str(path))
    except OSError as error:
        raise CaseError(f"{path} cannot be read: {(error.strerror or 'unknown trouble').lower()}.") from None


def decode(raw: bytes, source: str) -> str:
    """The text of bytes from ``source``; raises CaseError if they are too many or no UTF-8 text."""
    if len(raw) > MAX_BYTES:
        raise CaseError(f"{source} is larger than {MAX_BYTES >> 20} MiB.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise CaseError(f"{source} is not UTF-8 text.") from None


def read_tree(text: str, report: Report) -> Node | None:
    """The tree of a strict YAML text. JSON with numbers or escapes that YAML reads otherwise is read too."""
    if not text.strip():
        report.add(Mark(), (), "empty", "There is nothing in it.")
        return None
    attempt = Report(file=report.file)
    root = strict.parse(text, attempt)
    if attempt.findings and text.lstrip()[:1] in {"{", "["}:
        try:
            return _from_json(json.loads(text), ())
        except (ValueError, RecursionError):
            pass
    report.findings.extend(attempt.findings)
    return root


def _from_json(value: Any, path: tuple[str | int, ...]) -> Node:
    if isinstance(value, dict):
        inner: Any = {key: _from_json(item, (*path, key)) for key, item in value.items()}
    elif isinstance(value, list):
        inner = [_from_json(item, (*path, number)) for number, item in enumerate(value)]
    else:
        inner = value
    return Node(value=inner, mark=Mark(), path=path, text="" if isinstance(value, dict | list) else str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads nodes; what is wrong goes to ``report`` and a stand-in is returned, so that reading goes on."""

    report: Report

    def add(self, node: Node, code: str, message: str) -> None:
        self.report.add(node.mark, node.path, code, message)

    def fill(self, keys: Mapping[str, Node], **readers: Callable[[Node], object]) -> dict[str, Any]:
        """Arguments of a record: each key that is there, read by its reader. The rest keeps its default."""
        return {name: read(keys[name]) for name, read in readers.items() if name in keys}

    def mapping(self, node: Node, *, allowed: Iterable[str] = (), required: Iterable[str] = ()) -> dict[str, Node]:
        """The known keys of a mapping."""
        required = tuple(required)
        known = (*required, *allowed)
        if not isinstance(node.value, dict):
            self.add(node, "type", f"A mapping belongs here; write one or more of {', '.join(sorted(known))}.")
            return {}
        for key in node.value.keys() - set(known):
            self.report.add(node.key_mark(key), (*node.path, key), "unknown_key", unknown("key", key, known))
        for key in set(required) - node.value.keys():
            self.add(node, "missing_key", f"The key {key} is missing.")
        return {key: item for key, item in node.value.items() if key in known}

    def sequence(self, node: Node) -> list[Node]:
        if not isinstance(node.value, list):
            self.add(node, "type", "A list belongs here; start each item with a hyphen.")
            return []
        return node.value

    def text(self, node: Node) -> str:
        if isinstance(node.value, str) or (isinstance(node.value, int) and not isinstance(node.value, bool)):
            return str(node.value)
        self.add(node, "type", "Text belongs here; put it in quotes.")
        return ""

    def texts(self, node: Node) -> dict[str, str]:
        if not isinstance(node.value, dict):
            self.add(node, "type", "A mapping of names to texts belongs here.")
            return {}
        return {key: self.text(item) for key, item in node.value.items()}

    def word(self, node: Node, known: Iterable[str]) -> str:
        known = tuple(known)
        word = node.value if isinstance(node.value, str) else node.text
        if word not in known:
            self.add(node, "value", unknown("word", word, known))
        return word

    def count(self, node: Node, least: int = 0, most: int = MAX_COUNT) -> int:
        if isinstance(node.value, int) and not isinstance(node.value, bool) and least <= node.value <= most:
            return node.value
        self.add(node, "value", f"A whole number from {least} to {most} belongs here.")
        return max(least, 1)

    def flag(self, node: Node) -> bool:
        if isinstance(node.value, bool):
            return node.value
        self.add(node, "value", "Write true or false here.")
        return False

    def number(self, node: Node) -> float:
        if isinstance(node.value, int | float) and not isinstance(node.value, bool):
            return float(node.value)
        self.add(node, "type", "A number belongs here.")
        return 0.0

    def fraction(self, node: Node) -> float:
        value = self.number(node)
        if not 0 <= value <= 1:
            self.add(node, "value", "A number from 0 to 1 belongs here.")
            return 0.5
        return value

    def duration(self, node: Node) -> timedelta:
        match = _DURATION.fullmatch(node.value) if isinstance(node.value, str) else None
        if match is None:
            self.add(node, "value", "A duration belongs here, such as 500ms, 30s, 15m, 2h or 1d.")
            return timedelta(seconds=1)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})

    def instant(self, node: Node) -> datetime:
        try:
            value = datetime.fromisoformat(node.value if isinstance(node.value, str) else "")
        except ValueError:
            value = None
        if value is None or value.tzinfo is None:
            self.add(node, "value", 'An instant with its zone belongs here, such as "2030-01-07T12:00:00Z".')
            return datetime(2030, 1, 7, tzinfo=UTC)
        return value.astimezone(UTC)


def unknown(noun: str, word: str, known: Iterable[str]) -> str:
    """A sentence for a word that is not one of the known ones."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1)
    advice = f"did you mean {near[0]}?" if near else f"write one of {', '.join(names)}."
    return f"The {noun} {word!r} is not known here; {advice}"
