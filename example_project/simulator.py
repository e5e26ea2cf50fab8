"""A provider to practise on: "ACME exports", with all the ways a provider can misbehave.

It runs as a process of its own, on loopback only, and keeps its own append-only log of requests: what it saw is
the truth that the demo and the tests compare with what jobtrack says it sent::

    ACME_TOKEN=secret python -m example_project.simulator --port 8100 --log acme.jsonl

=======  ======================  =======================================================
POST     /v1/exports             {"scenario": "success"} -> 202 {"id": "exp_..."}
GET      /v1/exports/{id}        the status of one export
POST     /scenarios/{id}         {"scenario": "..."}: from now on the job follows another script
GET      /log                    every request so far, as a JSON list
=======  ======================  =======================================================

Every request needs ``Authorization: Bearer <token>``.
"""

from __future__ import annotations

import argparse
import contextlib
import hmac
import json
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

MAX_BODY = 64 * 1024
TRICKLE_BYTES = 60
TRICKLE_PAUSE_S = 0.5
SIGNATURE = "5ignature-that-nobody-may-keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the simulator says to one request."""

    word: str  # how the log names it: the state, or what is wrong with the answer
    http: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    retry_after_s: int | None = None
    wait_s: int = 0  # how long the caller was asked to wait, by header or by body
    trickle: bool = False  # one byte at a time, slower than any caller should wait


Step = Callable[[str], Answer]
"""Answers one status request for the job id it is given."""


def _json(word: str, value: object, **more: Any) -> Answer:
    return Answer(word=word, body=json.dumps(value).encode(), **more)


def _state(word: str, **members: Any) -> Step:
    wait_s = members.get("poll_after_seconds", 0)
    return lambda job: _json(word, {"id": job, "status": word, **members}, wait_s=wait_s)


def _always(answer: Answer) -> Step:
    return lambda _job: answer


def _running(percent: int) -> Step:
    return _state("running", progress=f"{percent} %", poll_after_seconds=1)


def _succeeded(job: str) -> Answer:
    # The signature makes the URL a secret: it must never be found in the caller's database, logs or pages.
    url = f"https://files.acme.example/{job}.csv?signature={SIGNATURE}"
    return _json("succeeded", {"id": job, "status": "succeeded", "result": {"url": url, "rows": 1204}})


def _wrong_id(job: str) -> Answer:
    return _json("wrong-id", {"id": f"{job}-of-somebody-else", "status": "running"})


def _error(http: int, word: str, message: str, **more: Any) -> Answer:
    return _json(word, {"error": {"message": message}}, http=http, **more)


_QUEUED = _state("queued", poll_after_seconds=1)
_BUSY = _always(_error(503, "busy", "Down for maintenance.", retry_after_s=2, wait_s=2))
_TOO_MANY = _always(_error(429, "too-many", "Too many requests."))
_DENIED = _always(_error(401, "denied", "This token was revoked."))
_PAGE = b"<!doctype html><title>ACME</title><h1>Welcome back!</h1><p>status: succeeded</p>"
_HTML = _always(Answer(word="html", body=_PAGE, content_type="text/html; charset=utf-8"))
_TRICKLE = _always(Answer(word="trickle", body=b" " * TRICKLE_BYTES, trickle=True))

SCRIPTS: Mapping[str, tuple[Step, ...]] = MappingProxyType(
    {
        "success": (_QUEUED, _running(40), _running(80), _succeeded),
        "failure": (_running(10), _state("failed", error={"message": "Column 'amount' does not exist."})),
        "cancelled": (_running(10), _state("canceled")),
        "expired": (_QUEUED, _state("expired")),
        # Paused once when the table does not know the word, once more for a person who looks again.
        "unknown": (_running(50), _state("paused"), _state("paused", poll_after_seconds=1), _running(80), _succeeded),
        "retry-after": (_running(30), _BUSY, _succeeded),
        "rate-limited": (_TOO_MANY,),
        "stuck": (_running(99),),
        "unauthorized": (_running(20), _DENIED),
        "html": (_running(20), _HTML),
        "no-result": (_running(90), _state("succeeded")),
        "wrong-id": (_running(20), _wrong_id),
        "trickle": (_TRICKLE,),
    }
)
"""What each scenario answers, look by look; the last step repeats for ever."""


