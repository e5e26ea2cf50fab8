"""The gate of a provider account: holds back every operation on it (R-POLL-4, R-READ-4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from jobtrack.core.observation import Kind, Observation
from jobtrack.core.reply import Trouble
from jobtrack.core.table import GatePolicy, GateScope


class HoldReason(StrEnum):
    NONE = ""
    GUIDANCE = "guidance"  # the provider asked to wait; opens by itself
    AUTH = "auth"  # access was denied; opened by a person, then by a good probe
    BREAKER = "breaker"  # the account does not answer; single probes


@dataclass(frozen=True, slots=True, kw_only=True)
class GateState:
    """The stored gate. Open: ``reason`` is NONE."""

    reason: HoldReason = HoldReason.NONE
    held_until: datetime | None = None  # GUIDANCE: opens then. BREAKER: next probe then. AUTH: None = until repaired
    streak: int = 0  # failures in a row that count for the breaker
    probe: str = ""  # id of the operation whose single probe is under way
    version: int = 0  # compare-and-set; grows by one with each move


OPEN = GateState()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """The operation may be claimed. ``after`` is the gate to store first (a probe was taken), or None."""

    after: GateState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The operation must wait; nothing is debited."""

    until: datetime


RECHECK = timedelta(seconds=30)
"""How long an operation waits at a gate that opens only by a person or by another operation's probe."""


def ask(gate: GateState, operation_id: str, now: datetime, policy: GatePolicy) -> Pass | Held:
    """May this operation send now? A closed breaker and a repaired access let one operation through as a probe."""
    if gate.reason is HoldReason.NONE:
        return Pass()
    if gate.reason is HoldReason.GUIDANCE:
        return Pass() if gate.held_until is None or gate.held_until <= now else Held(until=gate.held_until)
    if gate.held_until is None:
        return Held(until=now + RECHECK)
    if gate.held_until > now:
        return Held(until=gate.held_until)
    # The probe's slot is dated, so a probing worker that dies gives it back.
    slot = policy.breaker_hold if gate.reason is HoldReason.BREAKER else RECHECK
    return Pass(after=replace(gate, probe=operation_id, held_until=now + slot))


def repaired(gate: GateState, now: datetime) -> GateState:
    """A person stated that access works again: the next look is a probe (R-ESC-4)."""
    if gate.reason is not HoldReason.AUTH:
        return gate
    return replace(gate, held_until=now, probe="")


_BREAKER_TROUBLE = frozenset({Trouble.DNS, Trouble.CONNECT_REFUSED, Trouble.CONNECT_TIMEOUT, Trouble.TLS})


def _counts_for_breaker(observation: Observation) -> bool:
    if observation.kind is not Kind.TRANSPORT_FAILURE:
        return False
    return observation.http is not None or observation.trouble in _BREAKER_TROUBLE


def after(gate: GateState, observation: Observation, now: datetime, policy: GatePolicy) -> GateState:
    """The gate once an answer is known. Returns ``gate`` itself if nothing changes."""
    if observation.kind is Kind.DENIED:
        if gate.reason is HoldReason.AUTH and gate.held_until is None:
            return gate
        return GateState(reason=HoldReason.AUTH, version=gate.version)
    wait = observation.guidance.wait if observation.guidance else None
    busy = observation.http in (429, 503) or observation.kind is Kind.RATE_LIMITED
    if busy and wait is not None and policy.scope is GateScope.ACCOUNT and gate.reason is not HoldReason.AUTH:
        until = now + min(wait, policy.max_hold)
        if gate.reason is HoldReason.GUIDANCE and gate.held_until is not None and gate.held_until >= until:
            return gate
        return GateState(reason=HoldReason.GUIDANCE, held_until=until, version=gate.version)
    if _counts_for_breaker(observation):
        streak = gate.streak + 1
        if gate.reason is HoldReason.AUTH or policy.breaker_failures == 0:
            return gate
        if streak >= policy.breaker_failures or gate.reason is HoldReason.BREAKER:
            return GateState(
                reason=HoldReason.BREAKER, held_until=now + policy.breaker_hold, streak=streak, version=gate.version
            )
        return replace(gate, streak=streak)
    if observation.http is None or observation.kind in (Kind.TRANSPORT_FAILURE, Kind.RATE_LIMITED):
        return gate
    # An answered request proves access and reachability, but only its own wait ends a guidance hold.
    if gate.reason is HoldReason.GUIDANCE and gate.held_until is not None and gate.held_until > now:
        return gate if gate.streak == 0 else replace(gate, streak=0)
    if gate.reason is HoldReason.NONE and gate.streak == 0:
        return gate
    return GateState(version=gate.version)
