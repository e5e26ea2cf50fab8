"""What the provider said late outlives what was concluded, granted or decided without it (INV-15, INV-18, R-ESC-6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jobtrack.core.actions import AcceptedSpec
from jobtrack.core.escalation import Option, Reason, Resolution
from jobtrack.core.operation import OperationState
from jobtrack.core.place import Header
from jobtrack.core.reply import Request
from jobtrack.errors import StaleEvidence
from jobtrack.flow.advance import advance
from jobtrack.records import Commit
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import answer, run_due
from jobtrack.testing.provider import makes
from tests.flow.test_submission_limits import deploy
from tests.flow.test_submission_races import BY_URL, NO_ID, Watched, goes_on, located, once, submit_also, watched
from tests.flow.test_submit import ABSENT, ACCEPTED, LOST, POST, PROVEN, UNPROVEN, S, World, late, table, world

SEALED = answer(202, headers={"Location": "https://api.acme.example/jobs/job-1?sig=canary"})


def holds_back(here: World, store: Watched, then: Callable[[], object]) -> list[Commit]:
    """The first worker stands still right before it commits what an acceptance proves; others go on."""
    held: list[Commit] = []

    def watch(commit: Commit) -> None:
        if commit.entry["event"] == "submission" and commit.evidence and not held:
            held.append(commit)
            then()

    store.before = watch
    return held


def test_a_later_look_up_proves_nothing_about_bytes_that_it_may_not_know() -> None:
    """INV-18: else a refused resubmission would fail an operation whose first job runs."""
    here = world(table(lookup=UNPROVEN), makes("job-1", LOST), answer(400))
    here.provider.on("GET", "/jobs", ABSENT)
    here.submit()
    here.run(until=0.5 * S)
    deploy(here, table(lookup=PROVEN))
    here.run()
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]
    here.decide(Option.RESUBMIT)
    assert here.run().state is OperationState.ESCALATED


def test_a_late_word_voids_the_resubmission_that_a_person_granted_before_it() -> None:
    """INV-18."""
    here = world(table())

    def granted() -> None:
        run_due(here.runtime, here.clock)
        here.decide(Option.RESUBMIT)

    here.provider.on(*POST, late(here, NO_ID, granted))
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)


def test_a_late_word_stops_a_repeat_that_waits_for_its_time() -> None:
    """INV-18: absence had been proven, the repeat was told to come later, and then the first answer came."""
    here = world(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", ABSENT)

    def waits() -> None:
        here.provider.on(*POST, answer(429, headers={"Retry-After": "60"}))
        run_due(here.runtime, here.clock, until=here.clock() + 20 * S)
        assert here.op().state is OperationState.READY

    here.provider.on(*POST, late(here, NO_ID, waits))
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 2)


def test_a_late_word_outlives_the_look_up_that_was_out_when_it_came() -> None:
    """INV-18, INV-19."""
    here, store = watched(table(lookup=PROVEN))

    def others() -> None:
        here.clock.advance(100 * S)
        here.provider.on(*POST, makes("job-2", ACCEPTED))
        run_due(here.runtime, here.clock, until=here.clock() + 100 * S)

    held = holds_back(here, store, others)

    def absent(request: Request) -> Any:
        MemoryStore.commit(store, held)
        return ABSENT

    here.provider.on("GET", "/jobs", absent)
    here.provider.on(*POST, NO_ID)
    here.submit()
    here.run()
    assert (here.op().acceptance_seen, len(here.posts)) == (True, 1)


def test_a_late_word_between_a_claim_and_its_intent_stops_the_request() -> None:
    """INV-17, INV-18."""
    here, store = watched(table())

    def second() -> None:
        store.before = once("attempt", lambda: MemoryStore.commit(store, held))
        advance(here.runtime, ["op-1"])

    held = holds_back(here, store, second)

    def granted() -> None:
        run_due(here.runtime, here.clock)
        here.decide(Option.RESUBMIT)

    here.provider.on(*POST, late(here, NO_ID, granted))
    here.submit()
    here.run()
    assert (here.op().acceptance_seen, len(here.posts)) == (True, 1)


@pytest.mark.parametrize("option", [Option.CLOSE, Option.ATTACH_JOB])
def test_a_decision_that_was_read_before_the_evidence_and_stored_after_it_is_refused(option: Option) -> None:
    """INV-15, R-ESC-5."""

    class Store(Watched):
        def resolve(self, resolution: Resolution, *args: Any, **more: Any) -> Resolution:
            MemoryStore.commit(self, held)
            return super().resolve(resolution, *args, **more)

    here = world(table())
    store = Store(here.clock)
    here.store, here.runtime = store, replace(here.runtime, store=store)

    def decides() -> None:
        with pytest.raises(StaleEvidence):
            here.decide(option, job_id="job-7" if option is Option.ATTACH_JOB else "")

    held = holds_back(here, store, decides)
    here.provider.on(*POST, late(here, ACCEPTED, goes_on(here)))
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id) == (OperationState.SUCCEEDED, "job-1")


def test_evidence_that_a_refusal_of_the_next_attempt_ends_is_told() -> None:
    """INV-15: it came while that attempt was out, so its worker had not seen it."""
    here, store = watched(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", ABSENT)
    told: list[Reason] = []

    def second(request: Request) -> Any:
        MemoryStore.commit(store, held)
        return answer(400)

    def others() -> None:
        here.clock.advance(100 * S)
        here.provider.on(*POST, second)
        run_due(here.runtime, here.clock)
        told.extend(here.reasons)

    held = holds_back(here, store, others)
    here.provider.on(*POST, ACCEPTED)
    here.submit()
    assert here.run().state is OperationState.FAILED
    assert Reason.STATE_CONTRADICTION in told


@pytest.mark.parametrize("reply", [located("job-1"), SEALED, NO_ID], ids=["address", "sealed address", "nothing"])
@pytest.mark.parametrize("refused", [False, True], ids=["closed", "failed"])
def test_a_late_acceptance_after_the_end_is_told_whatever_it_names(refused: bool, reply: Any) -> None:
    """INV-15, R-ESC-6."""
    here = world(table(accepted=AcceptedSpec(status_url=(Header("Location"),)), lookup=PROVEN if refused else None))
    here.provider.on("GET", "/jobs", ABSENT)

    def ends() -> None:
        if refused:
            here.provider.on(*POST, answer(400))
        run_due(here.runtime, here.clock)
        if not refused:
            here.decide(Option.CLOSE)

    here.provider.on(*POST, late(here, reply, ends))
    here.submit()
    assert here.run().terminal
    assert Reason.STATE_CONTRADICTION in here.reasons


def test_two_late_acceptances_at_different_addresses_are_both_told() -> None:
    """R-ESC-6."""
    here = world(BY_URL)

    def resubmits() -> None:
        run_due(here.runtime, here.clock)
        here.provider.on(*POST, late(here, located("job-2"), goes_on(here)))
        here.decide(Option.RESUBMIT)
        advance(here.runtime, ["op-1"])

    here.provider.on(*POST, late(here, located("job-1"), resubmits))
    here.submit()
    here.run(until=100 * S)
    assert Reason.STATE_CONTRADICTION in here.reasons


def test_a_denial_whose_question_is_just_being_written_is_asked_about_once() -> None:
    """R-POLL-4, R-ESC-6: another worker meets the gate between its closing and that commit."""
    here, store = watched(table(), answer(401))
    here.submit()
    submit_also(here, "op-2")
    store.before = once("submission", lambda: advance(here.runtime, ["op-2"]))
    advance(here.runtime, ["op-1"])
    here.run(until=600 * S)
    asked = here.store.reasons("op-1") + here.store.reasons("op-2")
    assert asked == [Reason.AUTHORIZATION_DENIED]
