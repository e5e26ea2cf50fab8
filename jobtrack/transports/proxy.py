"""A declared proxy: its address, and what it may be asked to reach (R-SEC-1).

Every request through a proxy is a tunnel of its own (``CONNECT``): the proxy sees the provider's host and port and
its own credential, and never the provider's, which goes through TLS inside the tunnel.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

import httpx

from jobtrack.core import sentences_request as say
from jobtrack.errors import ConfigurationError
from jobtrack.transports.credentials import REFERENCE_KINDS
from jobtrack.transports.egress import TargetDenied, is_loopback_host

_LAST_PORT = 65535
_ADDRESS = re.compile(
    r"http://(?:(?P<user>[^\s:@/?#]+):(?P<password>[^\s:@/?#]*)@)?"
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})/?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """Where a tunnel starts."""

    host: str  # a name or an address, without brackets
    port: int
    login: tuple[bytes, bytes] | None = field(default=None, repr=False)  # user and password; None: it asks for none


def read_proxy(text: str) -> Proxy:
    """Read ``http://[user:password@]host:port``; user and password are percent-encoded.

    Raises:
        ConfigurationError: The text is something else. It is not repeated: it may hold a password.
    """
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _LAST_PORT:
        raise ConfigurationError(say.PROXY_FORM.of())
    user = match["user"]
    return Proxy(
        host=match["host"].strip("[]"),
        port=int(match["port"]),
        login=None if user is None else (unquote_to_bytes(user), unquote_to_bytes(match["password"])),
    )


def check_declared(text: str) -> str:
    """A proxy as settings may declare it: a plain address, or a reference to one that holds a user and password.

    Returns:
        The text.

    Raises:
        ConfigurationError: It is neither, or it holds the password itself. The text is not repeated.
    """
    kind, _, name = text.partition(":")
    if kind in REFERENCE_KINDS and name:
        return text
    if read_proxy(text).login is not None:
        raise ConfigurationError("a proxy's user and password do not stand in settings; write a reference to the whole")
    return text


def check_tunnel(url: httpx.URL) -> None:
    """Judge what a proxy is asked to reach, as the address behind the name cannot be seen; raises TargetDenied."""
    host = url.raw_host.decode("ascii")
    if url.scheme != "https":
        raise TargetDenied(say.PROXY_HTTP.of())
    if is_loopback_host(host) or _is_address(host):
        raise TargetDenied(say.PROXY_NAMES.of())


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
