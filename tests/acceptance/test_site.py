"""The example site as a browser sees it, with and without JavaScript. No broker runs: a sweep loop looks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from example_project.behaviour import ROWS, SIGNATURE
from example_project.children import ROOT, Children, free_port, listens

pytestmark = [pytest.mark.processes]


def _content(path: Path) -> bytes:
    """What is in a file; nothing if it is gone: SQLite removes its own beside the database when nobody has it open."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


@dataclass
class Site:
    """A running site, its provider and their log."""

    children: Children
    environment: dict[str, str]
    url: str

    @contextmanager
    def browser(self, name: str = "") -> Iterator[httpx.Client]:
        """A browser; logged in if a name is given."""
        with httpx.Client(base_url=self.url, follow_redirects=True, trust_env=False, timeout=20) as browser:
            if name:
                page = submit(browser, "/login/", username=name, password=name)
                assert page.url.path == "/", page.text
            yield browser

    def log(self) -> list[dict[str, Any]]:
        """ACME's own record."""
        return [json.loads(line) for line in (self.children.folder / "acme.jsonl").read_text().splitlines()]

    def seen(self, operation: str, kind: str = "status") -> list[str]:
        """What ACME answered to the requests of one kind for an operation."""
        own = [entry for entry in self.log() if entry["request_id"].startswith(f"{operation}:")]
        return [entry["word"] for entry in own if entry["kind"] == kind]

    def made(self, operation: str) -> int:
        """How many exports of an operation ACME has."""
        return sum(bool(e["made"]) for e in self.log() if e["request_id"].startswith(f"{operation}:"))

    def files_with(self, text: bytes) -> list[str]:
        """Logs, results and database files of the site that hold a text."""
        files = [path for path in self.children.folder.rglob("*") if path.is_file() and path.name != "acme.jsonl"]
        return sorted(path.name for path in files if text in _content(path))


def manage(root: Path, environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "example_project", *arguments]
    done = subprocess.run(
        command, check=False, cwd=root, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@contextmanager
def running(folder: Path, root: Path = ROOT) -> Iterator[Site]:
    """A site of its own, with its data in ``folder``, run from the checkout ``root``."""
    acme_port, port = free_port(), free_port()
    environment = {
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "JOBTRACK_DEMO_DIR": str(folder),
        "JOBTRACK_DEMO_BROKER": f"redis://127.0.0.1:{free_port()}/0",
        "JOBTRACK_DEMO_ACME_PORT": str(acme_port),
        "ACME_TOKEN": "a-token-for-tests",
        "ACME_WEBHOOK_SECRET": "whsec_" + "YWFh" * 8,
    }
    manage(root, environment, "migrate", "--verbosity=0")
    manage(root, environment, "shell", "-c", "from example_project.showcase import add_people; add_people()")
    python = [sys.executable, "-m"]
    with Children(folder=folder, stop=Event(), root=root) as children:
        log = str(folder / "acme.jsonl")
        provider = children.start(
            "simulator",
            [*python, "example_project.simulator", "--port", str(acme_port), "--log", log],
            environment,
        )
        server = children.start(
            "site",
            [*python, "example_project", "runserver", "--noreload", "--insecure", f"127.0.0.1:{port}"],
            environment,
        )
        children.until(lambda: listens(acme_port), provider, within_s=30)
        children.until(lambda: listens(port), server, within_s=60)
        yield Site(children=children, environment=environment, url=f"http://127.0.0.1:{port}")


@contextmanager
def swept(site: Site) -> Iterator[None]:
    """Polls without a broker, as `manage.py jobtrack_sweep --loop --inline` does."""
    with Children(folder=site.children.folder, stop=Event(), root=site.children.root) as children:
        command = [sys.executable, "-m", "example_project", "jobtrack_sweep", "--loop", "--inline"]
        children.start("sweep", command, site.environment)
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("site")) as started:
        yield started


@pytest.fixture
def sweeping(site: Site) -> Iterator[None]:
    with swept(site):
        yield


def submit(browser: httpx.Client, page: str, to: str = "", **fields: str) -> httpx.Response:
    """Fill in the form of a page and send it, as a browser does."""
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', browser.get(page).text))
    assert "csrfmiddlewaretoken" in hidden
    return browser.post(to or page, data={**hidden, **fields})


