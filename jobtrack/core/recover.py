"""What to do about a submission: send, send again, look up, follow the job, or ask a person. Pure (R-SUB, INV-18).

A submission is repeated by a machine only with one of these, each written down before the repeat:

- proof that nothing was sent, or an answer that the table lists as "not accepted yet";
- a look-up that the table calls authoritative, after its settle time, without the job;
- the provider's idempotency, inside the lifetime of its key, with the same key and bytes.

``Operation.doubt`` is the memory of it: a sentence while an earlier attempt may have been accepted, "" once it is
proven that none was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from jobtrack.core import sentences_question as say
from jobtrack.core.actions import SubmitMeaning, SubmitSpec
from jobtrack.core.backoff import local_delay, spread
from jobtrack.core.decide import Conclude, Stop, ended, spoken
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.evidence import handover_of
from jobtrack.core.observation import DelaySource, Guidance, Kind, Observation
from jobtrack.core.operation import Operation, OperationState, may_move
from jobtrack.core.submission import Handover, LookupKind, LookupSeen, SubmitSeen
from jobtrack.core.table import Polling, ProviderTable
from jobtrack.core.terms import granted, unknown_detail
from jobtrack.core.text import clean

MARGIN = timedelta(seconds=10)
"""A repeat is not sent if its answer could come later than this before the key ends: clocks differ."""


def lapsed(table: ProviderTable | None, operation: Operation, *, sent_by: datetime, now: datetime) -> Operation:
    """The row of a submission whose worker ended, or stood still, before its answer was written: a doubt.

    Args:
        sent_by: until when that worker may have sent its request: the end of its lease.
    """
    spec = table.submit if table else None
    return replace(
        operation,
        state=OperationState.UNCONFIRMED,
        doubt=say.WORKER_ENDED.of(),
        doubt_http=None,
        last_sent_at=max(sent_by, operation.last_sent_at or sent_by),
        recover_until=operation.recover_until or (now + spec.recovery.deadline if spec else None),
    )


# --- what follows from an answer ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """The provider has the job, and it is known how to follow it."""

    handover: Handover
    end: Conclude | None = None  # the acceptance itself told the end
    status: Observation | None = None  # what it told about the state


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Nothing was accepted, and the same request may be sent again: back to ``ready``."""

    at: datetime
    source: DelaySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Nobody knows: ``unconfirmed``, and the way out of it begins at ``at``."""

    why: str  # one clean sentence; "": proven that nothing was accepted, so that the next step may be a repeat
    http: int | None
    at: datetime
    source: DelaySource
    until: datetime  # recovery deadline
    seen: bool = False  # the provider said that it has a job
    question: Question | None = None  # a machine can do nothing about it: a person is asked at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Too early; nothing is sent, and the row keeps its state."""

    at: datetime


Fate = Follow | Later | Doubt | Rest | Conclude | Stop


# --- what comes next ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send the submission now; ``because`` says what permits it."""

    because: str  # "first" | "unsent" | "absent" | "idempotency" | "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """Ask the provider whether it has the job."""


Plan = Send | LookUp | Rest | Follow | Stop


def plan(table: ProviderTable, operation: Operation, *, now: datetime) -> Plan:
    """The next step of a claimed operation that is not yet known to be accepted.

    Args:
        table: the newest table.
        operation: the row after the claim: ready, unconfirmed (``lapsed`` if it was submitting), or escalated with
            evidence of an acceptance.
        now: the store's clock.
    """
    if operation.evidence:
        return Follow(handover=handover_of(operation.evidence))
    spec = table.submit
    if spec is None:
        detail = say.NOT_SUBMITTABLE.of(table=repr(table.id))
        return _stop(Reason.SUBMISSION_UNKNOWN if operation.doubt else Reason.SUBMISSION_UNSENT, detail)
    if operation.not_before is not None and now < operation.not_before and now < operation.last_instant:
        return Rest(at=operation.not_before)
    if operation.state is OperationState.READY:
        return _plan_unsent(table, operation, now)
    return _plan_recovery(table, spec, operation, now)


