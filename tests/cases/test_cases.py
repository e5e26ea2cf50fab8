"""Public reports as cases: what a provider answered somewhere, and what comes of it here. One file for each report."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from jobtrack.catalog import load_file
from jobtrack.core.table import ProviderTable
from jobtrack.testing.cases import Case, load_cases
from jobtrack.testing.replay import run_case

HERE = Path(__file__).parent


def find_table(name: str) -> ProviderTable:
    """A table by its path from this folder, as ``jobtrack replay`` finds it."""
    return load_file(HERE / name)


CASES = [case for path in sorted(HERE.glob("*.yaml")) for case in load_cases(path, find_table)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_report_comes_out_as_it_should(case: Case) -> None:
    assert case.expect, "a case without expectations proves nothing"
    report = run_case(case)
    assert report.differences == ()
    asked, spent = Counter(each.kind for each in report.asked), report.operation.spent
    assert (spent.status_requests, spent.submissions, spent.lookups) == (
        asked["status"],
        asked["submit"],
        asked["lookup"],
    )
