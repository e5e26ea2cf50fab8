"""Ask the provider to cancel a job: an action with a record, and an outcome that may stay unknown (R-END-5).

Accepted or not, a cancellation moves no state: the operation becomes ``cancelled`` when a status answer says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from jobtrack.core import sentences_question as say
from jobtrack.core.actions import CancelSpec
from jobtrack.core.backoff import delivery_delay
from jobtrack.core.cancel import CancelState, read_cancel
from jobtrack.core.cancelling import refusal
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.gate import GateState
from jobtrack.core.lease import margin_for
from jobtrack.core.observation import Observation
from jobtrack.core.operation import Operation
from jobtrack.core.reply import Answered, NoAnswer, Request, Sent, Trouble
from jobtrack.core.request import cancel_request, target_allowed
from jobtrack.core.sentences_request import ACCEPTED_ADDRESS_OVER, STOOD_STILL_BEFORE
from jobtrack.core.table import ProviderTable
from jobtrack.core.text import clean
from jobtrack.errors import OperationNotFound, UsageError, VaultError
from jobtrack.flow import story
from jobtrack.flow.errand import Again, Done, Errand, GiveUp, move_gate, pass_gate
from jobtrack.ports import Runtime
from jobtrack.records import CANCEL, Delivery, Followup, Receipt

_ERRAND = Followup(event=CANCEL)


def delivery_of(operation_id: str) -> str:
    """Id of the outbox row of an operation's cancellation."""
    return _ERRAND.delivery_of(operation_id)


# --- the wish ---------------------------------------------------------------------------------------


def request_cancel(
    runtime: Runtime,
    operation_id: str,
    *,
    actor: str,
    reason: str,
    again: bool = False,
    announce: bool = True,
    locked: Operation | None = None,
) -> Operation:
    """Write down that somebody wants the job cancelled; a worker then asks the provider.

    Args:
        actor: who wants it, as the site names people; "" if that is not known.
        reason: why, in their words.
        again: they know that an earlier cancellation may have been heard, and want another one all the same.
        announce: publish the errand now. False: the caller does it after its own commit.
        locked: the row, if the caller has locked it: two who ask at the same moment are then one. None: it is read.

    Returns:
        The operation as written: its state has not moved.

    Raises:
        OperationNotFound: there is no such operation.
        UsageError: the table documents no cancellation, there is nothing to cancel, or it was asked for already.
    """
    operation = locked or _read(runtime, operation_id)
    table = runtime.tables.get(operation.provider)
    refused = refusal(table, operation, again=again)
    if refused or table is None or table.cancel is None:
        raise UsageError(refused, operation_id=operation_id)
    entry = story.entry(
        "cancel_requested",
        operation,
        at=runtime.store.now(),
        actor=clean(actor, 255),
        why=clean(reason, 2000),
        effect=clean(table.cancel.effect, 2000),
        before=operation.cancel_state or None,
        table=story.table_mark(table),
    )
    written = runtime.store.note(operation_id, entry, errand=_ERRAND, cancel_state=CancelState.REQUESTED)
    if announce:
        runtime.scheduler.deliver([delivery_of(operation_id)])
    return written


def _read(runtime: Runtime, operation_id: str) -> Operation:
    found = runtime.store.get([operation_id])
    if not found:
        raise OperationNotFound(say.NO_OPERATION.of(operation=repr(operation_id)), operation_id=operation_id)
    return found[0]


# --- the errand -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """One try, under the lease of its delivery."""

    delivery: Delivery
    operation: Operation
    table: ProviderTable
    spec: CancelSpec
    started_s: float  # monotonic, before the row was read

    @property
    def pause(self) -> timedelta:
        return delivery_delay(self.delivery.attempts)


