"""Notices by e-mail, over the site's own mail settings."""

from __future__ import annotations

import smtplib
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import urlsplit

from django.core import mail

from jobtrack_django import conf
from jobtrack_django.conf import NotifierSettings
from jobtrack_django.notify import trouble
from jobtrack_django.notify.message import Message
from jobtrack_django.notify.trouble import NotSent

TIMEOUT_S: Final = 10
"""Longest wait for the mail server, where the site sets none: without one a silent server holds a worker for ever."""


def send(notifier: NotifierSettings, message: Message) -> None:
    """One e-mail to all addresses. Raises NotSent."""
    email = mail.EmailMessage(
        subject=message.subject,
        body=message.text,
        from_email=notifier.sender,
        to=list(notifier.to),
        headers={
            "Message-ID": f"<{message.id}@{_domain()}>",
            "Date": format_datetime(message.at),
            "Auto-Submitted": "auto-generated",  # so that no out-of-office reply answers it (RFC 3834)
        },
    )
    try:
        taken = _connection().send_messages([email])
    except smtplib.SMTPResponseException as error:
        raise NotSent(trouble.MAIL_REFUSED.of(code=error.smtp_code)) from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(trouble.MAIL_NOT_TAKEN.of(error=type(error).__name__)) from None
    if taken == 0:  # None: a backend that does not count
        raise NotSent(trouble.NO_MAIL_SERVER.of())


def _connection() -> Any:
    """The site's default mailer (Django 6.1), or its e-mail backend."""
    mailers = getattr(mail, "mailers", None)
    connection: Any = mail.get_connection() if mailers is None else mailers.default
    if getattr(connection, "timeout", TIMEOUT_S) is None:
        connection.timeout = TIMEOUT_S
    return connection


def _domain() -> str:
    """What stands behind the @ of a Message-ID; the same for all processes of a site."""
    return (conf.settings().site_url and urlsplit(conf.settings().site_url or "").hostname) or "jobtrack.invalid"
