"""Credentials by reference: found at send time, on the right request only, shown nowhere (R-SEC-2, S6, S22, S23)."""

from __future__ import annotations

import os
import pickle
from base64 import b64encode
from typing import Any

import httpx
import pytest

from jobtrack.core.reply import Sent, Trouble
from jobtrack.core.table import Auth, AuthKind
from jobtrack.errors import CredentialError
from jobtrack.transports import CredentialResolver, EgressPolicy, HttpxTransport
from jobtrack.transports.credentials import Secret, attach
from tests.transports.faults import answers, ok, request, table

CANARY = "s3cr3t-CANARY"


def token(*, provider: str, account: str) -> str:
    return f"{CANARY}-{provider}-{account}"


def broken(*, provider: str, account: str) -> str:
    raise RuntimeError(CANARY)


def no_text(*, provider: str, account: str) -> None:
    return None


def sign(secret, *, method, url, headers, body):
    return [("X-Signature", f"{secret}|{method}|{url}|{len(body)}"), ("X-Key", "k1")]


def broken_sign(secret, **_request: object):
    raise ValueError(secret)


def resolver(reference: str, **options: Any) -> CredentialResolver:
    return CredentialResolver(references={"acme": {"default": reference}}, **options)


@pytest.fixture
def secret_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{CANARY}\n")
    path.chmod(0o600)
    return path


def test_each_kind_of_reference_is_resolved(secret_file) -> None:
    found = {
        "env": resolver("env:ACME_KEY", environ={"ACME_KEY": CANARY}),
        "file": resolver(f"file:{secret_file}"),
        "setting": resolver("setting:ACME_KEY", setting={"ACME_KEY": CANARY}.get),
        "callable": resolver(f"callable:{__name__}.token"),
    }
    values = {kind: credentials.resolve("acme", "default").reveal() for kind, credentials in found.items()}
    assert values == {"env": CANARY, "file": CANARY, "setting": CANARY, "callable": f"{CANARY}-acme-default"}


def test_a_secret_belongs_to_one_account_of_one_provider() -> None:
    """INV-32."""
    credentials = resolver("env:KEY", environ={"KEY": CANARY})
    for provider, account in (("acme", "other"), ("other", "default")):
        with pytest.raises(CredentialError, match="no credential is configured"):
            credentials.resolve(provider, account)


def _file(tmp_path, mode: int = 0o600, content: bytes = CANARY.encode()) -> str:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return f"file:{path}"


def _link(tmp_path) -> str:
    target = tmp_path / "target"
    target.write_text(CANARY)
    target.chmod(0o600)
    (tmp_path / "key").symlink_to(target)
    return f"file:{tmp_path / 'key'}"


def _pipe(tmp_path) -> str:
    os.mkfifo(tmp_path / "key", 0o600)
    return f"file:{tmp_path / 'key'}"


UNUSABLE = {
    "missing variable": (lambda _: "env:NOT_SET", "env:NOT_SET is not set"),
    "empty variable": (lambda _: "env:EMPTY", "env:EMPTY is empty"),
    "variable that is no text": (lambda _: "env:BYTES", "env:BYTES is not valid text"),
    "missing file": (lambda tmp: f"file:{tmp}/none", "cannot be opened"),
    "readable by the group": (lambda tmp: _file(tmp, 0o640), "0400 or 0600"),
    "readable by others": (lambda tmp: _file(tmp, 0o604), "0400 or 0600"),
    "symbolic link": (_link, "is a symbolic link"),
    "directory": (lambda tmp: f"file:{tmp}", "not a regular file"),
    "pipe": (_pipe, "not a regular file"),
    "empty file": (lambda tmp: _file(tmp, content=b"\n"), "is empty"),
    "huge file": (lambda tmp: _file(tmp, content=CANARY.encode() * 10_000), "larger than 65536 bytes"),
    "file that is no text": (lambda tmp: _file(tmp, content=CANARY.encode() + b"\xff"), "not UTF-8"),
    "relative file": (lambda _: f"file:{CANARY}", "is not a reference"),
    "missing setting": (lambda _: "setting:NONE", "setting:NONE is missing or not text"),
    "setting that fails": (lambda _: "setting:FAILS", "setting:FAILS cannot be read (KeyError)"),
    "callable that fails": (lambda _: f"callable:{__name__}.broken", "failed (RuntimeError)"),
    "callable without a value": (lambda _: f"callable:{__name__}.no_text", "returned no text"),
    "callable that is not there": (lambda _: "callable:no.such.thing", "failed (ModuleNotFoundError)"),
    "the secret itself": (lambda _: CANARY, "is not a reference; write env:NAME"),
    "the secret behind a kind": (lambda _: f"env:{CANARY}!", "is not a reference; write env:NAME"),
    "an unknown kind": (lambda _: f"vault:{CANARY}", "is not a reference; write env:NAME"),
}


def _setting(name: str) -> object:
    if name == "FAILS":
        raise KeyError(CANARY)
    return None


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_reference_is_a_clear_error_without_the_value(case, tmp_path, serve) -> None:
    """S22: nothing is sent; the sentence names kind and name of the reference only."""
    build, sentence = UNUSABLE[case]
    environ = {"EMPTY": "", "BYTES": f"{CANARY}\udcff"}
    credentials = resolver(build(tmp_path), environ=environ, setting=_setting)
    server = serve(answers(ok()))
    asked = table(server.origin, auth=Auth(kind=AuthKind.BEARER))
    with HttpxTransport(credentials, EgressPolicy(allow_loopback=True)) as transport:
        [(_, reply)] = transport.send([(request(server.origin), asked)])
    assert (reply.sent, reply.trouble, server.connects) == (Sent.NEVER, Trouble.CREDENTIAL, 0)
    assert sentence in reply.detail
    assert CANARY not in reply.detail


