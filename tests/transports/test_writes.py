"""A write whose outcome is unknown costs a person's time: it is unknown only where it must be (R-SUB-2, INV-16)."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.core.reply import NoAnswer, Sent, Trouble
from tests.transports.faults import GENEROUS, LIMITS, Peer, answers, ok, request, table

WRITES = ["POST", "PUT", "PATCH", "DELETE", "post"]


@pytest.fixture
def send(transport):
    """Send requests one after the other with one transport; returns the replies."""
    sender = transport(limits=replace(LIMITS, read=timedelta(seconds=1)))

    def one_by_one(server, *methods: str, **changes: object):
        return [
            reply
            for method in methods
            for _, reply in sender.send([(request(server.origin, method=method, **changes), table(server.origin))])
        ]

    return one_by_one


class Tired:
    """A server whose kept connections end in the moment in which a second request comes: it answers the first only."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def __call__(self, peer: Peer) -> None:
        peer.request()
        peer.say(ok())
        self.seen.append(peer.request())
        peer.reset()


def test_a_kept_connection_that_ends_may_cost_a_question_an_answer(serve, send) -> None:
    """What the next test would be without a connection of its own."""
    first, second = send(serve(Tired()), "GET", "GET")
    assert first.status == 200
    assert (second.sent, second.trouble) == (Sent.MAYBE, Trouble.CONNECTION_LOST)


@pytest.mark.parametrize("method", WRITES)
def test_a_write_is_never_put_on_a_kept_connection(method, serve, send) -> None:
    server = serve(Tired())
    replies = send(server, "GET", method, method)
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert (server.connects, server.script.seen) == (3, [])


