"""What the flows need from outside. Adapters implement these; tests and the simulator bring their own.

All calls take many operations; one is a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from jobtrack.core.escalation import Question, Reason, Resolution
from jobtrack.core.gate import GateState
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Operation
from jobtrack.core.reply import Answered, NoAnswer, Request
from jobtrack.core.table import ProviderTable, RequestLimits


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Followup:
    """A delivery to be written with a terminal commit; unique per (operation, event) (INV-21)."""

    event: str  # "on_success" | "on_failure" | "on_end"
    handler: str  # dotted path or Celery task name

    def delivery_of(self, operation_id: str) -> str:
        """Id of its row: the stable key of everything the handler does."""
        return f"{operation_id}:{self.event}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one look did to one operation, written in one transaction under its fence.

    ``operation`` is the wanted row (its ``fence`` must still be the stored one and its lease this claim's); the
    store fills ``audit_seq``/``audit_head``. With ``release`` the lease ends.
    """

    operation: Operation
    entry: Mapping[str, Any]  # audit body, JSON-compatible and clean; the store adds what the chain needs
    questions: tuple[Question, ...] = ()
    followups: tuple[Followup, ...] = ()
    table: ProviderTable | None = None  # its text is stored once per digest


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
class Due:
    """Work the sweeper found."""

    operations: tuple[str, ...] = ()
    deliveries: tuple[str, ...] = ()
    more: bool = False  # the batch was full


class Store(Protocol):
    """The truth. Every method is one short transaction of its own, by the store's own clock.

    Correctness rests on compare-and-set and unique constraints, for every database alike (R-OWN, INV-13).
    """

    def now(self) -> datetime:
        """The store's clock, aware."""

    def add(self, operations: Sequence[Operation], entry: Mapping[str, Any], table: ProviderTable) -> list[Operation]:
        """Insert new operations with their first audit entry. An id that exists is returned as stored, unchanged.

        Joins a transaction of the caller if there is one. ``Operation.wake_at`` etc. are as given.
        """

    def get(self, ids: Iterable[str]) -> list[Operation]:
        """The rows, in the order of ``ids``; unknown ids are left out. Always from the primary database."""

    def claim(
        self, ids: Sequence[str], *, owner: str, lease: timedelta, floor: timedelta, debit: bool = True
    ) -> list[Claim]:
        """Take due rows: state running, ``wake_at <= now``, no live lease. One durable transaction.

        For each: fence + 1, lease until now + lease, ``wake_at`` = lease end, ``wake_until`` cleared.
        ``granted`` = ``debit`` and now >= not_before and (
        (now < deadline and a status request is left) or (``last_look`` and now < ``look_until``)).
        Granted rows also get: one status request debited, ``not_before`` at least now + floor, ``last_look`` cleared.
        Not claimable rows are left out. ``owner`` is unique to this call.
        Raises if called inside another transaction (INV-03).
        """

    def commit(self, commits: Sequence[Commit]) -> list[Committed]:
        """Write each commit in its own transaction: row, audit entry, questions, follow-ups; all or nothing.

        Compare-and-set on (id, fence, not terminal). A moved audit head is resealed inside the transaction.
        A question whose unique place is taken updates the open one's detail and version instead.
        A STALE commit keeps its entry as late evidence (audit, ``late: true``) and changes nothing else. If it names
        another end than the stored one, the advisory question of ``core.decide.contradiction`` is opened as well.
        """

    def hold(self, ids: Sequence[str], *, until: datetime, source: DelaySource | None = None) -> None:
        """Move the wake time of due, unleased rows, and say why. Nothing is debited or audited.

        ``source`` None: the reason that stands there stays.
        """

    def unmark(self, ids: Sequence[str]) -> None:
        """No message went out after all: clear ``wake_until``, so that the sweeper finds the rows at their time."""

    def due(self, *, limit: int, grace: timedelta) -> Due:
        """Find due work nobody has in hand and mark it as dispatched (``wake_until = now + grace``).

        Due: ``wake_at <= now``, no live lease, no message out. Marked rows are not found again before the grace ends.
        """

    def next_due_at(self) -> datetime | None:
        """When the next row or follow-up falls due (possibly in the past); None: nothing will ever."""

    def overdue_lag(self) -> timedelta:
        """How long the oldest due row has been waiting; zero if none is due."""

    # --- the account gate -----------------------------------------------------------------------

    def gates(self, accounts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], GateState]:
        """Gate of each (provider, account); an account without a row is open."""

    def move_gate(self, provider: str, account: str, before: GateState, after: GateState) -> bool:
        """Compare-and-set on ``before.version``. False: somebody else was first."""

    # --- escalations ----------------------------------------------------------------------------

    def escalation(self, escalation_id: str) -> Escalation:
        """Raises OperationNotFound."""

    def open_escalations(self, operation_id: str) -> list[Escalation]: ...

    def resolve(
        self,
        resolution: Resolution,
        wanted: Operation,
        entry: Mapping[str, Any],
        *,
        followups: tuple[Followup, ...] = (),
        redeliver: bool = False,
    ) -> Resolution:
        """Close an escalation and write the operation in one transaction, if both are as the person saw them.

        Compare-and-set on (escalation open, its version) and, if the operation changes, on its fence and state.
        ``wanted`` keeps the fence. A terminal ``wanted`` closes its other open blocking escalation too.
        With ``redeliver`` the operation's undelivered follow-ups become due now, with fresh attempts.
        Returns the resolution as stored (``at`` filled). Raises AlreadyDecided, StaleEvidence.
        """

    # --- follow-ups -----------------------------------------------------------------------------

    def take_delivery(self, delivery_id: str, *, owner: str, lease: timedelta) -> Delivery | None:
        """Lease an undelivered row for one attempt; None if it is delivered, leased or not yet due."""

    def close_delivery(self, delivery: Delivery, *, owner: str) -> bool:
        """The handler returned. False: the lease was lost."""

    def fail_delivery(
        self, delivery: Delivery, *, owner: str, error: str, again_in: timedelta | None, question: Question | None
    ) -> None:
        """The handler raised. ``again_in`` None: no further attempt by machine; ``question`` is then opened."""


