"""The sweeper's pace and its place in a worker."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from jobtrack.flow.sweep import Swept
from jobtrack.worker import sweeper as module
from jobtrack.worker.sweeper import Sweeper, SweeperStep, WorkerOptions, backoff, next_pause, prepare


def swept(found: int = 0, deliveries: int = 0, *, more: bool = False) -> Swept:
    return Swept(found=found, published=found, polled=0, deliveries=deliveries, more=more)


@pytest.mark.parametrize(
    ("previous_s", "round_", "interval_s", "expected_s"),
    [
        (1.0, swept(200, more=True), 1.0, 0.0),  # a full batch: at once again
        (1.0, swept(3), 1.0, 0.25),
        (1.0, swept(deliveries=1), 1.0, 0.25),
        (0.0, swept(), 1.0, 0.25),
        (0.25, swept(), 1.0, 0.5),
        (0.5, swept(), 1.0, 1.0),
        (1.0, swept(), 1.0, 1.0),
        (1.0, swept(3), 0.1, 0.1),  # an interval below the busy pause counts
    ],
)
def test_the_pause_follows_the_work(previous_s, round_, interval_s, expected_s) -> None:
    assert next_pause(previous_s, round_, interval_s=interval_s) == expected_s


@pytest.mark.parametrize(("failures", "expected_s"), [(1, 2.0), (2, 4.0), (4, 16.0), (5, 30.0), (5000, 30.0)])
def test_failing_rounds_come_ever_later(failures, expected_s) -> None:
    assert backoff(failures, interval_s=1.0) == expected_s


def test_a_failed_round_is_not_the_last_one_and_connections_go_back_each_time(caplog) -> None:
    """INV-06: the database may be away for a moment."""
    answers: list[Any] = [RuntimeError("password=s3cret"), swept(1), RuntimeError(), swept()]
    rounds: list[str] = []
    ended = threading.Event()

    def sweep() -> Swept:
        if not answers:
            ended.set()
            return swept()
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sweeper = Sweeper(sweep, interval_s=0.01, after_round=lambda: rounds.append(threading.current_thread().name))
    sweeper.start()
    assert ended.wait(5)
    sweeper.stop()

    assert len(rounds) >= 5
    assert set(rounds) == {"jobtrack-sweeper"}
    assert "s3cret" not in caplog.text
    assert caplog.messages[0] == "A sweep failed (RuntimeError); the next one follows in 0 s."


def test_it_stops_at_once_although_its_pause_is_long() -> None:
    first = threading.Event()
    sweeper = Sweeper(lambda: first.set() or swept(), interval_s=3600, after_round=lambda: None)
    sweeper.start()
    assert first.wait(5)

    sweeper.stop()

    assert sweeper._thread is not None
    assert not sweeper._thread.is_alive()


def test_pauses_differ_between_sweepers() -> None:
    waited: list[float] = []
    for draw in (0.0, 0.5, 0.999):
        sweeper = Sweeper(swept, interval_s=1.0, after_round=lambda: None, draw=lambda draw=draw: draw)

        def wait(pause_s: float, sweeper: Sweeper = sweeper) -> None:
            waited.append(round(pause_s, 2))
            sweeper._stopped.set()

        object.__setattr__(sweeper._stopped, "wait", wait)
        sweeper.run()

    assert waited == [0.8, 1.0, 1.2]


@pytest.fixture
def installed(monkeypatch) -> module._Installed:
    monkeypatch.setattr(module, "_installed", module._Installed())
    return module._installed


def starting_worker(app: Celery) -> Any:
    return SimpleNamespace(app=app)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, {"celery", "jobtrack"}),  # no -Q: ours besides the default one
        (["celery"], {"celery"}),  # -Q counts
        (["jobtrack"], {"jobtrack"}),
    ],
)
def test_a_worker_reads_our_queue_unless_it_was_told_which_to_read(installed, asked, expected) -> None:
    app = Celery("test", broker="memory://", set_as_current=False)

    prepare(instance=starting_worker(app))
    app.amqp.queues.select(asked)

    assert set(app.amqp.queues.consume_from) == expected


@pytest.mark.parametrize(("sweep", "steps"), [(True, {SweeperStep}), (False, set())])
def test_the_sweeper_is_a_step_of_the_worker_unless_switched_off(installed, sweep, steps) -> None:
    app = Celery("test", broker="memory://", set_as_current=False)
    installed.read = lambda: WorkerOptions(sweep=sweep)

    prepare(instance=starting_worker(app))

    assert app.steps["worker"] == steps
    assert {"jobtrack.wake", "jobtrack.poll"} <= set(app.tasks)


def test_a_signal_without_a_worker_is_ignored(installed) -> None:
    prepare()


def test_the_step_starts_and_ends_the_thread(installed, monkeypatch) -> None:
    began = threading.Event()
    closed: list[bool] = []
    monkeypatch.setattr(module, "sweep_once", lambda: began.set() or swept())
    installed.read, installed.after_round = lambda: WorkerOptions(interval_s=0.01), lambda: closed.append(True)
    step = SweeperStep(None)
    step.stop(None)  # a worker that fails to start stops steps that never began

    step.start(None)
    assert began.wait(5)
    step.terminate(None)

    assert closed
    assert not any(thread.name == "jobtrack-sweeper" for thread in threading.enumerate())
