"""Submissions in the admin: what is known, what may be decided, and what a decision sends (R-SUB-5, R-ESC, INV-28)."""

from __future__ import annotations

import json
import re
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse

from jobtrack.core.escalation import ALLOWED, Reason
from jobtrack_django import fetch_result, get_operation, submit, track, words
from jobtrack_django.models import AuditEntry, Delivery, Escalation, JobResult, Operation
from jobtrack_django.testing import answer, no_answer, rehearsal
from tests.django.admin_pages import decide_url, person, question_url, read
from tests.django.admin_tills import CANARY, DONE, NOTHING, TABLE, TAKEN, asked

pytestmark = [pytest.mark.database, pytest.mark.django_db]

ALL = ["view_escalation", "view_operation", *(choice.permission for choice in words.CHOICES.values())]
DOCS = Path(__file__).parents[2] / "docs"
ABOUT_SUBMISSIONS = (
    *(Reason.SUBMISSION_UNKNOWN, Reason.SUBMISSION_UNSENT, Reason.SUBMISSION_REJECTED, Reason.IDEMPOTENCY_CONFLICT),
    *(Reason.SEAL_BROKEN, Reason.RESULT_UNAVAILABLE, Reason.CANCEL_UNKNOWN),
)
UNKNOWN = ["look_up", "attach_job", "resubmit", "close"]


@pytest.fixture
def till(settings, tmp_path: Path):
    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)]}
    with rehearsal() as here:
        yield here


@pytest.fixture
def client(db):
    return logged_in(person("ann", *ALL))


def logged_in(user):
    client = Client()
    client.force_login(user)
    return client


def operation_page(client, operation_id="order-7"):
    return read(client.get(reverse("admin:jobtrack_operation_change", args=[operation_id])))


def state():
    """Everything a decision could change."""
    return (
        list(Operation.objects.values().order_by("pk")),
        list(AuditEntry.objects.values_list("hash", flat=True).order_by("pk")),
        list(Escalation.objects.values().order_by("pk")),
        list(Delivery.objects.values().order_by("pk")),
        LogEntry.objects.count(),
    )


def post(client, escalation, option, **given):
    written = {"resubmit": {"confirm": escalation.operation_id}, "attach_job": {"job_id": "pay-1"}}.get(option, {})
    data = {"reason": "I looked", "version": escalation.version, **written, **given}
    return client.post(decide_url(escalation, option), data)


def last_entry():
    return json.loads(AuditEntry.objects.order_by("pk").last().body)


# --- what is known ----------------------------------------------------------------------------------


def test_before_anything_is_sent_no_fact_claims_a_job(till, client):
    """R-FACT-1: accepted, observed and concluded, also without an acceptance."""
    submit("till", operation_id="order-7", payload={"iban": CANARY})
    page = operation_page(client)
    assert "State: ready" in page.text
    assert "Accepted No: nothing has been sent to the provider. (till, account default)" in page.text
    assert "Observed No state has been read yet." in page.text
    assert "Concluded Not ended: it is still to be submitted." in page.text
    assert "To be submitted by 2030-01-07 13:00:00 UTC" in page.text
    assert "Submissions 0 of 1" in page.text
    assert "Time since acceptance" not in page.text
    assert "The job is to be submitted; nothing has been sent yet." in page.text
    assert "Next step 2030-01-07 12:00:00 UTC · just now: as soon as a worker takes it" in page.text
    listed = read(client.get("/admin/jobtrack/operation/?state=ready")).text
    assert "order-7 ready 2030-01-07 12:00:00 UTC: as soon as a worker takes it" in listed
    assert "order-7" not in read(client.get("/admin/jobtrack/operation/?state=unconfirmed")).text


def test_an_unknown_submission_says_what_is_known_and_what_a_repeat_may_cost(till, client):
    """R-ESC-2, R-SUB-5."""
    escalation = asked(till)
    assert escalation.reason == "submission_unknown"
    response = client.get(question_url(escalation))
    page = read(response).text
    assert [button.option.value for button in response.context["buttons"]] == UNKNOWN
    assert "Accepted Not known: the provider may have the job or not (scripted read_timeout)." in page
    assert "Concluded Nothing: no job is known. Nothing more is sent until a person decides." in page
    assert "Submissions 1 of 1" in page
    assert "Look-ups 2 of 2" in page
    assert "In doubt because scripted read_timeout" in page
    assert f"Idempotency key {get_operation('order-7').idempotency_key}" in page
    assert "Its idempotency key is valid until 2030-01-08 12:00:00 UTC" in page
    assert "Where it compares keys: one merchant." in page


