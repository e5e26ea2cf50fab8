"""The result of a job that succeeded: asked for, fetched into the site's storage, opened (R-END-2, R-END-4)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from django.core.files import File
from django.db import transaction

from jobtrack import records
from jobtrack.core import operation as core
from jobtrack.core.table import ProviderTable
from jobtrack.errors import OperationNotFound, ResultNotReady, ResultUnavailable, UsageError
from jobtrack.flow import fetch as flow
from jobtrack.flow import story
from jobtrack.flow.deliver import finish_errand
from jobtrack.ports import Runtime
from jobtrack.records import RESULT, Followup, ResultFile, ResultState
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import conf
from jobtrack_django.files import DjangoFiles
from jobtrack_django.models import Operation
from jobtrack_django.receipts import current_delivery
from jobtrack_django.remains import refuse_pruned

_ERRAND = Followup(event=RESULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult(records.JobResult):
    """What was fetched of a job, with its files at hand."""

    @property
    def complete(self) -> bool:
        return self.state is ResultState.COMPLETE

    def open(self, name: str | None = None) -> File[bytes]:
        """One file, for reading; close it when done, or use it in a ``with`` statement.

        Args:
            name: of the file, as in ``files``; None: the only one.

        Raises:
            ResultNotReady: the result is not complete.
            UsageError: there is no such file, or there are several and none is named.
        """
        files = get_runtime().files
        return (files if isinstance(files, DjangoFiles) else DjangoFiles()).open(self.file(name))

    def json(self, name: str | None = None) -> Any:
        """The content of one JSON file, read as a whole; ``name`` and errors as in ``open``.

        Raises:
            ValueError: the file is not JSON.
        """
        with self.open(name) as file:
            return json.load(file)

    def file(self, name: str | None = None) -> ResultFile:
        """What is known of one file: size, checksum, media type, place in the storage. As in ``open``."""
        if not self.complete:
            raise ResultNotReady(f"The result of operation {self.operation_id} is not complete.")
        found = [file for file in self.files if name in (None, file.name)]
        if len(found) == 1:
            return found[0]
        names = ", ".join(repr(file.name) for file in self.files[:20])
        raise UsageError(f"Name one of the {len(self.files)} files of this result: {names}.")


def fetch_result(operation: Operation | str, *, wait: bool = True) -> JobResult:
    """The result of a job that succeeded; fetched now if it is not there yet.

    In a follow-up let ``ResultNotReady`` through: the follow-up is tried again by its own backoff, and meanwhile a
    worker goes on fetching. Calling again never fetches twice what is complete.

    Args:
        operation: the operation, or its id.
        wait: fetch now, in this process, unless another worker is at it. False: only ask for it; that joins a
            transaction of yours, and a worker fetches after it.

    Returns:
        The complete result. With ``wait=False`` the record as it stands.

    Raises:
        OperationNotFound: there is no such operation.
        OperationPruned: there was one, and its rows were removed.
        UsageError: the job has not succeeded, its table names no result, or a transaction is open.
        ResultNotReady: it is not complete yet; ResultUnavailable: it was given up, and a person was asked.
    """
    operation_id = operation if isinstance(operation, str) else operation.pk
    if wait:
        _refuse_open_transaction()
    runtime = get_runtime()
    row, table = _fetchable(runtime, operation_id)
    result = runtime.store.result(row.id)
    if result is None:
        result = _ask(runtime, row, table, announce=not wait)
    if wait and result.state is not ResultState.COMPLETE:
        result = _try_now(runtime, row, table)
    return _told(result, wait=wait)


def _refuse_open_transaction() -> None:
    """Nothing is sent inside a transaction: it would hold its locks as long as the provider takes (INV-03)."""
    try:
        with transaction.atomic(using=conf.settings().database, durable=True):
            pass
    except RuntimeError:
        raise UsageError(
            "fetch_result() asks the provider and must not be called inside a transaction; "
            "call it before the transaction, or with wait=False."
        ) from None


def _fetchable(runtime: Runtime, operation_id: str) -> tuple[core.Operation, ProviderTable]:
    found = runtime.store.get([operation_id])
    if not found:
        refuse_pruned(operation_id, conf.settings().database)
        raise OperationNotFound(f"There is no operation {operation_id!r}.", operation_id=operation_id)
    (row,) = found
    if not row.succeeded:
        raise UsageError(f"Operation {row.id} is {row.state.value}; only a job that succeeded has a result.")
    table = runtime.tables.get(row.provider)
    if table is None:
        from jobtrack_django.runtime import catalog

        table = catalog().require(row.provider)
    if table.result is None:
        raise UsageError(f"Table {table.id!r} says nothing about a result to fetch.")
    return row, table


def _ask(runtime: Runtime, row: core.Operation, table: ProviderTable, *, announce: bool) -> records.JobResult:
    """Write down that the result is wanted, together with the errand that fetches it."""
    using = conf.settings().database
    wanted = records.JobResult(operation_id=row.id)
    with transaction.atomic(using=using):
        # Two callers at once: the second one waits here, and must not undo what the first one's try has written.
        Operation.objects.using(using).select_for_update().get(pk=row.id)
        known = runtime.store.result(row.id)
        if known is not None:
            return known
        runtime.store.keep_result(wanted)
        entry = story.entry("result_wanted", row, at=runtime.store.now(), table=story.table_mark(table))
        runtime.store.note(row.id, entry, errand=_ERRAND)
        if announce:
            delivery_id = _ERRAND.delivery_of(row.id)
            transaction.on_commit(lambda: runtime.scheduler.deliver([delivery_id]), using=using, robust=True)
    return wanted


def _try_now(runtime: Runtime, row: core.Operation, table: ProviderTable) -> records.JobResult:
    """One try in this process, unless another worker is at it, the next try is not due, or a person has to decide."""
    # A handler has its own delivery's lease, which must outlast the try.
    lease = runtime.timing.delivery_lease if current_delivery() else flow.lease_of(runtime, table)
    owner = runtime.token()
    delivery = runtime.store.take_delivery(_ERRAND.delivery_of(row.id), owner=owner, lease=lease)
    if delivery is not None:
        outcome = flow.fetch(runtime, delivery, row, lease=lease)
        finish_errand(runtime, delivery, row, owner, outcome)
    return runtime.store.result(row.id) or records.JobResult(operation_id=row.id)


def _told(result: records.JobResult, *, wait: bool) -> JobResult:
    if wait and result.state is not ResultState.COMPLETE:
        said = result.detail or "It is being fetched."
        given_up = result.state is ResultState.UNAVAILABLE
        kind, what = (ResultUnavailable, "cannot be fetched") if given_up else (ResultNotReady, "is not there yet")
        raise kind(f"The result of operation {result.operation_id} {what}. {said}", operation_id=result.operation_id)
    return JobResult(**{field.name: getattr(result, field.name) for field in fields(records.JobResult)})
