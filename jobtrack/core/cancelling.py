"""Whether a job can be cancelled at its provider now, and if not, why (R-END-5)."""

from __future__ import annotations

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
        return f"There is no usable table {operation.provider!r} on this machine."
    if table.cancel is None:
        return f"The table {table.id!r} documents no cancellation."
    if operation.terminal:
        return f"The operation has ended: {operation.state.value}."
    if operation.state is OperationState.READY:
        return "Nothing has been submitted yet: there is no job to cancel. Abandon the operation instead."
    if operation.accepted_at is None:
        return "It is not known whether the provider has a job: there is nothing to cancel by name."
    if not operation.job_id and table.cancel.request.path:
        return "The provider gave no job id, and this table cancels by it."
    return _asked_before(operation.cancel_state, repeatable=table.cancel.repeatable or again)


def _asked_before(state: str, *, repeatable: bool) -> str:
    if state == CancelState.REQUESTED:
        return "A cancellation has been asked for already."
    if state == CancelState.ACCEPTED:
        return "The provider has accepted a cancellation; a status answer will say what became of the job."
    if state == CancelState.UNKNOWN and not repeatable:
        return "A cancellation may have been heard already, and sending it twice is not known to be harmless."
    return ""
