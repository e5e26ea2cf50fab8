"""R-SEC-3, INV-26, INV-27, S18: the view that hears providers, over HTTP."""

from __future__ import annotations

import hmac
import http.client
import io
import json
import logging
import re
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection, connections
from django.test import AsyncClient, Client
from django.urls import include, path, reverse
from django.utils import timezone

from jobtrack.catalog import check_text, load_text
from jobtrack.core.actions import WebhookScheme, WebhookSpec
from jobtrack.core.operation import Operation
from jobtrack.flow.hear import recall
from jobtrack.flow.poll import poll
from jobtrack.flow.track import Tracking, track
from jobtrack.ports import Runtime
from jobtrack.records import Receipt
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, VirtualClock, answer, memory_runtime, run_due
from jobtrack.worker import wiring
from jobtrack_django import conf

urlpatterns = [path("hooks/", include("jobtrack_django.urls"))]
pytestmark = pytest.mark.urls(__name__)

TABLE = """
jobtrack: 1
id: {id}
name: ACME
docs: https://developer.acme.example/jobs
revision: 1
hosts: ["https://api.acme.example"]
status:
  request: {{method: GET, path: "/v1/jobs/{{job_id}}"}}
  state: /status
  states: {{pending: [running], success: [succeeded], failure: [failed]}}
polling: {{first: 60s, base: 60s, factor: 1, cap: 60s, min_interval: 1s}}
budget: {{deadline: 1h, status_requests: 40, transport_failures: 5, rate_limited: 5}}
examples:
  - {{reply: {{http: 200, json: {{status: running}}}}, means: pending}}
"""
SCHEMES = {
    "acme": "webhook: {scheme: standard-webhooks, job_id: /data/id}",
    "pairs": 'webhook: {scheme: hmac, header: X-Sig, pairs: v1, timestamp: t, signed: [timestamp, ".", body], job_id: /id}',
    "square": "webhook: {scheme: hmac, header: X-Sig, encoding: base64, signed: [url, body], job_id: /id}",
    "events": "webhook: {scheme: hmac, header: X-Sig, events: /events, job_id: /links/id}",
    "plain": "webhook: {scheme: token, job_id: /id, max_bytes: 2000}",
    "big": "webhook: {scheme: token, job_id: /id, max_bytes: 400000}",
    "deaf": "",
}
KEY, OLD_KEY = b"new key of twenty-four by", b"old key of twenty-four by"
SECRET, OLD_SECRET = (("whsec_" + b64encode(key).decode()) for key in (KEY, OLD_KEY))
TOKEN = "canary-token-4f9a"
HMAC_SECRET = "canary-hmac-secret"


@pytest.fixture
def site(settings, monkeypatch) -> Iterator[Runtime]:
    """Tables of every scheme; the memory store, so that a request that asks the database is an error of the test."""
    monkeypatch.setenv("ACME_HOOK", SECRET)
    monkeypatch.setenv("ACME_HOOK_OLD", OLD_SECRET)
    monkeypatch.setenv("HMAC_HOOK", HMAC_SECRET)
    monkeypatch.setenv("TOKEN_HOOK", TOKEN)
    monkeypatch.delenv("NO_SUCH_HOOK", raising=False)
    shared = {"us": ["env:HMAC_HOOK"]}
    settings.JOBTRACK = {
        "WEBHOOKS": {
            "acme": {
                "us": ["env:ACME_HOOK", "env:ACME_HOOK_OLD"],
                "eu": ["env:ACME_HOOK_OLD"],
                "bad": ["env:NO_SUCH_HOOK"],
            },
            "pairs": shared,
            "square": shared,
            "events": shared,
            "deaf": shared,
            "gone": shared,
            "plain": {"us": ["env:TOKEN_HOOK"]},
        }
    }
    settings.ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
    clock = VirtualClock(timezone.now())
    provider = FakeProvider(clock)
    tables = [load_text(TABLE.format(id=name) + scheme + "\n", f"{name}.yaml") for name, scheme in SCHEMES.items()]
    runtime = memory_runtime(*tables, provider=provider, clock=clock, store=MemoryStore(clock))
    with wiring.use_runtime(runtime):
        yield runtime


@contextmanager
def changed(settings, runtime: Runtime, **keys: object) -> Iterator[None]:
    """Other settings, which make a process forget its runtime."""
    settings.JOBTRACK = settings.JOBTRACK | keys
    with wiring.use_runtime(runtime):
        yield