def export(browser: httpx.Client, scenario: str, name: str = "Invoices") -> str:
    """Export a report on the page; returns the address of its progress page."""
    page = submit(browser, "/reports/new/", name=name, scenario=scenario)
    assert re.fullmatch(r"/reports/\d+/", page.url.path), page.text
    return page.url.path


def outcome_of(browser: httpx.Client, path: str) -> str:
    """The address of the JSON that a progress page names for programs."""
    found = re.search(r'<link rel="alternate" type="application/json" href="([^"]+)"', browser.get(path).text)
    assert found is not None
    return found[1]


def outcome(browser: httpx.Client, path: str) -> httpx.Response:
    return browser.get(outcome_of(browser, path))


def wait_for(browser: httpx.Client, path: str, state: str, within_s: float = 90) -> dict[str, Any]:
    """Ask for the outcome until it says ``state``."""
    address, end = outcome_of(browser, path), time.monotonic() + within_s
    while (told := browser.get(address).json())["state"] != state:
        assert time.monotonic() < end, told
        time.sleep(0.3)
    return told


def wait_for_file(browser: httpx.Client, path: str, within_s: float = 60) -> str:
    """Where the outcome says that the file is."""
    address, end = outcome_of(browser, path), time.monotonic() + within_s
    while "Link" not in (answer := browser.get(address)).headers:
        assert time.monotonic() < end, answer.text
        time.sleep(0.3)
    return re.search(r"<([^>]+)>", answer.headers["Link"])[1]


@pytest.mark.parametrize("path", ["/", "/reports/new/", "/reports/1/", "/reports/1/file/", "/admin/"])
def test_nobody_gets_in_without_logging_in(site: Site, path: str) -> None:
    with site.browser() as browser:
        answer = browser.get(path)
        told = browser.get("/outcomes/report-1/")
    assert [hop.status_code for hop in answer.history] == [302]
    assert answer.url.path.endswith("/login/")
    assert (told.status_code, told.headers["Content-Type"]) == (401, "application/problem+json")


def test_a_refresh_finds_the_same_operation_and_sends_nothing(site: Site) -> None:
    """R-CALL-1, R-SUB-1: neither ordering nor looking at a page asks the provider; a worker does."""
    before = site.log()
    with site.browser("ann") as browser:
        path = export(browser, "success")
        pages = [browser.get(path).text for _ in range(3)]
        told = [outcome(browser, path).json() for _ in range(5)]
    assert {page.count("It is about to be sent.") for page in pages} == {1}
    assert ({each["state"] for each in told}, len({each["operation_id"] for each in told})) == ({"ready"}, 1)
    assert site.log() == before


def test_a_form_that_is_sent_twice_orders_one_report(site: Site) -> None:
    """R-ID-4: a double click is one operation."""
    with site.browser("ann") as browser:
        page = browser.get("/reports/new/").text
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
        sent = [
            browser.post("/reports/new/", data={**fields, "name": "Twice", "scenario": "success"}) for _ in range(2)
        ]
        listed = browser.get("/").text
    assert sent[0].url == sent[1].url
    assert listed.count(">Twice<") == 1


def test_the_script_of_the_page_is_given_the_box_alone(site: Site) -> None:
    """R-CALL-2: with a tag, when to ask again, and never a redirect to the login."""
    with site.browser("ann") as ann, site.browser() as nobody:
        path = export(ann, "stuck")
        address = re.search(r'data-url="([^"]+)"', ann.get(path).text)[1]
        box = ann.get(address)
        unchanged = ann.get(address, headers={"If-None-Match": box.headers["ETag"]})
        refused = nobody.get(address)
    assert (address, unchanged.status_code, refused.status_code) == (f"{path}?fragment", 304, 401)
    assert (box.text.startswith("<section"), int(box.headers["Retry-After"]) >= 1) == (True, True)


def test_the_outcome_says_when_to_ask_again_and_is_kept_from_others(site: Site) -> None:
    """R-CALL-2."""
    with site.browser("ann") as ann, site.browser("admin") as admin:
        hers, his = export(ann, "stuck"), export(admin, "stuck")
        answer = outcome(ann, hers)
        codes = [ann.get(outcome_of(admin, his)).status_code, admin.get(outcome_of(ann, hers)).status_code]
        unchanged = ann.get(outcome_of(ann, hers), headers={"If-None-Match": answer.headers["ETag"]})
    told = answer.json()
    assert int(answer.headers["Retry-After"]) == told["retry_after_s"] >= 1
    assert (told["outcome"], told["submission"]["attempts"]["used"]) == ("pending", 0)
    assert (codes, unchanged.status_code) == ([404, 200], 304)


