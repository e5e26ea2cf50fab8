"""What every store promises (``jobtrack.ports.Store``). One suite for the memory store and Django's."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.escalation import Option, Proposal, Question, Reason, Resolution
from jobtrack.core.gate import OPEN, GateState, HoldReason
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import Budget, Lease, OperationState, Spent
from jobtrack.errors import AlreadyDecided, OperationNotFound, StaleEvidence, StoreError
from jobtrack.records import Commit, Committed, Followup
from tests.contracts.conftest import FLOOR, HOUR, LEASE, TABLE, Bench, django_bench, memory_bench

S = OperationState
SECOND = timedelta(seconds=1)
BLOCKING = Question(reason=Reason.UNKNOWN_STATE, detail="The provider said `paused`.")
ADVISORY = Question(reason=Reason.BUSINESS_DEADLINE_EXCEEDED, detail="Needed by noon.")


def finished(operation, state=S.SUCCEEDED):
    return replace(operation, state=state, lease=None, wake_at=None, wake_until=None)


def waiting(operation, wake_at):
    return replace(operation, lease=None, wake_at=wake_at, wake_until=None)


def stopped(bench: Bench, operation_id="op-1", questions=(BLOCKING,)):
    """An operation that a look has escalated; returns its escalation."""
    bench.add(operation_id)
    (claim,) = bench.claim(operation_id)
    wanted = replace(claim.operation, state=S.ESCALATED, lease=None, wake_at=None)
    bench.store.commit([Commit(operation=wanted, entry={"event": "poll"}, questions=questions)])
    return bench.store.open_escalations(operation_id)[0]


def answer(escalation, option=Option.CLOSE, version=1):
    return Resolution(escalation_id=escalation.id, option=option, actor="ada", reason="seen to it", version=version)


def delivery(bench: Bench):
    """A finished operation with one follow-up; returns its delivery, taken."""
    bench.add()
    (claim,) = bench.claim()
    followup = Followup(event="on_success", handler="reports.store")
    bench.store.commit([Commit(operation=finished(claim.operation), entry={"event": "poll"}, followups=(followup,))])
    return bench.store.take_delivery("op-1:on_success", owner="w1", lease=LEASE)


class TestAddAndGet:
    def test_a_new_row_comes_back_as_given_with_one_audit_entry(self, bench: Bench):
        wanted = bench.operation(params={"region": "eu"}, reference="order 7", on_success="reports.store")
        (stored,) = bench.store.add([wanted], {"event": "track", "n": 1}, TABLE)
        assert stored == replace(wanted, audit_seq=1, audit_head=stored.audit_head)
        assert bench.row() == stored
        assert [json.loads(text) for *_, text in bench.entries("op-1")] == [{"event": "track", "n": 1}]
        assert bench.texts() == {TABLE.digest: TABLE.text}

    def test_an_id_that_exists_is_returned_unchanged(self, bench: Bench):
        first = bench.add()
        again = bench.operation(job_id="other")
        assert bench.store.add([again, again], {"event": "track"}, TABLE) == [first, first]
        assert len(bench.entries("op-1")) == 1

    def test_get_keeps_the_order_and_leaves_unknown_ids_out(self, bench: Bench):
        bench.add("a")
        bench.add("b")
        assert [row.id for row in bench.store.get(["b", "nobody", "a"])] == ["b", "a"]

    @pytest.mark.parametrize("other", ["OP-1", "op-1 ", "öp-1"])
    def test_ids_are_compared_byte_for_byte(self, bench: Bench, other):
        bench.add("op-1")
        assert bench.store.get([other]) == []
        bench.add(other, job_id="another job")
        assert bench.row("op-1").job_id == "exp_1"

    def test_every_field_survives(self, bench: Bench):
        now = bench.store.now()
        wanted = bench.operation(
            budget=Budget(
                deadline=now + HOUR,
                status_requests=9,
                transport_failures=8,
                rate_limited=7,
                extensions=2,
                needed_by=now,
                submissions=5,
                lookups=6,
                follow_for=timedelta(days=400, microseconds=7),
            ),
            spent=Spent(
                status_requests=4, transport_failures=3, rate_limited=2, extensions=1, submissions=5, lookups=6
            ),
            state=S.RUNNING,
            status_url="https://api.acme.example/v1/exports/exp_1",
            provider_state="läuft",
            provider_state_since=now,
            observed_at=now,
            last_http=200,
            progress="1/2",
            error="none",
            expires_at=now + HOUR,
            kept={"rows": 3, "parts": ["a", None, True], "share": 0.5},
            needed_by_told=True,
            escalate_ends=False,
            last_look=True,
            look_until=now + HOUR,
            missing_since=now,
            revision=3,
            table_digest=TABLE.digest,
            delay_source="local_backoff",
            on_failure="a.b",
            on_end="c.d",
            predecessor="op-0",
            idempotency_key="op-1",
            fingerprint="f" * 64,
            sealed="gAAAAA" * 5000,
            submit_by=now + HOUR,
            first_sent_at=now,
            last_sent_at=now + SECOND,
            recover_until=now + HOUR,
            doubt="The answer broke off.",
            doubt_http=502,
            acceptance_seen=True,
            evidence={"job_id": "exp_2", "params": {"region": "eu"}},
            hint_floor=now + SECOND,
            hinted=True,
            noticed_at=now,
            cancel_state="requested",
        )
        (stored,) = bench.store.add([wanted], {}, TABLE)
        assert replace(bench.row(), audit_seq=0, audit_head="") == wanted
        assert stored == bench.row()


class TestClaim:
    def test_a_due_row_is_leased_fenced_and_debited(self, bench: Bench):
        before = bench.add(wake_until=bench.store.now() + HOUR)
        (claim,) = bench.claim(owner="w1")
        expected = replace(
            before,
            fence=1,
            lease=claim.operation.lease,
            spent=Spent(status_requests=1),
            wake_at=claim.now + LEASE,
            wake_until=None,
            not_before=claim.now + FLOOR,
        )
        assert claim.granted
        assert claim.operation == expected == bench.row()
        assert (claim.operation.lease.owner, claim.operation.lease.until) == ("w1", claim.now + LEASE)

    def test_a_longer_floor_of_the_row_stays(self, bench: Bench):
        bench.add()
        floor = bench.store.now() + HOUR / 2
        (claim,) = bench.claim()
        bench.store.commit([Commit(operation=replace(waiting(claim.operation, claim.now), not_before=floor), entry={})])
        (claim,) = bench.claim()
        assert (claim.granted, claim.operation.not_before) == (False, floor)

    def test_a_row_is_claimed_once(self, bench: Bench):
        bench.add()
        assert len(bench.claim()) == 1
        assert bench.claim() == []

    def test_a_leased_row_is_not_claimed_although_it_is_due(self, bench: Bench):
        """R-OWN-2: whatever brought its next look forward."""
        bench.add(lease=Lease(owner="somebody", until=bench.store.now() + HOUR))
        assert bench.claim() == []

    def test_a_lease_that_is_over_may_be_taken_and_the_fence_grows(self, bench: Bench):
        """R-OWN-1, INV-13: a dead worker gives its rows back."""
        bench.add()
        bench.claim()
        bench.shift(LEASE + SECOND)
        (claim,) = bench.claim()
        assert (claim.operation.fence, claim.operation.spent.status_requests) == (2, 2)

    @pytest.mark.parametrize("state", [s for s in S if s is not S.RUNNING])
    def test_only_running_rows_are_claimed(self, bench: Bench, state):
        ended = {"wake_at": None} if state in {S.SUCCEEDED, S.FAILED, S.CANCELLED, S.EXPIRED, S.ABANDONED} else {}
        bench.add(state=state, **ended)
        assert bench.claim() == []

    def test_neither_early_nor_unscheduled_nor_unknown_rows_are_claimed(self, bench: Bench):
        bench.add("early", wake_at=bench.store.now() + HOUR)
        bench.add("resting", wake_at=None)
        assert bench.claim("early", "resting", "nobody") == []

    @pytest.mark.parametrize(
        ("past_deadline", "used", "rested", "look", "debit", "granted"),
        [
            (False, 0, True, None, True, True),
            (False, 2, True, None, True, True),
            (False, 0, True, None, False, False),
            (False, 0, False, None, True, False),
            (False, 3, True, None, True, False),
            (True, 0, True, None, True, False),
            (True, 0, True, HOUR, True, True),
            (True, 0, True, -HOUR, True, False),
            (True, 0, False, HOUR, True, False),
            (True, 0, True, HOUR, False, False),
            (False, 0, True, -HOUR, True, True),
        ],
    )
    def test_a_request_is_granted_within_authority_only(  # noqa: PLR0917 - columns of the table above
        self, bench: Bench, past_deadline, used, rested, look, debit, granted
    ):
        """R-BUDGET-2, INV-01: debited before it is sent, and never beyond a limit."""
        now = bench.store.now()
        budget = Budget(
            deadline=now + (-SECOND if past_deadline else HOUR), status_requests=3, transport_failures=3, rate_limited=3
        )
        before = bench.add(
            budget=budget,
            spent=Spent(status_requests=used),
            not_before=now + (-SECOND if rested else HOUR),
            last_look=look is not None,
            look_until=None if look is None else now + look,
        )
        (claim,) = bench.claim(debit=debit)
        row = claim.operation
        assert claim.granted is granted
        assert row.spent.status_requests == used + granted
        assert row.last_look == (before.last_look and not granted)
        assert row.not_before == (claim.now + FLOOR if granted else before.not_before)
        assert row.fence == 1
        assert row == bench.row()

    def test_a_batch_takes_what_it_can_in_the_order_asked(self, bench: Bench):
        for name in ("a", "b", "c"):
            bench.add(name)
        bench.claim("b")
        assert [claim.operation.id for claim in bench.claim("c", "b", "a", "c")] == ["c", "a"]


class TestCommit:
    def test_row_audit_question_followup_and_table_are_written_together(self, bench: Bench):
        bench.add()
        (claim,) = bench.claim()
        newer = replace(TABLE, digest="e" * 64, text="newer", revision=4)
        wanted = replace(
            finished(claim.operation, S.FAILED), cause="provider_failure", error="disk full", table_digest=newer.digest
        )
        commit = Commit(
            operation=wanted,
            entry={"event": "poll"},
            questions=(Question(reason=Reason.PROVIDER_FAILURE, detail="disk full"),),
            followups=(Followup(event="on_failure", handler="a.b"), Followup(event="on_end", handler="c.d")),
            table=newer,
        )
        assert bench.store.commit([commit]) == [Committed.DONE]
        row = bench.row()
        assert row == replace(wanted, audit_seq=2, audit_head=row.audit_head)
        assert [q.reason for q in bench.store.open_escalations("op-1")] == [Reason.PROVIDER_FAILURE]
        assert sorted(bench.outbox("op-1")) == [("on_end", ""), ("on_failure", "")]
        assert bench.texts() == {TABLE.digest: TABLE.text, newer.digest: newer.text}
        assert bench.audited("op-1").faults == ()

    def test_a_fence_that_moved_on_keeps_only_the_evidence(self, bench: Bench):
        """R-READ-7, INV-14: a late answer leaves the row as it is."""
        bench.add()
        (late,) = bench.claim()
        bench.shift(LEASE + SECOND)
        bench.claim()
        before = bench.row()
        commit = Commit(
            operation=finished(late.operation),
            entry={"event": "poll"},
            questions=(BLOCKING,),
            followups=(Followup(event="on_end", handler="a.b"),),
        )
        assert bench.store.commit([commit]) == [Committed.STALE]
        row = bench.row()
        assert row == replace(before, audit_seq=2, audit_head=row.audit_head)
        assert json.loads(bench.entries("op-1")[-1][3]) == {"event": "poll", "late": True}
        assert (bench.store.open_escalations("op-1"), bench.outbox("op-1")) == ([], [])
        assert bench.audited("op-1").faults == ()

    def test_a_terminal_row_never_changes_again(self, bench: Bench):
        """INV-07."""
        bench.add()
        (claim,) = bench.claim()
        done = Commit(operation=finished(claim.operation), entry={"event": "poll"})
        other = Commit(operation=finished(claim.operation, S.FAILED), entry={"event": "poll"})
        assert bench.store.commit([done, other]) == [Committed.DONE, Committed.STALE]
        assert bench.row().state is S.SUCCEEDED

    @pytest.mark.parametrize(
        ("ended", "late", "reasons"),
        [
            (S.SUCCEEDED, S.FAILED, [Reason.STATE_CONTRADICTION]),
            (S.FAILED, S.SUCCEEDED, [Reason.STATE_CONTRADICTION]),
            (S.SUCCEEDED, S.SUCCEEDED, []),
        ],
    )
    def test_a_late_answer_with_another_end_is_asked_about_once_and_changes_nothing(
        self, bench: Bench, ended, late, reasons
    ):
        """R-END-1, R-READ-7, report B047: an alert, both answers in the audit, no follow-up of the late one."""
        bench.add()
        (slow,) = bench.claim()
        bench.shift(LEASE + SECOND)
        (quick,) = bench.claim()
        bench.store.commit([Commit(operation=finished(quick.operation, ended), entry={"event": "poll"})])
        before = bench.row()
        followup = Followup(event="on_end", handler="a.b")
        commit = Commit(operation=finished(slow.operation, late), entry={"event": "poll"}, followups=(followup,))
        assert bench.store.commit([commit, commit]) == [Committed.STALE, Committed.STALE]
        row = bench.row()
        assert row == replace(before, audit_seq=4, audit_head=row.audit_head)
        asked = bench.store.open_escalations("op-1")
        assert [(each.reason, each.blocking) for each in asked] == [(reason, False) for reason in reasons]
        assert bench.outbox("op-1") == []
        assert bench.audited("op-1").faults == ()
        for each in asked:
            decided = answer(each, version=each.version)
            assert bench.store.resolve(decided, row, {"event": "decision"}).actor == "ada"
            assert bench.row().state is ended

    def test_the_same_commit_twice_counts_once(self, bench: Bench):
        bench.add()
        (claim,) = bench.claim()
        commit = Commit(operation=waiting(claim.operation, claim.now + HOUR), entry={"event": "poll"})
        assert bench.store.commit([commit, commit]) == [Committed.DONE, Committed.STALE]

    def test_a_moved_audit_head_is_resealed(self, bench: Bench):
        bench.add("op-1")
        (late,) = bench.claim("op-1")
        bench.shift(LEASE + SECOND)
        (claim,) = bench.claim("op-1")
        bench.store.commit([Commit(operation=finished(late.operation), entry={"event": "poll"})])
        commit = Commit(operation=waiting(claim.operation, claim.now + HOUR), entry={"event": "poll"})
        assert bench.store.commit([commit]) == [Committed.DONE]
        assert bench.row().audit_seq == 3
        assert bench.audited("op-1").faults == ()

    def test_an_unlisted_move_is_refused_and_nothing_is_written(self, bench: Bench):
        """INV-08, INV-39."""
        bench.add()
        (claim,) = bench.claim()
        before = bench.row()
        with pytest.raises(StoreError):
            bench.store.commit([Commit(operation=replace(claim.operation, state=S.SUBMITTING), entry={})])
        assert bench.row() == before
        assert len(bench.entries("op-1")) == 1

    def test_a_question_in_a_taken_place_renews_the_open_one(self, bench: Bench):
        first = stopped(bench, questions=(BLOCKING, ADVISORY))
        newer = Question(reason=Reason.INVALID_RESPONSE, detail="HTML.")
        bench.store.resolve(answer(first, Option.LOOK_AGAIN), resumed(bench), {"event": "decision"})
        (claim,) = bench.claim()
        wanted = replace(claim.operation, state=S.ESCALATED, lease=None, wake_at=None)
        bench.store.commit([Commit(operation=wanted, entry={}, questions=(newer, newer, ADVISORY))])
        found = {e.reason: (e.version, e.detail) for e in bench.store.open_escalations("op-1")}
        assert found == {
            Reason.INVALID_RESPONSE: (2, "HTML."),
            Reason.BUSINESS_DEADLINE_EXCEEDED: (2, "Needed by noon."),
        }

    def test_each_followup_is_written_once(self, bench: Bench):
        """INV-21."""
        bench.add()
        (claim,) = bench.claim()
        twice = Followup(event="on_end", handler="a.b")
        bench.store.commit([Commit(operation=finished(claim.operation), entry={}, followups=(twice, twice))])
        assert bench.outbox("op-1") == [("on_end", "")]


def resumed(bench: Bench, operation_id="op-1"):
    now = bench.store.now()
    return replace(bench.row(operation_id), state=S.RUNNING, wake_at=now, not_before=now)


class TestDue:
    GRACE = timedelta(seconds=20)

    def test_due_rows_are_found_oldest_first_and_once_within_the_grace(self, bench: Bench):
        now = bench.store.now()
        bench.add("new", wake_at=now)
        bench.add("old", wake_at=now - HOUR)
        bench.add("later", wake_at=now + HOUR)
        bench.add("resting", wake_at=None)
        found = bench.store.due(limit=10, grace=self.GRACE)
        assert (found.operations, found.more) == (("old", "new"), False)
        assert bench.store.due(limit=10, grace=self.GRACE).operations == ()
        bench.shift(self.GRACE + SECOND)
        assert bench.store.due(limit=10, grace=self.GRACE).operations == ("old", "new")

    def test_leased_rows_and_rows_with_a_message_out_are_left_alone(self, bench: Bench):
        bench.add("leased")
        bench.claim("leased")
        bench.add("called", wake_until=bench.store.now() + HOUR)
        assert bench.store.due(limit=10, grace=self.GRACE).operations == ()

    def test_a_row_whose_message_did_not_go_out_is_found_at_its_time(self, bench: Bench):
        bench.add("called", wake_until=bench.store.now() + HOUR)
        bench.store.unmark(["called", "nobody"])
        assert bench.store.due(limit=10, grace=self.GRACE).operations == ("called",)

    def test_a_full_batch_says_that_there_is_more(self, bench: Bench):
        for name in ("a", "b", "c"):
            bench.add(name)
        first, second = (bench.store.due(limit=2, grace=self.GRACE) for _ in range(2))
        assert ([len(first.operations), len(second.operations)], first.more, second.more) == ([2, 1], True, False)

    def test_the_next_due_instant_covers_rows_leases_and_followups(self, bench: Bench):
        assert bench.store.next_due_at() is None
        later = bench.store.now() + 2 * HOUR
        bench.add("later", wake_at=later)
        bench.add("resting", wake_at=None)
        assert bench.store.next_due_at() == later
        taken = delivery(bench)
        assert bench.store.next_due_at() == taken.now + LEASE
        bench.store.fail_delivery(taken, owner="w1", error="boom", again_in=None, question=None)
        assert bench.store.next_due_at() == later

    def test_the_lag_is_the_wait_of_the_oldest_due_row(self, bench: Bench):
        assert bench.store.overdue_lag() == timedelta(0)
        bench.add("a", wake_at=bench.store.now() - HOUR)
        bench.add("b", wake_at=bench.store.now() + HOUR)
        assert HOUR <= bench.store.overdue_lag() < HOUR + timedelta(minutes=1)

    def test_a_held_row_only_moves_its_wake_time(self, bench: Bench):
        """The gate is asked before the claim: nothing is debited."""
        before = bench.add("due", wake_until=bench.store.now() + HOUR)
        bench.add("leased")
        bench.claim("leased")
        leased, until = bench.row("leased"), bench.store.now() + HOUR
        bench.store.hold(["due", "leased"], until=until)
        assert bench.row("due") == replace(before, wake_at=until, wake_until=None)
        assert bench.row("leased") == leased

    def test_a_held_row_says_what_holds_it(self, bench: Bench):
        before = bench.add("due")
        until = bench.store.now() + HOUR
        bench.store.hold(["due"], until=until, source=DelaySource.GATE)
        assert bench.row("due") == replace(before, wake_at=until, delay_source="gate")


class TestGates:
    def test_an_account_without_a_row_is_open(self, bench: Bench):
        assert bench.store.gates([("acme", "default")]) == {("acme", "default"): OPEN}
        assert bench.store.gates([]) == {}

    def test_a_gate_moves_by_compare_and_set(self, bench: Bench):
        until = bench.store.now() + HOUR
        held = GateState(reason=HoldReason.GUIDANCE, held_until=until, streak=2, probe="op-1")
        assert bench.store.move_gate("acme", "default", OPEN, held)
        assert not bench.store.move_gate("acme", "default", OPEN, GateState(reason=HoldReason.AUTH))
        stored = bench.store.gates([("acme", "default"), ("acme", "Default")])
        assert stored == {("acme", "default"): replace(held, version=1), ("acme", "Default"): OPEN}
        assert bench.store.move_gate("acme", "default", stored["acme", "default"], OPEN)
        assert bench.store.gates([("acme", "default")]) == {("acme", "default"): GateState(version=2)}


class TestResolve:
    def test_the_question_is_closed_and_the_operation_written(self, bench: Bench):
        escalation = stopped(bench)
        wanted = resumed(bench)
        stored = bench.store.resolve(answer(escalation, Option.LOOK_AGAIN), wanted, {"event": "decision"})
        assert stored == replace(answer(escalation, Option.LOOK_AGAIN), at=stored.at)
        closed = bench.store.escalation(escalation.id)
        assert (closed.resolution, closed.closed_at) == (stored, stored.at)
        assert bench.store.open_escalations("op-1") == []
        assert bench.row() == replace(wanted, audit_seq=3, audit_head=bench.row().audit_head)
        assert bench.audited("op-1").faults == ()

    def test_the_second_is_told_who_decided(self, bench: Bench):
        """R-ESC-5, INV-28."""
        escalation = stopped(bench)
        bench.store.resolve(answer(escalation, Option.LOOK_AGAIN), resumed(bench), {})
        before = bench.row()
        with pytest.raises(AlreadyDecided) as caught:
            bench.store.resolve(answer(escalation), finished(bench.row(), S.ABANDONED), {})
        assert caught.value.context["actor"] == "ada"
        assert bench.row() == before

    def test_evidence_that_changed_is_refused(self, bench: Bench):
        escalation = stopped(bench)
        before = bench.row()
        with pytest.raises(StaleEvidence):
            bench.store.resolve(answer(escalation, version=2), finished(before, S.ABANDONED), {})
        assert bench.row() == before
        assert bench.store.escalation(escalation.id).closed_at is None

    def test_an_operation_that_moved_on_is_refused(self, bench: Bench):
        escalation = stopped(bench)
        before = bench.row()
        with pytest.raises(StaleEvidence):
            bench.store.resolve(answer(escalation), replace(finished(before, S.ABANDONED), fence=0), {})
        assert bench.row() == before
        assert bench.store.escalation(escalation.id).closed_at is None

    def test_acknowledging_changes_nothing_but_the_question(self, bench: Bench):
        """Also while a look is under way: its lease, fence and counters stay."""
        bench.add()
        (claim,) = bench.claim()
        wanted = waiting(claim.operation, claim.now)
        bench.store.commit([Commit(operation=wanted, entry={}, questions=(ADVISORY,))])
        (escalation,) = bench.store.open_escalations("op-1")
        bench.claim()
        before = bench.row()
        bench.store.resolve(answer(escalation), before, {"event": "decision"})
        assert bench.row() == replace(before, audit_seq=3, audit_head=bench.row().audit_head)
        assert bench.store.open_escalations("op-1") == []

    def test_a_decision_makes_listed_moves_only(self, bench: Bench):
        """INV-08."""
        escalation = stopped(bench)
        before = bench.row()
        with pytest.raises(StoreError):
            bench.store.resolve(answer(escalation), finished(before, S.FAILED), {})
        assert bench.row() == before

    @pytest.mark.parametrize("state", [S.RUNNING, S.SUCCEEDED])
    def test_an_answer_that_came_between_reading_and_acknowledging_is_kept(self, bench: Bench, state):
        """INV-02, INV-07: a decision never brings an older row back."""
        bench.add()
        (claim,) = bench.claim(floor=timedelta(0))
        bench.store.commit([Commit(operation=waiting(claim.operation, claim.now), entry={}, questions=(ADVISORY,))])
        (escalation,) = bench.store.open_escalations("op-1")
        bench.shift(SECOND)
        (claim,) = bench.claim()
        as_read = bench.row()
        spent = Spent(status_requests=2, transport_failures=1)
        answered = replace(waiting(claim.operation, claim.now + HOUR), spent=spent)
        if state is S.SUCCEEDED:
            answered = finished(answered)
        bench.store.commit([Commit(operation=answered, entry={"event": "poll"})])
        before = bench.row()
        bench.store.resolve(answer(escalation), as_read, {"event": "decision"})
        assert bench.row() == replace(before, audit_seq=before.audit_seq + 1, audit_head=bench.row().audit_head)
        assert bench.audited("op-1").faults == ()

    def test_closing_abandons_and_writes_the_followup(self, bench: Bench):
        escalation = stopped(bench, questions=(BLOCKING, ADVISORY))
        followup = Followup(event="on_end", handler="a.b")
        wanted = finished(bench.row(), S.ABANDONED)
        bench.store.resolve(answer(escalation), wanted, {"event": "decision"}, followups=(followup,))
        assert bench.row().state is S.ABANDONED
        assert bench.outbox("op-1") == [("on_end", "")]
        assert [e.reason for e in bench.store.open_escalations("op-1")] == [ADVISORY.reason]

    @pytest.mark.parametrize("escalation_id", ["nobody", "0", "999999", "9" * 40])
    def test_an_unknown_escalation_is_not_found(self, bench: Bench, escalation_id):
        with pytest.raises(OperationNotFound):
            bench.store.escalation(escalation_id)


class TestDeliveries:
    def test_a_followup_is_leased_for_one_attempt(self, bench: Bench):
        taken = delivery(bench)
        assert (taken.id, taken.operation_id, taken.event, taken.handler, taken.attempts) == (
            *("op-1:on_success", "op-1", "on_success", "reports.store"),
            1,
        )
        assert bench.store.take_delivery(taken.id, owner="w2", lease=LEASE) is None
        assert bench.store.take_delivery("nobody:on_end", owner="w2", lease=LEASE) is None

    def test_what_returned_is_closed_for_good(self, bench: Bench):
        taken = delivery(bench)
        assert bench.store.close_delivery(taken, owner="w1")
        assert not bench.store.close_delivery(taken, owner="w1")
        bench.shift(HOUR)
        assert bench.store.take_delivery(taken.id, owner="w2", lease=LEASE) is None
        assert bench.outbox("op-1") == []

    def test_a_lost_lease_closes_nothing(self, bench: Bench):
        taken = delivery(bench)
        bench.shift(LEASE + SECOND)
        again = bench.store.take_delivery(taken.id, owner="w2", lease=LEASE)
        assert again.attempts == 2
        assert not bench.store.close_delivery(taken, owner="w1")
        assert bench.store.close_delivery(again, owner="w2")

    def test_a_failed_attempt_comes_again_later(self, bench: Bench):
        taken = delivery(bench)
        bench.store.fail_delivery(taken, owner="w1", error="boom", again_in=HOUR, question=None)
        assert bench.outbox("op-1") == [("on_success", "boom")]
        assert bench.store.take_delivery(taken.id, owner="w2", lease=LEASE) is None
        assert bench.store.due(limit=9, grace=SECOND).deliveries == ()
        bench.shift(HOUR + SECOND)
        assert bench.store.due(limit=9, grace=HOUR).deliveries == (taken.id,)
        assert bench.store.due(limit=9, grace=HOUR).deliveries == ()
        assert bench.store.take_delivery(taken.id, owner="w2", lease=LEASE).attempts == 2

    def test_after_the_last_attempt_a_person_is_asked_and_may_have_it_run_again(self, bench: Bench):
        """INV-23: the operation is not touched."""
        taken, before = delivery(bench), bench.row()
        question = Question(reason=Reason.DELIVERY_FAILED, detail="boom")
        bench.store.fail_delivery(taken, owner="w1", error="boom", again_in=None, question=question)
        bench.shift(100 * HOUR)
        assert bench.store.take_delivery(taken.id, owner="w2", lease=LEASE) is None
        (escalation,) = bench.store.open_escalations("op-1")
        assert (escalation.reason, escalation.blocking) == (Reason.DELIVERY_FAILED, False)
        retry = answer(escalation, Option.RETRY_DELIVERY)
        bench.store.resolve(retry, bench.row(), {"event": "decision"}, redeliver=True)
        assert bench.row().state is before.state
        assert bench.store.take_delivery(taken.id, owner="w2", lease=LEASE).attempts == 1

    def test_somebody_elses_failure_changes_nothing(self, bench: Bench):
        taken = delivery(bench)
        question = Question(reason=Reason.DELIVERY_FAILED, detail="boom")
        bench.store.fail_delivery(taken, owner="other", error="boom", again_in=None, question=question)
        assert bench.outbox("op-1") == [("on_success", "")]
        assert bench.store.open_escalations("op-1") == []


class TestProposals:
    """A first person's word, where a site wants two (INV-28)."""

    FIRST = Proposal(option=Option.CLOSE, actor="ada", reason="seen to it", job_id="exp_9")

    def test_it_is_kept_with_its_time_and_makes_older_pages_stale(self, bench: Bench):
        asked = stopped(bench)
        before = bench.row()
        kept = bench.store.propose(asked.id, self.FIRST, {"event": "proposal"}, version=1)
        assert kept == replace(asked, version=2, proposal=replace(self.FIRST, at=kept.proposal.at))
        assert kept.proposal.at is not None
        assert bench.store.escalation(asked.id) == kept
        assert bench.store.open_escalations("op-1") == [kept]
        assert [json.loads(text)["event"] for *_, text in bench.entries("op-1")] == ["track", "poll", "proposal"]
        assert bench.row() == replace(before, audit_seq=3, audit_head=bench.row().audit_head)
        assert bench.audited("op-1").faults == ()
        with pytest.raises(StaleEvidence):
            bench.store.resolve(answer(asked), finished(bench.row(), S.ABANDONED), {"event": "decision"})
        assert bench.store.escalation(asked.id) == kept

    def test_another_takes_its_place(self, bench: Bench):
        asked = stopped(bench)
        bench.store.propose(asked.id, self.FIRST, {"event": "proposal"}, version=1)
        other = replace(self.FIRST, option=Option.LOOK_AGAIN, actor="bob", job_id="")
        kept = bench.store.propose(asked.id, other, {"event": "proposal"}, version=2)
        assert (kept.proposal.option, kept.proposal.actor, kept.proposal.job_id) == (Option.LOOK_AGAIN, "bob", "")

    def test_a_stale_one_and_one_for_a_decided_question_are_refused(self, bench: Bench):
        asked = stopped(bench)
        entries = bench.entries("op-1")
        with pytest.raises(StaleEvidence):
            bench.store.propose(asked.id, self.FIRST, {"event": "proposal"}, version=7)
        with pytest.raises(OperationNotFound):
            bench.store.propose("999", self.FIRST, {"event": "proposal"}, version=1)
        assert (bench.store.escalation(asked.id), bench.entries("op-1")) == (asked, entries)
        bench.store.resolve(answer(asked), finished(bench.row(), S.ABANDONED), {"event": "decision"})
        with pytest.raises(AlreadyDecided):
            bench.store.propose(asked.id, self.FIRST, {"event": "proposal"}, version=1)
        assert bench.store.escalation(asked.id).proposal is None

    def test_new_evidence_drops_it(self, bench: Bench):
        """What was proposed was about the evidence of its time."""
        taken = delivery(bench)
        question = Question(reason=Reason.DELIVERY_FAILED, detail="boom")
        bench.store.fail_delivery(taken, owner="w1", error="boom", again_in=None, question=question)
        (asked,) = bench.store.open_escalations("op-1")
        bench.store.propose(asked.id, self.FIRST, {"event": "proposal"}, version=1)
        bench.store.note("op-1", {"event": "conflict"}, question=replace(question, detail="boom again"))
        (renewed,) = bench.store.open_escalations("op-1")
        assert (renewed.id, renewed.version, renewed.detail, renewed.proposal) == (asked.id, 3, "boom again", None)


