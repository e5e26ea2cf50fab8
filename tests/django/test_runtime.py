"""How the settings become a runtime, and how it follows them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.storage import InMemoryStorage

from jobtrack.core.sealed import Sealed
from jobtrack.core.table import RequestLimits
from jobtrack.errors import ConfigurationError, CredentialError, VaultError
from jobtrack.stores.vault import FernetVault
from jobtrack.transports import HttpxTransport
from jobtrack.worker import sweeper, wiring
from jobtrack.worker.scheduler import CeleryScheduler
from jobtrack_django import apps, runtime
from jobtrack_django.store import DjangoStore
from jobtrack_django.testing import rehearsal


def test_declared_proxies_reach_the_transport(settings):
    settings.JOBTRACK = {"PROXIES": {"acme": "http://proxy.example:3128"}}
    transport = wiring.get_runtime().transport
    assert isinstance(transport, HttpxTransport)
    assert transport._proxies == {"acme": "http://proxy.example:3128"}


def test_a_runtime_is_what_the_settings_say(settings, tmp_path):
    settings.JOBTRACK = {
        "DATABASE": "jobs",
        "HORIZON_S": 7,
        "TIMING": {"grace_s": 3},
        "LIMITS": {"total_s": 4},
        "TABLES": [str(tmp_path)],
    }
    built = wiring.get_runtime()
    assert isinstance(built.store, DjangoStore)
    assert isinstance(built.transport, HttpxTransport)
    assert isinstance(built.scheduler, CeleryScheduler)
    assert (built.store.using, built.scheduler.horizon) == ("jobs", timedelta(seconds=7))
    assert (built.timing.grace, built.limits) == (
        timedelta(seconds=3),
        RequestLimits(total=timedelta(seconds=4)),
    )
    assert built.tables.get("acme-export").id == "acme-export"
    assert built.tables.get("nobody") is None
    assert 0 <= built.draw() < 1
    assert (len(built.token()), built.token() != built.token()) == (32, True)
    assert wiring.get_runtime() is built


def test_the_runtime_of_a_process_follows_the_settings(settings):
    before = wiring.get_runtime()
    settings.JOBTRACK = {"QUEUE": "other"}
    assert wiring.get_runtime() is not before


def test_unusable_settings_stop_a_worker(settings):
    settings.JOBTRACK = {"QUEU": "x"}
    with pytest.raises(ConfigurationError, match="QUEUE"):
        wiring.get_runtime()


def test_a_worker_is_told_its_options(settings):
    settings.JOBTRACK = {"QUEUE": "polls", "SWEEP": False, "SWEEP_INTERVAL_S": 2}
    assert apps._worker_options() == sweeper.WorkerOptions(queue="polls", sweep=False, interval_s=2.0)


SEALED = Sealed(handle="CANARY")


def test_operations_are_sealed_with_the_secret_key_unless_keys_are_named(settings):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "first", []
    text = wiring.get_runtime().vault.seal("op-1", SEALED)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "second", ["first"]
    assert wiring.get_runtime().vault.open("op-1", text) == SEALED
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(VaultError):
        wiring.get_runtime().vault.open("op-1", text)


def test_named_keys_seal_in_their_order_and_are_read_when_used(settings, monkeypatch):
    """A rotated key counts at once, without a restart; a missing one stops nothing before it is needed."""
    settings.JOBTRACK = {"SEALING_KEYS": ["env:NEW_KEY", "setting:OLD_KEY"]}
    vault = wiring.get_runtime().vault
    settings.OLD_KEY = "old"
    with pytest.raises(CredentialError):
        vault.seal("op-1", SEALED)
    monkeypatch.setenv("NEW_KEY", "new")
    text = vault.seal("op-1", SEALED)
    assert FernetVault(["new"]).open("op-1", text) == SEALED
    assert vault.open("op-1", FernetVault(["old"]).seal("op-1", SEALED)) == SEALED


def test_a_rehearsal_stores_results_in_memory():
    """A test of a site leaves no file in its storage."""
    with rehearsal() as site, wiring.get_runtime().files.open(stored()) as file:
        assert file.read() == b"x"
        assert isinstance(site.runtime.files.used_storage(), InMemoryStorage)


def stored():
    writer = wiring.get_runtime().files.writer("op-1", "r.csv", resume=None)
    writer.feed(b"x")
    return writer.finish()


def test_results_go_where_the_settings_say(settings, tmp_path):
    settings.MEDIA_ROOT = str(tmp_path / "media")
    settings.JOBTRACK = {"RESULT_SPOOL": tmp_path / "spool"}
    writer = wiring.get_runtime().files.writer("op-1", "r.csv", resume=None)
    assert len(list((tmp_path / "spool").iterdir())) == 1
    assert (tmp_path / "media" / writer.finish().path).exists()


def test_the_secrets_of_notices_are_found_by_account(settings):
    settings.A, settings.B = "CANARY-a", "CANARY-b"
    settings.JOBTRACK = {"WEBHOOKS": {"acme": {"default": ["setting:A", "setting:B"], "eu": ["setting:C"]}}}
    found = runtime.webhook_secrets("acme", "default")
    assert [secret.reveal() for secret in found] == ["CANARY-a", "CANARY-b"]
    assert "CANARY" not in repr(found)
    assert runtime.webhook_secrets("acme", "us") == runtime.webhook_secrets("other", "default") == ()
    with pytest.raises(CredentialError):
        runtime.webhook_secrets("acme", "eu")


def test_secrets_are_found_by_reference(settings):
    settings.ACME_KEY = "CANARY"
    settings.JOBTRACK = {"CREDENTIALS": {"acme-export": {"default": "setting:ACME_KEY"}}}
    assert runtime.credentials().resolve("acme-export", "default").reveal() == "CANARY"
    assert runtime.secret("setting:ACME_KEY") == "CANARY"
    with pytest.raises(CredentialError):
        runtime.secret("setting:NOBODY")
