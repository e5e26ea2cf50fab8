"""Every question that the demo leaves open is decided through the pages, as an operator would, and comes to its end."""

from __future__ import annotations

import html
import json
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from example_project.children import free_port
from example_project.decisions import EIGHT, OTHERS, First, Right
from example_project.scenarios import BY_NAME, SCENARIOS
from jobtrack.core.escalation import ALLOWED, Option
from jobtrack.core.operation import OperationState
from tests.acceptance.demo_runs import ROOT, demonstrating

ALL = (*EIGHT, *OTHERS)


# --- the table --------------------------------------------------------------------------------------


def test_the_eight_have_eight_reasons_and_each_decision_is_allowed() -> None:
    assert len({BY_NAME[right.scenario].reason for right in EIGHT}) == len(EIGHT) == 8
    assert [right for right in ALL if right.option not in ALLOWED[BY_NAME[right.scenario].reason]] == []


def test_every_question_that_a_scenario_leaves_has_a_right_decision() -> None:
    asking = {scenario.name for scenario in SCENARIOS if scenario.reason}
    assert ({right.scenario for right in ALL}, len(ALL)) == (asking, len(asking))


# --- the pages --------------------------------------------------------------------------------------


@dataclass
class Desk:
    """A demo whose scenarios have ended, and the people at its desk."""

    root: Path  # of the checkout it runs in
    folder: Path  # of its data
    site: str
    console: str
    people: dict[str, httpx.Client] = field(default_factory=dict)

    def person(self, name: str) -> httpx.Client:
        if name not in self.people:
            browser = httpx.Client(base_url=self.site, follow_redirects=True, trust_env=False, timeout=20)
            page = send(browser, "/admin/login/", username=name, password=name)
            assert page.url.path != "/admin/login/", page.text
            self.people[name] = browser
        return self.people[name]

    def rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self.folder / 'example.sqlite3'}?mode=ro", uri=True)) as database:
            return database.execute(query, values).fetchall()

    def operation(self, scenario: str) -> str:
        ((found,),) = self.rows(
            "SELECT o.id FROM jobtrack_operation o JOIN reports_report r ON o.object_id = r.id WHERE r.scenario = ?",
            scenario,
        )
        return found

    def open_questions(self, operation: str) -> list[int]:
        query = "SELECT id FROM jobtrack_escalation WHERE operation_id = ? AND decided_at IS NULL ORDER BY id"
        return [found for (found,) in self.rows(query, operation)]

    def state(self, operation: str) -> str:
        return self.rows("SELECT state FROM jobtrack_operation WHERE id = ?", operation)[0][0]

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "acme.jsonl").read_text().splitlines()]

    def exports(self, operation: str) -> list[str]:
        """What ACME's console shows to somebody who looks for an operation."""
        page = httpx.get(self.console, params={"q": operation}, trust_env=False).text
        return re.findall(r"<code>(exp_\w+)</code>", page)

    def mend(self, operation: str) -> None:
        (job,) = self.exports(operation)
        httpx.post(f"{self.console}/{job}/mend", trust_env=False).raise_for_status()

    def mails(self) -> str:
        return "".join(path.read_text() for path in sorted((self.folder / "mail").glob("*")))


def send(browser: httpx.Client, page: str, **fields: str) -> httpx.Response:
    """Fill in the form of a page and send it, as a browser does."""
    text = browser.get(page).text
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text))
    assert "csrfmiddlewaretoken" in hidden, text
    return browser.post(page, data={**hidden, **fields})


