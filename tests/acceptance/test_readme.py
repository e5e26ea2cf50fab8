"""The first ten minutes of the README, pasted into a new project as a newcomer does: tables, views, and its test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS: list[tuple[str, str]] = re.findall(
    r"```(python|yaml)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
)

CELERY = """\
import os
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
app = Celery("mysite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
"""
SAID_IN_WORDS = """
INSTALLED_APPS += ["reports"]
LOGIN_URL = "admin:login"
CELERY_BROKER_URL = "redis://127.0.0.1:6379/0"
DATABASES["default"]["OPTIONS"] = {"transaction_mode": "IMMEDIATE", "timeout": 30}
"""

pytestmark = [pytest.mark.processes]


def run(folder: Path, *command: str) -> str:
    """A Python command in the new project, without the settings of these tests; returns what it said."""
    ours = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment = {**ours, "ACME_KEY": "a-key", "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, *command], check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def paste(folder: Path) -> None:
    """Put each block where its first line says; those that append are for files that Django has made."""
    (folder / "providers").mkdir()
    for kind, block in BLOCKS:
        named = re.match(r"# (\S+\.py)(, at its end)?", block)
        if kind == "yaml":
            (folder / "providers" / "acme-reports.yaml").write_text(block)
        elif named is None and "def test_" in block:
            (folder / "test_reports.py").write_text(block)
        elif named is not None and named[2]:
            place = folder / (named[1] if "/" in named[1] else f"mysite/{named[1]}")
            place.write_text(f"{place.read_text()}\n{block}")
        elif named is not None:
            (folder / named[1]).write_text(block)
    settings = folder / "mysite" / "settings.py"
    settings.write_text(settings.read_text() + SAID_IN_WORDS)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_first_ten_minutes_work_as_pasted(tmp_path: Path) -> None:
    run(tmp_path, "-m", "django", "startproject", "mysite", ".")
    run(tmp_path, "-m", "django", "startapp", "reports")
    (tmp_path / "mysite" / "celery.py").write_text(CELERY)
    (tmp_path / "mysite" / "__init__.py").write_text("from .celery import app as celery_app\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = mysite.settings\n")
    paste(tmp_path)
    run(tmp_path, "manage.py", "makemigrations", "reports")
    assert "no issues" in run(tmp_path, "manage.py", "check")
    assert "no findings" in run(tmp_path, "-m", "jobtrack.cli", "check", "providers")
    plugin = ("-p", "jobtrack.testing.plugin", "-p", "no:cacheprovider")  # found by itself where jobtrack is installed
    assert "1 passed" in run(tmp_path, "-m", "pytest", "-q", *plugin)