class Transport(Protocol):
    @property
    def slots(self) -> int:
        """Most requests that one call of ``send`` has under way; no more is claimed than can be sent at once."""

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        """Send each request once and yield replies as they complete. Never raises for what a peer does."""


class Scheduler(Protocol):
    """Wake-ups are hints: late, lost, doubled or early ones are harmless (R-OWN-3)."""

    @property
    def horizon(self) -> timedelta:
        """No countdown is longer. Negative: nothing can be published just now."""

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        """Ask for a look in ``delay`` (at most the horizon). False: nothing was published. Never raises."""

    def wake_now(self, ids: Sequence[str]) -> int:
        """Ask for looks at due rows now; returns how many were published. Never raises."""

    def deliver(self, delivery_ids: Sequence[str]) -> int:
        """Ask for deliveries now. Never raises."""


class Tables(Protocol):
    def get(self, table_id: str) -> ProviderTable | None:
        """The newest usable table with this id on this machine; None if there is none."""


class Listener(Protocol):
    """Told after the commit; must not raise."""

    def finished(self, operation: Operation) -> None: ...

    def escalated(self, operation: Operation, questions: tuple[Question, ...]) -> None: ...

    def resolved(self, operation: Operation, resolution: Resolution) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Durations of the machinery; settings may change them. Lease >= longest request + margin (INV-14)."""

    margin: timedelta = timedelta(seconds=10)
    early: timedelta = timedelta(seconds=2)  # a wake-up this early is parked once more instead of being lost
    look: timedelta = timedelta(minutes=5)  # how long a person's "look again" may wait for its request
    grace: timedelta = timedelta(seconds=30)  # how long a published wake-up may take before the sweeper repeats it
    table_missing_retry: timedelta = timedelta(seconds=30)
    table_missing_limit: timedelta = timedelta(minutes=10)
    delivery_lease: timedelta = timedelta(minutes=5)
    delivery_attempts: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything a flow needs, put together once per process by the worker, the Django app, or a test."""

    store: Store
    transport: Transport
    scheduler: Scheduler
    tables: Tables
    draw: Draw
    elapsed: Elapsed
    listener: Listener
    token: Token
    run_handler: RunHandler
    timing: Timing = field(default_factory=Timing)
    limits: RequestLimits | None = None  # overrides the tables' limits; None: as each table says


class Draw(Protocol):
    def __call__(self) -> float:
        """A uniform number in [0, 1)."""


class Elapsed(Protocol):
    def __call__(self) -> float:
        """Monotonic seconds of this process."""


class Token(Protocol):
    def __call__(self) -> str:
        """A fresh opaque token, at most 64 characters."""


class RunHandler(Protocol):
    def __call__(self, delivery: Delivery, operation: Operation) -> None:
        """Run the named follow-up in this process; whatever it raises is a failed attempt."""
