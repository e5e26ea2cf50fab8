"""Results over real sockets into a real storage: ``fetch_result`` from a caller's side (R-END-2, R-END-4, INV-33)."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.apps import apps
from django.core.files.storage import FileSystemStorage
from django.db import connections, transaction

from jobtrack.catalog import load_text
from jobtrack.core.actions import FetchSpec
from jobtrack.core.audit import GENESIS
from jobtrack.core.escalation import Option, Resolution
from jobtrack.core.operation import Budget, OperationState
from jobtrack.core.operation import Operation as Row
from jobtrack.core.reply import Answered
from jobtrack.errors import OperationNotFound, ResultNotReady, ResultUnavailable, UsageError
from jobtrack.flow.deliver import deliver
from jobtrack.flow.errand import Done
from jobtrack.flow.resolve import resolve
from jobtrack.ports import Runtime
from jobtrack.records import Followup, ResultState
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.provider import FakeProvider
from jobtrack.testing.runtime import memory_runtime
from jobtrack.transports import CredentialResolver, EgressPolicy, HttpxTransport
from jobtrack.worker import wiring
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.files import DjangoFiles
from jobtrack_django.models import Delivery, Escalation, Operation
from jobtrack_django.results import JobResult, fetch_result
from jobtrack_django.runtime import run_handler
from jobtrack_django.store import DjangoStore
from tests.catalog.builders import codes, table_text
from tests.core.builders import T0
from tests.flow.test_fetch import Site, listed, steps

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

CREDENTIAL = "CREDENTIALCANARY"
SIGNATURE = "X-Amz-Signature=SIGCANARY&X-Amz-Security-Token=TOKENCANARY"
STATUS = "/v1/jobs/job-1"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Got:
    """One request as a server saw it."""

    path: str
    query: str
    headers: dict[str, str]


Reply = Answered | Callable[[Got], Answered]


class Server:
    """A loopback peer with a script for each path; the last reply repeats. A body longer than told is cut short."""

    def __init__(self) -> None:
        self.replies: dict[str, list[Reply]] = {}
        self.seen: list[Got] = []
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path, _, query = self.path.partition("?")
                got = Got(path=path, query=query, headers={k.lower(): v for k, v in self.headers.items()})
                reply = server.reply(got)
                self.send_response(reply.status)
                named = {name.lower() for name, _ in reply.headers}
                for name, value in reply.headers:
                    self.send_header(name, value)
                if named.isdisjoint({"content-length", "x-no-length"}):
                    self.send_header("Content-Length", str(len(reply.body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *args: object) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.http.server_port}"
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def on(self, path: str, *replies: Reply) -> None:
        self.replies[path] = list(replies)

    def reply(self, got: Got) -> Answered:
        with self._lock:
            self.seen.append(got)
            script = self.replies.get(got.path) or [say(404)]
            chosen = script.pop(0) if len(script) > 1 else script[0]
        return chosen(got) if callable(chosen) else chosen

    def asked(self, path: str) -> list[Got]:
        return [got for got in self.seen if got.path == path]

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()


def say(status: int = 200, body: bytes = b"", **headers: str) -> Answered:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Answered(status=status, body=body, headers=named)


def doc(value: object, **headers: str) -> Answered:
    return say(200, json.dumps(value).encode(), Content_Type="application/json", **headers)


TABLE = """
jobtrack: 1
id: acme
name: ACME
docs: https://developer.acme.example/jobs
revision: 1
hosts: ["{api}"]
allow_loopback: true
auth: bearer
status:
  request: {{method: GET, path: "/v1/jobs/{{job_id}}"}}
  echo: /id
  state: /status
  states: {{pending: [running], success: [succeeded], failure: [failed]}}
  result: {{hosts: ["{files}"]}}
result:
  {result}
polling: {{first: 1s, base: 1s, factor: 2, cap: 5s}}
budget: {{deadline: 1h, status_requests: 40, transport_failures: 5, rate_limited: 5}}
examples:
  - {{reply: {{http: 200, json: {{id: job-1, status: running}}}}, means: pending}}
