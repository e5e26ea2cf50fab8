"""Run named follow-ups, at least once, with a stable key (R-END-2, INV-21 to 23)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

from jobtrack.core.escalation import Question, Reason
from jobtrack.core.operation import Operation
from jobtrack.core.text import clean, redact
from jobtrack.ports import Delivery, Runtime

logger = logging.getLogger(__name__)

_BASE = timedelta(seconds=10)
_CAP = timedelta(hours=1)


def deliver(runtime: Runtime, delivery_ids: Sequence[str]) -> int:
    """Run each follow-up under its delivery lease and close its row when the handler returns.

    A handler that raises never changes the operation: it is tried again with growing pauses, then a person is asked.

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
        try:
            runtime.run_handler(delivery, operation)
        except Exception as error:  # noqa: BLE001 - whatever a user's handler raises is a failed attempt, not our end
            _failed(runtime, delivery, operation, owner, error)
        else:
            done += runtime.store.close_delivery(delivery, owner=owner)
    return done


def _failed(runtime: Runtime, delivery: Delivery, operation: Operation, owner: str, error: Exception) -> None:
    said = clean(redact(f"{type(error).__name__}: {error}"), limit=500)
    logger.warning("follow-up %s failed on attempt %d: %s", delivery.id, delivery.attempts, type(error).__name__)
    again = min(_CAP, _BASE * 2 ** min(delivery.attempts - 1, 20))
    question = None
    if delivery.attempts >= runtime.timing.delivery_attempts:
        detail = f"The follow-up {delivery.event} failed {delivery.attempts} times; the last error: {said}"
        question = Question(reason=Reason.DELIVERY_FAILED, detail=clean(detail, limit=500))
    runtime.store.fail_delivery(
        delivery, owner=owner, error=said, again_in=None if question else again, question=question
    )
    if question is not None:
        runtime.listener.escalated(operation, (question,))
