"""The people of the site, and the questions of one night: made by real operations whose provider is scripted."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command

from example_project import acme
from example_project.reports.models import Report
from jobtrack.core.escalation import Option, Reason
from jobtrack.testing.provider import Script
from jobtrack_django import submit, track
from jobtrack_django.models import Escalation
from jobtrack_django.testing import Rehearsal, answer, makes, no_answer

NIGHT = datetime(2026, 11, 20, 2, 10, tzinfo=UTC)
"""When the first of the questions comes up."""

USER, OPERATOR, SECOND, LEAD = "ann", "olga", "omar", "lee"


_ROLES = {OPERATOR: "operator", SECOND: "operator", LEAD: "lead"}


def hire() -> None:
    """The people; each password is the name."""
    User.objects.create_user(USER, password=USER)
    call_command("jobtrack_roles", stdout=StringIO())
    for name, role in _ROLES.items():
        person = User.objects.create_user(name, password=name, is_staff=True)
        person.groups.add(Group.objects.get(name__endswith=role))
        person.user_permissions.add(Permission.objects.get(codename="view_report", content_type__app_label="reports"))


def says(state: str, job: str, **members: object) -> Script:
    """A status answer of ACME."""
    return answer(json={"id": job, "status": state, **members})


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One report of the night, and what the provider says about its export."""

    number: int
    reason: Reason
    report: str
    replies: tuple[Script, ...] = ()  # to the status requests; none: the answer to the submission is lost
    account: str = "default"
    minutes: int = 6  # from its start to the next one
    unnamed: bool = False  # the site gives the operation no id of its own, so that it has a long one

    @property
    def operation_id(self) -> str:
        return str(uuid.UUID(int=(0x019AB3C4 << 96) + self.number)) if self.unnamed else f"report-{4710 + self.number}"

    @property
    def job_id(self) -> str:
        return f"exp_{8410 + self.number}"


def case(number: int, reason: Reason, report: str, *states: str | Script, **more: Any) -> Case:
    """The provider's replies, written as states or as answers of their own."""
    job_id = Case(number=number, reason=reason, report=report).job_id
    replies = tuple(says(each, job_id) if isinstance(each, str) else each for each in states)
    return Case(number=number, reason=reason, report=report, replies=replies, **more)


_DENIED = answer(401, json={"error": {"message": "This token was revoked."}})
_TOO_MANY = answer(429, json={"error": {"message": "Too many requests."}})
_PAGE = answer(text="<!doctype html><title>ACME</title><h1>Welcome back!</h1>", headers={"Content-Type": "text/html"})
_FAILED = says("failed", "exp_8414", error={"message": "Column 'amount' does not exist."})
_LOST = makes("exp_8418", replace(no_answer(), detail="no answer within 5 seconds"))

_R = Reason
PAUSED = case(2, _R.UNKNOWN_STATE, "Invoices of November", "queued", "running", "paused")
LOST = case(8, _R.SUBMISSION_UNKNOWN, "Credit notes of November")
CASES: tuple[Case, ...] = (
    case(1, _R.DEADLINE_EXCEEDED, "Payroll of October", "queued", "running", minutes=17),
    PAUSED,
    case(3, _R.AUTHORIZATION_DENIED, "Customers, changed this week", "running", _DENIED, account="locked"),
    case(4, _R.PROVIDER_FAILURE, "Refunds by country", "running", _FAILED),
    case(5, _R.INVALID_RESULT, "Stock at month end", "running", "succeeded"),
    case(6, _R.RATE_LIMITED, "Orders since Monday", _TOO_MANY, account="crowded", minutes=16),
    case(7, _R.INVALID_RESPONSE, "Supplier addresses", "running", _PAGE),
    LOST,
)
"""Eight questions, in the order in which they come up."""


RUNNING = case(9, _R.UNKNOWN_STATE, "Invoices of November", says("running", "exp_8419", progress="40 %"))
"""A report that is being made, without any question."""


def ask(night: Rehearsal, *cases: Case) -> list[Escalation]:
    """Let the reports of ``cases`` be made, one after the other; returns the questions they end up with."""
    asked = []
    for each in cases:
        start(night, each)
        night.run_due(until=timedelta(minutes=each.minutes), raise_failures=False)
        asked.append(Escalation.objects.get(operation_id=each.operation_id, reason=each.reason))
    return asked


def start(night: Rehearsal, case: Case) -> None:
    ann = User.objects.get(username=USER)
    report = Report.objects.create(
        pk=case.number,
        ticket=uuid.UUID(int=case.number),
        name=case.report,
        scenario="success",
        requested_by=ann,
    )
    shared: dict[str, Any] = {"operation_id": case.operation_id, "subject": report, "account": case.account}
    if case.replies:
        night.provider.script(case.job_id, *case.replies)
        track(acme.TABLE, job_id=case.job_id, **shared)
    else:
        night.provider.on("POST", "/v1/exports", _LOST)
        submit(acme.BARE, payload={"scenario": "success"}, **shared)


ENDS = ("succeeded", "succeeded", "succeeded", "succeeded", "failed", "succeeded", "succeeded", "canceled", "succeeded")
"""How exports of the past have ended, in turns."""


def finish(night: Rehearsal, number: int) -> None:
    """An export of the past, from its start to its end; where it ended badly, somebody has taken note."""
    job_id, end = f"exp_{5000 + number}", ENDS[number % len(ENDS)]
    result = {"result": {"url": f"https://files.acme.example/{job_id}.csv", "rows": 1204}} if end == "succeeded" else {}
    night.provider.script(job_id, says("queued", job_id), says("running", job_id), says(end, job_id, **result))
    operation = track(acme.TABLE, job_id=job_id, operation_id=f"export-{number}")
    night.run_due(until=timedelta(minutes=20), raise_failures=False)
    if end != "succeeded":
        night.decide(operation, Option.CLOSE, actor=OPERATOR, reason="The person who ordered it knows.")
