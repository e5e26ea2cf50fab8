"""What happens once a report is ready. jobtrack's worker calls it, at least once, after the success is stored."""

from __future__ import annotations

from django.utils import timezone

from example_project.reports.models import Report
from jobtrack_django.models import Operation


def store(operation: Operation) -> None:
    """Write the number of rows on the report.

    The call may be repeated after a crash. Writing only where nothing is written makes the second one harmless.
    """
    Report.objects.filter(pk=operation.object_id, stored_at=None).update(
        rows=int(operation.kept["rows"]), stored_at=timezone.now()
    )
