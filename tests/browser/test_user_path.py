"""A person orders a report and gets it: with scripts, through a refresh and a dead network, and without scripts."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, Route, expect

from example_project.behaviour import ROWS
from jobtrack_django.models import Operation
from tests.browser.desk import USER

PROGRESS = r"/reports/\d+/"

ENDLESS, SOON_DONE = "cancel", "lost"
"""A scenario of the form that runs until somebody acts, and a script of ACME that ends at its second look."""


def log_in(page: Page, name: str) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(name)
    page.get_by_role("button", name="Log in").click()


def order(page: Page, scenario: str = "success", name: str = "Invoices of November") -> Locator:
    """Order a report as a person does; returns its progress box."""
    page.goto("/")
    page.get_by_role("main").get_by_role("link", name="Export a report").click()
    page.get_by_label("Name of the report").fill(name)
    page.get_by_label("What happens at the provider").select_option(scenario)
    page.get_by_role("button", name="Export").click()
    expect(page).to_have_url(re.compile(PROGRESS + "$"))
    return page.locator("[data-jobtrack-progress]")


def running(page: Page, box: Locator) -> str:
    """Wait until the job runs, which it does until somebody says otherwise; returns ACME's id of it."""
    expect(box).to_have_attribute("data-state", "running")
    return Operation.objects.get().job_id


def save(page: Page, box: Locator) -> list[str]:
    """The lines of the file that the box links to."""
    with page.expect_download() as started:
        box.locator("[data-jobtrack-part=result]").click()
    return Path(started.value.path()).read_text().splitlines()


def test_a_report_is_ordered_followed_and_saved(site, acme, worker):
    page = site.visitor()
    page.goto("/")
    log_in(page, USER)
    box = order(page, ENDLESS)

    job_id = running(page, box)
    page.reload()  # half way: nothing is lost
    expect(box.locator("progress")).to_be_visible()
    acme.ledger.switch(job_id, SOON_DONE)
    expect(box).to_have_attribute("data-ended", "")

    expect(box).to_contain_text("ready")
    assert len(save(page, box)) == ROWS + 1
    assert [seen["kind"] for seen in acme.ledger.seen() if seen["kind"] == "submit"] == ["submit"]
    assert site.watch.early(PROGRESS) == []
    assert [seen.by_script for seen in site.watch.asked(PROGRESS)].count(True) >= 2


def test_a_page_that_was_offline_goes_on_by_itself(site, acme, worker):
    page = site.visitor(USER)
    box = order(page, ENDLESS)
    job_id = running(page, box)

    page.context.set_offline(True)
    expect(box).to_contain_text("You are offline")
    asked = len(site.watch.asked(PROGRESS))
    acme.ledger.switch(job_id, SOON_DONE)  # it goes on without the page
    site.watch.until(page, lambda: Operation.objects.filter(state="succeeded").exists())
    assert len(site.watch.asked(PROGRESS)) == asked

    page.context.set_offline(False)
    expect(box).to_have_attribute("data-ended", "")
    expect(box).not_to_contain_text("You are offline")
    assert site.watch.early(PROGRESS) == []


def test_a_moment_without_network_leaves_nothing_behind(site, acme, worker):
    """Although the next look is an hour away."""
    page = site.visitor(USER)
    box = order(page, ENDLESS)
    running(page, box)

    def rarely(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=re.sub(r'data-again="\d+"', 'data-again="3600"', answer.text()))

    page.route(re.compile(PROGRESS + "$"), rarely)
    page.reload()
    expect(box).to_have_attribute("data-again", "3600")
    asked = len(site.watch.asked(PROGRESS))

    page.evaluate("dispatchEvent(new Event('offline'))")
    expect(box).to_contain_text("You are offline")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(box).not_to_contain_text("You are offline")
    assert len(site.watch.asked(PROGRESS)) == asked


def test_a_browser_that_wrongly_says_offline_is_not_believed(site, acme, worker):
    """Behind a VPN, or with the site on the same machine: what counts is whether the site answers."""
    page = site.visitor(USER)
    page.add_init_script("Object.defineProperty(Navigator.prototype, 'onLine', { get: () => false })")
    box = order(page)

    expect(box).to_have_attribute("data-ended", "")
    expect(box).not_to_contain_text("You are offline")


def test_the_path_without_scripts(site, acme, worker):
    page = site.visitor(js=False)
    page.goto("/")
    log_in(page, USER)
    box = order(page)

    # The page asks for itself again, by its own header, until there is no more to come.
    expect(box).to_have_attribute("data-ended", "")

    assert len(save(page, box)) == ROWS + 1
