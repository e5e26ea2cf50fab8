"""The structured contract for callers: how does it stand, when may I ask again, what may I do (R-SUB-8, R-CALL-2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

from jobtrack.core.cancelling import refusal
from jobtrack.core.escalation import Reason
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.request import status_url
from jobtrack.core.table import ProviderTable
from jobtrack.errors import UsageError

VERSION = 1

_UNCLEAR: frozenset[Reason] = frozenset(
    {
        Reason.UNKNOWN_STATE,
        Reason.INVALID_RESPONSE,
        Reason.JOB_ID_MISMATCH,
        Reason.INVALID_RESULT,
        Reason.JOB_NOT_FOUND,
        Reason.TARGET_DENIED,
        Reason.SUBMISSION_UNKNOWN,
    }
)
"""Reasons after which nobody can say whether the job still runs; after all others it is presumed to."""

_BEFORE_A_JOB = frozenset({OperationState.READY, OperationState.SUBMITTING, OperationState.UNCONFIRMED})


# --- one word ---------------------------------------------------------------------------------------


def verdict(operation: Operation, reasons: Sequence[Reason], *, now: datetime | None = None) -> str:
    """One word: ``pending``, ``unknown``, or the terminal state. An observer's limit is never ``failed`` (R-FACT-2).

    Args:
        reasons: of the operation's open escalations.
        now: by the store's clock; without it an attempt counts as under way however old it is.
    """
    if operation.terminal:
        return operation.state.value
    if in_doubt(operation, reasons, now=now) or any(reason in _UNCLEAR for reason in reasons):
        return "unknown"
    return "pending"


def in_doubt(operation: Operation, reasons: Sequence[Reason], *, now: datetime | None = None) -> bool:
    """Whether a submission may have reached the provider without any proof of what became of it.

    An attempt whose lease is over is in doubt although nobody has written that down yet: its worker may have sent.
    """
    if operation.terminal or operation.accepted_at is not None or not operation.fingerprint:
        return operation.state is OperationState.UNCONFIRMED
    if Reason.SUBMISSION_UNKNOWN in reasons or Reason.SUBMISSION_UNSENT in reasons:
        return Reason.SUBMISSION_UNKNOWN in reasons
    match operation.state:
        case OperationState.READY:
            return False
        case OperationState.UNCONFIRMED:
            return True
        case OperationState.SUBMITTING:
            lost = operation.lease is None or (now is not None and operation.lease.until <= now)
            return lost or operation.recover_until is not None
    return operation.recover_until is not None or operation.acceptance_seen


def _instant(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat()


# --- what the newest request showed -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRequest:
    """What the newest request to the provider showed, whether or not it could be read; it proves nothing by itself."""

    at: str  # ISO 8601 instant, as the audit has it
    http: int | None  # None: no answer
    trouble: str | None  # why there is no answer: a ``Trouble``
    request_id: str = ""  # the provider's own id of the request


def _observed(last: LastRequest | None) -> dict[str, Any] | None:
    if last is None:
        return None
    return {"at": last.at, "http": last.http, "trouble": last.trouble, "request_id": last.request_id or None}


# --- the request that settles it --------------------------------------------------------------------

_PLACEHOLDER = re.compile(r"\{\+?([^{}]+)\}")


def _reconcile(operation: Operation, table: ProviderTable | None, *, doubt: bool) -> dict[str, str] | None:
    """The request that settles how it stands: no host, query or credential; None if the table builds none.

    While it is unknown whether there is a job at all, that is the look-up; nothing else can tell (R-SUB-5).
    """
    if table is None:
        return None
    if doubt:
        return _lookup(operation, table)
    if operation.state in _BEFORE_A_JOB or not table.status.request.path:
        return None
    try:
        url = status_url(table, job_id=operation.job_id, params=operation.params)
    except UsageError:  # the newest table asks for other parameters than this operation has
        return None
    return {"method": table.status.request.method, "path": urlsplit(url).path}


def _lookup(operation: Operation, table: ProviderTable) -> dict[str, str] | None:
    if table.submit is None or table.submit.lookup is None:
        return None
    request = table.submit.lookup.request
    return {"method": request.method, "path": _public(request.path, operation)}


def _public(path: str, operation: Operation) -> str:
    """The path with what callers know put in; a key, a handle or a part of the payload stays a placeholder."""
    known: Mapping[str, str] = {
        **operation.params,
        "operation_id": operation.id,
        "reference": operation.reference,
        "job_id": operation.job_id,
    }

    def fill(match: re.Match[str]) -> str:
        value = known.get(match[1])
        return quote(value, safe="") if value else match[0]

    return _PLACEHOLDER.sub(fill, path)


# --- what may be done -------------------------------------------------------------------------------


def retry_allowed(operation: Operation, table: ProviderTable | None, *, now: datetime) -> bool:
    """Whether a machine may send a submission of this operation now: by the table and the row, never guessed (R-SUB-4).

    A machine means ours: nobody else has the exact bytes and the key. What a person may decide is not counted.
    """
    if table is None or table.submit is None or operation.acceptance_seen or operation.evidence:
        return False
    if operation.spent.submissions >= min(operation.budget.submissions, table.submit.attempts):
        return False
    if operation.state is OperationState.READY:
        return operation.submit_by is None or now < operation.submit_by
    if operation.state is not OperationState.UNCONFIRMED:
        return False
    from jobtrack.core.recover import may_repeat

    return may_repeat(table, operation, now)


def _used(used: int, allowed: int) -> dict[str, int]:
    return {"used": used, "allowed": allowed}


def _submission(operation: Operation) -> dict[str, Any] | None:
    """How the submission went, kept apart from how the job stands; None for a job that was submitted elsewhere."""
    if not operation.fingerprint:
        return None
    return {
        "attempts": _used(operation.spent.submissions, operation.budget.submissions),
        "lookups": _used(operation.spent.lookups, operation.budget.lookups),
        "submit_by": _instant(operation.submit_by),
        "first_sent_at": _instant(operation.first_sent_at),
        "last_sent_at": _instant(operation.last_sent_at),
        "recover_until": _instant(operation.recover_until),
        "doubt": operation.doubt or None,
        "doubt_http": operation.doubt_http,
    }


def _cancel(operation: Operation, table: ProviderTable | None) -> dict[str, Any]:
    documented = table.cancel if table else None
    return {
        "state": operation.cancel_state or None,
        "allowed": not refusal(table, operation),
        "effect": documented.effect if documented else None,
    }


# --- the contract -----------------------------------------------------------------------------------

UNDER_WAY = "under_way"
"""Instead of a delay source: a request is being made, or its worker has ended and the lease still runs."""


def _because(operation: Operation) -> str | None:
    if operation.wake_at is None:
        return None
    return UNDER_WAY if operation.lease is not None else operation.delay_source or None


UNDER_WAY_S = 2
"""When to ask us again while a request is under way: its answer comes at any moment, its lease ends much later."""


def _again_in(operation: Operation, now: datetime) -> int | None:
    if operation.wake_at is None:
        return None
    seconds = max(1, int((operation.wake_at - now).total_seconds()) + 1)
    return min(seconds, UNDER_WAY_S) if operation.lease is not None else seconds


def outcome(
    operation: Operation,
    reasons: Sequence[Reason],
    *,
    now: datetime,
    table: ProviderTable | None = None,
    last: LastRequest | None = None,
) -> dict[str, Any]:
    """The contract as JSON-compatible values; keys are stable within ``version``. ``docs/outcome.md`` explains each.

    Accepted, observed and concluded are separate facts (R-FACT-1), and what the last request showed is a fourth.
    ``retry_after_s`` says when asking *us* again makes sense; None: nothing will change by itself.

    Args:
        operation: the row.
        reasons: of its open escalations.
        now: by the store's clock.
        table: the newest table; None: there is none, so ``reconcile`` is None and nothing is allowed.
        last: the newest request that is in the audit; None: there is none yet.
    """
    budget, spent = operation.budget, operation.spent
    wake = operation.wake_at
    return {
        "version": VERSION,
        "outcome": verdict(operation, reasons, now=now),
        "operation_id": operation.id,
        "correlation_id": operation.id,  # each X-Request-Id that the provider sees begins with it
        "provider": operation.provider,
        "account": operation.account,
        "job_id": operation.job_id or None,
        "reference": operation.reference,
        "state": operation.state.value,
        "cause": operation.cause or None,
        "accepted_at": _instant(operation.accepted_at),
        "observed": {
            "state": operation.provider_state or None,
            "since": _instant(operation.provider_state_since),
            "at": _instant(operation.observed_at),
        },
        "transport_observation": _observed(last),
        "progress": operation.progress or None,
        "error": operation.error or None,
        "needs_decision": [reason.value for reason in reasons],
        "next_look_at": _instant(wake),
        "next_look_because": _because(operation),
        "retry_after_s": _again_in(operation, now),
        "retry_allowed": retry_allowed(operation, table, now=now),
        "reconcile": _reconcile(operation, table, doubt=in_doubt(operation, reasons, now=now)),
        "submission": _submission(operation),
        "cancel": _cancel(operation, table),
        "deadline": _instant(budget.deadline),
        "status_requests": _used(spent.status_requests, budget.status_requests),
        "kept": dict(operation.kept),
    }
