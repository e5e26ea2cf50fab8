"""What a project's own tests get: the site's runtime on virtual time with a scripted provider (R-CALL-1)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobtrack.errors import OptionNotAllowed
from jobtrack_django import track
from jobtrack_django.models import Operation
from jobtrack_django.testing import Rehearsal, answer

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
