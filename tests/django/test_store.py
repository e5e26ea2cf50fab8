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
from jobtrack.errors import AlreadyDecided, IdempotencyConflict, OperationNotFound
from jobtrack.flow.poll import poll
from jobtrack.records import Commit, Committed, JobResult, Receipt, ResultState
from jobtrack.testing.provider import answer
from jobtrack_django.models import Escalation, Operation, WebhookReceipt
from jobtrack_django.statements import lost_race
from jobtrack_django.store import DjangoStore
from jobtrack_django.testing import rehearsal
from tests.contracts.conftest import FLOOR, HOUR, LEASE, TABLE, django_bench
from tests.django.admin_tills import DONE, LOST
from tests.django.admin_tills import TABLE as TILL

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
def test_fifty_adders_of_one_id_make_one_row_whatever_content_they_bring():
    """INV-20: everybody sees the content that was first, and can tell their own from it."""
    bench = django_bench()
    wanted = [bench.operation(fingerprint=letter * 64) for letter in "ab"]
    stored = in_threads(THREADS, lambda number: DjangoStore().add([wanted[number % 2]], {"event": "submit"}, TABLE)[0])
    row = bench.row()
    assert {(operation.audit_head, operation.fingerprint) for operation in stored} == {
        (row.audit_head, row.fingerprint)
    }
    assert len(bench.entries("op-1")) == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_adders_one_makes_the_row_every_time():
    """INV-20: one race shows little; the two start each of fifty together, with other content."""
    bench, rounds, together = django_bench(), 50, threading.Barrier(2)
    wanted = [[bench.operation(f"op-{n}", fingerprint=letter * 64) for n in range(rounds)] for letter in "ab"]

    def add(number):
        found = []
        for operation in wanted[number]:
            together.wait(timeout=60)
            found += DjangoStore().add([operation], {"event": "submit"}, TABLE)
        return [(operation.id, operation.fingerprint, operation.audit_head) for operation in found]

    first, second = in_threads(2, add)
    rows = bench.store.get([f"op-{n}" for n in range(rounds)])
    assert first == second == [(row.id, row.fingerprint, row.audit_head) for row in rows]
    assert [len(bench.entries(row.id)) for row in rows] == [1] * rounds


