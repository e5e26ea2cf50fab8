"""Where ``app.autodiscover_tasks()`` looks: the tasks of jobtrack."""

from jobtrack.worker.tasks import deliver, poll, sweep

__all__ = ["deliver", "poll", "sweep"]
