"""The provider of a case: answers whatever is asked next, in the order written, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from jobtrack.core.reply import Answered, NoAnswer, Reply, Request, Sent
from jobtrack.core.table import ProviderTable
from jobtrack.ports import Sink
from jobtrack.testing.expectations import Difference
from jobtrack.testing.provider import Cut, no_answer, stream

KINDS = ("submit", "lookup", "status", "cancel", "result", "download")
"""What a request may be for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """One answer of the provider."""

    reply: Reply
    at: timedelta | None = None  # the look that gets it happens this long after the start, if it is not due later
    to: str = ""  # the request that it must answer, one of KINDS; "": any
    cut: int | None = None  # of a download: the connection ends after so many bytes
    line: int = 0  # in the file, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request that was answered."""

    kind: str  # one of KINDS
    request: Request
    reply: Reply

    @property
    def arrived(self) -> bool:
        """It may have reached the provider."""
        return not (isinstance(self.reply, NoAnswer) and self.reply.sent is Sent.NEVER)


class Over(BaseException):
    """The script is over, or another request came than it says. No flow may take this for an error of its own."""


class Script:
    """Implements ``ports.Transport``."""

    slots = 1

    def __init__(self, replies: Sequence[Scripted], kind: Callable[[], str]) -> None:
        self.left = list(replies)
        self.log: list[Asked] = []
        self.differences: list[Difference] = []
        self._kind = kind  # what the request at hand is for, seen from outside

    @property
    def next_at(self) -> timedelta:
        """When the next answer is asked for at the earliest, since the start."""
        return (self.left[0].at if self.left else None) or timedelta(0)

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        for request, _ in requests:
            line = self._next(request, self._kind())
            yield request, no_answer("connection_lost") if isinstance(line, Cut) else line

    def download(
        self,
        request: Request,
        table: ProviderTable,  # noqa: ARG002 - a script needs none
        sink: Sink,
        *,
        total: timedelta,  # noqa: ARG002 - answers take no time
        max_bytes: int,
    ) -> Answered | NoAnswer:
        return stream(self._next(request, "download"), sink, max_bytes=max_bytes)

    def _next(self, request: Request, kind: str) -> Answered | NoAnswer | Cut:
        if not self.left:
            raise Over
        line = self.left[0]
        if line.to and line.to != kind:
            what = f"request {len(self.log) + 1}"
            self.differences.append(Difference(line=line.line, what=what, expected=line.to, actual=kind))
            raise Over
        del self.left[0]
        self.log.append(Asked(kind=kind, request=request, reply=line.reply))
        if line.cut is not None and isinstance(line.reply, Answered):
            return Cut(reply=line.reply, after=line.cut)
        return line.reply

    # --- what it was asked --------------------------------------------------------------------------

    def posts(self) -> list[Request]:
        """The submissions that may have reached the provider."""
        return [asked.request for asked in self.log if asked.kind == "submit" and asked.arrived]

    def contents(self) -> int:
        """How many different submissions those were, byte for byte; the id of each request does not count."""
        return len({_content(request) for request in self.posts()})

    def keys(self, table: ProviderTable) -> int:
        """How many different idempotency keys they had."""
        return len({key for request in self.posts() if (key := _key(request, table))})


def _content(request: Request) -> tuple[object, ...]:
    headers = tuple(sorted(pair for pair in request.headers if pair[0].lower() != "x-request-id"))
    return request.method, request.url, headers, request.body


def _key(request: Request, table: ProviderTable) -> str:
    rule = table.submit.idempotency if table.submit else None
    if rule is None:
        return ""
    if rule.header:
        return next((value for name, value in request.headers if name.lower() == rule.header.lower()), "")
    if rule.query:
        return "".join(parse_qs(urlsplit(request.url).query).get(rule.query, []))
    value = json.loads(request.body)
    for token in rule.body.tokens if rule.body else ():
        value = value[token]
    return str(value)
