"""A provider that answers as scripted, in place of the network."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import parse_qsl, unquote, urlsplit

from jobtrack.core.reply import Answered, NoAnswer, Reply, Request, Sent, Trouble
from jobtrack.core.table import ProviderTable

Script = Reply | Callable[[Request], Reply]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request the provider received."""

    request: Request
    at: datetime


class FakeProvider:
    """Implements ``ports.Transport``. Each job has a script; its last answer repeats.

    ``log`` is what the provider saw, in order: the ground truth of a test.
    """

    def __init__(self, clock: Callable[[], datetime], *, slots: int = 100) -> None:
        self._clock = clock
        self.slots = slots
        self._scripts: dict[str, list[Script]] = {}
        self.log: list[Seen] = []

    def script(self, job_id: str, *replies: Script) -> None:
        """Set what successive status requests for a job are answered; a callable gets the request."""
        if not replies:
            raise ValueError("a script needs at least one answer")
        self._scripts[job_id] = list(replies)

    def requests(self, job_id: str) -> list[Seen]:
        """What was asked about one job."""
        return [seen for seen in self.log if _about(seen.request, job_id)]

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        for request, _ in requests:
            yield request, self._reply(request)

    def _reply(self, request: Request) -> Reply:
        self.log.append(Seen(request=request, at=self._clock()))
        for job_id, replies in self._scripts.items():
            if _about(request, job_id):
                chosen = replies.pop(0) if len(replies) > 1 else replies[0]
                return chosen(request) if callable(chosen) else chosen
        return answer(404, json={"error": "no script for this job"})


def _about(request: Request, job_id: str) -> bool:
    """Whether a request names exactly this job, in its address or body."""
    parts = urlsplit(request.url)
    named = [unquote(segment) for segment in parts.path.split("/")] + [value for _, value in parse_qsl(parts.query)]
    return job_id in named or jsonlib.dumps(job_id).encode() in request.body
