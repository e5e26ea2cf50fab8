"""Providers and tables of the crash tests; what they did is told by their logs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jobtrack.core.reply import Answered, Trouble
from jobtrack.testing.provider import answer, cut, no_answer
from tests.contracts.crash.processes import Answer

TABLE = """
jobtrack: 1
id: NAME
name: A provider in a file
docs: https://developer.acme.example/jobs
revision: 1
hosts: ["https://api.acme.example"]
submit:
  request:
    method: POST
    path: /jobs
    json: {reference: "{operation_id}", rows: "{payload/rows}"}
  accepted: {http: [202], job_id: /id}
  rejected: {http: [422]}
  recovery: {first: 20s, base: 20s}
WAYS
status:
  request: {method: GET, path: "/jobs/{job_id}"}
  state: /status
  states: {pending: [running], success: [succeeded], failure: [failed], stop: {cancelled: [cancelled]}}
  result: {keep: {rows: /rows}}
cancel:
  request: {method: POST, path: "/jobs/{job_id}/cancel"}
  effect: The part already made is billed.
  accepted: {http: [202]}
  refused: {http: [409]}
  repeatable: REPEATABLE
result:
  url: [/url]
  types: [text/csv]
  ranges: true
polling: {first: 5s, base: 5s, factor: 2, cap: 1m}
budget: {deadline: 2h, status_requests: 50, transport_failures: 10}
gate: {breaker_failures: 0}
"""
KEY = "  idempotency: {header: Idempotency-Key, lifetime: 24h}"
LOOKUP = """\
  lookup:
    request: {method: GET, path: /jobs, query: {reference: "{operation_id}"}}
    items: /items
    match: {/reference: "{operation_id}"}
    found: /id
    absence_is_proof_after: 30s"""
WAYS = {"lookup": LOOKUP, "key": KEY, "both": f"{KEY}\n{LOOKUP}", "none": "", "twice": ""}
TABLES = {
    name: TABLE.replace("NAME", name)
    .replace("WAYS", ways)
    .replace("REPEATABLE", "true" if name == "twice" else "false")
    for name, ways in WAYS.items()
}

ROWS = "".join(f"row {number}\n" for number in range(2000)).encode()
FILE = {"Content-Type": "text/csv", "ETag": '"v1"'}
LOST = no_answer(Trouble.READ_TIMEOUT)


def effects(log: list[dict[str, Any]], kind: str) -> list[str]:
    return [line["effect"] for line in log if line.get("effect", "").startswith(kind)]


@dataclass(frozen=True)
class Provider:
    """What a provider does, of which only first answers differ. Called with the request as the log's last line."""

    first: str = ""  # submission: "lost" (done, no answer), "never" (not done, no answer), "error" (done, 500)
    cancel_first: str = ""  # cancellation: "lost"
    runs: int = 1  # how many looks find the job running; a cancelled one ends at once
    download_first: str = ""  # "error", or "cut" after some bytes
    keys: bool = False  # idempotency keys are honoured

    def __call__(self, method: str, path: str, log: list[dict[str, Any]]) -> tuple[Answer, str]:
        if method == "POST":
            return self._cancelled(path, log) if path.endswith("/cancel") else self._submitted(log)
        if path.startswith("/jobs?"):
            return self._looked_up(path, log), ""
        return (self._status if path.startswith("/jobs/") else self._download)(path, log), ""

    def _submitted(self, log: list[dict[str, Any]]) -> tuple[Answer, str]:
        asked = log[-1]
        made = [line for line in log[:-1] if line["effect"].startswith("job")]
        if self.keys and made and made[0]["key"] == asked["key"]:
            return answer(202, json={"id": made[0]["effect"]}), ""
        job = f"job-{json.loads(asked['body'])['reference']}-{len(made)}"
        if self.first and _nth(log) == 1:
            return (answer(500) if self.first == "error" else LOST), "" if self.first == "never" else job
        return answer(202, json={"id": job}), job

    def _cancelled(self, path: str, log: list[dict[str, Any]]) -> tuple[Answer, str]:
        return (LOST if self.cancel_first and _nth(log) == 1 else answer(202)), "cancel"

    def _looked_up(self, path: str, log: list[dict[str, Any]]) -> Answer:
        (reference,) = parse_qs(urlsplit(path).query)["reference"]
        return answer(json={"items": [{"id": job, "reference": reference} for job in effects(log, "job")]})

    def _status(self, path: str, log: list[dict[str, Any]]) -> Answer:
        if effects(log, "cancel"):
            return answer(json={"status": "cancelled"})
        if _nth(log) <= self.runs:
            return answer(json={"status": "running"})
        url = f"https://api.acme.example/files/{path.rsplit('/', 1)[-1]}.csv"
        return answer(json={"status": "succeeded", "rows": 2000, "url": url})

    def _download(self, path: str, log: list[dict[str, Any]]) -> Answer:
        if self.download_first and _nth(log) == 1:
            return answer(500) if self.download_first == "error" else cut(_file(0), after=5000)
        wanted = log[-1]["range"]
        return _file(int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0)


def _nth(log: list[dict[str, Any]]) -> int:
    """The how many-th request of its kind the last one is, 1-based."""
    asked = log[-1]
    return sum((line["method"], line["path"]) == (asked["method"], asked["path"]) for line in log)


def _file(start: int) -> Answered:
    if not start:
        return answer(200, body=ROWS, headers=FILE)
    place = {"Content-Range": f"bytes {start}-{len(ROWS) - 1}/{len(ROWS)}"}
    return answer(206, body=ROWS[start:], headers=FILE | place)


# --- handlers -----------------------------------------------------------------------------------------


def write_once(operation: Any) -> None:
    """An effect in our database, one more letter in the operation's reference."""
    from django.db.models import Value
    from django.db.models.functions import Concat

    from jobtrack_django import once
    from jobtrack_django.models import Operation

    with once() as first:
        if first:
            Operation.objects.filter(pk=operation.pk).update(reference=Concat("reference", Value("x")))


def ask_for_result(operation: Any) -> None:
    from jobtrack_django import fetch_result

    fetch_result(operation, wait=False)


def store_result(operation: Any) -> None:
    """The usual follow-up: fetch, and let through that it is not ready."""
    from jobtrack_django import fetch_result

    fetch_result(operation)
    write_once(operation)
