"""People are told by real workers and sweepers, with a broker and without one (R-ESC-6)."""

from __future__ import annotations

import sys

import pytest

from tests.chaos.rig import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.processes]


def lines(path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def told_once(path, asked, *, within_s: float) -> None:
    """Every question in one message, and few messages."""
    wait_for(
        lambda: len([question for line in lines(path) for question in line[1:]]) >= len(asked),
        within_s=within_s,
        what="everything is told",
        seen=lambda: lines(path),
    )
    seen = lines(path)
    assert sorted(question for line in seen for question in line[1:]) == sorted(asked)
    assert len({line[0] for line in seen}) == len(seen) <= 3


def test_workers_tell_of_questions_and_say_that_they_live(rig, tmp_path) -> None:
    told = tmp_path / "told.txt"
    for _ in range(2):
        rig.ready_worker("-c", "4", CHAOS_NOTICES=str(told))

    asked = rig.drive("ask", 15, CHAOS_NOTICES=str(told))
    told_once(told, asked, within_s=30)

    alive = rig.drive("alive")
    assert alive["sweeper"] == 2
    assert 1 <= alive["worker"] <= 2


def test_without_a_broker_the_sweeper_tells(rig, valkey, tmp_path) -> None:
    told = tmp_path / "told.txt"
    valkey.process.kill()

    asked = rig.drive("ask", 5, CHAOS_NOTICES=str(told))
    rig.start("sweep", [sys.executable, "-m", "django", "jobtrack_sweep", "--loop"], CHAOS_NOTICES=str(told))

    told_once(told, asked, within_s=30)
