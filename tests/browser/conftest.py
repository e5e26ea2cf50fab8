"""A live site and a real Chromium. All waits are for conditions, and no test may leave a fault that it did not expect."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.ready import CHROMIUM, PATIENCE_S, SETTINGS, missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from jobtrack_django.testing import Rehearsal
    from tests.browser.watching import Watch

LEFT_OUT = missing() or ("" if os.environ.get("DJANGO_SETTINGS_MODULE") == SETTINGS else f"run with --ds={SETTINGS}")
collect_ignore_glob = ["test_*.py", "screenshots.py"] if LEFT_OUT else []


def pytest_report_header() -> list[str]:
    return [f"browser tests are left out: {LEFT_OUT}"] if LEFT_OUT else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_S * 1000)
    with sync_playwright() as playwright:
        # Root needs --no-sandbox; a container's /dev/shm is small.
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        with closing(playwright.chromium.launch(executable_path=CHROMIUM, args=options)) as browser:
            yield browser


@pytest.fixture
def watch() -> Iterator[Watch]:
    """What server and browser notice. A test that leaves a fault fails (no CSP report, no console error)."""
    from tests.browser.watching import WATCH

    WATCH.forget()
    yield WATCH
    assert WATCH.left() == []


@dataclass(slots=True, kw_only=True)
class Site:
    """The running site, and the people at their browsers."""

    url: str
    watch: Watch
    browser: Browser
    stack: ExitStack

    def visitor(
        self,
        name: str = "",
        *,
        js: bool = True,
        wide: int = 1280,
        dark: bool = False,
        locale: str = "en-GB",
        **more: Any,
    ) -> Page:
        """A page in a browser of its own.

        Args:
            name: who has logged in there; "": nobody.
            js: whether scripts run.
            wide: of the window, in pixels.
            dark: whether the person wants dark pages.
            locale: of the browser; the site answers in its language.
            more: for Playwright's ``new_context``.
        """
        context = self.browser.new_context(
            base_url=self.url,
            java_script_enabled=js,
            viewport={"width": wide, "height": 900},
            color_scheme="dark" if dark else "light",
            locale=locale,
            **more,
        )
        self.stack.callback(context.close)
        context.set_default_timeout(PATIENCE_S * 1000)
        self.watch.follow(context)
        if name:
            self._log_in(context, name)
        return context.new_page()

    def _log_in(self, context: BrowserContext, name: str) -> None:
        """By the session cookie: the page to log in has tests of its own."""
        from django.conf import settings
        from django.contrib.auth.models import User
        from django.test import Client

        client = Client()
        client.force_login(User.objects.get(username=name))
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": self.url}])


@pytest.fixture
def site(watch: Watch, chromium: Browser, live_server: Any, people: None, settings: Any) -> Iterator[Site]:
    told = {"desk": {"kind": "email", "to": ["desk@example.com"]}}
    settings.JOBTRACK = {**settings.JOBTRACK, "SITE_URL": live_server.url, "NOTIFIERS": told}
    with ExitStack() as stack:
        yield Site(url=live_server.url, watch=watch, browser=chromium, stack=stack)


@pytest.fixture
def people(transactional_db: None) -> None:
    """Each password is the name."""
    from tests.browser.desk import hire

    hire()


@pytest.fixture
def rehearsal(site: Site) -> Iterator[Rehearsal]:
    """The site on virtual time with a scripted provider, also for its pages."""
    from jobtrack_django.testing import rehearsal
    from tests.browser.desk import NIGHT

    with rehearsal(NIGHT) as played:
        yield played


@pytest.fixture(scope="session")
def acme() -> Iterator[Any]:
    """The simulated provider; ``seen()`` of its ledger is the truth."""
    from django.conf import settings

    from example_project.settings import ACME_PORT, VAR
    from example_project.simulator import Simulator

    VAR.mkdir(parents=True, exist_ok=True)
    simulator = Simulator(port=int(ACME_PORT), token=os.environ["ACME_TOKEN"], log_path=VAR / "acme.jsonl")
    thread = threading.Thread(target=simulator.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield simulator
    simulator.shutdown()
    thread.join()
    simulator.server_close()
    shutil.rmtree(settings.VAR, ignore_errors=True)


@contextmanager
def working() -> Iterator[None]:
    """A worker in a thread: it sweeps, and looks inline. No broker is there."""
    from django.db import connections

    from jobtrack.flow.sweep import sweep
    from jobtrack.testing import NoScheduler
    from jobtrack.worker import wiring
    from jobtrack_django.runtime import build_runtime

    runtime, stop = replace(build_runtime(), scheduler=NoScheduler()), threading.Event()

    def work() -> None:
        try:
            while not stop.wait(0.1):
                sweep(runtime, inline=True)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    with closing(runtime.transport), wiring.use_runtime(runtime):
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


@pytest.fixture
def worker(site: Site, acme: Any) -> Iterator[None]:
    with working():
        yield
