"""Needs decision and the other lists: their order, pages, search and filters, and what each row says (INV-28)."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from jobtrack.core.escalation import Lapse, Option, Reason
from jobtrack_django import conf, track, track_many
from jobtrack_django.admin import EscalationAdmin, front, register, searching
from jobtrack_django.models import Escalation, JobResult, Operation, WebhookReceipt
from jobtrack_django.testing import Rehearsal
from tests.django.admin_pages import PAUSED, SITE, asks, person, read

pytestmark = pytest.mark.database

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)

QUESTIONS, OPERATIONS = "/admin/jobtrack/escalation/", "/admin/jobtrack/operation/"


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


@pytest.fixture
def viewer(db):
    return person("viewer", "view_operation", "view_escalation")


@pytest.fixture
def client(viewer):
    client = Client()
    client.force_login(viewer)
    return client


@pytest.fixture
def ask(jobtrack: Rehearsal):
    """Open questions, each about an operation of its own; ages in hours."""

    def questions(*told, prefix="op"):
        start = Operation.objects.count()
        jobs = [{"job_id": f"exp_{start + n}", "operation_id": f"{prefix}-{start + n}"} for n in range(len(told))]
        operations = track_many("acme-export", jobs)
        return Escalation.objects.bulk_create(
            Escalation(
                operation=operation, blocking=True, open_blocking=True, account="default",
                **{"provider": "acme-export", "reason": "stalled", "risk": 2, **each, "opened_at": jobtrack.clock() - timedelta(hours=each.get("opened_at", 0))},
            )
            for operation, each in zip(operations, told, strict=True)
        )  # fmt: skip

    return questions


def listed(client, url=QUESTIONS, query=None):
    return client.get(url, query).context["cl"]


def ids(changelist):
    return [row.pk for row in changelist.result_list]


# --- order, pages -----------------------------------------------------------------------------------


def test_the_highest_risk_comes_first_then_the_oldest(ask, client):
    rows = ask({"risk": 3, "opened_at": 9}, {"risk": 1, "opened_at": 1}, {"risk": 1, "opened_at": 2}, {"opened_at": 5})
    low, high_new, high_old, medium = (row.pk for row in rows)
    assert ids(listed(client)) == [high_old, high_new, medium, low]
    assert ids(listed(client, query={"first": "oldest"})) == [low, medium, high_old, high_new]
    assert ids(listed(client, query={"first": "nonsense"})) == [high_old, high_new, medium, low]


@pytest.mark.parametrize(
    "query", [{}, {"first": "oldest"}, {"reason": "stalled"}, {"decided": "yes"}, {"decided": "all"}], ids=str
)
def test_pages_hold_every_row_once_both_ways(ask, client, jobtrack, query, monkeypatch):
    monkeypatch.setattr(EscalationAdmin, "list_per_page", 3)
    told = [{"risk": 1 + n % 3, "opened_at": n // 4} for n in range(10)]  # several of the same instant
    ask(*told)
    ask(*told)
    last = list(Escalation.objects.order_by("-pk").values_list("pk", flat=True)[:10])
    Escalation.objects.filter(pk__in=last).update(decided_at=jobtrack.clock(), open_blocking=None, actor="ann")
    pages, page = [], listed(client, query=query)
    assert (page.previous_link, page.first_link) == ("", "")
    while True:
        pages.append(ids(page))
        if not page.next_link:
            break
        page = listed(client, QUESTIONS + page.next_link)
    seen = [pk for each in pages for pk in each]
    assert (len(seen), len(set(seen))) == ((20, 20) if query.get("decided") == "all" else (10, 10))
    for before in reversed(pages[:-1]):
        page = listed(client, QUESTIONS + page.previous_link)
        assert ids(page) == before
    assert not page.previous_link or ids(listed(client, QUESTIONS + page.previous_link)) == pages[0]


def _made_up(*told):
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "x", "2", "-1", "☃", "A" * 9000, _made_up(), _made_up("risk", False), _made_up("age", False, "2030-01-07T12:00:00+00:00", "1"),
        _made_up("risk", False, "1", "2030-01-07", "1"), _made_up("risk", False, "1", "2030-01-07T12:00:00", "1"),
        _made_up("risk", False, "1", "0001-01-01T00:00:00+14:00", "1"), _made_up("risk", 1, "1", "2030-01-07T12:00:00+00:00", "1"),
        _made_up("risk", False, "1", "2030-01-07T12:00:00+00:00", "9" * 40), _made_up("risk", False, None, None, None),
        _made_up("risk", False, "x", "2030-01-07T12:00:00+00:00", "1"), _made_up(*["risk"] * 4), "W" * 3, base64.urlsafe_b64encode(b"[" * 2900).decode(),
    ],
)  # fmt: skip
def test_a_broken_cursor_shows_the_first_page(ask, client, cursor, monkeypatch):
    monkeypatch.setattr(EscalationAdmin, "list_per_page", 2)
    ask({}, {}, {})
    assert ids(listed(client, query={"p": cursor})) == ids(listed(client))


def test_a_page_whose_rows_are_gone_shows_the_first(ask, client, jobtrack, monkeypatch):
    monkeypatch.setattr(EscalationAdmin, "list_per_page", 2)
    rows = ask({"opened_at": 3}, {"opened_at": 2}, {"opened_at": 1})
    last = listed(client).next_link
    Escalation.objects.filter(pk=rows[2].pk).update(decided_at=jobtrack.clock(), open_blocking=None)
    assert ids(listed(client, QUESTIONS + last)) == [rows[0].pk, rows[1].pk]


def test_links_keep_what_is_chosen_and_filters_begin_anew(ask, client, monkeypatch):
    monkeypatch.setattr(EscalationAdmin, "list_per_page", 2)
    ask(*[{"risk": 1}] * 3)
    page = read(client.get(QUESTIONS, {"risk": "1"}))
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a" and "p=" in (attrs.get("href") or "")]
    assert len(links) == 1
    assert "risk=1" in links[0]
    second = read(client.get(QUESTIONS + links[0]))
    assert [attrs.get("rel") for tag, attrs in second.tags if tag == "a" and attrs.get("rel")] == ["first", "prev"]
    assert "3 rows" in second.text


def test_actions_are_offered_with_boxes_and_act_on_what_is_chosen(ask, db):
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    rows = ask({}, {})
    page = read(boss.get(QUESTIONS))
    boxes = [attrs["value"] for tag, attrs in page.tags if attrs.get("name") == "_selected_action"]
    assert boxes == [str(row.pk) for row in rows]


# --- search and filters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("op-1", ["op-1"]), ("id:op-1", ["op-1"]), ("ID: op-1", ["op-1"]), ("job:op-1", []), ("job:exp_1", ["op-1"]),
        ("ref:invoice 7", ["job:9", "op-1"]), ("ref:exp_1", []), ("job:9", ["job:9"]), ("9", []), ("ref:", []), ("nope:op-1", []),
    ],
)  # fmt: skip
def test_a_prefix_says_what_is_meant(jobtrack, client, query, found):
    track("acme-export", job_id="exp_1", operation_id="op-1", reference="invoice 7")
    track("acme-export", job_id="exp_2", operation_id="job:9", reference="invoice 7")
    track("acme-export", job_id="exp_3", operation_id="op-3")
    assert sorted(ids(listed(client, OPERATIONS, {"q": query}))) == found


def test_a_question_is_found_by_its_operation_or_its_number_decided_or_not(jobtrack, client):
    first = asks(jobtrack, PAUSED, operation_id="op-1", reference="invoice 7")
    second = asks(jobtrack, PAUSED, job_id="exp_2", operation_id="op-2")
    jobtrack.decide(first.operation, "close", actor="ann")
    for query in ("op-1", "exp_1", "ref:invoice 7", str(first.pk), f"#{first.pk}"):
        assert ids(listed(client, query={"q": query})) == [first.pk], query
    assert ids(listed(client, query={"q": "op-2"})) == [second.pk]
    assert ids(listed(client, query={"q": "op-1", "decided": "no"})) == []
    for query in ("9" * 30, "²", "op", "#"):
        assert ids(listed(client, query={"q": query})) == [], query
    assert "Nothing is found." in read(client.get(QUESTIONS, {"q": "nothing"})).text


def test_a_search_that_finds_very_many_says_so(jobtrack, client, monkeypatch):
    monkeypatch.setattr(searching, "MOST", 3)
    track_many("acme-export", [{"job_id": f"exp_{n}", "reference": "many"} for n in range(5)])
    page = read(client.get(OPERATIONS, {"q": "many"})).text
    assert ("Very many rows are found: only 3 of them are listed." in page, "3 rows" in page) == (True, True)


def test_filters_offer_what_is_open_and_what_is_chosen(ask, client, jobtrack):
    rows = ask({}, {"reason": "unknown_state"}, {"reason": "rate_limited", "provider": "gone-api"})
    Escalation.objects.filter(pk=rows[2].pk).update(decided_at=jobtrack.clock(), open_blocking=None)

    def offered(query):
        chosen = {
            spec.parameter_name: [value for value, _ in spec.lookup_choices]
            for spec in listed(client, query=query).filter_specs
        }
        return chosen["reason"], chosen["provider"]

    assert offered({}) == (["stalled", "unknown_state"], ["acme-export"])
    assert offered({"decided": "yes"}) == (["rate_limited", "stalled", "unknown_state"], ["acme-export", "gone-api"])
    assert offered({"provider": "zzz"}) == (["stalled", "unknown_state"], ["acme-export", "zzz"])


@pytest.mark.parametrize(
    ("query", "found"),
    [({"risk": "1"}, [0]), ({"risk": "x"}, [0, 2, 1]), ({"reason": "stalled"}, [1, 0]), ({"asked": "new"}, [0]), ({"asked": "hour"}, [2, 1]),
     ({"asked": "day"}, [1]), ({"asked": "week"}, []), ({"asked": "x"}, [0, 2, 1]), ({"provider": "acme-export"}, [0, 2, 1]), ({"provider": "till"}, [])],
)  # fmt: skip
def test_questions_are_filtered(ask, client, query, found):
    rows = ask({"risk": 1}, {"risk": 3, "opened_at": 30}, {"reason": "unknown_state", "opened_at": 2})
    assert ids(listed(client, query=query)) == [rows[n].pk for n in found]


@pytest.mark.parametrize(
    "lookup", ["detail__contains", "operation__sealed__startswith", "actor", "operation__provider"]
)
def test_no_other_column_can_be_asked_for(ask, client, lookup):
    assert client.get(QUESTIONS, {lookup: "x"}).status_code == 400


# --- what a row says --------------------------------------------------------------------------------


def test_a_row_says_what_a_person_looks_for(ask, client):
    (row,) = ask({"opened_at": 1, "detail": "No movement for 2 hours." + "x" * 500, "risk": 1})
    Operation.objects.update(reference="invoice 7", provider_state="running")
    page = read(client.get(QUESTIONS))
    for told in (
        "No movement The job has been in the same state for longer than its table expects. Does it still run? No movement for 2 hours.",
        "▲ high stopped",
        "1 hour ago",
        "acme-export default",
        "op-0 invoice 7",
        "running",
    ):
        assert told in page.text, told
    assert "x" * 100 not in page.text
    assert row.opened_at.isoformat() in [attrs.get("datetime") for tag, attrs in page.tags if tag == "time"]


def test_instants_are_told_in_the_reader_s_zone_as_well(ask, client):
    ask({})
    Operation.objects.update(created_at=NOON, wake_at=NOON, lease_until=None)
    with timezone.override("Europe/Berlin"):
        page = read(client.get(OPERATIONS)).text
    assert page.count("2030-01-07 12:00:00 UTC (13:00:00 CET)") == 2


def test_sentences_of_the_list_call_the_rows_questions(ask, client):
    """Its name says what they need: "Select all 56 needs decision" is no sentence."""
    ask({})
    response = client.get(QUESTIONS)
    assert (response.context["module_name"], response.context["title"]) == ("questions", "Needs decision")


def test_what_happens_if_nobody_acts_is_said(ask, client, monkeypatch):
    lapses = {Reason.STALLED: Lapse(option=Option.EXTEND, after=timedelta(hours=3))}
    here = replace(conf.settings(), lapses=lapses)
    monkeypatch.setattr(conf, "settings", lambda: here)
    ask({"opened_at": 1})
    assert "Extend in 2 hours" in read(client.get(QUESTIONS)).text
    Escalation.objects.update(reason="unknown_state")
    assert "it goes on waiting" in read(client.get(QUESTIONS)).text
    Escalation.objects.update(reason="stalled", opened_at=Escalation.objects.get().opened_at - timedelta(hours=5))
    assert "Extend, due now" in read(client.get(QUESTIONS)).text


def test_a_proposal_waits_for_a_second_person(ask, client, jobtrack):
    ask({})
    Escalation.objects.update(
        proposed_option="resubmit", proposed_by="ann", proposed_why="x", proposed_at=jobtrack.clock()
    )
    assert "waits for a second person Submit once more, proposed by ann" in read(client.get(QUESTIONS)).text


def test_a_word_of_a_newer_release_is_shown_as_it_is(ask, client):
    ask({"reason": "of_a_newer_release", "risk": 9})
    assert "Of_a_newer_release" in read(client.get(QUESTIONS)).text


def test_an_empty_list_says_so(client):
    assert "Nothing needs a decision." in read(client.get(QUESTIONS)).text


# --- the caller's object ----------------------------------------------------------------------------


def test_the_callers_object_is_a_link_for_those_who_may_see_it(ask, client, viewer):
    rows = ask({}, {}, {})
    group, gone = Group.objects.create(name="<b>Miller</b>"), Group.objects.create(name="gone")
    for row, subject in zip(rows, (group, gone), strict=False):
        operation = row.operation
        operation.subject = subject
        operation.save(update_fields=["content_type", "object_id"])
    gone.delete()
    url = reverse("admin:auth_group_change", args=[group.pk])
    for page_url in (QUESTIONS, OPERATIONS):
        page = read(client.get(page_url))
        assert (f'href="{url}"' in page.html, f"{group.pk} Group" in page.text, "Miller" in page.text) == (
            False,
            True,
            False,
        )
    viewer.user_permissions.add(Permission.objects.get(codename="view_group"))
    for page_url in (QUESTIONS, OPERATIONS):
        page = read(client.get(page_url))
        assert (f'href="{url}"' in page.html, "<b>Miller</b> Group" in page.text, "Group, not found" in page.text) == (
            True,
            True,
            True,
        )


@pytest.mark.parametrize("key", ["not a number", "9" * 30, ""])
def test_a_key_of_another_kind_is_an_object_that_is_gone(ask, client, key):
    ask({})
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    Operation.objects.update(content_type=ContentType.objects.get_for_model(Group), object_id=key)
    assert "Group, not found" in read(boss.get(QUESTIONS)).text
    nowhere = ContentType.objects.create(app_label="left", model="behind")
    Operation.objects.update(content_type=nowhere)
    assert "unknown kind, not found" in read(boss.get(QUESTIONS)).text


@pytest.mark.parametrize("url", [QUESTIONS, OPERATIONS])
def test_a_list_costs_the_same_for_5_and_for_100_rows(ask, url, db):
    """Every query counts: of jobtrack, of the caller's objects, of the session."""
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))

    def plant(count):
        for row in ask(*[{"risk": 1 + n % 3} for n in range(count)]):
            row.operation.subject = Group.objects.create(name=f"group of {row.pk}")
            row.operation.save(update_fields=["content_type", "object_id"])

    def queries():
        with CaptureQueriesContext(connection) as captured:
            read(boss.get(url))
        return len(captured)

    plant(5)
    queries()
    few = queries()
    plant(95)
    assert queries() == few <= 16


