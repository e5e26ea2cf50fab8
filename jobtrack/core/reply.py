"""The raw answer of a provider, before anybody says what it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Sent(StrEnum):
    """Whether the first byte of a request can have reached the provider (R-SUB-2)."""

    NEVER = "never"  # proven: failed before sending
    MAYBE = "maybe"  # it may have arrived; the outcome of a write is unknown


class Trouble(StrEnum):
    """Why there is no answer."""

    DNS = "dns"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS = "tls"
    WRITE = "write"
    READ_TIMEOUT = "read_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    CONNECTION_LOST = "connection_lost"  # reset, closed, shorter than Content-Length
    PROTOCOL = "protocol"  # not HTTP, headers too large
    TARGET_DENIED = "target_denied"  # refused by the egress guard, nothing sent
    CREDENTIAL = "credential"  # a reference could not be resolved, nothing sent
    LATE = "late"  # the worker stood still after its claim and gave up, nothing sent


class Flaw(StrEnum):
    """Why the body of an answer cannot be read although there is an answer."""

    OVERSIZED = "oversized"  # more bytes than the limit, on the wire or unpacked
    UNDECODABLE = "undecodable"  # Content-Encoding that cannot be undone


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An HTTP answer. ``headers`` keeps order and repeats; names as sent."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    flaw: Flaw | None = None
    elapsed_s: float = 0.0  # monotonic, from claim of the connection to the last byte

    def header(self, name: str) -> str | None:
        """The first value of a header, case-insensitively; None if it is absent."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """No HTTP answer. ``detail`` is a short sentence without addresses' queries, credentials or bodies."""

    sent: Sent
    trouble: Trouble
    detail: str = ""
    elapsed_s: float = 0.0


Reply = Answered | NoAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request, ready to send except for credentials. Built purely from a table and an operation."""

    operation_id: str
    fence: int  # with the operation id it names this very request (sent as X-Request-Id)
    provider: str
    account: str
    method: str
    url: str = field(repr=False)  # its query may hold a secret handle
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    credentials: bool = True  # False: nothing of the account goes along (storage hosts)
    origins: tuple[str, ...] = ()  # narrows the table's hosts to these resolved origins; (): every host of the table
