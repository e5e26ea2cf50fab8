"""What a person may choose for a question, what each choice costs, and why the others cannot be chosen.

The one place for every page that offers a decision. What may be chosen comes from ``core.escalation.refusal``, what it
does from ``core.grant``, and who may from ``policy``; here is no rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.utils.translation import gettext as _

from jobtrack.core.escalation import ALLOWED, Option, Proposal, Reason, Refusal, refusal
from jobtrack.core.grant import grant, submits
from jobtrack.core.operation import Operation
from jobtrack.core.table import ProviderTable
from jobtrack.flow.resolve import look_of
from jobtrack.ports import Runtime
from jobtrack_django import words
from jobtrack_django.admin.stakes import numbers
from jobtrack_django.models import Escalation
from jobtrack_django.policy import may_choose, permission_of, person_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a question, as this person sees it."""

    option: Option
    label: str
    fits: str  # what a person must have found for it to be right; "" if it is no answer to this question
    cost: str  # beside its button; "" if it cannot be chosen now
    done: str  # what will be done; "" as above
    not_done: str  # what will not be done; "" as above
    permission: str  # codename, in the app ``jobtrack``
    permitted: bool  # whether this person may choose it
    refusal: Refusal | None  # why nobody may choose it now; None: it may be chosen
    why_not: str  # why this person cannot choose it now, in a sentence; "" if they can
    submits: bool  # it leads to a submission
    two: bool  # the site wants two people's word for it
    proposal: Proposal | None  # a first person's open word for just this
    own: bool  # that first person is this one

    @property
    def open(self) -> bool:
        """Whether this person may go on with it."""
        return not self.why_not


def choices_of(
    runtime: Runtime,
    escalation: Escalation,
    user: AbstractBaseUser | AnonymousUser,
    *,
    may: Callable[[Option], bool] | None = None,
) -> list[Choice]:
    """All options there are, those of the reason first, in the order they are offered.

    Args:
        may: whether this person may choose an option; None: as the permissions and the site's policy say.
    """
    reason = Reason(escalation.reason)
    told = _Teller(runtime, escalation, user, may or (lambda each: may_choose(user, each, escalation.operation)))
    offered = ALLOWED[reason]
    return [told.choice(option) for option in (*offered, *(each for each in Option if each not in offered))]


def choice_of(
    runtime: Runtime,
    escalation: Escalation,
    user: AbstractBaseUser | AnonymousUser,
    option: Option,
    *,
    may: Callable[[Option], bool],
    now: datetime,
) -> Choice:
    """One option of a question; asks no database.

    Args:
        may: as in ``choices_of``.
        now: the store's clock.
    """
    return _Teller(runtime, escalation, user, may, now).choice(option)


class _Teller:
    """One question and one person, with what all its options are told from."""

    def __init__(
        self,
        runtime: Runtime,
        escalation: Escalation,
        user: AbstractBaseUser | AnonymousUser,
        may: Callable[[Option], bool],
        now: datetime | None = None,
    ) -> None:
        self.escalation, self.user, self.may = escalation, user, may
        self.operation: Operation = escalation.operation.to_core()
        self.table: ProviderTable | None = runtime.tables.get(self.operation.provider)
        self.look, self.now = look_of(runtime, self.table), now or runtime.store.now()
        self.four_eyes, self.stands = runtime.four_eyes, runtime.stands

    def choice(self, option: Option) -> Choice:
        refused = refusal(option, Reason(self.escalation.reason), self.operation, self.table)
        after = None if refused else self._after(option)
        label, cost, done, not_done = ("", "", "", "") if after is None else self._texts(option, after)
        permitted, proposal = self.may(option), self._proposal(option)
        own = proposal is not None and proposal.is_of(self.user.get_username(), person_of(self.user))
        return Choice(
            option=option,
            label=label or words.option_label(option.value),
            fits=str(words.QUESTIONS[Reason(self.escalation.reason)].fits.get(option, "")),
            cost=cost,
            done=done,
            not_done=not_done,
            permission=words.CHOICES[option].permission,
            permitted=permitted,
            refusal=refused,
            why_not=self._why_not(option, refused, permitted=permitted),
            submits=after is not None and after != self.operation and submits(after),
            two=option in self.four_eyes,
            proposal=proposal,
            own=own,
        )

    def _after(self, option: Option) -> Operation:
        """The operation after the grant, by the rule that will write it."""
        blocking = self.escalation.blocking
        return grant(self.operation, option, blocking=blocking, table=self.table, look=self.look, now=self.now)

    def _texts(self, option: Option, after: Operation) -> tuple[str, str, str, str]:
        """Label, cost, what will be done and what will not."""
        before = self.operation
        looks_up = self.table is not None and self.table.submit is not None and self.table.submit.lookup is not None
        text = words.choice(option, after.state, accepted=before.accepted_at is not None, looks_up=looks_up)
        if text.idle and after == before:
            return str(text.label), str(text.idle), str(text.idle), _("Nothing is sent to the provider.")
        no_longer = refusal(Option.EXTEND, Reason(self.escalation.reason), before, self.table)
        named = numbers(before, after, self.table, self.now, extends=no_longer is None)
        told = (str(part).format(**named).strip() for part in (text.cost, text.done))
        return str(text.label), *told, str(text.not_done)  # type: ignore[return-value]  # two parts, by the line above

    def _why_not(self, option: Option, refused: Refusal | None, *, permitted: bool) -> str:
        if refused is not None:
            return str(words.REFUSALS[refused])
        if permitted:
            return ""
        if not getattr(self.user, "has_perm", lambda _: False)(permission_of(option)):
            return _("You may not do this: it needs the permission “%s”.") % _permission_label(option)
        return _("This site's own rules do not let you do this here.")

    def _proposal(self, option: Option) -> Proposal | None:
        """A first person's word for it, as long as they may still give it."""
        proposal = self.escalation.proposal
        if proposal is None or proposal.option is not option or option not in self.four_eyes:
            return None
        return proposal if self.stands(proposal, self.operation) else None


def _permission_label(option: Option) -> str:
    """The permission that an option needs, as Django's own pages name it."""
    return str(dict(Escalation._meta.permissions)[words.CHOICES[option].permission])  # noqa: SLF001 - documented by Django
