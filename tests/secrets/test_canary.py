"""INV-33: canaries planted wherever a secret can enter reach the provider, and are found nowhere else.

The real site, store and transport against a provider on this machine; a submission of which the answer is lost, its
look-up, polling, one failure of each kind, the result, a webhook, a cancellation, and every page that shows them.
"""

from __future__ import annotations

import base64
import hmac
import io
import json
import logging
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from celery import Celery
from celery.events.event import get_exchange
from django.apps import apps
from django.contrib import admin
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.urls import include, path, reverse
from django.views.debug import ExceptionReporter
from kombu import Queue
from kombu.transport.memory import Channel

from jobtrack.core.escalation import Reason, options
from jobtrack.core.operation import OperationState
from jobtrack.errors import IdempotencyConflict, UsageError
from jobtrack.flow.advance import advance
from jobtrack.flow.deliver import deliver
from jobtrack.ports import Runtime
from jobtrack.worker import wiring
from jobtrack.worker.scheduler import CeleryScheduler
from jobtrack_django import asubmit, cancel, conf, fetch_result, submit, track
from jobtrack_django.models import Delivery, Escalation, JobResult, Operation
from jobtrack_django.runtime import build_runtime
from jobtrack_django.store import DjangoStore
from jobtrack_django.testing import Rehearsal, rehearsal

urlpatterns = [path("admin/", admin.site.urls), path("jobtrack/", include("jobtrack_django.urls"))]
pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True), pytest.mark.urls(__name__)]

PLACES = (
    *("CREDENTIAL", "PAYLOAD", "PAYLOADHEADER", "STATUSURL", "HANDLE", "RESULTURL", "REDIRECT", "ERRORTEXT"),
    *("WEBHOOKSECRET", "WEBHOOKBODY", "HANDLERERROR", "CANCELTEXT"),
)
CANARY = {place: f"CANARY{place}x7f3a9" for place in PLACES}
TO_PROVIDER = {"CREDENTIAL", "PAYLOAD", "PAYLOADHEADER", "STATUSURL", "RESULTURL"}
"""Canaries that the provider must get back, or nothing was shown."""

FROM_PROVIDER = {"STATUSURL", "HANDLE", "RESULTURL", "REDIRECT", "ERRORTEXT", "CANCELTEXT"}
"""Canaries that it must have sent itself."""

EVENTS = "canary-events"

TABLE = """
jobtrack: 1
id: canary
name: A provider full of secrets
docs: https://provider.example/docs
revision: 1
hosts: ["http://127.0.0.1:{port}"]
allow_loopback: true
auth: bearer
submit:
  request:
    method: POST
    path: /jobs
    headers: {X-Note: "{payload/header}"}
    json: {reference: "{operation_id}", secret: "{payload/secret}"}
  accepted: {http: [202], job_id: /id, status_url: [{header: Location}], handle: /token}
  rejected: {http: [422]}
  error: /error/message
  lookup:
    request: {method: GET, path: /jobs, query: {reference: "{operation_id}"}}
    items: /items
    match: {/reference: "{operation_id}"}
    found: /id
    status_url: [/status_url]
status:
  request: {method: GET, path: "/jobs/{job_id}"}
  state: /status
  states: {pending: [running], success: [succeeded], failure: [failed], stop: {cancelled: [cancelled]}}
  error: /error/message
cancel:
  request: {method: POST, path: "/jobs/{job_id}/cancel"}
  effect: It stops.
  accepted: {http: [202]}
  repeatable: true
result:
  url: [/url]
  types: [text/csv]
webhook: {scheme: standard-webhooks, job_id: /data/id}
polling: {first: 1s, base: 1s, factor: 1, cap: 2s}
budget: {deadline: 1h, status_requests: 50, transport_failures: 30}
gate: {breaker_failures: 0}
limits: {connect: 2s, read: 2s, total: 2s}
"""


