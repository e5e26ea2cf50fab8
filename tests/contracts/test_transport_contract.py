"""What every transport promises: the fake one of ``jobtrack.testing`` and the real one over sockets (ports.Transport)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.reply import Answered, Flaw, NoAnswer, Reply, Request, Sent, Trouble
from jobtrack.core.table import ProviderTable
from jobtrack.ports import Refused, Transport
from jobtrack.testing import FakeProvider, VirtualClock, answer, cut, no_answer
from jobtrack.testing.provider import Cut
from jobtrack.transports import CredentialResolver, EgressPolicy, HttpxTransport
from tests.transports.faults import FaultServer, Peer, request, table

TOTAL = timedelta(seconds=10)
LOST = no_answer(Trouble.CONNECTION_LOST)


class Fake:
    """A provider in memory."""

    origin = "https://api.provider.example"

    def __init__(self) -> None:
        self.provider = FakeProvider(VirtualClock())

    @property
    def transport(self) -> Transport:
        return self.provider

    def says(self, path: str, line: Reply | Cut) -> None:
        for method in ("GET", "POST"):
            self.provider.on(method, path, line)

    def heard(self) -> list[tuple[str, str, bytes]]:
        got = [seen.request for seen in self.provider.log]
        return [(one.method, one.url.removeprefix(self.origin), one.body) for one in got]

    def close(self) -> None: ...


class Real:
    """A provider on loopback, asked through httpx's parts."""

    def __init__(self) -> None:
        self.lines: dict[str, Reply | Cut] = {}
        self.server = FaultServer(self._serve)
        self.origin = self.server.origin
        policy = EgressPolicy(allow_loopback=True)
        self.transport = HttpxTransport(CredentialResolver(references={}, environ={}), policy=policy)

    def says(self, path: str, line: Reply | Cut) -> None:
        self.lines[path] = line

    def _serve(self, peer: Peer) -> None:
        while True:
            _, path, _ = _parts(peer.request())
            line = self.lines[path]
            if isinstance(line, NoAnswer):
                peer.reset()
                return
            said = line.reply if isinstance(line, Cut) else line
            length = 0 if said.status == 204 else len(said.body)
            head = [f"HTTP/1.1 {said.status} X", *(f"{name}: {value}" for name, value in said.headers)]
            head += [] if said.status == 204 else [f"Content-Length: {length}"]
            body = said.body[: line.after] if isinstance(line, Cut) else said.body
            peer.say("\r\n".join((*head, "", "")).encode() + body)
            if isinstance(line, Cut):
                peer.reset()
                return

    def heard(self) -> list[tuple[str, str, bytes]]:
        return [_parts(raw) for raw in self.server.requests]

    def close(self) -> None:
        self.transport.close()
        self.server.close()


