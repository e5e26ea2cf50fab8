"""Downloads on real sockets: streamed, bounded, and complete or not a result (R-END-4, INV-11, INV-30, INV-34)."""

from __future__ import annotations

import gzip
import logging
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.actions import FetchSpec
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Sent, Trouble
from jobtrack.core.table import Auth, AuthKind, ResultSpec
from jobtrack.ports import Refused
from jobtrack.transports import EgressPolicy
from tests.transports.faults import GENEROUS, LIMITS, Peer, answers, ok, request, resolves_to, table

CONTENT = bytes(range(256)) * 1024  # 256 KiB: four times what LIMITS allow for an answer
TOTAL = timedelta(seconds=10)


class Kept:
    """A sink that keeps what it is told, in order."""

    def __init__(self) -> None:
        self.heads: list[Answered] = []
        self.chunks: list[bytes] = []

    def begin(self, answer: Answered) -> None:
        assert self.chunks == []
        self.heads.append(answer)

    def feed(self, chunk: bytes) -> None:
        assert len(self.heads) == 1
        self.chunks.append(chunk)

    @property
    def content(self) -> bytes:
        return b"".join(self.chunks)


@pytest.fixture
def download(serve, transport):
    """Download from a server that follows ``script``; returns (reply, what the sink got)."""

    def fetch(script, *, sink=None, total=TOTAL, max_bytes=1 << 20, limits=None, **changes):
        server = serve(script)
        sink = sink or Kept()
        sender = transport(limits=limits)
        asked = request(f"{server.origin}/files/1", **changes)
        return sender.download(asked, table(server.origin), sink, total=total, max_bytes=max_bytes), sink

    return fetch


def head(*lines: bytes, code: bytes = b"200 OK") -> bytes:
    return b"\r\n".join((b"HTTP/1.1 " + code, *lines)) + b"\r\n\r\n"


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return head(b"Transfer-Encoding: chunked") + body + end


def after_request(said: bytes):
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(said)

    return script


@pytest.mark.parametrize("code", [b"200 OK", b"206 Partial Content"])
def test_the_head_comes_first_and_then_the_body_in_pieces(code, download) -> None:
    said = head(b"Content-Length: %d" % len(CONTENT), b'ETag: "a"', code=code) + CONTENT
    reply, sink = download(answers(said))
    assert (sink.content, len(sink.chunks) > 1) == (CONTENT, True)
    assert (reply.status, reply.body, reply.flaw) == (int(code[:3]), b"", None)
    [begun] = sink.heads
    assert (begun.status, begun.header("etag"), begun.body) == (reply.status, '"a"', b"")


@pytest.mark.parametrize("code", [b"203 Other", b"302 Found", b"304 Same", b"404 No", b"410 Gone", b"500 Oh"])
def test_any_other_answer_is_read_whole_and_the_sink_hears_nothing(code, download) -> None:
    body = b"" if code == b"304 Same" else b'{"a":1}'
    said = head(b"Content-Length: %d" % len(body), b"Location: https://evil.example/x?y=1", code=code) + body
    reply, sink = download(answers(said))
    assert (reply.status, reply.body, reply.header("location")) == (int(code[:3]), body, "https://evil.example/x?y=1")
    assert (sink.heads, sink.chunks) == ([], [])


def test_another_answer_may_only_be_as_long_as_the_table_says(download) -> None:
    said = head(b"Content-Length: %d" % len(CONTENT), code=b"500 Oh") + CONTENT
    reply, _ = download(answers(said))
    assert (reply.status, reply.flaw) == (500, Flaw.OVERSIZED)


SHORT = {
    "shorter than announced": head(b"Content-Length: 1000") + b"x" * 999,
    "nothing of what was announced": head(b"Content-Length: 1000"),
    "cut between chunks": chunked(b"x" * 500, end=b""),
    "cut inside a chunk": chunked(b"x" * 500, end=b"1f4\r\nxx"),
    "cut before the last line": chunked(b"x" * 500, end=b"0\r\n"),
}


@pytest.mark.parametrize("case", SHORT)
def test_a_body_that_ends_early_is_no_answer(case, download) -> None:
    """INV-11: half a file is never a result."""
    reply, _ = download(after_request(SHORT[case]))
    assert isinstance(reply, NoAnswer)
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, Trouble.CONNECTION_LOST)


