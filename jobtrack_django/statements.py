"""The statements that need the database's clock or its manners, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from django.db import DatabaseError, OperationalError, connections
from django.db.models import BooleanField, Case, DateTimeField, ExpressionWrapper, F, Q, Value, When
from django.db.models.functions import Coalesce, Greatest
from django.db.models.sql import UpdateQuery

from jobtrack.core.operation import OperationState
from jobtrack.ports import RUNNING
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Operation
from jobtrack_django.querysets import unleased

T = TypeVar("T")

# Deadlock, lock time-out, serialisation failure: PostgreSQL's SQLSTATEs and MySQL's error numbers.
_LOST_RACES = frozenset({"40001", "40P01", "55P03", 1020, 1205, 1213})


def after(duration: timedelta) -> ExpressionWrapper[Any]:
    """An instant so long from now."""
    return ExpressionWrapper(DatabaseNow() + duration, output_field=DateTimeField())


def clock(using: str) -> datetime:
    """What time it is for the database, aware."""
    connection = connections[using]
    compiler = Operation.objects.using(using).query.get_compiler(using)
    sql, params = compiler.compile(DatabaseNow())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        (value,) = cursor.fetchone()
    for convert in connection.ops.get_db_converters(DatabaseNow()):
        value = convert(value, DatabaseNow(), connection)
    now: datetime = value
    return now


_TRUE, _FALSE = Value(True), Value(False)  # noqa: FBT003 - Django takes it by position


class _Granted(ExpressionWrapper):  # type: ignore[type-arg]  # not generic at run time
    """Whether the claim may send, for the columns that depend on it.

    MySQL assigns columns from left to right and lets later ones see the new values, so there the column that was
    set first is read; standard SQL sees old values only, so elsewhere the condition is repeated.
    """

    def as_mysql(self, _compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        return connection.ops.quote_name("lease_granted"), []


def _may_send(states: frozenset[OperationState]) -> Q:
    now = DatabaseNow()
    rested = Q(not_before__isnull=True) | Q(not_before__lte=now)
    within = Q(deadline__gt=now, spent_status_requests__lt=F("limit_status_requests"))
    look = Q(last_look=True, look_until__isnull=False, look_until__gt=now)
    asks_status = Q() if states == RUNNING else Q(state=OperationState.RUNNING)
    return asks_status & rested & (within | look)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a claim asks for, the same from claim to claim."""

    lease: timedelta
    floor: timedelta
    debit: bool
    states: frozenset[OperationState]


def claim(using: str, ids: Sequence[str], terms: Terms, *, owner: str) -> bool:
    """The one conditional UPDATE of a claim (INV-13). True if it took any row; these now name ``owner``."""
    # On virtual time the clock is a value in the statement, so it cannot be used again.
    compiled = _claim_statement if DatabaseNow.virtual is None else _claim_statement.__wrapped__
    sql, parameters = compiled(using, len(ids), terms)
    given = {_OWNER: owner, **{_an_id(number): each for number, each in enumerate(ids)}}
    with connections[using].cursor() as cursor:
        cursor.execute(sql, [given.get(value, value) for value in parameters])
        return bool(cursor.rowcount > 0)


_OWNER = "\x1fowner"


def _an_id(number: int) -> str:
    return f"\x1fid {number}"


@lru_cache(maxsize=256)
def _claim_statement(using: str, count: int, terms: Terms) -> tuple[str, tuple[Any, ...]]:
    """The UPDATE with names in place of owner and ids. Compiling it costs more than a look's other statements."""
    ids = [_an_id(number) for number in range(count)]
    due = Operation.objects.using(using).filter(unleased(), state__in=sorted(terms.states), wake_at__lte=DatabaseNow())
    query: Any = due.filter(pk__in=ids).query.chain(UpdateQuery)
    query.add_update_values(_claimed(_OWNER, terms))
    sql, parameters = query.get_compiler(using).as_sql()
    return sql, tuple(parameters)


def _claimed(owner: str, terms: Terms) -> dict[str, Any]:
    """The columns of a claim, the debit first: see ``_Granted``."""
    debits = terms.debit and terms.states & RUNNING
    return {
        **(_debited(terms) if debits else {"lease_granted": False}),
        "fence": F("fence") + 1,
        "lease_owner": owner,
        "lease_until": after(terms.lease),
        "wake_at": after(terms.lease),
        "wake_until": None,
        "hinted": False,
    }


def _debited(terms: Terms) -> dict[str, Any]:
    may_send, soon = _may_send(terms.states), after(terms.floor)
    granted = _Granted(may_send, output_field=BooleanField())
    rested = Greatest(Coalesce(F("not_before"), soon), soon)
    return {
        "lease_granted": Case(When(may_send, then=_TRUE), default=_FALSE),
        "spent_status_requests": F("spent_status_requests") + Case(When(granted, then=1), default=0),
        "last_look": Case(When(granted, then=_FALSE), default=F("last_look")),
        "not_before": Case(When(granted, then=rested), default=F("not_before")),
    }


def lost_race(error: DatabaseError) -> bool:
    """True if the database gave up a lock, so that trying later is all there is to do."""
    cause = error.__cause__
    codes = {getattr(cause, "sqlstate", None), *error.args[:1]}
    return bool(codes & _LOST_RACES) or "database is locked" in str(error) or "table is locked" in str(error)


def retried(using: str, work: Callable[[], T], *, tries: int = 5) -> T:
    """The result of a transaction, done anew if the database gave it up for another one.

    On MySQL the writers of one new key deadlock when the first of them rolls back (INV-20). Inside a caller's
    transaction, which is gone as a whole, only the caller can begin again.
    """
    for _ in range(tries - 1):
        if connections[using].in_atomic_block:
            break
        try:
            return work()
        except OperationalError as error:
            if not lost_race(error):
                raise
    return work()
