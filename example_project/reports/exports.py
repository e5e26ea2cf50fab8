"""Order a report, and stop one: what the views do with jobtrack."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from example_project.reports.models import Report
from example_project.scenarios import Scenario
from jobtrack_django import cancel, submit
from jobtrack_django.models import Operation


def order(user: User, name: str, scenario: Scenario, *, ticket: UUID) -> Report:
    """Write down the report and the export that is to make it; a worker submits it after the commit.

    Args:
        user: who wants it.
        name: of the report.
        scenario: how the simulated provider shall behave.
        ticket: of the filled-in form. The same ticket is the same report, and the same export, however often it
            comes.
    """
    with transaction.atomic():
        report: Report
        report, _ = Report.objects.get_or_create(
            ticket=ticket, defaults={"name": name, "scenario": scenario.name, "requested_by": user}
        )
        submit(
            scenario.table,
            operation_id=f"report-{ticket}",
            payload={"scenario": scenario.script},
            subject=report,
            on_success="example_project.reports.followups.store",
            account=scenario.account,
            deadline=scenario.deadline,
            transport_failures=scenario.transport_failures,
            rate_limited=scenario.rate_limited,
        )
    return report


def order_otherwise(report: Report, scenario: Scenario) -> None:
    """Submit other content under the operation id of a report: nothing of it is sent, and a person is asked (R-ID-4).

    Raises:
        jobtrack.errors.IdempotencyConflict: always.
    """
    submit(
        scenario.table,
        operation_id=f"report-{report.ticket}",
        payload={"scenario": scenario.script, "columns": ["amount"]},
        account=scenario.account,
    )


def stop(operation: Operation, user: User) -> None:
    """Ask ACME to cancel an export.

    Raises:
        jobtrack.errors.UsageError: it cannot be cancelled; the message can be shown.
    """
    cancel(operation, actor=user.get_username(), reason="The button on the page of the report.")
