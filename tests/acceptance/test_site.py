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

import httpx
import pytest

from example_project import acme
from example_project.acme import NotStarted, start_export
from example_project.children import ROOT, Children, free_port, listens
from example_project.simulator import SIGNATURE

pytestmark = [pytest.mark.processes]


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

    def seen(self, job: str) -> list[str]:
        """What ACME answered to the status requests about a job."""
        log = (self.children.folder / "acme.jsonl").read_text().splitlines()
        return [entry["word"] for entry in map(json.loads, log) if entry["job"] == job]

    def files_with(self, text: bytes) -> list[str]:
        """Logs and database files of the site that hold a text."""
        files = [path for path in self.children.folder.iterdir() if path.is_file() and path.name != "acme.jsonl"]
        return sorted(path.name for path in files if text in path.read_bytes())

    def started(self) -> int:
        """How many exports ACME has accepted."""
        return (self.children.folder / "acme.jsonl").read_text().count('"accepted"')


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


def submit(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Fill in the form of a page, as a browser does."""
    page = browser.get(path)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None
    return browser.post(path, data={**fields, "csrfmiddlewaretoken": token[1]})


def export(browser: httpx.Client, scenario: str, name: str = "Invoices") -> str:
    """Export a report on the page; returns the address of its progress page."""
    page = submit(browser, "/reports/new/", name=name, scenario=scenario)
    assert re.fullmatch(r"/reports/\d+/", page.url.path), page.text
    return page.url.path


def status(browser: httpx.Client, path: str) -> httpx.Response:
    return browser.get(f"{path}status.json")


def wait_for(browser: httpx.Client, path: str, word: str, within_s: float = 90) -> httpx.Response:
    """Ask the JSON view until the page says ``word``."""
    end = time.monotonic() + within_s
    while (answer := status(browser, path)).json()["shown"]["state"] != word:
        assert time.monotonic() < end, answer.text
        time.sleep(0.3)
    return answer


@pytest.mark.parametrize("path", ["/", "/reports/new/", "/reports/1/", "/reports/1/status.json", "/admin/"])
def test_nobody_gets_in_without_logging_in(site: Site, path: str) -> None:
    with site.browser() as browser:
        answer = browser.get(path)
    assert [hop.status_code for hop in answer.history] == [302]
    assert answer.url.path.endswith("/login/")


def test_a_refresh_finds_the_same_operation_and_starts_nothing(site: Site) -> None:
    """R-CALL-1, R-SUB-1: looking at a page can neither create a job nor ask the provider."""
    before = site.started()
    with site.browser("ann") as browser:
        path = export(browser, "success")
        pages = [browser.get(path).text for _ in range(3)]
        answers = [status(browser, path) for _ in range(5)]
    outcomes = [answer.json()["outcome"] for answer in answers]
    assert {page.count("in progress") for page in pages} == {1}
    assert len({outcome["operation_id"] for outcome in outcomes}) == 1
    assert site.started() - before == 1
    assert site.seen(outcomes[0]["job_id"]) == []


def test_the_json_view_says_when_to_ask_again(site: Site) -> None:
    """R-CALL-2."""
    with site.browser("ann") as browser:
        answer = status(browser, export(browser, "stuck"))
    outcome = answer.json()["outcome"]
    assert int(answer.headers["Retry-After"]) == outcome["retry_after_s"] >= 1
    assert (outcome["outcome"], outcome["status_requests"]["used"]) == ("pending", 0)
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.slow
def test_a_report_comes_to_its_end_without_javascript_and_without_a_broker(site: Site, sweeping: None) -> None:
    """INV-06, INV-33: neither the signed URL of the result nor the token is kept anywhere."""
    with site.browser("ann") as browser:
        path = export(browser, "success", name="<b>November</b>")
        under_way = browser.get(path).text
        answer = wait_for(browser, path, "ready")
        while "Retry-After" in answer.headers:  # the follow-up is about to run
            time.sleep(0.3)
            answer = status(browser, path)
        ended, listed = browser.get(path).text, browser.get("/").text
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in under_way
    assert ("http-equiv" in ended, "1,204" in ended, "The report is ready." in ended) == (False, True, True)
    assert ("<b>November" in ended + listed, "&lt;b&gt;November&lt;/b&gt;" in listed) == (False, True)
    assert site.seen(answer.json()["outcome"]["job_id"]) == ["queued", "running", "running", "succeeded"]
    assert site.files_with(SIGNATURE.encode()) == []
    assert site.files_with(site.environment["ACME_TOKEN"].encode()) == []
    assert site.files_with(b"exp_") != []


@pytest.mark.slow
def test_an_unknown_state_waits_for_a_person_and_the_page_says_so(site: Site, sweeping: None) -> None:
    with site.browser("ann") as browser:
        path = export(browser, "unknown")
        answer = wait_for(browser, path, "waits for a decision")
        page = browser.get(path).text
    assert answer.json()["outcome"]["needs_decision"] == ["unknown_state"]
    assert answer.headers["Retry-After"] == "15"
    assert "A person decides how to go on." in page
    assert site.seen(answer.json()["outcome"]["job_id"]) == ["running", "paused"]


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
    version = re.search(r'name="version" value="(\d+)"', form)
    return submit(browser, option[1], version=version[1], reason="The table now knows the word.")


@pytest.mark.slow
def test_once_the_table_knows_the_word_a_look_again_finishes_the_operation(tmp_path: Path) -> None:
    """R-ESC-4: one request and one question for an unknown word; after that the newest table is read."""
    for folder in ("jobtrack", "jobtrack_django", "example_project", "providers"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "data").mkdir()
    table = tmp_path / "providers" / "acme-export.yaml"
    with running(tmp_path / "data", tmp_path) as site, swept(site), site.browser("admin") as browser:
        path = export(browser, "unknown")
        outcome = wait_for(browser, path, "waits for a decision").json()["outcome"]
        asked = site.seen(outcome["job_id"])
        mend(table)
        decided = look_again(browser, outcome["operation_id"])
        wait_for(browser, path, "ready")
        story = browser.get(f"/admin/jobtrack/operation/{outcome['operation_id']}/change/").text
    assert (asked, decided.status_code) == (["running", "paused"], 200)
    assert site.seen(outcome["job_id"]) == ["running", "paused", "paused", "running", "succeeded"]
    assert ("acme-export r1" in story, "acme-export r2" in story, "chain verified" in story) == (True, True, True)


def test_a_report_is_shown_to_its_owner_and_to_staff(site: Site) -> None:
    with site.browser("ann") as ann, site.browser("admin") as admin:
        hers, his = export(ann, "stuck"), export(admin, "stuck")
        codes = [ann.get(his).status_code, status(ann, his).status_code, admin.get(hers).status_code]
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
        return {"pk": path.split("/")[2], "operation": status(browser, path).json()["outcome"]["operation_id"]}


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
    assert ("/static/reports/progress.js" in files, missing) == (True, [])


def test_a_provider_that_cannot_be_reached_is_told_and_nothing_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acme, "PORT", str(free_port()))
    with pytest.raises(NotStarted, match=r"^ACME cannot be reached. Nothing was started.$"):
        start_export("success")


@pytest.mark.parametrize(
    ("token", "scenario", "message"),
    [
        ("another", "success", "ACME refused the export (HTTP 401). Nothing was started."),
        ("a-token-for-tests", "nonsense", "ACME refused the export (HTTP 422). Nothing was started."),
    ],
)
def test_a_refusal_is_told(
    site: Site, monkeypatch: pytest.MonkeyPatch, token: str, scenario: str, message: str
) -> None:
    monkeypatch.setattr(acme, "PORT", site.environment["JOBTRACK_DEMO_ACME_PORT"])
    monkeypatch.setenv("ACME_TOKEN", token)
    with pytest.raises(NotStarted) as raised:
        start_export(scenario)
    assert str(raised.value) == message


def test_an_answer_that_never_comes_leaves_it_open_whether_an_export_was_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R-SUB-2: a lost answer is unknown, never "not started"."""
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr(acme, "PORT", str(silent.getsockname()[1]))
        monkeypatch.setattr(acme, "TIMEOUT_S", 0.2)
        with pytest.raises(NotStarted, match="An export may have been started"):
            start_export("success")
