"""One attempt to submit, for operations that are claimed and permitted to send (R-SUB-2, INV-17, INV-18).

The order is the promise: the intent is committed, then the row is read again, then the stored bytes are sent, then
what came of it is committed. A crash anywhere in between leaves ``submitting`` with a lease that ends, which
``flow.reconcile`` takes for a doubt. Nothing here can send twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobtrack.core import gate as gates
from jobtrack.core.accept import observe_submission
from jobtrack.core.compose import submit_request
from jobtrack.core.decide import Stop, guided
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.observation import DelaySource, Kind
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.recover import Doubt, Fate, Follow, Later, Rest, Scene, Send, after_submission
from jobtrack.core.reply import Answered, NoAnswer, Request, Sent, Trouble
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.sentences_question import BYTES_GONE
from jobtrack.core.submission import SubmitSeen
from jobtrack.errors import UsageError, VaultError
from jobtrack.flow.fate import Read, scene_of, write_fate
from jobtrack.flow.settle import Looked, write
from jobtrack.flow.turn import (
    Batch,
    Turn,
    conclude_all,
    exchange,
    hurried,
    move_gate,
    reply_time,
    seal_broken,
    stood_still,
)
from jobtrack.ports import Runtime
from jobtrack.records import Committed

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A claimed operation, what permits it to be sent, and the bytes."""

    turn: Turn
    permit: Send
    submission: SubmitBytes


def attempt(runtime: Runtime, permitted: Sequence[tuple[Turn, Send]]) -> list[Looked]:
    """Send each submission once."""
    batch = Batch()
    intended: list[Attempt] = []
    for turn, permit in permitted:
        # An intent that cannot be committed must not leave the others with theirs committed and nothing sent.
        batch.run(_prepare, runtime, turn, permit, intended)
    batch.run(_send, runtime, intended)
    return batch.end()


def _prepare(runtime: Runtime, turn: Turn, permit: Send, intended: list[Attempt]) -> list[Looked]:
    """Commit the intent and add the attempt to those that are sent; or write why nothing can be sent."""
    if hurried(runtime, turn):
        # The others of its batch have used up the time in which it could be sent: another claim, and no debit.
        return [_given_back(runtime, turn)]
    try:
        submission = runtime.vault.open(turn.operation.id, turn.operation.sealed).submission
    except VaultError as error:
        return [seal_broken(runtime, turn, error)]
    if submission is None:
        return [_without_bytes(runtime, turn)]
    if _intend(runtime, turn, permit):
        intended.append(Attempt(turn=turn, permit=permit, submission=submission))
    return []


def _given_back(runtime: Runtime, turn: Turn) -> Looked:
    now = runtime.store.now()
    scene = scene_of(runtime, turn, turn.operation, now)
    return write_fate(runtime, turn, scene, Rest(at=now), Read(event="submit"))


def _without_bytes(runtime: Runtime, turn: Turn) -> Looked:
    reason = Reason.SUBMISSION_UNKNOWN if turn.operation.doubt else Reason.SUBMISSION_UNSENT
    stop = Stop(question=Question(reason=reason, detail=BYTES_GONE.of()))
    scene = scene_of(runtime, turn, turn.operation, runtime.store.now())
    return write_fate(runtime, turn, scene, stop, Read(event="submit"))


def _intend(runtime: Runtime, turn: Turn, permit: Send) -> bool:
    """Commit that a request is about to be sent, and its debit (INV-01, INV-17). False: the claim was lost."""
    operation = turn.operation
    now = turn.now(runtime.elapsed())
    spent = replace(operation.spent, submissions=operation.spent.submissions + 1)
    budget = operation.budget
    if permit.because == "person":
        budget = replace(budget, submissions=max(budget.submissions, spent.submissions))
    wanted = replace(
        operation,
        state=OperationState.SUBMITTING,
        spent=spent,
        budget=budget,
        first_sent_at=operation.first_sent_at or now,
        last_sent_at=now,
        last_look=False,
        wake_until=None,
    )
    details = {"attempt": spent.submissions, "because": permit.because, "doubt": operation.doubt or None}
    committed = write(runtime, wanted, event="attempt", now=now, table=turn.table, details=details, lost=turn.lost)
    return committed is Committed.DONE


