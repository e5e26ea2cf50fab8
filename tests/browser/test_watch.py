"""The watch bites: a page that breaks the site's rules is noticed, by the browser and by the server."""

from __future__ import annotations


def test_an_unruly_page_is_reported_by_the_browser_itself(site):
    page = site.visitor()
    reports = {"style-src-elem", "style-src-attr", "script-src-elem"}

    page.goto("/unruly/")

    site.watch.until(
        page, lambda: reports <= {fault.removeprefix("CSP report: ").split()[0] for fault in site.watch.faults}
    )
    for sign in ("CSP report: ", "console: .*Content Security Policy", "answer: 404 ", "console: Failed to load"):
        site.watch.expect(sign)
    assert page.title() == "Unruly"


def test_an_expected_fault_that_does_not_come_is_a_fault(watch):
    watch.expect("answer: 409")

    assert watch.left() == ["expected, but it did not come: answer: 409"]

    watch.forget()
