"""A question is decided: from a notice's link, by two people at once, without scripts, by keyboard, in few steps."""

from __future__ import annotations

import re

import pytest
from django.core import mail
from playwright.sync_api import expect

from jobtrack.core.escalation import Option
from jobtrack_django.models import Escalation
from jobtrack_django.notify.dispatch import dispatch
from tests.browser import desk, pages
from tests.browser.desk import LEAD, OPERATOR, SECOND


@pytest.fixture
def asked(rehearsal):
    """One question: a state that no table knows."""
    (escalation,) = desk.ask(rehearsal, desk.PAUSED)
    return escalation


def test_from_the_link_in_a_notice_to_a_decision(site, asked):
    """R-ESC-6: the link survives the login."""
    assert dispatch("default") == 1
    (told,) = mail.outbox
    link = re.search(rf"{re.escape(site.url + pages.question(asked))}\S*", told.body)
    page = site.visitor()

    page.goto(link[0])
    pages.log_in(page, OPERATOR)
    expect(page).to_have_url(re.compile(re.escape(pages.question(asked))))
    pages.button(page, Option.LOOK_AGAIN).click()
    pages.confirm(page)

    pages.decided(page, OPERATOR, Option.LOOK_AGAIN)
    asked.refresh_from_db()
    assert (asked.option, asked.actor, asked.actor_reason) == ("look_again", OPERATOR, pages.WHY)


def test_of_two_people_the_second_is_told_who_was_faster_and_keeps_their_words(site, asked):
    """INV-28: one decision counts."""
    first, second = site.visitor(OPERATOR), site.visitor(SECOND)
    for page, choice in ((first, Option.LOOK_AGAIN), (second, Option.CLOSE)):
        page.goto(pages.question(asked))
        pages.button(page, choice).click()
    pages.confirm(first)
    pages.decided(first, OPERATOR, Option.LOOK_AGAIN)
    site.watch.expect("answer: 409")
    site.watch.expect("console: .*409")

    pages.confirm(second, "Nobody needs it any more.")

    expect(second.get_by_role("alert")).to_contain_text("already decided")
    pages.decided(second, OPERATOR, Option.LOOK_AGAIN)
    expect(second.get_by_label("What you wrote")).to_have_value("Nobody needs it any more.")
    assert Escalation.objects.get().option == "look_again"


def test_a_decision_without_scripts(site, asked):
    page = site.visitor(OPERATOR, js=False)
    page.goto(pages.LIST)
    pages.row(page, asked).click()
    pages.button(page, Option.LOOK_AGAIN).click()
    pages.confirm(page)

    pages.decided(page, OPERATOR, Option.LOOK_AGAIN)


def test_from_a_filtered_list_to_a_decision_and_back(site, rehearsal):
    asked, _ = desk.ask(rehearsal, desk.PAUSED, desk.LOST)
    page = site.visitor(OPERATOR)
    page.goto(pages.LIST)
    page.get_by_role("link", name="Filter", exact=True).click()
    page.locator("#changelist-filter").get_by_role("link", name="Unknown state").click()
    chosen = page.url
    pages.row(page, asked).click()
    pages.button(page, Option.LOOK_AGAIN).click()
    pages.confirm(page)
    pages.decided(page, OPERATOR, Option.LOOK_AGAIN)
    page.get_by_role("link", name="Back to the questions").click()

    expect(page).to_have_url(chosen)
    expect(page.get_by_text("Nothing is found.")).to_be_visible()


def test_a_decision_by_keyboard_alone(site, asked):
    page = site.visitor(OPERATOR)
    page.goto(pages.LIST)
    pages.tab_to(page, pages.row(page, asked))
    page.keyboard.press("Enter")
    pages.tab_to(page, pages.button(page, Option.LOOK_AGAIN))
    page.keyboard.press("Enter")
    pages.tab_to(page, page.get_by_label("Why do you decide so?"))
    page.keyboard.type(pages.WHY)
    pages.tab_to(page, page.get_by_role("button", name="Yes"))
    page.keyboard.press("Enter")

    pages.decided(page, OPERATOR, Option.LOOK_AGAIN)


def test_what_may_happen_twice_is_typed(site, rehearsal):
    """R-ESC-3: a submission once more needs the id of the operation."""
    (lost,) = desk.ask(rehearsal, desk.LOST)
    page = site.visitor(LEAD)
    page.goto(pages.question(lost))
    pages.button(page, Option.RESUBMIT).click()
    typed = page.get_by_label("Type the id of the operation to confirm")

    typed.fill("report-1")
    pages.confirm(page)
    expect(page.get_by_text("This is not the id of this operation")).to_be_visible()
    typed.fill(lost.operation_id)
    pages.confirm(page)

    pages.decided(page, LEAD, Option.RESUBMIT)
