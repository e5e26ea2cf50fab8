"""Notices as signed JSON (Standard Webhooks), and as JSON of the shape that Slack and others take."""

from __future__ import annotations

import hmac
import json
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from jobtrack.core.reply import NoAnswer
from jobtrack.core.sentences_answer import CODE
from jobtrack.transports import EgressPolicy, post
from jobtrack_django import conf
from jobtrack_django.conf import NotifierSettings
from jobtrack_django.notify.message import Item, Message, lines_of
from jobtrack_django.notify.trouble import NO_BASE64, NotSent
from jobtrack_django.runtime import secret

GONE: Final = 410
"""The status by which a receiver says that it wants no more."""

_TAKEN = range(200, 300)
_MOST_BLOCKS = 40  # Slack takes 50
_LONGEST_TEXT = 2500  # characters before the link; Slack takes 3000 in all


def send_webhook(notifier: NotifierSettings, message: Message) -> None:
    """Post the message, signed with the notifier's secret. Raises NotSent."""
    body = json.dumps(payload(message), ensure_ascii=False, separators=(",", ":")).encode()
    timestamp = str(int(message.at.timestamp()))
    headers = [
        ("webhook-id", message.id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", sign(secret(notifier.secret or ""), message.id, timestamp, body)),
    ]
    _post(notifier, body, headers)


def send_slack(notifier: NotifierSettings, message: Message) -> None:
    """Post the message as text and blocks. Raises NotSent."""
    _post(notifier, json.dumps(blocks(message)).encode(), [])


def sign(key: str, message_id: str, timestamp: str, body: bytes) -> str:
    """The signature of Standard Webhooks: HMAC-SHA256 over id, timestamp and body.

    Args:
        key: ``whsec_`` and base64; any other text is the key as it is.
        timestamp: Unix seconds, as text.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    return f"v1,{b64encode(hmac.digest(_key(key), signed, 'sha256')).decode()}"


def _key(text: str) -> bytes:
    text = text.strip()
    if not text.startswith("whsec_"):
        return text.encode()
    encoded = text.removeprefix("whsec_")
    try:
        return b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        raise NotSent(NO_BASE64.of()) from None


def payload(message: Message) -> dict[str, Any]:
    """What is posted, as the schema ``notice-1.json`` describes it."""
    return {
        "type": "jobtrack.test" if message.test else "jobtrack.questions",
        "timestamp": _instant(message.at),
        "data": {
            "notifier": message.notifier,
            "total": message.total,
            "more": message.more,
            "link": message.list_link or None,
            "questions": [_question(item) for item in message.items],
        },
    }


def _question(item: Item) -> dict[str, Any]:
    same = ("id", "operation", "reference", "provider", "account", "reason", "title", "question", "risk", "state")
    return {
        **{name: getattr(item, name) for name in same},
        "waiting_since": _instant(item.waiting_since),
        "default": item.default,
        "reminder": item.reminder,
        "link": item.link or None,
    }


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def blocks(message: Message) -> dict[str, Any]:
    """The message as Slack's ``text`` and ``blocks``; others that take its webhooks read at least ``text``."""
    sections = [_section(item) for item in message.items[:_MOST_BLOCKS]]
    rest = [escaped(line) for line in (message.more_line,) if line]
    if message.list_link:
        rest.append(_link(message.list_link, _("All open questions")))
    if rest:
        sections.append(_markdown(" · ".join(rest)))
    head = {"type": "header", "text": {"type": "plain_text", "text": message.subject[:150], "emoji": False}}
    return {"text": escaped(message.subject), "blocks": [head, *sections]}


def _section(item: Item) -> dict[str, Any]:
    lines = [escaped(line) for line in lines_of(item)[: -1 if item.link else None]]
    lines[0] = f"*{lines[0]}*"
    text = "\n".join(lines)[:_LONGEST_TEXT]
    decide = _("Decide here")
    return _markdown(f"{text}\n{_link(item.link, decide)}" if item.link else text)


def _link(url: str, label: str) -> str:
    return f"<{escaped(url)}|{escaped(label)}>"


def _markdown(text: str) -> dict[str, Any]:
    """``verbatim``: names, channels and addresses in the text are left alone."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def escaped(text: str) -> str:
    """Text that means nothing to Slack: no mention, no link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(notifier: NotifierSettings, body: bytes, headers: list[tuple[str, str]]) -> None:
    settings = conf.settings()
    policy = EgressPolicy.of(allow_loopback=settings.allow_loopback, allow_private=settings.allow_private)
    json_headers = [("Content-Type", "application/json; charset=utf-8"), *headers]
    answer = post(secret(notifier.url or "").strip(), body, json_headers, policy=policy)
    if isinstance(answer, NoAnswer):
        raise NotSent(answer.detail)
    if answer.status not in _TAKEN:
        raise NotSent(CODE.of(code=answer.status), again_in=_retry_after(answer.headers), final=answer.status == GONE)


def _retry_after(headers: tuple[tuple[str, str], ...]) -> timedelta | None:
    """How long the receiver wants to be left alone; a date is not read, as our own pause will do."""
    for name, value in headers:
        if name.lower() == "retry-after" and value.isascii() and value.isdigit():
            return timedelta(seconds=min(int(value[:9]), 86400))
    return None
