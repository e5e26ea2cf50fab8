"""The scenarios of the demo and how each must end.

The simulator knows how the provider behaves; this table says what jobtrack must make of it. ``make demo`` compares
the two, and fails if one of them is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobtrack.core.escalation import Reason
from jobtrack.core.operation import OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One way an export can go."""

    name: str  # as the simulator calls it
    title: str  # as the form shows it
    state: OperationState  # the state it must end or stop in
    reason: Reason | None = None  # what a person must be asked; None: nothing
    word: str  # the answer that decides, as the simulator's log names it
    times: int | None = 1  # how often that answer may be given: a stop is one request; None: any number
    # 401, 429 and 503 hold back a whole account. Accounts of their own keep those scenarios from slowing the others.
    account: str = "default"
    # Budgets, where the demo would otherwise take minutes. None: as the table grants.
    deadline: timedelta | None = None
    transport_failures: int | None = None
    rate_limited: int | None = None


_S, _R = OperationState, Reason

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(name="success", title="It works", state=_S.SUCCEEDED, word="succeeded"),
    Scenario(
        name="failure",
        title="The provider reports a failure",
        state=_S.FAILED,
        reason=_R.PROVIDER_FAILURE,
        word="failed",
    ),
    Scenario(
        name="cancelled",
        title="Somebody cancels the export at the provider",
        state=_S.CANCELLED,
        reason=_R.PROVIDER_CANCELLED,
        word="canceled",
    ),
    Scenario(
        name="expired",
        title="The provider drops the export",
        state=_S.EXPIRED,
        reason=_R.PROVIDER_EXPIRED,
        word="expired",
    ),
    Scenario(
        name="unknown",
        title="A state nobody has declared",
        state=_S.ESCALATED,
        reason=_R.UNKNOWN_STATE,
        word="paused",
    ),
    Scenario(
        name="retry-after",
        title="Busy, asks to wait, then works",
        state=_S.SUCCEEDED,
        word="succeeded",
        account="busy",
    ),
    Scenario(
        name="rate-limited",
        title="Too many requests, without end",
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
        state=_S.ESCALATED,
        reason=_R.DEADLINE_EXCEEDED,
        word="running",
        times=None,
        deadline=timedelta(seconds=12),
    ),
    Scenario(
        name="unauthorized",
        title="Access is revoked",
        state=_S.ESCALATED,
        reason=_R.AUTHORIZATION_DENIED,
        word="denied",
        account="locked",
    ),
    Scenario(
        name="html",
        title="A web page instead of an answer",
        state=_S.ESCALATED,
        reason=_R.INVALID_RESPONSE,
        word="html",
    ),
    Scenario(
        name="no-result",
        title="Success without a result",
        state=_S.ESCALATED,
        reason=_R.INVALID_RESULT,
        word="succeeded",
    ),
    Scenario(
        name="wrong-id",
        title="An answer about somebody else's export",
        state=_S.ESCALATED,
        reason=_R.JOB_ID_MISMATCH,
        word="wrong-id",
    ),
    Scenario(
        name="trickle",
        title="An answer that never ends",
        state=_S.ESCALATED,
        reason=_R.TRANSPORT_FAILURES_EXHAUSTED,
        word="trickle",
        times=3,
        transport_failures=3,
        account="slow",
    ),
)

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}

ACCOUNTS: tuple[str, ...] = tuple(dict.fromkeys(scenario.account for scenario in SCENARIOS))
"""The provider accounts the scenarios use, in order of appearance."""
