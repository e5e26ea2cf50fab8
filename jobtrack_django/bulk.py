"""One choice for many questions (R-ESC): each is decided in a transaction of its own, and its outcome is kept.

``foresee`` says what would become of a question, ``begin`` keeps what is to be done, ``go_on`` does it. A process that
dies in the middle loses nothing and repeats nothing: what is decided is in the questions, the rest is still pending.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import transaction

from jobtrack.core.escalation import Option, Reason, Resolution, refusal
from jobtrack.core.grant import grant, submits
from jobtrack.core.meanwhile import OVERTAKEN
from jobtrack.errors import AlreadyDecided, JobtrackError, OptionNotAllowed, SecondPersonNeeded, StaleEvidence
from jobtrack.flow.resolve import look_of, resolve
from jobtrack.ports import Runtime
from jobtrack_django import conf, words
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import DecisionBatch, DecisionItem, Escalation
from jobtrack_django.storable import storable

_log = logging.getLogger(__name__)

May = Callable[[Escalation], bool]
"""Whether the person may choose the batch's option for this question."""

BUDGET = timedelta(seconds=20)
"""How long one request goes on deciding."""


class Why(StrEnum):
    """Why a question was not decided, besides ``core.escalation.Refusal``."""

    DECIDED = "already_decided"  # somebody was first
    CHANGED = "stale_evidence"  # it changed since the preview
    UNKNOWN = "unknown_reason"  # a newer release asks it
    PERMISSION = "permission"  # the person may not
    SUBMITS = "submits"  # it would lead to a submission: decided one by one
    TWO = "second_person_needed"  # the site wants two people's word: given one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What becomes, or became, of one question."""

    outcome: str  # one of ``DecisionItem``; PENDING: it will be decided
    detail: str = ""  # a value of ``Why`` or ``Refusal``; of a failure: a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One question as it was previewed."""

    id: int
    version: int
    verdict: Verdict


_PENDING = Verdict(outcome=DecisionItem.PENDING)
_DONE = Verdict(outcome=DecisionItem.DONE)


def foresee(runtime: Runtime, option: Option, row: Escalation, *, may: May, now: datetime) -> Verdict:
    """What would become of a question, judged from the row and its operation as they were read; asks no database."""
    if row.decided_at is not None:
        return _skipped(Why.DECIDED)
    if not words.knows(row.reason):
        return _refused(Why.UNKNOWN)
    if not may(row):
        return _refused(Why.PERMISSION)
    operation = row.operation.to_core()
    table = runtime.tables.get(operation.provider)
    if operation.evidence and option in OVERTAKEN:
        return _skipped(Why.CHANGED)
    not_offered = refusal(option, Reason(row.reason), operation, table)
    if not_offered is not None:
        return _refused(not_offered)
    if option in runtime.four_eyes:
        return _refused(Why.TWO)
    after = grant(operation, option, blocking=row.blocking, table=table, look=look_of(runtime, table), now=now)
    return _refused(Why.SUBMITS) if submits(after) else _PENDING


def begin(
    option: Option,
    chosen: Sequence[Chosen],
    *,
    actor: str,
    reason: str,
    previewed_at: datetime,
    retry_of: int | None = None,
) -> DecisionBatch:
    """Keep what is to be done; nothing is decided yet.

    What the preview said would not be decided is kept with why.

    Args:
        previewed_at: by the store's clock. The same preview sent twice is one batch.
        retry_of: the key of the batch whose failures these are.
    """
    using = conf.settings().database
    actor, reason = storable(actor, 255), storable(reason)
    with transaction.atomic(using=using):
        rows = Escalation.objects.using(using).filter(pk__in=[each.id for each in chosen])
        # Locked, so that of two equal requests the second one sees the first one's batch.
        there = set(rows.order_by("pk").select_for_update().values_list("pk", flat=True))
        wanted = {(each.id, each.version) for each in chosen if each.id in there}
        same = DecisionBatch.objects.using(using).filter(option=option.value, actor=actor, reason=reason)
        for batch in same.filter(created_at__gte=previewed_at, retry_of=retry_of):
            if set(batch.items.values_list("escalation_id", "version")) == wanted:
                return batch
        batch = DecisionBatch.objects.using(using).create(
            option=option.value, actor=actor, reason=reason, retry_of_id=retry_of, created_at=DatabaseNow()
        )
        DecisionItem.objects.using(using).bulk_create(
            DecisionItem(
                batch=batch,
                escalation_id=each.id,
                version=each.version,
                outcome=each.verdict.outcome,
                detail=each.verdict.detail,
            )
            for each in chosen
            if each.id in there
        )
    return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """The person who decides many questions."""

    may: May
    person: str  # what stays when they are renamed; "": the site has no such thing
    permission: str  # by which right; "": by a rule of the site's own