"""


@dataclass
class World:
    """A site of real parts; only the provider and its storage hosts are ours."""

    api: Server
    files: Server
    other: Server
    folder: Path
    runtime: Runtime | None = None

    def table(self, result: str) -> str:
        known = {"api": self.api.origin, "files": self.files.origin, "other": self.other.origin}
        return TABLE.format(result=result.format(**known), **known)

    def use(self, result: str) -> Runtime:
        clock = VirtualClock(datetime.now(UTC))
        credentials = CredentialResolver(
            references={"acme": {"default": "env:ACME_KEY"}}, environ={"ACME_KEY": CREDENTIAL}
        )
        transport = HttpxTransport(credentials, EgressPolicy(allow_loopback=True))
        base = memory_runtime(
            load_text(self.table(result), "acme.yaml"),
            provider=FakeProvider(clock),
            clock=clock,
            store=DjangoStore(),
            run_handler=run_handler,
        )
        files = DjangoFiles(storage=FileSystemStorage(location=self.folder / "kept"), spool=str(self.folder))
        self.runtime = replace(base, transport=transport, files=files, elapsed=time.monotonic)
        return self.runtime

    def succeeded(self, **document: object) -> str:
        """A job that has succeeded; its status tells more."""
        assert self.runtime is not None
        self.api.on(STATUS, doc({"id": "job-1", "status": "succeeded", **document}))
        return self.add(OperationState.SUCCEEDED)

    def add(self, state: OperationState) -> str:
        assert self.runtime is not None
        now = self.runtime.store.now()
        row = Row(
            id="op-1",
            provider="acme",
            account="default",
            job_id="job-1",
            state=state,
            budget=Budget(deadline=now, status_requests=5, transport_failures=5, rate_limited=5),
            created_at=now,
            accepted_at=now,
            observed_at=now,
            audit_head=GENESIS,
        )
        table = self.runtime.tables.get("acme")
        assert table is not None
        self.runtime.store.add([row], {"event": "test"}, table)
        return "op-1"

    def stored(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self.folder / "kept").rglob("*") if path.is_file()}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    servers = [Server() for _ in range(3)]
    made = World(*servers, folder=tmp_path)
    try:
        yield made
    finally:
        if made.runtime is not None:
            made.runtime.transport.close()  # type: ignore[attr-defined]
        for server in servers:
            server.close()


@pytest.fixture
def using(world: World) -> Iterator[Callable[[str], World]]:
    """Run with a table whose ``result`` is given."""
    with ExitStack() as stack:

        def use(result: str) -> World:
            stack.enter_context(wiring.use_runtime(world.use(result)))
            return world

        yield use


def pause_is_over() -> None:
    Delivery.objects.filter(event="result").update(due_at=LONG_AGO)


def content(result: JobResult) -> dict[str, bytes]:
    found = {}
    for file in result.files:
        with result.open(file.name) as stored:
            found[file.name] = stored.read()
    return found


LINK = "url: [/url]"


# --- one file -------------------------------------------------------------------------------------------


def test_not_there_not_there_there(using):
    """B039: the follow-up's own backoff carries it; one status read in all, and the job stays succeeded."""
    world = using(LINK)
    world.succeeded(url="/results/1")
    world.api.on("/results/1", say(404), say(404), say(200, b"# text", Content_Type="text/markdown"))
    for _ in range(2):
        with pytest.raises(ResultNotReady) as raised:
            fetch_result("op-1")
        assert type(raised.value) is ResultNotReady
        with pytest.raises(ResultNotReady):  # its pause runs: nothing is asked
            fetch_result("op-1")
        pause_is_over()
    result = fetch_result(Operation.objects.get())
    assert content(result) == {"result": b"# text"}
    assert (len(world.api.asked("/results/1")), len(world.api.asked(STATUS))) == (3, 1)
    assert result.files[0].sha256 == sha256(b"# text").hexdigest()
    assert Operation.objects.get().state == "succeeded"
    assert Delivery.objects.get().delivered_at is not None
    assert {got.headers["authorization"] for got in world.api.seen} == {f"Bearer {CREDENTIAL}"}
    assert fetch_result("op-1") == result  # and nothing is asked again
    assert len(world.api.seen) == 4


