"""A raw-socket peer that does whatever a script says, and keeps its own log of connections and requests."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from jobtrack.core.place import RequestSpec
from jobtrack.core.reply import Request
from jobtrack.core.table import Auth, ProviderTable, RequestLimits, StatusSpec

LIMITS = RequestLimits(
    connect=timedelta(seconds=5), read=timedelta(seconds=5), total=timedelta(seconds=10), max_bytes=64 * 1024
)
SHORT_STEP = replace(LIMITS, connect=timedelta(seconds=0.3), read=timedelta(seconds=0.3))
SHORT_TOTAL = replace(LIMITS, total=timedelta(seconds=0.5))
GENEROUS = 1.5  # seconds a loaded machine may add to a limit


class Peer:
    """One accepted connection, seen from the server."""

    def __init__(self, sock: socket.socket, server: FaultServer) -> None:
        self.sock = sock
        self.server = server
        self._buffer = b""

    def request(self) -> bytes:
        """Read one request, body included, and log it. Raises ConnectionError when the client is gone."""
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        while len(rest) < length:
            self._more()
            rest = self._buffer[len(head) + 4 :]
        self._buffer = rest[length:]
        self.server.requests.append(head + b"\r\n\r\n" + rest[:length])
        return self.server.requests[-1]

    def _more(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError
        self._buffer += data

    def say(self, data: bytes) -> None:
        self.sock.sendall(data)

    def trickle(self, data: bytes, every: float = 0.05) -> None:
        for index in range(len(data)):
            self.say(data[index : index + 1])
            time.sleep(every)

    def reset(self) -> None:
        """Hang up with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def stay(self) -> None:
        """Say nothing more until the client hangs up; log that it did."""
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass
        self.server.hung_up.set()


Script = Callable[[Peer], None]


class FaultServer:
    """Listens on loopback; each connection runs ``script`` in a thread of its own."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.script = script
        self.requests: list[bytes] = []
        self.connects = 0
        self.server_names: list[str | None] = []
        self.hung_up = threading.Event()
        self._tls = tls
        if tls is not None:
            tls.sni_callback = lambda _sock, name, _context: self.server_names.append(name)
        self._listener = socket.create_server((host, 0))
        self.port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connects += 1
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError), sock:
                if self._tls is not None:
                    sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.add(sock)
                with sock:
                    self.script(Peer(sock, self))
        finally:
            self._open.discard(sock)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)


def ok(body: bytes = b'{"status":"running"}', *headers: bytes) -> bytes:
    lines = (b"HTTP/1.1 200 OK", b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def answers(*replies: bytes) -> Script:
    """Answer request after request; the last reply is repeated."""

    def script(peer: Peer) -> None:
        left = list(replies)
        while True:
            peer.request()
            peer.say(left.pop(0) if len(left) > 1 else left[0])

    return script


def table(
    *hosts: str,
    auth: Auth | None = None,
    allow_loopback: bool = True,
    limits: RequestLimits = LIMITS,
    name: str = "acme",
) -> ProviderTable:
    return ProviderTable(
        id=name,
        name=name,
        docs="https://docs.example",
        revision=1,
        digest="0" * 64,
        text="",
        hosts=hosts,
        status=StatusSpec(request=RequestSpec(path="/v1/jobs/{job_id}")),
        auth=auth or Auth(),
        allow_loopback=allow_loopback,
        limits=limits,
    )


def request(url: str, **changes: object) -> Request:
    given = {"operation_id": "op1", "fence": 1, "provider": "acme", "account": "default", "method": "GET", "url": url}
    return Request(**(given | changes))


def resolves_to(*addresses: str):
    """A resolver that knows one answer."""

    def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


def gzip_of_spaces(mib: int) -> bytes:
    """A bomb: so many MiB of spaces, packed to a thousandth. An eighth is packed and repeated; there is no trailer."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    part = packer.compress(b" " * (mib << 17)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + part * 8
