"""INV-26, R-SEC-3: what a verified notice does to the schedule, and all that it never does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.table import Polling
from jobtrack.core.webhook import Notice
from jobtrack.flow.hear import bring_forward, hear, recall, receipts_for, receive
from jobtrack.flow.poll import poll
from jobtrack.flow.track import Tracking, track
from jobtrack.records import Receipt
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, NoScheduler, VirtualClock, answer, memory_runtime, run_due
from tests.core.builders import table

S = timedelta(seconds=1)
TABLE = table(polling=Polling(first=60 * S, base=60 * S, factor=1, cap=60 * S, min_interval=2 * S))
RUNNING = answer(json={"id": "job-1", "status": "running"})
DONE = answer(json={"id": "job-1", "status": "succeeded", "result": {"url": "https://files.provider.example/1"}})


class Published(NoScheduler):
    """A broker that takes every message, or none."""

    def __init__(self, *, takes: bool = True) -> None:
        super().__init__()
        self.horizon = 30 * S
        self.takes = takes

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        super().wake(operation_id, fence=fence, delay=delay)
        return self.takes

    def wake_now(self, ids: Sequence[str]) -> int:
        super().wake_now(ids)
        return len(ids) if self.takes else 0

    @property
    def messages(self) -> list[str]:
        return [one for one, _, _ in self.asked] + self.woken


@dataclass
class World:
    """One operation that was looked at once and is parked for a minute."""

    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.first = self.clock()
        self.provider = FakeProvider(self.clock)
        self.store = MemoryStore(self.clock)
        self.runtime = memory_runtime(TABLE, provider=self.provider, clock=self.clock, store=self.store)
        self.provider.script("job-1", RUNNING)

    def track(self, operation_id: str = "op-1", job_id: str = "job-1", account: str = "default") -> Operation:
        wanted = Tracking(provider="acme", account=account, operation_id=operation_id, job_id=job_id)
        (row,) = track(self.runtime, [wanted], announce=False)
        return row

    def looked(self) -> None:
        """The first look was made a moment ago; times of looks count from it."""
        wake_at = self.track().wake_at
        assert wake_at is not None
        self.run((wake_at - self.clock()) / S)
        self.first = self.clock()

    def run(self, seconds: float) -> None:
        run_due(self.runtime, self.clock, until=self.clock() + seconds * S)

    def row(self, operation_id: str = "op-1") -> Operation:
        (row,) = self.store.get([operation_id])
        return row

    def looks(self, job_id: str = "job-1") -> list[float]:
        """When the provider was asked, in seconds after the first look of `op-1`."""
        return [(seen.at - self.first) / S for seen in self.provider.requests(job_id)]

    def publish(self, *, takes: bool = True) -> Published:
        scheduler = Published(takes=takes)
        self.runtime = replace(self.runtime, scheduler=scheduler)
        return scheduler


@pytest.fixture
def world() -> World:
    return World()


def notices(*numbers: int, job_id: str = "job-1", account: str = "default", **named: str) -> list[Receipt]:
    named = named or {"job_id": job_id}
    return [Receipt(provider="acme", account=account, notice_id=f"n-{number}", **named) for number in numbers]


def test_the_records_say_whose_secret_proved_the_notice() -> None:
    found = receipts_for([Notice(notice_id="n-1", job_id="job-1")], provider="acme", account="us")
    assert found == [Receipt(provider="acme", account="us", notice_id="n-1", job_id="job-1")]


def test_a_notice_brings_the_next_look_forward(world: World) -> None:
    world.looked()
    world.clock.advance(10)
    assert hear(world.runtime, notices(1)) == ["op-1"]
    world.run(1)
    assert world.looks() == [0, 10]


def test_a_notice_that_repeats_our_own_id_does_too(world: World) -> None:
    world.looked()
    world.clock.advance(10)
    assert hear(world.runtime, notices(1, operation_id="op-1")) == ["op-1"]


def test_a_notice_sets_no_state_and_asks_nothing_itself(world: World) -> None:
    world.looked()
    before, audit = world.row(), list(world.store.audit["op-1"])
    world.clock.advance(10)
    hear(world.runtime, notices(1))
    after = world.row()
    schedule = {"wake_at", "not_before", "wake_until", "delay_source", "hinted", "noticed_at"}
    changed = {name for name in before.__slots__ if getattr(before, name) != getattr(after, name)}
    assert changed <= schedule
    assert after.delay_source == DelaySource.WEBHOOK.value
    assert world.store.audit["op-1"] == audit
    assert world.looks() == [0]


def test_a_thousand_notices_cost_one_look(world: World) -> None:
    world.looked()
    world.clock.advance(10)
    moved = [hear(world.runtime, notices(number)) for number in range(1000)]
    assert moved == [["op-1"], *[[]] * 999]
    world.run(50)
    assert world.looks() == [0, 10]
    assert len(world.store.receipts) == 1000


def test_a_thousand_notices_publish_one_message(world: World) -> None:
    world.looked()
    scheduler = world.publish()
    world.clock.advance(10)
    for number in range(1000):
        hear(world.runtime, notices(number))
    assert scheduler.messages == ["op-1"]


def test_a_stream_of_notices_never_undercuts_the_least_interval(world: World) -> None:
    """INV-05: a notice every tenth of a second, for half a minute."""
    world.looked()
    for number in range(300):
        world.run(0.1)
        hear(world.runtime, notices(number))
    looks = world.looks()
    assert min(later - earlier for earlier, later in pairwise(looks)) >= 2
    assert len(looks) <= 1 + 30 / 2 + 1


@pytest.mark.parametrize("header", [{"Retry-After": "40"}])
def test_guidance_of_the_provider_holds(world: World, header: dict[str, str]) -> None:
    world.provider.script("job-1", answer(json={"id": "job-1", "status": "running"}, headers=header), DONE)
    world.looked()
    hear(world.runtime, notices(1))
    world.run(39)
    assert world.looks() == [0]
    hear(world.runtime, notices(2))
    world.run(61)
    assert world.looks()[1] >= 40
    assert world.row().state is OperationState.SUCCEEDED


def test_a_look_after_too_many_requests_is_not_brought_forward(world: World) -> None:
    world.provider.script("job-1", answer(429), RUNNING)
    world.looked()
    before = world.row().wake_at
    world.clock.advance(3)
    assert hear(world.runtime, notices(1)) == []
    assert world.row().wake_at == before


def test_a_held_account_is_not_asked(world: World) -> None:
    """The gate is closed by what another job of the account was answered (R-POLL-4)."""
    world.looked()
    world.provider.script("job-2", answer(429, headers={"Retry-After": "50"}))
    world.track("op-2", "job-2")
    world.clock.advance(1)
    world.store.hold(["op-2"], until=world.clock())
    world.store.rows["op-2"] = replace(world.row("op-2"), wake_at=world.clock(), not_before=None)
    poll(world.runtime, ["op-2"])
    closed_at = (world.clock() - world.first) / S
    world.clock.advance(5)
    assert hear(world.runtime, notices(1)) == ["op-1"]
    world.run(44)
    assert world.looks() == [0]  # due by its own schedule and by the notice, and held
    world.run(20)
    assert world.looks()[1] >= closed_at + 50


def test_a_known_notice_does_nothing(world: World) -> None:
    world.looked()
    hear(world.runtime, notices(1))
    world.run(10)
    before = world.row()
    assert hear(world.runtime, notices(1)) == []
    assert world.row() == before


def test_what_one_notice_names_twice_moves_once(world: World) -> None:
    world.looked()
    world.clock.advance(10)
    assert hear(world.runtime, [*notices(1), *notices(2, operation_id="op-1")]) == ["op-1"]


@pytest.mark.parametrize(
    "receipts",
    [
        notices(1, job_id="job-2"),
        notices(1, account="other"),
        notices(1, operation_id="op-2"),
        [replace(notices(1)[0], provider="apex")],
        notices(1, operation_id="job-1"),
        notices(1, job_id="op-1"),
        notices(1, job_id="JOB-1"),
        [],
    ],
)
def test_a_notice_about_another_job_does_nothing(world: World, receipts: list[Receipt]) -> None:
    world.looked()
    before = world.row()
    assert hear(world.runtime, receipts) == []
    assert world.row() == before


def test_a_notice_about_an_ended_job_does_nothing(world: World) -> None:
    world.provider.script("job-1", DONE)
    world.looked()
    before = world.row()
    assert before.state is OperationState.SUCCEEDED
    assert hear(world.runtime, notices(1)) == []
    assert world.row() == before


def test_a_notice_during_a_look_counts_for_the_next_one(world: World) -> None:
    """The answer under way may be older than the notice."""

    def heard(_: object) -> Any:
        assert hear(world.runtime, notices(1)) == []
        return RUNNING

    world.provider.script("job-1", heard, DONE)
    world.looked()
    world.run(5)
    assert world.looks() == [0, 2]  # as soon as the least interval allows


# --- a notice that comes before its job is known -------------------------------------------------------


def accepted(world: World) -> Operation:
    """A job that was accepted a moment ago, as `submit` leaves it."""
    now = world.clock()
    row = replace(world.track("op-9", "job-9"), hint_floor=now + 2 * S)
    world.store.rows[row.id] = row
    return row


def test_a_notice_that_came_before_the_acceptance_waits_for_it(world: World) -> None:
    world.provider.script("job-9", replace(DONE, body=DONE.body.replace(b"job-1", b"job-9")))
    assert hear(world.runtime, notices(1, job_id="job-9")) == []
    world.clock.advance(30)
    assert recall(world.runtime, accepted(world)) == ["op-9"]
    world.run(5)
    assert world.looks("job-9") == [32.0]
    assert world.row("op-9").state is OperationState.SUCCEEDED


def test_an_acceptance_without_a_notice_recalls_nothing(world: World) -> None:
    row = accepted(world)
    hear(world.runtime, notices(1, job_id="another"))
    assert recall(world.runtime, row) == []
    assert world.row("op-9") == row


@pytest.mark.parametrize("accept_after", ["nothing", "receive", "bring_forward"])
def test_an_acceptance_at_any_moment_sees_the_notice_or_is_seen_by_it(world: World, accept_after: str) -> None:
    """The two run in two processes; each step is a transaction of its own."""

    def accept() -> None:
        recall(world.runtime, accepted(world))

    wanted = notices(1, job_id="job-9")
    if accept_after == "nothing":
        accept()
    fresh = receive(world.runtime, wanted)
    if accept_after == "receive":
        accept()
    bring_forward(world.runtime, fresh)
    if accept_after == "bring_forward":
        accept()
    assert world.row("op-9").delay_source == DelaySource.WEBHOOK.value


# --- order and wake-ups --------------------------------------------------------------------------------


class Told(MemoryStore):
    """Remembers the order of its calls, and can fail."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.calls: list[str] = []
        self.broken = ""

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if name == self.broken:
            raise ConnectionError(name)

    def receive(self, receipts: Sequence[Receipt]) -> list[bool]:
        self._note("receive")
        return super().receive(receipts)

    def hint(self, receipts: Sequence[Receipt]) -> list[str]:
        self._note("hint")
        return super().hint(receipts)


