"""Sentences that are stored in English, in the reader's language.

They are read back with the templates that made them (``core.sentences``). What none of them made is shown as it is
stored: a provider's own words, and texts that were cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext

from jobtrack.core import sentences_answer, sentences_question, sentences_request, sentences_result
from jobtrack.core.meanwhile import MACHINE
from jobtrack.core.sentences import MAYBE_OURS, OURS, Sentence, sentences_in
from jobtrack_django import words
from jobtrack_django.notify import trouble

SENTENCES: Final = sentences_in(sentences_answer, sentences_question, sentences_request, sentences_result, trouble)

_ENDED: Final = tuple(sentence for sentence in SENTENCES if sentence.template.endswith("."))
"""Those with a full stop: they may follow each other, and may lose it inside another one."""

# Not behind a colon or a bracket: there it is inside another one.
_BEFORE_A_SENTENCE: Final = re.compile(f"(?<![:(]) (?=[A-Z0-9])(?={'|'.join(sentence.opening for sentence in _ENDED)})")

_LONGEST: Final = 2000
"""Characters of the longest text that is read; a longer one is none of ours."""

_DEPTH: Final = 6
"""How often a sentence may be inside another one."""

_WORDS: Final[Mapping[str, Mapping[str, Text]]] = {
    "state": words.STATES,
    "late": words.STATES,
    "trouble": words.TROUBLES,
    "kind": words.KINDS,
    "gap": words.GAPS,
}
"""Fields that hold one of a few words."""

_INSTEAD: Final[Mapping[str, Sequence[Sentence]]] = {
    "last": (sentences_question.NOTHING_YET,),
    "jobs": (sentences_question.WITHOUT_ID,),
    "place": (sentences_answer.ROOT, sentences_result.ROOT),
    "origin": (sentences_answer.NO_PLAIN_URL,),
    **dict.fromkeys(("wait", "longest"), (sentences_question.DAY_AND_CLOCK, sentences_question.DAYS_AND_CLOCK)),
}
"""Words of ours that may stand where a value of somebody else would be."""


def told(text: str) -> str:
    """A stored text of one or more sentences, in the active language. Under English it is the text itself."""
    if not _is_whole(text):
        return text
    parts = _BEFORE_A_SENTENCE.split(text)
    readings: Sequence[_Reading | None] = [_among_others(part) for part in parts]
    if None in readings:
        # Part of it is somebody else's: what looks like a sentence of ours there may stand in one of their words.
        whole = _read(text)
        readings, parts = ([whole], [text]) if whole else (readings, parts)
    return _joined(parts, readings)


def in_a_row(told: Iterable[str]) -> str:
    """Sentences of the active language, one after the other; some languages have no space between them."""
    return reduce(lambda before, after: gettext("%(before)s %(after)s") % {"before": before, "after": after}, told)


def _joined(parts: Sequence[str], readings: Sequence[_Reading | None]) -> str:
    """What was read as the language has sentences in a row; around what is somebody else's, the space stays."""
    said = _in_words(parts[0], readings[0])
    for part, (before, reading) in zip(parts[1:], pairwise(readings), strict=True):
        text = _in_words(part, reading)
        said = f"{said} {text}" if before is None or reading is None else in_a_row((said, text))
    return said


def clause(text: str) -> str:
    """The same without its full stop, to be put into another sentence."""
    bare = text.rstrip(".")
    return _in_words(bare, _within(bare, _DEPTH))


def reason(actor: str, text: str) -> str:
    """Why somebody decided: what jobtrack itself wrote is told, what a person wrote stays as it is."""
    return told(text) if actor == MACHINE else text


def _among_others(text: str) -> _Reading | None:
    """One of the sentences of a text: one that has no full stop by itself may have one between others."""
    reading = _read(text)
    if reading is None and text.endswith("."):
        bare = _read(text[:-1])
        reading = bare and replace(bare, text=gettext("%s.") % bare.text)
    return reading


def _is_whole(text: str) -> bool:
    return len(text) <= _LONGEST and not text.endswith("…")


# --- reading ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What a text may be."""

    text: str  # in the active language
    words: int  # characters that are known to be ours: the more, the likelier it is


def _in_words(text: str, reading: _Reading | None) -> str:
    return text if reading is None else reading.text


def _read(text: str, depth: int = _DEPTH, among: Sequence[Sentence] = SENTENCES) -> _Reading | None:
    """A text as one of these sentences; None: it is none of them."""
    found = ((sentence, sentence.read(text)) for sentence in among)
    readings = (_filled(sentence, values, depth) for sentence, values in found if values is not None)
    return max(filter(None, readings), key=lambda reading: reading.words, default=None)


def _filled(sentence: Sentence, values: Mapping[str, str], depth: int) -> _Reading | None:
    """A sentence with its fields in the active language; None: a field is not what has to be there."""
    words_, told_ = sentence.words, {}
    for name, value in values.items():
        reading = _value(name, value, depth - 1)
        if reading is None:
            return None
        told_[name] = reading.text
        words_ += reading.words
    return _Reading(text=gettext(sentence.template).format(**told_), words=words_)


def _value(name: str, value: str, depth: int) -> _Reading | None:
    """A field in the active language; None: it is not what has to be there."""
    if name in _WORDS:
        return _Reading(text=str(_WORDS[name][value]), words=len(value))
    foreign = _Reading(text=value, words=0)
    if name in OURS:
        return _within(value, depth)
    if name in MAYBE_OURS:
        return _within(value, depth) or foreign
    if name == "jobs":
        listed = (_in_words(each, _read(each, depth, _INSTEAD[name])) for each in value.split(", "))
        return replace(foreign, text=", ".join(listed))
    return _read(value, depth, _INSTEAD.get(name, ())) or foreign


def _within(text: str, depth: int) -> _Reading | None:
    """A sentence inside another one, where it may have lost its full stop; None: it is none of ours."""
    if depth <= 0 or not _is_whole(text):
        return None
    whole = _read(text, depth)
    if whole is not None or text.endswith("."):
        return whole
    ended = _read(f"{text}.", depth, _ENDED)
    return None if ended is None else replace(ended, text=re.sub(r"[.。]\Z", "", ended.text))
