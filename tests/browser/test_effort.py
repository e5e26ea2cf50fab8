"""What a decision costs the person who makes it: clicks from the list to the answer, and words to read on the way.

``pytest -s`` prints the table. The bounds hold what has been reached: whoever adds a sentence takes one away.
"""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from jobtrack.core.escalation import Option, Reason
from jobtrack_django.models import Escalation
from tests.browser import desk, pages
from tests.browser.desk import LEAD

CLICKS = 3
MOST_WORDS, USUAL_WORDS = 420, 330

ANSWERS = {
    Reason.DEADLINE_EXCEEDED: Option.EXTEND,
    Reason.UNKNOWN_STATE: Option.LOOK_AGAIN,
    Reason.AUTHORIZATION_DENIED: Option.ACCESS_REPAIRED,
    Reason.PROVIDER_FAILURE: Option.CLOSE,
    Reason.INVALID_RESULT: Option.LOOK_AGAIN,
    Reason.RATE_LIMITED: Option.LOOK_AGAIN,
    Reason.INVALID_RESPONSE: Option.LOOK_AGAIN,
    Reason.SUBMISSION_UNKNOWN: Option.ATTACH_JOB,
}

COUNTS_CLICKS = """addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.setItem("clicks", 1 + Number(sessionStorage.getItem("clicks")));
}, true);"""


def words(page: Page, *blocks: str) -> int:
    """Words that are seen in these blocks."""
    for block in blocks:
        expect(page.locator(block)).to_be_visible()
    texts = [page.locator(block).inner_text() for block in blocks]
    return sum(len(re.findall(r"[\w-]+", text)) for text in texts)  # an id or a name is read as one


def decide(page: Page, escalation: Escalation, option: Option) -> tuple[int, int, int]:
    """From the list to the answer; returns clicks, words of the question with its options, words of the second step."""
    page.goto(pages.LIST)
    page.evaluate("sessionStorage.clear()")
    pages.row(page, escalation).click()
    asked = words(page, ".jobtrack-question", ".jobtrack-options", ".jobtrack-about")
    pages.button(page, option).click()
    told = words(page, ".jobtrack-consequence", ".jobtrack-decide")
    if option is Option.ATTACH_JOB:
        page.get_by_label("The provider's id of the job").fill("exp_8418")
    page.locator("[name=reason]").fill(pages.WHY)
    page.locator(".jobtrack-decide input[type=submit]").first.click()
    pages.decided(page, LEAD, option)
    return int(page.evaluate("sessionStorage.getItem('clicks')")), asked, told


def test_a_decision_takes_three_clicks_and_few_words(site, rehearsal):
    asked = desk.ask(rehearsal, *desk.CASES)
    page = site.visitor(LEAD)
    page.context.add_init_script(COUNTS_CLICKS)

    spent = {each.reason: decide(page, each, ANSWERS[Reason(each.reason)]) for each in asked}

    print(f"\n{'question':24} {'clicks':>6} {'question':>9} {'step two':>9} {'words':>6}")
    for reason, (clicks, first, second) in spent.items():
        print(f"{reason:24} {clicks:6} {first:9} {second:9} {first + second:6}")
    totals = sorted(first + second for _, first, second in spent.values())
    assert {clicks for clicks, _, _ in spent.values()} == {CLICKS}
    assert totals[-1] <= MOST_WORDS
    assert totals[len(totals) // 2] <= USUAL_WORDS
