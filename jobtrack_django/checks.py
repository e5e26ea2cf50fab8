"""System checks: ``manage.py check`` says what is wrong before anything runs. No network, no query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from django.conf import settings as django_settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import connections
from django.utils.module_loading import import_string

from jobtrack.catalog import Catalog, Level, table_files
from jobtrack.core.request import check_params
from jobtrack.core.table import AuthKind, ProviderTable, RequestLimits
from jobtrack.errors import CredentialError, UsageError
from jobtrack_django import conf

IDS: Final[Mapping[str, str]] = {
    "E001": "A key of `JOBTRACK` is not a setting; the hint names the nearest one.",
    "E002": "A value of `JOBTRACK` cannot be used, for example a secret where a reference to one must stand.",
    "E003": "A provider table is wrong; the message starts with file, line and column.",
    "E004": "A path in `TABLES` does not exist.",
    "E005": "`DATABASE` names no entry of `DATABASES`.",
    "E006": "`USE_TZ` is False; deadlines and leases need instants with a time zone.",
    "E007": "An account has no credential although its table needs one, or its parameters do not fit its table.",
    "E008": "The database of jobtrack has a `TIME_ZONE` other than UTC; its clock would disagree with its rows.",
    "E009": "A reference in `SEALING_KEYS` leads nowhere in this environment: nothing could be submitted.",
    "E010": "`RESULT_STORAGE` names no entry of `STORAGES`.",
    "E011": "`NOTIFIERS` or `POLICY` names a function that cannot be imported, or is none.",
    "W001": "Something in a provider table works but deserves a look.",
    "W002": "A reference in `CREDENTIALS`, `WEBHOOKS`, `PROXIES`, `AUDIT_KEY` or `NOTIFIERS` leads nowhere here.",
    "W003": "`CREDENTIALS`, `ACCOUNTS`, `WEBHOOKS` or `PROXIES` names a provider table that does not exist.",
    "W004": "Celery runs tasks eagerly: no wake-ups are published, so nothing is polled.",
    "W005": "The broker's visibility timeout is shorter than four horizons; countdowns are shortened to fit.",
    "W006": "Celery accepts messages other than JSON; a forged one could run code in a worker.",
    "W007": "SQLite is used without DEBUG: it has one writer at a time.",
    "W008": "SQLite is used without `transaction_mode` IMMEDIATE; busy moments then end in errors instead of waits.",
    "W009": "In `LIMITS`, the total time is shorter than a part of it.",
    "W010": "A table the site uses says `allow_loopback`, but `ALLOW_LOOPBACK` is off: its operations stop.",
    "W011": "This process has loaded no Celery app; wake-ups go to Celery's default broker, where no worker listens.",
    "W012": "With `--deploy`: secrets of operations are sealed with a `SECRET_KEY` that is easy to guess.",
    "W013": "There are `NOTIFIERS` but no `SITE_URL`: their messages cannot link to the pages where one decides.",
    "W014": "An option stands in `LAPSES` and in `FOUR_EYES`: it is never chosen by itself.",
    "I001": "`SWEEP` is off: workers do not sweep, so run `manage.py jobtrack_sweep --loop` somewhere.",
}
"""Every id, without the prefix ``jobtrack.``, and what it means. ``docs/checks.md`` lists the same."""

TAG: Final = "jobtrack"

_LEVELS = {"E": checks.ERROR, "W": checks.WARNING, "I": checks.INFO}


def register_all() -> None:
    """Register the checks of this module."""
    for check in (check_settings, check_desk, check_tables, check_accounts, check_celery, check_database):
        checks.register(check, TAG)
    checks.register(check_sealing, TAG, deploy=True)


def _message(number: str, text: str, hint: str | None = None) -> CheckMessage:
    return CheckMessage(_LEVELS[number[0]], text, hint=hint or IDS[number], id=f"jobtrack.{number}")


def _usable() -> conf.Settings | None:
    """The settings; None if ``check_settings`` has something to say about them."""
    settings, problems = conf.read(getattr(django_settings, conf.NAME, {}))
    return None if problems else settings


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError:  # not ours to read, or a name too long
        return False


def check_settings(**_: Any) -> list[CheckMessage]:
    """E001, E002, E004, E006, E010, W009, I001."""
    settings, problems = conf.read(getattr(django_settings, conf.NAME, {}))
    found = [_message("E001" if p.unknown else "E002", f"{p.key} {p.message}", p.hint) for p in problems]
    found += [_message("E004", f"TABLES: {path} does not exist.") for path in settings.tables if not _exists(path)]
    if not django_settings.USE_TZ:
        found.append(_message("E006", "USE_TZ is False.", "Set USE_TZ = True."))
    if settings.result_storage is not None and settings.result_storage not in django_settings.STORAGES:
        found.append(_message("E010", f"There is no storage {settings.result_storage!r} in STORAGES."))
    limits = settings.limits or RequestLimits()
    if limits.total < max(limits.connect, limits.read):
        found.append(_message("W009", "LIMITS: total_s is less than connect_s or read_s."))
    if not settings.sweep:
        found.append(_message("I001", "SWEEP is off."))
    return found


def check_desk(**_: Any) -> list[CheckMessage]:
    """E011, W013, W014."""
    settings = _usable()
    if settings is None:
        return []
    named = {f"NOTIFIERS[{name!r}]['path']": each.path for name, each in settings.notifiers.items()}
    named["POLICY"] = settings.policy
    found = [_message("E011", f"{place}: {path!r} {wrong}.") for place, path, wrong in _not_callable(named)]
    if settings.notifiers and settings.site_url is None:
        hint = "Set JOBTRACK['SITE_URL'], for example 'https://www.example.com'."
        found.append(_message("W013", "NOTIFIERS are set and SITE_URL is not.", hint))
    for reason, lapse in settings.lapses.items():
        if lapse.option in settings.four_eyes:
            text = f"LAPSES[{reason.value!r}] chooses {lapse.option.value!r}, which FOUR_EYES wants two people for."
            found.append(_message("W014", text))
    return found


def _not_callable(named: Mapping[str, str | None]) -> Iterator[tuple[str, str, str]]:
    for place, path in named.items():
        try:
            wrong = "" if path is None or callable(import_string(path)) else "is no function"
        except Exception as error:  # noqa: BLE001 - importing runs the site's own code
            wrong = f"cannot be imported ({type(error).__name__})"
        if wrong:
            yield place, path or "", wrong


def check_tables(**_: Any) -> list[CheckMessage]:
    """E003, W001, W010."""
    from jobtrack_django.runtime import catalog

    settings = _usable()
    if settings is None:
        return []
    tables = catalog()
    missing = {str(Path(path)) for path in settings.tables if not _exists(path)}  # E004 says so
    return [
        *(
            _message("E003" if finding.level is Level.ERROR else "W001", str(finding))
            for finding in tables.findings()
            if finding.file not in missing
        ),
        *_loopback(settings, tables),
    ]


def _loopback(settings: conf.Settings, tables: Catalog) -> Iterator[CheckMessage]:
    """W010 for tables of the site's own, and those it has accounts for. One that is only shipped harms nobody."""
    own = {path.stem for path in table_files(settings.tables)}
    for table_id in sorted({*own, *settings.accounts, *settings.credentials}):
        table = tables.get(table_id)
        if table is not None and table.allow_loopback and not settings.allow_loopback:
            text = f"The table {table_id!r} says allow_loopback, but ALLOW_LOOPBACK is off."
            yield _message(
                "W010", text, "For a demo or a test, set ALLOW_LOOPBACK = True; else remove it from the table."
            )


