"""What the simulated provider remembers: its exports, its idempotency keys, and every request it ever saw.

This is the truth of the demo: how many exports an operation really has is counted here and nowhere else.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from example_project.behaviour import CANCELLED, SCRIPTS, Answer, Asked, Opening, Step, error


@dataclass(slots=True, kw_only=True)
class Job:
    """One export. ``looks`` counts the status requests since the scenario was set."""

    id: str
    scenario: str
    reference: str = ""  # the caller's own word for it, under which the list finds it
    operation: str = ""  # of the caller, by the id it gave the request
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    made_at: float = field(default_factory=time.monotonic)
    looks: int = 0

    def next(self, base: str) -> Answer:
        step = self._step(self.looks)
        self.looks += 1
        return step(Asked(self.id, base))

    @property
    def word(self) -> str:
        """What it said last, for people; what it will say first before anybody has asked."""
        return self._step(max(0, self.looks - 1))(Asked(self.id, "")).word

    def _step(self, number: int) -> Step:
        steps = SCRIPTS[self.scenario].steps
        return steps[min(number, len(steps) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it goes into the log; ``notice`` is the one kind that we send."""

    at: str  # UTC, RFC 3339
    kind: str  # submit | lookup | status | cancel | file | switch | notice | other
    job: str  # "" if the request is about none
    made: str  # id of the export that this request made; "": none
    scenario: str
    request_id: str  # X-Request-Id of the caller, "" if it sent none
    key: str  # Idempotency-Key, "" if it sent none
    http: int  # 0: it got no answer
    word: str
    wait_s: int


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The exports and the log; safe to use from many threads.

    Args:
        log_path: where the log is, as JSON lines.
        settle_s: how long a new export takes to appear in the list.
    """

    log_path: Path
    settle_s: float = 0.5
    jobs: dict[str, Job] = field(default_factory=dict)
    _by_key: dict[str, Job] = field(default_factory=dict)
    _opened: set[str] = field(default_factory=set)  # operations whose first submission has come
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def opening(self, scenario: str, operation: str) -> Opening:
        """What to do with this submission: as the scenario says the first time, as it should be from then on."""
        with self._lock:
            first = not operation or operation not in self._opened
            self._opened.add(operation)
        return SCRIPTS[scenario].opening if first else Opening.ACCEPT

    def create(self, scenario: str, *, key: str = "", reference: str = "", operation: str = "") -> tuple[Job, bool]:
        """The export of a submission, and whether it is a new one: a key that is known leads to the first one."""
        with self._lock:
            known = self._by_key.get(key) if key else None
            if known is not None:
                return known, False
            job = Job(id=f"exp_{secrets.token_hex(6)}", scenario=scenario, reference=reference, operation=operation)
            self.jobs[job.id] = job
            if key:
                self._by_key[key] = job
            return job, True

    def look(self, job_id: str, base: str) -> tuple[Job | None, Answer]:
        """The next answer about an export."""
        with self._lock:
            job = self.jobs.get(job_id)
            if job is None:
                return None, error(404, "no-such-job", "There is no such export.")
            return job, job.next(base)

    def listed(self, reference: str) -> list[Job]:
        """The exports with this reference that the list shows by now."""
        settled = time.monotonic() - self.settle_s
        with self._lock:
            return [job for job in self.jobs.values() if job.reference == reference and job.made_at <= settled]

    def newest(self) -> list[Job]:
        """All exports, the newest one first."""
        with self._lock:
            return list(reversed(self.jobs.values()))

    def switch(self, job_id: str, scenario: str) -> bool:
        """From now on the export follows another script."""
        with self._lock:
            job = self.jobs.get(job_id)
            if job is None:
                return False
            job.scenario, job.looks = scenario, 0
            return True

    def cancel(self, job_id: str) -> bool:
        """The next answer says that it is cancelled."""
        if not self.switch(job_id, CANCELLED):
            return False
        with self._lock:
            self.jobs[job_id].looks = len(SCRIPTS[CANCELLED].steps) - 1
        return True

    def note(self, seen: Seen) -> None:
        line = json.dumps({name: getattr(seen, name) for name in Seen.__slots__})
        with self._lock, self.log_path.open("a", encoding="utf-8") as log:
            log.write(line + "\n")

    def seen(self) -> list[dict[str, Any]]:
        with self._lock:
            return [json.loads(line) for line in self.log_path.read_text(encoding="utf-8").splitlines()]
