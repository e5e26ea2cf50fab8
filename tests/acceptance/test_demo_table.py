"""The demo's table, and its judgement of how the scenarios ended."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from example_project.board import Board, Line, text, verdicts
from example_project.children import Children, Trouble, free_port, tail
from example_project.progress import Progress, expected, found, judge, line
from example_project.scenarios import BY_NAME, SCENARIOS
from jobtrack.core.operation import OperationState

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def progress(name: str, **changes: Any) -> Progress:
    """A scenario that ended as it should."""
    scenario = BY_NAME[name]
    right = Progress(
        scenario=scenario,
        operation_id="op-1",
        job_id="exp_1" if scenario.word else "",
        state=scenario.state,
        requests=2 if scenario.word else 0,
        allowed=40,
        deadline=NOW + timedelta(seconds=60),
        submissions=scenario.posts[0],
        reads=1 if scenario.state is OperationState.SUCCEEDED else 0,
        reasons=(scenario.reason.value,) if scenario.reason else (),
        rows=1204 if scenario.state is OperationState.SUCCEEDED else None,
    )
    return replace(right, **changes)


def entry(second: float, kind: str, word: str, **more: Any) -> dict[str, Any]:
    at = (NOW + timedelta(seconds=second)).isoformat()
    plain = {"job": "exp_1", "made": "", "request_id": "op-1:1", "key": "op-1", "http": 200, "wait_s": 0}
    return {**plain, "at": at, "kind": kind, "word": word, **more}


def seen(*entries: tuple[float, str, int], job: str = "exp_1") -> list[dict[str, Any]]:
    """Status requests in the provider's log: seconds, word, how long the caller was asked to wait."""
    return [entry(second, "status", word, wait_s=wait, job=job) for second, word, wait in entries]


POST = entry(0, "submit", "accepted", made="exp_1")
REPEAT = entry(1, "submit", "accepted")
RIGHT = [POST, *seen((1, "running", 1), (3, "paused", 0))]
FETCHED = [*seen((4, "succeeded", 0)), entry(5, "file", "file", request_id="")]
WORKED = [POST, *seen((1, "running", 1), (3, "succeeded", 0)), *FETCHED]
NOTICED = [
    POST,
    *seen((1, "running", 0)),
    *(entry(1.5 + n / 10, "notice", "notice", request_id="", http=204) for n in range(2)),
]
CANCELLED = [POST, *seen((1, "running", 1)), entry(2, "cancel", "cancelling"), *seen((3, "canceled", 0))]


@pytest.mark.parametrize(
    ("end", "log", "problems"),
    [
        (progress("unknown"), RIGHT, []),
        (progress("unknown"), [*seen((2, "running", 1), job="exp_2"), *RIGHT], []),
        (progress("unknown", state=OperationState.RUNNING), RIGHT, ["it is running, not escalated"]),
        (progress("unknown", reasons=()), RIGHT, ["it asks nothing, not unknown_state"]),
        (progress("unknown", allowed=1), RIGHT, ["2 requests are more than the 1 allowed"]),
        (progress("unknown", requests=3), RIGHT, ["ACME saw 2 looks, the row counts 3"]),
        (
            progress("unknown", requests=3),
            [*RIGHT, *seen((9, "paused", 0))],
            ["ACME's answer 'paused' did not decide"],
        ),
        (
            progress("unknown", requests=3),
            [*RIGHT, *seen((9, "running", 0))],
            ["ACME's answer 'paused' did not decide"],
        ),
        (
            progress("unknown"),
            [*RIGHT, *seen((9, "running", 0))],
            ["ACME saw 1 reads for its result, the record counts 0"],
        ),
        (
            progress("unknown"),
            [POST, *seen((1, "running", 3), (3, "paused", 0))],
            ["1 requests came before ACME allowed them"],
        ),
        (
            progress("unknown"),
            [POST, *seen((1, "running", 1), (61, "paused", 0))],
            ["1 requests came after the deadline"],
        ),
        (progress("stuck"), [POST, *seen((1, "running", 1), (3, "running", 1))], []),
        # results
        (progress("success"), WORKED, []),
        (progress("success", rows=None), WORKED, ["its report has no rows"]),
        (
            progress("success"),
            WORKED[:-1],
            ["its file was asked for with these answers: nothing, not file"],
        ),
        (
            progress("dead-link"),
            WORKED,
            ["its file was asked for with these answers: file, not dead-link, file"],
        ),
        # submissions
        (progress("lost-keyed"), [POST, REPEAT, *WORKED[1:]], []),
        (
            progress("lost-keyed"),
            [POST, {**REPEAT, "made": "exp_2"}, *WORKED[1:]],
            ["ACME made 2 exports, not 1"],
        ),
        (
            progress("lost-keyed"),
            [POST, {**REPEAT, "key": "another"}, *WORKED[1:]],
            ["the submissions had 2 idempotency keys"],
        ),
        (
            progress("lost-keyed"),
            WORKED,
            ["ACME saw 1 submissions, not 2", "ACME saw 1 submissions, the row counts 2"],
        ),
        (progress("slow"), WORKED, []),
        (progress("slow", submissions=2), [POST, REPEAT, *WORKED[1:]], []),
        (progress("lost-bare"), [POST], []),
        (
            progress("lost-bare", submissions=2),
            [POST, REPEAT],
            ["ACME saw 2 submissions, not 1"],
        ),
        (progress("reset-bare"), [POST], ["ACME made 1 exports, not 0"]),
        (progress("success", lookups=1), WORKED, ["ACME saw 0 look-ups, the row counts 1"]),
        (progress("twins", operations=2), WORKED, ["the report has 2 operations"]),
        # webhooks and cancelling
        (progress("webhook"), [*NOTICED, *seen((2, "succeeded", 0)), *FETCHED], []),
        (
            progress("webhook"),
            [*NOTICED, *seen((39, "succeeded", 0)), *FETCHED],
            ["its webhooks did not bring the look forward"],
        ),
        (
            progress("webhook", requests=3),
            [*NOTICED, *seen((2, "running", 0), (3, "succeeded", 0)), *FETCHED],
            ["2 looks came after its webhooks, not 1"],
        ),
        (progress("webhook"), WORKED, ["its webhooks were answered []"]),
        (progress("cancel"), CANCELLED, []),
        (
            progress("cancel"),
            [POST, *seen((1, "running", 1), (3, "canceled", 0))],
            ["ACME was asked 0 times to cancel, not 1"],
        ),
    ],
)
def test_a_scenario_is_judged_by_row_and_provider_log(
    end: Progress, log: list[dict[str, Any]], problems: list[str]
) -> None:
    assert judge(end, log) == problems


