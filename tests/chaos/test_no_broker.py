"""The broker is down, frozen, or was never there; callers do not wait and every operation still ends (INV-06)."""

from __future__ import annotations

import signal

import pytest

from tests.chaos.rig import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.processes]


def test_without_any_broker_the_sweeper_command_ends_everything(rig, valkey) -> None:
    valkey.process.kill()
    told = rig.drive("track", 20, 2, 1)
    assert told["seconds"] < 4
    assert told["counts"]["failed"] == 1, "one try, then the broker is left alone"

    sweeper = rig.sweeper("--inline")
    rig.wait_until_ended(20, within_s=40)

    rig.check()
    assert sweeper.stop() == 0, sweeper.log.read_text()[-2000:]


def test_a_sweeper_that_cannot_publish_looks_by_itself(rig, valkey) -> None:
    valkey.process.kill()
    rig.drive("track", 5, 1, 0)

    rig.sweeper()
    rig.wait_until_ended(5, within_s=40)

    rig.check()


def test_a_worker_that_lost_its_broker_goes_on_by_itself(rig, valkey) -> None:
    """Its sweeper polls in the main process until the broker is back."""
    rig.drive("track", 5, 1, 0)
    valkey.process.kill()

    worker = rig.worker()
    rig.wait_until_ended(5, within_s=40)

    assert worker.alive()
    rig.check()


def test_a_frozen_broker_costs_a_visitor_less_than_four_seconds(rig, valkey) -> None:
    valkey.process.signal(signal.SIGSTOP)

    answer = rig.drive("view", "j-0-2-0")

    assert answer["status"] == 202
    assert answer["seconds"] < 4


def test_eager_mode_is_one_stored_operation_and_no_recursion(rig) -> None:
    """B057: the call returns at once, nothing is sent by it, and the next look is stored."""
    answer = rig.drive("view", "j-0-2-0", CHAOS_EAGER="yes")

    assert answer["status"] == 202
    assert answer["seconds"] < 2
    assert rig.requests() == []
    assert rig.states() == {"running": 1}
    rig.sweeper("--inline")
    wait_for(lambda: rig.states() == {"succeeded": 1}, within_s=20, what="it ends all the same")
