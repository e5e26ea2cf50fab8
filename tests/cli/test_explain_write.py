"""`jobtrack explain --submit` and `--lookup`: what an answer to a write proves (R-SUB-2, R-SUB-3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from jobtrack.cli.app import main

TABLE = "acme-export"


def run(*arguments: str, stdin: str) -> Any:
    return CliRunner().invoke(main, ["explain", TABLE, "-", *arguments], input=stdin, catch_exceptions=False)


def told(*arguments: str, stdin: str) -> dict[str, Any]:
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("flag", "reply", "means", "follows"),
    [
        ("--submit", "{http: 202, json: {id: exp_1}}", "accepted", "the job is followed"),
        ("--submit", "{http: 202, json: {}}", "accepted", "looked up"),
        ("--submit", "{http: 409, json: {}}", "already", "looked up"),
        ("--submit", "{http: 422, json: {}}", "rejected", "failed"),
        ("--submit", "{http: 503, json: {}}", "busy", "sent again later"),
        ("--submit", "{http: 500, json: {}}", "unknown", "a permitted repeat"),
        ("--submit", "{error: read_timeout}", "unknown", "a permitted repeat"),
        ("--submit", "{error: connect_refused}", "unsent", "nothing was sent"),
        ("--lookup", "{http: 200, json: {items: [{id: exp_1, reference: example}]}}", "found", "followed"),
        ("--lookup", "{http: 200, json: {items: []}}", "absent", "proves that there is no job"),
        ("--lookup", '{http: 200, json: {items: [], next: "/v1/exports?page=2"}}', "more", "the next page"),
        ("--lookup", "{http: 500}", "unreadable", "look up again"),
    ],
)
def test_what_an_answer_proves_and_what_follows(flag: str, reply: str, means: str, follows: str):
    document = told(flag, stdin=reply)
    assert (document["means"], follows in document["follows"]) == (means, True), document


def test_an_answer_that_is_the_end_itself():
    signed = "https://files.acme.example/a.csv?signature=CANARY"
    body = {"id": "exp_1", "status": "succeeded", "result": {"url": signed, "rows": 3}}
    reply = json.dumps({"http": 200, "json": body})
    document = told("--submit", stdin=reply)
    assert (document["means"], document["status"], document["follows"]) == ("final", "success", "the job ends")
    assert "CANARY" not in json.dumps(document)


def test_the_job_is_shown_without_its_secret(tmp_path: Path):
    text = (Path(__file__).parents[2] / "providers" / f"{TABLE}.yaml").read_text(encoding="utf-8")
    text = text.replace("    job_id: /id\n", "    job_id: /id\n    handle: /token\n", 1).partition("examples:")[0]
    path = tmp_path / f"{TABLE}.yaml"
    path.write_text(text, encoding="utf-8")
    reply = "{http: 202, json: {id: exp_1, token: CANARY}}"
    shown = CliRunner().invoke(main, ["explain", str(path), "-", "--submit"], input=reply, catch_exceptions=False)
    assert "job      exp_1, a secret handle" in shown.stdout
    assert "CANARY" not in shown.stdout


def test_absence_proves_nothing_where_the_table_does_not_say_so(tmp_path: Path):
    text = (Path(__file__).parents[2] / "providers" / f"{TABLE}.yaml").read_text(encoding="utf-8")
    path = tmp_path / f"{TABLE}.yaml"
    path.write_text(text.replace("    absence_is_proof_after: 10s\n", ""), encoding="utf-8")
    reply = "{http: 200, json: {items: []}}"
    shown = CliRunner().invoke(main, ["explain", str(path), "-", "--lookup"], input=reply, catch_exceptions=False)
    assert "follows  this proves nothing: look up again, a permitted repeat, or a person" in shown.stdout


def test_a_payload_is_json():
    assert told("--submit", "--payload", '{"a": 1}', stdin="{http: 202, json: {id: exp_1}}")["means"] == "accepted"
    result = run("--submit", "--payload", "{a", stdin="{http: 202}")
    assert (result.exit_code, "--payload needs JSON" in result.output) == (2, True)


def test_a_table_that_submits_nothing_is_no_crash(tmp_path: Path):
    data = Path(__file__).parent / "data" / "demo-job.yaml"
    result = CliRunner().invoke(main, ["explain", str(data), "-", "--submit"], input="{http: 202}")
    assert (result.exit_code, "does not submit jobs" in result.output) == (2, True)


def test_the_diagram_shows_the_way_to_an_accepted_job():
    shown = CliRunner().invoke(main, ["diagram", TABLE], catch_exceptions=False).stdout.splitlines()
    for line in (
        "    [*] --> ready: submit()",
        "    submitting --> running: HTTP 202 (accepted), HTTP 409 (already)",
        "    submitting --> unconfirmed: any other answer, or none",
        "    unconfirmed --> submitting: a permitted repeat",
        "    unconfirmed --> running: the look-up finds the job",
    ):
        assert line in shown
