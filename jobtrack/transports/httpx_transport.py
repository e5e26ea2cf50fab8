"""Requests over httpx's URL and request objects and httpcore's pool, with limits that hold (R-BUDGET-1, INV-30..34).

There is no ``httpx.Client`` on purpose: it keeps cookies, reads proxies and netrc from the environment, follows
redirects when asked, and logs the full URL. One request here is: judge the URL, find the credential, judge the URL
object that will be sent, send it, read at most what is allowed. Whatever goes wrong is a value.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import Self

import certifi
import httpcore
import httpx

from jobtrack import __version__
from jobtrack.core import sentences_request as say
from jobtrack.core.reply import Answered, NoAnswer, Request, Sent, Trouble
from jobtrack.core.table import Auth, AuthKind, ProviderTable, RequestLimits
from jobtrack.errors import ConfigurationError, CredentialError
from jobtrack.ports import Sink
from jobtrack.transports import quiet
from jobtrack.transports.bodies import Receive, SinkFailed, Streamed, head, whole
from jobtrack.transports.credentials import CredentialResolver, attach
from jobtrack.transports.egress import EgressPolicy, TargetDenied, check_url, origin_of, target
from jobtrack.transports.network import (
    Exchange,
    Lookup,
    Phase,
    PinnedBackend,
    Resolver,
    current,
    system_addresses,
)
from jobtrack.transports.proxy import Proxy, check_declared, check_tunnel, read_proxy
from jobtrack.transports.tls import context as tls_context
from jobtrack.transports.troubles import no_answer

_KEEP_ALIVE_S = 4.0  # shorter than the usual idle limits of servers (5 s and more), so they rarely hang up first
_KEEP_ALIVE_CONNECTIONS = 64
_QUESTIONS = frozenset({"GET", "HEAD"})
_ACCOUNT_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
_FRAMING = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"}
)


class _Process:
    """What belongs to one process and must not cross a fork: connections, threads, locks."""

    def __init__(self, *, policy: EgressPolicy, resolve: Resolver, ca_file: str | None, slots: int) -> None:
        self.pid = os.getpid()
        self._policy = policy
        self._lookup = Lookup(resolve)
        self._ca_file = ca_file
        self._slots = slots
        self._lock = threading.Lock()
        self._pools: dict[bool, httpcore.ConnectionPool] = {}
        self._threads: ThreadPoolExecutor | None = None

    @cached_property
    def tls(self) -> ssl.SSLContext:
        return tls_context(self._ca_file or certifi.where())

    def pool(self, *, loopback: bool) -> httpcore.ConnectionPool:
        """Connections of this process, by origin. Those to this machine are apart: they passed another check."""
        with self._lock:
            if loopback not in self._pools:
                self._pools[loopback] = httpcore.ConnectionPool(
                    ssl_context=self.tls,
                    max_connections=None,  # bounded by the threads that send
                    max_keepalive_connections=_KEEP_ALIVE_CONNECTIONS,
                    keepalive_expiry=_KEEP_ALIVE_S,
                    network_backend=PinnedBackend(policy=self._policy, loopback=loopback, lookup=self._lookup),
                )
            return self._pools[loopback]

    def single(self, *, loopback: bool) -> httpcore.ConnectionPool:
        """A connection for one request; to be closed after it."""
        return httpcore.ConnectionPool(
            ssl_context=self.tls,
            max_keepalive_connections=0,
            network_backend=PinnedBackend(policy=self._policy, loopback=loopback, lookup=self._lookup),
        )

    def tunnel(self, proxy: Proxy) -> httpcore.HTTPProxy:
        """A tunnel for one request; to be closed after it, so that a changed login leaves no old connection."""
        return httpcore.HTTPProxy(
            httpcore.URL(scheme=b"http", host=proxy.host.encode(), port=proxy.port, target=b"/"),
            proxy_auth=proxy.login,
            ssl_context=self.tls,
            network_backend=PinnedBackend(policy=self._policy, loopback=False, lookup=self._lookup, to_proxy=True),
        )

    def threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._slots, thread_name_prefix="jobtrack-send")
            return self._threads

    def close(self) -> None:
        with self._lock:
            threads, pools = self._threads, list(self._pools.values())
            self._threads, self._pools = None, {}
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        for pool in pools:
            pool.close()


class HttpxTransport:
    """Sends requests and yields what came of each. Implements ``ports.Transport``.

    Safe for many threads. Connections are made on first use, kept alive, and made anew after a fork.

    Args:
        credentials: Finds the secret of an account when a request is sent.
        policy: What may be reached besides public https hosts.
        limits: Used instead of every table's own limits; None: as each table says.
        slots: Most requests of one process that batches may have under way.
        ca_file: PEM file of the certificate authorities to trust; None: those shipped with httpx (certifi).
        resolve: Name resolution, as addresses in text; for tests and special networks.
        proxies: By table id, the proxy of its requests: ``http://host:port``, or a reference (``env:NAME``) to
            ``http://user:password@host:port``, which is followed for every request. No entry: no proxy. Those of the
            environment are ignored.

    Raises:
        ConfigurationError: A proxy is declared in another way.
    """

    def __init__(
        self,
        credentials: CredentialResolver | None = None,
        policy: EgressPolicy | None = None,
        *,
        limits: RequestLimits | None = None,
        slots: int = 16,
        ca_file: str | None = None,
        resolve: Resolver = system_addresses,
        proxies: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.slots = slots
        self._proxies = {table_id: check_declared(text) for table_id, text in proxies.items()}
        self._credentials = credentials or CredentialResolver()
        self._policy = policy or EgressPolicy()
        self._limits = limits
        self._resolve = resolve
        self._ca_file = ca_file
        self._process = self._new_process()
        quiet.install()

    def send(self, requests: Sequence[tuple[Request, ProviderTable]]) -> Iterator[tuple[Request, Answered | NoAnswer]]:
        """Send each request once and yield replies as they complete.

        One request is sent in the calling thread, several in at most ``slots`` threads. The total time of a request
        counts from this call, waiting for a thread included, so no request outlives the lease it was claimed under.
        Whatever a peer does becomes a value; nothing is raised for it.
        """
        started = time.monotonic()
        if len(requests) == 1:
            request, table = requests[0]
            yield request, self._send_one(request, table, started)
            return
        threads = self._here().threads()
        waiting = {threads.submit(self._send_one, request, table, started): request for request, table in requests}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            _cancel(waiting)

    def download(
        self, request: Request, table: ProviderTable, sink: Sink, *, total: timedelta, max_bytes: int
    ) -> Answered | NoAnswer:
        """Send one request in the calling thread and stream the body of a 200 or 206 into the sink (R-END-4).

        Args:
            request: Sent with ``Accept: */*`` unless it says otherwise.
            table: Says where it may go; its limits hold, except:
            sink: Gets the head before the first byte. Whatever it raises comes out as it is.
            total: Longest time of the whole, in place of the table's.
            max_bytes: Most bytes of the content, on the wire and unpacked, in place of the table's.

        Returns:
            The answer without what was streamed. With a flaw, what the sink got is incomplete, as it is if a
            ``NoAnswer`` comes after the head.
        """
        limits = replace(self._limits or table.limits, total=total)
        exchange = Exchange(limits, time.monotonic())
        return self._carry_out(request, table, exchange, Streamed(sink=sink, max_bytes=max_bytes))

    def close(self) -> None:
        """Close the connections and threads of this process. Sending again opens new ones."""
        self._here().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _new_process(self) -> _Process:
        return _Process(policy=self._policy, resolve=self._resolve, ca_file=self._ca_file, slots=self.slots)

    def _here(self) -> _Process:
        """What this process uses. After a fork the parent's is dropped untouched: its locks may be held for ever."""
        if self._process.pid != os.getpid():
            self._process = self._new_process()
        return self._process

    def _send_one(self, request: Request, table: ProviderTable, started: float) -> Answered | NoAnswer:
        exchange = Exchange(self._limits or table.limits, started)
        if exchange.over:
            return NoAnswer(sent=Sent.NEVER, trouble=Trouble.LATE, detail=say.NO_THREAD.of())
        return self._carry_out(request, table, exchange, whole)

    def _carry_out(
        self, request: Request, table: ProviderTable, exchange: Exchange, receive: Receive
    ) -> Answered | NoAnswer:
        begun = time.monotonic()
        token = current.set(exchange)
        try:
            return replace(
                self._exchange(request, table, exchange, receive),
                elapsed_s=time.monotonic() - begun,
            )
        except SinkFailed as failed:
            raise failed.error from None
        except Exception as error:  # noqa: BLE001 - the port promises values; `troubles` gives every error a meaning
            answer = no_answer(error, exchange, where=_where(request), elapsed_s=time.monotonic() - begun)
            if answer is None:
                raise error.with_traceback(None) from None  # frames below hold headers; an error hook would show them
            return answer
        finally:
            current.reset(token)

    def _exchange(self, request: Request, table: ProviderTable, exchange: Exchange, receive: Receive) -> Answered:
        streamed = isinstance(receive, Streamed)
        prepared = self._prepare(request, table, accept="*/*" if streamed else "application/json")
        with self._pool(request, table) as pool:
            return _answer(pool, prepared, exchange, receive)

    @contextmanager
    def _pool(self, request: Request, table: ProviderTable) -> Iterator[httpcore.ConnectionPool]:
        """Connections for one request of a table: kept ones, one of its own, or a tunnel through a declared proxy.

        A kept connection may end in the very moment in which it is used. That leaves the outcome of a request
        unknown for nothing, so what is no mere question gets a connection of its own (R-SUB-2).
        """
        loopback = self._policy.loopback_for(table)
        if table.id in self._proxies:
            with self._here().tunnel(self._proxy(table.id)) as tunnel:
                yield tunnel
        elif request.method.upper() in _QUESTIONS:
            yield self._here().pool(loopback=loopback)
        else:
            with self._here().single(loopback=loopback) as single:
                yield single

    def _proxy(self, table_id: str) -> Proxy:
        declared = self._proxies[table_id]
        if declared.startswith("http:"):
            return read_proxy(declared)
        found = self._credentials.follow(declared, provider=table_id, account="proxy")
        try:
            return read_proxy(found.reveal())
        except ConfigurationError as error:
            raise CredentialError(say.SECRET_ELSE.of(reference=declared, why=error.message)) from None

    def _prepare(self, request: Request, table: ProviderTable, *, accept: str) -> httpcore.Request:
        """Judge the target, put the credential on, and build what is sent from the very object that was judged."""
        if request.provider != table.id:
            raise TargetDenied(say.OTHER_TABLE.of(provider=repr(request.provider), table=repr(table.id)))
        url = target(request.url, table, self._policy, request.origins, credentials=request.credentials)
        headers = request.headers
        if not request.credentials:
            headers = _without_account(headers, table.auth)
        elif table.auth.kind is not AuthKind.NONE:
            secret = self._credentials.resolve(request.provider, request.account)
            url, headers = attach(table.auth, secret, request, url)
        check_url(url, table, self._policy, request.origins, credentials=request.credentials)
        if table.id in self._proxies:
            check_tunnel(url)
        whole = httpx.Request(request.method, url, headers=_all_headers(request, headers, accept), content=request.body)
        return httpcore.Request(
            whole.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=whole.headers.raw,
            content=request.body or None,
        )


