"""Store the intent to submit a job; a worker sends it after the caller's commit (R-ID-2, R-SUB-1, INV-17).

What is sent, its idempotency key and its fingerprint are fixed here, before anything can be sent. The caller's
transaction decides whether there is an operation at all: after a rollback there is none, and nothing was sent.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from jobtrack.core.compose import Prepared, prepare
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.sealed import Sealed
from jobtrack.core.sentences_question import SAME_ID
from jobtrack.core.table import ProviderTable
from jobtrack.core.terms import permits
from jobtrack.errors import IdempotencyConflict, OperationNotFound, TableMissing, UsageError
from jobtrack.flow import story
from jobtrack.flow.settle import wake
from jobtrack.flow.track import Wishes, granted_budget, refuse_far, refuse_naive, said
from jobtrack.ports import Runtime

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(Wishes):
    """What a caller wants done. The same operation id with the same content is the same operation (R-ID-4)."""

    payload: object = field(default=None, repr=False)  # JSON-compatible; the table says where it goes
    preconditions: Mapping[str, str] = field(default_factory=dict)  # such as If-Match, if the table lists it (R-SUB-7)
    predecessor: str = ""  # id of the ended operation that this one replaces


def submit(runtime: Runtime, submissions: Sequence[Submission], *, announce: bool = True) -> list[Operation]:
    """Store one operation for each submission. Nothing is sent here.

    Args:
        announce: publish the wake-ups now. False: the caller does it after its own commit.

    Returns:
        The stored operations, in the order given.

    Raises:
        TableMissing: no table with that id.
        UsageError: the table submits nothing, or something given cannot be accepted.
        IdempotencyConflict: the operation id is known with other content; nothing is sent (R-ID-4).
    """
    now = runtime.store.now()
    stored: list[Operation] = []
    for submission in submissions:
        table = runtime.tables.get(submission.provider)
        if table is None:
            raise TableMissing(f"There is no usable provider table {submission.provider!r}.", table=submission.provider)
        wanted = begin(runtime, table, submission, now=now)
        entry = story.entry(
            "submit",
            wanted,
            at=now,
            fingerprint=wanted.fingerprint,
            idempotency_key=wanted.idempotency_key if "key " in wanted.permits else None,  # else it is not sent
            predecessor=wanted.predecessor or None,
            table=story.table_mark(table),
        )
        (found,) = runtime.store.add([wanted], entry, table)
        _refuse_other_content(wanted, found)
        stored.append(found)
    if announce:
        for operation in stored:
            announce_submission(runtime, operation, now=now)
    return stored


def announce_submission(runtime: Runtime, operation: Operation, *, now: datetime) -> None:
    """Publish the wake-up of an operation that was just stored; any other is the sweeper's."""
    if operation.fence == 0 and operation.state is OperationState.READY and operation.wake_until is not None:
        wake(runtime, operation, now=now)


def begin(runtime: Runtime, table: ProviderTable, submission: Submission, *, now: datetime) -> Operation:
    """The first row of a submission: its bytes, its key and its budgets are fixed here."""
    refuse_naive("needed_by", submission.needed_by)
    refuse_far("needed_by", submission.needed_by)
    prepared = _prepare(table, submission)
    spec = table.submit
    if spec is None:
        raise UsageError(f"The table {table.id!r} does not say how a job is submitted.", table=table.id)
    granted = granted_budget(table, submission, now)
    follow_for = granted.deadline - now
    submit_by = now + spec.within
    budget = replace(
        granted,
        # The latest that can come of it: submitted at the last moment, found at the last moment, then followed.
        deadline=submit_by + spec.recovery.deadline + follow_for,
        submissions=spec.attempts,
        lookups=spec.recovery.requests if spec.lookup else 0,
        follow_for=follow_for,
    )
    published = runtime.scheduler.horizon >= timedelta(0)
    return Operation(
        **said(table, submission),
        job_id="",
        state=OperationState.READY,
        budget=budget,
        created_at=now,
        accepted_at=None,
        wake_at=now,
        wake_until=now + runtime.timing.grace if published else None,
        predecessor=submission.predecessor,
        idempotency_key=prepared.key,
        fingerprint=prepared.fingerprint,
        permits=permits(spec),
        sealed=runtime.vault.seal(submission.operation_id, Sealed(submission=prepared.submission)),
        submit_by=submit_by,
    )


def _prepare(table: ProviderTable, submission: Submission) -> Prepared:
    return prepare(
        table,
        operation_id=submission.operation_id,
        account=submission.account,
        payload=submission.payload,
        params=submission.params,
        reference=submission.reference,
        preconditions=submission.preconditions,
    )


def _refuse_other_content(wanted: Operation, found: Operation) -> None:
    if found.fingerprint != wanted.fingerprint or found.provider != wanted.provider:
        raise IdempotencyConflict(
            f"Operation {wanted.id!r} is already known with other content; nothing was sent.",
            operation_id=wanted.id,
            field="payload",
        )


def report_conflict(runtime: Runtime, operation_id: str) -> bool:
    """Write down that an operation id came again with other content, and ask a person once (R-ID-4, R-ESC-6).

    Returns:
        False if there is no such operation (its transaction was rolled back), or the question is open already.
    """
    open_reasons = {escalation.reason for escalation in runtime.store.open_escalations(operation_id)}
    rows = runtime.store.get([operation_id])
    if not rows or Reason.IDEMPOTENCY_CONFLICT in open_reasons:
        return False
    question = Question(reason=Reason.IDEMPOTENCY_CONFLICT, detail=SAME_ID.of())
    entry = story.entry("conflict", rows[0], at=runtime.store.now(), questions=story.questions((question,)))
    try:
        operation = runtime.store.note(operation_id, entry, question=question)
    except OperationNotFound:
        return False
    logger.warning("operation %s came again with other content", operation_id)
    runtime.listener.escalated(operation, (question,))
    return True
