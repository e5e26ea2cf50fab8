"""`jobtrack replay`: the real flow on a virtual clock, and cases read as strictly as tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobtrack.catalog import load_file
from jobtrack.cli import main
from jobtrack.core.table import ProviderTable
from jobtrack.errors import TableMissing
from jobtrack.testing import expectations
from jobtrack.testing.cases import CaseError, load_cases, parse_cases
from jobtrack.testing.replay import Report, run_case
from jobtrack.testing.replies import REPLY_KEYS
from jobtrack.testing.script import KINDS

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parent / "data"
CASES = sorted((DATA / "cases").glob("*.yaml"))


def find_table(name: str) -> ProviderTable:
    path = DATA / f"{name}.yaml"
    if not path.is_file():
        raise TableMissing(f"There is no table {name!r}.")
    return load_file(path)


def replayed(text: str) -> Report:
    (case,) = parse_cases(text, "case.yaml", find_table)
    return run_case(case)


def told(report: Report) -> list[str]:
    return [f"{each.what}: {each.expected} / {each.actual}" for each in report.differences]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_each_case_comes_out_as_it_says(path: Path) -> None:
    cases = load_cases(path, find_table)
    assert cases
    assert {case.name: told(run_case(case)) for case in cases} == {case.name: [] for case in cases}


BASE = """\
table: demo-job
replies:
  - {http: 200, json: {id: job-1, status: running}}
  - {http: 200, json: {id: job-1, status: paused}}
