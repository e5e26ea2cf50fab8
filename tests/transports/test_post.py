"""One POST to an address of the site's choice: the guard of requests to providers, and no word about the address."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

import pytest

from jobtrack.core.reply import Answered, NoAnswer, Sent, Trouble
from jobtrack.transports import EgressPolicy
from jobtrack.transports.network import current
from jobtrack.transports.post import post
from tests.transports.faults import GENEROUS, SHORT_TOTAL, ok

LOOPBACK = EgressPolicy(allow_loopback=True)
BODY = b'{"a":1}'


def test_what_is_sent_is_what_is_given(serve):
    def script(peer):
        peer.request()
        peer.say(ok(b"thanks", b"X-Seen: 1"))

    server = serve(script)
    answer = post(f"{server.origin}/in?k=v", BODY, [("webhook-id", "msg_1")], policy=LOOPBACK)
    assert isinstance(answer, Answered)
    assert (answer.status, ("X-Seen", "1") in answer.headers) == (200, True)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert (body, head.split(b"\r\n")[0]) == (BODY, b"POST /in?k=v HTTP/1.1")
    assert b"webhook-id: msg_1" in head
    assert b"Content-Length: 7" in head
    assert current.get() is None


def test_tls_is_verified(serve, certificate, ca_file):
    server = serve(lambda peer: (peer.request(), peer.say(ok())), tls=certificate("hooks.example"))
    url = f"https://hooks.example:{server.port}/"

    def sent(**options):
        return post(url, BODY, [], policy=EgressPolicy.of(allow_private=["127.0.0.0/8"]), **options)

    here = {"resolve": lambda _host, _port: ["127.0.0.1"]}
    assert sent(ca_file=ca_file, **here).status == 200
    assert server.server_names == ["hooks.example"]
    stranger = sent(**here)
    assert (stranger.trouble, stranger.sent) == (Trouble.TLS, Sent.NEVER)


@pytest.mark.parametrize(
    "url",
    [
        "http://CANARY.example/",
        "ftp://CANARY.example/",
        "https://u:CANARY@x.example/",
        "https://x.example/CANARY\r\nX: 1",
        "https://x.example/a/../CANARY",
        "https://x.example/#CANARY",
        "//CANARY.example/",
        "CANARY",
        "",
        "https:///CANARY",
        "http://127.0.0.1/CANARY",
        "https://169.254.169.254/CANARY",
        "https://CANARY-host.example/",
    ],
)
def test_what_may_not_be_reached_is_not_and_nothing_of_it_is_told(url, caplog):
    """R-SEC-1, INV-31, INV-33: neither a name that leads inside nor a number, nor plain http."""
    caplog.set_level(logging.DEBUG)
    answer = post(url, BODY, [], policy=EgressPolicy(), resolve=lambda _host, _port: ["8.8.8.8", "10.0.0.1"])
    assert isinstance(answer, NoAnswer)
    assert (answer.trouble, answer.sent) == (Trouble.TARGET_DENIED, Sent.NEVER)
    assert "CANARY" not in answer.detail + caplog.text


def test_a_redirect_is_an_answer(serve):
    server = serve(
        lambda peer: (peer.request(), peer.say(b"HTTP/1.1 307 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"))
    )
    assert post(server.origin, BODY, [], policy=LOOPBACK).status == 307
    assert len(server.requests) == 1


def test_the_whole_has_a_limit(serve):
    """A receiver that answers byte by byte is late all the same."""
    server = serve(lambda peer: (peer.request(), peer.trickle(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500)))
    begun = time.monotonic()
    answer = post(server.origin, BODY, [], policy=LOOPBACK, limits=SHORT_TOTAL)
    assert (answer.trouble, answer.detail) == (Trouble.TOTAL_TIMEOUT, "POST: the total time was over")
    assert time.monotonic() - begun < SHORT_TOTAL.total.total_seconds() + GENEROUS


def test_an_endless_body_is_not_read(serve):
    def script(peer):
        peer.request()
        peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n")
        peer.stay()

    server = serve(script)
    assert post(server.origin, BODY, [], policy=LOOPBACK, limits=replace(SHORT_TOTAL)).status == 200
    assert server.hung_up.wait(5)
