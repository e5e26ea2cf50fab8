"""A site whose provider is scripted: real rows, no network, no broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.utils import translation
from jsonschema import Draft202012Validator

from jobtrack.catalog import load_text
from jobtrack.ports import Runtime
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.provider import FakeProvider
from jobtrack.testing.runtime import NoScheduler, memory_runtime
from jobtrack.worker import wiring
from jobtrack_django.fields import DatabaseNow
from tests.django import notices_desk
from tests.django.notices_desk import Desk

_SCHEMA = (resources.files("jobtrack.catalog") / "schema" / "outcome-1.json").read_text(encoding="utf-8")
OUTCOME = Draft202012Validator(json.loads(_SCHEMA))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is about one database (``vendor``) is a test on that one only: on another there is nothing to skip."""
    marks = {item: item.get_closest_marker("vendor") for item in items}
    others = [item for item, mark in marks.items() if mark is not None and connection.vendor not in mark.args]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in set(others)]


@pytest.fixture(autouse=True)
def one_language() -> Iterator[None]:
    """``LocaleMiddleware`` leaves the language of its last request active in the thread; no other test may see it."""
    yield
    translation.deactivate()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Operations that ask, on a clock that is the database's as well."""
    clock = VirtualClock(datetime.now(UTC).replace(microsecond=0))
    monkeypatch.setattr(DatabaseNow, "virtual", clock)
    monkeypatch.setattr(notices_desk, "told", [])
    return notices_desk.Desk(clock)


YAML = """
jobtrack: 1
id: acme
name: ACME
docs: https://developer.acme.example/jobs
revision: 1
hosts: ["https://api.acme.example"]
status:
  request: {method: GET, path: "/v1/jobs/{job_id}"}
  state: /status
  states:
    pending: [running]
    success: [succeeded]
    failure: [failed]
  result: {keep: {rows: /rows}}
  error: /error
polling: {first: 1s, base: 1s, factor: 2, cap: 5s}
budget: {deadline: 1h, status_requests: 40, transport_failures: 5, rate_limited: 5}
examples:
  - {reply: {http: 200, json: {status: running}}, means: pending}
"""


@dataclass(frozen=True)
class Site:
    """The runtime of this process, with its scripted provider and what it published."""

    runtime: Runtime
    provider: FakeProvider

    @property
    def published(self) -> Any:
        """First wake-ups: (operation id, fence, delay)."""
        return self.runtime.scheduler.asked

    def make_due(self, *ids: str) -> None:
        """Time passes for these rows: the database's clock cannot be set."""
        from jobtrack_django.models import Operation

        Operation.objects.using("default").filter(pk__in=ids).update(
            wake_at=F("created_at") - timedelta(minutes=1), not_before=None, wake_until=None
        )


class Published(NoScheduler):
    """A broker that takes every message."""

    def __init__(self) -> None:
        super().__init__()
        self.horizon = timedelta(seconds=30)

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        super().wake(operation_id, fence=fence, delay=delay)
        return True


@pytest.fixture
def site(settings) -> Iterator[Site]:
    from jobtrack_django.runtime import run_handler
    from jobtrack_django.signals import SignalListener
    from jobtrack_django.store import DjangoStore

    settings.JOBTRACK = {"ACCOUNTS": {"acme": {"us": {"region": "us"}}}}
    clock = VirtualClock(datetime.now(UTC))
    provider = FakeProvider(clock)
    runtime = memory_runtime(
        load_text(YAML, "acme.yaml"), provider=provider, clock=clock, store=DjangoStore(), run_handler=run_handler
    )
    runtime = replace(runtime, listener=SignalListener())
    runtime = replace(runtime, scheduler=Published())
    with wiring.use_runtime(runtime):
        yield Site(runtime=runtime, provider=provider)


@pytest.fixture(autouse=True)
def _each_outcome_fits_its_published_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-SUB-8: whatever a test does, what callers are told is what the schema says."""
    from jobtrack_django import contract

    made = contract.outcome

    def checked(*facts: Any, **known: Any) -> dict[str, Any]:
        told = made(*facts, **known)
        assert [error.message for error in OUTCOME.iter_errors(told)] == []
        return told

    monkeypatch.setattr(contract, "outcome", checked)
