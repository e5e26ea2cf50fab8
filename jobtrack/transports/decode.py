"""Undo Content-Encoding without trusting the sender: memory never exceeds the limit (INV-34).

httpx decompresses a whole network chunk at once, which lets half a megabyte grow to hundreds. Here each step may
only produce a little, and no more than is left of the limit, while the rest of the input waits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

Take = Callable[[bytes], object]

_GZIP = zlib.MAX_WBITS | 16
_ZLIB = zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS
_STEP = 64 * 1024  # most bytes unpacked at once
_ZLIB_METHOD = 0x08  # low half of a zlib header's first byte; a raw stream does not begin so


class TooLarge(Exception):
    """Internal: the answer is longer than its limit, on the wire or unpacked."""


class Undecodable(Exception):
    """Internal: the encoding is unknown, stacked, damaged or incomplete."""


class Decoder(Protocol):
    def feed(self, data: bytes) -> None:
        """Take the next bytes from the wire. Raises TooLarge, Undecodable."""

    def finish(self) -> None:
        """Nothing more comes. Raises Undecodable if the stream is not complete."""


class Plain:
    """No encoding: pass on at most ``limit`` bytes."""

    def __init__(self, limit: int, take: Take) -> None:
        self._left = limit
        self._take = take

    def feed(self, data: bytes) -> None:
        if len(data) > self._left:
            raise TooLarge
        self._left -= len(data)
        self._take(data)

    def finish(self) -> None:
        """Any end is an end; whether it came too early is for HTTP to say."""


class Inflate:
    """gzip (also several members in a row, RFC 1952) or deflate, unpacked to at most ``limit`` bytes."""

    def __init__(self, limit: int, take: Take, *, gzip: bool) -> None:
        self._left = limit
        self._wire_left = limit  # bytes from the wire count too, as empty members unpack to nothing
        self._begun = False
        self._take = take
        self._gzip = gzip
        self._stream = zlib.decompressobj(_GZIP) if gzip else None

    def feed(self, data: bytes) -> None:
        self._wire_left -= len(data)
        if self._wire_left < 0:
            raise TooLarge
        self._begun = self._begun or bool(data)
        more = bool(data)
        try:
            while more:
                data, more = self._step(data)
        except zlib.error as error:
            raise Undecodable from error

    def _step(self, data: bytes) -> tuple[bytes, bool]:
        """Unpack some of ``data``; returns what has not been used yet, and whether to go on."""
        if self._stream is None:
            # "deflate" means zlib (RFC 9110 8.4.1.2), but some senders leave its header out.
            self._stream = zlib.decompressobj(_ZLIB if data[0] & 0x0F == _ZLIB_METHOD else _RAW)
        elif self._stream.eof:
            if not self._gzip:
                raise Undecodable
            self._stream = zlib.decompressobj(_GZIP)
        most = min(_STEP, self._left + 1)
        unpacked = self._stream.decompress(data, most)
        if len(unpacked) > self._left:
            raise TooLarge
        self._left -= len(unpacked)
        self._take(unpacked)
        if self._stream.eof:
            return self._stream.unused_data, bool(self._stream.unused_data)
        # A full step may leave bytes inside the stream although all of the input is used.
        return self._stream.unconsumed_tail, bool(self._stream.unconsumed_tail) or len(unpacked) == most

    def finish(self) -> None:
        if self._begun and not (self._stream is not None and self._stream.eof):
            raise Undecodable


def decoder(encodings: list[str], limit: int, take: Take) -> Decoder:
    """The decoder for the values of an answer's Content-Encoding headers.

    Args:
        encodings: The header's values, in order; empty: none was sent.
        limit: Most bytes, both on the wire and unpacked.
        take: Gets the body, piece by piece.

    Raises:
        Undecodable: The encoding is not identity, gzip or deflate, or several are stacked.
    """
    words = [word for value in encodings for raw in value.split(",") if (word := raw.strip().lower())]
    match [word for word in words if word != "identity"]:
        case []:
            return Plain(limit, take)
        case ["gzip" | "x-gzip"]:
            return Inflate(limit, take, gzip=True)
        case ["deflate"]:
            return Inflate(limit, take, gzip=False)
        case _:
            raise Undecodable
