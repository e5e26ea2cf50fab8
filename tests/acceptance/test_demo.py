"""`make demo` as a person runs it: real processes, a real broker, real HTTP."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from example_project.children import free_port
from example_project.scenarios import SCENARIOS
from tests.acceptance.demo_runs import Demo, demonstrating

pytestmark = [pytest.mark.broker, pytest.mark.processes]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    with demonstrating(tmp_path) as run:
        yield run


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_once_ends_with_0_if_every_scenario_ended_as_its_table_says(demo: Demo) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo.start("--once", "--port", str(port))
        code, output = demo.finish(within_s=200)
    assert code == 0, output
    assert f"{len(SCENARIOS)} of {len(SCENARIOS)} scenarios ended as their table says." in output
    assert "at most 1 for one operation" in output
    assert re.search(r"^scenario +expected +seen$", output, re.MULTILINE)
    assert f"Port {port} is taken" in output
    assert "Traceback" not in output
    assert demo.marked() == []
    assert list(demo.folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_in_the_middle_leaves_nothing_behind(demo: Demo, number: signal.Signals) -> None:
    demo.start("--port", str(free_port()))
    demo.read_until(r"success +running")
    assert len(demo.marked()) >= 5
    demo.process.send_signal(number)
    code, output = demo.finish(within_s=40)
    assert code == 130, output
    assert output.splitlines()[-1] == "Stopped before the scenarios had ended."
    assert (demo.marked(), list(demo.folder.iterdir())) == ([], [])


@pytest.mark.slow
def test_a_reader_that_goes_away_leaves_nothing_behind(demo: Demo) -> None:
    """`make demo ONCE=1 | head -8`."""
    process = demo.start("--once", "--port", str(free_port()))
    for _ in range(8):
        process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert (demo.marked(), list(demo.folder.iterdir())) == ([], [])


@pytest.mark.slow
def test_a_process_that_dies_is_named_and_the_others_are_stopped(demo: Demo) -> None:
    demo.start("--port", str(free_port()))
    demo.read_until(r"success +running")
    simulator = next(pid for pid in demo.marked() if b"example_project.simulator" in _command_of(pid))
    os.kill(simulator, signal.SIGKILL)
    code, output = demo.finish(within_s=40)
    assert code == 1
    assert "The simulator was ended by signal 9 (exit code -9)." in output
    assert ("Traceback" in output, "The end of" in output) == (False, False)
    assert demo.marked() == []


def _command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_broker_that_does_not_answer_is_told_in_a_sentence(demo: Demo) -> None:
    demo.environment["JOBTRACK_DEMO_BROKER"] = f"redis://:hidden-password@127.0.0.1:{free_port()}/0"
    began = time.monotonic()
    demo.start("--once")
    code, output = demo.finish(within_s=30)
    assert (code, time.monotonic() - began < 20) == (1, True)
    assert "The broker in JOBTRACK_DEMO_BROKER does not answer: redis://:**@127.0.0.1:" in output
    assert ("Traceback" in output, "hidden-password" in output) == (False, False)
    assert demo.marked() == []
