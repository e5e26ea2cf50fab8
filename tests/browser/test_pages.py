"""Every page of the desk and of the user: readable for everybody, in light and dark, on a telephone (axe-core, 360 px)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest
from django.core.management import call_command
from django.utils import translation
from playwright.sync_api import Page, expect

from example_project.reports.models import Report
from jobtrack.core.escalation import Option
from jobtrack_django.models import DecisionBatch, Escalation, Notice
from jobtrack_django.notify.dispatch import dispatch
from tests.browser import desk, pages
from tests.browser.axe import findings
from tests.browser.desk import LEAD, OPERATOR, USER

ADMIN = "/admin/jobtrack"

LOCALES = ("en-GB", "de-DE", "fr-FR", "pt-BR")

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


@pytest.mark.parametrize("locale", LOCALES)
def test_no_page_is_wider_than_a_telephone(site, night, locale):
    lead, ann = site.visitor(LEAD, wide=360, locale=locale), site.visitor(USER, wide=360, locale=locale)
    with translation.override(translation.get_supported_language_variant(locale)):
        wide = [name for name in walk(lead, night) if lead.evaluate(TOO_WIDE)]
    wide += [name for name in user_pages(ann) if ann.evaluate(TOO_WIDE)]

    assert wide == []


@pytest.fixture
def unnamed(rehearsal) -> None:
    """The eight questions about operations with the ids that jobtrack makes."""
    desk.ask(rehearsal, *(replace(each, unnamed=True) for each in desk.CASES))


@pytest.mark.parametrize("locale", LOCALES)
def test_the_list_shows_every_column_on_usual_screens(site, unnamed, locale):
    cut = {}
    for name, wide in product((OPERATOR, LEAD), (1280, 1366, 1680, 1920)):
        page = site.visitor(name, wide=wide, locale=locale)
        page.goto(pages.LIST)
        if over := page.locator(".results").evaluate("results => results.scrollWidth - results.clientWidth"):
            cut[name, wide] = over

    assert cut == {}


BROKEN = """asides => asides.flatMap((aside) => {
  const text = aside.firstChild, range = new Range();
  return [...text.data.matchAll(/\\S+/g)].filter((word) => {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map((word) => word[0]);
})"""
"""The words of some texts that do not stand on one line."""


def test_the_risk_is_told_in_whole_words(site, unnamed):
    page = site.visitor(LEAD, locale="de-DE")
    page.goto(pages.LIST)

    assert page.locator(".field-risky .jobtrack-aside").evaluate_all(BROKEN) == []


def test_the_filters_below_the_rows_are_one_click_away(site, unnamed):
    page = site.visitor(OPERATOR)
    page.goto(pages.LIST)
    to_filters = page.locator(".jobtrack-to-filter a")
    to_filters.click()
    expect(page.locator("#changelist-filter")).to_be_in_viewport()

    page.set_viewport_size({"width": 1920, "height": 900})
    expect(to_filters).to_be_hidden()
    expect(page.locator("#changelist-filter")).to_be_in_viewport()


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_question_reason_risk_and_options_are_read_without_scrolling(site, night, locale):
    page = site.visitor(LEAD, locale=locale)
    below = []
    for asked in night:
        page.goto(pages.question(asked))
        box = page.locator(".jobtrack-options li").first.bounding_box()
        below += [asked.reason] if box["y"] + box["height"] > page.viewport_size["height"] * 3 / 4 else []

    assert below == []


def test_axe_bites(site):
    page = site.visitor()
    page.goto("/unlabelled/")

    assert [line.split(": ")[1].split()[:2] for line in findings(page)] == [["critical", "label"]]