def test_a_refused_submission_is_no_failed_job(till, client):
    """R-FACT-2: the provider never had a job that could fail."""
    escalation = asked(till, answer(422, json={"error": "no such account"}))
    assert escalation.reason == "submission_rejected"
    page = operation_page(client).text
    assert "Accepted No: the provider refused the submission." in page
    assert "Concluded Failed: the provider refused the submission, so there was never a job." in page
    assert "as the provider said" not in page
    assert "no such account" in page
    assert "failed submission refused" in read(client.get("/admin/jobtrack/operation/")).text


def test_a_tracked_job_shows_nothing_of_submissions(till, client):
    track("till", operation_id="order-7", job_id="pay-1")
    page = operation_page(client).text
    assert [word for word in ("Submissions", "Look-ups", "fingerprint", "Idempotency") if word in page] == []


def test_late_evidence_is_told_with_the_job_only(till, client):
    """INV-15, INV-33."""
    asked(till)
    Operation.objects.update(evidence={"job_id": "pay-9", "sealed": "ciphertext-canary", "params": {}})
    page = operation_page(client)
    assert "an answer that came late proves it, and jobtrack is about to follow the job pay-9" in page.text
    assert "ciphertext-canary" not in page.html


# --- each option, from the page to its effect -------------------------------------------------------


def test_a_resubmission_needs_the_id_typed_and_sends_the_same_once(till, client):
    """R-SUB-4, INV-17: same key, same bytes, one request."""
    escalation = asked(till)
    page = read(client.get(decide_url(escalation, "resubmit"))).text
    assert "is sent once more, byte for byte, as submission 2: until 2030-01-07 12:0" in page
    before = state()
    for wrong in ("", "order-8", "order-7 ", "ORDER-7"):
        refused = read(post(client, escalation, "resubmit", confirm=wrong, reason="My <b>words</b>"))
        assert "errorlist" in refused.html
        assert "My <b>words</b>" in refused.text
    assert (state(), len(till.provider.sent("POST"))) == (before, 1)
    till.provider.on("POST", "/v1/payments", TAKEN)
    assert post(client, escalation, "resubmit").status_code == 302
    till.run_due()
    first, second = till.provider.sent("POST")
    keys = [dict(request.headers)["Idempotency-Key"] for request in (first, second)]
    assert (keys[0], first.body) == (keys[1], second.body)
    operation = get_operation("order-7")
    assert (operation.state, operation.job_id, operation.spent_submissions) == ("succeeded", "pay-1", 2)
    story = operation_page(client).text
    assert "Submission 2 of 2 begins, because a person decided so." in story
    assert "Changed: state needs a decision → ready" in story


def test_a_resubmission_without_any_key_says_what_comes_twice(till, client, monkeypatch):
    from dataclasses import replace

    escalation = asked(till)
    table = till.runtime.tables.get("till")
    bare = replace(table, submit=replace(table.submit, idempotency=None))
    monkeypatch.setattr(type(till.runtime.tables), "get", lambda self, table_id: bare)
    page = read(client.get(decide_url(escalation, "resubmit"))).text
    assert "If the provider has the first one, this makes a second job: its effects and its costs come twice." in page


@pytest.mark.parametrize(("left", "covers"), [(timedelta(minutes=6), True), (timedelta(minutes=4), False)])
def test_a_key_that_ends_before_the_request_may_go_out_protects_nothing(till, client, left, covers):
    """The grant holds for five minutes: within them the account may be held back."""
    escalation = asked(till)
    Operation.objects.update(first_sent_at=till.clock() + left - timedelta(hours=24))
    page = read(client.get(decide_url(escalation, "resubmit"))).text
    assert ("up to then the provider takes it for the first one" in page) == covers
    assert ("which may be before it is sent" in page) != covers


