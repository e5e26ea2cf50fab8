"""A support bundle: what has happened to one operation, for somebody outside (R-AUDIT-4).

It holds times, codes, counters, states and decisions. It holds no content, address, token or name: ids and people are
pseudonyms that mean the same throughout one bundle, people's own words are left out, and the provider's are bounded.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import django
from django.utils.timezone import get_current_timezone_name

from jobtrack import __version__
from jobtrack.core.text import tell
from jobtrack.flow.story import VERSION as AUDIT_VERSION
from jobtrack.ports import Runtime
from jobtrack_django.models import AuditEntry, Escalation, JobResult, Notice, Operation
from jobtrack_django.narrative import check_chain, history, webhooks

VERSION: Final = 1

QUESTIONS: Final = 50
"""Most questions in a bundle, the newest ones."""

_WORDS: Final = 200
"""Most characters of one text of a provider."""

_TAIL: Final = 4
"""Characters at the end of an id that are kept, so that somebody who has the id can find it."""

_LONG: Final = 3 * _TAIL
"""Of shorter ids nothing is kept: too much of them would be known."""

# Mail addresses, ids and numbers of accounts that stand in texts of a provider; a date is none.
_LOOKS_LIKE_AN_ID = re.compile(
    r"[^\s@“”\"'<>]{1,100}@[^\s@“”\"'<>]+"
    r"|(?<![\w-])(?!\d{4}-\d\d-\d\d(?:T\d\d)?(?![\w-]))(?=[\w-]*\d)(?:[\w-]{8,}|(?=\w*[-_])[\w-]{4,})"
)
_MARK = re.compile("\ue000([0-9]+)\ue001")
_NO_MARKS = {0xE000: None, 0xE001: None}
_ADDRESS = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,19}://[^\s<>\"'“”]*")

_PLAIN: Final = (
    *("v", "event", "at", "state", "fence", "spent", "sent_at", "late", "lost_look", "draw"),
    *("meaning", "because", "attempt", "request", "items", "kind", "outcome", "cancel", "reads", "heard", "bytes"),
    *("option", "reason", "permission", "evidence_version"),
)
"""Parts of an audit entry that are told as they are: our own words, numbers and instants."""


@dataclass(slots=True)
class Pseudonyms:
    """Names for what must not be named, in order of appearance."""

    known: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, kind: str, text: object) -> str | None:
        """The same for the same text of the same kind; None if there is none."""
        if text is None or text == "":
            return None
        key = (kind, str(text))
        if key not in self.known:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            tail = f" (…{key[1][-_TAIL:]})" if kind != "person" and len(key[1]) >= _LONG else ""
            self.known[key] = f"{kind}-{self.counts[kind]}{tail}"
        return self.known[key]

    def text(self, words: object) -> str | None:
        """A provider's words, bounded, without secrets and without what looks like an id or an address."""
        if not isinstance(words, str) or not words:
            return None
        bare = _ADDRESS.sub("[address]", tell(words, 2000)).translate(_NO_MARKS)
        longest_first = sorted(self.known.items(), key=lambda item: -len(item[0][1]))
        for place, ((_, known), _) in enumerate(longest_first):
            if len(known) >= _TAIL:
                bare = bare.replace(known, f"\ue000{place}\ue001")
        bare = _LOOKS_LIKE_AN_ID.sub("[id]", bare)
        return tell(_MARK.sub(lambda mark: f"[{longest_first[int(mark[1])][1]}]", bare), _WORDS)


