"""The id of a pruned operation stays taken; its audit entries go only with their proof (R-ID-4, INV-20, INV-40)."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction

from jobtrack.catalog import load_text
from jobtrack.core.operation import OperationState
from jobtrack.errors import IdempotencyConflict, OperationNotFound, OperationPruned
from jobtrack.flow.advance import advance
from jobtrack.flow.deliver import deliver
from jobtrack.records import Receipt
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.runtime import memory_runtime
from jobtrack.worker import wiring
from jobtrack_django import (
    asubmit,
    atrack,
    cancel,
    fetch_result,
    get_operation,
    submit,
    submit_many,
    track,
    track_many,
)
from jobtrack_django.intake import _row_of_another
from jobtrack_django.models import AuditEntry, Operation, PrunedOperation
from jobtrack_django.prune import Terms, prune
from jobtrack_django.store import DjangoStore
from tests.django.conftest import YAML
from tests.django.pruning import OLD, ended, whole_or_proven
from tests.django.submitting import TABLE

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

JOB = {"job_id": "job-old", "operation_id": "old"}


@pytest.fixture
def pay(site):
    """A site with a table that submits, too."""
    tables = [load_text(YAML, "acme.yaml"), load_text(TABLE, "pay.yaml")]
    runtime = memory_runtime(
        *tables, provider=site.provider, clock=VirtualClock(datetime.now(UTC)), store=DjangoStore()
    )
    with wiring.use_runtime(runtime):
        yield site


def pruned(site, folder, *ids):
    ended(site, *ids)
    prune(Terms(older_than=OLD, proofs=folder))
    assert whole_or_proven(folder, *ids) == sorted(ids)


AGAIN = {
    "track": lambda: track("acme", **JOB),
    "atrack": lambda: async_to_sync(atrack)("acme", **JOB),
    "track_many": lambda: track_many("acme", [{"job_id": "job-new"}, JOB]),
    "track, other job": lambda: track("acme", job_id="other", operation_id="old"),
    "submit": lambda: submit("pay", operation_id="old", payload={}),
    "asubmit": lambda: async_to_sync(asubmit)("pay", operation_id="old", payload={}),
    "submit_many": lambda: submit_many("pay", [{"payload": {}}, {"operation_id": "old", "payload": {}}]),
    "get_operation": lambda: get_operation("old"),
    "cancel": lambda: cancel(Operation(pk="old")),  # a row that the caller has kept
    "fetch_result": lambda: fetch_result("old"),
}


@pytest.mark.parametrize("again", AGAIN)
def test_the_id_of_a_pruned_operation_stays_taken(pay, tmp_path, again):
    """R-ID-4: never a second submission; the others of the same call are not stored either."""
    pruned(pay, tmp_path, "old")
    sent = len(pay.provider.log)
    with pytest.raises(OperationPruned, match="stays taken") as refused:
        AGAIN[again]()
    proof = PrunedOperation.objects.get().proof
    assert refused.value.context == {"operation_id": "old", "state": "succeeded", "proof": proof}
    assert (Operation.objects.count(), AuditEntry.objects.count(), len(pay.provider.log)) == (0, 0, sent)


def test_it_is_refused_in_a_transaction_of_the_caller_too(pay, tmp_path):
    pruned(pay, tmp_path, "old")
    with transaction.atomic():
        with pytest.raises(OperationPruned):
            submit("pay", operation_id="old", payload={})
        submit("pay", operation_id="new", payload={})
    assert [row.pk for row in Operation.objects.all()] == ["new"]


def test_an_id_that_never_was_is_not_found(site):
    with pytest.raises(OperationNotFound):
        get_operation("nobody")


@pytest.mark.parametrize("name", ["jobtrack_show", "jobtrack_export_audit"])
def test_commands_say_where_the_proof_is(site, tmp_path, name):
    pruned(site, tmp_path, "old")
    with pytest.raises(CommandError, match="was pruned"):
        call_command(name, "old")


def test_a_pruned_operation_may_be_replaced_by_a_new_one(pay, tmp_path):
    """The predecessor is a name; its story is in the proof."""
    pruned(pay, tmp_path, "old")
    row = submit("pay", operation_id="new", payload={}, predecessor="old")
    assert (row.predecessor, row.state) == ("old", OperationState.READY)


def test_a_successor_does_not_keep_its_predecessor(pay, tmp_path):
    ended(pay, "old")
    submit("pay", operation_id="new", payload={}, predecessor="old")
    assert prune(Terms(older_than=OLD, proofs=tmp_path)).operations == 1
    assert get_operation("new").predecessor == "old"


@pytest.mark.parametrize("named", [{"operation_id": "old"}, {"job_id": "job-old"}])
def test_a_notice_of_the_provider_for_a_pruned_job_changes_nothing(site, tmp_path, named):
    pruned(site, tmp_path, "old")
    told = {"operation_id": "", "job_id": "", **named}
    receipt = Receipt(provider="acme", account="default", notice_id="n-1", **told)
    assert site.runtime.store.receive([receipt]) == [True]
    assert site.runtime.store.hint([receipt]) == []
    assert (Operation.objects.count(), PrunedOperation.objects.count()) == (0, 1)


def test_a_message_for_a_pruned_operation_finds_nothing(site, tmp_path):
    pruned(site, tmp_path, "old")
    sent = len(site.provider.log)
    advance(site.runtime, ["old"])
    deliver(site.runtime, ["old:on_success"])
    assert (Operation.objects.count(), len(site.provider.log)) == (0, sent)


def test_a_row_that_went_while_the_caller_looked_is_told(site, tmp_path):
    """It was there when the id was asked for, and pruned before the row was read."""
    pruned(site, tmp_path, "old")
    with pytest.raises(OperationPruned), transaction.atomic():
        _row_of_another("old", "default")
    with pytest.raises(OperationNotFound), transaction.atomic():
        _row_of_another("nobody", "default")


def test_pruning_and_submitting_one_id_at_once_never_makes_a_second_operation(site, tmp_path):
    """Each caller gets the old operation, or is told that it was pruned; then there is none, and never a new one."""
    ids = [f"op-{number:02}" for number in range(12)]
    ended(site, *ids)
    begun, wrong, outcomes = threading.Barrier(4), [], []

    def submit_all(number):
        begun.wait(timeout=30)
        for each in ids if number % 2 else reversed(ids):
            try:
                row = track("acme", job_id=f"job-{each}", operation_id=each)
                outcomes.append(row.state)
            except OperationPruned:
                outcomes.append("pruned")

    def prune_all(_):
        begun.wait(timeout=30)
        while prune(Terms(older_than=OLD, proofs=tmp_path, batch=2)).moved:
            pass

    def run(work, number):
        try:
            work(number)
        except Exception as error:  # noqa: BLE001 - shown below
            wrong.append(repr(error))
        finally:
            connections.close_all()

    works = [prune_all, submit_all, submit_all, submit_all]
    threads = [threading.Thread(target=run, args=(work, number)) for number, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    prune(Terms(older_than=OLD, proofs=tmp_path))  # rows that a caller was linking at that moment were left
    assert wrong == []
    assert (len(outcomes), set(outcomes) <= {"succeeded", "pruned"}) == (36, True)
    assert whole_or_proven(tmp_path, *ids) == ids


def raw(statement, *parameters):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, parameters)


@pytest.mark.parametrize("remains", [None, 1, 2])
def test_entries_go_only_once_the_head_of_their_chain_is_written_down(site, remains):
    """INV-40: PostgreSQL refuses; on the others the foreign key and the verifier are what is left."""
    ended(site, "op-1")
    if remains:
        row = Operation.objects.get()
        PrunedOperation.objects.create(
            operation_id="op-1",
            audit_seq=remains,
            audit_head=row.audit_head,
            proof="x",
            pruned_at=row.ended_at,
        )
    statement = "DELETE FROM jobtrack_auditentry WHERE operation_id = %s"
    if connection.vendor == "postgresql" and remains != 2:
        with pytest.raises(DatabaseError, match="written once"):
            raw(statement, "op-1")
        assert AuditEntry.objects.count() == 2
    else:
        raw(statement, "op-1")
        assert AuditEntry.objects.count() == 0


def test_another_operations_proof_frees_no_entry(site):
    """INV-40."""
    ended(site, "op-1", "op-2")
    row = Operation.objects.get(pk="op-1")
    PrunedOperation.objects.create(
        operation_id="op-1", audit_seq=9, audit_head=row.audit_head, proof="x", pruned_at=row.ended_at
    )
    if connection.vendor == "postgresql":
        with pytest.raises(DatabaseError, match="written once"):
            raw("DELETE FROM jobtrack_auditentry")
        assert AuditEntry.objects.count() == 4


def test_a_known_id_with_other_content_is_a_conflict_as_long_as_it_is_there(pay):
    """As before (R-ID-4)."""
    track("acme", **JOB)
    with pytest.raises(IdempotencyConflict):
        track("acme", job_id="other", operation_id="old")
