"""What a view, a signal receiver or a task calls."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Required, TypedDict, Unpack

from asgiref.sync import sync_to_async
from django.db import connections, models
from django.views.decorators.debug import sensitive_variables

from jobtrack.core import operation as core
from jobtrack.errors import IdempotencyConflict, OperationNotFound, UsageError
from jobtrack.flow import submit as submit_flow
from jobtrack.flow import track as track_flow
from jobtrack.flow.submit import Submission
from jobtrack.flow.track import Tracking
from jobtrack.ports import Runtime
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import conf
from jobtrack_django.intake import keep, saved, wishes
from jobtrack_django.models import Operation
from jobtrack_django.remains import refuse_pruned
from jobtrack_django.signals import idempotency_conflict
from jobtrack_django.storable import storable

logger = logging.getLogger(__name__)


class Common(TypedDict, total=False):
    """Keywords of ``track`` and ``submit`` alike."""

    params: Mapping[str, str] | None
    account: str
    operation_id: str | None
    on_success: str
    on_failure: str
    on_end: str
    subject: models.Model | None
    reference: str
    deadline: timedelta | None
    needed_by: datetime | None
    status_requests: int | None
    transport_failures: int | None
    rate_limited: int | None
    escalate_ends: bool | None


class Job(Common, total=False):
    """One job of ``track_many``: the keywords of ``track``."""

    job_id: Required[str]
    status_url: str
    accepted_at: datetime | None


class Task(Common, total=False):
    """One submission of ``submit_many``: the keywords of ``submit``."""

    payload: Any
    preconditions: Mapping[str, str]
    predecessor: str


@sensitive_variables("task")
def submit(table_id: str, **task: Unpack[Task]) -> Operation:
    """Have a job done by a provider: a worker submits it once, follows it to its end, and never guesses (R-SUB).

    Nothing is sent here. The operation becomes part of the caller's transaction: after a rollback there is none, and
    after the commit a worker sends the request that was fixed here, byte for byte. Calling again with the same
    operation id and the same content gives the same operation, also from many processes at once.

    The caller's transaction is the one on ``JOBTRACK["DATABASE"]``. If another database has one open too, the order of
    the two commits is the caller's business: an inner one on ours commits on its own, and no rollback around it takes
    the submission back.

    Args:
        table_id: id of the provider table; it must say how jobs are submitted.
        **task: what is to be done.

            - ``payload``: JSON-compatible; the table says where it goes. It is kept encrypted until the outcome of
              the submission is proven, and then erased.
            - ``operation_id``: your own id of this piece of business, such as ``"export-2024-17"``, at most 200
              characters; None: a new one is made. The idempotency key follows from it.
            - ``preconditions``: conditional headers that the table lists, such as ``{"If-Match": etag}``.
            - ``predecessor``: id of the ended operation that this one replaces.
            - ``deadline``: how long to follow the job from its acceptance; None: as the table grants.
            - the others as in ``track``.

    Raises:
        TableMissing: no table with that id; TableError: it has mistakes.
        UsageError: an argument that cannot be accepted, or a transaction is open on another database and none on the
            one the operation is stored in: its rollback could not take the submission back.
        IdempotencyConflict: the operation id is known with other content. Nothing is sent; the log and the signal tell
            of it in any case. The question to a person outlives a rollback of yours if the broker takes one message
            (R-ID-4).
        OperationPruned: the operation id is that of one that has ended and was pruned; nothing is sent.
    """
    (operation,) = submit_many(table_id, [task])
    return operation


@sensitive_variables()  # all of them, and so also those of every function that it calls
def submit_many(table_id: str, tasks: Iterable[Task]) -> list[Operation]:
    """``submit`` for several jobs of one provider, all in one transaction; returns the operations in their order."""
    runtime, using = get_runtime(), conf.settings().database
    wanted: list[dict[str, Any]] = [dict(task) for task in tasks]
    subjects = [saved(task.pop("subject", None)) for task in wanted]
    submissions = [wishes(Submission, "submit", table_id, task) for task in wanted]
    _refuse_other_transaction(using)
    inside = connections[using].in_atomic_block

    def announce(stored: list[core.Operation]) -> None:
        now = runtime.store.now()
        for operation in stored:
            submit_flow.announce_submission(runtime, operation, now=now)

    try:
        return keep(table_id, subjects, lambda: submit_flow.submit(runtime, submissions, announce=False), announce)
    except IdempotencyConflict as conflict:
        _report(runtime, str(conflict.context.get("operation_id", "")), inside=inside)
        # The frames below hold the payload, which an error hook would show.
        raise conflict.with_traceback(None) from None


def _refuse_other_transaction(using: str) -> None:
    """A transaction of another database may be rolled back after ours is committed: the job would be done anyway."""
    if connections[using].in_atomic_block:
        return
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            raise UsageError(
                f"submit() stores its operation in the database {using!r}, but a transaction is open on "
                f"{connection.alias!r}: a rollback there would not take the submission back. Open "
                f"transaction.atomic(using={using!r}) around both, or call submit() from "
                f"transaction.on_commit(..., using={connection.alias!r})."
            )


def _report(runtime: Runtime, operation_id: str, *, inside: bool) -> None:
    """Tell of a conflict in ways that outlive the caller's rollback; a worker writes the question (R-ID-4)."""
    logger.error("submit() came again with other content for operation %s; nothing was sent", operation_id)
    idempotency_conflict.send_robust(Operation, operation_id=operation_id)
    if inside:
        runtime.scheduler.report_conflict(operation_id)
    else:
        submit_flow.report_conflict(runtime, operation_id)