@pytest.fixture
def stored(site: Runtime) -> Iterator[Runtime]:
    """The same with real rows."""
    from jobtrack_django.store import DjangoStore

    runtime = replace(site, store=DjangoStore())
    with wiring.use_runtime(runtime):
        yield runtime


def body(job_id: str = "job-1", **more: object) -> bytes:
    return json.dumps({"type": "job.done", "data": {"id": job_id}, "id": job_id, **more}).encode()


def standard(content: bytes, *, notice: str = "n-1", key: bytes = KEY, at: datetime | None = None) -> dict[str, str]:
    """Headers of Standard Webhooks."""
    timestamp = int((at or timezone.now()).timestamp())
    signature = hmac.new(key, f"{notice}.{timestamp}.".encode() + content, "sha256").digest()
    return {
        "webhook-id": notice,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": "v1," + b64encode(signature).decode(),
    }


def post(where: str, content: bytes, headers: dict[str, str] | None = None, client: Client | None = None) -> Any:
    return (client or Client()).post(
        f"/hooks/webhooks/{where}/", content, content_type="application/json", headers=headers or {}
    )


def answer_of(response: Any) -> tuple[int, bytes, dict[str, str]]:
    return response.status_code, response.content, dict(response.headers)


def receipts(runtime: Runtime, provider: str = "acme", account: str = "us") -> list[Receipt]:
    return [one for one in runtime.store.receipts.values() if (one.provider, one.account) == (provider, account)]


# --- what is heard ----------------------------------------------------------------------------------


def test_a_verified_notice_is_stored_and_answered(site: Runtime) -> None:
    response = post("acme/us", body(), standard(body()))
    assert (response.status_code, response.content) == (204, b"")
    assert receipts(site) == [Receipt(provider="acme", account="us", notice_id="n-1", job_id="job-1")]


def test_a_notice_that_comes_again_is_answered_alike_and_stored_once(site: Runtime) -> None:
    first, second = (answer_of(post("acme/us", body(), standard(body()))) for _ in range(2))
    assert first == second
    assert len(receipts(site)) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", body(job_id=""), json.dumps({"data": None}).encode()])
def test_an_authentic_notice_that_names_no_job_is_acknowledged(site: Runtime, content: bytes) -> None:
    """Sending it again would not help."""
    assert post("acme/us", content, standard(content)).status_code == 204
    assert site.store.receipts == {}


@pytest.mark.parametrize("key", [KEY, OLD_KEY])
def test_both_secrets_count_during_a_rotation(site: Runtime, key: bytes) -> None:
    assert post("acme/us", body(), standard(body(), key=key)).status_code == 204


def test_a_changed_secret_counts_at_once(site: Runtime, monkeypatch) -> None:
    monkeypatch.setenv("ACME_HOOK", OLD_SECRET)
    assert post("acme/us", body(), standard(body(), key=KEY)).status_code == 401


def v1(content: bytes, timestamp: int) -> str:
    signature = hmac.new(HMAC_SECRET.encode(), f"{timestamp}.".encode() + content, "sha256").hexdigest()
    return f"t={timestamp},v1={signature}"


def test_a_list_of_pairs(site: Runtime) -> None:
    now = int(timezone.now().timestamp())
    assert post("pairs/us", body(), {"X-Sig": v1(body(), now)}).status_code == 204
    assert post("pairs/us", body(), {"X-Sig": v1(body(), now - 400)}).status_code == 401


def signed_url(url: str, content: bytes) -> dict[str, str]:
    return {"X-Sig": b64encode(hmac.new(HMAC_SECRET.encode(), url.encode() + content, "sha256").digest()).decode()}


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://testserver/hooks/webhooks/square/us/", 204),
        ("https://testserver/hooks/webhooks/square/us/", 401),
        ("http://testserver/hooks/webhooks/square/us", 401),
    ],
)
def test_a_signed_url_is_the_one_that_was_called(site: Runtime, url: str, status: int) -> None:
    assert post("square/us", body(), signed_url(url, body())).status_code == status


