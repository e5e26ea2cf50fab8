"""What every request of an operation has in common, whatever it asks: table, gate, claim, time, the account's gate.

Used by ``flow.poll``, ``flow.submit`` and ``flow.reconcile``; each of them is a path of its own (R-SUB-1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ParamSpec

from jobtrack.core import gate as gates
from jobtrack.core import sentences_question as say
from jobtrack.core.decide import Stop, Wait, decide_unsent
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.gate import GateState, HoldReason
from jobtrack.core.lease import lease_for, too_late
from jobtrack.core.observation import DelaySource, Observation
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.recover import lapsed
from jobtrack.core.reply import Answered, NoAnswer, Request, Sent, Trouble
from jobtrack.core.sentences_request import STOOD_STILL
from jobtrack.core.table import ProviderTable, RequestLimits
from jobtrack.errors import VaultError
from jobtrack.flow.settle import Looked, settle
from jobtrack.ports import RUNNING, Runtime
from jobtrack.records import Claim

logger = logging.getLogger(__name__)
P = ParamSpec("P")

_ENDLESS = Budget(deadline=datetime.max.replace(tzinfo=UTC), status_requests=1, transport_failures=1, rate_limited=1)
"""Stands in for a budget that does not count yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One operation on its way through one request."""

    claim: Claim
    table: ProviderTable
    gate: GateState
    claimed_s: float  # monotonic, when the claim was asked for
    before: Operation  # the row as it was read before the claim
    operation: Operation  # as claimed, then as it was last written under this claim

    @property
    def lost(self) -> int | None:
        """Fence of the request before, whose worker ended or stood still before it was written; None: there is none."""
        taken_over = self.before.lease is not None and self.operation.fence == self.before.fence + 1
        return self.before.fence if taken_over else None

    def again(self, rows: Sequence[Operation]) -> Turn | None:
        """The turn with its row as it is now; None if the claim was lost meanwhile (R-OWN-1)."""
        for row in rows:
            if row.id == self.operation.id and row.fence == self.operation.fence and row.lease is not None:
                # What was lost before is told once.
                return replace(self, operation=row, before=replace(self.before, lease=None))
        return None

    def now(self, elapsed_s: float) -> datetime:
        """The store's clock, carried on by this process's monotonic one (INV-45)."""
        return self.claim.now + timedelta(seconds=max(elapsed_s - self.claimed_s, 0.0))


def limits_of(runtime: Runtime, table: ProviderTable) -> RequestLimits:
    return runtime.limits or table.limits


# --- before the claim -------------------------------------------------------------------------------


def usable_tables(runtime: Runtime, rows: Sequence[Operation]) -> dict[str, ProviderTable]:
    """The table for each operation that this worker may read with; the others are left alone (rolling deploy)."""
    usable: dict[str, ProviderTable] = {}
    for row in rows:
        table = runtime.tables.get(row.provider)
        if table is not None and table.revision >= row.revision:
            usable[row.id] = table if runtime.limits is None else replace(table, limits=runtime.limits)
        else:
            _without_table(runtime, row)
    return usable


def _without_table(runtime: Runtime, row: Operation) -> None:
    """Nothing is debited and nothing is guessed; after a while a person is asked."""
    timing = runtime.timing
    now = runtime.store.now()
    since = row.missing_since
    if since is not None and now - since < timing.table_missing_limit and now < row.last_instant:
        runtime.store.hold([row.id], until=min(now + timing.table_missing_retry, row.last_instant))
        return
    claims = runtime.store.claim(
        [row.id],
        owner=runtime.token(),
        lease=timing.margin,
        floor=timing.margin,
        debit=False,
        states=frozenset({row.state}),
    )
    for claim in claims:
        operation = claim.operation
        if row.state is OperationState.SUBMITTING:
            sent_by = row.lease.until if row.lease else claim.now
            operation = lapsed(None, operation, sent_by=sent_by, now=claim.now)
        marked = replace(operation, missing_since=since or claim.now)
        floor = max(claim.now + timing.table_missing_retry, row.not_before or claim.now)
        # Its own limits need no table; before acceptance they are the business of its submission.
        limited = marked if marked.accepted_at is not None else replace(marked, budget=_ENDLESS)
        decision = decide_unsent(replace(limited, not_before=floor), now=claim.now)
        if isinstance(decision, Wait) and since is not None:
            detail = say.NO_TABLE.of(table=repr(row.provider), count=row.revision)
            decision = Stop(question=Question(reason=Reason.TABLE_MISSING, detail=detail))
        taken_over = row.lease is not None and claim.operation.fence == row.fence + 1
        lost = row.fence if taken_over else None
        settle(runtime, marked, decision, event="table_missing", table=None, now=claim.now, lost=lost)


def pass_gates(
    runtime: Runtime, rows: Sequence[Operation], tables: Mapping[str, ProviderTable]
) -> tuple[dict[str, GateState], dict[str, GateState]]:
    """Ask each account's gate: who may send, and who is held but must be told of a limit; each with its gate.

    Any other held row only moves its wake time; nothing is debited.
    """
    accounts = {(row.provider, row.account) for row in rows}
    known = runtime.store.gates(accounts) if accounts else {}
    ready: dict[str, GateState] = {}
    told: dict[str, GateState] = {}
    for row in rows:
        account = (row.provider, row.account)
        gate = known.get(account, gates.OPEN)
        if gate.reason is HoldReason.NONE:
            ready[row.id] = gate
            continue
        now = runtime.store.now()
        passed = _ask(runtime, row, gate, tables[row.id], now)
        if isinstance(passed, GateState):
            known[account] = ready[row.id] = passed
        elif now >= row.next_limit:
            told[row.id] = gate
        else:
            spread = timedelta(seconds=2) * runtime.draw()
            until = min(passed.until + spread, row.next_limit)
            runtime.store.hold([row.id], until=until, source=DelaySource.GATE)
    return ready, told


def _ask(
    runtime: Runtime, row: Operation, gate: GateState, table: ProviderTable, now: datetime
) -> GateState | gates.Held:
    """The gate with which the operation may send, or until when it must wait."""
    if now >= row.last_instant:
        return gates.Held(until=now)  # takes no probe: the claim would grant no request
    if row.delay_source == DelaySource.GATE.value:  # it has waited here before: who closed it has asked by now
        gate = _questioned(runtime, row, gate, now)
    answer = gates.ask(gate, row.id, now, table.gate)
    if isinstance(answer, gates.Held):
        return answer
    if answer.after is None:
        return gate
    if runtime.store.move_gate(row.provider, row.account, gate, answer.after):
        return replace(answer.after, version=gate.version + 1)
    return gates.Held(until=now + table.gate.breaker_hold)


def _questioned(runtime: Runtime, row: Operation, gate: GateState, now: datetime) -> GateState:
    """A gate that waits for a person while nobody is asked opens for one probe.

    Its question may have been answered by a worker that ended before it opened the gate, overtaken by late evidence,
    or never written. Otherwise the account would stand still until each of its operations meets its deadline.
    """
    waits = gate.reason is HoldReason.AUTH and gate.held_until is None
    if not waits or runtime.store.asks(row.provider, row.account, Reason.AUTHORIZATION_DENIED):
        return gate
    after = gates.repaired(gate, now)
    moved = runtime.store.move_gate(row.provider, row.account, gate, after)
    return replace(after, version=gate.version + 1) if moved else gate


# --- the claim --------------------------------------------------------------------------------------


def claim(
    runtime: Runtime,
    passed: Mapping[str, GateState],
    tables: Mapping[str, ProviderTable],
    before: Mapping[str, Operation],
    *,
    debit: bool = True,
    states: frozenset[OperationState] = RUNNING,
) -> list[Turn]:
    """Take the rows that passed their gates; those that are not due, or in another state by now, are left out."""
    ids = list(passed)
    if not ids:
        return []
    started = runtime.elapsed()
    lease = max(lease_for(limits_of(runtime, tables[i]), runtime.timing.margin) for i in ids)
    floor = max(tables[i].polling.min_interval for i in ids)
    owner = runtime.token()
    claims = runtime.store.claim(ids, owner=owner, lease=lease, floor=max(floor, lease), debit=debit, states=states)
    turns = [
        Turn(claim=each, table=tables[i], gate=passed[i], claimed_s=started, before=before[i], operation=each.operation)
        for each in claims
        for i in (each.operation.id,)
    ]
    if len(turns) < len(ids):
        _repark_early(runtime, set(ids) - {turn.operation.id for turn in turns})
    return turns


def _repark_early(runtime: Runtime, ids: set[str]) -> None:
    """A wake-up that came a moment too early asks again once; anything else that cannot be claimed is stale."""
    now = runtime.store.now()
    for row in runtime.store.get(sorted(ids)):
        if row.wake_at is None or row.lease is not None:
            continue
        delay = row.wake_at - now
        if timedelta(0) < delay <= runtime.timing.early:
            runtime.scheduler.wake(row.id, fence=row.fence, delay=delay)


# --- the request ------------------------------------------------------------------------------------


def stood_still(runtime: Runtime, turn: Turn) -> NoAnswer | None:
    """A worker that stood still since its claim gives up, unsent: its lease may be another's by now (INV-14)."""
    since_claim = timedelta(seconds=runtime.elapsed() - turn.claimed_s)
    if too_late(limits_of(runtime, turn.table), runtime.timing.margin, since_claim):
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.LATE, detail=STOOD_STILL.of())
    return None


