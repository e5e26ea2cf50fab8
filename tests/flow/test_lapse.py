"""Questions that nobody answers in time (R-ESC-6): what the site chose is chosen, and nothing else, ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import jobtrack.flow.lapse as lapsing
from jobtrack.core.escalation import Lapse, Option, Reason
from jobtrack.core.operation import OperationState
from jobtrack.flow.lapse import ACTOR, lapse
from jobtrack.flow.resolve import resolve as really_resolve
from jobtrack.testing import answer
from jobtrack.testing.provider import makes
from tests.flow.test_flows import S, World, says
from tests.flow.test_submit import ACCEPTED
from tests.flow.test_submit import table as submission_table
from tests.flow.test_submit import world as submission_world

H = timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


def with_lapse(world: World, option: Option, reason: Reason = Reason.UNKNOWN_STATE, **more: object) -> World:
    world.runtime = replace(world.runtime, lapses={reason: Lapse(option=option, after=2 * H)}, **more)
    return world


def stopped(world: World, count: int = 1) -> None:
    for number in range(count):
        job = f"job-{number}"
        world.track(says("who-knows", job=job), op=f"op-{number}", job=job)
    world.run(60)
    assert {row.state for row in world.store.rows.values()} == {OperationState.ESCALATED}


def test_nothing_is_chosen_before_its_time(world: World) -> None:
    stopped(with_lapse(world, Option.CLOSE))
    world.clock.advance(2 * H - 120 * S)
    assert lapse(world.runtime) == 0
    world.clock.advance(120 * S)
    assert lapse(world.runtime) == 1
    assert world.op("op-0").state is OperationState.ABANDONED


def test_the_audit_says_that_nobody_acted(world: World) -> None:
    """R-AUDIT, INV-28: the machine never decides in the name of a person."""
    stopped(with_lapse(world, Option.CLOSE))
    world.clock.advance(3 * H)
    lapse(world.runtime)
    decision = next(entry for entry in world.entries("op-0") if entry["event"] == "decision")
    assert (decision["actor"], decision["option"]) == (ACTOR, "close")
    assert decision["why"].startswith("Nobody acted for 2:00:00")


def test_a_lapse_looks_again(world: World) -> None:
    stopped(with_lapse(world, Option.LOOK_AGAIN))
    world.clock.advance(3 * H)
    world.provider.script("job-0", says("succeeded", job="job-0", rows=7))
    assert lapse(world.runtime) == 1
    world.run()
    assert world.op("op-0").state is OperationState.SUCCEEDED


def test_who_was_first_stays_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-28: a person decides between the reading and the writing."""
    stopped(with_lapse(world, Option.CLOSE))
    world.clock.advance(3 * H)

    def person_first(runtime, resolution):
        world.decide(Option.LOOK_AGAIN, op="op-0", actor="ann")
        return really_resolve(runtime, resolution)

    monkeypatch.setattr("jobtrack.flow.lapse.resolve", person_first)
    assert lapse(world.runtime) == 0
    assert [e["actor"] for e in world.entries("op-0") if e["event"] == "decision"] == ["ann"]


def test_an_option_that_is_not_offered_now_is_never_chosen(world: World) -> None:
    """The table grants one extension; the second time a person is needed."""
    stopped(with_lapse(world, Option.EXTEND))
    world.clock.advance(3 * H)
    assert lapse(world.runtime) == 1
    world.run(60)
    world.clock.advance(3 * H)
    assert lapse(world.runtime) == 0
    assert world.op("op-0").state is OperationState.ESCALATED


def test_four_eyes_are_never_none(world: World) -> None:
    stopped(with_lapse(world, Option.CLOSE, four_eyes=frozenset({Option.CLOSE})))
    world.clock.advance(3 * H)
    assert lapse(world.runtime) == 0
    assert len(world.store.open_escalations("op-0")) == 1


@pytest.mark.parametrize("option", [Option.RESUBMIT, Option.CANCEL, Option.ACCESS_REPAIRED, Option.ATTACH_JOB])
def test_what_writes_or_states_a_fact_is_not_chosen_even_if_the_runtime_says_so(world: World, option: Option) -> None:
    stopped(with_lapse(world, option))
    world.clock.advance(3 * H)
    assert lapse(world.runtime) == 0


@pytest.mark.parametrize("option", [Option.ACCESS_REPAIRED, Option.CLOSE])
def test_a_closed_account_waits_for_a_person(world: World, option: Option) -> None:
    """Either option is offered, and lets a request out with a credential that was refused."""
    with_lapse(world, option, Reason.AUTHORIZATION_DENIED)
    world.track(answer(401))
    world.run(60)
    (question,) = world.store.open_escalations("op-1")
    assert question.reason is Reason.AUTHORIZATION_DENIED
    world.clock.advance(3 * H)
    assert lapse(world.runtime) == 0
    assert world.store.open_escalations("op-1") == [question]


def test_what_would_submit_is_not_chosen() -> None:
    """A look before there is a job is a submission (INV-15): that is for a person."""
    world = submission_world(submission_table(), makes("job-1", ACCEPTED))
    world.runtime = replace(
        world.runtime,
        lapses={Reason.TABLE_MISSING: Lapse(option=Option.LOOK_AGAIN, after=2 * H)},
    )
    world.submit()
    tables, world.runtime.tables.by_id = world.runtime.tables.by_id, {}
    world.run(until=1200 * S)
    (question,) = world.store.open_escalations("op-1")
    assert question.reason is Reason.TABLE_MISSING
    world.runtime.tables.by_id = tables
    world.clock.advance(3 * H)
    assert lapse(world.runtime) == 0
    assert world.store.open_escalations("op-1") == [question]
    assert world.posts == []


def test_those_that_cannot_be_answered_do_not_starve_those_behind(world: World) -> None:
    """Bounded in each run, and every question has its turn."""
    stopped(with_lapse(world, Option.EXTEND), count=7)
    for number in range(5):  # their extension is used up
        row = world.op(f"op-{number}")
        world.store.rows[row.id] = replace(row, spent=replace(row.spent, extensions=row.budget.extensions))
    world.clock.advance(3 * H)
    beyond: dict[Reason, str] = {}
    assert [lapse(world.runtime, limit=3, beyond=beyond) for _ in range(3)] == [0, 1, 1]
    assert beyond == {}


def test_without_lapses_nothing_is_read(world: World) -> None:
    stopped(world)
    world.clock.advance(1000 * H)
    assert lapse(world.runtime) == 0


@pytest.fixture(autouse=True)
def _nothing_is_ever_written_at_a_provider(world: World) -> Iterator[None]:
    yield
    assert {seen.request.method for seen in world.provider.log} <= {"GET"}


def test_a_question_that_cannot_be_read_does_not_keep_the_others_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A row of a newer release, for example: it is told in the log, and those behind it are answered."""
    stopped(with_lapse(world, Option.CLOSE), count=3)
    world.clock.advance(3 * H)
    weighed = lapsing.weigh

    def broken(runtime: Any, resolution: Any) -> Any:
        if runtime.store.escalation(resolution.escalation_id).operation_id == "op-0":
            raise ValueError("a word that nobody knows")
        return weighed(runtime, resolution)

    monkeypatch.setattr(lapsing, "weigh", broken)
    assert lapse(world.runtime) == 2
    assert world.op("op-0").state is OperationState.ESCALATED
    assert "could not be answered; the others are" in caplog.text
