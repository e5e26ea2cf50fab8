"""The pages of the admin: what they show, what they cost, and that a provider's text stays text."""

from __future__ import annotations

import ast
import contextlib
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone, translation

import jobtrack_django
from jobtrack_django import admin as pages
from jobtrack_django import get_operation, track, track_many, words
from jobtrack_django.admin.base import BoundedPaginator, Moment
from jobtrack_django.models import Delivery, Escalation, Operation
from jobtrack_django.testing import Rehearsal, answer, no_answer
from tests.django.admin_pages import DONE, FAILED, PAUSED, RUNNING, SITE, asks, person, question_url, read

pytestmark = pytest.mark.database

LISTS = {"operations": "/admin/jobtrack/operation/", "escalations": "/admin/jobtrack/escalation/?decided=all"}


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


@pytest.fixture
def client(db):
    """A person who may see everything and decide nothing."""
    client = Client()
    client.force_login(person("viewer", "view_operation", "view_escalation"))
    return client


def operation_url(operation_id):
    return reverse("admin:jobtrack_operation_change", args=[operation_id])


# --- lists ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", LISTS.values(), ids=LISTS)
def test_a_list_costs_the_same_for_10_and_for_200_rows(jobtrack: Rehearsal, client, url):
    def ask(count):
        operations = track_many("acme-export", [{"job_id": f"exp_{n}"} for n in range(count)])
        Escalation.objects.bulk_create(
            Escalation(operation=o, reason="stalled", blocking=True, open_blocking=True, opened_at=jobtrack.clock())
            for o in operations
        )

    def queries():
        with CaptureQueriesContext(connection) as captured:
            read(client.get(url, {"all": ""}))
        return len([query for query in captured if "jobtrack_" in query["sql"]])

    ask(10)
    queries()  # content types and the like are read once
    few = queries()
    ask(190)
    assert queries() == few <= 6


def test_operations_are_listed_with_when_and_why_the_next_look_is(jobtrack: Rehearsal, client):
    operation = track("acme-export", job_id="exp_1", operation_id="op-1", reference="invoice 7")
    page = read(client.get(LISTS["operations"])).text
    next_look = f"{operation.wake_at:%Y-%m-%d %H:%M:%S} UTC: first look"
    assert f"op-1 invoice 7 running {next_look} – exp_1 acme-export / default – 2030-01-07 12:00:00 UTC" in page


def test_a_request_under_way_is_said_instead_of_the_next_look(jobtrack: Rehearsal, client):
    track("acme-export", job_id="exp_1", operation_id="op-1")
    until = jobtrack.clock() + timedelta(seconds=30)
    Operation.objects.update(lease_owner="x", lease_until=until, wake_at=until)
    said = f"a request is under way, until {until:%Y-%m-%d %H:%M:%S} UTC"
    for url in (LISTS["operations"], operation_url("op-1")):
        page = read(client.get(url)).text
        assert (said in page, "at the latest" in page, "first look" in page) == (True, True, False)


@pytest.mark.parametrize(("attempts", "said"), [(2, "succeeded after success failing "), (1, "succeeded –")])
def test_a_list_marks_a_follow_up_that_does_not_get_through(jobtrack: Rehearsal, client, attempts, said):
    jobtrack.provider.script("exp_1", DONE)
    track("acme-export", job_id="exp_1", operation_id="op-1", on_success="tests.django.handlers.remember")
    jobtrack.run_due()
    Delivery.objects.update(delivered_at=None, attempts=attempts)
    assert said in read(client.get(LISTS["operations"])).text


@pytest.mark.parametrize(
    ("sees", "hidden"), [("view_escalation", "/admin/jobtrack/operation/"), ("view_operation", question_url)]
)
def test_nobody_gets_a_link_to_a_page_they_may_not_see(jobtrack: Rehearsal, client, sees, hidden):
    escalation = asks(jobtrack, PAUSED, operation_id="op-1")
    url = question_url(escalation) if sees == "view_escalation" else operation_url("op-1")
    hidden = hidden if isinstance(hidden, str) else hidden(escalation)
    assert f'href="{hidden}' in read(client.get(url)).html
    half = Client()
    half.force_login(person("half", sees))
    page = read(half.get(url))
    assert f'href="{hidden}' not in page.html
    assert ("op-1" in page.text, "unknown state" in page.text) == (True, True)


