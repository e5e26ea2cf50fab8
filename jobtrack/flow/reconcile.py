"""The way out of an unknown submission: ask the provider, send again where that is permitted, or ask a person.

(R-SUB-3 to R-SUB-5, INV-15, INV-18, INV-19) What is permitted is decided by ``core.recover``; this file claims,
commits each intent before its request, sends, and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from jobtrack.core import gate as gates
from jobtrack.core.compose import lookup_request
from jobtrack.core.decide import Stop
from jobtrack.core.lease import lease_for
from jobtrack.core.lookup import read_lookup
from jobtrack.core.observation import DelaySource, Kind
from jobtrack.core.operation import Lease, Operation, OperationState
from jobtrack.core.recover import Doubt, Follow, LookUp, Rest, Scene, Send, after_lookup, lapsed, plan
from jobtrack.core.reply import Answered, NoAnswer, Request, Sent, Trouble
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover, LookupKind, LookupSeen
from jobtrack.errors import UsageError, VaultError
from jobtrack.flow.attempt import attempt
from jobtrack.flow.fate import Read, scene_of, write_fate
from jobtrack.flow.settle import Looked, write
from jobtrack.flow.turn import (
    Turn,
    claim,
    limits_of,
    move_gate,
    pass_gates,
    reply_time,
    seal_broken,
    stood_still,
    usable_tables,
)
from jobtrack.ports import Runtime
from jobtrack.records import Committed

DOUBTFUL = frozenset({OperationState.SUBMITTING, OperationState.UNCONFIRMED, OperationState.ESCALATED})
"""States from which a doubt is settled: the lease of a submission ran out, or its outcome is unknown, or evidence
came after a person was asked."""

UNSENT = frozenset({OperationState.READY})
"""The state of an operation of which the provider has no job."""


def reconcile_rows(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    """Take the next step of each operation whose submission is in doubt; those that are not are left out."""
    return _steps(runtime, [row for row in rows if row.state in DOUBTFUL and row.wake_at is not None], DOUBTFUL)


def submit_rows(runtime: Runtime, rows: Sequence[Operation]) -> list[Looked]:
    """Submit each operation that is ready and due; others are left out."""
    return _steps(runtime, [row for row in rows if row.state in UNSENT and row.wake_at is not None], UNSENT)


def _steps(runtime: Runtime, rows: Sequence[Operation], states: frozenset[OperationState]) -> list[Looked]:
    slots = runtime.transport.slots
    looked: list[Looked] = []
    for start in range(0, len(rows), slots):
        looked += _step(runtime, rows[start : start + slots], states)
    return looked


def _step(runtime: Runtime, rows: Sequence[Operation], states: frozenset[OperationState]) -> list[Looked]:
    tables = usable_tables(runtime, rows)
    before = {row.id: row for row in rows}
    known = [row for row in rows if row.id in tables]
    ready, told = pass_gates(runtime, [row for row in known if not row.evidence], tables)
    ready |= {row.id: gates.OPEN for row in known if row.evidence}  # what is known already needs no request
    # Nothing is debited here: what a claim permits is committed, with its debit, before it is sent.
    held = claim(runtime, told, tables, before, debit=False, states=states)
    looked = [_told(runtime, turn) for turn in held]
    permitted: list[tuple[Turn, Send]] = []
    for claimed in claim(runtime, ready, tables, before, debit=False, states=states):
        turn = _lapsed(claimed)
        step = plan(turn.table, turn.operation, now=turn.claim.now)
        match step:
            case Send():
                permitted.append((turn, step))
            case LookUp():
                looked.append(_look_up(runtime, turn))
            case Rest():
                looked.append(_rested(runtime, turn, step))
            case Follow() | Stop():
                looked.append(_settled(runtime, turn, step))
    return looked + attempt(runtime, permitted)


def _lapsed(turn: Turn) -> Turn:
    if turn.before.state is not OperationState.SUBMITTING:
        return turn
    sent_by = turn.before.lease.until if turn.before.lease else turn.claim.now
    doubtful = lapsed(turn.table, turn.operation, sent_by=sent_by, now=turn.claim.now)
    return replace(turn, operation=doubtful)


def _told(runtime: Runtime, turn: Turn) -> Looked:
    """The account's gate is closed, and yet something must be said: its time is over, or a business deadline came."""
    turn = _lapsed(turn)
    step = plan(turn.table, turn.operation, now=turn.claim.now)
    if isinstance(step, Follow | Stop):
        return _settled(runtime, turn, step)
    return _rested(runtime, turn, Rest(at=turn.claim.now + timedelta(seconds=30)))


def _settled(runtime: Runtime, turn: Turn, step: Follow | Stop) -> Looked:
    if isinstance(step, Follow) and turn.operation.state is OperationState.READY:
        turn = _as_submitting(runtime, turn)
    event = "evidence" if isinstance(step, Follow) else "submit"
    return write_fate(runtime, turn, scene_of(runtime, turn, turn.operation, turn.claim.now), step, Read(event=event))


def _as_submitting(runtime: Runtime, turn: Turn) -> Turn:
    """A person had granted one more submission when the late answer came: none is sent, the job is there."""
    wanted = replace(turn.operation, state=OperationState.SUBMITTING)
    write(runtime, wanted, event="evidence", now=turn.claim.now, table=turn.table, details={}, lost=turn.lost)
    (row,) = runtime.store.get([wanted.id])
    return replace(turn, operation=row, before=replace(turn.before, lease=None))