def bundle(runtime: Runtime, operation: Operation) -> dict[str, Any]:
    """Everything about ``operation`` that may leave the site; plain values that JSON takes."""
    names = Pseudonyms()
    for kind, text in (
        *(("operation", operation.pk), ("job", operation.job_id), ("reference", operation.reference)),
        *(("operation", operation.predecessor), ("key", operation.idempotency_key)),
        ("job", operation.evidence.get("job_id")),
    ):
        names.of(kind, text)  # known before the first text in which they may stand
    entries = history(operation)
    chain = check_chain(operation, entries)
    table = runtime.tables.get(operation.provider)
    return {
        "bundle": VERSION,
        "made_at": _instant(runtime.store.now()),
        "time_zone": {"instants": "UTC", "site": get_current_timezone_name()},
        "versions": {
            "jobtrack": __version__,
            "audit": AUDIT_VERSION,
            "django": django.get_version(),
            "python": platform.python_version(),
        },
        "operation": _operation(operation, names),
        "budgets": _budgets(operation),
        "submitted_again": operation.spent_submissions > 1,
        "table": {
            "id": operation.provider,
            "read_with": {"revision": operation.revision, "digest": operation.table_digest},
            "site_has": None if table is None else {"revision": table.revision, "digest": table.digest},
        },
        "chain": {
            "intact": chain.broken_at is None,
            "entries_here": chain.entries,
            "entries": chain.total,
            "broken_at": chain.broken_at,
        },
        "story": [_entry(entry, names) for entry in entries],
        "webhooks": [_instant(receipt.received_at) for receipt in webhooks(operation)],
        "questions": [_question(asked, names) for asked in _questions(operation)],
        "follow_ups": _follow_ups(operation, names),
        "result": _result(operation, names),
    }


