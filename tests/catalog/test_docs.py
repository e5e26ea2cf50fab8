"""The page on tables names every key, and its examples are good tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobtrack.catalog import check_text, schema
from tests.catalog.builders import codes, table_text

PAGE = (Path(__file__).parents[2] / "docs" / "provider-tables.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def keys(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (key for key in part.get("properties", {}))
        for item in part.values():
            yield from keys(item)
    elif isinstance(part, list):
        for item in part:
            yield from keys(item)


def test_every_key_of_the_schema_is_on_the_page():
    named = set(re.findall(r"[a-z_]+", " ".join([*re.findall(r"`[^`\n]+`", PAGE), *BLOCKS])))
    assert set(keys(schema())) - named == set()


def test_the_first_table_of_the_page_is_silent():
    assert [str(finding) for finding in check_text(BLOCKS[0], "acme-render.yaml").findings] == []


ALTERNATIVES = [line for block in BLOCKS for line in block.splitlines() if re.match(r"(auth|request|state): ", line)]


@pytest.mark.parametrize("line", ALTERNATIVES)
def test_every_alternative_of_the_page_is_good(line: str):
    value = line.split("  #", maxsplit=1)[0].strip()
    if line.startswith("auth"):
        text = table_text(top=value)
    elif line.startswith("request"):
        text = table_text(request=value)
    else:
        words = "[[a, b]]" if "[" in value else "[7]" if "integer" in value else "[200]" if "http" in value else "[a]"
        text = table_text(f"{value}\nstates: {{success: {words}}}")
    assert codes(text) == []


KEYS = "params|polling|states|rules|open|pick|result|error|not_found|examples|submit|cancel|webhook"
WHOLE = [
    part
    for block in BLOCKS[1:]
    if re.match(rf"({KEYS}):", block)
    for part in (
        re.split(r"^(?=\w)", block, flags=re.MULTILINE)[1:] if block.startswith(("result", "webhook")) else [block]
    )
]
SUBMIT = next(block for block in BLOCKS if block.startswith("submit:"))


@pytest.mark.parametrize("block", WHOLE, ids=lambda block: block.split(":")[0])
def test_every_block_of_the_page_is_good(block: str):
    states = "state: /status\nstates: {pending: [x], success: [w], stop: {cancelled: [c]}}\n"
    if block.startswith("examples"):
        text = (
            BLOCKS[0].split("examples:")[0].replace("auth:", "params: {region: {from: account, pattern: slug}}\nauth:")
            + (SUBMIT if "submit: true" in block else "")
            + block
        )
    elif block.startswith(("polling", "submit", "cancel", "webhook")) or (
        block.startswith("result") and "require" not in block
    ):
        region = "params: {job_region: {from: answer, pattern: slug}}\n" if "job_region" in block else ""
        text = table_text(states, top=region + block)
    elif block.startswith("params"):
        answered = "accepted: {http: [202], job_id: /id, params: {job_region: /region}}"
        text = table_text(states, top=f"{block}submit: {{request: {{path: /jobs}}, {answered}}}")
    elif block.startswith("states"):
        text = table_text("state: /status\n" + block)
    else:
        text = table_text(states + block if not block.startswith("state") else block)
    assert codes(text) == []
