"""The provider's word for the state, looked up in the table (R-TABLE-2, R-TABLE-4). Unknown is never guessed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jobtrack.core import sentences_answer as say
from jobtrack.core.locate import Answer, Found, Unreadable, gap_matches, read, same
from jobtrack.core.place import Gap, Scalar
from jobtrack.core.table import Meaning, OpenStates, Rule, StatePart, StateRow, StateType, StatusSpec
from jobtrack.core.text import clean

JOINT = " + "
"""Stands between the parts of a composite state."""

_PYTHON_TYPE = {StateType.STRING: str, StateType.INTEGER: int, StateType.BOOLEAN: bool}
_MOST_COMPARED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A state by the provider's own word; ``meaning`` None: the table does not know it."""

    label: str
    meaning: Meaning | None = None


def read_state(status: StatusSpec, answer: Answer) -> Named | Unreadable:
    """Look up the state; ``Unreadable`` if it is missing, of the wrong type, or cannot be told."""
    if not status.state:
        return Named(label=_join(_rule_values(status.rules, answer)))
    seen: list[Scalar | Gap] = []
    for index, part in enumerate(status.state):
        value = _part(part, answer)
        if isinstance(value, Unreadable):
            return value
        if isinstance(value, Gap) and not any(isinstance(row.values[index], Gap) for row in status.rows):
            return Unreadable(say.NO_STATE.of(place=part.at.source, gap=value))
        seen.append(value)
    label = _join(map(_word, seen))
    row = next((row for row in status.rows if _matches(row, seen, status.state)), None)
    if row is not None:
        return Named(label=label, meaning=row.meaning)
    return Named(label=label, meaning=_open_meaning(status, seen))


def _part(part: StatePart, answer: Answer) -> Scalar | Gap | Unreadable:
    seen = read(part.at, answer)
    if not isinstance(seen, Found):
        return seen
    wanted = _PYTHON_TYPE[part.type]
    if isinstance(seen.value, str | int) and type(seen.value) is wanted:
        return seen.value
    return Unreadable(say.STATE_TYPE.of(place=part.at.source, type=part.type))


def _matches(row: StateRow, seen: list[Scalar | Gap], parts: tuple[StatePart, ...]) -> bool:
    return all(
        gap_matches(wanted, value) if isinstance(wanted, Gap) else same(wanted, value, fold=part.fold)
        for wanted, value, part in zip(row.values, seen, parts, strict=True)
    )


def _open_meaning(status: StatusSpec, seen: list[Scalar | Gap]) -> Meaning | None:
    """Pending, if the provider's contract leaves such a word open; else None."""
    word = seen[0]
    if status.open is None or not isinstance(word, str) or any(isinstance(value, Gap) for value in seen):
        return None
    return Meaning.PENDING if _is_open(word, status.open, status.rows) else None


def _is_open(word: str, contract: OpenStates, rows: tuple[StateRow, ...]) -> bool:
    """A plain word that begins as declared and is not a declared one in other letters."""
    declared = {_word(value).casefold() for row in rows for value in row.values[:1]}
    plain = word == clean(word).strip() and word != ""
    return plain and word.casefold() not in declared and word.startswith(contract.starts_with or ("",))


# --- words for people -------------------------------------------------------------------------------


def _word(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Gap() | str() | int():
            return str(value)
        case _:
            return ""


def _join(words: Iterable[str]) -> str:
    return JOINT.join(words)


def label_of(rule: Rule, answer: Answer) -> str:
    """The provider's words that a rule went by; its meaning if it went by none."""
    return _join(_rule_values((rule,), answer)) or str(rule.then)


def _rule_values(rules: Iterable[Rule], answer: Answer) -> Iterator[str]:
    """Scalars at the places that rules compare with words, each place once, in order."""
    conditions = (condition for rule in rules for condition in rule.conditions if condition.equals)
    for locator in dict.fromkeys(condition.at for condition in conditions):
        seen = read(locator, answer)
        word = _word(seen.value) if isinstance(seen, Found) else ""
        if word:
            yield word


def nearest(status: StatusSpec, label: str) -> str:
    """The declared state that looks most like an unknown one, for the message; "" if none is near."""
    declared = {_join(map(_word, row.values)) for row in status.rows}
    for rule in status.rules:
        words = [condition.equals for condition in rule.conditions if condition.equals]
        declared.update(_join(map(_word, choice)) for choice in _choices(words))
    by_fold = {word.strip().casefold(): word for word in sorted(declared)}
    near = difflib.get_close_matches(label[:_MOST_COMPARED].strip().casefold(), by_fold, n=1)
    return by_fold[near[0]] if near else ""


def _choices(words: list[tuple[Scalar, ...]]) -> Iterator[tuple[Scalar, ...]]:
    """One choice per condition; rules rarely list more than a few, so only the first condition is spread."""
    if words:
        first, *others = words
        yield from ((choice, *(other[0] for other in others)) for choice in first)
