"""The simulated provider behaves as its scenarios say, on the wire."""

from __future__ import annotations

import http.client
import http.server
import json
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from example_project.behaviour import SCRIPTS
from example_project.notices import Notices
from example_project.scenarios import SCENARIOS
from example_project.simulator import Simulator
from jobtrack.core.actions import WebhookScheme, WebhookSpec
from jobtrack.core.webhook import Refused, Verified, verify

TOKEN = "a-token-for-tests"
SECRET, OTHER = (f"whsec_{b64encode(each * 24).decode()}" for each in (b"a", b"b"))


class Reply(NamedTuple):
    http: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def running(folder: Path, **options: Any) -> Iterator[Simulator]:
    with Simulator(port=0, token=TOKEN, log_path=folder / "acme.jsonl", **options) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    with running(tmp_path, settle_s=0.0, slow_s=0.3) as server:
        yield server


def ask(
    simulator: Simulator,
    method: str,
    path: str,
    body: object = None,
    *,
    token: str = TOKEN,
    within_s: float = 5,
    **headers: str,
) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", simulator.server_port, timeout=within_s)
    named = {"Authorization": f"Bearer {token}", "X-Request-Id": "op-1:3"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=named)
        answer = connection.getresponse()
        return Reply(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def create(simulator: Simulator, scenario: str) -> str:
    reply = ask(simulator, "POST", "/v1/exports", {"scenario": scenario})
    assert reply.http == 202
    return reply.json["id"]


def looks(simulator: Simulator, job: str, times: int) -> list[Reply]:
    return [ask(simulator, "GET", f"/v1/exports/{job}") for _ in range(times)]


@pytest.mark.parametrize(
    ("scenario", "states"),
    [
        ("success", ["queued", "running", "running", "succeeded", "succeeded"]),
        ("failure", ["running", "failed", "failed"]),
        ("cancelled", ["running", "canceled"]),
        ("expired", ["queued", "expired"]),
        ("unknown", ["running", "paused", "paused", "running", "succeeded"]),
        ("stuck", ["running"] * 6),
        ("no-result", ["running", "succeeded"]),
    ],
)
def test_states_come_in_the_order_of_the_script_and_the_last_one_stays(
    simulator: Simulator, scenario: str, states: list[str]
) -> None:
    job = create(simulator, scenario)
    assert [reply.json["status"] for reply in looks(simulator, job, len(states))] == states


@pytest.mark.parametrize(
    ("scenario", "codes"),
    [
        ("retry-after", [200, 503, 200]),
        ("rate-limited", [429, 429, 429, 429]),
        ("unauthorized", [200, 401, 401]),
        ("html", [200, 200]),
        ("wrong-id", [200, 200]),
    ],
)
def test_http_codes_of_the_misbehaving_scenarios(simulator: Simulator, scenario: str, codes: list[int]) -> None:
    job = create(simulator, scenario)
    assert [reply.http for reply in looks(simulator, job, len(codes))] == codes


def test_success_carries_a_result_and_no_result_does_not(simulator: Simulator) -> None:
    good = looks(simulator, create(simulator, "success"), 4)[-1].json
    bad = looks(simulator, create(simulator, "no-result"), 2)[-1].json
    assert (good["result"]["rows"], "result" in bad) == (1204, False)
    assert good["result"]["url"].startswith(f"{simulator.base}/files/exp_")


def test_the_busy_answer_says_how_long_to_wait(simulator: Simulator) -> None:
    busy = looks(simulator, create(simulator, "retry-after"), 2)[-1]
    assert (busy.http, busy.headers["Retry-After"]) == (503, "2")


def test_too_many_requests_come_without_any_guidance(simulator: Simulator) -> None:
    (reply,) = looks(simulator, create(simulator, "rate-limited"), 1)
    assert (reply.headers["Retry-After"], reply.json) == (None, {"error": {"message": "Too many requests."}})


def test_the_web_page_looks_like_success_to_a_careless_reader(simulator: Simulator) -> None:
    page = looks(simulator, create(simulator, "html"), 2)[-1]
    assert (page.http, page.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b"succeeded" in page.body


def test_the_wrong_id_is_not_the_one_asked_for(simulator: Simulator) -> None:
    job = create(simulator, "wrong-id")
    assert [reply.json["id"] == job for reply in looks(simulator, job, 2)] == [True, False]


def test_the_trickle_sends_its_head_at_once_and_its_body_slower_than_anyone_waits(simulator: Simulator) -> None:
    job = create(simulator, "trickle")
    connection = http.client.HTTPConnection("127.0.0.1", simulator.server_port, timeout=5)
    began = time.monotonic()
    connection.request("GET", f"/v1/exports/{job}", headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    first = answer.read(2)
    took = time.monotonic() - began
    connection.close()
    assert (answer.status, first, answer.length) == (200, b"  ", 58)
    assert 0.4 < took < 3


@pytest.mark.parametrize(("token", "code"), [(TOKEN, 202), ("another", 401), ("", 401), ("ä", 401)])
def test_every_request_needs_the_token(simulator: Simulator, token: str, code: int) -> None:
    assert ask(simulator, "POST", "/v1/exports", {"scenario": "success"}, token=token).http == code


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/v1/exports/exp_unknown", None, 404),
        ("GET", "/elsewhere", None, 404),
        ("GET", "/files/exp_unknown.csv", None, 403),
        ("POST", "/v1/exports/exp_unknown/cancel", {}, 404),
        ("POST", "/v1/exports", {"scenario": "nonsense"}, 422),
        ("POST", "/v1/exports", ["success"], 400),
        ("POST", "/scenarios/exp_unknown", {"scenario": "success"}, 404),
        ("POST", "/scenarios/exp_unknown", {}, 422),
    ],
)
def test_what_is_not_there_is_refused(simulator: Simulator, method: str, path: str, body: object, code: int) -> None:
    reply = ask(simulator, method, path, body)
    assert (reply.http, list(reply.json["error"])) == (code, ["message"])


def test_a_job_can_be_switched_to_another_scenario(simulator: Simulator) -> None:
    job = create(simulator, "unknown")
    before = [reply.json["status"] for reply in looks(simulator, job, 2)]
    ask(simulator, "POST", f"/scenarios/{job}", {"scenario": "success"})
    after = [reply.json["status"] for reply in looks(simulator, job, 4)]
    assert (before, after) == (["running", "paused"], ["queued", "running", "running", "succeeded"])


def test_the_log_names_job_answer_and_request_id_of_every_request(simulator: Simulator) -> None:
    job = create(simulator, "retry-after")
    looks(simulator, job, 2)
    seen = ask(simulator, "GET", "/log").json
    rows = [(entry["kind"], entry["made"], entry["word"], entry["http"], entry["wait_s"]) for entry in seen]
    assert rows == [
        ("submit", job, "accepted", 202, 0),
        ("status", "", "running", 200, 1),
        ("status", "", "busy", 503, 2),
    ]
    assert {entry["job"] for entry in seen} == {job}
    assert {entry["request_id"] for entry in seen} == {"op-1:3"}
    assert [json.loads(line) for line in simulator.ledger.log_path.read_text().splitlines()] == seen


# --- submissions ----------------------------------------------------------------------------------------


def submit(simulator: Simulator, scenario: str, operation: str = "op-1", **options: Any) -> Reply | str:
    """A submission; the name of what went wrong if there was no answer."""
    headers = {"X_Request_Id": f"{operation}:1", **options}
    try:
        return ask(simulator, "POST", "/v1/exports", {"scenario": scenario}, **headers)
    except (ConnectionError, TimeoutError) as error:
        return type(error).__name__


def made(simulator: Simulator) -> dict[str, int]:
    """Exports that were made, by the operation that asked for them: the truth."""
    counted = Counter(e["request_id"].rpartition(":")[0] for e in simulator.ledger.seen() if e["made"])
    return dict(counted)


def listed(simulator: Simulator, reference: str, page: int = 1) -> Any:
    return ask(simulator, "GET", f"/v1/exports?reference={reference}&page={page}").json


def test_an_acceptance_names_the_job_and_where_to_ask(simulator: Simulator) -> None:
    reply = submit(simulator, "success")
    assert isinstance(reply, Reply)
    assert (reply.http, reply.headers["Location"]) == (202, f"/v1/exports/{reply.json['id']}")


def test_a_key_that_is_known_leads_to_the_first_export(simulator: Simulator) -> None:
    first, again, other = (submit(simulator, "success", Idempotency_Key=key) for key in ("k1", "k1", "k2"))
    assert (first.json["id"] == again.json["id"], first.json["id"] == other.json["id"]) == (True, False)
    assert made(simulator) == {"op-1": 2}


def test_without_a_key_each_submission_is_an_export(simulator: Simulator) -> None:
    assert [submit(simulator, "success").http for _ in range(2)] == [202, 202]
    assert made(simulator) == {"op-1": 2}


def test_a_lost_answer_and_a_reset_are_the_same_error_to_the_caller_and_differ_in_truth(simulator: Simulator) -> None:
    """A connection that ends proves nothing (R-SUB-2)."""
    told = [submit(simulator, "lost", "op-lost"), submit(simulator, "reset", "op-reset")]
    assert told == ["ConnectionResetError", "ConnectionResetError"]
    assert made(simulator) == {"op-lost": 1}


def test_only_the_first_submission_of_an_operation_goes_wrong(simulator: Simulator) -> None:
    assert submit(simulator, "reset", "op-1") == "ConnectionResetError"
    assert submit(simulator, "reset", "op-1").http == 202
    assert submit(simulator, "reset", "op-2") == "ConnectionResetError"
    assert made(simulator) == {"op-1": 1}


def test_an_error_after_the_export_was_made_says_nothing_about_it(simulator: Simulator) -> None:
    reply = submit(simulator, "error")
    assert (reply.http, list(reply.json), made(simulator)) == (500, ["error"], {"op-1": 1})


def test_a_slow_acceptance_comes_after_the_caller_has_gone(simulator: Simulator) -> None:
    assert submit(simulator, "slow", within_s=0.1, Idempotency_Key="k1") == "TimeoutError"
    assert made(simulator) == {}
    again = submit(simulator, "slow", Idempotency_Key="k1")
    eventually(lambda: len(simulator.ledger.seen()) == 2)
    assert (again.http, made(simulator)) == (202, {"op-1": 1})


def eventually(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_list_finds_an_export_by_its_reference_page_by_page(simulator: Simulator) -> None:
    jobs = [submit(simulator, "success", Acme_Reference="r1").json["id"] for _ in range(3)]
    submit(simulator, "success", Acme_Reference="r2")
    first, second = listed(simulator, "r1"), listed(simulator, "r1", page=2)
    assert [item["id"] for item in first["items"] + second["items"]] == jobs
    assert (first["next"], second["next"]) == ("/v1/exports?reference=r1&page=2", None)
    assert listed(simulator, "r3") == {"items": [], "next": None}


def test_a_new_export_is_not_in_the_list_at_once(tmp_path: Path) -> None:
    """Absence right after a submission proves nothing (R-SUB-3)."""
    with running(tmp_path, settle_s=60.0) as simulator:
        submit(simulator, "success", Acme_Reference="r1")
        assert listed(simulator, "r1")["items"] == []
        simulator.ledger.settle_s = 0.0
        assert len(listed(simulator, "r1")["items"]) == 1


# --- cancelling, files, webhooks ------------------------------------------------------------------------


def test_a_cancelled_export_says_so(simulator: Simulator) -> None:
    job = create(simulator, "stuck")
    before = [reply.json["status"] for reply in looks(simulator, job, 2)]
    heard = ask(simulator, "POST", f"/v1/exports/{job}/cancel").http
    assert (before, heard, looks(simulator, job, 1)[0].json["status"]) == (["running"] * 2, 202, "canceled")


def fetch(simulator: Simulator, link: str, **options: Any) -> Reply:
    return ask(simulator, "GET", link.removeprefix(simulator.base), **options)


def test_the_link_of_a_success_leads_to_the_rows_it_names_and_needs_no_token(simulator: Simulator) -> None:
    result = looks(simulator, create(simulator, "success"), 4)[-1].json["result"]
    reply = fetch(simulator, result["url"], token="")
    assert (reply.http, reply.headers["Content-Type"], reply.body.count(b"\n")) == (200, "text/csv", result["rows"] + 1)
    assert fetch(simulator, result["url"].replace("signature=", "signature=x")).http == 403


def test_a_dead_link_is_refused_until_the_status_gives_a_fresh_one(simulator: Simulator) -> None:
    succeeded = [reply.json for reply in looks(simulator, create(simulator, "dead-link"), 4)][1:]
    codes = [fetch(simulator, answer["result"]["url"]).http for answer in succeeded]
    assert codes == [403, 403, 200]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((tuple(self.headers.items()), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("secret", "kind"), [(SECRET, Verified), (OTHER, Refused)])
def test_a_webhook_comes_twice_and_is_signed_as_standard_webhooks_says(tmp_path: Path, secret: str, kind: type) -> None:
    """R-SEC-3: the receiving side takes it with the right secret only, and knows the second one by its id."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as receiver:
        receiver.heard = []
        threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.02}).start()
        notices = Notices(url=f"http://127.0.0.1:{receiver.server_port}/", secret=SECRET)
        with running(tmp_path, notices=notices) as simulator:
            job = create(simulator, "webhook")
            looks(simulator, job, 1)
            eventually(lambda: sum(entry["kind"] == "notice" for entry in simulator.ledger.seen()) == 2)
        receiver.shutdown()
    spec = WebhookSpec(scheme=WebhookScheme.STANDARD)
    judged = [
        verify(spec, headers=headers, body=body, url="", secrets=(secret.encode(),), now=datetime.now(UTC))
        for headers, body in receiver.heard
    ]
    assert [type(each) for each in judged] == [kind, kind]
    assert {json.loads(body)["data"]["id"] for _, body in receiver.heard} == {job}
    ids = [value for headers, _ in receiver.heard for name, value in headers if name.lower() == "webhook-id"]
    assert ids == [f"msg_{job}"] * 2


# --- the demo -------------------------------------------------------------------------------------------


def test_every_scenario_of_the_demo_has_a_script_and_the_other_way_round() -> None:
    assert {scenario.script for scenario in SCENARIOS} == set(SCRIPTS)


def test_scenarios_that_hold_back_an_account_share_it_with_nobody() -> None:
    """R-POLL-4, R-READ-4: 401 and a 503 with guidance stop every operation of the account."""
    holding = {"retry-after", "rate-limited", "unauthorized", "trickle"}
    accounts = Counter((scenario.table, scenario.account) for scenario in SCENARIOS)
    shared = [s.name for s in SCENARIOS if s.name in holding and accounts[s.table, s.account] > 1]
    assert shared == []


# --- the console ----------------------------------------------------------------------------------------


def console(simulator: Simulator, query: str = "") -> str:
    return ask(simulator, "GET", f"/console?q={query}", token="").body.decode()


def test_the_console_tells_people_whether_an_export_exists_without_moving_it(simulator: Simulator) -> None:
    job = create(simulator, "waits")
    shown = [console(simulator, each) for each in ("", job, "op-1", "op-2", "<b>")]
    assert [job in page for page in shown] == [True, True, True, False, False]
    assert ("ACME has no export for <code>op-2</code>." in shown[3], "<b>" in shown[4]) == (True, False)
    assert [reply.json["status"] for reply in looks(simulator, job, 2)] == ["running", "on_hold"]
    assert "<td>on_hold</td>" in console(simulator, job)


def test_an_export_that_is_mended_on_the_console_goes_on_as_it_should(simulator: Simulator) -> None:
    job = create(simulator, "unauthorized")
    looks(simulator, job, 2)
    elsewhere = ask(simulator, "POST", f"/console/{job}/mend", token="", Sec_Fetch_Site="cross-site").http
    mended = ask(simulator, "POST", f"/console/{job}/mend", token="").http
    missing = ask(simulator, "POST", "/console/exp_none/mend", token="").http
    assert (elsewhere, mended, missing) == (403, 200, 404)
    assert looks(simulator, job, 4)[-1].json["status"] == "succeeded"
    assert "Mend it" not in console(simulator, job)
