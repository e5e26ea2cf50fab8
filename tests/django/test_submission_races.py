"""A submission whose answer meets a database that fails for a moment (INV-15, INV-41)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError

from jobtrack.core.operation import OperationState
from jobtrack.flow.advance import advance
from jobtrack.records import Commit, Committed
from jobtrack.testing import VirtualClock, memory_runtime
from jobtrack.testing.provider import makes
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.store import DjangoStore
from tests.flow.test_submit import ACCEPTED, POST, World, table

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

LOCKED = "database is locked"
GONE = "server closed the connection unexpectedly"


class Failing(DjangoStore):
    """A database that answers the first commit of an acceptance with an error."""

    def __init__(self, error: str, *, written: bool) -> None:
        super().__init__()
        self.error, self.written = error, written

    def _commit(self, commit: Commit) -> Committed:
        if commit.entry["event"] != "submission" or not self.error:
            return super()._commit(commit)
        error, self.error = self.error, ""
        if self.written:
            super()._commit(commit)
        raise OperationalError(error)


@pytest.fixture
def here() -> Iterator[World]:
    made = World(table(), VirtualClock())
    made.provider.on(*POST, makes("job-1", ACCEPTED))
    DatabaseNow.virtual = made.clock
    yield made
    DatabaseNow.virtual = None


@pytest.mark.parametrize("written", [False, True], ids=["rolled back", "written all the same"])
@pytest.mark.parametrize("error", [LOCKED, GONE])
def test_one_error_of_the_database_after_the_answer_does_not_lose_the_job(
    here: World, error: str, written: bool
) -> None:
    """INV-15, INV-41."""
    store = Failing(error, written=written)
    here.runtime = memory_runtime(here.table, provider=here.provider, clock=here.clock, store=store, draw=lambda: 0.0)
    here.submit()
    advance(here.runtime, ["op-1"])
    (row,) = store.get(["op-1"])
    assert (store.error, row.state, row.job_id) == ("", OperationState.RUNNING, "job-1")
    assert (len(here.posts), store.open_escalations("op-1")) == (1, [])
