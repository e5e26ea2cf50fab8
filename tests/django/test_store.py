"""What only the store on a real database can show: clocks, locks, routers, statements and plans."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

import jobtrack_django
from jobtrack.core.escalation import Option, Question, Reason, Resolution
from jobtrack.core.operation import OperationState
from jobtrack.errors import AlreadyDecided, OperationNotFound
from jobtrack.flow.poll import poll
from jobtrack.records import Commit, Committed
from jobtrack.testing.provider import answer
from jobtrack_django.models import Escalation, Operation
from jobtrack_django.statements import lost_race
from jobtrack_django.store import DjangoStore
from tests.contracts.conftest import FLOOR, LEASE, TABLE, django_bench

pytestmark = pytest.mark.database

THREADS = 50
SECOND = timedelta(seconds=1)


def in_threads(count, work):
    """Run ``work(number)`` in threads that start together; returns their results."""
    barrier, results, errors = threading.Barrier(count), [], []

    def run(number):
        try:
            connection.ensure_connection()
            barrier.wait(timeout=60)
            results.append(work(number))
        except Exception as error:  # noqa: BLE001 - shown below, with its thread
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    return results


@pytest.mark.django_db(transaction=True)
def test_fifty_threads_claim_each_operation_once():
    """INV-13: by compare-and-set alone, whatever the database does about locks."""
    bench, rounds = django_bench(), 8
    ids = [f"op-{number}" for number in range(rounds)]
    for operation_id in ids:
        bench.add(operation_id)
    taken = Counter()

    def claim_all(number):
        found = []
        for operation_id in ids:
            found += DjangoStore().claim([operation_id], owner=f"{number}:{operation_id}", lease=LEASE, floor=FLOOR)
        # A batch may be claimed as well, in any order.
        found += DjangoStore().claim(ids[:: -1 if number % 2 else 1], owner=f"{number}:all", lease=LEASE, floor=FLOOR)
        return [claim.operation.id for claim in found]

    for claimed in in_threads(THREADS, claim_all):
        taken.update(claimed)
    # An attempt that lost a race for a lock found nothing; the next wake-up finds what is left.
    for claim in DjangoStore().claim(ids, owner="last", lease=LEASE, floor=FLOOR):
        taken[claim.operation.id] += 1
    assert taken == dict.fromkeys(ids, 1)
    rows = bench.store.get(ids)
    assert [(row.fence, row.spent.status_requests) for row in rows] == [(1, 1)] * rounds


@pytest.mark.django_db(transaction=True)
def test_of_many_deciders_one_wins_and_the_others_are_told():
    """INV-28."""
    bench = django_bench()
    bench.add()
    (claim,) = bench.claim()
    wanted = replace(claim.operation, state=OperationState.ESCALATED, lease=None, wake_at=None)
    question = Question(reason=Reason.UNKNOWN_STATE, detail="paused")
    bench.store.commit([Commit(operation=wanted, entry={}, questions=(question,))])
    (escalation,) = bench.store.open_escalations("op-1")
    abandoned = replace(bench.row(), state=OperationState.ABANDONED)

    def decide(number):
        resolution = Resolution(
            escalation_id=escalation.id, option=Option.CLOSE, actor=f"person {number}", reason="seen", version=1
        )
        try:
            DjangoStore().resolve(resolution, abandoned, {"event": "decision"})
        except AlreadyDecided as error:
            return error.context["actor"]
        return "applied"

    results = Counter(in_threads(20, decide))
    assert results.pop("applied") == 1
    assert results == {Escalation.objects.get().actor: 19}


@pytest.mark.django_db(transaction=True)
def test_many_adders_of_one_id_make_one_row():
    """INV-20."""
    bench = django_bench()
    wanted = bench.operation()
    stored = in_threads(20, lambda _: DjangoStore().add([wanted], {"event": "track"}, TABLE)[0])
    assert {operation.audit_head for operation in stored} == {bench.row().audit_head}
    assert len(bench.entries("op-1")) == 1


@pytest.mark.django_db(transaction=True)
def test_a_claim_inside_a_transaction_is_refused():
    """INV-03: a claim that a caller could roll back would send an unpaid request."""
    bench = django_bench()
    bench.add()
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        bench.claim()


@pytest.mark.django_db(transaction=True)
def test_rows_added_in_a_transaction_that_rolls_back_were_never_there():
    bench = django_bench()
    with transaction.atomic():
        bench.add()
        transaction.set_rollback(True)
    assert bench.store.get(["op-1"]) == []
    assert bench.texts() == {}
    bench.add()
    assert bench.texts() == {TABLE.digest: TABLE.text}


@pytest.mark.django_db
def test_the_clock_is_the_databases_and_in_utc():
    before = datetime.now(UTC) - SECOND
    assert before < DjangoStore().now() < datetime.now(UTC) + SECOND


HERE = Path(jobtrack_django.__file__).parent
WRITERS = ["api", "chain", "decisions", "models", "outbox", "querysets", "statements", "store"]
CLOCKS = r"\b(?:datetime|date|timezone)\.(?:now|utcnow|today|localtime)\b|\bauto_now|\bimport time\b|\bfrom time\b"


@pytest.mark.parametrize("module", WRITERS)
def test_no_row_is_judged_by_the_clock_of_this_machine(module):
    """INV-45: budgets, deadlines and leases of many machines need one clock. Both clocks agree in a test, so read."""
    source = (HERE / f"{module}.py").read_text(encoding="utf-8")
    assert re.findall(CLOCKS, source) == []


@pytest.mark.django_db
def test_the_time_zone_of_the_connection_does_not_matter():
    """MariaDB's NOW() is in that zone, while Django stores UTC."""
    zones = {"mysql": "SET time_zone = '+05:00'", "postgresql": "SET LOCAL TIME ZONE '+05:00'", "sqlite": "SELECT 1"}
    back = {"mysql": "SET time_zone = '+00:00'", "postgresql": "SET LOCAL TIME ZONE 'UTC'", "sqlite": "SELECT 1"}
    bench = django_bench()
    with connection.cursor() as cursor:
        cursor.execute(zones[connection.vendor])
    try:
        assert abs(bench.store.now() - datetime.now(UTC)) < SECOND
        bench.add(wake_at=bench.store.now())
        (claim,) = bench.claim()
        assert abs(claim.now - datetime.now(UTC)) < SECOND
        assert claim.operation.lease.until == claim.now + LEASE
    finally:
        with connection.cursor() as cursor:
            cursor.execute(back[connection.vendor])