def _parts(raw: bytes) -> tuple[str, str, bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
    return method, path, body


Side = Fake | Real


@pytest.fixture(params=[Fake, Real], ids=["FakeProvider", "HttpxTransport"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    here: Side = request.param()
    yield here
    here.close()


def ask(side: Side, *requests: Request) -> list[tuple[Request, Answered | NoAnswer]]:
    return list(side.transport.send([(one, table(side.origin)) for one in requests]))


def meaning(reply: Answered | NoAnswer) -> tuple[object, ...]:
    """What a flow may look at; times and the other side's wording differ."""
    if isinstance(reply, NoAnswer):
        return reply.sent, reply.trouble
    return reply.status, reply.body, reply.flaw, reply.header("location"), reply.header("content-type")


REPLIES: dict[str, Reply] = {
    "a state": answer(json={"id": "j1", "status": "running"}),
    "an acceptance": answer(202, json={"id": "j1"}, headers={"Location": "/v1/jobs/j1", "Content-Type": "text/json"}),
    "nothing": answer(204),
    "a refusal": answer(422, json={"error": "no such thing"}),
    "a redirect": answer(302, headers={"Location": "https://elsewhere.example/"}),
    "an error page": answer(500, text="<html>oops</html>", headers={"Content-Type": "text/html"}),
    "no answer": LOST,
}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_means_the_same_on_both_sides(side: Side, name: str, method: str) -> None:
    """R-SUB-2: above all whether anything can have been sent. Nothing a peer does is raised."""
    side.says("/v1/jobs", REPLIES[name])
    asked = request(f"{side.origin}/v1/jobs", method=method, body=b'{"a":1}' if method == "POST" else b"")
    ((told, reply),) = ask(side, asked)
    assert told == asked
    assert meaning(reply) == meaning(REPLIES[name])
    assert side.heard() == [(method, "/v1/jobs", asked.body)]


def test_each_request_is_sent_once_and_gets_its_own_reply(side: Side) -> None:
    paths = [f"/v1/jobs/{number}" for number in range(5)]
    for number, path in enumerate(paths):
        side.says(path, LOST if number == 2 else answer(200 + number, json={"n": number}))
    requests = [request(side.origin + path, operation_id=path, fence=7) for path in paths]
    replies = {told.url: reply for told, reply in ask(side, *requests)}
    assert len(replies) == 5
    codes = [getattr(replies[one.url], "status", None) for one in requests]
    assert codes == [200, 201, None, 203, 204]
    assert sorted(side.heard()) == [("GET", path, b"") for path in paths]
    assert side.transport.slots >= 1


def test_nothing_to_send_sends_nothing(side: Side) -> None:
    assert (ask(side), side.heard()) == ([], [])


# --- downloads --------------------------------------------------------------------------------------


class Sink:
    def __init__(self, refuses: Callable[[Answered], bool] = lambda answer: False) -> None:
        self.heads: list[Answered] = []
        self.content = b""
        self._refuses = refuses

    def begin(self, answer: Answered) -> None:
        self.heads.append(answer)
        if self._refuses(answer):
            raise Refused("not this one")

    def feed(self, chunk: bytes) -> None:
        self.content += chunk


def fetch(side: Side, sink: Sink, *, max_bytes: int = 1000) -> Answered | NoAnswer:
    known: ProviderTable = table(side.origin)
    asked = request(f"{side.origin}/r/1")
    return side.transport.download(asked, known, sink, total=TOTAL, max_bytes=max_bytes)


FILE = answer(body=b"0123456789", headers={"Content-Type": "text/csv"})


@pytest.mark.parametrize("status", [200, 206])
def test_a_download_is_streamed_and_its_answer_holds_nothing_of_it(side: Side, status: int) -> None:
    """R-END-4: the head comes once, before the first byte."""
    side.says("/r/1", replace(FILE, status=status))
    sink = Sink()
    reply = fetch(side, sink)
    assert meaning(reply) == (status, b"", None, None, "text/csv")
    assert [(head.status, head.body, head.header("Content-Type")) for head in sink.heads] == [(status, b"", "text/csv")]
    assert sink.content == b"0123456789"


def test_another_code_is_an_answer_with_its_body_and_the_sink_hears_nothing(side: Side) -> None:
    side.says("/r/1", answer(404, json={"error": "gone"}))
    sink = Sink()
    assert meaning(fetch(side, sink))[:2] == (404, b'{"error": "gone"}')
    assert (sink.heads, sink.content) == ([], b"")


def test_a_body_that_ends_early_is_no_answer(side: Side) -> None:
    side.says("/r/1", cut(FILE, after=4))
    sink = Sink()
    assert meaning(fetch(side, sink)) == (Sent.MAYBE, Trouble.CONNECTION_LOST)
    assert len(sink.heads) <= 1
    assert FILE.body.startswith(sink.content)


def test_a_body_over_the_limit_is_a_flaw_and_no_more_than_the_limit_is_handed_on(side: Side) -> None:
    side.says("/r/1", FILE)
    sink = Sink()
    reply = fetch(side, sink, max_bytes=9)
    assert isinstance(reply, Answered)
    assert (reply.status, reply.flaw) == (200, Flaw.OVERSIZED)
    assert FILE.body[:9].startswith(sink.content)


def test_a_body_of_exactly_the_limit_is_whole(side: Side) -> None:
    side.says("/r/1", FILE)
    sink = Sink()
    assert meaning(fetch(side, sink, max_bytes=10))[2] is None
    assert sink.content == FILE.body


def test_what_a_sink_refuses_comes_out_as_it_is(side: Side) -> None:
    side.says("/r/1", FILE)
    sink = Sink(refuses=lambda answer: answer.header("Content-Type") == "text/csv")
    with pytest.raises(Refused, match="not this one"):
        fetch(side, sink)
    assert sink.content == b""


def test_no_answer_to_a_download_is_a_value(side: Side) -> None:
    side.says("/r/1", LOST)
    sink = Sink()
    assert meaning(fetch(side, sink)) == (Sent.MAYBE, Trouble.CONNECTION_LOST)
    assert (sink.heads, sink.content) == ([], b"")
