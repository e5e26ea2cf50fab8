"""Schedules, budgets and limits that cannot work."""

from __future__ import annotations

from datetime import timedelta

from jobtrack.catalog.checks import Checks
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.nodes import Node
from jobtrack.core.schedule import duration, plan
from jobtrack.core.table import HintUnit, ProviderTable

LONGEST_REQUEST = timedelta(minutes=2)
"""A lease is at least as long as a request: a longer one would keep a dead worker's operation for minutes."""

LONGEST_GUIDANCE = timedelta(days=31)
_ZERO = timedelta(0)


def check_limits(root: Node, table: ProviderTable, report: Report) -> None:
    """Report schedules, budgets and limits that cannot work together."""
    checks = Checks(root, report)
    _positive(checks, table)
    _order(checks, table)
    if not (report.touched(("polling",)) or report.touched(("budget",))):
        _coverage(checks, table)
    _hints(checks, table)


def _positive(checks: Checks, table: ProviderTable) -> None:
    polling, limits, extension = table.polling, table.limits, table.budget.extension
    durations: dict[Path, timedelta | None] = {
        ("polling", "base"): polling.base,
        ("polling", "cap"): polling.cap,
        ("polling", "min_interval"): polling.min_interval,
        ("polling", "max_guidance"): polling.max_guidance,
        ("budget", "deadline"): table.budget.deadline,
        ("budget", "extension", "time"): extension.time if extension else None,
        ("gate", "breaker_hold"): table.gate.breaker_hold,
        ("gate", "max_hold"): table.gate.max_hold,
        ("limits", "connect"): limits.connect,
        ("limits", "read"): limits.read,
        ("limits", "total"): limits.total,
        ("status", "stall_after"): table.status.stall_after,
        ("retention", "job"): table.retention.job,
        ("retention", "result"): table.retention.result,
    }
    for path, length in durations.items():
        if length == _ZERO:
            checks.error(path, "zero", f"{path[-1]} is zero; write a duration above zero, such as 1s.")


def _order(checks: Checks, table: ProviderTable) -> None:
    """Pairs of durations of which the first may not be longer than the second."""
    polling, limits, deadline = table.polling, table.limits, table.budget.deadline
    rows: list[tuple[Path, timedelta, str, timedelta]] = [
        (("polling", "base"), polling.base, "polling.cap", polling.cap),
        (("polling", "min_interval"), polling.min_interval, "polling.cap", polling.cap),
        (("polling", "max_guidance"), polling.max_guidance, "31 days", LONGEST_GUIDANCE),
        (("limits", "connect"), limits.connect, "limits.total", limits.total),
        (("limits", "read"), limits.read, "limits.total", limits.total),
        (("limits", "total"), limits.total, "2 minutes, the longest a lease is planned for", LONGEST_REQUEST),
    ]
    for path, length, other, bound in rows:
        if length > bound:
            checks.error(
                path, "too_long", f"{'.'.join(map(str, path))} is longer than {other}; write at most {duration(bound)}."
            )
    if polling.first >= deadline:
        checks.error(
            ("polling", "first"),
            "no_look",
            f"The first look comes after the deadline; write first: below {duration(deadline)} "
            "or raise budget.deadline.",
        )
    stall, window = table.status.stall_after, table.status.not_found.window
    if stall is not None and stall >= deadline:
        checks.warn(
            ("status", "stall_after"),
            "never",
            f"The deadline ({duration(deadline)}) comes first; write less or remove it.",
        )
    kept = table.retention.job
    if kept is not None and kept < deadline:
        checks.warn(
            ("retention", "job"),
            "removed",
            f"The provider removes the job before the deadline ({duration(deadline)}); write an earlier deadline.",
        )
    if window >= deadline:
        checks.warn(
            ("status", "not_found", "for"), "never", f"The deadline ({duration(deadline)}) comes first; write less."
        )


def _coverage(checks: Checks, table: ProviderTable) -> None:
    """Do the requests last until the deadline, even if every wait is drawn as short as it can be?

    A table that leaves both schedule and budget to their defaults is asked for the longest waits only.
    """
    budget, polling = table.budget, table.polling
    written = checks.written(("polling",)) or checks.written(("budget",))
    shortest, longest = (plan(polling, budget, draw).reach for draw in (0.0, 1.0))
    if polling.first < budget.deadline and (shortest if written else longest) < budget.deadline:
        reach = f"{duration(shortest)} with the shortest waits" + (
            f" and {duration(longest)} with the longest" if longest < budget.deadline else ""
        )
        checks.warn(
            ("budget", "status_requests"),
            "too_few_requests",
            f"{budget.status_requests} requests last {reach}, the deadline is {duration(budget.deadline)}; "
            "write more status_requests, a longer polling.cap or an earlier deadline.",
        )


def _hints(checks: Checks, table: ProviderTable) -> None:
    for index, hint in enumerate(table.status.hints):
        name = hint.at.source.lower()
        if hint.unit is HintUnit.SECONDS and name.endswith(("_ms", "millis", "milliseconds")):
            path: Path = ("status", "hints", index, "unit")
            checks.warn(path, "unit", f"{hint.at.source} looks like milliseconds; write unit: milliseconds if it is.")
