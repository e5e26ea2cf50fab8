"""The records that flows and stores hand to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobtrack.core.escalation import Proposal, Question, Reason, Resolution
from jobtrack.core.operation import Operation
from jobtrack.core.table import ProviderTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One operation taken for one look. The lease, the new fence and the debit are committed.

    ``operation`` is the row *after* the claim. ``granted`` tells whether a request may be sent and was debited;
    without it the row was due, but its deadline or budgets allow no request, or it is not yet time to send: the
    flow then only decides (deadline, budget, business deadline) and commits.
    """

    operation: Operation
    granted: bool
    now: datetime  # the store's clock at the claim


RESULT = "result"
"""Event of the errand that fetches an operation's result (R-END-4)."""

CANCEL = "cancel"
"""Event of the errand that asks the provider to cancel (R-END-5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followup:
    """A row of the outbox: a follow-up, or an errand of our own; unique per (operation, event) (INV-21)."""

    event: str  # follow-ups "on_success" | "on_failure" | "on_end"; errands RESULT | CANCEL
    handler: str = ""  # dotted path or Celery task name; "" for errands

    def delivery_of(self, operation_id: str) -> str:
        """Id of its row: the stable key of everything the handler does."""
        return f"{operation_id}:{self.event}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one look did to one operation, written in one transaction under its fence.

    ``operation`` is the wanted row (its ``fence`` must still be the stored one and its lease this claim's); the
    store fills ``audit_seq``/``audit_head``. The lease goes on if the record still has it: an intent is committed
    before its request is sent, under the same fence (INV-17).
    """

    operation: Operation
    entry: Mapping[str, Any]  # audit body, JSON-compatible and clean; the store adds what the chain needs
    questions: tuple[Question, ...] = ()
    followups: tuple[Followup, ...] = ()
    table: ProviderTable | None = None  # its text is stored once per digest
    evidence: Mapping[str, Any] | None = None  # the acceptance that this answer proves; kept even if STALE (INV-15)


class Committed(StrEnum):
    DONE = "done"
    STALE = "stale"  # the fence moved on; nothing was changed except late evidence (R-READ-7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """An escalation as stored."""

    id: str
    operation_id: str
    reason: Reason
    detail: str
    blocking: bool
    version: int  # grows when its evidence changes
    opened_at: datetime
    closed_at: datetime | None = None
    resolution: Resolution | None = None
    proposal: Proposal | None = None  # a first person's word; dropped when the evidence changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An outbox row, leased for one attempt."""

    id: str  # its stable key as well: "<operation id>:<event>"
    operation_id: str
    event: str
    handler: str
    attempts: int  # this one included
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A verified notice of a provider, stored before it is answered (R-SEC-3)."""

    provider: str
    account: str
    notice_id: str  # unique for (provider, account): the provider's own, or the digest of the body
    job_id: str = ""  # exactly one of job_id and operation_id is set
    operation_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """One stored file of a result."""

    name: str  # as the provider calls it, cleaned; unique in its result
    path: str  # name in the site's storage
    size: int  # bytes stored so far
    sha256: str = ""  # hex, of the whole file; "" while it is not complete
    content_type: str = ""
    complete: bool = False
    etag: str = ""  # strong validator to resume with; "": it cannot be resumed


class ResultState(StrEnum):
    WANTED = "wanted"  # asked for; an errand fetches it
    COMPLETE = "complete"  # every file is stored and checked
    UNAVAILABLE = "unavailable"  # given up; a person decides


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What was fetched of a successful job: a record of its own, which changes nothing of the operation (R-END-2)."""

    operation_id: str
    state: ResultState = ResultState.WANTED
    files: tuple[ResultFile, ...] = ()
    reads: int = 0  # status reads used of those granted
    detail: str = ""  # why it is not complete, cleaned and redacted
    link: str = ""  # a link that is no capability: no query, on the table's own host; used for some tries; else ""
    fetched_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Work the sweeper found."""

    operations: tuple[str, ...] = ()
    deliveries: tuple[str, ...] = ()
    more: bool = False  # the batch was full
