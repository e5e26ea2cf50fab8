"""When the provider wishes to be asked again: Retry-After, the table's hints, and instants (R-POLL-2).

A wait that can be understood is never undercut; one that cannot is recorded with the reason and replaced by the
local backoff. Instants are measured against the answer's own ``Date``, so a wrong clock on either side does no harm.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

from jobtrack.core import sentences_answer as say
from jobtrack.core.jsontext import Malformed
from jobtrack.core.locate import Answer, Found, Unreadable, read
from jobtrack.core.observation import DelaySource, Guidance
from jobtrack.core.reply import Answered
from jobtrack.core.table import Hint, HintUnit, Instant, ProviderTable
from jobtrack.core.text import tell

RAW_LIMIT = 200
"""Most characters of the provider's own text that are recorded."""

YEARS = range(1970, 3000)  # what every database can keep and a sane provider means
_HUGE = 10**15  # beyond any instant in milliseconds; keeps arithmetic exact
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_SCALE = {
    HintUnit.SECONDS: 1,
    HintUnit.MILLISECONDS: 1000,
    HintUnit.EPOCH_SECONDS: 1,
    HintUnit.EPOCH_MILLISECONDS: 1000,
}
_EPOCH = frozenset({HintUnit.EPOCH_SECONDS, HintUnit.EPOCH_MILLISECONDS})


def read_guidance(table: ProviderTable, answered: Answered, document: object, now: datetime) -> Guidance | None:
    """What the provider wishes, or None if it says nothing.

    The longest valid wait of all counts; among equal ones Retry-After, then the hints in the table's order. If none
    is valid the first invalid one is returned with its problem.

    Args:
        table: Says where hints are and how long a wait may be.
        answered: The answer; its status does not matter.
        document: The JSON body (or the item picked from it), ``Malformed``, or None.
        now: Aware; used where the answer has no usable ``Date``.
    """
    answer = Answer(status=answered.status, headers=answered.headers, document=document)
    base = provider_now(answer.headers, now)
    longest = table.polling.max_guidance
    heard = [*_retry_after(answer, base, longest), *_hints(answer, table.status.hints, base, longest)]
    valid = [(guidance.wait, guidance) for guidance in heard if guidance.wait is not None]
    if valid:
        return max(valid, key=lambda pair: pair[0])[1]
    return next(iter(heard), None)


def provider_now(headers: tuple[tuple[str, str], ...], now: datetime) -> datetime:
    """The provider's own clock: the first readable ``Date`` of the answer, else ``now``. Aware."""
    dates = (http_date(value, now) for name, value in headers if name.lower() == "date")
    return next((date for date in dates if date is not None), now)


def read_instant(instant: Instant, answer: Answer, now: datetime) -> datetime | None:
    """An instant that the provider states, aware and in UTC; None if it is not stated or not readable."""
    seen = read(instant.at, answer)
    if not isinstance(seen, Found):
        return None
    base = provider_now(answer.headers, now)
    wait = _seconds(seen.value, instant.unit, base)
    return None if isinstance(wait, str) else _after(base, wait)