def test_a_cut_body_is_resumed(using):
    """R-READ-6: fewer bytes than told are no file; the rest is asked for under the first answer's validator."""
    world = using(f"{LINK}\n  ranges: true")
    world.succeeded(url=f"{world.files.origin}/r")
    whole = bytes(range(256)) * 400

    def rest(got: Got) -> Answered:
        start = int(got.headers["range"].removeprefix("bytes=").removesuffix("-"))
        told = f"bytes {start}-{len(whole) - 1}/{len(whole)}"
        return say(206, whole[start:], Content_Range=told, ETag='"v1"')

    cut = say(200, whole[:50_000], ETag='"v1"', Content_Length=str(len(whole)))
    world.files.on("/r", cut, rest)
    with pytest.raises(ResultNotReady):
        fetch_result("op-1")
    assert world.stored() == {}
    pause_is_over()
    assert content(fetch_result("op-1")) == {"result": whole}
    second = world.files.asked("/r")[1].headers
    assert (second["range"], second["if-range"]) == ("bytes=50000-", '"v1"')
    assert list(world.folder.glob("*.part")) == []


def test_a_redirect_to_storage_carries_no_credential(using):
    world = using(LINK + '\n  redirects: ["{other}"]')
    world.succeeded(url="/results/1")
    world.api.on("/results/1", say(302, Location=f"{world.other.origin}/o/1?{SIGNATURE}"))
    world.other.on("/o/1", say(200, b"x"))
    assert content(fetch_result("op-1")) == {"result": b"x"}
    (got,) = world.other.seen
    assert CREDENTIAL not in repr(got)
    assert "authorization" not in got.headers
    assert "x-request-id" not in got.headers


def test_a_redirect_elsewhere_is_not_followed(using):
    world = using(LINK)
    world.succeeded(url="/results/1")
    world.api.on("/results/1", say(302, Location=f"{world.other.origin}/o/1"))
    with pytest.raises(ResultUnavailable):
        fetch_result("op-1")
    assert world.other.seen == []


def everything_stored() -> str:
    rows = [repr(list(model.objects.values())) for model in apps.get_app_config("jobtrack").get_models()]
    return "\n".join(rows)


@pytest.mark.parametrize("code", [200, 403, 500, 302])
def test_a_signed_link_is_nowhere(using, code, caplog):
    """B063, INV-33: in no row, log record, exception or its causes, whatever comes of it."""
    caplog.set_level(logging.DEBUG)
    world = using(LINK)
    world.succeeded(url=f"{world.files.origin}/r?{SIGNATURE}")
    world.files.on("/r", say(code, b"x"))
    told = ""
    try:
        told = repr(fetch_result("op-1"))
    except ResultNotReady as error:
        told = repr(error) + repr(error.context) + repr(error.__cause__) + repr(error.__context__)
        frame = error.__traceback__
        while frame is not None:
            told += repr(frame.tb_frame.f_locals) if "jobtrack" in frame.tb_frame.f_code.co_filename else ""
            frame = frame.tb_next
    assert world.files.asked("/r")[0].query == SIGNATURE
    told += everything_stored() + caplog.text + repr([vars(record) for record in caplog.records])
    assert [word for word in ("SIGCANARY", "TOKENCANARY", CREDENTIAL) if word in told] == []


# --- what is no result ----------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [True, False])
def test_too_many_bytes_are_given_up_and_not_kept(using, declared):
    world = using(f"{LINK}\n  max_bytes: 1000")
    world.succeeded(url=f"{world.files.origin}/r")
    world.files.on("/r", say(200, b"x" * 1001) if declared else say(200, b"x" * 1001, X_No_Length="1"))
    with pytest.raises(ResultUnavailable, match="1000 bytes"):
        fetch_result("op-1")
    assert world.stored() == {}
    assert list(world.folder.glob("*.part")) == []
    assert Escalation.objects.get().reason == "result_unavailable"
    with pytest.raises(ResultUnavailable):  # a person decides: nothing more is asked
        fetch_result("op-1")
    assert len(world.files.seen) == 1


def test_a_person_who_lets_it_be_fetched_again(using):
    world = using(f"{LINK}\n  attempts: 1")
    world.succeeded(url=f"{world.files.origin}/r")
    world.files.on("/r", say(404), say(200, b"x"))
    with pytest.raises(ResultUnavailable, match="HTTP 404"):
        fetch_result("op-1")
    (asked,) = world.runtime.store.open_escalations("op-1")
    decision = Resolution(
        escalation_id=asked.id, option=Option.FETCH_AGAIN, actor="a person", reason="it is there", version=asked.version
    )
    resolve(world.runtime, decision)
    assert deliver(world.runtime, ["op-1:result"]) == 1
    assert content(fetch_result("op-1")) == {"result": b"x"}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (say(200, b"<html>", Content_Type="text/html"), "text/html"),
        (say(200, b""), "empty"),
        (say(200, b"x", Content_Length="2"), "no answer"),
    ],
)
def test_what_is_no_file_is_tried_again(using, reply, said):
    world = using(LINK)
    world.succeeded(url=f"{world.files.origin}/r")
    world.files.on("/r", reply, say(200, b"xy"))
    with pytest.raises(ResultNotReady, match=said):
        fetch_result("op-1")
    assert world.stored() == {}
    pause_is_over()
    assert content(fetch_result("op-1")) == {"result": b"xy"}


