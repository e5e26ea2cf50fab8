"""What may come between the steps of a submission: late answers, other workers, failing stores, people (INV-14, INV-15).

Each test is a way in which a job was once lost, made twice, or followed by the wrong worker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jobtrack.core.actions import AcceptedSpec
from jobtrack.core.escalation import Option, Reason, options
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.place import Header
from jobtrack.core.reply import Request
from jobtrack.core.table import ProviderTable
from jobtrack.errors import StaleEvidence
from jobtrack.flow.advance import advance
from jobtrack.flow.submit import Submission, submit
from jobtrack.flow.track import Tracking, track
from jobtrack.ports import RUNNING as POLLED
from jobtrack.records import Commit, Committed
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import VirtualClock, answer, run_due
from jobtrack.testing.provider import Script, makes
from tests.flow.test_flows import RUNNING, says
from tests.flow.test_submit import (
    ABSENT,
    ACCEPTED,
    LOST,
    POST,
    PROVEN,
    S,
    World,
    late,
    table,
    world,
)

UNCONFIRMED = frozenset({OperationState.UNCONFIRMED})
NO_ID = answer(202, json={})
BY_URL = table(accepted=AcceptedSpec(status_url=(Header("Location"),)))


class Watched(MemoryStore):
    """A store with room for something to happen just before, or just after, a commit."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.before: Callable[[Commit], None] = lambda commit: None
        self.after: Callable[[Commit], None] = lambda commit: None

    def commit(self, commits: Any) -> list[Committed]:
        self.before(commits[0])
        done = super().commit(commits)
        self.after(commits[0])
        return done


def watched(spec: ProviderTable, *answers: Script) -> tuple[World, Watched]:
    here = world(spec, *answers)
    store = Watched(here.clock)
    here.store, here.runtime = store, replace(here.runtime, store=store)
    return here, store


def once(event: str, happens: Callable[[], object]) -> Callable[[Commit], None]:
    """Let something happen at the first commit of this kind, and never again."""
    left = [happens]

    def watch(commit: Commit) -> None:
        if commit.entry["event"] == event and left:
            left.pop()()

    return watch


def deadlock() -> None:
    raise RuntimeError("the database gave up this transaction")


def located(job: str) -> Any:
    return answer(202, headers={"Location": f"https://api.acme.example/jobs/{job}"})


def goes_on(here: World) -> Callable[[], object]:
    return lambda: run_due(here.runtime, here.clock)


def offered(here: World) -> set[Option]:
    """What a person may choose, whichever question is open."""
    return {
        option
        for asked in here.store.open_escalations("op-1")
        for option in options(asked.reason, here.op(), here.table)
    }


def submit_also(here: World, operation_id: str) -> None:
    submit(here.runtime, [Submission(operation_id=operation_id, provider="acme", payload={"for": operation_id})])


# --- an answer that comes late ------------------------------------------------------------------------


def test_a_late_acceptance_without_an_id_forbids_the_repeat_that_absence_would_permit() -> None:
    """INV-18: the provider's own word is stronger than a look-up that finds nothing."""
    here = world(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", ABSENT)

    def stands_still(request: Request) -> Any:
        here.provider.on(*POST, makes("job-2", ACCEPTED))
        here.clock.advance(35 * S)
        run_due(here.runtime, here.clock, until=here.clock() + 5 * S)
        return NO_ID

    here.provider.on(*POST, stands_still)
    here.submit()
    here.run()
    assert (here.provider.made, len(here.posts)) == ([], 1)
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]


def test_a_late_acceptance_without_an_id_takes_the_resubmission_from_the_question() -> None:
    """R-SUB-5."""
    here = world(table())
    here.provider.on(*POST, late(here, NO_ID, goes_on(here)))
    here.submit()
    here.run()
    assert (here.op().acceptance_seen, Option.RESUBMIT in offered(here)) == (True, False)


def test_a_late_end_without_an_id_takes_the_resubmission_from_the_question() -> None:
    """INV-15: the job has run to its end, although nothing is left by which it could be followed."""
    spec = table(final_http=frozenset({200}), accepted=AcceptedSpec())
    here = world(replace(spec, status=replace(spec.status, echo=None)))
    here.provider.on(*POST, late(here, answer(200, json={"status": "succeeded", "rows": 3}), goes_on(here)))
    here.submit()
    here.run()
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]
    assert Option.RESUBMIT not in offered(here)


def test_a_late_acceptance_after_a_person_closed_the_operation_is_told() -> None:
    """INV-15, R-ESC-6: a job is running that nobody follows."""
    here = world(table())

    def closed() -> None:
        run_due(here.runtime, here.clock)
        here.decide(Option.CLOSE)

    here.provider.on(*POST, late(here, ACCEPTED, closed))
    here.submit()
    assert here.run().state is OperationState.ABANDONED
    assert here.reasons == [Reason.STATE_CONTRADICTION]


