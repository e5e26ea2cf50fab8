"""Give each operation that is due its next step, by its state. Submitting and polling stay paths of their own."""

from __future__ import annotations

from collections.abc import Sequence

from jobtrack.flow.poll import poll_rows
from jobtrack.flow.reconcile import reconcile_rows, submit_rows
from jobtrack.flow.settle import Looked
from jobtrack.flow.turn import Batch
from jobtrack.ports import Runtime


def advance(runtime: Runtime, ids: Sequence[str]) -> list[Looked]:
    """Take the next step of each operation that is due; quietly skip the others.

    A message is only a hint: it wakes an operation, and the row says what is to be done. So no message, whoever
    sent it, can make a poll into a submission (R-SUB-1).

    Args:
        ids: operation ids; unknown, finished, leased or early ones are harmless.

    Returns:
        One item for each operation that was claimed.
    """
    rows = runtime.store.get(list(dict.fromkeys(ids)))
    batch = Batch()
    for take in (submit_rows, reconcile_rows, poll_rows):
        batch.run(take, runtime, rows)
    return batch.end()
