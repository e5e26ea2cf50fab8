"""``manage.py jobtrack_list | jobtrack_show | jobtrack_sweep | jobtrack_export_audit``."""

from __future__ import annotations

import json
import os
import signal
import threading
from datetime import UTC, datetime, timedelta
from importlib import import_module
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from jobtrack.core.audit import verify
from jobtrack.flow.deliver import deliver
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer
from jobtrack_django import get_operation, track
from jobtrack_django.management.commands import jobtrack_sweep
from jobtrack_django.models import Delivery, Escalation, Operation

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


def run(name, *arguments):
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def story(site):
    """Three operations: one unknown, one that failed, one still running."""
    replies = {"unknown": {"status": "paused"}, "failed": {"status": "failed", "error": "disk full"}}
    for operation_id, reply in replies.items():
        track("acme", job_id=operation_id, operation_id=operation_id)
        site.provider.script(operation_id, answer(json=reply))
        site.make_due(operation_id)
        poll(site.runtime, [operation_id])
    track("acme", job_id="running", operation_id="running")
    return site


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["failed", "running", "unknown"]),
        (("--state", "running"), ["running"]),
        (("--needs-decision",), ["failed", "unknown"]),
        (("--provider", "other"), []),
        (("--provider", "acme", "--state", "failed", "--needs-decision"), ["failed"]),
        (("--limit", "0"), []),
    ],
)
def test_list_filters(story, arguments, expected):
    lines = run("jobtrack_list", *arguments)
    assert lines[0].split() == [*["id", "state", "provider", "provider_state", "requests", "next", "look", "because"]]
    assert sorted(line.split()[0] for line in lines[1:]) == expected
    assert sorted(json.loads(line)["operation_id"] for line in run("jobtrack_list", "--json", *arguments)) == expected


def test_list_shows_when_and_why_the_next_look_is(story):
    (line,) = run("jobtrack_list", "--state", "running")[1:]
    assert line.split()[:5] == ["running", "running", "acme", "-", "0/40"]
    assert line.endswith("first_delay")


def test_a_request_under_way_is_said_instead_of_the_next_look(story):
    until = datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=30)
    Operation.objects.filter(pk="running").update(lease_owner="x", lease_until=until, wake_at=until)
    said = "a request is under way, until 2030-01-01 00:00:30Z at the latest"
    (line,) = run("jobtrack_list", "--state", "running")[1:]
    assert line.endswith(f"  -          {said}")
    shown = run("jobtrack_show", "running")
    assert f"  {said}" in shown
    assert not any("next look" in line for line in shown)


def test_list_says_what_is_asked_or_why_it_failed(story):
    told = {line.split()[0]: line.split()[-1] for line in run("jobtrack_list")[1:]}
    assert told == {"failed": "provider_failure", "unknown": "unknown_state", "running": "first_delay"}
    Escalation.objects.filter(operation="failed").delete()
    assert run("jobtrack_list", "--state", "failed")[1].endswith("  provider_failure")  # its cause


@pytest.fixture
def follow_ups(site):
    """An operation that has succeeded: one follow-up is delivered, the other has failed once."""
    names = {"on_success": "tests.django.handlers.fail", "on_end": "tests.django.handlers.remember"}
    track("acme", job_id="job-1", operation_id="op-1", **names)
    site.provider.script("job-1", answer(json={"status": "succeeded"}))
    site.make_due("op-1")
    poll(site.runtime, ["op-1"])
    deliver(site.runtime, ["op-1:on_success", "op-1:on_end"])
    return {row.event: row for row in Delivery.objects.all()}


