"""What is told of an operation whose rows were removed: its id stays taken (R-ID-4)."""

from __future__ import annotations

from jobtrack.errors import OperationPruned
from jobtrack_django.models_watch import PrunedOperation
from jobtrack_django.storable import storable


def refuse_pruned(operation_id: str, using: str) -> None:
    """Raises OperationPruned if an operation with this id was there and was pruned.

    Asked only after no row of the operation was seen. What removes the row writes down that it is pruned in the same
    transaction, so one of the two is always seen; the other way round both could be missed.
    """
    gone = PrunedOperation.objects.using(using).filter(pk=storable(operation_id)).first()
    if gone is not None:
        raise OperationPruned(
            f"Operation {operation_id!r} has ended ({gone.state}) and was pruned; its id stays taken.",
            operation_id=operation_id,
            state=gone.state,
            proof=gone.proof,
        )
