"""The admin: operations to read, escalations to decide.

``JOBTRACK["ADMIN"] = False`` registers nothing; register the classes with a site of your own then.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin

from jobtrack_django import conf
from jobtrack_django.admin.escalations import EscalationAdmin
from jobtrack_django.admin.operations import OperationAdmin
from jobtrack_django.models import Escalation, Operation

__all__ = ["EscalationAdmin", "OperationAdmin", "register"]


def register(site: admin.AdminSite) -> None:
    """Register both classes with ``site``."""
    site.register(Operation, OperationAdmin)
    site.register(Escalation, EscalationAdmin)


# Mistakes in the setting are for `manage.py check` to tell; they must not keep the site from starting.
if conf.read(getattr(settings, conf.NAME, {}))[0].admin:
    register(admin.site)
