"""The scenarios of the demo and how each must end.

The simulator knows how the provider behaves; this table says what jobtrack must make of it. ``make demo`` compares
the two, and fails if one of them is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from example_project import acme
from jobtrack.core.escalation import Reason
from jobtrack.core.operation import OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way an export can go."""

    name: str  # as the table of the demo calls it
    title: str  # as the form shows it
    script: str  # as the simulator calls it
    state: OperationState  # the state it must end or stop in
    reason: Reason | None = None  # what a person must be asked; None: nothing
    word: str = ""  # the status answer that decides, as the simulator's log names it; "": none is ever asked for
    times: int | None = 1  # how often that answer may be given: a stop is one request; None: any number
    table: str = acme.TABLE
    # 401, 429 and 503 hold back a whole account. Accounts of their own keep those scenarios from slowing the others.
    account: str = "default"
    # What the provider must see.
    posts: tuple[int, ...] = (1,)  # submissions; several numbers: it depends on who is faster
    exports: int = 1  # what came of them: never more than one
    files: tuple[str, ...] | None = None  # answers to requests for the file; None: the file, after a success
    notices: int = 0  # webhooks, after which one look must come soon
    # What the demo does besides.
    submitters: int = 1  # how many ask for the same export at the same moment
    cancel: bool = False  # somebody presses the button while it runs
    conflict: bool = False  # somebody submits other content under its operation id
    # Budgets, where the demo would otherwise take minutes. None: as the table grants.
    deadline: timedelta | None = None
    transport_failures: int | None = None
    rate_limited: int | None = None


_S, _R = OperationState, Reason

_FOLLOWED: tuple[Scenario, ...] = (
    Scenario(name="success", title="It works", script="success", state=_S.SUCCEEDED, word="succeeded"),
    Scenario(
        name="failure",
        title="The provider reports a failure",
        script="failure",
        state=_S.FAILED,
        reason=_R.PROVIDER_FAILURE,
        word="failed",
    ),
    Scenario(
        name="cancelled",
        title="Somebody cancels the export at the provider",
        script="cancelled",
        state=_S.CANCELLED,
        reason=_R.PROVIDER_CANCELLED,
        word="canceled",
    ),
    Scenario(
        name="expired",
        title="The provider drops the export",
        script="expired",
        state=_S.EXPIRED,
        reason=_R.PROVIDER_EXPIRED,
        word="expired",
    ),
    Scenario(
        name="unknown",
        title="A state nobody has declared",
        script="unknown",
        state=_S.ESCALATED,
        reason=_R.UNKNOWN_STATE,
        word="paused",
    ),
    Scenario(
        name="retry-after",
        title="Busy, asks to wait, then works",
        script="retry-after",
        state=_S.SUCCEEDED,
        word="succeeded",
        account="busy",
    ),
    Scenario(
        name="rate-limited",
        title="Too many requests, without end",
        script="rate-limited",
        state=_S.ESCALATED,
        reason=_R.RATE_LIMITED,
        word="too-many",
        times=3,
        rate_limited=3,
        account="crowded",
    ),
    Scenario(
        name="stuck",
        title="Still running at the deadline",
        script="stuck",
        state=_S.ESCALATED,
        reason=_R.DEADLINE_EXCEEDED,
        word="running",
        times=None,
        deadline=timedelta(seconds=12),
    ),
    Scenario(
        name="unauthorized",
        title="Access is revoked",
        script="unauthorized",
        state=_S.ESCALATED,
        reason=_R.AUTHORIZATION_DENIED,
        word="denied",
        account="locked",
    ),
    Scenario(
        name="waits",
        title="The provider waits for somebody to act there",
        script="waits",
        state=_S.ESCALATED,
        reason=_R.PROVIDER_WAITS,
        word="on_hold",
    ),
    Scenario(
        name="html",
        title="A web page instead of an answer",
        script="html",
        state=_S.ESCALATED,
        reason=_R.INVALID_RESPONSE,
        word="html",
    ),
    Scenario(
        name="no-result",
        title="Success without a result",
        script="no-result",
        state=_S.ESCALATED,
        reason=_R.INVALID_RESULT,
        word="succeeded",
    ),
    Scenario(
        name="wrong-id",
        title="An answer about somebody else's export",
        script="wrong-id",
        state=_S.ESCALATED,
        reason=_R.JOB_ID_MISMATCH,
        word="wrong-id",
    ),
    Scenario(
        name="trickle",
        title="An answer that never ends",
        script="trickle",
        state=_S.ESCALATED,
        reason=_R.TRANSPORT_FAILURES_EXHAUSTED,
        word="trickle",
        times=3,
        transport_failures=3,
        account="slow",
    ),
)
"""What can happen to an export that the provider has."""

