"""How the simulated provider behaves: what it does with a submission, and what it then says about the job."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

TRICKLE_BYTES = 60
TRICKLE_PAUSE_S = 0.5
SIGNATURE = "5ignature-that-nobody-may-keep"
ROWS = 1204
SLOW_S = 4.0
"""How long a slow acceptance takes: longer than the callers of the demo wait."""
LINK_LIVES_S = 60
"""How long a link to a result file can be used."""


# --- submissions --------------------------------------------------------------------------------------


class Opening(StrEnum):
    """What happens to the first submission of an operation. Whatever comes after it is accepted as it should be."""

    ACCEPT = "accept"
    LOSE = "lose"  # the export is made, and the connection ends without an answer
    RESET = "reset"  # the connection ends in the same way, but nothing is made
    ERROR = "error"  # the export is made, and the answer is 500
    SLOW = "slow"  # the export is made only after the caller has stopped waiting


# --- status -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the simulator says to one request."""

    word: str  # how the log names it: the state, or what is wrong with the answer
    http: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: int = 0  # how long the caller was asked to wait, by header or by body
    trickle: bool = False  # one byte at a time, slower than any caller should wait
    hang_up: bool = False  # no answer at all: the connection ends


@dataclass(frozen=True, slots=True)
class Asked:
    """Which export is asked about, and where the simulator is."""

    job: str
    base: str  # http://127.0.0.1:<port>


Step = Callable[[Asked], Answer]
"""Answers one status request."""


def say(word: str, value: object, **more: Any) -> Answer:
    """A JSON answer."""
    return Answer(word=word, body=json.dumps(value).encode(), **more)


def error(http: int, word: str, message: str, **more: Any) -> Answer:
    """An error as ACME words it."""
    return say(word, {"error": {"message": message}}, http=http, **more)


def link(asked: Asked, *, lives_s: float = LINK_LIVES_S) -> str:
    """A link to the result. The signature makes it a secret: it must never be kept by the caller."""
    return f"{asked.base}/files/{asked.job}.csv?expires={time.time() + lives_s:.0f}&signature={SIGNATURE}"


def _state(word: str, **members: Any) -> Step:
    wait_s = members.get("poll_after_seconds", 0)
    return lambda asked: say(word, {"id": asked.job, "status": word, **members}, wait_s=wait_s)


def _always(answer: Answer) -> Step:
    return lambda _asked: answer


def _running(percent: int) -> Step:
    return _state("running", progress=f"{percent} %", poll_after_seconds=1)


def _succeeded(asked: Asked, lives_s: float = LINK_LIVES_S) -> Answer:
    result = {"url": link(asked, lives_s=lives_s), "rows": ROWS}
    return say("succeeded", {"id": asked.job, "status": "succeeded", "result": result})


def _succeeded_with_a_dead_link(asked: Asked) -> Answer:
    return _succeeded(asked, lives_s=-5)


def _wrong_id(asked: Asked) -> Answer:
    return say("wrong-id", {"id": f"{asked.job}-of-somebody-else", "status": "running"})


_QUEUED = _state("queued", poll_after_seconds=1)
_QUIETLY_RUNNING = _state("running")  # without a word about when to ask again
_BUSY = _always(error(503, "busy", "Down for maintenance.", headers={"Retry-After": "2"}, wait_s=2))
_TOO_MANY = _always(error(429, "too-many", "Too many requests."))
_DENIED = _always(error(401, "denied", "This token was revoked."))
_PAGE = b"<!doctype html><title>ACME</title><h1>Welcome back!</h1><p>status: succeeded</p>"
_HTML = _always(Answer(word="html", body=_PAGE, content_type="text/html; charset=utf-8"))
_TRICKLE = _always(Answer(word="trickle", body=b" " * TRICKLE_BYTES, trickle=True))
_WORKS = (_running(50), _succeeded)

CANCELLED = "cancelled"
"""The script of a job once its cancellation was accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One way an export can go."""

    steps: tuple[Step, ...]  # what it answers, look by look; the last step repeats for ever
    opening: Opening = Opening.ACCEPT
    notice_after: int = 0  # after so many looks a webhook tells of the end, twice; 0: there is none


SCRIPTS: Mapping[str, Script] = MappingProxyType(
    {
        "success": Script(steps=(_QUEUED, _running(40), _running(80), _succeeded)),
        "failure": Script(steps=(_running(10), _state("failed", error={"message": "Column 'amount' does not exist."}))),
        "cancelled": Script(steps=(_running(10), _state("canceled"))),
        "expired": Script(steps=(_QUEUED, _state("expired"))),
        # Paused once when the table does not know the word, once more for a person who looks again.
        "unknown": Script(
            steps=(
                *(_running(50), _state("paused"), _state("paused", poll_after_seconds=1)),
                *(_running(80), _succeeded),
            )
        ),
        "retry-after": Script(steps=(_running(30), _BUSY, _succeeded)),
        "rate-limited": Script(steps=(_TOO_MANY,)),
        "stuck": Script(steps=(*((_running(99),) * 30), _succeeded)),  # far past the deadline it is given
        "waits": Script(steps=(_running(30), _state("on_hold"))),
        "unauthorized": Script(steps=(_running(20), _DENIED)),
        "html": Script(steps=(_running(20), _HTML)),
        "no-result": Script(steps=(_running(90), _state("succeeded"))),
        "wrong-id": Script(steps=(_running(20), _wrong_id)),
        "trickle": Script(steps=(_TRICKLE,)),
        "lost": Script(steps=_WORKS, opening=Opening.LOSE),
        "reset": Script(steps=_WORKS, opening=Opening.RESET),
        "error": Script(steps=_WORKS, opening=Opening.ERROR),
        "slow": Script(steps=_WORKS, opening=Opening.SLOW),
        # The link is dead when the success is first told, and when it is read again for the first try to fetch.
        "dead-link": Script(steps=(_running(50), _succeeded_with_a_dead_link, _succeeded_with_a_dead_link, _succeeded)),
        "webhook": Script(steps=(_QUIETLY_RUNNING, _succeeded), notice_after=1),
    }
)
"""Scripts by the name that the caller puts in ``scenario``."""
