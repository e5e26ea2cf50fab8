"""Three pages and a JSON view. Looking at them asks the provider nothing (R-CALL-2)."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from example_project.acme import NotStarted
from example_project.reports.exports import export as start
from example_project.reports.forms import ExportForm
from example_project.reports.models import Report
from example_project.reports.standing import Standing, standing, standings
from example_project.scenarios import BY_NAME

LISTED = 50


class Request(HttpRequest):
    """A request of somebody who has logged in: the middleware lets no other through."""

    user: User


def _standing(request: Request, pk: int) -> Standing:
    return standing(get_object_or_404(Report.objects.visible_to(request.user), pk=pk))


@require_GET
def report_list(request: Request) -> HttpResponse:
    reports = Report.objects.visible_to(request.user).select_related("requested_by")[:LISTED]
    return render(request, "reports/list.html", {"standings": standings(reports)})


@require_http_methods(["GET", "POST"])
def export(request: Request) -> HttpResponse:
    form = ExportForm(request.POST or None)
    if form.is_valid():
        try:
            report = start(request.user, form.cleaned_data["name"], BY_NAME[form.cleaned_data["scenario"]])
        except NotStarted as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, "ACME has accepted the export.")
            return redirect(report)
    return render(request, "reports/export.html", {"form": form})


@never_cache
@require_GET
def progress(request: Request, pk: int) -> HttpResponse:
    return render(request, "reports/progress.html", {"standing": _standing(request, pk)})


@never_cache
@require_GET
def status(request: Request, pk: int) -> JsonResponse:
    """How it stands, and in ``Retry-After`` when to ask again; without one nothing is going to change."""
    found = _standing(request, pk)
    response = JsonResponse({"outcome": found.outcome, "shown": found.shown})
    if found.retry_after_s is not None:
        response.headers["Retry-After"] = str(found.retry_after_s)
    return response
