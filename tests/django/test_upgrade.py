"""A database of the release before this one, with work under way, goes on after `migrate`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from jobtrack.core.audit import GENESIS, canonical, seal
from jobtrack.core.escalation import Option, Resolution, Risk
from jobtrack.core.operation import OperationState, Spent
from jobtrack.records import Commit, Committed, Receipt
from jobtrack_django.models import Escalation, Operation
from tests.contracts.conftest import FLOOR, HOUR, LEASE, django_bench

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

STOPS = ["0001_initial", "0002_submissions"]
"""The last migration of each release before this one."""
AFTER = [("jobtrack", "0004_fill_desk")]


def migrate(to):
    executor = MigrationExecutor(connection)
    executor.migrate(to)
    return executor.loader.project_state(to).apps


def migrate_state(name):
    """The models as a release knew them, whatever the database is like."""
    return MigrationExecutor(connection).loader.project_state([("jobtrack", name)]).apps


@pytest.fixture(params=STOPS)
def earlier(request):
    """The models of an earlier release, over a database as it left it. Afterwards it is the newest again."""
    try:
        yield migrate([("jobtrack", request.param)])
    finally:
        migrate(AFTER)


def add(apps, operation_id, **changes):
    """A row as the earlier release wrote it, with its first audit entry."""
    now = django_bench().store.now()
    text = canonical({"event": "track"})
    digest = seal(GENESIS, operation_id, 1, text)
    values = {
        "provider": "acme-export",
        "job_id": operation_id,
        "state": "running",
        "created_at": now,
        "accepted_at": now,
        "deadline": now + HOUR,
        "wake_at": now,
        **{f"limit_{name}": 3 for name in ("status_requests", "transport_failures", "rate_limited")},
    }
    operation = apps.get_model("jobtrack", "Operation").objects.create(
        id=operation_id, audit_seq=1, audit_head=digest, **{**values, **changes}
    )
    entry = apps.get_model("jobtrack", "AuditEntry")
    entry.objects.create(operation=operation, seq=1, prev=GENESIS, hash=digest, body=text, at=now)
    return operation


def test_work_under_way_goes_on(earlier):
    """Rows that run, are looked at this moment, wait for a person, and owe a follow-up."""
    bench = django_bench()
    now = bench.store.now()
    add(earlier, "running", not_before=now, spent_status_requests=1)
    lease = {"fence": 4, "lease_owner": "w", "lease_until": now + LEASE, "lease_granted": True}
    add(earlier, "looking", wake_at=now + LEASE, spent_status_requests=2, **lease)
    stopped = add(earlier, "stopped", state="escalated", wake_at=None, fence=2)
    ended = add(earlier, "ended", state="succeeded", wake_at=None, kept={"rows": 7}, on_success="a.b")
    earlier.get_model("jobtrack", "Escalation").objects.create(
        operation=stopped, reason="stalled", blocking=True, open_blocking=True, opened_at=now
    )
    earlier.get_model("jobtrack", "Delivery").objects.create(
        id="ended:on_success", operation=ended, event="on_success", handler="a.b", due_at=now
    )

    migrate(AFTER)

    row = bench.row("running")
    fresh = (row.sealed, row.evidence, row.hint_floor, row.hinted, row.budget.submissions, row.budget.follow_for)
    assert fresh == ("", {}, None, False, 0, None)
    assert bench.store.due(limit=9, grace=timedelta(0)).operations == ("running",)
    (claim,) = bench.store.claim(["running", "looking"], owner="w2", lease=LEASE, floor=FLOOR)
    assert (claim.granted, claim.operation.spent) == (True, Spent(status_requests=2))
    ends = replace(claim.operation, state=OperationState.SUCCEEDED, lease=None, wake_at=None, not_before=None)
    looked = bench.row("looking")
    waits = replace(looked, lease=None, wake_at=looked.wake_at + HOUR)
    commits = [Commit(operation=each, entry={"event": "poll"}) for each in (ends, waits)]
    assert bench.store.commit(commits) == [Committed.DONE, Committed.DONE]

    (question,) = bench.store.open_escalations("stopped")
    answer = Resolution(escalation_id=question.id, option=Option.CLOSE, actor="ada", reason="seen", version=1)
    assert bench.store.resolve(answer, replace(bench.row("stopped"), state=OperationState.ABANDONED), {}).job_id == ""
    assert bench.store.take_delivery("ended:on_success", owner="w2", lease=LEASE).attempts == 1
    assert bench.row("ended").kept == {"rows": 7}
    assert bench.store.receive([Receipt(provider="p", account="a", notice_id="n", job_id="running")]) == [True]
    assert bench.audited("running", "looking", "stopped", "ended").faults == ()


def test_the_promises_of_the_tables_hold_after_it(earlier, request):
    """INV-40, INV-01: SQLite copies a table to change it; its checks, keys and triggers must come along."""
    add(earlier, "op-1")
    migrate(AFTER)
    for forbidden in (
        "UPDATE jobtrack_auditentry SET body = '{}'",
        "UPDATE jobtrack_operation SET spent_status_requests = limit_status_requests + 1",
        "UPDATE jobtrack_operation SET spent_submissions = 1",
        "UPDATE jobtrack_operation SET state = 'succeeded'",
        "INSERT INTO jobtrack_auditentry SELECT * FROM jobtrack_auditentry",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(forbidden)
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, "jobtrack_operation")
    assert {"jobtrack_op_wake", "jobtrack_op_state_known", "jobtrack_op_ended_rests"} <= set(found)

    # While nothing was submitted it can be taken back.
    before = migrate([("jobtrack", request.node.callspec.params["earlier"])])
    assert before.get_model("jobtrack", "Operation").objects.get().job_id == "op-1"


def test_what_lists_and_figures_need_is_filled_in(earlier):
    """Questions get a provider and a rank, ended operations the time of their end; in batches, and only once."""
    now = django_bench().store.now()
    ended = add(earlier, "ended", state="succeeded", wake_at=None, observed_at=now + LEASE)
    unread = add(earlier, "unread", state="abandoned", wake_at=None)
    add(earlier, "running")
    question = earlier.get_model("jobtrack", "Escalation").objects.create
    for operation, reason in ((ended, "provider_failure"), (unread, "submission_unknown"), (unread, "stalled")):
        question(operation=operation, reason=reason, blocking=False, opened_at=now, decided_at=now)

    migrate(AFTER)

    rows = Operation.objects.order_by("pk").values_list("pk", "ended_at")
    assert list(rows) == [("ended", now + LEASE), ("running", None), ("unread", unread.created_at)]
    asked = Escalation.objects.order_by("pk").values_list("reason", "provider", "account", "risk")
    assert list(asked) == [
        ("provider_failure", "acme-export", "default", Risk.LOW),
        ("submission_unknown", "acme-export", "default", Risk.HIGH),
        ("stalled", "acme-export", "default", Risk.MEDIUM),
    ]


def test_a_worker_of_the_last_release_goes_on_writing(earlier):
    """A rolling deploy: its INSERT names no column that it does not know (INV-43)."""
    migrate(AFTER)
    old = migrate_state(STOPS[-1])
    operation = add(old, "op-1", state="failed", wake_at=None)
    old.get_model("jobtrack", "Escalation").objects.create(
        operation=operation,
        reason="provider_failure",
        blocking=False,
        open_advisory=True,
        opened_at=operation.created_at,
    )
    row = Escalation.objects.get()
    assert (row.provider, row.risk, row.proposal) == ("", Risk.MEDIUM, None)
    assert Operation.objects.get().ended_at is None
