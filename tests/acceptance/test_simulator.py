"""The simulated provider behaves as its scenarios say, on the wire."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from example_project.scenarios import SCENARIOS
from example_project.simulator import SCRIPTS, Simulator

TOKEN = "a-token-for-tests"


class Reply(NamedTuple):
    http: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    with Simulator(port=0, token=TOKEN, log_path=tmp_path / "acme.jsonl") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(simulator: Simulator, method: str, path: str, body: object = None, *, token: str = TOKEN) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", simulator.server_port, timeout=5)
    headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "op-1:3"}
    connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
    answer = connection.getresponse()
    reply = Reply(answer.status, answer.headers, answer.read())
    connection.close()
    return reply


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
    assert good["result"]["url"].startswith("https://files.acme.example/")


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
        ("GET", "/v1/exports", None, 404),
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
    rows = [(entry["method"], entry["job"], entry["word"], entry["http"], entry["wait_s"]) for entry in seen]
    assert rows == [
        ("POST", "", "accepted", 202, 0),
        ("GET", job, "running", 200, 1),
        ("GET", job, "busy", 503, 2),
    ]
    assert {entry["request_id"] for entry in seen} == {"op-1:3"}
    assert [json.loads(line) for line in simulator.provider.log_path.read_text().splitlines()] == seen


def test_every_scenario_of_the_demo_has_a_script_and_the_other_way_round() -> None:
    assert {scenario.name for scenario in SCENARIOS} == set(SCRIPTS)


def test_scenarios_that_hold_back_an_account_share_it_with_nobody() -> None:
    """R-POLL-4, R-READ-4: 401 and a 503 with guidance stop every operation of the account."""
    holding = {"retry-after", "rate-limited", "unauthorized", "trickle"}
    shared = [s.name for s in SCENARIOS if s.name in holding and [t.account for t in SCENARIOS].count(s.account) > 1]
    assert shared == []
