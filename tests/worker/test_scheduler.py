"""Wake-ups as they stand in the queue, and what happens when they cannot get there."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from kombu import Queue
from kombu.exceptions import ChannelError

from jobtrack.worker import scheduler as scheduler_module
from jobtrack.worker.publisher import REST_S, Message, Publisher
from jobtrack.worker.scheduler import IDS_PER_MESSAGE, MOST_WAITING, NOTHING, CeleryScheduler

HORIZON = timedelta(seconds=30)


@pytest.fixture
def app(request) -> Iterator[Celery]:
    app = Celery("test", broker="memory://", set_as_current=False)
    app.conf.broker_transport_options = {"polling_interval": 0.01}
    yield app
    with app.connection() as connection:
        connection.default_channel.queue_delete("jobtrack")


def published(app: Celery) -> list[Any]:
    """Every message in the queue, as (headers, args, properties)."""
    messages = []
    with app.connection() as connection:
        queue = Queue("jobtrack", channel=connection.default_channel)
        while (message := queue.get(no_ack=True)) is not None:
            args, _, _ = json.loads(message.body)
            messages.append(SimpleNamespace(headers=message.headers, args=args, type=message.content_type))
    return messages


def seconds_from_now(text: str) -> float:
    return (datetime.fromisoformat(text) - datetime.now(UTC)).total_seconds()


def test_a_wake_up_carries_the_id_and_nothing_else(app) -> None:
    """INV-24: a message holds an opaque id; root and parent are fixed, so a chain of wake-ups does not grow."""
    assert CeleryScheduler(app=app).wake("op-1", fence=7, delay=timedelta(seconds=5))

    (message,) = published(app)
    assert message.args == ["op-1"]
    assert message.type == "application/json"
    headers = message.headers
    assert headers["id"].startswith("op-1:7:")
    assert (headers["task"], headers["root_id"], headers["parent_id"]) == (
        "jobtrack.wake",
        "op-1",
        "op-1",
    )
    assert headers["ignore_result"] is True
    assert seconds_from_now(headers["eta"]) == pytest.approx(5, abs=1)
    assert seconds_from_now(headers["expires"]) == pytest.approx(35, abs=1)


def test_no_two_messages_share_an_id(app) -> None:
    """Workers remember the id of an expired message for hours and drop every later one that bears it."""
    scheduler = CeleryScheduler(app=app)
    for _ in range(2):
        scheduler.wake("op", fence=1, delay=timedelta(0))
        scheduler.wake_now(["op"])
        scheduler.deliver(["1"])

    assert len({message.headers["id"] for message in published(app)}) == 6


@pytest.mark.parametrize(
    ("delay_s", "quorum", "expected_s"),
    [
        (0, False, None),
        (-3, False, None),
        (0.3, False, 0.3),
        (0.3, True, 1.0),  # below one second Celery raises
        (4.2, True, 5.0),  # fractions would be cut, and the wake-up come early
        (0, True, None),
        (30, False, 30.0),
    ],
)
def test_the_countdown_suits_the_broker(app, monkeypatch, delay_s, quorum, expected_s) -> None:
    monkeypatch.setattr(scheduler_module.broker, "quorum", lambda _: quorum)
    sent: list[Message] = []
    scheduler = CeleryScheduler(app=app)
    monkeypatch.setattr(scheduler._publisher, "publish", lambda messages: sent.extend(messages) or 1)

    assert scheduler.wake("op", fence=1, delay=timedelta(seconds=delay_s))

    assert sent[0].countdown_s == expected_s


def test_nothing_is_published_beyond_the_horizon(app) -> None:
    """B054: no countdown reaches the visibility time-out; the row is left to the sweeper."""
    assert not CeleryScheduler(app=app, horizon=HORIZON).wake("op", fence=1, delay=timedelta(seconds=30.001))

    assert published(app) == []


def test_many_rows_need_few_messages(app) -> None:
    ids = [f"op-{number}" for number in range(2 * IDS_PER_MESSAGE + 1)]

    assert CeleryScheduler(app=app).wake_now(ids) == len(ids)

    messages = published(app)
    assert [len(message.args) for message in messages] == [IDS_PER_MESSAGE, IDS_PER_MESSAGE, 1]
    assert [one for message in messages for one in message.args] == ids
    assert len({message.headers["id"] for message in messages}) == 3
    assert all(message.headers["eta"] is None for message in messages)


def test_each_delivery_has_a_message_of_its_own(app) -> None:
    assert CeleryScheduler(app=app).deliver(["1", "2"]) == 2

    assert [(message.headers["task"], message.args) for message in published(app)] == [
        ("jobtrack.deliver", ["1"]),
        ("jobtrack.deliver", ["2"]),
    ]


def test_a_conflict_is_published_at_once_with_the_id_alone(app) -> None:
    """R-ID-4, INV-24: no sweep would find it again, so it may wait long for a worker."""
    assert CeleryScheduler(app=app).report_conflict("op-1")

    (message,) = published(app)
    assert (message.headers["task"], message.args) == ("jobtrack.report_conflict", ["op-1"])
    assert message.headers["eta"] is None
    assert seconds_from_now(message.headers["expires"]) > 3600


def test_a_conflict_that_no_broker_takes_costs_a_bounded_time_and_raises_nothing() -> None:
    scheduler = CeleryScheduler(app=Celery("test", broker="redis://127.0.0.1:1/0", set_as_current=False))
    started = time.monotonic()

    assert not scheduler.report_conflict("op-1")

    assert time.monotonic() - started < 5


def test_a_queue_that_nobody_reads_stops_growing(app) -> None:
    """INV-25. Zero published tells the sweeper to look at the rows itself."""
    scheduler = CeleryScheduler(app=app)
    rounds = [scheduler.wake_now(["op"]) for _ in range(MOST_WAITING + 10)]

    assert rounds == [1] * (MOST_WAITING + 1) + [0] * 9
    assert scheduler.counts["skipped"] == 9
    assert len(published(app)) == MOST_WAITING + 1


def test_an_empty_queue_that_redis_does_not_keep_counts_as_empty(app, monkeypatch) -> None:
    publisher = Publisher(app, queue="jobtrack")
    channel = publisher._connected().channel

    def not_found(queue: str, *, passive: bool = False, **_: Any) -> None:
        if passive:
            raise ChannelError(f"NOT_FOUND - no queue {queue!r}", (50, 10), "Channel.queue_declare", "404")

    monkeypatch.setattr(channel, "queue_declare", not_found)

    assert publisher.publish([MESSAGE], most_waiting=0) == 1


def test_nothing_to_announce_needs_no_broker() -> None:
    scheduler = CeleryScheduler(app=Celery("test", broker="redis://127.0.0.1:1/0", set_as_current=False))

    assert (scheduler.wake_now([]), scheduler.deliver([]), scheduler.counts) == (0, 0, {})


def test_eager_mode_is_refused_politely(app, caplog) -> None:
    """B057: a task that runs inside its publisher would nest until the recursion limit. Said once, not each time."""
    app.conf.task_always_eager = True
    scheduler = CeleryScheduler(app=app)

    assert not scheduler.wake("op", fence=1, delay=timedelta(0))
    assert scheduler.wake_now(["op"]) == scheduler.deliver(["1"]) == 0
    assert not scheduler.report_conflict("op")

    assert scheduler.horizon == NOTHING
    assert scheduler.counts == {"refused": 4}
    assert [record.message for record in caplog.records] == [
        "task_always_eager is on: no wake-ups are published. In tests use jobtrack.testing.run_due()."
    ]
    assert published(app) == []


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


MESSAGE = Message(task="jobtrack.wake", id="m", args=("op",), expires_s=30.0)


def test_a_dead_broker_is_left_alone_for_a_while(caplog) -> None:
    """One refused connection, then no try until the rest is over. The log names no address and no password."""
    app = Celery("test", broker="redis://:s3cret@127.0.0.1:1/0", set_as_current=False)
    clock = Clock()
    publisher = Publisher(app, queue="jobtrack", clock=clock)
    with caplog.at_level(logging.DEBUG, logger="jobtrack"):
        fates = []
        for pause_s in (0.0, 0.1, REST_S - 0.2, 0.2):
            clock.now += pause_s
            fates.append((publisher.publish([MESSAGE]), publisher.counts["failed"], publisher.counts["skipped"]))

    assert fates == [(0, 1, 0), (0, 1, 1), (0, 1, 2), (0, 2, 2)]
    assert publisher.resting()
    assert "s3cret" not in caplog.text
    assert caplog.messages[0] == "The broker took no wake-up (OperationalError); the sweeper will find the rows."


def test_while_the_broker_rests_rows_are_left_to_the_sweeper() -> None:
    scheduler = CeleryScheduler(app=Celery("test", broker="redis://127.0.0.1:1/0", set_as_current=False))
    before = scheduler.horizon

    assert not scheduler.wake("op", fence=1, delay=timedelta(seconds=1))

    assert (before, scheduler.horizon) == (HORIZON, NOTHING)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}/0", "amqp://guest:guest@127.0.0.1:{}//"])
def test_a_broker_that_never_answers_costs_about_a_second(url: str) -> None:
    """A frozen broker accepts connections and says nothing; the caller may be a web request."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        app = Celery("test", broker=url.format(server.getsockname()[1]), set_as_current=False)
        app.conf.broker_transport_options = {"socket_timeout": None, "retry_on_timeout": True, "max_retries": 50}
        started = time.monotonic()

        assert not CeleryScheduler(app=app).wake("op", fence=1, delay=timedelta(0))

        assert time.monotonic() - started < 3


def test_a_connection_that_died_while_idle_is_replaced_at_once(app, monkeypatch) -> None:
    publisher = Publisher(app, queue="jobtrack")
    assert publisher.publish([MESSAGE]) == 1
    send_task, failures = app.send_task, [ConnectionResetError("gone")]

    def flaky(*args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return send_task(*args, **options)

    monkeypatch.setattr(app, "send_task", flaky)

    assert publisher.publish([MESSAGE]) == 1
    assert publisher.counts == {"published": 2}


def test_a_thread_does_not_wait_long_for_another_one(app, monkeypatch) -> None:
    monkeypatch.setattr("jobtrack.worker.publisher.PATIENCE_S", 0.01)
    publisher = Publisher(app, queue="jobtrack")

    with publisher._lock:
        assert publisher.publish([MESSAGE]) == 0

    assert publisher.counts == {"skipped": 1}
