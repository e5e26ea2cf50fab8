"""Runs the scenarios through the site's own code and reads how they stand.

Django must be set up before this module is imported.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from threading import Barrier

from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection

from example_project.progress import Progress, Seen
from example_project.reports.exports import order, order_otherwise, stop
from example_project.reports.models import Report
from example_project.scenarios import SCENARIOS, Scenario
from jobtrack.core.operation import OperationState
from jobtrack.errors import IdempotencyConflict
from jobtrack_django.models import JobResult, Operation

LOGINS: Mapping[str, str | None] = {
    "ann": None,
    "viewer": "viewer",
    "operator": "operator",
    "lead": "lead",
    "admin": "superuser",
}
"""User name (and password) -> the role in the admin; None: a customer, who has no business there."""

PREFIX = "jobtrack "
"""Of the groups that `jobtrack_roles` makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One scenario under way."""

    scenario: Scenario
    report_id: int
    operation_id: str


def add_people() -> None:
    """The logins of the demo and the groups of its staff; each password is the name."""
    call_command("jobtrack_roles", prefix=PREFIX, verbosity=0, stdout=StringIO())
    see_reports = Permission.objects.get(codename="view_report", content_type__app_label="reports")
    for name, role in LOGINS.items():
        chief = role == "superuser"
        user = User.objects.create_user(name, password=name, is_staff=role is not None, is_superuser=chief)
        if role and not chief:
            user.groups.add(Group.objects.get(name=f"{PREFIX}{role}"))
            user.user_permissions.add(see_reports)  # a question then names the report that it is about


def count_figures() -> None:
    """What has ended counts on the dashboard at once; the worker's own count comes every few minutes."""
    call_command("jobtrack_figures", stdout=StringIO())


def start() -> list[Run]:
    """Order one report for each scenario, as Ann would on the page."""
    ann = User.objects.get(username="ann")
    return [_start(ann, scenario) for scenario in SCENARIOS]


def _start(user: User, scenario: Scenario) -> Run:
    ticket, together = uuid.uuid4(), Barrier(scenario.submitters)

    def submit() -> Report:
        together.wait(10)
        try:
            return order(user, scenario.title, scenario, ticket=ticket)
        finally:
            connection.close()  # this thread's own

    with ThreadPoolExecutor(scenario.submitters) as submitters:
        reports = [each.result() for each in [submitters.submit(submit) for _ in range(scenario.submitters)]]
    if scenario.conflict:
        with suppress(IdempotencyConflict):
            order_otherwise(reports[-1], scenario)
    operation = Operation.objects.for_object(reports[-1]).latest("created_at")
    return Run(scenario=scenario, report_id=reports[-1].pk, operation_id=operation.pk)


def press_buttons(runs: Sequence[Run], found: Sequence[Progress]) -> None:
    """Cancel what is to be cancelled, once ACME has said that it runs."""
    for run, progress in zip(runs, found, strict=True):
        if run.scenario.cancel and progress.said and not progress.cancel_state and not progress.settled:
            stop(Operation.objects.get(pk=run.operation_id), User.objects.get(username="ann"))


def look(runs: Sequence[Run]) -> list[Progress]:
    """How all of them stand."""
    ids = [run.operation_id for run in runs]
    operations = Operation.objects.prefetch_related("escalations").in_bulk(ids)
    rows = dict(Report.objects.values_list("pk", "rows"))
    reads = dict(JobResult.objects.filter(operation__in=ids).values_list("operation_id", "reads"))
    linked = list(Operation.objects.values_list("object_id", flat=True))
    return [
        _progress(
            run.scenario,
            operations[run.operation_id],
            rows=rows[run.report_id],
            reads=reads.get(run.operation_id, 0),
            operations=linked.count(str(run.report_id)),
        )
        for run in runs
    ]


def _progress(scenario: Scenario, operation: Operation, *, rows: int | None, reads: int, operations: int) -> Progress:
    questions = [question for question in operation.escalations.all() if question.decided_at is None]
    return Progress(
        scenario=scenario,
        operation_id=operation.pk,
        job_id=operation.job_id,
        state=OperationState(operation.state),
        requests=operation.spent_status_requests,
        allowed=operation.limit_status_requests,
        deadline=operation.deadline,
        submissions=operation.spent_submissions,
        lookups=operation.spent_lookups,
        reads=reads,
        operations=operations,
        asking=operation.lease_until is not None,
        wake_at=operation.wake_at,
        delay_source=operation.delay_source,
        said=operation.provider_state,
        doubt=operation.doubt,
        reasons=tuple(question.reason for question in questions),
        detail=questions[0].detail if questions else "",
        rows=rows,
        cancel_state=operation.cancel_state,
    )


def read_log(path: Path) -> list[Seen]:
    """The provider's own record of all requests."""
    return [json.loads(entry) for entry in path.read_text(encoding="utf-8").splitlines()]
