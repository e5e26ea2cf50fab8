"""No foreign exception is without a meaning (style rule 10), and none brings its text along (INV-33)."""

from __future__ import annotations

import inspect
import socket
import ssl
import time

import h11
import httpcore
import httpx
import pytest

from jobtrack.core.reply import Sent, Trouble
from jobtrack.core.table import RequestLimits
from jobtrack.transports.network import Exchange, Phase
from jobtrack.transports.troubles import TROUBLES, no_answer, trouble_of


def exceptions_of(module) -> set[type[Exception]]:
    found = (getattr(module, name) for name in dir(module))
    return {kind for kind in found if inspect.isclass(kind) and issubclass(kind, Exception)}


def exchange(phase: Phase = Phase.READ, *, age: float = 0.0) -> Exchange:
    new = Exchange(RequestLimits(), time.monotonic() - age)
    new.phase = phase
    return new


@pytest.mark.parametrize("module", [httpx, httpcore, h11], ids=lambda module: module.__name__)
def test_every_exception_of_the_libraries_has_a_row(module) -> None:
    missing = exceptions_of(module) - set(TROUBLES)
    assert missing == set(), "add a row to TROUBLES for each of these"


@pytest.mark.parametrize("kind", TROUBLES, ids=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
def test_every_row_is_reached(kind) -> None:
    error = kind.__new__(kind)
    assert trouble_of(error, exchange()) is TROUBLES[kind]


@pytest.mark.parametrize(
    ("error", "phase", "trouble"),
    [
        (socket.gaierror(-2, "x"), Phase.RESOLVE, Trouble.DNS),
        (TimeoutError(), Phase.RESOLVE, Trouble.DNS),
        (ConnectionRefusedError(), Phase.CONNECT, Trouble.CONNECT_REFUSED),
        (OSError(113, "no route"), Phase.CONNECT, Trouble.CONNECT_REFUSED),
        (TimeoutError(), Phase.CONNECT, Trouble.CONNECT_TIMEOUT),
        (TimeoutError(), Phase.TLS, Trouble.CONNECT_TIMEOUT),
        (ssl.SSLCertVerificationError("x"), Phase.TLS, Trouble.TLS),
        (ssl.SSLError("x"), Phase.TLS, Trouble.TLS),
        (ConnectionResetError(), Phase.TLS, Trouble.TLS),
        (TimeoutError(), Phase.WRITE, Trouble.WRITE),
        (TimeoutError(), Phase.READ, Trouble.READ_TIMEOUT),
        (ConnectionResetError(), Phase.READ, Trouble.CONNECTION_LOST),
        (ssl.SSLEOFError("x"), Phase.READ, Trouble.CONNECTION_LOST),
        (UnicodeError("x"), Phase.RESOLVE, Trouble.DNS),
        (UnicodeEncodeError("ascii", "x", 0, 1, "x"), Phase.PREPARE, Trouble.PROTOCOL),
    ],
)
def test_an_error_of_a_socket_means_what_its_phase_says(error, phase, trouble) -> None:
    assert trouble_of(error, exchange(phase)) is trouble


@pytest.mark.parametrize("phase", Phase)
def test_a_time_out_after_the_total_time_is_the_total_time(phase) -> None:
    assert trouble_of(TimeoutError(), exchange(phase, age=60)) is Trouble.TOTAL_TIMEOUT


def test_a_defect_reached_by_a_peer_is_a_value_and_is_logged_without_its_text(caplog) -> None:
    assert trouble_of(KeyError("CANARY"), exchange()) is Trouble.PROTOCOL
    assert [record.getMessage() for record in caplog.records] == ["unexpected KeyError in an exchange"]


def test_an_error_that_is_no_doing_of_a_peer_is_raised_on() -> None:
    """Celery's soft time limit arrives as an exception wherever the task stands."""

    class SoftTimeLimit(Exception):
        pass

    assert no_answer(SoftTimeLimit(), exchange(), where="GET x", elapsed_s=0.0) is None


def test_foreign_text_never_gets_into_the_detail() -> None:
    """Public report B063: two failures with other signatures have equal text."""
    texts = ["https://user:PWSECRET@api.example/x?sig=SIGSECRET", "Illegal header value b'Bearer TOKSECRET'"]
    details = {
        no_answer(kind(text), exchange(), where="GET https://api.example/x", elapsed_s=0.0).detail
        for text in texts
        for kind in (httpcore.RemoteProtocolError, httpcore.LocalProtocolError, h11.LocalProtocolError)
    }
    assert details == {"GET https://api.example/x: the exchange was not proper HTTP"}


@pytest.mark.parametrize(("touched", "sent"), [(False, Sent.NEVER), (True, Sent.MAYBE)])
def test_unsent_is_claimed_only_when_it_is_proven(touched, sent) -> None:
    running = exchange()
    running.touched = touched
    assert no_answer(httpcore.ReadError(), running, where="GET x", elapsed_s=0.0).sent is sent
