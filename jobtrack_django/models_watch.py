"""What is kept for watching: figures of each day, signs of life, and what remains of pruned operations."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from jobtrack_django.fields import IdentityField


class DailyFigure(models.Model):
    """One measure of one provider on one day (UTC), so that no page has to count operations (R-METRIC)."""

    id = models.BigAutoField(primary_key=True)
    day = models.DateField()
    provider = IdentityField(max_length=100, blank=True)  # "": of the site as a whole
    measure = models.CharField(max_length=80)  # as ``figures`` names it, for example "ended:succeeded"
    count = models.BigIntegerField(default=0)
    total = models.FloatField(null=True, blank=True)  # sum of what was measured, in its unit; null: only counted
    measured_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["day", "provider", "measure"], name="jobtrack_one_figure"),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.provider} {self.measure}: {self.count}"


class Dashboard(DailyFigure):
    """Stands for the dashboard in the admin, which lists pages by their models. It has no rows of its own."""

    class Meta:
        proxy = True
        default_permissions = ()  # who may see operations may see it
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")


class Heartbeat(models.Model):
    """A process that sweeps or works said that it is alive."""

    name = IdentityField(primary_key=True, max_length=200)  # "<kind>:<host>:<pid>"
    kind = models.CharField(max_length=20)  # "sweeper" or "worker"
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["seen_at"], name="jobtrack_heartbeat_seen")]

    def __str__(self) -> str:
        return self.name


class PrunedOperation(models.Model):
    """What remains of an operation whose rows were removed: its id stays taken, and where its proof is.

    Written in the transaction that removes the rows. On PostgreSQL the database lets audit entries go only if this
    row names the head of their chain (INV-40).
    """

    operation_id = IdentityField(primary_key=True, max_length=200)
    provider = IdentityField(max_length=100)
    account = IdentityField(max_length=100)
    state = models.CharField(max_length=20)
    ended_at = models.DateTimeField(null=True)
    audit_seq = models.PositiveIntegerField()
    audit_head = models.CharField(max_length=64)
    proof = models.CharField(max_length=255)  # name of the export file that holds its chain
    pruned_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.operation_id