def _plan_unsent(table: ProviderTable, operation: Operation, now: datetime) -> Plan:
    if operation.acceptance_seen:  # a late answer said so; a grant from before it is void
        return _stop(Reason.SUBMISSION_UNKNOWN, unknown_detail(table, operation))
    if operation.last_look and now < operation.last_instant:
        return Send(because="person")
    if operation.doubt:  # a person's grant that nobody took up in time: an earlier attempt is in doubt as before
        return _stop(Reason.SUBMISSION_UNKNOWN, unknown_detail(table, operation))
    if now >= operation.last_instant:
        return _stop(Reason.SUBMISSION_UNSENT, say.SUBMIT_BY.of(instant=spoken(operation.last_instant)))
    if operation.spent.submissions >= operation.budget.submissions:
        return _stop(Reason.SUBMISSION_UNSENT, say.SUBMISSIONS_USED.of(most=operation.budget.submissions))
    return Send(because="first" if operation.first_sent_at is None else "unsent")


def _plan_recovery(table: ProviderTable, spec: SubmitSpec, operation: Operation, now: datetime) -> Plan:
    left = operation.spent.lookups < operation.budget.lookups and now < operation.last_instant
    if operation.doubt and spec.lookup is not None and left and not _repeat_is_better(table, operation, now):
        return LookUp()
    permitted = permission(table, operation, now=now)
    if permitted:
        return Send(because=permitted)
    if not operation.doubt:
        return _stop(Reason.SUBMISSION_UNSENT, say.NO_JOB_AND_NO_MORE.of())
    return _stop(Reason.SUBMISSION_UNKNOWN, unknown_detail(table, operation))


def _repeat_is_better(table: ProviderTable, operation: Operation, now: datetime) -> bool:
    """After a look-up that found nothing: a key that still holds settles more than the same question again."""
    return operation.spent.lookups > 0 and bool(permission(table, operation, now=now))


def permission(table: ProviderTable, operation: Operation, *, now: datetime) -> str:
    """What permits a machine to send the submission again now; "": nothing does (R-SUB-4, INV-18).

    Returns:
        "absent" or "idempotency".
    """
    spec, spent, budget = table.submit, operation.spent, operation.budget
    if spec is None or operation.acceptance_seen or operation.last_look or spent.submissions >= budget.submissions:
        return ""
    if operation.recover_until is not None and now >= operation.recover_until:
        return ""
    if not operation.doubt:
        return "absent" if granted(spec, operation, "absence") else ""
    return "idempotency" if _key_holds(table, spec, operation, now) else ""


def _key_holds(table: ProviderTable, spec: SubmitSpec, operation: Operation, now: datetime) -> bool:
    rule = spec.idempotency
    if rule is None or operation.first_sent_at is None or not granted(spec, operation, "key "):
        return False
    if rule.replays_errors and operation.doubt_http is not None:
        return False  # a repeat would get the very same error, and prove nothing
    answered_by = now + table.limits.total + MARGIN
    return answered_by < operation.first_sent_at + rule.lifetime


def may_repeat(table: ProviderTable, operation: Operation, now: datetime) -> bool:
    """Whether a machine may submit (again) now: the ``retry_allowed`` of the outcome (R-SUB-8)."""
    match operation.state:
        case OperationState.READY:
            return table.submit is not None and isinstance(_plan_unsent(table, operation, now), Send)
        case OperationState.UNCONFIRMED:
            return bool(permission(table, operation, now=now))
        case _:
            return False