def check_accounts(**_: Any) -> list[CheckMessage]:
    """E007, E009, W002, W003."""
    from jobtrack_django.runtime import catalog

    settings = _usable()
    if settings is None:
        return []
    tables = catalog()
    found: list[CheckMessage] = []
    for table_id in sorted({*settings.credentials, *settings.accounts, *settings.webhooks, *settings.proxies}):
        table = tables.get(table_id)
        if table is not None:
            found += _accounts_of(table, settings)
        elif table_id not in tables.ids():
            found.append(_message("W003", f"There is no provider table {table_id!r}."))
    return [*found, *_dead_references(settings)]


def _accounts_of(table: ProviderTable, settings: conf.Settings) -> Iterator[CheckMessage]:
    references, accounts = settings.credentials.get(table.id, {}), settings.accounts.get(table.id, {})
    needed = {name: param for name, param in table.params.items() if param.source == "account"}
    for account in sorted({*references, *accounts}):
        if table.auth.kind is not AuthKind.NONE and account not in references:
            yield _message("E007", f"CREDENTIALS has nothing for account {account!r} of {table.id!r}.")
        given = accounts.get(account, {})
        for name in sorted(needed.keys() - given.keys()):
            yield _message("E007", f"ACCOUNTS lacks the parameter {name!r} for account {account!r} of {table.id!r}.")
        try:
            check_params(replace(table, params={name: needed[name] for name in needed.keys() & given.keys()}), given)
        except UsageError as error:
            yield _message("E007", f"ACCOUNTS, account {account!r} of {table.id!r}: {error.message}.")


