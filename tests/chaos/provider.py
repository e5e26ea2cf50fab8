"""A provider in a process of its own. Its append-only log is the truth that the rows are compared with.

A job id says how the job behaves: ``j-<number>-<polls>-<wait>`` succeeds at its poll number ``polls`` and asks to
wait ``wait`` seconds before that (0: says nothing).
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

LOCK = threading.Lock()
SEEN: Counter[str] = Counter()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log: Path

    def do_GET(self) -> None:
        at = time.time()
        job = self.path.rsplit("/", 1)[-1]
        _, _, polls, wait = job.split("-")
        with LOCK:
            SEEN[job] += 1
            done = SEEN[job] >= int(polls)
            told = 0 if done else int(wait)
            line = {"job": job, "at": at, "request": self.headers.get("X-Request-Id"), "wait": told, "done": done}
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        body = json.dumps({"id": job, "status": "succeeded" if done else "running"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if told:
            self.send_header("Retry-After", str(told))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    Handler.log = arguments.log
    Server(("127.0.0.1", arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