# --- reading a submission's fate --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where an answer was read: everything a rule may look at."""

    table: ProviderTable
    operation: Operation  # as the intent left it, the request counted
    now: datetime  # the store's clock when the answer was complete
    draw: float  # uniform in [0, 1), for jitter
    asked: datetime | None = None  # when the look-up's first page was asked for: it shows the provider as it was then

    @property
    def spec(self) -> SubmitSpec:
        """How jobs are submitted. Raises ValueError if the table does not say so: then nothing can have been asked."""
        if self.table.submit is None:
            raise ValueError(f"the table {self.table.id!r} submits nothing")
        return self.table.submit

    @property
    def until(self) -> datetime:
        """The recovery deadline: it counts from the moment the doubt is written down."""
        return self.operation.recover_until or self.now + self.spec.recovery.deadline

    def next(self, steps: int, guidance: Guidance | None) -> tuple[datetime, DelaySource]:
        """When the next request may be sent: the provider's wish, else a growing delay of our own (INV-05).

        Args:
            steps: requests of this kind before; 0 gives the first delay.
        """
        if guidance is not None and guidance.wait is not None and guidance.wait > timedelta(0):
            return self.now + spread(guidance.wait, self.draw), guidance.source
        recovery = self.spec.recovery
        if steps <= 0:
            return self.now + recovery.first * (1 + 0.25 * self.draw), DelaySource.LOCAL_BACKOFF
        schedule = Polling(base=recovery.base, factor=recovery.factor, cap=recovery.cap)
        return self.now + local_delay(schedule, steps - 1, self.draw), DelaySource.LOCAL_BACKOFF

    def permission(self, operation: Operation | None = None) -> str:
        return permission(self.table, operation or self.operation, now=self.now)


def after_submission(scene: Scene, seen: SubmitSeen) -> Fate:
    """What follows from one reply to a submission."""
    match seen.meaning:
        case SubmitMeaning.ACCEPTED | SubmitMeaning.ALREADY | SubmitMeaning.FINAL:
            return _accepted(scene, seen)
        case SubmitMeaning.REJECTED:
            return _rejected(scene.operation, seen)
        case SubmitMeaning.DENIED:
            return _stop(Reason.AUTHORIZATION_DENIED, seen.observation.detail)
        case SubmitMeaning.MISMATCH:
            return _doubt(scene, seen.observation, seen=True)
        case SubmitMeaning.BUSY | None:
            return _unsent(scene, seen.observation)
        case SubmitMeaning.UNKNOWN if seen.handover is not None:
            return _accepted(scene, seen)  # it was to be the end and names a job all the same: follow that (INV-15)
        case SubmitMeaning.UNKNOWN:
            return _doubt(scene, seen.observation)
    assert_never(seen.meaning)


def _accepted(scene: Scene, seen: SubmitSeen) -> Fate:
    end = ended(scene.operation, seen.status) if seen.status is not None else None
    if end is not None and not may_move(OperationState.SUBMITTING, end.state):
        end = None  # it is followed, and its status will say so
    known = seen.handover is not None and (end is not None or seen.handover != Handover())
    if seen.handover is not None and known:
        return Follow(handover=seen.handover, end=end, status=seen.status)
    if end is not None:
        return Follow(handover=Handover(), end=end, status=seen.status)
    return _doubt(scene, seen.observation, seen=True)


def _rejected(operation: Operation, seen: SubmitSeen) -> Conclude | Stop:
    if operation.doubt:
        detail = say.REPEAT_REFUSED.of(why=seen.observation.detail)
        return _stop(Reason.SUBMISSION_UNKNOWN, detail)
    question = Question(reason=Reason.SUBMISSION_REJECTED, detail=seen.observation.error or seen.observation.detail)
    return Conclude(
        state=OperationState.FAILED,
        cause="submission_rejected",
        question=question if operation.escalate_ends else None,
    )


def _unsent(scene: Scene, observation: Observation) -> Fate:
    operation, spent = scene.operation, scene.operation.spent.submissions
    if observation.kind is Kind.TARGET_DENIED:
        return _stop(Reason.TARGET_DENIED, observation.detail)
    if observation.kind is Kind.DENIED:
        return _stop(Reason.AUTHORIZATION_DENIED, observation.detail)
    at, source = scene.next(spent - 1, observation.guidance)
    if operation.doubt:  # of an attempt before this one; it is not settled by this one
        at = min(at, scene.until)
        return Doubt(why=operation.doubt, http=operation.doubt_http, at=at, source=source, until=scene.until)
    over = operation.submit_by is not None and at >= operation.submit_by
    if over or spent >= operation.budget.submissions:
        detail = say.NOT_ACCEPTED.of(count=spent, why=observation.detail)
        return _stop(Reason.SUBMISSION_UNSENT, detail)
    return Later(at=at, source=source)