def test_a_job_that_cannot_be_followed_is_refused_with_what_was_written(till, client):
    """R-SUB-6: nothing is changed, and nothing has to be typed again."""
    escalation = asked(till)
    before = state()
    page = read(post(client, escalation, "attach_job", job_id="..", reason="seen in the <i>console</i>"))
    assert "This job cannot be followed" in page.text
    assert "seen in the <i>console</i>" in page.text
    assert "<i>console" not in page.html
    assert [attrs["value"] for tag, attrs in page.tags if attrs.get("name") == "job_id"] == [".."]
    assert "errorlist" in read(post(client, escalation, "attach_job", job_id="")).html
    assert state() == before


def test_an_attached_job_is_followed_and_the_evidence_kept(till, client):
    escalation = asked(till)
    page = read(client.get(decide_url(escalation, "attach_job"))).text
    assert "What is your evidence that this is the job of this operation?" in page
    assert "The operation follows the job that you name, for 1 hour. This cannot be taken back" in page
    asked_before = len(till.provider.sent("POST"))
    assert post(client, escalation, "attach_job", reason="console, 12:01").status_code == 302
    entry = last_entry()
    assert (entry["event"], entry["actor"], entry["job_id"], entry["why"]) == (
        *("decision", "ann", "pay-1"),
        "console, 12:01",
    )
    till.run_due()
    operation = get_operation("order-7")
    assert (operation.state, operation.job_id, operation.sealed) == ("succeeded", "pay-1", "")
    assert len(till.provider.sent("POST")) == asked_before
    assert "The job named: pay-1" in read(client.get(question_url(escalation))).text
    assert "The job named: “pay-1”." in operation_page(client).text


def test_asking_again_submits_nothing(till, client):
    escalation = asked(till)
    page = read(client.get(decide_url(escalation, "look_up"))).text
    assert "Look-up requests allowed in all: 3." in page
    assert "What will not be done Nothing is submitted, whatever the answer is." in page
    till.provider.on("GET", "/v1/payments", answer(json={"items": [{"reference": "order-7", "id": "pay-1"}]}))
    assert post(client, escalation, "look_up").status_code == 302
    till.run_due()
    assert (get_operation("order-7").state, len(till.provider.sent("POST"))) == ("succeeded", 1)
    story = operation_page(client).text
    assert "Look-up request 3 of 3 begins: the provider is asked whether it has the job." in story
    assert "The provider has the job “pay-1” (HTTP 200)." in story


def test_giving_up_says_that_a_job_may_run_and_erases_what_was_to_be_sent(till, client):
    escalation, sent = asked(till), len(till.provider.log)
    page = read(client.get(decide_url(escalation, "close"))).text
    assert "jobtrack never submits it again, and never asks again whether there is a job." in page
    assert "Nothing is cancelled: if the provider has the job after all, it runs, bills and has its effects." in page
    assert post(client, escalation, "close").status_code == 302
    till.run_due()
    operation = get_operation("order-7")
    assert (operation.state, operation.sealed, len(till.provider.log)) == ("abandoned", "", sent)
    page = operation_page(client).text
    assert "Accepted Not known: the provider may have the job or not (scripted read_timeout)." in page
    assert "Concluded A person closed it before any job was known. Nothing more is submitted." in page


def test_a_cancellation_shows_its_effect_and_leaves_an_errand(till, client):
    """R-END-5: the table's own words before, and no state moves by it."""
    till.provider.on("GET", "/v1/payments/pay-1", answer(json={"status": "odd"}))
    track("till", operation_id="order-7", job_id="pay-1")
    till.run_due()
    escalation = Escalation.objects.get()
    page = read(client.get(decide_url(escalation, "cancel")))
    assert "Its effect, as the table says: “Stops it; <b>what was paid</b> stays paid.”" in page.text
    assert "After that its status is asked for once more." in page.text
    assert "<b>what was paid" not in page.html
    assert post(client, escalation, "cancel").status_code == 302
    assert (get_operation("order-7").cancel_state, Delivery.objects.get().pk) == ("requested", "order-7:cancel")
    assert till.provider.sent("POST") == []
    assert "Cancellation Wanted; the provider has not answered yet." in operation_page(client).text
    till.provider.on("POST", "/v1/payments/pay-1/cancel", answer(202, json={}))
    till.run_due()
    assert len(till.provider.sent("POST")) == 1
    page = operation_page(client).text
    assert "The provider accepted it. Only its status tells what becomes of the job." in page
    assert "The provider accepted it; only its status says what became of the job." in page
    assert "jobtrack itself" in page


