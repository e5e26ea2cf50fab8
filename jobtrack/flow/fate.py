"""Write what became of a submission: one row, its audit entry, and everything that hangs on it (R-SUB, INV-15)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, assert_never

from jobtrack.core.backoff import first_delay
from jobtrack.core.decide import Conclude, Stop, seen
from jobtrack.core.escalation import Question
from jobtrack.core.evidence import SEEN, evidence_of
from jobtrack.core.observation import DelaySource, Observation
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.recover import Doubt, Fate, Follow, Later, Rest, Scene
from jobtrack.core.request import status_url
from jobtrack.core.sealed import Sealed
from jobtrack.core.submission import Handover
from jobtrack.core.table import ProviderTable
from jobtrack.errors import UsageError, VaultError
from jobtrack.flow import story
from jobtrack.flow.hear import recall
from jobtrack.flow.settle import Looked, followups_of, write
from jobtrack.flow.turn import Turn
from jobtrack.ports import Runtime
from jobtrack.records import Committed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read before the fate was decided, for the audit."""

    event: str  # "submission" | "lookup" | "evidence" | "submit"
    observation: Observation | None = None
    details: Mapping[str, Any] | None = None
    asked: tuple[Question, ...] = ()  # questions about the account
    draw: float | None = None
    sent: bool = False  # a request went out


def scene_of(runtime: Runtime, turn: Turn, operation: Operation, now: datetime) -> Scene:
    return Scene(table=turn.table, operation=operation, now=now, draw=runtime.draw())


def write_fate(runtime: Runtime, turn: Turn, scene: Scene, fate: Fate, read: Read) -> Looked:
    """Commit the fate under the claim's fence. A late acceptance is kept as evidence, whatever the fence says."""
    now = scene.now
    operation = replace(
        scene.operation,
        lease=None,
        wake_until=None,
        missing_since=None,
        last_http=read.observation.http if read.observation else scene.operation.last_http,
        error=(read.observation.error if read.observation else "") or scene.operation.error,
        revision=max(scene.operation.revision, scene.table.revision),
        table_digest=scene.table.digest,
    )
    wanted = _scheduled(runtime, _fated(runtime, scene, operation, fate), now)
    committed = write(
        runtime,
        wanted,
        event=read.event,
        now=now,
        table=scene.table,
        asked=(*_questions(fate), *read.asked),
        followups=followups_of(wanted) if wanted.terminal else (),
        lost=turn.lost,
        evidence=_evidence(fate, wanted),
        details={
            "observation": story.observation(read.observation) if read.observation else None,
            "decision": story.fate(fate),
            "draw": read.draw,
            **(read.details or {}),
        },
    )
    if committed is Committed.DONE and wanted.state is OperationState.RUNNING and scene.table.webhook is not None:
        recall(runtime, wanted)
    return Looked(operation=wanted, decision=fate, committed=committed, sent=read.sent)


def _evidence(fate: Fate, wanted: Operation) -> Mapping[str, object] | None:
    """What this answer proves even if it comes too late; None: nothing."""
    if isinstance(fate, Follow):
        followable = wanted.job_id or wanted.status_url or wanted.sealed
        return evidence_of(wanted) if followable else SEEN
    return SEEN if isinstance(fate, Doubt) and fate.seen else None


def _questions(fate: Fate) -> tuple[Question, ...]:
    match fate:
        case Follow(end=end):
            return (end.question,) if end is not None and end.question is not None else ()
        case Later() | Rest():
            return ()
        case Doubt(question=question) | Conclude(question=question):
            return () if question is None else (question,)
        case Stop(question=question):
            return (question,)
    assert_never(fate)


def _fated(runtime: Runtime, scene: Scene, operation: Operation, fate: Fate) -> Operation:
    match fate:
        case Follow():
            return _followed(runtime, scene, operation, fate)
        case Later(at=at, source=source):
            return replace(operation, state=OperationState.READY, wake_at=at, not_before=at, delay_source=source.value)
        case Rest(at=at):
            return replace(operation, wake_at=at)
        case Doubt():
            return _doubted(operation, fate)
        case Conclude(state=state, cause=cause):
            return _resting(replace(operation, state=state, cause=cause, sealed="", doubt="", doubt_http=None))
        case Stop():
            return replace(operation, state=OperationState.ESCALATED, wake_at=None, last_look=False)
    assert_never(fate)


