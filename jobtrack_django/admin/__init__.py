"""The admin: operations to read, escalations to decide.

``JOBTRACK["ADMIN"] = False`` registers nothing; register the classes with a site of your own then.
"""

from __future__ import annotations

from django.contrib import admin

from jobtrack_django.admin.base import lenient_settings
from jobtrack_django.admin.escalations import EscalationAdmin
from jobtrack_django.admin.operations import OperationAdmin
from jobtrack_django.models import Escalation, Operation

__all__ = ["EscalationAdmin", "OperationAdmin", "register"]


def register(site: admin.AdminSite) -> None:
    """Register both classes with ``site``."""
    site.register(Operation, OperationAdmin)
    site.register(Escalation, EscalationAdmin)


if lenient_settings().admin:
    register(admin.site)
