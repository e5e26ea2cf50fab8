"""Rows as they would stand after a day's work, for tests of figures and of what shows them."""

from __future__ import annotations

from datetime import timedelta

from jobtrack.core.audit import GENESIS, canonical, seal
from jobtrack.core.escalation import risk
from jobtrack_django.models import AuditEntry, Escalation, Operation
from jobtrack_django.store import DjangoStore


def now():
    return DjangoStore().now()


def plant(name, provider, state, ended_at, *, requests=0, submissions=0, seen_within=None, **columns):
    """An operation; created long before unless ``created_at`` is given."""
    old = now() - timedelta(days=200)
    columns = {"created_at": old, "deadline": now() + timedelta(days=1), **columns}
    operation = Operation(
        id=name,
        provider=provider,
        state=state,
        ended_at=ended_at,
        seen_within=None if seen_within is None else timedelta(seconds=seen_within),
        spent_status_requests=requests,
        spent_submissions=submissions,
        limit_status_requests=100,
        limit_transport_failures=5,
        limit_rate_limited=5,
        limit_submissions=5,
        **columns,
    )
    operation.save(force_insert=True)
    return operation


def ask(operation, reason, opened_at, *, decided=False, provider=None):
    """A question about an operation."""
    return Escalation.objects.create(
        operation=operation,
        provider=provider or operation.provider,
        account=operation.account,
        reason=reason,
        risk=risk(reason),
        blocking=True,
        open_blocking=None if decided else True,
        opened_at=opened_at,
        decided_at=opened_at + timedelta(minutes=1) if decided else None,
    )


def poll_entry(operation, *, at, wait_s=None, event="poll", late=False, old=False, do="wait", **extra):
    """The next audit entry of an operation: a look, unless another event is named."""
    seen = {"guidance": None if wait_s is None else {"wait_s": float(wait_s)}}
    body = {"v": 1, "event": event, "at": at.isoformat(), "decision": {"do": do}}
    if event not in ("decision", "look"):
        body["observation"] = seen
    if event == "poll" and not old:
        sent_at = extra.get("sent_at", at)
        body["sent_at"] = sent_at and sent_at.isoformat()
    if late:
        body["late"] = True
    text = canonical(body)
    last = AuditEntry.objects.filter(operation=operation).order_by("-seq").first()
    seq, previous = (last.seq + 1, last.hash) if last else (1, GENESIS)
    entry = AuditEntry(
        operation=operation, seq=seq, prev=previous, hash=seal(previous, operation.pk, seq, text), body=text, at=at
    )
    entry.save()
    return entry