@pytest.mark.parametrize(("reply", "said"), [(PAUSED, "needs a decision unknown state"), (FAILED, "failed job failed")])
def test_a_list_says_why_it_stands_so(jobtrack: Rehearsal, client, reply, said):
    asks(jobtrack, reply)
    assert said in read(client.get(LISTS["operations"])).text


@pytest.mark.parametrize("operation_id", ["op-1", "01939f2e-5c3a-7000-8000-0123456789ab", "x" * 200])
def test_an_id_in_a_list_is_whole_for_those_who_copy_or_hear_it(jobtrack: Rehearsal, client, operation_id):
    asks(jobtrack, PAUSED, operation_id=operation_id)
    for url in LISTS.values():
        page = read(client.get(url))
        titles = [
            attrs.get("title") for tag, attrs in page.tags if (tag, attrs.get("class")) == ("code", "jobtrack-id")
        ]
        assert operation_id in titles
        assert f" {operation_id} " in page.text
        assert [attrs for tag, attrs in page.tags if tag == "link" and "jobtrack/admin.css" in attrs["href"]]


@pytest.mark.parametrize(
    ("away", "said"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=-59), "just now"),
        (timedelta(seconds=-60), "1 minute ago"),
        (timedelta(seconds=1), "in less than a minute"),
        (timedelta(minutes=2), "in 2 minutes"),
    ],
)
def test_nothing_is_0_minutes_away(away, said):
    now = datetime(2030, 1, 7, 12, tzinfo=UTC)
    assert Moment(at=now + away, now=now).html.replace("\xa0", " ").endswith(f"· {said}</span>")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("op-1", ["op-1"]),
        (" op-1 ", ["op-1"]),
        ("OP-1", []),
        ("op", []),
        ("exp_1", ["op-1"]),
        ("exp%", []),
        ("invoice 7", ["op-1", "op-2"]),
        ("invoice", []),
        ("a\0b", ["op-1", "op-2", "op-3"]),  # Django says that this cannot be searched, and shows all
        ("", ["op-1", "op-2", "op-3"]),
    ],
)
def test_the_search_is_exact(jobtrack: Rehearsal, client, query, found):
    for number, reference in enumerate(["invoice 7", "invoice 7", ""], 1):
        track("acme-export", job_id=f"exp_{number}", operation_id=f"op-{number}", reference=reference)
    with CaptureQueriesContext(connection) as captured:
        response = client.get(LISTS["operations"], {"q": query})
    assert sorted(row.pk for row in response.context["cl"].result_list) == found
    looked_up = [each["sql"] for each in captured if 'FROM "jobtrack_operation"' in each["sql"].replace("`", '"')]
    assert [sql for sql in looked_up if " LIKE " in sql or " OR " in sql] == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["op-1", "op-2"]),
        ({"state": "escalated"}, ["op-1"]),
        ({"state": "running"}, ["op-2"]),
        ({"provider": "acme-export"}, ["op-1", "op-2"]),
        ({"provider": "openai-batch"}, []),
    ],
)
def test_operations_are_filtered_by_columns_with_an_index(jobtrack: Rehearsal, client, query, found):
    asks(jobtrack, PAUSED, operation_id="op-1")
    track("acme-export", job_id="exp_2", operation_id="op-2")
    result = client.get(LISTS["operations"], query).context["cl"].result_list
    assert sorted(row.pk for row in result) == found
    first = {index.fields[0] for index in Operation._meta.indexes}
    assert {getattr(entry, "column", entry) for entry in pages.OperationAdmin.list_filter} <= first


