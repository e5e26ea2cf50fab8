"""axe-core on a page as it is shown. What is serious or critical keeps somebody from using the page."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

BAD = ("serious", "critical")

_OPTIONS = {"resultTypes": ["violations"], "preload": False}

_DJANGOS = (
    ("label-title-only", "#searchbar"),  # its visible label is a picture, whose text says "Search"
    ("link-in-text-block", ".breadcrumbs"),  # before Django 6 they are not underlined
)
"""(rule, beginning of the element) of Django's own admin, which are not ours to mend."""


def findings(page: Page) -> list[str]:
    """What axe-core finds, one line for each element: impact, rule, element, what to do."""
    told = Axe().run(page, options=_OPTIONS).response
    return [
        f"{page.url}: {rule['impact']} {rule['id']} at {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in told["violations"]
        if rule["impact"] in BAD
        for node in rule["nodes"]
        if not any(rule["id"] == known and str(node["target"][0]).startswith(place) for known, place in _DJANGOS)
    ]
