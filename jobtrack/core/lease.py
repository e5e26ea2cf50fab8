"""How long a worker may hold an operation for one request (R-OWN-1, INV-14)."""

from __future__ import annotations

from datetime import timedelta

from jobtrack.core.table import RequestLimits


def margin_for(limits: RequestLimits, least: timedelta) -> timedelta:
    """How much longer than the longest request a lease lasts: at least half of it.

    Args:
        least: the margin never falls below this.
    """
    return max(least, limits.total / 2)


def lease_for(limits: RequestLimits, least_margin: timedelta) -> timedelta:
    """A lease outlives the longest request by its margin."""
    return limits.total + margin_for(limits, least_margin)


def too_late(limits: RequestLimits, least_margin: timedelta, since_claim: timedelta) -> bool:
    """Whether a worker stood still for so long after its claim that it must not send any more."""
    return since_claim > margin_for(limits, least_margin) / 2
