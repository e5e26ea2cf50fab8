"""The rows: columns, constraints, and translation to and from the records of ``jobtrack.core``.

Rules live in ``core`` and the statements in ``store``. Nothing here depends on settings or provider tables, so a
site's configuration can never ask for a migration.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from jobtrack.core import operation as core
from jobtrack_django import querysets
from jobtrack_django.fields import IdentityField
from jobtrack_django.models_beside import AccountGate, FollowUpReceipt, JobResult, WebhookReceipt
from jobtrack_django.models_questions import DecisionBatch, DecisionItem, Escalation, Notice
from jobtrack_django.models_watch import DailyFigure, Dashboard, Heartbeat, PrunedOperation
from jobtrack_django.storable import columns
from jobtrack_django.subject import SubjectKey

__all__ = [
    "AccountGate",
    "AuditEntry",
    "DailyFigure",
    "Dashboard",
    "DecisionBatch",
    "DecisionItem",
    "Delivery",
    "Escalation",
    "FollowUpReceipt",
    "Heartbeat",
    "JobResult",
    "Notice",
    "Operation",
    "PrunedOperation",
    "TableText",
    "WebhookReceipt",
]

_COUNTERS = ("status_requests", "transport_failures", "rate_limited", "extensions", "submissions", "lookups")

# Fields of the core record whose column has the same name and the same value.
_SAME = (
    *("id", "provider", "account", "job_id", "created_at", "accepted_at", "params", "status_url", "cause", "fence"),
    *("wake_at", "not_before", "wake_until", "delay_source", "provider_state", "provider_state_since", "observed_at"),
    *("last_http", "progress", "error", "expires_at", "kept", "needed_by_told", "escalate_ends", "last_look"),
    *("look_until", "resumed_at", "missing_since", "revision", "table_digest", "audit_seq", "audit_head", "reference"),
    *(
        "on_success",
        "on_failure",
        "on_end",
        "predecessor",
        "idempotency_key",
        "fingerprint",
        "permits",
        "sealed",
        "submit_by",
    ),
    *("first_sent_at", "last_sent_at", "recover_until", "doubt", "doubt_http", "acceptance_seen", "evidence"),
    *("hint_floor", "hinted", "noticed_at", "cancel_state"),
)

# Columns of an operation that a caller may change at any time.
_CALLERS = frozenset({"content_type", "object_id", "reference"})


class Operation(models.Model):
    """One job at one provider. The row is the truth and the schedule."""

    id = IdentityField(primary_key=True, max_length=200)
    provider = IdentityField(max_length=100)
    account = IdentityField(max_length=100, default="default")
    job_id = IdentityField(max_length=500, blank=True)
    state = models.CharField(max_length=20)
    cause = models.CharField(max_length=40, blank=True)
    reference = IdentityField(max_length=200, blank=True)
    content_type = models.ForeignKey(
        ContentType,
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,  # the index below starts with it; each index costs two writes a look
        db_constraint=False,  # content types may live in another database than these rows
    )
    object_id = IdentityField(max_length=200, blank=True, editable=False)
    subject = SubjectKey("content_type", "object_id")
    params = models.JSONField(default=dict, blank=True)
    status_url = models.TextField(blank=True)
    created_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)

    deadline = models.DateTimeField()
    needed_by = models.DateTimeField(null=True, blank=True)
    needed_by_told = models.BooleanField(default=False)
    limit_status_requests = models.PositiveIntegerField()
    limit_transport_failures = models.PositiveIntegerField()
    limit_rate_limited = models.PositiveIntegerField()
    limit_extensions = models.PositiveIntegerField(default=0)
    limit_submissions = models.PositiveIntegerField(default=0)
    limit_lookups = models.PositiveIntegerField(default=0)
    spent_status_requests = models.PositiveIntegerField(default=0)
    spent_transport_failures = models.PositiveIntegerField(default=0)
    spent_rate_limited = models.PositiveIntegerField(default=0)
    spent_extensions = models.PositiveIntegerField(default=0)
    spent_submissions = models.PositiveIntegerField(default=0)
    spent_lookups = models.PositiveIntegerField(default=0)
    follow_for = models.DurationField(null=True, blank=True)
    last_look = models.BooleanField(default=False)
    look_until = models.DateTimeField(null=True, blank=True)
    resumed_at = models.DateTimeField(null=True, blank=True)

    fence = models.PositiveBigIntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_granted = models.BooleanField(default=False)  # the claim that took the lease may send a request
    wake_at = models.DateTimeField(null=True, blank=True)
    wake_until = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    delay_source = models.CharField(max_length=40, blank=True)

    provider_state = models.CharField(max_length=500, blank=True)
    provider_state_since = models.DateTimeField(null=True, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    last_http = models.PositiveSmallIntegerField(null=True, blank=True)
    progress = models.CharField(max_length=500, blank=True)
    error = models.TextField(blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    kept = models.JSONField(default=dict, blank=True)
    escalate_ends = models.BooleanField(default=True)
    missing_since = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=0)
    table_digest = models.CharField(max_length=64, blank=True)

    audit_seq = models.PositiveIntegerField(default=0)
    audit_head = models.CharField(max_length=64, blank=True)
    on_success = models.CharField(max_length=255, blank=True)
    on_failure = models.CharField(max_length=255, blank=True)
    on_end = models.CharField(max_length=255, blank=True)
    predecessor = IdentityField(max_length=200, blank=True)

    idempotency_key = IdentityField(max_length=200, blank=True)
    fingerprint = models.CharField(max_length=100, blank=True)
    permits = models.TextField(blank=True)
    sealed = models.TextField(blank=True, editable=False)  # ciphertext: never shown
    submit_by = models.DateTimeField(null=True, blank=True)
    first_sent_at = models.DateTimeField(null=True, blank=True)
    last_sent_at = models.DateTimeField(null=True, blank=True)
    recover_until = models.DateTimeField(null=True, blank=True)
    doubt = models.TextField(blank=True)
    doubt_http = models.PositiveSmallIntegerField(null=True, blank=True)
    acceptance_seen = models.BooleanField(default=False)
    evidence = models.JSONField(default=dict, blank=True)
    hint_floor = models.DateTimeField(null=True, blank=True)
    hinted = models.BooleanField(default=False)
    noticed_at = models.DateTimeField(null=True, blank=True)
    cancel_state = models.CharField(max_length=20, blank=True)

    # Of no flow: for figures and for pruning. An earlier release writes neither.
    ended_at = models.DateTimeField(null=True, blank=True)
    seen_within = models.DurationField(null=True, blank=True)  # between the look that saw the end and the one before

    objects = querysets.OperationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-created_at", "id"]
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        indexes: ClassVar = [
            models.Index(fields=["wake_at"], name="jobtrack_op_wake"),
            models.Index(fields=["state", "created_at"], name="jobtrack_op_state"),
            models.Index(fields=["provider", "created_at"], name="jobtrack_op_by_provider"),
            models.Index(fields=["job_id"], name="jobtrack_op_job"),
            models.Index(fields=["reference"], name="jobtrack_op_reference"),
            models.Index(fields=["content_type", "object_id"], name="jobtrack_op_subject"),
            models.Index(fields=["created_at"], name="jobtrack_op_created"),
            models.Index(fields=["ended_at"], name="jobtrack_op_ended"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(
                    state__in=[
                        *("ready", "submitting", "unconfirmed", "running", "escalated"),
                        *("succeeded", "failed", "cancelled", "expired", "abandoned"),
                    ]
                ),
                name="jobtrack_op_state_known",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["succeeded", "failed", "cancelled", "expired", "abandoned"])
                | Q(wake_at__isnull=True, lease_until__isnull=True),
                name="jobtrack_op_ended_rests",
            ),
            models.CheckConstraint(condition=Q(fence__gte=0), name="jobtrack_op_fence"),
            models.CheckConstraint(
                condition=Q(spent_status_requests__lte=F("limit_status_requests")), name="jobtrack_op_requests"
            ),
            models.CheckConstraint(
                condition=Q(spent_transport_failures__lte=F("limit_transport_failures")), name="jobtrack_op_failures"
            ),
            models.CheckConstraint(
                condition=Q(spent_rate_limited__lte=F("limit_rate_limited")), name="jobtrack_op_rate_limited"
            ),
            models.CheckConstraint(
                condition=Q(spent_extensions__lte=F("limit_extensions")), name="jobtrack_op_extensions"
            ),
            models.CheckConstraint(
                condition=Q(spent_submissions__lte=F("limit_submissions")), name="jobtrack_op_submissions"
            ),
            models.CheckConstraint(condition=Q(spent_lookups__lte=F("limit_lookups")), name="jobtrack_op_lookups"),
        ]

    def __str__(self) -> str:
        return self.id

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; of a stored row only what is the caller's own is written: its link and its reference.

        A whole row, saved by a view or a follow-up that read it a moment ago, would undo what a worker has written
        since: fence, budgets, even the end of the operation (INV-07, INV-13).

        Raises:
            TypeError: ``update_fields`` names a column that only the store writes.
        """
        if not self._state.adding:
            wanted = _CALLERS if kwargs.get("update_fields") is None else set(kwargs["update_fields"])
            if wanted - _CALLERS:
                raise TypeError(f"Only jobtrack writes {', '.join(sorted(wanted - _CALLERS))} of an operation.")
            kwargs["update_fields"] = wanted
        super().save(*args, **kwargs)

    def to_core(self) -> core.Operation:
        """The row as a frozen record."""
        lease = None
        if self.lease_until is not None:
            lease = core.Lease(owner=self.lease_owner, until=self.lease_until)
        return core.Operation(
            **{name: getattr(self, name) for name in _SAME},
            state=core.OperationState(self.state),
            budget=core.Budget(
                deadline=self.deadline,
                needed_by=self.needed_by,
                follow_for=self.follow_for,
                **{name: getattr(self, f"limit_{name}") for name in _COUNTERS},
            ),
            spent=core.Spent(**{name: getattr(self, f"spent_{name}") for name in _COUNTERS}),
            lease=lease,
        )

    @classmethod
    def from_core(cls, operation: core.Operation) -> dict[str, Any]:
        """The record as column values."""
        lease = operation.lease
        values = {name: getattr(operation, name) for name in _SAME}
        values |= {f"limit_{name}": getattr(operation.budget, name) for name in _COUNTERS}
        values |= {f"spent_{name}": getattr(operation.spent, name) for name in _COUNTERS}
        values |= {
            "state": operation.state.value,
            "deadline": operation.budget.deadline,
            "needed_by": operation.budget.needed_by,
            "follow_for": operation.budget.follow_for,
            "lease_owner": lease.owner if lease else "",
            "lease_until": lease.until if lease else None,
        }
        return columns(cls, values)

    def outcome(self) -> dict[str, Any]:
        """How it stands, when one may ask again, and what one may do (R-SUB-8). Asking sends nothing."""
        from jobtrack_django.contract import contract

        return contract(self)


