"""INV-14: a lease outlives the longest request, and a worker that stood still does not send."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.lease import lease_for, margin_for, too_late
from jobtrack.core.operation import Operation
from jobtrack.core.table import RequestLimits
from tests.core.builders import OPERATION, T0

S = timedelta(seconds=1)


@pytest.mark.parametrize(("total_s", "margin_s"), [(1, 10), (20, 10), (60, 30)])
def test_a_lease_lasts_longer_than_the_longest_request_by_its_margin(total_s: int, margin_s: int) -> None:
    limits = RequestLimits(total=total_s * S)
    assert (margin_for(limits, 10 * S), lease_for(limits, 10 * S)) == (margin_s * S, (total_s + margin_s) * S)


def test_a_worker_sends_only_within_half_the_margin_after_its_claim() -> None:
    limits = RequestLimits(total=20 * S)
    assert [too_late(limits, 10 * S, waited * S) for waited in (0, 5, 5.01)] == [False, False, True]


def limited(**more: object) -> Operation:
    return replace(OPERATION, budget=replace(OPERATION.budget, deadline=T0 + 100 * S, needed_by=T0 + 50 * S), **more)  # type: ignore[arg-type]


def test_something_is_said_at_the_deadline_at_an_untold_business_deadline_and_at_the_end_of_a_look() -> None:
    look = {"last_look": True, "look_until": T0 + 200 * S}
    rows = [limited(), limited(needed_by_told=True), limited(**look), limited(needed_by_told=True, **look)]
    assert [(row.next_limit - T0) / S for row in rows] == [50, 100, 50, 200]