class Elsewhere:
    """A router whose reads go to a replica that lags for ever."""

    def db_for_read(self, model, **hints):
        return "replica"

    def db_for_write(self, model, **hints):
        return "default"


@pytest.mark.django_db
def test_every_read_goes_to_the_database_that_takes_the_writes(settings, site):
    """Report B061: a poll read a replica that was a moment behind. "replica" does not even exist here."""
    settings.DATABASE_ROUTERS = [f"{__name__}.Elsewhere"]
    site.provider.script("job-1", answer(json={"status": "failed", "error": "disk full"}))
    from jobtrack_django import get_operation, track

    operation = track("acme", job_id="job-1", on_failure="tests.django.handlers.remember")
    site.make_due(operation.pk)
    (looked,) = poll(site.runtime, [operation.pk])
    assert looked.committed is Committed.DONE
    row = get_operation(operation.pk)
    assert (row.state, row.outcome()["needs_decision"]) == ("failed", ["provider_failure"])


@pytest.mark.django_db(transaction=True)
def test_an_unchanged_poll_costs_at_most_eight_statements_two_commits_one_message_one_request(site):
    """Read, gate, claim (2), commit (2)."""
    from jobtrack_django import track

    site.provider.script("job-1", answer(json={"status": "running"}))
    operation = track("acme", job_id="job-1")
    for _ in range(2):  # the first look stores the table's text, the second is like all later ones
        site.make_due(operation.pk)
        site.published.clear()
        site.provider.log.clear()
        with CaptureQueriesContext(connection) as captured:
            (looked,) = poll(site.runtime, [operation.pk])
    kinds = [query["sql"].split()[0] for query in captured]
    assert [kind for kind in kinds if kind not in ("BEGIN", "COMMIT")] == [
        *("SELECT", "SELECT", "UPDATE", "SELECT", "UPDATE", "INSERT")
    ]
    assert kinds.count("COMMIT") == 2
    assert looked.committed is Committed.DONE
    assert (len(site.provider.log), len(site.published)) == (1, 1)


@pytest.mark.parametrize(
    "text", ["a\0b", "half \ud800 pair", "\udfff", "𝄞" * 3, "x" * 5000, "\ufeff", "ﷺ" * 600], ids=ascii
)
@pytest.mark.django_db
def test_any_text_of_a_provider_can_be_kept(text):
    """INV-12, report B025: an answer that cannot be stored would be asked for ever."""
    bench = django_bench()
    bench.add()
    (claim,) = bench.claim()
    wanted = replace(
        claim.operation,
        state=OperationState.ESCALATED,
        lease=None,
        wake_at=None,
        provider_state=text,
        progress=text,
        error=text,
        kept={text: [text, float("nan"), float("inf"), 10**40, {"deep": text}]},
    )
    commit = Commit(
        operation=wanted,
        entry={"said": text, text: float("nan")},
        questions=(Question(reason=Reason.UNKNOWN_STATE, detail=text),),
    )
    assert bench.store.commit([commit]) == [Committed.DONE]
    assert bench.row().state is OperationState.ESCALATED
    assert bench.audited("op-1").faults == ()


