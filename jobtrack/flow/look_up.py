"""Ask a provider whether it has the job of a submission whose outcome is unknown (R-SUB-3, INV-19, B049).

Page by page; each page is a request, and its debit is committed before it is sent.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from jobtrack.core import gate as gates
from jobtrack.core.compose import lookup_request
from jobtrack.core.decide import guided
from jobtrack.core.lease import lease_for
from jobtrack.core.lookup import read_lookup
from jobtrack.core.observation import DelaySource, Kind
from jobtrack.core.operation import Lease, OperationState
from jobtrack.core.recover import Doubt, LookUp, Scene, after_lookup
from jobtrack.core.reply import Answered, NoAnswer, Request, Sent, Trouble
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.sentences_answer import PAGES_USED_UP
from jobtrack.core.sentences_request import LOOK_UP_NOT_SENT
from jobtrack.core.submission import Handover, LookupKind, LookupSeen
from jobtrack.errors import UsageError, VaultError
from jobtrack.flow.fate import Read, scene_of, write_fate
from jobtrack.flow.settle import Looked, write
from jobtrack.flow.turn import Turn, limits_of, move_gate, reply_time, seal_broken, stood_still
from jobtrack.ports import Runtime
from jobtrack.records import Committed


def look_up(runtime: Runtime, turn: Turn) -> Looked:
    """Read pages until the job is found, the list has ended, or no page is left, and write what came of it."""
    try:
        sent = runtime.vault.open(turn.operation.id, turn.operation.sealed).submission
    except VaultError as error:
        return seal_broken(runtime, turn, error)
    known: tuple[Handover, ...] = ()
    page, pages, began = "", 0, turn.claim.now
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
            return _conclude(runtime, turn, _unread(seen), reply, began=began)
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
    detail = PAGES_USED_UP.of()
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
    again = turn.again(runtime.store.get([operation.id])) if committed is Committed.DONE else None
    return None if again is None else replace(again, claimed_s=started, claim=replace(turn.claim, now=now))


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
    return NoAnswer(sent=Sent.NEVER, trouble=Trouble.LATE, detail=LOOK_UP_NOT_SENT.of())


def _numbered(request: Request, number: int) -> Request:
    """Pages of one look-up share a fence; each request has an id of its own all the same (INV-03)."""
    if number == 1:
        return request
    headers = tuple(
        (name, f"{value}.{number}" if name.lower() == "x-request-id" else value) for name, value in request.headers
    )
    return replace(request, headers=headers)


def _conclude(runtime: Runtime, turn: Turn, seen: LookupSeen, reply: Answered | NoAnswer, *, began: datetime) -> Looked:
    now = reply_time(runtime, turn, reply)
    moved, asked = move_gate(runtime, turn, seen.observation, now)
    scene = replace(scene_of(runtime, turn, guided(turn.operation, seen.observation, now), now), asked=began)
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
