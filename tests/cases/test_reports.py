"""Public reports that a replay cannot show: people, deploys, late answers, messages. And where each report is proved."""

from __future__ import annotations

import ast
import json
import logging
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, _state
from click.testing import CliRunner

from jobtrack.catalog import load_text
from jobtrack.cli import main
from jobtrack.core.escalation import Option, Reason, Resolution
from jobtrack.core.operation import OperationState
from jobtrack.core.reply import NoAnswer, Reply, Request, Sent, Trouble
from jobtrack.flow.poll import poll
from jobtrack.flow.resolve import resolve
from jobtrack.flow.track import Tracking, track
from jobtrack.records import RESULT as RESULT_ERRAND
from jobtrack.records import Committed, Followup
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, VirtualClock, answer, memory_runtime, run_due
from jobtrack.worker import tasks, wiring
from jobtrack.worker.scheduler import CeleryScheduler

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TABLE = (HERE / "tables" / "job.yaml").read_text(encoding="utf-8")
RESULT = {"url": "https://files.provider.example/r/1"}


def says(status: str, **more: object) -> Reply:
    return answer(json={"id": "job-1", "status": status, **more})


RUNNING, DONE, FAILED = says("running"), says("succeeded", result=RESULT), says("failed", error="source gone")


class World:
    """One operation at one provider, on a virtual clock."""

    def __init__(self, table: str = TABLE) -> None:
        self.clock = VirtualClock()
        self.provider = FakeProvider(self.clock)
        self.store = MemoryStore(self.clock)
        self.followed: list[str] = []
        self.runtime = memory_runtime(
            load_text(table, "job.yaml"),
            provider=self.provider,
            clock=self.clock,
            store=self.store,
            run_handler=lambda delivery, _: self.followed.append(delivery.id),
        )

    def deploy(self, table: str) -> None:
        self.runtime.tables.by_id = {"job": load_text(table, "job.yaml")}  # type: ignore[attr-defined]

    def track(self, *replies: Any, **more: Any) -> None:
        self.provider.script("job-1", *replies)
        track(self.runtime, [Tracking(operation_id="op-1", provider="job", job_id="job-1", **more)])

    def run(self) -> None:
        run_due(self.runtime, self.clock)

    def look(self) -> list[Committed]:
        return [looked.committed for looked in poll(self.runtime, ["op-1"])]

    def decide(self, option: Option) -> None:
        (asked,) = self.store.open_escalations("op-1")
        decided = Resolution(
            escalation_id=asked.id, option=option, actor="ann", reason="seen to it", version=asked.version
        )
        resolve(self.runtime, decided)

    @property
    def row(self) -> Any:
        return self.store.rows["op-1"]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(entry.text) for entry in self.store.audit["op-1"]]


def test_b014_a_waiting_state_that_is_new_stops_once_and_goes_on_with_the_mended_table() -> None:
    """apache/airflow#33882. R-TABLE-2, R-FACT-2: never failed, never started again, the same job to its end."""
    world = World()
    world.track(RUNNING, says("QUEUED_AGAIN"))
    world.run()
    assert (world.row.state, world.store.reasons("op-1")) == (OperationState.ESCALATED, [Reason.UNKNOWN_STATE])

    world.deploy(
        TABLE.replace("revision: 1", "revision: 2").replace("[queued, running]", "[queued, QUEUED_AGAIN, running]")
    )
    world.provider.script("job-1", says("QUEUED_AGAIN"), DONE)
    world.decide(Option.EXTEND)
    world.run()

    assert (world.row.state, world.row.job_id, world.row.revision) == (OperationState.SUCCEEDED, "job-1", 2)
    assert [entry["state"] for entry in world.entries] == ["running"] * 2 + ["escalated"] + ["running"] * 2 + [
        "succeeded"
    ]
    assert {seen.request.method for seen in world.provider.log} == {"GET"}


LOOK_ALIKES = """\
states:
  pending: [ON, queued]
  stop: [OFF, NO]
  success: [1.0]
  failure: [~]
aliases:
  NO: "not offered"
  12:30:45: "at time"
"""


def test_b019_the_checker_refuses_words_that_yaml_takes_for_something_else(tmp_path: Path) -> None:
    """spring-projects/spring-boot#9186. R-TABLE-1, R-TABLE-6: all of them in one run, with the text to write."""
    table = tmp_path / "job.yaml"
    table.write_text(LOOK_ALIKES, encoding="utf-8")
    result = CliRunner().invoke(main, ["check", "--json", str(table)])
    found = [each for each in json.loads(result.stdout)["findings"] if each["code"] == "look_alike"]
    expected = [(2, "ON"), (3, "OFF"), (3, "NO"), (4, "1.0"), (5, "~"), (7, "NO"), (8, "12:30:45")]
    assert result.exit_code == 1
    assert [
        (each["line"], f'"{word}"' in each["message"]) for each, (_, word) in zip(found, expected, strict=True)
    ] == [(line, True) for line, _ in expected]


