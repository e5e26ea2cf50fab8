"""What a hostile or broken peer does ends in a value, within the limits (INV-12, INV-34, R-BUDGET-1, S7)."""

from __future__ import annotations

import gzip
import itertools
import socket
import subprocess
import sys
import time
from datetime import timedelta

import pytest

from jobtrack.core.reply import Answered, Flaw, NoAnswer, Sent, Trouble
from jobtrack.core.table import RequestLimits
from jobtrack.transports import EgressPolicy
from jobtrack.transports.network import Exchange, Lookup, OutOfTime, PinnedBackend, Stream, system_addresses
from tests.transports.faults import GENEROUS, LIMITS, SHORT_STEP, SHORT_TOTAL, Peer, gzip_of_spaces, ok, request, table

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def after_request(*data: bytes, then: str = "close"):
    """Read the request, say something, then close, reset or stay."""

    def script(peer: Peer) -> None:
        peer.request()
        for part in data:
            peer.say(part)
        if then == "reset":
            time.sleep(0.05)
            peer.reset()
        elif then == "stay":
            peer.stay()

    return script


def trickling(start: bytes, drip: bytes):
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(start)
        peer.trickle(drip)

    return script


def endless(start: bytes, part: bytes):
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(start)
        for data in itertools.repeat(part):
            peer.say(data)

    return script


