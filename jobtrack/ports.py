"""What the flows need from outside. Adapters implement these; tests and the simulator bring their own.

All calls take many operations; one is a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from jobtrack.core.escalation import Lapse, Option, Proposal, Question, Reason, Resolution
from jobtrack.core.gate import GateState
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.reply import Answered, NoAnswer, Request
from jobtrack.core.sealed import Sealed
from jobtrack.core.table import ProviderTable, RequestLimits
from jobtrack.records import (
    Claim,
    Commit,
    Committed,
    Delivery,
    Due,
    Escalation,
    Followup,
    JobResult,
    Receipt,
    ResultFile,
)

RUNNING: frozenset[OperationState] = frozenset({OperationState.RUNNING})
"""The only state in which status is asked."""


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
        self,
        ids: Sequence[str],
        *,
        owner: str,
        lease: timedelta,
        floor: timedelta,
        debit: bool = True,
        states: frozenset[OperationState] = RUNNING,
    ) -> list[Claim]:
        """Take due rows: in one of ``states``, ``wake_at <= now``, no live lease. One durable transaction.

        For each: fence + 1, lease until now + lease, ``wake_at`` = lease end, ``wake_until`` cleared.
        ``granted`` = ``debit`` and now >= not_before and (
        (now < deadline and a status request is left) or (``last_look`` and now < ``look_until``)).
        Granted rows also get: one status request debited, ``not_before`` at least now + floor, ``last_look`` cleared.
        ``hinted`` is cleared. A status request is debited in the state running only: what another claim permits is
        committed, with its debit, before it is sent.
        Not claimable rows are left out. ``owner`` is unique to this call.
        Raises if called inside another transaction (INV-03).
        """

    def commit(self, commits: Sequence[Commit]) -> list[Committed]:
        """Write each commit in its own transaction: row, audit entry, questions, follow-ups; all or nothing.

        Compare-and-set on (id, fence, not terminal). A moved audit head is resealed inside the transaction.
        A question whose unique place is taken updates the open one's detail and version instead.
        A STALE commit keeps its entry as late evidence (audit, ``late: true``) and changes nothing else, except:
        - it names another end than the stored one, or an acceptance of another job than the stored one: the advisory
          question of ``core.decide.contradiction`` is opened;
        - it has ``evidence`` and the row has no job id, none yet stored, and has not ended: ``evidence`` is stored
          and, if no lease is live, ``wake_at`` is now (else the lease's end brings it up), so that reconcile reads it.
        A running row that is ``hinted`` when it is written wakes at max(now, ``hint_floor``) if that is earlier,
        with ``not_before`` lowered to it and the source ``webhook`` (INV-26).
        """

    def hold(self, ids: Sequence[str], *, until: datetime, source: DelaySource | None = None) -> None:
        """Move the wake time of due, unleased rows that have not ended, and say why. Nothing is debited or audited.

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

    # --- outside a look -------------------------------------------------------------------------

    def note(
        self,
        operation_id: str,
        entry: Mapping[str, Any],
        *,
        question: Question | None = None,
        errand: Followup | None = None,
        cancel_state: str | None = None,
    ) -> Operation:
        """An audit entry that moves neither state nor schedule, and what comes with it, in one transaction.

        ``question`` must be advisory. ``errand`` is written, or made due again with fresh attempts. ``cancel_state``
        None: it stays. Returns the row as written. Raises OperationNotFound.
        """

    # --- notices of providers -------------------------------------------------------------------

    def receive(self, receipts: Sequence[Receipt]) -> list[bool]:
        """Store each receipt once; False where the notice is known already. Nothing else is written."""

    def hint(self, receipts: Sequence[Receipt]) -> list[str]:
        """Bring the next look of each running operation that is meant forward; returns ids that moved (INV-26).

        Meant: (provider, account, job_id) or (provider, account, operation id). ``hinted`` is set; without a live
        lease ``wake_at`` and ``not_before`` become max(now, ``hint_floor``) if that is earlier, source ``webhook``.
        """

    def receipts_of(self, operation: Operation) -> list[Receipt]:
        """Those that mean this operation, for a job that was accepted after its notice came."""

    # --- results --------------------------------------------------------------------------------

    def result(self, operation_id: str) -> JobResult | None:
        """What is known of its result; None if nobody asked for it."""

    def keep_result(self, result: JobResult) -> None:
        """Insert or replace the record; one row for each operation. A complete one is never replaced."""

    # --- the account gate -----------------------------------------------------------------------

    def gates(self, accounts: Iterable[tuple[str, str]]) -> dict[tuple[str, str], GateState]:
        """Gate of each (provider, account); an account without a row is open."""

    def move_gate(self, provider: str, account: str, before: GateState, after: GateState) -> bool:
        """Compare-and-set on ``before.version``. False: somebody else was first."""

    # --- escalations ----------------------------------------------------------------------------

    def escalation(self, escalation_id: str) -> Escalation:
        """Raises OperationNotFound."""

    def following(self, provider: str, account: str, job_id: str) -> list[str]:
        """Ids of the operations that follow this job, or have followed it."""

    def open_escalations(self, operation_id: str) -> list[Escalation]: ...

    def asks(self, provider: str, account: str, reason: Reason) -> bool:
        """Whether a question with this reason is open for any operation of the account."""

    def resolve(
        self,
        resolution: Resolution,
        wanted: Operation,
        entry: Mapping[str, Any],
        *,
        followups: tuple[Followup, ...] = (),
        redeliver: bool = False,
        errand: Followup | None = None,
        cancel_state: str | None = None,
    ) -> Resolution:
        """Close an escalation and write the operation in one transaction, if both are as the person saw them.

        Compare-and-set on (escalation open, its version) and, if the operation changes, on its fence and state.
        ``wanted`` keeps the fence. A terminal ``wanted`` closes its other open blocking escalation too.
        ``errand`` and ``cancel_state`` as in ``note``, whether or not the question had stopped the operation.
        With ``redeliver`` the operation's undelivered follow-ups become due now, with fresh attempts.
        Returns the resolution as stored (``at`` filled). Raises AlreadyDecided, StaleEvidence.
        """

    def propose(self, escalation_id: str, proposal: Proposal, entry: Mapping[str, Any], *, version: int) -> Escalation:
        """Keep a first person's word, with its audit entry, instead of an earlier one; the version grows.

        ``proposal.at`` is filled by the store. Compare-and-set on (open, version). Raises AlreadyDecided,
        StaleEvidence, OperationNotFound.
        """

    def unanswered(self, reason: Reason, *, since: timedelta, limit: int, after_id: str = "") -> list[Escalation]:
        """Open questions with ``reason`` that were opened at least ``since`` ago, by id, beyond ``after_id``."""

    # --- follow-ups -----------------------------------------------------------------------------

    def take_delivery(self, delivery_id: str, *, owner: str, lease: timedelta) -> Delivery | None:
        """Lease an undelivered row for one attempt; None if it is delivered, leased or not yet due."""

    def close_delivery(self, delivery: Delivery, *, owner: str) -> bool:
        """The handler returned. False: the lease was lost."""

    def fail_delivery(
        self, delivery: Delivery, *, owner: str, error: str, again_in: timedelta | None, question: Question | None
    ) -> None:
        """The handler raised. ``again_in`` None: no further attempt by machine; ``question`` is then opened."""


class Sink(Protocol):
    """Takes a download as it comes. Any method may raise ``Refused`` to end it."""

    def begin(self, answer: Answered) -> None:
        """Status and headers are there (``body`` is empty); called once, before any byte of a 200 or 206."""

    def feed(self, chunk: bytes) -> None: ...


class Refused(Exception):
    """A sink ends a download. Its text is a clean sentence."""


class Transport(Protocol):
    @property
    def slots(self) -> int:
        """Most requests that one call of ``send`` has under way; no more is claimed than can be sent at once."""

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        """Send each request once and yield replies as they complete. Never raises for what a peer does.

        A request that is no GET or HEAD gets a connection of its own: one that was kept may end in the moment it is
        used, which would leave the outcome of a write unknown for nothing.
        """

    def download(
        self, request: Request, table: ProviderTable, sink: Sink, *, total: timedelta, max_bytes: int
    ) -> Answered | NoAnswer:
        """Send one request; stream the body of a 200 or 206 into the sink.

        Returns:
            The answer without the streamed body (other codes: with their body, within the table's limit). A body
            that ends early is ``NoAnswer(CONNECTION_LOST)``, one over ``max_bytes`` has ``Flaw.OVERSIZED``. What the
            sink refuses comes out as ``Refused``.
        """


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

    def report_conflict(self, operation_id: str) -> bool:
        """Ask a worker to write down that this id came with other content. Sent at once. Never raises."""

    def attend(self) -> bool:
        """Ask a worker to do the chores. False: nothing was published. Never raises."""


class Chores(Protocol):
    """What a site does besides operations: notices to people, lapsed questions, figures, signs of life."""

    def beat(self, kind: str) -> None:
        """A sign of life of this process, "sweeper" or "worker"; written rarely. Never raises."""

    def due(self) -> bool:
        """Whether there is something to do. Cheap: asked after each sweep. Never raises."""

    def run(self) -> int:
        """Do what is due, in bounded time; returns how much was done. What fails is tried again later."""


class Tables(Protocol):
    def get(self, table_id: str) -> ProviderTable | None:
        """The newest usable table with this id on this machine; None if there is none."""


class Vault(Protocol):
    """Authenticated encryption of what an operation keeps secret. Bound to the operation: a swapped text is refused."""

    def seal(self, operation_id: str, content: Sealed) -> str:
        """An opaque text; "" for nothing."""

    def open(self, operation_id: str, sealed: str) -> Sealed:
        """Raises VaultError if no key of this site opens it, or it belongs to another operation."""


class Files(Protocol):
    """Where fetched results are kept (Django storage)."""

    def writer(self, operation_id: str, name: str, *, resume: ResultFile | None) -> FileWriter: ...


class FileWriter(Protocol):
    """One file being written. ``file`` tells what is stored; nothing is lost if the process ends between two calls."""

    @property
    def offset(self) -> int:
        """Bytes that are already there: a resumed download asks for the rest."""

    def restart(self) -> None:
        """Forget what is there: the answer begins from the start."""

    def feed(self, chunk: bytes) -> None: ...

    def finish(self) -> ResultFile:
        """Everything came: complete, with size and checksum."""

    def pause(self) -> ResultFile:
        """It ended early: what can be resumed later, or an empty record if the storage cannot append."""


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
    receipts_kept: timedelta = timedelta(days=7)  # how long a notice may come again, or wait for its acceptance


class NoChores:
    """``Chores`` of a runtime that has none."""

    def beat(self, kind: str) -> None: ...

    def due(self) -> bool:
        return False

    def run(self) -> int:
        return 0


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
    vault: Vault
    files: Files
    timing: Timing = field(default_factory=Timing)
    limits: RequestLimits | None = None  # overrides the tables' limits; None: as each table says
    chores: Chores = field(default_factory=NoChores)
    four_eyes: frozenset[Option] = frozenset()  # options that need the word of two people
    stands: Stands = field(default=lambda _proposal, _operation: True)
    lapses: Mapping[Reason, Lapse] = field(default_factory=dict)  # what is chosen for a question nobody answers


class Stands(Protocol):
    def __call__(self, proposal: Proposal, operation: Operation, /) -> bool:
        """Whether the first of two people may still say what they said."""


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