def _after(base: datetime, seconds: float) -> datetime | None:
    """``base`` plus seconds, if every database can keep it."""
    try:
        instant = base.astimezone(UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return instant if instant.year in YEARS else None


# --- the sources ------------------------------------------------------------------------------------


def _retry_after(answer: Answer, base: datetime, longest: timedelta) -> Iterator[Guidance]:
    for name, value in answer.headers:
        if name.lower() == "retry-after":
            text = value.strip(" \t")
            unit = HintUnit.SECONDS if _NUMBER.fullmatch(text) else HintUnit.HTTP_DATE
            yield _guidance(DelaySource.PROVIDER_RETRY_AFTER, text, unit, base, longest)


def _hints(answer: Answer, hints: tuple[Hint, ...], base: datetime, longest: timedelta) -> Iterator[Guidance]:
    for hint in hints:
        seen = read(hint.at, answer)
        if isinstance(seen, Found):
            yield _guidance(DelaySource.PROVIDER_POLL_HINT, seen.value, hint.unit, base, longest)
        elif isinstance(seen, Unreadable) and not isinstance(answer.document, Malformed):
            # A repeated member is a hint gone wrong; a body that cannot be read at all holds no hint.
            yield Guidance(source=DelaySource.PROVIDER_POLL_HINT, raw="", wait=None, problem=seen.problem)


def _guidance(source: DelaySource, value: object, unit: HintUnit, base: datetime, longest: timedelta) -> Guidance:
    raw = tell(value if isinstance(value, str) else json.dumps(value), RAW_LIMIT)
    seconds = _seconds(value, unit, base)
    problem = seconds if isinstance(seconds, str) else _problem(seconds, unit, longest)
    wait = None if problem or isinstance(seconds, str) else timedelta(seconds=math.ceil(seconds))
    return Guidance(source=source, raw=raw, wait=wait, problem=problem)


def _problem(seconds: float, unit: HintUnit, longest: timedelta) -> str:
    if unit in (HintUnit.SECONDS, HintUnit.MILLISECONDS):
        if seconds < 0:
            return say.NEGATIVE.of()
    elif seconds <= 0:
        return say.NOT_AFTER_DATE.of()
    return say.TOO_LONG.of() if seconds > longest.total_seconds() else ""


# --- the forms --------------------------------------------------------------------------------------


def _seconds(value: object, unit: HintUnit, base: datetime) -> float | str:
    """Seconds from ``base`` that a value means, or why it means none."""
    if unit in _SCALE:
        number = _number(value)
        if number is None:
            return say.NO_WISHED_NUMBER.of()
        return number / _SCALE[unit] - (base.timestamp() if unit in _EPOCH else 0)
    if not isinstance(value, str):
        return say.NO_WISHED_TEXT.of()
    instant = timestamp(value) if unit is HintUnit.TIMESTAMP else http_date(value, base)
    return say.NOT_UNDERSTOOD.of() if instant is None else (instant - base).total_seconds()


def _number(value: object) -> float | None:
    """A JSON number, or a text of ASCII digits, clipped to what arithmetic can hold."""
    if isinstance(value, str):
        text = value.strip(" \t")
        return min(float(text), _HUGE) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(max(min(value, _HUGE), -_HUGE))


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_ZONE = r"(?:GMT|UTC|[+-]0000)"
_HTTP_DATES = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # RFC 9110, 5.6.7: the preferred form, RFC 850, asctime. The weekday is not needed and not believed.
        rf"[a-z]{{3,9}}, (?P<day>[0-9]{{1,2}}) (?P<month>[a-z]{{3}}) (?P<year>[0-9]{{4}}) {_TIME} {_ZONE}",
        rf"[a-z]{{3,9}}, (?P<day>[0-9]{{1,2}})-(?P<month>[a-z]{{3}})-(?P<year>[0-9]{{2}}) {_TIME} {_ZONE}",
        rf"[a-z]{{3,9}} (?P<month>[a-z]{{3}}) (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})",
    )
)


def http_date(text: str, base: datetime) -> datetime | None:
    """An HTTP date in any of its three forms (RFC 9110, 5.6.7), aware and in UTC; None if it is none.

    Args:
        text: The header value.
        base: Decides the century of a two-digit year: never more than 50 years after it.
    """
    match = next((match for form in _HTTP_DATES if (match := form.fullmatch(text.strip(" \t")))), None)
    if match is None or match["month"].lower() not in _MONTHS:
        return None
    year = int(match["year"])
    if len(match["year"]) == len("yy"):
        year = _four_digits(year, base.astimezone(UTC).year)
    month = _MONTHS.index(match["month"].lower()) + 1
    return _instant(year, month, match, UTC)


def _four_digits(year: int, base: int) -> int:
    full = base - base % 100 + year
    return full - 100 if full > base + 50 else full


_SECONDS = range(61)  # 60 is a leap second
_TIMESTAMP = re.compile(
    rf"(?P<year>[0-9]{{4}})-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})[Tt ]{_TIME}"
    r"(?:\.(?P<fraction>[0-9]{1,20}))?(?:[Zz]|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2}))"
)


def timestamp(text: str) -> datetime | None:
    """An RFC 3339 timestamp, aware and in UTC; None if it is none. Without an offset it names no instant."""
    match = _TIMESTAMP.fullmatch(text.strip(" \t"))
    if match is None:
        return None
    offset = timedelta(hours=int(match["hours"] or 0), minutes=int(match["minutes"] or 0))
    if offset >= timedelta(days=1):
        return None
    zone = timezone(-offset if match["sign"] == "-" else offset)
    return _instant(int(match["year"]), int(match["month"]), match, zone)


def _instant(year: int, month: int, match: re.Match[str], zone: timezone) -> datetime | None:
    second = int(match["second"])
    fraction = match.groupdict().get("fraction") or "0"
    if second not in _SECONDS:
        return None
    try:
        minute = datetime(year, month, int(match["day"]), int(match["hour"]), int(match["minute"]), tzinfo=zone)
        return minute.astimezone(UTC) + timedelta(seconds=second, microseconds=int(fraction[:6].ljust(6, "0")))
    except (ValueError, OverflowError):
        return None
