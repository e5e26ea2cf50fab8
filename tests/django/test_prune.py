"""Old operations are removed, their proof is kept, and their ids stay taken (R-AUDIT-2, R-ID-4, INV-40)."""

from __future__ import annotations

import errno
import os
import signal
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from unittest.mock import Mock

import pytest
from click.testing import CliRunner
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from jobtrack.cli import main as cli
from jobtrack.core.audit import Fault, closing_heads, seal, verify
from jobtrack.worker import wiring
from jobtrack_django import proofs, track_many
from jobtrack_django import prune as module
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import (
    AuditEntry,
    DecisionBatch,
    DecisionItem,
    Delivery,
    Escalation,
    FollowUpReceipt,
    Heartbeat,
    JobResult,
    Notice,
    Operation,
    PrunedOperation,
    WebhookReceipt,
)
from jobtrack_django.prune import Terms, prune, survey
from tests.django import many_rows
from tests.django.plans import analyze, read_whole
from tests.django.pruning import OLD, age, ended, heads_of, verified, whole_or_proven

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

REMEMBER = "tests.django.handlers.remember"


def run(folder, *arguments, older_than="90d"):
    out, err = StringIO(), StringIO()
    code = 0
    try:
        call_command(
            "jobtrack_prune", f"--older-than={older_than}", f"--proof={folder}", *arguments, stdout=out, stderr=err
        )
    except CommandError as error:
        code = error.returncode
        err.write(str(error))
    return code, out.getvalue(), err.getvalue()


def question(operation_id, *, decided=True, **more):
    place = {"decided_at": DatabaseNow()} if decided else {"open_advisory": True}
    given = {"reason": "provider_failure", "blocking": False, "opened_at": DatabaseNow(), **place, **more}
    return Escalation.objects.create(operation_id=operation_id, **given)


def terms(folder, **more):
    return Terms(older_than=OLD, proofs=folder, **more)


def test_what_ended_long_ago_goes_and_its_proof_stays(site, tmp_path):
    """The heads written down are those of the proof's closing line: a checkpoint."""
    ended(site, "old-1", "old-2", "old-3")
    ended(site, "new", days=80)
    known = heads_of("old-1", "old-2", "old-3")
    assert run(tmp_path)[0] == 0
    (proof,) = tmp_path.iterdir()
    with proof.open(encoding="utf-8") as lines:
        stated = closing_heads(lines)
    assert stated == known
    assert verified(tmp_path) == {proof.name: known}
    rows = PrunedOperation.objects.all()
    assert {row.pk: (row.audit_seq, row.audit_head) for row in rows} == known
    assert {(row.proof, row.state, row.provider, row.account) for row in rows} == {
        (proof.name, "succeeded", "acme", "default")
    }
    assert list(Operation.objects.values_list("pk", flat=True)) == ["new"]
    assert set(AuditEntry.objects.values_list("operation_id", flat=True)) == {"new"}
    assert proof.stat().st_mode & 0o077 == 0


def test_all_that_hangs_on_it_goes_and_the_log_of_the_admin_stays(site, tmp_path, admin_user):
    ended(site, "old", on_success=REMEMBER)
    Delivery.objects.update(due_at=None, delivered_at=DatabaseNow())
    asked = question("old")
    batch = DecisionBatch.objects.create(
        option="acknowledge", actor="ada", reason="mended", created_at=DatabaseNow(), finished_at=DatabaseNow()
    )
    DecisionBatch.objects.update(finished_at=F("created_at") - timedelta(days=99))
    DecisionItem.objects.create(batch=batch, escalation=asked, version=1)
    Notice.objects.create(escalation=asked, notifier="ops", turn=1)
    FollowUpReceipt.objects.create(key="old:on_success", created_at=DatabaseNow())
    FollowUpReceipt.objects.create(key="other:on_success", created_at=DatabaseNow())
    JobResult.objects.create(operation_id="old", state="complete")
    LogEntry.objects.create(user=admin_user, action_flag=CHANGE, object_id="old", object_repr="old")
    done = prune(terms(tmp_path))
    assert (done.operations, done.entries, done.proofs, done.beside, done.clean) == (1, 2, 1, 1, True)
    gone = (Operation, AuditEntry, Delivery, Escalation, Notice, DecisionItem, DecisionBatch, JobResult)
    assert [model.__name__ for model in gone if model._base_manager.exists()] == []
    assert list(FollowUpReceipt.objects.values_list("pk", flat=True)) == ["other:on_success"]
    assert LogEntry.objects.count() == 1