def test_open_questions_come_first_and_alone_unless_asked_otherwise(jobtrack: Rehearsal, client):
    first, second = asks(jobtrack, PAUSED, job_id="exp_1"), asks(jobtrack, PAUSED, job_id="exp_1")
    jobtrack.decide(first.operation, "close", actor="ann")
    listed = {
        chosen: [
            row.pk for row in client.get("/admin/jobtrack/escalation/", {"decided": chosen}).context["cl"].result_list
        ]
        for chosen in ("", "no", "yes", "all")
    }
    assert listed == {"": [second.pk], "no": [second.pk], "yes": [first.pk], "all": [second.pk, first.pk]}
    page = read(client.get(LISTS["escalations"])).text
    assert "paused Close ann" in page
    for query in ({"reason": "unknown_state"}, {"provider": "acme-export"}):
        assert client.get("/admin/jobtrack/escalation/", query).context["cl"].result_count == 1


def test_a_large_table_is_not_counted_to_the_end(jobtrack: Rehearsal, client, monkeypatch):
    track_many("acme-export", [{"job_id": f"exp_{n}"} for n in range(7)])
    monkeypatch.setattr(BoundedPaginator, "MOST", 5)
    assert BoundedPaginator(Operation.objects.all(), 2).count == 5
    assert BoundedPaginator(list(range(9)), 2).count == 5
    assert client.get(LISTS["operations"]).context["cl"].result_count == 5


# --- one operation, one question --------------------------------------------------------------------


def test_the_three_facts_are_kept_apart(jobtrack: Rehearsal, client):
    """R-FACT-1, R-FACT-2: an observer without budget has not seen a failure."""
    escalation = asks(jobtrack, RUNNING, operation_id="op-1")
    page = read(client.get(operation_url("op-1"))).text
    assert "State: needs a decision" in page
    assert "Accepted The provider has job exp_1 (acme-export, account default)" in page
    assert "Observed It last said “running”" in page
    assert "Concluded Not known. jobtrack has stopped asking until a person decides." in page
    jobtrack.decide(escalation.operation, "close")
    assert "The job itself was not seen to end: it may still run." in read(client.get(operation_url("op-1"))).text


def test_budgets_are_shown_as_used_of_allowed(jobtrack: Rehearsal, client):
    noon = jobtrack.clock() + timedelta(hours=1)
    jobtrack.provider.script("exp_1", RUNNING)
    track(
        "acme-export",
        job_id="exp_1",
        operation_id="op-1",
        status_requests=3,
        needed_by=noon,
        deadline=timedelta(days=1),
    )
    jobtrack.run_due(until=timedelta(seconds=3))
    page = read(client.get(operation_url("op-1")))
    operation = get_operation("op-1")
    used = operation.spent_status_requests
    assert f"Status requests {used} of 3" in page.text
    assert f"Deadline {operation.deadline:%Y-%m-%d %H:%M:%S} UTC" in page.text
    assert "Needed by 2030-01-07 13:00:00 UTC" in page.text
    assert f"Next look {operation.wake_at:%Y-%m-%d %H:%M:%S} UTC" in page.text
    assert "the table's own pace" in page.text
    meters = [attrs for tag, attrs in page.tags if tag == "meter"]
    assert (meters[0]["value"], meters[0]["max"]) == (str(used), "3")
    labels = {attrs.get("id") for _, attrs in page.tags}
    assert {meter["aria-labelledby"] for meter in meters} <= labels


def test_a_question_shows_what_a_decision_needs(jobtrack: Rehearsal, client):
    """R-ESC-2."""
    escalation = asks(jobtrack, RUNNING, RUNNING, PAUSED, operation_id="op-1", reference="invoice 7")
    page = read(client.get(question_url(escalation))).text
    for words_shown in (
        "The provider names a state that its table does not know. What does it mean?",
        "Find the state in its documentation, have its table mended, and wait for the new revision below.",
        "unknown state: ",
        "“paused”",
        "op-1, reference invoice 7",
        "In this state since 2030-01-07 12:00:0",
        "Last HTTP answer: 200, 2030-01-07 12:00:0",
        "Status requests 3 of 60",
        "Time since acceptance",
        "If the decision is wrong",
        "Nothing is sent until somebody decides.",
        "Look again now",
    ):
        assert words_shown in page, words_shown
    assert "unknown state: needs a decision" in read(client.get(operation_url("op-1"))).text


