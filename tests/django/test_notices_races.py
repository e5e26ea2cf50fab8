"""Several dispatchers at once, and those that die: nobody is told twice unless somebody died (R-ESC-6)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection, connections
from django.db.models import F

from jobtrack.testing import VirtualClock
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Notice
from jobtrack_django.notify import dispatch as dispatching
from jobtrack_django.notify.dispatch import dispatch
from jobtrack_django.statements import after
from tests.django import notices_desk
from tests.django.notices_desk import CALL, Desk

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

SLOW = {**CALL, "path": "tests.django.test_notices_races.slow"}
DIES = {**CALL, "path": "tests.django.test_notices_races.die"}


@pytest.fixture
def desk(monkeypatch) -> Desk:
    monkeypatch.setattr(notices_desk, "told", [])
    return Desk(VirtualClock(datetime.now(UTC)))


def slow(message):
    time.sleep(0.2)
    notices_desk.told.append(message)


class Killed(BaseException):
    """The process ends here, after the message has gone out."""


def die(message):
    notices_desk.told.append(message)
    raise Killed


def at_once(work, count):
    """Run ``work`` in so many threads that begin together; each has connections of its own."""
    barrier, failures = threading.Barrier(count), []

    def run():
        try:
            barrier.wait(10)
            work()
        except Exception as error:  # noqa: BLE001 - told by the test
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []


def end_leases():
    """Time passes for the leases: the database's clock cannot be set."""
    leased = Notice.objects.filter(lease_until__isnull=False)
    leased.update(lease_until=F("lease_until") - timedelta(hours=1))


def test_of_many_dispatchers_one_tells(desk, settings):
    settings.JOBTRACK = {"NOTIFIERS": {"night": SLOW}}
    desk.ask(count=20)
    at_once(lambda: [dispatch("default") for _ in range(3)], 6)
    assert [message.total for message in notices_desk.told] == [20]
    assert set(Notice.objects.values_list("outcome", "attempts")) == {("sent", 1)}


def test_two_that_look_at_the_same_time_do_not_both_take(desk, settings, monkeypatch):
    """The other one takes them between our look and our own taking."""
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask(count=2)

    def overtaken(*_):
        Notice.objects.update(lease_owner="other", lease_until=after(dispatching.LEASE), attempts=F("attempts") + 1)

    monkeypatch.setattr(dispatching, "_held_until", overtaken)
    assert dispatch("default") == 0
    assert notices_desk.told == []
    assert set(Notice.objects.values_list("lease_owner", "attempts")) == {("other", 1)}


def test_questions_that_open_meanwhile_are_told_once_each(desk, settings):
    """Dispatchers race while operations go on asking: every question is told, none twice."""
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    lock, open_ones = threading.Lock(), []

    def work():
        with lock:
            open_ones.extend(desk.ask(count=3))
        for _ in range(3):
            dispatch("default")

    at_once(work, 5)
    dispatch("default")
    assert sorted(item.id for message in notices_desk.told for item in message.items) == sorted(
        str(question.pk) for question in open_ones
    )


def test_who_dies_between_sending_and_marking_repeats_the_same_message(desk, settings):
    settings.JOBTRACK = {"NOTIFIERS": {"night": DIES}}
    desk.ask(count=2)
    with pytest.raises(Killed):
        dispatch("default")
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    assert dispatch("default") == 0  # for all anybody knows, it is being sent
    end_leases()
    assert [dispatch("default"), dispatch("default")] == [2, 1]
    first, again, new = notices_desk.told
    assert (again.id, again.items) == (first.id, first.items)
    assert new.id != first.id


def test_a_message_whose_sending_ends_every_process_is_given_up(desk, settings):
    """It would be sent again for ever, and hold up all that comes after it."""
    settings.JOBTRACK = {"NOTIFIERS": {"night": DIES}}
    desk.ask()
    for _ in range(dispatching.MOST_ATTEMPTS):
        with pytest.raises(Killed):
            dispatch("default")
        end_leases()
    assert dispatch("default") == 0
    notice = Notice.objects.get()
    assert (notice.outcome, notice.last_error, notice.due_at) == ("failed", dispatching.ENDED, None)
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    assert dispatch("default") == 1


def test_a_message_that_cannot_be_written_waits_like_one_that_cannot_be_sent(desk, settings, monkeypatch, caplog):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()

    def broken(*_, **__):
        raise KeyError("a field of a translation")

    monkeypatch.setattr(dispatching, "message_of", broken)
    assert dispatch("default") == 0
    notice = Notice.objects.get()
    assert (notice.outcome, notice.attempts, notice.lease_until) == ("", 1, None)
    assert notice.last_error == "it could not be written: KeyError"


def test_who_comes_back_after_the_lease_marks_nothing(desk, settings, monkeypatch):
    """A dispatcher that hung is overtaken; its word comes too late."""
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    sent = []

    def hang(message):
        sent.append(message.id)
        if len(sent) == 1:
            end_leases()
            dispatch("default")
            raise RuntimeError

    monkeypatch.setattr(notices_desk, "take", hang)
    assert dispatch("default") == 0
    (row,) = Notice.objects.all()
    assert (row.outcome, row.attempts, row.due_at) == ("sent", 2, None)
    assert len(set(sent)) == 1


CHILD = """
import django; django.setup()
import os, sys
from django.db import connections
connections["default"].settings_dict["NAME"] = sys.argv[1]
from jobtrack_django.notify.dispatch import dispatch
from jobtrack_django.statements import after
dispatch("default")
"""


@pytest.mark.processes
def test_a_process_that_is_killed_while_it_tells_leaves_a_lease(desk, settings, tmp_path):
    """Kill -9 after a real send: another process repeats it once the lease is over."""
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    marker = tmp_path / "sent"
    module = tmp_path / "killed_settings.py"
    module.write_text(
        "from tests.settings import *\n"
        "JOBTRACK = {'NOTIFIERS': {'night': {'kind': 'callable', 'path': 'killed_settings.tell', 'digest_s': 0}}}\n"
        "def tell(message):\n"
        "    import pathlib, time\n"
        f"    pathlib.Path({str(marker)!r}).write_text(message.id)\n"
        "    time.sleep(60)\n"
    )
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}",
        "DJANGO_SETTINGS_MODULE": "killed_settings",
    }
    name = str(connection.settings_dict["NAME"])
    child = subprocess.Popen([sys.executable, "-c", CHILD, name], env=environment, cwd=root)
    try:
        until = time.monotonic() + 30
        while not (marker.exists() and marker.read_text()) and time.monotonic() < until and child.poll() is None:
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    assert (Notice.objects.get().outcome, dispatch("default")) == ("", 0)
    end_leases()
    assert dispatch("default") == 1
    assert [message.id for message in notices_desk.told] == [marker.read_text()]


def test_the_lease_is_longer_than_any_send():
    """INV-14, for the kinds that have a limit: ten seconds of HTTP; a mail server has ten for each of its answers."""
    from jobtrack.transports.post import LIMITS

    assert 10 * LIMITS.total < dispatching.LEASE
    assert DatabaseNow.virtual is None
