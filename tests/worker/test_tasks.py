"""The tasks: what they take from a message, and what they ask of the flows."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery

from jobtrack.records import Due
from jobtrack.worker import tasks


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), []),
        (("a",), ["a"]),
        (("a", "b", "a"), ["a", "b"]),
        ((["a", "b"], "c"), ["a", "b", "c"]),
        (("a", 3), ["a"]),  # an older release also sent the fence
        ((None, 7, {"a": 1}, b"x", ""), []),
        (("x" * (tasks.LONGEST_ID + 1), "x" * tasks.LONGEST_ID), ["x" * tasks.LONGEST_ID]),
    ],
)
def test_ids_are_read_whatever_a_message_holds(args, expected) -> None:
    """B059: arguments of an older or newer release never fail."""
    assert tasks.opaque_ids(args) == expected


def test_a_forged_message_names_a_bounded_number_of_rows() -> None:
    assert len(tasks.opaque_ids([f"op-{n}" for n in range(10_000)])) == tasks.MOST_IDS


class World:
    """Stands in for the runtime and the flows, and remembers what was asked."""

    def __init__(self, *dues: Due) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.dues = list(dues)
        self.now = 100.0
        self.store = SimpleNamespace(due=self.due)
        self.scheduler = SimpleNamespace(deliver=lambda ids: self.asked.append(("announce", list(ids))))
        self.timing = SimpleNamespace(grace=timedelta(seconds=30))
        self.alive: list[str] = []
        self.chores = SimpleNamespace(beat=self.alive.append, run=lambda: self.asked.append(("chores", 1)))

    def elapsed(self) -> float:
        return self.now

    def due(self, *, limit: int, grace: timedelta) -> Due:
        self.asked.append(("due", limit))
        return self.dues.pop(0) if self.dues else Due()


@pytest.fixture
def world(monkeypatch) -> World:
    world = World()
    monkeypatch.setattr(tasks, "get_runtime", lambda: world)
    monkeypatch.setattr(tasks, "drain", tasks.Drain(batch=50))
    monkeypatch.setattr(tasks.advance_flow, "advance", lambda _, ids: world.asked.append(("advance", list(ids))))
    monkeypatch.setattr(tasks.deliver_flow, "deliver", lambda _, ids: world.asked.append(("deliver", list(ids))))
    monkeypatch.setattr(tasks.sweep_flow, "sweep", lambda _, limit: world.asked.append(("sweep", limit)))
    return world


def test_a_wake_up_looks_at_its_rows_and_then_at_other_due_ones(world) -> None:
    world.dues = [Due(operations=("b", "c"), deliveries=("1",), more=True), Due(operations=("d",))]

    tasks.wake("a")

    assert world.asked == [
        ("advance", ["a"]),
        ("due", 50),
        ("advance", ["b", "c"]),
        ("announce", ["1"]),
        ("due", 50),
        ("advance", ["d"]),
    ]


def test_other_rows_are_sought_once_a_second_not_with_each_message(world) -> None:
    """Work per poll stays flat: a lone wake-up costs one look, not a search of the table."""
    for _ in range(5):
        tasks.wake("a")
    world.now += 1.0
    tasks.wake("a")

    assert [what for what, _ in world.asked].count("due") == 2


def test_a_message_without_ids_means_what_is_due(world) -> None:
    tasks.wake("a")
    world.asked.clear()
    world.dues = [Due(operations=("b",))]

    tasks.wake(reason="tick")

    assert world.asked == [("due", 50), ("advance", ["b"])]


def test_draining_ends_in_time_although_there_is_more(world) -> None:
    world.dues = [Due(operations=("b",), more=True)] * 100
    before = world.due

    def slow(**options: Any) -> Due:
        world.now += 2.0
        return before(**options)

    world.store.due = slow

    assert tasks.Drain(budget_s=5.0).run(world, asked=True) == 3


def test_one_thread_drains_at_a_time(world) -> None:
    drain = tasks.Drain()
    with drain._lock:
        assert drain.run(world, asked=True) == 0
    assert world.asked == []


def test_deliveries_and_sweeps_are_passed_on(world) -> None:
    tasks.deliver("1", "2", attempt=3)
    tasks.deliver()
    tasks.sweep("anything", at="all")

    assert world.asked == [("deliver", ["1", "2"]), ("sweep", tasks.SWEEP_BATCH)]


@pytest.mark.parametrize(
    "name", ["jobtrack.wake", "jobtrack.poll", "jobtrack.deliver", "jobtrack.sweep", "jobtrack.report_conflict"]
)
def test_the_tasks_are_late_acknowledged_silent_and_never_retried(name) -> None:
    app = Celery("test", set_as_current=False)
    app.finalize()
    task = app.tasks[name]

    assert (task.acks_late, task.ignore_result, task.max_retries, task.serializer, task.send_events) == (
        True,
        True,
        0,
        "json",
        False,
    )


def test_release_n_and_n_plus_one_read_each_other_s_messages(world) -> None:
    """B059, through a queue: two releases' messages for one operation, none fails."""
    app = Celery("test", set_as_current=False)
    app.conf.task_always_eager = True
    app.conf.task_eager_propagates = True
    app.finalize()

    app.tasks["jobtrack.poll"].apply_async(args=("op", 3))
    app.tasks["jobtrack.poll"].apply_async(args=("op",), kwargs={"reason": "sweep"})
    app.tasks["jobtrack.wake"].apply_async(args=("op",), kwargs={"reason": "sweep"})

    assert [ids for what, ids in world.asked if what == "advance"] == [["op"], ["op"], ["op"]]


def test_messages_under_the_name_of_release_0_1_are_taken_as_wake_ups(world) -> None:
    """Until 0.3: web processes not yet renewed publish them, and old ones may stand in the queue."""
    world.dues = [Due(operations=("b",))]

    tasks.poll("a", 7)
    tasks.poll()

    assert world.asked == [("advance", ["a"]), ("due", 50), ("advance", ["b"]), ("due", 50)]


def test_a_conflict_is_reported_for_one_operation_by_its_id_alone(world, monkeypatch) -> None:
    """R-ID-4, INV-24."""
    monkeypatch.setattr(tasks.submit_flow, "report_conflict", lambda runtime, one: world.asked.append((runtime, one)))

    tasks.report_conflict("op-1", {"payload": 1}, detail="x")
    tasks.report_conflict()

    assert world.asked == [(world, "op-1")]


def test_a_worker_does_the_chores_when_it_is_asked_and_says_that_it_is_alive(world) -> None:
    tasks.attend("an argument of a later release", more=1)
    tasks.wake("op-1")
    assert world.asked[0] == ("chores", 1)
    assert world.alive == ["worker", "worker"]
