"""Which URL may be asked and which address connected to (R-SEC-1, INV-30, INV-31, S2-S5)."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobtrack.core.reply import NoAnswer, Sent, Trouble
from jobtrack.errors import ConfigurationError
from jobtrack.transports import EgressPolicy
from jobtrack.transports.egress import TargetDenied, check_address, origin_of, target
from tests.transports.faults import answers, ok, request, resolves_to, table

ACME = table("https://{region}.api.acme.example", "https://files.acme.example:8443", allow_loopback=False)
LOCAL = table("http://127.0.0.1:{port}", "http://localhost:8000", "http://[::1]:8000", "http://intranet.example")
CLOSED = EgressPolicy()
OPEN = EgressPolicy(allow_loopback=True)

ACCEPTED = [
    "https://eu-1.api.acme.example/v1/jobs/1",
    "https://EU-1.API.acme.example/v1/jobs/1",
    "https://eu.api.acme.example:443/",
    "https://eu.api.acme.example/a%2Fb?sig=%2f+%20&x=../..",
    "https://eu.api.acme.example",
    "https://files.acme.example:8443/r",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_a_listed_origin_is_accepted_and_its_target_is_not_rewritten(text) -> None:
    url = target(text, ACME, CLOSED)
    path = text.partition("://")[2].partition("/")
    assert url.raw_path.decode() == (path[1] + path[2] or "/")


REFUSED = {
    "another host": "https://evil.example/",
    "a scheme-relative host": "//evil.example/",
    "no scheme": "eu.api.acme.example/",
    "a path": "/v1/jobs/1",
    "nothing": "",
    "an upper host": "https://api.acme.example/",
    "two labels for one placeholder": "https://a.b.api.acme.example/",
    "an empty label": "https://.api.acme.example/",
    "a label that ends in a hyphen": "https://eu-.api.acme.example/",
    "a suffix": "https://eu.api.acme.example.evil.example/",
    "a trailing dot": "https://eu.api.acme.example./",
    "a backslash": "https://eu.api.acme.example\\@evil.example/",
    "an encoded backslash in the host": "https://eu.api.acme.example%5c.evil.example/",
    "a user": "https://eu.api.acme.example@evil.example/",
    "a user at the right host": "https://user:pass@eu.api.acme.example/",
    "an empty user": "https://@eu.api.acme.example/",
    "fullwidth dots": "https://eu.api\u3002acme\u3002example/",
    "fullwidth letters": "https://eu.api.\uff41cme.example/",
    "a soft hyphen": "https://eu.api.ac\u00adme.example/",
    "punycode": "https://xn--eu-1a.api.acme.example.xn--p1ai/",
    "a tab in the host": "https://eu.api\t.acme.example/",
    "a line end": "https://eu.api.acme.example/\r\nHost: evil.example",
    "a leading space": " https://eu.api.acme.example/",
    "a NUL in the host": "https://eu.api.acme.example%00.evil.example/",
    "an encoded NUL in the path": "https://eu.api.acme.example/a%00b",
    "an encoded line end in the path": "https://eu.api.acme.example/a%0d%0ab",
    "another port": "https://eu.api.acme.example:8443/",
    "the other host without its port": "https://files.acme.example/",
    "a port past the last": "https://eu.api.acme.example:65979/",
    "a port that is no number": "https://eu.api.acme.example:https/",
    "plain http": "http://eu.api.acme.example/",
    "another scheme": "file://eu.api.acme.example/etc/passwd",
    "ftp": "ftp://eu.api.acme.example/",
    "a dot segment": "https://eu.api.acme.example/v1/../admin",
    "encoded dots": "https://eu.api.acme.example/v1/%2e%2e/admin",
    "half-encoded dots": "https://eu.api.acme.example/v1/.%2E/admin",
    "encoded slashes around dots": "https://eu.api.acme.example/v1/x%2f..%2fadmin",
    "encoded backslashes around dots": "https://eu.api.acme.example/v1/x%5c..%5cadmin",
    "a single dot": "https://eu.api.acme.example/v1/./admin",
    "a fragment": "https://eu.api.acme.example/v1#x",
    "a fragment after a query": "https://eu.api.acme.example/v1?a#@evil.example",
    "a fragment before the host's end": "https://eu.api.acme.example#@evil.example/",
    "a question mark before the host's end": "https://evil.example?.api.acme.example/",
    "a decimal address": "https://2130706433/",
    "a hexadecimal address": "https://0x7f000001/",
    "an octal address": "https://0177.0.0.1/",
    "a short address": "https://127.1/",
    "an address": "https://127.0.0.1/",
    "a mapped address": "https://[::ffff:127.0.0.1]/",
    "a zone": "https://[fe80::1%25eth0]/",
    "an open bracket": "https://[::1/",
    "a very long host": f"https://{'a' * 300}.api.acme.example/",
    "a very long URL": f"https://evil.example/{'a' * 70_000}",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_any_lookup(case, transport) -> None:
    """The socket log stays empty: neither a name is resolved nor a credential sought."""
    looked_up = []

    def resolve(host, port):
        looked_up.append(host)
        return ["192.0.2.1"]

    [(_, reply)] = transport(resolve=resolve).send([(request(REFUSED[case] + "?key=CANARY"), ACME)])
    assert isinstance(reply, NoAnswer)
    assert (reply.sent, reply.trouble, looked_up) == (Sent.NEVER, Trouble.TARGET_DENIED, [])
    assert len(reply.detail) <= 500
    assert "CANARY" not in reply.detail


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177"])
def test_a_placeholder_never_stands_for_a_number_host(host) -> None:
    with pytest.raises(TargetDenied, match="number"):
        target(f"https://{host}/", table("https://{tenant}"), CLOSED)


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("http://127.0.0.1:8000/", True),
        ("http://127.0.0.1:8001/", True),  # `{port}`
        ("http://localhost:8000/", True),
        ("http://[::1]:8000/", True),
        ("http://localhost:8001/", False),
        ("http://127.0.0.2:8000/", False),
        ("http://intranet.example/", False),  # plain http is for loopback only
        ("https://127.0.0.1:8000/", False),
        ("http://127.0.0.1:0/", False),
        ("http://127.0.0.1:99999/", False),
    ],
)
@pytest.mark.parametrize("policy", [OPEN, CLOSED])
def test_plain_http_needs_a_listed_loopback_host_and_both_consents(text, accepted, policy) -> None:
    def allowed(asked) -> bool:
        try:
            return bool(target(text, asked, policy))
        except TargetDenied:
            return False

    assert allowed(LOCAL) == (accepted and policy is OPEN)
    assert not allowed(table(*LOCAL.hosts, allow_loopback=False))


def test_origins_of_the_operation_narrow_the_hosts_of_the_table() -> None:
    """Placeholders of a host keep the value the operation began with."""
    mine = ("https://eu.api.acme.example:443",)
    assert target("https://eu.api.acme.example/", ACME, CLOSED, mine)
    with pytest.raises(TargetDenied, match="this operation"):
        target("https://us.api.acme.example/", ACME, CLOSED, mine)
    with pytest.raises(TargetDenied, match="hosts"):
        target("https://evil.example/", ACME, CLOSED, ("https://evil.example",))


PIECES = st.sampled_from(
    ["https:", "http:", "//", "/", "\\", "@", ":", "?", "#", "%2e", "%00", "%5c", "..", ".", "\t", " ", "\r\n", "[",
     "]", "eu", ".api.acme.example", "eu.api.acme.example", "evil.example", "127.0.0.1", "443", "8443", "0443", "xn--",
     "%40", "\u3002", "\uff0f", "files.acme.example:8443", "user:pw@"]
)  # fmt: skip
URLS = st.one_of(
    st.lists(PIECES, max_size=9).map("".join),
    st.lists(PIECES | st.text(max_size=3), max_size=6).map(lambda parts: "https://" + "".join(parts)),
    st.builds("https://{}.api.acme.example{}".format, st.text(max_size=4), st.text(max_size=4)),
)


@given(URLS)
@example("https://eu.api.acme.example:0443/")
def test_accepted_means_the_object_that_is_sent_points_to_a_listed_origin(text) -> None:
    """The oracle reads scheme, host and port from the URL object the connection is made from."""
    try:
        url = target(text, ACME, CLOSED)
    except TargetDenied:
        return
    host, port = url.raw_host.decode(), url.port or 443
    region, _, rest = host.partition(".")
    assert url.raw_scheme == b"https"
    assert (rest, port) == ("api.acme.example", 443) or (host, port) == ("files.acme.example", 8443)
    assert quote(region, safe="") == region
    assert httpx.URL(str(url)).raw_host == url.raw_host


def test_the_socket_goes_where_the_guard_said(serve, transport) -> None:
    """Differential: of many URLs only those the guard accepts reach a socket, and then the listed one."""
    listed, other = serve(answers(ok())), serve(answers(ok()))
    asked = table(listed.origin)
    urls = [
        f"{listed.origin}/v1",
        f"{listed.origin}/v1?to={other.origin}",
        f"{other.origin}/v1",
        f"http://127.0.0.1:{listed.port}@127.0.0.1:{other.port}/",
        f"http://127.0.0.1:{other.port}#127.0.0.1:{listed.port}/",
        f"http://127.0.0.1:{other.port}\\@127.0.0.1:{listed.port}/",
        f"http://127.0.0.1:{listed.port}/..//127.0.0.1:{other.port}/",
    ]
    replies = dict(transport().send([(request(url), asked) for url in urls]))
    answered = [sent.url for sent, reply in replies.items() if not isinstance(reply, NoAnswer)]
    assert sorted(answered) == sorted(urls[:2])
    assert (len(listed.requests), other.connects) == (2, 0)


# --- addresses ------------------------------------------------------------------------------------------

PUBLIC = ["93.184.215.14", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.0.1", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:93.184.215.14", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1",
    "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_connected_to(address) -> None:
    check_address(address, host="h", policy=CLOSED, loopback=False)


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused_unless_opened(address) -> None:
    with pytest.raises(TargetDenied, match="not public"):
        check_address(address, host="h", policy=CLOSED, loopback=False)
    opened = EgressPolicy.of(allow_private=[str(ipaddress.ip_network(address.partition("%")[0]))])
    if "%" not in address:
        check_address(address, host="h", policy=opened, loopback=False)


@given(st.ip_addresses())
def test_no_global_verdict_is_laxer_than_the_standard_library(address) -> None:
    try:
        check_address(str(address), host="h", policy=CLOSED, loopback=False)
    except TargetDenied:
        return
    assert address.is_global
    assert not address.is_multicast


@pytest.mark.parametrize(("address", "allowed"), [("127.0.0.1", True), ("::1", True), ("10.0.0.1", False)])
def test_consent_to_loopback_opens_nothing_else(address, allowed) -> None:
    if allowed:
        check_address(address, host="localhost", policy=OPEN, loopback=True)
        return
    with pytest.raises(TargetDenied):
        check_address(address, host="h", policy=OPEN, loopback=True)


@pytest.mark.parametrize(("address", "host"), [("93.184.215.14", "localhost"), ("no address", "h")])
def test_answers_of_a_resolver_that_lies(address, host) -> None:
    with pytest.raises(TargetDenied):
        check_address(address, host=host, policy=OPEN, loopback=True)


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"ALLOW_PRIVATE: '10\.0\.0\.1/8'"):
        EgressPolicy.of(allow_private=["10.0.0.1/8"])


def test_a_rebinding_resolver_is_asked_once_and_never_trusted_later(transport) -> None:
    """S4: public at first, private afterwards. The connection goes to the address that was checked."""
    answers_given = iter([["192.168.0.1", "93.184.215.14"], ["127.0.0.1"]])
    calls = []

    def resolve(host, port):
        calls.append((host, port))
        return next(answers_given)

    sender = transport(resolve=resolve)
    asked = (request("https://eu.api.acme.example/"), ACME)
    replies = [reply for _ in range(2) for _, reply in sender.send([asked])]
    assert {(reply.sent, reply.trouble) for reply in replies} == {(Sent.NEVER, Trouble.TARGET_DENIED)}
    assert calls == [("eu.api.acme.example", 443)] * 2


def test_the_default_resolver_result_is_what_is_connected_to(serve, transport, monkeypatch) -> None:
    """INV-31: whatever the system's resolver says later, the socket was given the checked number."""
    server = serve(answers(ok()))
    connected = []
    real = socket.create_connection

    def spy(address, *rest: Any, **options: Any):
        connected.append(address)
        return real(address, *rest, **options)

    monkeypatch.setattr("socket.create_connection", spy)
    origin = f"http://localhost:{server.port}"
    [(_, reply)] = transport(resolve=resolves_to("127.0.0.1")).send([(request(origin), table(origin))])
    assert (reply.status, connected) == (200, [("127.0.0.1", server.port)])
    assert f"Host: localhost:{server.port}".encode() in server.requests[0]


def test_the_next_address_is_tried_when_one_does_not_answer(serve, transport) -> None:
    server = serve(answers(ok()))
    origin = f"http://localhost:{server.port}"
    [(_, reply)] = transport(resolve=resolves_to("::1", "127.0.0.1")).send([(request(origin), table(origin))])
    assert reply.status == 200


def test_an_origin_is_shown_without_its_default_port() -> None:
    assert origin_of(httpx.URL("https://H.example:443/x?y")) == "https://h.example"
    assert origin_of(httpx.URL("https://[2001:db8::1]:8443/")) == "https://[2001:db8::1]:8443"