class TestUnanswered:
    def test_those_that_have_waited_come_in_order_and_in_parts(self, bench: Bench):
        first = stopped(bench, "op-1")
        second = stopped(bench, "op-2")
        other = Question(reason=Reason.STALLED, detail="")
        stopped(bench, "op-3", questions=(other,))
        look = {"since": HOUR, "limit": 9}
        assert bench.store.unanswered(BLOCKING.reason, **look) == []
        bench.shift(HOUR + SECOND)
        late = stopped(bench, "op-4")
        found = bench.store.unanswered(BLOCKING.reason, **look)
        assert [each.id for each in found] == [first.id, second.id]
        assert [each.id for each in bench.store.unanswered(BLOCKING.reason, since=HOUR, limit=1)] == [first.id]
        rest = bench.store.unanswered(BLOCKING.reason, **look, after_id=first.id)
        assert [each.id for each in rest] == [second.id]
        bench.store.resolve(answer(first), finished(bench.row(), S.ABANDONED), {"event": "decision"})
        assert [each.id for each in bench.store.unanswered(BLOCKING.reason, **look)] == [second.id]
        assert late.id not in [each.id for each in bench.store.unanswered(BLOCKING.reason, **look)]


# The store in memory keeps no figures.


@pytest.mark.database
@pytest.mark.django_db
@pytest.mark.parametrize("minutes", [10, None])
def test_the_end_is_dated_and_the_look_before_it_measured(minutes):
    """R-METRIC: so late, at most, was it seen."""
    bench = django_bench()
    now = bench.store.now()
    bench.add(observed_at=None if minutes is None else now - timedelta(minutes=minutes))
    assert bench.ended("op-1") == (None, None)
    (claim,) = bench.claim()
    ended = replace(finished(claim.operation), observed_at=now)
    bench.store.commit([Commit(operation=ended, entry={"event": "poll"})])
    at, within = bench.ended("op-1")
    assert now <= at <= bench.store.now()
    assert (within is None) == (minutes is None)
    assert within is None or timedelta(minutes=10) <= within < timedelta(minutes=11)


@pytest.mark.database
@pytest.mark.django_db
def test_what_a_person_abandons_was_not_seen_to_end():
    bench = django_bench()
    asked = stopped(bench)
    bench.store.resolve(answer(asked), finished(bench.row(), S.ABANDONED), {"event": "decision"})
    at, within = bench.ended("op-1")
    assert at is not None
    assert within is None


def test_fifty_threads_claim_each_row_in_memory_once():
    """INV-13; the same on real databases is in ``tests/django/test_store.py``."""
    bench = memory_bench()
    ids = [f"op-{number}" for number in range(20)]
    for operation_id in ids:
        bench.add(operation_id)
    with ThreadPoolExecutor(50) as threads:
        claimed = list(threads.map(lambda number: bench.claim(*ids[:: -1 if number % 2 else 1]), range(50)))
    assert sorted(claim.operation.id for claims in claimed for claim in claims) == sorted(ids)
    assert {bench.row(operation_id).fence for operation_id in ids} == {1}