WAITING = {
    "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}


def wait_for_waiters(count):
    """Until so many others wait for a lock of this transaction. On SQLite they all wait for its end anyway."""
    pause = threading.Event()
    for _ in range(100 if connection.vendor in WAITING else 0):
        with connection.cursor() as cursor:
            cursor.execute(WAITING[connection.vendor])
            if cursor.fetchone()[0] >= count:
                return
        pause.wait(0.15)  # InnoDB tells the same again to whom asks more often


@pytest.mark.django_db(transaction=True)
def test_adders_whose_first_rolls_back_still_make_one_row():
    """INV-20: MySQL ends the others' wait with a deadlock."""
    bench, inserted = django_bench(), threading.Event()
    wanted = bench.operation()

    def add(number):
        if number:
            inserted.wait(timeout=60)
            return DjangoStore().add([wanted], {"event": "submit"}, TABLE)[0].id
        with transaction.atomic():
            DjangoStore().add([wanted], {"event": "submit"}, TABLE)
            inserted.set()
            wait_for_waiters(7)
            transaction.set_rollback(True)
        return "rolled back"

    assert Counter(in_threads(8, add)) == {"op-1": 7, "rolled back": 1}
    assert len(bench.entries("op-1")) == 1


@pytest.mark.django_db(transaction=True)
def test_of_one_notice_in_many_threads_one_is_new():
    """R-SEC-3."""
    notices = [Receipt(provider="acme", account="default", notice_id=f"n-{n}", job_id="exp_1") for n in range(5)]
    rounds = in_threads(20, lambda number: DjangoStore().receive(notices[:: -1 if number % 2 else 1]))
    assert sum(new.count(True) for new in rounds) == len(notices) == WebhookReceipt.objects.count()


@pytest.mark.django_db(transaction=True)
def test_a_notice_that_meets_the_end_of_a_look_is_never_lost():
    """INV-26: whichever of the two is written first, the next look is at the floor that the look has set."""
    bench = django_bench()
    receipt = Receipt(provider="acme-export", account="default", notice_id="n-1", job_id="exp_1")
    for number in range(5):
        bench.add(name := f"op-{number}", hint_floor=bench.store.now())
        (claim,) = bench.claim(name)
        floor = bench.store.now() + HOUR
        waits = replace(claim.operation, lease=None, wake_at=floor + HOUR, not_before=floor + HOUR, hint_floor=floor)

        def race(number, waits=waits):
            if number:
                return DjangoStore().hint([receipt])
            return DjangoStore().commit([Commit(operation=waits, entry={"event": "poll"})])

        assert [Committed.DONE] in in_threads(8, race)
        row = bench.row(name)
        assert (row.wake_at, row.not_before, row.hinted) == (floor, floor, True)
        assert bench.audited(name).faults == ()


@pytest.mark.django_db(transaction=True)
def test_a_late_acceptance_that_meets_the_holder_s_commit_is_never_lost():
    """INV-15: whichever of the two is written first, the row knows of the acceptance and is due."""
    bench = django_bench()
    for number in range(5):
        bench.unsent(name := f"op-{number}", state=OperationState.UNCONFIRMED)
        (slow,) = bench.claim(name, states=frozenset({OperationState.UNCONFIRMED}))
        bench.shift(LEASE + SECOND)
        (quick,) = bench.claim(name, states=frozenset({OperationState.UNCONFIRMED}))
        accepted = replace(slow.operation, state=OperationState.RUNNING, job_id="exp_9", lease=None)
        proof = Commit(operation=accepted, entry={"event": "submission"}, evidence={"job_id": "exp_9"})
        waits = replace(quick.operation, lease=None, wake_at=quick.now + HOUR)

        def race(number, proof=proof, waits=waits):
            return DjangoStore().commit([Commit(operation=waits, entry={"event": "lookup"}) if number else proof])

        assert sorted(in_threads(2, race)) == [[Committed.DONE], [Committed.STALE]]
        (claim,) = bench.claim(name, states=frozenset({OperationState.UNCONFIRMED}))
        assert claim.operation.evidence == {"job_id": "exp_9"}
        assert bench.audited(name).faults == ()


@pytest.mark.django_db(transaction=True)
def test_a_complete_result_outlives_every_other_writer():
    bench = django_bench()
    bench.add()
    states = [ResultState.WANTED, ResultState.COMPLETE, ResultState.UNAVAILABLE]

    def keep(number):
        DjangoStore().keep_result(JobResult(operation_id="op-1", state=states[number % 3]))

    in_threads(12, keep)
    assert bench.store.result("op-1").state is ResultState.COMPLETE


@pytest.mark.django_db
def test_receipts_are_forgotten_when_no_notice_can_come_again():
    store = DjangoStore()
    store.receive([Receipt(provider="acme", account="default", notice_id="n-1", job_id="exp_1")])
    assert store.forget_receipts(store.now() - HOUR) == 0
    assert store.forget_receipts(store.now() + HOUR) == 1
    assert WebhookReceipt.objects.count() == 0


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
WRITERS = [
    *("api", "chain", "decisions", "models", "models_beside", "notices", "outbox", "querysets", "receipts"),
    *("statements", "store"),
]
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


@pytest.mark.django_db
def test_a_submission_reads_from_the_database_that_takes_the_writes(settings, tmp_path):
    """Report B061, R-SUB-1: what a replica does not know yet is neither submitted again nor asked about."""
    (tmp_path / "till.yaml").write_text(TILL)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)]}
    settings.DATABASE_ROUTERS = [f"{__name__}.Elsewhere"]
    from jobtrack_django import get_operation, submit

    with rehearsal() as here:
        here.provider.on("POST", "/v1/payments", LOST)
        here.provider.on("GET", "/v1/payments", answer(json={"items": [{"reference": "order-7", "id": "pay-1"}]}))
        here.provider.on("GET", "/v1/payments/pay-1", DONE)
        stored = [submit("till", operation_id="order-7", payload={"iban": "a"}).pk for _ in range(2)]
        with pytest.raises(IdempotencyConflict):
            submit("till", operation_id="order-7", payload={"iban": "b"})
        here.run_due()
        assert (stored, len(here.provider.sent("POST"))) == (["order-7"] * 2, 1)
    row = get_operation("order-7")
    assert (row.state, row.job_id, row.outcome()["needs_decision"]) == ("succeeded", "pay-1", [])


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
