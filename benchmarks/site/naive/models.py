from django.db import models


class Job(models.Model):
    """The row such a task saves."""

    state = models.CharField(max_length=40, default="queued")
    polls = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"job {self.pk}"
