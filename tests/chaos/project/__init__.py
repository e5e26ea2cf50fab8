"""A small Django project as a user would write it; chaos tests run its processes and end them at bad moments."""

from tests.chaos.project.celery import app as celery_app

__all__ = ["celery_app"]
