"""The structured contract for callers: how does it stand, when may I ask again, what may I do (R-SUB-8, R-CALL-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

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
    }
)
"""Reasons after which nobody can say whether the job still runs; after all others it is presumed to."""


def verdict(operation: Operation, reasons: Sequence[Reason]) -> str:
    """One word: ``pending``, ``unknown``, or the terminal state. An observer's limit is never ``failed`` (R-FACT-2).

    Args:
        reasons: of the operation's open escalations.
    """
    if operation.terminal:
        return operation.state.value
    if operation.state is OperationState.UNCONFIRMED or any(reason in _UNCLEAR for reason in reasons):
        return "unknown"
    return "pending"


def _instant(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRequest:
    """What the newest status request showed, whether or not it could be read: it proves nothing about the job."""

    at: str  # ISO 8601 instant, as the audit has it
    http: int | None  # None: no answer
    trouble: str | None  # why there is no answer: a ``Trouble``
    request_id: str = ""  # the provider's own id of the request


def _observed(last: LastRequest | None) -> dict[str, Any] | None:
    if last is None:
        return None
    return {"at": last.at, "http": last.http, "trouble": last.trouble, "request_id": last.request_id or None}


def _reconcile(operation: Operation, table: ProviderTable | None) -> dict[str, str] | None:
    """The request that settles how the job stands: no host, query or credential; None if the table builds none."""
    if table is None or not table.status.request.path:
        return None
    try:
        url = status_url(table, job_id=operation.job_id, params=operation.params)
    except UsageError:  # the newest table asks for other parameters than this operation has
        return None
    return {"method": table.status.request.method, "path": urlsplit(url).path}


UNDER_WAY = "under_way"
"""Instead of a delay source: a request is being made, or its worker has ended and the lease still runs."""


def _because(operation: Operation) -> str | None:
    if operation.wake_at is None:
        return None
    return UNDER_WAY if operation.lease is not None else operation.delay_source or None


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
        table: the newest table; None: there is none, so ``reconcile`` is None.
        last: the newest status request that is in the audit; None: there is none yet.
    """
    budget, spent = operation.budget, operation.spent
    wake = operation.wake_at
    return {
        "version": VERSION,
        "outcome": verdict(operation, reasons),
        "operation_id": operation.id,
        "correlation_id": operation.id,  # each X-Request-Id that the provider sees begins with it
        "provider": operation.provider,
        "account": operation.account,
        "job_id": operation.job_id,
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
        "retry_after_s": None if wake is None else max(1, int((wake - now).total_seconds()) + 1),
        "retry_allowed": False,  # only a table with `submit` can allow a machine to submit again
        "reconcile": _reconcile(operation, table),
        "deadline": _instant(budget.deadline),
        "status_requests": {"used": spent.status_requests, "allowed": budget.status_requests},
        "kept": dict(operation.kept),
    }
