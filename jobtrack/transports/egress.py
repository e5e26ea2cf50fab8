"""The guard of everything that leaves: which URL may be asked, and which address may be connected to (R-SEC-1).

Two checks, both before the first byte is sent and neither replacing the other:

* ``target`` reads the request's URL once and returns the very object that is sent, if its origin is one of the
  table's hosts. URL parsers disagree, so nothing is decided on a second parse (INV-30).
* ``check_address`` judges an IP address the name resolved to; the connection is then made to exactly this address
  (INV-31).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

import httpx

from jobtrack.core import sentences_request as say
from jobtrack.core.table import ProviderTable
from jobtrack.errors import ConfigurationError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TargetDenied(Exception):
    """Internal: this request must not be sent. The text names the rule, never the query or a credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """What the operator of this site opens, besides public addresses."""

    allow_loopback: bool = False  # a table must ask for it too (`allow_loopback`)
    allow_private: tuple[Network, ...] = ()  # otherwise refused networks that may be connected to, for all tables

    @classmethod
    def of(cls, *, allow_loopback: bool = False, allow_private: Iterable[str] = ()) -> EgressPolicy:
        """Build a policy from settings.

        Args:
            allow_loopback: Whether tables that ask for it may reach this machine over plain http.
            allow_private: Networks in CIDR form, such as ``10.20.0.0/16``.

        Raises:
            ConfigurationError: An entry is no network; the message names it.
        """
        return cls(allow_loopback=allow_loopback, allow_private=tuple(_network(text) for text in allow_private))

    def loopback_for(self, table: ProviderTable) -> bool:
        """True if this table may reach this machine: both the table and the operator say so."""
        return self.allow_loopback and table.allow_loopback


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigurationError(
            f"ALLOW_PRIVATE: {text!r} is not a network; write CIDR such as '10.20.0.0/16'"
        ) from error


# --- the URL ------------------------------------------------------------------------------------------

# Visible ASCII without the backslash: everything parsers quarrel about is outside.
_PLAIN = re.compile(r"[!-\[\]-~]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# What a placeholder in a host may stand for: one DNS label (or a port).
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
# A host ending so is an IPv4 address to most resolvers ("2130706433", "0x7f.1", "127.1").
_NUMERIC = re.compile(r"\d+|0x[0-9a-f]*")
_LAST_PORT = 65535
_DEFAULT_PORT = {"https": 443, "http": 80}


def hosts_for(table: ProviderTable, *, origins: tuple[str, ...], credentials: bool) -> tuple[str, ...]:
    """The origins, as the table writes them, that a request may go to.

    Args:
        table: Says which hosts there are.
        origins: Of this request. Only one that names its origins may leave the table's ``hosts``, for a result.
        credentials: Whether the account's credential goes along: then not to hosts of results and redirects, but to
            those that the table gives it to.
    """
    fetch = table.result
    if not origins:
        return table.hosts
    if credentials:
        return (*table.hosts, *(fetch.credential_hosts if fetch else ()))
    further = (*fetch.credential_hosts, *fetch.redirects) if fetch else ()
    return (*table.hosts, *table.status.result.hosts, *further)


def target(
    text: str,
    table: ProviderTable,
    policy: EgressPolicy,
    origins: tuple[str, ...] = (),
    *,
    credentials: bool = True,
) -> httpx.URL:
    """Read the URL of a request and return the object that is to be sent.

    Args:
        text: The absolute URL.
        table: Its ``hosts`` are the only origins a request may go to (R-SEC-1).
        policy: Loopback needs both its and the table's consent.
        origins: Resolved origins that narrow the table's hosts; empty: every host of the table.
        credentials: Whether the account's credential goes along.

    Raises:
        TargetDenied: The URL is not one the table approves, or parsers could read it in different ways.
    """
    check_text(text)
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise TargetDenied(say.URL_UNREADABLE.of()) from None
    check_url(url, table, policy, origins, credentials=credentials)
    return url


def check_text(text: str) -> None:
    """Refuse a URL that parsers could read in different ways, before anything parses it; raises TargetDenied."""
    if not _PLAIN.fullmatch(text):
        raise TargetDenied(say.URL_ODD.of())
    before_query = text.partition("?")[0]
    if "@" in before_query.partition("://")[2].partition("/")[0]:
        raise TargetDenied(say.URL_USER.of())
    _check_path(before_query)


def _check_path(before_query: str) -> None:
    """Refuse what would be resolved on the way. Judged on the raw text, as parsing removes dot segments."""
    plain = unquote(before_query, errors="replace")
    if not {".", ".."}.isdisjoint(re.split(r"[/\\]", plain)):
        raise TargetDenied(say.URL_DOTS.of())
    if _CONTROL.search(plain):
        raise TargetDenied(say.URL_CONTROL.of())


def check_url(
    url: httpx.URL,
    table: ProviderTable,
    policy: EgressPolicy,
    origins: tuple[str, ...] = (),
    *,
    credentials: bool = True,
) -> None:
    """Judge a parsed URL by its scheme, host and port; raises TargetDenied."""
    if url.fragment:
        raise TargetDenied(say.URL_FRAGMENT.of())
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        raise TargetDenied(say.URL_PORT.of())
    host = url.raw_host.decode("ascii")
    origin = origin_of(url)
    hosts = hosts_for(table, origins=origins, credentials=credentials)
    if _NUMERIC.fullmatch(host.rpartition(".")[2]) and not _is_listed_address(host, hosts):
        raise TargetDenied(say.HOST_NUMBER.of())
    if not any(_pattern(entry).fullmatch(origin) for entry in hosts):
        raise TargetDenied(say.NOT_A_HOST.of(host=origin))
    if origins and origin not in {_canonical(entry) for entry in origins}:
        raise TargetDenied(say.NOT_AN_ORIGIN.of(host=origin))
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback_host(host) and policy.loopback_for(table)):
        raise TargetDenied(say.PLAIN_HTTP.of())


