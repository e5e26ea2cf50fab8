"""Where a value is in an answer, and tests on it (R-TABLE-4). Nothing is guessed, nothing raises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from jobtrack.core import sentences_answer as say
from jobtrack.core.jsontext import JsonObject, Malformed
from jobtrack.core.place import Body, Condition, Gap, Header, HttpStatus, Locator
from jobtrack.core.table import Pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer ready to be looked into."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    document: object | Malformed = None  # the JSON body, or the item that was picked from it


@dataclass(frozen=True, slots=True)
class Found:
    """The value is there and not null."""

    value: object


@dataclass(frozen=True, slots=True)
class Unreadable:
    """There is no single true value: the body cannot be read, a member is repeated, two items match."""

    problem: str


def read(locator: Locator, answer: Answer) -> Found | Gap | Unreadable:
    """The value at a place.

    Returns:
        ``Found``; ``Gap.ABSENT`` or ``Gap.NULL``; or ``Unreadable`` if the way leads through a repeated member or
        into a body that cannot be read. A container of the wrong type on the way means absent.
    """
    if isinstance(locator, HttpStatus):
        return Found(answer.status)
    if isinstance(locator, Header):
        wanted = locator.name.lower()
        first = next((value for key, value in answer.headers if key.lower() == wanted), None)
        return Gap.ABSENT if first is None else Found(first)
    if isinstance(answer.document, Malformed):
        return Unreadable(answer.document.problem)
    return _walk(locator, answer.document)


def _walk(body: Body, document: object) -> Found | Gap | Unreadable:
    value = document
    for token in body.tokens:
        if isinstance(value, JsonObject) and isinstance(token, str):
            if token in value.duplicates:
                return Unreadable(say.TWICE_ON_THE_WAY.of(place=body.source))
            if token not in value:
                return Gap.ABSENT
            value = value[token]
        elif isinstance(value, list) and (index := _index(token, body.pointer, len(value))) is not None:
            value = value[index]
        else:
            return Gap.ABSENT
    return Gap.NULL if value is None else Found(value)


_CANONICAL_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def _index(token: str | int, pointer: bool, length: int) -> int | None:
    """Position in an array (RFC 6901: canonical digits; RFC 9535: an integer, negative from the end)."""
    if isinstance(token, str):
        if not pointer or not _CANONICAL_INDEX.fullmatch(token):
            return None
        token = int(token)
    return token if -length <= token < length else None


# --- tests on values --------------------------------------------------------------------------------


def same(left: object, right: object, *, fold: bool = False) -> bool:
    """Equal with exact types, at every depth: ``true`` is not ``1``, ``10.0`` is not ``10``, ``"10"`` is not ``10``.

    Args:
        left: A JSON value.
        right: A JSON value.
        fold: Compare two strings without regard to letter case.
    """
    if fold and isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    if type(left) is not type(right):
        return False
    if isinstance(left, list | dict | float):  # inside a container types count too, and -0.0 is not 0.0
        return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    return left == right


def is_id(value: object, job_id: str) -> bool:
    """Whether a value is this job id: the same text, or an integer written the same way; never a float (R-ID-5)."""
    return value == job_id if isinstance(value, str) else type(value) is int and str(value) == job_id


def gap_matches(wanted: Gap, seen: object) -> bool:
    """Whether a value is missing in the wanted way."""
    return isinstance(seen, Gap) and wanted in (seen, Gap.EITHER)


def holds(condition: Condition, answer: Answer) -> bool | Unreadable:
    """Whether one condition is met; ``Unreadable`` if a value that it needs cannot be read."""
    seen = read(condition.at, answer)
    if isinstance(seen, Unreadable):
        return seen
    if condition.gap is not None:
        return gap_matches(condition.gap, seen)
    if condition.present is not None:
        return isinstance(seen, Found) is condition.present
    return isinstance(seen, Found) and _value_holds(condition, seen.value, answer)


def _value_holds(condition: Condition, value: object, answer: Answer) -> bool | Unreadable:
    if condition.empty is not None:
        return (isinstance(value, str | list | dict) and not value) is condition.empty
    if condition.above is not None:
        return isinstance(value, int | float) and not isinstance(value, bool) and value > condition.above
    if condition.same_as is not None:
        other = read(condition.same_as, answer)
        return other if isinstance(other, Unreadable) else isinstance(other, Found) and same(value, other.value)
    return any(same(value, wanted, fold=condition.fold) for wanted in condition.equals)


def all_hold(conditions: Iterable[Condition], answer: Answer) -> bool | Unreadable:
    """Whether every condition is met. Status and headers are asked first, so a body is read only if it matters."""
    for condition in sorted(conditions, key=lambda condition: isinstance(condition.at, Body)):
        held = holds(condition, answer)
        if held is not True:
            return held
    return True


# --- one item of a list -----------------------------------------------------------------------------


def choose(pick: Pick, answer: Answer, job_id: str) -> Answer | Gap | Unreadable:
    """The answer narrowed to the one item that matches.

    Returns:
        The narrowed answer; ``Gap.ABSENT`` if no item matches; ``Unreadable`` if there is no list, more than one
        item matches, or an item cannot be told apart.
    """
    listed = read(pick.list_at, answer)
    if isinstance(listed, Unreadable):
        return listed
    if not isinstance(listed, Found) or not isinstance(listed.value, list):
        return Unreadable(say.NO_LIST.of(place=pick.list_at.source or say.ROOT.of()))
    matching: Answer | Gap = Gap.ABSENT
    for item in _items(answer, listed.value):
        matches = _matches(pick, item, job_id)
        if isinstance(matches, Unreadable):
            return matches
        if matches and isinstance(matching, Answer):
            return Unreadable(say.SEVERAL_ITEMS.of(place=pick.list_at.source or say.ROOT.of()))
        matching = item if matches else matching
    return matching


def _items(answer: Answer, values: list[object]) -> Iterator[Answer]:
    return (replace(answer, document=value) for value in values)


def _matches(pick: Pick, item: Answer, job_id: str) -> bool | Unreadable:
    if pick.id_at is not None:
        seen = read(pick.id_at, item)
        if isinstance(seen, Unreadable):
            return seen
        if not isinstance(seen, Found) or not is_id(seen.value, job_id):
            return False
    return all_hold(pick.where, item)
