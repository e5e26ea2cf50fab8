"""What every store promises about what comes beside the looks: notices of providers, notes, errands, results."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.escalation import Question, Reason
from jobtrack.core.operation import Lease, OperationState
from jobtrack.errors import OperationNotFound, StoreError
from jobtrack.records import Commit, Committed, Followup, JobResult, Receipt, ResultFile, ResultState
from tests.contracts.conftest import FLOOR, HOUR, LEASE, Bench, memory_bench

S = OperationState
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
CANCEL = Followup(event="cancel")


def notice(notice_id="n-1", **changes):
    given = {"provider": "acme-export", "account": "default", "notice_id": notice_id, "job_id": "exp_1"}
    return Receipt(**{**given, **changes})


OURS = {"job_id": "", "operation_id": "op-1"}


def parked(bench: Bench, operation_id="op-1", **changes):
    """A running row whose next look is an hour away; a notice may bring it to a minute from now."""
    now = bench.store.now()
    waits = {"wake_at": now + HOUR, "wake_until": now + HOUR, "not_before": now + HOUR, "delay_source": "local_backoff"}
    return bench.add(operation_id, **{**waits, "hint_floor": now + MINUTE, **changes})


class TestReceive:
    def test_a_notice_counts_once(self, bench: Bench):
        """R-SEC-3: a provider sends it until it is told that it came."""
        first, second = notice("n-1"), notice("n-2")
        assert bench.store.receive([first, first, second]) == [True, False, True]
        assert bench.store.receive([notice("n-1"), notice("n-3")]) == [False, True]
        assert bench.store.receive([]) == []

    @pytest.mark.parametrize(
        "other", [{"provider": "other"}, {"account": "eu"}, {"notice_id": "N-1"}, {"notice_id": "n-1 "}]
    )
    def test_notices_are_told_apart_by_provider_account_and_id_byte_for_byte(self, bench: Bench, other):
        assert bench.store.receive([notice(), notice(**other)]) == [True, True]

    @pytest.mark.parametrize("odd", ["x" * 5000, "a\0b", "\ud800", "\N{SNOWMAN}" * 300], ids=ascii)
    def test_an_id_that_no_column_keeps_is_still_one_of_its_own(self, bench: Bench, odd):
        wanted = [notice(odd), notice(odd + "x"), notice(odd, job_id="exp_2"), notice(odd[:-1])]
        assert bench.store.receive(wanted) == [True, True, False, True]

    def test_nothing_else_is_written(self, bench: Bench):
        """INV-26, INV-27."""
        before = parked(bench)
        bench.store.receive([notice(), notice("n-2", **OURS)])
        assert bench.row() == before
        assert len(bench.entries("op-1")) == 1

    def test_those_of_an_operation_are_found_when_its_job_is_accepted(self, bench: Bench):
        """A notice may overtake the answer to the submission."""
        by_job, by_id = notice("n-1"), notice("n-2", **OURS)
        others = [
            notice("n-3", job_id="exp_2"),
            notice("n-4", job_id="EXP_1"),
            notice("n-5", provider="other"),
            notice("n-6", account="eu"),
            notice("n-7", job_id="", operation_id="op-2"),
            notice("n-8", job_id="op-1"),
            notice("n-9", job_id="", operation_id="exp_1"),
        ]
        bench.store.receive([by_job, by_id, *others])
        assert bench.store.receipts_of(bench.operation()) == [by_job, by_id]
        assert bench.store.receipts_of(bench.operation(job_id="")) == [by_id]
        assert bench.store.receipts_of(bench.operation("op-9", job_id="")) == []


class TestHint:
    @pytest.mark.parametrize("how", [{}, OURS])
    def test_the_next_look_comes_forward_to_the_floor_and_no_earlier(self, bench: Bench, how):
        """INV-04, INV-26: the provider's own guidance is not undercut by its notice."""
        before = parked(bench)
        assert bench.store.hint([notice(**how)]) == ["op-1"]
        row = bench.row()
        assert row == replace(
            before,
            hinted=True,
            noticed_at=row.noticed_at,
            wake_at=before.hint_floor,
            not_before=before.hint_floor,
            wake_until=None,
            delay_source="webhook",
        )
        assert before.created_at <= row.noticed_at <= before.hint_floor
        assert bench.claim() == []
        bench.shift(MINUTE + SECOND)
        (claim,) = bench.claim()
        assert (claim.granted, claim.operation.hinted) == (True, False)

    def test_after_the_floor_it_is_now(self, bench: Bench):
        parked(bench)
        bench.shift(2 * MINUTE)
        assert bench.store.hint([notice()]) == ["op-1"]
        (claim,) = bench.claim()
        assert claim.granted

    def test_a_thousand_notices_bring_one_look(self, bench: Bench):
        """INV-26."""
        before = parked(bench)
        flood = [notice(f"n-{number}", **(OURS if number % 2 else {})) for number in range(980)]
        moved = [bench.store.hint([each]) for each in flood[:20]] + [bench.store.hint(flood)]
        assert moved == [["op-1"]] + [[]] * 20
        assert (bench.row().wake_at, bench.row().not_before) == (before.hint_floor, before.hint_floor)
        bench.shift(MINUTE + SECOND)
        (claim,) = bench.claim(floor=HOUR)
        bench.store.hint([notice()])
        bench.store.hint([notice()])
        # What came during the look brings the next one forward, once more to its own floor.
        floor = bench.store.now() + MINUTE
        waits = replace(claim.operation, lease=None, wake_at=floor + HOUR, not_before=floor + HOUR, hint_floor=floor)
        bench.store.commit([Commit(operation=waits, entry={"event": "poll"})])
        assert (bench.row().wake_at, bench.row().not_before) == (floor, floor)
        assert bench.row().spent.status_requests == 1

    def test_a_look_that_comes_earlier_anyway_stays(self, bench: Bench):
        soon = bench.store.now() + SECOND
        before = parked(bench, wake_at=soon, not_before=soon)
        assert bench.store.hint([notice()]) == []
        assert bench.row() == replace(before, hinted=True, noticed_at=bench.row().noticed_at)

    def test_a_row_without_a_floor_is_not_moved(self, bench: Bench):
        """Rows of an earlier release say nothing about the provider's guidance: INV-04 wins."""
        before = parked(bench, hint_floor=None)
        assert bench.store.hint([notice()]) == []
        assert (bench.row().wake_at, bench.row().hinted) == (before.wake_at, True)

    def test_a_wake_up_for_a_deadline_stays_and_what_may_be_sent_comes_forward(self, bench: Bench):
        now = bench.store.now()
        before = parked(bench, wake_at=now + SECOND, not_before=now + HOUR)
        bench.store.hint([notice()])
        assert (bench.row().wake_at, bench.row().not_before) == (now + SECOND, before.hint_floor)

    @pytest.mark.parametrize(
        "stranger",
        [{"provider": "other"}, {"account": "eu"}, {"job_id": "exp_2"}, {"job_id": "EXP_1"}, {"job_id": "x" * 600}],
    )
    def test_a_notice_of_something_else_moves_nothing(self, bench: Bench, stranger):
        before = parked(bench)
        assert bench.store.hint([notice(**stranger)]) == []
        assert bench.store.hint([]) == []
        assert bench.row() == before

    def test_a_row_without_a_job_id_is_meant_by_its_own_id_only(self, bench: Bench):
        before = parked(bench, job_id="")
        assert bench.store.hint([notice(job_id="")]) == []
        assert bench.row() == before

    @pytest.mark.parametrize("state", [state for state in S if state is not S.RUNNING])
    def test_only_running_rows_are_moved(self, bench: Bench, state):
        """INV-07, INV-26: a notice sets no state."""
        resting = {"wake_at": None} if state in {S.SUCCEEDED, S.FAILED, S.CANCELLED, S.EXPIRED, S.ABANDONED} else {}
        before = parked(bench, state=state, **resting)
        assert bench.store.hint([notice()]) == []
        assert bench.row() == before

    def test_all_operations_that_follow_the_job_are_moved(self, bench: Bench):
        parked(bench, "op-2")
        parked(bench, "op-1")
        parked(bench, "op-3", job_id="exp_3")
        assert sorted(bench.store.hint([notice(), notice("n-2")])) == ["op-1", "op-2"]


