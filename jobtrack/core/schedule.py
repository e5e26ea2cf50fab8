"""When a table looks at a job that stays pending, how far its requests reach, and how lengths of time are written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from jobtrack.core.backoff import first_delay, local_delay
from jobtrack.core.table import BudgetSpec, Polling


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One schedule without guidance, in offsets from the start."""

    looks: tuple[timedelta, ...]  # ascending; all before the deadline, at most the request budget
    reach: timedelta  # when a look would be wanted that the budget does not hold; the deadline if that comes first
    covered: bool  # the budget lasts to the deadline; False: looking ends early


def plan(polling: Polling, budget: BudgetSpec, draw: float) -> Plan:
    """The looks of a job that stays pending and never says when to ask again.

    Args:
        polling: the table's schedule.
        budget: its deadline and its status requests.
        draw: jitter of every wait, in [0, 1]: 0 gives the shortest waits, 1 the longest.
    """
    at = first_delay(polling, draw)
    looks: list[timedelta] = []
    while at < budget.deadline and len(looks) < budget.status_requests:
        looks.append(at)
        at += local_delay(polling, len(looks) - 1, draw)
    return Plan(looks=tuple(looks), reach=min(at, budget.deadline), covered=at >= budget.deadline)


_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def duration(length: timedelta) -> str:
    """A length of time in the units of a table, two at most: ``950ms``, ``2.5s``, ``3m 20s``, ``2h 5m``, ``7d``."""
    seconds = length.total_seconds()
    if 0 < seconds < 1:
        return f"{seconds * 1000:.3g}ms"
    if seconds < 60:
        return f"{seconds:.3g}s"
    whole = round(seconds)
    first = next(number for number, (_, size) in enumerate(_UNITS) if whole >= size)
    parts = []
    for name, size in _UNITS[first : first + 2]:
        count, whole = divmod(whole, size)
        parts += [f"{count}{name}"] if count else []
    return " ".join(parts)
