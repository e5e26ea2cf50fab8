"""Questions to people, what they are told of them, and what they decide for many at once."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q, Value
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobtrack import records
from jobtrack.core.escalation import Option, Proposal, Reason, Resolution, Risk
from jobtrack_django import querysets, words
from jobtrack_django.fields import IdentityField


def _open(blocking: bool, place: str, other: str) -> Q:
    """An open question in its place. The test for null is needed: a check that comes out as null passes."""
    taken = {place: True, f"{place}__isnull": False, f"{other}__isnull": True}
    return Q(decided_at__isnull=True, blocking=blocking, **taken)


class Escalation(models.Model):
    """A question to a person and its answer.

    ``open_blocking`` and ``open_advisory`` are True while the question is open and null afterwards: with a unique
    key they hold "one open one" on every database, since nulls never collide.
    """

    id = models.BigAutoField(primary_key=True)
    operation = models.ForeignKey("Operation", on_delete=models.PROTECT, related_name="escalations", db_index=False)
    reason = models.CharField(max_length=60)
    detail = models.TextField(blank=True)
    blocking = models.BooleanField()
    open_blocking = models.BooleanField(null=True, editable=False)
    open_advisory = models.BooleanField(null=True, editable=False)
    # Copies of what the operation says, so that lists are answered by one index each. Defaults in the database let
    # an earlier release go on writing.
    provider = IdentityField(max_length=100, blank=True, db_default="")
    account = IdentityField(max_length=100, blank=True, db_default="")
    risk = models.PositiveSmallIntegerField(default=Risk.MEDIUM, db_default=Value(2))
    version = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    option = models.CharField(max_length=40, blank=True)
    actor = models.CharField(max_length=255, blank=True)
    actor_reason = models.TextField(blank=True)
    job_id = IdentityField(max_length=500, blank=True)  # what "attach job" named
    seen_version = models.PositiveIntegerField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    # A first person's word, where a site wants two. All null or all set; the job as in a resolution.
    proposed_option = models.CharField(max_length=40, null=True, blank=True)
    proposed_by = models.CharField(max_length=255, null=True, blank=True)
    proposed_person = IdentityField(max_length=200, blank=True, db_default="")
    proposed_why = models.TextField(null=True, blank=True)
    proposed_job = IdentityField(max_length=500, blank=True, db_default="")
    proposed_at = models.DateTimeField(null=True, blank=True)

    objects = querysets.EscalationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-opened_at", "-id"]
        verbose_name = _("escalation")
        verbose_name_plural = _("needs decision")  # the name of its list
        permissions: ClassVar = [  # one for each option, so that a site can say who may do what (R-ESC, INV-29)
            ("extend_operation", _("Can extend an operation")),
            ("look_again", _("Can ask a provider once more")),
            ("repair_access", _("Can state that access was repaired")),
            ("retry_delivery", _("Can run a follow-up again")),
            ("close_escalation", _("Can close an escalation")),
            ("look_up_submission", _("Can ask a provider whether it has a job")),
            ("attach_job", _("Can name the job of an operation")),
            ("resubmit_operation", _("Can submit a job once more")),
            ("cancel_operation", _("Can ask a provider to cancel a job")),
            ("fetch_result", _("Can fetch a result again")),
            ("decide_in_bulk", _("Can decide many questions at once")),
            ("download_bundle", _("Can download a support bundle")),
        ]
        indexes: ClassVar = [
            models.Index(fields=["decided_at", "opened_at"], name="jobtrack_escalation_open"),
            models.Index(fields=["decided_at", "risk", "opened_at"], name="jobtrack_escalation_risk"),
            models.Index(fields=["provider", "decided_at", "opened_at"], name="jobtrack_escalation_prov"),
            models.Index(fields=["provider", "decided_at", "risk", "opened_at"], name="jobtrack_escalation_urgent"),
            models.Index(fields=["reason", "decided_at", "opened_at"], name="jobtrack_escalation_reason"),
            models.Index(fields=["opened_at"], name="jobtrack_escalation_opened"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["operation", "open_blocking"], name="jobtrack_one_blocking"),
            models.UniqueConstraint(fields=["operation", "reason", "open_advisory"], name="jobtrack_one_advisory"),
            models.CheckConstraint(
                condition=_open(True, "open_blocking", "open_advisory")
                | _open(False, "open_advisory", "open_blocking")
                | Q(decided_at__isnull=False, open_blocking__isnull=True, open_advisory__isnull=True),
                name="jobtrack_open_or_decided",
            ),
        ]

    def __str__(self) -> str:
        named = {"reason": words.reason_title(self.reason), "operation": self.operation_id}
        return gettext("%(reason)s (operation %(operation)s)") % named

    @property
    def resolution(self) -> Resolution | None:
        """The answer; None while the question is open."""
        if self.decided_at is None:
            return None
        return Resolution(
            escalation_id=str(self.pk),
            option=Option(self.option),
            actor=self.actor,
            reason=self.actor_reason,
            version=self.seen_version or 0,
            at=self.decided_at,
            job_id=self.job_id,
        )

    @property
    def proposal(self) -> Proposal | None:
        """A first person's word; None if there is none."""
        if self.proposed_option not in set(Option):
            return None  # none, or an option of a newer release
        return Proposal(
            option=Option(self.proposed_option),
            actor=self.proposed_by or "",
            reason=self.proposed_why or "",
            at=self.proposed_at,
            job_id=self.proposed_job,
            person=self.proposed_person,
        )

    def to_core(self) -> records.Escalation:
        """The row as a frozen record."""
        return records.Escalation(
            id=str(self.pk),
            operation_id=self.operation_id,
            reason=Reason(self.reason),
            detail=self.detail,
            blocking=self.blocking,
            version=self.version,
            opened_at=self.opened_at,
            closed_at=self.decided_at,
            resolution=self.resolution,
            proposal=self.proposal,
        )