@sensitive_variables()
async def asubmit(table_id: str, **task: Unpack[Task]) -> Operation:
    """``submit`` for asynchronous code."""

    @sensitive_variables()
    def call() -> Operation:  # arguments given to sync_to_async would be variables of its frames
        return submit(table_id, **task)

    return await sync_to_async(call)()


def track(table_id: str, **job: Unpack[Job]) -> Operation:
    """Follow a job that a provider has accepted, to its end.

    Inside a transaction the row becomes part of it, and nothing happens until it commits. Calling again with the
    same operation id gives the same operation.

    Args:
        table_id: id of the provider table.
        **job: what is known about the job.

            - ``job_id``: the provider's id of it, required.
            - ``params``: the table's parameters that come from the caller.
            - ``account``: names one environment of the provider, as in ``CREDENTIALS``.
            - ``operation_id``: your own id, at most 200 characters; None: a new one is made.
            - ``status_url``: where the provider said to ask; "": as the table builds it.
            - ``on_success``, ``on_failure``, ``on_end``: follow-ups, each the dotted path of a callable that takes
              the operation, or the name of a Celery task that takes its id. ``on_failure`` also stands for
              cancelled and expired; ``on_end`` runs at every end.
            - ``subject``: an object of yours to link; ``reference``: a text of yours, indexed.
            - ``accepted_at``: when the provider accepted it; None: now.
            - ``deadline``: how long to observe it; None: as the table grants.
            - ``needed_by``: when you need the result; a person is told once it has passed.
            - ``status_requests``, ``transport_failures``, ``rate_limited``: budgets; None: as the table grants.

    Raises:
        TableMissing: no table with that id; TableError: it has mistakes.
        UsageError: an argument that cannot be accepted.
        IdempotencyConflict: the operation id is known with other content (R-ID-4).
        OperationPruned: the operation id is that of one that has ended and was pruned.
    """
    (operation,) = track_many(table_id, [job])
    return operation


def track_many(table_id: str, jobs: Iterable[Job]) -> list[Operation]:
    """``track`` for several jobs of one provider, all in one transaction; returns the operations in their order."""
    runtime = get_runtime()
    wanted: list[dict[str, Any]] = [dict(job) for job in jobs]
    subjects = [saved(job.pop("subject", None)) for job in wanted]
    trackings = [wishes(Tracking, "track", table_id, job) for job in wanted]

    def announce(stored: list[core.Operation]) -> None:
        now = runtime.store.now()
        for operation in stored:
            track_flow.announce_first(runtime, operation, now=now)

    return keep(table_id, subjects, lambda: track_flow.track(runtime, trackings, announce=False), announce)


async def atrack(table_id: str, **job: Unpack[Job]) -> Operation:
    """``track`` for asynchronous code."""
    return await sync_to_async(track)(table_id, **job)


def get_operation(operation_id: str) -> Operation:
    """The operation as it stands now, from the database that takes the writes.

    Raises:
        OperationNotFound: there is none with this id.
        OperationPruned: there was one, and its rows were removed.
    """
    using = conf.settings().database
    row = Operation.objects.using(using).filter(pk=storable(operation_id)).first()
    if row is None:
        refuse_pruned(operation_id, using)
        raise OperationNotFound(f"There is no operation {operation_id!r}.", operation_id=operation_id)
    return row
