"""Whether a request came before the provider's wish allowed it (INV-04, R-METRIC).

Judged by what the audit entries say and by nothing else: neither the row's schedule nor its claim is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any


def came_early(body: str, before: str | None) -> bool | None:
    """Whether the request of an entry was sent before the answer before it allowed.

    Args:
        body: text of the entry.
        before: text of the last answer before it in its chain; None: there is none.

    Returns:
        None if the entry is no look, none was sent, or it was overtaken: then its time and its place do not fit.
    """
    entry = _read(body)
    if entry.get("event") != "poll" or entry.get("late") or entry.get("sent_at", "") is None:
        return None
    sent_at = _instant(entry.get("sent_at") or entry.get("at"))  # an earlier release wrote only when the answer came
    if sent_at is None:
        return None
    allowed = _allowed(_read(before or "{}"))
    return allowed is not None and sent_at < allowed


def _allowed(answer: Mapping[str, Any]) -> datetime | None:
    """The first instant at which the provider wants to be asked again; None: it did not say."""
    seen = answer.get("observation")
    guidance = seen.get("guidance") if isinstance(seen, Mapping) else None
    wait_s = guidance.get("wait_s") if isinstance(guidance, Mapping) else None
    at = _instant(answer.get("at"))
    if at is None or not isinstance(wait_s, int | float):
        return None
    try:
        return at + timedelta(seconds=wait_s)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _read(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def _instant(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at.astimezone(UTC) if at and at.tzinfo else None