def test_instants_are_given_in_utc_and_in_the_readers_zone(jobtrack: Rehearsal, client):
    asks(jobtrack, PAUSED, operation_id="op-1")
    with timezone.override("America/New_York"):
        page = read(client.get(operation_url("op-1")))
    assert "since 2030-01-07 12:00:00 UTC (07:00:00 EST)" in page.text
    stamps = {attrs["datetime"] for tag, attrs in page.tags if tag == "time"}
    assert stamps
    assert all(stamp.endswith("+00:00") for stamp in stamps)
    with timezone.override("UTC"):
        assert "(12:00:00" not in read(client.get(operation_url("op-1"))).text
    with timezone.override("Asia/Tokyo"), translation.override("de"):
        read(client.get(operation_url("op-1")))


@pytest.mark.parametrize("reply", [no_answer(), answer(200, text="<html>")], ids=["no answer", "no JSON"])
def test_a_floor_of_our_own_is_not_called_a_wish_of_the_provider(jobtrack: Rehearsal, client, reply):
    escalation = asks(jobtrack, reply, operation_id="op-1", transport_failures=1)
    Operation.objects.update(not_before=jobtrack.clock() + timedelta(minutes=5))
    for url in (operation_url("op-1"), question_url(escalation)):
        page = read(client.get(url)).text
        assert "No request before 2030-01-07 12:0" in page
        assert "rovider asked" not in page


def test_no_space_stands_before_a_full_stop(jobtrack: Rehearsal, client):
    waits = answer(json={"id": "exp_1", "status": "running", "progress": "40 %"}, headers={"Retry-After": "7"})
    escalation = asks(jobtrack, waits, PAUSED, operation_id="op-1", reference="invoice 7")
    jobtrack.decide(escalation.operation, "close")
    for url in (operation_url("op-1"), question_url(escalation)):
        page = read(client.get(url)).text
        assert re.findall(r".{20} [.,;:!?](?= |$)", page) == []


def test_follow_ups_are_shown_with_what_became_of_them(jobtrack: Rehearsal, client):
    jobtrack.provider.script("exp_1", DONE)
    names = {"on_success": "tests.django.handlers.fail", "on_end": "tests.django.handlers.remember"}
    track("acme-export", job_id="exp_1", operation_id="op-1", **names)
    with contextlib.suppress(RuntimeError):
        jobtrack.run_due(until=timedelta(seconds=5))
    page = read(client.get(operation_url("op-1"))).text
    failing = Delivery.objects.get(event="on_success")
    assert "after any end tests.django.handlers.remember 1 Delivered 2030-01-07 12:00:0" in page
    assert (
        f"after success tests.django.handlers.fail {failing.attempts} Not delivered. Next attempt 2030-01-07 12:00:"
        in page
    )
    assert "Last error: “RuntimeError: no room for op-1”" in page
    Delivery.objects.filter(pk=failing.pk).update(
        due_at=None, last_error="<script>x\x1b https://u:pw@x.example/?t=s3cret"
    )
    page = read(client.get(operation_url("op-1")))
    assert "Not delivered. No further attempt is made until a person decides." in page.text
    assert [part for part in ("\x1b", "<script>x", "s3cret") if part in page.html] == []


def test_a_page_costs_the_same_for_any_number_of_follow_ups(jobtrack: Rehearsal, client):
    asks(jobtrack, FAILED, operation_id="op-1")

    def queries():
        with CaptureQueriesContext(connection) as captured:
            read(client.get(operation_url("op-1")))
        return len([query for query in captured if "jobtrack_" in query["sql"]])

    few = queries()
    Delivery.objects.bulk_create(
        Delivery(id=f"op-1:{event}", operation_id="op-1", event=event, handler="x")
        for event in ("on_failure", "on_end")
    )
    assert queries() == few <= 7


