"""The support bundle (R-AUDIT-4): what it holds, and what must not be in it (R-AUDIT-3, INV-33)."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from jobtrack_django import get_operation, submit, track
from jobtrack_django.bundle import Pseudonyms, as_text, bundle
from jobtrack_django.models import Escalation, JobResult, Notice, Operation
from jobtrack_django.testing import answer, no_answer, rehearsal
from tests.django.admin_pages import person, question_url, read
from tests.django.admin_tills import CANARY, TABLE, asked
from tests.django.test_admin_submissions import logged_in

pytestmark = [pytest.mark.database, pytest.mark.django_db]

READS = ["view_operation", "view_escalation"]
TOKEN = "sk-canary00000000000000"
SECRETS = (
    *(CANARY, TOKEN, "canary-link", "canary-query", "order-7", "pay-100200300", "pay-1", "Order 7", "ann", "Dr. Who"),
    *("ann@example.com", "I looked", "4711-0815-2342"),
)


@pytest.fixture
def till(settings, tmp_path: Path):
    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)]}
    with rehearsal() as here:
        yield here


def url(operation_id="order-7"):
    return reverse("admin:jobtrack_operation_bundle", args=[operation_id])


def eventful(till):
    """An operation with a doubt, a decision, a failing job that talks too much, a result and a notice."""
    escalation = asked(till, listed=no_answer())
    till.provider.on(
        "GET",
        "/v1/payments/pay-100200300",
        answer(
            json={
                "status": "failed",
                "error": f"{TOKEN} of ann@example.com: card 4711-0815-2342, order-7, see https://x.example/?canary-query=1",
            }
        ),
    )
    till.decide(escalation.operation, "attach_job", actor="ann", reason="Dr. Who: I looked", job_id="pay-100200300")
    till.run_due()
    JobResult.objects.create(operation_id="order-7", state="wanted", link="https://link.example/canary-link")
    Notice.objects.create(escalation=escalation, notifier="night", turn=1, outcome="sent", sent_at=till.clock())
    return escalation


def made(till, operation_id="order-7"):
    return bundle(till.runtime, get_operation(operation_id))


def test_it_says_what_has_happened(till):
    """Times with zones, each answer's HTTP status or trouble, the last state, budgets, decisions, table and chain."""
    eventful(till)
    told = made(till)
    assert told["made_at"].endswith("+00:00")
    assert told["time_zone"] == {"instants": "UTC", "site": "UTC"}
    operation = told["operation"]
    assert (operation["state"], operation["last_state"], operation["last_http"]) == ("failed", "failed", 200)
    assert operation["accepted_at"].endswith("+00:00")
    assert told["budgets"]["submissions"] == {"used": 1, "allowed": 1}
    assert told["submitted_again"] is False
    assert told["table"]["read_with"] == told["table"]["site_has"]
    assert told["chain"] == {"intact": True, "entries_here": 9, "entries": 9, "broken_at": None}
    seen = [each["observation"] for each in told["story"] if "observation" in each]
    assert seen[0]["trouble"] == "read_timeout"
    assert seen[-1]["http"] == 200
    decided = next(each for each in told["story"] if each["event"] == "decision")
    assert (decided["person"], decided["option"], decided["persons_words"]) == ("person-1", "attach_job", "left out")
    question = told["questions"][0]
    assert (question["reason"], question["person"]) == ("submission_unknown", "person-1")
    assert question["job"] == decided["job"] == operation["job"]
    assert operation["job"].startswith("job-1 (…")
    assert [each["outcome"] for each in question["notices"]] == ["sent"]
    assert set(told["versions"]) == {"jobtrack", "audit", "django", "python"}


def test_whether_anything_was_submitted_again(till):
    asked(till)
    assert made(till)["submitted_again"] is False
    Operation.objects.update(limit_submissions=2, spent_submissions=2)
    assert made(till)["submitted_again"] is True


def test_no_secret_and_no_id_is_in_it(till):
    """A canary in every place that is not for others: content, token, address, ids, names, people's own words."""
    eventful(till)
    sealed = "ciphertext-canary"
    Operation.objects.update(
        sealed=sealed, evidence={"job_id": "pay-1", "sealed": sealed}, params={"shop": "canary-shop"}
    )
    Escalation.objects.update(actor_reason="Dr. Who: I looked", detail=f"order-7 and pay-1 of ann@example.com, {TOKEN}")
    text = as_text(made(till))
    assert [secret for secret in (*SECRETS, sealed, "canary-shop") if secret in text] == []
    assert "canary" not in text
    assert "http://" not in text
    assert "https://" not in text


