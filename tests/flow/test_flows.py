"""The flows on a virtual clock with the memory store: one sentence per test (R-POLL, R-OWN, R-ESC, R-END)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from jobtrack.core.audit import verify
from jobtrack.core.escalation import Option, Reason, Resolution
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.place import Body, RequestSpec
from jobtrack.core.reply import Reply, Request
from jobtrack.core.table import (
    BudgetSpec,
    Extension,
    FieldType,
    GatePolicy,
    Meaning,
    NotFound,
    Polling,
    ProviderTable,
    ResultSpec,
    StatePart,
    StateRow,
    StatusSpec,
)
from jobtrack.errors import (
    AlreadyDecided,
    IdempotencyConflict,
    OptionNotAllowed,
    StaleEvidence,
    TableMissing,
    UsageError,
)
from jobtrack.flow.poll import poll
from jobtrack.flow.resolve import resolve
from jobtrack.flow.sweep import sweep
from jobtrack.flow.track import Tracking, track
from jobtrack.ports import Runtime, Timing
from jobtrack.records import Committed, Delivery
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, Heard, NoScheduler, VirtualClock, answer, memory_runtime, no_answer, run_due

S = timedelta(seconds=1)


def at(pointer: str) -> Body:
    return Body(tuple(pointer.split("/")[1:]), pointer)


def rows(**words: str) -> tuple[StateRow, ...]:
    return tuple(StateRow(values=(word,), meaning=Meaning(meaning)) for word, meaning in words.items())


TABLE = ProviderTable(
    id="acme",
    name="ACME",
    docs="https://acme.example",
    revision=1,
    digest="digest-1",
    text="table text 1",
    hosts=("https://api.acme.example",),
    status=StatusSpec(
        request=RequestSpec(path="/jobs/{job_id}"),
        echo=at("/id"),
        state=(StatePart(at=at("/status")),),
        rows=rows(queued="pending", running="pending", succeeded="success", failed="failure", canceled="cancelled"),
        result=ResultSpec(require=((at("/rows"), FieldType.INTEGER),), keep=(("rows", at("/rows")),)),
        error=(at("/error"),),
        not_found=NotFound(window=30 * S),
    ),
    polling=Polling(first=5 * S, base=5 * S, factor=2, cap=60 * S),
    budget=BudgetSpec(
        deadline=3600 * S,
        status_requests=40,
        transport_failures=3,
        rate_limited=3,
        extension=Extension(time=900 * S, status_requests=4),
    ),
    gate=GatePolicy(breaker_failures=3, breaker_hold=30 * S),
)


def says(status: str, job: str = "job-1", **more: object) -> Reply:
    return answer(json={"id": job, "status": status, **more})


RUNNING = says("running")
DONE = says("succeeded", rows=7)


@dataclass
class World:
    """One clock, one provider, one store."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    delivered: list[str] = field(default_factory=list)
    handler: Callable[[Delivery, Operation], None] | None = None

    def __post_init__(self) -> None:
        self.provider = FakeProvider(self.clock)
        self.store = MemoryStore(self.clock)
        self.runtime: Runtime = memory_runtime(
            TABLE, provider=self.provider, clock=self.clock, store=self.store, run_handler=self._run
        )

    def _run(self, delivery: Delivery, operation: Operation) -> None:
        if self.handler is not None:
            self.handler(delivery, operation)
        self.delivered.append(delivery.id)

    def deploy(self, *tables: ProviderTable) -> None:
        self.runtime.tables.by_id = {table.id: table for table in tables}  # type: ignore[attr-defined]

    def track(
        self, *replies: Reply | Callable[[Request], Reply], op: str = "op-1", job: str = "job-1", **more: Any
    ) -> None:
        if replies:
            self.provider.script(job, *replies)
        track(self.runtime, [Tracking(operation_id=op, provider="acme", job_id=job, **more)])

    def run(self, seconds: float | None = None) -> None:
        run_due(self.runtime, self.clock, until=None if seconds is None else self.clock() + seconds * S)

    def op(self, op: str = "op-1") -> Operation:
        return self.store.rows[op]

    def entries(self, op: str = "op-1") -> list[dict[str, Any]]:
        return [json.loads(entry.text) for entry in self.store.audit[op]]

    def decide(self, option: Option, op: str = "op-1", actor: str = "ann", reason: Reason | None = None) -> Operation:
        escalation = next(e for e in self.store.open_escalations(op) if reason in (None, e.reason))
        return resolve(
            self.runtime,
            Resolution(
                escalation_id=escalation.id, option=option, actor=actor, reason="why", version=escalation.version
            ),
        )


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_is_followed_to_its_end_and_its_follow_ups_run_once(world: World) -> None:
    world.track(RUNNING, RUNNING, DONE, on_success="app.store", on_failure="app.warn", on_end="app.end")
    world.run()
    op = world.op()
    assert (op.state, op.spent.status_requests, dict(op.kept)) == (OperationState.SUCCEEDED, 3, {"rows": 7})
    assert world.delivered == ["op-1:on_success", "op-1:on_end"]
    assert (op.wake_at, op.lease, world.store.reasons("op-1")) == (None, None, [])
    assert [e["event"] for e in world.entries()] == ["track", "poll", "poll", "poll"]
    assert isinstance(world.runtime.listener, Heard)
    assert [ended.id for ended in world.runtime.listener.ended] == ["op-1"]
    assert verify(world.store.export()).good


