"""The `jobtrack` command: what it prints, its exit codes (0 good, 1 findings, 2 usage), no traceback for a mistake."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobtrack.cli import main
from jobtrack.core.audit import canonical, closing_line, entry_line, seal
from jobtrack.core.schedule import duration

DATA = Path(__file__).parent / "data"
TABLE = str(DATA / "demo-job.yaml")
COMMANDS = ("check", "diagram", "explain", "replay", "schedule", "schema", "verify-audit")


def run(*arguments: str, stdin: str | bytes | None = None, color: bool = False) -> Result:
    result = CliRunner().invoke(main, list(arguments), input=stdin, color=color, catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def as_json(*arguments: str, stdin: str | None = None) -> tuple[int, object]:
    result = run(*arguments, "--json", stdin=stdin)
    return result.exit_code, json.loads(result.stdout)


# --- check ------------------------------------------------------------------------------------------


def test_check_reads_the_shipped_tables_and_finds_no_error() -> None:
    code, document = as_json("check")
    assert code == 0
    assert isinstance(document, dict)
    assert document["errors"] == 0
    assert document["tables"] >= 4


def test_check_reports_every_mistake_of_a_table_in_one_run_with_its_place(tmp_path: Path) -> None:
    text = (DATA / "demo-job.yaml").read_text(encoding="utf-8")
    wrong = tmp_path / "demo-job.yaml"
    wrong.write_text(text.replace("success: [succeeded]", "success: [no]").replace("first: 5s", "first: 5"), "utf-8")

    code, document = as_json("check", str(wrong))

    lines = text.splitlines()
    expected = {next(n for n, line in enumerate(lines, 1) if word in line) for word in ("success: [", "first: 5s")}
    assert code == 1
    assert isinstance(document, dict)
    assert expected <= {finding["line"] for finding in document["findings"] if finding["level"] == "error"}
    assert all(finding["column"] >= 1 and finding["file"] == str(wrong) for finding in document["findings"])


def test_check_shows_place_level_and_sentence_for_people() -> None:
    result = run("check", TABLE)
    assert result.exit_code == 0
    assert re.search(r"demo-job\.yaml:1:1  warning  \S+", result.stdout)
    assert result.stdout.endswith("1 table: 2 warnings\n")


# --- explain ----------------------------------------------------------------------------------------

RUNNING = '{"http": 200, "json": {"id": "a", "status": "running"}}'


@pytest.mark.parametrize(
    ("reply", "kind", "decision"),
    [
        (RUNNING, "pending", {"do": "wait", "source": "local_backoff", "delay_s": [2.5, 5.0]}),
        (
            '{"http": 503, "headers": {"Retry-After": "120"}}',
            "transport_failure",
            {"do": "wait", "source": "provider_retry_after", "delay_s": [120.0, 132.0]},
        ),
        ('{"error": "connect_refused"}', "transport_failure", {"do": "wait", "source": "local_backoff"}),
        ('{"http": 200, "json": {"id": "a", "status": "runing"}}', "unknown_state", {"do": "stop"}),
        ('{"http": 200, "text": "<html>"}', "invalid_response", {"do": "stop", "reason": "invalid_response"}),
        ('{"http": 401}', "denied", {"do": "stop", "reason": "authorization_denied"}),
        (
            '{"http": 200, "json": {"id": "a", "status": "failed"}}',
            "failure",
            {"do": "conclude", "state": "failed", "reason": "provider_failure"},
        ),
        (
            '{"http": 200, "json": {"id": "a", "status": "succeeded", "result": {"url": "https://files.provider.example/r"}}}',
            "success",
            {"do": "conclude", "state": "succeeded", "reason": None},
        ),
    ],
)
def test_explain_says_what_an_answer_means_and_what_follows(reply: str, kind: str, decision: dict[str, object]) -> None:
    code, document = as_json("explain", TABLE, "-", stdin=reply)
    assert code == 0
    assert isinstance(document, dict)
    assert document["observation"]["kind"] == kind
    assert {key: document["decision"][key] for key in decision} == decision


def test_explain_reads_the_answer_as_the_named_job() -> None:
    _, document = as_json("explain", TABLE, "-", "--job-id", "b", stdin=RUNNING)
    assert isinstance(document, dict)
    assert document["observation"]["kind"] == "job_id_mismatch"


def test_explain_shows_an_aligned_story_for_people() -> None:
    shown = run("explain", TABLE, "-", stdin=RUNNING).stdout.splitlines()
    assert shown[0] == "demo-job  revision 3, job a"
    assert "next look  in 2.5s to 5s  local_backoff" in shown
    assert {line.index("  ") for line in shown[2:] if line.startswith("next look")} == {9}


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        (
            '{"http": 200, "headers": {"Retry-After": "soon"}, "json": {"id": "a", "status": "running"}}',
            ["guidance   provider_retry_after 'soon': not valid:", "next look  in 2.5s to 5s  local_backoff"],
        ),
        (
            '{"http": 200, "headers": {"Retry-After": "120"}, "json": {"id": "a", "status": "running"}}',
            ["guidance   provider_retry_after '120': 2m", "next look  in 2m to 2m 12s  provider_retry_after"],
        ),
        (
            '{"http": 200, "json": {"id": "a", "status": "failed", "error": {"message": "no disk"}}}',
            [
                "means      failure",
                "error      no disk",
                "decision   end as failed, a person is told: provider_failure",
            ],
        ),
        ('{"error": "read_timeout"}', ["answer     none (read_timeout)", "means      transport_failure"]),
        ('{"http": 401}', ["decision   stop and ask a person: authorization_denied", "next look  none"]),
    ],
)
def test_explain_tells_people(reply: str, lines: list[str]) -> None:
    shown = run("explain", TABLE, "-", stdin=reply).stdout.splitlines()
    assert [wanted for wanted in lines if not any(line.startswith(wanted) for line in shown)] == []


def test_explain_reads_json_that_yaml_reads_otherwise(tmp_path: Path) -> None:
    reply = tmp_path / "reply.json"
    reply.write_text(
        '{"http": 200, "json": {"id": "\\ud83d\\ude00", "status": "running", "n": 1e3, "off": [null]}}', "utf-8"
    )
    code, document = as_json("explain", TABLE, str(reply))
    assert (code, document["job_id"]) == (0, "\N{GRINNING FACE}")  # type: ignore[index]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (1, "1s"),
        (59.94, "59.9s"),
        (60, "1m"),
        (3599.9, "1h"),
        (7500, "2h 5m"),
        (90000, "1d 1h"),
    ],
)
def test_durations_are_told_in_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\u202eb", "line\nbreak\rback"])
def test_provider_text_cannot_steer_the_terminal(text: str) -> None:
    reply = json.dumps({"http": 200, "json": {"id": "a", "status": text}})
    shown = run("explain", TABLE, "-", stdin=reply, color=True).stdout
    assert text not in shown
    assert "\u202e" not in shown


# --- schema -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["provider", "outcome", "notice"])
def test_schema_prints_what_is_published(name: str) -> None:
    code, document = as_json("schema", name)
    assert (code, document["$id"]) == (0, f"urn:jobtrack:schema:{name}-1")
    assert run("schema", name).stdout == run("schema", name, "--json").stdout


# --- schedule and diagram ---------------------------------------------------------------------------


def test_schedule_lists_the_looks_until_the_deadline() -> None:
    code, document = as_json("schedule", TABLE)
    assert code == 0
    assert isinstance(document, dict)
    schedules = document["schedules"]
    assert schedules["latest"]["looks_s"][:5] == [6.25, 11.25, 21.25, 41.25, 81.25]
    assert schedules["earliest"]["looks_s"][:5] == [5.0, 7.5, 12.5, 22.5, 42.5]
    assert all(each["covered"] and each["looks_s"][-1] < document["deadline_s"] for each in schedules.values())


def test_schedule_says_when_the_budget_does_not_last(tmp_path: Path) -> None:
    text = (DATA / "demo-job.yaml").read_text(encoding="utf-8")
    (tmp_path / "demo-job.yaml").write_text(text.replace("status_requests: 60", "status_requests: 10"), "utf-8")
    result = run("schedule", str(tmp_path / "demo-job.yaml"))
    assert result.exit_code == 1
    assert "the requests last 9m 32s, not to the deadline" in result.stdout


def test_check_and_schedule_tell_the_same_reach(tmp_path: Path) -> None:
    text = (DATA / "demo-job.yaml").read_text(encoding="utf-8")
    for before, after in {
        "cap: 2m": "cap: 1m",
        "deadline: 40m": "deadline: 1h",
        "status_requests: 60": "status_requests: 80",
    }.items():
        text = text.replace(before, after)
    table = tmp_path / "demo-job.yaml"
    table.write_text(text, "utf-8")
    assert "80 requests last 38m 42s with the shortest waits" in run("check", str(table)).stdout
    assert "the requests last 38m 42s, not to the deadline" in run("schedule", str(table)).stdout


def test_diagram_draws_every_way_out_as_mermaid() -> None:
    shown = run("diagram", TABLE).stdout
    assert shown.splitlines()[:2] == ["%% demo-job, revision 3", "stateDiagram-v2"]
    for line in (
        "    [*] --> running: accepted",
        "    running --> succeeded: succeeded",
        "    running --> cancelled: canceled",
        "    running --> escalated: any other word (unknown_state)",
        "    succeeded --> [*]",
    ):
        assert line in shown.splitlines()


def test_diagram_quotes_what_would_end_a_label(tmp_path: Path) -> None:
    text = (DATA / "demo-job.yaml").read_text(encoding="utf-8")
    (tmp_path / "demo-job.yaml").write_text(text.replace("failure: [failed]", "failure: ['a;b: \"c\"']"), "utf-8")
    table = str(tmp_path / "demo-job.yaml")
    assert "running --> failed: a#59;b#58; #34;c#34;" in run("diagram", table).stdout
    assert 'running -> failed [label="a;b: \\"c\\""];' in run("diagram", "--dot", table).stdout


def test_diagram_says_every_kind_of_test_in_words() -> None:
    _, document = as_json("diagram", str(DATA / "rule-job.yaml"))
    assert isinstance(document, dict)
    labels = {edge["to"]: edge["label"] for edge in reversed(document["edges"]) if edge["from"] == "running"}
    assert labels == {
        "running": "HTTP status = 400 and /error = BUSY or LATER (rate_limited), /left > 0 and /total is there (pending), "
        "1, any other word that starts with run",
        "escalated": "/gone = true (not_found), /errors is not empty (invalid), 4, any other word (unknown_state)",
        "succeeded": "/made = /total (success), 2",
        "failed": "3",
        "cancelled": "/word = Cancelled in any letter case and /why is missing (cancelled)",
        "expired": "/word = Gone in any letter case and /why is missing and header X-End is empty (expired)",
    }


@pytest.mark.parametrize("table", ["acme-export", "openai-batch", "replicate-prediction", "github-workflow-run"])
@pytest.mark.parametrize("command", ["diagram", "schedule"])
def test_shipped_tables_are_found_by_their_id(command: str, table: str) -> None:
    code, document = as_json(command, table)
    assert code in {0, 1} if command == "schedule" else code == 0
    assert isinstance(document, dict)
    assert document["table"] == table


# --- verify-audit -----------------------------------------------------------------------------------


def export(*texts: str, key: bytes | None = None) -> list[str]:
    lines, previous = [], ""
    for seq, text in enumerate(texts, 1):
        digest = seal(previous, "op-1", seq, text)
        lines.append(entry_line("op-1", seq, previous, digest, text))
        previous = digest
    return [*lines, closing_line({"op-1": (len(texts), previous)}, at="2030-01-07T12:00:00+00:00", key=key)]


def written(path: Path, lines: list[str]) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


THREE = [canonical({"n": number}) for number in (1, 2, 3)]


def test_verify_audit_accepts_an_untouched_export(tmp_path: Path) -> None:
    file = written(tmp_path / "export.jsonl", export(*THREE))
    result = run("verify-audit", file)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "3 entries of 1 operation: intact")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda lines: [line.replace('\\"n\\":2', '\\"n\\":7') for line in lines], "entry 2 was changed"),
        (lambda lines: [lines[0], *lines[2:]], "entry 2 was expected here, not 3"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "entry 1 was expected here, not 2"),
        (lambda lines: lines[:-1], "the export was cut off"),
        (lambda lines: [*lines[:2], "{", *lines[2:]], "this line is not JSON"),
    ],
    ids=["edited", "deleted", "reordered", "truncated", "garbage"],
)
def test_verify_audit_finds_what_was_done_to_an_export(tmp_path: Path, change, fault: str) -> None:
    """R-AUDIT-2, without a database."""
    result = run("verify-audit", written(tmp_path / "export.jsonl", change(export(*THREE))))
    assert result.exit_code == 1
    assert fault in result.stdout


def test_verify_audit_checks_the_signature_by_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "export.jsonl", export(*THREE, key=b"right"))
    codes = []
    for value in ("right", "wrong"):
        monkeypatch.setenv("JOBTRACK_TEST_AUDIT_KEY", value)
        codes.append(run("verify-audit", file, "--key", "env:JOBTRACK_TEST_AUDIT_KEY").exit_code)
    assert codes == [0, 1]


def test_verify_audit_says_what_it_did_not_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "export.jsonl", export(*THREE))
    assert "give --key to check the signature" in run("verify-audit", file).stdout
    monkeypatch.setenv("JOBTRACK_TEST_AUDIT_KEY", "right")
    result = run("verify-audit", file, "--key", "env:JOBTRACK_TEST_AUDIT_KEY")
    assert result.exit_code == 1
    assert "the signature of the closing line does not fit the key" in result.stdout


def test_verify_audit_gives_json(tmp_path: Path) -> None:
    lines = export(*THREE)
    code, document = as_json("verify-audit", written(tmp_path / "export.jsonl", lines[1:]))
    assert code == 1
    assert isinstance(document, dict)
    assert (document["good"], document["entries"], document["operations"]) == (False, 2, 1)
    assert document["faults"][0] == {"line": 1, "operation_id": "op-1", "problem": "entry 1 was expected here, not 2"}


def test_verify_audit_finds_a_chain_that_was_rewritten_as_a_whole(tmp_path: Path) -> None:
    earlier = written(tmp_path / "earlier.jsonl", export(*THREE[:2]))
    rewritten = written(tmp_path / "now.jsonl", export(canonical({"n": 9}), *THREE[1:]))
    assert run("verify-audit", rewritten).exit_code == 0
    result = run("verify-audit", rewritten, "--earlier", earlier)
    assert result.exit_code == 1
    assert "entry 2 differs from the one in an earlier export" in result.stdout


# --- every command ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(command: str) -> None:
    shown = run(command, "--help").stdout
    assert "--json" in shown


MISTAKES = [
    (["nonsense"], "No such command"),
    (["check", "missing.yaml"], "does not exist"),
    (["check", "{empty}"], "There is no .yaml file here."),
    (["explain", "acme-exprt", "-"], "Did you mean 'acme-export'?"),
    (["explain", "nothing-like-it", "-"], "or say where it is with --tables PATH."),
    (["schedule", "nothing-like-it"], "or say where it is with --tables PATH."),
    (["diagram", "nothing-like-it"], "or say where it is with --tables PATH."),
    (["explain", "missing.yaml", "-"], "There is no file 'missing.yaml'."),
    (["explain", TABLE, "missing.yaml"], "cannot be read: no such file or directory"),
    (["explain", TABLE, "{empty}"], "cannot be read: is a directory"),
    (["explain", TABLE, "{binary}"], "is not UTF-8 text"),
    (["explain", TABLE, "-"], "There is nothing in it."),
    (["explain", TABLE, "{broken}"], "broken.yaml:2:1:"),
    (["explain", TABLE, "-", "--param", "owner"], "--param needs NAME=VALUE"),
    (["replay"], "Missing argument 'CASE...'"),
    (["replay", "{empty}"], "There is no .yaml file here."),
    (["replay", "{binary}"], "is not UTF-8 text"),
    (["replay", "{broken}"], "broken.yaml:2:1:"),
    (["schedule", "missing.yaml"], "There is no file"),
    (["verify-audit", "{empty}"], "is a directory"),
    (["verify-audit", "{broken}", "--key", "hunter2"], "--key needs a reference"),
    (["verify-audit", "{broken}", "--earlier", "{broken}"], "no closing line with heads"),
    (["verify-audit", "{broken}", "--key", "env:JOBTRACK_NOT_SET"], "env:JOBTRACK_NOT_SET is not set"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES, ids=[sentence for _, sentence in MISTAKES])
def test_a_mistake_is_a_sentence_and_exit_code_2(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    places = {"{empty}": tmp_path / "empty", "{binary}": tmp_path / "binary.yaml", "{broken}": tmp_path / "broken.yaml"}
    places["{empty}"].mkdir()
    places["{binary}"].write_bytes(b"\x7fELF\xff\x00")
    places["{broken}"].write_text("a: [\n", encoding="utf-8")

    result = run(*[str(places.get(argument, argument)) for argument in arguments], stdin="")

    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in re.sub(r"\s+", " ", result.stderr)
    assert "hunter2" not in result.stderr


@pytest.mark.parametrize("command", ["explain", "schedule", "diagram"])
def test_a_table_with_errors_is_named_with_its_place_and_exit_code_1(tmp_path: Path, command: str) -> None:
    (tmp_path / "wrong.yaml").write_text("jobtrack: 1\nid: wrong\n", encoding="utf-8")
    more = ["-"] if command == "explain" else []
    result = run(command, str(tmp_path / "wrong.yaml"), *more, stdin=RUNNING)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "wrong.yaml:1:1:" in result.stderr


def test_colour_only_on_a_terminal_and_never_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in run("check", TABLE).stdout
    assert "\x1b[" in run("check", TABLE, color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("check", TABLE, color=True).stdout


def test_a_reader_that_goes_away_is_no_error_to_shout_about() -> None:
    """`jobtrack schedule x | head -1`."""
    command = f"{sys.executable} -m jobtrack.cli schedule openai-batch | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("openai-batch")


# --- docs/cli.md ------------------------------------------------------------------------------------

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_describes_every_command_and_option(command: str) -> None:
    assert f"\n## {command}\n" in PAGE
    options = {name for option in main.commands[command].params for name in option.opts if name.startswith("--")}
    assert {option for option in options if f"`{option}" not in PAGE} - {"--verbose"} == set()


# --- a hostile shell --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("schedule",), ("diagram",), ("explain",)])
def test_a_name_that_no_file_can_have_is_a_sentence(command: tuple[str, ...]) -> None:
    rest = ("-",) if command == ("explain",) else ()
    result = run(*command, "a" * 5000, *rest, stdin="{http: 200}")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (2, "Error: File name too long.")


on_a_full_disk = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")


@on_a_full_disk
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("said", ["check", "--help", "--version"])
def test_a_full_disk_is_a_sentence(said: str, unbuffered: str) -> None:
    """Also where the output is kept for the end of the process, and in what click prints by itself."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "jobtrack.cli", said],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr.splitlines()) == (2, ["Error: No space left on device."])


@on_a_full_disk
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_where_nothing_can_be_said_the_exit_code_still_tells(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "jobtrack.cli", "schema", "provider"],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=full,
            check=False,
        )
    assert ended.returncode == 2


def test_a_closed_input_is_an_empty_one() -> None:
    command = f"exec {sys.executable} -m jobtrack.cli verify-audit - <&-"
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    as_empty = run("verify-audit", "-", stdin="")
    assert (ended.returncode, ended.stdout, ended.stderr) == (as_empty.exit_code, as_empty.stdout, as_empty.stderr)


def test_a_checkout_that_is_not_installed_has_a_version() -> None:
    assert re.fullmatch(r"jobtrack \S+\n", run("--version").stdout)
