"""A declared proxy on real sockets: what it sees, what it does not, and what its failures prove (R-SEC-1, INV-32..34)."""

from __future__ import annotations

import logging
import socket
import threading
import time
from base64 import b64encode

import pytest

from jobtrack.core.reply import Answered, NoAnswer, Sent, Trouble
from jobtrack.core.table import Auth, AuthKind
from jobtrack.errors import ConfigurationError
from jobtrack.transports.proxy import Proxy, check_declared, read_proxy
from tests.transports.faults import (
    GENEROUS,
    SHORT_STEP,
    SHORT_TOTAL,
    FaultServer,
    Peer,
    answers,
    ok,
    request,
    resolves_to,
    table,
)

SECRET, PASSWORD = "PROVIDER-CANARY", "PROXY-CANARY"
BEARER = Auth(kind=AuthKind.BEARER)
LOGIN = b"Proxy-Authorization: Basic " + b64encode(b"me:" + PASSWORD.encode())


def tunnel_to(port: int, opened: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"):
    """A CONNECT proxy that reaches this machine whatever name it is asked for, as a proxy does its own lookup."""

    def script(peer: Peer) -> None:
        peer.request()
        with socket.create_connection(("127.0.0.1", port)) as onward:
            peer.say(opened)
            back = threading.Thread(target=pump, args=(onward, peer.sock), daemon=True)
            back.start()
            pump(peer.sock, onward)
            back.join(5)

    return script


def pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture
def provider(serve, certificate):
    return lambda script: serve(script, tls=certificate("api.acme.example"))


@pytest.fixture
def through(transport, ca_file):
    """Build a transport whose requests to ``acme`` go through a proxy with a login."""

    def build(proxy, *, declared: str = "env:PROXY", **options: object):
        address = f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}"
        return transport(
            {"acme": {"default": "env:KEY"}},
            environ={"KEY": SECRET, "PROXY": address},
            ca_file=ca_file,
            proxies={"acme": declared.format(port=proxy.port)},
            resolve=no_lookup,
            **options,
        )

    return build


def no_lookup(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host} was looked up here")


ORIGIN = "https://api.acme.example"


def ask(sender, *, url: str = f"{ORIGIN}/v1/jobs/j1", host: str = ORIGIN) -> Answered | NoAnswer:
    [(_, reply)] = sender.send([(request(url), table(host, auth=BEARER))])
    return reply


def test_a_request_goes_through_the_proxy_and_no_credential_meets_the_other_side(serve, provider, through, caplog):
    """INV-32, INV-33: each side gets its own credential only; the name is never looked up here."""
    caplog.set_level(logging.DEBUG)
    server = provider(answers(ok()))
    proxy = serve(tunnel_to(server.port))
    sender = through(proxy)
    assert [ask(sender).status for _ in range(3)] == [200] * 3
    asked = b"\r\n".join(sorted(set(b"".join(proxy.requests).split(b"\r\n"))))
    assert proxy.requests[0].startswith(b"CONNECT api.acme.example:443 HTTP/1.1\r\n")
    assert LOGIN in asked
    assert SECRET.encode() not in asked
    assert b"jobs/j1" not in asked
    got = b"".join(server.requests)
    assert got.count(b"Authorization: Bearer " + SECRET.encode()) == 3
    assert b"proxy" not in got.lower()
    assert (server.server_names[0], len(proxy.requests)) == ("api.acme.example", 3)
    assert PASSWORD not in caplog.text
    assert SECRET not in caplog.text


def test_a_proxy_without_a_login_stands_in_the_settings_itself(serve, provider, through):
    server = provider(answers(ok()))
    proxy = serve(tunnel_to(server.port))
    assert ask(through(proxy, declared="http://127.0.0.1:{port}")).status == 200
    assert b"authorization" not in proxy.requests[0].lower()


def test_a_name_of_a_proxy_is_looked_up_and_may_be_private(serve, provider, transport, ca_file):
    server = provider(answers(ok()))
    proxy = serve(tunnel_to(server.port))
    sender = transport(
        {"acme": {"default": "env:KEY"}},
        environ={"KEY": SECRET},
        ca_file=ca_file,
        proxies={"acme": f"http://proxy.internal:{proxy.port}"},
        resolve=resolves_to("127.0.0.1"),
        policy=None,
    )
    assert ask(sender).status == 200


