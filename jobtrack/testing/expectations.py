"""What a case expects, and where the run differs from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobtrack.catalog.nodes import Node
from jobtrack.core.actions import SubmitMeaning
from jobtrack.core.cancel import CancelState
from jobtrack.core.escalation import Option, Reason
from jobtrack.core.observation import DelaySource, Kind
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack.core.submission import LookupKind
from jobtrack.records import ResultState
from jobtrack.testing.reading import Reader

_STATES = frozenset(state.value for state in OperationState)
_REASONS = frozenset(reason.value for reason in Reason)
_DECISIONS = {"wait", "follow", "later", "doubt"} | {state.value for state in TERMINAL} | _REASONS
_OUTCOMES = frozenset({"pending", "unknown"} | {state.value for state in TERMINAL})
_SEEN = {"unsent", *Kind, *SubmitMeaning, *LookupKind}
_COUNTERS = ("status_requests", "transport_failures", "rate_limited", "submissions", "lookups", "result_reads")


MOST = 1 << 40
"""Bytes of a file, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A delay within limits; both count as inside."""

    min_s: float = 0.0
    max_s: float = float("inf")

    def __str__(self) -> str:
        return f"{self.min_s:g} s to {self.max_s:g} s"


@dataclass(frozen=True, slots=True)
class Containing:
    """Text with a fragment in it."""

    fragment: str

    def __str__(self) -> str:
        return f"... {self.fragment} ..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One expected value. ``key`` and ``index`` name the actual one; ``index`` None: the whole value."""

    key: str
    value: object
    line: int  # in the file, from 1
    index: int | str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that came out otherwise."""

    line: int  # of the expectation
    what: str
    expected: str
    actual: str


def read_expect(node: Node, reader: Reader) -> tuple[Expected, ...]:
    """The expectations of a case, in the order of the file."""
    found: list[Expected] = []
    for key, item in reader.mapping(node, allowed=_READERS).items():
        found += _READERS[key](key, item, reader)
    return tuple(found)


def differences(expected: tuple[Expected, ...], actual: Mapping[str, Any]) -> list[Difference]:
    """Every expectation that is not met.

    Args:
        expected: what the case says.
        actual: key -> value, or key -> list or mapping for expectations with an index.
    """
    return [difference for each in expected if (difference := _difference(each, actual[each.key])) is not None]


def _difference(each: Expected, actual: Any) -> Difference | None:
    what = each.key
    if each.index == "length":
        actual, what = len(actual), f"number of {each.key}"
    elif isinstance(each.index, int):
        what = f"{each.key}, reply {each.index + 1}"
        actual = actual[each.index] if each.index < len(actual) else "(no such look)"
    elif each.index is not None:
        what = f"{each.key}.{each.index}"
        actual = actual.get(each.index)
    if _met(each.value, actual):
        return None
    return Difference(line=each.line, what=what, expected=_shown(each.value), actual=_shown(actual))


def _met(wanted: object, actual: object) -> bool:
    if isinstance(wanted, Between):
        return isinstance(actual, int | float) and wanted.min_s - 0.001 <= actual <= wanted.max_s + 0.001
    if isinstance(wanted, Containing):
        return wanted.fragment in str(actual)
    return wanted == actual and type(wanted) is type(actual)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, float):
        return f"{value:g} s"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return str(value)


# --- reading ----------------------------------------------------------------------------------------

_Read = Callable[[Node, Reader], object]
_ReadKey = Callable[[str, Node, Reader], list[Expected]]


def _one(read: _Read) -> _ReadKey:
    return lambda key, node, reader: [Expected(key=key, value=read(node, reader), line=node.mark.line)]


def _each(read: _Read) -> _ReadKey:
    """One item for each reply that was asked for, and no more; null stands for nothing."""

    def rows(key: str, node: Node, reader: Reader) -> Iterator[Expected]:
        items = reader.sequence(node)
        for index, item in enumerate(items):
            value = None if item.value is None else read(item, reader)
            yield Expected(key=key, value=value, line=item.mark.line, index=index)
        yield Expected(key=key, value=len(items), line=node.mark.line, index="length")

    return lambda key, node, reader: list(rows(key, node, reader))


def _word(known: frozenset[str] | set[str]) -> _Read:
    return lambda node, reader: reader.word(node, known)


def _words(known: frozenset[str]) -> _Read:
    return lambda node, reader: sorted(reader.word(item, known) for item in node.items())


def _between(node: Node, reader: Reader) -> Between:
    keys = reader.mapping(node, allowed=("min_s", "max_s"))
    return Between(**reader.fill(keys, min_s=reader.number, max_s=reader.number))


def _counters(key: str, node: Node, reader: Reader) -> list[Expected]:
    keys = reader.mapping(node, allowed=_COUNTERS)
    return [Expected(key=key, value=reader.count(item), line=item.mark.line, index=name) for name, item in keys.items()]


def _fragments(key: str, node: Node, reader: Reader) -> list[Expected]:
    """Texts that must stand somewhere in the sentences of the questions."""
    return [Expected(key=key, value=Containing(reader.text(item)), line=item.mark.line) for item in node.items()]


_READERS: Mapping[str, _ReadKey] = {
    "decisions": _each(_word(_DECISIONS)),
    "observations": _each(_word({str(word) for word in _SEEN})),
    "delays": _each(_between),
    "sources": _each(_word({source.value for source in DelaySource})),
    "guidance": _each(lambda node, reader: reader.text(node)),
    "state": _one(_word(_STATES)),
    "outcome": _one(_word(_OUTCOMES)),
    "reason": _one(_words(_REASONS)),
    "provider_state": _one(lambda node, reader: reader.text(node)),
    "error": _one(lambda node, reader: reader.text(node)),
    "ended_after": _one(lambda node, reader: reader.duration(node).total_seconds()),
    "says": _fragments,
    "kept": _one(lambda node, _: node.plain()),
    "counters": _counters,
    "job_id": _one(lambda node, reader: reader.text(node)),
    "posts": _one(lambda node, reader: reader.count(node)),
    "keys": _one(lambda node, reader: reader.count(node)),
    "contents": _one(lambda node, reader: reader.count(node)),
    "options": _one(_words(frozenset(option.value for option in Option))),
    "retry_allowed": _one(lambda node, reader: reader.flag(node)),
    "cancel": _one(_word(frozenset({"none"} | {state.value for state in CancelState}))),
    "result": _one(_word(frozenset({"none"} | {state.value for state in ResultState}))),
    "files": _one(lambda node, reader: {name: reader.count(item, most=MOST) for name, item in node.pairs()}),
}

EXPECT_KEYS = tuple(_READERS)
"""Every key of ``expect``; docs/replay.md explains each."""