def cancel(runtime: Runtime, delivery: Delivery, operation: Operation) -> Errand:
    """One try to have the job cancelled.

    "It may have been heard" is committed before anything is sent, so that a crash leaves that and never silence:
    the request goes out a second time only if the table says that this does no harm (INV-18).
    """
    started_s = runtime.elapsed()
    operation = _read(runtime, operation.id)  # it may have moved since the delivery was taken
    if operation.terminal:
        return _needless(runtime, operation)
    settled = _settled(runtime, operation)
    if settled is not None:
        return settled
    table = runtime.tables.get(operation.provider)
    if table is None or table.revision < operation.revision:
        said = say.NO_TABLE.of(table=repr(operation.provider), count=operation.revision)
        return _unsent(runtime, delivery, operation, said)
    if table.cancel is None:
        return _unsendable(runtime, operation, say.CANCELS_NO_MORE.of(table=repr(table.id)))
    if operation.cancel_state == CancelState.UNKNOWN and not table.cancel.repeatable:
        return _doubtful(say.CANCEL_LOST.of())
    attempt = _Try(delivery=delivery, operation=operation, table=table, spec=table.cancel, started_s=started_s)
    return _ask(runtime, attempt)


def _needless(runtime: Runtime, operation: Operation) -> Done:
    """It ended meanwhile: nothing is sent. What an earlier attempt may have done stays as it is known."""
    if operation.cancel_state == CancelState.REQUESTED:
        entry = story.entry("cancel_needless", operation, at=runtime.store.now())
        runtime.store.note(operation.id, entry, cancel_state="")
    return Done()


def _settled(runtime: Runtime, operation: Operation) -> Done | None:
    """The provider has answered: a worker that died after writing that down may have lost the look that follows."""
    if operation.cancel_state == CancelState.ACCEPTED:
        _look_soon(runtime, operation)
    return Done() if operation.cancel_state in ("", CancelState.ACCEPTED, CancelState.REFUSED) else None


def _ask(runtime: Runtime, attempt: _Try) -> Errand:
    gate = pass_gate(runtime, attempt.table, attempt.operation)
    if not isinstance(gate, GateState):
        wait = max(gate - runtime.store.now(), attempt.pause)
        return _unsent(runtime, attempt.delivery, attempt.operation, say.HELD_BACK.of(), after=wait)
    try:
        request = _request(runtime, attempt)
    except VaultError as error:
        return _unsent(runtime, attempt.delivery, attempt.operation, error.message)
    except UsageError as error:
        return _unsendable(runtime, attempt.operation, error.message)
    intent = story.entry(
        "cancel_attempt",
        attempt.operation,
        at=runtime.store.now(),
        attempt=attempt.delivery.attempts,
        table=story.table_mark(attempt.table),
    )
    runtime.store.note(attempt.operation.id, intent, cancel_state=CancelState.UNKNOWN)
    return _conclude(runtime, attempt, gate, _send(runtime, attempt, request))


def _request(runtime: Runtime, attempt: _Try) -> Request:
    operation, table = attempt.operation, attempt.table
    kept = runtime.vault.open(operation.id, operation.sealed)
    asked = replace(operation, status_url=kept.status_url or operation.status_url)
    request = cancel_request(table, asked, kept.handle)
    if not attempt.spec.request.path and not target_allowed(request.url, table, operation.params):
        raise UsageError(ACCEPTED_ADDRESS_OVER.of())
    return request


def _send(runtime: Runtime, attempt: _Try, request: Request) -> Answered | NoAnswer:
    limits = runtime.limits or attempt.table.limits
    longest = timedelta(seconds=runtime.elapsed() - attempt.started_s) + limits.total
    # A worker that stood still must not send: its delivery may be another's by now (INV-14).
    if longest + margin_for(limits, runtime.timing.margin) > runtime.timing.delivery_lease:
        return NoAnswer(sent=Sent.NEVER, trouble=Trouble.LATE, detail=STOOD_STILL_BEFORE.of())
    reply: Answered | NoAnswer
    ((_, reply),) = runtime.transport.send([(request, attempt.table)])
    return reply


# --- after the answer -------------------------------------------------------------------------------


