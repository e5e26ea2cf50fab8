"""What the database itself holds, and what a site's settings can never change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, models, transaction
from django.db.models import ProtectedError

from jobtrack.core.escalation import Option, Resolution
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack.flow.poll import poll
from jobtrack.flow.resolve import resolve
from jobtrack.testing.provider import answer, no_answer
from jobtrack_django import track
from jobtrack_django.models import AccountGate, AuditEntry, Delivery, Escalation, Operation, TableText
from tests.contracts.conftest import HOUR, django_bench

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.fixture
def row():
    bench = django_bench()
    bench.add()
    return Operation.objects.get()


@pytest.mark.parametrize(
    ("constraint", "changes"),
    [
        ("requests", {"spent_status_requests": 4}),
        ("failures", {"spent_transport_failures": 4}),
        ("rate_limited", {"spent_rate_limited": 4}),
        ("extensions", {"spent_extensions": 1}),
        ("state_known", {"state": "done"}),
        ("ended_rests", {"state": "succeeded"}),
    ],
)
def test_the_database_refuses_rows_that_cannot_be(row, constraint, changes):
    """INV-01: counters never exceed their limits. INV-07: what has ended has no next look."""
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Operation.objects.filter(pk=row.pk).update(**changes)


def test_the_fence_is_never_negative(row):
    with pytest.raises(DatabaseError), transaction.atomic():
        Operation.objects.filter(pk=row.pk).update(fence=-1)


def test_the_constraints_name_the_ten_states():
    (known,) = (c for c in Operation._meta.constraints if c.name == "jobtrack_op_state_known")
    (ended,) = (c for c in Operation._meta.constraints if c.name == "jobtrack_op_ended_rests")
    assert [state.value for state in OperationState] == known.condition.children[0][1]
    assert {state.value for state in TERMINAL} == set(ended.condition.children[0].children[0][1])


def escalation(row, **changes):
    values = {"reason": "unknown_state", "blocking": True, "open_blocking": True, "opened_at": row.created_at}
    return Escalation.objects.create(operation=row, **{**values, **changes})


def test_one_open_blocking_question_and_one_advisory_of_each_reason(row):
    advisory = {"blocking": False, "open_blocking": None, "open_advisory": True}
    escalation(row)
    escalation(row, reason="delivery_failed", **advisory)
    escalation(row, reason="state_contradiction", **advisory)
    for again in ({"reason": "stalled"}, {"reason": "delivery_failed", **advisory}):
        with pytest.raises(IntegrityError), transaction.atomic():
            escalation(row, **again)
    Escalation.objects.update(open_blocking=None, open_advisory=None, decided_at=row.created_at)
    assert escalation(row, **advisory).pk


@pytest.mark.parametrize(
    "odd", [{"open_blocking": False}, {"open_blocking": None}, {"open_advisory": True}, {"blocking": False}]
)
def test_a_question_is_open_in_its_own_place_or_decided(row, odd):
    with pytest.raises(IntegrityError, match="open_or_decided"), transaction.atomic():
        escalation(row, **odd)


@pytest.mark.parametrize(
    "act",
    [
        lambda entry: entry.save(),
        lambda entry: entry.delete(),
        lambda entry: AuditEntry.objects.update(body="{}"),
        lambda entry: AuditEntry.objects.all().delete(),
        lambda entry: AuditEntry.objects.bulk_update([entry], ["body"]),
        lambda entry: entry.operation.audit.all().delete(),
    ],
)
def test_audit_entries_are_neither_changed_nor_deleted(row, act):
    """INV-40."""
    entry = AuditEntry.objects.get()
    with pytest.raises(TypeError, match="written once"):
        act(entry)
    assert AuditEntry.objects.filter(pk=entry.pk, body=entry.body).exists()


def test_an_operation_with_audit_entries_cannot_be_deleted(row):
    with pytest.raises(ProtectedError):
        row.delete()


@pytest.mark.parametrize("statement", ["UPDATE jobtrack_auditentry SET body = '{}'", "DELETE FROM jobtrack_auditentry"])
def test_the_database_refuses_it_too(row, statement):
    if statement.startswith("DELETE") and connection.vendor != "postgresql":
        return  # see append_only: a project's tests empty tables with DELETE
    with pytest.raises(DatabaseError, match="written once"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_words_for_sets_of_operations(django_user_model):
    bench = django_bench()
    ada = django_user_model.objects.create(username="ada")
    bench.add("due")
    bench.add("later", wake_at=bench.store.now() + HOUR)
    bench.add("ended", state=OperationState.FAILED, wake_at=None)
    escalation(Operation.objects.get(pk="ended"), blocking=False, open_blocking=None, open_advisory=True)
    escalation(Operation.objects.get(pk="later"), decided_at=bench.store.now(), open_blocking=None)
    linked = Operation.objects.get(pk="later")
    linked.subject = ada
    linked.save()
    words = {
        "open": Operation.objects.open(),
        "due": Operation.objects.due(),
        "needs_decision": Operation.objects.needs_decision(),
        "for_object": Operation.objects.for_object(ada),
        "by_provider": Operation.objects.by_provider("acme-export"),
        "other provider": Operation.objects.by_provider("acme"),
    }
    assert {word: sorted(rows.values_list("pk", flat=True)) for word, rows in words.items()} == {
        "open": ["due", "later"],
        "due": ["due"],
        "needs_decision": ["ended"],
        "for_object": ["later"],
        "by_provider": ["due", "ended", "later"],
        "other provider": [],
    }


def test_the_outcome_of_a_row_is_the_contract_of_core(row):
    outcome = row.outcome()
    assert (outcome["outcome"], outcome["state"], outcome["needs_decision"]) == ("pending", "running", [])
    assert outcome["transport_observation"] is None


def test_the_outcome_tells_the_newest_request_and_the_table_s_question(site):
    """R-SUB-8: the newest request, also when other entries follow it; asking sends nothing (R-CALL-2)."""
    operation = track("acme", job_id="job-1", operation_id="op-1", needed_by=datetime.now(UTC) - timedelta(days=1))
    running = answer(json={"status": "running", "note": '"observation":{'}, headers={"X-Request-Id": "req-1"})
    site.provider.script("job-1", running, no_answer("read_timeout"))
    for _ in range(2):
        site.make_due("op-1")
        poll(site.runtime, ["op-1"])
    (question,) = site.runtime.store.open_escalations("op-1")
    acknowledged = Resolution(escalation_id=question.id, option=Option.CLOSE, actor="ada", reason="seen", version=1)
    resolve(site.runtime, acknowledged)
    asked = len(site.provider.log)
    operation.refresh_from_db()
    outcome = operation.outcome()
    seen = outcome["transport_observation"]
    assert (seen["http"], seen["trouble"], seen["request_id"]) == (None, "read_timeout", None)
    assert datetime.fromisoformat(seen["at"]) > datetime.fromisoformat(outcome["observed"]["at"])
    assert outcome["observed"]["state"] == "running"
    assert outcome["reconcile"] == {"method": "GET", "path": "/v1/jobs/job-1"}
    assert len(site.provider.log) == asked


@pytest.mark.parametrize(
    "odd",
    [
        {"JOBTRACK": {"QUEUE": "other", "DATABASE": "default", "ADMIN": False}},
        {"DEFAULT_AUTO_FIELD": "django.db.models.AutoField"},
        {"LANGUAGE_CODE": "de"},
    ],
)
def test_no_setting_asks_for_a_migration(settings, odd):
    for name, value in odd.items():
        setattr(settings, name, value)
    call_command("makemigrations", "jobtrack", check=True, dry_run=True, stdout=StringIO())


def test_no_column_lists_words_of_settings_or_tables():
    with_choices = [
        field for model in (Operation, Escalation, AuditEntry) for field in model._meta.fields if field.choices
    ]
    assert with_choices == []


def test_rows_name_themselves(row):
    others = (
        (escalation(row), "unknown_state of op-1"),
        (Delivery(id="op-1:on_end"), "op-1:on_end"),
        (AccountGate(provider="acme", account="default"), "acme/default"),
        (TableText(table_id="acme", revision=3, digest="d" * 64), "acme r3 dddddddddddd"),
    )
    assert [str(other) for other, _ in others] == [name for _, name in others]
    assert (str(row), str(AuditEntry.objects.get())) == ("op-1", "op-1 #1")
    assert isinstance(row._meta.pk, models.CharField)
