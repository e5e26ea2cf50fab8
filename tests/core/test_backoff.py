"""R-POLL-1, R-POLL-4, R-POLL-7: delays stay in their bounds whatever the numbers, and never overflow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.backoff import delivery_delay, first_delay, local_delay, spread, steep_delay
from jobtrack.core.table import Polling

S = timedelta(seconds=1)
POLLING = Polling(first=2 * S, base=2 * S, factor=2, cap=60 * S)
JUST_UNDER_ONE = 1 - 2**-53


@pytest.mark.parametrize(
    ("polls", "longest"), [(0, 2), (1, 4), (2, 8), (3, 16), (4, 32), (5, 60), (6, 60), (10**9, 60)]
)
def test_delay_is_between_half_and_all_of_the_ceiling(polls: int, longest: int) -> None:
    assert local_delay(POLLING, polls, 0.0) == longest * S / 2
    assert local_delay(POLLING, polls, JUST_UNDER_ONE) == longest * S


@pytest.mark.parametrize("factor", [1, 1.0])
def test_a_fixed_interval_still_has_jitter(factor: float) -> None:
    fixed = Polling(base=10 * S, factor=factor, cap=60 * S)
    assert (local_delay(fixed, 99, 0.0), local_delay(fixed, 99, 0.5)) == (5 * S, 7.5 * S)


def test_a_429_that_says_nothing_makes_delays_grow_and_longer_than_the_local_ones() -> None:
    delays = [steep_delay(POLLING, n - 1, n, JUST_UNDER_ONE) for n in range(1, 4)]
    local = [local_delay(POLLING, n - 1, JUST_UNDER_ONE) for n in range(1, 4)]
    assert delays == sorted(set(delays))
    assert all(steep > plain for steep, plain in zip(delays, local, strict=True))
    assert steep_delay(POLLING, 10**9, 10**9, 0.999) <= 4 * POLLING.cap


def test_the_first_look_is_never_earlier_than_the_table_says() -> None:
    assert (first_delay(POLLING, 0.0), first_delay(POLLING, 0.5)) == (2 * S, 2.25 * S)


@given(
    base=st.timedeltas(timedelta(0), timedelta(days=30)),
    cap=st.timedeltas(timedelta(0), timedelta(days=30)),
    factor=st.floats(1, 1e6),
    polls=st.integers(0, 10**12),
    draw=st.floats(0, 1, exclude_max=True),
)
def test_no_numbers_overflow_and_the_least_interval_always_holds(
    base: timedelta, cap: timedelta, factor: float, polls: int, draw: float
) -> None:
    polling = Polling(base=base, cap=cap, factor=factor, min_interval=S)
    delay = local_delay(polling, polls, draw)
    assert S <= delay <= max(S, cap)
    assert S <= steep_delay(polling, polls, polls, draw) <= max(S, cap * 4)


@given(wait=st.timedeltas(timedelta(0), timedelta(days=7)), draw=st.floats(0, 1, exclude_max=True))
def test_a_providers_wait_is_never_shortened(wait: timedelta, draw: float) -> None:
    assert wait <= spread(wait, draw) <= wait + 30 * S


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 10), (2, 20), (9, 2560), (10, 3600), (10**9, 3600)])
def test_a_failed_follow_up_is_tried_again_after_growing_pauses(attempts: int, seconds: int) -> None:
    assert delivery_delay(attempts) == seconds * S
