"""The process that prunes is killed after each step, and run again: nothing is lost (R-PROOF, INV-40)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage
from django.db import connections

from jobtrack_django import prune_files
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Delivery, Escalation, JobResult, Notice, PrunedOperation
from jobtrack_django.prune import Terms, prune
from tests.contracts.crash.processes import WRITES, Steps, in_child, lines
from tests.django.pruning import OLD, ended, whole_or_proven

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.crash,
    pytest.mark.timeout(400),
]

MOST = 120
"""More steps than a run has."""


class Watched(Steps):
    """Every commit, each write inside a transaction, and whatever is done to files."""

    def watch(self) -> None:
        super().watch()
        self._follow(os, "fsync")
        self._follow(Path, "rename")
        self._follow(Path, "unlink")
        self._follow(FileSystemStorage, "delete")

        def execute(run, sql, params, many, context):
            done = run(sql, params, many, context)
            if sql.lstrip().upper().startswith(WRITES) and context["connection"].in_atomic_block:
                self.step("write")
            return done

        connections["default"].execute_wrappers.append(execute)

    def _follow(self, place, name):
        act = getattr(place, name)

        def acted(*arguments, **named):
            done = act(*arguments, **named)
            self.step(name)
            return done

        setattr(place, name, acted)  # never undone: this process ends


def rerun(terms):
    """Until nothing is held: a server takes a moment to notice that the process of a transaction is gone."""
    for _ in range(200):
        done = prune(terms)
        assert done.clean
        if not done.moved:
            return
        time.sleep(0.05)
    raise AssertionError(f"{done.moved} operations are held for good")


def test_a_run_that_is_killed_at_any_step_loses_nothing(site, tmp_path, monkeypatch):
    """Each operation is wholly there, or pruned with a proof that verifies; the next run does the rest."""
    storage = FileSystemStorage(tmp_path / "media")
    monkeypatch.setattr(prune_files, "result_storage", lambda: storage)
    seen, names = set(), []
    for end in range(1, MOST):
        folder = tmp_path / f"{end}"
        folder.mkdir()
        ids = [f"op-{end}-{number}" for number in range(3)]
        ended(site, *ids, on_success="tests.django.handlers.remember")
        Delivery.objects.update(due_at=None, delivered_at=DatabaseNow())
        for each in ids:
            asked = Escalation.objects.create(
                operation_id=each, reason="stalled", blocking=False, opened_at=DatabaseNow(), decided_at=DatabaseNow()
            )
            Notice.objects.create(escalation=asked, notifier="ops", turn=1)
            path = storage.save(f"{each}.csv", ContentFile(b"rows"))
            files = [{"name": "rows.csv", "path": path, "size": 4, "complete": True}]
            JobResult.objects.create(operation_id=each, state="complete", files=files)
        terms = Terms(older_than=OLD, proofs=folder, batch=2, delete_files=True)
        steps = Watched(trace=folder / "trace", end=end)

        def work(steps=steps, terms=terms):
            steps.watch()
            prune(terms)

        killed = in_child(work, tmp_path / "errors.txt")
        names = [line["step"] for line in lines(folder / "trace")]
        seen.update(names[-1:])
        gone = whole_or_proven(folder, *ids)
        assert all(storage.exists(f"{each}.csv") for each in set(ids) - set(gone))
        rerun(terms)
        assert whole_or_proven(folder, *ids) == ids
        assert [each for each in ids if storage.exists(f"{each}.csv")] == []
        assert list(folder.glob("*.files")) == []
        if not killed:
            break
    assert (killed, len(names) > 30) == (0, True)
    assert seen >= {"commit", "write", "fsync", "rename", "unlink", "delete"}
    assert PrunedOperation.objects.count() == 3 * end


@pytest.mark.parametrize("which", [1, 2])
def test_an_answer_to_commit_that_is_lost_changes_nothing_of_it(site, tmp_path, which):
    """INV-41: whether it was committed is read from the rows by the next run."""
    ids = ["op-1", "op-2", "op-3"]
    ended(site, *ids)
    terms = Terms(older_than=OLD, proofs=tmp_path, batch=2)
    counted = Steps(trace=tmp_path / "trace", end=which, lose=True)

    def work():
        counted.watch()
        try:
            prune(terms)
        except Exception:  # noqa: BLE001 - the database's error
            os._exit(0)

    assert in_child(work, tmp_path / "errors.txt") == 0
    assert len(whole_or_proven(tmp_path, *ids)) in (2, 3)
    rerun(terms)
    assert whole_or_proven(tmp_path, *ids) == ids
