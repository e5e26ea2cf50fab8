"""`jobtrack schedule`: when a table looks, and whether its request budget lasts to its deadline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobtrack.cli import screen
from jobtrack.cli.tables import find_table, tables_option
from jobtrack.core.schedule import Plan, duration, plan
from jobtrack.core.table import ProviderTable

DRAWS = {"earliest": 0.0, "mean": 0.5, "latest": 1.0}
"""Jitter draws shown; the real one is uniform in [0, 1)."""

_EDGE = 12
"""Looks shown at each end of a long schedule."""


@click.command(short_help="Show when a table looks at a job.")
@click.argument("table")
@tables_option
@screen.json_option
@click.pass_context
def schedule(ctx: click.Context, table: str, folders: tuple[Path, ...], *, as_json: bool) -> None:
    """Show when TABLE (an id or a file) looks at a job that stays pending.

    Exit code 1 if the request budget does not last to the deadline with mean jitter.
    """
    found = find_table(table, folders)
    plans = {name: plan(found.polling, found.budget, draw) for name, draw in DRAWS.items()}
    if as_json:
        screen.show_json(_document(found, plans))
    else:
        _show(found, plans)
    ctx.exit(screen.GOOD if plans["mean"].covered else screen.FINDINGS)


def _document(table: ProviderTable, plans: dict[str, Plan]) -> dict[str, Any]:
    return {
        "table": table.id,
        "deadline_s": table.budget.deadline.total_seconds(),
        "status_requests": table.budget.status_requests,
        "schedules": {
            name: {
                "covered": each.covered,
                "reach_s": round(each.reach.total_seconds(), 3),
                "looks_s": [round(look.total_seconds(), 3) for look in each.looks],
            }
            for name, each in plans.items()
        },
    }


def _show(table: ProviderTable, plans: dict[str, Plan]) -> None:
    polling, budget = table.polling, table.budget
    click.echo(screen.title(table.id) + "  a job that stays pending, without a word about when to ask again\n")
    screen.fields(
        [
            ("first look", f"after {duration(polling.first)}"),
            (
                "then",
                f"{duration(polling.base)}, times {polling.factor:g}, up to {duration(polling.cap)}",
            ),
            ("deadline", duration(budget.deadline)),
            ("requests", str(budget.status_requests)),
        ]
    )
    click.echo()
    screen.grid(["look", *plans], _rows(plans), right=frozenset({0, 1, 2, 3}))
    click.echo()
    for name, each in plans.items():
        click.echo(f"{name:<8}  {screen.count(len(each.looks), 'look')}  {_verdict(table, name, each)}")


def _rows(plans: dict[str, Plan]) -> list[list[str]]:
    longest = max(len(each.looks) for each in plans.values())
    numbers = list(range(longest))
    rows = [[str(number + 1), *(_look(each, number) for each in plans.values())] for number in numbers]
    if longest <= 2 * _EDGE + 1:
        return rows
    return [*rows[:_EDGE], ["...", "", "", ""], *rows[-_EDGE:]]


def _look(each: Plan, number: int) -> str:
    return duration(each.looks[number]) if number < len(each.looks) else "-"


def _verdict(table: ProviderTable, name: str, each: Plan) -> str:
    left = table.budget.status_requests - len(each.looks)
    if each.covered:
        return screen.good(f"lasts to the deadline, {screen.count(left, 'request')} left")
    ends = f"the requests last {duration(each.reach)}, not to the deadline"
    if name == "earliest":
        return screen.warn(f"{ends}, if every draw were the least one")
    return screen.bad(f"{ends}: allow more requests or longer delays")
