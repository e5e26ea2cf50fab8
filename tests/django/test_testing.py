"""What a project's own tests get: the site's runtime on virtual time with a scripted provider (R-CALL-1)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobtrack.errors import OptionNotAllowed, TableMissing, UsageError
from jobtrack_django import submit, track
from jobtrack_django.models import Operation
from jobtrack_django.testing import Rehearsal, answer, makes, no_answer

RUNNING = answer(json={"id": "exp_1", "status": "running"})
PAUSED = answer(json={"id": "exp_1", "status": "paused"})
URL = "https://files.acme.example/exp_1.csv"
DONE = answer(json={"id": "exp_1", "status": "succeeded", "result": {"url": URL, "rows": 7}})


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = {
        "ACCOUNTS": {"acme-export": {"default": {"port": "9"}}},
        "CREDENTIALS": {"acme-export": {"default": "env:ACME"}},
        "ALLOW_LOOPBACK": True,
    }


seen: list[dict[str, object]] = []


def store(operation: Operation) -> None:
    seen.append(operation.kept)


def test_a_job_of_minutes_runs_in_no_time(jobtrack: Rehearsal) -> None:
    seen.clear()
    jobtrack.provider.script("exp_1", RUNNING, RUNNING, DONE)
    operation = track("acme-export", job_id="exp_1", on_success=f"{__name__}.store")
    started = jobtrack.clock()
    assert jobtrack.run_due() == 3
    operation.refresh_from_db()
    assert (operation.state, seen) == ("succeeded", [{"rows": 7}])
    assert timedelta(seconds=2) < jobtrack.clock() - started < timedelta(minutes=2)
    assert operation.outcome()["outcome"] == "succeeded"


def test_a_submission_whose_answer_is_lost_is_found_and_not_repeated(jobtrack: Rehearsal) -> None:
    """INV-18: what the scripted provider made is the truth."""
    seen.clear()
    lost = makes("exp_1", no_answer("read_timeout"))
    listed = answer(json={"items": [{"id": "exp_1", "reference": "op-1"}], "next": None})
    jobtrack.provider.on("POST", "/v1/exports", lost)
    jobtrack.provider.on("GET", "/v1/exports", listed)
    jobtrack.provider.script("exp_1", RUNNING, DONE)
    operation = submit("acme-export", operation_id="op-1", payload={"report": "sales"}, on_success=f"{__name__}.store")
    assert jobtrack.provider.log == []
    jobtrack.run_due()
    operation.refresh_from_db()
    assert (operation.state, operation.job_id, seen) == ("succeeded", "exp_1", [{"rows": 7}])
    assert jobtrack.provider.made_for("op-1") == ["exp_1"]
    assert len(jobtrack.provider.sent("POST")) == 1


def fail(operation: Operation) -> None:
    raise ValueError(f"no room for {operation.pk}")


def test_what_a_follow_up_raises_fails_the_test_unless_it_is_what_is_tested(jobtrack: Rehearsal) -> None:
    jobtrack.provider.script("exp_1", DONE)
    operation = track("acme-export", job_id="exp_1", operation_id="op-1", on_success=f"{__name__}.fail")
    with pytest.raises(ValueError, match="no room for op-1"):
        jobtrack.run_due()
    jobtrack.failures.clear()
    jobtrack.decide(operation, "retry_delivery")
    jobtrack.run_due(raise_failures=False)
    assert {str(failure) for failure in jobtrack.failures} == {"no room for op-1"}
    assert operation.outcome()["needs_decision"] == ["delivery_failed"]


MISTAKES = [
    ({"on_success": f"{__name__}.stroe"}, f"on_success: '{__name__}' has no 'stroe'. Did you mean 'store'?"),
    ({"on_sucess": "x"}, "track() takes no 'on_sucess'. Did you mean 'on_success'?"),
    ({"job_id": None}, "job_id must be a text of at most 500 characters, without control characters."),
]


@pytest.mark.parametrize(("wrong", "message"), MISTAKES)
def test_a_mistake_in_a_call_is_told_at_once_and_leaves_nothing(jobtrack: Rehearsal, wrong, message) -> None:
    with pytest.raises(UsageError) as raised:
        track("acme-export", **{"job_id": "exp_1", **wrong})
    assert (raised.value.message, Operation.objects.count()) == (message, 0)


def test_a_follow_up_that_only_a_worker_can_import_is_taken_at_its_word(jobtrack: Rehearsal) -> None:
    assert track("acme-export", job_id="exp_1", on_success="only.in_a_worker.store").on_success


def test_a_table_that_is_not_there_is_named_with_those_that_are(jobtrack: Rehearsal) -> None:
    with pytest.raises(TableMissing, match=r"no provider table acme-exprot\. Known tables: acme-export, github"):
        track("acme-exprot", job_id="exp_1")


def test_time_stops_where_it_is_told_and_a_person_can_be_played(jobtrack: Rehearsal) -> None:
    jobtrack.provider.script("exp_1", PAUSED)
    operation = track("acme-export", job_id="exp_1")
    jobtrack.run_due(until=timedelta(seconds=30))
    assert operation.outcome()["needs_decision"] == ["unknown_state"]
    with pytest.raises(OptionNotAllowed):
        jobtrack.decide(operation, "access_repaired")
    jobtrack.provider.script("exp_1", DONE)
    jobtrack.decide(operation, "look_again", actor="ann")
    jobtrack.run_due()
    operation.refresh_from_db()
    assert operation.outcome()["outcome"] == "succeeded"
    with pytest.raises(LookupError):
        jobtrack.decide(operation, "close")