class Provider(BaseHTTPRequestHandler):
    """Answers by the reference that is a part of every address; first answers fail, each in a way of its own."""

    protocol_version = "HTTP/1.1"
    timeout = 5
    seen: list[str]
    said: list[str]
    counts: Counter[str]

    def _told(self) -> tuple[str, int, str]:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        type(self).seen.append(f"{self.command} {self.path} {dict(self.headers.items())} {body}")
        place = f"{self.command} {self.path.split('?')[0]} {self.path.partition('reference=')[2]}"
        type(self).counts[place] += 1
        return self.path.split("?")[0], type(self).counts[place], body

    def do_POST(self) -> None:
        where, nth, body = self._told()
        if where.endswith("/cancel"):
            self._fail(500, "CANCELTEXT") if nth == 1 else self._json(202, {})
            return
        reference = json.loads(body)["reference"]
        if reference != "direct":
            self._fail(500, "ERRORTEXT")
            return
        signed = f"/jobs/{reference}?sig={CANARY['STATUSURL']}"
        self._json(202, {"id": reference, "token": CANARY["HANDLE"]}, Location=signed)

    def do_GET(self) -> None:
        where, nth, _ = self._told()
        if where == "/jobs":
            self._found(nth)
        elif where.startswith("/files/"):
            self._file(nth)
        elif where == "/jobs/tocancel":
            self._json(
                200, {"status": "cancelled" if Provider.counts["POST /jobs/tocancel/cancel "] > 1 else "running"}
            )
        else:
            self._status(where, nth)

    def _found(self, nth: int) -> None:
        reference = self.path.partition("reference=")[2]
        if nth == 1:
            self._fail(500, "ERRORTEXT")
            return
        url = f"http://127.0.0.1:{self.server.server_address[1]}/jobs/{reference}?sig={CANARY['STATUSURL']}"
        items = [] if reference == "never" else [{"id": reference, "reference": reference, "status_url": url}]
        self._json(200, {"items": items})

    def _status(self, where: str, nth: int) -> None:
        if nth == 1:
            self._json(200, {"status": "running", "error": {"message": _signed("ERRORTEXT")}})
        elif nth == 2:
            self._fail(500, "ERRORTEXT")
        elif where == "/jobs/moved":
            self._redirect()
        elif nth == 3:
            self.close_connection = True  # an answer that never comes
        elif where == "/jobs/fails":
            self._json(200, {"status": "failed", "error": {"message": f"see {_signed('ERRORTEXT')}"}})
        else:
            port = self.server.server_address[1]
            self._json(
                200,
                {
                    "status": "succeeded",
                    "url": f"http://127.0.0.1:{port}{where.replace('jobs', 'files')}?sig={CANARY['RESULTURL']}",
                },
            )

    def _file(self, nth: int) -> None:
        if nth == 1:
            self._fail(403, "ERRORTEXT")
        elif nth == 2 and self.path.startswith("/files/found"):
            self._redirect()
        elif nth == 2:
            self.close_connection = True
        else:
            self._send(200, b"a,b\n1,2\n", {"Content-Type": "text/csv"})

    def _redirect(self) -> None:
        self._send(302, b"", {"Location": f"https://storage.example/x?sig={CANARY['REDIRECT']}"})

    def _fail(self, status: int, place: str) -> None:
        self._json(status, {"error": {"message": f"internal error at {_signed(place)}"}})

    def _json(self, status: int, content: object, **headers: str) -> None:
        self._send(status, json.dumps(content).encode(), {"Content-Type": "application/json", **headers})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        type(self).said.append(f"{status} {headers} {body!r}")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _signed(place: str) -> str:
    return f"https://storage.example/o?X-Amz-Signature={CANARY[place]}"


def fails_aloud(operation: Any) -> None:
    """A follow-up whose error holds a signed URL."""
    raise RuntimeError(f"404 for https://storage.example/o?sig={CANARY['HANDLERERROR']}")


def takes_result(operation: Any) -> None:
    fetch_result(operation)