# --- the list of apps -------------------------------------------------------------------------------


def test_needs_decision_comes_first_with_its_number(ask, client):
    ask({}, {}, {})
    page = read(client.get("/admin/"))
    assert "External jobs" in page.text
    assert page.text.index("Needs decision (3)") < page.text.index("Operations")
    assert "Needs decision" in read(client.get(QUESTIONS)).text


def test_the_number_is_asked_for_once_a_page_and_only_where_it_is_shown(ask, client, viewer):
    ask({})
    for url, times in (("/admin/", 1), ("/admin/password_change/", 1)):
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        counts = [each["sql"] for each in captured if "jobtrack_escalation" in each["sql"]]
        assert len(counts) == times
        assert all("LIMIT 100" in sql for sql in counts)
    request = RequestFactory().get("/admin/")
    request.user = viewer
    with CaptureQueriesContext(connection) as captured:
        admin.site.get_app_list(request)
    assert [each["sql"] for each in captured if "jobtrack_escalation" in each["sql"]] == []


def test_nobody_else_learns_the_number(ask, db):
    ask({})
    half = Client()
    half.force_login(person("half", "view_operation"))
    with CaptureQueriesContext(connection) as captured:
        page = read(half.get("/admin/"))
    assert ("Needs decision" in page.text, "Operations" in page.text) == (False, True)
    assert [each["sql"] for each in captured if "jobtrack_escalation" in each["sql"]] == []


