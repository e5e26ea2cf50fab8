"""Parks operations on one contender: ``python -m benchmarks.site.load {jobtrack,naive} COUNT``."""

import os
import sys

import django


def jobtrack(count: int) -> None:
    from jobtrack_django import track_many

    track_many("bench", [{"job_id": f"job-{n}"} for n in range(count)])


def naive(count: int) -> None:
    from benchmarks.site.naive.models import Job
    from benchmarks.site.naive.tasks import poll

    for job in Job.objects.bulk_create([Job() for _ in range(count)]):
        poll.delay(job.pk)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.site.settings")
    django.setup()
    import benchmarks.site.celery  # noqa: F401 - the app must be the current one before anything is published

    {"jobtrack": jobtrack, "naive": naive}[sys.argv[1]](int(sys.argv[2]))