def test_show_tells_how_follow_ups_stand(follow_ups):
    failed, done = (
        f"{at:%Y-%m-%d %H:%M:%SZ}" for at in (follow_ups["on_success"].due_at, follow_ups["on_end"].delivered_at)
    )
    assert run("jobtrack_show", "op-1")[-2:] == [
        f"follow-up on_end (tests.django.handlers.remember): delivered {done}; attempts: 1",
        (
            f"follow-up on_success (tests.django.handlers.fail): NOT DELIVERED, next attempt {failed}; attempts: 1; "
            "last error: RuntimeError: no room for op-1"
        ),
    ]
    Delivery.objects.filter(event="on_success").update(due_at=None)
    assert "NOT DELIVERED, no further attempt until a person decides" in run("jobtrack_show", "op-1")[-1]


def test_show_gives_follow_ups_to_machines(follow_ups):
    shown = json.loads(run("jobtrack_show", "op-1", "--json")[0])["follow_ups"]
    assert shown == [
        {
            "event": "on_end",
            "handler": "tests.django.handlers.remember",
            "attempts": 1,
            "delivered_at": follow_ups["on_end"].delivered_at.isoformat(),
            "next_attempt_at": None,
            "last_error": None,
        },
        {
            "event": "on_success",
            "handler": "tests.django.handlers.fail",
            "attempts": 1,
            "delivered_at": None,
            "next_attempt_at": follow_ups["on_success"].due_at.isoformat(),
            "last_error": "RuntimeError: no room for op-1",
        },
    ]


@pytest.mark.parametrize(
    ("row", "failing"),
    [
        ({}, True),
        ({"attempts": 1, "last_error": ""}, False),  # the first attempt is under way
        ({"attempts": 2, "last_error": ""}, True),  # the first one never came back
        ({"attempts": 0}, True),  # a person lets it run again
        ({"delivered_at": datetime(2030, 1, 1, tzinfo=UTC), "due_at": None}, False),
    ],
)
def test_list_marks_a_follow_up_that_does_not_get_through(follow_ups, row, failing):
    Delivery.objects.filter(event="on_success").update(**row)
    (line,) = run("jobtrack_list")[1:]
    assert line.endswith("on_success failing") == failing


def test_an_error_in_a_follow_up_cannot_steer_the_terminal(follow_ups):
    Delivery.objects.filter(event="on_success").update(
        last_error="\x1b[31m\u202ered at https://u:pw@x.example/?t=s3cret"
    )
    shown = run("jobtrack_show", "op-1")[-1]
    assert not {"\x1b", "\u202e"} & set(shown)
    assert "s3cret" not in shown


def test_a_list_costs_the_same_for_any_number_of_rows(site):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            run("jobtrack_list")
        return len(captured)

    track("acme", job_id="job-1")
    few = queries()
    for number in range(2, 12):
        track("acme", job_id=f"job-{number}")
    assert queries() == few <= 3


def test_a_reason_of_a_newer_release_is_shown_as_it_is(story):
    Escalation.objects.filter(operation="unknown").update(reason="of_a_newer_release")
    assert run("jobtrack_show", "unknown")[-1].startswith("NEEDS A DECISION: of_a_newer_release:")
    (line,) = run("jobtrack_list", "--state", "escalated")[1:]
    assert line.endswith("of_a_newer_release")
    assert get_operation("unknown").outcome()["needs_decision"] == ["of_a_newer_release"]


def test_show_tells_the_story(story):
    lines = run("jobtrack_show", "unknown")
    assert lines[0] == "unknown: escalated (unknown)"
    assert "  status requests: 1 of 40" in lines[3]
    told = [line for line in lines if line.startswith("20")]
    assert len(told) == 2
    assert "paused" in told[1]
    assert lines[-1].startswith("NEEDS A DECISION: unknown_state:")
    assert "  error: disk full" in run("jobtrack_show", "failed")
    assert any(line.startswith("  next look: ") for line in run("jobtrack_show", "running"))


def test_show_as_json(story):
    (line,) = run("jobtrack_show", "failed", "--json")
    shown = json.loads(line)
    assert shown["outcome"]["state"] == "failed"
    assert [entry["event"] for entry in shown["story"]] == ["track", "poll"]


