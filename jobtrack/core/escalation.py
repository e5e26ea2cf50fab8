"""Questions to a person: reasons, the options each allows, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from jobtrack.core.operation import Operation
from jobtrack.core.table import ProviderTable


class Reason(StrEnum):
    """Why a person is asked (R-ESC-1)."""

    DEADLINE_EXCEEDED = "deadline_exceeded"
    BUSINESS_DEADLINE_EXCEEDED = "business_deadline_exceeded"
    REQUEST_BUDGET_EXHAUSTED = "request_budget_exhausted"
    TRANSPORT_FAILURES_EXHAUSTED = "transport_failures_exhausted"
    RATE_LIMITED = "rate_limited"
    UNKNOWN_STATE = "unknown_state"
    AUTHORIZATION_DENIED = "authorization_denied"
    PROVIDER_FAILURE = "provider_failure"
    PROVIDER_CANCELLED = "provider_cancelled"
    PROVIDER_EXPIRED = "provider_expired"
    PROVIDER_WAITS = "provider_waits"
    TABLE_MISSING = "table_missing"
    INVALID_RESPONSE = "invalid_response"
    JOB_ID_MISMATCH = "job_id_mismatch"
    INVALID_RESULT = "invalid_result"
    JOB_NOT_FOUND = "job_not_found"
    JOB_OVERDUE = "job_overdue"
    STALLED = "stalled"
    STATE_CONTRADICTION = "state_contradiction"
    TARGET_DENIED = "target_denied"
    GUIDANCE_TOO_LONG = "guidance_too_long"  # the account would be held longer than its table allows
    SUBMISSION_UNKNOWN = "submission_unknown"  # nobody can prove whether the provider has the job
    SUBMISSION_UNSENT = "submission_unsent"  # proven: nothing was accepted, and the limits allow no further attempt
    SUBMISSION_REJECTED = "submission_rejected"  # the provider refused it; the operation has failed
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"  # the same operation id came with other content
    SEAL_BROKEN = "seal_broken"  # what was kept encrypted cannot be read with the keys of this site
    RESULT_UNAVAILABLE = "result_unavailable"  # the job succeeded, its result cannot be fetched
    CANCEL_UNKNOWN = "cancel_unknown"  # nobody knows whether the provider heard the cancellation
    DELIVERY_FAILED = "delivery_failed"  # a follow-up handler kept failing; the operation is not touched


class Option(StrEnum):
    """What a person may choose. Each writes its own grant (R-ESC-3, R-ESC-4)."""

    EXTEND = "extend"  # more time and checks, as the table states them
    LOOK_AGAIN = "look_again"  # one request, also past deadline and budgets
    ACCESS_REPAIRED = "access_repaired"  # states that access works again; releases one probe
    RETRY_DELIVERY = "retry_delivery"  # run the follow-up once more
    FETCH_AGAIN = "fetch_again"  # try to fetch the result again, with fresh attempts
    LOOK_UP = "look_up"  # ask the provider again whether it has the job; sends no submission
    ATTACH_JOB = "attach_job"  # name the provider's job, with evidence; it is then followed
    RESUBMIT = "resubmit"  # one more submission with the same key and bytes; may duplicate
    CANCEL = "cancel"  # ask the provider to cancel the job
    CLOSE = "close"  # abandon a running operation; acknowledge the question of an ended one


ADVISORY: frozenset[Reason] = frozenset(
    {
        Reason.BUSINESS_DEADLINE_EXCEEDED,
        Reason.GUIDANCE_TOO_LONG,
        Reason.STATE_CONTRADICTION,
        Reason.PROVIDER_FAILURE,
        Reason.PROVIDER_CANCELLED,
        Reason.PROVIDER_EXPIRED,
        Reason.DELIVERY_FAILED,
        Reason.SUBMISSION_REJECTED,
        Reason.IDEMPOTENCY_CONFLICT,
        Reason.RESULT_UNAVAILABLE,
        Reason.CANCEL_UNKNOWN,
    }
)
"""Reasons that do not stop the operation: it goes on, or has already ended. All others block (state ``escalated``)."""

_LOOK = (Option.EXTEND, Option.LOOK_AGAIN, Option.CANCEL, Option.CLOSE)

ALLOWED: Mapping[Reason, tuple[Option, ...]] = MappingProxyType(
    {
        Reason.DEADLINE_EXCEEDED: _LOOK,
        Reason.BUSINESS_DEADLINE_EXCEEDED: (Option.CANCEL, Option.CLOSE),
        Reason.REQUEST_BUDGET_EXHAUSTED: _LOOK,
        Reason.TRANSPORT_FAILURES_EXHAUSTED: _LOOK,
        Reason.RATE_LIMITED: _LOOK,
        Reason.UNKNOWN_STATE: _LOOK,
        Reason.AUTHORIZATION_DENIED: (Option.ACCESS_REPAIRED, Option.CLOSE),
        Reason.PROVIDER_FAILURE: (Option.CLOSE,),
        Reason.PROVIDER_CANCELLED: (Option.CLOSE,),
        Reason.PROVIDER_EXPIRED: (Option.CLOSE,),
        Reason.PROVIDER_WAITS: _LOOK,
        Reason.TABLE_MISSING: (Option.LOOK_AGAIN, Option.CLOSE),
        Reason.INVALID_RESPONSE: _LOOK,
        Reason.JOB_ID_MISMATCH: (Option.LOOK_AGAIN, Option.CLOSE),
        Reason.INVALID_RESULT: _LOOK,
        Reason.JOB_NOT_FOUND: _LOOK,
        Reason.JOB_OVERDUE: _LOOK,
        Reason.STALLED: _LOOK,
        Reason.STATE_CONTRADICTION: (Option.CLOSE,),
        Reason.TARGET_DENIED: (Option.LOOK_AGAIN, Option.CLOSE),
        Reason.GUIDANCE_TOO_LONG: (Option.CLOSE,),
        Reason.SUBMISSION_UNKNOWN: (Option.LOOK_UP, Option.ATTACH_JOB, Option.RESUBMIT, Option.CLOSE),
        Reason.SUBMISSION_UNSENT: (Option.RESUBMIT, Option.CLOSE),
        Reason.SUBMISSION_REJECTED: (Option.CLOSE,),
        Reason.IDEMPOTENCY_CONFLICT: (Option.CLOSE,),
        Reason.SEAL_BROKEN: (Option.LOOK_AGAIN, Option.ATTACH_JOB, Option.CLOSE),
        Reason.RESULT_UNAVAILABLE: (Option.FETCH_AGAIN, Option.CLOSE),
        Reason.CANCEL_UNKNOWN: (Option.CANCEL, Option.CLOSE),
        Reason.DELIVERY_FAILED: (Option.RETRY_DELIVERY, Option.CLOSE),
    }
)
"""The bounded options of each reason, in the order they are offered."""


def options(reason: Reason, operation: Operation, table: ProviderTable | None) -> tuple[Option, ...]:
    """The options a person may choose now.

    An extension is offered only if the table states what it grants and the operation's budget has one left; a
    look-up, a cancellation or a result only if the table documents it; a submission never against the provider's
    word that it has the job. Without a table on this machine nothing that needs one is offered.
    """
    return tuple(option for option in ALLOWED[reason] if _offered(option, operation, table))


def _offered(option: Option, operation: Operation, table: ProviderTable | None) -> bool:
    """Whether the option makes sense for this row and this table."""
    submit = table.submit if table else None
    match option:
        case Option.EXTEND:
            granted = table is not None and table.budget.extension is not None
            accepted = operation.accepted_at is not None  # before, there is nothing to look at
            return accepted and granted and operation.spent.extensions < operation.budget.extensions
        case Option.LOOK_UP:
            return submit is not None and submit.lookup is not None
        case Option.ATTACH_JOB:
            # A table that builds no address follows a job by the URL that its acceptance gave, which nobody has.
            return table is not None and operation.accepted_at is None and bool(table.status.request.path)
        case Option.RESUBMIT:
            # Never against the provider's own word that it has the job, nor without the very bytes.
            return submit is not None and not operation.acceptance_seen and bool(operation.sealed)
        case Option.CANCEL:
            documented = table is not None and table.cancel is not None and operation.accepted_at is not None
            return documented and not operation.terminal and operation.cancel_state not in _BEING_CANCELLED
        case Option.FETCH_AGAIN:
            return table is not None and table.result is not None
        case _:
            return True


_BEING_CANCELLED = ("requested", "accepted")
"""Values of ``core.cancel.CancelState`` after which another cancellation would say nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An escalation to be opened with the commit that stops (or merely reports on) an operation."""

    reason: Reason
    detail: str  # one sentence: what was seen, without secrets, cleaned

    @property
    def blocking(self) -> bool:
        return self.reason not in ADVISORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A person's answer. Kept for ever (R-ESC-4, INV-28)."""

    escalation_id: str
    option: Option
    actor: str  # who, as the site names people
    reason: str  # why, in the person's words
    version: int  # the version of the escalation the person saw
    at: datetime | None = None  # by the store's clock; None before it is applied
    job_id: str = ""  # ATTACH_JOB: the provider's id; `reason` holds the evidence
