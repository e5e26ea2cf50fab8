"""The one setting ``JOBTRACK``, read into a frozen record. It is read again whenever it changes.

A secret never stands in it: ``CREDENTIALS``, ``WEBHOOKS``, ``PROXIES``, ``SEALING_KEYS`` and ``AUDIT_KEY`` hold
references (``env:NAME``, ``file:/path``, ``setting:NAME``, ``callable:dotted.path``), resolved when they are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, TypeVar

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from jobtrack.core.escalation import Lapse, Option, Reason, Risk, may_lapse
from jobtrack.core.table import RequestLimits
from jobtrack.errors import ConfigurationError
from jobtrack.ports import Timing

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

NAME: Final = "JOBTRACK"

_BASE_URL: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(/[A-Za-z0-9._~/-]*)?")

REFERENCES: Final = ("env", "file", "setting", "callable")
"""Ways to name a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifierSettings:
    """Who is told of questions, and how. ``NOTIFIER_KINDS`` says which keys a kind needs."""

    kind: str  # "email", "webhook", "slack" or "callable"
    to: tuple[str, ...] = ()  # addresses, of an e-mail
    sender: str | None = None  # of an e-mail; None: DEFAULT_FROM_EMAIL
    url: str | None = None  # reference of the address to post to: who knows it may post there
    secret: str | None = None  # reference of the key that signs what is posted
    path: str | None = None  # dotted path of a callable
    after: timedelta = timedelta(0)  # how long a question waits before this one is told
    remind: timedelta | None = None  # told once more when nobody has acted for so long; None: never
    digest: timedelta = timedelta(minutes=1)  # at most one message in so long; what comes meanwhile is put together
    reasons: tuple[Reason, ...] = ()  # told of these only; (): of all
    providers: tuple[str, ...] = ()  # told of these only; (): of all
    risk: Risk = Risk.LOW  # told of questions of at least this risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``settings.JOBTRACK`` with every default filled in."""

    tables: tuple[str, ...] = ()  # folders and files with provider tables, besides the shipped ones
    accounts: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)  # table -> account -> params
    credentials: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # table -> account -> reference
    webhooks: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)  # table -> account -> refs
    webhook_base_url: str | None = None  # what providers call in front of our path; None: as the request says
    proxies: Mapping[str, str] = field(default_factory=dict)  # table -> address of its proxy, or reference to one
    allow_loopback: bool = False  # tables with `allow_loopback` may reach this very machine, by plain http
    allow_private: tuple[str, ...] = ()  # private networks (CIDR) that may be reached
    database: str = "default"  # alias of the database that holds the rows
    queue: str = "jobtrack"
    horizon: timedelta = timedelta(seconds=30)  # longest countdown of a message; later looks are the sweeper's
    sweep: bool = True  # each Celery worker runs a sweeper
    sweep_interval: timedelta = timedelta(seconds=1)
    timing: Timing = field(default_factory=Timing)
    limits: RequestLimits | None = None  # limits of one request, instead of each table's own; None: the tables' own
    audit_key: str | None = None  # reference of the key that signs audit exports; None: unsigned
    sealing_keys: tuple[str, ...] = ()  # references; the first seals, all open; (): SECRET_KEY and its fallbacks
    result_storage: str | None = None  # alias in STORAGES for results; None: "jobtrack" if it is there, else "default"
    result_spool: str | None = None  # folder for downloads under way; None: the system's for temporary files
    admin: bool = True  # register the admin
    site_url: str | None = None  # what stands in front of links to the admin in notices; None: they carry no link
    notifiers: Mapping[str, NotifierSettings] = field(default_factory=dict)  # name -> who is told of questions, and how
    four_eyes: frozenset[Option] = frozenset()  # options that need the word of two people
    lapses: Mapping[Reason, Lapse] = field(default_factory=dict)  # what is chosen for a question nobody answers
    policy: str | None = None  # dotted path of a callable that may forbid a decision; None: permissions alone decide
    bulk_limit: int = 500  # most questions of one bulk decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something in ``JOBTRACK`` that cannot be used."""

    key: str  # dotted from JOBTRACK
    message: str  # one sentence
    hint: str = ""
    unknown: bool = False  # the key is not known at all


