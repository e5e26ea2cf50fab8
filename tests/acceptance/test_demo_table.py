"""The demo's table, and its judgement of how the scenarios ended."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from example_project.board import Board, Line, text
from example_project.children import Children, Trouble, free_port, tail
from example_project.progress import Progress, judge, line
from example_project.scenarios import BY_NAME
from jobtrack.core.operation import OperationState

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def progress(name: str, **changes: Any) -> Progress:
    """A scenario that ended as it should."""
    scenario = BY_NAME[name]
    right = Progress(
        scenario=scenario,
        job_id="exp_1",
        state=scenario.state,
        requests=2,
        allowed=40,
        deadline=NOW + timedelta(seconds=60),
        reasons=(scenario.reason.value,) if scenario.reason else (),
        rows=1204 if scenario.state is OperationState.SUCCEEDED else None,
    )
    return replace(right, **changes)


def seen(*entries: tuple[float, str, int], job: str = "exp_1") -> list[dict[str, Any]]:
    """The provider's log: seconds, word, how long the caller was asked to wait."""
    return [
        {"job": job, "at": (NOW + timedelta(seconds=second)).isoformat(), "word": word, "wait_s": wait}
        for second, word, wait in entries
    ]


RIGHT = seen((1, "running", 1), (3, "paused", 0))


@pytest.mark.parametrize(
    ("end", "log", "problems"),
    [
        (progress("unknown"), RIGHT, []),
        (progress("unknown"), [*seen((2, "running", 1), job="exp_2"), *RIGHT], []),
        (progress("unknown", state=OperationState.RUNNING), RIGHT, ["it is running, not escalated"]),
        (progress("unknown", reasons=()), RIGHT, ["it asks nothing, not unknown_state"]),
        (progress("unknown", requests=1), RIGHT, ["ACME saw 2 requests, the row counts 1"]),
        (progress("unknown", allowed=1), RIGHT, ["2 requests are more than the 1 allowed"]),
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
            seen((1, "running", 3), (3, "paused", 0)),
            ["1 requests came before ACME allowed them"],
        ),
        (
            progress("unknown"),
            seen((1, "running", 1), (61, "paused", 0)),
            ["1 requests came after the deadline"],
        ),
        (progress("success"), seen((1, "running", 1), (3, "succeeded", 0)), []),
        (
            progress("success", rows=None),
            seen((1, "running", 1), (3, "succeeded", 0)),
            ["its report has no rows"],
        ),
        (progress("stuck"), seen((1, "running", 1), (3, "running", 1)), []),
    ],
)
def test_a_scenario_is_judged_by_row_and_provider_log(
    end: Progress, log: list[dict[str, Any]], problems: list[str]
) -> None:
    assert judge(end, log) == problems


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
