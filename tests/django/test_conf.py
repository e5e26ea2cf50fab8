"""The one setting ``JOBTRACK``: defaults, what it refuses, and that it is read live."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from jobtrack.core.escalation import Lapse, Option, Reason, Risk
from jobtrack.core.table import RequestLimits
from jobtrack.errors import ConfigurationError
from jobtrack.ports import Timing
from jobtrack.transports.credentials import REFERENCE_KINDS
from jobtrack_django import conf
from jobtrack_django.conf import NotifierSettings

SECOND = timedelta(seconds=1)

# Key, a value, and what becomes of it.
VALUES = [
    ("TABLES", ["/srv/tables", Path("/srv/more.yaml")], ("/srv/tables", "/srv/more.yaml")),
    ("ACCOUNTS", {"acme": {"default": {"region": "eu"}}}, {"acme": {"default": {"region": "eu"}}}),
    ("CREDENTIALS", {"acme": {"default": "env:ACME_KEY"}}, {"acme": {"default": "env:ACME_KEY"}}),
    ("WEBHOOKS", {"acme": {"default": ["env:A", "env:B"]}}, {"acme": {"default": ("env:A", "env:B")}}),
    ("WEBHOOK_BASE_URL", "https://www.example.com/app/", "https://www.example.com/app"),
    ("PROXIES", {"acme": "http://proxy:3128", "b": "env:PROXY"}, {"acme": "http://proxy:3128", "b": "env:PROXY"}),
    ("ALLOW_LOOPBACK", True, True),
    ("ALLOW_PRIVATE", ["10.0.0.0/8", "fd00::/8"], ("10.0.0.0/8", "fd00::/8")),
    ("DATABASE", "jobs", "jobs"),
    ("QUEUE", "polls", "polls"),
    ("HORIZON_S", 12, 12 * SECOND),
    ("SWEEP", False, False),
    ("SWEEP_INTERVAL_S", 0.25, SECOND / 4),
    ("TIMING", {"margin_s": 3, "delivery_attempts": 2}, Timing(margin=3 * SECOND, delivery_attempts=2)),
    ("LIMITS", {"total_s": 7.5, "max_bytes": 100}, RequestLimits(total=7.5 * SECOND, max_bytes=100)),
    ("AUDIT_KEY", "file:/run/secrets/audit", "file:/run/secrets/audit"),
    ("SEALING_KEYS", ["env:NEW", "setting:OLD"], ("env:NEW", "setting:OLD")),
    ("RESULT_STORAGE", "results", "results"),
    ("RESULT_SPOOL", Path("/var/spool/jobs"), "/var/spool/jobs"),
    ("ADMIN", False, False),
    ("SITE_URL", "https://www.example.com/", "https://www.example.com"),
    (
        "NOTIFIERS",
        {
            "night": {"kind": "email", "to": ["a@x.example"], "from": "b@x.example", "risk": "high", "after_s": 0},
            "ops": {"kind": "webhook", "url": "env:URL", "secret": "env:KEY", "remind_s": 60, "digest_s": 5},
            "chat": {"kind": "slack", "url": "env:URL", "reasons": ["stalled"], "providers": ["acme"]},
            "own": {"kind": "callable", "path": "site.tell"},
        },
        {
            "night": NotifierSettings(kind="email", to=("a@x.example",), sender="b@x.example", risk=Risk.HIGH),
            "ops": NotifierSettings(
                kind="webhook", url="env:URL", secret="env:KEY", remind=60 * SECOND, digest=5 * SECOND
            ),
            "chat": NotifierSettings(kind="slack", url="env:URL", reasons=(Reason.STALLED,), providers=("acme",)),
            "own": NotifierSettings(kind="callable", path="site.tell"),
        },
    ),
    ("FOUR_EYES", ["resubmit", "close"], frozenset({Option.RESUBMIT, Option.CLOSE})),
    (
        "LAPSES",
        {"stalled": {"option": "close", "after_s": 60}},
        {Reason.STALLED: Lapse(option=Option.CLOSE, after=60 * SECOND)},
    ),
    ("POLICY", "site.policy.may", "site.policy.may"),
    ("BULK_LIMIT", 20, 20),
]


def test_every_key_has_a_row_above():
    assert [key for key, _, _ in VALUES] == list(conf._KEYS)
    assert [name for name, _ in conf._KEYS.values()] == [field.name for field in fields(conf.Settings)]


@pytest.mark.parametrize(("key", "value", "expected"), VALUES, ids=[key for key, _, _ in VALUES])
def test_each_key_is_read_and_follows_changes(settings, key, value, expected):
    name = conf._KEYS[key][0]
    default = getattr(conf.Settings(), name)
    settings.JOBTRACK = {}
    assert getattr(conf.settings(), name) == default
    settings.JOBTRACK = {key: value}
    assert getattr(conf.settings(), name) == expected != default
    settings.JOBTRACK = {}
    assert getattr(conf.settings(), name) == default


def test_without_the_setting_everything_is_as_shipped(settings):
    del settings.JOBTRACK
    assert conf.settings() == conf.Settings()


@pytest.mark.parametrize("value", [{"TIMING": {}}, {"LIMITS": {}}, {"AUDIT_KEY": None}, {"HORIZON_S": 30 * SECOND}])
def test_an_empty_part_changes_nothing(value):
    assert conf.read(value) == (conf.Settings(), [])


@pytest.mark.parametrize(
    ("raw", "key", "words"),
    [
        ([], "JOBTRACK", "must be a dictionary"),
        ({"QUEU": "x"}, "JOBTRACK['QUEU']", "Did you mean 'QUEUE'?"),
        ({"queue": "x"}, "JOBTRACK['queue']", "Did you mean 'QUEUE'?"),
        ({"ZZZ": 1}, "JOBTRACK['ZZZ']", "Known are: ACCOUNTS"),
        ({3: 1}, "JOBTRACK[3]", "is not a setting"),
        ({"QUEUE": ""}, "JOBTRACK['QUEUE']", "text that is not empty"),
        ({"SWEEP": "no"}, "JOBTRACK['SWEEP']", "True or False"),
        ({"HORIZON_S": 0}, "JOBTRACK['HORIZON_S']", "above 0"),
        ({"HORIZON_S": True}, "JOBTRACK['HORIZON_S']", "above 0"),
        ({"HORIZON_S": float("nan")}, "JOBTRACK['HORIZON_S']", "above 0"),
        ({"HORIZON_S": "30"}, "JOBTRACK['HORIZON_S']", "above 0"),
        ({"HORIZON_S": timedelta.max}, "JOBTRACK['HORIZON_S']", "above 0"),
        ({"SWEEP_INTERVAL_S": 1e-9}, "JOBTRACK['SWEEP_INTERVAL_S']", "above 0"),
        ({"TABLES": ["a\0b"]}, "JOBTRACK['TABLES']", "paths"),
        ({"TABLES": "tables"}, "JOBTRACK['TABLES']", "list of folders"),
        ({"TABLES": [3]}, "JOBTRACK['TABLES']", "paths"),
        ({"ALLOW_PRIVATE": "10.0.0.0/8"}, "JOBTRACK['ALLOW_PRIVATE']", "list of networks"),
        ({"ALLOW_PRIVATE": ["10.0.0.1/8"]}, "JOBTRACK['ALLOW_PRIVATE']", "host bits"),
        ({"ACCOUNTS": {"acme": []}}, "JOBTRACK['ACCOUNTS']['acme']", "must be a dictionary"),
        ({"ACCOUNTS": {"a": {"b": {"c": 1}}}}, "JOBTRACK['ACCOUNTS']['a']['b']['c']", "text that is not empty"),
        ({"WEBHOOK_BASE_URL": "www.example.com"}, "JOBTRACK['WEBHOOK_BASE_URL']", "beginning of an address"),
        ({"WEBHOOK_BASE_URL": "https://u:p@x.example"}, "JOBTRACK['WEBHOOK_BASE_URL']", "beginning of an address"),
        ({"WEBHOOK_BASE_URL": "https://x.example/?a"}, "JOBTRACK['WEBHOOK_BASE_URL']", "beginning of an address"),
        ({"PROXIES": "http://proxy:3128"}, "JOBTRACK['PROXIES']", "must be a dictionary"),
        ({"PROXIES": {"acme": "proxy:3128"}}, "JOBTRACK['PROXIES']['acme']", "written http://host:port"),
        ({"PROXIES": {"acme": None}}, "JOBTRACK['PROXIES']['acme']", "written http://host:port"),
        ({"PROXIES": {"acme": "http://u:p@proxy:1"}}, "JOBTRACK['PROXIES']['acme']", "write a reference"),
        ({"TIMING": []}, "JOBTRACK['TIMING']", "must be a dictionary"),
        ({"TIMING": {"margin": 3}}, "JOBTRACK['TIMING']['margin']", "Did you mean 'margin_s'?"),
        ({"TIMING": {"delivery_attempts": 0}}, "JOBTRACK['TIMING']['delivery_attempts']", "at least 1"),
        ({"LIMITS": {"total_s": -1}}, "JOBTRACK['LIMITS']['total_s']", "above 0"),
        ({"WEBHOOKS": {"acme": {"default": "env:A"}}}, "JOBTRACK['WEBHOOKS']['acme']['default']", "list of references"),
        ({"WEBHOOKS": {"acme": {"default": []}}}, "JOBTRACK['WEBHOOKS']['acme']['default']", "list of references"),
        (
            {"WEBHOOKS": {"acme": {"default": ["x"]}}},
            "JOBTRACK['WEBHOOKS']['acme']['default']",
            "reference to a secret",
        ),
        ({"SEALING_KEYS": []}, "JOBTRACK['SEALING_KEYS']", "list of references"),
        ({"SEALING_KEYS": "env:A"}, "JOBTRACK['SEALING_KEYS']", "list of references"),
        ({"SEALING_KEYS": ["env:A", "key"]}, "JOBTRACK['SEALING_KEYS']", "reference to a secret"),
        ({"RESULT_STORAGE": ""}, "JOBTRACK['RESULT_STORAGE']", "text that is not empty"),
        ({"RESULT_SPOOL": "spool"}, "JOBTRACK['RESULT_SPOOL']", "absolute path"),
        ({"AUDIT_KEY": "x"}, "JOBTRACK['AUDIT_KEY']", "reference to a secret"),
        ({"SITE_URL": "www.example.com"}, "JOBTRACK['SITE_URL']", "beginning of an address"),
        ({"NOTIFIERS": ["a"]}, "JOBTRACK['NOTIFIERS']", "must be a dictionary"),
        (
            {"NOTIFIERS": {"n" * 101: {"kind": "callable", "path": "a.b"}}},
            f"JOBTRACK['NOTIFIERS']['{'n' * 101}']",
            "at most 100",
        ),
        ({"NOTIFIERS": {"a\0": {"kind": "callable", "path": "a.b"}}}, "JOBTRACK['NOTIFIERS']['a\\x00']", "printable"),
        ({"NOTIFIERS": {"a": "x"}}, "JOBTRACK['NOTIFIERS']['a']", "must be a dictionary"),
        ({"NOTIFIERS": {"a": {"to": ["x"]}}}, "JOBTRACK['NOTIFIERS']['a']['kind']", "is missing"),
        ({"NOTIFIERS": {"a": {"kind": "sms"}}}, "JOBTRACK['NOTIFIERS']['a']['kind']", "must be one of 'email'"),
        ({"NOTIFIERS": {"a": {"kind": "email"}}}, "JOBTRACK['NOTIFIERS']['a']", "'email' needs 'to'"),
        (
            {"NOTIFIERS": {"a": {"kind": "slack", "url": "env:A", "secret": "env:B"}}},
            "JOBTRACK['NOTIFIERS']['a']",
            "'slack' takes no 'secret'",
        ),
        (
            {"NOTIFIERS": {"a": {"kind": "callable", "path": "a.b", "from": "x"}}},
            "JOBTRACK['NOTIFIERS']['a']",
            "'callable' takes no 'from'",
        ),
        (
            {"NOTIFIERS": {"a": {"kind": "webhook", "url": "env:A"}}},
            "JOBTRACK['NOTIFIERS']['a']",
            "'webhook' needs 'secret'",
        ),
        (
            {"NOTIFIERS": {"a": {"kind": "email", "to": ["x"], "after": 1}}},
            "JOBTRACK['NOTIFIERS']['a']['after']",
            "Did you mean 'after_s'?",
        ),
        (
            {"NOTIFIERS": {"a": {"kind": "email", "to": ["x"], "remind_s": 0}}},
            "JOBTRACK['NOTIFIERS']['a']['remind_s']",
            "above 0",
        ),
        (
            {"NOTIFIERS": {"a": {"kind": "email", "to": ["x"], "reasons": ["stall"]}}},
            "JOBTRACK['NOTIFIERS']['a']['reasons']",
            "Did you mean 'stalled'?",
        ),
        (
            {"NOTIFIERS": {"a": {"kind": "email", "to": ["x"], "risk": "huge"}}},
            "JOBTRACK['NOTIFIERS']['a']['risk']",
            "Known are: high, low, medium",
        ),
        ({"FOUR_EYES": "close"}, "JOBTRACK['FOUR_EYES']", "must be a list"),
        ({"FOUR_EYES": ["clos"]}, "JOBTRACK['FOUR_EYES']", "Did you mean 'close'?"),
        (
            {"LAPSES": {"stall": {"option": "close", "after_s": 1}}},
            "JOBTRACK['LAPSES']['stall']",
            "Did you mean 'stalled'?",
        ),
        ({"LAPSES": {"stalled": {"option": "close"}}}, "JOBTRACK['LAPSES']['stalled']['after_s']", "is missing"),
        (
            {"LAPSES": {"submission_unknown": {"option": "resubmit", "after_s": 1}}},
            "JOBTRACK['LAPSES']['submission_unknown']['option']",
            "must not happen by itself",
        ),
        (
            {"LAPSES": {"authorization_denied": {"option": "close", "after_s": 1}}},
            "JOBTRACK['LAPSES']['authorization_denied']['option']",
            "waits for a person",
        ),
        ({"POLICY": ""}, "JOBTRACK['POLICY']", "text that is not empty"),
        ({"BULK_LIMIT": 0}, "JOBTRACK['BULK_LIMIT']", "at least 1"),
    ],
)
def test_a_mistake_is_named_with_what_to_write(settings, raw, key, words):
    _, (problem,) = conf.read(raw)
    assert problem.key == key
    assert words in f"{problem.message} {problem.hint}"
    settings.JOBTRACK = raw
    with pytest.raises(ConfigurationError) as caught:
        conf.settings()
    assert key in str(caught.value)


def test_all_mistakes_are_found_in_one_run():
    _, problems = conf.read({"QUEU": 1, "SWEEP": 1, "CREDENTIALS": {"a": {"x": "k1", "y": "k2"}}})
    assert [problem.key for problem in problems] == [
        "JOBTRACK['QUEU']",
        "JOBTRACK['SWEEP']",
        "JOBTRACK['CREDENTIALS']['a']['x']",
        "JOBTRACK['CREDENTIALS']['a']['y']",
    ]


@pytest.mark.parametrize("written", ["sk-live-CANARY", "ENV:CANARY", "env:", 17, None, "vault:CANARY"])
def test_what_may_be_a_secret_is_never_repeated(settings, written):
    """INV-33: somebody will paste the key itself."""
    for jobtrack in (
        {"CREDENTIALS": {"acme": {"default": written}}},
        {"WEBHOOKS": {"acme": {"default": [written]}}},
        {"SEALING_KEYS": [written]},
        {"NOTIFIERS": {"a": {"kind": "slack", "url": written}}},
        {"NOTIFIERS": {"a": {"kind": "webhook", "url": "env:A", "secret": written}}},
    ):
        settings.JOBTRACK = jobtrack
        with pytest.raises(ConfigurationError) as caught:
            conf.settings()
        assert "CANARY" not in repr(caught.value) + str(caught.value.context)


def test_a_credential_in_the_wrong_place_is_not_repeated(settings):
    """INV-33."""
    settings.JOBTRACK = {"SEALING_KEYS": "CANARY"}
    with pytest.raises(ConfigurationError) as caught:
        conf.settings()
    assert "CANARY" not in repr(caught.value) + str(caught.value.context)


@pytest.mark.parametrize(
    "written", ["http://user:CANARY@proxy:3128", "http://CANARY", "https://u:CANARY@p:1", "CANARY"]
)
def test_the_password_of_a_proxy_is_never_repeated(settings, written):
    """INV-33."""
    settings.JOBTRACK = {"PROXIES": {"acme": written}}
    with pytest.raises(ConfigurationError) as caught:
        conf.settings()
    assert "CANARY" not in repr(caught.value) + str(caught.value.context)


def test_references_are_of_the_kinds_the_transport_knows():
    assert conf.REFERENCES == REFERENCE_KINDS


def test_every_key_is_described_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    described = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    parts = [f"{key}_s" if isinstance(getattr(Timing(), key), timedelta) else key for key in _names(Timing)]
    parts += [
        f"{key}_s" if isinstance(getattr(RequestLimits(), key), timedelta) else key for key in _names(RequestLimits)
    ]
    assert described == [*conf._KEYS, *parts]


def _names(record):
    return [field.name for field in fields(record)]