def settings() -> Settings:
    """The current settings.

    Raises:
        ConfigurationError: ``JOBTRACK`` cannot be used; the message says what to write.
    """
    return _current()


@cache
def _current() -> Settings:
    values, problems = read(getattr(django_settings, NAME, {}))
    if problems:
        worst = problems[0]
        raise ConfigurationError(f"{worst.key}: {worst.message} {worst.hint}".strip(), key=worst.key)
    return values


def follow_settings() -> None:
    """Read the settings again after a change (``override_settings``)."""
    setting_changed.connect(_forget, dispatch_uid="jobtrack.conf")


def _forget(*, setting: str, **_: object) -> None:
    if setting == NAME:
        _current.cache_clear()


def read(raw: object) -> tuple[Settings, list[Problem]]:
    """Settings from a plain dictionary, and everything in it that cannot be used."""
    try:
        found, problems = _taken(raw, _KEYS)
    except _Unusable as error:
        return Settings(), list(error.problems(NAME))
    return Settings(**found), [replace(each, key=f"{NAME}{each.key}") for each in problems]


Keys = Mapping[str, tuple[str, Callable[[object], Any]]]
"""Key of a dictionary -> the field it sets, and how its value is read."""


def _taken(value: object, keys: Keys) -> tuple[dict[str, Any], list[Problem]]:
    """The fields that a dictionary sets, and everything in it that cannot be used."""
    if not isinstance(value, Mapping):
        raise _Unusable("must be a dictionary.")
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, item in value.items():
        if key not in keys:
            problems.append(_unknown(f"[{key!r}]", str(key), keys))
            continue
        name, convert = keys[key]
        try:
            found[name] = convert(item)
        except _Unusable as error:
            problems.extend(error.problems(f"[{key!r}]"))
    return found, problems


