"""Whether a browser can be driven here: ``python -m tests.browser.ready`` says what is missing, and fails then."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
"""Path of the system's browser; "" if there is none."""

SETTINGS = "tests.browser.settings"

PATIENCE_S = 15.0
"""How long a condition may take to come true, on a busy machine."""


def missing() -> str:
    """What keeps these tests from running here; "" if nothing does."""
    if not (find_spec("playwright") and find_spec("axe_playwright_python")):
        return "the extra `browser` is not installed"
    return "" if CHROMIUM else "Chromium is not installed"


if __name__ == "__main__":
    if lacking := missing():
        sys.stdout.write(f"{lacking}\n")
        sys.exit(1)
