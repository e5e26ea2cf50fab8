"""Credentials by reference: found when a request is sent, put on that request, and kept nowhere (R-SEC-2).

A reference is text in the settings, for one account of one provider::

    env:ACME_KEY                an environment variable
    file:/run/secrets/acme      a regular file that only its owner can read
    setting:ACME_KEY            a setting of the site
    callable:acme.auth.token    called as ``token(provider=..., account=...)``

Because it is read for every request, a changed secret counts from the next request on, without a restart. No error
and no repr holds a value.
"""

from __future__ import annotations

import importlib
import os
import re
import stat
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, assert_never
from urllib.parse import quote

import httpx

from jobtrack.core import sentences_request as say
from jobtrack.core.reply import Request
from jobtrack.core.table import Auth, AuthKind
from jobtrack.errors import CredentialError

REFERENCE_KINDS = ("env", "file", "setting", "callable")
"""Ways to name a secret."""

_FILE_LIMIT = 64 * 1024
_VISIBLE = re.compile(r"[ -~]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # bytes of an environment variable that are no UTF-8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)

Header = tuple[str, str]


class Secret:
    """A value that does not show itself: not in a repr, a format, a log line or a pickle."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> str:
        raise TypeError("a secret is never stored")


class Signer(Protocol):
    """What the dotted path of a ``signer`` names."""

    def __call__(
        self, secret: str, *, method: str, url: str, headers: tuple[Header, ...], body: bytes
    ) -> Iterable[Header]:
        """Return the headers that prove the request, such as a signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialResolver:
    """Finds the secret of one account of one provider.

    A secret is only ever found by the provider and account of the request, so it cannot reach another provider's
    hosts (INV-32).
    """

    references: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # provider -> account -> reference
    setting: Callable[[str], object] | None = None  # value of a setting by name; None: `setting:` is not available
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def resolve(self, provider: str, account: str) -> Secret:
        """The secret as it is now.

        Raises:
            CredentialError: There is no reference, or it leads to nothing usable. The message names the reference's
                kind and name and never a value.
        """
        reference = self.references.get(provider, {}).get(account)
        if reference is None:
            raise CredentialError(say.NO_CREDENTIAL.of(account=repr(account), provider=repr(provider)))
        return self.follow(reference, provider=provider, account=account)

    def follow(self, reference: str, *, provider: str, account: str) -> Secret:
        """The secret that a reference leads to now; a callable is told ``provider`` and ``account``.

        Raises:
            CredentialError: As for ``resolve``.
        """
        kind, _, name = reference.partition(":")
        match kind:
            case "env" if _NAME.fullmatch(name):
                value = self._from_environment(name)
            case "file" if name.startswith("/"):
                value = _from_file(name)
            case "setting" if _NAME.fullmatch(name):
                value = self._from_setting(name)
            case "callable" if _DOTTED.fullmatch(name):
                value = _from_callable(name, provider, account)
            case _:
                # The text is not repeated: somebody may have written the secret itself.
                raise CredentialError(say.NO_REFERENCE.of(account=repr(account), provider=repr(provider)))
        if not value:
            raise CredentialError(say.SECRET_EMPTY.of(reference=reference))
        if _SURROGATE.search(value):
            raise CredentialError(say.SECRET_NO_TEXT.of(reference=reference))
        return Secret(value)

    def _from_environment(self, name: str) -> str:
        try:
            return self.environ[name]
        except KeyError:
            raise CredentialError(say.ENV_NOT_SET.of(name=name)) from None

    def _from_setting(self, name: str) -> str:
        if self.setting is None:
            raise CredentialError(say.SETTING_NOT_CONNECTED.of(name=name))
        try:
            value = self.setting(name)
        except Exception as error:  # noqa: BLE001 - the site's code; its text may hold the value
            raise CredentialError(say.SETTING_UNREADABLE.of(name=name, error=type(error).__name__)) from None
        if not isinstance(value, str):
            raise CredentialError(say.SETTING_NO_TEXT.of(name=name))
        return value


def _from_file(path: str) -> str:
    # No symlink is followed and a pipe does not block; the checks are made on the opened file, not on its name.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        if Path(path).is_symlink():
            raise CredentialError(say.FILE_LINK.of(path=path)) from None
        raise CredentialError(say.FILE_NOT_OPENED.of(path=path, error=type(error).__name__)) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise CredentialError(say.FILE_NOT_REGULAR.of(path=path))
        if mode & 0o077:
            raise CredentialError(say.FILE_OPEN_TO_OTHERS.of(path=path))
        content = os.read(descriptor, _FILE_LIMIT + 1)
    finally:
        os.close(descriptor)
    if len(content) > _FILE_LIMIT:
        raise CredentialError(say.FILE_LARGE.of(path=path, most=_FILE_LIMIT))
    try:
        return content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise CredentialError(say.FILE_NOT_UTF8.of(path=path)) from None


def _from_callable(path: str, provider: str, account: str) -> str:
    try:
        value = _imported(path)(provider=provider, account=account)
    except Exception as error:  # noqa: BLE001 - the site's code; its text may hold the value
        raise CredentialError(say.CALLABLE_FAILED.of(path=path, error=type(error).__name__)) from None
    if not isinstance(value, str):
        raise CredentialError(say.CALLABLE_NO_TEXT.of(path=path))
    return value


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def attach(auth: Auth, secret: Secret, request: Request, url: httpx.URL) -> tuple[httpx.URL, tuple[Header, ...]]:
    """Put a credential on a request, as the table says.

    Returns:
        The URL to send (changed for ``query`` only) and all headers of the request.

    Raises:
        CredentialError: The secret cannot stand where the table puts it, or the signer failed.
    """
    value = secret.reveal()
    match auth.kind:
        case AuthKind.BEARER:
            return url, _with(request.headers, "Authorization", _in_header(f"Bearer {value}"))
        case AuthKind.HEADER:
            return url, _with(request.headers, auth.name, _in_header(f"{auth.prefix}{value}"))
        case AuthKind.BASIC:
            return url, _with(request.headers, "Authorization", f"Basic {b64encode(value.encode()).decode()}")
        case AuthKind.QUERY:
            return _with_query(url, auth.name, value), request.headers
        case AuthKind.SIGNER:
            return url, _signed(auth.name, value, request, url)
        case AuthKind.NONE:
            return url, request.headers
        case _:
            assert_never(auth.kind)


def _with(headers: tuple[Header, ...], name: str, value: str) -> tuple[Header, ...]:
    """The credential replaces a header of the same name instead of standing beside it."""
    return (*(header for header in headers if header[0].lower() != name.lower()), (name, value))


def _in_header(value: str) -> str:
    if not _VISIBLE.fullmatch(value):
        raise CredentialError(say.SECRET_IN_HEADER.of())
    return value


def _with_query(url: httpx.URL, name: str, value: str) -> httpx.URL:
    """Append without re-encoding what is there: a provider may have signed the query."""
    added = f"{quote(name, safe='')}={quote(value, safe='')}".encode()
    return url.copy_with(query=url.query + b"&" + added if url.query else added)


def _signed(path: str, secret: str, request: Request, url: httpx.URL) -> tuple[Header, ...]:
    try:
        sign: Signer = _imported(path)
        proof = tuple(sign(secret, method=request.method, url=str(url), headers=request.headers, body=request.body))
    except Exception as error:  # noqa: BLE001 - the site's code; its text may hold the secret
        raise CredentialError(say.SIGNER_FAILED.of(path=path, error=type(error).__name__)) from None
    headers = request.headers
    for name, value in proof:
        headers = _with(headers, name, _in_header(value))
    return headers
