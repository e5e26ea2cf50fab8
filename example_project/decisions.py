"""The questions that the demo leaves open, what a right decision is for each, and what it leads to.

An operator finds all of this out from the pages: the question, ACME's console, the provider table. This table is for
the tests that answer them, and for those who want to compare. Where the deadline has passed by then, to extend is as
right as to look again: the looks it grants come to the same end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from jobtrack.core.escalation import Option
from jobtrack.core.operation import OperationState


class First(StrEnum):
    """What is to be done before the decision."""

    NOTHING = "nothing"
    MEND = "mend"  # press "Mend it" on ACME's console
    TABLE = "table"  # teach the provider table the new word


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right decision."""

    scenario: str  # of ``scenarios.SCENARIOS``
    seen: str  # what the operator sees that makes it right
    option: Option
    state: OperationState  # what the operation comes to
    first: First = First.NOTHING


_S, _O = OperationState, Option

EIGHT: tuple[Right, ...] = (
    Right(
        scenario="unknown",
        seen="ACME has a new word, `paused`: the job goes on, the table has to learn it.",
        first=First.TABLE,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="lost-bare",
        seen="The console has exactly one export of this operation: its answer was lost on the way.",
        option=_O.ATTACH_JOB,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="unauthorized",
        seen="ACME has revoked the access: it is given back there first.",
        first=First.MEND,
        option=_O.ACCESS_REPAIRED,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="failure",
        seen="ACME says that it has failed: nothing goes on, somebody has to know.",
        option=_O.CLOSE,
        state=_S.FAILED,
    ),
    Right(
        scenario="stuck",
        seen="The console shows that it still runs, at 99 %: it is worth waiting.",
        option=_O.EXTEND,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="waits",
        seen="ACME holds it back until somebody acts there.",
        first=First.MEND,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="html",
        seen="ACME had sent a page of its web site; the console shows the export as it is.",
        first=First.MEND,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="conflict",
        seen="The first content is the right one, and it is done: whoever sent the other one is told.",
        option=_O.CLOSE,
        state=_S.SUCCEEDED,
    ),
)
"""Eight questions of eight reasons."""

OTHERS: tuple[Right, ...] = (
    Right(
        scenario="reset-bare",
        seen="The console has no export of this operation, and it is still wanted.",
        option=_O.RESUBMIT,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="rate-limited",
        seen="ACME has raised the limit.",
        first=First.MEND,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="no-result",
        seen="ACME has added the result that was missing.",
        first=First.MEND,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="wrong-id",
        seen="ACME has found why it answered about another export.",
        first=First.MEND,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(
        scenario="trickle",
        seen="ACME answers as fast as before.",
        first=First.MEND,
        option=_O.LOOK_AGAIN,
        state=_S.SUCCEEDED,
    ),
    Right(scenario="cancelled", seen="It was cancelled at ACME.", option=_O.CLOSE, state=_S.CANCELLED),
    Right(scenario="expired", seen="ACME has dropped it.", option=_O.CLOSE, state=_S.EXPIRED),
    Right(scenario="cancel", seen="Its own button was pressed.", option=_O.CLOSE, state=_S.CANCELLED),
)
"""The other questions that the scenarios leave open."""