def test_behind_a_proxy_the_signed_url_starts_as_the_settings_say(site: Runtime, settings) -> None:
    public = "https://www.shop.example/hooks/webhooks/square/us/"
    internal = "http://testserver/hooks/webhooks/square/us/"
    with changed(settings, site, WEBHOOK_BASE_URL="https://www.shop.example"):
        assert post("square/us", body(), signed_url(public, body())).status_code == 204
        assert post("square/us", body(), signed_url(internal, body())).status_code == 401


def test_a_host_that_is_not_ours_proves_nothing(site: Runtime, settings) -> None:
    """Without CommonMiddleware nobody has looked at the host before us."""
    settings.MIDDLEWARE = []
    url = "http://evil.example/hooks/webhooks/square/us/"
    response = Client(SERVER_NAME="evil.example").post(
        "/hooks/webhooks/square/us/", body(), content_type="application/json", headers=signed_url(url, body())
    )
    assert response.status_code == 401


def test_many_events_in_one_notice(site: Runtime) -> None:
    content = json.dumps({"events": [{"links": {"id": one}} for one in ("a", "b", "a")]}).encode()
    signature = {"X-Sig": hmac.new(HMAC_SECRET.encode(), content, "sha256").hexdigest()}
    assert post("events/us", content, signature).status_code == 204
    assert [one.job_id for one in receipts(site, "events")] == ["a", "b"]


@pytest.mark.parametrize(("where", "status"), [(f"plain/us/{TOKEN}", 204), ("plain/us/other", 401), ("plain/us", 401)])
def test_a_token_at_the_end_of_the_path(site: Runtime, where: str, status: int) -> None:
    assert post(where, body()).status_code == status
    assert len(receipts(site, "plain")) == (status == 204)


def test_the_addresses_have_names(site: Runtime) -> None:
    assert reverse("jobtrack:webhook", args=["acme", "us"]) == "/hooks/webhooks/acme/us/"
    assert reverse("jobtrack:webhook-token", args=["acme", "us", "t"]) == "/hooks/webhooks/acme/us/t/"


def test_an_address_without_its_last_slash_is_heard(site: Runtime) -> None:
    response = Client().post("/hooks/webhooks/acme/us", body(), content_type="text/plain", headers=standard(body()))
    assert response.status_code == 204


def test_no_cookie_no_login_and_no_csrf_token_is_needed(site: Runtime, settings) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.contrib.auth.middleware.LoginRequiredMiddleware"]
    response = post("acme/us", body(), standard(body()), client=Client(enforce_csrf_checks=True))
    assert response.status_code == 204
    assert response.cookies == {}


def test_an_asynchronous_site_hears_too(site: Runtime) -> None:
    client = AsyncClient()
    response = async_to_sync(client.post)(
        "/hooks/webhooks/acme/us/", body(), content_type="application/json", headers=standard(body())
    )
    assert response.status_code == 204
    assert len(receipts(site)) == 1


def test_a_thousand_valid_notices_cost_one_look(site: Runtime) -> None:
    """INV-26. The next look after it comes at its own time, a minute later."""
    provider: Any = site.transport
    clock: Any = site.store.clock
    provider.script("job-1", answer(json={"status": "running"}))
    (row,) = track(site, [Tracking(provider="acme", account="us", operation_id="op-1", job_id="job-1")], announce=False)
    run_due(site, clock, until=row.wake_at)
    first = clock()
    clock.advance(5)
    client = Client()
    for number in range(1000):
        assert post("acme/us", body(), standard(body(), notice=f"n-{number}"), client=client).status_code == 204
    run_due(site, clock, until=clock() + timedelta(seconds=50))
    assert [(seen.at - first).total_seconds() for seen in provider.requests("job-1")] == [0, 5]
    assert len(receipts(site)) == 1000


# --- what is refused --------------------------------------------------------------------------------

HOUR = timedelta(hours=1)


