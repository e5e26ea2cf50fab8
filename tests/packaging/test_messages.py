"""Translations: every visible text is in every catalogue, and what a translator wrote fits the source."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "scripts" / "messages"), run_name="messages")


def test_every_catalogue_is_complete_and_compiled() -> None:
    """What to do: `scripts/messages update`, translate what is empty, `scripts/messages compile`."""
    assert TOOL["check"]() == []


@pytest.mark.parametrize(
    ("source", "translated", "fault"),
    [
        ("%(used)s of %(allowed)s", "%(used)s von %(alowed)s", "other fields"),
        ("Next look {}", "Blick", "other fields"),
        ("Press <strong>Yes</strong>", "Drücke <b>Ja</b>", "other tags"),
        ("a", "", "not translated"),
        ("a ", "a", "other spaces"),
    ],
)
def test_a_translation_that_does_not_fit_is_found(source: str, translated: str, fault: str) -> None:
    from babel.messages.catalog import Message

    (found,) = TOOL["wrong"](Message(source, translated))
    assert fault in found


def test_every_call_that_marks_a_text_is_known_to_the_tool() -> None:
    """A text behind an alias that the tool does not know would silently stay English."""
    import ast

    aliases = set()
    for path, text in TOOL["sources"]():
        if path.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation":
                aliases |= {each.asname or each.name for each in node.names if "gettext" in each.name}
    assert aliases <= set(TOOL["KEYWORDS"])


def test_every_stored_sentence_is_a_message() -> None:
    """It is told in the reader's language; one that the tool does not see would stay English."""
    from jobtrack_django.sentences import SENTENCES

    messages = {message.id for message in TOOL["template"]()}
    assert {sentence.template for sentence in SENTENCES} <= messages


def test_no_text_is_marked_inside_an_f_string() -> None:
    """Before Python 3.12 an f-string is one token: the tool would not see the text there, and it stayed English."""
    import ast

    hidden = [
        f"{path.name}:{call.lineno}"
        for path, text in TOOL["sources"]()
        if path.suffix == ".py"
        for joined in ast.walk(ast.parse(text))
        if isinstance(joined, ast.JoinedStr)
        for call in ast.walk(joined)
        if isinstance(call, ast.Call)
        and getattr(call.func, "id", "") in TOOL["KEYWORDS"]
        and any(isinstance(each, ast.Constant) for each in call.args)
    ]
    assert hidden == []
