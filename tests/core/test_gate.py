"""R-POLL-4, R-READ-4 and the account gate of the design: guidance, auth, breaker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobtrack.core.gate import OPEN, RECHECK, GateState, Held, HoldReason, Pass, after, ask, repaired
from jobtrack.core.observation import DelaySource, Guidance, Kind, Observation
from jobtrack.core.reply import Trouble
from jobtrack.core.table import GatePolicy, GateScope

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
S = timedelta(seconds=1)
POLICY = GatePolicy(breaker_failures=3, breaker_hold=30 * S, max_hold=3600 * S)
GUIDED = GateState(reason=HoldReason.GUIDANCE, held_until=NOW + 60 * S, version=4)
DENIED = GateState(reason=HoldReason.AUTH, version=7)
BROKEN = GateState(reason=HoldReason.BREAKER, held_until=NOW + 30 * S, streak=3)


def seen(
    kind: Kind, http: int | None = 200, wait: timedelta | None = None, trouble: Trouble | None = None
) -> Observation:
    guidance = None
    if wait is not None:
        guidance = Guidance(source=DelaySource.PROVIDER_RETRY_AFTER, raw="x", wait=wait)
    return Observation(kind=kind, http=http, guidance=guidance, trouble=trouble)


PENDING = seen(Kind.PENDING)
FAILED = seen(Kind.TRANSPORT_FAILURE, http=503)
REFUSED = seen(Kind.TRANSPORT_FAILURE, http=None, trouble=Trouble.CONNECT_REFUSED)
LOST = seen(Kind.TRANSPORT_FAILURE, http=None, trouble=Trouble.READ_TIMEOUT)

ASK = [
    (OPEN, NOW, Pass()),
    (GUIDED, NOW, Held(until=NOW + 60 * S)),
    (GUIDED, NOW + 60 * S, Pass()),
    (DENIED, NOW, Held(until=NOW + RECHECK)),
    (BROKEN, NOW, Held(until=NOW + 30 * S)),
]


@pytest.mark.parametrize(("gate", "now", "expected"), ASK)
def test_who_may_send(gate: GateState, now: datetime, expected: Pass | Held) -> None:
    assert ask(gate, "op-1", now, POLICY) == expected


def test_a_breaker_lets_one_probe_through_and_dates_its_slot() -> None:
    probing = ask(BROKEN, "op-1", NOW + 30 * S, POLICY)
    assert isinstance(probing, Pass)
    assert probing.after is not None
    assert (probing.after.probe, probing.after.held_until) == ("op-1", NOW + 60 * S)
    assert ask(probing.after, "op-2", NOW + 31 * S, POLICY) == Held(until=NOW + 60 * S)


def test_repaired_access_lets_one_probe_through_and_its_answer_decides() -> None:
    probing = ask(repaired(DENIED, NOW), "op-1", NOW, POLICY)
    assert isinstance(probing, Pass)
    assert probing.after is not None
    assert isinstance(ask(probing.after, "op-2", NOW, POLICY), Held)
    assert after(probing.after, PENDING, NOW, POLICY).reason is HoldReason.NONE
    denied_again = after(probing.after, seen(Kind.DENIED, http=401), NOW, POLICY)
    assert (denied_again.reason, denied_again.held_until) == (HoldReason.AUTH, None)


@pytest.mark.parametrize("gate", [OPEN, GUIDED, BROKEN])
def test_only_a_gate_closed_by_denial_can_be_declared_repaired(gate: GateState) -> None:
    assert repaired(gate, NOW) is gate


def test_a_denial_closes_the_gate_and_a_second_one_changes_nothing() -> None:
    closed = after(OPEN, seen(Kind.DENIED, http=403), NOW, POLICY)
    assert (closed.reason, closed.held_until) == (HoldReason.AUTH, None)
    assert after(closed, seen(Kind.DENIED, http=403), NOW, POLICY) is closed


@pytest.mark.parametrize(
    "busy",
    [
        seen(Kind.RATE_LIMITED, 429, 50 * S),
        seen(Kind.TRANSPORT_FAILURE, 503, 50 * S),
        seen(Kind.RATE_LIMITED, 400, 50 * S),
    ],
)
def test_guidance_of_a_busy_answer_holds_the_account(busy: Observation) -> None:
    assert after(OPEN, busy, NOW, POLICY) == GateState(reason=HoldReason.GUIDANCE, held_until=NOW + 50 * S)


def test_a_hold_is_never_shortened_and_never_longer_than_allowed() -> None:
    assert after(GUIDED, seen(Kind.RATE_LIMITED, 429, 5 * S), NOW, POLICY) is GUIDED
    assert after(OPEN, seen(Kind.RATE_LIMITED, 429, 9999 * S), NOW, POLICY).held_until == NOW + POLICY.max_hold


@pytest.mark.parametrize("harmless", [seen(Kind.PENDING, 200, 50 * S), seen(Kind.RATE_LIMITED, 429), LOST])
def test_what_does_not_hold_the_account(harmless: Observation) -> None:
    assert after(OPEN, harmless, NOW, POLICY) is OPEN


def test_with_the_scope_of_one_operation_the_account_stays_open() -> None:
    assert after(OPEN, seen(Kind.RATE_LIMITED, 429, 50 * S), NOW, GatePolicy(scope=GateScope.OPERATION)) is OPEN


@pytest.mark.parametrize("failure", [FAILED, REFUSED])
def test_failures_in_a_row_close_the_breaker_and_a_good_answer_opens_it(failure: Observation) -> None:
    gate = OPEN
    reasons = []
    for _ in range(4):
        gate = after(gate, failure, NOW, POLICY)
        reasons.append(gate.reason.value)
    assert reasons == ["", "", "breaker", "breaker"]
    assert after(gate, PENDING, NOW, POLICY) == GateState()


def test_a_good_answer_ends_a_streak_but_not_a_hold() -> None:
    assert after(GateState(streak=2), PENDING, NOW, POLICY).streak == 0
    assert after(GUIDED, PENDING, NOW, POLICY) is GUIDED
    assert after(GateState(reason=HoldReason.GUIDANCE, held_until=NOW + S, streak=1), PENDING, NOW, POLICY).streak == 0
    assert after(GUIDED, PENDING, NOW + 61 * S, POLICY).reason is HoldReason.NONE


def test_without_a_breaker_and_behind_a_denial_failures_do_not_count() -> None:
    assert after(OPEN, FAILED, NOW, GatePolicy(breaker_failures=0)) is OPEN
    assert after(DENIED, FAILED, NOW, POLICY) is DENIED


def test_busy_guidance_never_opens_a_gate_closed_by_denial() -> None:
    assert after(DENIED, seen(Kind.RATE_LIMITED, 429, 5 * S), NOW, POLICY) is DENIED
