"""Runs the scenarios through the site's own code and reads how they stand.

Django must be set up before this module is imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.auth.models import User

from example_project.progress import Progress, Seen
from example_project.reports.exports import export
from example_project.reports.models import Report
from example_project.scenarios import SCENARIOS, Scenario
from jobtrack.core.operation import OperationState
from jobtrack_django.models import Operation

LOGINS: Mapping[str, bool] = {"admin": True, "ann": False}
"""User name (and password) -> whether that person may decide in the admin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One scenario under way."""

    scenario: Scenario
    report_id: int
    operation_id: str


def add_people() -> None:
    """The logins of the demo; each password is the name."""
    for name, staff in LOGINS.items():
        User.objects.create_user(name, password=name, is_staff=staff, is_superuser=staff)


def start() -> list[Run]:
    """Export one report for each scenario, as Ann would on the page.

    Raises:
        example_project.acme.NotStarted: the provider does not accept them.
    """
    ann = User.objects.get(username="ann")
    return [_start(ann, scenario) for scenario in SCENARIOS]


def _start(user: User, scenario: Scenario) -> Run:
    report = export(user, scenario.title, scenario)
    operation = Operation.objects.for_object(report).get()
    return Run(scenario=scenario, report_id=report.pk, operation_id=operation.pk)


def look(runs: Sequence[Run]) -> list[Progress]:
    """How all of them stand."""
    operations = Operation.objects.prefetch_related("escalations").in_bulk([run.operation_id for run in runs])
    rows = dict(Report.objects.values_list("pk", "rows"))
    return [_progress(run.scenario, operations[run.operation_id], rows[run.report_id]) for run in runs]


def _progress(scenario: Scenario, operation: Operation, rows: int | None) -> Progress:
    questions = [question for question in operation.escalations.all() if question.decided_at is None]
    return Progress(
        scenario=scenario,
        job_id=operation.job_id,
        state=OperationState(operation.state),
        requests=operation.spent_status_requests,
        allowed=operation.limit_status_requests,
        deadline=operation.deadline,
        asking=operation.lease_until is not None,
        wake_at=operation.wake_at,
        delay_source=operation.delay_source,
        said=operation.provider_state,
        reasons=tuple(question.reason for question in questions),
        detail=questions[0].detail if questions else "",
        rows=rows,
    )


def read_log(path: Path) -> list[Seen]:
    """The provider's own record of the status requests."""
    entries = [json.loads(entry) for entry in path.read_text(encoding="utf-8").splitlines()]
    return [entry for entry in entries if entry["method"] == "GET" and entry["job"]]
