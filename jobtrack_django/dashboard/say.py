"""Numbers, spans and days as readers of a language write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from django.utils.formats import date_format, number_format
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from jobtrack_django.dashboard.now import Bounded

NOTHING = "–"

_MINUTE = timedelta(minutes=1)


def number(value: float, places: int = 0) -> str:
    return str(number_format(value, places, use_l10n=True, force_grouping=True))


def bounded(value: Bounded) -> str:
    """With a plus if counting stopped there."""
    return f"{number(value.count)}+" if value.more else number(value.count)


def share(part: int, whole: int) -> str:
    """In percent; rounded down, so that "100 %" means all."""
    if not whole:
        return NOTHING
    return _("%(number)s %%") % {"number": number(int(1000 * part / whole) / 10, 1)}


def mean(value: float | None) -> str:
    return NOTHING if value is None else number(value, 1)


def seconds(value: float | None) -> str:
    """How long something took."""
    if value is None:
        return NOTHING
    if value < 120:
        return _("%(number)s s") % {"number": number(value, 0 if value >= 10 or value == int(value) else 1)}
    return span(timedelta(seconds=value))


def span(value: timedelta) -> str:
    """A time in the two largest units that fit."""
    if value < _MINUTE:
        return seconds(int(value.total_seconds()))
    start = datetime(2001, 1, 1, tzinfo=UTC)  # any will do; months differ too little to matter
    return timesince(start, start + value)


def day(value: date) -> str:
    return date_format(value, "SHORT_DATE_FORMAT")