def test_more_than_99_are_not_counted(ask, client, monkeypatch):
    monkeypatch.setattr(front, "_MOST", 2)
    ask({}, {}, {})
    assert "Needs decision (2+)" in read(client.get("/admin/")).text


def test_an_absent_table_or_database_does_not_break_the_admin(client, monkeypatch, settings):
    table = Escalation._meta.db_table
    monkeypatch.setattr(Escalation._meta, "db_table", "jobtrack_not_there")
    page = read(client.get("/admin/")).text
    assert ("Needs decision" in page, "Needs decision (" in page) == (True, False)
    monkeypatch.setattr(Escalation._meta, "db_table", table)
    settings.JOBTRACK = {**SITE, "DATABASE": "not_there"}
    assert "Needs decision" in read(client.get("/admin/")).text


def test_a_site_of_ones_own_has_it_too(ask, viewer):
    class Sorted(admin.AdminSite):
        def get_app_list(self, request, app_label=None):
            return list(reversed(super().get_app_list(request, app_label)))

    ask({})
    own = Sorted(name="own")
    register(own)
    front.put_first(own)
    request = RequestFactory().get("/admin/")
    request.user = viewer
    for apps in (own.get_app_list(request), own.get_app_list(request, "jobtrack")):
        names = [str(entry["name"]) for entry in apps[0]["models"]]
        assert (names[0], names.count(names[0])) == ("Needs decision (1)", 1)


