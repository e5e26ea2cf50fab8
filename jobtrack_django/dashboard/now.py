"""What is open at this moment. Every query is answered from an index and reads a bounded number of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from jobtrack.core.escalation import Risk
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack_django import conf
from jobtrack_django.models import AccountGate, Escalation, Heartbeat, Notice, Operation
from jobtrack_django.store import DjangoStore

MOST: Final = 10_000
"""Rows that are counted or read at most; more are told as "10,000+"."""

MOST_GATES: Final = 100
MOST_BEATS: Final = 200

SILENT: Final = timedelta(minutes=5)
"""A process that has said nothing for so long is told as silent."""

AGES: Final = tuple(timedelta(hours=hours) for hours in (1, 8, 24, 168))
"""Questions are sorted by how long they wait: bounds between the columns."""

OPEN_STATES: Final = tuple(state for state in OperationState if state not in TERMINAL)


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


def states(using: str) -> list[tuple[str, Bounded]]:
    """How many operations are in each state that is no end."""
    rows = Operation.objects.using(using)
    return [(state.value, Bounded.of(rows.filter(state=state.value))) for state in OPEN_STATES]


def overdue(using: str) -> Overdue:
    due = Bounded.of(Operation.objects.using(using).due())
    return Overdue(count=due, lag=DjangoStore(using).overdue_lag())


def unseen(using: str) -> Unseen | None:
    """Of the running operations; if there are more than are read, of those that began first."""
    running = Operation.objects.using(using).filter(state=OperationState.RUNNING.value).order_by("created_at")
    since = Coalesce("observed_at", "accepted_at", "created_at")
    read = list(running.annotate(since=since).values_list("pk", "since")[: MOST + 1])
    if not read:
        return None
    operation_id, first = min(read[:MOST], key=lambda row: (row[1], row[0]))
    return Unseen(operation_id=operation_id, since=first, partial=len(read) > MOST)


def gates(using: str) -> list[AccountGate]:
    """Accounts that are held back. There is one row for each account of the site."""
    closed = AccountGate.objects.using(using).exclude(reason="")
    return list(closed.order_by("provider", "account")[:MOST_GATES])


def beats(using: str, now: datetime) -> list[Beat]:
    """Processes, the last heard of first."""
    rows = Heartbeat.objects.using(using).order_by("-seen_at")[:MOST_BEATS]
    return [Beat(name=row.name, kind=row.kind, seen_at=row.seen_at, silent=now - row.seen_at > SILENT) for row in rows]


def failed_notices(using: str) -> Bounded:
    return Bounded.of(Notice.objects.using(using).filter(outcome=Notice.FAILED))


def late_notices(using: str, now: datetime) -> Bounded:
    """Notices that should have gone out a while ago. Nobody sends those of a notifier that is no more."""
    names = list(conf.settings().notifiers)
    return Bounded.of(Notice.objects.using(using).filter(due_at__lt=now - SILENT, notifier__in=names))


def adrift(using: str) -> int:
    """Operations that neither ended nor ask anybody, and have no next step: there must be none (INV-01).

    The first ``MOST`` that are found are looked at.
    """
    moving = [state.value for state in OPEN_STATES if state is not OperationState.ESCALATED]
    rows = Operation.objects.using(using).filter(state__in=moving).order_by()
    return list(rows.values_list("wake_at", flat=True)[:MOST]).count(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All of it, read one after another."""

    at: datetime
    questions: Questions
    states: Sequence[tuple[str, Bounded]]
    overdue: Overdue
    unseen: Unseen | None
    adrift: int
    gates: Sequence[AccountGate]
    beats: Sequence[Beat]
    failed_notices: Bounded
    late_notices: Bounded


def standing(using: str) -> Standing:
    now = DjangoStore(using).now()
    return Standing(
        at=now,
        questions=questions(using, now),
        states=states(using),
        overdue=overdue(using),
        unseen=unseen(using),
        adrift=adrift(using),
        gates=gates(using),
        beats=beats(using, now),
        failed_notices=failed_notices(using),
        late_notices=late_notices(using, now),
    )
