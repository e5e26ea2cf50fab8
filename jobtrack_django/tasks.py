"""Where ``app.autodiscover_tasks()`` looks: the tasks of jobtrack."""

from jobtrack.worker.tasks import deliver, poll, report_conflict, sweep, wake

__all__ = ["deliver", "poll", "report_conflict", "sweep", "wake"]
