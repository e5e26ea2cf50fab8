from __future__ import annotations

import ssl
from typing import Any

import pytest
import trustme

from jobtrack.transports import CredentialResolver, EgressPolicy, HttpxTransport
from tests.transports.faults import FaultServer, request, table


@pytest.fixture
def serve():
    """Start fault servers; all are stopped at the end of the test."""
    servers: list[FaultServer] = []

    def start(script, **options: object) -> FaultServer:
        servers.append(FaultServer(script, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def transport():
    """Build transports that may reach loopback; all are closed at the end of the test."""
    built: list[HttpxTransport] = []

    def build(references=None, **options: Any) -> HttpxTransport:
        options.setdefault("policy", EgressPolicy(allow_loopback=True))
        environ = options.pop("environ", {})
        resolver = CredentialResolver(references=references or {}, environ=environ)
        built.append(HttpxTransport(options.pop("credentials", resolver), **options))
        return built[-1]

    yield build
    for one in built:
        one.close()


@pytest.fixture
def ask(serve, transport):
    """Send one request to a server that follows ``script``; returns the reply."""

    def send(script, *, path="/v1/jobs/j1", **options: object):
        server = serve(script)
        [(_, reply)] = transport(**options).send([(request(server.origin + path), table(server.origin))])
        return reply

    return send


@pytest.fixture(scope="session")
def authority():
    return trustme.CA()


@pytest.fixture(scope="session")
def ca_file(authority, tmp_path_factory):
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture
def certificate(authority):
    """A server's TLS context for names, signed by the test authority or by ``issuer``."""

    def issue(*names: str, issuer=None, **options: Any) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (issuer or authority).issue_cert(*names, **options).configure_cert(context)
        return context

    return issue


@pytest.fixture
def request_root(pytestconfig) -> str:
    """The checkout, for programs that run in a process of their own."""
    return str(pytestconfig.rootpath)
