"""URLs for ``include("jobtrack_django.urls")``."""

from __future__ import annotations

from django.urls import path

from jobtrack_django import webhooks
from jobtrack_django.views import OutcomeView
from jobtrack_django.views_progress import ProgressView

app_name = "jobtrack"

urlpatterns = [
    path("operations/<path:operation_id>/outcome/", OutcomeView.as_view(), name="outcome"),
    path("operations/<path:operation_id>/progress/", ProgressView.as_view(), name="progress"),
    path("webhooks/<str:provider>/<str:account>/", webhooks.notice, name="webhook"),
    path("webhooks/<str:provider>/<str:account>/<str:token>/", webhooks.notice, name="webhook-token"),
    # Without the slash as well: Django would log the address that was missed, and it may end with a token.
    path("webhooks/<str:provider>/<str:account>", webhooks.notice),
    path("webhooks/<str:provider>/<str:account>/<str:token>", webhooks.notice),
]