def _all_headers(request: Request, headers: tuple[tuple[str, str], ...], accept: str) -> list[tuple[str, str]]:
    names = {name.lower() for name, _ in headers}
    if framing := names & _FRAMING:
        raise TargetDenied(say.FRAMING.of(names=", ".join(sorted(framing))))
    own = (
        ("User-Agent", f"jobtrack/{__version__}"),
        ("Accept", accept),
        *((("X-Request-Id", f"{request.operation_id}:{request.fence}"),) if request.credentials else ()),
    )
    added = [header for header in own if header[0].lower() not in names]
    kept = [header for header in headers if header[0].lower() != "accept-encoding"]
    return [*kept, *added, ("Accept-Encoding", "identity")]


def _cancel(waiting: dict[Future[Answered | NoAnswer], Request]) -> None:
    """The caller stopped listening: what has not begun is not sent."""
    for future in waiting:
        future.cancel()


def _answer(
    pool: httpcore.ConnectionPool, prepared: httpcore.Request, exchange: Exchange, receive: Receive
) -> Answered:
    response = pool.handle_request(prepared)
    try:
        if exchange.phase is not Phase.READ:
            # Left over from the answer before, so it answers another request, maybe of another account.
            raise httpcore.RemoteProtocolError("an answer that came before its request")
        answer = head(response)
        body, flaw = receive(response, answer, exchange)
    finally:
        response.close()  # an answer that was not read to its end takes its connection along
    return replace(answer, body=body, flaw=flaw)


def _without_account(headers: tuple[tuple[str, str], ...], auth: Auth) -> tuple[tuple[str, str], ...]:
    """The headers that a host may see which knows nothing of the account."""
    private = {*_ACCOUNT_HEADERS, auth.name.lower()}
    return tuple(header for header in headers if header[0].lower() not in private)


def _where(request: Request) -> str:
    """Method, origin and path, without query and credentials; the URL is not repeated if it cannot be read."""
    try:
        url = httpx.URL(request.url)
        return f"{request.method} {origin_of(url)}{url.raw_path.partition(b'?')[0].decode('ascii')}"[:200]
    except (httpx.InvalidURL, UnicodeError):
        return f"{request.method} {request.provider}"