def forged() -> dict[str, tuple[str, bytes, dict[str, str]]]:
    """Address, body and headers of requests that prove nothing, whatever exists; signed now."""
    good, now = standard(body()), timezone.now()
    cut = good | {"webhook-signature": good["webhook-signature"][:-8]}
    again = json.dumps(json.loads(body()), indent=1).encode()
    return {
        "wrong": ("acme/us", body(), standard(body(), key=b"x" * 24)),
        "of an unknown job": ("acme/us", body("job-404"), standard(body("job-404"), key=b"x" * 24)),
        "missing": ("acme/us", body(), {}),
        "truncated": ("acme/us", body(), cut),
        "another body": ("acme/us", body("job-2"), good),
        "another account's": ("acme/eu", body(), good),
        "old": ("acme/us", body(), standard(body(), at=now - HOUR)),
        "future": ("acme/us", body(), standard(body(), at=now + HOUR)),
        "encoded again": ("acme/us", again, good),
        "not UTF-8": ("acme/us", b"\xff\xfe\x00", {}),
        "with NUL": ("acme/us", body(), good | {"webhook-id": "n\x00"}),
        "not ASCII": ("acme/us", body(), good | {"webhook-signature": "v1,ü"}),
        "joined": ("acme/us", body(), good | {"webhook-id": "n-1,n-2"}),
        "with a token": (f"acme/us/{TOKEN}", body(), good),
        "to an unknown account": ("acme/xx", body(), good),
        "to an unknown provider": ("nobody/us", body(), good),
        "to an unknown provider with a token": (f"nobody/us/{TOKEN}", body(), good),
        "to a provider without a table": ("gone/us", body(), good),
        "to a table without a webhook": ("deaf/us", body(), good),
        "without a secret here": ("acme/bad", body(), good),
        "without a declared secret": ("big/us/x", body(), good),
        "wrong token": ("plain/us/wrong", body(), {}),
        "no token": ("plain/us", body(), {}),
        "empty": ("acme/us", b"", {}),
        "too large for its table": (f"plain/us/{TOKEN}", b"{" + b" " * 2000 + b"}", {}),
    }


@pytest.mark.parametrize("name", forged())
def test_what_proves_nothing_gets_one_answer_and_writes_nothing(site: Runtime, name: str) -> None:
    """Byte for byte: no answer tells what exists here (INV-27). No query is made: this test has no database."""
    (row,) = track(site, [Tracking(provider="acme", account="us", operation_id="op-1", job_id="job-1")], announce=False)
    reference = answer_of(post("nobody/here", b"{}"))
    assert reference[:2] == (401, b"")
    assert answer_of(post(*forged()[name])) == reference
    assert site.store.get(["op-1"]) == [row]
    assert site.store.receipts == {}


@pytest.mark.parametrize("provider", ["%0a%1b%5b31m", "..", "%00", "a" * 3000, "%C3%BC", "con.yaml"])
def test_hostile_names_in_the_address_get_it_too(site: Runtime, provider: str, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    for where in (f"{provider}/us", f"acme/{provider}", f"plain/us/{provider}"):
        assert answer_of(post(where, body())) == answer_of(post("nobody/here", b"{}"))
    assert "\x1b" not in caplog.text
    assert "a" * 200 not in caplog.text


def test_a_replay_writes_nothing_to_operations(site: Runtime) -> None:
    track(site, [Tracking(provider="acme", account="us", operation_id="op-1", job_id="job-1")], announce=False)
    headers = standard(body())
    post("acme/us", body(), headers)
    before = site.store.get(["op-1"])
    assert post("acme/us", body(), headers).status_code == 204
    assert site.store.get(["op-1"]) == before


@pytest.mark.parametrize("method", ["get", "head", "put", "patch", "delete", "options", "trace"])
def test_other_methods(site: Runtime, method: str) -> None:
    answers = {
        str(answer_of(getattr(Client(), method)(f"/hooks/webhooks/{where}/")))
        for where in ("acme/us", "nobody/us", f"plain/us/{TOKEN}")
    }
    assert len(answers) == 1
    response = getattr(Client(), method)("/hooks/webhooks/acme/us/")
    assert (response.status_code, response["Allow"]) == (405, "POST")


# --- sizes ------------------------------------------------------------------------------------------


class Counting(io.RawIOBase):
    """A body of a given length that counts what was read of it."""

    def __init__(self, content: bytes) -> None:
        self.rest, self.taken = io.BytesIO(content), 0

    def read(self, size: int = -1) -> bytes:
        part = self.rest.read(size)
        self.taken += len(part)
        return part


def send(where: str, stream: Counting, length: int | None, **environ: Any) -> Any:
    """A request whose body is read from `stream`; `length` None: chunked."""
    extra: dict[str, Any] = {"wsgi.input": stream, "CONTENT_LENGTH": "" if length is None else str(length)}
    if length is None:
        extra["HTTP_TRANSFER_ENCODING"] = "chunked"
    return Client().generic("POST", f"/hooks/webhooks/{where}/", b"", **extra, **environ)


FIVE_MB = 5_000_000
LIMIT = 1 << 18


@pytest.mark.parametrize("where", ["acme/us", "nobody/us", f"plain/us/{TOKEN}", "acme/bad"])
def test_a_large_body_is_refused_unread_and_alike_everywhere(site: Runtime, where: str) -> None:
    stream = Counting(b" " * FIVE_MB)
    response = send(where, stream, FIVE_MB)
    assert (response.status_code, response.content, stream.taken) == (413, b"", 0)


def test_a_length_that_lies_is_found_out(site: Runtime) -> None:
    stream = Counting(b" " * FIVE_MB)
    assert send("acme/us", stream, 10).status_code == 401
    assert stream.taken == 10


@pytest.mark.parametrize("length", ["9" * 400, "-1", "1e3", "²", "0x10"])
def test_lengths_that_are_none(site: Runtime, length: str) -> None:
    extra = {"wsgi.input": Counting(b""), "CONTENT_LENGTH": length}
    assert Client().generic("POST", "/hooks/webhooks/acme/us/", b"", **extra).status_code in (401, 413)


@pytest.mark.parametrize("where", ["acme/us", "nobody/us"])
def test_a_chunked_body_is_read_up_to_the_limit(site: Runtime, where: str) -> None:
    stream = Counting(b" " * FIVE_MB)
    response = send(where, stream, None, **{"wsgi.input_terminated": True})
    assert (response.status_code, stream.taken) == (413, LIMIT + 1)


def test_a_chunked_body_is_heard(site: Runtime) -> None:
    headers = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in standard(body()).items()}
    response = send("acme/us", Counting(body()), None, **{"wsgi.input_terminated": True}, **headers)
    assert response.status_code == 204
    assert len(receipts(site)) == 1