def test_each_entry_can_be_recomputed_and_names_its_table(world: World) -> None:
    world.track(
        answer(json={"id": "job-1", "status": "running"}, headers={"Retry-After": "20", "X-Request-Id": "r-9"}), DONE
    )
    world.run()
    poll_entry = world.entries()[1]
    assert poll_entry["table"] == {"id": "acme", "revision": 1, "digest": "digest-1"}
    assert poll_entry["decision"]["source"] == "provider_retry_after"
    assert poll_entry["observation"]["guidance"]["wait_s"] == 20
    assert poll_entry["observation"]["request_id"] == "r-9"
    assert poll_entry["spent"]["status_requests"] == [1, 40]
    assert poll_entry["draw"] == 1 - 2**-53
    assert world.store.tables == {"digest-1": "table text 1"}


def test_an_unlisted_state_costs_one_request_and_one_question_and_is_finished_with_the_mended_table(
    world: World,
) -> None:
    """INV-08; the newest table is the one that counts."""
    world.track(says("paused"))
    world.run()
    assert (world.op().state, len(world.provider.log)) == (OperationState.ESCALATED, 1)
    assert world.store.reasons("op-1") == [Reason.UNKNOWN_STATE]
    mended = replace(
        TABLE,
        revision=2,
        digest="digest-2",
        status=replace(TABLE.status, rows=(*TABLE.status.rows, *rows(paused="pending"))),
    )
    world.deploy(mended)
    world.provider.script("job-1", says("paused"), DONE)
    world.decide(Option.LOOK_AGAIN)
    world.run()
    op = world.op()
    assert (op.state, op.revision, op.table_digest) == (OperationState.SUCCEEDED, 2, "digest-2")
    assert (len(world.provider.log), len(world.store.escalations)) == (3, 1)


def test_a_limit_of_the_observer_leaves_the_job_pending_and_one_extension_can_finish_it(world: World) -> None:
    """R-FACT-2, R-FACT-3, R-ESC-4 (B043)."""
    world.track(RUNNING, deadline=900 * S)
    world.run()
    assert world.store.reasons("op-1") == [Reason.DEADLINE_EXCEEDED]
    assert world.clock() == world.clock.start + 900 * S
    world.clock.advance(50)
    world.provider.script("job-1", DONE)
    world.decide(Option.EXTEND)
    world.run()
    assert world.op().state is OperationState.SUCCEEDED
    decision = next(e for e in world.entries() if e["event"] == "decision")
    assert (decision["actor"], decision["why"], decision["option"]) == ("ann", "why", "extend")
    assert decision["before"]["spent"]["deadline"] != decision["spent"]["deadline"]
    stops = [e["decision"]["reason"] for e in world.entries() if e.get("decision", {}).get("do") == "stop"]
    assert stops == ["deadline_exceeded"]


def test_a_second_extension_is_not_offered(world: World) -> None:
    world.track(RUNNING, deadline=60 * S)
    world.run()
    world.decide(Option.EXTEND)
    world.run()
    with pytest.raises(OptionNotAllowed):
        world.decide(Option.EXTEND)