def test_a_late_acceptance_after_the_operation_failed_is_told() -> None:
    """INV-15, R-END-1."""
    here = world(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", ABSENT)

    def refused() -> None:
        here.provider.on(*POST, answer(400))
        run_due(here.runtime, here.clock)

    here.provider.on(*POST, late(here, ACCEPTED, refused))
    here.submit()
    assert here.run().state is OperationState.FAILED
    assert Reason.STATE_CONTRADICTION in here.reasons


def test_two_late_acceptances_of_different_jobs_are_both_told() -> None:
    """R-ESC-6: the second came before anybody had read the evidence of the first."""
    here = world(table())

    def resubmits() -> None:
        run_due(here.runtime, here.clock)
        second = late(here, makes("job-2", answer(202, json={"id": "job-2"})), goes_on(here))
        here.provider.on(*POST, second)
        here.decide(Option.RESUBMIT)
        advance(here.runtime, ["op-1"])

    here.provider.on(*POST, late(here, makes("job-1", ACCEPTED), resubmits))
    here.provider.script("job-2", RUNNING)
    here.submit()
    here.run(until=100 * S)
    (asked,) = here.store.open_escalations("op-1")
    assert (asked.reason, sorted(here.provider.made_for("op-1"))) == (Reason.STATE_CONTRADICTION, ["job-1", "job-2"])
    assert "job-1" in asked.detail
    assert "job-2" in asked.detail


def followed_by_url(here: World, reply: Any, *, told: Reason | None) -> Operation:
    """A person's second submission is followed at job-2's address; then the first one's answer comes."""

    def resubmits() -> None:
        run_due(here.runtime, here.clock)
        here.provider.on(*POST, located("job-2"))
        here.decide(Option.RESUBMIT)
        run_due(here.runtime, here.clock, until=here.clock() + 20 * S)
        assert here.reasons == ([told] if told else [])

    here.provider.on(*POST, late(here, reply, resubmits))
    here.submit()
    return here.run(until=30 * S)


def test_a_late_acceptance_at_another_address_is_told_although_no_job_has_an_id() -> None:
    """R-ESC-6."""
    here = world(BY_URL)
    here.provider.script("job-2", says("running", job="job-2"))
    row = followed_by_url(here, located("job-1"), told=None)
    assert (row.state, here.reasons) == (OperationState.RUNNING, [Reason.STATE_CONTRADICTION])
    assert row.status_url.endswith("/job-2")


def test_a_late_acceptance_at_the_same_address_is_no_news() -> None:
    """INV-41: the same job, told twice."""
    here = world(BY_URL)
    here.provider.script("job-2", says("running", job="job-2"))
    row = followed_by_url(here, located("job-2"), told=None)
    assert (row.state, row.evidence, here.reasons) == (OperationState.RUNNING, {}, [])


def test_evidence_never_replaces_the_job_of_an_operation_that_stopped_after_its_acceptance() -> None:
    """INV-15: an accepted operation keeps its job, also while a person is asked about it."""
    here = world(BY_URL)
    here.provider.script("job-2", says("weird", job="job-2"))
    row = followed_by_url(here, located("job-1"), told=Reason.UNKNOWN_STATE)
    assert (row.state, row.evidence) == (OperationState.ESCALATED, {})
    assert row.status_url.endswith("/job-2")


# --- evidence that nobody has read yet ------------------------------------------------------------------


def unread(spec: ProviderTable) -> World:
    """A person is asked, and the late answer has just been stored."""
    here = world(spec)
    here.provider.on(*POST, late(here, ACCEPTED, goes_on(here)))
    here.submit()
    advance(here.runtime, ["op-1"])
    assert (here.op().state, here.op().evidence["job_id"]) == (OperationState.ESCALATED, "job-1")
    return here


@pytest.mark.parametrize("option", [Option.ATTACH_JOB, Option.RESUBMIT, Option.CLOSE])
def test_no_decision_overlooks_a_job_that_a_late_answer_has_named(option: Option) -> None:
    """INV-15, R-ESC-5: the person saw a question that is settled by now."""
    here = unread(table())
    with pytest.raises(StaleEvidence):
        here.decide(option, job_id="job-7" if option is Option.ATTACH_JOB else "")
    ended = here.run()
    assert (ended.state, ended.job_id, here.reasons, len(here.posts)) == (OperationState.SUCCEEDED, "job-1", [], 1)


def test_evidence_that_comes_between_a_claim_and_its_intent_stops_the_request() -> None:
    """INV-15, INV-17: the second request is about to go out when the first one's answer is written."""
    here, store = watched(table())
    held: list[Commit] = []

    def first(commit: Commit) -> None:
        """The worker of the first request stands still once more, right before it writes its answer."""
        if commit.entry["event"] == "submission" and commit.operation.job_id and not held:
            held.append(commit)
            store.before = once("attempt", lambda: MemoryStore.commit(store, held))
            advance(here.runtime, ["op-1"])

    def person_resubmits() -> None:
        run_due(here.runtime, here.clock)
        here.provider.on(*POST, makes("job-2", ACCEPTED))
        here.decide(Option.RESUBMIT)

    store.before = first
    here.provider.on(*POST, late(here, ACCEPTED, person_resubmits))
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id) == (OperationState.SUCCEEDED, "job-1")
    assert (len(here.posts), here.provider.made) == (1, [])


