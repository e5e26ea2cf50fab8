"""Promises about the tree itself: nothing of one machine, nothing half done, and one word for each version."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS = {"__pycache__", "dist", "build", "var", "htmlcov", "node_modules"}
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".html", ".js", ".css", ".json", ".txt", ".cfg", ""}
LEFT_BEHIND = re.compile(r"\.coverage|PLAN\.md$")


def ours(folder: str) -> bool:
    return folder not in SKIPPED_FOLDERS and not (folder.startswith(".") and folder != ".ci")


def shipped_files() -> list[Path]:
    """Every text file of the project, without environments, caches and builds."""
    found: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(filter(ours, folders))
        found += [Path(folder, name) for name in names if Path(name).suffix in TEXT and not LEFT_BEHIND.match(name)]
    return sorted(found)


FILES = [path for path in shipped_files() if path != Path(__file__).resolve()]


def places(pattern: str, *, under: str = "", suffix: str = "") -> list[str]:
    wanted = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in FILES
        if str(path.relative_to(ROOT)).startswith(under) and path.name.endswith(suffix)
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if wanted.search(line)
    ]


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_nothing_names_the_place_where_it_was_written() -> None:
    """A file that names a folder of one machine breaks on every other one."""
    assert places(re.escape(str(ROOT)) + r"\b") == []
    assert [place for place in places(r"\.\./shared") if not place.startswith("tests/")] == []


def test_no_package_index_is_named() -> None:
    """Default indexes only: a company's own index must work without a change here."""
    assert places(r"(--?(extra-)?index-url|INDEX_URL|tool\.uv\.index|simple/?\"$)") == []


def test_nothing_is_left_half_done() -> None:
    assert places(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b", suffix=".py") == []


@pytest.mark.parametrize("under", ["jobtrack/", "jobtrack_django/"])
def test_no_dangerous_call(under: str) -> None:
    pattern = r"\b(eval|exec)\(|import pickle|yaml\.(load|unsafe_load|full_load)\(|shell=True|verify=False|mark_safe"
    assert places(pattern, under=under, suffix=".py") == []


def test_modules_stay_readable() -> None:
    """Aim at 400 lines; a module of more than 450 holds two things: split it."""
    long = {
        str(path.relative_to(ROOT)): count
        for path in FILES
        if path.suffix == ".py"
        and path.relative_to(ROOT).parts[0] in {"jobtrack", "jobtrack_django"}
        and "migrations" not in path.parts
        and (count := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert long == {}


def test_only_httpx_has_an_upper_bound() -> None:
    """Caps lock users out of fixes. httpx 1 is the exception: another library under the same name."""
    dependencies = project()["project"]["dependencies"]  # type: ignore[index]
    assert [line for line in dependencies if "<" in line.split(";")[0]] == ["httpx>=0.28.1,<1"]


def test_every_lint_exemption_has_a_reason() -> None:
    section = (
        (ROOT / "pyproject.toml")
        .read_text(encoding="utf-8")
        .split("[tool.ruff.lint]")[1]
        .split("[tool.ruff.lint.mccabe]")[0]
    )
    bare = [line for line in section.splitlines() if re.match(r'\s+"[A-Z]+[0-9]*"', line) and "#" not in line]
    layout = ['  "COM812",', '  "ISC001",']  # explained by the line above them
    assert [line for line in bare if line not in layout] == []