_SUBMITTED: tuple[Scenario, ...] = (
    Scenario(
        name="lost-listed",
        title="Accepted, but the answer is lost: the provider has a list to look in",
        script="lost",
        table=acme.LISTED,
        state=_S.SUCCEEDED,
        word="succeeded",
    ),
    Scenario(
        name="lost-keyed",
        title="Accepted, but the answer is lost: the provider knows idempotency keys",
        script="lost",
        table=acme.KEYED,
        state=_S.SUCCEEDED,
        word="succeeded",
        posts=(2,),
    ),
    Scenario(
        name="lost-bare",
        title="Accepted, but the answer is lost: the provider has neither",
        script="lost",
        table=acme.BARE,
        state=_S.ESCALATED,
        reason=_R.SUBMISSION_UNKNOWN,
    ),
    Scenario(
        name="reset-listed",
        title="Never accepted, and it looks the same: the list proves it",
        script="reset",
        table=acme.LISTED,
        state=_S.SUCCEEDED,
        word="succeeded",
        posts=(2,),
    ),
    Scenario(
        name="reset-bare",
        title="Never accepted, and it looks the same: nothing proves it",
        script="reset",
        table=acme.BARE,
        state=_S.ESCALATED,
        reason=_R.SUBMISSION_UNKNOWN,
        exports=0,
    ),
    Scenario(
        name="error",
        title="Accepted, but the answer is 500",
        script="error",
        account="flaky",
        state=_S.SUCCEEDED,
        word="succeeded",
    ),
    Scenario(
        name="slow",
        title="Accepted after we have stopped waiting",
        script="slow",
        account="flaky",
        state=_S.SUCCEEDED,
        word="succeeded",
        posts=(1, 2),
    ),
    Scenario(
        name="twins",
        title="Two ask for the same export at the same moment",
        script="success",
        state=_S.SUCCEEDED,
        word="succeeded",
        submitters=2,
    ),
    Scenario(
        name="conflict",
        title="The same operation id comes again with other content",
        script="success",
        state=_S.SUCCEEDED,
        reason=_R.IDEMPOTENCY_CONFLICT,
        word="succeeded",
        conflict=True,
    ),
    Scenario(
        name="cancel",
        title="We cancel it (press the button while it runs)",
        script="stuck",
        state=_S.CANCELLED,
        reason=_R.PROVIDER_CANCELLED,
        word="canceled",
        cancel=True,
    ),
    Scenario(
        name="webhook",
        title="A webhook comes, twice",
        script="webhook",
        table=acme.CALLING,
        state=_S.SUCCEEDED,
        word="succeeded",
        notices=2,
    ),
    Scenario(
        name="dead-link",
        title="The link to the file is dead",
        script="dead-link",
        state=_S.SUCCEEDED,
        word="succeeded",
        files=("dead-link", "file"),
    ),
)
"""What can happen on the way to the provider and back, and with the result."""

SCENARIOS = _FOLLOWED + _SUBMITTED

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

ACCOUNTS: dict[str, list[str]] = {
    table: list(dict.fromkeys(scenario.account for scenario in SCENARIOS if scenario.table == table))
    for table in dict.fromkeys(scenario.table for scenario in SCENARIOS)
}
"""Table -> the provider accounts that the scenarios use, in order of appearance."""
