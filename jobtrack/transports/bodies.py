"""Bodies of answers: read whole within a limit, or streamed into a sink (INV-11, INV-34)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpcore

from jobtrack.core.reply import Answered, Flaw
from jobtrack.ports import Sink
from jobtrack.transports.decode import TooLarge, Undecodable, decoder
from jobtrack.transports.network import Exchange, TooManyBytes

Receive = Callable[[httpcore.Response, Answered, Exchange], tuple[bytes, Flaw | None]]
"""Takes the body of an answer whose head is there: what is kept of it, and why the rest could not be."""

STREAMED = frozenset({200, 206})
"""Codes whose body is the content that was asked for."""


class SinkFailed(Exception):
    """Internal: carries what a sink raised past the place where errors of the peer are told."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def head(response: httpcore.Response) -> Answered:
    """Status and headers of an answer."""
    return Answered(
        status=response.status, headers=tuple((_text(name), _text(value)) for name, value in response.headers)
    )


def whole(response: httpcore.Response, _head: Answered, exchange: Exchange) -> tuple[bytes, Flaw | None]:
    """Read the body within the limit of the exchange. A flawed one is given up, unread bytes and all."""
    body = bytearray()
    exchange.permit_body(exchange.limits.max_bytes)
    flaw = _read(response, exchange.limits.max_bytes, body.extend)
    return (b"", flaw) if flaw else (bytes(body), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """A ``Receive`` that hands the content on as it comes. Other answers are read whole, within the usual limit."""

    sink: Sink
    max_bytes: int  # of the content, on the wire and unpacked

    def __call__(self, response: httpcore.Response, answer: Answered, exchange: Exchange) -> tuple[bytes, Flaw | None]:
        if answer.status not in STREAMED:
            return whole(response, answer, exchange)
        self._told(self.sink.begin, answer)
        exchange.permit_body(self.max_bytes)
        if answer.status == 206 and _encoded(response):
            return b"", Flaw.UNDECODABLE  # a part of packed bytes continues nothing that was unpacked
        return b"", _read(response, self.max_bytes, lambda chunk: self._told(self.sink.feed, chunk))

    def _told(self, method: Callable[[Any], None], value: object) -> None:
        try:
            method(value)
        except Exception as error:  # noqa: BLE001 - carried to the caller, who gets it as it is
            raise SinkFailed(error) from None


def _read(response: httpcore.Response, limit: int, take: Callable[[bytes], object]) -> Flaw | None:
    try:
        if (_declared_length(response) or 0) > limit:
            return Flaw.OVERSIZED
        unpacked = decoder(_values(response, b"content-encoding"), limit, take)
        for chunk in response.iter_stream():
            unpacked.feed(chunk)
        unpacked.finish()
    except (TooLarge, TooManyBytes):
        return Flaw.OVERSIZED
    except Undecodable:
        return Flaw.UNDECODABLE
    return None


def _encoded(response: httpcore.Response) -> bool:
    return any(value.strip().lower() not in ("", "identity") for value in _values(response, b"content-encoding"))


def _declared_length(response: httpcore.Response) -> int | None:
    values = _values(response, b"content-length")
    return int(values[0]) if values and values[0].isdigit() else None


def _values(response: httpcore.Response, name: bytes) -> list[str]:
    return [_text(value) for key, value in response.headers if key.lower() == name]


def _text(raw: bytes) -> str:
    """Header text: UTF-8 if it is, else byte for byte (RFC 9110 5.5). Never fails."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
