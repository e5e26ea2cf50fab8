"""The answer to a submission that the database does not take: once more, and then the log has the job (INV-15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jobtrack.core.escalation import Option, Reason
from jobtrack.core.operation import OperationState
from jobtrack.core.table import ProviderTable
from jobtrack.records import Commit, Committed
from jobtrack.stores.memory import MemoryStore
from tests.flow.test_submit import ACCEPTED, FOUND, PROVEN, World, table, world


class Failing(MemoryStore):
    """Takes everything but answers to submissions, as often as ``left`` says."""

    left = 0

    def commit(self, commits: Sequence[Commit]) -> list[Committed]:
        if self.left and any(commit.entry["event"] == "submission" for commit in commits):
            self.left -= 1
            raise OSError("the database has gone away")
        return super().commit(commits)


def failing(spec: ProviderTable, times: int) -> World:
    here = world(spec, ACCEPTED)
    here.provider.on("GET", "/jobs", FOUND)
    store = Failing(here.clock)
    store.left = times
    here.store, here.runtime = store, replace(here.runtime, store=store)
    here.submit()
    return here


def test_it_is_stored_at_the_second_try() -> None:
    here = failing(table(), 1)
    assert here.run().state is OperationState.SUCCEEDED
    assert (len(here.posts), here.reasons) == (1, [])


def test_after_the_second_the_look_up_finds_the_job_and_nothing_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    here = failing(table(lookup=PROVEN), 2)
    with pytest.raises(OSError, match="gone away"):
        here.run()
    assert here.op().state is OperationState.SUBMITTING
    assert "job job-1 was accepted" in caplog.text
    assert here.run().state is OperationState.SUCCEEDED
    assert len(here.posts) == 1


def test_with_nothing_to_find_it_a_person_is_asked_and_can_name_what_the_log_has() -> None:
    here = failing(table(), 2)
    with pytest.raises(OSError, match="gone away"):
        here.run()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)
    here.decide(Option.ATTACH_JOB, job_id="job-1")
    assert here.run().state is OperationState.SUCCEEDED
    assert len(here.posts) == 1
