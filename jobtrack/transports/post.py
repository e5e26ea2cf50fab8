"""One POST to an address that the site chose, for notices to people. The same guard as for providers (R-SEC-1).

Whoever knows such an address may post there, so no detail ever repeats it: not even its host.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import certifi
import httpcore
import httpx

from jobtrack import __version__
from jobtrack.core import sentences_request as say
from jobtrack.core.reply import Answered, NoAnswer, Trouble
from jobtrack.core.table import RequestLimits
from jobtrack.transports import quiet
from jobtrack.transports.bodies import head
from jobtrack.transports.egress import EgressPolicy, TargetDenied, check_text, is_loopback_host
from jobtrack.transports.network import Exchange, Lookup, PinnedBackend, Resolver, current, system_addresses
from jobtrack.transports.tls import context
from jobtrack.transports.troubles import no_answer

LIMITS: Final = RequestLimits(total=timedelta(seconds=10))

_DENIED: Final = say.RECEIVER_DENIED.of()


def post(
    url: str,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    *,
    policy: EgressPolicy,
    limits: RequestLimits = LIMITS,
    ca_file: str | None = None,
    resolve: Resolver = system_addresses,
) -> Answered | NoAnswer:
    """Send ``body`` once, over a connection of its own. No redirect is followed, no proxy used.

    Args:
        url: https; or plain http to this machine, if ``policy`` allows loopback.
        policy: what may be reached besides public addresses.
        limits: of the whole, name resolution included.
        ca_file: PEM file of the authorities to trust; None: those of certifi.
        resolve: name resolution; for tests.

    Returns:
        Status and headers, whatever they are; never raises for what a peer does. ``detail`` names no address.
    """
    quiet.install()
    exchange, begun = Exchange(limits, time.monotonic()), time.monotonic()
    token = current.set(exchange)
    try:
        target, loopback = _target(url, policy)
        backend = PinnedBackend(policy=policy, loopback=loopback, lookup=Lookup(resolve))
        prepared = _prepared(target, body, headers)
        with httpcore.ConnectionPool(
            ssl_context=context(ca_file or certifi.where()), max_keepalive_connections=0, network_backend=backend
        ) as pool:
            response = pool.handle_request(prepared)
            try:
                return head(response)  # what the body says changes nothing
            finally:
                response.close()
    except Exception as error:  # noqa: BLE001 - `troubles` gives every error a meaning
        failed = no_answer(error, exchange, where="POST", elapsed_s=time.monotonic() - begun)
        if failed is None:
            raise error.with_traceback(None) from None  # frames below hold the address
        if failed.trouble is not Trouble.TARGET_DENIED:
            return failed
        return NoAnswer(sent=failed.sent, trouble=failed.trouble, detail=_DENIED, elapsed_s=failed.elapsed_s)
    finally:
        current.reset(token)


def _target(text: str, policy: EgressPolicy) -> tuple[httpx.URL, bool]:
    """The address as it is sent, and whether it is this very machine. Raises TargetDenied."""
    check_text(text)
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise TargetDenied(say.URL_UNREADABLE.of()) from None
    host = url.raw_host.decode("ascii")
    loopback = policy.allow_loopback and is_loopback_host(host)
    if not host or url.fragment or (url.scheme != "https" and not (url.scheme == "http" and loopback)):
        raise TargetDenied(say.URL_NOT_HTTPS.of())
    return url, loopback


def _prepared(url: httpx.URL, body: bytes, headers: Sequence[tuple[str, str]]) -> httpcore.Request:
    own = [("User-Agent", f"jobtrack/{__version__}"), ("Accept", "*/*"), ("Accept-Encoding", "identity")]
    request = httpx.Request("POST", url, headers=[*headers, *own], content=body)
    return httpcore.Request(
        "POST",
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=body,
    )
