"""Charts as plain geometry: a template draws them as SVG, without scripts and without styles of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 480
"""Units across every chart; a page scales them."""

_ROW, _BAR = 26, 14
_LABELS, _VALUES = 176, 62  # room on both sides of the bars of a bar chart
_HEIGHT, _FOOT = 140, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle; ``kind`` is a CSS class."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    tip: str = ""  # what a pointer over it is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    x: float
    y: float
    text: str
    end: bool = False  # the text ends at ``x`` instead of beginning there


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture."""

    id: str  # unique on its page
    title: str
    desc: str  # what the picture shows, in a sentence
    height: int
    boxes: Sequence[Box]
    labels: Sequence[Label]
    width: int = WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row or column: parts on top of each other, with the CSS class of each."""

    label: str
    parts: Sequence[tuple[str, float]]
    value: str = ""  # the number in words, behind a bar
    tip: str = ""

    @property
    def size(self) -> float:
        return sum(size for _kind, size in self.parts)


def bars(name: str, title: str, desc: str, rows: Sequence[Bar], *, full: float | None = None) -> Chart:
    """Rows from left to right.

    Args:
        full: the size that fills the width; None: that of the largest row.
    """
    most = full or max((row.size for row in rows), default=0) or 1
    scale = (WIDTH - _LABELS - _VALUES) / most
    boxes: list[Box] = []
    labels: list[Label] = []
    for number, row in enumerate(rows):
        y, x = number * _ROW, float(_LABELS)
        labels.append(Label(x=_LABELS - 8, y=y + 17, text=_shortened(row.label), end=True))
        for kind, size in row.parts:
            width = round(size * scale, 1)
            boxes.append(Box(x=round(x, 1), y=y + 5, width=width, height=_BAR, kind=kind, tip=row.tip))
            x += width
        labels.append(Label(x=round(x + 6, 1), y=y + 17, text=row.value))
    return Chart(id=name, title=title, desc=desc, height=max(len(rows), 1) * _ROW, boxes=boxes, labels=labels)


def columns(name: str, title: str, desc: str, rows: Sequence[Bar]) -> Chart:
    """Columns from left to right, one for each day; the first and the last one are named, and the largest size."""
    most = max((row.size for row in rows), default=0)
    scale, step = (_HEIGHT - _FOOT - 14) / (most or 1), WIDTH / max(len(rows), 1)
    gap = min(step * 0.2, 4)
    floor = _HEIGHT - _FOOT
    boxes = [Box(x=0, y=floor, width=WIDTH, height=1, kind="axis")]
    for number, row in enumerate(rows):
        y = float(floor)
        for kind, size in row.parts:
            height = max(round(size * scale, 1), 1.0) if size else 0.0  # one of many must not vanish
            y -= height
            x = round(number * step + gap / 2, 1)
            boxes.append(Box(x=x, y=round(y, 1), width=round(step - gap, 1), height=height, kind=kind, tip=row.tip))
    labels = [Label(x=0, y=10, text=max(rows, key=lambda row: row.size).value if most else "0")]
    if rows:
        labels += [Label(x=0, y=_HEIGHT - 4, text=rows[0].label)]
        labels += [Label(x=WIDTH, y=_HEIGHT - 4, text=rows[-1].label, end=True)]
    drawn = [box for box in boxes if box.height > 0]
    return Chart(id=name, title=title, desc=desc, height=_HEIGHT, boxes=drawn, labels=labels)


def _shortened(text: str, most: int = 22) -> str:
    """The table beneath has the whole name."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