def test_a_broken_chain_is_shouted(jobtrack: Rehearsal, client):
    asks(jobtrack, PAUSED, operation_id="op-1")
    assert "✓ chain verified, 2 entries" in read(client.get(operation_url("op-1"))).text
    Operation.objects.filter(pk="op-1").update(audit_head="0" * 64)
    page = read(client.get(operation_url("op-1"))).text
    assert "✗ chain broken at entry 2" in page
    assert "Do not rely on it" in page


def test_an_operation_id_may_be_any_text(jobtrack: Rehearsal, client):
    odd = "a/b_c?d#e&ä\"'<x>"
    escalation = asks(jobtrack, PAUSED, operation_id=odd)
    page = read(client.get(question_url(escalation)))
    (link,) = [
        attrs["href"]
        for tag, attrs in page.tags
        if tag == "a" and "/operation/" in (attrs.get("href") or "") and "change" in attrs["href"]
    ]
    assert odd in read(client.get(link)).text


# --- hostile text and secrets -----------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>{{ 7|add:7 }}{% now 'Y' %}\u202eevil\x1b[31mred\x1b[0m\r\n\"'>&"
CANARY = "sk-live-0123456789CANARY"


def test_provider_text_stays_text(jobtrack: Rehearsal, client):
    """R-SEC-4, S15: in every place where the provider has a say."""
    reply = answer(
        json={"id": "exp_1", "status": HOSTILE, "progress": HOSTILE, "error": {"message": HOSTILE}},
        headers={
            "Content-Type": "application/json",
            "Retry-After": HOSTILE.replace("\r\n", " "),
            "X-Request-Id": "<i>",
        },
    )
    running = answer(json={"id": "exp_1", "status": "running", "progress": HOSTILE, "error": {"message": HOSTILE}})
    escalation = asks(jobtrack, running, reply, operation_id="op-1", reference="<script>r</script>")
    urls = [operation_url("op-1"), question_url(escalation), *LISTS.values()]
    for url in urls:
        page = read(client.get(url))
        assert "<script>alert" not in page.html
        assert "<script>r" not in page.html
        assert "<i>" not in page.html
        assert not {"\u202e", "\x1b", "\0"} & set(page.html)
    assert "<script>alert(1)</script>{{ 7|add:7 }}{% now 'Y' %}" in read(client.get(operation_url("op-1"))).text


def test_what_a_provider_blurts_out_is_not_shown(jobtrack: Rehearsal, client, monkeypatch):
    """R-AUDIT-3, INV-33."""
    monkeypatch.setenv("ACME", CANARY)
    blurted = f"denied for Authorization: Bearer {CANARY} at https://u:{CANARY}@x.example/a?token={CANARY}"
    reply = answer(json={"id": "exp_1", "status": "failed", "error": {"message": blurted}})
    escalation = asks(jobtrack, reply, operation_id="op-1")
    done = asks(jobtrack, DONE, job_id="exp_1", operation_id="op-2", on_success="tests.django.handlers.fail")
    for url in (
        operation_url("op-1"),
        operation_url("op-2"),
        question_url(escalation),
        question_url(done),
        *LISTS.values(),
    ):
        html = read(client.get(url)).html
        assert CANARY not in html
        assert "files.acme.example" not in html
    assert "denied for Authorization:" in read(client.get(question_url(escalation))).text


def test_what_people_write_is_shown_as_they_wrote_it(jobtrack: Rehearsal, client):
    escalation = asks(jobtrack, PAUSED, operation_id="op-1")
    jobtrack.decide(escalation.operation, "close", actor="<b>ann</b>", reason="<script>x</script> {{ y }}")
    for url in (operation_url("op-1"), question_url(escalation), LISTS["escalations"]):
        page = read(client.get(url))
        assert "<b>ann" not in page.html
        assert "<script>x" not in page.html
        assert "<b>ann</b>" in page.text


# --- the house --------------------------------------------------------------------------------------


