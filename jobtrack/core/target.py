"""Which addresses a table allows: strict origins, compared exactly (R-SEC-1, INV-30).

URL parsers disagree about odd input, so odd input is refused before any parser sees it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, urljoin, urlsplit

from jobtrack.core.table import ProviderTable

_ODD = re.compile(r"[^\x21-\x7e]|[\\<>\"^`{|}]")
_HOST = re.compile(r"\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_NETLOC = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]*))?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LAST_PORT = 65535
_LOOPBACK = re.compile(r"localhost|127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}|\[::1\]")
_DEFAULT_PORT = {"https": 443, "http": 80}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL = re.compile(r"(?i)%(?:[01][0-9a-f]|7f)")
_BARE = re.compile(r"[a-z]+://[^/?#]+", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def origin_of(url: str, *, loopback: bool = False) -> str:
    """The origin ``scheme://host[:port]`` of an absolute URL, lower case, without a default port.

    Args:
        url: Untrusted.
        loopback: Accept plain http to a loopback host as well.

    Returns:
        "" if the URL is not strictly https (or allowed loopback http): user information, percent or a trailing dot
        in the host, odd ports, dot segments, spaces, backslashes, control or non-ASCII characters.
    """
    parts = _split(url)
    if parts is None or parts.scheme not in _DEFAULT_PORT or _dotted(parts.path):
        return ""
    match = _NETLOC.fullmatch(parts.netloc.lower())
    if match is None or not _HOST.fullmatch(match["host"]) or ".." in match["host"]:
        return ""
    if parts.scheme == "http" and not (loopback and _LOOPBACK.fullmatch(match["host"])):
        return ""
    port = _port(match["port"], _DEFAULT_PORT[parts.scheme])
    return "" if port is None else f"{parts.scheme}://{match['host']}{port}"


def _split(url: str) -> SplitResult | None:
    if _ODD.search(url):
        return None
    try:
        return urlsplit(url)
    except ValueError:  # brackets that hold no address
        return None


def _dotted(path: str) -> bool:
    segments = path.lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").split("/")
    return "." in segments or ".." in segments


def _port(text: str | None, default: int) -> str | None:
    """The port as a suffix; "" for the default; None if it is odd."""
    if text is None:
        return ""
    if not _PORT.fullmatch(text) or int(text) > _LAST_PORT:
        return None
    return "" if int(text) == default else f":{text}"


def resolve(reference: str, base: str) -> str:
    """A provider's URL reference as an absolute URL without fragment (RFC 3986, 5); not judged yet.

    Args:
        reference: Untrusted: absolute, or relative with or without a leading slash.
        base: The URL that was asked; one of ours.

    Returns:
        "" if it is empty or odd: another authority without a scheme, dot segments, even encoded ones, backslashes,
        spaces, control (even encoded) or non-ASCII characters.
    """
    text = reference.partition("#")[0]
    if not text or _ODD.search(reference) or _CONTROL.search(text) or text.startswith("//"):
        return ""
    if _SCHEME.match(text):
        return text
    return "" if _dotted(text.partition("?")[0]) else urljoin(base, text)


def _origins(hosts: Iterable[str], params: Mapping[str, str], loopback: bool) -> frozenset[str]:
    """Host templates as origins; one that cannot be filled, or is more than an origin, allows nothing."""
    filled = (_PLACEHOLDER.sub(lambda match: params.get(match[1], " "), host) for host in hosts)
    return frozenset(origin_of(url, loopback=loopback) for url in filled if _BARE.fullmatch(url)) - {""}


def origins_of(hosts: Iterable[str], table: ProviderTable, params: Mapping[str, str]) -> frozenset[str]:
    """Host templates of a table as origins, with parameters filled in. Never raises."""
    return _origins(hosts, params, table.allow_loopback)


def allowed_origins(table: ProviderTable, params: Mapping[str, str]) -> frozenset[str]:
    """Origins that requests and credentials may go to, with parameters filled in. Never raises."""
    return _origins(table.hosts, params, table.allow_loopback)


def target_allowed(url: str, table: ProviderTable, params: Mapping[str, str]) -> bool:
    """Whether a status request may be sent to this URL (a stored status URL, a redirect target)."""
    return _allowed(url, table, allowed_origins(table, params))


def result_allowed(url: str, table: ProviderTable, params: Mapping[str, str]) -> bool:
    """Whether a result may be at this URL: the table's hosts and its result hosts."""
    hosts = (*table.hosts, *table.status.result.hosts)
    return _allowed(url, table, _origins(hosts, params, table.allow_loopback))


def _allowed(url: str, table: ProviderTable, origins: frozenset[str]) -> bool:
    return origin_of(url, loopback=table.allow_loopback) in origins  # "" is never an origin