# --- other ways -------------------------------------------------------------------------------------------


def test_an_inline_value(using):
    world = using("value: /output")
    world.succeeded(output={"rows": [1, 2]})
    result = fetch_result("op-1")
    assert result.json() == {"rows": [1, 2]}
    assert result.file().content_type == "application/json"


def test_a_second_request(using):
    world = using("""request: {{path: "/v1/files/{{file_id}}/content"}}
  values: {{file_id: /output_file_id}}""")
    world.succeeded(output_file_id="file 7")
    world.api.on("/v1/files/file%207/content", say(200, b'{"a": 1}', Content_Type="application/json"))
    assert fetch_result("op-1").json("result") == {"a": 1}


def test_several_files(using):
    world = using("each: /files\n  url: [/href]\n  name: /name")
    hrefs = [{"href": f"{world.files.origin}/{name}?{SIGNATURE}", "name": f"{name}.csv"} for name in "ab"]
    world.succeeded(files=hrefs)
    for name in "ab":
        world.files.on(f"/{name}", say(200, name.encode()))
    result = fetch_result("op-1")
    assert content(result) == {"a.csv": b"a", "b.csv": b"b"}
    with pytest.raises(UsageError, match=r"'a\.csv', 'b\.csv'"):
        result.open()
    with pytest.raises(UsageError):
        result.open("c.csv")


@pytest.mark.parametrize(
    ("following", "first"),
    [
        ("{{token: /next, query: page}}", doc({"next": "2"})),
        ("{{header: X-Next, query: page}}", say(200, b"1", X_Next="2")),
        ("{{body: /next}}", doc({"next": "/v1/rows?page=2"})),
        ("{{link: true}}", say(200, b"1", Link='</v1/rows?page=2>; rel="next"')),
    ],
    ids=["token", "header", "url", "link"],
)
def test_pages(using, following, first):
    world = using(f"request: {{{{path: /v1/rows}}}}\n  next: {following}")
    world.succeeded()
    world.api.on("/v1/rows", first, doc({"last": True}))
    result = fetch_result("op-1")
    assert content(result) == {"result-1": first.body, "result-2": b'{"last": true}'}
    assert [got.query for got in world.api.asked("/v1/rows")] == ["", "page=2"]


# --- callers ------------------------------------------------------------------------------------------


def test_two_callers_at_once_make_one_download(using):
    world = using(LINK)
    world.succeeded(url=f"{world.files.origin}/r")
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Got) -> Answered:
        begun.set()
        go_on.wait(timeout=30)
        return say(200, b"x")

    world.files.on("/r", slow)
    found: list[object] = []

    def call() -> None:
        try:
            found.append(fetch_result("op-1"))
        finally:
            connections.close_all()

    first = threading.Thread(target=call)
    first.start()
    assert begun.wait(timeout=30)
    try:
        with pytest.raises(ResultNotReady, match="being fetched"):
            fetch_result("op-1")
    finally:
        go_on.set()
        first.join()
    assert fetch_result("op-1") == found[0]
    assert (len(world.files.seen), len(world.api.asked(STATUS))) == (1, 1)
    assert len(world.stored()) == 1


def test_it_is_refused_inside_a_transaction(using):
    """INV-03: nothing is sent while a transaction holds its locks."""
    world = using(LINK)
    world.succeeded(url=f"{world.files.origin}/r")
    with transaction.atomic(), pytest.raises(UsageError, match="wait=False"):
        fetch_result("op-1")
    assert world.api.seen == []


