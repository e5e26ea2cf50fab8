"""The one place where foreign errors get a meaning (style rule 10).

Rows are tried in order and the first match wins. ``TROUBLES`` lists every exception class of httpx and httpcore; a
test walks both libraries and fails if one is missing.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from types import MappingProxyType

import h11
import httpcore
import httpx

from jobtrack.core import sentences_request as say
from jobtrack.core.reply import NoAnswer, Sent, Trouble
from jobtrack.errors import CredentialError
from jobtrack.transports.egress import TargetDenied
from jobtrack.transports.network import Exchange, OutOfTime, Phase, TooManyBytes

logger = logging.getLogger(__name__)

_DETAIL = 500  # characters; a hostile URL may name a very long host

TROUBLES: Mapping[type, Trouble] = MappingProxyType(
    {
        # our own
        OutOfTime: Trouble.TOTAL_TIMEOUT,
        TargetDenied: Trouble.TARGET_DENIED,
        CredentialError: Trouble.CREDENTIAL,
        TooManyBytes: Trouble.PROTOCOL,  # of the head; too long a body is an answer with a flaw
        # time
        httpcore.ConnectTimeout: Trouble.CONNECT_TIMEOUT,
        httpcore.ReadTimeout: Trouble.READ_TIMEOUT,
        httpcore.WriteTimeout: Trouble.WRITE,
        httpcore.PoolTimeout: Trouble.CONNECT_TIMEOUT,
        httpcore.TimeoutException: Trouble.TOTAL_TIMEOUT,
        httpx.ConnectTimeout: Trouble.CONNECT_TIMEOUT,
        httpx.ReadTimeout: Trouble.READ_TIMEOUT,
        httpx.WriteTimeout: Trouble.WRITE,
        httpx.PoolTimeout: Trouble.CONNECT_TIMEOUT,
        httpx.TimeoutException: Trouble.TOTAL_TIMEOUT,
        # the connection
        httpcore.ConnectError: Trouble.CONNECT_REFUSED,
        httpcore.ReadError: Trouble.CONNECTION_LOST,
        httpcore.WriteError: Trouble.WRITE,
        httpcore.NetworkError: Trouble.CONNECTION_LOST,
        httpcore.ConnectionNotAvailable: Trouble.CONNECTION_LOST,
        httpx.ConnectError: Trouble.CONNECT_REFUSED,
        httpx.ReadError: Trouble.CONNECTION_LOST,
        httpx.WriteError: Trouble.WRITE,
        httpx.CloseError: Trouble.CONNECTION_LOST,
        httpx.NetworkError: Trouble.CONNECTION_LOST,
        # the protocol
        httpcore.RemoteProtocolError: Trouble.PROTOCOL,
        httpcore.LocalProtocolError: Trouble.PROTOCOL,
        httpcore.ProtocolError: Trouble.PROTOCOL,
        httpcore.UnsupportedProtocol: Trouble.TARGET_DENIED,
        httpcore.ProxyError: Trouble.CONNECT_REFUSED,
        httpx.RemoteProtocolError: Trouble.PROTOCOL,
        httpx.LocalProtocolError: Trouble.PROTOCOL,
        httpx.ProtocolError: Trouble.PROTOCOL,
        httpx.UnsupportedProtocol: Trouble.TARGET_DENIED,
        httpx.ProxyError: Trouble.CONNECT_REFUSED,
        httpx.DecodingError: Trouble.PROTOCOL,
        httpx.TooManyRedirects: Trouble.PROTOCOL,
        httpx.HTTPStatusError: Trouble.PROTOCOL,
        httpx.StreamConsumed: Trouble.PROTOCOL,
        httpx.StreamClosed: Trouble.PROTOCOL,
        httpx.ResponseNotRead: Trouble.PROTOCOL,
        httpx.RequestNotRead: Trouble.PROTOCOL,
        httpx.StreamError: Trouble.PROTOCOL,
        httpx.CookieConflict: Trouble.PROTOCOL,
        httpx.InvalidURL: Trouble.TARGET_DENIED,
        httpx.TransportError: Trouble.CONNECTION_LOST,
        httpx.RequestError: Trouble.CONNECTION_LOST,
        httpx.HTTPError: Trouble.PROTOCOL,
        h11.RemoteProtocolError: Trouble.PROTOCOL,
        h11.LocalProtocolError: Trouble.PROTOCOL,
        h11.ProtocolError: Trouble.PROTOCOL,
        # text that no request line or host name can hold
        UnicodeError: Trouble.PROTOCOL,
    }
)
"""What an error means, by class. Errors of sockets and TLS depend on the phase instead."""

_BY_PHASE: Mapping[Phase, Trouble] = MappingProxyType(
    {
        Phase.PREPARE: Trouble.PROTOCOL,
        Phase.RESOLVE: Trouble.DNS,
        Phase.CONNECT: Trouble.CONNECT_REFUSED,
        Phase.TLS: Trouble.TLS,
        Phase.WRITE: Trouble.WRITE,
        Phase.READ: Trouble.CONNECTION_LOST,
    }
)
_LATE_BY_PHASE: Mapping[Phase, Trouble] = MappingProxyType(
    {
        **_BY_PHASE,
        Phase.CONNECT: Trouble.CONNECT_TIMEOUT,
        Phase.TLS: Trouble.CONNECT_TIMEOUT,
        Phase.READ: Trouble.READ_TIMEOUT,
    }
)

_SENTENCES: Mapping[Trouble, str] = MappingProxyType(
    {
        Trouble.DNS: say.NAME_UNRESOLVED.of(),
        Trouble.CONNECT_REFUSED: say.NO_CONNECTION.of(),
        Trouble.CONNECT_TIMEOUT: say.CONNECTION_LATE.of(),
        Trouble.TLS: say.TLS_FAILED.of(),
        Trouble.WRITE: say.NOT_WRITTEN.of(),
        Trouble.READ_TIMEOUT: say.SILENT.of(),
        Trouble.TOTAL_TIMEOUT: say.TIME_OVER.of(),
        Trouble.CONNECTION_LOST: say.ENDED_EARLY.of(),
        Trouble.PROTOCOL: say.NO_HTTP.of(),
    }
)


def trouble_of(error: Exception, exchange: Exchange) -> Trouble | None:
    """What an error means for the exchange it ended; None: it is no doing of a peer."""
    late = isinstance(error, (TimeoutError, httpcore.TimeoutException, httpx.TimeoutException))
    if late and exchange.over:
        return Trouble.TOTAL_TIMEOUT
    if exchange.phase is Phase.RESOLVE and isinstance(error, UnicodeError):
        return Trouble.DNS
    if isinstance(error, OSError):  # sockets, TLS, name resolution
        return (_LATE_BY_PHASE if late else _BY_PHASE)[exchange.phase]
    if isinstance(error, (httpcore.RemoteProtocolError, httpx.RemoteProtocolError)) and exchange.peer_closed:
        return Trouble.CONNECT_REFUSED if exchange.phase is Phase.CONNECT else Trouble.CONNECTION_LOST
    for kind in type(error).__mro__:
        if kind in TROUBLES:
            return TROUBLES[kind]
    # A class of somebody else is no doing of the peer: Celery's soft time limit is raised wherever a task stands.
    if type(error).__module__ != "builtins":
        return None
    # Nothing a peer sends may stop the other requests of a batch, not even by a defect in a library it reaches.
    logger.error("unexpected %s in an exchange", type(error).__qualname__)
    return Trouble.PROTOCOL


def no_answer(error: Exception, exchange: Exchange, *, where: str, elapsed_s: float) -> NoAnswer | None:
    """Turn an error into a value. Foreign texts are dropped: they may quote URLs and header values (INV-33).

    Args:
        error: What ended the exchange.
        exchange: Knows whether a byte of the request may have left (R-SUB-2).
        where: Method, origin and path of the request, without its query.
        elapsed_s: Seconds the exchange took.

    Returns:
        The value, or None for an error that must be raised on.
    """
    trouble = trouble_of(error, exchange)
    if trouble is None:
        return None
    sentence = str(error) if isinstance(error, (TargetDenied, CredentialError)) else _sentence(trouble, error)
    return NoAnswer(
        sent=Sent.MAYBE if exchange.touched else Sent.NEVER,
        trouble=trouble,
        detail=say.AT.of(request=where, what=sentence)[:_DETAIL],
        elapsed_s=elapsed_s,
    )


def _sentence(trouble: Trouble, error: Exception) -> str:
    if isinstance(error, httpcore.ProxyError):
        # Its text is the status of the answer, three digits, and then the proxy's own words.
        return say.NO_TUNNEL.of(code=str(error)[:3])
    if isinstance(error, TooManyBytes):
        return say.HEAD_LONG.of()
    if isinstance(error, ssl.SSLCertVerificationError):
        # OpenSSL's own words about the certificate; they hold no request data.
        return say.CERTIFICATE.of(reason=error.verify_message)
    return _SENTENCES.get(trouble, say.REFUSED.of())
