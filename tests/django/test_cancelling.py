"""``cancel()`` and ``cancel_effect()``: what a view may rely on (R-END-5)."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from django.db import connections, transaction

from jobtrack.core.actions import CancelSpec
from jobtrack.core.place import RequestSpec
from jobtrack.errors import OperationNotFound, UsageError
from jobtrack.flow.deliver import deliver
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer, no_answer
from jobtrack_django import cancel, cancel_effect, track
from jobtrack_django.models import AuditEntry, Delivery, Operation

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

SPEC = CancelSpec(
    request=RequestSpec(method="POST", path="/v1/jobs/{job_id}/cancel"), effect="Stops it; what was made is billed."
)


@pytest.fixture
def operation(site) -> Operation:
    tables = site.runtime.tables.by_id
    tables["acme"] = replace(tables["acme"], cancel=SPEC)
    return track("acme", job_id="job-1", operation_id="op-1")


def written() -> tuple[str, list[str], list[str]]:
    """The state of the cancellation, the deliveries, and what the audit says since the job was tracked."""
    events = [json.loads(body)["event"] for body in AuditEntry.objects.order_by("seq").values_list("body", flat=True)]
    return Operation.objects.get().cancel_state, list(Delivery.objects.values_list("pk", flat=True)), events[1:]


def test_nothing_is_asked_before_the_caller_s_commit(site, operation):
    with transaction.atomic():
        row = cancel(operation, actor="ada", reason="a duplicate")
        assert (row.cancel_state, row.state, site.runtime.scheduler.woken) == ("requested", "running", [])
    assert (site.runtime.scheduler.woken, site.provider.log) == (["op-1:cancel"], [])
    assert written() == ("requested", ["op-1:cancel"], ["cancel_requested"])
    entry = json.loads(AuditEntry.objects.order_by("seq").last().body)
    assert (entry["actor"], entry["why"], entry["effect"]) == ("ada", "a duplicate", SPEC.effect)


def test_after_a_rollback_nothing_is_asked(site, operation):
    with pytest.raises(RuntimeError), transaction.atomic():
        cancel(operation)
        raise RuntimeError("the view fails")
    assert (written(), site.runtime.scheduler.woken) == (("", [], []), [])


def test_the_job_is_cancelled_when_its_status_says_so(site, operation):
    site.provider.on("POST", "/v1/jobs/job-1/cancel", answer(202, json={}))
    cancel(operation)
    assert deliver(site.runtime, ["op-1:cancel"]) == 1
    operation.refresh_from_db()
    assert (operation.state, operation.cancel_state) == ("running", "accepted")
    site.provider.script("job-1", answer(json={"status": "succeeded", "rows": 3}))
    site.make_due("op-1")
    poll(site.runtime, ["op-1"])
    operation.refresh_from_db()
    assert (operation.state, operation.cancel_state) == ("succeeded", "accepted")
    assert len(site.provider.sent("POST")) == 1


def test_an_unknown_outcome_asks_a_person_and_is_not_repeated(site, operation):
    site.provider.on("POST", "/v1/jobs/job-1/cancel", no_answer("read_timeout"))
    cancel(operation)
    for _ in range(3):
        deliver(site.runtime, ["op-1:cancel"])
    told = Operation.objects.get().outcome()
    assert (told["needs_decision"], told["cancel"]["state"], told["outcome"]) == (
        ["cancel_unknown"],
        "unknown",
        "pending",
    )
    assert len(site.provider.sent("POST")) == 1
    with pytest.raises(UsageError, match="may have been heard"):
        cancel(operation)


def test_the_effect_is_told_as_long_as_it_may_be_asked_for(operation):
    assert cancel_effect(operation) == SPEC.effect
    assert cancel_effect(cancel(operation)) is None
    with pytest.raises(UsageError, match="already"):
        cancel(operation)


def test_where_the_table_documents_none_there_is_none(site):
    operation = track("acme", job_id="job-1", operation_id="op-1")
    assert cancel_effect(operation) is None
    with pytest.raises(UsageError, match="documents no cancellation"):
        cancel(operation)


def test_of_an_operation_that_is_not_there_nothing_is_cancelled(operation):
    with pytest.raises(OperationNotFound):
        cancel(Operation(id="op-2", provider="acme"))


def test_texts_that_no_database_keeps_are_mended(operation):
    cancel(operation, actor="a\x00da" * 100, reason="\ud800" + "x" * 5000)
    entry = json.loads(AuditEntry.objects.order_by("seq").last().body)
    assert (len(entry["actor"]), len(entry["why"])) == (255, 2000)


def test_twenty_who_ask_at_once_are_one(site, operation):
    barrier, told = threading.Barrier(20), []

    def ask() -> None:
        try:
            barrier.wait(10)
            told.append(cancel(operation).cancel_state)
        except UsageError as error:
            told.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(told) == ["requested"] + ["usage"] * 19
    assert written() == ("requested", ["op-1:cancel"], ["cancel_requested"])
