"""A provider that always says `running`, too fast to be what is measured: ``python -m benchmarks.provider PORT``.

``GET /count`` answers how many status requests it has answered.
"""

from __future__ import annotations

import asyncio
import sys


class Provider(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, just enough for GET requests without a body."""

    answered = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            self._write(_answer(request.split(b" ", 2)[1].decode()))

    def _write(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.write(head + body)


def _answer(path: str) -> bytes:
    if path == "/count":
        return b"%d" % Provider.answered
    Provider.answered += 1
    job = path.rsplit("/", 1)[-1]
    return b'{"id": "%s", "status": "running", "progress": "40 %%"}' % job.encode()


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
