"""Rows beside the operations: gates of accounts, results, and receipts of what must count once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobtrack import records
from jobtrack.core.gate import GateState, HoldReason
from jobtrack_django.fields import IdentityField
from jobtrack_django.storable import columns, identity


class AccountGate(models.Model):
    """What holds back every operation of one provider account."""

    id = models.BigAutoField(primary_key=True)
    provider = IdentityField(max_length=100)
    account = IdentityField(max_length=100)
    reason = models.CharField(max_length=20, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    streak = models.PositiveIntegerField(default=0)
    probe = IdentityField(max_length=200, blank=True)
    version = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["provider", "account"], name="jobtrack_one_gate"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.account}"

    def to_core(self) -> GateState:
        """The row as a frozen record."""
        return GateState(
            reason=HoldReason(self.reason),
            held_until=self.held_until,
            streak=self.streak,
            probe=self.probe,
            version=self.version,
        )


class JobResult(models.Model):
    """What was fetched of a successful job (R-END-4)."""

    operation = models.OneToOneField("Operation", primary_key=True, on_delete=models.PROTECT, related_name="result")
    state = models.CharField(max_length=20)
    files = models.JSONField(default=list, blank=True)
    reads = models.PositiveIntegerField(default=0)
    detail = models.TextField(blank=True)
    link = models.TextField(blank=True)
    fetched_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("result")
        verbose_name_plural = _("results")

    def __str__(self) -> str:
        return gettext("Result of operation %(operation)s") % {"operation": self.operation_id}

    def to_core(self) -> records.JobResult:
        """The row as a frozen record."""
        return records.JobResult(
            operation_id=self.operation_id,
            state=records.ResultState(self.state),
            files=tuple(records.ResultFile(**each) for each in self.files),
            reads=self.reads,
            detail=self.detail,
            link=self.link,
            fetched_at=self.fetched_at,
        )

    @classmethod
    def from_core(cls, result: records.JobResult) -> dict[str, Any]:
        """The record as column values, without its key."""
        values = {name: getattr(result, name) for name in ("reads", "detail", "link", "fetched_at")}
        return columns(cls, {**values, "state": result.state.value, "files": [asdict(each) for each in result.files]})


class WebhookReceipt(models.Model):
    """A verified notice of a provider, once (R-SEC-3)."""

    id = models.BigAutoField(primary_key=True)
    provider = IdentityField(max_length=100)
    account = IdentityField(max_length=100)
    notice_id = IdentityField(max_length=200)
    job_id = IdentityField(max_length=500, blank=True)
    operation_id = IdentityField(max_length=200, blank=True)  # as the notice says: no such row need exist
    received_at = models.DateTimeField()

    class Meta:
        verbose_name = _("webhook receipt")
        verbose_name_plural = _("webhook receipts")
        indexes: ClassVar = [
            models.Index(fields=["job_id"], name="jobtrack_receipt_job"),
            models.Index(fields=["operation_id"], name="jobtrack_receipt_operation"),
            models.Index(fields=["received_at"], name="jobtrack_receipt_received"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["provider", "account", "notice_id"], name="jobtrack_one_receipt"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.account} {self.notice_id}"

    def to_core(self) -> records.Receipt:
        """The row as a frozen record."""
        return records.Receipt(
            **{name: getattr(self, name) for name in ("provider", "account", "notice_id", "job_id", "operation_id")}
        )

    @classmethod
    def from_core(cls, receipt: records.Receipt) -> dict[str, str]:
        """The record as column values. Texts that no column keeps as they are become digests."""
        return {name: identity(cls, name, text) for name, text in asdict(receipt).items()}


class FollowUpReceipt(models.Model):
    """The effect of one delivery happened: written by its handler, in the very transaction of the effect (R-END-2)."""

    key = IdentityField(primary_key=True, max_length=241)  # id of the delivery
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.key
