"""``cancel()`` and ``cancel_effect()``: what a view may rely on (R-END-5)."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import connections, transaction

import jobtrack_django
from jobtrack.core.actions import CancelSpec
from jobtrack.core.cancel import CancelState
from jobtrack.core.place import RequestSpec
from jobtrack.errors import OperationNotFound, UsageError
from jobtrack.flow.deliver import deliver
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer, no_answer
from jobtrack_django import cancel, cancel_effect, track
from jobtrack_django.models import AuditEntry, Delivery, Operation
from jobtrack_django.narrative import history, tell

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

SPEC = CancelSpec(
    request=RequestSpec(method="POST", path="/v1/jobs/{job_id}/cancel"), effect="Stops it; what was made is billed."
)


@pytest.fixture
def operation(site) -> Operation:
    tables = site.runtime.tables.by_id
    tables["acme"] = replace(tables["acme"], cancel=SPEC)
    return track("acme", job_id="job-1", operation_id="op-1")


def written() -> tuple[str, list[str], list[str]]:
    """The state of the cancellation, the deliveries, and what the audit says since the job was tracked."""
    events = [json.loads(body)["event"] for body in AuditEntry.objects.order_by("seq").values_list("body", flat=True)]
    return Operation.objects.get().cancel_state, list(Delivery.objects.values_list("pk", flat=True)), events[1:]


def test_nothing_is_asked_before_the_caller_s_commit(site, operation):
    with transaction.atomic():
        row = cancel(operation, actor="ada", reason="a duplicate")
        assert (row.cancel_state, row.state, site.runtime.scheduler.woken) == ("requested", "running", [])
    assert (site.runtime.scheduler.woken, site.provider.log) == (["op-1:cancel"], [])
    assert written() == ("requested", ["op-1:cancel"], ["cancel_requested"])
    entry = json.loads(AuditEntry.objects.order_by("seq").last().body)
    assert (entry["actor"], entry["why"], entry["effect"]) == ("ada", "a duplicate", SPEC.effect)


def test_after_a_rollback_nothing_is_asked(site, operation):
    with transaction.atomic():
        cancel(operation)
        transaction.set_rollback(True)
    assert (written(), site.runtime.scheduler.woken) == (("", [], []), [])


def test_a_transaction_of_another_database_could_not_take_it_back(site, operation, monkeypatch):
    other = SimpleNamespace(alias="reports", in_atomic_block=True)
    monkeypatch.setattr(type(connections), "all", lambda *_, **__: [connections["default"], other])
    with pytest.raises(UsageError, match="on_commit"):
        cancel(operation)
    assert written() == ("", [], [])
    with transaction.atomic():
        assert cancel(operation).cancel_state == "requested"


def test_the_job_is_cancelled_when_its_status_says_so(site, operation):
    site.provider.on("POST", "/v1/jobs/job-1/cancel", answer(202, json={}))
    cancel(operation)
    assert deliver(site.runtime, ["op-1:cancel"]) == 1
    operation.refresh_from_db()
    assert (operation.state, operation.cancel_state) == ("running", "accepted")
    site.provider.script("job-1", answer(json={"status": "succeeded", "rows": 3}))
    site.make_due("op-1")
    poll(site.runtime, ["op-1"])
    operation.refresh_from_db()
    assert (operation.state, operation.cancel_state) == ("succeeded", "accepted")
    assert len(site.provider.sent("POST")) == 1


def test_an_unknown_outcome_asks_a_person_and_is_not_repeated(site, operation):
    site.provider.on("POST", "/v1/jobs/job-1/cancel", no_answer("read_timeout"))
    cancel(operation)
    for _ in range(3):
        deliver(site.runtime, ["op-1:cancel"])
    told = Operation.objects.get().outcome()
    assert (told["needs_decision"], told["cancel"]["state"], told["outcome"]) == (
        ["cancel_unknown"],
        "unknown",
        "pending",
    )
    assert len(site.provider.sent("POST")) == 1
    with pytest.raises(UsageError, match="may have been heard"):
        cancel(operation)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer(202), "The provider accepted it; only its status says what became of the job."),
        (answer(409), "Nobody knows whether the provider heard it."),
        (no_answer("connect_refused"), "Nothing was sent."),
    ],
)
def test_the_story_says_who_wanted_it_and_what_came_of_it(site, operation, reply, said):
    site.provider.on("POST", "/v1/jobs/job-1/cancel", reply)
    cancel(operation, actor="ada", reason="a duplicate")
    deliver(site.runtime, ["op-1:cancel"])
    lines = [tell(entry) for entry in history(Operation.objects.get())][1:]
    assert [line.title for line in lines] == ["Cancellation wanted", "Cancelling begins", "Cancellation answered"]
    assert lines[0].sentences == (
        "ada wants the job cancelled at the provider: “a duplicate”",
        f"They were told: “{SPEC.effect}”",
    )
    assert lines[2].sentences[0] == said


def test_the_story_of_one_that_was_not_sent(site, operation):
    site.provider.on("POST", "/v1/jobs/job-1/cancel", no_answer("target_denied", sent="never"))
    cancel(operation)
    deliver(site.runtime, ["op-1:cancel"])
    last = tell(AuditEntry.objects.order_by("seq").last())
    assert (last.title, last.sentences[0].startswith("It could not be sent: ")) == ("Cancellation not sent", True)
    site.provider.script("job-1", answer(json={"status": "succeeded", "rows": 3}))
    cancel(operation)
    site.make_due("op-1")
    poll(site.runtime, ["op-1"])
    deliver(site.runtime, ["op-1:cancel"])
    last = tell(AuditEntry.objects.order_by("seq").last())
    assert (last.title, last.sentences) == (
        "Cancellation not needed",
        ("The operation had ended: nothing was sent.",),
    )


PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("cancel.md", "follow-ups.md", "outcome.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_page_shows_can_be_pasted(page):
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        compile(block, page.name, "exec")
        for names in re.findall(r"from jobtrack_django import (.*)", block):
            assert [name for name in names.split(", ") if name not in jobtrack_django.__all__] == []
    broken = [link for link in re.findall(r"\]\(([\w-]+\.md)", text) if not (page.parent / link).exists()]
    assert broken == []


def test_the_page_of_cancelling_names_each_state():
    rows = re.findall(r"^\| `(\w+)` \|", PAGES[0].read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [state.value for state in CancelState]


def test_the_effect_is_told_as_long_as_it_may_be_asked_for(operation):
    assert cancel_effect(operation) == SPEC.effect
    assert cancel_effect(cancel(operation)) is None
    with pytest.raises(UsageError, match="already"):
        cancel(operation)


def test_where_the_table_documents_none_there_is_none(site):
    operation = track("acme", job_id="job-1", operation_id="op-1")
    assert cancel_effect(operation) is None
    with pytest.raises(UsageError, match="documents no cancellation"):
        cancel(operation)


def test_of_an_operation_that_is_not_there_nothing_is_cancelled(operation):
    with pytest.raises(OperationNotFound):
        cancel(Operation(id="op-2", provider="acme"))


def test_texts_that_no_database_keeps_are_mended(operation):
    cancel(operation, actor="a\x00da" * 100, reason="\ud800" + "x" * 5000)
    entry = json.loads(AuditEntry.objects.order_by("seq").last().body)
    assert (len(entry["actor"]), len(entry["why"])) == (255, 2000)


def test_twenty_who_ask_at_once_are_one(site, operation):
    barrier, told = threading.Barrier(20), []

    def ask() -> None:
        try:
            barrier.wait(10)
            told.append(cancel(operation).cancel_state)
        except UsageError as error:
            told.append(error.code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(told) == ["requested"] + ["usage"] * 19
    assert written() == ("requested", ["op-1:cancel"], ["cancel_requested"])