"""


@pytest.mark.parametrize(
    ("expect", "differences"),
    [
        ("decisions: [wait, unknown_state]", []),
        ("decisions: [wait, wait]", ["decisions, reply 2: wait / unknown_state"]),
        ("decisions: [wait]", ["number of decisions: 1 / 2"]),
        (
            "decisions: [wait, unknown_state, succeeded]",
            ["decisions, reply 3: succeeded / (no such look)", "number of decisions: 3 / 2"],
        ),
        ("observations: [pending, unknown_state]", []),
        ("delays: [{min_s: 3.75, max_s: 3.75}, null]", []),
        ("delays: [{min_s: 4}, null]", ["delays, reply 1: 4 s to inf s / 3.75 s"]),
        ("delays: [null, null]", ["delays, reply 1: nothing / 3.75 s"]),
        ("sources: [local_backoff, null]", []),
        ("guidance: [null, null]", []),
        ("{state: escalated, outcome: unknown, provider_state: paused}", []),
        ("state: running", ["state: running / escalated"]),
        ("reason: unknown_state", []),
        ("reason: [stalled, unknown_state]", ["reason: stalled, unknown_state / unknown_state"]),
        ("reason: []", ["reason: nothing / unknown_state"]),
        ("says: [paused, not in the table]", []),
        ("says: nonsense", [r"says: ... nonsense ... / "]),
        ("counters: {status_requests: 2, transport_failures: 0, rate_limited: 0}", []),
        ("counters: {status_requests: 3}", ["counters.status_requests: 3 / 2"]),
        ("ended_after: 9375ms", []),
        ("ended_after: 9s", ["ended_after: 9 s / 9.375 s"]),
        ("kept: {}", []),
    ],
)
def test_expectations_are_held_against_the_run(expect: str, differences: list[str]) -> None:
    block = expect.strip("{}") if expect.startswith("{state") else expect
    lines = "".join(f"  {line}\n" for line in re.split(r", (?=outcome|provider_state)", block))
    shown = told(replayed(f"{BASE}expect:\n{lines}"))
    assert [line[: len(wanted)] for line, wanted in zip(shown, differences, strict=True)] == differences


def test_a_difference_names_its_line() -> None:
    report = replayed(f"{BASE}expect:\n  decisions:\n    - wait\n    - wait\n")
    assert [(each.line, each.expected, each.actual) for each in report.differences] == [(8, "wait", "unknown_state")]


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("replies: []\n", ["1:1 The key table is missing."]),
        (BASE + "expcet: {}\n", ["5:1 The key 'expcet' is not known here; did you mean expect?"]),
        (BASE + "expect: {statee: running}\n", ["5:10 The key 'statee' is not known here; did you mean state?"]),
        (BASE + "expect: {state: runing}\n", ["5:17 The word 'runing' is not known here; did you mean running?"]),
        (BASE + "expect: {decisions: [wiat]}\n", ["5:22 The word 'wiat' is not known here; did you mean wait?"]),
        (
            "table: nowhere\nreplies: [{http: 99}, {error: timeout, http: 200}, {}]\n",
            [
                "1:8 There is no table 'nowhere'.",
                "2:18 A whole number from 100 to 599 belongs here.",
                "2:23 Write either http (an answer came) or error (none came) here.",
                "2:52 Write either http (an answer came) or error (none came) here.",
            ],
        ),
        (
            "table: demo-job\nreplies:\n  - {http: 200, json: 1, text: x}\n  - {error: dns, text: x, sent: never}\n",
            [
                "3:5 Write only one of json, text and base64.",
                "4:24 text goes with an answer; remove it, or write http instead of error.",
            ],
        ),
        (
            "table: demo-job\nreplies: [{http: 200, base64: '%'}, {http: 200, sent: never}]\n",
            [
                "2:31 This is not base64; encode the body's bytes again.",
                "2:55 sent goes with error; remove it.",
            ],
        ),
        (
            "table: demo-job\nreplies: []\noperation: {draw: 2, started_at: '2030-01-07', limits: {deadline: 60}}\n",
            [
                "3:19 A number from 0 to 1 belongs here.",
                '3:34 An instant with its zone belongs here, such as "2030-01-07T12:00:00Z".',
                "3:67 A duration belongs here, such as 500ms, 30s, 15m, 2h or 1d.",
            ],
        ),
        ("table: demo-job\nreplies: {}\n", ["2:10 A list belongs here; start each item with a hyphen."]),
        (
            "- 1\n",
            ["1:3 A mapping belongs here; write one or more of about, do, expect, name, operation, replies, table."],
        ),
        (
            "table: demo-job\nreplies: [{http: 200, to: sumbit}]\ndo: [{at: 1s}, {cancel: false}, {cancel: true, notice: x}]\n",
            [
                "2:27 The word 'sumbit' is not known here; did you mean submit?",
                "3:6 Write one of webhook, submit, cancel, fetch, decide here.",
                "3:25 Write true here.",
                "3:56 notice does not go with cancel; remove it.",
            ],
        ),
        (
            "table: demo-job\nreplies: []\noperation: {job_id: x, submit: {payload: {}}}\nexpect: {retry_allowed: 1}\n",
            [
                "3:21 job_id belongs to a job that was submitted elsewhere; remove it.",
                "4:25 Write true or false here.",
            ],
        ),
    ],
)
def test_a_wrong_case_lists_every_mistake_with_its_place(text: str, findings: list[str]) -> None:
    with pytest.raises(CaseError) as caught:
        parse_cases(text, "case.yaml", find_table)
    seen = [f"{each['line']}:{each['column']} {each['message']}" for each in caught.value.context["findings"]]
    assert seen == findings


def test_a_mistake_in_an_inline_table_is_shown_where_it_stands_in_the_case() -> None:
    text = "replies: []\ntable:\n  status:\n    request: {path: /j}\n    state: /s\n    statez: {}\n"
    with pytest.raises(CaseError) as caught:
        parse_cases(text, "case.yaml", find_table)
    places = {(each["path"], each["line"]) for each in caught.value.context["findings"]}
    assert {("table.status.statez", 6), ("table.status", 4), ("table.status.state", 5)} <= places


def test_an_operation_that_its_table_refuses_is_a_sentence() -> None:
    (case,) = parse_cases(BASE + "operation: {params: {port: '1'}}\n", "case.yaml", find_table)
    with pytest.raises(CaseError, match=r"^case\.yaml cannot start: .*port"):
        run_case(case)


def test_looks_without_an_answer_do_not_count() -> None:
    report = replayed("table: demo-job\nreplies:\n  - {http: 200, json: {id: job-1, status: running}}\n")
    assert (report.operation.state.value, report.operation.spent.status_requests, len(report.steps)) == (
        "running",
        1,
        1,
    )


def test_the_command_prints_expected_and_actual_and_exits_1(tmp_path: Path) -> None:
    case = tmp_path / "case.yaml"
    case.write_text(BASE.replace("demo-job", str(DATA / "demo-job.yaml")) + "expect: {state: succeeded}\n", "utf-8")
    result = CliRunner().invoke(main, ["replay", str(case)], catch_exceptions=False)
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[0] == f"differs  {case}  escalated (unknown_state) after 2 requests"
    assert "  line 5: state" in lines
    assert lines[lines.index("  line 5: state") + 1 :][:2] == ["    expected  succeeded", "    actual    escalated"]
    assert lines[-1] == "1 case: 1 differ"


def test_a_case_without_expectations_says_that_it_proves_nothing(tmp_path: Path) -> None:
    case = tmp_path / "case.yaml"
    case.write_text(BASE.replace("demo-job", str(DATA / "demo-job.yaml")), "utf-8")
    result = CliRunner().invoke(main, ["replay", "-v", str(case)], catch_exceptions=False)
    assert result.exit_code == 0
    assert "    nothing is expected: this case proves nothing yet" in result.stdout.splitlines()
    assert "  9.38s  HTTP 200  unknown_state  paused   unknown_state" in result.stdout.splitlines()


def test_a_table_is_found_beside_the_case(tmp_path: Path) -> None:
    (tmp_path / "demo-job.yaml").write_bytes((DATA / "demo-job.yaml").read_bytes())
    (tmp_path / "case.yaml").write_text(BASE.replace("demo-job", "demo-job.yaml"), "utf-8")
    assert CliRunner().invoke(main, ["replay", str(tmp_path / "case.yaml")]).exit_code == 0


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("table: demo-job\nreplies: []\noperation: {params: 1, account: {}}\n", ["3:21", "3:33"]),
        ("table: demo-job\nreplies: [{http: 1.5, times: 1.5, at: soon}]\n", ["2:18", "2:30", "2:39"]),
        ("table: demo-job\nreplies: []\noperation: {draw: x}\n", ["3:19"]),
        ("table: demo-job\nreplies: []\nexpect: {counters: {status_requests: -1}}\n", ["3:38"]),
    ],
)
def test_values_of_the_wrong_kind_are_findings(text: str, findings: list[str]) -> None:
    with pytest.raises(CaseError) as caught:
        parse_cases(text, "case.yaml", find_table)
    assert [f"{each['line']}:{each['column']}" for each in caught.value.context["findings"]] == findings


def test_a_huge_file_is_not_read() -> None:
    with pytest.raises(CaseError, match="is larger than 4 MiB"):
        load_cases(Path("/dev/zero"), find_table)


def test_the_command_reads_folders_and_gives_json() -> None:
    arguments = ["replay", "--json", "--tables", str(DATA / "demo-job.yaml"), str(DATA / "cases")]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert all(report["good"] for report in json.loads(result.stdout))


# --- submissions ------------------------------------------------------------------------------------

SUBMIT = """\
table:
  auth: bearer
  submit:
    request: {method: POST, path: /v1/jobs, json: {ref: "{operation_id}", work: "{payload}"}}
    accepted: {http: [202], job_id: /id}
    rejected: {http: [422]}
    idempotency: {header: Idempotency-Key, lifetime: 1h}
  status:
    request: {method: GET, path: "/v1/jobs/{job_id}"}
    state: /status
    states: {pending: [running], success: [succeeded], stop: {cancelled: [cancelled]}}
    result: {require: {}}
  cancel: {request: {method: POST, path: "/v1/jobs/{job_id}/cancel"}, effect: Stops it.}