def test_the_receipt_is_committed_before_anything_else(world: World) -> None:
    store = Told(world.clock)
    runtime = replace(world.runtime, store=store)
    hear(runtime, notices(1))
    assert store.calls == ["receive", "hint"]
    hear(runtime, notices(1))
    assert store.calls == ["receive", "hint", "receive"]


def test_a_receipt_that_cannot_be_stored_hints_nothing(world: World) -> None:
    store = Told(world.clock)
    store.broken = "receive"
    with pytest.raises(ConnectionError):
        hear(replace(world.runtime, store=store), notices(1))
    assert store.calls == ["receive"]


def parked(world: World, *, floor: float, wake: float) -> datetime:
    """The row waits `wake` seconds with a message out, and may be brought forward to `floor` seconds from now."""
    world.looked()
    now = world.clock()
    world.store.rows["op-1"] = replace(
        world.row(),
        wake_at=now + wake * S,
        not_before=now + wake * S,
        hint_floor=now + floor * S,
        wake_until=now + (wake + 30) * S,
    )
    return now


@pytest.mark.parametrize(
    ("floor", "asked", "woken"),
    [
        (-1, [], ["op-1"]),
        (20, [("op-1", 20 * S)], []),
        (31, [], []),  # beyond the horizon: the sweeper's
    ],
)
def test_a_moved_look_is_announced_if_it_is_near(world: World, floor: float, asked: list, woken: list) -> None:
    parked(world, floor=floor, wake=50)
    scheduler = world.publish()
    hear(world.runtime, notices(1))
    assert [(one, delay) for one, _, delay in scheduler.asked] == asked
    assert scheduler.woken == woken


@pytest.mark.parametrize("floor", [-1, 20, 31])
def test_without_a_message_the_sweeper_has_the_row_on_time(world: World, floor: float) -> None:
    """A message that was out for the old instant must not hide the new one."""
    now = parked(world, floor=floor, wake=50)
    world.publish(takes=False)
    hear(world.runtime, notices(1))
    world.clock.advance_to(now + max(floor, 0) * S)
    assert world.store.due(limit=10, grace=30 * S).operations == ("op-1",)


def test_many_due_jobs_share_messages(world: World) -> None:
    """One notice may name hundreds of jobs; the web process asks for all of them at once."""
    for number in range(50):
        world.track(f"op-{number}", f"job-{number}")
        row = world.row(f"op-{number}")
        world.store.rows[row.id] = replace(row, hint_floor=world.clock())
    calls: list[list[str]] = []
    scheduler = world.publish()
    scheduler.wake_now = lambda ids: calls.append(list(ids)) or len(ids)  # type: ignore[method-assign, func-returns-value]
    hear(world.runtime, [one for n in range(50) for one in notices(n, job_id=f"job-{n}")])
    assert [len(ids) for ids in calls] == [50]
    assert scheduler.asked == []
