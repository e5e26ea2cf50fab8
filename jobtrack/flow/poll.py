"""One look at each of some running operations, from the wake-up to the next one (DESIGN: one poll).

Nothing here decides anything: `core` says what an answer means and what follows; this file spends, sends and writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from jobtrack.core import gate as gates
from jobtrack.core.decide import Stop, Wait, charge, decide, decide_unsent
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.gate import GateState, HoldReason
from jobtrack.core.lease import lease_for, too_late
from jobtrack.core.observation import DelaySource, Kind, Observation
from jobtrack.core.observe import observe
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.reply import Answered, NoAnswer, Reply, Request, Sent, Trouble
from jobtrack.core.request import status_request, target_allowed
from jobtrack.core.table import ProviderTable, RequestLimits
from jobtrack.errors import UsageError
from jobtrack.flow.settle import Looked, settle
from jobtrack.ports import Runtime
from jobtrack.records import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One operation on its way through one look."""

    claim: Claim
    table: ProviderTable
    gate: GateState
    claimed_s: float  # monotonic, when the claim was asked for
    lost: int | None = None  # fence of the look before, if it never came to its end

    def now(self, elapsed_s: float) -> datetime:
        """The store's clock, carried on by this process's monotonic one (INV-45)."""
        return self.claim.now + timedelta(seconds=max(elapsed_s - self.claimed_s, 0.0))


def poll(runtime: Runtime, ids: Sequence[str]) -> list[Looked]:
    """Look at each operation that is due; quietly skip the others. A message is only a hint, the row is the truth.

    Args:
        ids: operation ids; unknown, finished, leased or early ones are harmless.

    Returns:
        One item for each operation that was claimed.
    """
    distinct = list(dict.fromkeys(ids))
    slots = runtime.transport.slots
    looked: list[Looked] = []
    # A claimed operation that waits for a free connection spends its lease on waiting: claim only what can be sent.
    for start in range(0, len(distinct), slots):
        looked += _look(runtime, distinct[start : start + slots])
    return looked


def _look(runtime: Runtime, ids: Sequence[str]) -> list[Looked]:
    rows = _running(runtime, ids)
    tables = _usable_tables(runtime, rows)
    ready, told = _pass_gates(runtime, [row for row in rows if row.id in tables], tables)
    before = {row.id: row for row in rows}
    turns = _claim(runtime, ready, tables, before) + _claim(runtime, told, tables, before, debit=False)
    looked = [_conclude_unsent(runtime, turn) for turn in turns if not turn.claim.granted]
    looked += _send(runtime, [turn for turn in turns if turn.claim.granted])
    return looked


# --- before the claim -------------------------------------------------------------------------------


def _running(runtime: Runtime, ids: Sequence[str]) -> list[Operation]:
    rows = runtime.store.get(ids)
    return [row for row in rows if row.state is OperationState.RUNNING and row.wake_at is not None]


def _usable_tables(runtime: Runtime, rows: Sequence[Operation]) -> dict[str, ProviderTable]:
    """The table for each operation that this worker may read with; the others are left alone (rolling deploy)."""
    usable: dict[str, ProviderTable] = {}
    for row in rows:
        table = runtime.tables.get(row.provider)
        if table is not None and table.revision >= row.revision:
            usable[row.id] = table
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
    for claim in _claim_rows(runtime, [row.id], lease=timing.margin, floor=timing.margin, debit=False):
        marked = replace(claim.operation, missing_since=since or claim.now)
        floor = max(claim.now + timing.table_missing_retry, row.not_before or claim.now)
        # Its own limits need no table.
        decision = decide_unsent(replace(marked, not_before=floor), now=claim.now)
        if isinstance(decision, Wait) and since is not None:
            detail = f"No worker has a usable table {row.provider!r} of revision {row.revision} or newer."
            decision = Stop(question=Question(reason=Reason.TABLE_MISSING, detail=detail))
        lost = _lost(row, claim)
        settle(runtime, marked, decision, event="table_missing", table=None, now=claim.now, lost=lost)


