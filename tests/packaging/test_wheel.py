"""The built distributions: what is in them, and that they work away from the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted(path.name for path in (ROOT / "providers").glob("*.yaml"))

pytestmark = pytest.mark.slow

LOAD_EVERY_TABLE = """
import json, pathlib, jobtrack, jobtrack.catalog as catalog
paths = [pathlib.Path(path) for path in catalog.shipped_paths()]
tables = [table for path in paths for table in (sorted(path.glob("*.yaml")) if path.is_dir() else [path])]
print(json.dumps({
    "package": str(pathlib.Path(jobtrack.__path__[0]).resolve()),
    "ids": {path.name: catalog.load_file(path).id for path in tables},
}))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Output of a command; its whole output is the message if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both distributions; the wheel is built from the sdist, as a packager would."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def contents(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize(
    "name",
    [
        "jobtrack/py.typed",
        "jobtrack_django/py.typed",
        "jobtrack/catalog/schema/provider-1.json",
        "jobtrack_django/migrations/0001_initial.py",
        *(f"jobtrack/_providers/{table}" for table in TABLES),
    ],
)
def test_the_wheel_holds_what_an_installed_site_reads(contents: list[str], name: str) -> None:
    assert name in contents


@pytest.mark.parametrize("folder", ["templates", "static", "locale"])
def test_the_wheel_holds_every_file_of_the_admin(contents: list[str], folder: str) -> None:
    source = ROOT / "jobtrack_django" / folder
    ours = {str(path.relative_to(ROOT)) for path in source.rglob("*") if path.is_file()}
    assert ours - set(contents) == set()


def test_the_wheel_holds_nothing_else(contents: list[str]) -> None:
    roots = {name.split("/")[0] for name in contents}
    assert sorted(roots) == ["jobtrack", "jobtrack-0.1.0.dist-info", "jobtrack_django"]


def test_the_sdist_can_run_its_own_tests(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        roots = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"tests", "docs", "providers", "Makefile", "pyproject.toml", "scripts"} - roots == set()
    assert {"PLAN.md", ".venv", "var"} & roots == set()


def test_the_installed_wheel_loads_and_checks_every_table(wheel: Path, tmp_path: Path) -> None:
    """A clean environment, another folder: nothing of the checkout is found by chance."""
    venv.create(tmp_path / "env", with_pip=True)
    binaries = tmp_path / "env" / "bin"
    run(binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=tmp_path)

    loaded = json.loads(run(binaries / "python", "-I", "-c", LOAD_EVERY_TABLE, cwd=tmp_path))
    assert Path(loaded["package"]).is_relative_to((tmp_path / "env").resolve())
    assert loaded["ids"] == {table: table.removesuffix(".yaml") for table in TABLES}

    assert f"{len(TABLES)} tables" in run(binaries / "jobtrack", "check", cwd=tmp_path)
    assert run(binaries / "jobtrack", "--version", cwd=tmp_path) == "jobtrack 0.1.0\n"
