"""A provider to practise on: "ACME exports", with all the ways a provider can misbehave.

It runs as a process of its own, on loopback only, and keeps its own append-only log of requests: what it saw is
the truth that the demo and the tests compare with what jobtrack says it sent::

    ACME_TOKEN=secret python -m example_project.simulator --port 8100 --log acme.jsonl

=======  =========================  ====================================================================
POST     /v1/exports                {"scenario": "success"} -> 202 {"id": "exp_..."}, and ``Location``;
                                    ``Idempotency-Key`` and ``Acme-Reference`` are remembered
GET      /v1/exports?reference=...  the exports with this reference, two on a page
GET      /v1/exports/{id}           the status of one export
POST     /v1/exports/{id}/cancel    cancel it
GET      /files/{id}.csv?...        the file of an export, as long as the link lives
POST     /scenarios/{id}            {"scenario": "..."}: from now on the job follows another script
GET      /log                       every request so far, as a JSON list
GET      /console?q=...             the exports as a page for people
POST     /console/{id}/mend         what its button does: from now on the job goes as it should
=======  =========================  ====================================================================

Every request but those for a file or the console needs ``Authorization: Bearer <token>``.
"""

from __future__ import annotations

import argparse
import contextlib
import hmac
import json
import os
import re
import secrets
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from example_project import console
from example_project.behaviour import ROWS, SCRIPTS, SIGNATURE, SLOW_S, TRICKLE_PAUSE_S, Answer, Opening, error, say
from example_project.ledger import Ledger, Seen
from example_project.notices import Notices