def test_what_somebody_still_waits_for_stays(site, tmp_path):
    """An open question, or a follow-up that is still to run. One that a person gave up holds nothing."""
    ended(site, "asked", "follows", "given-up", "gone", on_success=REMEMBER)
    Delivery.objects.exclude(operation="follows").update(due_at=None)
    question("asked", decided=False)
    question("given-up", reason="delivery_failed")
    found = survey(OLD)
    assert (found.ready, found.waiting) == (2, 2)
    assert prune(terms(tmp_path)).operations == 2
    assert sorted(PrunedOperation.objects.values_list("pk", flat=True)) == ["given-up", "gone"]
    assert sorted(Operation.objects.values_list("pk", flat=True)) == ["asked", "follows"]


def test_other_old_rows_go_with_them(site, tmp_path):
    """Receipts of notices that will not come again, and signs of life of processes that are gone."""
    now = site.runtime.store.now()
    for days in (80, 100):
        at = now - timedelta(days=days)
        WebhookReceipt.objects.create(
            provider="acme", account="default", notice_id=f"{days}", job_id="job", received_at=at
        )
        Heartbeat.objects.create(name=f"{days}", kind="worker", started_at=at, seen_at=at)
    assert prune(terms(tmp_path, batch=1)).beside == 2
    assert [row.notice_id for row in WebhookReceipt.objects.all()] == ["80"]
    assert [row.name for row in Heartbeat.objects.all()] == ["80"]


def test_a_dry_run_counts_and_changes_nothing(site, tmp_path, monkeypatch):
    ended(site, "old-1", "old-2", "asked")
    question("asked", decided=False)
    code, out, _ = run(tmp_path, "--dry-run")
    assert (code, out.splitlines()) == (
        0,
        ["2 operations can be pruned", "1 operations are as old and wait for a decision or a follow-up"],
    )
    monkeypatch.setattr(module, "BOUND", 1)
    assert survey(OLD).ready == 1
    assert (Operation.objects.count(), list(tmp_path.iterdir())) == (3, [])


def test_a_dry_run_counts_once_what_waits_for_two_things(site):
    """And not what ended lately."""
    ended(site, "both", "asked", on_success=REMEMBER)
    ended(site, "new", days=80, on_success=REMEMBER)
    Delivery.objects.filter(operation="asked").update(due_at=None)
    for each in ("both", "asked", "new"):
        question(each, decided=False)
    assert (survey(OLD).ready, survey(OLD).waiting) == (0, 2)


@pytest.mark.vendor("mysql")
def test_a_dry_run_reads_no_whole_table(monkeypatch):
    """Those that can go are counted up to a limit, and those that cannot from what they wait for."""
    monkeypatch.setattr(many_rows, "OPEN_EVERY", 1_000)
    many_rows.plant()
    Operation.objects.filter(state__in=["succeeded", "failed"]).update(ended_at=F("created_at"))
    analyze()
    monkeypatch.setattr(module, "BOUND", 100)
    with CaptureQueriesContext(connection) as queries:
        assert survey(timedelta(days=1)).ready == 100
    assert [(found, query["sql"]) for query in queries if (found := read_whole(query["sql"]))] == []


def test_an_end_that_an_earlier_release_wrote_gets_a_date(site, tmp_path):
    """Its workers go on for a while after the migration; what they ended must not stay for ever."""
    ended(site, "op-1", "op-2")
    Operation.objects.update(ended_at=None)
    Operation.objects.filter(pk="op-1").update(observed_at=F("observed_at") - OLD - timedelta(days=1))
    track_many("acme", [{"job_id": "job-3", "operation_id": "runs"}])
    assert prune(terms(tmp_path, batch=1)).operations == 1
    assert whole_or_proven(tmp_path, "op-1", "op-2", "runs") == ["op-1"]
    assert dict(Operation.objects.values_list("pk", "ended_at"))["runs"] is None


def test_batches_and_the_limit_bound_a_run(site, tmp_path):
    ids = [f"op-{number}" for number in range(5)]
    ended(site, *ids)
    code, out, _ = run(tmp_path, "--batch=2", "--limit=3")
    assert (code, len(out.splitlines()), PrunedOperation.objects.count()) == (0, 3, 3)
    assert len(whole_or_proven(tmp_path, *ids)) == 3
    assert sorted(len(heads) for heads in verified(tmp_path).values()) == [1, 2]


def test_a_batch_is_bounded_by_its_entries_too(site, tmp_path, monkeypatch):
    """An operation of many polls makes a batch of its own."""
    ended(site, "op-1", "op-2", "op-3")
    monkeypatch.setattr(module, "_ENTRIES", 1)
    assert (prune(terms(tmp_path)).proofs, PrunedOperation.objects.count()) == (3, 3)


