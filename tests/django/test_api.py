"""``track``, ``track_many``, ``atrack``, ``get_operation``: what a view may rely on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

import jobtrack_django
from jobtrack.errors import IdempotencyConflict, OperationNotFound, TableMissing, UsageError
from jobtrack_django import atrack, get_operation, track, track_many
from jobtrack_django.models import AuditEntry, Operation

pytestmark = pytest.mark.database
HOUR = timedelta(hours=1)


@pytest.mark.django_db(transaction=True)
class TestTrack:
    def test_one_call_stores_the_operation_and_publishes_its_first_look(self, site, django_user_model):
        ada, needed_by = django_user_model.objects.create(username="ada"), datetime.now(UTC) + HOUR
        operation = track(
            "acme",
            job_id="job-1",
            account="eu",
            operation_id="order-7",
            on_success="reports.store",
            subject=ada,
            reference="Order 7",
            deadline=2 * HOUR,
            needed_by=needed_by,
            status_requests=5,
        )
        assert (operation.pk, operation.state, operation.job_id, operation.account) == (
            *("order-7", "running", "job-1", "eu"),
        )
        assert (operation.subject, operation.reference, operation.on_success) == (ada, "Order 7", "reports.store")
        assert (operation.limit_status_requests, operation.needed_by) == (5, needed_by)
        assert operation.deadline - operation.created_at == 2 * HOUR
        assert operation.status_url == "https://api.acme.example/v1/jobs/job-1"
        assert [(operation_id, fence) for operation_id, fence, _ in site.published] == [("order-7", 0)]
        assert site.provider.log == []

    def test_without_an_id_each_call_is_an_operation_of_its_own(self, site):
        first, second = (track("acme", job_id="job-1") for _ in range(2))
        assert first.pk != second.pk
        assert {uuid.UUID(first.pk).version, uuid.UUID(second.pk).version} == {7}

    def test_the_same_id_again_is_the_same_operation(self, site, django_user_model):
        """R-ID-4, R-CALL-1: a page refresh finds the same operation; its link to an object stays."""
        ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
        first = track("acme", job_id="job-1", operation_id="order-7", subject=ada)
        again = track("acme", job_id="job-1", operation_id="order-7", subject=bob)
        assert (again, again.subject) == (first, ada)
        assert AuditEntry.objects.count() == 1

    def test_the_same_id_for_another_job_is_a_conflict(self, site):
        track("acme", job_id="job-1", operation_id="order-7")
        with pytest.raises(IdempotencyConflict):
            track("acme", job_id="job-2", operation_id="order-7")
        assert Operation.objects.get().job_id == "job-1"

    def test_inside_a_transaction_nothing_is_published_before_the_commit(self, site):
        with transaction.atomic():
            operation = track("acme", job_id="job-1")
            assert site.published == []
        assert [operation_id for operation_id, *_ in site.published] == [operation.pk]

    def test_after_a_rollback_nothing_has_happened(self, site):
        with transaction.atomic():
            track("acme", job_id="job-1", operation_id="order-7")
            transaction.set_rollback(True)
        assert (Operation.objects.count(), AuditEntry.objects.count(), site.published) == (0, 0, [])
        assert track("acme", job_id="job-2", operation_id="order-7").job_id == "job-2"

    def test_a_publisher_that_raises_is_no_concern_of_the_caller(self, site, caplog, monkeypatch):
        def fail(*args, **kwargs):
            raise OSError("no broker")

        monkeypatch.setattr(site.runtime.scheduler, "wake", fail)
        assert track("acme", job_id="job-1").state == "running"
        assert "announce_stored" in caplog.text

    def test_many_are_stored_together_or_not_at_all(self, site):
        jobs = [{"job_id": f"job-{number}", "operation_id": f"order-{number}"} for number in range(3)]
        assert [operation.pk for operation in track_many("acme", jobs)] == ["order-0", "order-1", "order-2"]
        with pytest.raises(IdempotencyConflict):
            track_many("acme", [{"job_id": "new", "operation_id": "new"}, {"job_id": "x", "operation_id": "order-0"}])
        assert Operation.objects.count() == 3
        assert track_many("acme", []) == []

    def test_from_asynchronous_code(self, site):
        async def view():
            operation = await atrack("acme", job_id="job-1", operation_id="order-7")
            await sync_to_async(connections.close_all)()  # as Django does at the end of a request
            return operation

        assert asyncio.run(view()) == get_operation("order-7")


@pytest.mark.django_db
class TestRefusals:
    def test_an_unknown_table(self, site):
        with pytest.raises(TableMissing):
            track("nobody", job_id="job-1")

    @pytest.mark.parametrize(
        "odd",
        [
            {"operation_id": "x" * 201},
            {"operation_id": "a\0b"},
            {"operation_id": 7},
            {"job_id": "\ud800"},
            {"job_id": "x" * 501},
            {"reference": "x" * 201},
            {"account": "x" * 101},
            {"on_end": "x" * 256},
            {"deadline": timedelta(0)},
            {"status_requests": 0},
            {"colour": "red"},
            {"status_url": "https://evil.example/jobs/1"},
        ],
        ids=lambda odd: next(iter(odd)),
    )
    def test_what_cannot_be_accepted(self, site, odd):
        with pytest.raises(UsageError):
            track("acme", **{"job_id": "job-1", **odd})
        assert Operation.objects.count() == 0

    def test_a_parameter_of_the_account_is_not_the_callers_to_set(self, site):
        with pytest.raises(UsageError, match="region"):
            track("acme", job_id="job-1", account="us", params={"region": "eu"})

    def test_an_unsaved_object(self, site, django_user_model):
        with pytest.raises(UsageError, match="saved"):
            track("acme", job_id="job-1", subject=django_user_model(username="ada"))
        assert Operation.objects.count() == 0

    @pytest.mark.parametrize("operation_id", ["nobody", "a\0b", "\ud800"])
    def test_an_unknown_operation(self, site, operation_id):
        with pytest.raises(OperationNotFound):
            get_operation(operation_id)


def test_the_public_names():
    assert jobtrack_django.__all__ == sorted(jobtrack_django.__all__)
    assert {name: getattr(jobtrack_django, name) is not None for name in jobtrack_django.__all__} == dict.fromkeys(
        jobtrack_django.__all__, True
    )
    with pytest.raises(AttributeError):
        jobtrack_django.submit_nothing  # noqa: B018


def test_importing_the_package_needs_no_django_set_up():
    code = "import jobtrack_django, sys; assert 'django' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
