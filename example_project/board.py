"""The table of the demo: drawn in place on a terminal, one line for each change elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TextIO

_HEAD = ("scenario", "state", "polls", "next look", "why")
_WIDTHS = (13, 11, 7, 10)
_COLOURS = {"succeeded": "32", "escalated": "33", "failed": "31", "cancelled": "31", "expired": "31", "abandoned": "31"}


class Line(NamedTuple):
    """One operation. ``polls`` is "used/allowed"; ``next_look`` is "" when nothing more is to come."""

    scenario: str
    state: str
    polls: str
    next_look: str
    why: str


def text(cells: Sequence[str], width: int) -> str:
    """The cells in columns, cut to the width of the terminal."""
    columns = [cell.ljust(wide) for cell, wide in zip(cells, _WIDTHS, strict=False)]
    return " ".join([*columns, *cells[len(_WIDTHS) :]])[: max(width - 1, 40)].rstrip()


def verdicts(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """The table at the end: scenario, what was expected, what was seen."""
    table = [("scenario", "expected", "seen"), *rows]
    wide, wider = (max(len(row[column]) for row in table) for column in (0, 1))
    return [f"{name:{wide}}  {expected:{wider}}  {seen}" for name, expected, seen in table]


@dataclass(slots=True, kw_only=True)
class Board:
    """Shows lines on a stream.

    Args:
        out: where to; a terminal is redrawn.
        live: True redraws. None: if ``out`` is a terminal.
    """

    out: TextIO = field(default_factory=lambda: sys.stdout)
    live: bool | None = None
    _shown: dict[str, Line] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.live is None:
            self.live = self.out.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, lines: Sequence[Line]) -> None:
        """Show how things stand now."""
        # A table that is longer than the terminal cannot be drawn over.
        if self.live and len(lines) + 2 <= shutil.get_terminal_size().lines:
            self._redraw(lines)
        else:
            self._append(lines)
        self._shown = {line.scenario: line for line in lines}
        self.out.flush()

    def _redraw(self, lines: Sequence[Line]) -> None:
        width = shutil.get_terminal_size().columns
        if self._shown:
            self.out.write(f"\033[{len(self._shown) + 1}F")  # up to the first line of the last drawing
        for row in (_HEAD, *lines):
            self.out.write(f"\033[2K{self._colour(row[1], text(row, width))}\n")

    def _append(self, lines: Sequence[Line]) -> None:
        if not self._shown:
            self.out.write(f"{'':>7} {text(_HEAD, 200)}\n")
        for line in lines:
            before = self._shown.get(line.scenario)
            # A countdown is no news.
            if before is None or before._replace(next_look="") != line._replace(next_look=""):
                self.out.write(f"{time.monotonic() - self._began:6.1f}s {text(line, 200)}\n")

    def _colour(self, state: str, row: str) -> str:
        colour = _COLOURS.get(state)
        return row if colour is None or "NO_COLOR" in os.environ else f"\033[{colour}m{row}\033[0m"