def test_other_tables_do_not_use_it(serve, transport):
    server, proxy = serve(answers(ok())), serve(answers(ok()))
    sender = transport(proxies={"other": f"http://127.0.0.1:{proxy.port}"})
    [(_, reply)] = sender.send([(request(server.origin), table(server.origin))])
    assert (reply.status, proxy.connects) == (200, 0)


def test_a_changed_login_counts_from_the_next_request(serve, provider, transport, ca_file):
    server = provider(answers(ok()))
    proxy = serve(tunnel_to(server.port))
    environ = {"KEY": SECRET, "PROXY": f"http://me:old@127.0.0.1:{proxy.port}"}
    sender = transport(
        {"acme": {"default": "env:KEY"}}, environ=environ, ca_file=ca_file, proxies={"acme": "env:PROXY"}
    )
    assert ask(sender).status == 200
    environ["PROXY"] = f"http://me:new@127.0.0.1:{proxy.port}"
    assert ask(sender).status == 200
    logins = [b64encode(b"me:" + word) in asked for asked in proxy.requests for word in (b"old", b"new")]
    assert logins == [True, False, False, True]


def says(*parts: bytes, then: str = "close"):
    def script(peer: Peer) -> None:
        peer.request()
        for part in parts:
            peer.say(part)
        if then == "stay":
            peer.stay()
        elif then == "reset":
            peer.reset()

    return script


def trickles(peer: Peer) -> None:
    peer.request()
    peer.trickle(b"HTTP/1.1 200 " + b"x" * 400)