def test_the_request_budget_stops_after_its_last_answer(world: World) -> None:
    world.track(RUNNING, status_requests=3)
    world.run()
    assert (len(world.provider.log), world.store.reasons("op-1")) == (3, [Reason.REQUEST_BUDGET_EXHAUSTED])
    world.provider.script("job-1", RUNNING)
    world.decide(Option.LOOK_AGAIN)
    world.run()
    assert (len(world.provider.log), world.op().spent.status_requests, world.op().budget.status_requests) == (4, 4, 4)


def test_a_look_again_after_the_deadline_is_one_request_and_then_the_question_again(world: World) -> None:
    world.track(RUNNING, deadline=60 * S)
    world.run()
    sent = len(world.provider.log)
    world.clock.advance(1000)
    world.decide(Option.LOOK_AGAIN)
    world.run()
    assert (len(world.provider.log), world.store.reasons("op-1")) == (sent + 1, [Reason.DEADLINE_EXCEEDED])


def test_transport_failures_end_the_observation_and_never_the_job(world: World) -> None:
    world.track(no_answer("read_timeout"), no_answer("connect_refused"), answer(502))
    world.run()
    assert (len(world.provider.log), world.op().state) == (3, OperationState.ESCALATED)
    assert world.store.reasons("op-1") == [Reason.TRANSPORT_FAILURES_EXHAUSTED]


def test_a_denied_account_costs_one_question_and_one_repaired_access_frees_all(world: World) -> None:
    """R-READ-4, R-ESC-4: not thousands of questions; the first look after the repair is a single probe."""
    for n in range(20):
        world.track(answer(401), op=f"op-{n}", job=f"job-{n}")
    world.run(300)
    asked = [op for op in world.store.rows if world.store.reasons(op)]
    assert len(asked) == 1
    in_flight_together = len(world.provider.log)
    assert in_flight_together <= 20
    world.run(600)
    assert len(world.provider.log) == in_flight_together
    for n in range(20):
        world.provider.script(f"job-{n}", says("succeeded", f"job-{n}", rows=1))
    world.decide(Option.ACCESS_REPAIRED, asked[0])
    world.run()
    assert {op.state for op in world.store.rows.values()} == {OperationState.SUCCEEDED}


def test_an_operation_that_its_account_holds_back_says_so(world: World) -> None:
    world.track(answer(403))
    world.run(10)
    world.track(RUNNING, op="op-2", job="job-2")
    world.run(60)
    assert (world.op("op-2").delay_source, world.op("op-2").spent.status_requests) == ("gate", 0)


def test_closing_the_accounts_question_lets_the_next_operation_ask_it(world: World) -> None:
    for n in range(3):
        world.track(answer(403), op=f"op-{n}", job=f"job-{n}")
    world.run(60)
    (first,) = [op for op in world.store.rows if world.store.reasons(op)]
    world.decide(Option.CLOSE, first)
    world.run(120)
    (second,) = [op for op in world.store.rows if world.store.reasons(op)]
    assert second != first
    assert world.op(first).state is OperationState.ABANDONED


def test_a_busy_answer_with_guidance_holds_back_the_whole_account(world: World) -> None:
    """R-POLL-4: nobody on the account is asked before the provider allows it, and nothing is debited meanwhile."""
    busy = answer(429, headers={"Retry-After": "300"})
    world.track(busy, DONE)
    for n in range(2, 9):
        world.clock.advance(0.5)
        world.track(says("succeeded", f"job-{n}", rows=1), op=f"op-{n}", job=f"job-{n}")
    world.track(says("succeeded", "job-x", rows=1), op="op-x", job="job-x", account="other")
    world.run()
    log = [(seen.request.operation_id, (seen.at - world.clock.start) / S) for seen in world.provider.log]
    first_at = log[0][1]
    assert all(when >= first_at + 300 for op, when in log[1:] if op != "op-x")
    assert next(when for op, when in log if op == "op-x") < 20
    assert {op.state for op in world.store.rows.values()} == {OperationState.SUCCEEDED}
    assert sum(op.spent.status_requests for op in world.store.rows.values()) == len(log)


