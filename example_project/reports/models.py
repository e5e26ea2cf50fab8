"""What the site itself knows about a report. How the provider's job stands is jobtrack's business."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.urls import reverse

from jobtrack_django.models import Operation


class ReportQuerySet(models.QuerySet["Report"]):
    def visible_to(self, user: User) -> ReportQuerySet:
        """A person sees their own reports, staff sees all."""
        return self if user.is_staff else self.filter(requested_by=user)

    def with_operations(self) -> list[tuple[Report, Operation | None]]:
        """Each with the export that makes it: two queries for any number of reports."""
        reports = list(self)
        kind = ContentType.objects.get_for_model(Report)
        found = Operation.objects.filter(content_type=kind, object_id__in=[str(report.pk) for report in reports])
        newest = {operation.object_id: operation for operation in found.order_by("created_at")}
        return [(report, newest.get(str(report.pk))) for report in reports]


class Report(models.Model):
    """A report somebody asked for."""

    ticket = models.UUIDField(unique=True)  # of the form that asked for it
    name = models.CharField(max_length=80)
    scenario = models.CharField(max_length=20)  # how the simulated provider shall behave
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    requested_at = models.DateTimeField(auto_now_add=True)
    rows = models.PositiveIntegerField(null=True, editable=False)  # None: the follow-up has not run
    stored_at = models.DateTimeField(null=True, editable=False)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("reports:progress", args=[self.pk])

    @property
    def operation(self) -> Operation | None:
        """The export that makes it."""
        return Operation.objects.for_object(self).order_by("created_at").last()
