"""R-SEC-4: what a provider calls a file never leaves its folder and suits every file system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.stores.names import LONGEST_NAME, clean_name, shortened


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report.csv", "report.csv"),
        ("Bericht März.csv", "Bericht März.csv"),
        ("Ma\u0308rz.csv", "März.csv"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("/etc/passwd", "_etc_passwd"),
        ("a\\b:c.csv", "a_b_c.csv"),
        (".htaccess", "htaccess"),
        ("..", "result"),
        ("", "result"),
        (" . ", "result"),
        ("a\x00b\nc\u202egpj.exe", "a_b_c_gpj.exe"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("console.txt", "console.txt"),
        ("name. ", "name"),
        ("x" * 200 + ".csv", "x" * 96 + ".csv"),
        ("x." + "y" * 200, "x." + "y" * 98),
        ("\ud800.csv", "_.csv"),
    ],
)
def test_a_name_becomes_a_plain_one(name, expected):
    assert clean_name(name) == expected


@given(st.text(max_size=300))
def test_any_name_is_safe_and_stays_as_it_is_when_cleaned_again(name):
    cleaned = clean_name(name)
    assert cleaned
    assert not cleaned.startswith(".")
    assert not set(cleaned) & set("/\\\0\n:")
    assert len(cleaned) <= LONGEST_NAME
    assert len(cleaned.encode()) <= 2 * LONGEST_NAME


def test_an_addition_stands_before_the_ending():
    assert shortened("a.csv", "-2") == "a-2.csv"
    assert shortened("x" * 100, "-2") == "x" * 98 + "-2"