def test_guidance_longer_than_an_account_may_be_held_tells_a_person_and_is_still_obeyed(world: World) -> None:
    world.track(answer(503, headers={"Retry-After": "7200"}), DONE, deadline=4 * 3600 * S)
    world.run(60)
    assert world.store.reasons("op-1") == [Reason.GUIDANCE_TOO_LONG]
    assert world.op().state is OperationState.RUNNING
    world.run()
    asked = [(seen.at - world.clock.start) / S for seen in world.provider.log]
    assert asked[1] - asked[0] >= 7200


def test_a_dead_account_is_probed_by_one_operation_at_a_time(world: World) -> None:
    for n in range(10):
        world.track(no_answer("connect_refused"), op=f"op-{n}", job=f"job-{n}", transport_failures=100)
    world.run(600)
    times = [(seen.at - world.clock.start) / S for seen in world.provider.log]
    assert len(times) <= 3 + 10 + 600 / 30
    assert all(later - earlier >= 29 for earlier, later in itertools.pairwise(times[12:]))


def test_guidance_past_the_deadline_waits_sends_nothing_and_stops_there(world: World) -> None:
    """B007, R-POLL-3."""
    world.track(answer(503, headers={"Retry-After": "400000"}))
    world.run()
    assert (len(world.provider.log), world.clock()) == (1, world.clock.start + 3600 * S)
    assert Reason.DEADLINE_EXCEEDED in world.store.reasons("op-1")
    assert world.op().not_before is not None
    assert world.op().not_before > world.clock() + 300_000 * S


def test_a_business_deadline_asks_once_and_the_operation_goes_on(world: World) -> None:
    world.track(*[RUNNING] * 5, DONE, needed_by=world.clock() + 30 * S)
    world.run(35)
    assert world.store.reasons("op-1") == [Reason.BUSINESS_DEADLINE_EXCEEDED]
    world.run()
    assert world.op().state is OperationState.SUCCEEDED
    assert [e["reason"] for e in world.entries() if e["event"] == "decision"] == []
    assert len(world.store.escalations) == 1


def test_a_worker_without_the_table_leaves_the_row_alone_and_asks_after_ten_minutes(world: World) -> None:
    world.track(RUNNING, DONE)
    world.deploy()
    world.run(300)
    assert (world.op().spent.status_requests, world.op().state) == (0, OperationState.RUNNING)
    world.run(600)
    assert (world.op().state, world.store.reasons("op-1")) == (OperationState.ESCALATED, [Reason.TABLE_MISSING])
    assert len(world.entries()) == 3
    world.deploy(TABLE)
    world.decide(Option.LOOK_AGAIN)
    world.run()
    assert (world.op().state, world.op().missing_since) == (OperationState.SUCCEEDED, None)


def test_a_worker_with_an_older_table_leaves_the_row_alone(world: World) -> None:
    newer = replace(TABLE, revision=2, digest="digest-2")
    world.deploy(newer)
    world.track(RUNNING, RUNNING, DONE)
    world.run(7)
    world.deploy(TABLE)
    world.run(120)
    assert world.op().spent.status_requests == 1
    world.deploy(newer)
    world.run()
    assert (world.op().state, world.op().spent.status_requests) == (OperationState.SUCCEEDED, 3)


def test_the_address_stays_as_granted_and_is_refused_once_the_table_forbids_it(world: World) -> None:
    """B021: a new table never sends a running operation to another host."""
    world.track(RUNNING, RUNNING, DONE)
    moved = replace(TABLE, revision=2, hosts=("https://us.acme.example", "https://api.acme.example"))
    world.deploy(moved)
    world.run(7)
    assert {seen.request.url for seen in world.provider.log} == {"https://api.acme.example/jobs/job-1"}
    world.deploy(replace(moved, revision=3, hosts=("https://us.acme.example",)))
    world.run()
    assert (len(world.provider.log), world.store.reasons("op-1")) == (1, [Reason.TARGET_DENIED])


def test_a_duplicated_wake_up_finds_nothing_to_claim(world: World) -> None:
    world.track(RUNNING)
    world.clock.advance(10)
    looks = [len(poll(world.runtime, ["op-1", "op-1", "nobody"])) for _ in range(10)]
    assert (looks, len(world.provider.log)) == ([1] + [0] * 9, 1)


