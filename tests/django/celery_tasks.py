"""A Celery task as a follow-up."""

from __future__ import annotations

from celery import shared_task

notes: list[str] = []


@shared_task(name="tests.note")
def note(operation_id):
    """Keeps the id."""
    notes.append(operation_id)
