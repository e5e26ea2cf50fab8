"""Questions to a person: reasons, the options each allows, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
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


class Risk(IntEnum):
    """What waiting or a wrong answer may cost; the order in which people read questions. Stored with each question."""

    HIGH = 1  # something may happen twice, be lost for good, or stand still for a whole account
    MEDIUM = 2  # a job may run and bill unseen
    LOW = 3  # it has ended, or goes on by itself: somebody has to know


_HIGH = frozenset(
    {
        Reason.SUBMISSION_UNKNOWN,
        Reason.IDEMPOTENCY_CONFLICT,
        Reason.STATE_CONTRADICTION,
        Reason.JOB_ID_MISMATCH,
        Reason.CANCEL_UNKNOWN,
        Reason.SEAL_BROKEN,
        Reason.RESULT_UNAVAILABLE,
        Reason.AUTHORIZATION_DENIED,
    }
)

_LOW = frozenset(
    {
        Reason.BUSINESS_DEADLINE_EXCEEDED,
        Reason.PROVIDER_FAILURE,
        Reason.PROVIDER_CANCELLED,
        Reason.PROVIDER_EXPIRED,
        Reason.SUBMISSION_REJECTED,
        Reason.GUIDANCE_TOO_LONG,
    }
)


def risk(reason: Reason) -> Risk:
    """How urgent a question is, by its reason."""
    if reason in _HIGH:
        return Risk.HIGH
    return Risk.LOW if reason in _LOW else Risk.MEDIUM


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


class Refusal(StrEnum):
    """Why an option cannot be chosen for a question now."""

    NOT_AN_ANSWER = "not_an_answer"  # the reason does not allow it
    NOT_ACCEPTED = "not_accepted"  # there is no job yet that it could be about
    ACCEPTED = "accepted"  # the job is known already
    ENDED = "ended"  # the operation has ended
    NO_TABLE = "no_table"  # this site has no usable provider table
    NOT_IN_TABLE = "not_in_table"  # the table does not document it
    USED_UP = "used_up"  # as often as the table grants it
    NEEDS_ADDRESS = "needs_address"  # the job can only be followed by an address that its acceptance gave
    PROVIDER_HAS_IT = "provider_has_it"  # the provider said that it has a job of this operation
    ERASED = "erased"  # what was to be sent is no longer kept
    UNDER_WAY = "under_way"  # it was asked for already


def options(reason: Reason, operation: Operation, table: ProviderTable | None) -> tuple[Option, ...]:
    """The options a person may choose now, in the order they are offered.

    An extension is offered only if the table states what it grants and the operation's budget has one left; a
    look-up, a cancellation or a result only if the table documents it; a submission never against the provider's
    word that it has the job. Without a table on this machine nothing that needs one is offered.
    """
    return tuple(option for option in ALLOWED[reason] if refusal(option, reason, operation, table) is None)


def refusal(option: Option, reason: Reason, operation: Operation, table: ProviderTable | None) -> Refusal | None:
    """Why ``option`` is no answer to a question with ``reason`` now; None: it may be chosen (R-ESC-3)."""
    if option not in ALLOWED[reason]:
        return Refusal.NOT_AN_ANSWER
    match option:
        case Option.EXTEND:
            return _no_extension(operation, table)
        case Option.LOOK_UP:
            return _missing(
                table, documented=table is not None and table.submit is not None and bool(table.submit.lookup)
            )
        case Option.FETCH_AGAIN:
            return _missing(table, documented=table is not None and table.result is not None)
        case Option.ATTACH_JOB:
            return _not_attachable(operation, table)
        case Option.RESUBMIT:
            return _not_submittable(operation, table)
        case Option.CANCEL:
            return _not_cancellable(operation, table)
        case _:
            return None


def _no_extension(operation: Operation, table: ProviderTable | None) -> Refusal | None:
    if operation.accepted_at is None:
        return Refusal.NOT_ACCEPTED  # before, there is nothing to look at
    missing = _missing(table, documented=table is not None and table.budget.extension is not None)
    left = operation.spent.extensions < operation.budget.extensions
    return missing or (None if left else Refusal.USED_UP)


def _not_attachable(operation: Operation, table: ProviderTable | None) -> Refusal | None:
    if operation.accepted_at is not None:
        return Refusal.ACCEPTED
    if table is None:
        return Refusal.NO_TABLE
    # A table that builds no address follows a job by the URL that its acceptance gave, which nobody has.
    return None if table.status.request.path else Refusal.NEEDS_ADDRESS


def _not_submittable(operation: Operation, table: ProviderTable | None) -> Refusal | None:
    """Never against the provider's own word that it has the job, nor without the very bytes."""
    if operation.acceptance_seen:
        return Refusal.PROVIDER_HAS_IT
    if not operation.sealed:
        return Refusal.ERASED
    return _missing(table, documented=table is not None and table.submit is not None)


