"""Strict YAML (R-TABLE-1, R-TABLE-6): nothing that two readers could take for two things."""

from __future__ import annotations

import pytest

from jobtrack.catalog import check_text
from jobtrack.catalog.findings import MOST_FINDINGS, Report
from jobtrack.catalog.strict import parse, quoted, typed


def said(text: str) -> list[tuple[int, int, str]]:
    report = Report(file="t.yaml")
    parse(text, report)
    return [(finding.line, finding.column, finding.code) for finding in report.ordered()]


@pytest.mark.parametrize(
    "word",
    [
        "yes",
        "Yes",
        "YES",
        "no",
        "NO",
        "on",
        "On",
        "OFF",
        "off",
        "y",
        "Y",
        "n",
        "N",
        "True",
        "FALSE",
        "TRUE",
        "Null",
        "NULL",
        "~",
        "014",
        "0o17",
        "0x1F",
        "0b11",
        "1_000",
        "1:30",
        "12:30:45",
        "-0",
        "+1",
        "1e3",
        "1.5e3",
        ".5",
        "5.",
        ".inf",
        "-.INF",
        ".nan",
        "2026-11-29",
        "2026-11-29T12:00:00Z",
        "=",
        "1234567890123456789012",
    ],
)
def test_a_look_alike_is_refused_as_value_and_as_key(word: str):
    report = Report(file="t.yaml")
    root = parse(f"a: {word}\n{word}: b\n", report)
    assert [(finding.line, finding.column, finding.code) for finding in report.ordered()] == [
        (1, 4, "look_alike"),
        (2, 1, "look_alike"),
    ]
    assert all(quoted(word) in finding.message for finding in report.findings)
    assert root is not None
    assert root.plain() == {"a": word, word: "b"}  # kept as it was written


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("0", 0),
        ("-12", -12),
        ("1.0", 1.0),
        ("2xx", "2xx"),
        ("5s", "5s"),
        ("/a/b", "/a/b"),
        ("$.a[0]", "$.a[0]"),
        ("not-a-number", "not-a-number"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_what_every_reader_agrees_on_is_kept(text: str, value: object):
    assert typed(text) == (True, value)
    assert type(typed(text)[1]) is type(value)


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        ("a: 1\na: 2\n", [(2, 1, "duplicate_key")]),
        ("a: {b: x, b: z}\n", [(1, 11, "duplicate_key")]),
        ("a: &x b\nc: *x\n", [(1, 4, "anchor"), (2, 4, "alias")]),
        ("&a x: 1\n", [(1, 1, "anchor")]),
        ("a: &x [*x]\n", [(1, 4, "anchor"), (1, 8, "alias")]),
        ("a: {<<: {b: c}}\n", [(1, 5, "merge")]),
        ("a: !!str 1\nb: !!python/name:os.system x\nc: !x {}\n", [(1, 4, "tag"), (2, 4, "tag"), (3, 4, "tag")]),
        ("a: b\n---\nc: d\n", [(2, 1, "many_documents")]),
        ("%YAML 1.1\n---\na: b\n", [(1, 1, "directive")]),
        ("a:\tb\nc: d\te\n", [(1, 3, "tab"), (2, 5, "tab")]),
        ("\ta: b\n  c: d\n", [(1, 1, "tab")]),
        ("? [a]\n: b\n", [(1, 3, "key")]),
        ("? {a: b}\n: c\n", [(1, 3, "key")]),
        ("a:\nb: c\n", [(1, 3, "look_alike")]),
        ("", [(1, 1, "empty")]),
        ("# only a remark\n", [(1, 1, "empty")]),
        ("a: [b\nc: d\n", [(2, 2, "syntax")]),
        ("a: b\n c: d\n", [(2, 3, "syntax")]),
        ("a: 'b\n", [(2, 1, "syntax")]),
        ("a: b\nc: \x07\n", [(2, 4, "syntax")]),
        ("a: \ud800\n", [(1, 4, "syntax")]),
        ("a: " + "[" * 60 + "]" * 60, [(1, 54, "too_deep")]),
        ("a: " + "[" * 100_000, [(1, 54, "too_deep")]),
        ("#" * (256 * 1024 + 1), [(1, 1, "too_large")]),
        ("\ufeffa: b\n", []),
        ('a: "yes"\nb: \'no\'\nc: |\n  on\n"off": x\n', []),
    ],
)
def test_what_is_refused_and_where(text: str, findings: list[tuple[int, int, str]]):
    assert said(text) == findings


def test_an_empty_value_is_named_and_a_switch_gets_its_advice():
    report = Report(file="t.yaml")
    parse("a:\nb: off\n", report)
    assert [finding.message for finding in report.findings] == [
        "Nothing may be read as something else; write a value or remove the key.",
        'off may be read as something else; write "off" for the word or false for a switch.',
    ]


def test_the_list_of_findings_is_bounded():
    assert len(said("a: [" + "on, " * 1000 + "on]")) == MOST_FINDINGS


PUBLIC_REPORT = """\
states:
  pending: [ON, queued]
  stop: [OFF, NO]
  success: [1.0]
  failure: [~]
aliases:
  NO: "not offered"
  12:30:45: "at time"
"""


def test_all_look_alikes_of_a_file_are_reported_in_one_run():
    """Public report B019: words used as keys and states arrived as booleans and numbers."""
    found = [finding for finding in check_text(PUBLIC_REPORT, "t.yaml").findings if finding.code == "look_alike"]
    expected = [(2, "ON"), (3, "OFF"), (3, "NO"), (4, "1.0"), (5, "~"), (7, "NO"), (8, "12:30:45")]
    assert [finding.line for finding in found] == [line for line, _ in expected]
    assert all(f'write "{word}"' in finding.message for finding, (_, word) in zip(found, expected, strict=True))