def _doubted(operation: Operation, fate: Doubt) -> Operation:
    doubted = replace(
        operation,
        doubt=fate.why,
        doubt_http=fate.http,
        recover_until=fate.until,
        acceptance_seen=operation.acceptance_seen or fate.seen,
        not_before=max(fate.at, operation.not_before or fate.at),  # a wish of the provider outlives our own deadline
        delay_source=fate.source.value,
    )
    if fate.question is not None:
        return replace(doubted, state=OperationState.ESCALATED, wake_at=None, last_look=False)
    return replace(doubted, state=OperationState.UNCONFIRMED, wake_at=fate.at)


def _followed(runtime: Runtime, scene: Scene, operation: Operation, fate: Follow) -> Operation:
    """The row of an accepted job: request bytes erased, its time counted from now."""
    now = scene.now
    accepted = replace(accept(runtime, scene.table, operation, fate.handover, now=now), last_look=False)
    if fate.status is not None:
        accepted = seen(accepted, fate.status, scene.table, now)
    if fate.end is not None:
        return _resting(replace(accepted, state=fate.end.state, cause=fate.end.cause))
    asked = max(operation.not_before or now, now)  # the acceptance itself may say when to ask (R-POLL-2)
    first = now + first_delay(scene.table.polling, scene.draw)
    wake_at = max(first, asked)
    source = DelaySource.FIRST_DELAY if wake_at == first else DelaySource.PROVIDER_RETRY_AFTER
    return replace(
        accepted,
        state=OperationState.RUNNING,
        wake_at=wake_at,
        not_before=wake_at,
        hint_floor=max(now + scene.table.polling.min_interval, asked),
        delay_source=source.value,
    )


def accept(
    runtime: Runtime, table: ProviderTable, operation: Operation, handover: Handover, *, now: datetime
) -> Operation:
    """The row with how to follow its job, and nothing left of the submission; its state is not touched.

    A status URL with a query may be a capability, so it is kept sealed only.
    """
    secret = handover.status_url if "?" in handover.status_url else ""
    kept = Sealed(status_url=secret, handle=handover.handle)
    # Evidence brings its secrets sealed already.
    late = operation.evidence.get("sealed") if operation.evidence else None
    params = {**operation.params, **handover.params}
    url = "" if secret else handover.status_url
    if not url and not secret and not handover.handle and handover.job_id:
        url = _built(table, handover.job_id, params)
    budget = operation.budget
    deadline = budget.deadline if budget.follow_for is None else now + budget.follow_for
    return replace(
        operation,
        job_id=handover.job_id or operation.job_id,
        params=params,
        status_url=url,
        sealed=str(late) if late and not kept else _sealed(runtime, operation, kept),
        accepted_at=operation.accepted_at or now,
        budget=replace(budget, deadline=deadline),
        doubt="",
        doubt_http=None,
        recover_until=None,
        evidence={},
    )


def _sealed(runtime: Runtime, operation: Operation, kept: Sealed) -> str:
    try:
        return runtime.vault.seal(operation.id, kept)
    except VaultError:
        # The acceptance must be written all the same; the first look will say what is missing to follow the job.
        logger.exception("operation %s: its handle or status URL could not be sealed", operation.id)
        return ""


def _built(table: ProviderTable, job_id: str, params: Mapping[str, str]) -> str:
    try:
        return status_url(table, job_id=job_id, params=params)
    except UsageError:  # the first look will say so, with a reason
        return ""


def _resting(operation: Operation) -> Operation:
    return replace(operation, wake_at=None, not_before=None, hint_floor=None, last_look=False)


def _scheduled(runtime: Runtime, operation: Operation, now: datetime) -> Operation:
    """The wake-up never comes later than something must be said, and is published if it lies within the horizon."""
    if operation.wake_at is None:
        return operation
    limits = [operation.wake_at, operation.last_instant]
    needed_by = operation.budget.needed_by
    if needed_by is not None and not operation.needed_by_told and needed_by > now:
        limits.append(needed_by)
    at = min(limits)
    published = at - now <= runtime.scheduler.horizon
    return replace(operation, wake_at=at, wake_until=at + runtime.timing.grace if published else None)