def hurried(runtime: Runtime, turn: Turn) -> bool:
    """Whether half of the time is used in which the turn's request may be sent after its claim."""
    since_claim = timedelta(seconds=runtime.elapsed() - turn.claimed_s)
    return too_late(limits_of(runtime, turn.table), runtime.timing.margin, since_claim * 2)


def exchange(
    runtime: Runtime, turns: Sequence[Turn], requests: Sequence[Request | NoAnswer]
) -> Iterator[tuple[Turn, Answered | NoAnswer]]:
    """Send what can be sent and yield each turn with its reply as it completes; what was given up comes last.

    Sending comes first: nothing may take time between a claim and its request (INV-14).
    """
    waiting: dict[tuple[str, int], Turn] = {}
    sending: list[tuple[Request, ProviderTable]] = []
    unsent: list[tuple[Turn, NoAnswer]] = []
    for turn, request in zip(turns, requests, strict=True):
        if isinstance(request, NoAnswer):
            unsent.append((turn, request))
        else:
            waiting[request.operation_id, request.fence] = turn
            sending.append((request, turn.table))
    if sending:
        for request, reply in runtime.transport.send(sending):
            yield waiting.pop((request.operation_id, request.fence)), reply
    yield from unsent


def reply_time(runtime: Runtime, turn: Turn, reply: Answered | NoAnswer) -> datetime:
    """The store's clock when the reply was complete."""
    late = isinstance(reply, NoAnswer) and reply.trouble is Trouble.LATE
    # A worker that stood still cannot tell on which side of the claim that was; its own count would run ahead.
    return runtime.store.now() if late else turn.now(runtime.elapsed())


