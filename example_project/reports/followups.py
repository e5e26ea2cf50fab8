"""What happens once a report is ready. jobtrack's worker calls it, at least once, after the success is stored."""

from __future__ import annotations

from django.utils import timezone

from example_project.reports.models import Report
from jobtrack_django import fetch_result, once
from jobtrack_django.models import Operation


def store(operation: Operation) -> None:
    """Count the rows of the file and write the number on the report.

    ``fetch_result`` raises ``ResultNotReady`` until the file is complete. It goes through on purpose: the call is then
    repeated later. It may be repeated after a crash as well, and the receipt makes sure that the effect is not.
    """
    with fetch_result(operation).open() as file:
        rows = sum(1 for _ in file) - 1  # the first line has the names of the columns
    with once() as first:
        if first:
            Report.objects.filter(pk=operation.object_id).update(rows=rows, stored_at=timezone.now())
