"""A worker is killed after every commit and every call outside; a fresh one comes to the same end (R-PROOF, CE).

The provider's log is the judge: no second job, no second cancellation, and no request whose intent was not committed
before it (INV-17, 18, 21, 39). The same holds if the answer to a COMMIT is lost instead (INV-41).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages

from jobtrack.core import audit
from jobtrack_django import cancel, submit, track
from jobtrack_django.models import AuditEntry, Delivery, JobResult, Operation
from tests.contracts.crash import scenes
from tests.contracts.crash.processes import Scene

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.crash,
    pytest.mark.timeout(400),
]

HANDLERS = "tests.contracts.crash.scenes"
ONCE, ASK, STORE = f"{HANDLERS}.write_once", f"{HANDLERS}.ask_for_result", f"{HANDLERS}.store_result"


def submitted(table: str, **more: Any) -> Callable[[str], None]:
    def begin(operation_id: str) -> None:
        submit(table, operation_id=operation_id, payload={"rows": 7}, **{"on_end": ONCE, **more})

    return begin


def tracked(table: str, **more: Any) -> Callable[[str], None]:
    def begin(operation_id: str) -> None:
        track(table, operation_id=operation_id, job_id=f"job-{operation_id}", **more)

    return begin


def to_cancel(table: str) -> Callable[[str], None]:
    def begin(operation_id: str) -> None:
        tracked(table, on_end=ONCE)(operation_id)
        cancel(Operation.objects.get(pk=operation_id), actor="ada", reason="wrong year")

    return begin


@dataclass(frozen=True)
class Case:
    begin: Callable[[str], None]
    does: Any
    state: str = "succeeded"
    usual: tuple[str, ...] = ()  # reasons of the questions that its end asks in any case
    asks: tuple[str, ...] = ()  # reasons of a question that a crash may end in instead
    cancels: int = 0  # most cancellations the provider may hear


CASES = {
    "submit, look-up": Case(submitted("lookup"), scenes.Provider()),
    "submit, key": Case(submitted("key"), scenes.Provider(keys=True)),
    "submit, both": Case(submitted("both"), scenes.Provider(keys=True)),
    "submit, no way back": Case(submitted("none"), scenes.Provider(), asks=("submission_unknown",)),
    "found by a look-up": Case(submitted("lookup"), scenes.Provider(first="lost")),
    "found after a 500": Case(submitted("lookup"), scenes.Provider(first="error")),
    "absent, then sent again": Case(submitted("lookup"), scenes.Provider(first="never")),
    "repeated with its key": Case(submitted("key"), scenes.Provider(first="lost", keys=True)),
    "cancel": Case(
        to_cancel("none"),
        scenes.Provider(runs=20),
        state="cancelled",
        usual=("provider_cancelled",),
        asks=("cancel_unknown",),
        cancels=1,
    ),
    "cancel twice": Case(
        to_cancel("twice"),
        scenes.Provider(runs=20, cancel_first="lost"),
        state="cancelled",
        usual=("provider_cancelled",),
        cancels=9,
    ),
    "result by a worker": Case(tracked("none", on_success=ASK, on_end=ONCE), scenes.Provider()),
    "result that is cut": Case(tracked("none", on_success=ASK), scenes.Provider(download_first="cut")),
    "result in the handler": Case(tracked("none", on_success=STORE), scenes.Provider(download_first="error")),
}


@pytest.fixture
def site(settings: Any, tmp_path: Path) -> Path:
    tables = tmp_path / "tables"
    tables.mkdir()
    for name, text in scenes.TABLES.items():
        (tables / f"{name}.yaml").write_text(text)
    settings.MEDIA_ROOT = str(tmp_path / "media")
    settings.JOBTRACK = {"TABLES": [str(tables)], "RESULT_SPOOL": str(tmp_path / "spool")}
    return tmp_path


@pytest.mark.parametrize("lose", [False, True], ids=["killed", "answer of COMMIT lost"])
@pytest.mark.parametrize("name", CASES)
def test_an_end_after_each_step_costs_nothing_but_time(site, name, lose) -> None:
    case = CASES[name]
    scene = Scene(begin=case.begin, behaviour=case.does, folder=site, from_start=not case.cancels)
    assert all(scene.runtime.tables.get(table) for table in scenes.TABLES), "read before the first fork"
    died, steps = scene.run("uncrashed")
    assert died == 0
    whole = Told.of(scene, "uncrashed")
    assert (whole.state, whole.asked) == (case.state, case.usual), whole

    for number, step in enumerate(steps, start=1):
        if lose and step != "commit":
            continue
        operation_id = f"op-{number}"
        died, trace = scene.run(operation_id, end=number, lose=lose)
        assert (died != 0) is not lose
        if not lose:
            assert trace == steps[:number], "the same way up to its end"
            check_intents(scene, operation_id)
        scene.finish(operation_id)
        check(case, whole, Told.of(scene, operation_id), f"after step {number}, {step}")


@dataclass(frozen=True)
class Told:
    """How an operation stands, and what the provider did."""

    state: str
    job: bool
    kept: str
    cancelled: str
    asked: tuple[str, ...]
    effects: int  # of follow-ups
    delivered: tuple[tuple[str, bool], ...]
    files: tuple[tuple[str, int, str], ...]
    jobs: int
    cancellations: int

    @classmethod
    def of(cls, scene: Scene, operation_id: str) -> Told:
        row = Operation.objects.get(pk=operation_id)
        log = scene.log(operation_id)
        jobs = scenes.effects(log, "job")
        check_audit(row)
        check_bytes(log, row)
        return cls(
            state=row.state,
            job=row.job_id in (*jobs, f"job-{operation_id}"),
            kept=str(row.kept),
            # Its end proves a cancellation whose answer was lost; then nobody is asked about it.
            cancelled="heard" if row.cancel_state in ("accepted", "unknown") else row.cancel_state,
            asked=tuple(sorted(row.escalations.filter(decided_at=None).values_list("reason", flat=True))),
            effects=len(row.reference),
            delivered=tuple(
                (each.event, each.delivered_at is not None)
                for each in Delivery.objects.filter(operation=row).order_by("event")
            ),
            files=tuple(files_of(operation_id)),
            jobs=len(jobs),
            cancellations=len(scenes.effects(log, "cancel")),
        )


def files_of(operation_id: str) -> list[tuple[str, int, str]]:
    """Name, size and checksum of each file of the result; its bytes are read as well."""
    result = JobResult.objects.filter(pk=operation_id).first()
    if result is None:
        return []
    assert result.state == "complete", result.detail
    for file in result.files:
        with storages["default"].open(file["path"]) as stored:
            assert stored.read() == scenes.ROWS
    return [(file["name"], file["size"], file["sha256"]) for file in result.files]


def check(case: Case, whole: Told, told: Told, where: str) -> None:
    assert told.jobs <= 1, where
    assert told.cancellations <= case.cancels, where
    doubts = set(told.asked) - set(whole.asked)
    if doubts:
        assert doubts <= set(case.asks), (where, told)
        return
    same = {"cancellations": whole.cancellations, "jobs": whole.jobs}
    assert Told(**{**vars_of(told), **same}) == whole, where
    assert told.jobs == whole.jobs, where


def vars_of(told: Told) -> dict[str, Any]:
    return {name: getattr(told, name) for name in Told.__dataclass_fields__}


def check_audit(row: Operation) -> None:
    entries = AuditEntry.objects.filter(operation=row).order_by("seq")
    lines = [audit.entry_line(row.pk, e.seq, e.prev, e.hash, e.body) for e in entries]
    closing = audit.closing_line({row.pk: (row.audit_seq, row.audit_head)}, at="2026-01-01T00:00:00+00:00")
    assert [str(fault) for fault in audit.verify([*lines, closing]).faults] == []


def check_bytes(log: list[dict[str, Any]], row: Operation) -> None:
    """INV-17: the same key and the same bytes, whoever sends."""
    posts = {(line["key"], line["body"]) for line in log if line["method"] == "POST" and line["path"] == "/jobs"}
    assert len(posts) <= 1
    assert {key for key, _ in posts} <= {"", row.idempotency_key}


def check_intents(scene: Scene, operation_id: str) -> None:
    """Each write that the provider got was committed as an intent before: also if the worker died right then."""
    row = Operation.objects.get(pk=operation_id)
    events = Counter(audit_event(entry) for entry in AuditEntry.objects.filter(operation=row))
    log = scene.log(operation_id)
    posts = Counter(line["path"].rsplit("/", 1)[-1] for line in log if line["method"] == "POST")
    assert posts["jobs"] <= events["attempt"]
    assert posts["cancel"] <= events["cancel_attempt"]
    assert sum(line["path"].startswith("/jobs?") for line in log) <= events["look_up"]


def audit_event(entry: AuditEntry) -> str:
    return str(json.loads(entry.body)["event"])
