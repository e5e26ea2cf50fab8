"""What staff read is said by a ``Sentence``, so that it can be told in their language (``jobtrack_django.sentences``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("jobtrack/core", "jobtrack/flow", "jobtrack/transports", "jobtrack_django/notify")

ELSEWHERE = {
    "jobtrack/core/audit.py": "faults of an export are told by commands",
    "jobtrack/core/compose.py": "mistakes of a caller are raised to its code",
    "jobtrack/core/webhook.py": "why a webhook is refused goes to the log",
    "jobtrack/flow/resolve.py": "the admin tells these errors by their class",
    "jobtrack/flow/submit.py": "mistakes of a caller are raised to its code",
    "jobtrack/flow/track.py": "mistakes of a caller are raised to its code",
}
"""Modules with texts that no page shows, and why not."""

NOT_SHOWN = frozenset(
    {
        *("Sentence", "_", "gettext", "lazy", "ngettext"),  # told in the reader's language
        *("debug", "info", "warning", "error", "exception"),  # the log is in English
        *(
            "ValueError",
            "TypeError",
            "RuntimeError",
            "ConfigurationError",
            "RemoteProtocolError",
        ),  # mistakes of whoever runs it
    }
)
"""Calls whose texts may be anything."""

THREE_WORDS = re.compile(r"[a-z}],? [a-z{][\w{}'-]*,? [a-z{]")


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def written(node: ast.AST) -> str:
    """A literal as a reader sees it, with {} for what is filled in; "" for anything else."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def shown(node: ast.AST) -> Iterator[ast.AST]:
    """Every part of a program but docstrings and calls whose texts may be anything."""
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if docstring or (isinstance(node, ast.Call) and name_of(node) in NOT_SHOWN):
        return
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from shown(child)


def sentences(source: str) -> list[str]:
    """Texts of three words and more that no ``Sentence`` says."""
    return [text for node in shown(ast.parse(source)) if THREE_WORDS.search(text := written(node))]


@pytest.mark.parametrize(
    "path", [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))], ids=lambda path: path.name
)
def test_what_staff_read_is_said_by_a_sentence(path: Path) -> None:
    """Make it a ``Sentence`` in ``core/sentences_*.py`` and say it with ``of``; a text that nobody sees: ELSEWHERE."""
    if str(path.relative_to(ROOT)) not in ELSEWHERE:
        assert sentences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("module", ELSEWHERE)
def test_no_module_is_left_out_without_need(module: str) -> None:
    assert sentences((ROOT / module).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('stop(detail=f"the state {word} is not known")', ["the state {} is not known"]),
        ('detail = "no list at the root"', ["no list at the root"]),
        ('detail = f"{count} requests failed"', ["{} requests failed"]),
        ('f(f"{a}" + "the body is empty")', ["the body is empty"]),
        ('X = Sentence("the body is empty")', []),
        ('logger.info("operation %s has ended", name)', []),
        ('raise ValueError(f"the table {name} submits nothing")', []),
        ('def f():\n    """What the table says."""', []),
        ('url = f"{scheme}://{host}{port}"', []),
        ('kind = "not_found"', []),
    ],
)
def test_the_rule_itself(source: str, found: list[str]) -> None:
    assert sentences(source) == found
