"""R-ESC-3, R-ESC-4: each option writes its own grant and nothing else; counters never fall (INV-02)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from jobtrack.core.escalation import ADVISORY, ALLOWED, Option, Reason, options
from jobtrack.core.grant import grant
from jobtrack.core.operation import Operation, OperationState, Spent
from jobtrack.core.table import BudgetSpec, Extension
from tests.core.test_decide import BUDGET, NOW, OPERATION, TABLE, S

EXTENSION = Extension(time=900 * S, status_requests=4, times=1)
STOPPED = replace(
    OPERATION,
    state=OperationState.ESCALATED,
    budget=replace(BUDGET, extensions=1),
    spent=Spent(status_requests=50, transport_failures=5, rate_limited=10),
)
EXTENDING = replace(TABLE, budget=BudgetSpec(extension=EXTENSION))
LOOK = timedelta(seconds=60)


def granted(option: Option, operation: Operation = STOPPED, *, now: datetime = NOW, blocking: bool = True) -> Operation:
    return grant(operation, option, blocking=blocking, table=EXTENDING, look=LOOK, now=now)


def test_an_extension_grants_what_the_table_says_and_counts() -> None:
    after = granted(Option.EXTEND)
    assert (after.state, after.wake_at, after.delay_source) == (OperationState.RUNNING, NOW, "manual_extension")
    assert after.budget == replace(
        BUDGET,
        extensions=1,
        deadline=BUDGET.deadline + 900 * S,
        status_requests=54,
        transport_failures=9,
        rate_limited=14,
    )
    assert after.spent == replace(STOPPED.spent, extensions=1)


def test_an_extension_after_the_deadline_counts_from_now() -> None:
    assert granted(Option.EXTEND, now=BUDGET.deadline + 50 * S).budget.deadline == BUDGET.deadline + 950 * S


def test_an_extension_without_a_table_that_states_it_is_a_defect_of_the_caller() -> None:
    with pytest.raises(ValueError, match="needs what the table grants"):
        grant(STOPPED, Option.EXTEND, blocking=True, table=TABLE, look=LOOK, now=NOW)


@pytest.mark.parametrize("option", [Option.LOOK_AGAIN, Option.ACCESS_REPAIRED])
def test_a_look_is_one_request_also_after_the_deadline(option: Option) -> None:
    now = BUDGET.deadline + 50 * S
    after = granted(option, now=now)
    assert (after.last_look, after.look_until, after.wake_at) == (True, now + LOOK, now)
    assert after.budget == replace(STOPPED.budget, status_requests=51, transport_failures=6, rate_limited=11)
    assert after.spent == STOPPED.spent


def test_a_look_waits_for_the_providers_guidance() -> None:
    after = granted(Option.LOOK_AGAIN, replace(STOPPED, not_before=NOW + 500 * S))
    assert (after.wake_at, after.look_until) == (NOW + 500 * S, NOW + 500 * S + LOOK)


def test_limits_that_still_have_room_are_not_raised() -> None:
    fresh = replace(STOPPED, spent=Spent(status_requests=3))
    assert granted(Option.LOOK_AGAIN, fresh).budget == fresh.budget


def test_closing_abandons_a_stopped_operation_and_only_acknowledges_otherwise() -> None:
    closed = granted(Option.CLOSE)
    assert (closed.state, closed.wake_at) == (OperationState.ABANDONED, None)
    ended = replace(STOPPED, state=OperationState.FAILED)
    assert granted(Option.CLOSE, ended) == ended
    running = replace(STOPPED, state=OperationState.RUNNING)
    assert granted(Option.CLOSE, running, blocking=False) == running
    assert granted(Option.RETRY_DELIVERY, ended) == ended


def test_every_reason_offers_bounded_options_and_can_be_closed() -> None:
    assert set(ALLOWED) == set(Reason)
    assert all(allowed[-1] is Option.CLOSE for allowed in ALLOWED.values())
    assert set(Reason) > ADVISORY


def test_an_extension_is_offered_only_if_the_table_grants_one_that_is_left() -> None:
    table = replace(TABLE, budget=BudgetSpec(extension=EXTENSION))
    full = (Option.EXTEND, Option.LOOK_AGAIN, Option.CLOSE)
    without = full[1:]
    rows = [
        (options(Reason.DEADLINE_EXCEEDED, STOPPED, table), full),
        (options(Reason.DEADLINE_EXCEEDED, STOPPED, TABLE), without),
        (options(Reason.DEADLINE_EXCEEDED, STOPPED, None), without),
        (options(Reason.DEADLINE_EXCEEDED, replace(STOPPED, spent=Spent(extensions=1)), table), without),
        (options(Reason.AUTHORIZATION_DENIED, STOPPED, table), (Option.ACCESS_REPAIRED, Option.CLOSE)),
    ]
    assert [got for got, _ in rows] == [expected for _, expected in rows]
