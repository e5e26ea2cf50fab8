"""Write what a look came to, under its fence, and tell who waits for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

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
    decision: object  # a ``core.decide.Decision``, or a ``core.recover.Fate``
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
    sent_at: datetime | None = None,
) -> Looked:
    """Row, audit entry, questions and follow-ups in one transaction under the fence; then wake-up and signals.

    Args:
        sent_at: the claim under which a request went out: it left then or a moment later. None: nothing was sent.
    """
    asked = (*_questions(decision), *extra)
    wanted = _decided(runtime, operation, decision, now)
    committed = write(
        runtime,
        wanted,
        event=event,
        now=now,
        table=table,
        asked=asked,
        followups=followups_of(wanted) if isinstance(decision, Conclude) else (),
        lost=lost,
        details={
            "observation": story.observation(observation) if observation else None,
            "decision": story.decision(decision),
            "draw": draw,
            "sent_at": story.instant(sent_at),
        },
    )
    return Looked(operation=wanted, decision=decision, committed=committed, sent=sent_at is not None)


def write(
    runtime: Runtime,
    wanted: Operation,
    *,
    event: str,
    now: datetime,
    table: ProviderTable | None,
    details: Mapping[str, Any],
    asked: tuple[Question, ...] = (),
    followups: tuple[Followup, ...] = (),
    lost: int | None = None,
    evidence: Mapping[str, Any] | None = None,
) -> Committed:
    """Commit a row with its audit entry and all that hangs on it; then wake-up, signals, and a line in the log.

    Args:
        details: what the audit entry says besides the common frame.
        lost: fence of the request before, if it never came to its end.
        evidence: the acceptance that this commit proves; kept even if it comes too late (INV-15).
    """
    late = None if wanted.terminal else business_question(wanted, now=now)
    if late is not None:
        asked, wanted = (*asked, late), replace(wanted, needed_by_told=True)
    if lost is not None:
        details = {**details, "lost_look": lost}
        logger.warning("operation %s: request %d never came to its end; it may be lost", wanted.id, lost)
    questions = story.questions(asked)
    entry = story.entry(event, wanted, at=now, table=story.table_mark(table), questions=questions, **details)
    commit = Commit(operation=wanted, entry=entry, questions=asked, followups=followups, table=table, evidence=evidence)
    (committed,) = runtime.store.commit([commit])
    if committed is Committed.DONE:
        _tell(runtime, commit, now)
    else:
        _tell_contradiction(runtime, wanted)
    return committed


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
                hint_floor=decision.floor,
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


def followups_of(operation: Operation) -> tuple[Followup, ...]:
    """The named follow-ups of the end that ``operation`` has come to, and no others (R-END-2)."""
    event = "on_success" if operation.state is OperationState.SUCCEEDED else "on_failure"
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
