"""The Celery app of both contenders."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.site.settings")

app = Celery("benchmarks")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