class AuditEntry(models.Model):
    """One link of an operation's audit chain. ``body`` is kept as text, byte for byte, since its hash covers it."""

    id = models.BigAutoField(primary_key=True)
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="audit", db_index=False)
    seq = models.PositiveIntegerField()
    prev = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64)
    body = models.TextField()
    at = models.DateTimeField()

    objects = querysets.AuditQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["operation_id", "seq"]
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"
        constraints: ClassVar = [models.UniqueConstraint(fields=["operation", "seq"], name="jobtrack_audit_seq")]

    def __str__(self) -> str:
        return f"{self.operation_id} #{self.seq}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; an entry that is stored is refused."""
        if not self._state.adding:
            querysets.refuse()
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        querysets.refuse()


class Delivery(models.Model):
    """An outbox row: one follow-up of one operation, delivered at least once (INV-21)."""

    id = IdentityField(primary_key=True, max_length=241)  # "<operation id>:<event>": the same for every attempt
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=40)
    handler = models.CharField(max_length=255)
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True, blank=True)  # null: no further attempt by machine
    wake_until = models.DateTimeField(null=True, blank=True)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)

    objects = querysets.DeliveryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["operation_id", "event"]
        verbose_name_plural = "deliveries"
        indexes: ClassVar = [models.Index(fields=["due_at"], name="jobtrack_delivery_due")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["operation", "event"], name="jobtrack_one_delivery"),
        ]

    def __str__(self) -> str:
        return self.id


class TableText(models.Model):
    """The text of every provider table a decision was made with, once per digest (R-TABLE-8)."""

    digest = models.CharField(primary_key=True, max_length=64)
    table_id = IdentityField(max_length=100)
    revision = models.PositiveIntegerField(default=0)
    text = models.TextField()
    first_seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.table_id} r{self.revision} {self.digest[:12]}"
