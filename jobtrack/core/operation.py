"""The durable record of one job at one provider, its states and its budgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType


class OperationState(StrEnum):
    """The ten states. They are part of the stored data: changing them costs a migration."""

    READY = "ready"  # stored, nothing sent
    SUBMITTING = "submitting"  # a submission attempt is under way
    UNCONFIRMED = "unconfirmed"  # sent, outcome unknown
    RUNNING = "running"  # the provider has the job; it is polled
    ESCALATED = "escalated"  # stopped, a person decides
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ABANDONED = "abandoned"


_S = OperationState

TERMINAL: frozenset[OperationState] = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.EXPIRED, _S.ABANDONED})
"""States that are never left (R-END-1, INV-07)."""
OPEN_STATES: tuple[OperationState, ...] = tuple(state for state in OperationState if state not in TERMINAL)

TRANSITIONS: Mapping[OperationState, frozenset[OperationState]] = MappingProxyType(
    {
        _S.READY: frozenset({_S.SUBMITTING, _S.ESCALATED, _S.ABANDONED}),
        _S.SUBMITTING: frozenset(
            {_S.READY, _S.UNCONFIRMED, _S.RUNNING, _S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.ESCALATED}
        ),
        _S.UNCONFIRMED: frozenset({_S.SUBMITTING, _S.RUNNING, _S.ESCALATED}),
        _S.RUNNING: TERMINAL | {_S.ESCALATED},
        _S.ESCALATED: frozenset({_S.READY, _S.SUBMITTING, _S.UNCONFIRMED, _S.RUNNING, _S.SUCCEEDED, _S.ABANDONED}),
        **{state: frozenset() for state in TERMINAL},
    }
)
"""Every permitted move; a move that is not listed is a defect (INV-08)."""


def may_move(source: OperationState, target: OperationState) -> bool:
    """True if ``source -> target`` is listed, or is no move at all."""
    return source is target or target in TRANSITIONS[source]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What an operation is *allowed* (R-BUDGET-1). Only a person's decision raises it (INV-02)."""

    deadline: datetime  # aware; nothing is sent at or after it
    status_requests: int  # most status requests, each debited before it is sent
    transport_failures: int  # most requests that ended without a usable answer
    rate_limited: int  # most 429 answers
    extensions: int = 0  # how often a person may extend
    needed_by: datetime | None = None  # business deadline; None: there is none
    submissions: int = 0  # most submission requests; 0: the job was submitted elsewhere
    lookups: int = 0  # most look-ups of an unknown outcome
    follow_for: timedelta | None = None  # how long the job is followed from its acceptance; None: it was tracked


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What an operation has *used*. Counters only grow."""

    status_requests: int = 0
    transport_failures: int = 0
    rate_limited: int = 0
    extensions: int = 0
    submissions: int = 0
    lookups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to send one request, held by one worker until it commits or the lease expires (R-OWN-1)."""

    owner: str  # opaque token of one claim call
    until: datetime  # aware, by the store's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A snapshot of the row. Instants are aware and by the store's clock; ``None`` means "not yet" unless said."""

    id: str  # opaque; the only thing that is ever put in a message
    provider: str  # id of the table
    account: str  # names one environment of the provider
    job_id: str  # the provider's id, as text, exactly as it was given ("" before acceptance)
    state: OperationState
    budget: Budget
    created_at: datetime
    accepted_at: datetime | None  # when the provider had the job; start of "not found yet" windows
    spent: Spent = field(default_factory=Spent)
    params: Mapping[str, str] = field(default_factory=dict)  # the table's parameters, checked by their patterns
    status_url: str = ""  # fixed at acceptance: authority stays as granted; "" if none is built, or it is sealed
    cause: str = ""  # of `failed`: submission_rejected | provider_failure
    fence: int = 0  # number of the last claim
    lease: Lease | None = None
    wake_at: datetime | None = None  # the schedule; None: nothing to do
    not_before: datetime | None = None  # floor for sending (guidance, backoff, gate)
    wake_until: datetime | None = None  # a message is out; the sweeper leaves the row alone until then
    delay_source: str = ""  # why `wake_at` is what it is: a DelaySource
    provider_state: str = ""  # the provider's last word, cleaned and bounded
    provider_state_since: datetime | None = None
    observed_at: datetime | None = None  # when a status request was last answered with a readable state
    last_http: int | None = None
    progress: str = ""
    error: str = ""  # the provider's own error, cleaned, redacted and bounded
    expires_at: datetime | None = None  # as the provider stated it
    kept: Mapping[str, object] = field(default_factory=dict)  # `result.keep`: small JSON values, on success only
    needed_by_told: bool = False  # the business-deadline question was asked
    escalate_ends: bool = True  # False: failure, cancelled and expired just close (`on_failure: close`)
    last_look: bool = False  # a person granted one look; it may be sent although budgets or the deadline are over
    look_until: datetime | None = None  # deadline of that look
    resumed_at: datetime | None = None  # when a person last extended it; stall and overdue count from here
    missing_since: datetime | None = None  # since when this machine's workers find no usable table
    revision: int = 0  # highest table revision this row was read with
    table_digest: str = ""
    audit_seq: int = 0  # number of audit entries
    audit_head: str = ""  # hash of the last audit entry
    reference: str = ""  # the caller's own word for it
    on_success: str = ""  # follow-ups: dotted path of a callable or name of a Celery task
    on_failure: str = ""
    on_end: str = ""
    predecessor: str = ""  # id of the operation this one replaces
    idempotency_key: str = ""  # belongs to the operation, never to one attempt (R-ID-3)
    fingerprint: str = ""  # of the content that counts (R-ID-2); "": tracked, not submitted
    permits: str = ""  # what its first table permitted for a repeat (`core.recover.permits`), one term a line
    sealed: str = ""  # `core.sealed.Sealed`, encrypted: request bytes, handles, capability URLs; "": nothing
    submit_by: datetime | None = None  # nothing is sent for the first time at or after it
    first_sent_at: datetime | None = None  # when the first attempt began: the idempotency key's lifetime counts from it
    last_sent_at: datetime | None = None  # when the last attempt began or ended, whichever is known
    recover_until: datetime | None = None  # recovery deadline; None: there is no doubt yet
    doubt: str = ""  # why the outcome of the submission is unknown, cleaned
    doubt_http: int | None = None  # the answer that left the doubt; None: there was no answer
    acceptance_seen: bool = False  # the provider said that it has a job, without a usable id: never submit again
    evidence: Mapping[str, object] = field(default_factory=dict)  # a late acceptance: `core.submission.evidence`
    hint_floor: datetime | None = None  # a webhook may bring the next look forward to here, never before
    hinted: bool = False  # a webhook came since the last claim
    noticed_at: datetime | None = None  # when a webhook last meant this operation (set by `Store.hint` only)
    cancel_state: str = ""  # "" | requested | accepted | refused | unknown (core.cancel.CancelState)

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def succeeded(self) -> bool:
        """The job ended well: only then it may have a result (R-END-4)."""
        return self.state is OperationState.SUCCEEDED

    @property
    def last_instant(self) -> datetime:
        """Nothing is sent at or after this instant: what limits this state, or the end of a person's grant if later.

        Before acceptance that is the time to submit by, or the recovery deadline; afterwards the deadline.
        """
        if self.state is OperationState.READY and self.last_look and self.look_until is not None:
            return self.look_until  # a person's grant to submit holds for its own time only
        limits = {OperationState.READY: self.submit_by, OperationState.UNCONFIRMED: self.recover_until}
        limit = limits.get(self.state) or self.budget.deadline
        if self.last_look and self.look_until is not None:
            return max(limit, self.look_until)
        return limit

    @property
    def next_limit(self) -> datetime:
        """When something must be said even if nothing may be sent: the last instant, or an untold business deadline."""
        needed_by = self.budget.needed_by
        if needed_by is None or self.needed_by_told:
            return self.last_instant
        return min(self.last_instant, needed_by)
