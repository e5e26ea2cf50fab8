"""A worker process that ends, or loses its database's answer, at a chosen step; its provider remembers in a file.

A step is a commit, a call of the outside world, or a handler's return. They are counted in one process, so that a run
can be repeated with an end after the first, the second ... step.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import json
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from jobtrack.core.reply import Answered, NoAnswer, Request
from jobtrack.core.table import ProviderTable
from jobtrack.flow.advance import advance
from jobtrack.flow.deliver import deliver
from jobtrack.ports import NoChores, Runtime, Sink
from jobtrack.testing import VirtualClock, run_due
from jobtrack.testing.clock import START
from jobtrack.testing.provider import Cut, stream
from jobtrack.worker import wiring
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.runtime import build_runtime

WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass
class Steps:
    """Counts steps in a file and acts after number ``end`` (1-based; 0: never)."""

    trace: Path
    end: int = 0
    lose: bool = False  # do not end: lose the database's answer to the commit, if the step is one
    count: int = 0
    watching: bool = False
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(START))

    def step(self, name: str) -> None:
        if not self.watching:
            return
        self.count += 1
        _append(self.trace, {"step": name, "clock": self.clock().isoformat()})
        if self.count != self.end:
            return
        if not self.lose:
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "commit":
            raise OperationalError("the connection was lost while COMMIT was under way")

    def watch(self) -> None:
        """Count from now on, also what Django commits in this process; never undone, since the process ends."""
        self.watching = True
        committed = BaseDatabaseWrapper._commit

        def commit(connection: Any) -> None:
            committed(connection)
            self.step("commit")

        BaseDatabaseWrapper._commit = commit  # type: ignore[method-assign]

        def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            done = run(sql, params, many, context)
            if sql.lstrip().upper().startswith(WRITES) and not context["connection"].in_atomic_block:
                self.step("commit")
            return done

        connections["default"].execute_wrappers.append(execute)


def _append(path: Path, line: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, json.dumps(line).encode() + b"\n")
    os.close(descriptor)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


Answer = Answered | NoAnswer | Cut
Behaviour = Callable[[str, str, list[dict[str, Any]]], tuple[Answer, str]]
"""What a provider does with a request: method, path and its log so far -> the reply, and the effect (\"\": none)."""


@dataclass
class Provider:
    """Implements ``ports.Transport``. All it knows is in its log, which outlives every process."""

    log: Path
    behaviour: Behaviour
    steps: Steps
    slots: int = 4

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        for request, _ in requests:
            reply = self._hear(request)
            yield request, reply.reply if isinstance(reply, Cut) else reply

    def download(
        self, request: Request, table: ProviderTable, sink: Sink, *, total: timedelta, max_bytes: int
    ) -> Answered | NoAnswer:
        reply = self._hear(request)
        return stream(reply, sink, max_bytes=max_bytes)

    def _hear(self, request: Request) -> Answer:
        path = "/" + request.url.split("/", 3)[3]
        key = dict(request.headers).get("Idempotency-Key", "")
        told = {"method": request.method, "path": path, "key": key, "body": request.body.decode()}
        asked = {**told, "range": dict(request.headers).get("Range", "")}
        reply, effect = self.behaviour(request.method, path, [*lines(self.log), asked])
        _append(self.log, {**asked, "effect": effect})
        self.steps.step("request")
        return reply


@dataclass
class Broker:
    """Messages of one process, in the order of their time. They are lost with it."""

    steps: Steps
    horizon: timedelta = timedelta(seconds=30)
    messages: list[tuple[datetime, int, str, str]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        return self._publish("wake", operation_id, delay)

    def wake_now(self, ids: Sequence[str]) -> int:
        return sum(self._publish("wake", each, timedelta(0)) for each in ids)

    def deliver(self, delivery_ids: Sequence[str]) -> int:
        return sum(self._publish("deliver", each, timedelta(0)) for each in delivery_ids)

    def report_conflict(self, operation_id: str) -> bool:
        return False

    def _publish(self, kind: str, name: str, delay: timedelta) -> bool:
        heapq.heappush(self.messages, (self.steps.clock() + delay, next(self.numbers), kind, name))
        self.steps.step("publish")
        return True


def in_child(work: Callable[[], None], errors: Path) -> int:
    """Run ``work`` in a fork of this process; returns how it ended: 0, or the signal that ended it.

    The child has connections of its own: those of this process are closed first.
    """
    connections.close_all()
    gc.freeze()  # or each child would copy the whole heap in its first collection
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a thread of the test runner takes no part in it
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            connections.close_all()
            code = 0
        except BaseException:  # noqa: BLE001 - a fork must never come back into the test runner
            errors.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise AssertionError(errors.read_text())
    return os.WTERMSIG(status)


@dataclass
class Scene:
    """One operation's way: how it begins, and what the provider does."""

    begin: Callable[[str], None]  # stores the operation with this id
    behaviour: Behaviour
    folder: Path
    from_start: bool = True  # the beginning may be cut as well: it is one transaction
    runtime: Runtime = field(default_factory=build_runtime)  # its tables are read once, for all processes

    def run(self, operation_id: str, *, end: int = 0, lose: bool = False) -> tuple[int, list[str]]:
        """Live through it in a worker that acts at step ``end``.

        Returns:
            How the worker ended, and the names of its steps.
        """
        steps = Steps(trace=self.folder / f"{operation_id}.trace", end=end, lose=lose)

        def work() -> None:
            with self._runtime(operation_id, steps) as (runtime, broker):
                if not self.from_start:
                    self.begin(operation_id)
                steps.watch()
                if self.from_start:
                    try:
                        self.begin(operation_id)
                    except OperationalError:  # the caller does not know either, and says it again
                        self.begin(operation_id)
                _consume(runtime, broker, steps)

        died = in_child(work, self.folder / "errors.txt")
        return died, [line["step"] for line in lines(steps.trace)]

    def finish(self, operation_id: str) -> None:
        """A fresh process, with no messages, does what is left to do."""
        seen = lines(self.folder / f"{operation_id}.trace")
        at = datetime.fromisoformat(seen[-1]["clock"]) if seen else START
        steps = Steps(trace=self.folder / f"{operation_id}.after", clock=VirtualClock(at))

        def work() -> None:
            with self._runtime(operation_id, steps) as (runtime, _):
                run_due(runtime, steps.clock)

        assert in_child(work, self.folder / "errors.txt") == 0

    def log(self, operation_id: str) -> list[dict[str, Any]]:
        return lines(self.folder / f"{operation_id}.log")

    def _runtime(self, operation_id: str, steps: Steps) -> Any:
        return _Using(self.runtime, Provider(self.folder / f"{operation_id}.log", self.behaviour, steps), steps)


class _Using:
    """The site's own runtime on virtual time, with this provider and a broker of its own."""

    def __init__(self, runtime: Runtime, provider: Provider, steps: Steps) -> None:
        self._broker = Broker(steps)
        self._steps = steps
        self._runtime = replace(
            runtime,
            chores=NoChores(),  # they come by the clock of this machine, and have tests of their own
            transport=provider,
            scheduler=self._broker,
            elapsed=steps.clock.elapsed,
            draw=lambda: 0.5,
        )
        handler = self._runtime.run_handler

        def run_handler(delivery: Any, operation: Any) -> None:
            handler(delivery, operation)
            steps.step("handler")

        self._runtime = replace(self._runtime, run_handler=run_handler)
        self._using = wiring.use_runtime(self._runtime)

    def __enter__(self) -> tuple[Runtime, Broker]:
        DatabaseNow.virtual = self._steps.clock
        self._using.__enter__()
        return self._runtime, self._broker

    def __exit__(self, *_: object) -> None:
        self._using.__exit__(None, None, None)


def _consume(runtime: Runtime, broker: Broker, steps: Steps) -> None:
    """What a worker does: take messages as their time comes; what raises is lost, and the sweeper makes up for it."""
    while broker.messages:
        at, _, kind, name = heapq.heappop(broker.messages)
        steps.clock.advance_to(max(at, steps.clock()))
        with suppress(OperationalError):
            (advance if kind == "wake" else deliver)(runtime, [name])
    with suppress(OperationalError):
        run_due(runtime, steps.clock)
        return
    run_due(runtime, steps.clock)  # the sweeper's next round
