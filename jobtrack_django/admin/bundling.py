"""The support bundle of an operation as a download (R-AUDIT-4)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from jobtrack.worker.wiring import get_runtime
from jobtrack_django.admin.logged import log
from jobtrack_django.bundle import as_text, bundle
from jobtrack_django.models import Operation

if TYPE_CHECKING:
    from jobtrack_django.admin.operations import OperationAdmin

PERMISSION = "jobtrack.download_bundle"


def route(model_admin: OperationAdmin) -> URLPattern:
    """The address of the download."""

    def download(request: HttpRequest, object_id: str) -> HttpResponse:
        return _download(model_admin, request, object_id)

    view = model_admin.admin_site.admin_view(require_safe(download))
    return path("<path:object_id>/bundle/", view, name="jobtrack_operation_bundle")


def bundle_url(site: Any, request: HttpRequest, operation: Operation) -> str:
    """Where this person gets the bundle; "" if they may not have it."""
    if not site.is_registered(Operation) or not _may(site.get_model_admin(Operation), request, operation):
        return ""
    return reverse("admin:jobtrack_operation_bundle", args=[quote(operation.pk)], current_app=site.name)


def _may(model_admin: Any, request: HttpRequest, operation: Operation) -> bool:
    permitted = getattr(request.user, "has_perm", lambda _: False)(PERMISSION)
    return permitted and bool(model_admin.has_view_permission(request, operation))


def _download(model_admin: OperationAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    operation = model_admin.get_object(request, unquote(object_id))
    if operation is None:
        raise Http404
    if not _may(model_admin, request, operation):
        raise PermissionDenied
    made = as_text(bundle(get_runtime(), operation))
    if request.method == "GET":
        log(model_admin, request, operation, lambda: _("Support bundle downloaded."))
    name = f"jobtrack-{sha256(operation.pk.encode()).hexdigest()[:8]}.json"  # an id may name a customer
    return HttpResponse(
        made,
        content_type="application/json; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "X-Content-Type-Options": "nosniff",
        },
    )
