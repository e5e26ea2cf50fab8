"""Sends what is due: for each notifier one message about all of it. At least once; no row is in two messages.

A row goes the way of every other one here: leased by a conditional UPDATE, sent outside any transaction, marked. Who
dies in between leaves a lease that ends, and its rows are sent again under the same message id, but for those whose
questions were decided meanwhile.
"""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings as django_settings
from django.db.models import F, Max, Min, QuerySet
from django.utils.translation import override

from jobtrack_django import conf
from jobtrack_django.conf import NotifierSettings
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Notice
from jobtrack_django.notify import kinds, trouble
from jobtrack_django.notify.message import MOST_LISTED, Message, message_of
from jobtrack_django.notify.trouble import NotSent
from jobtrack_django.querysets import unleased
from jobtrack_django.statements import after, retried
from jobtrack_django.storable import storable
from jobtrack_django.store import DjangoStore

log = logging.getLogger("jobtrack.notify")

LEASE: Final = timedelta(minutes=5)
MOST_ATTEMPTS: Final = 12
"""About six hours of trying."""

MOST_AT_ONCE: Final = 5000
"""Notices of one message. Those beyond wait for the next one."""

ENDED: Final = trouble.ENDED.of()

_FREE: Final = {"lease_owner": "", "lease_until": None}


def due(using: str) -> bool:
    """Whether a notice of any notifier this process knows is to be sent now."""
    names = list(conf.settings().notifiers)
    return bool(names) and _due(using).filter(unleased(), notifier__in=names).exists()


def dispatch(using: str) -> int:
    """One message for each notifier that has something to tell.

    Returns:
        How many notices were sent.
    """
    notifiers = conf.settings().notifiers
    if not notifiers:
        return 0
    decided = _due(using).filter(unleased(), escalation__decided_at__isnull=False)
    _changed(using, decided, outcome=Notice.DROPPED, due_at=None)  # also those of notifiers that are no more
    sent = 0
    for name, notifier in notifiers.items():
        try:
            sent += _tell(using, name, notifier)
        except Exception:
            log.exception("Notifier %s could not be served; the others are.", name)
    return sent


def _due(using: str) -> QuerySet[Notice]:
    return Notice.objects.using(using).filter(outcome=Notice.WAITING, due_at__lte=DatabaseNow())


def _tell(using: str, name: str, notifier: NotifierSettings) -> int:
    waiting = _due(using).filter(notifier=name)
    if not waiting.exists():
        return 0
    free = waiting.filter(unleased())
    killers = free.filter(attempts__gte=MOST_ATTEMPTS)
    _changed(using, killers, outcome=Notice.FAILED, due_at=None, last_error=ENDED, **_FREE)
    if waiting.filter(lease_until__gt=DatabaseNow()).exists():
        return 0  # somebody is telling it just now
    held = _held_until(using, name, notifier)
    if held is not None:
        _changed(using, free, due_at=held)
        return 0
    owner = secrets.token_hex(16)
    message_id = _take(using, free, owner)
    return _send(using, name, notifier, owner, message_id) if message_id else 0


def _held_until(using: str, name: str, notifier: NotifierSettings) -> Any:
    """Until when nothing new is told: its last message was just sent, or could not be. None: it may be told."""
    rows = Notice.objects.using(using).filter(notifier=name)
    sent = rows.filter(sent_at__gt=after(-notifier.digest)).aggregate(last=Max("sent_at"))["last"]
    if sent is not None:
        return sent + notifier.digest
    failing = rows.filter(outcome=Notice.WAITING, due_at__gt=DatabaseNow(), attempts__gt=0)
    return failing.aggregate(soonest=Min("due_at"))["soonest"]


def _take(using: str, free: QuerySet[Notice], owner: str) -> str:
    """Lease the notices of one message; returns its id, "" if somebody else was first.

    A message that was begun before is sent again as it was, so that its receiver can tell it from a new one.
    """
    begun = free.exclude(message_id="").order_by("due_at", "pk").values_list("message_id", flat=True).first()
    message_id = begun or f"msg_{secrets.token_hex(16)}"
    wanted = free.filter(message_id=begun or "")
    edge = wanted.order_by("pk").values_list("pk", flat=True)[MOST_AT_ONCE : MOST_AT_ONCE + 1].first()
    if edge is not None and not begun:
        wanted = wanted.filter(pk__lt=edge)
    lease = {"lease_owner": owner, "lease_until": after(LEASE)}
    return message_id if _changed(using, wanted, attempts=F("attempts") + 1, message_id=message_id, **lease) else ""


def _send(using: str, name: str, notifier: NotifierSettings, owner: str, message_id: str) -> int:
    mine = _due(using).filter(notifier=name, lease_owner=owner)
    total = mine.count()
    urgent = mine.select_related("escalation__operation").order_by(
        "escalation__risk", "escalation__opened_at", "escalation_id"
    )
    shown, now = list(urgent[:MOST_LISTED]), DjangoStore(using).now()
    try:
        with override(django_settings.LANGUAGE_CODE):
            kinds.send(notifier, _written(shown, message_id=message_id, notifier=name, at=now, total=total))
    except NotSent as failure:
        _failed(using, name, mine, failure)
        return 0
    _changed(using, mine, outcome=Notice.SENT, sent_at=DatabaseNow(), due_at=None, last_error="", **_FREE)
    return total


def _written(notices: list[Notice], **known: Any) -> Message:
    """The message. What cannot be written, for a text of a row or a translation, fails like what cannot be sent."""
    try:
        return message_of(notices, **known)
    except Exception as error:
        log.exception("A message could not be written.")
        raise NotSent(trouble.NOT_WRITTEN.of(error=type(error).__name__)) from None


def _failed(using: str, name: str, mine: QuerySet[Notice], failure: NotSent) -> None:
    log.warning("Notifier %s was not told: %s", name, failure.detail)
    attempts = mine.aggregate(most=Max("attempts"))["most"] or 1
    told = {"last_error": storable(failure.detail, 500), **_FREE}
    if failure.final or attempts >= MOST_ATTEMPTS:
        _changed(using, mine, outcome=Notice.FAILED, due_at=None, **told)
    else:
        _changed(using, mine, due_at=after(kinds.pause(attempts, failure.again_in)), **told)


def _changed(using: str, rows: QuerySet[Notice], **columns: Any) -> int:
    """UPDATE, done anew if the database gave it up for another one."""
    return retried(using, partial(rows.update, **columns))