def go_on(
    runtime: Runtime,
    batch: DecisionBatch,
    *,
    decider: Decider,
    log: Callable[[Escalation], None],
    budget: timedelta = BUDGET,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Decide what is pending until the time is over; at least one, so that going on always gets somewhere.

    Args:
        decider: whether they may is asked again for each question just before it is decided.
        log: called once for each question that this batch has decided.
        clock: seconds since some moment.

    Returns:
        How many questions are still pending.
    """
    using = conf.settings().database
    items = DecisionItem.objects.using(using).filter(batch=batch, outcome=DecisionItem.PENDING)
    until = clock() + budget.total_seconds()
    for pk in list(items.values_list("pk", flat=True)):
        item = items.select_related("escalation__operation").filter(pk=pk).first()
        if item is None:
            continue  # another request of this batch had it
        _keep(item, _decided(runtime, batch, item, decider), log, using)
        if clock() >= until:
            break
    left = items.count()
    if not left:
        unfinished = DecisionBatch.objects.using(using).filter(pk=batch.pk, finished_at__isnull=True)
        unfinished.update(finished_at=DatabaseNow())
    return left


def _decided(runtime: Runtime, batch: DecisionBatch, item: DecisionItem, decider: Decider) -> Verdict:
    """Decide one question, or say why not."""
    option, row = Option(batch.option), item.escalation
    if _is_ours(row, batch, item):
        return _DONE  # a request that died had decided it, or another one of this batch
    expected = foresee(runtime, option, row, may=decider.may, now=runtime.store.now())
    if expected != _PENDING:
        return expected
    try:
        resolve(
            runtime,
            Resolution(
                escalation_id=str(row.pk),
                option=option,
                actor=batch.actor,
                reason=batch.reason,
                version=item.version,
                person=decider.person,
                permission=decider.permission,
            ),
        )
    except AlreadyDecided:
        row.refresh_from_db()
        return _DONE if _is_ours(row, batch, item) else _skipped(Why.DECIDED)
    except StaleEvidence:
        return _skipped(Why.CHANGED)
    except OptionNotAllowed as error:
        return _refused(error.context.get("refusal", error.code))
    except SecondPersonNeeded:
        return _refused(Why.TWO)
    except JobtrackError as error:
        return Verdict(outcome=DecisionItem.FAILED, detail=error.message)
    except Exception as error:  # noqa: BLE001 - one question's trouble is no other's; its item says so
        _log.exception("question %s of bulk decision %s", row.pk, batch.pk)
        return _failed(batch, item, error)
    return _DONE


def _failed(batch: DecisionBatch, item: DecisionItem, error: Exception) -> Verdict:
    """It may have been decided all the same, and only the news of it did not get out."""
    row = Escalation.objects.using(conf.settings().database).get(pk=item.escalation_id)
    if _is_ours(row, batch, item):
        return _DONE
    return Verdict(outcome=DecisionItem.FAILED, detail=type(error).__name__)


def _is_ours(row: Escalation, batch: DecisionBatch, item: DecisionItem) -> bool:
    """Whether the question's answer is the one that this batch gives: who, what, why, and of which evidence.

    Another batch of the same person, with the same words, asked for just that: it counts as done in both.
    """
    given = (row.option, row.actor, row.actor_reason, row.seen_version)
    return row.decided_at is not None and given == (batch.option, batch.actor, batch.reason, item.version)


def _keep(item: DecisionItem, verdict: Verdict, log: Callable[[Escalation], None], using: str) -> None:
    """Write the outcome once. That it was done is the truth, whatever else a second request has met."""
    rows = DecisionItem.objects.using(using).filter(pk=item.pk)
    done = verdict == _DONE
    rows = rows.exclude(outcome=DecisionItem.DONE) if done else rows.filter(outcome=DecisionItem.PENDING)
    with transaction.atomic(using=using):
        if rows.update(outcome=verdict.outcome, detail=storable(verdict.detail)) and done:
            log(item.escalation)


def _skipped(why: Why) -> Verdict:
    return Verdict(outcome=DecisionItem.SKIPPED, detail=why.value)


def _refused(why: StrEnum | str) -> Verdict:
    return Verdict(outcome=DecisionItem.REFUSED, detail=str(why))