class Notice(models.Model):
    """An outbox row: one person or channel is told of one question (R-ESC-6), at least once.

    Written with the question, one for each notifier and turn; dropped unsent when the question is decided first.
    """

    WAITING, SENT, DROPPED, FAILED = "", "sent", "dropped", "failed"

    id = models.BigAutoField(primary_key=True)
    escalation = models.ForeignKey("Escalation", on_delete=models.PROTECT, related_name="notices")
    notifier = IdentityField(max_length=100)  # its name in NOTIFIERS
    turn = models.PositiveSmallIntegerField()  # 1: the question was opened; 2: nobody has acted
    due_at = models.DateTimeField(null=True, blank=True)  # null: nothing more is tried
    attempts = models.PositiveIntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=20, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    message_id = models.CharField(max_length=64, blank=True)  # the same for all notices of one message
    last_error = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name = _("notice")
        verbose_name_plural = _("notices")
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="jobtrack_notice_due"),
            models.Index(fields=["notifier", "sent_at"], name="jobtrack_notice_sent"),
            models.Index(fields=["outcome", "id"], name="jobtrack_notice_outcome"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["escalation", "notifier", "turn"], name="jobtrack_one_notice"),
        ]

    def __str__(self) -> str:
        named = {"notifier": self.notifier, "number": self.escalation_id}
        if self.turn > 1:
            return gettext("Reminder to %(notifier)s about question %(number)s") % named
        return gettext("Notice to %(notifier)s about question %(number)s") % named


class DecisionBatch(models.Model):
    """One choice for many questions (R-ESC). Each is decided in a transaction of its own."""

    id = models.BigAutoField(primary_key=True)
    option = models.CharField(max_length=40)
    actor = models.CharField(max_length=255)
    reason = models.TextField()
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    retry_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="retries")

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name = _("bulk decision")
        verbose_name_plural = _("bulk decisions")

    def __str__(self) -> str:
        return gettext("%(option)s, bulk decision %(number)s") % {
            "option": words.option_label(self.option),
            "number": self.pk,
        }


class DecisionItem(models.Model):
    """What became of one question of a batch."""

    PENDING, DONE, SKIPPED, REFUSED, FAILED = "pending", "done", "skipped", "refused", "failed"

    id = models.BigAutoField(primary_key=True)
    batch = models.ForeignKey(DecisionBatch, on_delete=models.CASCADE, related_name="items")
    escalation = models.ForeignKey("Escalation", on_delete=models.PROTECT, related_name="batch_items")
    version = models.PositiveIntegerField()  # of the question, as it was previewed
    outcome = models.CharField(max_length=20, default=PENDING)
    detail = models.TextField(blank=True)  # why it was not done: a code, or a clean sentence

    class Meta:
        ordering: ClassVar = ["id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["batch", "escalation"], name="jobtrack_one_item"),
        ]

    def __str__(self) -> str:
        return f"{self.batch_id}: {self.escalation_id} {self.outcome}"