operation: {submit: {payload: {rows: 7}}}
"""
TAKEN = "  - {to: submit, http: 202, json: {id: j1}}\n"
RUNS = "  - {to: status, http: 200, json: {status: running}}\n"


@pytest.mark.parametrize(
    ("replies", "rest", "differences"),
    [
        (TAKEN, "expect: {decisions: [follow], job_id: j1, posts: 1, keys: 1, contents: 1, state: running}", []),
        (TAKEN, "expect: {job_id: j2, posts: 2, keys: 0}", ["job_id: j2 / j1", "posts: 2 / 1", "keys: 0 / 1"]),
        ("  - {to: submit, http: 422}\n", "expect: {decisions: [failed], outcome: failed, retry_allowed: false}", []),
        (
            "  - {to: submit, error: read_timeout}\n" + TAKEN,
            "expect: {decisions: [doubt, follow], posts: 2, contents: 1, keys: 1, counters: {submissions: 2}}",
            [],
        ),
        (
            "  - {to: submit, error: connect_refused}\n",
            "expect: {observations: [unsent], decisions: [later], posts: 0, retry_allowed: true, delays: [{max_s: 3}]}",
            [],
        ),
        ("  - {to: lookup, http: 200, json: {}}\n", "", ["request 1: lookup / submit"]),
        (TAKEN + "  - {to: cancel, http: 202}\n", "", ["request 2: cancel / status"]),
        (
            TAKEN + "  - {to: cancel, http: 202}\n  - {to: status, http: 200, json: {status: cancelled}}\n",
            "do: [{at: 1s, cancel: true}]\nexpect: {cancel: accepted, state: cancelled, decisions: [follow, cancelled]}",
            [],
        ),
        (TAKEN, "do: [{at: 0s, cancel: true, expect: refused}]\nexpect: {cancel: none}", []),
        (
            TAKEN + RUNS,
            "do: [{at: 1s, cancel: true, expect: refused}]",
            ["request 2: status / cancel", "do: cancel: refused / done"],
        ),
        (TAKEN, "do: [{at: 1s, submit: {payload: {rows: 8}}}]", ["do: submit: done / conflict"]),
        (TAKEN, "do: [{at: 1s, submit: {payload: {rows: 7}}}]\nexpect: {posts: 1}", []),
        (TAKEN, "do: [{at: 1s, decide: look_again, expect: refused}]", []),
        (TAKEN, "do: [{at: 1s, fetch: true, expect: refused}]\nexpect: {result: none, files: {}}", []),
    ],
)
def test_a_submission_is_replayed(replies: str, rest: str, differences: list[str]) -> None:
    """R-SUB, R-ID-4, R-END-5: what the provider got is held against the case as well as what our side made of it."""
    assert told(replayed(f"{SUBMIT}replies:\n{replies}{rest}\n")) == differences


def test_a_second_submission_needs_a_first() -> None:
    assert told(replayed(BASE + "do: [{at: 0s, submit: {payload: {}}}]\n")) == ["do: submit: done / refused"]


@pytest.mark.parametrize(
    ("place", "sent"),
    [("query: key", 1), ("body: /key", 1), ("header: X-Key", 1)],
)
def test_a_key_is_counted_wherever_it_stands(place: str, sent: int) -> None:
    text = SUBMIT.replace("header: Idempotency-Key", place)
    assert told(replayed(f"{text}replies:\n{TAKEN}expect: {{keys: {sent}}}\n")) == []


# --- docs/replay.md ---------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")


def documented(section: str) -> set[str]:
    """Keys in the first column of the table of a section."""
    body = PAGE.split(f"\n## `{section}`")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", body, flags=re.MULTILINE))


def test_the_page_explains_every_key() -> None:
    assert documented("replies") == {*REPLY_KEYS, "at", "cut", "times", "to"}
    assert documented("do") == {"webhook", "submit", "cancel", "fetch", "decide", "at", "expect"}
    assert set(KINDS) == set(re.findall(r"`(\w+)`", PAGE.split("| `to` |")[1].split("\n")[0]))
    assert documented("expect") == set(expectations.EXPECT_KEYS)


@pytest.mark.parametrize("number", [1, 2])
def test_the_examples_of_the_page_are_true(number: int) -> None:
    example = PAGE.split("```yaml\n")[number].split("```")[0]
    (case,) = parse_cases(example, "docs/replay.md", lambda name: load_file(ROOT / "providers" / f"{name}.yaml"))
    assert told(run_case(case)) == []


def test_the_provider_of_the_page_keeps_the_truth() -> None:
    block = PAGE.split("```python\n")[1].split("```")[0]
    exec(compile(block, "docs/replay.md", "exec"), {})  # noqa: S102 - a block of our own page