@dataclass(slots=True, kw_only=True)
class Job:
    """One export. ``looks`` counts the status requests since the scenario was set."""

    id: str
    scenario: str
    looks: int = 0

    def next(self) -> Answer:
        script = SCRIPTS[self.scenario]
        step = script[min(self.looks, len(script) - 1)]
        self.looks += 1
        return step(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it goes into the log."""

    at: str  # UTC, RFC 3339
    method: str
    path: str
    job: str  # "" if the request is about none
    scenario: str
    request_id: str  # X-Request-Id of the caller, "" if it sent none
    http: int
    word: str
    wait_s: int


@dataclass(slots=True, kw_only=True)
class Provider:
    """The jobs and the log; safe to use from many threads."""

    log_path: Path
    jobs: dict[str, Job] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self, scenario: str) -> Job:
        job = Job(id=f"exp_{secrets.token_hex(6)}", scenario=scenario)
        with self._lock:
            self.jobs[job.id] = job
        return job

    def look(self, job_id: str) -> tuple[str, Answer]:
        """The next answer for a job, and its scenario."""
        with self._lock:
            job = self.jobs.get(job_id)
            if job is None:
                return "", _error(404, "no-such-job", "There is no such export.")
            return job.scenario, job.next()

    def switch(self, job_id: str, scenario: str) -> bool:
        with self._lock:
            job = self.jobs.get(job_id)
            if job is None:
                return False
            job.scenario, job.looks = scenario, 0
            return True

    def note(self, seen: Seen) -> None:
        line = json.dumps({name: getattr(seen, name) for name in Seen.__slots__})
        with self._lock, self.log_path.open("a", encoding="utf-8") as log:
            log.write(line + "\n")

    def seen(self) -> list[dict[str, Any]]:
        with self._lock:
            return [json.loads(line) for line in self.log_path.read_text(encoding="utf-8").splitlines()]


class Simulator(ThreadingHTTPServer):
    """The provider as an HTTP server on loopback.

    Args:
        port: 0 takes a free one; ``server_port`` then tells which.
        token: The bearer token every request must carry.
        log_path: The request log, appended to.
    """

    daemon_threads = True

    def __init__(self, *, port: int, token: str, log_path: Path) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token = token
        log_path.touch()
        self.provider = Provider(log_path=log_path)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A caller that hangs up in the middle of a trickle is what that scenario is about.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Simulator

    def do_GET(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        body = self._read_body()
        if body is None:
            self.close_connection = True  # what was not read would be taken for the next request
            self._send(_error(400, "bad-request", "Send a small JSON object."))
        else:
            self._handle(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """The request log takes the place of the server's own."""

    def _read_body(self) -> dict[str, Any] | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return None
        try:
            value = json.loads(self.rfile.read(int(length)))
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _handle(self, body: dict[str, Any]) -> None:
        job, (scenario, answer) = self._answer(body)
        if self.path != "/log":
            self.server.provider.note(self._seen(job, scenario, answer))
        self._send(answer)

    def _answer(self, body: dict[str, Any]) -> tuple[str, tuple[str, Answer]]:
        """The job a request is about, its scenario, and the answer."""
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {self.server.token}".encode()):
            return "", ("", _error(401, "bad-token", "Send the bearer token."))
        for method, pattern, route in ROUTES:
            found = pattern.fullmatch(self.path)
            if found and method == self.command:
                job = found.groupdict().get("job", "")
                return job, route(self.server.provider, job, body)
        return "", ("", _error(404, "no-such-path", "There is nothing here."))

    def _seen(self, job: str, scenario: str, answer: Answer) -> Seen:
        return Seen(
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            method=self.command,
            path=self.path,
            job=job,
            scenario=scenario,
            request_id=self.headers.get("X-Request-Id", ""),
            http=answer.http,
            word=answer.word,
            wait_s=answer.wait_s,
        )

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.http)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Request-Id", f"acme-{secrets.token_hex(4)}")
        if answer.retry_after_s is not None:
            self.send_header("Retry-After", str(answer.retry_after_s))
        self.end_headers()
        if answer.trickle:
            self._trickle(answer.body)
        else:
            self.wfile.write(answer.body)

    def _trickle(self, body: bytes) -> None:
        for byte in body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(TRICKLE_PAUSE_S)


def _create(provider: Provider, _job: str, body: dict[str, Any]) -> tuple[str, Answer]:
    scenario = body.get("scenario", "success")
    if scenario not in SCRIPTS:
        return "", _error(422, "bad-scenario", f"Choose one of: {', '.join(SCRIPTS)}.")
    created = provider.create(scenario)
    return scenario, _json("accepted", {"id": created.id, "status": "queued"}, http=202)


def _look(provider: Provider, job: str, _body: dict[str, Any]) -> tuple[str, Answer]:
    return provider.look(job)


def _switch(provider: Provider, job: str, body: dict[str, Any]) -> tuple[str, Answer]:
    scenario = str(body.get("scenario"))
    if scenario not in SCRIPTS:
        return "", _error(422, "bad-scenario", f"Choose one of: {', '.join(SCRIPTS)}.")
    if not provider.switch(job, scenario):
        return "", _error(404, "no-such-job", "There is no such export.")
    return scenario, _json("switched", {"id": job, "scenario": scenario})


def _log(provider: Provider, _job: str, _body: dict[str, Any]) -> tuple[str, Answer]:
    return "", _json("log", provider.seen())


Route = Callable[[Provider, str, dict[str, Any]], tuple[str, Answer]]

ROUTES: tuple[tuple[str, re.Pattern[str], Route], ...] = (
    ("POST", re.compile(r"/v1/exports"), _create),
    ("GET", re.compile(r"/v1/exports/(?P<job>[^/?]+)"), _look),
    ("POST", re.compile(r"/scenarios/(?P<job>[^/?]+)"), _switch),
    ("GET", re.compile(r"/log"), _log),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m example_project.simulator", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--log", type=Path, default=Path("acme.jsonl"), help="request log (JSON lines, appended to)")
    options = parser.parse_args()
    token = os.environ.get("ACME_TOKEN")
    if not token:
        parser.error("set ACME_TOKEN to the bearer token that callers must send")
    try:
        server = Simulator(port=options.port, token=token, log_path=options.log)
    except OSError as error:
        parser.error(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}")
    print(f"ACME exports at http://127.0.0.1:{server.server_port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
