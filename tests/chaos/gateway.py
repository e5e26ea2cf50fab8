"""A door before a broker that is not ours to stop: shut, it cuts every connection and takes no new one."""

from __future__ import annotations

import contextlib
import socket
import threading


class Gateway:
    """Forwards a port of loopback to a broker while it is open.

    Args:
        host: of the broker.
        port: of the broker.
    """

    def __init__(self, host: str, port: int) -> None:
        self._broker = host, port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._accept(self._listener)

    def shut(self) -> int:
        """Behave like a broker that has ended; returns how many connections were cut."""
        with self._lock:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _end(*pair)
        return len(pairs)

    def open(self) -> None:
        """Take connections again, at the same port."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._accept(self._listener)

    def _accept(self, listener: socket.socket) -> None:
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return  # shut
            broker = socket.create_connection(self._broker)
            with self._lock:
                self._pairs.append((client, broker))
            for source, target in ((client, broker), (broker, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _end(source, target)


def _end(*sockets: socket.socket) -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