def _not_cancellable(operation: Operation, table: ProviderTable | None) -> Refusal | None:
    if operation.terminal:
        return Refusal.ENDED
    if operation.accepted_at is None:
        return Refusal.NOT_ACCEPTED
    if operation.cancel_state in _BEING_CANCELLED:
        return Refusal.UNDER_WAY
    return _missing(table, documented=table is not None and table.cancel is not None)


def _missing(table: ProviderTable | None, *, documented: bool) -> Refusal | None:
    if table is None:
        return Refusal.NO_TABLE
    return None if documented else Refusal.NOT_IN_TABLE


_BEING_CANCELLED = ("requested", "accepted")
"""Values of ``core.cancel.CancelState`` after which another cancellation would say nothing new."""


BULK: frozenset[Option] = frozenset(
    {
        Option.EXTEND,
        Option.LOOK_AGAIN,
        Option.ACCESS_REPAIRED,
        Option.LOOK_UP,
        Option.FETCH_AGAIN,
        Option.RETRY_DELIVERY,
        Option.CLOSE,
    }
)
"""Options that may be chosen for many questions at once. What writes at a provider is decided one by one."""

UNATTENDED: frozenset[Option] = frozenset(
    {Option.EXTEND, Option.LOOK_AGAIN, Option.LOOK_UP, Option.FETCH_AGAIN, Option.CLOSE}
)
"""Options that may be chosen when nobody acts: none writes at a provider, states a fact, or runs a site's code."""


def may_lapse(option: Option, reason: Reason) -> bool:
    """Whether a site may have ``option`` chosen by itself when nobody answers a question with ``reason``.

    Closing the question of an account lets a request of it out, so that one waits for a person.
    """
    return (
        option in UNATTENDED
        and option in ALLOWED[reason]
        and not (reason is Reason.AUTHORIZATION_DENIED and option is Option.CLOSE)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapse:
    """What is chosen for a question that nobody answers."""

    option: Option
    after: timedelta  # from the moment it was opened


def lapse_for(reason: Reason, lapses: Mapping[Reason, Lapse], four_eyes: frozenset[Option]) -> Lapse | None:
    """What happens to a question with ``reason`` that nobody answers; None: it waits.

    Args:
        lapses: what the site has chosen.
        four_eyes: options that need the word of two people, and so never happen by themselves.
    """
    rule = lapses.get(reason)
    if rule is None or rule.option in four_eyes or not may_lapse(rule.option, reason):
        return None
    return rule


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
    person: str = ""  # what stays when they are renamed; "": the site has no such thing
    permission: str = ""  # by which right, as the site names it; "": code or a rule decided, and none was asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The first of two people's word, where a site asks for two (four eyes). It changes nothing by itself."""

    option: Option
    actor: str
    reason: str
    at: datetime | None = None  # by the store's clock; None before it is kept
    job_id: str = ""  # as in Resolution
    person: str = ""  # as in Resolution

    def seconded_by(self, resolution: Resolution) -> bool:
        """Whether ``resolution`` is another person's word for the same thing."""
        same = (resolution.option, resolution.job_id) == (self.option, self.job_id)
        return same and not self.is_of(resolution.actor, resolution.person)

    def is_of(self, actor: str, person: str) -> bool:
        """Whether this is the word of that very person. A name counts however it is written, and only if need be."""
        if self.person and person:
            return self.person == person
        return self.actor.strip().casefold() == actor.strip().casefold()
