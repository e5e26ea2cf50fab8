"""What people do on the pages of the desk, in their words: those of the active language."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext
from playwright.sync_api import Locator, Page, expect

from jobtrack.core.escalation import Option
from jobtrack_django import words
from jobtrack_django.models import Escalation

LIST = "/admin/jobtrack/escalation/"

WHY = "The provider's console shows it; checked with their support."


def log_in(page: Page, name: str) -> None:
    """Fill in the page to log in, of the site or of the admin."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(name)
    page.get_by_role("button", name="Log in").click()


def question(escalation: Escalation) -> str:
    return reverse("admin:jobtrack_escalation_change", args=[escalation.pk])


def row(page: Page, escalation: Escalation) -> Locator:
    """The link to a question in the list."""
    return page.locator(f"#result_list a[href*='{question(escalation)}']")


def button(page: Page, option: Option) -> Locator:
    """The button of an option on the decision page."""
    return page.get_by_role("link", name=f"{words.option_label(option)}…")


def confirm(page: Page, why: str = WHY) -> None:
    """The second step: say why, and mean it."""
    page.get_by_label(gettext("Why do you decide so?")).fill(why)
    page.locator(".jobtrack-decide").get_by_role("button").first.click()


def decided(page: Page, by: str, option: Option) -> None:
    """The page shows who has decided what."""
    answer = page.locator(".jobtrack-answer")
    expect(answer).to_contain_text(by)
    expect(answer).to_contain_text(str(words.option_label(option)))


def tab_to(page: Page, target: Locator, *, most: int = 80) -> None:
    """Press Tab until ``target`` has the focus, which must be seen.

    Raises:
        AssertionError: it is not reached, or nobody sees that it is.
    """
    expect(target).to_be_visible()
    for _ in range(most):
        page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            assert target.evaluate(_SHOWS_FOCUS), "the focus is not seen"
            return
    raise AssertionError(f"{most} times Tab do not reach {target}")


_SHOWS_FOCUS = """element => {
  const look = () => {
    const style = getComputedStyle(element);
    const outline = style.outlineStyle === "none" ? "" : style.outline;
    return [outline, style.boxShadow, style.borderColor, style.backgroundColor, style.textDecorationLine].join();
  };
  const focused = look();
  element.blur();
  const blurred = look();
  element.focus();
  return focused !== blurred;
}"""
"""Whether an element looks different with the focus and without."""


def choose(page: Page, option: Option, *asked: Escalation) -> None:
    """Tick questions in the list and choose an option for all of them."""
    for each in asked:
        page.locator(f"input[name=_selected_action][value='{each.pk}']").check()
    page.locator("select[name=action]").select_option(f"bulk_{option.value}")
    page.locator("#changelist-form button[name=index]").first.click()  # "Run", and "Go" before Django 6.1