class TestHintDuringALook:
    @pytest.mark.parametrize("over", [False, True])
    def test_a_lease_is_left_alone(self, bench: Bench, over):
        """INV-05: also one that is over, since its own floor is the newest word about when to ask."""
        bench.add(hint_floor=bench.store.now())
        bench.claim(floor=HOUR)
        if over:
            bench.shift(LEASE + SECOND)
        before = bench.row()
        assert bench.store.hint([notice()]) == []
        assert bench.row() == replace(before, hinted=True, noticed_at=bench.row().noticed_at)

    def test_what_the_look_has_learnt_about_waiting_holds(self, bench: Bench):
        """INV-04: the floor of the answer counts, not the one before it."""
        bench.add(hint_floor=bench.store.now())
        (claim,) = bench.claim()
        bench.store.hint([notice()])
        asked = bench.store.now() + HOUR
        waits = replace(
            claim.operation, lease=None, wake_at=asked + MINUTE, not_before=asked + MINUTE, hint_floor=asked
        )
        commit = Commit(operation=replace(waits, wake_until=asked + HOUR), entry={"event": "poll"})
        assert bench.store.commit([commit]) == [Committed.DONE]
        row = bench.row()
        assert (row.wake_at, row.not_before, row.wake_until, row.delay_source) == (asked, asked, None, "webhook")
        assert (row.hinted, row.noticed_at is not None) == (True, True)
        assert bench.audited("op-1").faults == ()

    def test_without_a_notice_the_row_is_written_as_it_is(self, bench: Bench):
        bench.add(hint_floor=bench.store.now())
        (claim,) = bench.claim()
        later = bench.store.now() + HOUR
        waits = replace(claim.operation, lease=None, wake_at=later, not_before=later, delay_source="local_backoff")
        bench.store.commit([Commit(operation=waits, entry={"event": "poll"})])
        assert bench.row() == replace(waits, audit_seq=2, audit_head=bench.row().audit_head)

    def test_an_end_is_an_end(self, bench: Bench):
        bench.add(hint_floor=bench.store.now())
        (claim,) = bench.claim()
        bench.store.hint([notice()])
        ended = replace(claim.operation, state=S.SUCCEEDED, lease=None, wake_at=None)
        assert bench.store.commit([Commit(operation=ended, entry={"event": "poll"})]) == [Committed.DONE]
        assert (bench.row().state, bench.row().wake_at) == (S.SUCCEEDED, None)


