"""The transport on real sockets: what is sent, reused, isolated and kept quiet (R-BUDGET-1, INV-30..34, S1..S12)."""

from __future__ import annotations

import datetime as dt
import logging
import multiprocessing
import os
import threading
import time
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest
import trustme

from jobtrack import ports
from jobtrack.core.reply import Answered, NoAnswer, Sent, Trouble
from jobtrack.core.table import Auth, AuthKind
from jobtrack.transports import EgressPolicy, HttpxTransport
from tests.transports.faults import GENEROUS, LIMITS, SHORT_STEP, Peer, answers, ok, request, resolves_to, table

CANARY = "CANARY-51c7"


HANGS_UP = ok(b"{}", b"Connection: close")
"""An answer after which the server ends the connection, and says so: the next request must not be put on it."""


def test_it_is_the_port() -> None:
    transport: ports.Transport = HttpxTransport()
    assert list(transport.send([])) == []


def test_an_answer_keeps_status_body_and_headers_as_sent(ask) -> None:
    reply = ask(answers(b"HTTP/1.1 429 Slow\r\nX-A: 1\r\nx-a: \xc3\xbc\r\nX-B: \xfc\r\nContent-Length: 2\r\n\r\n{}"))
    assert reply == Answered(
        status=429,
        headers=(("X-A", "1"), ("x-a", "ü"), ("X-B", "ü"), ("Content-Length", "2")),
        body=b"{}",
        elapsed_s=reply.elapsed_s,
    )
    assert 0 < reply.elapsed_s < LIMITS.total.total_seconds()


def test_what_is_sent(serve, transport) -> None:
    server = serve(answers(ok()))
    sent = request(
        f"{server.origin}/v1/jobs/a%2Fb?x=%20",
        method="POST",
        body=b'{"q":1}',
        headers=(("Content-Type", "application/json"), ("Accept-Encoding", "gzip")),
        fence=7,
    )
    list(transport().send([(sent, table(server.origin))]))
    [raw] = server.requests
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ") for line in lines)
    assert (first, body) == ("POST /v1/jobs/a%2Fb?x=%20 HTTP/1.1", b'{"q":1}')
    assert headers.pop("User-Agent").startswith("jobtrack/")
    assert headers == {
        "Host": f"127.0.0.1:{server.port}",
        "Content-Type": "application/json",
        "Content-Length": "7",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "X-Request-Id": "op1:7",
    }


def test_twenty_requests_need_one_connection(serve, transport) -> None:
    server = serve(answers(ok()))
    sender = transport()
    asked = [(request(server.origin), table(server.origin))]
    statuses = [reply.status for _ in range(20) for _, reply in sender.send(asked)]
    assert (statuses, len(server.requests), server.connects) == ([200] * 20, 20, 1)


def test_a_deadline_belongs_to_the_request_and_not_to_the_connection(serve, transport) -> None:
    """A reused connection outlives the total time of the request it was made for."""

    def script(peer: Peer) -> None:
        for _ in range(4):
            peer.request()
            time.sleep(0.25)
            peer.say(ok())
        peer.request()
        peer.trickle(ok(b" " * 100))

    server = serve(script)
    sender = transport(limits=replace(LIMITS, total=timedelta(seconds=0.8)))
    replies = [reply for _ in range(5) for _, reply in sender.send([(request(server.origin), table(server.origin))])]
    assert [getattr(reply, "status", None) or reply.trouble for reply in replies] == [200] * 4 + [Trouble.TOTAL_TIMEOUT]
    assert server.connects == 1


def test_a_connection_the_server_has_closed_is_not_used_again(serve, transport) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.say(ok())

    server = serve(script)
    sender = transport()
    for _ in range(3):
        [(_, reply)] = sender.send([(request(server.origin), table(server.origin))])
        assert isinstance(reply, Answered)
        time.sleep(0.05)
    assert server.connects == 3


