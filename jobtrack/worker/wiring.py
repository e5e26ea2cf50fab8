"""One runtime per process, and what the rest of the project may know about Celery."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from celery.app import app_or_default

from jobtrack.errors import ConfigurationError
from jobtrack.ports import Runtime
from jobtrack.worker import broker


class _Holder:
    """The factory and the runtime it made in this process."""

    def __init__(self) -> None:
        self.factory: Callable[[], Runtime] | None = None
        self.runtime: Runtime | None = None
        self.lock = threading.Lock()

    def after_fork(self) -> None:
        # A child must not share sockets with its parent, and the lock may have been held at the fork.
        self.runtime = None
        self.lock = threading.Lock()


_holder = _Holder()
os.register_at_fork(after_in_child=_holder.after_fork)


def set_runtime_factory(factory: Callable[[], Runtime]) -> None:
    """Say how to build a runtime. It is called on first use, again after a fork, and again after this call."""
    with _holder.lock:
        _holder.factory, _holder.runtime = factory, None


def get_runtime() -> Runtime:
    """The runtime of this process.

    Raises:
        ConfigurationError: No factory is set; the Django app sets one when it is ready.
    """
    with _holder.lock:
        if _holder.runtime is None:
            if _holder.factory is None:
                raise ConfigurationError("jobtrack has no runtime: add 'jobtrack_django' to INSTALLED_APPS.")
            _holder.runtime = _holder.factory()
        return _holder.runtime


@contextmanager
def use_runtime(runtime: Runtime) -> Iterator[None]:
    """Let this process use ``runtime`` for a while; for tests."""
    with _holder.lock:
        before, _holder.runtime = _holder.runtime, runtime
    try:
        yield
    finally:
        with _holder.lock:
            _holder.runtime = before


def broker_facts(app: Celery | None = None) -> dict[str, object]:
    """What system checks need to know. Nothing is connected.

    Returns:
        ``eager`` (bool), ``transport`` (str, the driver), ``visibility_timeout`` (seconds, or None if the broker
        has none), ``accept_content`` (list), ``task_serializer`` (str), ``eta_task_limit`` (int, or None if unset),
        ``quorum`` (bool, RabbitMQ's native delay is used), ``chosen`` (bool, False: this process has loaded no Celery
        app, so its messages go to whatever broker is Celery's default).
    """
    app = app_or_default(app)
    conf = app.conf
    return {
        "eager": bool(conf.task_always_eager),
        "transport": broker.kind(app),
        "visibility_timeout": broker.visibility_s(app),
        "accept_content": list(conf.accept_content),
        "task_serializer": str(conf.task_serializer),
        "eta_task_limit": conf.get("worker_eta_task_limit"),
        "quorum": broker.quorum(app),
        "chosen": not _made_up(app),
    }


def _made_up(app: Celery) -> bool:
    """Whether this is the app that Celery makes up when a process has loaded none."""
    return app.main == "default" and not getattr(app, "set_as_current", True)


def run_task_inline(name: str, operation_id: str) -> None:
    """Run the Celery task ``name`` in this process with the operation's id; its errors come through.

    Raises:
        ConfigurationError: No task with this name is registered here.
    """
    task = _task(name)
    if task is None:
        raise ConfigurationError(f"{name!r} names neither a callable nor a Celery task of this process.", name=name)
    task(operation_id)


def knows_task(name: str) -> bool:
    """Whether a Celery task with this name is registered in this process."""
    return _task(name) is not None


def _task(name: str) -> Any:
    app = app_or_default()
    if name not in app.tasks:
        app.loader.import_default_modules()  # a process that is no worker has not looked for tasks yet
    return app.tasks.get(name)
