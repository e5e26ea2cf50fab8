"""Reports in the admin, to be read: a question about an export then names and links the report that it is for."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from example_project.reports.models import Report


@admin.register(Report)
class ReportAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    list_display = ("name", "requested_by", "requested_at", "rows")
    list_select_related = ("requested_by",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Report | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Report | None = None) -> bool:
        return False
