"""The stores that keep one contract, and rows to put in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobtrack.core.audit import Report, closing_line, entry_line, verify
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.place import RequestSpec
from jobtrack.core.table import ProviderTable, StatusSpec
from jobtrack.stores.memory import MemoryStore

TABLE = ProviderTable(
    id="acme-export",
    name="ACME",
    docs="https://developer.acme.example",
    revision=3,
    digest="d" * 64,
    text="jobtrack: 1\nid: acme-export\n",
    hosts=("https://api.acme.example",),
    status=StatusSpec(request=RequestSpec(path="/v1/exports/{job_id}")),
)

LEASE = timedelta(seconds=30)
FLOOR = timedelta(seconds=5)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Bench:
    """One store under test, with its rows, its clock and its audit within reach."""

    store: Any
    shift: Callable[[timedelta], None]  # time passes
    entries: Callable[[str], list[tuple[int, str, str, str]]]  # (seq, previous, hash, text) of one operation
    outbox: Callable[[str], list[tuple[str, str]]]  # (event, last error) of the undelivered
    texts: Callable[[], dict[str, str]]  # digest -> text of the tables
    ended: Any = None  # operation id -> (when it ended, how long after the look before); None: not kept

    def unsent(self, operation_id: str = "op-1", **changes: Any) -> Operation:
        """A submission that is stored and due, of which nothing was sent; added."""
        now = self.store.now()
        budget = Budget(
            deadline=now + HOUR,
            status_requests=3,
            transport_failures=3,
            rate_limited=3,
            submissions=2,
            lookups=2,
            follow_for=HOUR,
        )
        fresh = {"job_id": "", "accepted_at": None, "state": OperationState.READY, "budget": budget}
        return self.add(operation_id, **{**fresh, "idempotency_key": operation_id, "fingerprint": "f" * 64, **changes})

    def operation(self, operation_id: str = "op-1", **changes: Any) -> Operation:
        """A running operation that is due."""
        now = self.store.now()
        wanted = Operation(
            id=operation_id,
            provider="acme-export",
            account="default",
            job_id="exp_1",
            state=OperationState.RUNNING,
            budget=Budget(deadline=now + HOUR, status_requests=3, transport_failures=3, rate_limited=3),
            created_at=now,
            accepted_at=now,
            wake_at=now,
            not_before=now,
        )
        return replace(wanted, **changes)

    def add(self, operation_id: str = "op-1", **changes: Any) -> Operation:
        (stored,) = self.store.add([self.operation(operation_id, **changes)], {"event": "track"}, TABLE)
        return stored

    def claim(self, *ids: str, **changes: Any) -> list[Any]:
        arguments = {"owner": f"worker-{datetime.now(UTC).timestamp()}", "lease": LEASE, "floor": FLOOR} | changes
        return self.store.claim(ids or ("op-1",), **arguments)

    def row(self, operation_id: str = "op-1") -> Operation:
        (row,) = self.store.get([operation_id])
        return row

    def audited(self, *ids: str) -> Report:
        """The verdict of the offline verifier on these chains; the rows state the heads (INV-09)."""
        lines = [entry_line(i, *entry) for i in ids for entry in self.entries(i)]
        heads = {row.id: (row.audit_seq, row.audit_head) for row in self.store.get(ids)}
        return verify([*lines, closing_line(heads, at="2026-01-01T00:00:00+00:00")])


def memory_bench() -> Bench:
    clock = {"now": datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)}

    def shift(duration: timedelta) -> None:
        clock["now"] += duration

    store = MemoryStore(lambda: clock["now"])
    return Bench(
        store=store,
        shift=shift,
        entries=lambda i: [(e.seq, e.previous, e.digest, e.text) for e in store.audit[i]],
        outbox=lambda i: [
            (box.delivery.event, box.error)
            for box in store.outbox.values()
            if box.delivery.operation_id == i and not box.delivered
        ],
        texts=lambda: dict(store.tables),
    )


def django_bench() -> Bench:
    from django.db.models import DateTimeField, ExpressionWrapper, F

    from jobtrack_django import models
    from jobtrack_django.store import DjangoStore

    clocks = {
        models.Operation: (
            *("created_at", "accepted_at", "deadline", "needed_by", "lease_until", "wake_at", "wake_until"),
            *("not_before", "look_until", "submit_by", "first_sent_at", "last_sent_at", "recover_until"),
            *("hint_floor", "noticed_at"),
        ),
        models.Delivery: ("due_at", "lease_until", "wake_until"),
        models.Escalation: ("opened_at",),
    }

    def shift(duration: timedelta) -> None:
        """The database's clock cannot be set, so every instant moves back instead."""
        for model, names in clocks.items():
            earlier = {n: ExpressionWrapper(F(n) - duration, output_field=DateTimeField()) for n in names}
            model.objects.update(**earlier)

    return Bench(
        store=DjangoStore(),
        shift=shift,
        entries=lambda i: list(
            models.AuditEntry.objects.filter(operation_id=i).order_by("seq").values_list("seq", "prev", "hash", "body")
        ),
        outbox=lambda i: list(
            models.Delivery.objects.filter(operation_id=i, delivered_at__isnull=True)
            .order_by("pk")
            .values_list("event", "last_error")
        ),
        texts=lambda: dict(models.TableText.objects.values_list("digest", "text")),
        ended=lambda i: models.Operation.objects.values_list("ended_at", "seen_within").get(pk=i),
    )


@pytest.fixture(params=["memory", pytest.param("django", marks=[pytest.mark.database, pytest.mark.django_db])])
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "memory":
        return memory_bench()
    request.getfixturevalue("db")
    return django_bench()
