"""The chores: who does them, how often, and that nothing else suffers from them."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from jobtrack.core.escalation import Lapse, Option, Reason
from jobtrack.core.operation import OperationState
from jobtrack.flow.sweep import sweep
from jobtrack.testing import VirtualClock
from jobtrack.worker import tasks, wiring
from jobtrack_django import figures
from jobtrack_django.chores import DjangoChores
from jobtrack_django.models import Escalation, Heartbeat, Notice, Operation
from jobtrack_django.testing import rehearsal
from tests.django import notices_desk
from tests.django.notices_desk import CALL, Desk

pytestmark = [pytest.mark.database, pytest.mark.django_db]


class Ticks:
    """Monotonic seconds that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def chores(site, ticks) -> DjangoChores:
    return DjangoChores("default", runtime=lambda: site.runtime, elapsed=ticks)


@pytest.fixture
def desk(monkeypatch) -> Desk:
    monkeypatch.setattr(notices_desk, "told", [])
    return Desk(VirtualClock(datetime.now(UTC)))


@pytest.fixture
def quiet(monkeypatch):
    """Figures are up to date."""
    monkeypatch.setattr(figures, "due", lambda _using: False)


def statements(work) -> int:
    with CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)


# --- signs of life --------------------------------------------------------------------------------------


def test_a_process_says_now_and_then_that_it_is_alive(chores, ticks):
    writes = []
    for _ in range(60):
        writes.append(statements(lambda: chores.beat("sweeper")))
        ticks.now += 1
    assert sum(1 for count in writes if count) == 4
    chores.beat("worker")
    assert sorted(Heartbeat.objects.values_list("kind", flat=True)) == ["sweeper", "worker"]


def test_a_new_process_with_an_old_name_starts_anew(chores, site, ticks):
    """In a container every process has the same number."""
    chores.beat("worker")
    Heartbeat.objects.update(started_at=F("started_at") - timedelta(days=1), seen_at=F("seen_at") - timedelta(days=1))
    DjangoChores("default", runtime=lambda: site.runtime, elapsed=ticks).beat("worker")
    (row,) = Heartbeat.objects.all()
    assert row.started_at == row.seen_at


def test_a_sign_of_life_never_raises(chores, monkeypatch):
    monkeypatch.setattr(DjangoChores, "_write_beat", lambda *_, **__: 1 / 0)
    chores.beat("worker")
    assert Heartbeat.objects.count() == 0


def test_sweepers_and_workers_give_them(site, chores):
    runtime = replace(site.runtime, chores=chores)
    sweep(runtime)
    with wiring.use_runtime(runtime):
        tasks.wake("nobody")
    assert sorted(Heartbeat.objects.values_list("kind", flat=True)) == ["sweeper", "worker"]


def test_those_that_have_been_silent_for_a_day_are_forgotten(chores, quiet):
    chores.beat("worker")
    chores.run()
    assert Heartbeat.objects.count() == 1
    Heartbeat.objects.update(seen_at=F("seen_at") - timedelta(days=2))
    chores.run()
    assert Heartbeat.objects.count() == 0


# --- who does them, and when -----------------------------------------------------------------------------


def test_a_site_that_tells_nobody_asks_for_figures_only(chores, ticks):
    """Twice a minute, not twice a second."""
    asked = 0
    for _ in range(240):
        asked += bool(statements(chores.due))
        ticks.now += 0.25
    assert asked == 2


def test_a_site_with_notifiers_asks_every_two_seconds(chores, ticks, quiet, settings, desk):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    costs = []
    for _ in range(40):
        costs.append(statements(chores.due))
        ticks.now += 0.25
    assert (sum(costs), max(costs)) == (5, 1)
    desk.ask()
    ticks.now += 2
    assert [chores.due(), chores.due()] == [True, False]


@pytest.mark.usefixtures("quiet")
def test_the_sweeper_asks_a_worker_and_does_them_itself_when_there_is_none(site, chores, ticks, settings, desk):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    asked = []

    class Scheduler(type(site.runtime.scheduler)):
        def attend(self):
            asked.append("attend")
            return len(asked) == 1

    runtime = replace(site.runtime, chores=chores, scheduler=Scheduler())
    sweep(runtime)
    assert (asked, notices_desk.told) == (["attend"], [])
    ticks.now += 2
    sweep(runtime)
    assert [message.total for message in notices_desk.told] == [1]


def test_a_sweep_without_a_broker_does_them_itself(site, chores, quiet, settings, desk):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    sweep(replace(site.runtime, chores=chores), inline=True)
    assert len(notices_desk.told) == 1


def test_a_worker_does_them_when_it_is_asked(site, chores, quiet, settings, desk):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    with wiring.use_runtime(replace(site.runtime, chores=chores)):
        tasks.attend()
    assert len(notices_desk.told) == 1


@pytest.mark.usefixtures("quiet")
def test_one_that_fails_does_not_stop_the_others(chores, settings, desk, monkeypatch, caplog):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    monkeypatch.setattr(DjangoChores, "_lapse", lambda _self: 1 / 0)
    assert chores.run() == 1
    assert len(notices_desk.told) == 1
    assert "The chore 'lapses' failed (ZeroDivisionError)" in caplog.text


def test_a_database_that_is_away_is_asked_again_later(chores, monkeypatch, caplog):
    monkeypatch.setattr(figures, "due", lambda _using: 1 / 0)
    with caplog.at_level(logging.WARNING):
        assert chores.due() is False
    assert "(ZeroDivisionError)" in caplog.text


def test_figures_are_rolled_up(chores, ticks):
    assert chores.due() is True
    assert chores.run() > 0
    assert figures.rolled_at("default", datetime.now(UTC).date()) is not None


# --- lapses ---------------------------------------------------------------------------------------------


def waited(question: Escalation, hours: float) -> None:
    Escalation.objects.filter(pk=question.pk).update(opened_at=F("opened_at") - timedelta(hours=hours))


def test_what_nobody_answers_lapses(site, chores, quiet, desk, ticks):
    rule = Lapse(option=Option.CLOSE, after=timedelta(hours=2))
    runtime = replace(site.runtime, lapses={Reason.DEADLINE_EXCEEDED: rule})
    chores = DjangoChores("default", runtime=lambda: runtime, elapsed=ticks)
    early, late = desk.ask(Reason.DEADLINE_EXCEEDED, count=2)
    waited(early, 1)
    waited(late, 3)
    assert [chores.due(), chores.due()] == [True, False]
    assert chores.run() == 1
    late.refresh_from_db()
    assert (late.actor, late.option, late.actor_reason.split(":")[0]) == ("jobtrack", "close", "Nobody acted for 2")
    assert Operation.objects.get(pk=late.operation_id).state == OperationState.ABANDONED
    assert Escalation.objects.open().get() == early


def test_settings_become_lapses(settings):
    settings.JOBTRACK = {"LAPSES": {"deadline_exceeded": {"option": "close", "after_s": 3600}}}
    runtime = wiring.get_runtime()
    assert runtime.lapses == {Reason.DEADLINE_EXCEEDED: Lapse(option=Option.CLOSE, after=timedelta(hours=1))}
    assert isinstance(runtime.chores, DjangoChores)


# --- tests of a site ----------------------------------------------------------------------------------------


def test_a_rehearsal_tells_nobody(settings, desk):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    with rehearsal() as jobtrack:
        desk.ask()
        jobtrack.run_due(until=timedelta(days=2))
    assert notices_desk.told == []
    assert Notice.objects.get().outcome == ""
    assert Heartbeat.objects.count() == 0
