"""Undo Content-Encoding without trusting the sender: memory never exceeds the limit (INV-34).

httpx decompresses a whole network chunk at once, which lets half a megabyte grow to hundreds. Here each step may
only produce what is left of the limit, and the rest of the input waits.
"""

from __future__ import annotations

import zlib
from typing import Protocol

_GZIP = zlib.MAX_WBITS | 16
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_ZLIB_METHOD = 0x08  # low half of a zlib header's first byte; a raw stream does not begin so


class TooLarge(Exception):
    """Internal: the answer is longer than its limit, on the wire or unpacked."""


class Undecodable(Exception):
    """Internal: the encoding is unknown, stacked, damaged or incomplete."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> None:
        """Take the next bytes from the wire. Raises TooLarge, Undecodable."""

    def finish(self) -> bytes:
        """The whole body. Raises Undecodable if the stream is not complete."""


class Plain:
    """No encoding: collect at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        if len(self._body) + len(data) > self._limit:
            raise TooLarge
        self._body += data

    def finish(self) -> bytes:
        return bytes(self._body)


class Inflate:
    """gzip (also several members in a row, RFC 1952) or deflate, unpacked to at most ``limit`` bytes."""

    def __init__(self, limit: int, *, gzip: bool) -> None:
        self._limit = limit
        self._gzip = gzip
        self._stream = zlib.decompressobj(_GZIP) if gzip else None
        self._body = bytearray()
        self._taken = 0  # bytes from the wire; they count too, as empty members unpack to nothing

    def feed(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > self._limit:
            raise TooLarge
        try:
            while data:
                data = self._step(data)
        except zlib.error as error:
            raise Undecodable from error

    def _step(self, data: bytes) -> bytes:
        """Unpack some of ``data``; returns what has not been used yet."""
        if self._stream is None:
            # "deflate" means zlib (RFC 9110 8.4.1.2), but some senders leave its header out.
            self._stream = zlib.decompressobj(_ZLIB if data[0] & 0x0F == _ZLIB_METHOD else _RAW)
        elif self._stream.eof:
            if not self._gzip:
                raise Undecodable
            self._stream = zlib.decompressobj(_GZIP)
        self._body += self._stream.decompress(data, self._limit - len(self._body) + 1)
        if len(self._body) > self._limit:
            raise TooLarge
        return self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail

    def finish(self) -> bytes:
        if self._taken and not (self._stream is not None and self._stream.eof):
            raise Undecodable
        return bytes(self._body)


def decoder(encodings: list[str], limit: int) -> Decoder:
    """The decoder for the values of an answer's Content-Encoding headers.

    Args:
        encodings: The header's values, in order; empty: none was sent.
        limit: Most bytes, both on the wire and unpacked.

    Raises:
        Undecodable: The encoding is not identity, gzip or deflate, or several are stacked.
    """
    words = [word for value in encodings for raw in value.split(",") if (word := raw.strip().lower())]
    match [word for word in words if word != "identity"]:
        case []:
            return Plain(limit)
        case ["gzip" | "x-gzip"]:
            return Inflate(limit, gzip=True)
        case ["deflate"]:
            return Inflate(limit, gzip=False)
        case _:
            raise Undecodable