def test_a_chunked_body_without_an_end_is_refused(site: Runtime) -> None:
    stream = Counting(body())
    assert send("acme/us", stream, None).status_code == 411
    assert stream.taken == 0


def test_the_largest_limit_of_all_tables_counts_for_every_address(site: Runtime, settings) -> None:
    """Else the size at which an address changes its answer would tell that its table exists."""
    webhooks = settings.JOBTRACK["WEBHOOKS"] | {"big": {"us": ["env:TOKEN_HOOK"]}}
    padded = body() + b" " * (LIMIT + 1)
    with changed(settings, site, WEBHOOKS=webhooks):
        assert post(f"big/us/{TOKEN}", padded).status_code == 204
        for where in ("acme/us", "nobody/us", f"plain/us/{TOKEN}", "big/us/wrong"):
            assert post(where, padded, standard(padded)).status_code == 401
            assert post(where, padded + b" " * 200_000).status_code == 413


@pytest.mark.parametrize("extra", [0, 1])
def test_the_limit_is_exact(site: Runtime, extra: int) -> None:
    content = body() + b" " * (2000 - len(body()) + extra)
    assert post(f"plain/us/{TOKEN}", content).status_code == (401 if extra else 204)


# --- trouble ----------------------------------------------------------------------------------------


def test_a_database_that_is_down_is_told_to_the_provider(site: Runtime, monkeypatch, caplog) -> None:
    caplog.set_level(logging.DEBUG)

    def down(_: object) -> list[bool]:
        raise OperationalError("could not connect as user:canary-password")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "receive", lambda self, receipts: down(receipts))
        response = post("acme/us", body(), standard(body()))
    assert (response.status_code, response.content, response["Retry-After"]) == (503, b"", "30")
    assert "canary" not in caplog.text
    assert "OperationalError" in caplog.text
    assert post("acme/us", body(), standard(body())).status_code == 204
    assert len(receipts(site)) == 1


def test_a_hint_that_fails_is_no_failure_of_the_notice(site: Runtime, monkeypatch, caplog) -> None:
    """The receipt is committed; the look comes at its own time."""

    def down(*_: object) -> list[str]:
        raise OperationalError("canary-password")

    monkeypatch.setattr(MemoryStore, "hint", down)
    assert post("acme/us", body(), standard(body())).status_code == 204
    assert len(receipts(site)) == 1
    assert "canary" not in caplog.text
    assert "OperationalError" in caplog.text


