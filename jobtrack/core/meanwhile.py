"""What comes to a row while a request is under way: notices, late acceptances, notes. Shared by all stores.

A worker writes the row that it claimed. Some of the stored row is newer than that and must outlive the write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from jobtrack.core import sentences_question as say
from jobtrack.core.decide import contradiction
from jobtrack.core.escalation import Option, Question, Resolution
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Operation, OperationState, may_move

OVERTAKEN = frozenset({Option.ATTACH_JOB, Option.RESUBMIT, Option.CLOSE})
"""Options that would overlook the job that a late answer has named."""

MACHINE = "jobtrack"
"""Who answered a question that late evidence has settled."""


def refusal(stored: Operation, wanted: Operation) -> str:
    """Why ``wanted`` must never be written over ``stored``, in a sentence; "" if it may (INV-08, R-ID-1)."""
    if not may_move(stored.state, wanted.state):
        return say.NEVER_BECOMES.of(before=stored.state, after=wanted.state)
    if stored.job_id not in ("", wanted.job_id):
        return say.NEVER_OTHER_JOB.of()
    if stored.accepted_at not in (None, wanted.accepted_at):
        return say.NEVER_OTHER_ACCEPTANCE.of()
    return ""


def hinted(stored: Operation, now: datetime) -> Operation:
    """The row after a notice of its provider; it moves its schedule only, and nothing under a lease (INV-26)."""
    return brought_forward(replace(stored, hinted=True, noticed_at=now), now)


def brought_forward(operation: Operation, now: datetime) -> Operation:
    """The row with its next look at the hint floor, if that is earlier (INV-04, INV-05).

    A lease that is over counts like a live one: its claim's own floor is newer than the hint floor.
    """
    floor, wake_at, not_before = operation.hint_floor, operation.wake_at, operation.not_before
    if operation.state is not OperationState.RUNNING or operation.lease is not None or None in (floor, wake_at):
        return operation
    at = max(now, floor or now)
    sooner = replace(
        operation,
        wake_at=min(wake_at or at, at),
        not_before=None if not_before is None else min(not_before, at),
    )
    if sooner == operation:
        return operation
    return replace(sooner, wake_until=None, delay_source=DelaySource.WEBHOOK.value)


def merged(stored: Operation, wanted: Operation, now: datetime) -> Operation:
    """What a commit writes: ``wanted``, with what came since its claim and is not the committer's to change."""
    row = replace(wanted, hinted=stored.hinted, noticed_at=stored.noticed_at, cancel_state=stored.cancel_state)
    # Evidence is written with an audit entry: an audit head that has not moved means that the committer saw it.
    unseen = stored.evidence and not wanted.evidence and stored.audit_seq != wanted.audit_seq
    if unseen and not row.terminal and not row.job_id:
        row = replace(row, evidence=stored.evidence)
        if row.lease is None:
            row = replace(row, wake_at=now, wake_until=None)
    if row.accepted_at is None and not row.terminal:
        row = _still_seen(stored, row)
    return brought_forward(row, now) if row.hinted else row


def _still_seen(stored: Operation, row: Operation) -> Operation:
    """What the provider said itself outlives what anybody concluded without it (INV-18)."""
    if not stored.acceptance_seen or row.acceptance_seen:
        return row
    return replace(row, acceptance_seen=True, doubt=row.doubt or stored.doubt)


def overtaken(stored: Operation, wanted: Operation, option: Option) -> bool:
    """Whether a decision would overlook the job that a late answer has named since the row was read (INV-15)."""
    return bool(stored.evidence) and stored.audit_seq != wanted.audit_seq and option in OVERTAKEN


def decided(stored: Operation, wanted: Operation) -> Operation:
    """What a person's decision on a stopped operation writes. A request under way for it can only be late now."""
    row = wanted if wanted.accepted_at is not None else _still_seen(stored, wanted)
    return replace(
        row,
        lease=None,
        hinted=stored.hinted,
        noticed_at=stored.noticed_at,
        cancel_state=stored.cancel_state,
        evidence=wanted.evidence or ({} if wanted.job_id else stored.evidence),
    )


def with_evidence(stored: Operation, evidence: Mapping[str, object], now: datetime) -> Operation:
    """The row after a late answer that proves an acceptance: kept for ``reconcile`` unless it is known already."""
    if not evidence or stored.accepted_at is not None or stored.terminal:
        return stored
    if "seen" in evidence:
        doubt = stored.doubt or say.HAS_A_JOB.of()
        return replace(stored, acceptance_seen=True, doubt=doubt)
    if stored.evidence:
        return stored
    row = replace(stored, evidence=evidence)
    if stored.lease is not None and stored.lease.until > now:
        return row
    return replace(row, wake_at=now, wake_until=None)


def second_job(stored: Operation, wanted: Operation) -> Question | None:
    """What a person is told when a commit names a job although unread evidence names another (R-ESC-6)."""
    if not stored.evidence or (wanted.accepted_at is None and not wanted.terminal):
        return None
    return contradiction(wanted, of_evidence(stored))


def of_evidence(stored: Operation) -> Operation:
    """The row as the evidence that it keeps would have it followed."""
    kept = stored.evidence
    at = stored.accepted_at or stored.created_at  # any instant: it was accepted
    return replace(
        stored, job_id=str(kept.get("job_id", "")), status_url=str(kept.get("status_url", "")), accepted_at=at
    )


def settled_by_evidence(escalation_id: str, version: int, job_id: str) -> Resolution:
    """The answer to a blocking question that a machine's commit has made pointless."""
    return Resolution(
        escalation_id=escalation_id,
        option=Option.ATTACH_JOB,
        actor=MACHINE,
        reason=say.NAMED_JOB.of(),
        version=version,
        job_id=job_id,
    )
