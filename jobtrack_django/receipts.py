"""An effect of a follow-up exactly once, if it is written in the same database as its receipt (R-END-2, INV-21).

A follow-up runs at least once: a worker that dies after the handler's own commit, and before ours, runs it again. A
receipt in the very transaction of the effect makes the second run see that the effect has happened::

    def store(operation):
        with once() as first:
            if first:
                Report.objects.filter(pk=operation.object_id).update(rows=operation.kept["rows"])
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import IntegrityError, transaction

from jobtrack.errors import UsageError
from jobtrack.records import Delivery
from jobtrack_django import conf
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models_beside import FollowUpReceipt
from jobtrack_django.storable import storable, text_limit

_current: ContextVar[Delivery | None] = ContextVar("jobtrack_delivery", default=None)


@contextmanager
def handling(delivery: Delivery) -> Iterator[None]:
    """While a handler runs: what it is called for."""
    token = _current.set(delivery)
    try:
        yield
    finally:
        _current.reset(token)


def current_delivery() -> Delivery | None:
    """The delivery whose handler is running in this context; None outside of one.

    Its ``id`` is the stable key of everything the handler does, the same for each attempt; ``event`` is what the
    handler is called for, such as ``on_success``.
    """
    return _current.get()


@contextmanager
def once(key: str | None = None, *, using: str | None = None) -> Iterator[bool]:
    """A transaction that knows whether it is the first one to come through with this key.

    Yields True the first time: write the effect inside. False: it has happened already. An exception inside, or a
    rollback of a transaction around it, takes the receipt back together with the effect.

    Args:
        key: what must happen once; None: the delivery whose handler is running. A handler with several transactions
            gives each a key of its own, such as ``f"{current_delivery().id}/mail"``.
        using: alias of the database that the effect is written to. It must have jobtrack's tables; None: that of the
            setting ``DATABASE``.

    Raises:
        UsageError: no handler is running and no key is given, or the key cannot be stored.
    """
    wanted = _key(key)
    alias = using or conf.settings().database
    with transaction.atomic(using=alias):
        yield _first(wanted, alias)


def _key(key: str | None) -> str:
    delivery = current_delivery()
    if key is None and delivery is None:
        raise UsageError("once() needs a key outside of a follow-up handler.")
    wanted = key if key is not None or delivery is None else delivery.id
    limit = text_limit(FollowUpReceipt, "key")
    if not isinstance(wanted, str) or not wanted or storable(wanted, limit) != wanted:
        raise UsageError(f"The key of once() must be a text of 1 to {limit} characters without NUL.")
    return wanted


def _first(key: str, alias: str) -> bool:
    """Write the receipt. A second writer waits for the first one's transaction, and only then knows."""
    try:
        with transaction.atomic(using=alias):
            FollowUpReceipt.objects.using(alias).bulk_create([FollowUpReceipt(key=key, created_at=DatabaseNow())])
    except IntegrityError:
        return False
    return True
