"""Start a report: the one place where the site and jobtrack meet."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from example_project import acme
from example_project.reports.models import Report
from example_project.scenarios import Scenario
from jobtrack_django import track


def export(user: User, name: str, scenario: Scenario) -> Report:
    """Start an export at the provider and have it followed to its end.

    Raises:
        example_project.acme.NotStarted: the provider did not accept it.
    """
    job_id = acme.start_export(scenario.name)
    with transaction.atomic():
        report = Report(name=name, scenario=scenario.name, requested_by=user)
        report.save()
        track(
            acme.TABLE,
            job_id=job_id,
            account=scenario.account,
            subject=report,
            on_success="example_project.reports.followups.store",
            deadline=scenario.deadline,
            transport_failures=scenario.transport_failures,
            rate_limited=scenario.rate_limited,
        )
    return report
