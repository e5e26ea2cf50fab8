"""What a person is told: questions in words and where to answer them. No content of jobs, no secret (R-SEC-4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from jobtrack.core.escalation import Risk
from jobtrack.core.text import clean, tell
from jobtrack_django import conf, questions, words
from jobtrack_django.models import Escalation, Notice
from jobtrack_django.notify.plan import AGAIN
from jobtrack_django.policy import lapse_of

MOST_LISTED: Final = 20
"""Questions that one message lists; the rest is counted."""

_LONGEST_NAME = 200
_LONGEST_STATE = 40
_NOT_A_WORD = re.compile(r"[^\w -]")

RISKS: Final = {Risk.HIGH: lazy("high"), Risk.MEDIUM: lazy("medium"), Risk.LOW: lazy("low")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question, in the language of the site."""

    id: str  # of the question
    operation: str
    reference: str  # the site's own word for the operation; "": none
    provider: str
    account: str
    reason: str  # one of ``core.escalation.Reason``
    title: str  # the reason in a few words
    question: str  # what is to be decided
    risk: str  # "high", "medium" or "low"
    risk_label: str  # the same in words
    state: str  # what the provider calls the job's state: letters, digits, spaces and hyphens; "": not known
    waiting_since: datetime
    default: str  # what happens if nobody acts
    reminder: bool  # told before
    link: str  # where it is answered; "": the site has no such page, or SITE_URL is not set


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Everything that one notifier is told at once."""

    id: str  # the same whenever the message is sent again
    notifier: str  # its name in NOTIFIERS
    at: datetime  # when this attempt was made
    total: int  # questions it is about
    items: tuple[Item, ...]  # the most urgent of them
    list_link: str  # page with all open questions; "": as in ``Item.link``
    test: bool = False  # sent by `jobtrack_notify --test`

    @property
    def more(self) -> int:
        """Questions that are not listed."""
        return self.total - len(self.items)

    @property
    def subject(self) -> str:
        """One line, without line breaks."""
        if self.test:
            return _("[jobtrack] Test message")
        if self.total == 1 and self.items:
            known = {"title": self.items[0].title, "provider": self.items[0].provider}
            line = _("[jobtrack] Decision needed: %(title)s (%(provider)s)") % known
        else:
            text = ngettext("[jobtrack] %(count)d decision needed", "[jobtrack] %(count)d decisions needed", self.total)
            line = text % {"count": self.total}
        if self.items and all(item.reminder for item in self.items):
            line = _("%(subject)s (reminder)") % {"subject": line}
        return clean(line, 150)

    @property
    def more_line(self) -> str:
        """How many are not listed; "" if all are."""
        if self.more <= 0:
            return ""
        return ngettext("and %(count)d more", "and %(count)d more", self.more) % {"count": self.more}

    @property
    def text(self) -> str:
        """The whole message as plain text."""
        blocks = ["\n".join(lines_of(item)) for item in self.items]
        if self.test:
            blocks.insert(0, _("This is a test: nothing is asked."))
        if self.more_line:
            blocks.append(self.more_line)
        if self.list_link:
            blocks.append(_("All open questions: %(link)s") % {"link": self.list_link})
        return "\n\n".join(blocks) + "\n"


def lines_of(item: Item) -> list[str]:
    """A question as lines of text."""
    what = {"provider": item.provider, "operation": item.operation, "reference": item.reference}
    about = (
        _("%(provider)s: operation %(operation)s (%(reference)s)")
        if item.reference
        else _("%(provider)s: operation %(operation)s")
    )
    lines = [
        item.title,
        item.question,
        about % what,
        _("Waiting since: %(instant)s") % {"instant": f"{item.waiting_since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"},
        _("Risk: %(risk)s") % {"risk": item.risk_label},
    ]
    if item.state:
        lines.append(_("The provider calls it: %(state)s") % {"state": item.state})
    lines.append(item.default)
    if item.link:
        lines.append(_("Decide here: %(link)s") % {"link": item.link})
    return lines


def item_of(notice: Notice) -> Item:
    """The question of a notice, with its operation loaded."""
    escalation = notice.escalation
    operation, asked = escalation.operation, questions.question(escalation.reason)
    rank = Risk(escalation.risk) if escalation.risk in set(Risk) else Risk.HIGH  # of a newer release: rather too loud
    return Item(
        id=str(escalation.pk),
        operation=clean(operation.pk, _LONGEST_NAME),
        reference=clean(operation.reference, _LONGEST_NAME),
        provider=clean(operation.provider, _LONGEST_NAME),
        account=clean(operation.account, _LONGEST_NAME),
        reason=escalation.reason,
        title=str(asked.title),
        question=str(asked.ask),
        risk=rank.name.lower(),
        risk_label=str(RISKS[rank]),
        state=state_word(operation.provider_state),
        waiting_since=escalation.opened_at,
        default=unattended(escalation),
        reminder=notice.turn == AGAIN,
        link=page("escalation_change", escalation.pk),
    )


def message_of(notices: Sequence[Notice], *, message_id: str, notifier: str, at: datetime, total: int) -> Message:
    """One message for all of them; ``notices`` are the most urgent of ``total``."""
    return Message(
        id=message_id,
        notifier=notifier,
        at=at,
        total=total,
        items=tuple(item_of(notice) for notice in notices),
        list_link=page("escalation_changelist"),
    )


def state_word(text: str) -> str:
    """A provider's word that can neither mention, link, format nor reorder anything where it is shown."""
    return _NOT_A_WORD.sub("\N{REPLACEMENT CHARACTER}", tell(text, _LONGEST_STATE)).strip()


def unattended(escalation: Escalation) -> str:
    """What happens to a question that nobody answers."""
    rule = lapse_of(escalation.reason)
    if rule is not None:
        until = (escalation.opened_at + rule.after).astimezone(UTC)
        known = {"instant": f"{until:%Y-%m-%d %H:%M} UTC", "option": words.option_label(rule.option)}
        return _("If nobody acts until %(instant)s, this is chosen: %(option)s.") % known
    if escalation.blocking:
        return _("If nobody acts, it stays as it is.")
    return _("If nobody acts, nothing changes: the question stays open.")


def page(name: str, *args: object) -> str:
    """A page of the admin that survives login; "" where the site has none, or does not say what stands in front."""
    site = conf.settings().site_url
    if site is None:
        return ""
    try:
        return site + reverse(f"admin:jobtrack_{name}", args=args)
    except NoReverseMatch:
        return ""
