"""Ask a provider to cancel a job, from a view, a signal receiver or a task (R-END-5)."""

from __future__ import annotations

from django.db import connections, transaction

from jobtrack.core.cancelling import refusal
from jobtrack.errors import UsageError
from jobtrack.flow.cancel import delivery_of, request_cancel
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import conf
from jobtrack_django.models import Operation
from jobtrack_django.remains import refuse_pruned


def cancel(operation: Operation, *, actor: str = "", reason: str = "") -> Operation:
    """Write down that the job is to be cancelled at its provider; a worker asks for it once this is committed.

    It joins the caller's transaction: after a rollback nothing is asked. The operation stays as it is. It becomes
    ``cancelled`` when the provider's status says so, which may never be: the job may end first.

    Args:
        operation: its row.
        actor: who wants it, as your site names people. It is kept in the audit.
        reason: why.

    Returns:
        The row as it stands now.

    Raises:
        UsageError: the table documents no cancellation, there is no job that could be named, the operation has ended,
            or a cancellation was asked for already; or a transaction is open on another database than the operation's.
        OperationNotFound: there is no such operation.
        OperationPruned: there was one, and its rows were removed.
    """
    runtime, using = get_runtime(), conf.settings().database
    _refuse_other_transaction(using)
    with transaction.atomic(using=using):
        row = Operation.objects.using(using).select_for_update().filter(pk=operation.pk).first()
        if row is None:
            refuse_pruned(operation.pk, using)
        locked = row.to_core() if row else None
        request_cancel(runtime, operation.pk, actor=actor, reason=reason, announce=False, locked=locked)

        def announce() -> None:
            runtime.scheduler.deliver([delivery_of(operation.pk)])

        # Robust: what happens to a wake-up is no concern of the caller; the sweeper finds the row.
        transaction.on_commit(announce, using=using, robust=True)
    return Operation.objects.using(using).get(pk=operation.pk)


def _refuse_other_transaction(using: str) -> None:
    """A rollback there could not take the cancellation back, and the job would be cancelled all the same."""
    opened = [each.alias for each in connections.all(initialized_only=True) if each.in_atomic_block]
    if opened and using not in opened:
        raise UsageError(
            f"A transaction is open on {opened[0]!r}, but the operation is in the database {using!r}: a rollback there "
            f"would not take the cancellation back. Call cancel() from transaction.on_commit(..., using={opened[0]!r})."
        )


def cancel_effect(operation: Operation) -> str | None:
    """What a cancellation does, in the words of the table, to be shown before; None: it may not be asked for now."""
    table = get_runtime().tables.get(operation.provider)
    if table is None or table.cancel is None or refusal(table, operation.to_core()):
        return None
    return table.cancel.effect
