"""A provider that does the job and loses the answer, in a process of its own. Its append-only log is the judge.

An operation's id says how its first requests fare: ``<kind>-<number>`` follows row ``number`` of ``FARES``. Each
request is logged before anything else, and each job that comes to be has a line of its own (``EFFECT``).
``SIGUSR1`` makes it refuse connections for a moment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import socket
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

CUT, HALF, ERROR, SLOW, BAD = "cut", "half", "error", "slow", "bad"

# What becomes of the first, second ... submission of an operation; the ones after that are answered at once.
FARES: tuple[tuple[str, ...], ...] = (
    *((CUT,),) * 7,
    *((CUT, CUT),) * 2,
    (HALF,),
    *((ERROR,),) * 2,
    (ERROR, CUT),
    (BAD,),
    *((SLOW,),) * 2,
    *((),) * 4,
)

LATE_S = 2.2
"""When a slow acceptance happens: after our time-out, and after the first look-up."""
REFUSED_S = 0.8
KEYS = ("key", "both")
"""Kinds at which the provider honours idempotency keys."""


class World:
    """What this provider knows."""

    def __init__(self, log: Path) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.lock = threading.Lock()
        self.posts: dict[str, int] = defaultdict(int)
        self.jobs: dict[str, list[str]] = defaultdict(list)
        self.keys: dict[str, tuple[bytes, str, threading.Event]] = {}

    def write(self, **line: Any) -> None:
        os.write(self._log, json.dumps({"at": time.time(), **line}).encode() + b"\n")

    def make(self, operation: str, job: str) -> None:
        with self.lock:
            self.write(verb="EFFECT", operation=operation, job=job)
            self.jobs[operation].append(job)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    world: World

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kind = self.path.split("/")[1]
        key = self.headers.get("Idempotency-Key") or ""
        operation = json.loads(body)["reference"]
        self.world.write(
            verb="POST",
            operation=operation,
            request=self.headers.get("X-Request-Id"),
            key=key,
            body=hashlib.sha256(body).hexdigest(),
        )
        with self.world.lock:
            nth = self.world.posts[operation]
            self.world.posts[operation] += 1
            job = f"j-{operation}-{nth}"
            known = self.world.keys.get(key) if kind in KEYS else None
            if known is None:
                made = threading.Event()
                self.world.keys[key if kind in KEYS else f"none {job}"] = (body, job, made)
        fare = dict(enumerate(FARES[int(operation.rpartition("-")[2]) % len(FARES)])).get(nth, "")
        if known is not None:
            before, job, made = known
            if before != body:
                self._answer(422, {"error": "this key came with other content"})
                return
            made.wait(10)
        else:
            if fare == SLOW:
                time.sleep(LATE_S)
            self.world.make(operation, job)
            made.set()
        self._fare(fare, job)

    def _fare(self, fare: str, job: str) -> None:
        if fare == CUT:
            self._end()
        elif fare == HALF:
            self._answer(202, {"id": job}, most=6)
            self._end()
        elif fare == ERROR:
            self._answer(500, {"error": "internal"})
        elif fare == BAD:
            self._answer(202, {"accepted": "yes"})
        else:
            self._answer(202, {"id": job})

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        last = parts.path.rsplit("/", 1)[-1]
        if last != "jobs":
            self._answer(200, {"id": last, "status": "succeeded"})
            return
        (reference,) = parse_qs(parts.query)["reference"]
        with self.world.lock:
            jobs = list(self.world.jobs[reference])
        self.world.write(verb="LOOK", operation=reference, found=jobs)
        self._answer(200, {"items": [{"id": job, "reference": reference} for job in jobs]})

    def _answer(self, status: int, content: object, *, most: int | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:most])

    def _end(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client that is gone is nothing to speak of."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    Handler.world = World(arguments.log)
    refuse = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: refuse.set())
    while True:
        server = Server(("127.0.0.1", arguments.port), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        while not refuse.wait(0.2):
            """Signals are handled between the waits."""
        refuse.clear()
        server.shutdown()
        server.socket.close()
        Handler.world.write(verb="REFUSED")
        time.sleep(REFUSED_S)


if __name__ == "__main__":
    main()
