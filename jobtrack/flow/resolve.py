"""Apply a person's decision on an escalation (R-ESC, INV-28)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobtrack.core import gate as gates
from jobtrack.core.cancel import CancelState
from jobtrack.core.escalation import Option, Proposal, Reason, Resolution, refusal
from jobtrack.core.grant import grant
from jobtrack.core.meanwhile import OVERTAKEN
from jobtrack.core.operation import Operation
from jobtrack.core.request import check_job_id, status_request
from jobtrack.core.sentences_question import JOB_NOT_FOLLOWABLE, JOB_TAKEN
from jobtrack.core.submission import Handover
from jobtrack.core.table import ProviderTable
from jobtrack.errors import AlreadyDecided, OptionNotAllowed, SecondPersonNeeded, StaleEvidence, UsageError
from jobtrack.flow import story
from jobtrack.flow.fate import accept
from jobtrack.ports import Runtime
from jobtrack.records import CANCEL, RESULT, Escalation, Followup, JobResult, ResultState

_ERRANDS = {Option.CANCEL: Followup(event=CANCEL), Option.FETCH_AGAIN: Followup(event=RESULT)}
"""Options that send somebody off."""

_OPENS_GATE = frozenset({Option.ACCESS_REPAIRED, Option.CLOSE})
"""Closing the account's question also releases a probe: otherwise nobody would ever ask about it again."""


def resolve(runtime: Runtime, resolution: Resolution) -> Operation:
    """Close an escalation with one of its options.

    Returns:
        The operation as written.

    Raises:
        OperationNotFound: no such escalation.
        AlreadyDecided: somebody else was first; the message says who and when (R-ESC-5).
        StaleEvidence: the escalation changed since it was shown.
        OptionNotAllowed: its reason does not allow this option now.
        SecondPersonNeeded: the site wants two people for this option, and no other has proposed just this.
    """
    chosen = weigh(runtime, resolution)
    escalation, operation, table = chosen.escalation, chosen.operation, chosen.table
    _refuse_alone(runtime, escalation, operation, resolution)
    now = runtime.store.now()
    wanted = chosen.wanted
    first = escalation.proposal if resolution.option in runtime.four_eyes else None
    entry = story.entry(
        "decision",
        wanted,
        at=now,
        reason=escalation.reason.value,
        option=resolution.option.value,
        **_who(resolution),
        job_id=resolution.job_id or None,
        proposed_by=first.actor if first else None,
        evidence_version=resolution.version,
        before={"state": operation.state.value, "spent": story.counters(operation)},
        table=story.table_mark(table),
    )
    if resolution.option is Option.FETCH_AGAIN:
        _grant_reads(runtime, operation)
    errand = _ERRANDS.get(resolution.option)
    stored = runtime.store.resolve(
        resolution,
        wanted,
        entry,
        followups=_followups(operation, wanted),
        redeliver=resolution.option is Option.RETRY_DELIVERY,
        errand=errand,
        cancel_state=CancelState.REQUESTED if resolution.option is Option.CANCEL else None,
    )
    if errand is not None:
        runtime.scheduler.deliver([errand.delivery_of(operation.id)])
    _open_gate(runtime, escalation, resolution, wanted)
    _tell(runtime, operation, wanted, stored)
    return wanted


def propose(runtime: Runtime, resolution: Resolution) -> Escalation:
    """Keep the first of two people's word on an option that the site wants two for; nothing else happens.

    It replaces an earlier proposal, and is dropped when the evidence changes.

    Returns:
        The question as written: its version has grown, so that pages opened before are stale.

    Raises:
        OptionNotAllowed: as in ``resolve``, or the site wants no second person for this option.
        OperationNotFound, AlreadyDecided, StaleEvidence: as in ``resolve``.
    """
    if resolution.option not in runtime.four_eyes:
        raise OptionNotAllowed(f"{resolution.option.value} needs no second person.")
    chosen = weigh(runtime, resolution)
    proposal = Proposal(
        option=resolution.option,
        actor=resolution.actor,
        reason=resolution.reason,
        job_id=resolution.job_id,
        person=resolution.person,
    )
    entry = story.entry(
        "proposal",
        chosen.operation,
        at=runtime.store.now(),
        reason=chosen.escalation.reason.value,
        option=resolution.option.value,
        **_who(resolution),
        job_id=resolution.job_id or None,
        evidence_version=resolution.version,
        table=story.table_mark(chosen.table),
    )
    return runtime.store.propose(resolution.escalation_id, proposal, entry, version=resolution.version)


