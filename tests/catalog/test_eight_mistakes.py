"""A table with eight different mistakes: all eight are reported in one run, each with its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobtrack.catalog import check_paths, load_file
from jobtrack.errors import TableError

TABLE = """\
jobtrack: 1
id: eight
name: Eight mistakes
docs: https://docs.example/jobs
revision: 1
hosts: ["http://api.example"]
polling: {first: 2h, bse: 10s}
budget:
  deadline: 40
  extension: {time: 15m, times: 1}
status:
  request: {path: "/jobs/{jobid}"}
  echo: /id
  state: /status
  states:
    pending: [queued, on]
    success: [done]
    failure: [Queued]
"""

EXPECTED = [
    "6:9: http://api.example is not https; write https://api.example.",
    "7:18: The first look comes after the deadline; write first: below 1h or raise budget.deadline.",
    "7:22: The key bse is not known here; did you mean base?",
    "9:13: 40 has no unit; write a whole number with its unit, such as 500ms, 30s, 5m, 2h or 1d.",
    "10:14: The key status_requests is missing; write status_requests: with a whole number from 1 to 100000.",
    "12:19: The placeholder {jobid} is not known; write one of: {+job_id}, {job_id}, or add jobid to params.",
    '16:23: on may be read as something else; write "on" for the word or true for a switch.',
    "18:15: Queued and queued under pending (line 16) differ only in letter case; keep one or say fold_case: true.",
]


def test_every_mistake_is_reported_in_one_run(tmp_path: Path):
    path = tmp_path / "eight.yaml"
    path.write_text(TABLE, encoding="utf-8")
    found = [finding for finding in check_paths([path]) if finding.level == "error"]
    assert [str(finding) for finding in found] == [f"{path}:{line}" for line in EXPECTED]


def test_the_error_of_a_refused_table_lists_every_mistake(tmp_path: Path):
    path = tmp_path / "eight.yaml"
    path.write_text(TABLE, encoding="utf-8")
    with pytest.raises(TableError) as raised:
        load_file(path)
    assert raised.value.code == "table_invalid"
    assert str(raised.value).splitlines() == [
        f"The provider table {path} has 8 mistakes:",
        *(f"  {path}:{line}" for line in EXPECTED),
    ]
    assert [(finding["line"], finding["code"]) for finding in raised.value.context["findings"]][:2] == [
        (6, "host"),
        (7, "no_look"),
    ]
