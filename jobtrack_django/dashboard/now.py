"""What is open at this moment. Every query is answered from an index and reads a bounded number of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Coalesce

from jobtrack.core.escalation import Risk
from jobtrack.core.operation import OPEN_STATES, OperationState
from jobtrack_django import conf
from jobtrack_django.models import AccountGate, Escalation, Heartbeat, Notice, Operation
from jobtrack_django.store import DjangoStore

MOST: Final = 10_000
"""Rows that are counted or read at most; more are told as "10,000+"."""

MOST_GATES: Final = 100
MOST_BEATS: Final = 200

SILENT: Final = timedelta(minutes=5)
"""A process that has said nothing for so long is told as silent."""

LATE: Final = timedelta(minutes=5)
"""Work that is due for longer is told as a trouble. A burst, a lost message or new workers take less."""

GRACE: Final = timedelta(minutes=15)
"""An operation must have ended or be asked about so long after its limit: it may be due for a while, then be looked
at, and its worker may die in that look."""

AGES: Final = tuple(timedelta(hours=hours) for hours in (1, 8, 24, 168))
"""Questions are sorted by how long they wait: bounds between the columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A count that stops somewhere."""

    count: int
    more: bool = False  # there are more than ``count``

    @classmethod
    def of(cls, rows: QuerySet[Any]) -> Bounded:
        count = rows.order_by()[: MOST + 1].count()
        return cls(count=min(count, MOST), more=count > MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Open questions of one reason."""

    reason: str
    ages: tuple[int, ...]  # how many in each column of ``AGES``, one more than there are bounds
    oldest: timedelta

    @property
    def count(self) -> int:
        return sum(self.ages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Open questions to people."""

    total: Bounded
    risks: Mapping[int, int]
    reasons: Sequence[Asked]  # the most frequent first


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """Operations whose time has come and that nobody looks at."""

    count: Bounded
    lag: timedelta  # how long the first of them has been due; zero: there is none

    @property
    def late(self) -> bool:
        """Nobody looks although it is time: no worker, a queue that stands still, or more work than they can do."""
        return self.lag > LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """Operations in one state that is no end. If there are more than are read, those that began first are judged."""

    state: str
    count: Bounded
    adrift: int = 0  # neither ended nor asked about, and without a next step: there must be none (INV-01)
    past: int = 0  # with a next step, but past their limit by more than ``GRACE``: there must be none

    @property
    def asks(self) -> bool:
        """These wait for a person: they have no next step, and no deadline any more."""
        return self.state == OperationState.ESCALATED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """The running operation that has not been looked at for longest."""

    operation_id: str
    since: datetime
    partial: bool  # more operations run than were read


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A process and when it said last that it is alive."""

    name: str
    kind: str
    seen_at: datetime
    silent: bool


def questions(using: str, now: datetime) -> Questions:
    rows = Escalation.objects.using(using).open().order_by("opened_at")
    read = list(rows.values_list("reason", "risk", "opened_at")[: MOST + 1])
    ages: dict[str, list[int]] = {}
    oldest: dict[str, timedelta] = {}
    for reason, _risk, opened_at in read[:MOST]:
        age = now - opened_at
        ages.setdefault(reason, [0] * (len(AGES) + 1))[bisect_right(AGES, age)] += 1
        oldest[reason] = max(oldest.get(reason, age), age)
    asked = [Asked(reason=reason, ages=tuple(counts), oldest=oldest[reason]) for reason, counts in ages.items()]
    return Questions(
        total=Bounded(count=min(len(read), MOST), more=len(read) > MOST),
        risks=Counter({risk.value: 0 for risk in Risk}) + Counter(risk for _reason, risk, _at in read[:MOST]),
        reasons=sorted(asked, key=lambda one: (-one.count, one.reason)),
    )


def states(using: str, now: datetime) -> tuple[list[Moving], Unseen | None]:
    """How many operations are in each state that is no end, how many of them are stranded there, and who is unseen.

    No index finds the stranded ones alone, as in that of ``wake_at`` every ended row has null too. So the first rows
    of each state are judged; a stranded one gets there in the end, since those before it end. They may lie all over
    the disk: each is read once.
    """
    read = {state: _read(using, state, now - GRACE) for state in OPEN_STATES if state is not OperationState.ESCALATED}
    waiting = Bounded.of(Operation.objects.using(using).filter(state=OperationState.ESCALATED.value))
    moving = [
        _moving(state, read[state]) if state in read else Moving(state=state.value, count=waiting)
        for state in OPEN_STATES
    ]
    return moving, _unseen(read[OperationState.RUNNING])


_Read = tuple[str, datetime, bool, bool]
"""An operation's id, when it was seen last, whether it has no next step, and whether it has one past its limit."""

_LIMITS: Final = {OperationState.READY: "submit_by", OperationState.UNCONFIRMED: "recover_until"}
"""What limits a state; the deadline limits every other one, and these where they have null."""


def _over(state: OperationState, ago: datetime) -> Q:
    """Whether the ``limit`` of a row passed before ``ago``: the rule of ``core`` in ``Operation.last_instant``.

    That is the limit of its state, or the end of a person's grant if later; of a ready one an open grant holds alone.
    No limit is raised for a request that is sent late because a person said so. So a grant counts until its end also
    once it is used, and a submission counts from when it was sent: what is out must be allowed to come back.
    """
    over = Q(limit__lt=ago)
    if state is OperationState.READY:
        over |= Q(last_look=True, look_until__isnull=False)
    over &= Q(look_until__isnull=True) | Q(look_until__lt=ago)
    if state is OperationState.SUBMITTING:
        over &= Q(last_sent_at__isnull=True) | Q(last_sent_at__lt=ago)
    return over


def _read(using: str, state: OperationState, ago: datetime) -> list[_Read]:
    told = {
        "since": Coalesce("observed_at", "accepted_at", "created_at"),
        "adrift": ExpressionWrapper(Q(wake_at__isnull=True), output_field=BooleanField()),
        "past": ExpressionWrapper(Q(wake_at__isnull=False) & _over(state, ago), output_field=BooleanField()),
    }
    rows = Operation.objects.using(using).filter(state=state.value).order_by("created_at")
    rows = rows.alias(limit=Coalesce(_LIMITS.get(state, "deadline"), "deadline")).annotate(**told)
    return list(rows.values_list("pk", *told)[: MOST + 1])


def _moving(state: OperationState, read: Sequence[_Read]) -> Moving:
    count = Bounded(count=min(len(read), MOST), more=len(read) > MOST)
    adrift = sum(row[2] for row in read)
    return Moving(state=state.value, count=count, adrift=adrift, past=sum(row[3] for row in read))


def _unseen(running: Sequence[_Read]) -> Unseen | None:
    """Of the running operations; if there are more than are read, of those that began first."""
    if not running:
        return None
    operation_id, first, *_ = min(running[:MOST], key=lambda row: (row[1], row[0]))
    return Unseen(operation_id=operation_id, since=first, partial=len(running) > MOST)


def overdue(using: str) -> Overdue:
    due = Bounded.of(Operation.objects.using(using).due())
    return Overdue(count=due, lag=DjangoStore(using).overdue_lag())


def gates(using: str) -> list[AccountGate]:
    """Accounts that are held back. There is one row for each account of the site."""
    closed = AccountGate.objects.using(using).exclude(reason="")
    return list(closed.order_by("provider", "account")[:MOST_GATES])


def beats(using: str, now: datetime) -> list[Beat]:
    """Processes, the last heard of first."""
    rows = Heartbeat.objects.using(using).order_by("-seen_at")[:MOST_BEATS]
    return [Beat(name=row.name, kind=row.kind, seen_at=row.seen_at, silent=now - row.seen_at > SILENT) for row in rows]


def failed_notices(using: str) -> Bounded:
    """Notices that were given up, where somebody may not know that they are asked.

    Nobody needs to be told once the question is decided, or the notifier is no more, or its reminder got through.
    All notices of the oldest open questions are read: asked for the failed ones, a database may begin with all that
    ever failed.
    """
    rows = Notice.objects.using(using).filter(escalation__decided_at__isnull=True).order_by("escalation__opened_at")
    read = list(rows.values_list("escalation_id", "notifier", "turn", "outcome")[: MOST + 1])
    names = conf.settings().notifiers
    told: dict[tuple[int, str], int] = {}  # the last turn that got through
    for question, name, turn, outcome in read:
        if outcome == Notice.SENT:
            told[question, name] = max(turn, told.get((question, name), 0))
    failed = [
        turn > told.get((question, name), 0)
        for question, name, turn, outcome in read[:MOST]
        if outcome == Notice.FAILED and name in names
    ]
    return Bounded(count=sum(failed), more=len(read) > MOST)


def late_notices(using: str, now: datetime) -> Bounded:
    """Notices that should have gone out a while ago. Nobody sends those of a notifier that is no more."""
    names = list(conf.settings().notifiers)
    return Bounded.of(Notice.objects.using(using).filter(due_at__lt=now - SILENT, notifier__in=names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All of it, read one after another."""

    at: datetime
    questions: Questions
    states: Sequence[Moving]
    overdue: Overdue
    unseen: Unseen | None
    gates: Sequence[AccountGate]
    beats: Sequence[Beat]
    failed_notices: Bounded
    late_notices: Bounded

    @property
    def adrift(self) -> int:
        return sum(each.adrift for each in self.states)

    @property
    def past(self) -> int:
        return sum(each.past for each in self.states)

    @property
    def all_read(self) -> bool:
        """Whether ``adrift`` and ``past`` are of all open operations; else of the first ``MOST`` of each state."""
        return not any(each.count.more for each in self.states if not each.asks)

    @property
    def waiting(self) -> int:
        """Operations that wait for a person, ``MOST`` at most."""
        return sum(each.count.count for each in self.states if each.asks)


def standing(using: str) -> Standing:
    now = DjangoStore(using).now()
    moving, unseen = states(using, now)
    return Standing(
        at=now,
        questions=questions(using, now),
        states=moving,
        overdue=overdue(using),
        unseen=unseen,
        gates=gates(using),
        beats=beats(using, now),
        failed_notices=failed_notices(using),
        late_notices=late_notices(using, now),
    )