def test_the_table_at_the_end_says_what_was_expected_and_what_was_seen() -> None:
    end, log = progress("lost-bare", submissions=2), [POST, {**REPEAT, "made": "exp_2"}]
    rows = verdicts([("lost-bare", expected(end.scenario), found(end, log))])
    assert [re.split(r" {2,}", row) for row in rows] == [
        ["scenario", "expected", "seen"],
        [
            "lost-bare",
            "1 POST, 1 export, escalated, asks submission_unknown",
            "2 POST, 2 export, escalated, asks submission_unknown",
        ],
    ]


def test_every_scenario_expects_one_export_at_most() -> None:
    assert {scenario.exports for scenario in SCENARIOS} == {0, 1}


@pytest.mark.parametrize(
    ("shown", "settled"),
    [
        (progress("success"), True),
        (progress("success", rows=None), False),
        (progress("failure"), True),
        (progress("unknown"), True),
        (progress("unknown", state=OperationState.RUNNING), False),
    ],
)
def test_a_success_is_settled_once_its_follow_up_has_run(shown: Progress, settled: bool) -> None:
    assert shown.settled is settled


@pytest.mark.parametrize(
    ("shown", "cells"),
    [
        (
            progress(
                "stuck",
                state=OperationState.RUNNING,
                reasons=(),
                wake_at=NOW + timedelta(seconds=4),
                delay_source="provider_poll_hint",
                said="running",
            ),
            Line("stuck", "running", "2/40", "in 4 s", "the provider's hint, said running"),
        ),
        (
            progress("stuck", state=OperationState.RUNNING, reasons=(), wake_at=NOW, delay_source="first_delay"),
            Line("stuck", "running", "2/40", "now", "first look"),
        ),
        (
            progress("success", rows=None),
            Line("success", "succeeded", "2/40", "-", "its result is being fetched"),
        ),
        (
            progress("slow", state=OperationState.UNCONFIRMED, rows=None, doubt="no answer", wake_at=NOW),
            Line("slow", "unconfirmed", "2/40", "now", "perhaps accepted: no answer"),
        ),
        (progress("success"), Line("success", "succeeded", "2/40", "-", "stored, 1204 rows")),
        (
            progress("unknown", detail="The state is not declared."),
            Line("unknown", "escalated", "2/40", "-", "unknown_state: The state is not declared."),
        ),
    ],
)
def test_a_line_says_state_polls_next_look_and_why(shown: Progress, cells: Line) -> None:
    assert line(shown, NOW) == cells


LINE = Line("success", "running", "1/40", "in 2 s", "first look")


def test_without_a_terminal_only_news_is_printed() -> None:
    board = Board(out=io.StringIO())
    board.show([LINE])
    board.show([LINE._replace(next_look="in 1 s")])
    board.show([LINE._replace(polls="2/40")])
    rows = [row.split()[1:4] for row in board.out.getvalue().splitlines()]
    assert rows == [["state", "polls", "next"], ["success", "running", "1/40"], ["success", "running", "2/40"]]


def test_on_a_terminal_the_table_is_redrawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    board = Board(out=io.StringIO(), live=True)
    lines = [LINE, LINE._replace(scenario="failure")]
    board.show(lines)
    board.show(lines)
    assert board.out.getvalue().count("\033[3F") == 1
    assert board.out.getvalue().count("\n") == 6


def test_a_row_fits_the_terminal() -> None:
    assert len(text(LINE._replace(why="x" * 500), 80)) == 79


def test_a_port_that_is_taken_is_replaced() -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) not in (0, port)
    assert free_port(port) == port


@pytest.mark.parametrize(
    ("code", "message", "explained"),
    [
        ("raise SystemExit('no room')", "The worker has ended unexpectedly (exit code 1).", True),
        ("import os; os.kill(os.getpid(), 9)", "The worker was ended by signal 9 (exit code -9).", False),
    ],
)
def test_only_a_process_that_ended_by_itself_is_explained_by_its_log(
    tmp_path: Path, code: str, message: str, explained: bool
) -> None:
    with Children(folder=tmp_path, stop=Event()) as children:
        child = children.start("worker", [sys.executable, "-c", code], {})
        child.process.wait(10)
        with pytest.raises(Trouble) as told:
            children.wait(0)
    assert (str(told.value), told.value.log is not None) == (message, explained)


def test_the_tail_of_a_log_that_is_not_there_is_empty(tmp_path: Any) -> None:
    (tmp_path / "log").write_text("".join(f"{number}\n" for number in range(40)))
    assert (tail(tmp_path / "none"), tail(tmp_path / "log", 2)) == ("", "38\n39")
