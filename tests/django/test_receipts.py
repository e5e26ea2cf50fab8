"""An effect exactly once, if its receipt is written in the same transaction (R-END-2, INV-21)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import connection, connections, transaction

from jobtrack.errors import UsageError
from jobtrack.flow.deliver import deliver
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer
from jobtrack_django import current_delivery, once, track
from jobtrack_django.models import Delivery, FollowUpReceipt, Operation
from tests.django import receipt_child

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

ROOT = Path(__file__).parents[2]
HERE = "tests.django.receipt_child"


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    receipt_child.seen.clear()


def end(site, **handlers: str) -> None:
    """An operation that has just succeeded, with its follow-ups due."""
    track("acme", job_id="job-1", operation_id="op-1", **handlers)
    site.provider.script("job-1", answer(json={"status": "succeeded", "rows": 3}))
    site.make_due("op-1")
    poll(site.runtime, ["op-1"])


def effects() -> int:
    return len(Operation.objects.get().reference)


def receipts() -> list[str]:
    return list(FollowUpReceipt.objects.order_by("key").values_list("key", flat=True))


def forget(delivery_id: str) -> None:
    """The worker died before it could close the delivery, and its lease is over."""
    Delivery.objects.filter(pk=delivery_id).update(
        delivered_at=None, lease_until=None, lease_owner="", due_at=Operation.objects.get().created_at
    )


@pytest.mark.parametrize("handler", [f"{HERE}.with_receipt", f"{HERE}.task", "tests.add_once"])
def test_a_second_run_knows_that_the_effect_has_happened(site, handler):
    """A callable, a Celery task by its path, and one by its name."""
    end(site, on_success=handler)
    for _ in range(3):
        assert deliver(site.runtime, ["op-1:on_success"]) == 1
        forget("op-1:on_success")
    assert (effects(), receipts()) == (1, ["op-1:on_success"])
    assert receipt_child.seen == [("op-1:on_success", "on_success")] * 3
    assert current_delivery() is None


def test_each_follow_up_of_an_operation_has_a_receipt_of_its_own(site):
    handler = f"{HERE}.with_receipt"
    end(site, on_success=handler, on_end=handler)
    assert deliver(site.runtime, ["op-1:on_success", "op-1:on_end"]) == 2
    assert (effects(), receipts()) == (2, ["op-1:on_end", "op-1:on_success"])


def test_a_handler_that_raises_takes_its_receipt_back(site):
    end(site, on_success=f"{HERE}.failing")
    assert deliver(site.runtime, ["op-1:on_success"]) == 0
    assert (effects(), receipts(), current_delivery()) == (0, [], None)


def test_a_rollback_around_it_takes_the_receipt_back(site):
    for expected in (True, True, False):
        with transaction.atomic():
            with once("mail:7") as first:
                assert first is expected
            with once("mail:7") as again:
                assert again is False
            if not receipt_child.seen:
                receipt_child.seen.append(None)
                transaction.set_rollback(True)
    assert receipts() == ["mail:7"]


def test_the_transaction_goes_on_after_a_receipt_that_was_there(site):
    with once("a"):
        pass
    with once("a") as first, once("b") as other:
        assert (first, other) == (False, True)
    assert receipts() == ["a", "b"]


@pytest.mark.parametrize("key", [None, "", "x" * 242, "nul\x00", 7])
def test_a_key_is_needed_that_every_database_keeps(key):
    with pytest.raises(UsageError, match="key"), once(key):
        raise AssertionError("it went in")


def test_of_two_at_the_same_moment_one_is_first():
    """The second one waits until it is known whether the first one's effect is there to stay."""
    barrier, told = threading.Barrier(8), []

    def run() -> None:
        try:
            barrier.wait(10)
            with once("op-1:on_success") as first:
                told.append(first)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(told) == [False] * 7 + [True]


# --- a real worker that is killed -------------------------------------------------------------------


def run_worker(*, kill: bool) -> int:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "JOBTRACK_TEST_NAME": str(connection.settings_dict["NAME"]),
        "JOBTRACK_TEST_KILL": "after the commit" if kill else "",
    }
    command = [sys.executable, "-m", HERE, "op-1:on_success"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=60).returncode


@pytest.mark.processes
@pytest.mark.parametrize(("handler", "expected"), [("with_receipt", 1), ("without_receipt", 2)])
def test_a_worker_that_is_killed_between_the_handler_s_commit_and_ours_repeats_nothing(site, handler, expected):
    """Without the receipt it happens twice: this is the window that at least once means."""
    end(site, on_success=f"{HERE}.{handler}")
    assert (run_worker(kill=True), effects()) == (-9, 1)
    row = Delivery.objects.get()
    assert (row.attempts, row.delivered_at) == (1, None)
    Delivery.objects.update(lease_until=row.due_at)
    assert (run_worker(kill=False), effects()) == (0, expected)
    row.refresh_from_db()
    assert (row.attempts, row.delivered_at is not None) == (2, True)
