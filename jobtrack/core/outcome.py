"""The structured contract for callers: how does it stand, when may I ask again, what may I do (R-SUB-8, R-CALL-2)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobtrack.core.escalation import Reason
from jobtrack.core.operation import Operation, OperationState

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


def outcome(operation: Operation, reasons: Sequence[Reason], *, now: datetime) -> dict[str, Any]:
    """The contract as JSON-compatible values; keys are stable within ``version``.

    Accepted, observed and concluded are separate facts (R-FACT-1). ``retry_after_s`` says when asking *us* again
    makes sense; None: nothing will change by itself.
    """
    budget, spent = operation.budget, operation.spent
    wake = operation.wake_at
    return {
        "version": VERSION,
        "outcome": verdict(operation, reasons),
        "operation_id": operation.id,
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
            "http": operation.last_http,
        },
        "progress": operation.progress or None,
        "error": operation.error or None,
        "needs_decision": [reason.value for reason in reasons],
        "next_look_at": _instant(wake),
        "next_look_because": operation.delay_source or None,
        "retry_after_s": None if wake is None else max(1, int((wake - now).total_seconds()) + 1),
        "retry_allowed": False,  # only a table with `submit` can allow a machine to submit again
        "deadline": _instant(budget.deadline),
        "status_requests": {"used": spent.status_requests, "allowed": budget.status_requests},
        "kept": dict(operation.kept),
    }
