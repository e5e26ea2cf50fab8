"""Every page of the desk and of the user: readable for everybody, in light and dark, on a telephone (axe-core, 360 px)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from playwright.sync_api import Page, expect

from example_project.reports.models import Report
from jobtrack.core.escalation import Option
from jobtrack_django.models import DecisionBatch, Escalation, Notice
from jobtrack_django.notify.dispatch import dispatch
from tests.browser import desk, pages
from tests.browser.axe import findings
from tests.browser.desk import LEAD, OPERATOR, USER

ADMIN = "/admin/jobtrack"

TOO_WIDE = "document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth"


@pytest.fixture
def night(rehearsal) -> list[Escalation]:
    """The eight questions; their notices are sent, and the figures of the day are there."""
    asked = desk.ask(rehearsal, *desk.CASES)
    assert dispatch("default") == len(asked)
    call_command("jobtrack_figures", verbosity=0)
    return asked


def walk(page: Page, asked: list[Escalation]) -> Iterator[str]:
    """Go from page to page, and say which one is shown."""
    for address in ("/admin/", pages.LIST, f"{pages.LIST}?decided=yes", *(pages.question(each) for each in asked)):
        page.goto(address)
        yield address
    for name in ("operation", "notice", "decisionbatch", "dashboard"):
        page.goto(f"{ADMIN}/{name}/")
        yield name
    page.goto(f"{ADMIN}/operation/{asked[0].operation_id}/change/")
    yield "an operation"
    page.goto(f"{ADMIN}/notice/{Notice.objects.earliest('pk').pk}/change/")
    yield "a notice"
    yield from _step_two(page, asked)
    yield from _many(page, asked)


def _step_two(page: Page, asked: list[Escalation]) -> Iterator[str]:
    lost, stuck = asked[-1], asked[1]
    for option in (Option.ATTACH_JOB, Option.RESUBMIT, Option.CLOSE):
        page.goto(pages.question(lost))
        pages.button(page, option).click()
        expect(page.locator(".jobtrack-decide")).to_be_visible()
        yield f"step two: {option}"
    page.goto(pages.question(stuck))
    pages.button(page, Option.LOOK_AGAIN).click()
    pages.confirm(page)
    expect(page.locator(".jobtrack-answer")).to_be_visible()
    yield "a decided question"


def _many(page: Page, asked: list[Escalation]) -> Iterator[str]:
    page.goto(pages.LIST)
    pages.choose(page, Option.LOOK_AGAIN, *asked[4:])
    expect(page.locator(".jobtrack-decide")).to_be_visible()
    yield "bulk, before"
    pages.confirm(page)
    expect(page.locator(".jobtrack-counts")).to_be_visible()
    yield "bulk, after"
    page.goto(f"{ADMIN}/decisionbatch/{DecisionBatch.objects.get().pk}/change/")
    yield "bulk, later"


def user_pages(page: Page) -> Iterator[str]:
    for address in ("/", "/reports/new/", *(each.get_absolute_url() for each in Report.objects.all()[:3])):
        page.goto(address)
        yield address


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_keeps_anybody_from_using_a_page(site, night, dark):
    lead, ann, stranger = site.visitor(LEAD, dark=dark), site.visitor(USER, dark=dark), site.visitor(dark=dark)
    found = []
    for name in walk(lead, night):
        found += [f"{name}: {line}" for line in findings(lead)]
    for name in user_pages(ann):
        found += [f"{name}: {line}" for line in findings(ann)]
    for address in ("/login/", "/admin/login/"):
        stranger.goto(address)
        found += findings(stranger)

    assert found == []


def test_no_page_is_wider_than_a_telephone(site, night):
    lead, ann = site.visitor(LEAD, wide=360), site.visitor(USER, wide=360)
    wide = [name for name in walk(lead, night) if lead.evaluate(TOO_WIDE)]
    wide += [name for name in user_pages(ann) if ann.evaluate(TOO_WIDE)]

    assert wide == []


def test_an_operator_s_list_shows_every_column_on_a_usual_screen(site, night):
    page = site.visitor(OPERATOR)
    page.goto(pages.LIST)

    assert page.locator(".results").evaluate("results => results.scrollWidth - results.clientWidth") == 0


def test_axe_bites(site):
    page = site.visitor()
    page.goto("/unlabelled/")

    assert [line.split(": ")[1].split()[:2] for line in findings(page)] == [["critical", "label"]]