def _pass_gates(
    runtime: Runtime, rows: Sequence[Operation], tables: dict[str, ProviderTable]
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
    answer = gates.ask(gate, row.id, now, table.gate)
    if isinstance(answer, gates.Held):
        return answer
    if answer.after is None:
        return gate
    if runtime.store.move_gate(row.provider, row.account, gate, answer.after):
        return replace(answer.after, version=gate.version + 1)
    return gates.Held(until=now + table.gate.breaker_hold)


# --- the claim --------------------------------------------------------------------------------------


def _claim_rows(
    runtime: Runtime, ids: Sequence[str], *, lease: timedelta, floor: timedelta, debit: bool = True
) -> list[Claim]:
    return runtime.store.claim(ids, owner=runtime.token(), lease=lease, floor=floor, debit=debit)


def _claim(
    runtime: Runtime,
    passed: dict[str, GateState],
    tables: dict[str, ProviderTable],
    before: dict[str, Operation],
    *,
    debit: bool = True,
) -> list[_Turn]:
    ids = list(passed)
    if not ids:
        return []
    started = runtime.elapsed()
    lease = max(lease_for(_limits(runtime, tables[i]), runtime.timing.margin) for i in ids)
    floor = max(tables[i].polling.min_interval for i in ids)
    turns = []
    for claim in _claim_rows(runtime, ids, lease=lease, floor=max(floor, lease), debit=debit):
        i = claim.operation.id
        lost = _lost(before[i], claim)
        turns.append(_Turn(claim=claim, table=tables[i], gate=passed[i], claimed_s=started, lost=lost))
    if len(turns) < len(ids):
        _repark_early(runtime, set(ids) - {turn.claim.operation.id for turn in turns})
    return turns


def _lost(before: Operation, claim: Claim) -> int | None:
    """Fence of the look whose lease this claim takes over: its worker ended, or stood still, before it was written."""
    taken_over = before.lease is not None and claim.operation.fence == before.fence + 1
    return before.fence if taken_over else None


def _repark_early(runtime: Runtime, ids: set[str]) -> None:
    """A wake-up that came a moment too early asks again once; anything else that cannot be claimed is stale."""
    now = runtime.store.now()
    for row in runtime.store.get(sorted(ids)):
        if row.state is not OperationState.RUNNING or row.wake_at is None or row.lease is not None:
            continue
        delay = row.wake_at - now
        if timedelta(0) < delay <= runtime.timing.early:
            runtime.scheduler.wake(row.id, fence=row.fence, delay=delay)


def _limits(runtime: Runtime, table: ProviderTable) -> RequestLimits:
    return runtime.limits or table.limits


# --- the request ------------------------------------------------------------------------------------


def _send(runtime: Runtime, turns: Sequence[_Turn]) -> list[Looked]:
    unsent: list[tuple[_Turn, NoAnswer]] = []
    waiting: dict[tuple[str, int], _Turn] = {}
    requests: list[tuple[Request, ProviderTable]] = []
    for turn in turns:
        request = _request(runtime, turn)
        if isinstance(request, NoAnswer):
            unsent.append((turn, request))
        else:
            waiting[request.operation_id, request.fence] = turn
            requests.append((request, turn.table))
    # Sending comes first: nothing may take time between a claim and its request (INV-14).
    answered = (
        (waiting.pop((request.operation_id, request.fence)), reply) for request, reply in _replies(runtime, requests)
    )
    looked: list[Looked] = []
    failed: list[Exception] = []
    for turn, reply in chain(answered, unsent):
        try:
            looked.append(_conclude(runtime, turn, reply))
        except Exception as error:  # noqa: BLE001 - an answer that cannot be stored must not cost the others theirs
            failed.append(error)
    if failed:
        raise failed[0]
    return looked


def _replies(
    runtime: Runtime, requests: Sequence[tuple[Request, ProviderTable]]
) -> Iterator[tuple[Request, Answered | NoAnswer]]:
    if requests:
        yield from runtime.transport.send(requests)


def _request(runtime: Runtime, turn: _Turn) -> Request | NoAnswer:
    """The request, or why none may be sent although it was debited."""
    operation, table = turn.claim.operation, turn.table
    since_claim = timedelta(seconds=runtime.elapsed() - turn.claimed_s)
    if too_late(_limits(runtime, table), runtime.timing.margin, since_claim):
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.LATE, detail="The worker stood still after its claim.")
    if operation.status_url and not target_allowed(operation.status_url, table, operation.params):
        detail = "The address fixed at the start is no longer allowed by the table."
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED, detail=detail)
    try:
        return status_request(table, operation)
    except UsageError as error:
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED, detail=error.message)


