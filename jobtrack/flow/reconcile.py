"""The next step of operations that are not known to be accepted: send, look up, or ask a person.

(R-SUB-3 to R-SUB-5, INV-15, INV-18, INV-19) What is permitted is decided by ``core.recover``; this file claims and
hands each operation to what its plan says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import assert_never

from jobtrack.core import gate as gates
from jobtrack.core.decide import Stop
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.recover import Doubt, Follow, LookUp, Plan, Rest, Send, lapsed, plan
from jobtrack.flow.attempt import attempt
from jobtrack.flow.fate import Read, scene_of, write_fate
from jobtrack.flow.look_up import look_up
from jobtrack.flow.settle import Looked, write
from jobtrack.flow.turn import Batch, Turn, claim, pass_gates, usable_tables
from jobtrack.ports import Runtime
from jobtrack.records import Committed

DOUBTFUL = frozenset({OperationState.UNCONFIRMED, OperationState.ESCALATED})
"""States from which a doubt is settled: the outcome of a submission is unknown, or evidence came after a person was
asked."""

UNSENT = frozenset({OperationState.READY})
"""The state of an operation of which the provider has no job."""

OUT = frozenset({OperationState.SUBMITTING})
"""The state of a submission that is out; due only once the lease of its worker is over."""


def reconcile_rows(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    """Take the next step of each operation whose submission is in doubt; those that are not are left out."""
    batch = Batch()
    out = [row for row in rows if row.state in OUT and row.wake_at is not None]
    doubtful = [row for row in rows if row.state in DOUBTFUL and row.wake_at is not None]
    if out:
        batch.run(_lapse, runtime, out)
        doubtful += [row for row in runtime.store.get([row.id for row in out]) if row.state in DOUBTFUL]
    batch.run(_steps, runtime, doubtful, DOUBTFUL)
    return batch.end()


def submit_rows(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    """Submit each operation that is ready and due; others are left out."""
    return _steps(runtime, [row for row in rows if row.state in UNSENT and row.wake_at is not None], UNSENT)


def _lapse(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    """The worker of a submission ended, or stood still, before it wrote an answer: that is a doubt, whoever asks.

    No gate is asked, since nothing is sent: behind a closed one the recovery deadline would never begin.
    """
    tables = usable_tables(runtime, rows)
    before = {row.id: row for row in rows}
    known = {row.id: gates.OPEN for row in rows if row.id in tables}
    batch = Batch()
    for turn in claim(runtime, known, tables, before, debit=False, states=OUT):
        batch.run(_lapsed, runtime, turn)
    return batch.end()


def _lapsed(runtime: Runtime, turn: Turn) -> list[Looked]:
    now = turn.claim.now
    sent_by = turn.before.lease.until if turn.before.lease else now
    doubtful = lapsed(turn.table, turn.operation, sent_by=sent_by, now=now)
    until = doubtful.recover_until or now
    fate = Doubt(why=doubtful.doubt, http=None, at=now, source=DelaySource.LOCAL_BACKOFF, until=until)
    return [write_fate(runtime, turn, scene_of(runtime, turn, doubtful, now), fate, Read(event="lapsed"))]


def _steps(runtime: Runtime, rows: Sequence[Operation], states: frozenset[OperationState]) -> list[Looked]:
    slots = runtime.transport.slots
    batch = Batch()
    for start in range(0, len(rows), slots):
        batch.run(_step, runtime, rows[start : start + slots], states)
    return batch.end()


def _step(runtime: Runtime, rows: Sequence[Operation], states: frozenset[OperationState]) -> list[Looked]:
    tables = usable_tables(runtime, rows)
    before = {row.id: row for row in rows}
    known = [row for row in rows if row.id in tables]
    ready, told = pass_gates(runtime, [row for row in known if not row.evidence], tables)
    ready |= {row.id: gates.OPEN for row in known if row.evidence}  # what is known already needs no request
    # Nothing is debited here: what a claim permits is committed, with its debit, before it is sent.
    held = claim(runtime, told, tables, before, debit=False, states=states)
    turns = claim(runtime, ready, tables, before, debit=False, states=states)
    planned = [(turn, plan(turn.table, turn.operation, now=turn.claim.now)) for turn in turns]
    batch = Batch()
    # Submissions go first: they may only be sent shortly after their claim. A look-up renews its lease itself.
    batch.run(attempt, runtime, [(turn, step) for turn, step in planned if isinstance(step, Send)])
    for turn in held:
        batch.run(_told, runtime, turn)
    for turn, step in planned:
        batch.run(_take, runtime, turn, step)
    return batch.end()


def _take(runtime: Runtime, turn: Turn, step: Plan) -> list[Looked]:
    match step:
        case Send():
            return []  # sent already
        case LookUp():
            return [look_up(runtime, turn)]
        case Rest():
            return [_rested(runtime, turn, step)]
        case Follow() | Stop():
            return [_settled(runtime, turn, step)]
    assert_never(step)


def _told(runtime: Runtime, turn: Turn) -> list[Looked]:
    """The account's gate is closed, and yet something must be said: its time is over, or a business deadline came."""
    step = plan(turn.table, turn.operation, now=turn.claim.now)
    if isinstance(step, Follow | Stop):
        return [_settled(runtime, turn, step)]
    return [_rested(runtime, turn, Rest(at=turn.claim.now + timedelta(seconds=30)))]


def _settled(runtime: Runtime, turn: Turn, step: Follow | Stop) -> Looked:
    if isinstance(step, Follow) and turn.operation.state is OperationState.READY:
        submitting = _as_submitting(runtime, turn)
        if submitting is None:
            return Looked(operation=turn.operation, decision=step, committed=Committed.STALE, sent=False)
        turn = submitting
    event = "evidence" if isinstance(step, Follow) else "submit"
    return write_fate(runtime, turn, scene_of(runtime, turn, turn.operation, turn.claim.now), step, Read(event=event))


def _as_submitting(runtime: Runtime, turn: Turn) -> Turn | None:
    """A person had granted one more submission when the late answer came: none is sent, the job is there."""
    wanted = replace(turn.operation, state=OperationState.SUBMITTING)
    written = write(runtime, wanted, event="evidence", now=turn.claim.now, table=turn.table, details={}, lost=turn.lost)
    return turn.again(runtime.store.get([wanted.id])) if written is Committed.DONE else None


def _rested(runtime: Runtime, turn: Turn, step: Rest) -> Looked:
    """Woken too early to send: the row goes back as it was, with its time."""
    scene = scene_of(runtime, turn, turn.operation, turn.claim.now)
    return write_fate(runtime, turn, scene, step, Read(event="submit"))
