"""``submit`` in views, blocks, threads and after rollbacks: one row, then one request, or neither (R-SUB, INV-20)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction

from jobtrack.errors import IdempotencyConflict, UsageError
from jobtrack.flow.submit import report_conflict
from jobtrack.testing.provider import makes
from jobtrack_django import asubmit, get_operation, idempotency_conflict, submit, submit_many, track
from jobtrack_django.models import AuditEntry, Escalation, Operation
from jobtrack_django.testing import Rehearsal, answer, rehearsal
from tests.django.submitting import TABLE

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.urls("tests.django.submitting"),
]

ACCEPTED = makes("pay-1", answer(202, json={"id": "pay-1"}))


@pytest.fixture
def bank(settings, tmp_path: Path) -> Iterator[Rehearsal]:
    (tmp_path / "pay.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)]}
    with rehearsal() as here:
        here.provider.on("POST", "/v1/payments", ACCEPTED)
        here.provider.on("GET", "/v1/payments/pay-1", answer(json={"status": "done"}))
        yield here


def counted(bank: Rehearsal) -> tuple[int, int]:
    """Rows, and requests at the provider once everything due was done."""
    bank.run_due()
    return Operation.objects.count(), len(bank.provider.sent("POST"))


LINES = [
    ("/pay/before/", False, (0, 0)),
    ("/pay/after/", False, (1, 1)),  # autocommit: the row was committed before the crash
    ("/pay/done/", False, (1, 1)),
    ("/pay/before/", True, (0, 0)),
    ("/pay/after/", True, (0, 0)),
    ("/pay/done/", True, (1, 1)),
    ("/block/inside/", False, (0, 0)),
    ("/block/behind/", False, (1, 1)),
    ("/block/done/", False, (1, 1)),
    ("/block/inside/", True, (0, 0)),
    ("/block/behind/", True, (0, 0)),
    ("/block/done/", True, (1, 1)),
]


@pytest.mark.parametrize("line", LINES, ids=str)
def test_each_line_of_a_view_leaves_a_row_and_one_request_or_neither(bank, client, monkeypatch, line):
    """After a rollback 0 rows and 0 requests; after a commit exactly 1."""
    url, atomic, expected = line
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", atomic)
    client.raise_request_exception = False
    client.post(url, json.dumps({"amount": 5}), content_type="application/json")
    assert counted(bank) == expected
    assert AuditEntry.objects.filter(operation__isnull=False).exists() is bool(expected[0])


def test_nothing_is_sent_while_the_transaction_is_open(bank):
    with transaction.atomic():
        operation = submit("pay", operation_id="order-7", payload={"amount": 5})
        assert (operation.state, operation.accepted_at, operation.job_id) == ("ready", None, "")
        assert bank.provider.log == []
    bank.run_due()
    assert get_operation("order-7").state == "succeeded"
    assert bank.provider.made_for("order-7") == ["pay-1"]


def test_what_is_kept_is_sealed_and_erased_once_it_is_proven(bank):
    """INV-33: payloads are personal."""
    submit("pay", operation_id="order-7", payload={"iban": "canary-iban"})
    kept = Operation.objects.get()
    assert kept.sealed
    assert "canary-iban" not in repr(Operation.objects.values().get()) + repr(list(AuditEntry.objects.values()))
    bank.run_due()
    assert Operation.objects.get().sealed == ""
    assert b"canary-iban" in bank.provider.sent("POST")[0].body


def test_the_same_id_and_content_is_the_same_operation(bank, client):
    """R-CALL-1: a page refresh finds the same operation."""
    for _ in range(3):
        client.post("/pay/done/", json.dumps({"amount": 5}), content_type="application/json")
    assert counted(bank) == (1, 1)
    client.post("/pay/done/", json.dumps({"amount": 5}), content_type="application/json")
    assert counted(bank) == (1, 1)


def test_other_content_is_a_conflict_outside_a_transaction(bank):
    told = []
    idempotency_conflict.connect(lambda operation_id, **_: told.append(operation_id), weak=False, dispatch_uid="t")
    try:
        submit("pay", operation_id="order-7", payload={"amount": 5})
        with pytest.raises(IdempotencyConflict):
            submit("pay", operation_id="order-7", payload={"amount": 6})
    finally:
        idempotency_conflict.disconnect(dispatch_uid="t")
    (asked,) = Escalation.objects.all()
    assert (asked.reason, asked.blocking, told) == ("idempotency_conflict", False, ["order-7"])
    assert counted(bank) == (1, 1)
    assert bank.provider.sent("POST")[0].body == b'{"amount":5}'


def test_the_report_of_a_conflict_survives_the_callers_rollback(bank, monkeypatch, caplog):
    """DESIGN: log, signal and an immediate message; the worker writes the question."""
    sent: list[str] = []
    monkeypatch.setattr(bank.runtime.scheduler, "report_conflict", lambda i: bool(sent.append(i)))
    submit("pay", operation_id="order-7", payload={"amount": 5})
    with pytest.raises(IdempotencyConflict), transaction.atomic():
        submit("pay", operation_id="order-7", payload={"amount": 6})
    assert (sent, Escalation.objects.count()) == (["order-7"], 0)
    assert "order-7" in caplog.text
    report_conflict(bank.runtime, sent[0])
    assert Escalation.objects.get().reason == "idempotency_conflict"


def test_a_tracked_operation_is_no_submission(bank):
    track("pay", operation_id="order-7", job_id="pay-1")
    with pytest.raises(IdempotencyConflict):
        submit("pay", operation_id="order-7", payload={"amount": 5})


def test_fifty_threads_make_one_operation_and_one_request(bank):
    """INV-20."""
    gate, seen, failed = threading.Barrier(50), [], []

    def call() -> None:
        try:
            gate.wait()
            seen.append(submit("pay", operation_id="order-7", payload={"amount": 5}).pk)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=call) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, seen) == ([], ["order-7"] * 50)
    assert counted(bank) == (1, 1)


def test_an_open_transaction_elsewhere_is_refused(bank, monkeypatch):
    """A rollback there could not take the submission back."""
    monkeypatch.setattr("jobtrack_django.api.connections", _Connections("default", "other"))
    with pytest.raises(UsageError, match=r"transaction\.atomic\(using='default'\)"):
        submit("pay", payload={"amount": 5})
    assert Operation.objects.count() == 0


class _Connections:
    """Two databases: ours without a transaction, another with one."""

    def __init__(self, ours: str, other: str) -> None:
        self.ours = type("C", (), {"alias": ours, "in_atomic_block": False})()
        self.other = type("C", (), {"alias": other, "in_atomic_block": True})()

    def __getitem__(self, alias: str) -> object:
        return self.ours

    def all(self, *, initialized_only: bool) -> list[object]:
        return [self.ours, self.other]


@pytest.mark.parametrize(
    "wrong",
    [
        {"payload": {"amount": float("nan")}},
        {"payload": object()},
        {"paylod": {}},
        {"preconditions": {"If-Match": "x"}},
    ],
    ids=["not a number", "no JSON", "misspelled", "not listed"],
)
def test_what_cannot_be_sent_is_refused_at_once(bank, wrong):
    with pytest.raises(UsageError):
        submit("pay", **wrong)
    assert Operation.objects.count() == 0


def test_several_at_once_and_from_asynchronous_code(bank):
    made = submit_many("pay", [{"operation_id": f"order-{n}", "payload": {"amount": n}} for n in range(3)])
    assert [operation.pk for operation in made] == ["order-0", "order-1", "order-2"]

    async def view() -> str:
        try:
            return (await asubmit("pay", operation_id="order-3", payload={})).pk
        finally:
            await sync_to_async(connections.close_all)()  # as Django does at the end of a request

    assert asyncio.run(view()) == "order-3"


def test_a_subject_is_linked_and_a_predecessor_kept(bank, django_user_model):
    ada = django_user_model.objects.create(username="ada")
    made = submit("pay", payload={}, subject=ada, predecessor="order-6", reference="Order 7")
    assert (made.subject, made.predecessor, made.reference) == (ada, "order-6", "Order 7")
    assert list(Operation.objects.for_object(ada)) == [made]
