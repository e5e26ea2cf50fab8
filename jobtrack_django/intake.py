"""What ``track`` and ``submit`` have in common: a caller's words checked, rows stored in the caller's transaction."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeVar

from django.db import models, transaction

from jobtrack.core import operation as core
from jobtrack.core.text import clean
from jobtrack.errors import OperationNotFound, TableMissing, UsageError
from jobtrack.flow.track import Wishes
from jobtrack_django import conf
from jobtrack_django.models import Operation
from jobtrack_django.remains import refuse_pruned
from jobtrack_django.storable import storable, text_limit

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid6 import uuid7

W = TypeVar("W", bound=Wishes)


def wishes(kind: type[W], function: str, table_id: Any, given: dict[str, Any]) -> W:
    """What a caller said, checked as far as no table is needed.

    Args:
        kind: the record to make.
        function: the name the caller used, for messages.
        given: the keywords; consumed.

    Raises:
        UsageError: a keyword is unknown or missing, or a value cannot be accepted.
    """
    account, params = given.get("account", "default"), given.pop("params", None) or {}
    if not (isinstance(table_id, str) and isinstance(account, str) and isinstance(params, Mapping)):
        raise UsageError("The table id and the account must be texts, and params a mapping of texts.")
    configured = conf.settings().accounts.get(table_id, {}).get(account, {})
    for name in params.keys() & configured.keys():
        raise UsageError(f"The parameter {name!r} comes from the account {account!r}; do not pass it.", param=name)
    given["operation_id"] = given.get("operation_id") or str(uuid7())
    _refuse_unknown(kind, function, given)
    said = kind(provider=table_id, params={**configured, **params}, **given)
    _refuse_unstorable(said)
    _refuse_misspelled(said)
    return said


def _refuse_unknown(kind: type[Wishes], function: str, given: Mapping[str, Any]) -> None:
    known = {field.name for field in fields(kind)}
    for name in given.keys() - known:
        near = get_close_matches(str(name), known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{function}() takes no {name!r}.{hint}", argument=name)
    if "job_id" in known and "job_id" not in given:
        raise UsageError(f"{function}() needs job_id, the provider's id of the job.")


def _refuse_misspelled(said: Wishes) -> None:
    """A follow-up that cannot be found would fail hours later, when the job is done."""
    from jobtrack_django.runtime import misspelled

    for event in ("on_success", "on_failure", "on_end"):
        problem = misspelled(getattr(said, event))
        if problem:
            raise UsageError(f"{event}: {problem}", argument=event)


_TEXTS = (
    *("provider", "account", "job_id", "status_url", "reference", "on_success", "on_failure", "on_end"),
    "predecessor",
)


def _refuse_unstorable(said: Wishes) -> None:
    """A caller's own text is refused rather than mended: it is an identity or a name."""
    columns = {"id": said.operation_id} | {name: getattr(said, name) for name in _TEXTS if hasattr(said, name)}
    for name, text in columns.items():
        limit = text_limit(Operation, name)
        if not isinstance(text, str) or storable(text, limit) != text or clean(text, len(text)) != text:
            what = "operation_id" if name == "id" else name
            at_most = "" if limit is None else f" of at most {limit} characters"
            raise UsageError(f"{what} must be a text{at_most}, without control characters.")


def saved(subject: Any) -> models.Model | None:
    """The caller's object, if it can be found again. A key alone proves nothing: some are made before saving.

    Raises:
        UsageError: it is no saved object of a model, or its key is too long.
    """
    if subject is None:
        return None
    if not isinstance(subject, models.Model) or subject._state.adding or subject.pk is None:  # noqa: SLF001 - documented by Django
        raise UsageError("The subject must be a saved object of a model.")
    if len(str(subject.pk)) > (text_limit(Operation, "object_id") or 0):
        raise UsageError("The key of the subject is too long to be linked.")
    return subject


def keep(
    table_id: str,
    subjects: Sequence[models.Model | None],
    store: Callable[[], list[core.Operation]],
    announce: Callable[[list[core.Operation]], None],
) -> list[Operation]:
    """Store operations in the caller's transaction, link their subjects, and announce them once it is committed."""
    using = conf.settings().database
    with transaction.atomic(using=using):
        stored = _explained(table_id, store)
        for operation, subject in zip(stored, subjects, strict=True):
            if subject is not None:
                _link(operation.id, subject, using)

        def announce_stored() -> None:
            announce(stored)

        # Robust: what happens to a wake-up is no concern of the caller; the sweeper finds the row.
        transaction.on_commit(announce_stored, using=using, robust=True)
    rows = Operation.objects.using(using).in_bulk([operation.id for operation in stored])
    return [rows.get(operation.id) or _row_of_another(operation.id, using) for operation in stored]


def _explained(table_id: str, store: Callable[[], list[core.Operation]]) -> list[core.Operation]:
    try:
        return store()
    except TableMissing:
        # The catalog knows more: which tables there are, or what is wrong with this one.
        from jobtrack_django.runtime import catalog

        catalog().require(table_id)
        raise


def _link(operation_id: str, subject: models.Model, using: str) -> None:
    """Link the caller's object, once."""
    from django.contrib.contenttypes.models import ContentType

    kind = ContentType.objects.get_for_model(subject, for_concrete_model=False)
    unlinked = Operation.objects.using(using).filter(pk=operation_id, content_type__isnull=True)
    # Asked first: on MySQL two callers with one id would wait for each other's locks (INV-20).
    if unlinked.exists():
        unlinked.update(content_type=kind, object_id=str(subject.pk))


def _row_of_another(operation_id: str, using: str) -> Operation:
    """A row that was committed after the snapshot of the caller's transaction; only a locking read sees it.

    Raises:
        OperationPruned: it was pruned a moment ago.
    """
    with transaction.atomic(using=using):  # where the caller has none, nothing but pruning can have come between
        row = Operation.objects.using(using).select_for_update().filter(pk=operation_id).first()
    if row is None:
        refuse_pruned(operation_id, using)
        raise OperationNotFound(f"There is no operation {operation_id!r}.", operation_id=operation_id)
    return row
