"""The network below httpx: one seam for the total deadline, the byte cap and the pinned address (INV-31, INV-34).

httpx limits each read, so a peer that sends one byte a second is never late. Here every step of an exchange gets
the smaller of its own limit and what is left of the whole, and every byte from the wire is counted.

A connection outlives a request (keep-alive), a deadline does not. So the running ``Exchange`` is a context variable:
httpcore's synchronous pool works in the calling thread, and a stream asks for the exchange each time it is used.
"""

from __future__ import annotations

import contextlib
import ipaddress
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from enum import Enum, auto
from typing import Any

import httpcore

from jobtrack.core.table import RequestLimits
from jobtrack.transports.egress import EgressPolicy, check_address

HEADER_BYTES = 64 * 1024
"""Most bytes before the body: status line, headers, interim (1xx) answers; also what body framing may add."""

Resolver = Callable[[str, int], Sequence[str]]
"""Name and port to addresses, as text. Raises OSError."""


class OutOfTime(Exception):
    """Internal: the total time of the request is over."""


class TooManyBytes(Exception):
    """Internal: more bytes came from the wire than this part of the answer may have."""


class Phase(Enum):
    """How far an exchange has come; tells what an error means."""

    PREPARE = auto()
    RESOLVE = auto()
    CONNECT = auto()
    TLS = auto()
    WRITE = auto()
    READ = auto()


class Exchange:
    """What one request may still use, and how far it has come.

    Args:
        limits: Of this request.
        started: Monotonic instant from which the total time counts.
    """

    __slots__ = ("deadline", "limits", "peer_closed", "phase", "touched", "wire_left")

    def __init__(self, limits: RequestLimits, started: float) -> None:
        self.limits = limits
        self.deadline = started + limits.total.total_seconds()
        self.wire_left = HEADER_BYTES
        self.phase = Phase.PREPARE
        self.touched = False  # a byte of the request may have left; never goes back to False
        self.peer_closed = False  # the peer ended the stream

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.deadline

    def connect_time(self) -> float:
        return self._within(self.limits.connect.total_seconds())

    def read_time(self) -> float:
        return self._within(self.limits.read.total_seconds())

    def _within(self, own: float) -> float:
        """Seconds a step may take: its own limit or what is left, whichever is less. Raises OutOfTime."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        return min(own, left)

    def permit_body(self, max_bytes: int) -> None:
        """The head is complete: from now on the body's bytes may come."""
        self.wire_left += max_bytes


current: ContextVar[Exchange | None] = ContextVar("jobtrack_exchange", default=None)
"""The exchange this thread is carrying out."""


def _running() -> Exchange:
    exchange = current.get()
    if exchange is None:
        raise RuntimeError("a jobtrack connection was used outside an exchange")
    return exchange


class Stream(httpcore.NetworkStream):
    """A connected socket whose every call is limited by the running exchange.

    It raises the socket's own errors; they are given a meaning in one place (``troubles``). The one exception is a
    failed write, which httpcore must recognise in order to read an answer that the peer gave before it had read all.
    The pool's own time-outs are not used: they would count each call anew.

    Args:
        sock: The socket.
        to_proxy: The other end is a proxy that has not opened its tunnel yet: all of it is still connecting, and no
            byte of the request leaves. The tunnel begins with TLS.
    """

    def __init__(self, sock: socket.socket, *, to_proxy: bool = False) -> None:
        self._sock = sock
        self._to_proxy = to_proxy
        # Head and body of a request are two writes; the second must not wait for the first one's receipt.
        with contextlib.suppress(OSError):  # a connection that is gone already fails at its first use
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        exchange = _running()
        exchange.phase = Phase.CONNECT if self._to_proxy else Phase.READ
        if exchange.wire_left <= 0:
            raise TooManyBytes
        self._sock.settimeout(self._step_time(exchange))
        data = self._sock.recv(min(max_bytes, exchange.wire_left))
        exchange.wire_left -= len(data)
        exchange.peer_closed = not data
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        exchange = _running()
        exchange.phase = Phase.CONNECT if self._to_proxy else Phase.WRITE
        view = memoryview(buffer)
        while view:
            self._sock.settimeout(self._step_time(exchange))
            exchange.touched = exchange.touched or not self._to_proxy
            try:
                view = view[self._sock.send(view) :]
            except TimeoutError as error:
                if not _is_readable(self._sock):
                    raise
                # The peer takes no more and has said something: maybe an answer that needs no more.
                raise httpcore.WriteError from error
            except OSError as error:
                raise httpcore.WriteError from error

    def _step_time(self, exchange: Exchange) -> float:
        return exchange.connect_time() if self._to_proxy else exchange.read_time()

    def close(self) -> None:
        self._sock.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        exchange = _running()
        exchange.phase = Phase.TLS
        sock = self._sock
        try:
            sock.settimeout(exchange.connect_time())
            # The handshake is a step of its own because wrapping leaves it out, silently, for a connection that was
            # reset meanwhile. A body that ends with the connection must end with TLS's own goodbye (INV-11).
            tls = ssl_context.wrap_socket(
                sock, server_hostname=server_hostname, do_handshake_on_connect=False, suppress_ragged_eofs=False
            )
            sock = tls
            tls.do_handshake()
        except BaseException:
            sock.close()
            raise
        return Stream(tls)

    def get_extra_info(self, info: str) -> Any:
        """Answer the one question the pool asks of an idle connection; HTTP/2 is never negotiated."""
        return _is_readable(self._sock) if info == "is_readable" else None