def test_settings_that_cannot_be_used_are_told_as_trouble(site: Runtime, settings) -> None:
    with changed(settings, site, WEBHOOKS=7):
        assert post("acme/us", body(), standard(body())).status_code == 503


def test_no_log_line_holds_a_secret_the_body_or_the_path(site: Runtime, caplog) -> None:
    """At DEBUG, and in what a formatter could print of a record (INV-33)."""
    caplog.set_level(logging.DEBUG)
    content = body(note="canary-body")
    good = standard(content)
    for where, headers in [
        ("acme/us", good),
        ("acme/us", good),
        ("acme/us", good | {"webhook-id": "canary-id"}),
        ("acme/bad", good),
        (f"plain/us/{TOKEN}", {}),
        (f"plain/us/{TOKEN}x", {}),
        (f"acme/us/{TOKEN}", good),
        (f"plain/{TOKEN}", {}),  # the account was forgotten in the address
        (f"{TOKEN}/us", {}),
    ]:
        post(where, content, headers)
    Client().get(f"/hooks/webhooks/plain/us/{TOKEN}/")
    Client().post(f"/hooks/webhooks/plain/us/{TOKEN}", b" " * FIVE_MB, content_type="text/plain")
    ours = [record for record in caplog.records if record.name == "jobtrack.webhooks"]
    assert len(ours) == 11
    said = " ".join(str(vars(record)) + record.getMessage() for record in caplog.records)
    signatures = [good["webhook-signature"], good["webhook-signature"].removeprefix("v1,")]
    for secret in (TOKEN, SECRET, HMAC_SECRET, "canary", "hooks/", *signatures):
        assert secret not in said
    assert any("acme/us: stored" in record.getMessage() for record in ours)


# --- with real rows ---------------------------------------------------------------------------------


def tracked(runtime: Runtime, job_id: str = "job-1", operation_id: str = "op-1") -> Operation:
    """A row that was looked at once and is parked for a minute."""
    from jobtrack_django import models

    wanted = Tracking(provider="acme", account="us", operation_id=operation_id, job_id=job_id)
    track(runtime, [wanted], announce=False)
    now = runtime.store.now()
    models.Operation.objects.filter(pk=operation_id).update(
        hint_floor=now - timedelta(seconds=1), wake_at=now + timedelta(minutes=1), not_before=now + timedelta(minutes=1)
    )
    (row,) = runtime.store.get([operation_id])
    return row


@pytest.mark.database
@pytest.mark.django_db
def test_many_valid_notices_move_a_row_once(stored: Runtime) -> None:
    """INV-26, from the request to the provider's own log."""
    provider: Any = stored.transport
    provider.script("job-1", answer(json={"status": "running"}))
    before = tracked(stored)
    for number in range(50):
        assert post("acme/us", body(), standard(body(), notice=f"n-{number}")).status_code == 204
    scheduler: Any = stored.scheduler
    assert scheduler.woken == ["op-1"]
    (moved,) = stored.store.get(["op-1"])
    assert (moved.state, moved.spent, moved.audit_seq) == (before.state, before.spent, before.audit_seq)
    assert provider.log == []
    assert len(poll(stored, ["op-1"])) == 1
    assert poll(stored, ["op-1"]) == []
    assert len(provider.requests("job-1")) == 1


@pytest.mark.database
@pytest.mark.django_db
def test_a_notice_before_the_acceptance_waits_for_it(stored: Runtime) -> None:
    assert post("acme/us", body(), standard(body())).status_code == 204
    row = tracked(stored)
    assert recall(stored, row) == ["op-1"]
    (moved,) = stored.store.get(["op-1"])
    assert moved.wake_at < row.wake_at
    assert recall(stored, moved) == []


