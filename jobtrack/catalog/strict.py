"""Strict YAML: what two readers could take for two things is refused (R-TABLE-1, R-TABLE-6).

Only mappings with text keys, lists, text, whole numbers, decimals, ``true``, ``false`` and ``null``. Values are read
from their source text, so no state name is ever changed on the way: YAML 1.1 turns ``no`` into false and ``014``
into 12, YAML 1.2 does not, and editors follow either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

import yaml
from yaml.resolver import Resolver

from jobtrack.catalog.findings import Mark, Path, Report
from jobtrack.catalog.nodes import Leaf, Node

MAX_BYTES = 256 * 1024
MAX_DEPTH = 50

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,15})\.[0-9]{1,15}")
_WORDS = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false", "null", "~", ""})
_NUMBER_LIKE = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0[ob][0-7_]+|0x[0-9a-fA-F_]+")
_SWITCH = {"yes": "true", "on": "true", "y": "true", "true": "true"} | dict.fromkeys(
    ("no", "off", "n", "false"), "false"
)


class _Stop(Exception):
    """The text cannot be read further; the finding is written."""


def parse(text: str, report: Report) -> Node | None:
    """Read a text into a tree.

    Args:
        text: The YAML text.
        report: Gets every finding of the text.

    Returns:
        The tree, also of a text with findings; None if it cannot be read to its end.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        report.add(Mark(), (), "too_large", f"The file is larger than {MAX_BYTES // 1024} KiB; write a smaller table.")
        return None
    text = text.removeprefix("\ufeff")
    found_tabs = _report_tabs(text, report)
    try:
        return _Composer(yaml.parse(text.replace("\t", " "), Loader=yaml.SafeLoader), report).document()
    except yaml.MarkedYAMLError as error:
        if not found_tabs:
            _syntax(error, report)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        mark = Mark(line=before.count("\n") + 1, column=len(before) - (before.rfind("\n") + 1) + 1)
        report.add(mark, (), "syntax", "A character stands here that YAML does not allow; remove it.")
    except _Stop:
        pass
    return None


def _report_tabs(text: str, report: Report) -> bool:
    lines = [(number, line.find("\t") + 1) for number, line in enumerate(text.splitlines(), 1) if "\t" in line]
    for number, column in lines:
        report.add(Mark(line=number, column=column), (), "tab", "A tab stands here; write blanks instead.")
    return bool(lines)


def _syntax(error: yaml.MarkedYAMLError, report: Report) -> None:
    at = error.problem_mark or error.context_mark
    mark = Mark(line=at.line + 1, column=at.column + 1) if at else Mark()
    because = f" ({error.problem})" if error.problem else ""
    report.add(
        mark, (), "syntax", f"This is not YAML{because}; check the indentation, colons, brackets and quotes here."
    )


