"""Conversations with providers: replies in, decisions out. A new file is found by itself.

A file ``conversations/<table>/<name>.yaml`` holds ``about``, ``job_id``, optionally ``params`` and ``url`` (the
address that must be asked), and ``turns``: each a reply, what it ``means`` and what we do ``then`` (``wait``, the
state it ends in, or the reason for which a person is asked), optionally with the ``progress``, ``error`` or ``kept``
that must be read from it.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from jobtrack.catalog import load_file, sample_operation, shipped_paths
from jobtrack.catalog.examples import NOW
from jobtrack.core.decide import Conclude, Decision, Stop, charge, decide
from jobtrack.core.observe import observe
from jobtrack.core.reply import Answered
from jobtrack.core.request import status_request

FOLDER = Path(__file__).parent / "conversations"
FILES = sorted(FOLDER.glob("*/*.yaml"))
TABLES = sorted(path.stem for folder in shipped_paths() for path in folder.glob("*.yaml"))


def reply_of(turn: dict) -> Answered:
    body = json.dumps(turn["json"]) if "json" in turn else turn.get("text", "")
    headers = {"Content-Type": "application/json"} if "json" in turn else {}
    return Answered(
        status=turn["http"], headers=tuple({**headers, **turn.get("headers", {})}.items()), body=body.encode()
    )


def word(decision: Decision) -> str:
    if isinstance(decision, Stop):
        return decision.question.reason.value
    return decision.state.value if isinstance(decision, Conclude) else "wait"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_reply_reads_as_the_conversation_says(path: Path):
    talk = yaml.safe_load(path.read_text(encoding="utf-8"))
    table = load_file(shipped_paths()[0] / f"{path.parent.name}.yaml")
    operation = sample_operation(table, job_id=talk["job_id"], params=talk.get("params"))
    operation = replace(operation, accepted_at=NOW)  # a 404 is then as early as it can be
    if "url" in talk:
        assert status_request(table, operation).url == talk["url"]
    turns = talk["turns"]
    seen = [observe(table, reply_of(turn), operation=operation, now=NOW) for turn in turns]
    assert [observed.kind for observed in seen] == [turn["means"] for turn in turns]
    charged = [replace(operation, spent=charge(operation.spent, observed)) for observed in seen]
    decided = [decide(table, row, observed, now=NOW, draw=0.5) for row, observed in zip(charged, seen, strict=True)]
    assert [word(decision) for decision in decided] == [turn["then"] for turn in turns]
    for turn, observed in zip(turns, seen, strict=True):
        told = {key: turn[key] for key in ("progress", "error", "kept") if key in turn}
        assert {key: getattr(observed, key) for key in told} == told


def test_every_shipped_table_has_conversations_and_no_conversation_lacks_its_table():
    assert sorted({path.parent.name for path in FILES}) == TABLES