def test_no_more_is_claimed_than_can_be_sent_at_once(world: World) -> None:
    leased: list[int] = []

    def count(_: Request) -> Reply:
        leased.append(sum(op.lease is not None for op in world.store.rows.values()))
        return RUNNING

    world.provider.slots = 2
    for n in range(5):
        world.track(count, op=f"op-{n}", job=f"job-{n}")
    world.clock.advance(10)
    assert len(poll(world.runtime, [f"op-{n}" for n in range(5)])) == 5
    assert leased == [2, 1, 2, 1, 1]


def test_a_process_that_looks_by_itself_publishes_nothing_and_marks_no_row_as_having_a_message_out(
    world: World,
) -> None:
    class Broken(NoScheduler):
        """A broker that is taken for alive: its horizon promises messages that never come."""

        def __init__(self) -> None:
            super().__init__()
            self.horizon = 30 * S

    broken = Broken()
    world.runtime = replace(world.runtime, scheduler=broken)
    world.track(RUNNING, DONE)
    world.run()
    asked = [(seen.at - world.clock.start) / S for seen in world.provider.log]
    assert (world.op().state, broken.asked[1:]) == (OperationState.SUCCEEDED, [])
    assert asked[1] - asked[0] <= 5.01


def test_a_wake_up_that_was_not_published_leaves_the_row_to_the_sweeper_at_its_time(world: World) -> None:
    """With a broker that has just died the first look, and the next one, are on time, not one grace late."""
    broken = NoScheduler()
    broken.horizon = 30 * S
    world.runtime = replace(world.runtime, scheduler=broken)
    world.track(RUNNING, DONE)
    assert world.op().wake_until is None
    world.clock.advance(10)
    poll(world.runtime, ["op-1"])
    assert (world.op().wake_until, world.op().state) == (None, OperationState.RUNNING)


