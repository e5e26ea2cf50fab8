"""One look at each of some running operations, from the wake-up to the next one (DESIGN: one poll).

Nothing here decides anything: `core` says what an answer means and what follows; this file spends, sends and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from jobtrack.core import gate as gates
from jobtrack.core.decide import charge, decide, decide_unsent, guided, seen
from jobtrack.core.observation import DelaySource, Kind, Observation
from jobtrack.core.observe import observe
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.reply import NoAnswer, Reply, Request, Sent, Trouble
from jobtrack.core.request import status_request, target_allowed
from jobtrack.core.sentences_request import START_ADDRESS_OVER
from jobtrack.errors import UsageError, VaultError
from jobtrack.flow.settle import Looked, settle
from jobtrack.flow.turn import (
    Batch,
    Turn,
    claim,
    conclude_all,
    exchange,
    move_gate,
    pass_gates,
    reply_time,
    seal_broken,
    stood_still,
    usable_tables,
)
from jobtrack.ports import Runtime


def poll(runtime: Runtime, ids: Sequence[str]) -> list[Looked]:
    """Look at each operation that is due; quietly skip the others. A message is only a hint, the row is the truth.

    Args:
        ids: operation ids; unknown, finished, leased or early ones are harmless.

    Returns:
        One item for each operation that was claimed.
    """
    return poll_rows(runtime, runtime.store.get(list(dict.fromkeys(ids))))


def poll_rows(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    """As ``poll``, for rows that were just read; those that do not run are left out."""
    running = [row for row in rows if row.state is OperationState.RUNNING and row.wake_at is not None]
    slots = runtime.transport.slots
    batch = Batch()
    # A claimed operation that waits for a free connection spends its lease on waiting: claim only what can be sent.
    for start in range(0, len(running), slots):
        batch.run(_look, runtime, running[start : start + slots])
    return batch.end()


def _look(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    tables = usable_tables(runtime, rows)
    ready, told = pass_gates(runtime, [row for row in rows if row.id in tables], tables)
    before = {row.id: row for row in rows}
    turns = claim(runtime, ready, tables, before) + claim(runtime, told, tables, before, debit=False)
    looked = [_conclude_unsent(runtime, turn) for turn in turns if not turn.claim.granted]
    looked += _send(runtime, [turn for turn in turns if turn.claim.granted])
    return looked


def _send(runtime: Runtime, turns: Sequence[Turn]) -> list[Looked]:
    asking: list[Turn] = []
    requests: list[Request | NoAnswer] = []
    broken: list[tuple[Turn, VaultError]] = []
    for turn in turns:
        try:
            requests.append(_request(runtime, turn))
            asking.append(turn)
        except VaultError as error:
            broken.append((turn, error))
    looked = conclude_all(exchange(runtime, asking, requests), lambda turn, reply: _conclude(runtime, turn, reply))
    return looked + [seal_broken(runtime, turn, error) for turn, error in broken]


def _request(runtime: Runtime, turn: Turn) -> Request | NoAnswer:
    """The request, or why none may be sent although it was debited."""
    operation, table = turn.operation, turn.table
    late = stood_still(runtime, turn)
    if late is not None:
        return late
    secrets = runtime.vault.open(operation.id, operation.sealed)
    url = secrets.status_url or operation.status_url
    if url and not target_allowed(url, table, operation.params):
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED, detail=START_ADDRESS_OVER.of())
    try:
        return status_request(table, operation, status_url=secrets.status_url, handle=secrets.handle)
    except UsageError as error:
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED, detail=error.message)


def _conclude_unsent(runtime: Runtime, turn: Turn) -> Looked:
    now = runtime.store.now()
    decision = decide_unsent(turn.operation, now=now, table=turn.table)
    return settle(runtime, turn.operation, decision, event="look", table=turn.table, now=now, lost=turn.lost)


def _conclude(runtime: Runtime, turn: Turn, reply: Reply) -> Looked:
    now = reply_time(runtime, turn, reply)
    observation = observe(turn.table, reply, operation=turn.operation, now=now)
    moved, told = move_gate(runtime, turn, observation, now)
    operation = _charged(turn.operation, observation, now)
    draw = runtime.draw()
    decision = decide(turn.table, operation, observation, now=now, draw=draw)
    if observation.kind is Kind.DENIED and not moved:
        # Another operation's denial already asks about this account: one question, not thousands.
        recheck = max(now + gates.RECHECK, operation.not_before or now)
        held = replace(operation, not_before=recheck, delay_source=DelaySource.GATE.value)
        decision = decide_unsent(held, now=now, table=turn.table)
    unsent = isinstance(reply, NoAnswer) and reply.sent is Sent.NEVER
    return settle(
        runtime,
        seen(operation, observation, turn.table, now),
        decision,
        event="poll",
        table=turn.table,
        now=now,
        observation=observation,
        draw=draw,
        extra=told,
        lost=turn.lost,
        sent_at=None if unsent else turn.claim.now,
    )


def _charged(operation: Operation, observation: Observation, now: datetime) -> Operation:
    """The row with what this answer costs, and with the wait it asks for."""
    return guided(replace(operation, spent=charge(operation.spent, observation)), observation, now)
