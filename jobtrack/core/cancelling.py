"""Whether a job can be cancelled at its provider now, and if not, why (R-END-5)."""

from __future__ import annotations

from jobtrack.core import sentences_question as say
from jobtrack.core.cancel import CancelState
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.table import ProviderTable


def refusal(table: ProviderTable | None, operation: Operation, *, again: bool = False) -> str:
    """Why a cancellation may not be asked for now, as one sentence; "" if it may.

    Args:
        table: the newest table; None: this machine has none.
        operation: the row.
        again: a person knows that an earlier cancellation may have been heard, and wants another one.
    """
    if table is None:
        return say.NO_TABLE_HERE.of(table=repr(operation.provider))
    if table.cancel is None:
        return say.CANCELS_NOT.of(table=repr(table.id))
    if operation.terminal:
        return say.HAS_ENDED.of(state=operation.state)
    if operation.state is OperationState.READY:
        return say.NOTHING_SUBMITTED.of()
    if operation.accepted_at is None:
        return say.NO_KNOWN_JOB.of()
    if not operation.job_id and table.cancel.request.path:
        return say.CANCELS_BY_ID.of()
    return _asked_before(operation.cancel_state, repeatable=table.cancel.repeatable or again)


def _asked_before(state: str, *, repeatable: bool) -> str:
    if state == CancelState.REQUESTED:
        return say.CANCEL_ASKED.of()
    if state == CancelState.ACCEPTED:
        return say.CANCEL_ACCEPTED.of()
    if state == CancelState.UNKNOWN and not repeatable:
        return say.CANCEL_MAY_BE_HEARD.of()
    return ""