def _conclude(runtime: Runtime, attempt: _Try, gate: GateState, reply: Answered | NoAnswer) -> Errand:
    now = runtime.store.now()
    state, observation = read_cancel(attempt.table, reply, now=now)
    move_gate(runtime, attempt.table, attempt.operation, gate, observation)
    after = state or _still(attempt.operation, reply)
    entry = story.entry(
        "cancel",
        attempt.operation,
        at=now,
        cancel=after.value,
        sent=state is not None,
        observation=story.observation(observation),
        table=story.table_mark(attempt.table),
    )
    written = runtime.store.note(attempt.operation.id, entry, cancel_state=after)
    if state is None:
        return _not_heard(runtime, attempt, written, reply, observation)
    if state is CancelState.REFUSED:
        return Done()
    _look_soon(runtime, written)  # a status answer is the only proof of what became of the job
    if state is CancelState.ACCEPTED:
        return Done()
    said = observation.detail or say.CANCEL_UNTOLD.of()
    if attempt.spec.repeatable and attempt.delivery.attempts < runtime.timing.delivery_attempts:
        return Again(after=_pause(attempt, observation), said=said)
    return _doubtful(said)


def _still(before: Operation, reply: Answered | NoAnswer) -> CancelState:
    """How the cancellation stands after a try that sent nothing: a doubt that there was before it stays.

    Who stood still cannot know whether another worker has sent meanwhile.
    """
    late = isinstance(reply, NoAnswer) and reply.trouble is Trouble.LATE
    return CancelState.UNKNOWN if late or before.cancel_state == CancelState.UNKNOWN else CancelState.REQUESTED


def _not_heard(
    runtime: Runtime, attempt: _Try, written: Operation, reply: Answered | NoAnswer, observation: Observation
) -> Again | GiveUp:
    """Proven unsent: nothing speaks against another try, unless the address itself is not allowed."""
    said = observation.detail or say.NOT_SENT.of()
    if isinstance(reply, NoAnswer) and reply.trouble is Trouble.TARGET_DENIED:
        return _unsendable(runtime, written, said)
    return _unsent(runtime, attempt.delivery, written, said)


def _pause(attempt: _Try, observation: Observation) -> timedelta:
    wait = observation.guidance.wait if observation.guidance else None
    return max(attempt.pause, wait or timedelta(0))


def _look_soon(runtime: Runtime, operation: Operation) -> None:
    """Bring the next look forward as a notice would: never before guidance or the account's gate (INV-26)."""
    meant = Receipt(
        provider=operation.provider,
        account=operation.account,
        notice_id=delivery_of(operation.id),
        operation_id=operation.id,
    )
    moved = runtime.store.hint([meant])
    if moved:
        runtime.scheduler.wake_now(moved)


def _unsent(
    runtime: Runtime, delivery: Delivery, operation: Operation, said: str, *, after: timedelta | None = None
) -> Again | GiveUp:
    if delivery.attempts < runtime.timing.delivery_attempts:
        return Again(after=after, said=said)
    return _unsendable(runtime, operation, said)


def _unsendable(runtime: Runtime, operation: Operation, said: str) -> GiveUp:
    """No machine tries again. Nothing was heard, so the job may be cancelled anew once the cause is mended."""
    if operation.cancel_state == CancelState.UNKNOWN:
        return _doubtful(say.CANCEL_NOT_AGAIN.of(why=said))
    given_up = _give_up(say.CANCEL_NOT_SENT.of(why=said), said)
    entry = story.entry("cancel_unsent", operation, at=runtime.store.now(), detail=clean(said, 500))
    # The question comes with it: after a crash right here the errand finds nothing to do, and nobody would be asked.
    runtime.store.note(operation.id, entry, question=given_up.question, cancel_state="")
    return given_up


def _doubtful(said: str) -> GiveUp:
    return _give_up(f"{say.CANCEL_UNKNOWN.of()} {said}", said)


def _give_up(detail: str, said: str) -> GiveUp:
    return GiveUp(question=Question(reason=Reason.CANCEL_UNKNOWN, detail=clean(detail, 500)), said=clean(said, 500))
