"""The admin: operations to read, escalations to decide.

``JOBTRACK["ADMIN"] = False`` registers nothing; register the classes with a site of your own then.
"""

from __future__ import annotations

from django.contrib import admin

from jobtrack_django.admin.base import lenient_settings
from jobtrack_django.admin.batches import DecisionBatchAdmin
from jobtrack_django.admin.dashboard import DashboardAdmin
from jobtrack_django.admin.escalations import EscalationAdmin
from jobtrack_django.admin.front import put_first
from jobtrack_django.admin.notices import NoticeAdmin
from jobtrack_django.admin.operations import OperationAdmin
from jobtrack_django.admin.rows_beside import JobResultAdmin, WebhookReceiptAdmin
from jobtrack_django.models import Dashboard, DecisionBatch, Escalation, JobResult, Notice, Operation, WebhookReceipt

__all__ = [
    "DecisionBatchAdmin",
    "EscalationAdmin",
    "JobResultAdmin",
    "NoticeAdmin",
    "OperationAdmin",
    "WebhookReceiptAdmin",
    "register",
]


def register(site: admin.AdminSite) -> None:
    """Register all classes with ``site``, and have "Needs decision" come first."""
    site.register(Operation, OperationAdmin)
    site.register(Escalation, EscalationAdmin)
    site.register(DecisionBatch, DecisionBatchAdmin)
    site.register(Notice, NoticeAdmin)
    site.register(Dashboard, DashboardAdmin)
    site.register(JobResult, JobResultAdmin)
    site.register(WebhookReceipt, WebhookReceiptAdmin)
    put_first(site)


if lenient_settings().admin:
    register(admin.site)