class _Composer:
    """Builds the tree from parser events, one event at a time, so that depth is checked before it is reached."""

    def __init__(self, events: Iterator[yaml.Event], report: Report) -> None:
        self._events = events
        self._report = report

    def document(self) -> Node | None:
        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._start(event, root)
                root = self._node(next(self._events), ())
        if root is None:
            self._report.add(Mark(), (), "empty", "The file is empty; start it with jobtrack: 1.")
        return root

    def _start(self, event: yaml.DocumentStartEvent, root: Node | None) -> None:
        if root is not None:
            self._stop(event, "many_documents", "A second document starts here; write one table a file.")
        if event.version or event.tags:
            self._add(event, (), "directive", "Directives are not allowed; remove the line that starts with %.")

    def _node(self, event: yaml.Event, path: Path) -> Node:
        if len(path) > MAX_DEPTH:
            self._stop(event, "too_deep", f"More than {MAX_DEPTH} levels are nested here; write a flatter table.")
        if isinstance(event, yaml.AliasEvent):
            self._add(event, path, "alias", f"The alias *{event.anchor} is not allowed; write the value out.")
            return Node(value="", mark=_mark(event), path=path, refused=True)
        self._refuse_decoration(event, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, path)
        assert isinstance(event, yaml.ScalarEvent)
        return self._scalar(event, path)

    def _refuse_decoration(self, event: yaml.Event, path: Path) -> None:
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if anchor:
            self._add(event, path, "anchor", f"The anchor &{anchor} is not allowed; remove it.")
        if tag:
            self._add(event, path, "tag", f"The tag {_short(tag)} is not allowed; remove it and quote text.")

    def _sequence(self, event: yaml.Event, path: Path) -> Node:
        items: list[Node] = []
        while not isinstance(following := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(following, (*path, len(items))))
        return Node(value=items, mark=_mark(event), path=path)

    def _mapping(self, event: yaml.Event, path: Path) -> Node:
        node = Node(value={}, mark=_mark(event), path=path)
        assert isinstance(node.value, dict)
        while not isinstance(key_event := next(self._events), yaml.MappingEndEvent):
            key = self._key(key_event, node)
            value = self._node(next(self._events), (*path, key if key is not None else "?"))
            if key is not None:
                node.value[key] = value
                node.keys[key] = _mark(key_event)
        return node

    def _key(self, event: yaml.Event, node: Node) -> str | None:
        """The key as text; None if its value cannot be used."""
        if not isinstance(event, yaml.ScalarEvent):
            self._node(event, (*node.path, "?"))
            self._add(event, node.path, "key", "A key must be text; write a word here.")
            return None
        self._refuse_decoration(event, node.path)
        key: str = event.value
        if event.style is None and key == "<<":
            self._add(event, node.path, "merge", "Merge keys (<<) are not allowed; write the keys out.")
            return None
        if event.style is None and _is_special(key):
            self._add(
                event,
                (*node.path, key),
                "look_alike",
                f"The key {_short(key)} may be read as something else; {_advice(key)}",
            )
        if key in node.keys:
            first = node.keys[key].line
            self._add(
                event,
                (*node.path, key),
                "duplicate_key",
                f"The key {_short(key)} stands in line {first} already; keep one.",
            )
            return None
        return key

    def _scalar(self, event: yaml.ScalarEvent, path: Path) -> Node:
        text: str = event.value
        node = Node(value=text, mark=_mark(event), path=path, text=text)
        if event.style is not None or event.tag:
            return node
        known, node.value = typed(text)
        if not known:
            node.refused = True
            self._add(
                event, path, "look_alike", f"{_short(text) or 'Nothing'} may be read as something else; {_advice(text)}"
            )
        return node

    def _add(self, event: yaml.Event, path: Path, code: str, message: str) -> None:
        self._report.add(_mark(event), path, code, message)

    def _stop(self, event: yaml.Event, code: str, message: str) -> NoReturn:
        self._add(event, (), code, message)
        raise _Stop


def typed(text: str) -> tuple[bool, Leaf]:
    """The value of an unquoted scalar.

    Returns:
        Whether every reader of YAML agrees on the value, and the value (the text itself if they do not).
    """
    if text in ("true", "false"):
        return True, text == "true"
    if text == "null":
        return True, None
    if _INTEGER.fullmatch(text) and text != "-0":
        return True, int(text)
    if _DECIMAL.fullmatch(text):
        return True, float(text)
    return not _is_special(text), text


def quoted(text: str) -> str:
    """A text as it must be written to be text."""
    body = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{body}"'


def _is_special(text: str) -> bool:
    """True if YAML 1.1 or 1.2 reads this unquoted text as anything but text."""
    if text.casefold() in _WORDS or _NUMBER_LIKE.fullmatch(text):
        return True
    resolvers = Resolver.yaml_implicit_resolvers.get(text[0], [])
    return any(pattern.match(text) for _, pattern in resolvers)


def _advice(text: str) -> str:
    if not text:
        return "write a value or remove the key."
    switch = _SWITCH.get(text.casefold())
    return f"write {quoted(text)}{f' for the word or {switch} for a switch' if switch else ''}."


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _mark(event: yaml.Event) -> Mark:
    assert event.start_mark is not None
    return Mark(line=event.start_mark.line + 1, column=event.start_mark.column + 1)