# --- results and webhooks ---------------------------------------------------------------------------


def test_results_and_webhooks_are_listed(jobtrack, db):
    reader = Client()
    reader.force_login(person("reader", "view_operation", "view_jobresult", "view_webhookreceipt"))
    track("acme-export", job_id="exp_1", operation_id="op-1")
    track("acme-export", job_id="exp_2", operation_id="op-2")
    secret = "https://files.acme.example/1.csv?sig=s3cret"
    for number in (1, 2):
        JobResult.objects.create(
            operation_id=f"op-{number}", state="complete", link=secret, fetched_at=jobtrack.clock()
        )
        WebhookReceipt.objects.create(
            provider="acme-export",
            account="default",
            notice_id=f"evt-{number}",
            job_id=f"exp_{number}",
            received_at=jobtrack.clock(),
        )
    for url, found in (("/admin/jobtrack/jobresult/", "op-"), ("/admin/jobtrack/webhookreceipt/", "exp_")):
        page = read(reader.get(url))
        assert (f"{found}1" in page.text, f"{found}2" in page.text, "s3cret" in page.html) == (True, True, False)
        for query in ("op-1", "exp_1", "job:exp_1"):
            text = read(reader.get(url, {"q": query})).text
            assert (f"{found}1" in text, f"{found}2" in text) == (True, False), (url, query)
    page = read(reader.get(reverse("admin:jobtrack_jobresult_change", args=["op-1"])))
    assert "s3cret" not in page.html


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("operation/?state=%00", 400),
        ("operation/?q=%00", 200),
        ("escalation/?provider=a%00", 400),
        ("notice/?outcome=%00", 400),
        ("operation/%00/change/", 302),
        ("operation/%00/history/", 302),
        ("operation/%00/bundle/", 404),
        ("jobresult/%00/change/", 302),
    ],
)
def test_a_text_that_no_database_has_is_refused(admin_client, path, status):
    """PostgreSQL does not even take it in a question."""
    assert admin_client.get(f"/admin/jobtrack/{path}").status_code == status
