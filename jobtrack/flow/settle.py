"""Write what a look came to, under its fence, and tell who waits for it."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from jobtrack.core.decide import Conclude, Decision, Stop, Wait, business_question, contradiction
from jobtrack.core.escalation import Question
from jobtrack.core.observation import Observation
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.table import ProviderTable
from jobtrack.flow import story
from jobtrack.ports import Runtime
from jobtrack.records import Commit, Committed, Followup

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What one look came to."""

    operation: Operation  # as written (or as it would have been, if stale)
    decision: Decision
    committed: Committed
    sent: bool  # a request went out


def settle(
    runtime: Runtime,
    operation: Operation,
    decision: Decision,
    *,
    event: str,
    table: ProviderTable | None,
    now: datetime,
    observation: Observation | None = None,
    draw: float | None = None,
    extra: tuple[Question, ...] = (),
    lost: int | None = None,
    sent: bool = False,
) -> Looked:
    """Row, audit entry, questions and follow-ups in one transaction under the fence; then wake-up and signals."""
    late = business_question(operation, now=now)
    asked = (*_questions(decision), *extra, *((late,) if late and not isinstance(decision, Conclude) else ()))
    wanted = _decided(runtime, operation, decision, now)
    if late:
        wanted = replace(wanted, needed_by_told=True)
    entry = story.entry(
        event,
        wanted,
        at=now,
        table=story.table_mark(table),
        observation=story.observation(observation) if observation else None,
        decision=story.decision(decision),
        draw=draw,
        questions=story.questions(asked),
        **({} if lost is None else {"lost_look": lost}),
    )
    if lost is not None:
        logger.warning("operation %s: look %d never came to its end; a request may be lost", operation.id, lost)
    commit = Commit(operation=wanted, entry=entry, questions=asked, followups=_followups(wanted, decision), table=table)
    (committed,) = runtime.store.commit([commit])
    if committed is Committed.DONE:
        _tell(runtime, commit, now)
    elif wanted.terminal:
        _tell_contradiction(runtime, wanted)
    return Looked(operation=wanted, decision=decision, committed=committed, sent=sent)


def _questions(decision: Decision) -> tuple[Question, ...]:
    match decision:
        case Wait():
            return ()
        case Conclude():
            return (decision.question,) if decision.question else ()
        case Stop():
            return (decision.question,)
    assert_never(decision)


def _decided(runtime: Runtime, operation: Operation, decision: Decision, now: datetime) -> Operation:
    """The row as the decision wants it; the lease ends with it."""
    free = replace(operation, lease=None, wake_until=None)
    match decision:
        case Wait():
            published = decision.at - now <= runtime.scheduler.horizon
            return replace(
                free,
                wake_at=decision.at,
                not_before=decision.not_before,
                delay_source=decision.source.value,
                wake_until=decision.at + runtime.timing.grace if published else None,
            )
        case Conclude():
            return replace(
                free, state=decision.state, cause=decision.cause, wake_at=None, not_before=None, last_look=False
            )
        case Stop():
            # `not_before` stays: a person's "look again" never undercuts the provider's guidance.
            return replace(free, state=OperationState.ESCALATED, wake_at=None, last_look=False)
    assert_never(decision)


def _followups(operation: Operation, decision: Decision) -> tuple[Followup, ...]:
    """The named follow-ups of this end, and no others (R-END-2)."""
    if not isinstance(decision, Conclude):
        return ()
    event = "on_success" if decision.state is OperationState.SUCCEEDED else "on_failure"
    named = ((event, getattr(operation, event)), ("on_end", operation.on_end))
    return tuple(Followup(event=name, handler=handler) for name, handler in named if handler)


def _tell(runtime: Runtime, commit: Commit, now: datetime) -> None:
    """After the commit: hints, signals and a line in the log. All of them may be lost without harm."""
    operation = commit.operation
    if operation.wake_until is not None:
        wake(runtime, operation, now=now)
    if commit.followups:
        runtime.scheduler.deliver([followup.delivery_of(operation.id) for followup in commit.followups])
    if commit.questions:
        reasons = ", ".join(question.reason.value for question in commit.questions)
        logger.warning("operation %s of %s asks a person: %s", operation.id, operation.provider, reasons)
        runtime.listener.escalated(operation, commit.questions)
    if operation.terminal:
        logger.info("operation %s of %s ended: %s", operation.id, operation.provider, operation.state.value)
        runtime.listener.finished(operation)


def wake(runtime: Runtime, operation: Operation, *, now: datetime) -> None:
    """Ask for the look that the row announces. If no message goes out, the row says so: the sweeper need not wait."""
    delay = max((operation.wake_at or now) - now, timedelta(0))
    if not runtime.scheduler.wake(operation.id, fence=operation.fence, delay=delay):
        runtime.store.unmark([operation.id])


def _tell_contradiction(runtime: Runtime, late: Operation) -> None:
    """A late answer that names another end changes nothing; the store has opened the question about it."""
    for row in runtime.store.get([late.id]):
        question = contradiction(row, late)
        if question is not None:
            runtime.listener.escalated(row, (question,))
