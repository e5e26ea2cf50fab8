"""Each system check: its id, its trigger and its line in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core import checks as django_checks
from django.db import connections

from jobtrack.worker import wiring
from jobtrack_django import checks

TABLE = """
jobtrack: 1
id: {id}
name: X
docs: https://x.example/docs
revision: 1
hosts: ["https://{{region}}.x.example"]
params: {{region: {{from: account, pattern: dns-label}}}}
auth: bearer
status:
  request: {{method: GET, path: "/jobs/{{job_id}}"}}
  echo: /id
  state: /status
  states: {{pending: [{pending}], success: [done], failure: [failed]}}
  result: {{require: {{}}}}
examples:
  - {{reply: {{http: 200, json: {{id: exp_1, status: running}}}}, means: pending}}
"""


@pytest.fixture(autouse=True)
def sound(settings, monkeypatch):
    """A site that no check has anything to say about; each test breaks one thing."""
    settings.JOBTRACK = {}
    database(monkeypatch, engine="postgresql")
    facts = {
        "eager": False,
        "transport": "redis",
        "visibility_timeout": 3600.0,
        "accept_content": ["json"],
        "task_serializer": "json",
        "chosen": True,
    }
    monkeypatch.setattr(wiring, "broker_facts", lambda: facts)
    return facts


def database(monkeypatch, *, engine, **options):
    entry = {"ENGINE": f"django.db.backends.{engine}", "TIME_ZONE": None, "OPTIONS": {}, **options}
    monkeypatch.setattr(connections, "settings", {"default": entry})


@pytest.fixture
def table(tmp_path):
    def write(name="x-jobs", pending="running"):
        (tmp_path / f"{name}.yaml").write_text(TABLE.format(id=name, pending=pending))
        return [str(tmp_path)]

    return write


def found():
    return [
        (message.id.removeprefix("jobtrack."), message.msg) for message in django_checks.run_checks(tags=["jobtrack"])
    ]


def ids():
    return [number for number, _ in found()]


def test_a_sound_site_passes():
    assert found() == []


def test_unknown_and_unusable_settings(settings):
    settings.JOBTRACK = {"QUEU": "x", "SWEEP": 3}
    assert ids() == ["E001", "E002"]
    assert django_checks.run_checks(tags=["jobtrack"])[0].hint == "Did you mean 'QUEUE'?"


def test_a_broken_table_is_shown_with_its_place(settings, table):
    settings.JOBTRACK = {"TABLES": table(pending="no")}
    errors = [message for number, message in found() if number == "E003"]
    assert any("x-jobs.yaml:14:22:" in message for message in errors), errors


def test_a_table_with_a_doubt_is_a_warning(settings, table, monkeypatch):
    from jobtrack.catalog import Catalog, Finding, Level

    doubt = Finding(file="x.yaml", line=3, column=7, path="hosts", code="c", message="Hm.", level=Level.WARNING)
    monkeypatch.setattr(Catalog, "findings", lambda self: [doubt])
    assert found() == [("W001", "x.yaml:3:7: warning: Hm.")]


def test_a_path_that_does_not_exist(settings):
    """Named once: as a path, and not as a broken table too."""
    settings.JOBTRACK = {"TABLES": ["/nowhere/at-all", "/nowhere//a-file.yaml"]}
    assert ids() == ["E004", "E004"]


@pytest.mark.parametrize(
    ("jobtrack", "expected"),
    [
        ({}, []),
        ({"ACCOUNTS": {"acme-export": {}}}, ["W010"]),
        ({"CREDENTIALS": {"acme-export": {}}}, ["W010"]),
        ({"ACCOUNTS": {"acme-export": {}}, "ALLOW_LOOPBACK": True}, []),
        ({"ACCOUNTS": {"openai-batch": {}}}, []),
    ],
    ids=["only shipped", "an account", "a credential", "allowed", "another table"],
)
def test_a_used_table_that_may_not_reach_this_machine(settings, jobtrack, expected):
    settings.JOBTRACK = jobtrack
    assert ids() == expected


def test_an_own_table_that_may_not_reach_this_machine(settings, table, tmp_path):
    settings.JOBTRACK = {"TABLES": table()}
    assert "W010" not in ids()
    path = tmp_path / "x-jobs.yaml"
    path.write_text(path.read_text().replace("auth: bearer", "auth: bearer\nallow_loopback: true"))
    (warning,) = [text for number, text in found() if number == "W010"]
    assert warning == "The table 'x-jobs' says allow_loopback, but ALLOW_LOOPBACK is off."


def test_a_database_that_does_not_exist(settings):
    settings.JOBTRACK = {"DATABASE": "jobs"}
    assert ids() == ["E005"]


def test_no_time_zones(settings):
    settings.USE_TZ = False
    assert ids() == ["E006"]


def test_an_account_without_credential_or_parameter(settings, table, monkeypatch):
    monkeypatch.setenv("X_KEY", "secret")
    settings.JOBTRACK = {
        "TABLES": table(),
        "ACCOUNTS": {"x-jobs": {"eu": {"region": "eu"}, "us": {"region": "us"}}},
        "CREDENTIALS": {"x-jobs": {"us": "env:X_KEY", "test": "env:X_KEY"}},
    }
    assert found() == [
        ("E007", "CREDENTIALS has nothing for account 'eu' of 'x-jobs'."),
        ("E007", "ACCOUNTS lacks the parameter 'region' for account 'test' of 'x-jobs'."),
    ]


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"region": "../x"}, "the parameter 'region' of table x-jobs is not a dns-label."),
        ({"region": "eu", "regoin": "us"}, "table x-jobs has no parameter 'regoin'."),
    ],
)
def test_a_parameter_of_an_account_that_would_be_refused_by_every_call(settings, table, monkeypatch, params, said):
    monkeypatch.setenv("X_KEY", "k")
    settings.JOBTRACK = {
        "TABLES": table(),
        "ACCOUNTS": {"x-jobs": {"us": params}},
        "CREDENTIALS": {"x-jobs": {"us": "env:X_KEY"}},
    }
    assert found() == [("E007", f"ACCOUNTS, account 'us' of 'x-jobs': {said}")]


@pytest.mark.parametrize(("engine", "expected"), [("mysql", ["E008"]), ("postgresql", [])])
def test_a_database_with_a_time_zone_of_its_own(monkeypatch, engine, expected):
    database(monkeypatch, engine=engine, TIME_ZONE="Asia/Karachi")
    assert ids() == expected


def test_references_that_lead_nowhere(settings, table, monkeypatch):
    monkeypatch.delenv("X_KEY", raising=False)
    settings.JOBTRACK = {
        "TABLES": table(),
        "ACCOUNTS": {"x-jobs": {name: {"region": "eu"} for name in ("a", "b")}},
        "CREDENTIALS": {"x-jobs": {"a": "env:X_KEY", "b": "callable:not.run.here"}},
        "PROXIES": {"x-jobs": "env:X_KEY", "acme-export": "http://proxy:3128"},
        "WEBHOOKS": {"x-jobs": {"a": ["callable:not.run.here", "env:X_KEY"]}},
        "AUDIT_KEY": "file:/nowhere/key",
    }
    assert [message.partition(":")[0] for number, message in found() if number == "W002"] == [
        "CREDENTIALS['x-jobs']['a']",
        "WEBHOOKS['x-jobs']['a'][1]",
        "PROXIES['x-jobs']",
        "AUDIT_KEY",
    ]


def test_a_sealing_key_that_leads_nowhere_is_an_error(settings, monkeypatch):
    monkeypatch.delenv("X_KEY", raising=False)
    settings.JOBTRACK = {"SEALING_KEYS": ["setting:SECRET_KEY", "env:X_KEY", "callable:not.run.here"]}
    assert found() == [("E009", "SEALING_KEYS[1]: env:X_KEY is not set.")]


@pytest.mark.parametrize("key", ["django-insecure-" + "k3y!" * 20, "short", "ab" * 40])
@pytest.mark.parametrize("jobtrack", [{}, {"SEALING_KEYS": ["setting:OTHER", "setting:SECRET_KEY"]}])
def test_a_secret_key_that_is_easy_to_guess_seals_nothing_in_production(settings, key, jobtrack):
    settings.SECRET_KEY, settings.OTHER, settings.JOBTRACK = key, "x", jobtrack
    assert found() == []
    deployed = django_checks.run_checks(tags=["jobtrack"], include_deployment_checks=True)
    assert [message.id for message in deployed] == ["jobtrack.W012"]


@pytest.mark.parametrize(
    ("key", "jobtrack"),
    [("kwq2 0sadf-lk1j4!fds98" * 3, {}), ("short", {"SEALING_KEYS": ["setting:OTHER"]})],
    ids=["a good key", "not used"],
)
def test_a_site_that_seals_well_is_not_warned(settings, key, jobtrack):
    settings.SECRET_KEY, settings.OTHER, settings.JOBTRACK = key, "x", jobtrack
    assert django_checks.run_checks(tags=["jobtrack"], include_deployment_checks=True) == []


def test_a_result_storage_that_does_not_exist(settings):
    settings.JOBTRACK = {"RESULT_STORAGE": "results"}
    assert found() == [("E010", "There is no storage 'results' in STORAGES.")]
    settings.STORAGES = {**settings.STORAGES, "results": settings.STORAGES["default"]}
    assert found() == []


def test_a_name_of_no_table(settings):
    for value in (
        {"ACCOUNTS": {"acme-exprot": {}}},
        {"PROXIES": {"acme-exprot": "http://proxy:3128"}},
        {"WEBHOOKS": {"acme-exprot": {}}},
    ):
        settings.JOBTRACK = value
        assert found() == [("W003", "There is no provider table 'acme-exprot'.")]


@pytest.mark.parametrize(
    ("fact", "value", "number"),
    [
        ("eager", True, "W004"),
        ("chosen", False, "W011"),
        ("visibility_timeout", 60.0, "W005"),
        ("accept_content", ["json", "pickle"], "W006"),
    ],
)
def test_unsafe_celery_settings(sound, fact, value, number):
    sound[fact] = value
    assert ids() == [number]


def test_a_broker_without_such_a_limit_is_fine(sound):
    sound["visibility_timeout"] = None
    assert found() == []


@pytest.mark.parametrize(
    ("debug", "options", "expected"),
    [
        (False, {}, ["W007", "W008"]),
        (False, {"transaction_mode": "IMMEDIATE"}, ["W007"]),
        (True, {"transaction_mode": "exclusive"}, []),
        (True, {}, ["W008"]),
    ],
)
def test_sqlite(settings, monkeypatch, debug, options, expected):
    settings.DEBUG = debug
    database(monkeypatch, engine="sqlite3", OPTIONS=options)
    assert ids() == expected


def test_limits_that_contradict_each_other(settings):
    settings.JOBTRACK = {"LIMITS": {"total_s": 3, "read_s": 10}}
    assert ids() == ["W009"]


def told(**notifier):
    return {"NOTIFIERS": {"night": notifier}, "SITE_URL": "https://desk.example"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("tests.django.notices_desk.nobody", "cannot be imported (ImportError)"),
        ("nowhere.to.be.found", "cannot be imported (ModuleNotFoundError)"),
        ("tests.django.broken_handler.handle", "cannot be imported"),
        ("tests.django.notices_desk.SITE_URL", "is no function"),
    ],
)
def test_functions_that_cannot_be_called(settings, path, words):
    settings.JOBTRACK = told(kind="callable", path=path)
    (number, text), *more = found()
    assert (number, more) == ("E011", [])
    assert text.startswith(f"NOTIFIERS['night']['path']: {path!r} {words}")
    settings.JOBTRACK = {"POLICY": path}
    assert ids() == ["E011"]
    settings.JOBTRACK = {"POLICY": "tests.django.notices_desk.take"}
    assert ids() == []


def test_notices_without_a_link(settings):
    settings.JOBTRACK = {"NOTIFIERS": {"night": {"kind": "email", "to": ["a@x.example"]}}}
    assert found() == [("W013", "NOTIFIERS are set and SITE_URL is not.")]


def test_notifiers_whose_secrets_are_not_here(settings):
    settings.HOOK = "https://x.example/CANARY"
    settings.JOBTRACK = told(kind="webhook", url="setting:HOOK", secret="env:JOBTRACK_NOBODY_SET_THIS")
    ((number, text),) = found()
    assert (number, text.split(":")[0]) == ("W002", "NOTIFIERS['night']['secret']")
    assert "CANARY" not in text


def test_an_option_that_needs_two_people_does_not_lapse(settings):
    settings.JOBTRACK = {"FOUR_EYES": ["close"], "LAPSES": {"stalled": {"option": "close", "after_s": 60}}}
    assert found() == [("W014", "LAPSES['stalled'] chooses 'close', which FOUR_EYES wants two people for.")]


def test_no_sweeper(settings):
    settings.JOBTRACK = {"SWEEP": False}
    assert ids() == ["I001"]


def test_the_docs_list_every_id_with_the_same_words():
    page = (Path(__file__).parents[2] / "docs" / "checks.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `jobtrack.")]
    assert {number.strip("`").removeprefix("jobtrack."): text for number, text in rows} == dict(checks.IDS)


def test_every_id_is_named_by_the_check_that_gives_it():
    functions = (
        checks.check_settings,
        checks.check_desk,
        checks.check_tables,
        checks.check_accounts,
        checks.check_celery,
        checks.check_database,
        checks.check_sealing,
    )
    named = [number.strip(".") for check in functions for number in (check.__doc__ or "").replace(",", "").split()]
    assert sorted(named) == sorted(checks.IDS)