def _rested(runtime: Runtime, turn: Turn, step: Rest) -> Looked:
    """Woken too early to send: the row goes back as it was, with its time."""
    scene = scene_of(runtime, turn, turn.operation, turn.claim.now)
    return write_fate(runtime, turn, scene, step, Read(event="submit"))


# --- the look-up ------------------------------------------------------------------------------------


def _look_up(runtime: Runtime, turn: Turn) -> Looked:
    """Ask page by page; each page is a request, counted and committed before it is sent."""
    try:
        sent = runtime.vault.open(turn.operation.id, turn.operation.sealed).submission
    except VaultError as error:
        return seal_broken(runtime, turn, error)
    known: tuple[Handover, ...] = ()
    page, pages = "", 0
    while True:
        asked = _intend(runtime, turn)
        if asked is None:
            return Looked(operation=turn.operation, decision=LookUp(), committed=Committed.STALE, sent=pages > 0)
        turn, pages = asked, pages + 1
        reply = _ask(runtime, turn, sent, page, pages)
        now = reply_time(runtime, turn, reply)
        seen = read_lookup(turn.table, reply, operation=turn.operation, sent=sent, now=now, known=known, page=page)
        again = seen.kind is LookupKind.MORE and _may_turn(turn, pages)
        if not again:
            return _conclude(runtime, turn, _unread(seen), reply)
        known, page = seen.found, seen.next


def _may_turn(turn: Turn, pages: int) -> bool:
    lookup = turn.table.submit.lookup if turn.table.submit else None
    spent, budget = turn.operation.spent, turn.operation.budget
    return lookup is not None and pages < lookup.pages and spent.lookups < budget.lookups


def _unread(seen: LookupSeen) -> LookupSeen:
    """A page that was not read leaves absence unproven (B049)."""
    if seen.kind is not LookupKind.MORE:
        return seen
    if len({found.job_id for found in seen.found}) == 1:
        return replace(seen, kind=LookupKind.FOUND)
    detail = "The list goes on after the last page that may be read."
    return replace(seen, kind=LookupKind.UNREADABLE, observation=replace(seen.observation, detail=detail))


def _intend(runtime: Runtime, turn: Turn) -> Turn | None:
    """Commit the request and its debit, with a lease that covers it; None: the claim was lost."""
    started = runtime.elapsed()
    # Not carried on from the claim: who stood still before it would run ahead, and take absence for proof too early.
    now = runtime.store.now()
    lease = turn.operation.lease
    if lease is None:
        return None
    until = max(lease.until, now + lease_for(limits_of(runtime, turn.table), runtime.timing.margin))
    operation = replace(
        turn.operation,
        state=OperationState.UNCONFIRMED,
        spent=replace(turn.operation.spent, lookups=turn.operation.spent.lookups + 1),
        lease=Lease(owner=lease.owner, until=until),
        wake_at=until,
        wake_until=None,
    )
    committed = write(
        runtime,
        operation,
        event="look_up",
        now=now,
        table=turn.table,
        details={"request": operation.spent.lookups, "doubt": operation.doubt},
        lost=turn.lost,
    )
    if committed is not Committed.DONE:
        return None
    (row,) = runtime.store.get([operation.id])
    again = replace(turn.before, lease=None)  # what was lost is told once
    return replace(turn, operation=row, before=again, claimed_s=started, claim=replace(turn.claim, now=now))


def _ask(runtime: Runtime, turn: Turn, sent: SubmitBytes | None, page: str, number: int) -> Answered | NoAnswer:
    late = stood_still(runtime, turn)
    if late is not None:
        return late
    try:
        request = lookup_request(turn.table, turn.operation, sent, page=page)
    except UsageError as error:
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED, detail=error.message)
    for _, reply in runtime.transport.send([(_numbered(request, number), turn.table)]):
        return reply
    return NoAnswer(sent=Sent.NEVER, trouble=Trouble.LATE, detail="The look-up was not sent.")


def _numbered(request: Request, number: int) -> Request:
    """Pages of one look-up share a fence; each request has an id of its own all the same (INV-03)."""
    if number == 1:
        return request
    headers = tuple(
        (name, f"{value}.{number}" if name.lower() == "x-request-id" else value) for name, value in request.headers
    )
    return replace(request, headers=headers)


def _conclude(runtime: Runtime, turn: Turn, seen: LookupSeen, reply: Answered | NoAnswer) -> Looked:
    now = reply_time(runtime, turn, reply)
    moved, asked = move_gate(runtime, turn, seen.observation, now)
    scene = scene_of(runtime, turn, turn.operation, now)
    denied = seen.observation.kind is Kind.DENIED and not moved
    fate = _held(scene) if denied else after_lookup(scene, seen)
    details = {"kind": seen.kind.value, "items": seen.items, "found": [found.job_id for found in seen.found]}
    read = Read(
        event="lookup",
        observation=seen.observation,
        details=details,
        asked=asked,
        draw=scene.draw,
        sent=not (isinstance(reply, NoAnswer) and reply.sent is Sent.NEVER),
    )
    return write_fate(runtime, turn, scene, fate, read)


def _held(scene: Scene) -> Doubt:
    """Another operation's denial already asks about this account: one question, not thousands."""
    operation, at = scene.operation, scene.now + gates.RECHECK
    return Doubt(why=operation.doubt, http=operation.doubt_http, at=at, source=DelaySource.GATE, until=scene.until)