@pytest.mark.parametrize(
    ("first", "late", "state", "followed"),
    [
        (DONE, FAILED, OperationState.SUCCEEDED, ["op-1:on_success"]),
        (FAILED, DONE, OperationState.FAILED, ["op-1:on_failure"]),
    ],
    ids=["failed after succeeded", "succeeded after failed"],
)
def test_b047_a_late_answer_with_another_end_is_an_alert_and_changes_nothing(
    first: Reply, late: Reply, state: OperationState, followed: list[str]
) -> None:
    """scality/backbeat#698. R-END-1, R-END-3, R-READ-7: both answers stay in the audit; nothing more is asked or run."""
    world = World()

    def overtaken(_: Request) -> Reply:
        world.clock.advance(120)  # longer than the lease
        world.provider.script("job-1", first)
        assert world.look() == [Committed.DONE]
        return late

    world.track(overtaken, on_success="app.store", on_failure="app.warn", escalate_ends=False)
    world.clock.advance(10)
    assert world.look() == [Committed.STALE]
    assert world.look() == []  # the same message once more
    world.run()

    assert (world.row.state, world.followed, len(world.provider.log)) == (state, followed, 2)
    (asked,) = world.store.open_escalations("op-1")
    assert (asked.reason, asked.blocking) == (Reason.STATE_CONTRADICTION, False)
    heard = world.runtime.listener.asked  # type: ignore[attr-defined]
    assert [(row.state, [each.reason for each in questions]) for row, questions in heard] == [
        (state, [Reason.STATE_CONTRADICTION])
    ]
    ends = [(entry["decision"]["state"], entry.get("late", False)) for entry in world.entries[1:]]
    other = OperationState.FAILED if state is OperationState.SUCCEEDED else OperationState.SUCCEEDED
    assert ends == [(state, False), (other, True)]
    world.decide(Option.CLOSE)
    assert (world.row.state, world.store.reasons("op-1")) == (state, [])


# --- messages ---------------------------------------------------------------------------------------


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Celery:
    """Tasks run in the process that publishes them."""
    monkeypatch.setattr(tasks, "drain", tasks.Drain())
    # Running a task makes its app the current one of the thread; the other tests have theirs.
    monkeypatch.setattr(_state._tls, "current_app", _state._tls.current_app)
    monkeypatch.setattr(_state, "default_app", _state.default_app)
    app = Celery("test", set_as_current=False)
    app.conf.task_always_eager = True
    app.conf.task_eager_propagates = True
    app.finalize()
    return app


def test_b054_copies_of_a_message_before_its_time_cost_nothing_and_at_its_time_one_request(eager: Celery) -> None:
    """celery/kombu#337. R-OWN-1, R-POLL-5, INV-24: the first look is six hours away, beyond what a broker keeps."""
    world = World(TABLE.replace("first: 2s", "first: 6h").replace("deadline: 1h", "deadline: 1d"))
    world.track(RUNNING)
    assert world.row.wake_until is None  # no message is out; the sweeper will find the row
    with wiring.use_runtime(world.runtime):
        for _ in range(6):
            world.clock.advance(600)
            eager.tasks["jobtrack.wake"].apply_async(args=("op-1",))
        assert world.provider.log == []
        world.clock.advance_to(world.row.wake_at)
        for _ in range(2):
            eager.tasks["jobtrack.wake"].apply_async(args=("op-1",))
    assert (len(world.provider.log), world.row.spent.status_requests) == (1, 1)
    assert world.clock() - world.clock.start >= timedelta(hours=6)


def test_b057_tasks_in_process_never_nest_and_the_next_look_is_stored(eager: Celery) -> None:
    """celery/celery#1527. R-CALL-1, R-OWN-3: one call stores the operation; each task looks once and ends."""
    world = World()
    world.runtime = replace(world.runtime, scheduler=CeleryScheduler(app=eager))
    with wiring.use_runtime(world.runtime):
        world.track(RUNNING)
        assert (world.provider.log, world.row.state) == ([], OperationState.RUNNING)
        assert world.row.wake_at is not None
        for looks in range(1, 4):
            world.clock.advance(100)
            eager.tasks["jobtrack.wake"].apply_async(args=("op-1",))
            assert len(world.provider.log) == looks
    assert (world.row.state, world.row.wake_at > world.clock()) == (OperationState.RUNNING, True)