@pytest.mark.django_db
def test_an_ordinary_text_is_kept_as_it_is():
    bench = django_bench()
    text = "Zeile 1\nline 2\t\N{SNOWMAN} 𝄞 'quoted' \\ %s {x}"
    stored = bench.add(error=text, kept={"text": text, "number": 0.1, "big": 2**53 + 1})
    assert (stored.error, stored.kept) == (text, {"text": text, "number": 0.1, "big": 2**53 + 1})


SHIFTED = {
    "postgresql": "wake_at + CASE WHEN n % 1000 = 0 THEN interval '0' ELSE interval '1 hour' END",
    "mysql": "IF(n % 1000 = 0, wake_at, wake_at + INTERVAL 1 HOUR)",
    "sqlite": "CASE WHEN n % 1000 = 0 THEN wake_at ELSE datetime(wake_at, '+1 hour') END",
}
NUMBERS = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})"


@pytest.mark.django_db(transaction=True)  # MariaDB commits before it analyses a table
def test_due_rows_are_found_by_an_index():
    """The plan is asked for; a table of many rows, of which few are due."""
    bench, many = django_bench(), 20_000 if connection.vendor == "postgresql" else 900
    bench.add()
    columns = [field.column for field in Operation._meta.local_concrete_fields]
    number = "CONCAT(id, '-', n)" if connection.vendor == "mysql" else "id || '-' || n"
    copied = {column: column for column in columns} | {"id": number, "wake_at": SHIFTED[connection.vendor]}
    chosen = f"SELECT {', '.join(copied[c] for c in columns)} FROM jobtrack_operation, numbers"  # noqa: S608 - names of our own columns
    insert = f"INSERT INTO jobtrack_operation ({', '.join(columns)})"
    with_numbers = NUMBERS.format(many)
    with connection.cursor() as cursor:
        cursor.execute(f"{insert} {with_numbers} {chosen}")
        cursor.execute("ANALYZE TABLE jobtrack_operation" if connection.vendor == "mysql" else "ANALYZE")
    plan = Operation.objects.due().order_by("wake_at")[:200].explain()
    assert "jobtrack_op_wake" in plan
    assert [word for word in ("Seq Scan", "TEMP B-TREE", "filesort") if word in plan] == []


@pytest.mark.django_db
def test_what_was_never_stored_cannot_be_written():
    bench = django_bench()
    with pytest.raises(OperationNotFound):
        bench.store.commit([Commit(operation=bench.operation("nobody"), entry={})])


@pytest.mark.parametrize(
    ("cause", "args", "lost"),
    [
        ("40P01", ("deadlock detected",), True),
        ("40001", ("could not serialize access",), True),
        ("55P03", ("lock timeout",), True),
        ("57P01", ("terminating connection",), False),
        (None, (1213, "Deadlock found"), True),
        (None, (1205, "Lock wait timeout exceeded"), True),
        (None, (1020, "Record has changed since last read"), True),
        (None, (2006, "Server has gone away"), False),
        (None, ("database is locked",), True),
        (None, ("disk I/O error",), False),
        (None, (), False),
    ],
)
def test_a_lost_race_is_told_from_trouble(cause, args, lost):
    error = OperationalError(*args)
    error.__cause__ = type("DriverError", (Exception,), {"sqlstate": cause})() if cause else None
    assert lost_race(error) is lost


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("message", "raises"), [("database is locked", False), ("disk I/O error", True)])
def test_a_claim_or_sweep_that_lost_a_race_found_nothing(message, raises):
    bench = django_bench()
    bench.add()

    def fail(execute, sql, params, many, context):
        if sql.startswith(("UPDATE", "SELECT")):
            raise OperationalError(message)
        return execute(sql, params, many, context)

    def attempt():
        return bench.claim(), bench.store.due(limit=9, grace=SECOND)

    with connection.execute_wrapper(fail):
        if raises:
            with pytest.raises(OperationalError):
                attempt()
        else:
            claims, due = attempt()
            assert (claims, due.operations) == ([], ())
    assert len(bench.claim()) == 1