@pytest.mark.slow
def test_a_report_comes_to_its_file_without_javascript_and_without_a_broker(site: Site, sweeping: None) -> None:
    """INV-06, INV-33: neither the signed URL of the result nor the token is kept anywhere."""
    with site.browser("ann") as browser, site.browser("admin") as admin:
        path = export(browser, "success", name="<b>November</b>")
        under_way = browser.get(path).text
        told = wait_for(browser, path, "succeeded")
        saved = browser.get(wait_for_file(browser, path))
        ended, listed = browser.get(path).text, browser.get("/").text
        his = admin.get(f"{path}file/")
    assert re.search(r'<noscript><meta http-equiv="refresh" content="[1-9]\d?"></noscript>', under_way)
    assert ("http-equiv" in ended, f"{ROWS:,}" in ended, "It is done." in ended) == (False, True, True)
    assert ("<b>November" in ended + listed, "&lt;b&gt;November&lt;/b&gt;" in listed) == (False, True)
    assert (saved.headers["Content-Disposition"], saved.content.count(b"\n")) == (
        'attachment; filename="report.csv"',
        ROWS + 1,
    )
    assert his.content == saved.content  # staff sees all
    operation = told["operation_id"]
    assert site.seen(operation) == ["queued", "running", "running", "succeeded", "succeeded"]  # the last for the file
    assert (site.seen(operation, "submit"), site.made(operation)) == (["accepted"], 1)
    assert site.files_with(SIGNATURE.encode()) == []
    assert site.files_with(site.environment["ACME_TOKEN"].encode()) == []
    assert site.files_with(b"exp_") != []


@pytest.mark.slow
def test_a_lost_answer_is_told_and_cleared_up_without_a_second_export(site: Site, sweeping: None) -> None:
    """R-SUB-2, INV-18."""
    with site.browser("ann") as browser:
        path = export(browser, "lost-bare")
        told = wait_for(browser, path, "escalated")
        page = browser.get(path).text
        other = wait_for(browser, export(browser, "lost-keyed"), "succeeded")
    assert (told["outcome"], told["needs_decision"], told["retry_allowed"]) == (
        "unknown",
        ["submission_unknown"],
        False,
    )
    assert "somebody is looking into it" in page
    assert site.seen(told["operation_id"], "submit") == ["lost"]
    assert site.seen(other["operation_id"], "submit") == ["lost", "accepted"]
    assert [site.made(each["operation_id"]) for each in (told, other)] == [1, 1]


@pytest.mark.slow
def test_an_export_is_cancelled_by_its_button_once_the_provider_says_so(site: Site, sweeping: None) -> None:
    """R-END-5."""
    with site.browser("ann") as browser:
        path = export(browser, "cancel")
        before = browser.get(path).text
        wait_for(browser, path, "running")
        page = browser.get(path).text
        submit(browser, path, to=f"{path}cancel/")
        told = wait_for(browser, path, "cancelled")
        again = submit(browser, path, to=f"{path}cancel/").text
    effect = "The part that is already made is billed."
    assert (effect in before, effect in page) == (False, True)
    assert site.seen(told["operation_id"], "cancel") == ["cancelling"]
    assert site.seen(told["operation_id"])[-1] == "canceled"
    assert "It was cancelled." in again
    assert '<p class="message" role="status">' in again  # why it cannot be cancelled again


@pytest.mark.slow
def test_an_unknown_state_waits_for_a_person_and_the_page_says_so(site: Site, sweeping: None) -> None:
    with site.browser("ann") as browser:
        path = export(browser, "unknown")
        told = wait_for(browser, path, "escalated")
        answer, page = outcome(browser, path), browser.get(path).text
    assert (told["needs_decision"], "Retry-After" in answer.headers) == (["unknown_state"], False)
    assert "somebody is looking into it" in page
    assert site.seen(told["operation_id"]) == ["running", "paused"]


