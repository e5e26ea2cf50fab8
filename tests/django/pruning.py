"""Operations that ended long ago, for the tests of pruning."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from django.db.models import DateTimeField, ExpressionWrapper, F

from jobtrack.core.audit import verify
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer
from jobtrack_django import track_many
from jobtrack_django.models import AuditEntry, Operation, PrunedOperation

OLD = timedelta(days=90)


def ended(site, *ids, days=100, **more):
    """Operations that succeeded so many days ago."""
    track_many("acme", [{"job_id": f"job-{each}", "operation_id": each, **more} for each in ids])
    for each in ids:
        site.provider.script(f"job-{each}", answer(json={"status": "succeeded"}))
    site.make_due(*ids)
    for each in ids:
        poll(site.runtime, [each])
    age(days, *ids)


def age(days, *ids):
    earlier = ExpressionWrapper(F("ended_at") - timedelta(days=days), output_field=DateTimeField())
    assert Operation.objects.filter(pk__in=ids).update(ended_at=earlier) == len(ids)


def heads_of(*ids):
    """What the rows say their chains end with."""
    rows = Operation.objects.filter(pk__in=ids)
    return {row.pk: (row.audit_seq, row.audit_head) for row in rows}


def verified(folder: Path, *, key=None):
    """Heads of each proof by its name. Every one of them must verify."""
    reports = {
        path.name: verify(path.read_text(encoding="utf-8").splitlines(), key=key) for path in folder.glob("*.jsonl")
    }
    assert [fault for report in reports.values() for fault in report.faults] == []
    return {name: dict(report.heads) for name, report in reports.items()}


def whole_or_proven(folder: Path, *ids):
    """Each operation is wholly there, or pruned with a proof that verifies and names its head. Returns the pruned."""
    proofs = verified(folder)
    pruned = {row.pk: row for row in PrunedOperation.objects.filter(pk__in=ids)}
    there = {row.pk: row for row in Operation.objects.filter(pk__in=ids)}
    assert sorted([*pruned, *there]) == sorted(ids)
    for key, row in there.items():
        assert AuditEntry.objects.filter(operation=key).count() == row.audit_seq
    for key, row in pruned.items():
        assert proofs[row.proof][key] == (row.audit_seq, row.audit_head)
        assert not AuditEntry.objects.filter(operation_id=key).exists()
    return sorted(pruned)