class TestNote:
    def test_an_entry_is_written_and_nothing_moves(self, bench: Bench):
        before = parked(bench)
        row = bench.store.note("op-1", {"event": "conflict"})
        assert row == bench.row() == replace(before, audit_seq=2, audit_head=row.audit_head)
        assert json.loads(bench.entries("op-1")[-1][3]) == {"event": "conflict"}
        assert bench.audited("op-1").faults == ()

    @pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED])
    def test_also_after_the_end(self, bench: Bench, state):
        bench.add(state=state, wake_at=None)
        question = Question(reason=Reason.RESULT_UNAVAILABLE, detail="410")
        bench.store.note("op-1", {"event": "result"}, question=question)
        (asked,) = bench.store.open_escalations("op-1")
        assert (asked.reason, asked.blocking, bench.row().state) == (Reason.RESULT_UNAVAILABLE, False, state)
        bench.store.note("op-1", {"event": "result"}, question=replace(question, detail="404"))
        (asked,) = bench.store.open_escalations("op-1")
        assert (asked.detail, asked.version) == ("404", 2)

    def test_a_question_that_stops_is_refused(self, bench: Bench):
        before = bench.add()
        with pytest.raises(StoreError):
            bench.store.note("op-1", {}, question=Question(reason=Reason.STALLED, detail="?"))
        assert bench.row() == before
        assert bench.store.open_escalations("op-1") == []

    def test_an_unknown_operation_is_not_found(self, bench: Bench):
        with pytest.raises(OperationNotFound):
            bench.store.note("nobody", {})

    def test_a_look_under_way_is_written_over_it_and_keeps_what_it_said(self, bench: Bench):
        bench.add()
        (claim,) = bench.claim()
        bench.store.note("op-1", {"event": "cancel"}, cancel_state="requested")
        later = bench.store.now() + HOUR
        waits = replace(claim.operation, lease=None, wake_at=later)
        assert bench.store.commit([Commit(operation=waits, entry={"event": "poll"})]) == [Committed.DONE]
        assert (bench.row().cancel_state, bench.row().wake_at) == ("requested", later)
        bench.store.note("op-1", {"event": "cancel"})
        assert bench.row().cancel_state == "requested"
        assert bench.audited("op-1").faults == ()

    def test_an_errand_is_due_at_once_and_again_with_fresh_attempts(self, bench: Bench):
        bench.add()
        for _ in range(2):
            bench.store.note("op-1", {"event": "cancel"}, errand=CANCEL)
            assert bench.store.due(limit=9, grace=HOUR).deliveries == ("op-1:cancel",)
            taken = bench.store.take_delivery("op-1:cancel", owner="w1", lease=LEASE)
            assert (taken.event, taken.handler, taken.attempts) == ("cancel", "", 1)
            assert bench.store.close_delivery(taken, owner="w1")
            assert bench.store.take_delivery("op-1:cancel", owner="w1", lease=LEASE) is None

    def test_an_errand_that_was_given_up_is_due_again(self, bench: Bench):
        bench.add()
        bench.store.note("op-1", {}, errand=CANCEL)
        taken = bench.store.take_delivery("op-1:cancel", owner="w1", lease=LEASE)
        bench.store.fail_delivery(taken, owner="w1", error="boom", again_in=None, question=None)
        assert bench.store.due(limit=9, grace=HOUR).deliveries == ()
        bench.store.note("op-1", {}, errand=CANCEL)
        assert bench.store.take_delivery("op-1:cancel", owner="w2", lease=LEASE).attempts == 1

    def test_an_errand_under_way_is_not_begun_a_second_time(self, bench: Bench):
        bench.add()
        bench.store.note("op-1", {}, errand=CANCEL)
        taken = bench.store.take_delivery("op-1:cancel", owner="w1", lease=LEASE)
        bench.store.note("op-1", {}, errand=CANCEL)
        assert bench.store.take_delivery("op-1:cancel", owner="w2", lease=LEASE) is None
        assert bench.store.close_delivery(taken, owner="w1")

    def test_follow_ups_are_not_touched(self, bench: Bench):
        bench.add()
        (claim,) = bench.claim()
        ended = replace(claim.operation, state=S.SUCCEEDED, lease=None, wake_at=None)
        followup = Followup(event="on_end", handler="a.b")
        bench.store.commit([Commit(operation=ended, entry={}, followups=(followup,))])
        taken = bench.store.take_delivery("op-1:on_end", owner="w1", lease=LEASE)
        bench.store.close_delivery(taken, owner="w1")
        bench.store.note("op-1", {}, errand=Followup(event="result"))
        assert bench.outbox("op-1") == [("result", "")]


