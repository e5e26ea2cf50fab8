"""What the requirements demand to be tested for real (R-PROOF), and the tests that do it.

A new scenario gets a row; a test that is renamed is renamed here. Files without the test fail below.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from jobtrack.catalog import load_file
from jobtrack.core.escalation import Reason
from jobtrack.core.operation import OperationState
from jobtrack.flow.submit import Submission, submit
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, VirtualClock, answer, makes, memory_runtime, run_due

ROOT = Path(__file__).parents[1]

PROOF = {
    "accepted, but the answer is lost": (
        "tests/flow/test_submit.py::test_with_a_look_up_an_unknown_outcome_is_found_and_never_repeated",
        "tests/flow/test_submit.py::test_without_look_up_and_key_an_unknown_outcome_is_one_post_and_one_question",
        "tests/flow/test_submit.py::test_the_key_permits_a_repeat_with_the_same_bytes",
    ),
    "refused before acceptance, with the same client error": (
        "tests/flow/test_submit.py::test_the_same_client_error_before_acceptance_is_proven_absent_and_sent_again",
        "tests/flow/test_submit.py::test_a_failure_before_sending_is_tried_again_within_limits",
    ),
    "a worker is still pending past the recovery deadline": (
        "tests/flow/test_submit.py::test_the_recovery_deadline_ends_the_search",
        "tests/flow/test_submit.py::test_a_late_acceptance_is_evidence_and_ends_the_doubt",
    ),
    "two submitters at once": (
        "tests/django/test_submit.py::test_fifty_threads_make_one_operation_and_one_request",
        "tests/flow/test_submit.py::test_the_same_content_is_the_same_operation_and_other_content_a_conflict",
    ),
    "the status endpoint is down, the write endpoint is up": (
        "tests/test_proof.py::test_a_dead_status_endpoint_makes_no_second_job",
        "tests/flow/test_flows.py::test_transport_failures_end_the_observation_and_never_the_job",
    ),
    "a person resumes what another has reconciled": (
        "tests/flow/test_flows.py::test_the_second_of_two_deciders_is_told_who_was_first",
        "tests/flow/test_submit.py::test_late_evidence_overtakes_a_person_who_granted_one_more_submission",
    ),
    "a page is refreshed": (
        "tests/acceptance/test_site.py::test_a_refresh_finds_the_same_operation_and_sends_nothing",
    ),
    "a budget is exhausted while the job runs: pending": (
        "tests/flow/test_flows.py::test_a_limit_of_the_observer_leaves_the_job_pending_and_one_extension_can_finish_it",
    ),
    "failed, then a success in the queue: not asked again": (
        "tests/cases/test_reports.py::test_b047_a_late_answer_with_another_end_is_an_alert_and_changes_nothing",
        "tests/flow/test_flows.py::test_a_duplicated_wake_up_finds_nothing_to_claim",
    ),
    "a result link has expired": ("tests/flow/test_fetch.py::test_a_dead_link_asks_the_same_job_again",),
    "a repeated notice": (
        "tests/flow/test_hear.py::test_a_thousand_notices_cost_one_look",
        "tests/django/test_webhooks.py::test_one_notice_that_comes_many_times_at_once_is_stored_once",
    ),
    "several observers finish at once": (
        "tests/flow/test_flows.py::test_an_answer_after_its_lease_was_lost_changes_nothing_and_is_kept",
        "tests/contracts/test_store_contract.py::test_a_row_is_claimed_once",
        "tests/simulation/test_simulation.py::test_every_invariant_holds_in_every_world_and_every_fault_strikes",
    ),
    "a crash between reservation and sending": (
        "tests/flow/test_flows.py::test_a_crash_between_claim_and_answer_wastes_a_reservation_and_the_next_look_keeps_its_distance",
        "tests/flow/test_submit.py::test_a_worker_that_dies_with_the_request_out_leaves_a_doubt_that_is_looked_up",
    ),
    "the broker loses everything": (
        "tests/chaos/test_death.py::test_two_hundred_operations_survive_a_killed_worker_and_a_flushed_redis",
        "tests/chaos/test_death.py::test_a_restarted_redis_loses_every_message_and_nothing_else",
        "tests/chaos/test_no_broker.py::test_without_any_broker_the_sweeper_command_ends_everything",
    ),
    "clocks jump": (
        "tests/flow/test_flows.py::test_a_worker_that_stood_still_before_its_claim_does_not_see_the_deadline_early",
        "tests/flow/test_flows.py::test_a_late_wake_up_looks_once_and_makes_up_for_nothing",
        "tests/django/test_store.py::test_no_row_is_judged_by_the_clock_of_this_machine",
    ),
}
"""Scenario -> tests. "The SSH child started, the connection dropped" comes with the SSH transport."""


@cache
def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("scenario", PROOF)
def test_each_scenario_is_proved_by_tests_that_exist(scenario: str) -> None:
    missing = [node for node in PROOF[scenario] if node.split("::")[1] not in functions_of(node.split("::")[0])]
    assert missing == [], "the test was renamed or is gone: name the one that proves this now"


def test_a_dead_status_endpoint_makes_no_second_job() -> None:
    """R-SUB-1, R-FACT-2: only looks fail; the job stays accepted and pending, and nothing is submitted again."""
    clock = VirtualClock()
    provider, store = FakeProvider(clock), MemoryStore(clock)
    table = load_file(ROOT / "tests" / "cases" / "tables" / "job-key.yaml")
    runtime = memory_runtime(table, provider=provider, clock=clock, store=store)
    provider.on("POST", "/v1/jobs", makes("job-1", answer(202, json={"id": "job-1"})))
    provider.on("GET", "/v1/jobs/*", answer(503))

    submit(runtime, [Submission(operation_id="op-1", provider="job-key", payload={})])
    run_due(runtime, clock)

    row = store.rows["op-1"]
    assert (row.state, row.job_id, store.reasons("op-1")) == (
        OperationState.ESCALATED,
        "job-1",
        [Reason.TRANSPORT_FAILURES_EXHAUSTED],
    )
    assert (provider.made_for("op-1"), len(provider.sent("POST"))) == (["job-1"], 1)
    assert len(provider.sent("GET")) == row.spent.status_requests == table.budget.transport_failures