# --- a worker that was overtaken ------------------------------------------------------------------------


def test_a_look_up_whose_claim_was_lost_sends_nothing_and_leaves_the_row_to_its_new_owner() -> None:
    """R-OWN-1, INV-14: it stood still between its intent and its request."""
    here, store = watched(table(lookup=PROVEN), LOST)
    here.provider.on("GET", "/jobs", ABSENT)
    taken: list[Operation] = []

    def overtaken() -> None:
        here.clock.advance(200 * S)
        (claim,) = store.claim(["op-1"], owner="other", lease=60 * S, floor=60 * S, debit=False, states=UNCONFIRMED)
        taken.append(claim.operation)

    store.after = once("look_up", overtaken)
    here.submit()
    advance(here.runtime, ["op-1"])
    here.clock.advance(5 * S)
    advance(here.runtime, ["op-1"])
    assert [here.op()] == taken
    assert here.provider.sent("GET", "/jobs") == []


def test_a_reader_of_evidence_whose_claim_was_lost_leaves_the_row_to_its_new_owner() -> None:
    """R-OWN-1, INV-14: another worker has read the evidence and polls the job already."""
    here, store = watched(BY_URL)
    here.provider.script("job-1", says("running"), says("succeeded", rows=1))
    taken: list[Operation] = []

    def overtaken() -> None:
        here.clock.advance(300 * S)
        advance(here.runtime, ["op-1"])
        here.clock.advance(6 * S)
        (claim,) = store.claim(["op-1"], owner="other", lease=60 * S, floor=5 * S, states=POLLED)
        taken.append(claim.operation)
        store.after = compared

    def compared(commit: Commit) -> None:
        if commit.entry["event"] == "evidence":
            row = here.op()
            assert (row.fence, row.lease, row.status_url) == (taken[0].fence, taken[0].lease, taken[0].status_url)

    def person_resubmits() -> None:
        run_due(here.runtime, here.clock)
        here.decide(Option.RESUBMIT)

    store.before = once("evidence", overtaken)
    here.provider.on(*POST, late(here, located("job-1"), person_resubmits))
    here.submit()
    ended = here.run()
    assert (len(taken), ended.state, here.reasons) == (1, OperationState.SUCCEEDED, [])


# --- a store that fails -----------------------------------------------------------------------------------


def test_one_failed_commit_after_the_answer_does_not_lose_the_job() -> None:
    """INV-15."""
    here, store = watched(table(), makes("job-1", ACCEPTED))
    store.before = once("submission", deadlock)
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id, len(here.posts)) == (OperationState.SUCCEEDED, "job-1", 1)


def test_a_job_that_could_not_be_written_at_all_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """INV-15: the last place where its id can be found."""
    here, store = watched(table(), makes("job-1", ACCEPTED))

    def fails(commit: Commit) -> None:
        if commit.entry["event"] == "submission":
            deadlock()

    store.before = fails
    here.submit()
    with pytest.raises(RuntimeError, match="gave up"):
        advance(here.runtime, ["op-1"])
    assert [record for record in caplog.records if "job-1" in record.getMessage()]


def fails_for(operation_id: str) -> Callable[[Commit], None]:
    def watch(commit: Commit) -> None:
        if commit.operation.id == operation_id and commit.entry["event"] == "attempt":
            deadlock()

    return watch


def test_an_intent_that_cannot_be_committed_puts_no_other_of_its_batch_in_doubt() -> None:
    """INV-17, INV-18: their intents are committed, so they must be sent."""
    here, store = watched(table(), makes("job-1", ACCEPTED))
    here.submit()
    for other in ("op-0", "op-2"):
        submit_also(here, other)
    store.before = fails_for("op-2")
    with pytest.raises(RuntimeError, match="gave up"):
        advance(here.runtime, ["op-0", "op-1", "op-2"])
    assert [row.state for row in store.get(["op-0", "op-1"])] == [OperationState.RUNNING] * 2
    assert len(here.posts) == 2


def test_a_row_that_fails_each_time_keeps_no_other_operation_from_its_step() -> None:
    """R-POLL, INV-06: submissions, doubts and polls alike."""
    here, store = watched(table(lookup=PROVEN), LOST)
    here.provider.on("GET", "/jobs", answer(json={"jobs": [{"id": "job-1", "ref": "op-1"}]}))
    here.submit()
    advance(here.runtime, ["op-1"])
    here.provider.on(*POST, ACCEPTED)
    submit_also(here, "op-2")
    submit_also(here, "op-3")
    track(here.runtime, [Tracking(operation_id="op-4", provider="acme", job_id="job-1")])
    here.clock.advance(6 * S)
    store.before = fails_for("op-2")
    with pytest.raises(RuntimeError, match="gave up"):
        advance(here.runtime, ["op-2", "op-3", "op-1", "op-4"])
    doubt, ready, polled = store.get(["op-1", "op-3", "op-4"])
    assert [doubt.state, ready.state] == [OperationState.RUNNING] * 2
    assert polled.spent.status_requests == 1