class _Unusable(Exception):
    """A value that cannot be used: one message, or problems below it."""

    def __init__(self, message: str = "", *, below: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.below = below

    def problems(self, key: str) -> Iterator[Problem]:
        if not self.below:
            yield Problem(key=key, message=str(self))
        for problem in self.below:
            yield Problem(key=key + problem.key, message=problem.message, hint=problem.hint, unknown=problem.unknown)


def _unknown(key: str, word: str, known: Mapping[str, object]) -> Problem:
    near = get_close_matches(word.lower(), [name.lower() for name in known], n=1)
    meant = next((name for name in known if near and name.lower() == near[0]), None)
    hint = f"Did you mean {meant!r}?" if meant else f"Known are: {', '.join(sorted(known))}."
    return Problem(key=key, message="is not a setting.", hint=hint, unknown=True)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Unusable(f"must be True or False, not {value!r}.")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _Unusable("must be a text that is not empty.")
    return value


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _Unusable(f"must be a whole number of at least 1, not {value!r}.")
    return value


def _seconds(value: object) -> timedelta:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.001 <= seconds < 1e9:
        raise _Unusable(f"must be a number of seconds above 0, not {value!r}.")
    return timedelta(seconds=seconds)


def _paths(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise _Unusable("must be a list of folders or files.")
    for item in value:
        if not isinstance(item, str | Path) or "\0" in str(item):
            raise _Unusable(f"must hold paths, not {item!r}.")
    return tuple(str(item) for item in value)


def _networks(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise _Unusable("must be a list of networks, for example ['10.0.0.0/8'].")
    try:
        return tuple(str(ip_network(item)) for item in value)
    except ValueError as error:
        raise _Unusable(f"must hold networks: {error}.") from None


def reference(value: object) -> str:
    """A reference to a secret. The message never repeats the value: it may be the secret itself."""
    kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    if kind not in REFERENCES or not name:
        raise _Unusable("must be a reference to a secret: 'env:NAME', 'file:/path', 'setting:NAME' or 'callable:a.b'.")
    return f"{kind}:{name}"


def _references(value: object) -> tuple[str, ...]:
    """References to secrets, at least one. The message never repeats a value."""
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        raise _Unusable("must be a list of references to secrets, for example ['env:NAME'].")
    return tuple(reference(item) for item in value)


def _base_url(value: object) -> str:
    """What stands in front of a path in an address that others call."""
    if not isinstance(value, str) or not _BASE_URL.fullmatch(value):
        raise _Unusable("must be the beginning of an address, such as 'https://www.example.com'.")
    return value.rstrip("/")


def _folder(value: object) -> str:
    if not isinstance(value, str | Path) or "\0" in str(value) or not Path(value).is_absolute():
        raise _Unusable(f"must be an absolute path, not {value!r}.")
    return str(value)


def _proxy(value: object) -> str:
    """The address of a proxy or a reference to one. The message never repeats the value: it may hold a password."""
    from jobtrack.transports.proxy import check_declared  # httpx is loaded only where a proxy is declared

    try:
        return check_declared(value if isinstance(value, str) else "")
    except ConfigurationError as error:
        raise _Unusable(f"cannot be used: {error.message}.") from None


def _each(convert: Callable[[object], Any]) -> Callable[[object], dict[str, Any]]:
    """A dictionary with text keys whose values are converted one by one."""

    def convert_all(value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _Unusable("must be a dictionary.")
        found: dict[str, Any] = {}
        problems: list[Problem] = []
        for name, item in value.items():
            try:
                found[_text(name)] = convert(item)
            except _Unusable as error:
                problems.extend(error.problems(f"[{name!r}]"))
        if problems:
            raise _Unusable(below=tuple(problems))
        return found

    return convert_all


def _record(record: type[Any]) -> Callable[[object], Any]:
    """A dictionary that changes some fields of ``record``. Durations are in seconds and their keys end in ``_s``."""
    lasts = {item.name: item.type in ("timedelta", timedelta) for item in fields(record)}
    keys = {f"{name}_s" if long else name: (name, _seconds if long else _count) for name, long in lasts.items()}
    taken = _fields(keys, ())

    def convert(value: object) -> Any:
        found = taken(value)
        return record(**found) if found else None

    return convert


def _or_none(convert: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: None if value is None else convert(value)


def _choice(choices: type[E]) -> Callable[[object], E]:
    """A member of an enumeration by its value or, of numbers, by its name in small letters."""
    words = {str(each.value) if isinstance(each.value, str) else each.name.lower(): each for each in choices}

    def convert(value: object) -> E:
        if not isinstance(value, str) or value not in words:
            near = get_close_matches(str(value), list(words), n=1)
            meant = f" Did you mean {near[0]!r}?" if near else f" Known are: {', '.join(sorted(words))}."
            raise _Unusable(f"is not known: {value!r}.{meant}")
        return words[value]

    return convert


def _list_of(convert: Callable[[object], T]) -> Callable[[object], tuple[T, ...]]:
    def convert_all(value: object) -> tuple[T, ...]:
        if isinstance(value, str) or not isinstance(value, list | tuple):
            raise _Unusable("must be a list.")
        return tuple(convert(item) for item in value)

    return convert_all


def _whole_seconds(value: object) -> timedelta:
    """Seconds of at least 0."""
    return timedelta(0) if value == 0 and not isinstance(value, bool) else _seconds(value)


def _fields(keys: Keys, needed: tuple[str, ...]) -> Callable[..., Any]:
    """A dictionary with known keys, as keyword arguments."""

    def convert(value: object) -> dict[str, Any]:
        found, problems = _taken(value, keys)
        given = value if isinstance(value, Mapping) else {}
        problems += [Problem(key=f"[{key!r}]", message="is missing.") for key in needed if key not in given]
        if problems:
            raise _Unusable(below=tuple(problems))
        return found

    return convert


def _notifier(value: object) -> NotifierSettings:
    found = NotifierSettings(**_fields(_NOTIFIER_KEYS, ("kind",))(value))
    strange = [key for key in _KIND_KEYS - {*NOTIFIER_KINDS[found.kind]} if getattr(found, key)]
    if found.sender and found.kind != "email":
        strange.append("from")
    if strange:
        raise _Unusable(f"of kind {found.kind!r} takes no {', '.join(map(repr, sorted(strange)))}.")
    missing = [key for key in NOTIFIER_KINDS[found.kind] if not getattr(found, key)]
    if missing:
        raise _Unusable(f"of kind {found.kind!r} needs {', '.join(map(repr, missing))}.")
    return found


def _notifiers(value: object) -> dict[str, NotifierSettings]:
    """By name, which goes into rows: nothing may stop a question from being written."""
    found: dict[str, NotifierSettings] = _each(_notifier)(value)
    for name in found:
        if len(name) > 100 or not name.isprintable():
            message = "must be a name of at most 100 printable characters."
            raise _Unusable(below=(Problem(key=f"[{name!r}]", message=message),))
    return found


def _kind(value: object) -> str:
    if value not in NOTIFIER_KINDS:
        raise _Unusable(f"must be one of {', '.join(map(repr, NOTIFIER_KINDS))}, not {value!r}.")
    return str(value)


def _lapses(value: object) -> dict[Reason, Lapse]:
    """By reason: {"option": ..., "after_s": ...}."""
    found: dict[Reason, Lapse] = {}
    keys = {"option": ("option", _choice(Option)), "after_s": ("after", _seconds)}
    for word, rule in _each(_fields(keys, ("option", "after_s")))(value).items():
        try:
            reason = _choice(Reason)(word)
        except _Unusable as error:
            raise _Unusable(below=tuple(error.problems(f"[{word!r}]"))) from None
        if not may_lapse(rule["option"], reason):
            message = f"must not happen by itself: {rule['option'].value!r} of a question {reason.value!r}."
            hint = "What writes at a provider, states a fact or is no answer to the question waits for a person."
            raise _Unusable(below=(Problem(key=f"[{word!r}]['option']", message=message, hint=hint),))
        found[reason] = Lapse(**rule)
    return found


NOTIFIER_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "email": ("to",),
    "webhook": ("url", "secret"),
    "slack": ("url",),
    "callable": ("path",),
}
"""Kinds of notifiers, and what each cannot do without."""

_KIND_KEYS: Final = frozenset(key for keys in NOTIFIER_KINDS.values() for key in keys)

_NOTIFIER_KEYS: Final[Keys] = {
    "kind": ("kind", _kind),
    "to": ("to", _list_of(_text)),
    "from": ("sender", _or_none(_text)),
    "url": ("url", reference),
    "secret": ("secret", reference),
    "path": ("path", _text),
    "after_s": ("after", _whole_seconds),
    "remind_s": ("remind", _or_none(_seconds)),
    "digest_s": ("digest", _whole_seconds),
    "reasons": ("reasons", _list_of(_choice(Reason))),
    "providers": ("providers", _list_of(_text)),
    "risk": ("risk", _choice(Risk)),
}

_KEYS: Keys = {
    "TABLES": ("tables", _paths),
    "ACCOUNTS": ("accounts", _each(_each(_each(_text)))),
    "CREDENTIALS": ("credentials", _each(_each(reference))),
    "WEBHOOKS": ("webhooks", _each(_each(_references))),
    "WEBHOOK_BASE_URL": ("webhook_base_url", _or_none(_base_url)),
    "PROXIES": ("proxies", _each(_proxy)),
    "ALLOW_LOOPBACK": ("allow_loopback", _bool),
    "ALLOW_PRIVATE": ("allow_private", _networks),
    "DATABASE": ("database", _text),
    "QUEUE": ("queue", _text),
    "HORIZON_S": ("horizon", _seconds),
    "SWEEP": ("sweep", _bool),
    "SWEEP_INTERVAL_S": ("sweep_interval", _seconds),
    "TIMING": ("timing", lambda value: _record(Timing)(value) or Timing()),
    "LIMITS": ("limits", _record(RequestLimits)),
    "AUDIT_KEY": ("audit_key", _or_none(reference)),
    "SEALING_KEYS": ("sealing_keys", _references),
    "RESULT_STORAGE": ("result_storage", _or_none(_text)),
    "RESULT_SPOOL": ("result_spool", _or_none(_folder)),
    "ADMIN": ("admin", _bool),
    "SITE_URL": ("site_url", _or_none(_base_url)),
    "NOTIFIERS": ("notifiers", _notifiers),
    "FOUR_EYES": ("four_eyes", lambda value: frozenset(_list_of(_choice(Option))(value))),
    "LAPSES": ("lapses", _lapses),
    "POLICY": ("policy", _or_none(_text)),
    "BULK_LIMIT": ("bulk_limit", _count),
}
"""Key of the setting -> field of ``Settings`` and how its value is read."""