MAX_BODY = 64 * 1024
PAGE_SIZE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    job: str = ""  # the export that the path names

    @property
    def operation(self) -> str:
        """The caller's operation, by the id it gives each request."""
        return self.headers.get("X-Request-Id", "").rpartition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The answer to a request, and what the log says besides."""

    answer: Answer
    kind: str = "other"
    job: str = ""
    made: str = ""
    scenario: str = ""


class Simulator(ThreadingHTTPServer):
    """The provider as an HTTP server on loopback.

    Args:
        port: 0 takes a free one; ``server_port`` then tells which.
        token: The bearer token every request must carry.
        log_path: The request log, appended to.
        settle_s: How long a new export takes to appear in the list.
        slow_s: How long a slow acceptance takes.
        notices: Where webhooks go; None: nowhere.
    """

    daemon_threads = True

    def __init__(
        self,
        *,
        port: int,
        token: str,
        log_path: Path,
        settle_s: float = 0.5,
        slow_s: float = SLOW_S,
        notices: Notices | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.token = token
        self.slow_s = slow_s
        self.notices = notices
        log_path.touch()
        self.ledger = Ledger(log_path=log_path, settle_s=settle_s)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A caller that hangs up, in a trickle or before a slow acceptance, is what those scenarios are about.
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
            self._send(error(400, "bad-request", "Send a small JSON object."))
        else:
            self._handle(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """The request log takes the place of the server's own."""

    def _read_body(self) -> dict[str, Any] | None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            return None
        text = self.rfile.read(int(length))
        if self.headers.get("Content-Type") == "application/x-www-form-urlencoded":
            return {}  # a button of the console: all that it means is in its address
        try:
            value = json.loads(text or b"{}")
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def _handle(self, body: dict[str, Any]) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        call = Call(method=self.command, path=parts.path, query=query, headers=dict(self.headers), body=body)
        told = self._answer(call)
        if parts.path != "/log":
            self.server.ledger.note(_seen(call, told))  # before the answer: what was done stays done
        self._send(told.answer)

    def _answer(self, call: Call) -> Told:
        for method, pattern, open_to_all, route in ROUTES:
            found = pattern.fullmatch(call.path)
            if found and method == call.method:
                if not open_to_all and not self._authorized():
                    break
                return route(self.server, replace(call, job=found.groupdict().get("job", "")))
        if not self._authorized():
            return Told(answer=error(401, "bad-token", "Send the bearer token."))
        return Told(answer=error(404, "no-such-path", "There is nothing here."))

    def _authorized(self) -> bool:
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode("latin-1"), f"Bearer {self.server.token}".encode())

    def _send(self, answer: Answer) -> None:
        if answer.hang_up:
            self._hang_up()
            return
        self.send_response(answer.http)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Request-Id", f"acme-{secrets.token_hex(4)}")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.trickle:
            self._trickle(answer.body)
        else:
            self.wfile.write(answer.body)

    def _hang_up(self) -> None:
        """End the connection with a reset: the caller cannot see what was done before."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.rfile.close()  # it holds the socket as well
        self.connection.close()

    def _trickle(self, body: bytes) -> None:
        for byte in body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(TRICKLE_PAUSE_S)


def _seen(call: Call, told: Told) -> Seen:
    return Seen(
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        kind=told.kind,
        job=told.job,
        made=told.made,
        scenario=told.scenario,
        request_id=call.headers.get("X-Request-Id", ""),
        key=call.headers.get("Idempotency-Key", ""),
        http=0 if told.answer.hang_up else told.answer.http,
        word=told.answer.word,
        wait_s=told.answer.wait_s,
    )


# --- what it does -------------------------------------------------------------------------------------


_NO_SUCH_JOB = error(404, "no-such-job", "There is no such export.")


def _submit(server: Simulator, call: Call) -> Told:
    scenario = call.body.get("scenario", "success")
    if scenario not in SCRIPTS:
        return Told(kind="submit", answer=error(422, "bad-scenario", f"Choose one of: {', '.join(SCRIPTS)}."))
    opening = server.ledger.opening(scenario, call.operation)
    if opening is Opening.RESET:
        return Told(kind="submit", scenario=scenario, answer=Answer(word="reset", hang_up=True))
    if opening is Opening.SLOW:
        time.sleep(server.slow_s)
    key, reference = call.headers.get("Idempotency-Key", ""), call.headers.get("Acme-Reference", "")
    job, new = server.ledger.create(scenario, key=key, reference=reference, operation=call.operation)
    made = job.id if new else ""
    return Told(kind="submit", job=job.id, made=made, scenario=scenario, answer=_acceptance(job.id, opening))


def _acceptance(job: str, opening: Opening) -> Answer:
    match opening:
        case Opening.LOSE:
            return Answer(word="lost", hang_up=True)
        case Opening.ERROR:
            return error(500, "error", "Something went wrong.")
        case _:
            headers = {"Location": f"/v1/exports/{job}"}
            return say("accepted", {"id": job, "status": "queued"}, http=202, headers=headers)


def _list(server: Simulator, call: Call) -> Told:
    """Oldest first, as a list that grows at its end."""
    reference, page = call.query.get("reference", ""), int(call.query.get("page", "1"))
    found = server.ledger.listed(reference)
    more = f"/v1/exports?reference={quote(reference)}&page={page + 1}" if len(found) > page * PAGE_SIZE else None
    items = [{"id": job.id, "reference": job.reference} for job in found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]]
    return Told(kind="lookup", answer=say("found" if items else "absent", {"items": items, "next": more}))


def _look(server: Simulator, call: Call) -> Told:
    job, answer = server.ledger.look(call.job, server.base)
    if job is None:
        return Told(kind="status", job=call.job, answer=answer)
    if server.notices and job.looks and job.looks == SCRIPTS[job.scenario].notice_after:
        server.notices.send_soon(server.ledger, job)
    return Told(kind="status", job=call.job, scenario=job.scenario, answer=answer)


def _cancel(server: Simulator, call: Call) -> Told:
    if not server.ledger.cancel(call.job):
        return Told(kind="cancel", job=call.job, answer=_NO_SUCH_JOB)
    return Told(kind="cancel", job=call.job, answer=say("cancelling", {"id": call.job}, http=202))


def _file(server: Simulator, call: Call) -> Told:
    del server
    alive = call.query.get("signature") == SIGNATURE and float(call.query.get("expires", "0")) > time.time()
    if not alive:
        return Told(kind="file", job=call.job, answer=error(403, "dead-link", "This link has expired."))
    rows = "".join(f"{number},{number * 7 % 1000}.00\n" for number in range(1, ROWS + 1))
    body = f"invoice,amount\n{rows}".encode()
    return Told(kind="file", job=call.job, answer=Answer(word="file", body=body, content_type="text/csv"))


def _switch(server: Simulator, call: Call) -> Told:
    scenario = str(call.body.get("scenario"))
    if scenario not in SCRIPTS:
        return Told(kind="switch", answer=error(422, "bad-scenario", f"Choose one of: {', '.join(SCRIPTS)}."))
    if not server.ledger.switch(call.job, scenario):
        return Told(kind="switch", job=call.job, answer=_NO_SUCH_JOB)
    answer = say("switched", {"id": call.job, "scenario": scenario})
    return Told(kind="switch", job=call.job, scenario=scenario, answer=answer)


def _console(server: Simulator, call: Call) -> Told:
    return Told(kind="console", answer=console.page(server.ledger, call.query.get("q", "").strip()))


def _mend(server: Simulator, call: Call) -> Told:
    # A page of another site could send a visitor's browser here: it says where it comes from.
    if call.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return Told(kind="mend", answer=error(403, "elsewhere", "Use the button on the console."))
    if not server.ledger.switch(call.job, console.MENDED):
        return Told(kind="mend", answer=console.no_such_job())
    return Told(kind="mend", job=call.job, scenario=console.MENDED, answer=console.mended(call.job))


def _log(server: Simulator, call: Call) -> Told:
    del call
    return Told(answer=say("log", server.ledger.seen()))


Route = Callable[[Simulator, Call], Told]

_JOB = r"(?P<job>[^/?]+)"

# Method, path, whether it is open to those without the token, and what it does.
ROUTES: tuple[tuple[str, re.Pattern[str], bool, Route], ...] = (
    ("POST", re.compile(r"/v1/exports"), False, _submit),
    ("GET", re.compile(r"/v1/exports"), False, _list),
    ("GET", re.compile(rf"/v1/exports/{_JOB}"), False, _look),
    ("POST", re.compile(rf"/v1/exports/{_JOB}/cancel"), False, _cancel),
    ("GET", re.compile(rf"/files/{_JOB}\.csv"), True, _file),
    ("POST", re.compile(rf"/scenarios/{_JOB}"), False, _switch),
    ("GET", re.compile(r"/log"), False, _log),
    ("GET", re.compile(r"/(?:console)?"), True, _console),
    ("POST", re.compile(rf"/console/{_JOB}/mend"), True, _mend),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m example_project.simulator", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--log", type=Path, default=Path("acme.jsonl"), help="request log (JSON lines, appended to)")
    parser.add_argument("--notify", default="", help="address for webhooks, signed with ACME_WEBHOOK_SECRET")
    options = parser.parse_args()
    token, secret = os.environ.get("ACME_TOKEN"), os.environ.get("ACME_WEBHOOK_SECRET")
    if not token:
        parser.error("set ACME_TOKEN to the bearer token that callers must send")
    if options.notify and not secret:
        parser.error("set ACME_WEBHOOK_SECRET to the secret that signs webhooks")
    notices = Notices(url=options.notify, secret=secret) if options.notify and secret else None
    try:
        server = Simulator(port=options.port, token=token, log_path=options.log, notices=notices)
    except OSError as refused:
        parser.error(f"cannot listen on 127.0.0.1:{options.port}: {refused.strerror}")
    print(f"ACME exports at {server.base}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
