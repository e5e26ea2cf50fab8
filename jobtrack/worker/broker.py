"""What must be known of a broker: its kind, its limits, our queue on it, and options that bound every call."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from celery import Celery
from kombu import Exchange, Queue

CALL_S = 1.0
"""Longest wait in seconds for one answer of the broker while publishing. A broker that is slower counts as down."""

_CONNECT_ONCE: Mapping[str, Any] = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1}

_BOUNDS: Mapping[str, Mapping[str, Any]] = {
    # kombu's Redis transport waits for ever by default, so a frozen server would hang a web request.
    "redis": {"socket_timeout": CALL_S, "socket_connect_timeout": CALL_S, "retry_on_timeout": False},
    # Without confirms a publish can be lost without an error.
    "amqp": {"read_timeout": CALL_S, "write_timeout": CALL_S, "confirm_publish": True},
}

_VISIBILITY_S: Mapping[str, float] = {"redis": 3600, "sqs": 1800}
_CONSUMER_TIMEOUT_S = 1800.0  # RabbitMQ's default; a client cannot ask for the real value


def kind(app: Celery) -> str:
    """The driver behind the broker URL: ``redis``, ``amqp``, ``memory``, ``sqs``... Nothing is connected.

    A transport whose client library is not installed is named as its URL names it.
    """
    connection = app.connection_for_write()
    try:
        return str(connection.transport.driver_type)
    except ImportError:
        return str(connection.transport_cls)


def bounds(app: Celery) -> dict[str, Any]:
    """Transport options that limit connecting and publishing, whatever the project's own options say."""
    return {**_CONNECT_ONCE, **_BOUNDS.get(kind(app), {})}


def visibility_s(app: Celery) -> float | None:
    """Seconds after which the broker hands out an unacknowledged message again; None: this broker has no such limit."""
    if kind(app) == "amqp":
        return None
    stated = app.conf.broker_transport_options.get("visibility_timeout")
    return float(stated) if stated is not None else _VISIBILITY_S.get(kind(app))


def horizon(app: Celery, wanted: timedelta) -> timedelta:
    """The longest countdown that is safe: a quarter of the broker's patience, and at most ``wanted`` (INV-25).

    A message with a longer countdown would be handed out again while its first copy still waits in a worker.
    """
    return min(wanted, timedelta(seconds=(visibility_s(app) or _CONSUMER_TIMEOUT_S) / 4))


def quorum(app: Celery) -> bool:
    """True if RabbitMQ's native delay is in use: whole seconds only, and a countdown under one second is an error."""
    if kind(app) != "amqp":
        return False
    return any((queue.queue_arguments or {}).get("x-queue-type") == "quorum" for queue in app.amqp.queues.values())


def our_queue(app: Celery, name: str) -> Queue:
    """The queue of our messages as this project would make it, declared in ``app`` for routing.

    The project's own entry in ``task_queues`` counts. A quorum queue gets a topic exchange, because delayed
    messages do not pass through a direct one.
    """
    queues = app.amqp.queues
    if name not in queues:
        queue = queues.new_missing(name)
        if (queue.queue_arguments or {}).get("x-queue-type") == "quorum" and queue.exchange.type == "direct":
            queue.exchange = Exchange(name, type="topic")
        queues.add(queue)
    return queues[name]