def test_a_body_cut_without_tls_goodbye_is_no_answer(serve, transport, certificate, ca_file) -> None:
    """A body without length ends with the connection: only TLS can tell an end from a cut."""

    def cut(peer: Peer) -> None:
        peer.request()
        peer.say(head() + b"x" * 500)
        peer.reset()

    server = serve(cut, tls=certificate("127.0.0.1"))
    sender = transport(ca_file=ca_file)
    reply = sender.download(request(server.origin), table(server.origin), Kept(), total=TOTAL, max_bytes=1000)
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, Trouble.CONNECTION_LOST)


OVER = {
    "announced": (head(b"Content-Length: 1001") + b"x" * 1001, 0),
    "chunked": (chunked(*[b"x" * 100] * 11), 1000),
    "until the end of the connection": (head() + b"x" * 1001, 1000),
    "unpacked": (
        head(b"Content-Encoding: gzip", b"Content-Length: 31") + gzip.compress(b"x" * 5000, mtime=0)[:31],
        1000,
    ),
}


@pytest.mark.parametrize("case", OVER)
def test_more_than_allowed_is_a_flaw_and_never_reaches_the_sink(case, download) -> None:
    said, most = OVER[case]
    reply, sink = download(after_request(said), max_bytes=1000)
    assert (reply.status, reply.flaw) == (200, Flaw.OVERSIZED)
    assert len(sink.content) <= most


def test_exactly_as_much_as_allowed_is_fine(download) -> None:
    reply, sink = download(answers(ok(b"x" * 1000)), max_bytes=1000)
    assert (reply.flaw, len(sink.content)) == (None, 1000)


def test_packed_content_that_nobody_asked_for_is_unpacked(download) -> None:
    packed = gzip.compress(CONTENT)
    reply, sink = download(answers(head(b"Content-Encoding: gzip", b"Content-Length: %d" % len(packed)) + packed))
    assert (reply.flaw, sink.content == CONTENT) == (None, True)


@pytest.mark.parametrize(
    "said",
    [
        head(b"Content-Encoding: br", b"Content-Length: 2") + b"xx",
        head(b"Content-Encoding: gzip", b"Content-Length: 20", code=b"206 Part") + gzip.compress(b"")[:20],
    ],
    ids=["of an unknown kind", "a part"],
)
def test_packed_content_that_cannot_be_used_is_a_flaw(said, download) -> None:
    reply, sink = download(after_request(said))
    assert (reply.flaw, sink.content) == (Flaw.UNDECODABLE, b"")


