"""What the database itself holds, and what a site's settings can never change."""

from __future__ import annotations

from datetime import datetime
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, models, transaction
from django.db.models import F, ProtectedError

from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer, no_answer
from jobtrack_django import track
from jobtrack_django.models import (
    AccountGate,
    AuditEntry,
    Delivery,
    Escalation,
    FollowUpReceipt,
    JobResult,
    Operation,
    TableText,
    WebhookReceipt,
)
from tests.contracts.conftest import HOUR, django_bench

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.fixture
def row():
    bench = django_bench()
    bench.add()
    return Operation.objects.get()


def raw(statement):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize(
    ("constraint", "changes"),
    [
        ("requests", "spent_status_requests = limit_status_requests + 1"),
        ("requests", "spent_status_requests = 2, limit_status_requests = 1"),
        ("failures", "spent_transport_failures = limit_transport_failures + 1"),
        ("rate_limited", "spent_rate_limited = limit_rate_limited + 1"),
        ("extensions", "spent_extensions = limit_extensions + 1"),
        ("submissions", "spent_submissions = limit_submissions + 1"),
        ("lookups", "spent_lookups = limit_lookups + 1"),
        ("state_known", "state = 'done'"),
        *(("ended_rests", f"state = '{state.value}'") for state in sorted(TERMINAL)),
        ("ended_rests", "state = 'succeeded', wake_at = NULL, lease_until = deadline"),
    ],
)
def test_the_database_refuses_rows_that_cannot_be(row, constraint, changes):
    """INV-01: counters never exceed their limits. INV-07: what has ended has no next look and no lease."""
    with pytest.raises(IntegrityError, match=constraint):
        raw(f"UPDATE jobtrack_operation SET {changes}")  # noqa: S608 - the rows above


def test_the_database_takes_rows_at_their_limits_and_rows_that_rest(row):
    raw(
        "UPDATE jobtrack_operation SET spent_status_requests = limit_status_requests, spent_extensions = limit_extensions"
    )
    raw("UPDATE jobtrack_operation SET state = 'succeeded', wake_at = NULL")
    assert Operation.objects.get().state == "succeeded"


@pytest.mark.parametrize("key", ["audit_seq", "one_delivery", "one_gate", "one_receipt", "one_result", "one_effect"])
def test_the_database_keeps_keys_unique(row, key):
    """INV-21, INV-38: one audit entry of each number, one delivery of each event, one gate of each account."""
    now = row.created_at
    notice = {"provider": "acme", "account": "default", "notice_id": "n-1", "received_at": now}
    first, second = {
        "audit_seq": [AuditEntry(operation=row, seq=2, hash=text * 64, at=row.created_at) for text in "ab"],
        "one_delivery": [Delivery(id=f"op-1:{text}", operation=row, event="on_end") for text in "ab"],
        "one_gate": [AccountGate(provider="acme", account="default") for _ in "ab"],
        "one_receipt": [WebhookReceipt(job_id=text, **notice) for text in "ab"],
        "one_result": [JobResult(operation=row, state=text) for text in "ab"],
        "one_effect": [FollowUpReceipt(key="op-1:on_end", created_at=now) for _ in "ab"],
    }[key]
    first.save(force_insert=True)
    with pytest.raises(IntegrityError), transaction.atomic():
        second.save(force_insert=True)


def test_an_operation_leads_to_its_result(row):
    with pytest.raises(JobResult.DoesNotExist):
        assert row.result
    kept = JobResult.objects.create(operation=row, state="wanted")
    assert Operation.objects.get().result == kept
    assert kept.to_core() == django_bench().store.result("op-1")


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


def test_the_database_refuses_it_too(row):
    with pytest.raises(DatabaseError, match="written once"):
        raw("UPDATE jobtrack_auditentry SET body = '{}'")


def test_what_the_database_lets_be_deleted_is_found_by_the_verifier(row):
    """PostgreSQL refuses it; on the others a project's tests empty tables with DELETE (see append_only)."""
    statement = "DELETE FROM jobtrack_auditentry"
    if connection.vendor == "postgresql":
        with pytest.raises(DatabaseError, match="written once"):
            raw(statement)
        assert django_bench().audited("op-1").faults == ()
    else:
        raw(statement)
        assert django_bench().audited("op-1").faults != ()


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
    """R-SUB-8: the newest request, also when entries without one follow it; asking sends nothing (R-CALL-2)."""
    operation = track("acme", job_id="job-1", operation_id="op-1")
    running = answer(json={"status": "running", "note": '"observation":{'}, headers={"X-Request-Id": "req-1"})
    site.provider.script("job-1", running, no_answer("read_timeout"))
    for deadline in (F("deadline"), F("deadline"), F("created_at")):
        Operation.objects.update(deadline=deadline)
        site.make_due("op-1")
        poll(site.runtime, ["op-1"])
    asked = len(site.provider.log)
    operation.refresh_from_db()
    outcome = operation.outcome()
    assert (asked, outcome["outcome"], outcome["needs_decision"]) == (2, "pending", ["deadline_exceeded"])
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
    models_with_words = (Operation, Escalation, AuditEntry, JobResult)
    with_choices = [field for model in models_with_words for field in model._meta.fields if field.choices]
    assert with_choices == []


def test_rows_name_themselves(row):
    others = (
        (escalation(row), "unknown state (operation op-1)"),
        (Delivery(id="op-1:on_end"), "op-1:on_end"),
        (AccountGate(provider="acme", account="default"), "acme/default"),
        (JobResult(operation=row), "Result of operation op-1"),
        (WebhookReceipt(provider="acme", account="default", notice_id="n-1"), "acme/default n-1"),
        (FollowUpReceipt(key="op-1:on_end"), "op-1:on_end"),
        (TableText(table_id="acme", revision=3, digest="d" * 64), "acme r3 dddddddddddd"),
    )
    assert [str(other) for other, _ in others] == [name for _, name in others]
    assert (str(row), str(AuditEntry.objects.get())) == ("op-1", "op-1 #1")
    assert isinstance(row._meta.pk, models.CharField)
