"""Audit entries told as a story that can be read in a minute (R-AUDIT-1). For the admin and ``jobtrack_show``.

Webhooks stand between them by their time; and of each request it is said whether the provider's wish was obeyed.

Everything is read from the stored text of the entries, so that the story is what the chain proves. An entry of
another release, or one that was tampered with, is told as far as it can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import Any

from django.db.models import Q
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from jobtrack.core.audit import GENESIS, seal
from jobtrack.core.early import came_early
from jobtrack.core.observation import Kind
from jobtrack_django import events, sentences, words
from jobtrack_django.models import AuditEntry, Operation, WebhookReceipt
from jobtrack_django.storable import identity

LIMIT = 200
"""Most entries that are told and verified at once; the newest ones."""

WEBHOOKS = 50
"""Most webhooks that are told; the newest ones."""

_PLAIN = frozenset({Kind.PENDING, Kind.SUCCESS, Kind.FAILURE, Kind.CANCELLED, Kind.EXPIRED, Kind.ATTENTION})
"""What the provider said is the whole message; every other kind of answer needs its detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry, told."""

    seq: int
    at: datetime  # aware
    title: str
    sentences: tuple[str, ...]
    facts: tuple[str, ...]  # the small print
    late: bool = False  # evidence that came too late to count
    person: bool = False  # somebody decided
    asks: bool = False  # a question was opened
    webhook: bool = False  # no entry, but a verified webhook
    obeyed: bool | None = (
        None  # whether the provider's wish when to be asked was; None: it had none, or nothing was sent
    )
    http: int | None = None
    quiet: str | None = None  # the state that an uneventful look repeated; None: worth a line of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Looks in a row that showed nothing new."""

    lines: tuple[Line, ...]  # two or more

    @property
    def text(self) -> str:
        first, last, count = self.lines[0], self.lines[-1], len(self.lines)
        seen = ngettext("%(count)d unchanged look", "%(count)d unchanged looks", count) % {"count": count}
        told = _("%(looks)s, %(when)s: “%(state)s”") % {
            "looks": seen,
            "when": _span(first.at, last.at),
            "state": first.quiet,
        }
        if any(line.obeyed for line in self.lines):
            return _("%s; the provider's wish when to be asked was obeyed") % told
        return told


def story(entries: Iterable[AuditEntry], webhooks: Iterable[WebhookReceipt] = ()) -> list[Line | Fold]:
    """Lines in the order of ``entries``; unchanged looks in a row are folded, webhooks put in by their time."""
    told: list[Line | Fold] = []
    quiet: list[Line] = []
    state: str | None = None
    for line in merge(_told(entries), map(_heard, webhooks), key=lambda line: line.at):
        if line.quiet is not None and line.quiet == state:
            quiet.append(line)
            continue
        told += _folded(quiet)
        quiet, state = [], line.quiet
        told.append(line)
    return [*told, *_folded(quiet)]


def _told(entries: Iterable[AuditEntry]) -> Iterator[Line]:
    before: AuditEntry | None = None
    for entry in entries:
        yield tell(entry, before)
        if _answers(_body(entry)):
            before = entry


def _answers(body: Mapping[str, Any]) -> bool:
    """Whether an entry is an answer whose wish counts for what is sent next."""
    accepted = body.get("event") == "submission" and _part(body, "decision").get("do") == "follow"
    return (body.get("event") == "poll" or accepted) and not body.get("late")


def _heard(receipt: WebhookReceipt) -> Line:
    """A webhook. It proves nothing, so it says nothing of the job."""
    said = _("The provider sent a verified webhook. It states nothing by itself; it brings the next look forward.")
    return Line(seq=0, at=receipt.received_at, title=_("Webhook"), sentences=(said,), facts=(), webhook=True)


def _folded(lines: Sequence[Line]) -> Sequence[Line | Fold]:
    return [Fold(lines=tuple(lines))] if len(lines) > 1 else lines


