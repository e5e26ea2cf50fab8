"""Puts a process's runtime together from the settings, and runs follow-up handlers."""

from __future__ import annotations

import random
import secrets
import time
from difflib import get_close_matches
from importlib import import_module
from inspect import iscoroutinefunction, isgeneratorfunction
from typing import Any

from django.conf import settings as django_settings
from django.utils.module_loading import import_string

from jobtrack.catalog import Catalog, shipped_paths
from jobtrack.core import operation as core
from jobtrack.errors import ConfigurationError
from jobtrack.ports import Runtime
from jobtrack.records import Delivery
from jobtrack.stores.vault import FernetVault
from jobtrack.transports import CredentialResolver, EgressPolicy, HttpxTransport
from jobtrack.transports.credentials import Secret
from jobtrack.worker import wiring
from jobtrack.worker.scheduler import CeleryScheduler
from jobtrack_django import conf, models, receipts
from jobtrack_django.chores import DjangoChores
from jobtrack_django.files import DjangoFiles
from jobtrack_django.policy import stands
from jobtrack_django.signals import SignalListener
from jobtrack_django.store import DjangoStore


def build_runtime() -> Runtime:
    """Everything a flow needs, as the settings say. Nothing is connected yet.

    Raises:
        ConfigurationError: ``JOBTRACK`` cannot be used.
    """
    settings = conf.settings()
    policy = EgressPolicy.of(allow_loopback=settings.allow_loopback, allow_private=settings.allow_private)
    return Runtime(
        store=DjangoStore(settings.database),
        transport=HttpxTransport(credentials(), policy, limits=settings.limits, proxies=settings.proxies),
        scheduler=CeleryScheduler(queue=settings.queue, horizon=settings.horizon, grace=settings.timing.grace),
        tables=catalog(),
        draw=random.random,
        elapsed=time.monotonic,
        listener=SignalListener(settings.database),
        token=lambda: secrets.token_hex(16),
        run_handler=run_handler,
        vault=FernetVault(sealing_keys),
        files=DjangoFiles(spool=settings.result_spool),
        timing=settings.timing,
        limits=settings.limits,
        chores=DjangoChores(settings.database),
        four_eyes=settings.four_eyes,
        stands=stands,
        lapses=settings.lapses,
    )


def catalog() -> Catalog:
    """The provider tables of this site: those under ``TABLES``, and the shipped ones they do not replace."""
    return Catalog(conf.settings().tables, base=shipped_paths())


def credentials() -> CredentialResolver:
    """Finds secrets by the references in ``CREDENTIALS``."""
    return CredentialResolver(references=conf.settings().credentials, setting=_setting)


def secret(reference: str) -> str:
    """The secret that a reference outside ``CREDENTIALS`` leads to.

    Raises:
        CredentialError: it leads nowhere; the message never holds a value.
    """
    resolver = CredentialResolver(references={"": {"": reference}}, setting=_setting)
    return resolver.resolve("", "").reveal()


def sealing_keys() -> list[str | bytes]:
    """The secret texts that seal and open what operations keep encrypted, the first one for sealing.

    Raises:
        CredentialError: A reference leads nowhere; the message never holds a value.
    """
    references = conf.settings().sealing_keys
    if references:
        return [secret(reference) for reference in references]
    return [django_settings.SECRET_KEY, *django_settings.SECRET_KEY_FALLBACKS]


def webhook_secrets(provider: str, account: str) -> tuple[Secret, ...]:
    """The secrets that may sign notices for this account, as they are now; () if none is configured.

    Raises:
        CredentialError: A reference leads nowhere; the message never holds a value.
    """
    references = conf.settings().webhooks.get(provider, {}).get(account, ())
    resolver = credentials()
    return tuple(resolver.follow(reference, provider=provider, account=account) for reference in references)


def _setting(name: str) -> object:
    return getattr(django_settings, name, None)


def run_handler(delivery: Delivery, operation: core.Operation) -> None:
    """Run one follow-up here: a callable gets the ``Operation`` row, a Celery task the operation's id.

    Whatever it raises is a failed attempt. ``receipts.current_delivery()`` tells it what it is called for.
    """
    with receipts.handling(delivery):
        _run(delivery, operation)


def _run(delivery: Delivery, operation: core.Operation) -> None:
    handler = _callable(delivery.handler)
    if handler is None or hasattr(handler, "apply_async"):
        wiring.run_task_inline(getattr(handler, "name", delivery.handler), operation.id)
        return
    if iscoroutinefunction(handler) or isgeneratorfunction(handler):
        raise ConfigurationError(f"{delivery.handler!r} is no plain function: calling it would do nothing.")
    handler(models.Operation.objects.using(conf.settings().database).get(pk=operation.id))


def misspelled(path: str) -> str:
    """What is wrong with the name of a follow-up, in a sentence; "" if it may be right.

    A module that this process cannot import may well be there in a worker, so only a name that is missing from a
    module, and that no Celery task has, is certainly wrong.
    """
    module_name, _, name = path.rpartition(".")
    try:
        module = import_module(module_name) if module_name else None
    except ImportError:
        return ""
    if module is None or hasattr(module, name) or wiring.knows_task(path):
        return ""
    near = get_close_matches(name, dir(module), n=1)
    return f"{module_name!r} has no {name!r}." + (f" Did you mean {near[0]!r}?" if near else "")


def _callable(path: str) -> Any:
    """What a dotted path names; None if there is no such module, so that it can only be the name of a task."""
    module = path.rpartition(".")[0]
    try:
        return import_string(path)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            return None
        raise  # the module is there, and what it imports is not
    except ImportError:
        return None