def _doubt(scene: Scene, observation: Observation, *, seen: bool = False) -> Fate:
    """``unconfirmed`` if a machine can do anything about it, else a person's question."""
    why = clean(observation.detail, 300) or say.NO_USABLE_ANSWER.of()
    doubtful = replace(
        scene.operation,
        doubt=why,
        doubt_http=observation.http,
        acceptance_seen=scene.operation.acceptance_seen or seen,
        recover_until=scene.until,
    )
    helpless = scene.spec.lookup is None and not scene.permission(doubtful)
    question = Question(reason=Reason.SUBMISSION_UNKNOWN, detail=unknown_detail(scene.table, doubtful))
    at, source = scene.next(0, observation.guidance)
    return Doubt(
        why=why,
        http=observation.http,
        at=min(at, scene.until),
        source=source,
        until=scene.until,
        seen=seen,
        question=question if helpless else None,
    )


# --- reading a look-up --------------------------------------------------------------------------------


def after_lookup(scene: Scene, seen: LookupSeen) -> Fate:
    """What follows from a look-up that has come to its end: found, absent, or unreadable."""
    operation = scene.operation
    if seen.kind is LookupKind.FOUND:
        return Follow(handover=seen.found[0])
    if seen.kind is LookupKind.MANY:
        return _several(scene, seen)
    if seen.observation.kind is Kind.DENIED:
        return _stop(Reason.AUTHORIZATION_DENIED, seen.observation.detail)
    absent, guided = seen.kind is LookupKind.ABSENT, seen.observation.guidance is not None
    at, source = scene.next(operation.spent.lookups, seen.observation.guidance)
    if absent and _settled(scene):
        at = at if guided else scene.now
        return Doubt(why="", http=None, at=at, source=source, until=scene.until)
    there = seen.ours or bool(seen.found)
    if there:
        operation = replace(operation, acceptance_seen=True)
    permitted = bool(scene.permission(operation))
    last = operation.last_look or operation.spent.lookups >= operation.budget.lookups or at >= scene.until
    question = Question(
        reason=Reason.SUBMISSION_UNKNOWN, detail=clean(unknown_detail(scene.table, operation, seen), 1000)
    )
    at = scene.now if absent and permitted and not guided else min(at, scene.until)
    return Doubt(
        why=operation.doubt,
        http=operation.doubt_http,
        at=at,
        source=source,
        until=scene.until,
        seen=there,
        question=question if last and not permitted else None,
    )


def _several(scene: Scene, seen: LookupSeen) -> Doubt:
    """More than one job: a person is shown all of them, and nothing is ever submitted again."""
    ids = ", ".join(found.job_id or say.WITHOUT_ID.of() for found in seen.found)
    detail = say.SEVERAL_JOBS.of(jobs=clean(ids, 200))
    return Doubt(
        why=scene.operation.doubt,
        http=scene.operation.doubt_http,
        at=scene.now,
        source=DelaySource.LOCAL_BACKOFF,
        until=scene.until,
        seen=True,
        question=Question(reason=Reason.SUBMISSION_UNKNOWN, detail=detail),
    )


def _settled(scene: Scene) -> bool:
    """Absence is proof only if it was asked for after the settle time, and never against the provider's own word."""
    operation, lookup = scene.operation, scene.spec.lookup
    if lookup is None or lookup.absence_is_proof_after is None or operation.acceptance_seen:
        return False
    if not granted(scene.spec, operation, "absence"):
        return False
    asked = scene.asked or scene.now
    return operation.last_sent_at is not None and asked >= operation.last_sent_at + lookup.absence_is_proof_after


def _stop(reason: Reason, detail: str) -> Stop:
    return Stop(question=Question(reason=reason, detail=clean(detail, 1000)))
