"""Delays of our own making (R-POLL-1, R-POLL-4). The jitter draw is an argument and is stored with the decision."""

from __future__ import annotations

import math
from datetime import timedelta

from jobtrack.core.table import Polling

STEEPNESS = 4
"""Each 429 without guidance multiplies the delay by this much ..."""
STEEP_CAP = 4
"""... up to this many times the table's cap: little enough for ten such answers before a usual deadline (B009)."""


def _ceiling(polling: Polling, polls: int) -> timedelta:
    """min(cap, base * factor^polls) without ever computing a number that overflows."""
    if polling.factor <= 1 or polling.base <= timedelta(0):
        return min(polling.cap, polling.base)
    enough = math.ceil(math.log(max(polling.cap / polling.base, 1.0), polling.factor))
    if polls >= enough:
        return polling.cap
    return min(polling.cap, polling.base * polling.factor**polls)


def _jittered(ceiling: timedelta, draw: float) -> timedelta:
    return ceiling * (0.5 + 0.5 * draw)


def local_delay(polling: Polling, polls: int, draw: float) -> timedelta:
    """Between half and all of min(cap, base * factor^polls), never under the least interval.

    Args:
        polling: the table's schedule.
        polls: status requests answered before this one; 0 after the first.
        draw: uniform in [0, 1).
    """
    return max(polling.min_interval, _jittered(_ceiling(polling, polls), draw))


def steep_delay(polling: Polling, polls: int, rate_limited: int, draw: float) -> timedelta:
    """Delay after a 429 that says nothing: the local delay times 4 for each such answer, up to 4 caps.

    Args:
        rate_limited: 429 answers so far, this one included (>= 1).
    """
    steps = min(rate_limited, 10)
    ceiling = min(polling.cap * STEEP_CAP, _ceiling(polling, polls) * STEEPNESS**steps)
    return max(polling.min_interval, _jittered(ceiling, draw))


def first_delay(polling: Polling, draw: float) -> timedelta:
    """Delay before the first look: never shorter than the table's ``first``, up to a quarter longer (R-POLL-7)."""
    return max(polling.min_interval, polling.first * (1 + 0.25 * draw))


def spread(wait: timedelta, draw: float) -> timedelta:
    """The provider's wait, never shortened; up to a tenth (at most 30 s) longer, so that not all return at once."""
    return wait + min(wait * 0.1, timedelta(seconds=30)) * draw


def delivery_delay(attempts: int) -> timedelta:
    """Pause before a failed follow-up is tried again: 10 s, doubled with each attempt, up to an hour.

    Args:
        attempts: so far (>= 1).
    """
    return min(timedelta(hours=1), timedelta(seconds=10.0 * 2.0 ** min(attempts - 1, 20)))
