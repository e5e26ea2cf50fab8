"""One page that starts to follow a job, as in the tutorial."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from jobtrack_django import track


def start(request: HttpRequest, job: str) -> HttpResponse:
    operation = track("chaos", job_id=job)
    return HttpResponse(operation.state, status=202)


urlpatterns = [path("start/<str:job>", start)]