def _who(resolution: Resolution) -> dict[str, str | None]:
    """Who said it, by which right, and why (INV-28)."""
    return {
        "actor": resolution.actor,
        "person": resolution.person or None,
        "permission": resolution.permission or None,
        "why": resolution.reason,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A choice that may be made, and what it would write."""

    escalation: Escalation
    operation: Operation
    table: ProviderTable | None
    wanted: Operation  # the operation after the grant


def weigh(runtime: Runtime, resolution: Resolution) -> Weighed:
    """What a resolution would do, if it may be applied now. Nothing is written.

    Raises:
        OperationNotFound, AlreadyDecided, StaleEvidence, OptionNotAllowed: as in ``resolve``.
    """
    escalation = runtime.store.escalation(resolution.escalation_id)
    _refuse_decided(escalation)
    if escalation.version != resolution.version:
        raise StaleEvidence("The escalation changed since it was shown; read it again.", version=escalation.version)
    (operation,) = runtime.store.get([escalation.operation_id])
    table = runtime.tables.get(operation.provider)
    if operation.evidence and resolution.option in OVERTAKEN:
        raise StaleEvidence("A late answer has just named the provider's job; it will be followed.")
    refused = refusal(resolution.option, escalation.reason, operation, table)
    if refused is not None:
        raise OptionNotAllowed(
            f"{escalation.reason.value} does not allow {resolution.option.value} now.", refusal=refused.value
        )
    now = runtime.store.now()
    meant = _attached(runtime, table, operation, resolution, now)
    look = look_of(runtime, table)
    wanted = grant(meant, resolution.option, blocking=escalation.blocking, table=table, look=look, now=now)
    return Weighed(escalation=escalation, operation=operation, table=table, wanted=wanted)


def _refuse_alone(runtime: Runtime, escalation: Escalation, operation: Operation, resolution: Resolution) -> None:
    """Four eyes: another person has said just this before, and may still say it."""
    if resolution.option not in runtime.four_eyes:
        return
    first = escalation.proposal
    if first is None or not first.seconded_by(resolution) or not runtime.stands(first, operation):
        raise SecondPersonNeeded(
            f"{resolution.option.value} needs the word of two people.", proposed_by=first.actor if first else None
        )


def look_of(runtime: Runtime, table: ProviderTable | None) -> timedelta:
    """How long the single request of a grant may wait to be sent."""
    limits = runtime.limits or (table.limits if table else None)
    return max(runtime.timing.look, (limits.total if limits else timedelta(0)) + runtime.timing.margin)


def _attached(
    runtime: Runtime, table: ProviderTable | None, operation: Operation, resolution: Resolution, now: datetime
) -> Operation:
    """The row with the job that a person names, if it can be followed with no more than its id (R-SUB-6)."""
    if resolution.option is not Option.ATTACH_JOB or table is None:
        return operation
    try:
        check_job_id(resolution.job_id)
        _refuse_followed(runtime, operation, resolution.job_id)
        named = Handover(job_id=resolution.job_id)
        attached = accept(runtime, table, operation, named, now=operation.first_sent_at or now)
        status_request(table, attached)
    except UsageError as error:
        raise OptionNotAllowed(JOB_NOT_FOLLOWABLE.of(why=error.message), job_id=resolution.job_id) from None
    return attached


def _refuse_followed(runtime: Runtime, operation: Operation, job_id: str) -> None:
    """One job is one piece of business: its result must not be handed to two operations (R-ID-1)."""
    others = runtime.store.following(operation.provider, operation.account, job_id)
    for other in runtime.store.get([each for each in others if each != operation.id]):
        if other.params == operation.params:  # the same id under other parameters is another job
            raise UsageError(JOB_TAKEN.of(operation=repr(other.id)))


def _grant_reads(runtime: Runtime, operation: Operation) -> None:
    """Fresh tries for the result. Harmless if the decision then comes too late: nothing asks for it."""
    known = runtime.store.result(operation.id) or JobResult(operation_id=operation.id)
    runtime.store.keep_result(replace(known, state=ResultState.WANTED, reads=0, link=""))


def _refuse_decided(escalation: Escalation) -> None:
    decided = escalation.resolution
    if decided is not None:
        when = decided.at.isoformat() if decided.at else "an unknown time"
        raise AlreadyDecided(
            f"Already decided by {decided.actor} at {when}: {decided.option.value}.", actor=decided.actor, at=when
        )


def _followups(before: Operation, after: Operation) -> tuple[Followup, ...]:
    if after.terminal and not before.terminal and after.on_end:
        return (Followup(event="on_end", handler=after.on_end),)
    return ()


def _open_gate(runtime: Runtime, escalation: Escalation, resolution: Resolution, operation: Operation) -> None:
    if escalation.reason is not Reason.AUTHORIZATION_DENIED or resolution.option not in _OPENS_GATE:
        return
    account = (operation.provider, operation.account)
    for _ in range(3):
        before = runtime.store.gates([account]).get(account, gates.OPEN)
        after = gates.repaired(before, runtime.store.now())
        if after is before or runtime.store.move_gate(*account, before, after):
            return


def _tell(runtime: Runtime, before: Operation, after: Operation, resolution: Resolution) -> None:
    if after.wake_at is not None and after.wake_at != before.wake_at:
        runtime.scheduler.wake_now([after.id])
    runtime.listener.resolved(after, resolution)
    if after.terminal and not before.terminal:
        runtime.listener.finished(after)