def test_show_says_so_if_there_is_none(site):
    with pytest.raises(CommandError, match="There is no operation 'nobody'"):
        run("jobtrack_show", "nobody")


def test_one_sweep_inline_looks_at_what_is_due(site):
    track("acme", job_id="job-1", operation_id="op-1")
    site.provider.script("job-1", answer(json={"status": "succeeded"}))
    assert run("jobtrack_sweep", "--inline") == []
    site.make_due("op-1")
    assert run("jobtrack_sweep", "--inline") == ["due: 1, published: 0, looked at here: 1, follow-ups: 0"]
    assert get_operation("op-1").state == "succeeded"


def test_the_loop_ends_when_asked(site, monkeypatch):
    rounds = []

    def sweep(runtime, *, inline):
        rounds.append(inline)
        if len(rounds) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return type("Swept", (), {"found": 0, "published": 0, "polled": 0, "deliveries": 0, "more": False})()

    monkeypatch.setattr(jobtrack_sweep, "sweep", sweep)
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        assert threading.current_thread() is threading.main_thread()
        assert run("jobtrack_sweep", "--loop", "--interval", "0.01", "--inline") == [
            "Sweeping, at least every 0.01 s, until SIGINT or SIGTERM.",
            "Stopped.",
        ]
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert rounds[:3] == [True] * 3
    assert len(rounds) < 10  # the signal is passed on by a thread, which may take a moment


@pytest.mark.parametrize(("ids", "operations"), [((), 3), (("failed",), 1), (("failed", "running"), 2)])
def test_an_export_verifies_offline(story, ids, operations):
    """INV-36 to 38: the file alone is enough."""
    report = verify(run("jobtrack_export_audit", *ids))
    assert (report.good, report.operations) == (True, operations)


def test_an_export_is_signed_with_the_key_of_the_settings(story, settings, monkeypatch):
    settings.JOBTRACK = {"AUDIT_KEY": "env:AUDIT_CANARY"}
    monkeypatch.setenv("AUDIT_CANARY", "k3y")
    lines = run("jobtrack_export_audit")
    assert (verify(lines, key=b"k3y").good, verify(lines, key=b"k3y").signed) == (True, True)
    assert not verify(lines, key=b"other").good
    monkeypatch.delenv("AUDIT_CANARY")
    with pytest.raises(CommandError, match="AUDIT_KEY"):
        run("jobtrack_export_audit")


@pytest.mark.parametrize("operation_id", ["nobody", "", "\udcff", "a\0"])
def test_a_mistyped_id_is_no_empty_export(story, operation_id):
    """An empty export would verify as intact."""
    with pytest.raises(CommandError, match="There is no operation"):
        run("jobtrack_export_audit", "failed", operation_id)


def test_list_takes_any_text_and_any_number(story):
    """A byte of the command line that is no text arrives as a lone surrogate."""
    assert len(run("jobtrack_list", "--provider", "\udcff")) == 1
    assert len(run("jobtrack_list", "--limit", "99999999999999999999")) == 4


@pytest.mark.parametrize("interval", ["nan", "0", "-1", "inf", "soon"])
def test_an_interval_that_is_none_is_refused(interval):
    with pytest.raises(CommandError, match="--interval"):
        run("jobtrack_sweep", "--loop", "--interval", interval)


@pytest.mark.parametrize("name", ["jobtrack_list", "jobtrack_export_audit", "jobtrack_sweep"])
def test_a_database_without_our_tables_is_told_in_a_sentence(site, monkeypatch, name):
    def no_table(*_args, **_options):
        raise OperationalError("no such table: jobtrack_operation")

    monkeypatch.setattr(import_module(f"jobtrack_django.management.commands.{name}").Command, "handle", no_table)
    with pytest.raises(CommandError, match=r"no such table: jobtrack_operation\. Is it there, and migrated\?"):
        run(name)