NO_ANSWER = {
    "silence after the request": (after_request(then="stay"), Trouble.READ_TIMEOUT),
    "a header that trickles": (trickling(HEAD + b"X: ", b"y" * 400), Trouble.TOTAL_TIMEOUT),
    "a body that trickles": (trickling(HEAD + b"Content-Length: 400\r\n\r\n", b" " * 400), Trouble.TOTAL_TIMEOUT),
    "chunks that trickle": (
        trickling(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 80),
        Trouble.TOTAL_TIMEOUT,
    ),
    "a body without end that stalls": (after_request(HEAD, b"\r\n{", then="stay"), Trouble.READ_TIMEOUT),
    "interim answers for ever": (endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), Trouble.PROTOCOL),
    "interim answers that trickle": (trickling(b"", b"HTTP/1.1 102 Wait\r\n\r\n" * 20), Trouble.TOTAL_TIMEOUT),
    "a header of more than 64 KiB": (after_request(HEAD, b"X: ", b"y" * 70_000, b"\r\n\r\n{}"), Trouble.PROTOCOL),
    "headers without end": (endless(HEAD, b"X: y\r\n" * 500), Trouble.PROTOCOL),
    "a switch of protocols": (
        after_request(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", then="stay"),
        Trouble.PROTOCOL,
    ),
    "no answer at all": (after_request(), Trouble.CONNECTION_LOST),
    "reset instead of an answer": (after_request(then="reset"), Trouble.CONNECTION_LOST),
    "half a header": (after_request(HEAD), Trouble.CONNECTION_LOST),
    "reset in the header": (after_request(HEAD, then="reset"), Trouble.CONNECTION_LOST),
    "less than Content-Length": (after_request(HEAD, b"Content-Length: 90\r\n\r\n{}"), Trouble.CONNECTION_LOST),
    "reset in the body": (after_request(HEAD, b"Content-Length: 90\r\n\r\n{}", then="reset"), Trouble.CONNECTION_LOST),
    "chunks without the last": (
        after_request(HEAD, b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        Trouble.CONNECTION_LOST,
    ),
    "garbage": (after_request(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"), Trouble.PROTOCOL),
    "binary garbage": (after_request(bytes(range(256)) * 4), Trouble.PROTOCOL),
    "two lengths that differ": (
        after_request(HEAD, b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
        Trouble.PROTOCOL,
    ),
    "a negative length": (after_request(HEAD, b"Content-Length: -1\r\n\r\n{}"), Trouble.PROTOCOL),
    "an unknown transfer coding": (after_request(HEAD, b"Transfer-Encoding: gzip\r\n\r\n{}"), Trouble.PROTOCOL),
    "a chunk size that is none": (
        after_request(HEAD, b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n"),
        Trouble.PROTOCOL,
    ),
    "a NUL in a header": (after_request(HEAD, b"X: a\0b\r\n\r\n{}"), Trouble.PROTOCOL),
}


@pytest.mark.parametrize("case", NO_ANSWER)
def test_no_answer_is_a_value_in_time(case, ask) -> None:
    script, trouble = NO_ANSWER[case]
    limits = {Trouble.READ_TIMEOUT: SHORT_STEP, Trouble.TOTAL_TIMEOUT: SHORT_TOTAL}.get(trouble, LIMITS)
    started = time.monotonic()
    reply = ask(script, limits=limits)
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, trouble)
    assert time.monotonic() - started < 0.5 + GENEROUS


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
FLAWED = {
    "a declared length over the limit": (
        after_request(HEAD, b"Content-Length: 65537\r\n\r\n", then="stay"),
        Flaw.OVERSIZED,
    ),
    "an endless chunked body": (endless(CHUNKED, b"1000\r\n" + b" " * 4096 + b"\r\n"), Flaw.OVERSIZED),
    "endless one-byte chunks": (endless(CHUNKED, b"1;ext=abcdefgh\r\n \r\n" * 200), Flaw.OVERSIZED),
    "an endless body without framing": (endless(HEAD + b"\r\n", b" " * 4096), Flaw.OVERSIZED),
    "a gzip bomb": (after_request(ok(gzip_of_spaces(8), b"Content-Encoding: gzip"), then="stay"), Flaw.OVERSIZED),
    "stacked encodings": (
        after_request(ok(gzip.compress(gzip.compress(b"{}")), b"Content-Encoding: gzip, gzip")),
        Flaw.UNDECODABLE,
    ),
    "brotli": (after_request(ok(b"\x8b\x00\x80{}\x03", b"Content-Encoding: br")), Flaw.UNDECODABLE),
    "zstd": (after_request(ok(b"(\xb5/\xfd", b"Content-Encoding: zstd")), Flaw.UNDECODABLE),
    "half a gzip": (after_request(ok(gzip.compress(b"{}" * 99)[:-9], b"Content-Encoding: gzip")), Flaw.UNDECODABLE),
    "gzip that is none": (after_request(ok(b"{}", b"Content-Encoding: gzip")), Flaw.UNDECODABLE),
}


@pytest.mark.parametrize("case", FLAWED)
def test_an_unreadable_body_is_a_flaw_of_an_answer(case, ask) -> None:
    """R-READ-1 and public report B027."""
    script, flaw = FLAWED[case]
    reply = ask(script)
    assert (reply.status, reply.body, reply.flaw) == (200, b"", flaw)


READABLE = {
    "identity": (ok(b"{}"), b"{}"),
    "exactly the limit": (ok(b" " * LIMITS.max_bytes), b" " * LIMITS.max_bytes),
    "a header of nearly 64 KiB": (ok(b"{}", b"X: " + b"y" * 65_000), b"{}"),
    "chunks": (CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}"),
    "an end by closing": (HEAD + b"\r\n{}", b"{}"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\n{}", b"{}"),
    "gzip although identity was asked for": (ok(gzip.compress(b"{}"), b"Content-Encoding: gzip"), b"{}"),
    "an interim answer first": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok(b"{}"), b"{}"),
    "no content": (b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n", b""),
}


@pytest.mark.parametrize("case", READABLE)
def test_an_odd_but_proper_answer_is_read(case, ask) -> None:
    said, body = READABLE[case]
    reply = ask(after_request(said))
    assert isinstance(reply, Answered)
    assert (reply.body, reply.flaw) == (body, None)


def test_an_answer_before_the_request_was_read_is_still_an_answer(ask) -> None:
    def script(peer: Peer) -> None:
        peer.say(b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        peer.request()

    reply = ask(script)
    assert (reply.status, reply.header("retry-after")) == (503, "9")


def test_an_answer_is_read_although_the_peer_did_not_take_the_whole_request(serve, transport) -> None:
    def script(peer: Peer) -> None:
        peer.sock.recv(1000)
        peer.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    server = serve(script)
    sent = request(server.origin, method="POST", body=b"x" * 8_000_000)
    [(_, reply)] = transport().send([(sent, table(server.origin))])
    assert (reply.status, reply.flaw) == (413, None)


def test_the_total_time_may_end_between_two_steps() -> None:
    """No step begins after the deadline."""
    spent = Exchange(LIMITS, time.monotonic() - LIMITS.total.total_seconds())
    with pytest.raises(OutOfTime):
        spent.connect_time()


@pytest.mark.parametrize("case", ["a gzip bomb", "an endless chunked body", "a declared length over the limit"])
def test_the_connection_of_an_oversized_answer_is_closed(case, serve, transport) -> None:
    script, _ = FLAWED[case]
    server = serve(script)
    sender = transport()
    list(sender.send([(request(server.origin), table(server.origin))]))
    server.script = after_request(ok())
    [(_, second)] = sender.send([(request(server.origin), table(server.origin))])
    assert (second.status, server.connects) == (200, 2)


def test_a_peer_that_never_reads_ends_at_the_limit(serve, transport) -> None:
    server = serve(lambda peer: peer.server.hung_up.wait(3))
    sent = request(server.origin, method="POST", body=b"x" * 32_000_000)
    started = time.monotonic()
    [(_, reply)] = transport(limits=SHORT_STEP).send([(sent, table(server.origin))])
    server.hung_up.set()
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, Trouble.WRITE)
    assert time.monotonic() - started < 0.5 + GENEROUS


def test_nobody_listens_is_proven_unsent(transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        origin = f"http://127.0.0.1:{free.getsockname()[1]}"
    [(_, reply)] = transport().send([(request(f"{origin}/v1/jobs/1?token=CANARY"), table(origin))])
    assert reply == NoAnswer(
        sent=Sent.NEVER,
        trouble=Trouble.CONNECT_REFUSED,
        detail=f"GET {origin}/v1/jobs/1: no connection could be made",
        elapsed_s=reply.elapsed_s,
    )


def test_a_connect_that_hangs_is_proven_unsent(transport) -> None:
    """A listener whose queue is full leaves the handshake unanswered."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(8)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(full.getsockname())
            origin = f"http://127.0.0.1:{full.getsockname()[1]}"
            [(_, reply)] = transport(limits=SHORT_STEP).send([(request(origin), table(origin))])
        finally:
            for one in waiting:
                one.close()
    assert (reply.sent, reply.trouble) == (Sent.NEVER, Trouble.CONNECT_TIMEOUT)


@pytest.mark.parametrize(
    ("failure", "trouble"),
    [(socket.gaierror(-2, "unknown"), Trouble.DNS), (UnicodeError("label too long"), Trouble.DNS)],
)
def test_a_name_that_does_not_resolve_is_proven_unsent(failure, trouble, transport) -> None:
    def resolve(host, port):
        raise failure

    [(_, reply)] = transport(resolve=resolve).send(
        [(request("https://api.acme.example/"), table("https://api.acme.example"))]
    )
    assert (reply.sent, reply.trouble) == (Sent.NEVER, trouble)


def test_a_resolver_that_hangs_ends_at_the_limit_and_keeps_few_threads(transport) -> None:
    calls = []

    def resolve(host, port):
        calls.append(host)
        time.sleep(1.2)
        return ["127.0.0.1"]

    sender = transport(resolve=resolve, slots=12, limits=SHORT_STEP)
    asked = table("https://api.acme.example")
    started = time.monotonic()
    replies = [reply for _, reply in sender.send([(request("https://api.acme.example/"), asked)] * 12)]
    assert {(reply.sent, reply.trouble) for reply in replies} == {(Sent.NEVER, Trouble.DNS)}
    assert len(calls) <= 8
    assert time.monotonic() - started < 0.5 + GENEROUS


def test_waiting_for_a_free_thread_counts_in_the_total_time(serve, transport) -> None:
    """A request that could not start in time is given up unsent, so none outlives its lease."""
    server = serve(after_request(then="stay"))
    sent = [(request(f"{server.origin}/{number}"), table(server.origin)) for number in range(6)]
    replies = [reply for _, reply in transport(slots=2, limits=SHORT_TOTAL).send(sent)]
    assert {reply.trouble for reply in replies} <= {Trouble.TOTAL_TIMEOUT, Trouble.LATE}
    late = [reply for reply in replies if reply.trouble is Trouble.LATE]
    assert late
    assert {reply.sent for reply in late} == {Sent.NEVER}


BOMB = """
import pathlib, re, sys
from datetime import timedelta
sys.path.insert(0, {root!r})
from jobtrack.core.table import RequestLimits
from jobtrack.transports import EgressPolicy, HttpxTransport
from tests.transports.faults import request, table
limits = RequestLimits(total=timedelta(seconds=20))
sender = HttpxTransport(policy=EgressPolicy(allow_loopback=True), limits=limits)
def ask(path):
    [(_, reply)] = sender.send([(request({origin!r} + path), table({origin!r}))])
    return reply
assert ask("/normal").status == 200
def peak_mib():  # not getrusage: its peak is inherited from the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024
before = peak_mib()
flaw = ask("/bomb").flaw
print(flaw, peak_mib() - before)
"""


def test_a_bomb_of_one_gibibyte_costs_less_than_16_mib(serve, request_root) -> None:
    """INV-34, B027: measured in a process of its own, at the default cap of 1 MiB."""
    bomb = gzip_of_spaces(1024)
    assert len(bomb) < 1 << 20

    def script(peer: Peer) -> None:
        while True:
            asked = peer.request()
            peer.say(ok(bomb, b"Content-Encoding: gzip") if b"/bomb" in asked else ok(b" " * (1 << 20)))

    server = serve(script)
    program = BOMB.format(root=request_root, origin=server.origin)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    flaw, grown_mib = run.stdout.split()
    assert flaw == "oversized"
    assert int(grown_mib) < 16


def test_limits_given_to_the_transport_replace_those_of_the_table(ask) -> None:
    """One read that lasts longer than what is left of the total ends at the total."""
    limits = RequestLimits(total=timedelta(seconds=0.2), read=timedelta(seconds=9))
    started = time.monotonic()
    assert ask(after_request(then="stay"), limits=limits).trouble is Trouble.TOTAL_TIMEOUT
    assert time.monotonic() - started < 0.2 + GENEROUS


def test_a_lookup_that_ended_gives_its_place_back(transport) -> None:
    calls = []

    def resolve(host, port):
        calls.append(host)
        raise socket.gaierror(-2, "unknown")

    sender = transport(resolve=resolve, limits=SHORT_STEP)
    for _ in range(10):
        list(sender.send([(request("https://api.acme.example/"), table("https://api.acme.example"))]))
    assert len(calls) == 10


def test_a_connection_outside_an_exchange_is_a_defect() -> None:
    """Without an exchange there would be no limits, so nothing is connected."""
    backend = PinnedBackend(policy=EgressPolicy(), loopback=True, lookup=Lookup(system_addresses))
    with pytest.raises(RuntimeError, match="outside an exchange"):
        backend.connect_tcp("127.0.0.1", 1)


def test_a_closed_connection_counts_as_readable() -> None:
    """So the pool drops it instead of asking the selector about a descriptor that is gone."""
    ours, theirs = socket.socketpair()
    theirs.close()
    ours.close()
    assert Stream(ours).get_extra_info("is_readable") is True


def test_the_system_s_resolver_gives_addresses_as_text() -> None:
    assert "127.0.0.1" in system_addresses("localhost", 80)