OPEN = b"HTTP/1.1 200 OK\r\n\r\n"
REFUSALS = {
    "407": (says(b"HTTP/1.1 407 CANARY words\r\nContent-Length: 0\r\n\r\n"), Trouble.CONNECT_REFUSED, "(HTTP 407)"),
    "403": (says(b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\n"), Trouble.CONNECT_REFUSED, "(HTTP 403)"),
    "a redirect": (says(b"HTTP/1.1 302 x\r\nLocation: http://x\r\n\r\n"), Trouble.CONNECT_REFUSED, "(HTTP 302)"),
    "silence": (says(then="stay"), Trouble.CONNECT_TIMEOUT, "not ready in time"),
    "hanging up": (says(), Trouble.CONNECT_REFUSED, "no connection"),
    "a reset": (says(then="reset"), Trouble.CONNECT_REFUSED, "no connection"),
    "half an answer": (says(b"HTTP/1.1 200"), Trouble.CONNECT_REFUSED, "no connection"),
    "garbage": (says(b"SSH-2.0 CANARY\r\n\r\n"), Trouble.PROTOCOL, "not proper HTTP"),
    "a head without end": (says(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 20_000), Trouble.PROTOCOL, ""),
    "a trickle": (trickles, Trouble.TOTAL_TIMEOUT, "total time"),
    "a tunnel to nowhere": (says(OPEN), Trouble.TLS, "TLS handshake"),
    "a tunnel that is silent": (says(OPEN, then="stay"), Trouble.CONNECT_TIMEOUT, "not ready in time"),
    "a tunnel to something else": (says(OPEN, ok()), Trouble.TLS, "TLS handshake"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_before_the_tunnel_stands_nothing_is_sent(case, serve, through):
    """R-SUB-2: proven unsent, in time, and without the proxy's own words."""
    script, trouble, sentence = REFUSALS[case]
    proxy = serve(script)
    started = time.monotonic()
    reply = ask(through(proxy, limits=SHORT_TOTAL if case == "a trickle" else SHORT_STEP))
    assert (reply.sent, reply.trouble) == (Sent.NEVER, trouble)
    assert sentence in reply.detail
    assert "CANARY" not in reply.detail
    assert time.monotonic() - started < 0.5 + GENEROUS
    assert SECRET.encode() not in b"".join(proxy.requests)


def test_a_proxy_that_is_not_there(through):
    proxy = FaultServer(answers(ok()))
    proxy.close()
    reply = ask(through(proxy))
    assert (reply.sent, reply.trouble) == (Sent.NEVER, Trouble.CONNECT_REFUSED)


def test_a_proxy_that_looks_into_the_tunnel_is_refused(serve, through, certificate):
    """A certificate of somebody else ends before the provider's credential leaves."""
    server = serve(answers(ok()), tls=certificate("other.example"))
    proxy = serve(tunnel_to(server.port))
    reply = ask(through(proxy))
    assert (reply.sent, reply.trouble, server.requests) == (Sent.NEVER, Trouble.TLS, [])


def hung_up(peer: Peer) -> None:
    peer.request()


def stays(peer: Peer) -> None:
    peer.request()
    peer.stay()


INSIDE = [
    (hung_up, SHORT_STEP, Trouble.CONNECTION_LOST),
    (stays, SHORT_STEP, Trouble.READ_TIMEOUT),
    (lambda peer: peer.request() and peer.trickle(ok(b" " * 400)), SHORT_TOTAL, Trouble.TOTAL_TIMEOUT),
]


@pytest.mark.parametrize("case", INSIDE, ids=["hung up", "silence", "trickle"])
def test_inside_the_tunnel_everything_is_as_without_one(case, serve, provider, through):
    script, limits, trouble = case
    server = provider(script)
    reply = ask(through(serve(tunnel_to(server.port)), limits=limits))
    assert (reply.sent, reply.trouble) == (Sent.MAYBE, trouble)


def test_the_body_is_capped(serve, provider, through):
    server = provider(answers(ok(b" " * 70_000)))
    reply = ask(through(serve(tunnel_to(server.port))))
    assert (reply.status, reply.flaw) == (200, "oversized")


DENIED = [
    ("http://127.0.0.1:8001/j", "http://127.0.0.1:8001", "plain http"),
    ("https://localhost/j", "https://localhost", "names only"),
    ("https://10.0.0.5/j", "https://10.0.0.5", "names only"),
    ("https://[::1]/j", "https://[::1]", "names only"),
    ("https://elsewhere.example/j", ORIGIN, "not one of the table's hosts"),
]


@pytest.mark.parametrize(("url", "host", "sentence"), DENIED)
def test_what_a_proxy_is_never_asked_for(url, host, sentence, serve, through):
    """R-SEC-1: the address cannot be seen, so only names of the table's hosts go out, by https."""
    proxy = serve(answers(ok()))
    reply = ask(through(proxy), url=url, host=host)
    assert (reply.sent, reply.trouble, proxy.connects) == (Sent.NEVER, Trouble.TARGET_DENIED, 0)
    assert sentence in reply.detail


@pytest.mark.parametrize("value", [None, "", f"https://me:{PASSWORD}@proxy:1", f"me:{PASSWORD}"])
def test_a_reference_to_no_proxy_sends_nothing(value, serve, transport):
    environ = {"KEY": SECRET} | ({} if value is None else {"PROXY": value})
    sender = transport({"acme": {"default": "env:KEY"}}, environ=environ, proxies={"acme": "env:PROXY"})
    reply = ask(sender)
    assert (reply.sent, reply.trouble) == (Sent.NEVER, Trouble.CREDENTIAL)
    assert "env:PROXY" in reply.detail
    assert PASSWORD not in reply.detail


READ = [
    ("http://proxy:3128", Proxy(host="proxy", port=3128)),
    ("http://10.1.2.3:80/", Proxy(host="10.1.2.3", port=80)),
    ("http://[fd00::1]:80", Proxy(host="fd00::1", port=80)),
    ("http://a%40b:p%2F%C3%BC@proxy:1", Proxy(host="proxy", port=1, login=(b"a@b", "p/ü".encode()))),
    ("http://me:@proxy:1", Proxy(host="proxy", port=1, login=(b"me", b""))),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_how_a_proxy_is_written(text, expected):
    assert read_proxy(text) == expected
    assert "login" not in repr(expected)


BAD = ["", "proxy:1", "http://proxy", "https://proxy:1", "socks5://proxy:1", "http://proxy:0", "http://proxy:65536"]
BAD += ["http://proxy:1/x", "http://proxy:1?x", "http://pr oxy:1", "http://me@proxy:1", "http://a:b:c@proxy:1", "env:"]
BAD += ["http://proxy:1\n", "http://me:x\r\nX: y@proxy:1", "http://me:pw@proxy:1", "vault:proxy", "http://proxy:\u0661"]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_declaration_of_a_proxy(text):
    with pytest.raises(ConfigurationError) as caught:
        check_declared(text)
    assert "pw" not in str(caught.value).replace("password", "")
