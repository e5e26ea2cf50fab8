"""Run named follow-ups, at least once, with a stable key (R-END-2, INV-21 to 23)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from traceback import format_tb

from jobtrack.core.backoff import delivery_delay
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.operation import Operation
from jobtrack.core.text import clean, redact
from jobtrack.ports import Runtime
from jobtrack.records import Delivery

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
        delivery = runtime.store.take_delivery(delivery_id, owner=owner, lease=runtime.timing.delivery_lease)
        if delivery is None:
            continue
        (operation,) = runtime.store.get([delivery.operation_id])
        if delivery.attempts > runtime.timing.delivery_attempts:
            _failed(runtime, delivery, operation, owner, "the handler never came back; its process ended or hung")
            continue
        try:
            runtime.run_handler(delivery, operation)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a user's handler raises is a failed attempt, not our end
            # Where it happened helps its author; the lines of a traceback hold code, never values.
            logger.warning("follow-up %s raised in:\n%s", delivery.id, "".join(format_tb(error.__traceback__)))
            _failed(runtime, delivery, operation, owner, _said(error))
        else:
            done += runtime.store.close_delivery(delivery, owner=owner)
    return done


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
        detail = f"The follow-up {delivery.event} failed {delivery.attempts} times; the last error: {said}"
        question = Question(reason=Reason.DELIVERY_FAILED, detail=clean(detail, limit=500))
    runtime.store.fail_delivery(
        delivery, owner=owner, error=said, again_in=None if question else again, question=question
    )
    if question is not None:
        runtime.listener.escalated(operation, (question,))