def _dead_references(settings: conf.Settings) -> Iterator[CheckMessage]:
    """References that can be followed here and now; a callable is not run by a check."""
    named = {
        f"CREDENTIALS[{table_id!r}][{account!r}]": reference
        for table_id, accounts in settings.credentials.items()
        for account, reference in accounts.items()
    }
    named |= {
        f"WEBHOOKS[{table_id!r}][{account!r}][{number}]": reference
        for table_id, accounts in settings.webhooks.items()
        for account, references in accounts.items()
        for number, reference in enumerate(references)
    }
    named |= {f"PROXIES[{table_id!r}]": text for table_id, text in settings.proxies.items() if "://" not in text}
    named |= {
        f"NOTIFIERS[{name!r}][{key!r}]": reference
        for name, notifier in settings.notifiers.items()
        for key, reference in (("url", notifier.url), ("secret", notifier.secret))
        if reference is not None
    }
    if settings.audit_key:
        named["AUDIT_KEY"] = settings.audit_key
    for place, reference in named.items():
        yield from _followed("W002", place, reference)
    for number, reference in enumerate(settings.sealing_keys):
        yield from _followed("E009", f"SEALING_KEYS[{number}]", reference)


def _followed(number: str, place: str, reference: str) -> Iterator[CheckMessage]:
    from jobtrack_django.runtime import secret

    try:
        if not reference.startswith("callable:"):
            secret(reference)
    except CredentialError as error:
        yield _message(number, f"{place}: {error.message}.")


def check_sealing(**_: Any) -> list[CheckMessage]:
    """W012."""
    keys = (_usable() or conf.Settings()).sealing_keys
    with_secret_key = not keys or "setting:SECRET_KEY" in keys
    if not with_secret_key or not _easy(django_settings.SECRET_KEY):
        return []
    hint = "Set a long, random SECRET_KEY, or name another key in JOBTRACK['SEALING_KEYS']."
    return [_message("W012", "Secrets of operations are sealed with a SECRET_KEY that is easy to guess.", hint)]


def _easy(key: str | bytes) -> bool:
    """Whether a key is one that `startproject` wrote into a file, or too short: Django's own measure."""
    text = key.decode(errors="replace") if isinstance(key, bytes) else key
    return text.startswith("django-insecure-") or len(text) < 50 or len(set(text)) < 5


def check_celery(**_: Any) -> Iterable[CheckMessage]:
    """W004, W005, W006, W011."""
    from jobtrack.worker.wiring import broker_facts

    settings, facts = _usable() or conf.Settings(), broker_facts()
    found = []
    if facts["eager"]:
        hint = "In tests, use jobtrack.testing.run_due() and leave task_always_eager off."
        found.append(_message("W004", "task_always_eager is on.", hint))
    if not facts["chosen"]:
        hint = "Import your Celery app in the __init__.py beside settings.py: from .celery import app as celery_app."
        found.append(_message("W011", "No Celery app is loaded in this process.", hint))
    visibility_s = facts["visibility_timeout"]
    if isinstance(visibility_s, int | float) and visibility_s < 4 * settings.horizon.total_seconds():
        found.append(_message("W005", f"visibility_timeout is {visibility_s:g} s, HORIZON_S {settings.horizon}."))
    accepted = facts["accept_content"]
    unsafe = sorted({str(kind) for kind in accepted if "json" not in str(kind)}) if isinstance(accepted, list) else []
    if unsafe:
        found.append(_message("W006", f"accept_content holds {', '.join(unsafe)}.", "Set accept_content = ['json']."))
    return found


def check_database(**_: Any) -> Iterable[CheckMessage]:
    """E005, E008, W007, W008."""
    alias = (_usable() or conf.Settings()).database
    database = connections.settings.get(alias)
    if database is None:
        return [_message("E005", f"There is no database {alias!r} in DATABASES.")]
    found = []
    engine, options = str(database.get("ENGINE", "")), database.get("OPTIONS", {})
    if "postgresql" not in engine and database.get("TIME_ZONE") not in (None, "UTC"):
        found.append(_message("E008", f"DATABASES[{alias!r}]['TIME_ZONE'] is {database['TIME_ZONE']}."))
    if "sqlite" in engine:
        if not django_settings.DEBUG:
            found.append(_message("W007", f"The database {alias!r} is SQLite and DEBUG is off."))
        if str(options.get("transaction_mode", "")).upper() not in ("IMMEDIATE", "EXCLUSIVE"):
            hint = "Set OPTIONS = {'transaction_mode': 'IMMEDIATE', 'timeout': 30}."
            found.append(_message("W008", f"The database {alias!r} has no transaction_mode.", hint))
    return found