def _is_readable(sock: socket.socket) -> bool:
    """True if an idle connection has something to say, which can only be its end. Works above 1024 descriptors."""
    if sock.fileno() < 0:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


class PinnedBackend(httpcore.NetworkBackend):
    """Resolves a name once, checks every address, and connects to a checked address and no other.

    Host header and TLS server name stay those of the URL; only the socket's target is the number.

    Args:
        policy: Networks the operator opened.
        loopback: Whether connections to this machine are permitted.
        lookup: Resolver with a time limit, shared by the process.
        to_proxy: Connections are to a declared proxy. The operator chose its address, so any is accepted.
    """

    def __init__(self, *, policy: EgressPolicy, loopback: bool, lookup: Lookup, to_proxy: bool = False) -> None:
        self._policy = policy
        self._loopback = loopback
        self._lookup = lookup
        self._to_proxy = to_proxy

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        exchange = _running()
        exchange.phase = Phase.RESOLVE
        addresses = self._addresses(host, port, exchange)
        # All or nothing: a name that mixes public and other addresses is a rebinding attempt or a mistake.
        for address in addresses if not self._to_proxy else ():
            check_address(address, host=host, policy=self._policy, loopback=self._loopback)
        exchange.phase = Phase.CONNECT
        failure: OSError = OSError("no address")
        for address in addresses:
            try:
                sock = socket.create_connection((address, port), exchange.connect_time())
            except OSError as error:
                failure = error
            else:
                return Stream(sock, to_proxy=self._to_proxy)
        raise failure

    def _addresses(self, host: str, port: int, exchange: Exchange) -> Sequence[str]:
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            addresses = self._lookup(host, port, exchange.connect_time())
        return list(dict.fromkeys(addresses))


def system_addresses(host: str, port: int) -> list[str]:
    """Ask the operating system's resolver, in the order it prefers (RFC 6724)."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Lookup:
    """A resolver with a time limit and a bound on lookups under way.

    The system's resolver cannot be interrupted, so it runs in a thread of its own that is left behind when it is
    late. Left-behind threads keep their place, so a dead name server costs at most ``places`` threads.
    """

    def __init__(self, resolve: Resolver, places: int = 8) -> None:
        self._resolve = resolve
        self._places = threading.BoundedSemaphore(places)

    def __call__(self, host: str, port: int, timeout: float) -> Sequence[str]:
        """Resolve within ``timeout`` seconds. Raises TimeoutError, or what the resolver raised."""
        ends_at = time.monotonic() + timeout
        if not self._places.acquire(timeout=timeout):
            raise TimeoutError
        found: list[Sequence[str]] = []
        failed: list[Exception] = []
        thread = threading.Thread(
            target=self._run, args=(host, port, found, failed), name="jobtrack-lookup", daemon=True
        )
        thread.start()
        thread.join(max(0.0, ends_at - time.monotonic()))
        if failed:
            raise failed[0]
        if not found:
            raise TimeoutError
        return found[0]

    def _run(self, host: str, port: int, found: list[Sequence[str]], failed: list[Exception]) -> None:
        try:
            found.append(self._resolve(host, port))
        except Exception as error:  # noqa: BLE001 - carried to the waiting thread, which raises it
            failed.append(error)
        finally:
            self._places.release()
