"""A provider that answers as scripted, in place of the network, and keeps the truth: what it was asked, what it did."""

from __future__ import annotations

import json as jsonlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from urllib.parse import parse_qsl, unquote, urlsplit

from jobtrack.core.reply import Answered, Flaw, NoAnswer, Reply, Request, Sent, Trouble
from jobtrack.core.table import ProviderTable
from jobtrack.ports import Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Makes:
    """A reply to a request that made a job at the provider, whatever our side learns of it."""

    job_id: str
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A download whose connection ends after so many bytes of the body."""

    reply: Answered
    after: int


Line = Reply | Makes | Cut
Script = Line | Callable[[Request], Line]


def answer(
    status: int = 200,
    *,
    json: object = None,
    text: str | None = None,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answered:
    """An HTTP answer; ``json`` also sets the media type unless ``headers`` do."""
    named = dict(headers or {})
    if body is None:
        body = b""
        if json is not None:
            body = jsonlib.dumps(json).encode()
            if not any(name.lower() == "content-type" for name in named):
                named["Content-Type"] = "application/json"
        elif text is not None:
            body = text.encode()
    return Answered(status=status, headers=tuple(named.items()), body=body)


_UNSENT = frozenset({Trouble.DNS, Trouble.CONNECT_REFUSED, Trouble.CONNECT_TIMEOUT, Trouble.TLS})


def no_answer(trouble: Trouble | str = Trouble.READ_TIMEOUT, *, sent: Sent | str | None = None) -> NoAnswer:
    """No answer; whether anything was sent follows from the trouble unless given."""
    kind = Trouble(trouble)
    default = Sent.NEVER if kind in _UNSENT else Sent.MAYBE
    return NoAnswer(sent=default if sent is None else Sent(sent), trouble=kind, detail=f"scripted {kind.value}")


def makes(job_id: str, reply: Reply) -> Makes:
    """The request makes a job at the provider; its answer may be lost all the same: ``makes("j1", no_answer())``."""
    return Makes(job_id=job_id, reply=reply)


def cut(reply: Answered, *, after: int) -> Cut:
    """The connection ends after ``after`` bytes of the body. Outside a download the answer is lost as a whole."""
    return Cut(reply=reply, after=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request the provider received."""

    request: Request
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One job that came to be at the provider: what a test counts."""

    job_id: str
    request: Request
    at: datetime


@dataclass(slots=True, kw_only=True)
class _Route:
    method: str
    path: str  # ends with "*": a beginning
    replies: list[Script] = field(default_factory=list)

    def fits(self, request: Request) -> bool:
        path = urlsplit(request.url).path
        same = path.startswith(self.path[:-1]) if self.path.endswith("*") else path == self.path
        return same and request.method == self.method


class FakeProvider:
    """Implements ``ports.Transport``: submissions, look-ups, status, cancellation and downloads alike.

    A request is answered by the first of these that has something to say: what ``then`` put in line; the route that
    ``on`` set for its method and path; the script of the job that it names. The last answer of a route or of a job
    repeats. ``log`` is what the provider saw, in order, and ``made`` the jobs that came of it: the truth of a test.
    """

    def __init__(self, clock: Callable[[], datetime], *, slots: int = 100) -> None:
        self._clock = clock
        self.slots = slots
        self._line: deque[Script] = deque()
        self._routes: list[_Route] = []
        self._scripts: dict[str, list[Script]] = {}
        self._lock = threading.Lock()
        self.log: list[Seen] = []
        self.made: list[Made] = []

    # --- what it says -------------------------------------------------------------------------------

    def script(self, job_id: str, *replies: Script) -> None:
        """Set what successive requests about a job are answered; a callable gets the request."""
        self._scripts[job_id] = _some(replies)

    def on(self, method: str, path: str, *replies: Script) -> None:
        """Set what successive requests with this method and path are answered.

        Args:
            method: such as ``POST``.
            path: as it is sent (percent-encoded), without the query; ``/v1/jobs/*`` is any path that begins so.
            replies: the last one repeats.
        """
        route = _Route(method=method, path=path, replies=_some(replies))
        self._routes = [known for known in self._routes if (known.method, known.path) != (method, path)]
        self._routes.append(route)

    def then(self, *replies: Script) -> None:
        """Answer the next requests in this order, whatever they are; each once."""
        self._line.extend(_some(replies))

    # --- what it saw --------------------------------------------------------------------------------

    def requests(self, job_id: str) -> list[Seen]:
        """What was asked about one job."""
        return [seen for seen in self.log if _about(seen.request, job_id)]

    def sent(self, method: str, path: str = "*") -> list[Request]:
        """The requests with this method and path (as in ``on``), in order."""
        route = _Route(method=method, path=path)
        return [seen.request for seen in self.log if route.fits(seen.request)]

    def made_for(self, operation_id: str) -> list[str]:
        """Ids of the jobs that requests of one operation made: more than one is a duplicate."""
        return [made.job_id for made in self.made if made.request.operation_id == operation_id]

    # --- ports.Transport ----------------------------------------------------------------------------

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        for request, _ in requests:
            line = self._next(request)
            yield request, _lost() if isinstance(line, Cut) else line

    def download(
        self,
        request: Request,
        table: ProviderTable,  # noqa: ARG002 - a provider needs none
        sink: Sink,
        *,
        total: timedelta,  # noqa: ARG002 - answers take no time
        max_bytes: int,
    ) -> Answered | NoAnswer:
        return stream(self._next(request), sink, max_bytes=max_bytes)

    def _next(self, request: Request) -> Answered | NoAnswer | Cut:
        with self._lock:
            at = self._clock()
            self.log.append(Seen(request=request, at=at))
            chosen = self._choose(request)
        # Outside the lock: it may ask this provider in its turn.
        line = chosen(request) if callable(chosen) else chosen
        if not isinstance(line, Makes):
            return line
        self.made.append(Made(job_id=line.job_id, request=request, at=at))
        return line.reply

    def _choose(self, request: Request) -> Script:
        if self._line:
            return self._line.popleft()
        routes = [route.replies for route in reversed(self._routes) if route.fits(request)]
        jobs = [replies for job_id, replies in self._scripts.items() if _about(request, job_id)]
        for replies in (*routes, *jobs):
            return replies.pop(0) if len(replies) > 1 else replies[0]
        return answer(404, json={"error": "no script for this request"})


def stream(line: Answered | NoAnswer | Cut, sink: Sink, *, max_bytes: int) -> Answered | NoAnswer:
    """Hand a scripted answer to a sink, as ``ports.Transport.download`` does."""
    reply = line.reply if isinstance(line, Cut) else line
    if isinstance(reply, NoAnswer) or reply.status not in (200, 206):
        return reply
    bare = replace(reply, body=b"")
    if reply.flaw is not None:
        return bare
    sink.begin(bare)
    arrives = reply.body[: line.after] if isinstance(line, Cut) else reply.body
    if arrives[:max_bytes]:
        sink.feed(arrives[:max_bytes])
    if len(arrives) > max_bytes:
        return replace(bare, flaw=Flaw.OVERSIZED)
    return _lost() if isinstance(line, Cut) else bare


def _some(replies: tuple[Script, ...]) -> list[Script]:
    if not replies:
        raise ValueError("a script needs at least one answer")
    return list(replies)


def _lost() -> NoAnswer:
    return no_answer(Trouble.CONNECTION_LOST)


def _about(request: Request, job_id: str) -> bool:
    """Whether a request names exactly this job, in its address or body."""
    parts = urlsplit(request.url)
    named = [unquote(segment) for segment in parts.path.split("/")] + [value for _, value in parse_qsl(parts.query)]
    return job_id in named or jsonlib.dumps(job_id).encode() in request.body
