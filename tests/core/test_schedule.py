"""When a table looks at a job that stays pending, and how far its requests reach."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobtrack.core.schedule import plan
from jobtrack.core.table import BudgetSpec, Polling

SECOND = timedelta(seconds=1)
POLLING = Polling(first=10 * SECOND, base=10 * SECOND, factor=2, cap=40 * SECOND)


@pytest.mark.parametrize(
    ("requests", "deadline_s", "looks_s", "reach_s", "covered"),
    [
        (3, 600, [10, 15, 25], 45, False),
        (3, 45, [10, 15, 25], 45, True),  # the next look would come with the deadline
        (3, 44, [10, 15, 25], 44, True),
        (9, 25, [10, 15], 25, True),  # no look at the deadline itself
        (9, 10, [], 10, True),
    ],
)
def test_the_requests_reach_to_the_look_that_they_do_not_hold(requests, deadline_s, looks_s, reach_s, covered) -> None:
    found = plan(POLLING, BudgetSpec(deadline=deadline_s * SECOND, status_requests=requests), 0.0)
    assert [look.total_seconds() for look in found.looks] == looks_s
    assert (found.reach.total_seconds(), found.covered) == (reach_s, covered)
