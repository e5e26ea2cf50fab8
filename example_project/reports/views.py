"""The pages, what their buttons do, and the outcome as JSON. Looking at them asks the provider nothing (R-CALL-2)."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from example_project.reports.exports import order, stop
from example_project.reports.forms import ExportForm
from example_project.reports.models import Report
from example_project.scenarios import BY_NAME
from jobtrack.errors import UsageError
from jobtrack_django import cancel_effect, fetch_result
from jobtrack_django.models import Operation
from jobtrack_django.views import OutcomeView
from jobtrack_django.views_progress import ProgressView

LISTED = 50


class Request(HttpRequest):
    """A request of somebody who has logged in: the middleware lets no other through."""

    user: User


def _report(request: Request, pk: int) -> Report:
    return get_object_or_404(Report.objects.visible_to(request.user), pk=pk)


@require_GET
def report_list(request: Request) -> HttpResponse:
    reports = Report.objects.visible_to(request.user).select_related("requested_by")[:LISTED]
    return render(request, "reports/list.html", {"rows": reports.with_operations()})


@require_http_methods(["GET", "POST"])
def export(request: Request) -> HttpResponse:
    form = ExportForm(request.POST or None)
    if form.is_valid():
        asked = form.cleaned_data
        report = order(request.user, asked["name"], BY_NAME[asked["scenario"]], ticket=asked["ticket"])
        messages.success(request, "The export is ordered.")
        return redirect(report)
    return render(request, "reports/export.html", {"form": form})


@require_POST
def cancel_export(request: Request, pk: int) -> HttpResponse:
    report = _report(request, pk)
    if report.operation is None:
        raise Http404
    try:
        stop(report.operation, request.user)
    except UsageError as error:
        messages.error(request, error.message)
    return redirect(report)


@require_GET
def file(request: Request, pk: int) -> FileResponse:
    """The file as ACME sent it: to be saved, never to be shown as a page of this site."""
    report = _report(request, pk)
    if report.operation is None or report.stored_at is None:
        raise Http404
    result = fetch_result(report.operation)  # it is complete: nothing is asked
    return FileResponse(result.open(), as_attachment=True, filename="report.csv", content_type="text/csv")


class ReportOutcome(OutcomeView):
    """How an export stands, for programs, and when to ask again."""

    def may_see(self, request: HttpRequest, operation: Operation) -> bool:
        user, report = request.user, operation.subject
        if not (isinstance(user, User) and isinstance(report, Report)):
            return False
        return Report.objects.visible_to(user).contains(report)

    def result_url(self, operation: Operation) -> str | None:
        """Where the file is, once the follow-up has stored it."""
        report = operation.subject
        stored = isinstance(report, Report) and report.stored_at is not None
        return reverse("reports:file", args=[operation.object_id]) if stored else None


class ReportProgress(ProgressView, ReportOutcome):
    """How an export stands, for the person who ordered it, with what this site adds to the box."""

    template_name = "reports/progress.html"
    box_template_name = "reports/box.html"

    def get_operation(self, *_: Any, **named: Any) -> Operation | None:
        user = self.request.user
        report = Report.objects.visible_to(user).filter(pk=named["pk"]).first() if isinstance(user, User) else None
        return self.find(report.operation.pk) if report and report.operation else None

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return {**context, "report": context["operation"].subject}

    def get_box_data(self, **context: Any) -> dict[str, Any]:
        operation, report = context["operation"], context["operation"].subject
        rows = "" if report.rows is None else f"{report.rows:,}"
        return {**context, "report": report, "rows": rows, "effect": cancel_effect(operation)}
