"""Publishing that costs its caller a bounded time and never raises."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from celery import Celery
from kombu import Producer
from kombu.exceptions import ChannelError

from jobtrack.worker import broker

log = logging.getLogger("jobtrack.worker")

REST_S = 5.0
"""Seconds without a further try after a failed one: a dead broker costs at most one time-out in this time."""

PATIENCE_S = 2.0
"""Longest wait in seconds for another thread that is publishing."""

QUICK_S = 0.5
"""A failure that comes faster than this on a used connection is taken for a connection that died while idle."""

MOST_BUFFERED = 500
"""Messages that Redis gets in one round trip; other brokers get them one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One task message. ``args`` are opaque ids: everything in a message is seen by logs, events and monitors."""

    task: str
    id: str  # unique per message: an expired or revoked id is remembered by workers and never runs again
    args: tuple[str, ...]
    expires_s: float  # the worker drops the message when it is older
    countdown_s: float | None = None  # None: at once
    root: str = ""  # fixed root and parent keep a chain of wake-ups from growing one trace for ever; "": the id


class Publisher:
    """One connection of its own, guarded by a lock; the project's pools and options play no part.

    Args:
        app: The Celery app whose broker is used.
        queue: Name of the queue for all messages.
        clock: Monotonic seconds.
    """

    def __init__(self, app: Celery, *, queue: str, clock: Callable[[], float] = monotonic) -> None:
        self._app = app
        self._queue = queue
        self._clock = clock
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self._rests_until = 0.0
        self.counts: Counter[str] = Counter()
        """Messages by fate: ``published``, ``failed`` (perhaps taken), ``skipped`` (not tried)."""

    def resting(self) -> bool:
        """True while no try is made because the last one failed."""
        return self._clock() < self._rests_until

    def publish(self, messages: Sequence[Message], *, most_waiting: int | None = None) -> int:
        """Publish all messages or, as far as can be told, none.

        Args:
            messages: What to publish.
            most_waiting: Publish nothing while more messages than this wait in the queue; None: no limit.

        Returns:
            How many the broker took. After a failure, 0 (some may have arrived all the same).
        """
        if not messages:
            return 0
        if self.resting() or not self._lock.acquire(timeout=PATIENCE_S):
            return self._skip(messages)
        try:
            return self._skip(messages) if self.resting() else self._try(messages, most_waiting)
        finally:
            self._lock.release()

    def _skip(self, messages: Sequence[Message]) -> int:
        self.counts["skipped"] += len(messages)
        return 0

    def _try(self, messages: Sequence[Message], most_waiting: int | None) -> int:
        used, started = self._producer is not None, self._clock()
        try:
            producer = self._connected()
            if most_waiting is not None and self._waiting(producer) > most_waiting:
                return self._skip(messages)
            self._send(producer, messages)
        except Exception as error:  # noqa: BLE001 - brokers raise errors of many families, a project's signal handlers any
            self._drop()
            if used and self._clock() - started < QUICK_S:
                return self._try(messages, most_waiting)
            return self._failed(messages, error)
        self.counts["published"] += len(messages)
        return len(messages)

    def _connected(self) -> Producer:
        if self._producer is None:
            connection = self._app.connection_for_write(
                transport_options=broker.bounds(self._app), connect_timeout=broker.CALL_S
            )
            self._producer = self._app.amqp.Producer(connection, auto_declare=False)
        return self._producer

    def _waiting(self, producer: Producer) -> int:
        producer.maybe_declare(broker.our_queue(self._app, self._queue))
        channel: Any = producer.channel
        try:
            return int(channel.queue_declare(queue=self._queue, passive=True).message_count)
        except ChannelError:  # "not found": Redis keeps no empty queues; RabbitMQ's was deleted a moment ago
            return 0

    def _send(self, producer: Any, messages: Sequence[Message]) -> None:
        broker.our_queue(self._app, self._queue)
        with producer.batch(max_size=MOST_BUFFERED):
            for message in messages:
                self._send_one(producer, message)

    def _send_one(self, producer: Producer, message: Message) -> None:
        self._app.send_task(
            message.task,
            args=message.args,
            task_id=message.id,
            countdown=message.countdown_s,
            expires=message.expires_s,
            root_id=message.root or message.id,
            parent_id=message.root or message.id,
            producer=producer,
            queue=self._queue,
            serializer="json",
            ignore_result=True,
            add_to_parent=False,
            retry=False,
            confirm_timeout=broker.CALL_S,
        )

    def _failed(self, messages: Sequence[Message], error: Exception) -> int:
        self._rests_until = self._clock() + REST_S
        self.counts["failed"] += len(messages)
        # The text of such an error may hold the broker's URL with its password.
        log.warning("The broker took no wake-up (%s); the sweeper will find the rows.", type(error).__name__)
        return 0

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            connection: Any = producer.connection
            with suppress(Exception):  # a broken connection may fail in any way while it is closed
                connection.collect()
