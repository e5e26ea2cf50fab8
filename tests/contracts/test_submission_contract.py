"""What every store promises to submissions: claims of their states, intents, and acceptances that come late."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.escalation import Option, Question, Reason, Resolution
from jobtrack.core.operation import Lease, OperationState, Spent
from jobtrack.errors import AlreadyDecided, StaleEvidence, StoreError
from jobtrack.records import Commit, Committed, Followup
from tests.contracts.conftest import HOUR, LEASE, TABLE, Bench, memory_bench

S = OperationState
SECOND = timedelta(seconds=1)
UNKNOWN = Question(reason=Reason.SUBMISSION_UNKNOWN, detail="Nobody can prove whether the provider has the job.")
LATE = {"job_id": "exp_9", "status_url": "https://api.acme.example/v1/exports/exp_9", "params": {"region": "eu"}}
ENDED = {S.SUCCEEDED, S.FAILED, S.CANCELLED, S.EXPIRED, S.ABANDONED}


def take(bench: Bench, *states, operation_id="op-1", **changes):
    (claim,) = bench.claim(operation_id, states=frozenset(states), **changes)
    return claim.operation


def intent(bench: Bench, row, **changes):
    """What is committed before a submission is sent; the lease goes on."""
    spent = replace(row.spent, submissions=row.spent.submissions + 1)
    wanted = replace(row, state=S.SUBMITTING, spent=spent, first_sent_at=bench.store.now(), **changes)
    assert bench.store.commit([Commit(operation=wanted, entry={"event": "attempt"})]) == [Committed.DONE]
    return wanted


def accepted(row, job_id="exp_1", at=None):
    return replace(row, state=S.RUNNING, job_id=job_id, accepted_at=at, lease=None, wake_at=at, wake_until=None)


def proof(row, **changes):
    """The commit of an answer that proves an acceptance."""
    return Commit(operation=row, entry={"event": "submission"}, evidence=LATE, **changes)


def in_doubt(bench: Bench, operation_id="op-1"):
    """A submission whose worker stopped after the intent, now taken by another; both rows."""
    bench.unsent(operation_id)
    slow = intent(bench, take(bench, S.READY, operation_id=operation_id))
    bench.shift(LEASE + SECOND)
    return slow, take(bench, S.SUBMITTING, operation_id=operation_id)


def asked(bench: Bench, row):
    """Nothing is found: a person is asked."""
    wanted = replace(row, state=S.ESCALATED, lease=None, wake_at=None, wake_until=None)
    assert bench.store.commit([Commit(operation=wanted, entry={"event": "lookup"}, questions=(UNKNOWN,))]) == [
        Committed.DONE
    ]
    return bench.store.open_escalations(row.id)[0]


class TestClaimOfStates:
    @pytest.mark.parametrize("state", [state for state in S if state not in ENDED])
    def test_a_row_is_claimed_in_the_states_asked_for_and_no_other(self, bench: Bench, state):
        before = bench.unsent(state=state)
        others = frozenset(S) - {state}
        assert bench.claim(states=others) == []
        assert bench.row() == before
        (claim,) = bench.claim(states=frozenset({state}))
        assert (claim.operation.state, claim.operation.fence) == (state, 1)

    @pytest.mark.parametrize("state", [S.READY, S.SUBMITTING, S.UNCONFIRMED, S.ESCALATED])
    def test_nothing_is_debited_but_for_status(self, bench: Bench, state):
        """R-BUDGET-2: what another claim permits is committed, with its debit, before it is sent."""
        before = bench.unsent(state=state, last_look=True, look_until=bench.store.now() + HOUR, hinted=True)
        (claim,) = bench.claim(states=frozenset({state, S.RUNNING}))
        expected = replace(
            before, fence=1, lease=claim.operation.lease, wake_at=claim.now + LEASE, wake_until=None, hinted=False
        )
        assert not claim.granted
        assert claim.operation == expected == bench.row()

    def test_in_a_mixed_batch_only_the_running_row_is_debited(self, bench: Bench):
        bench.add("running")
        bench.unsent("ready")
        claims = bench.claim("running", "ready", states=frozenset({S.READY, S.RUNNING}))
        assert [(claim.granted, claim.operation.spent) for claim in claims] == [
            (True, Spent(status_requests=1)),
            (False, Spent()),
        ]

    def test_neither_early_nor_leased_nor_resting_rows_are_claimed(self, bench: Bench):
        now = bench.store.now()
        bench.unsent("early", wake_at=now + HOUR)
        bench.unsent("leased", lease=Lease(owner="somebody", until=now + HOUR))
        bench.unsent("resting", state=S.ESCALATED, wake_at=None)
        assert bench.claim("early", "leased", "resting", states=frozenset(S)) == []

    @pytest.mark.parametrize("state", [S.READY, S.SUBMITTING, S.UNCONFIRMED, S.ESCALATED])
    def test_due_rows_of_every_state_are_found_counted_and_held(self, bench: Bench, state):
        """INV-06: no state waits outside of the schedule."""
        now = bench.store.now()
        bench.unsent(state=state, wake_at=now - HOUR)
        assert bench.store.next_due_at() == now - HOUR
        assert bench.store.overdue_lag() >= HOUR
        assert bench.store.due(limit=9, grace=SECOND).operations == ("op-1",)
        bench.store.hold(["op-1"], until=now + HOUR)
        assert (bench.row().wake_at, bench.row().wake_until) == (now + HOUR, None)
        assert bench.claim(states=frozenset(S)) == []


class TestIntent:
    def test_the_lease_goes_on_and_the_answer_is_written_under_the_same_fence(self, bench: Bench):
        """INV-17: row, key, bytes and debit are there before the first byte is sent."""
        bench.unsent(sealed="bytes")
        row = take(bench, S.READY)
        sending = intent(bench, row)
        stored = bench.row()
        assert stored == replace(sending, audit_seq=2, audit_head=stored.audit_head)
        assert (stored.lease, stored.spent.submissions, stored.sealed) == (row.lease, 1, "bytes")
        assert bench.claim(states=frozenset(S)) == []
        now = bench.store.now()
        done = replace(accepted(sending, at=now), sealed="", status_url="https://api.acme.example/1", params={"a": "b"})
        assert bench.store.commit([Commit(operation=done, entry={"event": "submission"})]) == [Committed.DONE]
        assert bench.row() == replace(done, audit_seq=3, audit_head=bench.row().audit_head)
        assert bench.audited("op-1").faults == ()

    def test_a_lease_that_is_over_gives_the_row_to_another_with_the_next_fence(self, bench: Bench):
        """A crash after the intent leaves a row in doubt, never silence."""
        slow, quick = in_doubt(bench)
        assert (quick.state, quick.fence, quick.spent) == (S.SUBMITTING, slow.fence + 1, slow.spent)
        assert bench.store.next_due_at() == quick.lease.until

    def test_an_intent_of_a_lost_claim_is_stale_so_that_nothing_may_be_sent(self, bench: Bench):
        """INV-18: whoever lost the row does not submit."""
        bench.unsent()
        slow = take(bench, S.READY)
        bench.shift(LEASE + SECOND)
        take(bench, S.READY)
        wanted = replace(slow, state=S.SUBMITTING, spent=Spent(submissions=1))
        assert bench.store.commit([Commit(operation=wanted, entry={"event": "attempt"})]) == [Committed.STALE]
        assert (bench.row().state, bench.row().spent) == (S.READY, Spent())

    def test_a_row_whose_lease_was_given_back_takes_no_second_commit(self, bench: Bench):
        bench.unsent()
        sending = intent(bench, take(bench, S.READY))
        busy = replace(sending, state=S.READY, lease=None)
        commit = Commit(operation=busy, entry={"event": "submission"})
        assert bench.store.commit([commit, commit]) == [Committed.DONE, Committed.STALE]


class TestIdentity:
    @pytest.mark.parametrize("change", [{"job_id": "exp_2"}, {"job_id": ""}])
    def test_a_job_id_never_becomes_another(self, bench: Bench, change):
        """R-ID-1."""
        bench.add()
        (claim,) = bench.claim()
        before = bench.row()
        with pytest.raises(StoreError, match="job"):
            bench.store.commit([Commit(operation=replace(claim.operation, lease=None, **change), entry={})])
        assert bench.row() == before
        assert len(bench.entries("op-1")) == 1

    @pytest.mark.parametrize("later", [True, False])
    def test_the_instant_of_acceptance_never_changes(self, bench: Bench, later):
        bench.add()
        (claim,) = bench.claim()
        before = bench.row()
        other = before.accepted_at + SECOND if later else None
        with pytest.raises(StoreError, match="acceptance"):
            bench.store.commit([Commit(operation=replace(claim.operation, lease=None, accepted_at=other), entry={})])
        assert bench.row() == before

    def test_a_decision_keeps_them_as_well(self, bench: Bench):
        bench.add()
        (claim,) = bench.claim()
        question = asked(bench, claim.operation)
        before = bench.row()
        wanted = replace(before, state=S.RUNNING, job_id="exp_2", wake_at=bench.store.now())
        with pytest.raises(StoreError, match="job"):
            bench.store.resolve(decision(question, Option.ATTACH_JOB), wanted, {})
        assert bench.row() == before
        assert bench.store.escalation(question.id).closed_at is None


def decision(escalation, option, **changes):
    return Resolution(
        **{"escalation_id": escalation.id, "option": option, "actor": "ada", "reason": "seen", "version": 1, **changes}
    )


class TestLateAcceptance:
    def test_it_is_kept_and_comes_up_when_the_lease_under_way_ends(self, bench: Bench):
        """INV-15: a job id that any answer named is never lost."""
        slow, quick = in_doubt(bench)
        before = bench.row()
        assert bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))]) == [Committed.STALE]
        row = bench.row()
        assert row == replace(before, evidence=LATE, audit_seq=3, audit_head=row.audit_head)
        assert json.loads(bench.entries("op-1")[-1][3]) == {"event": "submission", "late": True}
        bench.shift(LEASE + SECOND)
        assert take(bench, S.SUBMITTING).evidence == LATE
        assert quick.fence == before.fence

    def test_it_wakes_a_row_that_nobody_holds(self, bench: Bench):
        slow, quick = in_doubt(bench)
        later = bench.store.now() + HOUR
        waits = replace(quick, state=S.UNCONFIRMED, lease=None, wake_at=later, wake_until=later)
        bench.store.commit([Commit(operation=waits, entry={"event": "lookup"})])
        assert bench.claim(states=frozenset(S)) == []
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        assert take(bench, S.UNCONFIRMED).evidence == LATE
        assert bench.audited("op-1").faults == ()

    def test_the_holder_of_the_row_does_not_write_over_what_it_never_saw(self, bench: Bench):
        slow, quick = in_doubt(bench)
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        waits = replace(quick, state=S.UNCONFIRMED, lease=None, wake_at=bench.store.now() + HOUR)
        assert bench.store.commit([Commit(operation=waits, entry={"event": "lookup"})]) == [Committed.DONE]
        assert take(bench, S.UNCONFIRMED).evidence == LATE

    def test_what_was_seen_may_be_put_away(self, bench: Bench):
        slow, quick = in_doubt(bench)
        question = asked(bench, quick)
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        seen = take(bench, S.ESCALATED)
        again = replace(seen, lease=None, wake_at=None, evidence={})
        bench.store.commit([Commit(operation=again, entry={"event": "evidence"}, questions=(UNKNOWN,))])
        assert (bench.row().evidence, bench.row().wake_at) == ({}, None)
        assert bench.store.escalation(question.id).version == 2

    def test_the_first_one_stays(self, bench: Bench):
        slow, _ = in_doubt(bench)
        first = proof(accepted(slow, "exp_9", bench.store.now()))
        bench.store.commit([first, replace(first, evidence={"job_id": "exp_10"})])
        assert bench.row().evidence == LATE

    @pytest.mark.parametrize("state", [S.RUNNING, S.SUCCEEDED, S.FAILED])
    def test_of_a_row_that_has_this_job_it_is_an_audit_entry_only(self, bench: Bench, state):
        slow, quick = in_doubt(bench)
        now = bench.store.now()
        wake_at = now + HOUR if state is S.RUNNING else None
        settled = replace(accepted(quick, "exp_9", now), state=state, wake_at=wake_at)
        bench.store.commit([Commit(operation=settled, entry={"event": "submission"})])
        before = bench.row()
        assert bench.store.commit([proof(accepted(slow, "exp_9", now))]) == [Committed.STALE]
        assert bench.row() == replace(before, audit_seq=4, audit_head=bench.row().audit_head)
        assert bench.store.open_escalations("op-1") == []

    @pytest.mark.parametrize("closed", [False, True], ids=["failed", "abandoned"])
    def test_of_a_row_that_ended_without_a_job_it_is_told_to_a_person(self, bench: Bench, closed):
        """R-ESC-6, INV-08: the end stays, and nobody is left believing that there is no job."""
        slow, quick = in_doubt(bench)
        if closed:
            wanted = decision(asked(bench, quick), Option.CLOSE)
            bench.store.resolve(wanted, replace(bench.row(), state=S.ABANDONED), {"event": "decision"})
        else:
            ended = replace(quick, state=S.FAILED, lease=None, wake_at=None, wake_until=None)
            bench.store.commit([Commit(operation=ended, entry={"event": "submission"})])
        before = bench.row()
        assert bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))]) == [Committed.STALE]
        row = bench.row()
        assert row == replace(before, audit_seq=before.audit_seq + 1, audit_head=row.audit_head)
        (question,) = bench.store.open_escalations("op-1")
        assert (question.reason, question.blocking) == (Reason.STATE_CONTRADICTION, False)
        assert "exp_9" in question.detail

    def test_a_second_job_is_told_to_a_person(self, bench: Bench):
        """R-ESC-6: it may cost money twice."""
        slow, quick = in_doubt(bench)
        now = bench.store.now()
        bench.store.commit([Commit(operation=accepted(quick, "exp_1", now), entry={"event": "submission"})])
        bench.store.commit([proof(accepted(slow, "exp_9", now))])
        (question,) = bench.store.open_escalations("op-1")
        assert (question.reason, question.blocking) == (Reason.STATE_CONTRADICTION, False)
        assert "exp_1" in question.detail
        assert "exp_9" in question.detail
        assert bench.row().job_id == "exp_1"

    def test_a_second_job_is_told_whichever_answer_comes_first(self, bench: Bench):
        slow, quick = in_doubt(bench)
        now = bench.store.now()
        bench.store.commit([proof(accepted(slow, "exp_9", now))])
        assert bench.store.commit([Commit(operation=accepted(quick, "exp_1", now), entry={})]) == [Committed.DONE]
        (question,) = bench.store.open_escalations("op-1")
        assert question.reason is Reason.STATE_CONTRADICTION
        assert bench.row().job_id == "exp_1"

    def test_it_takes_a_stopped_operation_on_and_answers_the_question(self, bench: Bench):
        """R-READ-7: an answer that comes after the deadline of the recovery is still the truth."""
        slow, quick = in_doubt(bench)
        question = asked(bench, quick)
        assert bench.claim(states=frozenset(S)) == []
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        assert bench.store.due(limit=9, grace=SECOND).operations == ("op-1",)
        row = take(bench, S.ESCALATED)
        follows = replace(accepted(row, "exp_9", bench.store.now()), evidence={})
        assert bench.store.commit([Commit(operation=follows, entry={"event": "evidence"})]) == [Committed.DONE]
        assert bench.row() == replace(follows, audit_seq=bench.row().audit_seq, audit_head=bench.row().audit_head)
        assert bench.store.open_escalations("op-1") == []
        closed = bench.store.escalation(question.id)
        assert closed.resolution == Resolution(
            escalation_id=question.id,
            option=Option.ATTACH_JOB,
            actor="jobtrack",
            reason="A late answer named the job.",
            version=1,
            at=closed.closed_at,
            job_id="exp_9",
        )
        with pytest.raises(AlreadyDecided):
            bench.store.resolve(decision(question, Option.CLOSE), replace(row, state=S.ABANDONED), {})
        assert bench.audited("op-1").faults == ()


class TestDecisions:
    def test_a_job_that_a_person_names_is_followed_and_its_name_is_kept(self, bench: Bench):
        _, quick = in_doubt(bench)
        question = asked(bench, quick)
        now = bench.store.now()
        wanted = replace(accepted(bench.row(), "exp_7", now), budget=replace(quick.budget, status_requests=50))
        stored = bench.store.resolve(decision(question, Option.ATTACH_JOB, job_id="exp_7"), wanted, {"event": "d"})
        assert stored.job_id == "exp_7"
        assert bench.store.escalation(question.id).resolution == stored
        assert bench.row() == replace(wanted, audit_seq=4, audit_head=bench.row().audit_head)
        assert take(bench, S.RUNNING).job_id == "exp_7"

    @pytest.mark.parametrize(
        ("option", "state", "limit"),
        [(Option.RESUBMIT, S.READY, "submissions"), (Option.LOOK_UP, S.UNCONFIRMED, "lookups")],
    )
    def test_one_more_request_is_granted_and_claimable(self, bench: Bench, option, state, limit):
        _, quick = in_doubt(bench)
        question = asked(bench, quick)
        more = replace(quick.budget, **{limit: 9})
        wanted = replace(bench.row(), state=state, budget=more, wake_at=bench.store.now())
        bench.store.resolve(decision(question, option), wanted, {"event": "decision"})
        assert take(bench, state).budget == more

    def test_evidence_that_came_after_the_question_was_read_is_not_lost(self, bench: Bench):
        slow, quick = in_doubt(bench)
        question = asked(bench, quick)
        as_read = bench.row()
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        wanted = replace(as_read, state=S.UNCONFIRMED, wake_at=bench.store.now())
        bench.store.resolve(decision(question, Option.LOOK_UP), wanted, {"event": "decision"})
        assert take(bench, S.UNCONFIRMED).evidence == LATE

    def test_a_decision_about_a_row_that_a_machine_has_taken_on_is_refused(self, bench: Bench):
        slow, quick = in_doubt(bench)
        question = asked(bench, quick)
        as_read = bench.row()
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        take(bench, S.ESCALATED)
        with pytest.raises(StaleEvidence):
            bench.store.resolve(decision(question, Option.CLOSE), replace(as_read, state=S.ABANDONED), {})

    def test_a_decision_about_a_row_under_a_lease_makes_the_holder_late(self, bench: Bench):
        """The person saw the claim; what it finds can only be evidence now (INV-28)."""
        slow, quick = in_doubt(bench)
        question = asked(bench, quick)
        bench.store.commit([proof(accepted(slow, "exp_9", bench.store.now()))])
        holder = take(bench, S.ESCALATED)
        now = bench.store.now()
        named = replace(accepted(bench.row(), "exp_7", now), lease=holder.lease)
        bench.store.resolve(decision(question, Option.ATTACH_JOB, job_id="exp_7"), named, {})
        assert bench.store.commit([proof(accepted(holder, "exp_9", now))]) == [Committed.STALE]
        assert (bench.row().job_id, bench.row().lease) == ("exp_7", None)
        assert [each.reason for each in bench.store.open_escalations("op-1")] == [Reason.STATE_CONTRADICTION]

    @pytest.mark.parametrize("blocking", [True, False])
    def test_an_errand_and_the_state_of_a_cancellation_come_with_the_answer(self, bench: Bench, blocking):
        """R-END-5: whether or not the question had stopped the operation."""
        bench.add()
        (claim,) = bench.claim()
        reason = Reason.STALLED if blocking else Reason.BUSINESS_DEADLINE_EXCEEDED
        state = S.ESCALATED if blocking else S.RUNNING
        wanted = replace(claim.operation, state=state, lease=None, wake_at=None if blocking else claim.now)
        question = Question(reason=reason, detail="seen")
        bench.store.commit([Commit(operation=wanted, entry={}, questions=(question,))])
        (escalation,) = bench.store.open_escalations("op-1")
        cancel = Followup(event="cancel")
        go_on = replace(bench.row(), state=S.RUNNING, wake_at=claim.now)
        bench.store.resolve(
            decision(escalation, Option.CANCEL), go_on, {"event": "decision"}, errand=cancel, cancel_state="requested"
        )
        assert (bench.row().state, bench.row().cancel_state) == (S.RUNNING, "requested")
        assert bench.store.take_delivery("op-1:cancel", owner="w1", lease=LEASE).handler == ""


def test_fifty_threads_add_one_id_in_memory_once():
    """INV-20; the same on real databases is in ``tests/django/test_store.py``."""
    bench = memory_bench()

    def add(number):
        wanted = bench.operation(fingerprint=str(number % 2))
        return bench.store.add([wanted], {"event": "submit"}, TABLE)[0]

    with ThreadPoolExecutor(50) as threads:
        stored = list(threads.map(add, range(50)))
    assert set(map(repr, stored)) == {repr(bench.row())}
    assert len(bench.entries("op-1")) == 1