def test_an_answer_that_nobody_asked_for_is_given_to_nobody(serve, transport) -> None:
    """A peer that answers twice must not have the second answer read as that of the next request."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.say(ok(b'"first"') + ok(b'"left over"'))
        peer.stay()

    server = serve(script)
    sender = transport()
    asked = [(request(server.origin), table(server.origin))]
    [(_, first)] = sender.send(asked)
    [(_, second)] = sender.send(asked)
    assert (first.body, second.sent, second.trouble) == (b'"first"', Sent.MAYBE, Trouble.PROTOCOL)
    assert server.hung_up.wait(2)


def test_the_url_is_judged_again_after_the_credential_was_added(serve, transport, monkeypatch) -> None:
    """The object that is sent is the one that was judged last, whatever stood between."""
    server, other = serve(answers(ok())), serve(answers(ok()))
    moved = httpx.URL(other.origin)
    monkeypatch.setattr("jobtrack.transports.httpx_transport.attach", lambda *_: (moved, ()))
    sender = transport({"acme": {"default": "env:KEY"}}, environ={"KEY": CANARY})
    asked = table(server.origin, auth=Auth(kind=AuthKind.QUERY, name="key"))
    [(_, reply)] = sender.send([(request(server.origin), asked)])
    assert (reply.trouble, server.connects, other.connects) == (Trouble.TARGET_DENIED, 0, 0)


def test_a_request_of_one_provider_is_never_sent_by_the_table_of_another(serve, transport) -> None:
    """INV-32: a mixed-up pair would put one provider's secret on another's request."""
    server = serve(answers(ok()))
    [(_, reply)] = transport().send([(request(server.origin, provider="other"), table(server.origin))])
    assert (reply.sent, reply.trouble, server.connects) == (Sent.NEVER, Trouble.TARGET_DENIED, 0)


def test_a_batch_runs_side_by_side_and_yields_as_replies_come(serve, transport) -> None:
    def script(peer: Peer) -> None:
        slow = b"/slow" in peer.request()
        time.sleep(0.3 if slow else 0)
        peer.say(HANGS_UP)

    server = serve(script)
    asked = table(server.origin)
    urls = [f"{server.origin}/slow", *(f"{server.origin}/{number}" for number in range(7))]
    replies = transport().send([(request(url), asked) for url in urls])
    came = [sent.url for sent, reply in replies if reply.status == 200]
    assert came[-1] == urls[0]
    assert sorted(came) == sorted(urls)


def test_one_bad_request_of_a_batch_leaves_the_others_alone(serve, transport) -> None:
    server = serve(answers(ok()))
    asked = table(server.origin)
    odd = {
        "\ud800": Trouble.TARGET_DENIED,
        "http://[": Trouble.TARGET_DENIED,
    }
    sent = [(request(server.origin), asked), *((request(url), asked) for url in odd)]
    replies = {made.url: reply for made, reply in transport().send(sent)}
    assert replies.pop(server.origin).status == 200
    assert {url: reply.trouble for url, reply in replies.items()} == odd


@pytest.mark.parametrize(
    ("changes", "trouble"),
    [
        ({"headers": (("X-A", "a\r\nHost: evil"),)}, Trouble.PROTOCOL),
        ({"headers": (("X-A", "\u20ac"),)}, Trouble.PROTOCOL),
        ({"headers": (("Bad Name", "a"),)}, Trouble.PROTOCOL),
        ({"method": "GET /x"}, Trouble.PROTOCOL),
        ({"headers": (("Host", "evil.example"),)}, Trouble.TARGET_DENIED),
        ({"headers": (("transfer-encoding", "chunked"),)}, Trouble.TARGET_DENIED),
    ],
)
def test_a_request_that_http_cannot_carry_is_proven_unsent(changes, trouble, serve, transport) -> None:
    server = serve(answers(ok()))
    [(_, reply)] = transport().send([(request(server.origin, **changes), table(server.origin))])
    assert (reply.sent, reply.trouble, server.requests) == (Sent.NEVER, trouble, [])


def test_a_caller_that_stops_listening_sends_no_more(serve, transport) -> None:
    gate = threading.Event()

    def script(peer: Peer) -> None:
        if b"/0" not in peer.request():
            gate.wait(5)
        peer.say(HANGS_UP)

    server = serve(script)
    asked = table(server.origin)
    replies = transport(slots=1).send([(request(f"{server.origin}/{number}"), asked) for number in range(6)])
    next(replies)
    replies.close()
    gate.set()
    assert len(server.requests) <= 2


def test_an_error_that_is_no_doing_of_a_peer_comes_through_without_frames_that_hold_headers(serve, transport) -> None:
    class SoftTimeLimit(Exception):
        pass

    def interrupted(host, port):
        raise SoftTimeLimit

    sender = transport({"acme": {"default": "env:KEY"}}, environ={"KEY": CANARY}, resolve=interrupted)
    asked = table("https://api.acme.example", auth=Auth(kind=AuthKind.BEARER))
    with pytest.raises(SoftTimeLimit) as caught:
        list(sender.send([(request("https://api.acme.example/"), asked)]))
    assert [entry.name for entry in caught.traceback][-3:] == ["send", "_send_one", "_carry_out"]


# --- nothing from the environment, nothing kept ------------------------------------------------------------


def test_proxies_netrc_and_other_environment_are_ignored(serve, transport, monkeypatch, tmp_path) -> None:
    """S5."""
    proxy = serve(answers(ok(b'"proxy"')))
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login user password {CANARY}\n")
    netrc.chmod(0o600)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, proxy.origin)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    server = serve(answers(ok()))
    [(_, reply)] = transport().send([(request(server.origin), table(server.origin))])
    assert (reply.status, proxy.connects) == (200, 0)
    assert b"authorization" not in server.requests[0].lower()
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(status, serve, transport) -> None:
    """S1 and public report B035."""
    other = serve(answers(ok()))
    reply_text = f"HTTP/1.1 {status} Moved\r\nLocation: {other.origin}/x\r\nContent-Length: 0\r\n\r\n"
    server = serve(answers(reply_text.encode()))
    [(_, reply)] = transport().send([(request(server.origin, method="POST", body=b"{}"), table(server.origin))])
    assert (reply.status, reply.header("location"), other.connects) == (status, f"{other.origin}/x", 0)


def test_no_cookie_is_kept(serve, transport) -> None:
    server = serve(answers(ok(b"{}", b"Set-Cookie: session=" + CANARY.encode() + b"; Path=/")))
    sender = transport()
    for _ in range(2):
        list(sender.send([(request(server.origin), table(server.origin))]))
    assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize(
    "auth",
    [Auth(kind=AuthKind.BEARER), Auth(kind=AuthKind.HEADER, name="X-Key"), Auth(kind=AuthKind.QUERY, name="key")],
    ids=lambda auth: auth.kind,
)
@pytest.mark.parametrize("script", ["answer", "cut", "garbage", "refused"])
def test_no_secret_reaches_a_log_at_debug(auth, script, serve, transport, caplog) -> None:
    """INV-33, S11: neither the credential nor the query, nor a signed URL or cookie of the answer."""
    caplog.set_level(logging.DEBUG)
    signed = f"Location: https://files.example/r?sig={CANARY}".encode()
    said = {
        "answer": ok(b"{}", signed, b"Set-Cookie: " + CANARY.encode()),
        "cut": b"HTTP/1.1 200 OK\r\n" + signed + b"\r\nContent-Length: 9\r\n\r\n{",
        "garbage": CANARY.encode() + b"\r\n\r\n",
        "refused": b"",
    }[script]

    def serve_once(peer: Peer) -> None:
        peer.request()
        peer.say(said)

    server = serve(serve_once)
    sender = transport({"acme": {"default": "env:KEY"}}, environ={"KEY": CANARY})
    [(_, reply)] = sender.send([(request(f"{server.origin}/j?token={CANARY}"), table(server.origin, auth=auth))])
    assert CANARY not in caplog.text
    assert CANARY not in getattr(reply, "detail", "")
    assert CANARY.encode() in server.requests[0]


def test_other_use_of_httpcore_logs_as_before(transport, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    transport()
    logging.getLogger("httpcore.http11").debug("of the site")
    assert "of the site" in caplog.text


# --- processes ----------------------------------------------------------------------------------------------


def _ask_in_child(sender, sent, pipe) -> None:
    [(_, reply)] = sender.send([sent])
    pipe.send((os.getpid(), getattr(reply, "status", None)))
    pipe.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_its_own_connection(serve, transport) -> None:
    """Two processes on one connection would read each other's answers."""
    server = serve(answers(ok()))
    sender = transport()
    asked = (request(server.origin), table(server.origin))
    list(sender.send([asked]))
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=_ask_in_child, args=(sender, asked, writer))
    child.start()
    pid, status = reader.recv()
    child.join(10)
    reader.close()
    writer.close()
    list(sender.send([asked]))
    assert (status, pid == child.pid, server.connects) == (200, True, 2)


