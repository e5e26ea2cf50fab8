"""`core` is pure: time and chance are arguments, so that every decision can be computed again."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = sorted((ROOT / "jobtrack" / "core").rglob("*.py"))

IMPURE_MODULES = frozenset(
    [
        "time",
        "random",
        "os",
        "uuid",
        "secrets",
        "socket",
        "logging",
        "pathlib",
        "io",
        "sys",
        "subprocess",
        "threading",
        "asyncio",
        "urllib.request",
    ]
)
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "fromtimestamp_local", "open", "input", "print", "eval", "exec"})


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and dotted name of everything a module imports."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append((node.lineno, node.module or ""))
    return found


def called(tree: ast.AST) -> list[tuple[int, str]]:
    """Line and last name of every call of a clock-like attribute of `datetime`/`date`, or of a bare function."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Name(id="datetime" | "date"), attr=name):
                found.append((node.lineno, name))
            case ast.Attribute(value=ast.Attribute(attr="datetime" | "date"), attr=name) | ast.Name(id=name):
                found.append((node.lineno, name))
    return found


def impurities(source: str) -> list[str]:
    tree = ast.parse(source)
    modules = [
        f"line {line}: imports {name}"
        for line, name in imported(tree)
        if name in IMPURE_MODULES or name.split(".")[0] in IMPURE_MODULES
    ]
    return modules + [f"line {line}: calls {name}()" for line, name in called(tree) if name in IMPURE_CALLS]


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.name)
def test_core_has_no_clock_chance_environment_log_file_or_network(path: Path) -> None:
    """Move what is found to `flow` or an adapter, and hand its value in as an argument."""
    assert impurities(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import random", ["line 1: imports random"]),
        ("from os import path", ["line 1: imports os"]),
        ("import os.path as p", ["line 1: imports os.path"]),
        ("from datetime import datetime\nx = datetime.now()", ["line 2: calls now()"]),
        ("import datetime\nx = datetime.datetime.utcnow()", ["line 2: calls utcnow()"]),
        ("from datetime import date\nx = date.today()", ["line 2: calls today()"]),
        ("open('x')", ["line 1: calls open()"]),
        (
            "from datetime import datetime\ndef f(now): return now() if callable(now) else datetime(2030, 1, 1)",
            ["line 2: calls now()"],
        ),
        ("from jobtrack.core.reply import Reply\nimport json", []),
    ],
)
def test_the_purity_check_itself(source: str, expected: list[str]) -> None:
    assert impurities(source) == expected
