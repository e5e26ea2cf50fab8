"""Run named follow-ups, at least once, with a stable key (R-END-2, INV-21 to 23)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from traceback import format_tb
from typing import Protocol

from jobtrack.core import sentences_question as say
from jobtrack.core.backoff import delivery_delay
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.operation import Operation
from jobtrack.core.text import clean, redact
from jobtrack.flow.cancel import cancel
from jobtrack.flow.errand import Again, Done, Errand, GiveUp
from jobtrack.flow.fetch import fetch, lease_of
from jobtrack.ports import Runtime
from jobtrack.records import CANCEL, RESULT, Delivery

logger = logging.getLogger(__name__)


def deliver(runtime: Runtime, delivery_ids: Sequence[str]) -> int:
    """Run each follow-up under its delivery lease and close its row when the handler returns.

    A handler that raises never changes the operation: it is tried again with growing pauses, then a person is asked.
    A handler that takes its process with it is counted too: it is not started once more than the attempts allow.

    Returns:
        How many handlers returned.
    """
    done = 0
    for delivery_id in delivery_ids:
        owner = runtime.token()
        delivery = runtime.store.take_delivery(delivery_id, owner=owner, lease=_lease(runtime, delivery_id))
        if delivery is None:
            continue
        (operation,) = runtime.store.get([delivery.operation_id])
        errand = _ERRANDS.get(delivery.event)
        if errand is not None:
            done += _run_errand(runtime, delivery, operation, owner, errand)
        else:
            done += _run_handler(runtime, delivery, operation, owner)
    return done


def _lease(runtime: Runtime, delivery_id: str) -> timedelta:
    """How long one attempt may take: of a download as its table says, of anything else as the settings say."""
    operation_id, _, event = delivery_id.rpartition(":")
    if event == RESULT:
        for row in runtime.store.get([operation_id]):
            table = runtime.tables.get(row.provider)
            if table is not None:
                return lease_of(runtime, table)
    return runtime.timing.delivery_lease


def _fetch(runtime: Runtime, delivery: Delivery, operation: Operation) -> Errand:
    return fetch(runtime, delivery, operation, lease=_lease(runtime, delivery.id))


_ERRANDS = {CANCEL: cancel, RESULT: _fetch}
"""What this library does itself; every other event is a named follow-up."""


def _run_errand(runtime: Runtime, delivery: Delivery, operation: Operation, owner: str, run: Runs) -> bool:
    try:
        came_to = run(runtime, delivery, operation)
    except Exception as error:  # noqa: BLE001 - one errand's trouble is no other's; its row says so
        logger.warning("errand %s raised in:\n%s", delivery.id, "".join(format_tb(error.__traceback__)))
        question = _errand_question(delivery) if delivery.attempts >= runtime.timing.delivery_attempts else None
        came_to = Again(said=_said(error)) if question is None else GiveUp(question=question, said=_said(error))
    return finish_errand(runtime, delivery, operation, owner, came_to)


def finish_errand(runtime: Runtime, delivery: Delivery, operation: Operation, owner: str, came_to: Errand) -> bool:
    """Close the errand's row, date its next try, or ask a person; True if it is done."""
    match came_to:
        case Done():
            return runtime.store.close_delivery(delivery, owner=owner)
        case Again(after=after, said=said):
            pause = delivery_delay(delivery.attempts) if after is None else after
            runtime.store.fail_delivery(delivery, owner=owner, error=said, again_in=pause, question=None)
        case GiveUp(question=question, said=said):
            runtime.store.fail_delivery(delivery, owner=owner, error=said, again_in=None, question=question)
            runtime.listener.escalated(operation, (question,))
    return False


def _errand_question(delivery: Delivery) -> Question:
    reason = Reason.CANCEL_UNKNOWN if delivery.event == CANCEL else Reason.RESULT_UNAVAILABLE
    return Question(reason=reason, detail=say.ERRAND_FAILED.of(event=delivery.event, count=delivery.attempts))


def _run_handler(runtime: Runtime, delivery: Delivery, operation: Operation, owner: str) -> bool:
    if delivery.attempts > runtime.timing.delivery_attempts:
        _failed(runtime, delivery, operation, owner, say.NEVER_CAME_BACK.of())
        return False
    try:
        runtime.run_handler(delivery, operation)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's handler raises is a failed attempt, not our end
        # Where it happened helps its author; the lines of a traceback hold code, never values.
        logger.warning("follow-up %s raised in:\n%s", delivery.id, "".join(format_tb(error.__traceback__)))
        _failed(runtime, delivery, operation, owner, _said(error))
        return False
    return runtime.store.close_delivery(delivery, owner=owner)


class Runs(Protocol):
    def __call__(self, runtime: Runtime, delivery: Delivery, operation: Operation) -> Errand: ...


def _said(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return clean(redact(f"{name}: {error}"), limit=500)
    except Exception:  # noqa: BLE001 - an error of a user's own may not even be printable
        return name


def _failed(runtime: Runtime, delivery: Delivery, operation: Operation, owner: str, said: str) -> None:
    logger.warning("follow-up %s (%s) failed on attempt %d: %s", delivery.id, delivery.handler, delivery.attempts, said)
    again = delivery_delay(delivery.attempts)
    question = None
    if delivery.attempts >= runtime.timing.delivery_attempts:
        detail = say.FOLLOW_UP_FAILED.of(event=delivery.event, count=delivery.attempts, why=said)
        question = Question(reason=Reason.DELIVERY_FAILED, detail=clean(detail, limit=500))
    runtime.store.fail_delivery(
        delivery, owner=owner, error=said, again_in=None if question else again, question=question
    )
    if question is not None:
        runtime.listener.escalated(operation, (question,))
