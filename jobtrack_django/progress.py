"""How a job stands, in words for the person it is made for: nothing of tables, workers or staff.

``WORDS`` is the one table of these words. What is not known is never called a failure (R-FACT-2, R-SUB-8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from jobtrack.core.cancel import CancelState
from jobtrack.core.escalation import Reason
from jobtrack.core.operation import OperationState
from jobtrack.core.text import clean
from jobtrack.records import CANCEL
from jobtrack_django.contract import contract
from jobtrack_django.models import Delivery, Operation

LONGEST_S = 60
"""The longest pause between two questions to us: a notice or a person may bring news at any moment."""

SHORTEST_S = 2
"""The shortest pause while a result is being put in place."""

MOST_SAID = 200
"""How much of the provider's own text is shown, in characters."""


class Tone(StrEnum):
    """What a standing means for the person who reads it; a class name of the style sheet."""

    WAIT = "wait"  # it goes on by itself
    CHECK = "check"  # somebody looks into it
    GOOD = "good"
    BAD = "bad"


SYMBOLS: Final[Mapping[Tone, str]] = {Tone.WAIT: "◷", Tone.CHECK: "◎", Tone.GOOD: "✓", Tone.BAD: "✕"}
"""Beside the word: a state is never told by its colour alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """One row of the table."""

    state: Text  # one or two words
    sentence: Text  # what that means
    hint: Text  # what to do
    tone: Tone


_CLOSE = _("Nothing to do: you can close this page and come back.")
_NOT_TWICE = _("Nothing to do. Please do not order it again: it could be made twice.")
_ANEW = _("If you still need it, order it again.")
_ASK_FIRST = _("Before you order it again, ask the people who run this site: it could be made twice.")
_LOOKED_INTO = _("being checked")

STORING: Final = "storing"
"""Succeeded, and a follow-up is still to come."""

HELD_UP: Final = "held_up"
"""Succeeded, and what should follow did not work: a person was asked."""

NOT_HERE: Final = "not_here"
"""Succeeded, and what should follow was given up by a person."""

WORDS: Final[Mapping[str, Words]] = {
    OperationState.READY: Words(state=_("ordered"), sentence=_("It is about to be sent."), hint=_CLOSE, tone=Tone.WAIT),
    OperationState.SUBMITTING: Words(
        state=_("being sent"), sentence=_("It is being sent right now."), hint=_CLOSE, tone=Tone.WAIT
    ),
    OperationState.UNCONFIRMED: Words(
        state=_("not confirmed"),
        sentence=_("It was sent, but no confirmation has come. We are finding out whether it arrived."),
        hint=_NOT_TWICE,
        tone=Tone.WAIT,
    ),
    OperationState.RUNNING: Words(
        state=_("in progress"), sentence=_("It is being worked on."), hint=_CLOSE, tone=Tone.WAIT
    ),
    OperationState.ESCALATED: Words(
        state=_LOOKED_INTO,
        sentence=_("Something unexpected came up, and somebody is looking into it."),
        hint=_NOT_TWICE,
        tone=Tone.CHECK,
    ),
    STORING: Words(
        state=_("almost ready"),
        sentence=_("The work is done, and its result is being put in place."),
        hint=_CLOSE,
        tone=Tone.WAIT,
    ),
    HELD_UP: Words(
        state=_LOOKED_INTO,
        sentence=_("The work is done, but its result has not arrived yet. Somebody is looking into it."),
        hint=_NOT_TWICE,
        tone=Tone.CHECK,
    ),
    NOT_HERE: Words(
        state=_("not available"),
        sentence=_("The work was done, but its result could not be brought here."),
        hint=_ASK_FIRST,
        tone=Tone.BAD,
    ),
    OperationState.SUCCEEDED: Words(
        state=_("ready"), sentence=_("It is done."), hint=_("Nothing more to wait for."), tone=Tone.GOOD
    ),
    OperationState.FAILED: Words(state=_("failed"), sentence=_("It could not be made."), hint=_ANEW, tone=Tone.BAD),
    OperationState.CANCELLED: Words(state=_("cancelled"), sentence=_("It was cancelled."), hint=_ANEW, tone=Tone.BAD),
    OperationState.EXPIRED: Words(
        state=_("expired"),
        sentence=_("It took too long, and the provider has dropped it."),
        hint=_ANEW,
        tone=Tone.BAD,
    ),
    OperationState.ABANDONED: Words(
        state=_("given up"),
        sentence=_("We have stopped following it, and do not know whether it was made."),
        hint=_ASK_FIRST,
        tone=Tone.BAD,
    ),
}
"""What the person reads, by the state of the operation; a success is told apart by what still follows."""

CANCELLING: Final[Mapping[str, Text]] = {
    CancelState.REQUESTED: _("It is being cancelled."),
    CancelState.ACCEPTED: _("Its cancellation was accepted. It ends as soon as that is confirmed."),
    CancelState.REFUSED: _("It could not be cancelled and goes on."),
    CancelState.UNKNOWN: _("It was to be cancelled. Whether that has arrived is being found out."),
}
"""What is added while a cancellation is under way."""

_HELD_UP_BY = frozenset({Reason.RESULT_UNAVAILABLE, Reason.DELIVERY_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a job stands, as its owner reads it. Texts of the provider are cleaned and bounded, never escaped."""

    name: str  # the row of ``WORDS``
    state: str
    sentence: str
    hint: str  # what to do
    tone: Tone
    symbol: str
    note: str  # of a cancellation; "": none
    percent: int | None  # as the provider tells it; None: it tells none
    said: str  # progress in the provider's words, if it is no percentage; "": none
    error: str  # the provider's own; "": none
    since: datetime  # when it was ordered
    next_look_at: datetime | None  # when we look again; None: not by ourselves
    next_look: str  # that in words; "": not by ourselves
    again_s: int | None  # when to ask us again, in seconds; None: it has ended for good
    ended: bool  # nothing more will change

    @property
    def ready(self) -> bool:
        """Whether the result is there, and everything that follows from it was done."""
        return self.name == OperationState.SUCCEEDED


