"""Operations in a database of their own: what one transaction decides, and what it cannot (R-ID-2, R-SUB-1, R-ID-4).

``JOBTRACK["DATABASE"]`` is a second real database, an SQLite file; people and sessions are in the one that
``JOBTRACK_TEST_DB`` names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections, transaction
from django.test import Client, RequestFactory
from django.urls import reverse

from jobtrack.errors import IdempotencyConflict, UsageError
from jobtrack.testing.provider import FakeProvider
from jobtrack_django import cancel, get_operation, submit, track
from jobtrack_django.models import AuditEntry, Delivery, Escalation, Operation
from jobtrack_django.testing import Rehearsal, answer, makes, rehearsal
from jobtrack_django.views import OutcomeView
from tests.django.admin_pages import decide_url, question_url, read
from tests.django.admin_tills import DONE, TABLE, TAKEN

pytestmark = [
    pytest.mark.database,
    pytest.mark.usefixtures("jobs"),
    pytest.mark.django_db(transaction=True, databases=["default", "jobs"]),
]


def declare(name: Path) -> None:
    """An alias that the settings do not have, with all that Django would have added to its entry."""
    entry = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(name),
        # Nothing here outlives a power cut, so no write waits for the disk.
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 30, "init_command": "PRAGMA synchronous=OFF"},
    }
    declared = connections.configure_settings({"default": {**connections.settings["default"]}, "jobs": entry})
    connections.settings["jobs"] = declared["jobs"]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory, django_db_setup, django_db_blocker) -> Iterator[None]:
    """The alias ``jobs`` while these tests run, as ``migrate --database jobs`` leaves it."""
    with django_db_blocker.unblock():
        declare(tmp_path_factory.mktemp("jobs") / "jobs.sqlite3")
        try:
            call_command("migrate", database="jobs", verbosity=0)
            connections["jobs"].close()
            yield
        finally:
            connections["jobs"].close()
            del connections["jobs"]
            del connections.settings["jobs"]


@pytest.fixture
def till(settings, tmp_path: Path) -> Iterator[Rehearsal]:
    """A site whose operations are in ``jobs``."""
    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)], "DATABASE": "jobs"}
    with rehearsal() as here:
        here.provider.on("POST", "/v1/payments", makes("pay-1", TAKEN))
        here.provider.on("GET", "/v1/payments/pay-1", DONE)
        yield here


def pay(operation_id: str = "order-7", amount: int = 5, **task: object) -> Operation:
    return submit("till", operation_id=operation_id, payload={"amount": amount}, **task)


def rows() -> tuple[int, int]:
    """Operations in ``default`` and in ``jobs``."""
    return Operation.objects.using("default").count(), Operation.objects.using("jobs").count()


def requests(provider: FakeProvider) -> int:
    return len(provider.sent("POST"))


def test_a_committed_submission_is_sent_once_and_is_in_the_named_database_alone(till):
    with transaction.atomic(using="jobs"):
        row = pay()
        assert requests(till.provider) == 0
    till.run_due()
    assert (row._state.db, rows(), requests(till.provider)) == ("jobs", (0, 1), 1)
    assert get_operation("order-7").outcome()["outcome"] == "succeeded"
    beside = [model.objects.using("default").count() for model in (AuditEntry, Delivery, Escalation)]
    assert (beside, AuditEntry.objects.using("jobs").exists()) == ([0, 0, 0], True)


def test_without_any_transaction_it_is_the_same(till):
    pay()
    till.run_due()
    assert (rows(), requests(till.provider)) == ((0, 1), 1)


def test_after_a_rollback_there_is_nothing(till):
    with suppress(KeyError), transaction.atomic(using="jobs"):
        pay()
        raise KeyError
    till.run_due()
    assert (rows(), requests(till.provider)) == ((0, 0), 0)


def test_a_transaction_on_the_other_database_alone_is_refused(till):
    with transaction.atomic(), pytest.raises(UsageError, match="on_commit") as refused:
        pay()
    assert "'jobs'" in str(refused.value)
    till.run_due()
    assert (rows(), requests(till.provider)) == ((0, 0), 0)


def test_what_the_refusal_advises_works(till):
    with transaction.atomic():
        transaction.on_commit(pay, using="default")
        assert rows() == (0, 0)
    till.run_due()
    assert (rows(), requests(till.provider)) == ((0, 1), 1)


def test_a_cancellation_is_refused_there_too(till):
    till.provider.on("GET", "/v1/payments/pay-1", answer(json={"status": "running"}))
    row = pay()
    till.run_due(until=till.clock())
    with transaction.atomic(), pytest.raises(UsageError, match="on_commit"):
        cancel(row)
    assert not Delivery.objects.using("jobs").filter(event="cancel").exists()


def test_ours_around_both_takes_a_submission_back_when_the_inner_work_fails(till):
    """What docs/submitting.md advises: our transaction is the outer one, and so commits last."""
    with suppress(KeyError), transaction.atomic(using="jobs"), transaction.atomic():
        User.objects.create_user("ann")
        pay()
        raise KeyError
    till.run_due()
    assert (rows(), requests(till.provider), User.objects.count()) == ((0, 0), 0, 0)


def test_an_outer_rollback_elsewhere_cannot_take_it_back(till):
    """The limit that docs/submitting.md tells: with both open, the caller chose the order of the commits."""
    with suppress(KeyError), transaction.atomic():
        User.objects.create_user("ann")
        with transaction.atomic(using="jobs"):
            pay()
        raise KeyError
    till.run_due()
    assert (rows(), requests(till.provider), User.objects.count()) == ((0, 1), 1, 0)


def test_track_is_not_refused_and_is_stored_at_once(till):
    """It sends nothing that could be done twice: the job is there whatever is rolled back."""
    with suppress(KeyError), transaction.atomic():
        track("till", job_id="pay-1", operation_id="order-8")
        raise KeyError
    till.run_due()
    assert (rows(), requests(till.provider)) == ((0, 1), 0)
    assert get_operation("order-8").state == "succeeded"


def test_a_conflict_is_reported_although_our_transaction_is_rolled_back(till):
    pay()
    with pytest.raises(IdempotencyConflict), transaction.atomic(using="jobs"):
        pay(amount=6)
    assert till.runtime.scheduler.conflicts == ["order-7"]
    with pytest.raises(IdempotencyConflict):
        pay(amount=6)
    till.run_due()
    assert Escalation.objects.using("jobs").open().get().reason == "idempotency_conflict"
    assert (rows(), requests(till.provider)) == ((0, 1), 1)


def test_the_admin_and_the_outcome_read_from_it_and_a_decision_is_written_to_it(till):
    """People, sessions and Django's own log stay in their database."""
    ann = User.objects.create_superuser("ann")
    till.provider.on("POST", "/v1/payments", answer(422, json={"error": "no such account"}))
    pay(subject=ann, reference="Order 7")
    till.run_due()
    client = Client()
    client.force_login(ann)
    assert "order-7" in read(client.get(reverse("admin:jobtrack_operation_changelist"))).text
    assert "no such account" in read(client.get(reverse("admin:jobtrack_operation_change", args=["order-7"]))).text
    question = Escalation.objects.using("jobs").open().get()
    assert "no such account" in read(client.get(question_url(question))).text
    logged = LogEntry.objects.using("default").count()
    answered = client.post(decide_url(question, "close"), {"reason": "seen", "version": question.version})
    assert answered.status_code == 302
    assert not Escalation.objects.using("jobs").open().exists()
    assert Escalation.objects.using("default").count() == 0
    assert (LogEntry.objects.using("default").count(), LogEntry.objects.using("jobs").count()) == (logged + 1, 0)
    request = RequestFactory().get("/")
    request.user = ann
    told = json.loads(OutcomeView.as_view()(request, operation_id="order-7").content)
    assert (told["operation_id"], told["outcome"]) == ("order-7", "failed")
    with closing(StringIO()) as out:
        call_command("jobtrack_list", stdout=out)
        assert "order-7" in out.getvalue()


def test_the_subject_is_found_where_it_is(till):
    """Also if the same model has another number there, and many at once."""
    ann = User.objects.create_superuser("ann")
    kind = ContentType.objects.db_manager("default").get_for_model(User)
    ContentType.objects.using("jobs").filter(pk=kind.pk).delete()
    ContentType.objects.clear_cache()
    for number in range(2):
        pay(f"order-{number}", subject=ann)
    assert get_operation("order-1").subject == ann
    found = Operation.objects.using("jobs").for_object(ann).prefetch_related("subject")
    assert [(each.pk, each.subject) for each in found.order_by("pk")] == [("order-0", ann), ("order-1", ann)]
