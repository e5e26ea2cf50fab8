"""What a view, a signal receiver or a task calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Required, TypedDict, Unpack

from asgiref.sync import sync_to_async
from django.db import models, transaction

from jobtrack.core import operation as core
from jobtrack.core.text import clean
from jobtrack.errors import OperationNotFound, TableMissing, UsageError
from jobtrack.flow import track as flow
from jobtrack.flow.track import Tracking
from jobtrack.ports import Runtime
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import conf
from jobtrack_django.models import Operation
from jobtrack_django.storable import storable, text_limit

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid6 import uuid7


class Job(TypedDict, total=False):
    """One job of ``track_many``: the keywords of ``track``."""

    job_id: Required[str]
    params: Mapping[str, str] | None
    account: str
    operation_id: str | None
    status_url: str
    on_success: str
    on_failure: str
    on_end: str
    subject: models.Model | None
    reference: str
    accepted_at: datetime | None
    deadline: timedelta | None
    needed_by: datetime | None
    status_requests: int | None
    transport_failures: int | None
    rate_limited: int | None


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
    """
    (operation,) = track_many(table_id, [job])
    return operation


def track_many(table_id: str, jobs: Iterable[Job]) -> list[Operation]:
    """``track`` for several jobs of one provider, all in one transaction; returns the operations in their order."""
    runtime, using = get_runtime(), conf.settings().database
    wanted: list[dict[str, Any]] = [dict(job) for job in jobs]
    subjects = [_saved(job.pop("subject", None)) for job in wanted]
    trackings = [_tracking(table_id, job) for job in wanted]
    with transaction.atomic(using=using):
        stored = _track(runtime, table_id, trackings)
        for operation, subject in zip(stored, subjects, strict=True):
            if subject is not None:
                _link(operation.id, subject, using)

        def announce_first_looks() -> None:
            now = runtime.store.now()
            for operation in stored:
                flow.announce_first(runtime, operation, now=now)

        # Robust: what happens to a wake-up is no concern of the caller; the sweeper finds the row.
        transaction.on_commit(announce_first_looks, using=using, robust=True)
    rows = Operation.objects.using(using).in_bulk([operation.id for operation in stored])
    return [rows.get(operation.id) or _row_of_another(operation.id, using) for operation in stored]


def _track(runtime: Runtime, table_id: str, trackings: Sequence[Tracking]) -> list[core.Operation]:
    try:
        return flow.track(runtime, trackings, announce=False)
    except TableMissing:
        # The catalog knows more: which tables there are, or what is wrong with this one.
        from jobtrack_django.runtime import catalog

        catalog().require(table_id)
        raise


async def atrack(table_id: str, **job: Unpack[Job]) -> Operation:
    """``track`` for asynchronous code."""
    return await sync_to_async(track)(table_id, **job)


def get_operation(operation_id: str) -> Operation:
    """The operation as it stands now, from the database that takes the writes.

    Raises:
        OperationNotFound: there is none with this id.
    """
    row = Operation.objects.using(conf.settings().database).filter(pk=storable(operation_id)).first()
    if row is None:
        raise OperationNotFound(f"There is no operation {operation_id!r}.", operation_id=operation_id)
    return row


def _tracking(table_id: Any, job: dict[str, Any]) -> Tracking:
    account, given = job.get("account", "default"), job.pop("params", None) or {}
    if not (isinstance(table_id, str) and isinstance(account, str) and isinstance(given, Mapping)):
        raise UsageError("The table id and the account must be texts, and params a mapping of texts.")
    configured = conf.settings().accounts.get(table_id, {}).get(account, {})
    for name in given.keys() & configured.keys():
        raise UsageError(f"The parameter {name!r} comes from the account {account!r}; do not pass it.", param=name)
    job["operation_id"] = job.get("operation_id") or str(uuid7())
    _refuse_unknown(job)
    tracking = Tracking(provider=table_id, params={**configured, **given}, **job)
    _refuse_unstorable(tracking)
    _refuse_misspelled(tracking)
    return tracking


def _refuse_unknown(job: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(Tracking)}
    for name in job.keys() - known:
        near = get_close_matches(str(name), known, n=1)
        raise UsageError(f"track() takes no {name!r}." + (f" Did you mean {near[0]!r}?" if near else ""), argument=name)
    if "job_id" not in job:
        raise UsageError("track() needs job_id, the provider's id of the job.")


def _refuse_misspelled(tracking: Tracking) -> None:
    """A follow-up that cannot be found would fail hours later, when the job is done."""
    from jobtrack_django.runtime import misspelled

    for event in ("on_success", "on_failure", "on_end"):
        problem = misspelled(getattr(tracking, event))
        if problem:
            raise UsageError(f"{event}: {problem}", argument=event)


_FREE_TEXTS = ("reference", "on_success", "on_failure", "on_end")


def _refuse_unstorable(tracking: Tracking) -> None:
    """A caller's own text is refused rather than mended: it is an identity or a name."""
    columns = {"id": tracking.operation_id} | {
        name: getattr(tracking, name) for name in ("provider", "account", "job_id", "status_url", *_FREE_TEXTS)
    }
    for name, text in columns.items():
        limit = text_limit(Operation, name)
        if not isinstance(text, str) or storable(text, limit) != text or clean(text, len(text)) != text:
            what = "operation_id" if name == "id" else name
            at_most = "" if limit is None else f" of at most {limit} characters"
            raise UsageError(f"{what} must be a text{at_most}, without control characters.")


def _saved(subject: Any) -> models.Model | None:
    """The caller's object, if it can be found again. A key alone proves nothing: some are made before saving."""
    if subject is None:
        return None
    if not isinstance(subject, models.Model) or subject._state.adding or subject.pk is None:  # noqa: SLF001 - documented by Django
        raise UsageError("The subject must be a saved object of a model.")
    if len(str(subject.pk)) > (text_limit(Operation, "object_id") or 0):
        raise UsageError("The key of the subject is too long to be linked.")
    return subject


def _link(operation_id: str, subject: models.Model, using: str) -> None:
    """Link the caller's object, once."""
    from django.contrib.contenttypes.models import ContentType

    kind = ContentType.objects.get_for_model(subject, for_concrete_model=False)
    unlinked = Operation.objects.using(using).filter(pk=operation_id, content_type__isnull=True)
    # Asked first: on MySQL two callers with one id would wait for each other's locks (INV-20).
    if unlinked.exists():
        unlinked.update(content_type=kind, object_id=str(subject.pk))


def _row_of_another(operation_id: str, using: str) -> Operation:
    """A row that was committed after the snapshot of the caller's transaction; only a locking read sees it."""
    return Operation.objects.using(using).select_for_update().get(pk=operation_id)
