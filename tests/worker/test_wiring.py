"""One runtime per process, and facts for the checks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from celery import Celery

from jobtrack.errors import ConfigurationError
from jobtrack.worker import wiring


@pytest.fixture(autouse=True)
def fresh(monkeypatch) -> None:
    monkeypatch.setattr(wiring, "_holder", wiring._Holder())


def test_the_runtime_is_built_on_first_use_and_once() -> None:
    made: list[Any] = []
    wiring.set_runtime_factory(lambda: made.append(object()) or made[-1])
    assert made == []

    assert wiring.get_runtime() is wiring.get_runtime() is made[0]
    assert len(made) == 1


def test_a_new_factory_replaces_the_runtime() -> None:
    wiring.set_runtime_factory(lambda: "old")
    assert wiring.get_runtime() == "old"

    wiring.set_runtime_factory(lambda: "new")

    assert wiring.get_runtime() == "new"


def test_a_test_may_lend_the_process_another_runtime() -> None:
    wiring.set_runtime_factory(lambda: "own")

    with wiring.use_runtime("lent"):  # type: ignore[arg-type]
        assert wiring.get_runtime() == "lent"

    assert wiring.get_runtime() == "own"


def test_without_a_factory_the_message_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="INSTALLED_APPS"):
        wiring.get_runtime()


def test_a_child_builds_its_own_runtime_even_if_the_lock_was_held_at_the_fork() -> None:
    """Sockets and locks of the parent are not the child's."""
    wiring.set_runtime_factory(os.getpid)
    os.register_at_fork(after_in_child=wiring._holder.after_fork)
    assert wiring.get_runtime() == os.getpid()
    with wiring._holder.lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if wiring.get_runtime() == os.getpid() else 1)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(
    ("url", "conf", "expected"),
    [
        (
            "redis://127.0.0.1:1/0",
            {},
            {
                "eager": False,
                "transport": "redis",
                "visibility_timeout": 3600.0,
                "quorum": False,
                "eta_task_limit": None,
            },
        ),
        (
            "amqp://127.0.0.1:1//",
            {"task_always_eager": True, "worker_eta_task_limit": 20},
            {"eager": True, "transport": "amqp", "visibility_timeout": None, "quorum": False, "eta_task_limit": 20},
        ),
        (
            "redis://127.0.0.1:1/0",
            {"broker_transport_options": {"visibility_timeout": 40}, "accept_content": ["json", "pickle"]},
            {"visibility_timeout": 40.0, "accept_content": ["json", "pickle"], "task_serializer": "json"},
        ),
    ],
)
def test_broker_facts(url, conf, expected) -> None:
    app = Celery("test", broker=url, set_as_current=False)
    app.conf.update(conf)

    facts = wiring.broker_facts(app)

    assert {name: facts[name] for name in expected} == expected


def test_a_task_named_as_a_follow_up_runs_in_this_process(monkeypatch) -> None:
    app = Celery("test", set_as_current=False)
    seen: list[str] = []

    @app.task(name="shop.ready", shared=False)
    def ready(operation_id: str) -> None:
        seen.append(operation_id)

    monkeypatch.setattr(wiring, "app_or_default", lambda _app=None: app)

    wiring.run_task_inline("shop.ready", "op-1")

    assert seen == ["op-1"]


def test_its_error_comes_through(monkeypatch) -> None:
    app = Celery("test", set_as_current=False)

    @app.task(name="shop.broken", bind=True, shared=False)
    def broken(task: Any, operation_id: str) -> None:
        task.retry(exc=ValueError(operation_id), countdown=1)

    monkeypatch.setattr(wiring, "app_or_default", lambda _app=None: app)

    with pytest.raises(ValueError, match="op-1"):
        wiring.run_task_inline("shop.broken", "op-1")


@pytest.mark.parametrize("late", [True, False])
def test_a_process_that_is_no_worker_looks_for_the_task_first(monkeypatch, late) -> None:
    app = Celery("test", set_as_current=False)
    seen: list[str] = []

    def remember(operation_id: str) -> None:
        seen.append(operation_id)

    def discover() -> None:
        if late:
            app.task(name="shop.late", shared=False)(remember)

    monkeypatch.setattr(app.loader, "import_default_modules", discover)
    monkeypatch.setattr(wiring, "app_or_default", lambda _app=None: app)

    if late:
        wiring.run_task_inline("shop.late", "op-1")
    else:
        with pytest.raises(ConfigurationError, match=r"shop\.late"):
            wiring.run_task_inline("shop.late", "op-1")

    assert seen == (["op-1"] if late else [])


def test_facts_tell_a_process_that_has_loaded_no_celery_app() -> None:
    code = """
from celery import Celery
from jobtrack.worker.wiring import broker_facts
before = broker_facts()["chosen"]
app = Celery("mysite", broker="memory://")
print(before, broker_facts()["chosen"])
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]
