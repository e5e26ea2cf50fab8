"""What permits a request of a submission, and for how long: terms, grants, deadlines, the gate (INV-06, INV-18, R-ESC).

Each test is a way in which a submission was once repeated on too little, or stood still for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobtrack.core import gate as gates
from jobtrack.core.actions import Recovery
from jobtrack.core.escalation import Option, Reason, options
from jobtrack.core.gate import GateState, HoldReason
from jobtrack.core.operation import OperationState
from jobtrack.core.reply import Request
from jobtrack.core.table import ProviderTable, RequestLimits
from jobtrack.flow.submit import Submission, submit
from jobtrack.testing import answer, run_due
from jobtrack.testing.provider import Script, makes
from tests.flow.test_flows import RUNNING
from tests.flow.test_submission_races import once, watched
from tests.flow.test_submit import (
    ABSENT,
    ACCEPTED,
    FOUND,
    KEY,
    LOST,
    PAGED,
    POST,
    PROVEN,
    UNPROVEN,
    Died,
    H,
    S,
    World,
    dies,
    late,
    table,
    unknown,
    world,
)

ACCOUNT = ("acme", "default")
DAYS = timedelta(days=1)


def deploy(here: World, spec: ProviderTable) -> None:
    here.table = replace(spec, revision=2, digest="digest-2", text="table text 2")
    here.runtime.tables.by_id = {spec.id: here.table}  # type: ignore[attr-defined]


def abandoned(spec: ProviderTable, *then: Script) -> World:
    """The worker of the first attempt died with its request out."""
    here = world(spec, dies)
    here.submit()
    with pytest.raises(Died):
        here.run()
    here.provider.on(*POST, *(then or (makes("job-2", ACCEPTED),)))
    return here


def offered(here: World) -> tuple[Option, ...]:
    (asked,) = here.store.open_escalations("op-1")
    return options(asked.reason, here.op(), here.table)


# --- the terms of the start ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "newest"),
    [
        pytest.param(table(), table(key=KEY), id="key added"),
        pytest.param(table(key=replace(KEY, header="X-Key")), table(key=KEY), id="key elsewhere"),
        pytest.param(table(key=KEY), table(), id="key gone"),
        pytest.param(table(), table(lookup=PROVEN), id="look-up added"),
        pytest.param(table(lookup=UNPROVEN), table(lookup=PROVEN), id="absence became proof"),
        pytest.param(table(lookup=PROVEN), table(lookup=UNPROVEN), id="absence is proof no more"),
    ],
)
def test_a_repeat_needs_the_terms_under_which_its_bytes_were_written(
    first: ProviderTable, newest: ProviderTable
) -> None:
    """INV-18: bytes without the key are no repeat to the provider, and a later look-up may not know them."""
    here = abandoned(first)
    here.provider.on("GET", "/jobs", ABSENT)
    deploy(here, newest)
    here.run()
    assert (len(here.posts), here.provider.made, here.reasons) == (1, [], [Reason.SUBMISSION_UNKNOWN])


@pytest.mark.parametrize("spec", [table(key=KEY), table(lookup=PROVEN)], ids=["key", "absence"])
def test_a_new_revision_with_the_same_terms_permits_what_the_old_one_did(spec: ProviderTable) -> None:
    """INV-18."""
    here = abandoned(spec, makes("job-1", ACCEPTED))
    here.provider.on("GET", "/jobs", ABSENT)
    deploy(here, spec)
    assert (here.run().state, len(here.posts)) == (OperationState.SUCCEEDED, 2)


def test_the_limits_of_the_site_count_in_the_margin_of_the_key() -> None:
    """INV-18, B053: the answer may take as long as the site permits, whatever the table says."""
    here = world(table(key=replace(KEY, lifetime=120 * S)), LOST)
    here.runtime = replace(here.runtime, limits=RequestLimits(total=600 * S))
    here.submit()
    here.run()
    assert (len(here.posts), here.reasons) == (1, [Reason.SUBMISSION_UNKNOWN])


# --- a look-up that shows something ---------------------------------------------------------------------


def nameless(request: Request) -> Any:
    return answer(json={"jobs": [{"id": None, "ref": "op-1"}]})


def half_a_list(request: Request) -> Any:
    mine = {"jobs": [{"id": "job-1", "ref": "op-1"}], "next": "1"}
    return answer(503) if "page=" in request.url else answer(json=mine)


def several(request: Request) -> Any:
    return answer(json={"jobs": [{"id": "job-1", "ref": "op-1"}, {"id": "job-2", "ref": "op-1"}]})


@pytest.mark.parametrize("shows", [nameless, half_a_list, several])
def test_a_job_that_a_look_up_shows_without_settling_it_is_never_submitted_again(
    shows: Callable[[Request], Any],
) -> None:
    """INV-18, INV-19, B049: by no key, by no later absence, and by no person."""
    here = world(table(lookup=PAGED, key=KEY), makes("job-1", LOST), makes("job-2", ACCEPTED))
    here.provider.on("GET", "/jobs", shows, shows, ABSENT)
    here.submit()
    here.run()
    assert (len(here.posts), here.reasons) == (1, [Reason.SUBMISSION_UNKNOWN])
    assert here.op().acceptance_seen
    assert Option.RESUBMIT not in offered(here)


def test_the_jobs_of_a_list_that_broke_off_are_shown_to_the_person() -> None:
    """R-ESC-2."""
    here = world(table(lookup=PAGED), makes("job-1", LOST))
    here.provider.on("GET", "/jobs", half_a_list)
    here.submit()
    here.run()
    (asked,) = here.store.open_escalations("op-1")
    assert "job-1" in asked.detail


# --- grants ---------------------------------------------------------------------------------------------


def test_a_resubmission_that_no_worker_took_up_in_time_leaves_the_doubt_as_it_was() -> None:
    """R-ESC-4, INV-18: nothing has proven that the first attempt was not accepted."""
    here = unknown(table(lookup=UNPROVEN))
    here.clock.advance(2 * H)
    here.decide(Option.RESUBMIT)
    here.clock.advance(301 * S)
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)
    assert here.op().doubt


def test_a_resubmission_granted_within_the_time_to_submit_still_holds_for_its_own_time_only() -> None:
    """R-ESC-4."""
    here = unknown(table())
    here.decide(Option.RESUBMIT)
    here.clock.advance(1800 * S)
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)


def test_a_resubmission_whose_answer_is_lost_as_well_is_looked_up_anew() -> None:
    """R-SUB-4, R-ESC-4: the way out of a doubt is granted with the request that may bring a new one."""
    here = unknown(table(lookup=UNPROVEN))
    looks = len(here.provider.sent("GET", "/jobs"))
    here.clock.advance(3 * H)
    here.provider.on(*POST, makes("job-1", LOST))
    here.provider.on("GET", "/jobs", ABSENT, FOUND)
    here.decide(Option.RESUBMIT)
    assert here.run().state is OperationState.SUCCEEDED
    assert len(here.provider.sent("GET", "/jobs")) == looks + 2


@pytest.mark.parametrize("option", [Option.RESUBMIT, Option.ATTACH_JOB, Option.LOOK_UP])
def test_a_job_that_a_person_brings_back_days_later_is_followed_for_its_full_time(option: Option) -> None:
    """R-BUDGET-1, INV-06: the time to follow a job does not run before it is known."""
    here = unknown(table(lookup=UNPROVEN))
    here.provider.script("job-1", RUNNING)
    here.provider.on(*POST, makes("job-1", ACCEPTED))
    here.provider.on("GET", "/jobs", FOUND)
    here.clock.advance(3 * DAYS)
    here.decide(option, job_id="job-1" if option is Option.ATTACH_JOB else "")
    began = here.clock()
    row = here.run(until=60 * S)
    assert row.state is OperationState.RUNNING
    assert timedelta(0) <= row.budget.deadline - began - H <= 10 * S


def test_a_job_that_late_evidence_names_days_later_is_followed_for_its_full_time() -> None:
    """R-BUDGET-1, INV-15."""
    here = world(table())
    here.provider.script("job-1", RUNNING)

    def days_pass() -> None:
        here.clock.advance(3 * DAYS)
        run_due(here.runtime, here.clock)

    here.provider.on(*POST, late(here, ACCEPTED, days_pass))
    here.submit()
    row = here.run(until=10 * S)
    assert (row.state, here.reasons) == (OperationState.RUNNING, [])
    assert row.budget.deadline > here.clock() + H - 60 * S


@pytest.mark.parametrize("sent", [False, True], ids=["ready", "in doubt"])
def test_more_time_to_follow_is_not_offered_before_there_is_anything_to_follow(sent: bool) -> None:
    """R-ESC-3: nor is the deadline of a job the question about one that was never accepted."""
    here = abandoned(table()) if sent else world(table())
    if not sent:
        here.submit()
    kept, here.runtime.tables.by_id = here.runtime.tables.by_id, {}  # type: ignore[attr-defined]
    here.clock.advance(2 * DAYS)
    here.run()
    assert here.reasons == [Reason.TABLE_MISSING]
    here.runtime.tables.by_id = kept  # type: ignore[attr-defined]
    for reason in Reason:
        assert Option.EXTEND not in options(reason, here.op(), here.table)


# --- the account's gate -----------------------------------------------------------------------------------


def held(here: World) -> HoldReason:
    return here.store.gates([ACCOUNT])[ACCOUNT].reason


def test_a_dead_submission_behind_a_closed_gate_meets_its_recovery_deadline() -> None:
    """INV-06, R-SUB-4: nothing is sent to find out that a worker is dead."""
    spec = table()
    here = abandoned(replace(spec, budget=replace(spec.budget, deadline=30 * DAYS)))
    here.store.move_gate(*ACCOUNT, gates.OPEN, GateState(reason=HoldReason.AUTH, held_until=here.clock() + DAYS))
    row = here.run(until=120 * S)
    assert row.state in {OperationState.UNCONFIRMED, OperationState.ESCALATED}
    here.run(until=2 * H)
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)


def test_a_late_denial_never_leaves_the_account_closed_with_nobody_asked() -> None:
    """INV-06, R-POLL-4: the answer came too late to ask about it, and moved the gate all the same."""
    here = world(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", FOUND)
    here.provider.script("job-1", RUNNING)

    def found() -> None:
        run_due(here.runtime, here.clock, until=here.clock() + 10 * S)

    here.provider.on(*POST, late(here, answer(401), found))
    here.submit()
    here.run(until=1000 * S)
    assert (held(here), here.op().state) == (HoldReason.NONE, OperationState.RUNNING)


def test_a_denial_whose_question_was_never_written_does_not_close_the_account_for_ever() -> None:
    """INV-06: the worker died between the gate and its commit."""
    here, store = watched(table(lookup=PROVEN), answer(401), makes("job-1", ACCEPTED))
    here.provider.on("GET", "/jobs", ABSENT)
    store.before = once("submission", dies_at_once)
    here.submit()
    with pytest.raises(Died):
        here.run()
    assert here.run().state is OperationState.SUCCEEDED
    assert held(here) is HoldReason.NONE


def dies_at_once(*args: object) -> None:
    raise Died


def test_an_answered_question_whose_process_died_before_the_gate_opened_still_opens_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """INV-06, R-ESC-4."""
    here = world(table(), answer(401))
    here.submit()
    here.run()
    here.provider.on(*POST, makes("job-1", ACCEPTED))
    with monkeypatch.context() as ended:
        ended.setattr("jobtrack.flow.resolve._open_gate", dies_at_once)
        with pytest.raises(Died):
            here.decide(Option.ACCESS_REPAIRED)
    assert (held(here), here.reasons) == (HoldReason.AUTH, [])
    assert here.run().state is OperationState.SUCCEEDED
    assert held(here) is HoldReason.NONE


def test_a_question_of_the_account_that_evidence_has_overtaken_leaves_no_gate_closed() -> None:
    """INV-06, INV-15."""
    here = world(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", answer(401))
    asked: list[Reason] = []

    def denied() -> None:
        run_due(here.runtime, here.clock, until=here.clock() + 10 * S)
        asked.extend(here.reasons)

    here.provider.on(*POST, late(here, ACCEPTED, denied))
    here.submit()
    ended = here.run()
    assert asked == [Reason.AUTHORIZATION_DENIED]
    assert (ended.state, held(here), here.reasons) == (OperationState.SUCCEEDED, HoldReason.NONE, [])


def test_repaired_access_after_a_denied_look_up_goes_on_with_the_recovery() -> None:
    """R-ESC-4, R-SUB-4: the look-up is the probe, and what it proves permits what it always does."""
    here = world(table(lookup=PROVEN), LOST, makes("job-1", ACCEPTED))
    here.provider.on("GET", "/jobs", answer(401), ABSENT)
    here.submit()
    here.run()
    assert here.reasons == [Reason.AUTHORIZATION_DENIED]
    here.decide(Option.ACCESS_REPAIRED)
    ended = here.run()
    assert (ended.state, here.reasons, len(here.posts)) == (OperationState.SUCCEEDED, [], 2)


def test_repaired_access_after_a_denied_repeat_goes_on_with_the_recovery() -> None:
    """R-ESC-4, R-SUB-4."""
    here = world(table(key=KEY), makes("job-1", LOST), answer(401), ACCEPTED)
    here.submit()
    here.run()
    assert here.reasons == [Reason.AUTHORIZATION_DENIED]
    here.decide(Option.ACCESS_REPAIRED)
    assert (here.run().state, here.reasons) == (OperationState.SUCCEEDED, [])


@pytest.mark.parametrize("spec", [table(key=KEY), table(lookup=PROVEN)], ids=["repeats", "look-ups"])
def test_an_account_that_denies_three_doubtful_operations_asks_one_question(spec: ProviderTable) -> None:
    """R-POLL-4, R-ESC-6."""
    here = world(spec, LOST, LOST, LOST, answer(401))
    here.provider.on("GET", "/jobs", answer(401))
    names = ("op-1", "op-2", "op-3")
    submit(here.runtime, [Submission(operation_id=name, provider="acme", payload={"for": name}) for name in names])
    here.run(until=0.5 * H)
    asked = [reason for name in names for reason in here.store.reasons(name)]
    assert asked == [Reason.AUTHORIZATION_DENIED]


def test_a_look_up_that_was_asked_before_the_settle_time_proves_nothing_however_late_its_answer_comes() -> None:
    """INV-18 d: the answer shows the provider as it was when it was asked; so does the first page of several."""
    recovery = Recovery(first=20 * S, base=20 * S, cap=20 * S)
    here = world(table(lookup=PROVEN, recovery=recovery), makes("job-1", LOST), makes("job-2", ACCEPTED))
    sent = here.clock()

    def slow(request: Request) -> Any:
        listed = FOUND if here.clock() >= sent + 25 * S else ABSENT
        here.clock.advance(15 * S)
        return listed

    here.provider.on("GET", "/jobs", slow)
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id, here.provider.made_for("op-1")) == (OperationState.SUCCEEDED, "job-1", ["job-1"])
