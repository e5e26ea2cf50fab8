"""Polls without budgets, leases, audit, or a word for a state nobody knew."""

from typing import Any

import httpx
from celery import Task, shared_task
from django.conf import settings

from benchmarks.site.naive.models import Job


@shared_task(bind=True, max_retries=None)
def poll(self: Task, job_id: int) -> None:
    """One look; the next one a second later."""
    job = Job.objects.get(pk=job_id)
    answer: Any = httpx.get(f"http://127.0.0.1:{settings.PORT}/jobs/{job_id}").json()
    job.state, job.polls = answer["status"], job.polls + 1
    job.save()
    if job.state == "running":
        raise self.retry(countdown=1)