def test_the_same_is_the_same(till):
    """Keys in order, pseudonyms by first appearance: two bundles of one moment are the same bytes."""
    eventful(till)
    first, second = as_text(made(till)), as_text(made(till))
    assert first == second
    assert json.dumps(json.loads(first), sort_keys=True, indent=2, ensure_ascii=False) + "\n" == first


def test_entries_of_others_are_told_as_far_as_they_are_harmless(till):
    """A newer release may write anything; what was tampered with may hold anything."""
    from jobtrack_django.bundle import _entry
    from jobtrack_django.models import AuditEntry

    operation = track("till", job_id="pay-9", operation_id="order-9")
    body = {
        "event": "of_a_newer_release",
        "secret": "x",
        "reads": "My Name",
        "observation": [],
        "decision": "x",
        "found": 3,
    }
    row = AuditEntry(operation=operation, seq=1, hash="f" * 64, at=till.clock(), body=json.dumps(body))
    told = _entry(row, Pseudonyms())
    assert (told["event"], "secret" in told, told["reads"]) == ("of_a_newer_release", False, "My Name")
    row.body = "not json"
    assert _entry(row, Pseudonyms())["readable"] is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("disk full", "disk full"),
        ("no card 4711-0815-2342", "no card [id]"),
        ("ask bob@example.com", "ask [id]"),
        ("not before 2030-01-07 12:00:00", "not before 2030-01-07 12:00:00"),
        ("instead of exp_2", "instead of [id]"),
        ("see https://x.example/a?b=c now", "see [address] now"),
        ("job pay-100200300 failed", "job [job-1 (…0300)] failed"),
        ("x" * 500, "x" * 199 + "…"),
    ],
)
def test_the_words_of_a_provider_are_bounded_and_bare(text, expected):
    names = Pseudonyms()
    names.of("job", "pay-100200300")
    assert names.text(text) == expected


def test_pseudonyms_are_stable_and_keep_an_end_of_long_ids_only():
    names = Pseudonyms()
    assert names.of("job", "exp_1") == "job-1"
    assert names.of("job", "export-20300107-abcd") == "job-2 (…abcd)"
    assert names.of("job", "exp_1") == "job-1"
    assert names.of("person", "somebody-with-a-long-name") == "person-1"
    assert (names.of("job", ""), names.of("job", None)) == (None, None)


# --- the download -----------------------------------------------------------------------------------


def test_it_is_a_download_that_is_noted(till):
    eventful(till)
    client = logged_in(person("eva", *READS, "download_bundle"))
    response = client.get(url())
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json; charset=utf-8"
    disposition = response["Content-Disposition"]
    assert disposition.startswith('attachment; filename="jobtrack-')
    assert "order-7" not in disposition
    assert "no-store" in response["Cache-Control"]
    assert json.loads(response.content)["operation"]["state"] == "failed"
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id, entry.get_change_message()) == (
        *("eva", "order-7"),
        "Support bundle downloaded.",
    )


def test_only_with_its_permission(till):
    """INV-29."""
    escalation = asked(till)
    everybody = {
        "all": logged_in(person("eva", *READS, "download_bundle")),
        "reads": logged_in(person("ann", *READS)),
        "blind": logged_in(person("bob", "download_bundle")),
        "outsider": logged_in(person("cem", *READS, "download_bundle", staff=False)),
        "nobody": Client(),
    }
    found = {name: client.get(url()).status_code for name, client in everybody.items()}
    assert found == {"all": 200, "reads": 403, "blind": 403, "outsider": 302, "nobody": 302}
    assert LogEntry.objects.count() == 1
    for name, offered in (("all", True), ("reads", False)):
        for page in (question_url(escalation), reverse("admin:jobtrack_operation_change", args=["order-7"])):
            assert (url() in read(everybody[name].get(page)).html) == offered


def test_other_methods_and_other_ids(till):
    asked(till)
    client = logged_in(person("eva", *READS, "download_bundle"))
    assert client.post(url()).status_code == 405
    assert client.get(url("nobody")).status_code == 404
    assert client.head(url()).status_code == 200
    assert LogEntry.objects.count() == 0


def test_an_id_with_odd_characters(till):
    submit("till", operation_id="a/b c?d_e", payload={})
    client = logged_in(person("eva", *READS, "download_bundle"))
    page = read(client.get(reverse("admin:jobtrack_operation_change", args=["a_2Fb c_3Fd_5Fe"])))
    (link,) = [attrs["href"] for tag, attrs in page.tags if tag == "a" and "bundle" in (attrs.get("href") or "")]
    assert client.get(link).status_code == 200


def test_the_command_prints_the_same(till):
    eventful(till)
    out = StringIO()
    call_command("jobtrack_show", "order-7", "--bundle", stdout=out)
    assert out.getvalue() == as_text(made(till))
