"""What an option would grant, cost and risk: the numbers and sentences that its texts name, from row and table."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from jobtrack.core.actions import Idempotency
from jobtrack.core.decide import spoken
from jobtrack.core.operation import Operation
from jobtrack.core.table import ProviderTable
from jobtrack.core.text import clean
from jobtrack_django import sentences
from jobtrack_django.admin.sheet import duration


def numbers(
    before: Operation, after: Operation, table: ProviderTable | None, now: datetime, *, extends: bool
) -> dict[str, object]:
    """What the texts of an option may name.

    Args:
        before: the row as it is.
        after: the row after the grant, computed by the rule that will write it.
        table: the newest table; None: there is none, and nothing that needs one is offered.
        now: the store's clock.
        extends: whether the operation can be extended by an answer to this question.
    """
    extension = table.budget.extension if table else None
    cancel, result = (table.cancel, table.result) if table else (None, None)
    return {
        "time": duration(extension.time) if extension else "",
        "checks": extension.status_requests if extension else 0,
        "deadline": spoken(after.budget.deadline),
        "requests": after.budget.status_requests,
        "reads": result.attempts if result else 0,
        "lookups": after.budget.lookups,
        "follow": duration(before.budget.follow_for) if before.budget.follow_for else "",
        "submission": before.spent.submissions + 1,
        "until": spoken(after.look_until) if after.look_until else "",
        "effect": clean(cancel.effect, 2000) if cancel else "",
        "look": "" if after == before else _("After that its status is asked for once more."),
        "over": over(before, now, extends=extends),
        "doubt": doubt(before),
        "stakes": stakes(table, before, sent_by=after.look_until or now),
    }


def over(operation: Operation, now: datetime, *, extends: bool) -> str:
    """That one more request is the last one, and what else there is; "" while there is time."""
    if now < operation.budget.deadline:
        return ""
    passed = _("The deadline is over: unless the job has ended there, you are asked again.")
    longer = _("To follow it longer, extend it.")
    return f"{passed} {longer}" if extends else passed


def doubt(operation: Operation) -> str:
    """What is not known about the job of an operation without one; "" if it is proven that there is none."""
    if operation.acceptance_seen:
        return _("The provider said that it has a job of it.")
    if operation.doubt:
        return _("Nobody knows whether the provider has the job (%s).") % sentences.clause(operation.doubt)
    return ""


def stakes(table: ProviderTable | None, operation: Operation, *, sent_by: datetime) -> str:
    """What one more submission may duplicate (R-SUB-5, R-ESC-2).

    Args:
        sent_by: when it is sent at the latest: a key that ends before is no protection.
    """
    if not operation.doubt:
        return _("It is proven that the provider has no job of it, so nothing can come twice.")
    rule = table.submit.idempotency if table and table.submit else None
    if rule is None or operation.first_sent_at is None:
        return _("If the provider has the first one, this makes a second job: its effects and its costs come twice.")
    ends = operation.first_sent_at + rule.lifetime
    if sent_by >= ends:
        return _(
            "Its idempotency key is valid until %s only, which may be before it is sent: if the provider has the first "
            "one, this makes a second job, and its effects and its costs come twice."
        ) % spoken(ends)
    return _by_key(rule, spoken(ends), operation)


def _by_key(rule: Idempotency, ends: str, operation: Operation) -> str:
    told = [_("Its idempotency key is valid until %s: up to then the provider takes it for the first one.") % ends]
    if rule.scope:
        told.append(_("Where it compares keys: %s.") % clean(rule.scope, 500).rstrip("."))
    if rule.replays_errors and operation.doubt_http is not None:
        told.append(_("It answers a repeat as it answered at first, also with an error: this may tell nothing new."))
    told.append(_("After that time a second job is made, and its effects and its costs come twice."))
    return sentences.in_a_row(told)