def mend(table: Path) -> None:
    """Teach the table of the demo the word `paused`, as the demo suggests."""
    text = table.read_text()
    for before, after in [
        ("[queued, running]", "[queued, running, paused]"),
        ("status: paused}}, means: unknown_state", "status: paused}}, means: pending"),
        ("revision: 2", "revision: 3"),
    ]:
        assert text.count(before) == 1
        text = text.replace(before, after)
    table.write_text(text)


def look_again(browser: httpx.Client, operation: str) -> httpx.Response:
    """Answer the open question about an operation in the admin."""
    page = browser.get(f"/admin/jobtrack/operation/{operation}/change/").text
    question = re.search(r'href="(/admin/jobtrack/escalation/\d+/change/)"', page)
    option = re.search(r'href="([^"]*look_again[^"]*)"', browser.get(question[1]).text)
    form = browser.get(option[1]).text
    assert re.search(r'name="version" value="(\d+)"', form)
    return submit(browser, option[1], reason="The table now knows the word.")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_once_the_table_knows_the_word_a_look_again_finishes_the_operation(tmp_path: Path) -> None:
    """R-ESC-4: one request and one question for an unknown word; after that the newest table is read."""
    for folder in ("jobtrack", "jobtrack_django", "example_project", "providers"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "data").mkdir()
    table = tmp_path / "providers" / "acme-export.yaml"
    with running(tmp_path / "data", tmp_path) as site, swept(site), site.browser("admin") as browser:
        path = export(browser, "unknown")
        operation = wait_for(browser, path, "escalated")["operation_id"]
        asked = site.seen(operation)
        mend(table)
        decided = look_again(browser, operation)
        wait_for(browser, path, "succeeded")
        story = browser.get(f"/admin/jobtrack/operation/{operation}/change/").text
    assert (asked, decided.status_code) == (["running", "paused"], 200)
    assert site.seen(operation)[:5] == ["running", "paused", "paused", "running", "succeeded"]
    assert ("acme-export r2" in story, "acme-export r3" in story, "chain verified" in story) == (True, True, True)


def test_a_report_is_shown_to_its_owner_and_to_staff(site: Site) -> None:
    with site.browser("ann") as ann, site.browser("admin") as admin:
        hers, his = export(ann, "stuck"), export(admin, "stuck")
        codes = [ann.get(his).status_code, ann.get(f"{his}file/").status_code, admin.get(hers).status_code]
        listed = [f'href="{his}"' in ann.get("/").text, f'href="{hers}"' in admin.get("/").text]
        links = ["/admin/" in ann.get(hers).text, "/admin/jobtrack/operation/" in admin.get(hers).text]
    assert (codes, listed, links) == ([404, 404, 200], [False, True], [False, True])


class Inline(HTMLParser):
    """Collects what a strict Content-Security-Policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "style" or (tag == "script" and "src" not in given and given.get("type") != "application/json"):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in given if name == "style" or name.startswith("on")]
        self.found += [f"{tag} {value}" for value in given.values() if value and value.startswith("javascript:")]


PAGES = [
    "/login/",
    "/",
    "/reports/new/",
    "/reports/{pk}/",
    "/admin/",
    "/admin/jobtrack/operation/",
    "/admin/jobtrack/operation/{operation}/change/",
    "/admin/jobtrack/escalation/",
]


@pytest.fixture(scope="module")
def tracked(site: Site) -> dict[str, str]:
    """A report and its operation, to fill in addresses."""
    with site.browser("admin") as browser:
        path = export(browser, "stuck")
        return {"pk": path.split("/")[2], "operation": outcome(browser, path).json()["operation_id"]}


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_inline_scripts_or_styles(site: Site, tracked: dict[str, str], page: str) -> None:
    with site.browser("" if page == "/login/" else "admin") as browser:
        answer = browser.get(page.format(**tracked))
    parser = Inline()
    parser.feed(answer.text)
    assert (answer.status_code, parser.found) == (200, [])
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")


def test_every_file_a_page_names_is_there(site: Site, tracked: dict[str, str]) -> None:
    with site.browser("admin") as browser:
        pages = [browser.get(page.format(**tracked)).text for page in PAGES]
        files = sorted(set(re.findall(r'(?:src|href)="(/static/[^"]+)"', "".join(pages))))
        missing = [path for path in files if browser.get(path).status_code != 200]
    assert ("/static/jobtrack/progress.js" in files, missing) == (True, [])