# --- after the answer -------------------------------------------------------------------------------


def move_gate(
    runtime: Runtime, turn: Turn, observation: Observation, now: datetime
) -> tuple[bool, tuple[Question, ...]]:
    """Store what the answer means for the whole account; True if this answer closed or moved the gate.

    A gate that cannot be stored is left as it is: the answer itself must be written all the same (INV-15).
    """
    try:
        return _moved_gate(runtime, turn, observation, now)
    except Exception:
        logger.exception("the gate of %s / %s could not be moved", turn.operation.provider, turn.operation.account)
        return False, ()


def _moved_gate(
    runtime: Runtime, turn: Turn, observation: Observation, now: datetime
) -> tuple[bool, tuple[Question, ...]]:
    operation, policy = turn.operation, turn.table.gate
    before = turn.gate
    for _ in range(3):
        after = gates.after(before, observation, now, policy)
        if after is before:
            return False, ()
        if runtime.store.move_gate(operation.provider, operation.account, before, after):
            return True, _held_long(observation, after, turn.table)
        account = (operation.provider, operation.account)
        before = runtime.store.gates([account]).get(account, gates.OPEN)
    return False, ()


def _held_long(observation: Observation, gate: GateState, table: ProviderTable) -> tuple[Question, ...]:
    wait = observation.guidance.wait if observation.guidance else None
    if gate.reason is not HoldReason.GUIDANCE or wait is None or wait <= table.gate.max_hold:
        return ()
    detail = say.ASKED_TO_WAIT.of(wait=wait, longest=table.gate.max_hold)
    return (Question(reason=Reason.GUIDANCE_TOO_LONG, detail=detail),)


class Batch:
    """Does one thing after another. What one raises costs no other its turn; the first is raised at the end."""

    def __init__(self) -> None:
        self._looked: list[Looked] = []
        self._failed: list[Exception] = []

    def run(self, work: Callable[P, Iterable[Looked]], *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            self._looked += work(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - raised by ``end``
            self._failed.append(error)

    def end(self) -> list[Looked]:
        """All that came of it. Raises the first exception that was met."""
        if self._failed:
            raise self._failed[0]
        return self._looked


def conclude_all(
    replies: Iterable[tuple[Turn, Answered | NoAnswer]], conclude: Callable[[Turn, Answered | NoAnswer], Looked]
) -> list[Looked]:
    """Conclude each turn with its reply. An answer that cannot be stored must not cost the others theirs."""
    batch = Batch()
    for turn, reply in replies:
        batch.run(_one, conclude, turn, reply)
    return batch.end()


def _one(
    conclude: Callable[[Turn, Answered | NoAnswer], Looked], turn: Turn, reply: Answered | NoAnswer
) -> tuple[Looked]:
    return (conclude(turn, reply),)


def seal_broken(runtime: Runtime, turn: Turn, error: VaultError) -> Looked:
    """What the operation keeps encrypted cannot be read here: nothing can be sent, and only a person can help."""
    stop = Stop(question=Question(reason=Reason.SEAL_BROKEN, detail=error.message))
    now = runtime.store.now()
    return settle(runtime, turn.operation, stop, event="seal_broken", table=turn.table, now=now, lost=turn.lost)
