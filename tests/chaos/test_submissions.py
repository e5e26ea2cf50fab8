"""1,000 submissions to a provider that loses its answers, on workers that are killed: its own log is the judge.

(R-PROOF, INV-03, 15, 17, 18) Where a look-up or a key settles a doubt there is exactly one job for each operation and
all succeed; where nothing does, nothing is ever sent again and one person is asked.
"""

from __future__ import annotations

import signal
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from tests.chaos.doubtful import BAD, FARES, KEYS
from tests.chaos.rig import Process, Rig, Valkey, wait_for
from tests.databases import reachable, url_of

pytestmark = [pytest.mark.broker, pytest.mark.processes, pytest.mark.crash]

MANY = 1000
KILLS = 6
LIFE_S = 3.0
"""How long after a worker is ready another one is killed."""

TABLE = """\
jobtrack: 1
id: {kind}
name: A provider that loses its answers
docs: https://provider.example/docs
revision: 1
hosts: ["http://127.0.0.1:{port}"]
allow_loopback: true
submit:
  request:
    method: POST
    path: /{kind}/jobs
    json: {reference: "{operation_id}", rows: "{payload/rows}", note: "{payload/note}"}
  accepted: {http: [202], job_id: /id}
  rejected: {http: [422]}
  recovery: {deadline: 10m, requests: 90, first: 400ms, base: 1s, factor: 1.5, cap: 3s}
  within: 10m
  attempts: 60
  {ways}
status:
  request: {method: GET, path: "/{kind}/jobs/{job_id}"}
  echo: /id
  state: /status
  states: {pending: [running], success: [succeeded], failure: [failed]}
polling: {first: 1s, base: 1s, factor: 1.5, cap: 2s, min_interval: 200ms}
budget: {deadline: 20m, status_requests: 100, transport_failures: 50}
gate: {breaker_failures: 0}
limits: {connect: 1s, read: 1s, total: 1s}
"""
KEY = "idempotency: {header: Idempotency-Key, lifetime: 24h}"
LOOKUP = """\
lookup:
    request: {method: GET, path: "/{kind}/jobs", query: {reference: "{operation_id}"}}
    items: /items
    match: {/reference: "{operation_id}"}
    found: /id
    absence_is_proof_after: 3s"""
WAYS = {"lookup": [LOOKUP], "key": [KEY], "both": [KEY, LOOKUP], "none": []}
"""The kinds of tables, by what ends a doubt."""


class Doubtful(Rig):
    """The project with a provider that loses its answers."""

    provider = "tests.chaos.doubtful"
    tables: ClassVar[dict[str, str]] = {
        kind: TABLE.replace("{ways}", "\n  ".join(ways)).replace("{kind}", kind) for kind, ways in WAYS.items()
    }

    def kill_in_turn(self, submitting: Process) -> list[float]:
        """Two workers: the older one is killed in the middle of its work, and a new one takes its place.

        Every other time the provider refuses connections for a moment as well.
        """
        killed: list[float] = []
        workers = [self.worker(), self.worker()]
        for number in range(KILLS):
            oldest, youngest = workers
            wait_for(partial(youngest.said, " ready."), within_s=40, what="the worker is ready")
            time.sleep(LIFE_S)
            if number % 2:
                self.provider_process.signal(signal.SIGUSR1)
            oldest.kill()
            killed.append(time.time())
            workers = [youngest, self.worker()]
        assert submitting.wait() == 0, submitting.log.read_text()
        return killed

    def rested(self) -> bool:
        states = self.states()
        return states.total() == MANY and set(states) <= {"succeeded", "escalated"}