def words_of(state: str) -> Words:
    """The words of a state; a state of a newer release reads as one under way."""
    return WORDS.get(state, WORDS[OperationState.RUNNING])


def standing(operation: Operation, *, told: Mapping[str, Any] | None = None, now: datetime | None = None) -> Standing:
    """How it stands now. Asking reads rows: it sends nothing (R-CALL-2).

    Args:
        told: its outcome, if it is known already; else it is read.
        now: by the database's clock; None: it is asked.
    """
    if told is None:
        told = contract(operation, now=now)
    name, again_s = _name(operation, told, now)
    words, ended = words_of(name), again_s is None
    percent = None if ended else percentage(told["progress"] or "")
    return Standing(
        name=name,
        state=str(words.state),
        sentence=str(words.sentence),
        hint=str(words.hint),
        tone=words.tone,
        symbol=SYMBOLS[words.tone],
        note="" if _is_end(told) else str(CANCELLING.get(told["cancel"]["state"] or "", "")),
        percent=percent,
        said="" if ended or percent is not None else clean(told["progress"] or "", MOST_SAID),
        error=clean(told["error"] or "", MOST_SAID) if name == OperationState.FAILED else "",
        since=operation.created_at,
        next_look_at=operation.wake_at,
        next_look=_in_words(told["retry_after_s"]),
        again_s=again_s,
        ended=ended,
    )


def _is_end(told: Mapping[str, Any]) -> bool:
    return told["outcome"] not in ("pending", "unknown")


def _name(operation: Operation, told: Mapping[str, Any], now: datetime | None) -> tuple[str, int | None]:
    """The row of ``WORDS``, and when to ask us again."""
    if not _is_end(told):
        # An attempt whose worker has vanished is in doubt although its row does not say so yet.
        doubt = told["outcome"] == "unknown" and operation.state == OperationState.SUBMITTING
        name = OperationState.UNCONFIRMED if doubt else operation.state
        return name, min(told["retry_after_s"] or LONGEST_S, LONGEST_S)
    if told["outcome"] != OperationState.SUCCEEDED:
        return operation.state, None
    if _HELD_UP_BY.intersection(told["needs_decision"]):
        return HELD_UP, LONGEST_S
    return _after_success(operation, now)


def _after_success(operation: Operation, now: datetime | None) -> tuple[str, int | None]:
    """A success is ready once everything that follows from it was done."""
    using = operation._state.db or "default"  # noqa: SLF001 - documented by Django
    rows = Delivery.objects.using(using).filter(operation_id=operation.pk, delivered_at__isnull=True)
    undone = list(rows.exclude(event=CANCEL).values_list("due_at", flat=True))  # a handful at most
    due = [instant for instant in undone if instant is not None]
    if due:
        wait = 0 if now is None else int((min(due) - now).total_seconds()) + 1
        return STORING, max(SHORTEST_S, min(wait, LONGEST_S))
    return (NOT_HERE, None) if undone else (OperationState.SUCCEEDED, None)


_PERCENT = re.compile(r"(\d{1,3})(?:[.,]\d{1,6})?\s*%", re.ASCII)
_SHARE = re.compile(r"(\d{1,12})\s*/\s*(\d{1,12})", re.ASCII)


def percentage(progress: str) -> int | None:
    """A progress that says itself that it is a share (``40 %``, ``3/7``), from 0 to 100; a bare number says nothing."""
    if found := _PERCENT.fullmatch(progress.strip()):
        return int(found[1]) if int(found[1]) <= 100 else None
    if found := _SHARE.fullmatch(progress.strip()):
        done, whole = int(found[1]), int(found[2])
        return done * 100 // whole if 0 <= done <= whole and whole else None
    return None


def _in_words(seconds: int | None) -> str:
    """Coarse on purpose: a text that changes with every second would be news without a new fact."""
    if seconds is None:
        return ""
    if seconds <= 10:
        return str(_("in a few seconds"))
    if seconds < 90:
        return str(_("in about a minute"))
    if seconds < 5400:
        minutes = round(seconds / 60)
        return ngettext("in about %(count)s minute", "in about %(count)s minutes", minutes) % {"count": minutes}
    hours = round(seconds / 3600)
    return ngettext("in about %(count)s hour", "in about %(count)s hours", hours) % {"count": hours}