def test_a_result_is_fetched_again(till, client):
    till.provider.on("GET", "/v1/payments/pay-1", answer(json={"status": "done"}))
    operation = track("till", operation_id="order-7", job_id="pay-1")
    till.run_due()
    operation.refresh_from_db()
    fetch_result(operation, wait=False)
    till.run_due()
    escalation = Escalation.objects.get()
    assert escalation.reason == "result_unavailable"
    assert "Not to be had; a person decides" in operation_page(client).text
    assert (
        "The status requests for it (at most 1) do not count"
        in read(client.get(decide_url(escalation, "fetch_again"))).text
    )
    till.provider.on("GET", "/v1/payments/pay-1", DONE)
    assert post(client, escalation, "fetch_again").status_code == 302
    till.run_due()
    assert JobResult.objects.get().state == "complete"
    (file,) = JobResult.objects.get().files
    page = operation_page(client)
    assert f"{file['name']} {file['size']} bytes {file['sha256'][:12]}… complete" in page.text
    assert file["path"] not in page.html
    assert "The result is complete. 1 file is stored" in page.text


def test_running_a_follow_up_again_fetches_nothing(till, client):
    """What the button says: nothing is sent to the provider. A result has its own question and permission."""
    till.provider.on("GET", "/v1/payments/pay-1", answer(json={"status": "done"}))
    operation = track("till", operation_id="order-7", job_id="pay-1", on_success="tests.django.handlers.fail")
    till.run_due(raise_failures=False)
    operation.refresh_from_db()
    fetch_result(operation, wait=False)
    till.run_due(raise_failures=False)
    escalation = Escalation.objects.get(reason="delivery_failed")
    before = len(till.provider.log)
    Delivery.objects.filter(event="on_success").update(handler="tests.django.handlers.remember")
    assert post(client, escalation, "retry_delivery").status_code == 302
    till.run_due()
    assert len(till.provider.log) == before
    assert Delivery.objects.get(event="on_success").delivered_at
    assert Escalation.objects.open().get().reason == "result_unavailable"


@pytest.mark.parametrize("option", ["look_again", "close"])
def test_what_is_sealed_with_a_lost_key_can_be_tried_again_or_given_up(till, client, option):
    """Looking again at what was never sent means sending it: the page must say so."""
    submit("till", operation_id="order-7", payload={"iban": CANARY})
    till.provider.on("POST", "/v1/payments", TAKEN)
    till.provider.on("GET", "/v1/payments/pay-1", DONE)
    sealed = Operation.objects.get().sealed
    Operation.objects.update(sealed="no-such-key")
    till.run_due()
    escalation = Escalation.objects.get()
    assert (escalation.reason, len(till.provider.log)) == ("seal_broken", 0)
    page = read(client.get(decide_url(escalation, "look_again"))).text
    assert "What will happen The job is submitted: the stored request is sent, as submission 1" in page
    assert "It is proven that the provider has no job of it, so nothing can come twice." in page
    Operation.objects.update(sealed=sealed)
    assert post(client, escalation, option).status_code == 302
    till.run_due()
    expected = {"look_again": ("succeeded", 1), "close": ("abandoned", 0)}[option]
    assert (get_operation("order-7").state, len(till.provider.sent("POST"))) == expected


@pytest.mark.parametrize("looks_up", [True, False])
def test_a_lost_key_with_a_doubt_never_leads_to_a_submission(till, client, settings, tmp_path, looks_up):
    """INV-18: "look again" asks the provider where it can be asked, and otherwise the person; the page says which."""
    escalation = asked(till, listed=no_answer())
    bare = re.sub(r"(?s)  lookup:.*?(?=  recovery:)", "", TABLE).replace("revision: 1", "revision: 2")
    (tmp_path / "till.yaml").write_text(TABLE if looks_up else bare)
    Escalation.objects.update(reason="seal_broken")
    page = read(client.get(decide_url(escalation, "look_again"))).text
    assert ("What will happen The provider is asked whether it has the job" in page) == looks_up
    assert ("What will happen Nothing is sent. The question becomes whether" in page) != looks_up
    before = len(till.provider.log)
    till.provider.on("GET", "/v1/payments", NOTHING)
    assert post(client, escalation, "look_again").status_code == 302
    till.run_due()
    assert [seen.request.method for seen in till.provider.log[before:]] == (["GET"] if looks_up else [])
    assert Escalation.objects.open().get().reason == "submission_unknown"