@contextmanager
def database_of_our_own(folder: Path) -> Iterator[str]:
    """PostgreSQL if it answers, else a SQLite file."""
    if "postgres" not in reachable():
        yield str(folder / "rows.sqlite3")
        return
    parts = urlsplit(url_of("postgres"))
    name = f"jobtrack_chaos_{uuid.uuid4().hex[:8]}"
    maintenance = urlunsplit(parts._replace(scheme="postgresql", path="/postgres"))
    with psycopg.connect(maintenance, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        try:
            yield urlunsplit(parts._replace(path=f"/{name}"))
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


@pytest.fixture
def doubtful(tmp_path: Path, valkey: Valkey) -> Iterator[Doubtful]:
    with database_of_our_own(tmp_path) as database:
        rig = Doubtful(tmp_path, valkey.url, database=database, CHAOS_MARGIN_S="6")
        try:
            yield rig
        finally:
            rig.end()


@pytest.mark.timeout(480)
def test_a_thousand_submissions_make_one_job_each_or_one_question(doubtful) -> None:
    """Kills while requests are under way, refused connections, and answers that are lost, late, cut or unreadable."""
    started = time.time()
    killed = doubtful.kill_in_turn(doubtful.driving("submit", MANY // len(WAYS), *WAYS))
    wait_for(doubtful.rested, within_s=300, what="all have ended or ask", seen=doubtful.states)
    took = time.time() - started

    judge = Judge(doubtful.requests(), doubtful.drive("dump"))
    print(f"{MANY} submissions in {took:.0f} s; {judge.summary(killed)}")
    judge.check_proof()
    judge.check_effects()
    judge.check_nothing_was_easy()


class Judge:
    """Compares the provider's log with rows and audit."""

    def __init__(self, log: list[dict[str, Any]], dump: dict[str, Any]) -> None:
        self.dump = dump
        self.rows = dump["operations"]
        self.posts: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.jobs: dict[str, set[str]] = defaultdict(set)
        for line in log:
            if line["verb"] == "POST":
                self.posts[line["operation"]].append(line)
            elif line["verb"] == "EFFECT":
                self.jobs[line["operation"]].add(line["job"])
        self.refusals = sum(line["verb"] == "REFUSED" for line in log)
        self.intents: dict[tuple[str, int], float] = {}
        self.read: set[tuple[str, int]] = set()
        for entry in dump["audit"]:
            name = entry["operation"], entry["fence"]
            if entry["event"] == "attempt":
                assert name not in self.intents, f"two intents under one fence: {name}"
                self.intents[name] = datetime.fromisoformat(entry["written_at"]).timestamp()  # by the database
            elif entry["event"] == "submission":
                self.read.add(name)
        self.asked = Counter(each["operation_id"] for each in dump["escalations"])
        self.reasons = Counter(each["reason"] for each in dump["escalations"])

    def summary(self, killed: list[float]) -> str:
        states = {kind: dict(Counter(row["state"] for row in self.of(kind))) for kind in WAYS}
        posts = {kind: sum(len(self.posts[row["id"]]) for row in self.of(kind)) for kind in WAYS}
        return f"{len(killed)} kills, {self.refusals} refusals, {len(self.torn())} torn; {states}; POSTs {posts}"

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["provider"] == kind]

    def torn(self) -> set[tuple[str, int]]:
        """Requests that the provider got and whose worker wrote nothing about them."""
        sent = {_named(post) for posts in self.posts.values() for post in posts}
        return sent - self.read

    def check_proof(self) -> None:
        """INV-17: each request has its intent, written before; one key and the same bytes for all of an operation."""
        assert self.dump["audit_faults"] == []
        for row in self.rows:
            posts = self.posts[row["id"]]
            assert len({(post["key"], post["body"]) for post in posts}) <= 1, row
            key = row["idempotency_key"] if row["provider"] in KEYS else ""
            assert {post["key"] for post in posts} <= {key}, row
            assert len(posts) <= row["spent_submissions"] <= row["limit_submissions"], row
        sent = [_named(post) for posts in self.posts.values() for post in posts]
        assert len(sent) == len(set(sent)), "one claim sent twice"
        for posts in self.posts.values():
            for post in posts:
                assert self.intents[_named(post)] <= post["at"], post

    def check_effects(self) -> None:
        """INV-18: where a doubt can be settled there is exactly one job; else nothing is repeated and one is asked."""
        assert len(self.rows) == MANY
        torn = self.torn()
        for row in self.rows:
            jobs, posts = self.jobs[row["id"]], self.posts[row["id"]]
            if row["state"] == "succeeded":
                assert (jobs, self.asked[row["id"]]) == ({row["job_id"]}, 0), row
            assert self.asked[row["id"]] == (row["state"] == "escalated"), row
            # The provider said that it has the job and not which: no repeat can tell, only a look-up. Where the worker
            # was killed before it read that, its repeat under the key is right, and is told the job.
            heard = [post for post in posts if _named(post) not in torn]
            unnamed = row["provider"] == "key" and any(_fare(post) == (BAD,) for post in heard[:1] if post is posts[0])
            if row["provider"] != "none":
                assert (row["state"], len(jobs)) == ("escalated" if unnamed else "succeeded", 1), row
                continue
            assert len(posts) <= 1, row
            assert len(jobs) <= 1, row
            lost = any(_fare(post) for post in posts)
            assert row["state"] == "escalated" or not lost, row
        assert set(self.reasons) == {"submission_unknown"}

    def check_nothing_was_easy(self) -> None:
        """The kills tore requests, the refusals were met, and answers were lost, or all this proves little."""
        assert len(self.torn()) >= KILLS
        assert self.refusals == KILLS // 2
        assert sum(map(len, self.posts.values())) < sum(row["spent_submissions"] for row in self.rows)
        assert sum(self.asked.values()) >= len(self.of("none")) // 2


def _named(post: dict[str, Any]) -> tuple[str, int]:
    operation, _, fence = post["request"].rpartition(":")
    return operation, int(fence)


def _fare(post: dict[str, Any]) -> tuple[str, ...]:
    return FARES[int(post["operation"].rpartition("-")[2]) % len(FARES)]
