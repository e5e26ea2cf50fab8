"""Any text ends in a table or in findings, never in another error."""

from __future__ import annotations

import random
import re

import pytest

from jobtrack.catalog import check_text
from tests.catalog.test_build import FULL

PIECES = (
    *("[]", "{}", "null", "1.0", "on", "''", "/a", "$.b", "-", ":", "{", "}", "[", "]", "&", "&a", "*a", "!!str", "5s"),
    *("true", "-1", "99999999999999999999", "{job_id}", "#", "\n", "\t", "\x00", "\ud800", '"', "{missing: null}"),
)


def mangled(chance: random.Random) -> str:
    text = FULL
    for _ in range(chance.randint(1, 6)):
        words = list(re.finditer(r"[^\s\[\]{},:]+", text))
        word = chance.choice(words)
        at = chance.randrange(len(text))
        text = chance.choice(
            [
                text[: word.start()] + chance.choice(PIECES) + text[word.end() :],
                text[:at] + chance.choice(PIECES) + text[at:],
                text[:at] + text[at + chance.randint(1, 15) :],
            ]
        )
    return text


@pytest.mark.parametrize("seed", range(60))
def test_a_mangled_table_is_read_or_refused_with_a_reason(seed: int):
    checked = check_text(mangled(random.Random(seed)), "t.yaml")
    assert checked.table is not None or any(finding.level == "error" for finding in checked.findings)
    assert all(finding.line >= 1 and finding.column >= 1 and finding.message for finding in checked.findings)
