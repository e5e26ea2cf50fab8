"""``docs/django.md`` names what there is, all of it, and nothing else; the README's code can be pasted."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from django.core.management import BaseCommand, get_commands, load_command_class
from django.db.models import QuerySet
from django.dispatch import Signal

import jobtrack_django
from jobtrack_django.api import Common, Job, Task
from jobtrack_django.querysets import OperationQuerySet
from jobtrack_django.testing import Rehearsal

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "django.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def options(command: BaseCommand) -> set[str]:
    return set(re.findall(r"--[a-z-]+", command.create_parser("manage.py", "command").format_help()))


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def first_cells(title: str) -> list[str]:
    cells = [line.split("|")[1] for line in section(title).splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_every_keyword_of_track_is_explained():
    assert set(first_cells("`track()`")) == set(Job.__annotations__)


def test_every_keyword_of_submit_is_explained():
    """Those of its own in its section; the ones it shares in that of ``track``."""
    assert set(first_cells("`submit()`")) == set(Task.__annotations__) - set(Common.__annotations__)
    assert set(Common.__annotations__) <= set(first_cells("`track()`"))


def test_what_only_an_acceptance_tells_is_no_keyword_of_submit():
    (line,) = (line for line in section("`submit()`").splitlines() if "except" in line)
    named = set(re.findall(r"`(\w+)`", line.split("except")[1].split("which")[0]))
    assert named == set(Job.__annotations__) - set(Task.__annotations__)


def test_every_public_name_is_on_the_page():
    assert [name for name in jobtrack_django.__all__ if f"`{name}" not in PAGE and f" {name}" not in PAGE] == []


def test_every_signal_is_explained():
    assert sorted(first_cells("Signals")) == sorted(
        name for name in jobtrack_django.__all__ if isinstance(getattr(jobtrack_django, name), Signal)
    )


def test_every_word_for_sets_is_on_the_page():
    ours = {name for name in vars(OperationQuerySet) if not name.startswith("_")} - set(vars(QuerySet))
    assert {word for word in ours if f"`{word}(" not in section("Rows")} == set()


@pytest.mark.parametrize("command", sorted(name for name, app in get_commands().items() if app == "jobtrack_django"))
def test_every_command_is_there_with_its_options(command: str):
    (line,) = (line for line in section("Commands").splitlines() if f"manage.py {command}" in line)
    ours = options(load_command_class("jobtrack_django", command)) - options(BaseCommand())
    assert ours == set(re.findall(r"--[a-z-]+", line))


def test_every_part_of_a_rehearsal_is_on_the_page():
    parts = {field.name for field in fields(Rehearsal)} - {"runtime"} | {"run_due", "decide"}
    assert {part for part in parts if f"`jobtrack.{part}" not in section("Testing")} == set()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_readme_can_be_pasted(block: str):
    compile(block, "README.md", "exec")
    assert "..." not in block