def test_b059_messages_of_two_releases_are_one_look_and_the_operation_goes_on(eager: Celery) -> None:
    """openedx/openedx-platform#14033. R-OWN-3: whatever a message carries besides the id is ignored."""
    world = World()
    world.track(RUNNING, DONE)
    world.clock.advance(10)
    with wiring.use_runtime(world.runtime):
        eager.tasks["jobtrack.poll"].apply_async(args=("op-1", 3))
        eager.tasks["jobtrack.wake"].apply_async(args=("op-1",), kwargs={"reason": "sweep", "release": 99})
    assert len(world.provider.log) == 1
    world.run()
    assert world.row.state is OperationState.SUCCEEDED


# --- secrets ----------------------------------------------------------------------------------------

SECRETS = ("SIGSECRET", "TOKSECRET", "AZSECRET", "BEARERSECRET", "PWSECRET", "KEYSECRET")
SIGNED = "https://files.provider.example/r/1?X-Amz-Signature=SIGSECRET&X-Amz-Security-Token=TOKSECRET&sv=2&sig=AZSECRET"
CONNECTION = "https://user:PWSECRET@api.provider.example/x?api_key=KEYSECRET with Bearer BEARERSECRET"
SPILLS = {
    "an error that names a signed address": says("failed", error=f"cannot write {SIGNED}; {CONNECTION}"),
    "a redirect to a signed address": answer(302, headers={"Location": SIGNED}),
    "a state that is an address": says(SIGNED),
    "a result at a host that is not allowed": says(
        "succeeded", result={"url": SIGNED.replace("files.provider", "files.elsewhere")}
    ),
    "another job's id": answer(json={"id": SIGNED, "status": "running"}),
    "a connection error": NoAnswer(sent=Sent.MAYBE, trouble=Trouble.CONNECTION_LOST, detail=f"{CONNECTION} {SIGNED}"),
}


@pytest.mark.parametrize("spill", SPILLS)
def test_b063_no_secret_of_an_answer_or_of_an_error_is_stored_or_told(
    spill: str, caplog: pytest.LogCaptureFixture
) -> None:
    """flyteorg/flyte-sdk#1339. R-AUDIT-3, R-END-6: the address may stand there, its secrets may not."""
    caplog.set_level(logging.DEBUG)
    world = World()
    world.track(SPILLS[spill], on_failure="app.warn")
    world.run()
    told = " ".join(each.detail for each in world.store.open_escalations("op-1"))
    kept = [repr(world.row), *world.store.export(), told, repr(world.store.outbox), caplog.text]
    assert [secret for secret in SECRETS for text in kept if secret in text] == []
    assert re.search(r"(files|api)\.(provider|elsewhere)\.example", told)


def test_b063_two_failures_with_other_signatures_have_equal_text() -> None:
    told = []
    for signature in ("SIGSECRET", "AFRESHONE"):
        world = World()
        world.track(says("failed", error=f"cannot write {SIGNED.replace('SIGSECRET', signature)}"))
        world.run()
        told.append([each.detail for each in world.store.open_escalations("op-1")])
    assert told == [["cannot write https://files.provider.example/r/1?***"]] * 2


FETCHING = TABLE + "result: {url: /result/url, attempts: 2}\n"