def tell(entry: AuditEntry, before: AuditEntry | None = None) -> Line:
    """One entry in one or two plain sentences.

    Args:
        before: the last answer before it, whose wish when to be asked counts for it.
    """
    body = _body(entry)
    seen, did = _part(body, "observation"), _part(body, "decision")
    event, late = str(body.get("event", "")), bool(body.get("late"))
    uneventful = did.get("do") == "wait" and seen.get("kind") == Kind.PENDING
    uneventful = uneventful and not (
        late or "lost_look" in body or body.get("questions") or _part(seen, "guidance").get("problem")
    )
    wished = _wished(before)
    early = came_early(entry.body, before.body) if before is not None and wished is not None else None
    return Line(
        seq=entry.seq,
        at=_instant(body.get("at")) or entry.at,
        title=events.title(event),
        sentences=(*_sentences(event, body, seen, did), *_obeyed(wished, early, _instant(body.get("at")))),
        facts=tuple(_facts(entry, body, seen)),
        late=late,
        person=event in ("decision", "proposal"),
        asks=bool(body.get("questions")),
        http=seen.get("http"),
        quiet=str(seen.get("label", "")) if uneventful and not early else None,
        obeyed=None if early is None else not early,
    )


def _wished(before: AuditEntry | None) -> datetime | None:
    """The instant before which the provider did not want to be asked; None: it did not say."""
    body = _body(before) if before is not None else {}
    wait_s, at = _part(_part(body, "observation"), "guidance").get("wait_s"), _instant(body.get("at"))
    if at is None or isinstance(wait_s, bool) or not isinstance(wait_s, int | float):
        return None
    try:
        return at + timedelta(seconds=wait_s)
    except (OverflowError, ValueError):
        return None


def _obeyed(wished: datetime | None, early: bool | None, now: datetime | None) -> Iterator[str]:
    if wished is None or early is None:
        return
    at = _clock(wished, now)
    if early:
        yield _("The provider had asked to wait until %s: this request came too early.") % at
    else:
        yield _("The provider had asked to wait until %s: that was obeyed.") % at


