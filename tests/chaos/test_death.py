"""Workers are killed and brokers lose everything; the provider's log and the rows must still agree (R-PROOF)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.chaos.gateway import Gateway
from tests.chaos.rig import RABBIT, Rabbit, Rig, Valkey, rig_on, wait_for

pytestmark = [pytest.mark.broker, pytest.mark.processes]

MANY = 200
RECOVERY_S = 2 + 2 + 0.4 + 2
"""The longest wait of the table (as long as a lease here), `grace_s`, one sweep, and two seconds for a busy machine."""
LOOK_S = 0.05
"""What one look may cost a worker that has them all to do at once."""
NO_WAKE_UP = "The broker took no wake-up"


def kill_flush_restart(rig: Rig, broker: Valkey | Rabbit) -> None:
    rig.drive("track", MANY, 2, 1)
    first = rig.ready_worker()
    wait_for(lambda: len(rig.requests()) >= MANY // 2, within_s=30, what="half of them were asked once")

    first.kill()
    killed = time.time()
    broker.lose_everything(rig.queue)
    before = rig.states()["running"]
    second = rig.ready_worker()
    ready = time.time()
    rig.wait_until_ended(MANY, within_s=40)

    assert rig.slowest_return(killed=killed, ready=ready) < RECOVERY_S + MANY * LOOK_S
    assert before > 0, "the worker was killed too late to prove anything"
    assert not second.said(NO_WAKE_UP), "it ended without the broker, which is another test"
    rig.check()


@pytest.mark.crash
def test_two_hundred_operations_survive_a_killed_worker_and_a_flushed_redis(rig, valkey) -> None:
    """INV-06, 16, 24: all end rightly, none over budget, none before guidance, all chains verify."""
    kill_flush_restart(rig, valkey)


@pytest.mark.crash
def test_two_hundred_operations_survive_a_killed_worker_and_a_purged_rabbitmq(tmp_path, rabbit) -> None:
    with rig_on(tmp_path, rabbit) as rig:
        kill_flush_restart(rig, rabbit)


@pytest.mark.crash
def test_a_killed_worker_is_made_up_for_by_the_sweeper_of_another(rig, valkey) -> None:
    """INV-16: looked at again within lease + sweep + 2 s although Redis holds its messages back for an hour."""
    doomed = rig.ready_worker(CHAOS_SWEEP="no")
    rig.drive("track", 20, 4, 1)
    wait_for(lambda: valkey.call("HLEN", "unacked"), within_s=20, what="messages are parked in the worker")
    doomed.kill()

    killed, second = time.time(), rig.ready_worker()
    ready = time.time()
    rig.wait_until_ended(20, within_s=40)

    assert rig.slowest_return(killed=killed, ready=ready) < RECOVERY_S + 20 * LOOK_S
    assert valkey.call("HLEN", "unacked") > 0, "Redis gave the messages back, so this proved nothing"
    assert not second.said(NO_WAKE_UP)
    rig.check()


@pytest.mark.crash
def test_a_restarted_redis_loses_every_message_and_nothing_else(rig, valkey) -> None:
    """A worker may end with its broker (a defect of Celery 5.7); its supervisor starts it again."""
    rig.drive("track", 30, 2, 1)
    workers = [rig.ready_worker()]
    wait_for(lambda: len(rig.requests()) > 5, within_s=30, what="some were asked")

    valkey.process.kill()
    valkey.start()

    def supervised() -> bool:
        if not workers[-1].alive():
            workers.append(rig.worker())
        return rig.states() == {"succeeded": 30}

    wait_for(supervised, within_s=40, what="30 succeeded")
    rig.wait_until_ended(30, within_s=20)
    rig.check()


@pytest.mark.crash
def test_a_rabbitmq_that_ends_and_comes_back_empty_costs_nothing_but_time(tmp_path, rabbit) -> None:
    """The server is shared, so it stays; a door before it is shut, its queue is emptied, and the door opens again."""
    parts = urlsplit(RABBIT)
    gateway = Gateway(parts.hostname or "127.0.0.1", parts.port or 5672)
    rabbit.url = urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{gateway.port}"))
    with rig_on(tmp_path, rabbit) as rig:
        rig.drive("track", 30, 2, 1)
        workers = [rig.ready_worker()]
        wait_for(lambda: len(rig.requests()) > 5, within_s=30, what="some were asked")

        assert gateway.shut() > 0
        Rabbit().lose_everything(rig.queue)
        time.sleep(2)
        gateway.open()

        def supervised() -> bool:
            if not workers[-1].alive():
                workers.append(rig.worker())
            return rig.states() == {"succeeded": 30}

        wait_for(supervised, within_s=40, what="30 succeeded")
        rig.wait_until_ended(30, within_s=20)
        rig.check()


@pytest.mark.parametrize(("pool", "options"), [("prefork", ("-c", "2")), ("solo", ("-c", "1"))])
def test_the_sweeper_runs_in_other_pools_too(rig, valkey, pool, options) -> None:
    """The rows are tracked while nothing is published for them: only the sweeper can find them."""
    rig.drive("track", 5, 1, 0)
    valkey.lose_everything(rig.queue)

    worker = rig.ready_worker(*options, pool=pool)
    rig.wait_until_ended(5, within_s=40)

    rig.check()
    assert not worker.said(NO_WAKE_UP)
    assert worker.stop() == 0, worker.log.read_text()[-2000:]


def test_the_same_message_ten_times_is_one_request(rig) -> None:
    """B054, INV-24: copies of one message, some at the same moment, never repeat a look."""
    rig.drive("track", 1, 1, 0)
    rig.drive("duplicate", "op-j-0-1-0", 10, 0)  # too early: each asks again, none sends
    rig.drive("duplicate", "op-j-0-1-0", 10, 1.5)
    worker = rig.ready_worker()
    rig.wait_until_ended(1, within_s=20)
    wait_for(
        lambda: worker.log.read_text().count("Task jobtrack.wake") >= 2 * 21,
        within_s=20,
        what="all messages were used up",
    )

    assert len(rig.requests()) == 1
    (row,) = rig.check()["operations"]
    assert (row["fence"], row["spent_status_requests"]) == (1, 1)


def test_messages_stay_few_and_their_countdowns_short(tmp_path, valkey) -> None:
    """INV-25: at most two messages for each operation, no countdown beyond the horizon."""
    horizon_s = 0.5
    with rig_on(tmp_path, valkey, CHAOS_HORIZON_S=str(horizon_s)) as rig:
        rig.drive("track", 20, 4, 0)
        rig.ready_worker()
        depths: list[int] = []
        countdowns: list[float] = []

        def sample() -> bool:
            depths.append(valkey.waiting(rig.queue))
            etas = [
                headers["eta"] for headers in valkey.held() if headers["task"] == "jobtrack.wake" and headers["eta"]
            ]
            countdowns.extend((datetime.fromisoformat(eta) - datetime.now(UTC)).total_seconds() for eta in etas)
            return rig.states() == {"succeeded": 20}

        wait_for(sample, within_s=40, what="20 succeeded")

        assert 0 < max(depths) <= 2 * 20
        assert 0 < max(countdowns) <= horizon_s
        rig.wait_until_ended(20, within_s=20)
        rig.check()


def test_short_countdowns_and_long_ones_on_a_quorum_queue(tmp_path, rabbit) -> None:
    """RabbitMQ's native delay takes whole seconds only; our queue and its exchange suit it without configuration."""
    with rig_on(tmp_path, rabbit, CHAOS_QUORUM="yes", CHAOS_HORIZON_S="5") as rig:
        worker = rig.ready_worker()
        rig.drive("track", 10, 2, 1)
        rig.wait_until_ended(10, within_s=40)

        rig.check()
        assert not worker.said(NO_WAKE_UP)
        assert not worker.said("Direct exchanges are not supported")
        assert not worker.said("Traceback")
