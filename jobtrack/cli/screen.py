"""What the commands print: aligned and coloured for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click

from jobtrack.core.text import clean

GOOD, FINDINGS, USAGE = 0, 1, 2

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")


def plain(text: object) -> str:
    """Text that cannot steer the terminal: it may come from a provider or a file."""
    return clean(str(text), 2000)


def plain_lines(text: str) -> str:
    """As ``plain``, line by line."""
    return "\n".join(map(plain, text.split("\n")))


def good(text: object) -> str:
    return click.style(plain(text), fg="green")


def bad(text: object) -> str:
    return click.style(plain(text), fg="red", bold=True)


def warn(text: object) -> str:
    return click.style(plain(text), fg="yellow")


def title(text: object) -> str:
    return click.style(plain(text), bold=True)


def faint(text: object) -> str:
    return click.style(plain(text), dim=True)


def show_json(document: object) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))


def fields(rows: Iterable[tuple[str, str]], *, indent: int = 0) -> None:
    """Name and value lines, the values aligned; empty values are left out."""
    shown = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(" " * indent + faint(name.ljust(width)) + "  " + value)


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset()) -> None:
    """A table of columns as wide as their longest cell. ``right`` names the columns to align to the right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(click.unstyle(line[column])) for line in lines) for column in range(len(header))]
    for number, line in enumerate(lines):
        cells = [_pad(cell, widths[column], right=column in right) for column, cell in enumerate(line)]
        text = "  ".join(cells).rstrip()
        click.echo(faint(text) if number == 0 else text)


def _pad(cell: str, width: int, *, right: bool) -> str:
    space = " " * (width - len(click.unstyle(cell)))
    return space + cell if right else cell + space


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 look``, ``2 looks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