def wait_until(happens: Callable[[], bool], what: str, within_s: float = 90) -> None:
    end = time.monotonic() + within_s
    while not happens():
        assert time.monotonic() < end, what
        time.sleep(0.3)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    root, data = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("data")
    for folder in ("jobtrack", "jobtrack_django", "example_project", "providers"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with demonstrating(data, root) as demo:
        demo.start("--port", str(free_port()))
        site = demo.read_until(r"^Site +(\S+)/ ")[1]
        console = demo.read_until(r"^ACME +(\S+) ")[1]
        folder = Path(demo.read_until(r"^Logs +(\S+)")[1])
        demo.read_until(r"scenarios ended as their table says")
        found = Desk(root=root, folder=folder, site=site, console=console)
        yield found
        for browser in found.people.values():
            browser.close()


def mend_table(root: Path) -> None:
    """Teach the table of the demo the word `paused`, as the demo suggests."""
    table = root / "providers" / "acme-export.yaml"
    text = table.read_text()
    for before, after in [
        ("[queued, running]", "[queued, running, paused]"),
        ("status: paused}}, means: unknown_state", "status: paused}}, means: pending"),
        ("revision: 2", "revision: 3"),
    ]:
        assert text.count(before) == 1
        text = text.replace(before, after)
    table.write_text(text)


def decide(desk: Desk, right: Right, operation: str, question: int) -> None:
    """Open the question, press the button of the option, fill in its form, and say yes."""
    name = "lead" if right.option in (Option.ATTACH_JOB, Option.RESUBMIT) else "operator"
    person = desk.person(name)
    page = person.get(f"/admin/jobtrack/escalation/{question}/change/").text
    link = re.search(rf'href="([^"]*/decide/{right.option.value}/[^"]*)"', page)
    assert link is not None, page
    fields = {"reason": right.seen, "confirm": operation}
    if right.option is Option.ATTACH_JOB:
        (fields["job_id"],) = desk.exports(operation)
    answer = send(person, html.unescape(link[1]), **fields)
    assert (answer.status_code, desk.open_questions(operation).count(question)) == (200, 0), answer.text


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.processes
@pytest.mark.timeout(400)
def test_all_questions_of_the_demo_are_decided_rightly_and_nothing_comes_twice(desk: Desk) -> None:
    """R-ESC-3, R-ESC-4, INV-18: end states by the rows, and what was made by the provider's own log."""
    operations = {right.scenario: desk.operation(right.scenario) for right in ALL}
    asked = {name: desk.open_questions(operation) for name, operation in operations.items()}
    assert {name: len(questions) for name, questions in asked.items()} == dict.fromkeys(operations, 1)
    mend_table(desk.root)
    for right in ALL:
        operation = operations[right.scenario]
        if right.first is First.MEND:
            desk.mend(operation)
        decide(desk, right, operation, asked[right.scenario][0])
    for right in ALL:
        operation = operations[right.scenario]
        wait_until(lambda: desk.state(operation) == right.state, f"{right.scenario}: {desk.state(operation)}")  # noqa: B023
    made = Counter(entry["request_id"].rpartition(":")[0] for entry in desk.log() if entry["made"])
    assert {name: made[operation] for name, operation in operations.items()} == dict.fromkeys(operations, 1)
    assert sum(len(desk.open_questions(operation)) for operation in operations.values()) == 0
    done = [operations[right.scenario] for right in ALL if right.state is OperationState.SUCCEEDED]
    stored = "SELECT count(*) FROM reports_report r JOIN jobtrack_operation o ON o.object_id = r.id "
    wait_until(
        lambda: all(desk.rows(f"{stored} WHERE o.id = ? AND r.rows = 1204", each) == [(1,)] for each in done),
        "a report has no rows",
    )


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.processes
def test_the_links_of_its_notices_lead_to_the_questions_after_the_login(desk: Desk) -> None:
    wait_until(lambda: desk.site in desk.mails(), "no notice has come")
    link = re.search(rf"{re.escape(desk.site)}(/admin/jobtrack/escalation/\d+/[^\s>]*)", desk.mails())[1]
    with httpx.Client(base_url=desk.site, follow_redirects=True, trust_env=False, timeout=20) as browser:
        login = browser.get(link)
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', login.text))
        page = browser.post(str(login.url), data={**hidden, "username": "operator", "password": "operator"})
    assert urlsplit(str(login.url)).path == "/login/"
    assert (page.status_code, page.url.path) == (200, link.partition("?")[0])