def test_a_body_that_trickles_ends_at_the_total_time(download) -> None:
    """Each byte is in time; the whole is not."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.say(head(b"Content-Length: 1000"))
        peer.trickle(b"x" * 1000)

    started = time.monotonic()
    reply, sink = download(script, total=timedelta(seconds=0.5))
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, Trouble.TOTAL_TIMEOUT)
    assert 0 < len(sink.content) < 1000
    assert time.monotonic() - started < 0.5 + GENEROUS


def test_the_total_time_given_is_used_and_not_the_table_s(download) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(head(b"Content-Length: 20"))
        peer.trickle(b"x" * 20)

    reply, sink = download(script, limits=replace(LIMITS, total=timedelta(seconds=0.2)))
    assert (reply.status, len(sink.content)) == (200, 20)


def test_a_silent_peer_ends_at_the_limit_of_one_wait(download) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(head(b"Content-Length: 20") + b"x")
        peer.stay()

    reply, _ = download(script, limits=replace(LIMITS, read=timedelta(seconds=0.3)))
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, Trouble.READ_TIMEOUT)


class Refusing(Kept):
    def __init__(self, error: Exception, *, at: str) -> None:
        super().__init__()
        self.error, self.at = error, at

    def begin(self, answer: Answered) -> None:
        super().begin(answer)
        if self.at == "begin":
            raise self.error

    def feed(self, chunk: bytes) -> None:
        super().feed(chunk)
        raise self.error


@pytest.mark.parametrize("at", ["begin", "feed"])
@pytest.mark.parametrize("error", [Refused("no HTML"), OSError(28, "No space left on device"), TimeoutError("mine")])
def test_what_a_sink_raises_comes_out_as_it_is(at, error, serve, transport) -> None:
    """A full disk is no failure of the provider; and the connection of a download that was given up is not used."""
    server = serve(answers(ok(CONTENT)))
    sender = transport()
    asked = request(server.origin), table(server.origin)
    with pytest.raises(type(error)) as caught:
        sender.download(*asked, Refusing(error, at=at), total=TOTAL, max_bytes=1 << 20)
    assert caught.value is error
    assert sender.download(*asked, Kept(), total=TOTAL, max_bytes=1 << 20).status == 200
    assert server.connects == 2


def test_what_a_download_asks_for(serve, transport) -> None:
    server = serve(answers(ok(b"x")))
    sender = transport({"acme": {"default": "env:KEY"}}, environ={"KEY": "CANARY"})
    spec = table(server.origin, auth=Auth(kind=AuthKind.BEARER))
    for headers in ((), (("Range", "bytes=5-"), ("Accept", "text/csv"), ("Accept-Encoding", "gzip"))):
        sender.download(request(server.origin, headers=headers), spec, Kept(), total=TOTAL, max_bytes=9)
    plain, ranged = (raw.decode().split("\r\n") for raw in server.requests)
    assert {"Accept: */*", "Accept-Encoding: identity", "Authorization: Bearer CANARY"} <= set(plain)
    assert {"Range: bytes=5-", "Accept: text/csv", "Accept-Encoding: identity"} <= set(ranged)


PROGRAM = """
import resource, sys
from datetime import timedelta
from jobtrack.transports import EgressPolicy, HttpxTransport
from tests.transports.faults import request, table

class Count:
    size = 0
    def begin(self, answer): pass
    def feed(self, chunk): self.size += len(chunk)

sink, origin = Count(), sys.argv[1]
sender = HttpxTransport(policy=EgressPolicy(allow_loopback=True))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reply = sender.download(request(origin), table(origin), sink, total=timedelta(seconds=60), max_bytes=1 << 30)
print(reply.status, reply.flaw, sink.size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("packed", [False, True])
def test_memory_does_not_grow_with_the_content(packed, serve, request_root) -> None:
    """INV-34: 64 MiB pass through less than 16 MiB, also where each packed piece unpacks to a thousand times as much."""
    size = 64 << 20
    body = gzip.compress(b" " * size, 9) if packed else b" " * (1 << 20)

    def script(peer: Peer) -> None:
        peer.request()
        if packed:
            peer.say(head(b"Content-Encoding: gzip", b"Content-Length: %d" % len(body)) + body)
            return
        peer.say(head(b"Content-Length: %d" % size))
        for _ in range(64):
            peer.say(body)

    server = serve(script)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, server.origin], cwd=request_root, capture_output=True, text=True, check=True
    )
    status, flaw, got, grown_kib = done.stdout.split()
    assert (status, flaw, int(got)) == ("200", "None", size)
    assert int(grown_kib) < 16 * 1024


# --- where a result may be ----------------------------------------------------------------------------

API, STORE, MIRROR, FRIEND = (f"https://{name}.example" for name in ("api", "store", "mirror", "friend"))
SPEC = table(API, allow_loopback=False, auth=Auth(kind=AuthKind.HEADER, name="X-Key"))
SPEC = replace(
    SPEC,
    status=replace(SPEC.status, result=replace(SPEC.status.result, hosts=(STORE,))),
    result=FetchSpec(value=None, redirects=(MIRROR,), credential_hosts=(FRIEND,)),
)


@pytest.fixture
def reach(transport, ca_file):
    """Download from a named host. The resolver gives ``address`` for every name."""

    def fetch(asked, *, address="127.0.0.1", spec=SPEC):
        sender = transport(
            {"acme": {"default": "env:KEY"}},
            environ={"KEY": "CANARY"},
            policy=EgressPolicy.of(allow_private=("127.0.0.1/32",)),
            resolve=resolves_to(address),
            ca_file=ca_file,
        )
        return sender.download(asked, spec, Kept(), total=TOTAL, max_bytes=99)

    return fetch


