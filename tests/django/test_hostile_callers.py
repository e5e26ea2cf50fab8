"""``track`` under odd arguments, and two callers with one operation id at the same moment (INV-20)."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection, connections, transaction

from jobtrack.errors import JobtrackError, UsageError
from jobtrack_django import track
from jobtrack_django.models import AuditEntry, Operation

S = timedelta(seconds=1)

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"params": "abc"},
        {"params": ["region"]},
        {"params": {1: 2, "a": 3}},
        {"account": ["eu"]},
        {"account": None},
        {"status_url": 5},
        {"status_url": None},
        {"subject": "ada"},
        {"subject": object()},
        {"subject": User},
        {"subject": User(username="unsaved")},
        {"subject": User(pk=7, username="unsaved, with a key")},
        {"subject": Session(session_key="unsaved, with a key of its own")},
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_and_leaves_nothing(site, wrong):
    with pytest.raises(UsageError):
        track("acme", job_id="job-1", **wrong)
    assert not Operation.objects.exists()


@pytest.mark.parametrize("table_id", [None, 5, ["acme"], b"acme", "", "\0", "../acme"])
def test_a_table_id_of_the_wrong_kind_is_refused(site, table_id):
    with pytest.raises(JobtrackError):
        track(table_id, job_id="job-1")


def test_an_object_that_was_deleted_is_no_subject(site):
    ada = User.objects.create(username="ada")
    ada.delete()
    with pytest.raises(UsageError):
        track("acme", job_id="job-1", subject=ada)


def test_callers_at_the_same_moment_get_one_operation_each_inside_a_transaction_of_its_own(site):
    """INV-20. On MariaDB each loser shares a lock on the row; none may ask for more, or they deadlock."""
    ada = User.objects.create(username="ada")
    start, got = threading.Barrier(6), []

    def call():
        try:
            start.wait()
            with transaction.atomic():
                got.append(track("acme", job_id="job-1", operation_id="order-7", subject=ada).pk)
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            got.append(repr(error))
        finally:
            connections.close_all()

    callers = [threading.Thread(target=call) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert got == ["order-7"] * 6
    assert (Operation.objects.count(), AuditEntry.objects.count()) == (1, 1)


def test_a_caller_with_an_older_snapshot_gets_the_operation_that_came_meanwhile(site):
    """MySQL's own default isolation keeps what a transaction saw first; only a locking read sees past it."""

    def other():
        track("acme", job_id="job-1", operation_id="order-7")
        connections.close_all()

    thread = threading.Thread(target=other)
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    if connection.vendor == "sqlite":  # one writer at a time: the other caller can only have come before
        thread.start()
        thread.join()
    try:
        with transaction.atomic():
            if connection.vendor != "sqlite":
                assert not Operation.objects.exists()
                thread.start()
                thread.join()
            assert track("acme", job_id="job-1", operation_id="order-7").pk == "order-7"
    finally:
        connection.close()


def test_saving_a_row_that_was_read_a_moment_ago_undoes_nothing(site):
    """INV-07, INV-13: the worker has claimed the row meanwhile; the link and the reference are the caller's."""
    stale = track("acme", job_id="job-1", operation_id="order-7")
    site.make_due("order-7")
    (claim,) = site.runtime.store.claim(["order-7"], owner="w1", lease=60 * S, floor=S)
    stale.state, stale.reference, stale.subject = "succeeded", "Order 7", User.objects.create(username="ada")
    stale.save()
    row = Operation.objects.get()
    assert row.to_core() == replace(claim.operation, reference="Order 7")
    assert row.subject.username == "ada"
    with pytest.raises(TypeError, match="Only jobtrack writes state"):
        stale.save(update_fields=["state", "reference"])