def _read_again(runtime: Runtime, intended: Sequence[Attempt]) -> list[Attempt]:
    """The rows as they are now (R-OWN-1). One whose lease was lost meanwhile is left to its new owner.

    One to which an acceptance came meanwhile is not sent: its evidence is read when the lease ends.
    """
    rows = runtime.store.get([each.turn.operation.id for each in intended])
    read = [(each, each.turn.again(rows)) for each in intended]
    return [replace(each, turn=turn) for each, turn in read if turn is not None and not _told(turn.operation)]


def _told(operation: Operation) -> bool:
    return bool(operation.evidence) or operation.acceptance_seen


def _send(runtime: Runtime, intended: Sequence[Attempt]) -> list[Looked]:
    attempts = _read_again(runtime, intended)
    by_id = {each.turn.operation.id: each for each in attempts}
    requests = [_request(runtime, each) for each in attempts]
    replies = exchange(runtime, [each.turn for each in attempts], requests)
    return conclude_all(replies, lambda turn, reply: _conclude(runtime, by_id[turn.operation.id], turn, reply))


def _request(runtime: Runtime, each: Attempt) -> Request | NoAnswer:
    late = stood_still(runtime, each.turn)
    if late is not None:
        return late
    try:
        return submit_request(each.turn.table, each.turn.operation, each.submission)
    except UsageError as error:
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.TARGET_DENIED, detail=error.message)


def _conclude(runtime: Runtime, each: Attempt, turn: Turn, reply: Answered | NoAnswer) -> Looked:
    now = reply_time(runtime, turn, reply)
    operation = replace(turn.operation, last_sent_at=now)
    seen = observe_submission(turn.table, reply, operation=operation, sent=each.submission, now=now)
    moved, asked = (False, ()) if _unlisted_denial(seen) else move_gate(runtime, turn, seen.observation, now)
    scene = scene_of(runtime, turn, guided(operation, seen.observation, now), now)
    fate = _one_question(seen, operation, moved, scene) or after_submission(scene, seen)
    never = isinstance(reply, NoAnswer) and reply.sent is Sent.NEVER
    meaning = seen.meaning.value if seen.meaning else "unsent"
    details = {"attempt": operation.spent.submissions, "meaning": meaning}
    read = Read(
        event="submission", observation=seen.observation, details=details, asked=asked, draw=scene.draw, sent=not never
    )
    try:
        return write_fate(runtime, turn, scene, fate, read)
    except Exception:
        # Once more, and then the log has it: the link to a running job is worth more than a clean log (INV-15). If
        # the first commit did go through, the second finds its lease gone and changes nothing (INV-41).
        if isinstance(fate, Follow):
            logger.exception("operation %s: job %s was accepted and not written", operation.id, fate.handover.job_id)
        return write_fate(runtime, turn, scene, fate, read)


def _unlisted_denial(seen: SubmitSeen) -> bool:
    """A 401 or 403 that the table does not list proves nothing here; if access is gone, the look-up will meet it."""
    return seen.observation.kind is Kind.DENIED and not seen.proves_no_job


def _one_question(seen: SubmitSeen, operation: Operation, moved: bool, scene: Scene) -> Fate | None:
    """Another operation's denial already asks about this account: one question, not thousands."""
    if moved or seen.observation.kind is not Kind.DENIED or not seen.proves_no_job:
        return None
    at = scene.now + gates.RECHECK
    if operation.doubt:
        why, http = operation.doubt, operation.doubt_http
        return Doubt(why=why, http=http, at=at, source=DelaySource.GATE, until=scene.until)
    if operation.spent.submissions >= operation.budget.submissions:
        return None
    return Later(at=at, source=DelaySource.GATE)