def test_every_control_has_a_label_and_headings_follow_each_other(jobtrack: Rehearsal, client):
    escalation = asks(jobtrack, PAUSED, operation_id="op-1")
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    decide = reverse("admin:jobtrack_escalation_decide", args=[escalation.pk, "close"])
    for url in (operation_url("op-1"), question_url(escalation), decide):
        page = read(boss.get(url))
        labelled = {attrs.get("for") for tag, attrs in page.tags if tag == "label"}
        fields = [attrs for tag, attrs in page.tags if tag in ("textarea", "select")]
        assert all(attrs.get("id") in labelled for attrs in fields)
        levels = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
        assert 1 in levels
        assert not any(attrs.get("tabindex", "0") not in ("0", "-1") for _, attrs in page.tags)


def test_nothing_is_written_here():
    anybody = RequestFactory().get("/")
    anybody.user = AnonymousUser()
    for model, model_admin in ((Operation, pages.OperationAdmin), (Escalation, pages.EscalationAdmin)):
        made = model_admin(model, admin.AdminSite())
        allowed = [made.has_add_permission(None), made.has_change_permission(None), made.has_delete_permission(None)]
        assert (allowed, made.get_actions(anybody)) == ([False] * 3, {})


@pytest.mark.parametrize(("wanted", "registered"), [(True, True), (False, False)])
def test_one_setting_turns_it_off(settings, wanted, registered, monkeypatch):
    from importlib import reload

    site = admin.AdminSite()
    monkeypatch.setattr(admin, "site", site)
    settings.JOBTRACK = {**SITE, "ADMIN": wanted}
    reload(pages)
    assert site.is_registered(Operation) == site.is_registered(Escalation) == registered


def test_a_mistake_in_the_settings_does_not_keep_the_check_from_telling_it(settings):
    settings.JOBTRACK = {"QUEU": "x", "DATABASE": 3}
    assert pages.EscalationAdmin(Escalation, admin.AdminSite()).get_urls()


def test_a_site_of_ones_own_works_too(jobtrack: Rehearsal):
    site = admin.AdminSite(name="ops")
    pages.register(site)
    names = {pattern.name for pattern in site._registry[Escalation].get_urls()}
    assert {"jobtrack_escalation_decide", "jobtrack_escalation_change"} <= names


STORE = {
    *("models.py", "querysets.py", "store.py", "chain.py", "decisions.py", "statements.py", "outbox.py"),
    "notices.py",  # a notice meant for a row that is not running moves nothing
    "results.py",  # mostly states of results, which are rows of their own
    "progress.py",  # words for whom the job is for, by state and outcome: a table, and what to read it with
    "now.py",  # of the dashboard: counts rows by state
}


def test_the_adapter_compares_no_states():
    """Rules live in core: here, states are compared only where rows are found and written."""
    root = Path(jobtrack_django.__file__).parent
    found = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in root.rglob("*.py")
        if path.name not in STORE and "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Match) and _names_a_rule(node)
    ]
    assert found == [], "Put the rule into jobtrack.core (or its words into words.py) and call it from here."


def _names_a_rule(node):
    parts = [node.subject] if isinstance(node, ast.Match) else [node.left, *node.comparators]
    inner = [part for whole in parts for part in ast.walk(whole)]
    names = {part.id for part in inner if isinstance(part, ast.Name)}
    attributes = {part.attr for part in inner if isinstance(part, ast.Attribute)}
    return bool(names & {"OperationState", "Reason"} and attributes) or "state" in attributes


def test_templates_trust_nothing():
    root = Path(jobtrack_django.__file__).parent
    for path in [*root.rglob("*.html"), *root.rglob("*.py")]:
        text = path.read_text()
        for word in ("|safe", "mark_safe", "autoescape off", "javascript:", "<style", " style=", "onclick"):
            assert word not in text, f"{path}: {word}"


def test_words_need_no_database():
    assert words.reason_title("stalled") == "no movement"
    assert words.reason_title("of_a_newer_release") == "of_a_newer_release"
    assert words.option_label("of_a_newer_release") == "of_a_newer_release"
    assert words.state_label("of_a_newer_release") == "of_a_newer_release"
    assert words.delay_label("of_a_newer_release") == "of_a_newer_release"
