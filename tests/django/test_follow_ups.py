"""Signals and follow-up handlers at the end of real operations."""

from __future__ import annotations

import pytest
from django.db import connection

from jobtrack.core.escalation import Option, Resolution
from jobtrack.errors import ConfigurationError
from jobtrack.flow.deliver import deliver
from jobtrack.flow.poll import poll
from jobtrack.flow.resolve import resolve
from jobtrack.testing.provider import answer
from jobtrack_django import escalation_opened, escalation_resolved, operation_finished, runtime, track
from jobtrack_django.models import Delivery, Escalation, Operation
from tests.django import handlers

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _no_calls():
    handlers.calls.clear()


@pytest.fixture
def heard():
    """What receivers were told; one of them always raises."""
    told = []

    def receiver(signal, operation, **rest):
        stored = not connection.in_atomic_block and Operation.objects.get(pk=operation.id).state == operation.state
        told.append((next(n for n, s in signals.items() if s is signal), operation.id, operation.state.value, stored))
        raise RuntimeError("a receiver of the site")

    signals = {"finished": operation_finished, "opened": escalation_opened, "resolved": escalation_resolved}
    for signal in signals.values():
        signal.connect(receiver)
    yield told
    for signal in signals.values():
        signal.disconnect(receiver)


def end(site, reply, **job):
    operation = track("acme", job_id="job-1", operation_id="op-1", **job)
    site.provider.script("job-1", reply)
    site.make_due("op-1")
    poll(site.runtime, ["op-1"])
    return operation


SUCCESS = answer(json={"status": "succeeded", "rows": 3})
FAILURE = answer(json={"status": "failed", "error": "disk full"})


def test_signals_come_after_the_commit_and_a_receiver_that_raises_harms_nothing(site, heard):
    end(site, answer(json={"status": "paused"}))
    escalation = Escalation.objects.get()
    resolve(
        site.runtime,
        Resolution(escalation_id=str(escalation.pk), option=Option.CLOSE, actor="ada", reason="done", version=1),
    )
    assert heard == [
        ("opened", "op-1", "escalated", True),
        ("resolved", "op-1", "abandoned", True),
        ("finished", "op-1", "abandoned", True),
    ]


@pytest.mark.parametrize(
    ("reply", "events"),
    [(SUCCESS, ["on_end", "on_success"]), (FAILURE, ["on_end", "on_failure"])],
    ids=["success", "failure"],
)
def test_the_named_followups_are_written_with_the_end_and_run_once(site, reply, events):
    """R-END-2, INV-21, INV-22."""
    name = "tests.django.handlers.remember"
    operation = end(site, reply, on_success=name, on_failure=name, on_end=name)
    operation.refresh_from_db()
    due = site.runtime.store.due(limit=9, grace=site.runtime.timing.grace).deliveries
    assert sorted(due) == [f"op-1:{event}" for event in events]
    assert deliver(site.runtime, due) == 2
    assert deliver(site.runtime, due) == 0
    assert handlers.calls == [("op-1", operation.state)] * 2


def test_a_handler_that_raises_changes_nothing_but_its_delivery(site):
    """INV-23."""
    operation = end(site, SUCCESS, on_success="tests.django.handlers.fail")
    assert deliver(site.runtime, ["op-1:on_success"]) == 0
    operation.refresh_from_db()
    row = Delivery.objects.get()
    assert (operation.state, operation.kept) == ("succeeded", {"rows": 3})
    assert (row.attempts, row.delivered_at, row.last_error) == (1, None, "RuntimeError: no room for op-1")


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        ("no.such.module", ConfigurationError),
        ("nodots", ConfigurationError),
        ("tests.django.handlers.nothing", ConfigurationError),
        ("tests.django.broken_handler.run", ModuleNotFoundError),
        ("tests.django.handlers.later", ConfigurationError),
        ("tests.django.handlers.parts", ConfigurationError),
    ],
)
def test_a_handler_that_cannot_be_run_is_a_failed_attempt(site, handler, error):
    """Not found, or a function whose call does nothing by itself: it would count as delivered."""
    operation = end(site, SUCCESS).to_core()
    delivery = type("Delivery", (), {"handler": handler})()
    with pytest.raises(error):
        runtime.run_handler(delivery, operation)
    assert handlers.calls == []


@pytest.mark.parametrize("handler", ["tests.django.celery_tasks.note", "tests.note"])
def test_a_celery_task_gets_the_id_by_its_path_or_by_its_name(site, handler):
    from tests.django.celery_tasks import notes

    notes.clear()
    operation = end(site, SUCCESS).to_core()
    runtime.run_handler(type("Delivery", (), {"handler": handler})(), operation)
    assert notes == ["op-1"]