def test_what_another_process_left_is_not_touched(serve, transport) -> None:
    """The parent's locks may be held for ever in a child, so nothing of it is even closed."""
    server = serve(answers(ok()))
    sender = transport()
    asked = [(request(server.origin), table(server.origin))]
    list(sender.send(asked))
    of_the_parent = sender._process
    of_the_parent.pid = -1
    with of_the_parent._lock:
        assert [reply.status for _, reply in sender.send(asked * 2)] == [200, 200]
    of_the_parent.close()
    assert server.connects >= 2


def test_a_closed_transport_opens_again(serve, transport) -> None:
    server = serve(answers(ok()))
    sender = transport()
    asked = [(request(server.origin), table(server.origin))] * 3
    for _ in range(2):
        assert [reply.status for _, reply in sender.send(asked)] == [200] * 3
        assert [reply.status for _, reply in sender.send(asked)] == [200] * 3
        sender.close()


def test_threads_share_connections_and_never_an_answer(serve, transport) -> None:
    def script(peer: Peer) -> None:
        while True:
            path = peer.request().split(b" ")[1]
            peer.say(ok(path))

    server = serve(script)
    sender = transport()
    asked = table(server.origin)
    wrong: list[str] = []

    def work(name: int) -> None:
        for number in range(30):
            [(_, reply)] = sender.send([(request(f"{server.origin}/{name}/{number}"), asked)])
            if getattr(reply, "body", b"") != f"/{name}/{number}".encode():
                wrong.append(f"{name}/{number}: {reply}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert server.connects <= 12


# --- TLS ------------------------------------------------------------------------------------------------------


def test_a_certificate_for_the_url_s_host_is_accepted_and_the_connection_reused(
    serve, transport, certificate, ca_file
) -> None:
    """S4: the socket goes to a number, while server name and Host stay those of the URL."""
    server = serve(answers(ok()), tls=certificate("api.acme.example"))
    origin = f"https://api.acme.example:{server.port}"
    policy = EgressPolicy.of(allow_private=["127.0.0.0/8"])
    sender = transport(policy=policy, ca_file=ca_file, resolve=resolves_to("127.0.0.1"))
    statuses = [reply.status for _ in range(5) for _, reply in sender.send([(request(origin), table(origin))])]
    assert (statuses, server.connects, server.server_names) == ([200] * 5, 1, ["api.acme.example"])
    assert f"Host: api.acme.example:{server.port}".encode() in server.requests[0]


def _expired(certificate):
    return certificate("api.acme.example", not_after=dt.datetime(2001, 1, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    "build",
    [
        lambda certificate: certificate("other.example"),
        lambda certificate: certificate("api.acme.example", issuer=trustme.CA()),
        _expired,
    ],
    ids=["another name", "unknown authority", "expired"],
)
def test_a_certificate_that_is_not_right_ends_before_anything_is_sent(
    build, serve, transport, certificate, ca_file
) -> None:
    """S8: proven unsent, and no table can switch verification off."""
    server = serve(answers(ok()), tls=build(certificate))
    origin = f"https://api.acme.example:{server.port}"
    policy = EgressPolicy.of(allow_private=["127.0.0.0/8"])
    sender = transport(policy=policy, ca_file=ca_file, resolve=resolves_to("127.0.0.1"))
    [(_, reply)] = sender.send([(request(origin), table(origin))])
    assert (reply.sent, reply.trouble, server.requests) == (Sent.NEVER, Trouble.TLS, [])
    assert "the certificate is not accepted" in reply.detail


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        (lambda peer: peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Trouble.TLS),
        (lambda peer: peer.sock.recv(9) and peer.reset(), Trouble.TLS),
        (lambda peer: peer.stay(), Trouble.CONNECT_TIMEOUT),
        (lambda peer: peer.trickle(b"\x16\x03\x03\x40\x00" + b"\x02" * 200), Trouble.CONNECT_TIMEOUT),
    ],
    ids=["no TLS", "reset", "silence", "a handshake that trickles"],
)
def test_a_handshake_that_fails_is_proven_unsent(script, trouble, serve, transport) -> None:
    server = serve(script)
    origin = f"https://localhost:{server.port}"
    started = time.monotonic()
    sender = transport(resolve=resolves_to("127.0.0.1"), limits=SHORT_STEP)
    [(_, reply)] = sender.send([(request(origin), table(origin))])
    assert reply == NoAnswer(sent=Sent.NEVER, trouble=trouble, detail=reply.detail, elapsed_s=reply.elapsed_s)
    assert time.monotonic() - started < 0.5 + GENEROUS


def test_a_body_cut_without_tls_goodbye_is_no_answer(serve, transport, certificate, ca_file) -> None:
    """INV-11: without a length only the end of the TLS stream proves that a body is whole."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.say(b'HTTP/1.1 200 OK\r\n\r\n{"status":"succeeded"}')
        os.close(peer.sock.detach())

    server = serve(script, tls=certificate("localhost"))
    origin = f"https://localhost:{server.port}"
    sender = transport(ca_file=ca_file, resolve=resolves_to("127.0.0.1"))
    [(_, reply)] = sender.send([(request(origin), table(origin))])
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, Trouble.CONNECTION_LOST)
