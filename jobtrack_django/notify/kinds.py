"""One function for each kind of notifier. It returns when the message was taken over, or raises ``NotSent``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from django.utils.module_loading import import_string

from jobtrack.errors import CredentialError
from jobtrack_django.conf import NotifierSettings
from jobtrack_django.notify import mail, web
from jobtrack_django.notify.message import Message
from jobtrack_django.notify.trouble import NotSent

Send = Callable[[NotifierSettings, Message], None]


def _call(notifier: NotifierSettings, message: Message) -> None:
    """The site's own function; whatever it raises means that the message was not sent."""
    import_string(notifier.path or "")(message)


SENDERS: Final[Mapping[str, Send]] = {
    "email": mail.send,
    "webhook": web.send_webhook,
    "slack": web.send_slack,
    "callable": _call,
}


def send(notifier: NotifierSettings, message: Message) -> None:
    """Send ``message`` once.

    Raises:
        NotSent: it was not taken over, or nobody knows. Its text holds no secret and no address.
    """
    try:
        SENDERS[notifier.kind](notifier, message)
    except NotSent:
        raise
    except CredentialError as error:
        raise NotSent(error.message) from None
    except Exception as error:  # noqa: BLE001 - somebody else's code and text: only the kind of error is told
        raise NotSent(type(error).__name__) from None


def pause(attempts: int, wished: timedelta | None) -> timedelta:
    """How long to wait after ``attempts`` (at least 1) that failed."""
    own = min(timedelta(minutes=1 << min(attempts - 1, 10)), timedelta(hours=1))
    return max(own, min(wished or own, timedelta(hours=6)))