def test_the_number_of_queries_does_not_depend_on_how_much_is_there(site, tmp_path):
    counts = []
    for size in (2, 20):
        ended(site, *(f"op-{size}-{number}" for number in range(size)), on_success=REMEMBER)
        Delivery.objects.update(due_at=None, delivered_at=DatabaseNow())
        with CaptureQueriesContext(connection) as captured:
            assert prune(terms(tmp_path)).operations == size
        counts.append(len(captured))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_batch_end(site, tmp_path, monkeypatch, number):
    """The exit code says that there is more to do, and a rerun does it."""
    ids = ["op-1", "op-2", "op-3"]
    ended(site, *ids)
    write_down = module._write_down

    def interrupted(*arguments):
        os.kill(os.getpid(), number)
        write_down(*arguments)

    monkeypatch.setattr(module, "_write_down", interrupted)
    before = signal.getsignal(number)
    code, _, err = run(tmp_path, "--batch=1")
    assert (code, "run it again" in err, signal.getsignal(number)) == (3, True, before)
    assert len(whole_or_proven(tmp_path, *ids)) == 1
    monkeypatch.undo()
    assert run(tmp_path)[0] == 0
    assert whole_or_proven(tmp_path, *ids) == ids


def test_a_second_signal_ends_it_at_once(site, tmp_path, monkeypatch):
    ended(site, "op-1")
    # A shell starts what runs in the background with SIGINT ignored, and the tests with it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(module, "_write_down", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert whole_or_proven(tmp_path, "op-1") == []


@pytest.mark.parametrize(
    ("folder", "says"), [("proofs", "absolute"), ("/nowhere/at/all", "no folder"), ("/proc", "cannot be")]
)
def test_a_folder_that_cannot_be_used_is_refused(site, folder, says):
    ended(site, "op-1")
    code, _, err = run(folder)
    assert (code, says in err, Operation.objects.count()) == (2, True, 1)


AGE = "--older-than=9d"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--older-than=90"],
        ["--older-than=0d"],
        ["--older-than=5m"],
        [AGE, "--batch=0"],
        [AGE, "--batch=9999"],
        [AGE, "--limit=0"],
    ],
)
def test_arguments_are_checked(arguments, tmp_path):
    with pytest.raises(CommandError):
        call_command("jobtrack_prune", f"--proof={tmp_path}", *arguments)


def test_without_a_folder_nothing_is_removed(site):
    ended(site, "op-1")
    with pytest.raises(CommandError, match="--proof") as refused:
        call_command("jobtrack_prune", "--older-than=90d")
    assert (refused.value.returncode, Operation.objects.count()) == (2, 1)


def test_a_proof_that_cannot_be_read_back_removes_nothing(site, tmp_path, monkeypatch):
    ended(site, "op-1")
    fault = Fault(line=1, operation_id="", problem="this line is not JSON")
    monkeypatch.setattr(proofs, "verify", lambda *given, **named: replace(verify(*given, **named), faults=(fault,)))
    code, _, err = run(tmp_path)
    assert (code, "does not verify" in err) == (1, True)
    assert (whole_or_proven(tmp_path, "op-1"), list(tmp_path.iterdir())) == ([], [])