def test_settings_that_are_not_connected_are_said() -> None:
    with pytest.raises(CredentialError, match="no settings are connected"):
        resolver("setting:ACME_KEY").resolve("acme", "default")


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(CANARY)
    credentials = resolver("env:KEY", environ={"KEY": CANARY})
    shown = f"{secret!r} {secret} {[secret]} {credentials!r} {HttpxTransport(credentials)!r}"
    assert CANARY not in shown
    with pytest.raises(TypeError, match="never stored"):
        pickle.dumps(secret)


URL = httpx.URL("https://api.acme.example/v1?sig=%2f%20+&b")
ATTACHED = [
    (Auth(kind=AuthKind.NONE), str(URL), ()),
    (Auth(kind=AuthKind.BEARER), str(URL), (("Authorization", "Bearer a b/u"),)),
    (Auth(kind=AuthKind.HEADER, name="X-Api-Key"), str(URL), (("X-Api-Key", "a b/u"),)),
    (Auth(kind=AuthKind.HEADER, name="Authorization", prefix="Token "), str(URL), (("Authorization", "Token a b/u"),)),
    (Auth(kind=AuthKind.BASIC), str(URL), (("Authorization", f"Basic {b64encode(b'a b/u').decode()}"),)),
    (Auth(kind=AuthKind.QUERY, name="api key"), f"{URL}&api%20key=a%20b%2Fu", ()),
    (
        Auth(kind=AuthKind.SIGNER, name=f"{__name__}.sign"),
        str(URL),
        (("X-Signature", f"a b/u|GET|{URL}|0"), ("X-Key", "k1")),
    ),
]


@pytest.mark.parametrize(("auth", "url", "headers"), ATTACHED, ids=lambda value: getattr(value, "kind", ""))
def test_a_credential_is_put_where_the_table_says(auth, url, headers) -> None:
    assert attach(auth, Secret("a b/u"), request(str(URL)), URL) == (httpx.URL(url), headers)
    assert str(attach(auth, Secret("a b/u"), request(str(URL)), URL)[0]) == url


def test_the_first_parameter_of_a_query() -> None:
    bare = httpx.URL("https://api.acme.example/v1")
    url, _ = attach(Auth(kind=AuthKind.QUERY, name="key"), Secret("x"), request(str(bare)), bare)
    assert str(url) == "https://api.acme.example/v1?key=x"


def test_a_credential_replaces_a_header_of_the_same_name() -> None:
    sent = request(str(URL), headers=(("authorization", "Bearer from-the-table"), ("A", "b")))
    _, headers = attach(Auth(kind=AuthKind.BEARER), Secret("x"), sent, URL)
    assert headers == (("A", "b"), ("Authorization", "Bearer x"))


@pytest.mark.parametrize(
    "auth",
    [
        Auth(kind=AuthKind.BEARER),
        Auth(kind=AuthKind.HEADER, name="X-Key"),
        Auth(kind=AuthKind.SIGNER, name=f"{__name__}.sign"),
        Auth(kind=AuthKind.SIGNER, name=f"{__name__}.broken_sign"),
    ],
)
@pytest.mark.parametrize("tail", ["\r\nHost: evil.example", "\u20ac", "\0"])
def test_a_secret_that_no_header_can_carry_is_refused_without_showing_it(auth, tail) -> None:
    with pytest.raises(CredentialError) as caught:
        attach(auth, Secret(CANARY + tail), request(str(URL)), URL)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_rotated_credential_counts_from_the_next_request_on(serve, transport, secret_file) -> None:
    """S23."""
    server = serve(answers(ok()))
    sender = transport({"acme": {"default": f"file:{secret_file}"}})
    asked = (request(server.origin), table(server.origin, auth=Auth(kind=AuthKind.BEARER)))
    list(sender.send([asked]))
    secret_file.write_text("another")
    list(sender.send([asked]))
    tokens = [line for sent in server.requests for line in sent.split(b"\r\n") if line.startswith(b"Authorization")]
    assert tokens == [f"Authorization: Bearer {CANARY}".encode(), b"Authorization: Bearer another"]
    assert server.connects == 1


@pytest.mark.parametrize(
    "auth",
    [
        Auth(kind=AuthKind.BEARER),
        Auth(kind=AuthKind.HEADER, name="X-Api-Key"),
        Auth(kind=AuthKind.BASIC),
        Auth(kind=AuthKind.QUERY, name="key"),
        Auth(kind=AuthKind.SIGNER, name=f"{__name__}.sign"),
    ],
    ids=lambda auth: auth.kind,
)
def test_a_credential_reaches_its_own_host_only(auth, serve, transport) -> None:
    """S6, INV-32: not another provider's request, not the target of a redirect, not a refused URL."""
    other = serve(answers(ok()))
    location = f"Location: {other.origin}/x".encode()
    own = serve(answers(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nSet-Cookie: a=b\r\n" + location + b"\r\n\r\n"))
    sender = transport({"acme": {"default": "env:KEY"}}, environ={"KEY": CANARY})
    mine = table(own.origin, auth=auth)
    [(_, reply)] = sender.send([(request(own.origin), mine)])
    list(sender.send([(request(other.origin), mine)]))
    list(sender.send([(request(other.origin, provider="other"), table(other.origin, name="other"))]))
    shown = b64encode(CANARY.encode()) if auth.kind is AuthKind.BASIC else CANARY.encode()
    assert (reply.status, len(own.requests), len(other.requests)) == (302, 1, 1)
    assert shown in own.requests[0]
    assert shown not in other.requests[0]