# --- after the answer -------------------------------------------------------------------------------


def _conclude_unsent(runtime: Runtime, turn: _Turn) -> Looked:
    now = runtime.store.now()
    decision = decide_unsent(turn.claim.operation, now=now, table=turn.table)
    return settle(runtime, turn.claim.operation, decision, event="look", table=turn.table, now=now, lost=turn.lost)


def _conclude(runtime: Runtime, turn: _Turn, reply: Reply) -> Looked:
    late = isinstance(reply, NoAnswer) and reply.trouble is Trouble.LATE
    # A worker that stood still cannot tell on which side of the claim that was; its own count would run ahead.
    now = runtime.store.now() if late else turn.now(runtime.elapsed())
    observation = observe(turn.table, reply, operation=turn.claim.operation, now=now)
    moved, told = _move_gate(runtime, turn, observation, now)
    operation = _charged(turn.claim.operation, observation, now)
    draw = runtime.draw()
    decision = decide(turn.table, operation, observation, now=now, draw=draw)
    if observation.kind is Kind.DENIED and not moved:
        # Another operation's denial already asks about this account: one question, not thousands.
        recheck = max(now + gates.RECHECK, operation.not_before or now)
        held = replace(operation, not_before=recheck, delay_source=DelaySource.GATE.value)
        decision = decide_unsent(held, now=now, table=turn.table)
    return settle(
        runtime,
        _seen(operation, observation, turn.table, now),
        decision,
        event="poll",
        table=turn.table,
        now=now,
        observation=observation,
        draw=draw,
        extra=told,
        lost=turn.lost,
        sent=not (isinstance(reply, NoAnswer) and reply.sent is Sent.NEVER),
    )


def _charged(operation: Operation, observation: Observation, now: datetime) -> Operation:
    """The row with what this answer costs, and with the wait it asks for: a person's decision keeps to it (INV-04)."""
    wait = observation.guidance.wait if observation.guidance else None
    floor = operation.not_before if wait is None else max(now + wait, operation.not_before or now)
    return replace(operation, spent=charge(operation.spent, observation), not_before=floor)


def _move_gate(
    runtime: Runtime, turn: _Turn, observation: Observation, now: datetime
) -> tuple[bool, tuple[Question, ...]]:
    """Store what the answer means for the whole account; True if this answer closed or moved the gate."""
    operation, policy = turn.claim.operation, turn.table.gate
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
    detail = f"The provider asked to wait {wait}; the account is held for {table.gate.max_hold} at most."
    return (Question(reason=Reason.GUIDANCE_TOO_LONG, detail=detail),)


_NAMES_A_STATE = frozenset({Kind.UNKNOWN_STATE, Kind.INVALID_RESULT})
"""Answers that name a state although nothing can be concluded from it."""


def _seen(operation: Operation, observation: Observation, table: ProviderTable, now: datetime) -> Operation:
    """The row with what this answer showed; a failed look never erases an earlier fact (R-FACT-3)."""
    seen = replace(
        operation,
        last_http=observation.http,
        revision=max(operation.revision, table.revision),
        table_digest=table.digest,
        missing_since=None,
        error=observation.error or operation.error,
    )
    if not observation.readable and not (observation.kind in _NAMES_A_STATE and observation.label):
        return seen
    changed = observation.label != operation.provider_state
    return replace(
        seen,
        observed_at=now,
        provider_state=observation.label,
        provider_state_since=now if changed else operation.provider_state_since,
        progress=observation.progress or operation.progress,
        expires_at=observation.expires_at or operation.expires_at,
        kept=dict(observation.kept) if observation.kind is Kind.SUCCESS else operation.kept,
    )