def test_a_disk_that_is_full_removes_nothing(site, tmp_path, monkeypatch):
    ended(site, "op-1")
    monkeypatch.setattr(os, "fsync", full := Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    code, _, err = run(tmp_path)
    assert (code, "No space left" in err, full.called) == (2, True, True)
    assert (whole_or_proven(tmp_path, "op-1"), list(tmp_path.iterdir())) == ([], [])


def forge(operation_id, seq, *, digest="0" * 64, prev=""):
    AuditEntry(operation_id=operation_id, seq=seq, prev=prev, hash=digest, body="{}", at=DatabaseNow()).save()


BREAKS = {
    "the end is cut off": lambda: Operation.objects.filter(pk="bad").update(audit_seq=3),
    "the row names another head": lambda: Operation.objects.filter(pk="bad").update(audit_head="0" * 64),
    "an entry too many": lambda: forge("bad", 3),
    "a gap": lambda: forge("bad", 5),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_chain_is_told_and_left(site, tmp_path, how):
    """What cannot be proven is evidence: it stays, and the others go."""
    ended(site, "bad", "good-1", "good-2")
    BREAKS[how]()
    code, _, err = run(tmp_path)
    assert (code, "bad: BROKEN CHAIN" in err) == (1, True)
    assert list(Operation.objects.values_list("pk", flat=True)) == ["bad"]
    assert sorted(PrunedOperation.objects.values_list("pk", flat=True)) == ["good-1", "good-2"]
    (heads,) = verified(tmp_path).values()
    assert sorted(heads) == ["good-1", "good-2"]


def test_a_batch_of_broken_chains_leaves_no_file(site, tmp_path):
    ended(site, "bad")
    BREAKS["a gap"]()
    assert run(tmp_path)[0] == 1
    assert list(tmp_path.iterdir()) == []


def test_a_chain_that_goes_on_with_good_entries_after_its_head_is_broken(site, tmp_path):
    """Only under the row's lock can this be told from an entry that was written meanwhile."""
    ended(site, "bad")
    head = Operation.objects.get().audit_head
    forge("bad", 3, prev=head, digest=seal(head, "bad", 3, "{}"))
    done = prune(terms(tmp_path))
    assert (done.operations, done.moved, list(done.broken)) == (0, 0, ["bad"])


@pytest.mark.parametrize("what", ["late evidence", "a question"])
def test_what_moves_while_it_is_proven_is_left_to_the_next_run(site, tmp_path, monkeypatch, what):
    ended(site, "moved", "still")
    prove = module.prove

    def meanwhile(*arguments, **named):
        proof = prove(*arguments, **named)
        if what == "a question":
            question("moved", decided=False)
        else:
            site.runtime.store.note("moved", {"event": "late"})
        return proof

    monkeypatch.setattr(module, "prove", meanwhile)
    done = prune(terms(tmp_path))
    assert (done.operations, done.moved, done.clean) == (1, 1, True)
    assert whole_or_proven(tmp_path, "moved", "still") == ["still"]
    monkeypatch.undo()
    Escalation.objects.update(decided_at=DatabaseNow(), open_advisory=None)
    assert prune(terms(tmp_path)).operations == 1
    assert whole_or_proven(tmp_path, "moved", "still") == ["moved", "still"]


def test_what_a_row_of_the_site_holds_on_to_stays(site, tmp_path, monkeypatch):
    """A foreign key of the site that protects, or that the database guards alone."""
    ids = [f"op-{number}" for number in range(5)]
    ended(site, *ids)
    delete = module._delete

    def guarded(batch, keys):
        delete(batch, keys)
        if "op-3" in keys:
            raise IntegrityError("update or delete on table violates foreign key constraint")

    monkeypatch.setattr(module, "_delete", guarded)
    code, _, err = run(tmp_path)
    assert (code, "op-3: a row of this site" in err) == (1, True)
    assert whole_or_proven(tmp_path, *ids) == ["op-0", "op-1", "op-2", "op-4"]


def test_a_proof_is_signed_with_the_key_of_the_settings(site, tmp_path, settings, monkeypatch):
    """INV-37; `jobtrack verify-audit` needs the file and the key only."""
    monkeypatch.setenv("AUDIT_CANARY", "k3y")
    settings.JOBTRACK = {"AUDIT_KEY": "env:AUDIT_CANARY"}
    with wiring.use_runtime(site.runtime):  # other settings make a process forget its runtime
        ended(site, "op-1")
    code, _, err = run(tmp_path)
    assert (code, err) == (0, "")
    (proof,) = tmp_path.iterdir()
    told = CliRunner().invoke(cli, ["verify-audit", str(proof), "--key", "env:AUDIT_CANARY"])
    assert (told.exit_code, verified(tmp_path, key=b"k3y") != {}) == (0, True)


def test_a_key_that_leads_nowhere_ends_it_before_anything(site, tmp_path, settings):
    ended(site, "op-1")
    settings.JOBTRACK = {"AUDIT_KEY": "env:JOBTRACK_NO_SUCH_KEY"}
    code, _, err = run(tmp_path)
    assert (code != 0, "AUDIT_KEY" in err, list(tmp_path.iterdir())) == (True, True, [])


class Sulking(InMemoryStorage):
    """A storage that does not delete at first."""

    sulks = True

    def delete(self, name):
        if self.sulks:
            raise OSError("not today")
        super().delete(name)


def test_files_go_with_their_operations_only_if_asked_and_after_the_commit(site, tmp_path, monkeypatch):
    """What the storage did not delete stays listed, and the next run tries again."""
    storage = Sulking()
    monkeypatch.setattr("jobtrack_django.prune_files.result_storage", lambda: storage)
    for each in ("op-1", "op-2"):
        ended(site, each)
        path = storage.save(f"{each}.csv", ContentFile(b"rows"))
        files = [{"name": "a", "path": path, "size": 4, "complete": True}, {"name": "b", "path": "spooled", "size": 1}]
        JobResult.objects.create(operation_id=each, state="complete", files=files)
    age(-50, "op-2")
    assert prune(terms(tmp_path)).operations == 1
    assert storage.exists("op-1.csv")
    age(50, "op-2")
    code, _, err = run(tmp_path, "--delete-files")
    assert (code, "1 result files could not be deleted" in err) == (1, True)
    storage.sulks = False
    code, out, _ = run(tmp_path, "--delete-files")
    assert (code, "result files: 1" in out) == (0, True)
    assert (storage.exists("op-1.csv"), storage.exists("op-2.csv")) == (True, False)
    assert list(tmp_path.glob("*.files*")) == []
