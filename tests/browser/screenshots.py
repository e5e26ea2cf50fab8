"""The pictures of the docs, taken anew: ``make screenshots`` writes docs/images/*.png."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from PIL import Image
from playwright.sync_api import Page, expect

from example_project.reports.models import Report
from jobtrack_django.models import Heartbeat
from jobtrack_django.notify.dispatch import dispatch
from jobtrack_django.testing import rehearsal
from tests.browser import desk, pages
from tests.browser.desk import LEAD, NIGHT, OPERATOR, USER

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"

LARGEST_BYTES = 200_000

DAYS, A_DAY = 30, 4


def take(page: Page, name: str, *, height: int = 900, box: bool = False) -> None:
    """Write what the page shows, in 128 colours: text stays sharp, and the file small."""
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    shown = page.locator("[data-jobtrack-progress]") if box else page
    with Image.open(io.BytesIO(shown.screenshot(animations="disabled"))) as picture:
        IMAGES.mkdir(parents=True, exist_ok=True)
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(IMAGES / f"{name}.png", optimize=True)
    assert (IMAGES / f"{name}.png").stat().st_size < LARGEST_BYTES


@pytest.fixture
def month(site):
    """The eight questions of the night, after a month in which most reports ended well."""
    with rehearsal(NIGHT - timedelta(days=DAYS)) as past:
        for number in range(DAYS * A_DAY):
            desk.finish(past, number)
            past.run_due(until=timedelta(days=1) / A_DAY - timedelta(minutes=20))
            dispatch("default")
        asked = desk.ask(past, *desk.CASES)
        dispatch("default")
        now = past.clock()
        for kind in ("worker", "sweeper"):
            Heartbeat.objects.create(name=f"{kind}:desk:41", kind=kind, started_at=now - timedelta(days=3), seen_at=now)
        call_command("jobtrack_figures", verbosity=0)
        yield asked


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_desk(site, month, dark):
    page, suffix = site.visitor(LEAD if dark else OPERATOR, dark=dark, wide=1440), "-dark" if dark else ""
    if not dark:
        page.goto(pages.LIST)
        take(page, "needs-decision", height=1000)
        page.goto("/admin/jobtrack/dashboard/")
        take(page, "dashboard", height=1400)
    page.goto(pages.question(month[1]))
    take(page, f"decision{suffix}", height=1100)


def test_the_progress_box(site, rehearsal):
    desk.start(rehearsal, desk.RUNNING)
    rehearsal.run_due(until=timedelta(seconds=3))
    page = site.visitor(USER, wide=760)
    page.goto(Report.objects.get().get_absolute_url())
    expect(page.locator("[data-jobtrack-progress] progress")).to_be_visible()
    take(page, "progress-box", box=True)