def _body(entry: AuditEntry) -> Mapping[str, Any]:
    try:
        body = json.loads(entry.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def _part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = body.get(name)
    return part if isinstance(part, Mapping) else {}


# --- sentences --------------------------------------------------------------------------------------


def _sentences(event: str, body: Mapping[str, Any], seen: Mapping[str, Any], did: Mapping[str, Any]) -> Iterator[str]:
    if not body:
        yield _("This entry cannot be read.")
    if isinstance(body.get("lost_look"), int):
        yield _lost(event)
    yield from events.says(event, body)
    if event == "decision":
        yield from _changes(body)
    kept = body.get("late") and did.get("do") == "follow"
    if kept:
        yield _("This came too late to count by itself; that the provider has the job “%s” is kept.") % did.get(
            "job_id"
        )
    elif body.get("late"):
        yield _("This came too late and changed nothing.")
    if seen:
        yield from _answer(seen)
    if did and not kept:
        yield _consequence(event, did, _instant(body.get("at")))
    stopped = did.get("reason")
    for question in body.get("questions") or ():
        if question.get("reason") != stopped:
            yield _("A person is told: %s.") % words.reason_title(str(question.get("reason")))


def _answer(seen: Mapping[str, Any]) -> Iterator[str]:
    label, http, kind = seen.get("label"), seen.get("http"), seen.get("kind")
    detail = sentences.clause(str(seen.get("detail") or ""))
    if label:
        yield _("The provider said “%(label)s” (HTTP %(http)s).") % {"label": label, "http": http}
    elif http and not detail:
        yield _("The provider answered HTTP %s without a state.") % http
    elif not http:
        yield _("There was no answer (%s).") % words.no_answer_label(str(seen.get("trouble") or kind))
    if detail and kind not in _PLAIN:
        yield _("%s.") % capfirst(detail)
    if seen.get("progress"):
        yield _("Progress: %s.") % _open_ended(seen["progress"])
    if seen.get("error"):
        yield _("Its error: “%s”.") % _open_ended(seen["error"])
    guidance = _part(seen, "guidance")
    if guidance.get("problem"):
        problem = sentences.told(str(guidance["problem"]))
        yield _("Its wish when to ask again is not valid (%s) and was not followed.") % problem


def _open_ended(text: object) -> str:
    """Somebody else's words without their own full stop: the sentence around them has one."""
    return str(text).rstrip(" .。")


def _lost(event: str) -> str:
    if event in events.BEFORE_A_JOB:
        return _("The request before this one never came to its end: it may have been sent, its answer is lost.")
    return _("The look before this one never came to its end: its request may have been sent, its answer is lost.")


def _consequence(event: str, did: Mapping[str, Any], now: datetime | None) -> str:
    at, why = _clock(_instant(did.get("at")), now), words.delay_label(str(did.get("source")))
    match did.get("do"):
        case "wait":
            return _("Next look %(at)s: %(why)s.") % {"at": at, "why": why}
        case "later":
            return _("It is sent again %(at)s: %(why)s.") % {"at": at, "why": why}
        case "rest":
            return _("It is not to be sent before %s.") % at
        case "follow":
            return _followed(did)
        case "doubt":
            return _doubted(did, now)
        case "conclude":
            return _ended(did)
        case "stop":
            reason = words.reason_title(str(did.get("reason")))
            if event in events.BEFORE_A_JOB:
                return _("jobtrack stopped: %s. A person is asked.") % reason
            return _("Polling stopped: %s. A person is asked.") % reason
    return str(did.get("do", ""))


def _ended(did: Mapping[str, Any]) -> str:
    state, cause = words.state_label(str(did.get("state"))), did.get("cause")
    because = f" ({words.reason_title(str(cause))})" if cause else ""
    return _("The operation ended: %s.") % f"{state}{because}"


def _followed(did: Mapping[str, Any]) -> str:
    end = _part(did, "end")
    if end:
        return _ended(end)
    if did.get("job_id"):
        return _("From now on the job “%s” is followed.") % str(did["job_id"])
    return _("From now on the job is followed by the address that the provider gave.")


def _doubted(did: Mapping[str, Any], now: datetime | None) -> str:
    if did.get("reason"):
        return _("Nobody knows whether the provider has the job, and jobtrack cannot find out. A person is asked.")
    what = (
        _("It is not known whether the provider has the job.")
        if did.get("why")
        else _("It is proven that the provider has no job of it.")
    )
    following = _("Next step %(at)s: %(why)s. By itself jobtrack tries until %(until)s.") % {
        "at": _clock(_instant(did.get("at")), now),
        "why": words.delay_label(str(did.get("source"))),
        "until": _clock(_instant(did.get("until")), now),
    }
    return f"{what} {following}"


def _changes(body: Mapping[str, Any]) -> Iterator[str]:
    before = _part(body, "before")
    changes = list(_raised(_part(before, "spent"), _part(body, "spent"), _instant(body.get("at"))))
    if before.get("state") != body.get("state"):
        states = (words.state_label(str(before.get("state"))), words.state_label(str(body.get("state"))))
        changes.insert(0, _("state %(before)s → %(after)s") % {"before": states[0], "after": states[1]})
    yield _("Changed: %s.") % "; ".join(changes) if changes else _("Nothing about the operation changed.")


def _raised(before: Mapping[str, Any], after: Mapping[str, Any], now: datetime | None) -> Iterator[str]:
    """Old and new limits of a grant (R-ESC-4)."""
    for name, old in before.items():
        new = after.get(name)
        if isinstance(old, list) and isinstance(new, list) and old != new:
            changed = {"name": words.counter_label(name), "old": _of(old), "new": _of(new)}
            yield _("%(name)s %(old)s → %(new)s") % changed
        elif old != new and name == "deadline":
            clocks = {"old": _clock(_instant(old), now), "new": _clock(_instant(new), now)}
            yield _("deadline %(old)s → %(new)s") % clocks


def _of(pair: Sequence[Any]) -> str:
    return _("%(used)s of %(allowed)s") % {"used": pair[0], "allowed": pair[-1]}


def _facts(entry: AuditEntry, body: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    yield from _counted(str(body.get("event", "")), _part(body, "spent"))
    raw = _part(seen, "guidance").get("raw")
    if raw:
        yield _("asked to wait: %s") % raw
    if seen.get("request_id"):
        yield _("request id %s") % seen["request_id"]
    table = _part(body, "table")
    if table:
        yield f"{table.get('id')} r{table.get('revision')} {str(table.get('digest'))[:8]}"
    if body.get("permission"):
        yield _("with the permission %s") % body["permission"]
    if body.get("evidence_version"):
        yield _("evidence version %s") % body["evidence_version"]
    yield _("entry %(seq)s, seal %(hash)s") % {"seq": entry.seq, "hash": entry.hash[:8]}


def _counted(event: str, spent: Mapping[str, Any]) -> Iterator[str]:
    """The counter that the event moves, of all those that each entry carries."""
    counter, label = "status_requests", _("requests %s")
    if event in events.SUBMITS:
        counter, label = "submissions", _("submissions %s")
    elif event in events.LOOKS_UP:
        counter, label = "lookups", _("look-ups %s")
    pair = spent.get(counter)
    if isinstance(pair, list):
        yield label % _of(pair)


# --- instants ---------------------------------------------------------------------------------------


def _instant(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return at.astimezone(UTC) if at else None


def _clock(at: datetime | None, beside: datetime | None) -> str:
    """An instant in UTC; its day only if it is another than that of ``beside``."""
    if at is None:
        return "?"
    same_day = beside is not None and at.date() == beside.astimezone(UTC).date()
    return at.strftime("%H:%M:%S UTC" if same_day else "%Y-%m-%d %H:%M:%S UTC")


def _span(first: datetime, last: datetime) -> str:
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    start, end = (at.strftime("%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M") for at in (first, last))
    return f"{start} UTC" if start == end else f"{start}–{end} UTC"


# --- the chain --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Whether the entries shown are the ones that were sealed, up to the operation's own head."""

    entries: int  # how many were checked
    total: int
    broken_at: int | None  # number of the first entry that is wrong or gone

    @property
    def text(self) -> str:
        if self.broken_at is not None:
            return _("chain broken at entry %d") % self.broken_at
        if self.entries < self.total:
            return _("chain verified, the last %(entries)d of %(total)d entries") % {
                "entries": self.entries,
                "total": self.total,
            }
        return ngettext("chain verified, %d entry", "chain verified, %d entries", self.entries) % self.entries


def history(operation: Operation, limit: int = LIMIT) -> list[AuditEntry]:
    """The newest entries that the row knows of, oldest first. What is written meanwhile is left out."""
    entries = AuditEntry.objects.using(operation._state.db).filter(  # noqa: SLF001 - documented by Django
        operation_id=operation.pk, seq__lte=operation.audit_seq
    )
    return list(entries.order_by("-seq")[:limit])[::-1]


def webhooks(operation: Operation) -> list[WebhookReceipt]:
    """The newest verified webhooks about the operation or its job, oldest first; they are forgotten after some time."""
    means = Q(operation_id=identity(WebhookReceipt, "operation_id", operation.pk))
    if operation.job_id:
        means |= Q(job_id=identity(WebhookReceipt, "job_id", operation.job_id))
    rows = WebhookReceipt.objects.using(operation._state.db)  # noqa: SLF001 - documented by Django
    rows = rows.filter(means, provider=operation.provider, account=operation.account)
    return list(rows.order_by("-received_at", "-pk")[:WEBHOOKS])[::-1]


def check_chain(operation: Operation, entries: Sequence[AuditEntry]) -> Chain:
    """Recompute every seal of ``entries`` (as ``history`` gives them), and hold the last against the row."""
    total, by_seq = operation.audit_seq, {entry.seq: entry for entry in entries}
    first = max(total - LIMIT, 0) + 1
    previous = by_seq[first].prev if first > 1 and first in by_seq else GENESIS
    for seq in range(first, total + 1):
        entry = by_seq.get(seq)
        if entry is None or not _follows(entry, previous):
            return Chain(entries=len(entries), total=total, broken_at=seq)
        previous = entry.hash
    return Chain(entries=len(entries), total=total, broken_at=None if previous == operation.audit_head else total)


def _follows(entry: AuditEntry, previous: str) -> bool:
    return entry.prev == previous and entry.hash == seal(previous, entry.operation_id, entry.seq, entry.body)