def as_text(made: Mapping[str, Any]) -> str:
    """The bundle as a file: the same values are the same bytes."""
    return json.dumps(made, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


def _rows(operation: Operation, model: Any) -> Any:
    return model._base_manager.using(operation._state.db)  # noqa: SLF001 - both documented by Django


def _operation(operation: Operation, names: Pseudonyms) -> dict[str, Any]:
    instants = (
        *("created_at", "accepted_at", "first_sent_at", "last_sent_at", "submit_by", "recover_until", "observed_at"),
        *("provider_state_since", "expires_at", "wake_at", "not_before", "lease_until", "noticed_at", "ended_at"),
        *("needed_by", "deadline"),
    )
    return {
        "id": names.of("operation", operation.pk),
        "provider": operation.provider,
        "account": names.of("account", operation.account),
        "job": names.of("job", operation.job_id),
        "reference": names.of("reference", operation.reference),
        "predecessor": names.of("operation", operation.predecessor),
        "idempotency_key": names.of("key", operation.idempotency_key),
        "state": operation.state,
        "cause": operation.cause,
        "last_state": names.text(operation.provider_state),
        "last_http": operation.last_http,
        "progress": names.text(operation.progress),
        "error": names.text(operation.error),
        "doubt": names.text(operation.doubt),
        "acceptance_seen": operation.acceptance_seen,
        "cancel_state": operation.cancel_state,
        "next_look_because": operation.delay_source,
        **{name: _instant(getattr(operation, name)) for name in instants},
    }


def _budgets(operation: Operation) -> dict[str, Any]:
    counters = ("status_requests", "transport_failures", "rate_limited", "extensions", "submissions", "lookups")
    return {
        name: {"used": getattr(operation, f"spent_{name}"), "allowed": getattr(operation, f"limit_{name}")}
        for name in counters
    }


# --- the story --------------------------------------------------------------------------------------


def _entry(entry: AuditEntry, names: Pseudonyms) -> dict[str, Any]:
    """One audit entry: what is known to be harmless, and nothing else."""
    head = {"seq": entry.seq, "seal": entry.hash, "stored_at": _instant(entry.at)}
    try:
        body = json.loads(entry.body)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return {**head, "readable": False}
    told = {name: _harmless(body[name], names) for name in _PLAIN if body.get(name) is not None}
    parts = {
        "observation": _observation(_part(body, "observation"), names),
        "decision": _decision(_part(body, "decision"), names),
        "before": _some(_part(body, "before"), ("state", "spent"), names),
        "table": _some(_part(body, "table"), ("revision", "digest"), names),
        "questions": [_some(each, ("reason", "blocking"), names) for each in _list(body, "questions")],
        "person": names.of("person", body.get("actor")),
        "first_person": names.of("person", body.get("proposed_by")),
        "persons_words": "left out" if body.get("why") and body.get("actor") else None,
        "job": names.of("job", body.get("job_id")),
        "found": [names.of("job", each) for each in _list(body, "found")],
    }
    return {**head, **told, **{name: part for name, part in parts.items() if part}}


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = body.get(name)
    return part if isinstance(part, Mapping) else {}


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    part = body.get(name)
    return part[:50] if isinstance(part, list) else []


def _some(part: object, wanted: Iterable[str], names: Pseudonyms) -> dict[str, Any]:
    known = part if isinstance(part, Mapping) else {}
    return {name: _harmless(known[name], names) for name in wanted if known.get(name) is not None}


_DIGEST = re.compile(r"[0-9a-f]{64}")


def _harmless(value: object, names: Pseudonyms) -> object:
    """Numbers, our own words and instants stay as they are; any other text is told as a provider's."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, str):
        return value if _instant_or_word(value) else names.text(value)
    if isinstance(value, Mapping):
        return {str(name)[:60]: _harmless(each, names) for name, each in list(value.items())[:50]}
    if isinstance(value, list):
        return [_harmless(each, names) for each in value[:50]]
    return None


def _instant_or_word(value: str) -> bool:
    if _DIGEST.fullmatch(value):
        return True
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return bool(re.fullmatch(r"[a-z][a-z_]{0,60}", value))
    return True


def _observation(seen: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    if not seen:
        return {}
    told = _some(seen, ("kind", "http", "trouble"), names)
    words = {name: names.text(seen.get(name)) for name in ("label", "detail", "progress", "error")}
    guidance = _some(_part(seen, "guidance"), ("wait_s", "source", "problem"), names)
    more = {**words, "guidance": guidance, "request_id": names.of("request", seen.get("request_id"))}
    return {**told, **{name: part for name, part in more.items() if part}}


def _decision(did: Mapping[str, Any], names: Pseudonyms) -> dict[str, Any]:
    if not did:
        return {}
    plain = ("do", "at", "not_before", "delay_s", "source", "state", "cause", "reason", "until", "acceptance_seen")
    more = {
        "detail": names.text(did.get("detail")),
        "why": names.text(did.get("why")),
        "job": names.of("job", did.get("job_id")),
        "end": _some(did.get("end"), ("state", "cause"), names),
    }
    return {**_some(did, plain, names), **{name: part for name, part in more.items() if part}}


# --- beside the story -------------------------------------------------------------------------------


def _questions(operation: Operation) -> list[Escalation]:
    rows = _rows(operation, Escalation).filter(operation_id=operation.pk).order_by("-pk")
    return list(rows.prefetch_related("notices")[:QUESTIONS])[::-1]


def _question(asked: Escalation, names: Pseudonyms) -> dict[str, Any]:
    """A question, its answer and who was told; people are pseudonyms, and what they wrote is left out."""
    return {
        "reason": asked.reason,
        "detail": names.text(asked.detail),
        "stops_the_operation": asked.blocking,
        "risk": asked.risk,
        "version": asked.version,
        "opened_at": _instant(asked.opened_at),
        "decided_at": _instant(asked.decided_at),
        "option": asked.option,
        "person": names.of("person", asked.actor),
        "persons_words": "left out" if asked.actor_reason else None,
        "seen_version": asked.seen_version,
        "job": names.of("job", asked.job_id),
        "proposal": None
        if not asked.proposed_option
        else {
            "option": asked.proposed_option,
            "person": names.of("person", asked.proposed_by),
            "at": _instant(asked.proposed_at),
            "job": names.of("job", asked.proposed_job),
        },
        "notices": [_notice(notice, names) for notice in asked.notices.all()],
    }


def _notice(notice: Notice, names: Pseudonyms) -> dict[str, Any]:
    return {
        "notifier": names.of("notifier", notice.notifier),
        "turn": notice.turn,
        "outcome": notice.outcome,
        "attempts": notice.attempts,
        "due_at": _instant(notice.due_at),
        "sent_at": _instant(notice.sent_at),
    }


def _follow_ups(operation: Operation, names: Pseudonyms) -> list[dict[str, Any]]:
    return [
        {
            "event": row.event,
            "handler": names.of("handler", row.handler),
            "attempts": row.attempts,
            "due_at": _instant(row.due_at),
            "delivered_at": _instant(row.delivered_at),
            "failed": bool(row.last_error),
        }
        for row in operation.deliveries.using(operation._state.db).order_by("pk")  # noqa: SLF001 - documented by Django
    ]


def _result(operation: Operation, names: Pseudonyms) -> dict[str, Any] | None:
    row = _rows(operation, JobResult).filter(pk=operation.pk).first()
    if row is None:
        return None
    return {
        "state": row.state,
        "reads": row.reads,
        "detail": names.text(row.detail),
        "fetched_at": _instant(row.fetched_at),
        "files": [{"size": each.get("size"), "complete": each.get("complete")} for each in row.files[:100]],
    }
