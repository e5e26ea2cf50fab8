"""Figures of each day: counted rightly, once, never lowered; and whether the provider's wishes were obeyed (R-METRIC)."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connections

from jobtrack.core.escalation import Reason
from jobtrack_django import figures, track
from jobtrack_django.models import AuditEntry, DailyFigure, Operation
from jobtrack_django.testing import answer, rehearsal
from tests.django.admin_pages import DONE, SITE
from tests.django.figures_planted import ask, now, plant, poll_entry

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

TODAY_NOON = timedelta(hours=12)


def told(day):
    """Figures of one day: count, or count and total, by provider and measure."""
    rows = figures.figures("default").filter(day=day)
    return {f"{row.provider} {row.measure}": row.count if row.total is None else (row.count, row.total) for row in rows}


def rolled():
    """Roll up until nothing is due."""
    for _ in range(100):
        if not figures.due("default"):
            return
        figures.roll_up("default")
    raise AssertionError("rolling up never ends")


def yesterday():
    return now().date() - timedelta(days=1)


def noon(day):
    return figures.midnight(day) + TODAY_NOON


def test_a_day_counted_by_hand():
    day = yesterday()
    plant("a1", "acme", "succeeded", noon(day), requests=3, seen_within=2)
    plant("a2", "acme", "succeeded", noon(day), requests=5, seen_within=100)
    plant("a3", "acme", "failed", noon(day), requests=2, submissions=1, seen_within=4)
    plant("a4", "acme", "abandoned", noon(day), requests=9)
    plant("b1", "other", "succeeded", noon(day), requests=1, seen_within=0.5)
    running = plant("r", "acme", "running", None, created_at=noon(day))
    ask(running, Reason.DEADLINE_EXCEEDED, noon(day))
    ask(plant("s", "acme", "escalated", None, created_at=noon(day)), Reason.STALLED, noon(day), decided=True)
    rolled()
    lags = {1: 0, 5: 2, 15: 2, 60: 2, 300: 3, 900: 3, 3600: 3, 21600: 3, 86400: 3}
    assert told(day) == {
        "acme started": 2,
        "acme ended:succeeded": 2,
        "acme ended:failed": 1,
        "acme ended:abandoned": 1,
        "acme requests": (4, 19.0),
        "acme submissions": (4, 1.0),
        "acme lag": (3, 106.0),
        "acme lag_most": (3, 100.0),
        **{f"acme lag:{bound}": count for bound, count in lags.items() if count},
        "acme asked:deadline_exceeded": 1,
        "acme asked:stalled": 1,
        "other ended:succeeded": 1,
        "other requests": (1, 1.0),
        "other submissions": (1, 0.0),
        "other lag": (1, 0.5),
        "other lag_most": (1, 0.5),
        **{f"other lag:{bound}": 1 for bound in lags},
    }


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def test_a_day_is_one_in_utc_whatever_the_zone_of_the_site(settings, zone):
    settings.TIME_ZONE = zone
    day = yesterday()
    start = figures.midnight(day)
    for name, at in {
        "before": start - timedelta(microseconds=1),
        "first": start,
        "last": start + timedelta(days=1, microseconds=-1),
        "after": start + timedelta(days=1),
    }.items():
        plant(name, "acme", "succeeded", at)
    rolled()
    days = {row.day: row.count for row in DailyFigure.objects.filter(measure="ended:succeeded")}
    assert days == {day - timedelta(days=1): 1, day: 2, day + timedelta(days=1): 1}


def test_rolling_up_again_changes_nothing():
    plant("a", "acme", "succeeded", noon(yesterday()), seen_within=1)
    rolled()
    before = told(yesterday())
    DailyFigure.objects.update(measured_at=datetime(2020, 1, 1, tzinfo=UTC))
    rolled()
    assert told(yesterday()) == before


def test_a_pruned_day_is_not_lowered_and_a_late_end_raises_it():
    day = yesterday()
    for number in range(3):
        plant(f"a{number}", "acme", "succeeded", noon(day), requests=2)
    rolled()
    Operation.objects.filter(pk__in=["a0", "a1"]).delete()
    DailyFigure.objects.update(measured_at=datetime(2020, 1, 1, tzinfo=UTC))
    rolled()
    assert told(day)["acme ended:succeeded"] == 3
    assert told(day)["acme requests"] == (3, 6.0)
    for number in range(3):
        plant(f"late{number}", "acme", "succeeded", noon(day), requests=1)
    DailyFigure.objects.update(measured_at=datetime(2020, 1, 1, tzinfo=UTC))
    rolled()
    assert told(day)["acme ended:succeeded"] == 4


def test_backfill_is_bounded_and_resumable():
    today = now().date()
    for back in (0, 45, figures.KEPT_DAYS, figures.KEPT_DAYS + 1):
        plant(f"a{back}", "acme", "succeeded", figures.midnight(today - timedelta(days=back)))
    assert figures.roll_up("default") == figures.STEPS
    assert DailyFigure.objects.filter(measure="rolled").count() == figures.STEPS
    assert figures.due("default")
    rolled()
    assert {row.day for row in DailyFigure.objects.filter(measure="ended:succeeded")} == {
        today - timedelta(days=back) for back in (0, 45, figures.KEPT_DAYS)
    }


@pytest.mark.parametrize(
    ("counted", "clock", "expected"),
    [
        (None, "2026-03-02T00:00", True),
        ("2026-03-01T12:00", "2026-03-01T12:04", False),
        ("2026-03-01T12:00", "2026-03-01T12:05", True),
        ("2026-03-01T23:59", "2026-03-02T00:04", True),  # once more after midnight
        ("2026-03-02T00:04", "2026-03-02T00:30", False),
        ("2026-03-02T00:04", "2026-03-02T01:04", True),  # late writes
        ("2026-03-02T05:59", "2026-03-02T07:00", True),
        ("2026-03-02T06:00", "2026-03-09T07:00", False),  # for good
    ],
)
def test_when_a_day_is_due(counted, clock, expected):
    counted = counted and datetime.fromisoformat(counted).replace(tzinfo=UTC)
    clock = datetime.fromisoformat(clock).replace(tzinfo=UTC)
    assert figures._is_due(date(2026, 3, 1), counted, clock) is expected


def test_two_at_once_count_everything_once():
    day = yesterday()
    for number in range(20):
        operation = plant(f"a{number}", "acme", "succeeded", noon(day), requests=1, seen_within=1)
        poll_entry(operation, at=noon(day))
    errors = []

    def work():
        try:
            for _ in range(20):
                figures.roll_up("default")
        except Exception as error:  # noqa: BLE001 - told below
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert told(day)["acme ended:succeeded"] == 20
    assert told(day)["acme requests"] == (20, 20.0)
    assert told(day)["acme looks"] == 20


# --- guidance obeyed --------------------------------------------------------------------------------


def looks():
    rows = figures.figures("default").filter(measure__in=["looks", "early"])
    return {measure: sum(row.count for row in rows if row.measure == measure) for measure in ("looks", "early")}


def test_a_planted_early_look_is_counted():
    """INV-04, measured without the schedule: the entries alone tell."""
    at = noon(yesterday())
    operation = plant("a", "acme", "running", None, created_at=at)
    poll_entry(operation, at=at, wait_s=60)
    poll_entry(operation, at=at + timedelta(seconds=61), sent_at=at + timedelta(seconds=60), wait_s=60)
    rolled()
    assert looks() == {"looks": 2, "early": 0}
    early = at + timedelta(seconds=61 + 59)
    poll_entry(operation, at=early + timedelta(seconds=5), sent_at=early)
    DailyFigure.objects.filter(measure="read").update(measured_at=at)
    rolled()
    assert looks() == {"looks": 3, "early": 1}


@pytest.mark.parametrize(
    ("between", "last", "expected"),
    [
        ({}, {}, {"looks": 2, "early": 1}),
        ({"event": "decision"}, {}, {"looks": 2, "early": 1}),  # a person does not undo the provider's wish
        ({"event": "look"}, {}, {"looks": 2, "early": 1}),
        ({"event": "cancel", "wait_s": 0}, {}, {"looks": 2, "early": 1}),  # another request is no answer to a look
        ({"wait_s": 0}, {}, {"looks": 3, "early": 1}),  # itself early
        ({"late": True, "wait_s": 0}, {}, {"looks": 2, "early": 1}),  # overtaken: its wish did not count
        ({}, {"late": True}, {"looks": 1, "early": 0}),  # overtaken: sent before the answer, written after it
        ({}, {"sent_at": None}, {"looks": 1, "early": 0}),  # nothing was sent
        ({}, {"old": True}, {"looks": 2, "early": 1}),  # an earlier release wrote only when the answer came
    ],
)
def test_what_is_judged(between, last, expected):
    at = noon(yesterday())
    operation = plant("a", "acme", "running", None, created_at=at)
    poll_entry(operation, at=at, wait_s=60)
    if between:
        poll_entry(operation, at=at + timedelta(seconds=10), **between)
    poll_entry(operation, at=at + timedelta(seconds=59), **last)
    rolled()
    assert looks() == expected


def test_the_guidance_of_an_acceptance_counts():
    at = noon(yesterday())
    for name, do in (("taken", "follow"), ("busy", "later")):
        operation = plant(name, "acme", "running", None, created_at=at)
        poll_entry(operation, at=at, wait_s=60, event="submission", do=do)
        poll_entry(operation, at=at + timedelta(seconds=59))
    rolled()
    assert looks() == {"looks": 2, "early": 1}


def test_what_cannot_be_read_stops_nothing():
    at = noon(yesterday())
    operation = plant("a", "acme", "running", None, created_at=at)
    for seq, body in enumerate(['{"event":"poll"', "[]", '{"event":"poll","at":"yesterday"}'], start=1):
        AuditEntry(operation=operation, seq=seq, prev="", hash="x", body=body, at=at).save()
    poll_entry(operation, at=at)
    rolled()
    assert looks() == {"looks": 1, "early": 0}


def test_entries_of_this_moment_wait_for_those_that_are_not_committed_yet():
    operation = plant("a", "acme", "running", None, created_at=now())
    poll_entry(operation, at=now())
    rolled()
    assert looks() == {"looks": 0, "early": 0}


def test_more_entries_than_one_call_reads(monkeypatch):
    monkeypatch.setattr(figures, "BATCH", 3)
    monkeypatch.setattr(figures, "BATCHES", 2)
    at = noon(yesterday())
    operation = plant("a", "acme", "running", None, created_at=at)
    for number in range(20):
        poll_entry(operation, at=at + timedelta(minutes=number))
    rolled()
    assert looks() == {"looks": 20, "early": 0}


@pytest.mark.parametrize("wait", ["7", "25"])
def test_jobtrack_itself_never_comes_early(settings, wait):
    """The whole path, from a scripted Retry-After to the figure."""
    settings.JOBTRACK = SITE
    with rehearsal() as site:
        running = answer(json={"id": "exp_1", "status": "running"}, headers={"Retry-After": wait})
        site.provider.script("exp_1", running, running, running, DONE)
        track("acme-export", job_id="exp_1")
        site.run_due()
        site.clock.advance(timedelta(minutes=10))
        rolled()
        sent = [json.loads(body) for body in AuditEntry.objects.of_requests().values_list("body", flat=True)]
        assert all(entry["sent_at"] <= entry["at"] for entry in sent)
        assert looks() == {"looks": 4, "early": 0}