def origin_of(url: httpx.URL) -> str:
    """``scheme://host[:port]`` in lower case, without the scheme's default port."""
    host = url.raw_host.decode("ascii")
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}" + ("" if url.port is None else f":{url.port}")


def is_loopback_host(host: str) -> bool:
    """True for a host that names this machine by itself: ``localhost`` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_listed_address(host: str, hosts: tuple[str, ...]) -> bool:
    """True for a proper IPv4 address the table lists word for word; no placeholder stands for a number."""
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return host in {entry.partition("://")[2].rstrip("/").partition(":")[0] for entry in hosts}


def _canonical(origin: str) -> str:
    scheme, _, rest = origin.rstrip("/").lower().partition("://")
    return f"{scheme}://{rest.removesuffix(f':{_DEFAULT_PORT.get(scheme)}')}"


@lru_cache(maxsize=1024)
def _pattern(origin: str) -> re.Pattern[str]:
    """An origin of a table as a linear pattern: placeholders become one label, the rest stands for itself."""
    scheme, separator, rest = origin.rstrip("/").partition("://")
    parts = re.split(r"(\{[^{}]*\})", _canonical(origin).partition("://")[2])
    body = "".join(_LABEL if part.startswith("{") else re.escape(part) for part in parts)
    return re.compile(re.escape(scheme.lower() + separator) + body if rest else r"(?!)")


# --- the address ----------------------------------------------------------------------------------------

# IANA special-purpose registries (RFC 6890 and successors), written out because `ipaddress.is_global` changed
# between Python releases. 168.63.129.16 is a public number that every Azure machine reaches as its host.
_REFUSED_V4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
# Outside 2000::/3 nothing is public: loopback, mapped (::ffff:0:0/96), compatible, NAT64, unique and link local,
# multicast. Inside it these are not, among them Teredo and 6to4, which carry an IPv4 address.
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6 = tuple(ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


def check_address(text: str, *, host: str, policy: EgressPolicy, loopback: bool) -> None:
    """Judge one address a host resolved to (INV-31).

    Args:
        text: The address as the resolver gave it.
        host: The name it was resolved from; ``localhost`` must be this machine.
        policy: Networks the operator opened.
        loopback: Whether this request may reach this machine.

    Raises:
        TargetDenied: The address is not public and not opened.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise TargetDenied(say.NO_ADDRESS.of(host=host)) from None
    if host == "localhost" and not address.is_loopback:
        raise TargetDenied(say.LOCALHOST_ELSEWHERE.of())
    if _is_public(address) or (loopback and address.is_loopback):
        return
    if not any(address in network for network in policy.allow_private):
        raise TargetDenied(say.NOT_PUBLIC.of(host=host))


def _is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    # A zone (`fe80::1%eth0`) belongs to link-local addresses only, which are outside 2000::/3.
    return address in _PUBLIC_V6 and not any(address in network for network in _REFUSED_V6)
