"""What callers, handlers and databases may do to the flows without harm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobtrack.core.escalation import Reason
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.table import Param, ParamPattern
from jobtrack.errors import IdempotencyConflict, UsageError
from jobtrack.flow.poll import poll
from jobtrack.flow.track import LONGEST, MOST
from jobtrack.records import Commit, Committed, Delivery
from jobtrack.stores.memory import MemoryStore
from tests.flow.test_flows import DONE, TABLE, S, World, says


@pytest.fixture
def world() -> World:
    return World()


class ProcessEnded(BaseException):
    """Stands for ``os._exit``, a kill, or memory that ran out: nothing after it runs."""


def _exits(_delivery: Delivery, _operation: Operation) -> None:
    raise SystemExit(3)


def _unprintable(_delivery: Delivery, _operation: Operation) -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    raise Unprintable


def _kills(_delivery: Delivery, _operation: Operation) -> None:
    raise ProcessEnded


@pytest.mark.parametrize("handler", [_exits, _unprintable, _kills])
def test_a_follow_up_that_ends_its_process_is_tried_a_bounded_number_of_times(
    world: World, handler: Callable[[Delivery, Operation], None]
) -> None:
    """INV-23: raising, hanging and ending the process alike lead to a question."""
    runs: list[int] = []

    def counted(delivery: Delivery, operation: Operation) -> None:
        runs.append(delivery.attempts)
        handler(delivery, operation)

    world.handler = counted
    world.track(DONE, on_success="reports.store")
    for _ in range(20):
        try:
            world.run()
        except ProcessEnded:
            continue
        break
    most = world.runtime.timing.delivery_attempts
    assert runs == list(range(1, most + 1))
    assert world.op().state is OperationState.SUCCEEDED
    assert [asked.reason for asked in world.store.open_escalations("op-1")] == [Reason.DELIVERY_FAILED]


def test_an_answer_that_cannot_be_stored_does_not_cost_the_others_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-12: three jobs in one batch, and the commit of the first one fails."""
    for number in (1, 2, 3):
        world.track(says("succeeded", f"job-{number}", rows=7), op=f"op-{number}", job=f"job-{number}")
    world.clock.advance(60)
    stored = MemoryStore.commit

    def refuse_first(store: MemoryStore, commits: list[Commit]) -> list[Committed]:
        if commits[0].operation.id == "op-1":
            raise RuntimeError("the database refuses this row")
        return stored(store, commits)

    monkeypatch.setattr(MemoryStore, "commit", refuse_first)
    with pytest.raises(RuntimeError, match="refuses this row"):
        poll(world.runtime, ["op-1", "op-2", "op-3"])
    assert [world.op(f"op-{number}").state.value for number in (1, 2, 3)] == ["running", "succeeded", "succeeded"]


NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001 - the mistake under test


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"needed_by": NAIVE}, "needed_by must be a datetime with a time zone."),
        ({"accepted_at": NAIVE}, "accepted_at must be a datetime with a time zone."),
        ({"needed_by": "2030-01-01"}, "needed_by must be a datetime with a time zone."),
        ({"needed_by": NAIVE.date()}, "needed_by must be a datetime with a time zone."),
        *(
            ({"deadline": value}, "deadline must be a timedelta above 0 and at most 3660 days.")
            for value in (60, timedelta(0), -S, timedelta.max, LONGEST + S, NAIVE)
        ),
        *(
            ({name: value}, f"{name} must be a whole number from 1 to 1000000, not {value!r}.")
            for name in ("status_requests", "transport_failures", "rate_limited")
            for value in (0, -1, "5", 2.5, True, MOST + 1, 2**31)
        ),
    ],
)
def test_a_limit_of_the_wrong_kind_is_refused_and_leaves_nothing(
    world: World, wrong: dict[str, Any], said: str
) -> None:
    """Each database would refuse another part of these, or keep it and fail at the first look."""
    with pytest.raises(UsageError) as caught:
        world.track(**wrong)
    assert (caught.value.message, world.store.rows) == (said, {})


def test_an_acceptance_in_the_future_counts_as_now(world: World) -> None:
    """A provider's clock may run ahead; a window that starts in the year 9999 would never end."""
    world.track(accepted_at=datetime.max.replace(tzinfo=UTC))
    assert world.op().accepted_at == world.op().created_at


def test_a_caller_that_says_the_same_finds_its_operation_although_the_account_has_changed(world: World) -> None:
    """R-ID-4, R-CALL-1: the parameters of the account are the site's; authority stays as granted."""
    params = {
        "region": Param(source="account", pattern=ParamPattern.SLUG),
        "owner": Param(source="caller", pattern=ParamPattern.SLUG),
    }
    world.deploy(replace(TABLE, params=params))
    world.track(params={"region": "eu", "owner": "ada"})
    world.track(params={"region": "us", "owner": "ada"})
    assert world.op().params == {"region": "eu", "owner": "ada"}
    with pytest.raises(IdempotencyConflict):
        world.track(params={"region": "eu", "owner": "bob"})


def test_a_question_about_a_budget_names_the_word_of_the_very_last_answer(world: World) -> None:
    """R-ESC-2: the only answer said "running", so that is the provider's last word."""
    world.track(says("running"), status_requests=1)
    world.run()
    (asked,) = world.store.open_escalations("op-1")
    assert asked.detail == "All 1 status requests are used; the provider's last word is: running."