@pytest.mark.database
@pytest.mark.django_db
def test_forged_notices_write_no_row(stored: Runtime, django_assert_num_queries) -> None:
    from jobtrack_django import models

    before = tracked(stored)
    with django_assert_num_queries(0):
        for row in forged().values():
            assert post(*row).status_code == 401
    assert stored.store.get(["op-1"]) == [before]
    assert models.WebhookReceipt.objects.count() == 0


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_the_receipt_is_committed_before_the_answer_under_atomic_requests(stored: Runtime, monkeypatch) -> None:
    """Another connection sees it while the view still runs; and a hint that fails does not take it back."""
    from jobtrack_django import models, webhooks

    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
    seen: list[object] = []

    def bring_forward(runtime: Runtime, fresh: list[Receipt]) -> list[str]:
        seen.append(connection.in_atomic_block)
        other = threading.Thread(target=lambda: seen.append(elsewhere()))
        other.start()
        other.join(20)
        raise OperationalError("as if the database went away")

    def elsewhere() -> int:
        try:
            return models.WebhookReceipt.objects.count()
        finally:
            connection.close()

    monkeypatch.setattr(webhooks.hear, "bring_forward", bring_forward)
    assert post("acme/us", body(), standard(body())).status_code == 204
    assert seen == [False, 1]


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_over_real_sockets(stored: Runtime, live_server) -> None:
    """A real server: answers to what proves nothing are the same bytes; a real notice moves a real row."""
    before = tracked(stored)
    host, port = live_server.thread.host, live_server.thread.port

    def exchange(where: str, content: Any, headers: dict[str, str], *, chunked: bool = False) -> tuple[int, bytes]:
        link = http.client.HTTPConnection(host, port, timeout=20)
        link.request("POST", f"/hooks/webhooks/{where}/", content, headers, encode_chunked=chunked)
        response = link.getresponse()
        shown = b"\n".join(f"{k}: {v}".encode() for k, v in response.getheaders() if k != "Date")
        answered = response.status, shown + b"\n\n" + response.read()
        link.close()
        return answered

    wrong = standard(body(), key=b"x" * 24)
    answers = {
        exchange(where, body(job), wrong)
        for where in ("acme/us", "acme/xx", "nobody/us", "acme/bad", f"plain/us/{TOKEN}x")
        for job in ("job-1", "job-404")
    }
    assert [status for status, _ in answers] == [401]
    assert exchange("acme/us", b" " * 300_000, wrong)[0] == 413
    assert exchange("acme/us", iter([body()]), {"Transfer-Encoding": "chunked"}, chunked=True)[0] == 411
    assert stored.store.get(["op-1"]) == [before]

    assert exchange("acme/us", body(), standard(body()))[0] == 204
    (moved,) = stored.store.get(["op-1"])
    assert (moved.wake_at < before.wake_at, moved.delay_source, moved.state) == (True, "webhook", before.state)
    twice = [exchange("acme/us", body(), standard(body()))[0] for _ in range(2)]
    assert twice == [204, 204]
    assert stored.store.get(["op-1"]) == [moved]


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_one_notice_that_comes_many_times_at_once_is_stored_once(stored: Runtime) -> None:
    from jobtrack_django import models

    tracked(stored)
    start, statuses = threading.Barrier(8), []

    def deliver(number: int) -> None:
        try:
            start.wait(20)
            notice = "n-same" if number % 2 else f"n-{number}"
            statuses.append(post("acme/us", body(), standard(body(), notice=notice)).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=deliver, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert statuses == [204] * 8
    assert models.WebhookReceipt.objects.count() == 5
    scheduler: Any = stored.scheduler
    assert scheduler.woken == ["op-1"]


# --- docs -------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "webhooks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
def test_every_table_of_the_page_is_good(block: str) -> None:
    checked = check_text(TABLE.format(id="acme") + block, "acme.yaml")
    assert [str(finding) for finding in checked.findings if finding.path.startswith("webhook")] == []
    assert checked.table is not None
    assert checked.table.webhook is not None


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_every_code_block_of_the_page_runs(block: str) -> None:
    found: dict[str, Any] = {}
    exec(compile(block, "webhooks.md", "exec"), found)  # noqa: S102 - our own page
    if "JOBTRACK" in found:
        assert conf.read(found["JOBTRACK"])[1] == []


def test_the_signer_of_the_page_signs(site: Runtime) -> None:
    block = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[-1]
    found: dict[str, Any] = {}
    exec(compile(block, "webhooks.md", "exec"), found)  # noqa: S102 - our own page
    assert post("acme/us", body(), found["signed"](SECRET, body())).status_code == 204


def test_every_key_of_a_webhook_and_every_status_is_on_the_page() -> None:
    keys = {field.name for field in fields(WebhookSpec)}
    assert {key for key in keys if f"`{key}`" not in PAGE} == set()
    assert {scheme for scheme in WebhookScheme if f"`{scheme}`" not in PAGE} == set()
    assert re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE) == ["204", "401", "405", "411", "413", "503"]
