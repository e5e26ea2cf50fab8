"""What we assume of brokers, as rows (INV-25, B054)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from celery import Celery

from jobtrack.worker import broker

REDIS, AMQP, MEMORY = "redis://127.0.0.1:1/0", "amqp://127.0.0.1:1//", "memory://"


def make_app(url: str, **conf: object) -> Celery:
    app = Celery("test", broker=url, set_as_current=False)
    app.conf.update(conf)
    return app


@pytest.mark.parametrize(
    ("url", "options", "wanted_s", "expected_s"),
    [
        (REDIS, {}, 30, 30),
        (REDIS, {}, 5000, 900),  # a quarter of the default hour
        (REDIS, {"visibility_timeout": 40}, 30, 10),
        (AMQP, {}, 5000, 450),  # a quarter of RabbitMQ's half hour
        (AMQP, {"visibility_timeout": 4}, 30, 30),  # means nothing to RabbitMQ
        (MEMORY, {}, 30, 30),
    ],
)
def test_a_countdown_stays_well_below_the_patience_of_the_broker(url, options, wanted_s, expected_s) -> None:
    app = make_app(url, broker_transport_options=options)

    assert broker.horizon(app, timedelta(seconds=wanted_s)) == timedelta(seconds=expected_s)


@pytest.mark.parametrize(
    ("url", "queue_type", "exchange_type", "expected"),
    [
        (REDIS, None, None, ("direct", None)),
        (AMQP, None, None, ("direct", None)),
        (AMQP, "quorum", None, ("topic", "quorum")),  # a direct exchange passes no delayed messages
        (AMQP, "quorum", "fanout", ("fanout", "quorum")),
    ],
)
def test_our_queue_is_made_as_the_project_makes_queues(url, queue_type, exchange_type, expected) -> None:
    app = make_app(
        url, task_create_missing_queue_type=queue_type, task_create_missing_queue_exchange_type=exchange_type
    )

    queue = broker.our_queue(app, "jobtrack")

    assert (queue.exchange.type, (queue.queue_arguments or {}).get("x-queue-type")) == expected
    assert broker.our_queue(app, "jobtrack") is queue
    assert broker.quorum(app) is (expected[1] == "quorum")


def test_the_bounds_replace_the_project_s_own() -> None:
    app = make_app(
        REDIS, broker_transport_options={"socket_timeout": None, "retry_on_timeout": True, "global_keyprefix": "x"}
    )

    options = app.connection_for_write(transport_options=broker.bounds(app)).transport_options

    assert (options["socket_timeout"], options["retry_on_timeout"], options["global_keyprefix"]) == (1.0, False, "x")


def test_other_brokers_get_no_options_they_do_not_know() -> None:
    assert "socket_timeout" not in broker.bounds(make_app(MEMORY))


def test_a_transport_without_its_library_is_still_named() -> None:
    assert broker.kind(make_app("zookeeper://127.0.0.1:1//")) in {"zookeeper", "kombu.transport.zookeeper:Transport"}