def test_a_conflict_is_only_acknowledged(till, client):
    """R-ID-4."""
    from jobtrack.flow.submit import report_conflict

    submit("till", operation_id="order-7", payload={"iban": CANARY})
    report_conflict(till.runtime, "order-7")
    escalation = Escalation.objects.get()
    assert "The operation itself stays as it is." in read(client.get(decide_url(escalation, "close"))).text
    assert post(client, escalation, "close").status_code == 302
    assert get_operation("order-7").state == "ready"
    assert "was used again with other content; that submission was refused" in operation_page(client).text


def test_access_that_was_denied_to_a_submission(till, client):
    escalation = asked(till, answer(401, json={"error": "bad key"}))
    assert escalation.reason == "authorization_denied"
    page = read(client.get(decide_url(escalation, "access_repaired"))).text
    assert "What will happen The job is submitted" in page
    till.provider.on("POST", "/v1/payments", TAKEN)
    assert post(client, escalation, "access_repaired").status_code == 302
    till.run_due()
    assert (get_operation("order-7").state, len(till.provider.sent("POST"))) == ("succeeded", 2)


# --- who may, and races -----------------------------------------------------------------------------


@pytest.mark.parametrize("option", UNKNOWN)
def test_nobody_decides_by_reading_or_without_the_permission(till, client, option):
    """INV-29, S13."""
    escalation = asked(till)
    before = state()
    assert client.get(decide_url(escalation, option)).status_code == 200
    others = [choice.permission for name, choice in words.CHOICES.items() if name.value != option]
    for someone in (person("viewer", "view_escalation"), person("cem", "view_escalation", *others)):
        its = logged_in(someone)
        assert its.get(decide_url(escalation, option)).status_code == 403
        assert post(its, escalation, option).status_code == 403
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person("dan", *ALL))
    assert post(strict, escalation, option).status_code == 403
    assert state()[:-1] == before[:-1]
    assert len(till.provider.sent("POST")) == 1


@pytest.mark.parametrize("option", UNKNOWN)
def test_a_stale_page_decides_nothing_and_keeps_what_was_written(till, client, option):
    """INV-28, S20."""
    escalation = asked(till)
    Escalation.objects.update(version=escalation.version + 1)
    before = state()
    page = read(post(client, escalation, option, reason="as I saw it"), status=409)
    assert "Nothing was changed. The question has changed since you opened it." in page.text
    assert "as I saw it" in page.text
    assert state() == before


def test_a_resubmission_is_refused_once_the_provider_said_that_it_has_the_job(till, client):
    """The evidence came while the page was open: the option is gone (R-SUB-5)."""
    escalation = asked(till)
    Operation.objects.update(acceptance_seen=True)
    before = state()
    page = read(post(client, escalation, "resubmit"), status=409).text
    assert "Nothing was changed. This option is not offered for this question now." in page
    assert (
        "Yes, as the provider said; but it gave no id by which the job can be followed (scripted read_timeout)." in page
    )
    assert state() == before


@pytest.mark.django_db(transaction=True)
def test_of_twenty_decisions_at_once_one_counts(till):
    """INV-28: whatever the others chose, nothing of it happens."""
    escalation = asked(till)
    clients = [logged_in(person(f"p{n}", *ALL)) for n in range(20)]
    gate, seen, failed = threading.Barrier(20), [], []

    def decide(number: int) -> None:
        try:
            gate.wait()
            seen.append(post(clients[number], escalation, UNKNOWN[number % 4]).status_code)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failed.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, sorted(seen)) == ([], [302] + [409] * 19)
    decisions = [json.loads(body) for body in AuditEntry.objects.values_list("body", flat=True)]
    (counted,) = [entry for entry in decisions if entry["event"] == "decision"]
    assert LogEntry.objects.count() == 1
    till.provider.on("POST", "/v1/payments", TAKEN)
    till.run_due()
    assert len(till.provider.sent("POST")) == (2 if counted["option"] == "resubmit" else 1)