FILE = ResultFile(
    name="rows.csv",
    path="jobtrack/op-1/rows.csv",
    size=7,
    sha256="a" * 64,
    content_type="text/csv",
    complete=True,
    etag='"v1"',
)


class TestResults:
    def test_nothing_is_known_before_somebody_asks(self, bench: Bench):
        bench.add()
        assert bench.store.result("op-1") is None
        assert bench.store.result("nobody") is None

    def test_the_record_is_kept_and_replaced_until_it_is_complete(self, bench: Bench):
        """R-END-4, R-END-2: of its own, and the operation stays as it is."""
        before = bench.add(state=S.SUCCEEDED, wake_at=None)
        wanted = JobResult(operation_id="op-1")
        part = JobResult(
            operation_id="op-1",
            files=(replace(FILE, complete=False, sha256="", size=3),),
            reads=2,
            detail="It ended early.",
            link="https://api.acme.example/r/1",
        )
        given_up = replace(part, state=ResultState.UNAVAILABLE, detail="410")
        done = JobResult(
            operation_id="op-1",
            state=ResultState.COMPLETE,
            files=(FILE, replace(FILE, name="ö", path="p")),
            fetched_at=bench.store.now(),
        )
        for record in (wanted, part, given_up, part, done):
            bench.store.keep_result(record)
            assert bench.store.result("op-1") == record
        for late in (part, given_up, wanted, replace(done, files=())):
            bench.store.keep_result(late)
            assert bench.store.result("op-1") == done
        assert bench.row() == before

    def test_each_operation_has_its_own(self, bench: Bench):
        for operation_id in ("op-1", "op-2"):
            bench.add(operation_id)
            bench.store.keep_result(JobResult(operation_id=operation_id, detail=operation_id))
        assert bench.store.result("op-1").detail == "op-1"

    def test_a_result_of_nothing_is_refused(self, bench: Bench):
        with pytest.raises(OperationNotFound):
            bench.store.keep_result(JobResult(operation_id="nobody"))


def test_twenty_threads_store_one_notice_in_memory_once():
    """R-SEC-3; the same on real databases is in ``tests/django/test_store.py``."""
    bench = memory_bench()
    with ThreadPoolExecutor(20) as threads:
        stored = list(threads.map(lambda _: bench.store.receive([notice()]), range(200)))
    assert stored.count([True]) == 1


def test_a_lease_of_a_submission_is_none_of_a_notices_business(bench: Bench):
    bench.unsent(lease=Lease(owner="w1", until=bench.store.now() + HOUR), hint_floor=bench.store.now())
    before = bench.row()
    assert bench.store.hint([notice(**OURS)]) == []
    assert bench.row() == before
    assert before.not_before <= bench.store.now() + FLOOR
