"""Sentences with fields: what one template says it reads back, on any text."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtrack.core import sentences_answer, sentences_question, sentences_request, sentences_result
from jobtrack.core.answer import shown
from jobtrack.core.decide import spoken
from jobtrack.core.observation import Kind
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack.core.place import Gap
from jobtrack.core.reply import Trouble
from jobtrack.core.schedule import duration
from jobtrack.core.sentences import MAYBE_OURS, OURS, PATTERNS, Sentence, sentences_in

MODULES = (sentences_answer, sentences_question, sentences_request, sentences_result)
SENTENCES = sentences_in(*MODULES)

NUMBERS = st.integers(-(10**18), 10**18)
SPANS = st.timedeltas(timedelta(0), timedelta(days=40_000))
INSTANTS = st.datetimes(datetime(1990, 1, 1), timezones=st.timezones())  # noqa: DTZ001 - its zones come from there
VALUES = {
    **dict.fromkeys(("code", "count", "most", "line", "column", "index"), NUMBERS),
    "instant": INSTANTS.map(spoken),
    "minute": INSTANTS.map(lambda instant: instant.isoformat(sep=" ", timespec="minutes")),
    "length": SPANS.filter(bool).map(duration),
    **dict.fromkeys(("wait", "longest"), SPANS),
    "clock": st.times().map(lambda clock: f"{clock:%H:%M:%S}"),
    "request": st.from_regex(r"\A[A-Z]{1,20} https://[!-~]{1,100}\Z") | st.just("POST"),
    "host": st.from_regex(r"\Ahttps://[!-~]{1,100}\Z"),
    "reference": st.from_regex(r"\A(env|file|setting|callable):[!-~]{1,50}\Z"),
    **dict.fromkeys(("meaning", "pattern"), st.from_regex(r"\A[a-z_]{1,40}\Z")),
    **dict.fromkeys(("shown", "near"), st.text().map(shown)),
    "type": st.sampled_from(("string", "application/problem+json")),
    "error": st.from_regex(r"\A[A-Za-z_]{1,50}\Z"),
    **dict.fromkeys(("state", "late"), st.sampled_from(sorted(TERMINAL))),
    **dict.fromkeys(("before", "after"), st.sampled_from(list(OperationState))),
    "trouble": st.sampled_from(list(Trouble)),
    "kind": st.sampled_from(list(Kind)),
    "gap": st.sampled_from(list(Gap)),
}
"""What fields of each name are filled with."""


def filled(sentence: Sentence, data: st.DataObject) -> dict[str, object]:
    return {name: data.draw(VALUES.get(name, st.text()), name) for name in sentence.fields}


def free(sentence: Sentence) -> list[str]:
    return [name for name in sentence.fields if name not in PATTERNS]


@pytest.mark.parametrize("sentence", SENTENCES, ids=repr)
@settings(max_examples=8)
@given(st.data())
def test_it_reads_what_it_said(sentence: Sentence, data: st.DataObject) -> None:
    """A free field may hold words of the sentence itself; then it is read otherwise, and says the same again."""
    values = filled(sentence, data)
    said = sentence.of(**values)
    read = sentence.read(said)
    assert read is not None
    assert sentence.of(**read) == said
    if len(free(sentence)) < 2:
        assert read == {name: str(value) for name, value in values.items()}


@given(st.text(st.characters(codec=None, categories=None)), st.sampled_from(SENTENCES))
def test_they_read_nothing_else(text: str, near: Sentence) -> None:
    for sentence in SENTENCES:
        for each in (text, near.template + text, text + near.template):
            read = sentence.read(each)
            assert read is None or sentence.of(**read) == each


@pytest.mark.parametrize("sentence", SENTENCES, ids=repr)
def test_its_form_can_be_read_in_linear_time(sentence: Sentence) -> None:
    """Two free fields at most, words between them; nothing begins with foreign words."""
    parts, names = sentence.template, sentence.fields
    assert len(set(names)) == len(names)
    assert parts == sentence.of(**{name: f"{{{name}}}" for name in names}), "plain fields, no braces of its own"
    assert len(free(sentence)) <= 2
    assert "}{" not in parts
    begins = parts.startswith("{") and names[0] not in PATTERNS.keys() | OURS
    assert not begins
    assert parts == parts.strip()


def test_each_sentence_is_there_once() -> None:
    templates = [sentence.template for sentence in SENTENCES]
    assert len(set(templates)) == len(templates)


def test_a_name_has_one_meaning() -> None:
    assert set(VALUES) == set(PATTERNS)
    assert not (OURS | MAYBE_OURS) & set(PATTERNS)


HOSTILE = [
    ", but " * 400,
    " (the job is x)" * 130,
    "GET a: " * 280,
    "The job says x although its own expiry has passed." * 40,
    "The job has said  since 2030-01-01 00:00:00 UTC" * 40,
    "the address at  points to  points to " * 50 + ", which the table does not allow",
    "success without /a (absent) (absent)" * 50,
    "x" * 2000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_hostile_texts_are_read_to_their_end(text: str) -> None:
    """A pattern that tries every way to cut a text would not come back."""
    for sentence in SENTENCES:
        for each in (text, sentence.template[:10] + text, text + sentence.template[-10:]):
            read = sentence.read(each)
            assert read is None or sentence.of(**read) == each


def test_the_quotes_of_a_word_are_not_its_own() -> None:
    """A word with our own words in it stays one word."""
    word = shown("x' is not in the table; the nearest declared one is 'success")
    said = sentences_answer.UNKNOWN_STATE.of(shown=word)
    assert sentences_answer.UNKNOWN_STATE.read(said) == {"shown": word}
    assert sentences_answer.UNKNOWN_STATE_NEAR.read(said) is None


def test_a_sentence_shows_its_template() -> None:
    assert repr(Sentence("no list at {place}")) == "Sentence('no list at {place}')"


def test_its_opening_ends_where_foreign_words_begin() -> None:
    assert Sentence("The file is empty.").opening == r"The\ file\ is\ empty\."
    assert Sentence("The job says {word}.").opening == r"The\ job\ says\ "
    assert Sentence("HTTP {code}: {why}").opening == r"HTTP\ (?:-?[0-9]{1,20}):\ "
