"""R-POLL-2, R-METRIC, INV-04: when the provider wishes to be asked again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.guidance import http_date, provider_now, read_guidance, read_instant, timestamp
from jobtrack.core.jsontext import Malformed, parse
from jobtrack.core.observation import DelaySource, Guidance
from jobtrack.core.place import Header
from jobtrack.core.reply import Answered
from jobtrack.core.table import Hint, HintUnit, Instant
from tests.core.builders import T0, TABLE, S, answer, body, members, table

RETRY_AFTER, POLL_HINT = DelaySource.PROVIDER_RETRY_AFTER, DelaySource.PROVIDER_POLL_HINT
NOT_UNDERSTOOD = "not understood"
PAST = "an instant that is not after the answer's Date"
TOO_LONG = "longer than the table allows"


def heard(*headers: tuple[str, str], now: datetime = T0, status: int = 200) -> Guidance | None:
    return read_guidance(TABLE, Answered(status=status, headers=headers), None, now)


SECONDS = [
    ("0", 0),
    ("7", 7),
    ("007", 7),
    (" 7\t", 7),
    ("12.5", 13),  # B001: a fraction is rounded up
    ("0.0001", 1),
    ("3600", 3600),
    ("Mon, 07 Jan 2030 12:00:30 GMT", 30),
    ("mon, 7 jan 2030 12:00:30 UTC", 30),
    ("Mon, 07 Jan 2030 12:00:30 -0000", 30),
    ("Monday, 07-Jan-30 12:00:30 GMT", 30),
    ("Mon Jan  7 12:00:30 2030", 30),
    ("Wed, 07 Jan 2030 12:00:30 GMT", 30),  # a wrong weekday changes nothing
    ("Mon, 07 Jan 2030 12:00:60 GMT", 60),  # a leap second
]


@pytest.mark.parametrize("status", [200, 202, 404, 429, 503])
@pytest.mark.parametrize(("raw", "wait"), SECONDS)
def test_retry_after_on_any_status(raw: str, wait: int, status: int) -> None:
    assert heard(("retry-after", raw), status=status) == Guidance(source=RETRY_AFTER, raw=raw.strip(), wait=wait * S)


INVALID = [
    ("Mon, 07 Jan 2030 11:40:00 GMT", PAST),  # B004
    ("Monday, 07-Jan-30 11:40:00 GMT", PAST),  # B004
    ("Mon, 07 Jan 2030 12:00:00 GMT", PAST),
    ("Fri, 31 Dec 99999 23:59:59 GMT", NOT_UNDERSTOOD),  # B005
    ("9" * 5000, TOO_LONG),  # B005
    ("nan", NOT_UNDERSTOOD),  # B005
    ("Infinity", NOT_UNDERSTOOD),  # B005
    ("1e400", NOT_UNDERSTOOD),  # B005
    ("\u0661\u0662", NOT_UNDERSTOOD),  # B005
    ("\u0661\u0662".encode().decode("latin-1"), NOT_UNDERSTOOD),  # B005
    ("\u00b2", NOT_UNDERSTOOD),
    ("-1", NOT_UNDERSTOOD),
    ("+1", NOT_UNDERSTOOD),
    ("1.", NOT_UNDERSTOOD),
    (".5", NOT_UNDERSTOOD),
    ("1_000", NOT_UNDERSTOOD),
    ("5, 10", NOT_UNDERSTOOD),
    ("", NOT_UNDERSTOOD),
    ("3601", TOO_LONG),
    ("3600.5", TOO_LONG),
    ("Mon, 07 Jan 2030 13:00:01 GMT", TOO_LONG),
    ("Fri, 31 Dec 9999 23:59:60 GMT", NOT_UNDERSTOOD),
    ("Mon, 32 Jan 2030 12:00:30 GMT", NOT_UNDERSTOOD),
    ("Mon, 07 Foo 2030 12:00:30 GMT", NOT_UNDERSTOOD),
    ("Mon, 07 Jan 2030 12:00:61 GMT", NOT_UNDERSTOOD),
    ("Mon, 07 Jan 2030 12:00:30 PST", NOT_UNDERSTOOD),
    ("Mon, 07 Jan 0000 12:00:30 GMT", NOT_UNDERSTOOD),
]


@pytest.mark.parametrize(("raw", "problem"), INVALID)
def test_invalid_guidance_is_recorded_and_is_no_wait(raw: str, problem: str) -> None:
    guidance = heard(("Retry-After", raw), status=503)
    assert guidance is not None
    assert (guidance.wait, guidance.problem) == (None, problem)
    assert len(guidance.raw) <= 200


def test_no_guidance_is_none() -> None:
    assert heard(("Date", "Mon, 07 Jan 2030 12:00:00 GMT")) is None


@pytest.mark.parametrize("skew", [-600, 0, 600])
def test_an_instant_is_measured_against_the_answers_own_date(skew: int) -> None:
    """B065: neither clock needs to be right."""
    headers = (("Date", "Mon, 07 Jan 2030 12:00:00 GMT"), ("Retry-After", "Mon, 07 Jan 2030 12:00:50 GMT"))
    guidance = heard(*headers, now=T0 + skew * S)
    assert guidance is not None
    assert guidance.wait == 50 * S


def test_without_a_date_the_local_clock_counts_and_the_wait_is_rounded_up() -> None:
    guidance = heard(("Date", "soon"), ("Retry-After", "Mon, 07 Jan 2030 12:00:50 GMT"), now=T0 + 0.25 * S)
    assert guidance is not None
    assert guidance.wait == 50 * S


REPEATED = [
    (("5", "9"), 9),
    (("9", "5"), 9),
    (("soon", "5"), 5),
    (("5", "soon"), 5),
]


@pytest.mark.parametrize(("values", "wait"), REPEATED)
def test_of_a_repeated_header_the_longest_valid_wait_counts(values: tuple[str, ...], wait: int) -> None:
    guidance = heard(*(("Retry-After", value) for value in values))
    assert guidance is not None
    assert guidance.wait == wait * S


YEARS = [("29", 2029), ("30", 2030), ("80", 2080), ("81", 1981), ("99", 1999), ("00", 2000)]


@pytest.mark.parametrize(("digits", "year"), YEARS)
def test_a_year_of_two_digits_is_at_most_fifty_years_ahead(digits: str, year: int) -> None:
    date = http_date(f"Monday, 07-Jan-{digits} 12:00:00 GMT", T0)
    assert date is not None
    assert date.year == year


# --- hints of the table -----------------------------------------------------------------------------

EPOCH = int(T0.timestamp())
HINTS: list[tuple[HintUnit, object, int | str]] = [
    (HintUnit.SECONDS, 12, 12),
    (HintUnit.SECONDS, 12.2, 13),
    (HintUnit.SECONDS, "12", 12),
    (HintUnit.SECONDS, 0, 0),
    (HintUnit.SECONDS, -1, "negative"),
    (HintUnit.SECONDS, "-1", "not a number"),
    (HintUnit.SECONDS, True, "not a number"),
    (HintUnit.SECONDS, [1], "not a number"),
    (HintUnit.SECONDS, 10**4000, TOO_LONG),
    (HintUnit.SECONDS, -(10**4000), "negative"),
    (HintUnit.SECONDS, 1e300, TOO_LONG),
    (HintUnit.MILLISECONDS, 1500, 2),
    (HintUnit.MILLISECONDS, "250", 1),
    (HintUnit.EPOCH_SECONDS, EPOCH + 50, 50),
    (HintUnit.EPOCH_SECONDS, str(EPOCH + 50), 50),
    (HintUnit.EPOCH_SECONDS, EPOCH, PAST),
    (HintUnit.EPOCH_SECONDS, 50, PAST),
    (HintUnit.EPOCH_SECONDS, EPOCH * 1000, TOO_LONG),
    (HintUnit.EPOCH_MILLISECONDS, EPOCH * 1000 + 1, 1),
    (HintUnit.TIMESTAMP, "2030-01-07T12:00:50Z", 50),
    (HintUnit.TIMESTAMP, "2030-01-07T12:00:50.000001Z", 51),
    (HintUnit.TIMESTAMP, "2030-01-07T14:00:50+02:00", 50),
    (HintUnit.TIMESTAMP, "2030-01-07T12:00:50", NOT_UNDERSTOOD),
    (HintUnit.TIMESTAMP, EPOCH, "not a text"),
    (HintUnit.HTTP_DATE, "Mon, 07 Jan 2030 12:00:50 GMT", 50),
]


@pytest.mark.parametrize(("unit", "value", "expected"), HINTS)
def test_hints(unit: HintUnit, value: object, expected: int | str) -> None:
    hinted = table({"hints": (Hint(at=body("/next"), unit=unit),)})
    guidance = read_guidance(hinted, Answered(status=200), members(next=value), T0)
    assert guidance is not None
    wait, problem = (None, expected) if isinstance(expected, str) else (expected * S, "")
    assert (guidance.source, guidance.wait, guidance.problem) == (POLL_HINT, wait, problem)


def test_hints_count_in_the_tables_order_and_never_shorten_a_wait() -> None:
    hinted = table(
        {"hints": (Hint(at=body("/a"), unit=HintUnit.SECONDS), Hint(at=Header("X-Wait"), unit=HintUnit.SECONDS))}
    )

    def say(retry_after: str | None, document: str, x_wait: str) -> tuple[str, object]:
        headers = (("X-Wait", x_wait), *([("Retry-After", retry_after)] if retry_after is not None else []))
        guidance = read_guidance(hinted, Answered(status=200, headers=headers), parse(document.encode(), None), T0)
        assert guidance is not None
        return guidance.raw, guidance.wait

    assert say("5", '{"a":9}', "7") == ("9", 9 * S)
    assert say("9", '{"a":9}', "7") == ("9", 9 * S)
    assert say("5", "{}", "7") == ("7", 7 * S)
    assert say(None, '{"a":null}', "7") == ("7", 7 * S)
    assert say("soon", '{"a":-1}', "x") == ("soon", None)
    assert say(None, '{"a":-1}', "x") == ("-1", None)
    assert say(None, '{"a":1,"a":2}', "x") == ("", None)
    assert say(None, "<html>", "x") == ("x", None)


CLOCKS = [
    (-600, (("Date", "Mon, 07 Jan 2030 12:00:00 GMT"),), 50),
    (600, (("Date", "Mon, 07 Jan 2030 12:00:00 GMT"),), 50),
    (600, (), None),
]


@pytest.mark.parametrize(("skew", "date", "wait"), CLOCKS)
def test_an_epoch_hint_survives_clock_skew(skew: int, date: tuple[tuple[str, str], ...], wait: int | None) -> None:
    """B065: never zero, never the raw epoch number as a wait."""
    hinted = table({"hints": (Hint(at=Header("X-RateLimit-Reset"), unit=HintUnit.EPOCH_SECONDS),)})
    reply = Answered(status=429, headers=(*date, ("X-RateLimit-Reset", str(EPOCH + 50))))
    guidance = read_guidance(hinted, reply, Malformed("the body is empty"), T0 + skew * S)
    assert guidance is not None
    assert guidance.wait == (None if wait is None else wait * S)


# --- instants ---------------------------------------------------------------------------------------

TIMESTAMPS = [
    ("2030-01-07T12:00:00Z", T0),
    ("2030-01-07t12:00:00z", T0),
    ("2030-01-07 12:00:00+00:00", T0),
    ("2030-01-07T12:00:00.123456789Z", T0 + timedelta(microseconds=123456)),
    ("2030-01-07T12:00:00.5Z", T0 + timedelta(seconds=0.5)),
    ("2030-01-07T05:30:00-0630", T0),
    ("2030-01-07T11:59:60Z", T0),
    ("2030-01-07T12:00:00", None),
    ("2030-01-07", None),
    ("2030-02-30T12:00:00Z", None),
    ("2030-01-07T24:00:00Z", None),
    ("2030-01-07T12:00:00+24:00", None),
    ("0001-01-01T00:00:00+10:00", None),
    ("9999-12-31T23:59:59-01:00", None),
    ("٢030-01-07T12:00:00Z", None),
]


@pytest.mark.parametrize(("text", "expected"), TIMESTAMPS)
def test_timestamp(text: str, expected: datetime | None) -> None:
    assert timestamp(text) == expected


INSTANTS: list[tuple[HintUnit, object, datetime | None]] = [
    (HintUnit.TIMESTAMP, "2030-01-07T12:05:00Z", T0 + 300 * S),
    (HintUnit.EPOCH_SECONDS, EPOCH + 300, T0 + 300 * S),
    (HintUnit.EPOCH_MILLISECONDS, (EPOCH + 300) * 1000, T0 + 300 * S),
    (HintUnit.SECONDS, 300, T0 + 300 * S),
    (HintUnit.SECONDS, 10**300, None),
    (HintUnit.EPOCH_SECONDS, -(10**300), None),
    (HintUnit.EPOCH_SECONDS, 10**13, None),
    (HintUnit.EPOCH_SECONDS, -1, None),
    (HintUnit.EPOCH_SECONDS, 40_000_000_000, None),
    (HintUnit.TIMESTAMP, "1850-01-07T12:05:00Z", None),
    (HintUnit.TIMESTAMP, "soon", None),
    (HintUnit.TIMESTAMP, None, None),
]


@pytest.mark.parametrize(("unit", "value", "expected"), INSTANTS)
def test_read_instant(unit: HintUnit, value: object, expected: datetime | None) -> None:
    here = answer(members(at=value), 200, ("Date", "Mon, 07 Jan 2030 12:00:00 GMT"))
    assert read_instant(Instant(at=body("/at"), unit=unit), here, T0 + 999 * S) == expected


def test_the_providers_clock_is_its_first_readable_date() -> None:
    dates = (("date", "x"), ("DATE", "Mon, 07 Jan 2030 11:00:00 GMT"), ("Date", "Mon, 07 Jan 2030 10:00:00 GMT"))
    assert provider_now(dates, T0) == T0 - 3600 * S
    assert provider_now((), T0) == T0


PIECES = st.sampled_from(
    [
        "Mon, ",
        "07 Jan ",
        "2030 ",
        "9999 ",
        "0001 ",
        "12:00:00",
        " GMT",
        "-Jan-",
        "30",
        "1",
        ".",
        "-",
        "9" * 20,
        " ",
        "T",
        "Z",
    ]
)
TEXTS = (
    st.lists(PIECES, max_size=8).map("".join)
    | st.text(max_size=30)
    | st.binary(max_size=30).map(lambda raw: raw.decode("latin-1"))
)


@given(TEXTS, TEXTS, st.sampled_from(list(HintUnit)), st.integers() | st.floats(allow_nan=False) | TEXTS)
def test_guidance_is_total(retry_after: str, date: str, unit: HintUnit, hint: object) -> None:
    """INV-04, INV-12: any bytes give a bounded wait or a recorded problem."""
    hinted = table({"hints": (Hint(at=body("/next"), unit=unit),), "expires_at": Instant(at=body("/next"), unit=unit)})
    reply = Answered(status=200, headers=(("Retry-After", retry_after), ("Date", date)))
    document = members(next=hint)
    guidance = read_guidance(hinted, reply, document, T0)
    assert guidance is not None
    assert (guidance.wait is None) == bool(guidance.problem)
    assert guidance.wait is None or 0 * S <= guidance.wait <= TABLE.polling.max_guidance
    guidance.raw.encode()
    assert len(guidance.raw) <= 200
    read_instant(Instant(at=body("/next"), unit=unit), answer(document, 200, ("Date", date)), T0)