def test_the_log_names_who_waits_for_a_person_what_ended_and_which_follow_up_fails(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "CANARY"  # a variable: the lines of a traceback hold code

    def fails(delivery: Delivery, _: Operation) -> None:
        raise ValueError(f"no room at https://files.example/x?sig={canary}")

    world.handler = fails
    caplog.set_level("INFO", "jobtrack")
    world.track(says("paused"))
    world.track(says("succeeded", "job-2", rows=1), op="op-2", job="job-2", on_success="app.store")
    world.run(20)
    assert "operation op-1 of acme asks a person: unknown_state" in caplog.text
    assert "operation op-2 of acme ended: succeeded" in caplog.text
    assert "follow-up op-2:on_success (app.store) failed on attempt 1: ValueError: no room at" in caplog.text
    assert "in fails" in caplog.text
    assert "sig=CANARY" not in caplog.text


def test_success_without_its_result_is_shown_with_the_word_that_the_provider_said(world: World) -> None:
    world.track(RUNNING, says("succeeded"))
    world.run()
    assert (world.store.reasons("op-1"), world.op().provider_state) == ([Reason.INVALID_RESULT], "succeeded")


def test_an_early_wake_up_is_parked_once_more(world: World) -> None:
    world.track(RUNNING)
    due = world.op().wake_at
    assert due is not None
    world.clock.advance_to(due - 1.5 * S)
    asked = world.runtime.scheduler.asked  # type: ignore[attr-defined]
    asked.clear()
    assert poll(world.runtime, ["op-1"]) == []
    assert asked == [("op-1", 0, 1.5 * S)]
    world.clock.advance_to(due - 0.5 * S)


def test_an_answer_after_its_lease_was_lost_changes_nothing_and_is_kept(world: World) -> None:
    """INV-14: the worker stands still longer than its lease while another one looks."""

    def slow(_: Request) -> Reply:
        world.clock.advance(120)
        world.provider.script("job-1", DONE)
        assert [item.committed for item in poll(world.runtime, ["op-1"])] == [Committed.DONE]
        return says("failed", error="too late")

    world.track(slow)
    world.clock.advance(10)
    (late,) = poll(world.runtime, ["op-1"])
    assert (late.committed, world.op().state) == (Committed.STALE, OperationState.SUCCEEDED)
    assert world.entries()[-1]["late"] is True
    assert verify(world.store.export()).good


def test_a_worker_that_stood_still_after_its_claim_sends_nothing(world: World) -> None:
    world.track(RUNNING)
    world.clock.advance(10)
    elapsed = iter([0.0, 100.0, 100.0, 100.0])
    poll(replace(world.runtime, elapsed=lambda: next(elapsed)), ["op-1"])
    assert (len(world.provider.log), world.op().spent.status_requests) == (0, 1)
    assert (world.op().spent.transport_failures, world.op().state) == (0, OperationState.RUNNING)


def test_a_crash_between_claim_and_answer_wastes_a_reservation_and_the_next_look_keeps_its_distance(
    world: World,
) -> None:
    """R-BUDGET-2, INV-05."""

    class Killed(BaseException):
        pass

    def dies(_: Request) -> Reply:
        raise Killed

    world.track(dies, DONE)
    world.clock.advance(10)
    with pytest.raises(Killed):
        poll(world.runtime, ["op-1"])
    assert poll(world.runtime, ["op-1"]) == []
    world.run()
    assert (world.op().state, world.op().spent.status_requests) == (OperationState.SUCCEEDED, 2)
    first, second = (seen.at for seen in world.provider.log)
    assert second - first >= 30 * S
    assert [entry.get("lost_look") for entry in world.entries()] == [None, 1]


def test_failure_closes_the_operation_and_asks_and_cancelled_by_word_of_the_caller_does_not(world: World) -> None:
    world.track(says("failed", error="disk full"), on_failure="app.warn")
    world.track(says("canceled", "job-2"), op="op-2", job="job-2", escalate_ends=False)
    world.run()
    assert (world.op().state, world.op().cause, world.op().error) == (
        OperationState.FAILED,
        "provider_failure",
        "disk full",
    )
    assert (world.store.reasons("op-1"), world.store.reasons("op-2")) == ([Reason.PROVIDER_FAILURE], [])
    world.decide(Option.CLOSE)
    assert (world.op().state, world.store.reasons("op-1")) == (OperationState.FAILED, [])
    assert world.delivered == ["op-1:on_failure"]


def test_a_failing_follow_up_is_tried_with_growing_pauses_then_a_person_is_asked(world: World) -> None:
    """INV-23: the operation itself never changes."""

    def fails(delivery: Delivery, _: Operation) -> None:
        raise RuntimeError(f"cannot reach https://user:pw@host/x?sig=SECRET on attempt {delivery.attempts}")

    world.handler = fails
    world.track(DONE, on_success="app.store")
    world.run()
    assert (world.op().state, world.store.reasons("op-1")) == (OperationState.SUCCEEDED, [Reason.DELIVERY_FAILED])
    detail = world.store.open_escalations("op-1")[0].detail
    assert ("SECRET" in detail, "8 times" in detail) == (False, True)
    world.handler = None
    world.decide(Option.RETRY_DELIVERY)
    world.run()
    assert world.delivered == ["op-1:on_success"]


def test_the_second_of_two_deciders_is_told_who_was_first(world: World) -> None:
    world.track(says("paused"))
    world.run()
    (escalation,) = world.store.open_escalations("op-1")
    world.decide(Option.CLOSE, actor="ann")
    with pytest.raises(AlreadyDecided, match="ann"):
        resolve(
            world.runtime,
            Resolution(
                escalation_id=escalation.id, option=Option.CLOSE, actor="bob", reason="x", version=escalation.version
            ),
        )


def test_a_decision_on_evidence_that_changed_is_refused(world: World) -> None:
    world.track(says("paused"))
    world.run()
    (escalation,) = world.store.open_escalations("op-1")
    with pytest.raises(StaleEvidence):
        resolve(
            world.runtime,
            Resolution(escalation_id=escalation.id, option=Option.CLOSE, actor="bob", reason="x", version=99),
        )


def test_an_abandoned_operation_still_runs_its_end(world: World) -> None:
    world.track(says("paused"), on_success="app.store", on_failure="app.warn", on_end="app.end")
    world.run()
    world.decide(Option.CLOSE)
    world.run()
    assert (world.op().state, world.delivered) == (OperationState.ABANDONED, ["op-1:on_end"])


def test_the_same_operation_id_is_one_operation_and_other_content_is_refused(world: World) -> None:
    world.track(RUNNING)
    world.track()
    assert len(world.store.audit["op-1"]) == 1
    with pytest.raises(IdempotencyConflict):
        world.track(job="job-2")
    with pytest.raises(IdempotencyConflict):
        world.track(account="other")
    with pytest.raises(IdempotencyConflict):
        world.track(status_url="https://api.acme.example/v2/jobs/job-1")


BAD = [
    ({"job": ""}, UsageError),
    ({"job": ".."}, UsageError),
    ({"params": {"region": "eu"}}, UsageError),
    ({"deadline": 0 * S}, UsageError),
    ({"status_requests": 0}, UsageError),
    ({"status_url": "https://evil.example/jobs/1"}, UsageError),
    ({"status_url": "https://api.acme.example/jobs/1", "job": ".."}, UsageError),
    ({"status_url": "https://api.acme.example/jobs/1", "params": {"region": "eu"}}, UsageError),
]


@pytest.mark.parametrize(("wrong", "error"), BAD)
def test_what_cannot_be_tracked_is_refused_and_leaves_nothing(world: World, wrong: dict[str, Any], error: type) -> None:
    with pytest.raises(error):
        world.track(**wrong)
    assert world.store.rows == {}


def test_an_unknown_table_is_refused(world: World) -> None:
    world.deploy()
    with pytest.raises(TableMissing):
        world.track()


def test_a_status_url_of_an_allowed_host_is_used_as_given(world: World) -> None:
    world.track(DONE, status_url="https://api.acme.example/v2/jobs/job-1")
    world.run()
    assert [seen.request.url for seen in world.provider.log] == ["https://api.acme.example/v2/jobs/job-1"]


def test_a_status_url_with_a_query_is_used_and_kept_sealed_only(world: World) -> None:
    """INV-33: it may be a capability."""
    url = "https://api.acme.example/v2/jobs/job-1?sig=canary"
    world.track(DONE, status_url=url)
    assert world.op().status_url == ""
    assert "canary" not in repr(world.store.rows) + repr(world.store.audit)
    world.run()
    assert [seen.request.url for seen in world.provider.log] == [url]
    assert world.op().state is OperationState.SUCCEEDED


def test_looks_stay_in_their_bounds_over_a_long_job(world: World) -> None:
    """INV-01, INV-05: never over budget, never closer than the least interval."""
    world.runtime = replace(world.runtime, draw=lambda: 0.0, timing=Timing())
    world.track(RUNNING, deadline=24 * 3600 * S, status_requests=40)
    world.run()
    times: list[datetime] = [seen.at for seen in world.provider.log]
    gaps = [(b - a) / S for a, b in itertools.pairwise(times)]
    assert len(times) == 40
    assert gaps[:5] == [2.5, 5, 10, 20, 30]
    assert min(gaps) >= TABLE.polling.min_interval / S


def test_a_late_wake_up_looks_once_and_makes_up_for_nothing(world: World) -> None:
    """R-POLL-5: nobody looked for half an hour; the missed looks are not sent in a burst."""
    world.track(RUNNING)
    world.clock.advance(1800)
    for _ in range(5):
        poll(world.runtime, ["op-1"])
    op = world.op()
    assert (len(world.provider.log), op.spent.status_requests) == (1, 1)
    assert op.not_before is not None
    assert op.not_before >= world.clock() + 2.5 * S


# --- found by the simulation ------------------------------------------------------------------------


def test_a_worker_that_stood_still_before_its_claim_does_not_see_the_deadline_early(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-06: its own watch cannot tell on which side of the claim it stood still."""
    world.track(RUNNING, deadline=60 * S)
    world.clock.advance(10)
    claim = MemoryStore.claim

    def slow(*args: Any, **named: Any) -> Any:
        world.clock.advance(30)
        return claim(*args, **named)

    monkeypatch.setattr(MemoryStore, "claim", slow)
    poll(world.runtime, ["op-1"])
    assert (world.op().state, world.op().fence, world.provider.log) == (OperationState.RUNNING, 1, [])


def test_a_business_deadline_at_a_closed_gate_is_told_without_a_request(world: World) -> None:
    """R-POLL-4: only the question goes through."""
    world.track(answer(503, headers={"Retry-After": "100"}), DONE)
    world.clock.advance(3)
    world.track(says("succeeded", "job-2", rows=7), op="op-2", job="job-2", needed_by=world.clock() + 20 * S)
    world.run(30)
    assert (world.store.reasons("op-2"), world.provider.requests("job-2")) == ([Reason.BUSINESS_DEADLINE_EXCEEDED], [])
    world.run()
    assert world.op("op-2").state is OperationState.SUCCEEDED
    assert world.provider.requests("job-2")[0].at >= world.clock.start + 105 * S


def test_a_decision_keeps_to_the_wait_of_the_very_answer_that_stopped(world: World) -> None:
    """INV-04: guidance that comes with a reason to stop outlives a person's impatience."""
    world.track(answer(json={"id": "job-1", "status": "paused"}, headers={"Retry-After": "120"}), DONE)
    world.run()
    world.decide(Option.LOOK_AGAIN)
    world.run()
    first, second = (seen.at for seen in world.provider.log)
    assert second - first >= 120 * S
    assert world.op().state is OperationState.SUCCEEDED


def test_an_extension_ends_in_time_although_the_provider_asked_for_a_longer_wait(world: World) -> None:
    """INV-06: the wake-up never lies past the new deadline."""
    world.track(
        answer(json={"id": "job-1", "status": "running"}, headers={"Retry-After": "7000"}),
        deadline=60 * S,
    )
    world.run()
    world.decide(Option.EXTEND)
    world.run()
    assert world.clock() == world.clock.start + 960 * S
    assert (len(world.provider.log), world.store.reasons("op-1")) == (1, [Reason.DEADLINE_EXCEEDED])


def test_an_advisory_question_is_acknowledged_even_if_the_operation_ends_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """INV-07, INV-08: it never writes the operation."""
    world.track(RUNNING, says("paused"), needed_by=world.clock() + 7 * S)
    world.run()
    assert set(world.store.reasons("op-1")) == {Reason.BUSINESS_DEADLINE_EXCEEDED, Reason.UNKNOWN_STATE}
    right = MemoryStore.resolve

    def overtaken(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(MemoryStore, "resolve", right)
        world.decide(Option.CLOSE, reason=Reason.UNKNOWN_STATE)
        return right(*args, **named)

    monkeypatch.setattr(MemoryStore, "resolve", overtaken)
    world.decide(Option.CLOSE, reason=Reason.BUSINESS_DEADLINE_EXCEEDED)
    assert (world.op().state, world.store.reasons("op-1")) == (OperationState.ABANDONED, [])


class Swallows(NoScheduler):
    """A broker that takes every message and delivers none."""

    def wake_now(self, ids: Sequence[str]) -> int:
        return len(ids)


def test_the_sweeper_ends_what_is_over_although_the_broker_swallows_its_messages(world: World) -> None:
    """INV-06: a decision needs no message."""
    world.track(RUNNING, deadline=60 * S)
    world.runtime = replace(world.runtime, scheduler=Swallows())
    for _ in range(120):
        sweep(world.runtime)
        world.clock.advance(1)
    assert (world.store.reasons("op-1"), world.provider.log) == ([Reason.DEADLINE_EXCEEDED], [])


def test_the_deadline_counts_although_no_worker_has_the_table(world: World) -> None:
    """INV-06."""
    world.track(RUNNING, deadline=60 * S)
    world.deploy()
    world.run()
    assert world.clock() == world.clock.start + 60 * S
    assert world.store.reasons("op-1") == [Reason.DEADLINE_EXCEEDED]


def test_nothing_takes_time_between_a_claim_and_its_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-14: what cannot be sent is written after what can."""
    other = "https://old.acme.example"
    world.deploy(replace(TABLE, hosts=(*TABLE.hosts, other)))
    world.track(RUNNING, status_url=f"{other}/jobs/job-1")
    world.track(says("running", "job-2"), op="op-2", job="job-2")
    world.deploy(TABLE)
    world.clock.advance(10)
    asked, commit = world.clock(), MemoryStore.commit

    def slow(*args: Any) -> Any:
        world.clock.advance(100)
        return commit(*args)

    monkeypatch.setattr(MemoryStore, "commit", slow)
    poll(world.runtime, ["op-1", "op-2"])
    assert [seen.at for seen in world.provider.log] == [asked]
    assert world.store.reasons("op-1") == [Reason.TARGET_DENIED]