def test_asking_joins_the_callers_transaction(using):
    world = using(LINK)
    world.succeeded(url=f"{world.files.origin}/r")
    world.files.on("/r", say(200, b"x"))
    scheduler = world.runtime.scheduler

    class Undone(Exception):
        pass

    def undone() -> None:
        with transaction.atomic():
            assert fetch_result("op-1", wait=False).state is ResultState.WANTED
            raise Undone

    with pytest.raises(Undone):
        undone()
    assert (Delivery.objects.count(), scheduler.woken) == (0, [])
    with transaction.atomic():
        assert not fetch_result("op-1", wait=False).complete
        assert scheduler.woken == []
    assert scheduler.woken == ["op-1:result"]
    assert world.api.seen == []
    assert fetch_result("op-1").complete
    assert fetch_result("op-1", wait=False).complete


def test_only_what_has_succeeded_has_a_result(using):
    world = using(LINK)
    with pytest.raises(OperationNotFound):
        fetch_result("op-1")
    world.add(OperationState.FAILED)
    with pytest.raises(UsageError, match="failed"):
        fetch_result("op-1")


def test_a_table_without_a_result_is_named(using):
    world = using(LINK)
    world.succeeded(url="/r")
    table = world.runtime.tables.get("acme")
    world.runtime.tables.by_id["acme"] = replace(table, result=None)
    with pytest.raises(UsageError, match="acme"):
        fetch_result("op-1")


def test_what_is_not_complete_cannot_be_opened(using):
    world = using(LINK)
    world.succeeded(url="/r")
    with pytest.raises(ResultNotReady):
        fetch_result("op-1", wait=False).open()


stored_by_handler: list[bytes] = []


def store_report(operation: Operation) -> None:
    """A follow-up as the docs show it."""
    with fetch_result(operation).open() as file:
        stored_by_handler.append(file.read())


def test_a_follow_up_lets_not_ready_through_and_is_tried_again(using):
    """R-END-2: its own backoff; the operation is not touched, and the file is there at its second attempt."""
    world = using(LINK)
    world.succeeded(url="/results/1")
    world.api.on("/results/1", say(404), say(200, b"report"))
    stored_by_handler.clear()
    handler = Followup(event="on_success", handler="tests.django.test_results.store_report")
    world.runtime.store.note("op-1", {"event": "test"}, errand=handler)
    assert deliver(world.runtime, ["op-1:on_success"]) == 0
    row = Delivery.objects.get(event="on_success")
    assert (row.attempts, row.delivered_at, "ResultNotReady" in row.last_error) == (1, None, True)
    Delivery.objects.update(due_at=LONG_AGO)
    assert deliver(world.runtime, ["op-1:on_success"]) == 1
    assert stored_by_handler == [b"report"]
    assert Operation.objects.get().state == "succeeded"


def test_a_process_may_end_anywhere_and_the_next_try_completes_without_doubles(tmp_path, monkeypatch):
    """Crash enumeration of a fetch on the real store and a real storage: each file is there once."""
    clock, store = VirtualClock(T0), DjangoStore()
    monkeypatch.setattr(DatabaseNow, "virtual", clock)

    def site(number: int) -> tuple[Site, Path]:
        folder = tmp_path / str(number)
        files = DjangoFiles(storage=FileSystemStorage(location=folder), spool=str(tmp_path))
        return listed(id=f"op-{number}", clock=clock, kept_in=store, files=files), folder

    whole = steps(site(0)[0], kill_at=0)
    assert whole > 10
    for kill_at in range(1, whole + 1):
        crashed, folder = site(kill_at)
        steps(crashed, kill_at)
        clock.advance(timedelta(seconds=301))
        if Delivery.objects.get(operation_id=crashed.id).delivered_at is None:
            assert crashed.once() == Done(), kill_at
        result = store.result(crashed.id)
        assert result is not None
        assert result.state is ResultState.COMPLETE, kill_at
        stored = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert stored == {"a": b"a", "b": b"b"}, kill_at
        assert sorted(file.path.rpartition("/")[2] for file in result.files) == ["a", "b"], kill_at


# --- the page -------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_each_table_of_the_page_is_good(block):
    assert codes(table_text(top=block)) == []


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_each_program_of_the_page_is_one(block):
    compile(block, "results.md", "exec")


def test_the_page_names_everything_a_result_has():
    public = {name for name in dir(JobResult) if not name.startswith("_")} - {"operation_id", "link"}
    assert {name for name in public if f"`result.{name}" not in PAGE} == set()


def test_the_page_names_every_limit():
    limits = {field.name for field in fields(FetchSpec) if field.name in {"max_bytes", "total", "attempts", "types"}}
    assert {name for name in limits | {"ranges", "empty_ok"} if f"| `{name}` |" not in PAGE} == set()