class Sinks:
    """Everything that is kept or shown, as text, by the name of the place."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def add(self, name: str, content: object) -> None:
        self.texts.append((name, str(content)))

    def add_error(self, name: str, error: BaseException | None) -> None:
        """As an error hook with local variables would show it: the frames of this library only."""
        seen: set[int] = set()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            self.add(name, repr(error))
            for frame, _ in traceback.walk_tb(error.__traceback__):
                if "jobtrack" in frame.f_globals.get("__name__", "").split(".")[0]:
                    self.add(f"{name}, locals of {frame.f_code.co_qualname}", _shown(frame.f_locals))
            error = error.__cause__ or error.__context__

    def names(self, beginning: str) -> list[str]:
        return [name for name, _ in self.texts if name.startswith(beginning)]

    def hits(self) -> list[str]:
        return sorted({f"{place} in {name}" for name, text in self.texts for place in PLACES if CANARY[place] in text})


def _shown(values: dict[str, Any]) -> str:
    with suppress(Exception):
        return repr(values)
    return ""


class Listening(logging.Handler):
    """All loggers at DEBUG, with the tracebacks they were given."""

    def __init__(self, sinks: Sinks) -> None:
        super().__init__(logging.DEBUG)
        self.sinks = sinks

    def emit(self, record: logging.LogRecord) -> None:
        self.sinks.add(f"log of {record.name}", record.getMessage())
        self.sinks.add(f"arguments of a line of {record.name}", record.args)
        if record.exc_info:
            self.sinks.add_error(f"traceback in the log of {record.name}", record.exc_info[1])


@contextmanager
def listening(sinks: Sinks) -> Iterator[None]:
    root, handler = logging.getLogger(), Listening(sinks)
    before = {name: logging.getLogger(name).level for name in ("", "httpx", "httpcore", "jobtrack", "django", "celery")}
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


@pytest.fixture
def provider() -> Iterator[int]:
    Provider.seen, Provider.said, Provider.counts = [], [], Counter()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = False  # closing it waits until every connection is closed
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()


@pytest.fixture
def site(settings: Any, tmp_path: Path, provider: int, monkeypatch: Any) -> Iterator[tuple[Rehearsal, Runtime]]:
    (tmp_path / "canary.yaml").write_text(TABLE.replace("{port}", str(provider)))
    monkeypatch.setenv("CANARY_CREDENTIAL", CANARY["CREDENTIAL"])
    monkeypatch.setenv("CANARY_WEBHOOK", webhook_secret())
    settings.MEDIA_ROOT = str(tmp_path / "media")
    settings.JOBTRACK = {
        "TABLES": [str(tmp_path)],
        "ALLOW_LOOPBACK": True,
        "CREDENTIALS": {"canary": {"default": "env:CANARY_CREDENTIAL"}},
        "WEBHOOKS": {"canary": {"default": ["env:CANARY_WEBHOOK"]}},
        "RESULT_SPOOL": str(tmp_path / "spool"),
    }
    app = Celery("canary", broker="memory://", set_as_current=False)
    app.conf.update(worker_send_task_events=True, task_send_sent_event=True)
    Channel.queues.clear()
    with rehearsal() as here:
        scheduler = CeleryScheduler(app=app, queue=conf.settings().queue)
        real = build_runtime()
        runtime = replace(here.runtime, transport=real.transport, files=real.files, scheduler=scheduler)
        try:
            with wiring.use_runtime(runtime), events_kept(app):
                yield here, runtime
        finally:
            real.transport.close()
            app.close()
    Channel.queues.clear()


@contextmanager
def events_kept(app: Celery) -> Iterator[None]:
    """Somebody listens to Celery's events, as Flower does: without a queue they would vanish unseen."""
    with app.connection_for_write() as there:
        queue = Queue(EVENTS, get_exchange(there), routing_key="#")(there.default_channel)
        queue.declare()
        try:
            yield
        finally:
            queue.delete()


@contextmanager
def a_commit_that_fails(monkeypatch: Any, operation_id: str) -> Iterator[None]:
    """The database fails once, in the middle of writing that the provider accepted the job."""
    left, ask = [operation_id], DjangoStore._ask

    def fails_once(self: DjangoStore, asked: Any, questions: Any) -> None:
        if asked.id in left and self.get([asked.id])[0].state is OperationState.RUNNING:
            left.remove(asked.id)
            raise DatabaseError("disk full")
        ask(self, asked, questions)

    with monkeypatch.context() as patched:
        patched.setattr(DjangoStore, "_ask", fails_once)
        yield
    assert left == [], "it was never asked to write an acceptance"


def webhook_secret() -> str:
    return "whsec_" + base64.b64encode(CANARY["WEBHOOKSECRET"].encode()).decode()


