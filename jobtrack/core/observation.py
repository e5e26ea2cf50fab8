"""What one reply means, as a value: the only thing that `decide` looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from jobtrack.core.reply import Trouble


class Kind(StrEnum):
    """What the provider said, or why it cannot be told."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTENTION = "attention"
    UNKNOWN_STATE = "unknown_state"
    INVALID_RESPONSE = "invalid_response"
    JOB_ID_MISMATCH = "job_id_mismatch"
    INVALID_RESULT = "invalid_result"  # success without what success must carry
    NOT_FOUND = "not_found"
    DENIED = "denied"  # 401, 403, or no credential to send
    RATE_LIMITED = "rate_limited"
    TRANSPORT_FAILURE = "transport_failure"  # no answer, or 5xx
    TARGET_DENIED = "target_denied"  # an address that the table does not allow


class DelaySource(StrEnum):
    """Why the next look is when it is (R-POLL-6)."""

    PROVIDER_RETRY_AFTER = "provider_retry_after"
    PROVIDER_POLL_HINT = "provider_poll_hint"
    LOCAL_BACKOFF = "local_backoff"
    MANUAL_EXTENSION = "manual_extension"
    WEBHOOK = "webhook"
    FIRST_DELAY = "first_delay"
    GATE = "gate"
    DEADLINE = "deadline"  # waits for the deadline because guidance or backoff reaches past it


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """The provider's wish when to ask again (R-POLL-2)."""

    source: DelaySource  # PROVIDER_RETRY_AFTER or PROVIDER_POLL_HINT
    raw: str  # as sent, cleaned, at most 200 characters
    wait: timedelta | None  # whole seconds, rounded up; None: not valid
    problem: str = ""  # why it is not valid


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One reply, read with one table. Texts are cleaned, bounded and storable on every database (R-SEC-4)."""

    kind: Kind
    label: str = ""  # the provider's word(s) for the state; parts joined by " + "
    detail: str = ""  # one sentence: what was seen and what was expected
    http: int | None = None  # None: no answer
    trouble: Trouble | None = None  # set when there was no answer
    request_id: str = ""  # the provider's own id of this request
    guidance: Guidance | None = None
    progress: str = ""
    error: str = ""
    expires_at: datetime | None = None
    overdue: bool = False  # still pending past the provider's own stated expiry, by the provider's own Date
    kept: Mapping[str, object] = field(default_factory=dict)
    nearest: str = ""  # declared state that looks most like an unknown one

    @property
    def readable(self) -> bool:
        """True if the provider's word for the state was read and is declared."""
        return self.kind in _READABLE


_READABLE = frozenset({Kind.PENDING, Kind.SUCCESS, Kind.FAILURE, Kind.CANCELLED, Kind.EXPIRED, Kind.ATTENTION})