@pytest.mark.parametrize(
    ("host", "credentials", "origins", "denied"),
    [
        (API, True, (), False),
        (API, True, (API,), False),
        (API, False, (API,), False),
        (API, False, (), False),
        (STORE, False, (STORE,), False),
        (STORE, False, (API, STORE), False),
        (MIRROR, False, (MIRROR,), False),
        (FRIEND, False, (FRIEND,), False),
        (FRIEND, True, (FRIEND,), False),
        (STORE, True, (STORE,), True),  # the credential stays with the hosts that the table gives it to
        (MIRROR, True, (MIRROR,), True),
        (STORE, False, (), True),  # a request that names no origins goes to the table's hosts
        (FRIEND, True, (), True),
        (STORE, False, (MIRROR,), True),
        ("https://evil.example", False, ("https://evil.example",), True),
        ("https://evil.example", True, ("https://evil.example",), True),
    ],
)
def test_where_a_request_for_a_result_may_go(host, credentials, origins, denied, reach) -> None:
    """R-SEC-1, R-SEC-2. What is not denied here fails later: nobody listens at port 1."""
    spec = replace(SPEC, hosts=tuple(f"{one}:1" for one in SPEC.hosts))
    spec = replace(
        spec,
        status=replace(spec.status, result=replace(spec.status.result, hosts=(f"{STORE}:1",))),
        result=replace(spec.result, redirects=(f"{MIRROR}:1",), credential_hosts=(f"{FRIEND}:1",)),
    )
    named = tuple(f"{origin}:1" for origin in origins)
    reply = reach(request(f"{host}:1/f", credentials=credentials, origins=named), spec=spec)
    assert reply.sent is Sent.NEVER
    assert (reply.trouble is Trouble.TARGET_DENIED) == denied
    assert denied or reply.trouble is Trouble.CONNECT_REFUSED


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "::1", "127.0.0.2"])
def test_a_result_host_at_a_private_address_is_refused(address, reach) -> None:
    """INV-31: a link of the provider must not read our own network."""
    reply = reach(request(f"{STORE}/f", credentials=False, origins=(STORE,)), address=address)
    assert (reply.sent, reply.trouble) == (Sent.NEVER, Trouble.TARGET_DENIED)


@pytest.mark.parametrize("kind", [AuthKind.BEARER, AuthKind.HEADER, AuthKind.QUERY, AuthKind.BASIC, AuthKind.SIGNER])
def test_nothing_of_the_account_goes_to_a_host_of_results(kind, serve, transport) -> None:
    """R-SEC-2: no credential, not even read, no header that may hold one, and not the operation's id."""
    server = serve(answers(ok(b"x")))
    spec = table("http://127.0.0.1:1", auth=Auth(kind=kind, name="X-Key"))
    spec = replace(spec, status=replace(spec.status, result=replace(ResultSpec(), hosts=(server.origin,))))
    headers = (("X-Key", "CANARY"), ("authorization", "CANARY"), ("Cookie", "CANARY"), ("If-Range", '"e"'))
    asked = request(
        f"{server.origin}/f?sig=1", credentials=False, origins=(server.origin,), headers=headers, operation_id="CANARY"
    )
    reply = transport().download(asked, spec, Kept(), total=TOTAL, max_bytes=9)
    [raw] = server.requests
    assert reply.status == 200
    assert b"CANARY" not in raw
    assert raw.startswith(b"GET /f?sig=1 HTTP/1.1\r\n")
    assert b'If-Range: "e"' in raw


def test_a_download_is_quiet(download, caplog) -> None:
    """INV-33: links to results are keys to them; no log, no repr and no detail shows one."""
    caplog.set_level(logging.DEBUG)
    link = b"https://store.example/r?sig=CANARY"
    reply, _ = download(answers(head(b"Location: " + link, b"Content-Length: 6", code=b"302 Found") + b"CANARY"))
    lost, _ = download(after_request(head(b"X-Key: CANARY", b"Content-Length: 9")))
    asked = request("https://store.example/r?sig=CANARY", headers=(("X", "CANARY"),), body=b"CANARY")
    assert (reply.status, lost.trouble) == (302, Trouble.CONNECTION_LOST)
    assert "CANARY" not in caplog.text + repr(reply) + repr(lost) + repr(asked)