# --- the pages about it -----------------------------------------------------------------------------


def test_every_permission_is_explained():
    page = (DOCS / "admin.md").read_text()
    assert [
        choice.permission for choice in words.CHOICES.values() if f"`jobtrack.{choice.permission}`" not in page
    ] == []
    assert [str(choice.label) for choice in words.CHOICES.values() if f"| {choice.label} |" not in page] == []


def test_every_question_about_submissions_says_how_to_answer_it():
    page = (DOCS / "operating.md").read_text().split("## Questions about submissions")[1].split("\n## ")[0]
    rows = {line.split("(`")[1].split("`")[0]: line for line in page.splitlines() if "(`" in line}
    assert set(rows) == {reason.value for reason in ABOUT_SUBMISSIONS}
    for reason in ABOUT_SUBMISSIONS:
        assert f"| {words.QUESTIONS[reason].title} (" in rows[reason.value]
        named = set(re.findall(r"\*\*(.+?)\*\*", rows[reason.value]))
        assert named <= {str(words.CHOICES[option].label) for option in ALLOWED[reason]}, reason


# --- what others wrote ------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>\u202e{doubt}%s"


def test_hostile_texts_stay_texts(till, client):
    escalation = asked(till)
    Operation.objects.update(doubt=HOSTILE, reference=HOSTILE, evidence={"job_id": HOSTILE}, acceptance_seen=False)
    Escalation.objects.update(detail=HOSTILE)
    urls = [
        question_url(escalation),
        *(decide_url(escalation, option) for option in UNKNOWN),
        reverse("admin:jobtrack_operation_change", args=["order-7"]),
        "/admin/jobtrack/operation/",
    ]
    for url in urls:
        page = read(client.get(url))
        assert "<script>alert" not in page.html
        assert "alert(1)" in page.text
    before = state()
    refused = read(post(client, escalation, "attach_job", job_id=HOSTILE), status=409)  # a late answer is not read yet
    assert "<script>alert" not in refused.html
    assert "alert(1)" in refused.text
    assert state() == before
    Operation.objects.update(evidence={})
    assert post(client, escalation, "attach_job", job_id=HOSTILE).status_code == 302  # an id may be any text
    for url in urls:
        page = read(client.get(url), status=409 if "/decide/" in url else 200)
        assert "<script>alert" not in page.html
        assert "alert(1)" in page.text


def test_no_page_shows_what_was_submitted(till, client):
    """INV-33: the payload is personal, its ciphertext nobody's business."""
    escalation = asked(till)
    sealed = get_operation("order-7").sealed
    assert sealed
    JobResult.objects.create(operation_id="order-7", state="wanted", link="https://link.example/canary-link")
    urls = [
        *("/admin/jobtrack/operation/", "/admin/jobtrack/escalation/?decided=all", question_url(escalation)),
        *(decide_url(escalation, option) for option in UNKNOWN),
        reverse("admin:jobtrack_operation_change", args=["order-7"]),
    ]
    for url in urls:
        html = read(client.get(url)).html
        assert [secret for secret in (CANARY, sealed, "canary-link") if secret in html] == []
    assert CANARY.encode() in till.provider.sent("POST")[0].body


def test_a_submission_can_be_read_as_a_story(till, client):
    """R-AUDIT-1: what was sent, why it might be, what came of it."""
    from jobtrack_django.narrative import history, tell

    asked(till, listed=no_answer())
    told = [f"{line.title}: {' '.join(line.sentences)}" for line in map(tell, history(get_operation("order-7")))]
    assert told[0].startswith("Submission: The job is to be submitted; nothing has been sent yet. Every attempt uses")
    assert told[1] == (
        "Submitting begins: Submission 1 of 1 begins, because it is the first one. "
        "From here on the provider may have the job."
    )
    assert told[2].startswith("Submission answered: That proves nothing: the provider may have the job or not.")
    assert "It is not known whether the provider has the job. Next step 12:00:0" in told[2]
    assert told[3].startswith("Look-up begins: Look-up request 1 of 2 begins")
    assert told[-1].endswith(
        "Nobody knows whether the provider has the job, and jobtrack cannot find out. A person is asked."
    )
