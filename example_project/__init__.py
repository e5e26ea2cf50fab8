"""A small real site that uses jobtrack: people export reports from a provider and watch them come.

``python -m example_project.demo`` starts everything it needs.
"""

from example_project.celery import app as celery_app

__all__ = ["celery_app"]