@pytest.mark.parametrize(
    "failed",
    [
        answer(500, text="<Error/>"),
        NoAnswer(sent=Sent.MAYBE, trouble=Trouble.CONNECTION_LOST, detail=f"{CONNECTION} {SIGNED}"),
    ],
)
def test_b063_a_download_that_fails_at_a_signed_address_tells_where_and_no_secret(
    failed: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    """flyteorg/flyte-sdk#1339. R-AUDIT-3, R-END-4, INV-33: the link stands in no row, text or log line."""
    caplog.set_level(logging.DEBUG)
    world = World(FETCHING)
    world.provider.on("GET", "/r/1", failed)
    world.track(says("succeeded", result={"url": SIGNED}))
    world.run()
    world.store.note("op-1", {"event": "fetch_requested"}, errand=Followup(event=RESULT_ERRAND))
    world.run()

    downloads = world.provider.sent("GET", "/r/1")
    assert {request.url for request in downloads} == {SIGNED}
    (asked,) = world.store.open_escalations("op-1")
    assert (asked.reason, world.row.state) == (Reason.RESULT_UNAVAILABLE, OperationState.SUCCEEDED)
    result = world.store.result("op-1")
    kept = [repr(world.row), repr(result), *world.store.export(), asked.detail, repr(world.store.outbox), caplog.text]
    assert [secret for secret in SECRETS for text in kept if secret in text] == []


# --- where each report is proved --------------------------------------------------------------------

COVERED = {
    "B007": ("tests/flow/test_flows.py::test_guidance_past_the_deadline_waits_sends_nothing_and_stops_there",),
    "B014": (
        "tests/cases/test_reports.py::test_b014_a_waiting_state_that_is_new_stops_once_and_goes_on_with_the_mended_table",
    ),
    "B019": (
        "tests/catalog/test_strict.py::test_all_look_alikes_of_a_file_are_reported_in_one_run",
        "tests/cases/test_reports.py::test_b019_the_checker_refuses_words_that_yaml_takes_for_something_else",
    ),
    "B021": (
        "tests/flow/test_flows.py::test_the_address_stays_as_granted_and_is_refused_once_the_table_forbids_it",
        "tests/flow/test_flows.py::test_each_entry_can_be_recomputed_and_names_its_table",
    ),
    "B025": ("tests/django/test_store.py::test_any_text_of_a_provider_can_be_kept",),
    "B027": (
        "tests/transports/test_limits.py::test_an_unreadable_body_is_a_flaw_of_an_answer",
        "tests/transports/test_limits.py::test_the_connection_of_an_oversized_answer_is_closed",
        "tests/transports/test_limits.py::test_a_bomb_of_one_gibibyte_costs_less_than_16_mib",
    ),
    "B033": (
        "tests/core/test_request.py::test_the_request_is_complete_but_for_credentials",
        "tests/core/test_request.py::test_a_table_adds_headers_but_never_a_condition_or_another_id",
    ),
    "B035": ("tests/transports/test_httpx_transport.py::test_a_redirect_is_an_answer_and_is_not_followed",),
    "B043": (
        "tests/flow/test_flows.py::test_a_limit_of_the_observer_leaves_the_job_pending_and_one_extension_can_finish_it",
        "tests/flow/test_flows.py::test_a_second_extension_is_not_offered",
    ),
    "B047": (
        "tests/cases/test_reports.py::test_b047_a_late_answer_with_another_end_is_an_alert_and_changes_nothing",
        "tests/contracts/test_store_contract.py::test_a_late_answer_with_another_end_is_asked_about_once_and_changes_nothing",
    ),
    "B054": (
        "tests/cases/test_reports.py::test_b054_copies_of_a_message_before_its_time_cost_nothing_and_at_its_time_one_request",
        "tests/worker/test_scheduler.py::test_nothing_is_published_beyond_the_horizon",
        "tests/worker/test_broker.py::test_a_countdown_stays_well_below_the_patience_of_the_broker",
        "tests/django/test_checks.py::test_unsafe_celery_settings",
        "tests/chaos/test_death.py::test_the_same_message_ten_times_is_one_request",
    ),
    "B057": (
        "tests/cases/test_reports.py::test_b057_tasks_in_process_never_nest_and_the_next_look_is_stored",
        "tests/worker/test_scheduler.py::test_eager_mode_is_refused_politely",
        "tests/chaos/test_no_broker.py::test_eager_mode_is_one_stored_operation_and_no_recursion",
    ),
    "B059": (
        "tests/cases/test_reports.py::test_b059_messages_of_two_releases_are_one_look_and_the_operation_goes_on",
        "tests/worker/test_tasks.py::test_ids_are_read_whatever_a_message_holds",
    ),
    "B061": (
        "tests/django/test_store.py::test_every_read_goes_to_the_database_that_takes_the_writes",
        "tests/contracts/test_store_contract.py::test_a_row_is_claimed_once",
    ),
    "B063": (
        "tests/cases/test_reports.py::test_b063_no_secret_of_an_answer_or_of_an_error_is_stored_or_told",
        "tests/cases/test_reports.py::test_b063_two_failures_with_other_signatures_have_equal_text",
        "tests/cases/test_reports.py::test_b063_a_download_that_fails_at_a_signed_address_tells_where_and_no_secret",
        "tests/transports/test_troubles.py::test_foreign_text_never_gets_into_the_detail",
        "tests/transports/test_httpx_transport.py::test_no_secret_reaches_a_log_at_debug",
        "tests/flow/test_flows.py::test_a_failing_follow_up_is_tried_with_growing_pauses_then_a_person_is_asked",
    ),
}
"""Reports that are proved, wholly or in part, by tests elsewhere: the test functions."""


@pytest.mark.parametrize("node", sorted({node for nodes in COVERED.values() for node in nodes}))
def test_the_test_that_proves_a_report_exists(node: str) -> None:
    path, name = node.split("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}


REPORTS = (
    "B001 B004 B005 B007 B009 B011 B014 B015 B017 B019 B021 B023 B025 B027 B029 B031 B033 "
    "B035 B037 B039 B040 B043 B045 B047 B049 B051 B053 B054 B057 B059 B061 B063 B065"
)
"""Numbers of the collected public reports."""


def test_every_report_has_its_place() -> None:
    cases = {path.name[:4].upper() for path in HERE.glob("b[0-9]*.yaml")}
    assert set(REPORTS.split()) == cases | COVERED.keys()
