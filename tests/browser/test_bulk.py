"""The table was mended: one decision for many questions, of which some can no longer be decided (R-ESC)."""

from __future__ import annotations

from playwright.sync_api import expect

from jobtrack.core.escalation import Option, Reason
from jobtrack.errors import StoreError
from jobtrack_django import bulk
from jobtrack_django.models import DecisionItem
from tests.browser import desk, pages
from tests.browser.desk import LEAD, OPERATOR

REPORTS = ("Invoices of November", "Refunds by country", "Stock at month end", "Orders since Monday")
STUCK = [
    desk.case(10 + number, Reason.UNKNOWN_STATE, report, "running", "paused", minutes=1)
    for number, report in enumerate(REPORTS)
]


def outcomes() -> list[str]:
    return sorted(DecisionItem.objects.values_list("outcome", flat=True))


def test_what_somebody_else_decided_meanwhile_is_skipped(site, rehearsal):
    asked = desk.ask(rehearsal, *STUCK)
    lead, operator = site.visitor(LEAD), site.visitor(OPERATOR)
    lead.goto(pages.LIST)
    pages.choose(lead, Option.LOOK_AGAIN, *asked)
    expect(lead.get_by_text("4 questions will be decided")).to_be_visible()
    expect(lead.get_by_role("row").filter(has_text=asked[0].operation_id)).to_be_visible()

    operator.goto(pages.question(asked[1]))
    pages.button(operator, Option.CLOSE).click()
    pages.confirm(operator)
    pages.decided(operator, OPERATOR, Option.CLOSE)
    pages.confirm(lead, "The table knows the state now.")

    expect(lead.get_by_role("heading", name="Decided (3)")).to_be_visible()
    expect(lead.get_by_role("heading", name="Skipped (1)")).to_be_visible()
    expect(lead.get_by_role("row").filter(has_text=asked[1].operation_id)).to_contain_text(OPERATOR)
    assert outcomes() == ["done", "done", "done", "skipped"]
    asked[1].refresh_from_db()
    assert (asked[1].option, asked[1].actor) == ("close", OPERATOR)


def test_what_has_failed_is_tried_again(site, rehearsal, monkeypatch):
    asked, resolve = desk.ask(rehearsal, *STUCK), bulk.resolve

    def goes_wrong_for_one(runtime, resolution):
        if resolution.escalation_id == str(asked[2].pk):
            raise StoreError("The database was away for a moment.")
        return resolve(runtime, resolution)

    page = site.visitor(LEAD)
    page.goto(pages.LIST)
    pages.choose(page, Option.LOOK_AGAIN, *asked)
    with monkeypatch.context() as patched:
        patched.setattr(bulk, "resolve", goes_wrong_for_one)
        pages.confirm(page, "The table knows the state now.")
        expect(page.get_by_role("heading", name="Failed (1)")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text=asked[2].operation_id)).to_contain_text("away for a moment")

    page.locator("a[href$='/retry/']").click()
    expect(page.get_by_text("1 question will be decided")).to_be_visible()
    pages.confirm(page, "The database is back.")

    expect(page.get_by_role("heading", name="Decided (1)")).to_be_visible()
    assert outcomes() == ["done", "done", "done", "done", "failed"]


def test_all_that_match_are_decided_without_scripts(site, rehearsal):
    desk.ask(rehearsal, *STUCK, desk.CASES[0])
    page = site.visitor(LEAD, js=False)
    page.goto(f"{pages.LIST}?reason={Reason.UNKNOWN_STATE}")
    page.get_by_label("All that match, on every page").check()
    pages.choose(page, Option.LOOK_AGAIN)
    expect(page.get_by_text("4 questions will be decided")).to_be_visible()
    pages.confirm(page, "The table knows the state now.")

    expect(page.get_by_role("heading", name="Decided (4)")).to_be_visible()
    assert outcomes() == ["done"] * 4


def test_with_scripts_django_s_own_links_choose_all(site, rehearsal):
    desk.ask(rehearsal, *STUCK[:2])
    page = site.visitor(LEAD)
    page.goto(pages.LIST)

    expect(page.get_by_text("All that match, on every page")).to_have_count(0)
