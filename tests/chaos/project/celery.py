"""The Celery app, written as Celery's guide for Django says. jobtrack asks for nothing more."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.chaos.project.settings")

app = Celery("chaos")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