def work(here: Rehearsal, runtime: Runtime, *, rounds: int = 400) -> None:
    """What workers and sweepers do, on virtual time, until nothing is left."""
    for _ in range(rounds):
        due = runtime.store.due(limit=50, grace=timedelta(seconds=1))
        advance(runtime, due.operations)
        deliver(runtime, due.deliveries)
        if due.operations or due.deliveries:
            continue
        following = runtime.store.next_due_at()
        if following is None:
            return
        here.clock.advance_to(max(following, here.clock() + timedelta(seconds=1)))
    raise AssertionError("it never comes to rest")


def noticed(client: Any, sinks: Sinks, *, secret: str) -> int:
    body = json.dumps({"data": {"id": "direct", "note": CANARY["WEBHOOKBODY"]}})
    at = str(int(time.time()))  # a notice is as old as the machine's clock says
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mac = base64.b64encode(hmac.digest(key, f"n-1.{at}.{body}".encode(), "sha256")).decode()
    headers = {"webhook-id": "n-1", "webhook-timestamp": at, "webhook-signature": f"v1,{mac}"}
    url = reverse("jobtrack:webhook", args=["canary", "default"])
    response = client.post(url, body, content_type="application/json", headers=headers)
    sinks.add("answer to a webhook", response.content.decode())
    return int(response.status_code)


def dump_database(sinks: Sinks) -> None:
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(model._meta.db_table)}")  # noqa: S608
            for row in cursor.fetchall():
                sinks.add(f"table {model._meta.db_table}", [bytes(v) if isinstance(v, memoryview) else v for v in row])


def dump_files(sinks: Sinks, folder: Path) -> int:
    files = [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".yaml"]
    for file in files:
        sinks.add(f"file {file.relative_to(folder)}", [str(file), file.read_bytes()])
    return len(files)


def add_reported(name: str, error: BaseException, sinks: Sinks) -> None:
    """What an error page or mail of Django shows, but for the frames of this file: they are the caller's."""
    frames = ExceptionReporter(None, type(error), error, error.__traceback__).get_traceback_frames()
    ours = [frame for frame in frames if frame["filename"] != __file__]
    assert ours
    for frame in ours:
        sinks.add(f"{name}, variables of {frame['function']}", frame["vars"])
    sinks.add(name, "".join(traceback.format_exception(error)))


def dump_broker(sinks: Sinks) -> int:
    count = 0
    for name, queue in Channel.queues.items():
        for message in list(queue.queue):
            parts = json.loads(message) if isinstance(message, str | bytes) else message
            sinks.add(f"message in {name}", parts)
            sinks.add(f"message in {name}", base64.b64decode(parts["body"]))
            count += name != EVENTS
    return count


def read_pages(client: Any, sinks: Sinks) -> int:
    count = 0
    for model in admin.site._registry:
        if model._meta.app_label != "jobtrack":
            continue
        place = f"admin:jobtrack_{model._meta.model_name}"
        urls = [reverse(f"{place}_changelist")]
        urls += [reverse(f"{place}_change", args=[row.pk]) for row in model._default_manager.all()]
        urls += [url.replace("/change/", "/history/") for url in urls[1:]]
        for url in urls:
            response = client.get(url)
            assert response.status_code == 200, url
            sinks.add(f"page {url}", response.content.decode())
            count += 1
    for row in Operation.objects.all():
        sinks.add("outcome", json.dumps(row.outcome(), default=str))
        response = client.get(reverse("jobtrack:outcome", args=[row.pk]))
        sinks.add("outcome view", response.content.decode() + str(response.headers))
    return count


def read_decisions(client: Any, runtime: Runtime, sinks: Sinks) -> set[str]:
    """The page before each decision that is offered; returns which these are."""
    offered = set()
    for asked in Escalation.objects.open():
        (row,) = runtime.store.get([asked.operation_id])
        for option in options(Reason(asked.reason), row, runtime.tables.get(row.provider)):
            response = client.get(reverse("admin:jobtrack_escalation_decide", args=[asked.pk, option.value]))
            assert response.status_code == 200, (asked.reason, option)
            sinks.add(f"page before {option.value} of {asked.reason}", response.content.decode())
            offered.add(option.value)
    return offered