@pytest.mark.parametrize("method", WRITES)
def test_a_write_leaves_no_connection_behind(method, serve, send) -> None:
    """An answer that is followed by more than was announced must not answer the next question."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.say(ok(b'{"first":1}') + ok(b'{"left over":1}'))
        peer.stay()

    server = serve(script)
    [first] = send(server, method)
    assert server.hung_up.wait(5)
    server.script = answers(ok(b'{"own":1}'))
    [second] = send(server, "GET")
    assert (first.body, second.body, server.connects) == (b'{"first":1}', b'{"own":1}', 2)


def test_questions_still_share_a_connection(serve, send) -> None:
    server = serve(answers(ok()))
    assert [reply.status for reply in send(server, "GET", "POST", "GET", "HEAD")] == [200] * 4
    assert server.connects == 2


def test_a_write_on_a_connection_that_is_not_made_is_proven_unsent(transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        origin = f"http://127.0.0.1:{free.getsockname()[1]}"
    asked = request(origin, method="POST", body=b"{}")
    [(_, reply)] = transport().send([(asked, table(origin))])
    assert (reply.sent, reply.trouble) == (Sent.NEVER, Trouble.CONNECT_REFUSED)


def test_a_write_whose_tls_fails_is_proven_unsent(serve, transport, certificate, authority, ca_file) -> None:
    server = serve(answers(ok()), tls=certificate("other.example"))
    asked = request(server.origin, method="POST", body=b"{}")
    [(_, reply)] = transport(ca_file=ca_file).send([(asked, table(server.origin))])
    assert (reply.sent, reply.trouble, server.requests) == (Sent.NEVER, Trouble.TLS, [])


def test_a_write_that_is_cut_after_its_first_byte_may_have_arrived(serve, send) -> None:
    def script(peer: Peer) -> None:
        peer.sock.recv(1)
        peer.reset()

    [reply] = send(serve(script), "POST", body=b"x" * 8_000_000)
    assert isinstance(reply, NoAnswer)
    assert reply.sent is Sent.MAYBE


REFUSAL = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}"


def hangs_up(peer: Peer) -> None:
    # What still waits to be sent is dropped with the connection; the answer must not wait for a receipt.
    peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sock.recv(1000)
    peer.say(REFUSAL)


def half_closes(peer: Peer) -> None:
    peer.sock.recv(1000)
    peer.say(REFUSAL)
    peer.sock.shutdown(socket.SHUT_WR)
    peer.stay()


def stops_reading(peer: Peer) -> None:
    peer.sock.recv(1000)
    peer.say(REFUSAL)
    peer.server.hung_up.wait(5)


EARLY = {"hangs up": hangs_up, "says goodbye and reads on": half_closes, "reads no more": stops_reading}


@pytest.mark.parametrize("case", EARLY)
def test_an_answer_before_the_body_was_read_is_an_answer(case, serve, send) -> None:
    """RFC 9110 7.5: a refusal proves that nothing was done; a broken pipe would leave it unknown."""
    server = serve(EARLY[case])
    started = time.monotonic()
    [reply] = send(server, "POST", body=b"x" * 16_000_000)
    server.hung_up.set()
    assert (getattr(reply, "status", reply), reply.body) == (413, b"{}")
    assert time.monotonic() - started < 2 + GENEROUS


@pytest.mark.parametrize("case", ["hangs up", "reads no more"])
def test_an_early_answer_through_tls_is_an_answer(case, serve, transport, certificate, ca_file) -> None:
    """In TLS a connection always has something to say at first: tickets of the session are no answer."""
    server = serve(EARLY[case], tls=certificate("127.0.0.1"))
    sender = transport(ca_file=ca_file, limits=replace(LIMITS, read=timedelta(seconds=1)))
    asked = request(server.origin, method="POST", body=b"x" * 16_000_000)
    [(_, reply)] = sender.send([(asked, table(server.origin))])
    server.hung_up.set()
    assert getattr(reply, "status", reply) == 413


def test_a_peer_that_reads_slowly_gets_the_whole_body(serve, transport, certificate, ca_file) -> None:
    """Tickets that wait to be read end no write while the peer still takes bytes."""
    got = []

    def script(peer: Peer) -> None:
        time.sleep(0.5)
        got.append(len(peer.request()))
        peer.say(ok())

    server = serve(script, tls=certificate("127.0.0.1"))
    asked = request(server.origin, method="POST", body=b"x" * 4_000_000)
    [(_, reply)] = transport(ca_file=ca_file).send([(asked, table(server.origin))])
    assert (reply.status, got[0] > 4_000_000) == (200, True)


@pytest.mark.parametrize("tls", [False, True])
def test_a_peer_that_takes_nothing_and_says_nothing_leaves_the_outcome_open(
    tls, serve, transport, certificate, ca_file
) -> None:
    server = serve(lambda peer: peer.server.hung_up.wait(5), tls=certificate("127.0.0.1") if tls else None)
    sender = transport(ca_file=ca_file, limits=replace(LIMITS, read=timedelta(seconds=0.3)))
    asked = request(server.origin, method="POST", body=b"x" * 32_000_000)
    started = time.monotonic()
    [(_, reply)] = sender.send([(asked, table(server.origin))])
    server.hung_up.set()
    assert (reply.sent, reply.trouble in (Trouble.WRITE, Trouble.READ_TIMEOUT)) == (Sent.MAYBE, True)
    assert time.monotonic() - started < 0.6 + GENEROUS


def test_interim_answers_are_no_answer(serve, send) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok(b"[]"))

    [reply] = send(serve(script), "POST", body=b"{}")
    assert (reply.status, reply.body) == (200, b"[]")


def test_writes_side_by_side_have_a_connection_each(serve, transport) -> None:
    gate = threading.Barrier(4, timeout=5)

    def script(peer: Peer) -> None:
        body = peer.request().partition(b"\r\n\r\n")[2]
        gate.wait()
        peer.say(ok(body))

    server = serve(script)
    asked = [(request(server.origin, method="POST", body=b"%d" % n), table(server.origin)) for n in range(4)]
    replies = list(transport(slots=4).send(asked))
    assert {(sent.body, reply.body) for sent, reply in replies} == {(b"%d" % n,) * 2 for n in range(4)}
    assert server.connects == 4
