"""What the server and the browser notice while a test runs. At its end nothing may be left that no test has expected."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from django.http import HttpRequest, HttpResponse
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response, WebError

from example_project.security import POLICY
from tests.browser.ready import PATIENCE_S

REPORTS = "/csp-report/"

TOLERANCE_S = 0.02
"""Two clocks that read the same time differ by this at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as the server saw it."""

    at: float  # when it came, on the monotonic clock
    done: float  # when its answer was ready
    method: str
    path: str
    status: int
    retry_after: float | None  # seconds the answer asked to wait; None: nothing
    by_script: bool  # the script of a progress box asks, not a person


TAKEN_AWAY = "net::ERR_INTERNET_DISCONNECTED"
"""What the browser says where a test took its network away; a site that does not answer is another error."""


@dataclass  # no slots: Playwright remembers its handlers in it
class Watch:
    """The requests of one test, and what was wrong with the pages."""

    requests: list[Seen] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    _expected: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def forget(self) -> None:
        """A new test begins."""
        with self._lock:
            self.requests, self.faults, self._expected = [], [], []

    def expect(self, pattern: str) -> None:
        """Faults that fit ``pattern`` are part of this test, and one must come."""
        self._expected.append(pattern)

    def asked(self, path: str) -> list[Seen]:
        """The requests whose path fits the pattern ``path``, oldest first."""
        with self._lock:
            return [seen for seen in self.requests if re.fullmatch(path, seen.path)]

    def early(self, path: str) -> list[str]:
        """Requests of a progress box that came sooner than the answer before them allowed (R-POLL-2, on our side)."""
        seen = self.asked(path)
        return [
            f"{later.at - earlier.done:.2f} s after an answer that asked for {earlier.retry_after:g} s"
            for earlier, later in pairwise(seen)
            if later.by_script and earlier.retry_after and later.at - earlier.done < earlier.retry_after - TOLERANCE_S
        ]

    def note(self, seen: Seen) -> None:
        with self._lock:
            self.requests.append(seen)

    def fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text)

    def until(self, page: Page, come: Callable[[], object]) -> None:
        """Wait for something that the server or the browser is about to notice.

        Raises:
            TimeoutError: it did not come.
        """
        end = time.monotonic() + PATIENCE_S
        while not come():
            if time.monotonic() > end:
                raise TimeoutError(f"It did not come. Faults so far: {self.faults}")
            page.evaluate("() => new Promise(requestAnimationFrame)")  # the browser's events come through meanwhile

    def left(self) -> list[str]:
        """What nobody has expected, and what was expected and has not come."""
        strange = [fault for fault in self.faults if not any(re.search(known, fault) for known in self._expected)]
        missed = [known for known in self._expected if not any(re.search(known, fault) for fault in self.faults)]
        return [*strange, *(f"expected, but it did not come: {known}" for known in missed)]

    # --- the browser ----------------------------------------------------------------------------------

    def follow(self, context: BrowserContext) -> None:
        """Note what goes wrong on the pages of ``context``."""
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("requestfailed", self._failed)
        context.on("response", self._answered)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and TAKEN_AWAY not in message.text:
            self.fault(f"console: {message.text}")

    def _error(self, error: WebError) -> None:
        self.fault(f"script: {error.error}")

    def _failed(self, request: Request) -> None:
        # The first is the browser's own word for a page that was left, and for a download.
        if request.failure not in ("net::ERR_ABORTED", TAKEN_AWAY):
            self.fault(f"request: {request.failure} {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.fault(f"answer: {response.status} {response.url}")


WATCH = Watch()
"""Of this process: the server runs in a thread of it."""


class Recorder:
    """Middleware: records requests, takes the browser's reports, and looks after the header of each page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == REPORTS:
            report: dict[str, Any] = json.loads(request.body)["csp-report"]
            WATCH.fault(f"CSP report: {report['effective-directive']} on {report['document-uri']}")
            return HttpResponse(status=204)
        at = time.monotonic()
        response = self.get_response(request)
        retry_after = response.headers.get("Retry-After")
        WATCH.note(
            Seen(
                at=at,
                done=time.monotonic(),
                method=str(request.method),
                path=request.path,
                status=response.status_code,
                retry_after=float(retry_after) if retry_after else None,
                by_script="Jobtrack-Fragment" in request.headers,
            )
        )
        if response.headers.get("Content-Security-Policy") != POLICY:
            WATCH.fault(f"no strict policy: {request.path}")
        response.headers["Content-Security-Policy"] = f"{POLICY}; report-uri {REPORTS}"
        return response