def read_commands(sinks: Sinks) -> None:
    for name, arguments in (("jobtrack_export_audit", []), ("jobtrack_list", []), *_shows()):
        out, errors = io.StringIO(), io.StringIO()
        call_command(name, *arguments, stdout=out, stderr=errors)
        assert out.getvalue()
        sinks.add(f"command {name}", out.getvalue() + errors.getvalue())


def _shows() -> list[tuple[str, list[str]]]:
    return [("jobtrack_show", [row.pk]) for row in Operation.objects.all()]


def test_no_canary_is_found_anywhere_but_at_the_provider(site, client, admin_client, tmp_path, monkeypatch) -> None:
    here, runtime = site
    sinks = Sinks()
    payload = {"secret": CANARY["PAYLOAD"], "header": CANARY["PAYLOADHEADER"]}
    with listening(sinks):
        for name in ("direct", "found", "never", "fails", "moved"):
            submit(
                "canary",
                operation_id=name,
                payload=payload,
                on_success=f"{__name__}.takes_result",
                on_end=f"{__name__}.fails_aloud",
            )
        track("canary", operation_id="op-tocancel", job_id="tocancel")
        cancel(Operation.objects.get(pk="op-tocancel"), actor="ada", reason="no longer wanted")
        with pytest.raises(IdempotencyConflict) as conflict:
            submit("canary", operation_id="direct", payload={**payload, "secret": CANARY["PAYLOAD"] + "2"})
        add_reported("error of submit()", conflict.value, sinks)
        assert noticed(client, sinks, secret=webhook_secret()) == 204
        assert noticed(client, sinks, secret="whsec_" + base64.b64encode(b"wrong").decode()) == 401
        dump_database(sinks)  # while secrets are still needed
        dump_broker(sinks)
        with a_commit_that_fails(monkeypatch, "direct"):
            work(here, runtime)
        dump_database(sinks)
        assert dump_broker(sinks) > 5
        files = dump_files(sinks, tmp_path)
        pages = read_pages(admin_client, sinks)
        offered = read_decisions(admin_client, runtime, sinks)
        read_commands(sinks)

    states = dict(Operation.objects.values_list("pk", "state"))
    assert states == {
        "direct": "succeeded",
        "found": "succeeded",
        "never": "escalated",
        "fails": "failed",
        "moved": "escalated",
        "op-tocancel": "cancelled",
    }
    results = dict(JobResult.objects.values_list("pk", "state"))
    assert results == {"direct": "complete", "found": "unavailable"}, list(JobResult.objects.values())
    assert Delivery.objects.filter(event="on_end").exclude(last_error="").count() == 3
    assert Escalation.objects.count() >= 3
    assert (pages > 10, files) == (True, 1)
    assert offered >= {"look_up", "attach_job", "resubmit", "look_again", "retry_delivery", "fetch_again", "close"}
    assert sinks.names("traceback in the log of jobtrack.flow.attempt, locals of _conclude")
    assert sinks.names(f"message in {EVENTS}")
    reached, said = "\n".join(Provider.seen), "\n".join(Provider.said)
    assert [place for place in TO_PROVIDER if CANARY[place] not in reached] == []
    assert [place for place in FROM_PROVIDER if CANARY[place] not in said] == []
    assert sinks.hits() == []


@pytest.mark.parametrize("function", [submit, async_to_sync(asubmit)], ids=["submit", "asubmit"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"payload": {"secret": CANARY["PAYLOAD"]}},  # the table wants a header as well
        {"payload": {"secret": CANARY["PAYLOAD"], "header": object()}},
        {"preconditions": {"If-Match": "1"}},
        {"on_end": "os.nothing"},
        {"colour": "red"},
    ],
    ids=["missing", "no JSON", "precondition", "follow-up", "unknown"],
)
def test_a_refused_argument_takes_no_payload_into_an_error_report(site, wrong, function) -> None:
    """Django's report shows the variables of every frame; those that read the payload lie below ``submit``."""
    payload = {"secret": CANARY["PAYLOAD"], "header": CANARY["PAYLOADHEADER"]}
    sinks = Sinks()
    with pytest.raises(UsageError) as refused:
        function("canary", **{"payload": payload, **wrong})
    add_reported("refusal", refused.value, sinks)
    assert sinks.names("refusal, variables of submit_many")
    assert sinks.hits() == []
