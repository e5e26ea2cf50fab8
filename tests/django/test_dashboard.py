"""The dashboard: what it shows is what the rows say, in a fixed number of bounded queries (R-METRIC)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation

from jobtrack.core.escalation import Option, Reason
from jobtrack.core.grant import grant
from jobtrack_django import figures
from jobtrack_django.admin import register
from jobtrack_django.dashboard import history as past
from jobtrack_django.dashboard import now as read
from jobtrack_django.dashboard import panels, say
from jobtrack_django.dashboard.charts import Bar, bars, columns
from jobtrack_django.models import AccountGate, DailyFigure, Dashboard, Heartbeat, Notice, Operation
from tests.django.admin_pages import person
from tests.django.admin_pages import read as read_page
from tests.django.figures_planted import ask, now, plant, poll_entry
from tests.django.plans import analyze, read_whole

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def viewer(client):
    client.force_login(person("viewer", "view_operation", "view_escalation"))
    return client


def page(client, **query):
    return read_page(client.get(reverse("admin:jobtrack_dashboard"), query))


def roll():
    for _ in range(60):
        if not figures.due("default"):
            return
        figures.roll_up("default")


def beat(name, kind, ago):
    at = now() - ago
    return Heartbeat.objects.create(name=name, kind=kind, started_at=at, seen_at=at)


def site_at_work():
    """A day's rows, counted by hand in the tests below."""
    at = now() - timedelta(days=1)
    for number in range(3):
        plant(f"good{number}", "acme", "succeeded", at, requests=4, seen_within=3)
    plant("bad", "acme", "failed", at, requests=2, seen_within=40)
    plant("other", "umbrella", "succeeded", at, requests=1, seen_within=1)
    running = plant("run", "acme", "running", None, accepted_at=at, wake_at=now() + timedelta(hours=1))
    poll_entry(running, at=at, wait_s=60)
    poll_entry(running, at=at + timedelta(seconds=61))
    stopped = plant("stop", "acme", "escalated", None)
    ask(stopped, Reason.SUBMISSION_UNKNOWN, now() - timedelta(hours=3))
    ask(plant("stop2", "acme", "escalated", None), Reason.DEADLINE_EXCEEDED, now() - timedelta(days=2))
    AccountGate.objects.create(provider="acme", account="eu", reason="auth")
    AccountGate.objects.create(provider="acme", account="us")
    beat("sweeper:web1:7", "sweeper", timedelta(seconds=9))
    beat("worker:web2:8", "worker", timedelta(hours=2))
    return running


def test_the_page_shows_what_the_rows_say(viewer):
    site_at_work()
    roll()
    text = page(viewer).text
    for said in (
        "risk: 1 high, 1 medium, 0 low",
        "2 questions wait for a person.",
        "not known whether submitted 0 1 0 0 0 1 3 hours",
        "deadline passed 0 0 0 1 0 1 2 days",
        "needs a decision 2",
        "4 of 5 jobs that ended were successful (80.0 %).",
        "acme 4 3 1 0 0 0 75.0 %",
        "umbrella 1 1 0 0 0 0 100.0 %",
        "Half were seen within 5 s, 95 of 100 within 40 s",
        "acme 4 12 s 5 s 40 s 40 s",
        "acme 4 3.5 0.0",
        "0 of 2 looks came early",
        "Once a job used up what its table grants, and a person was asked. Budgets used up",
        "acme 1 0 0 0 Accounts that are held back",
        "acme eu access was denied; a person has to repair it a person acts",
        "sweeper:web1:7 sweeper",
        "silent: stopped, or replaced",
        "1 process is alive",
    ):
        assert said in text, said
    assert "acme us" not in text


def test_a_planted_early_look_makes_it_read_one(viewer):
    running = site_at_work()
    poll_entry(running, at=now() - timedelta(hours=20), wait_s=3600)
    poll_entry(running, at=now() - timedelta(hours=20) + timedelta(minutes=59))
    roll()
    shown = page(viewer)
    assert "1 of 4 looks came early" in shown.text
    bad = [attrs for _tag, attrs in shown.tags if "jobtrack-tile-bad" in (attrs.get("class") or "")]
    assert len(bad) == 2  # this one, and the question of high risk
    assert "Look here must be 0" in shown.text


def test_an_empty_site_has_a_page(viewer):
    text = page(viewer).text
    assert "Nobody is asked anything." in text
    assert "no sweeper was ever heard of" in text
    assert "0 of 0 looks came early" in text
    assert "today was not counted yet" in text


@pytest.mark.parametrize(("asked", "days"), [("7", 7), ("30", 30), ("90", 90), ("", 7), ("9999999", 7), ("x", 7)])
def test_the_days_that_are_shown(viewer, asked, days):
    for back in (0, 6, 7, 29, 30, 89):
        day = figures.utc_day(now()) - timedelta(days=back)
        DailyFigure.objects.create(day=day, provider="acme", measure="ended:succeeded", count=1, measured_at=now())
    shown = page(viewer, days=asked)
    counts = {7: 2, 30: 4, 90: 6}
    assert f"{counts[days]} of {counts[days]} jobs that ended" in shown.text
    chosen = [attrs["href"] for tag, attrs in shown.tags if tag == "a" and attrs.get("aria-current") == "true"]
    assert chosen == [f"?days={days}"]


def test_it_loads_itself_again_only_if_it_is_asked_to(viewer):
    url = reverse("admin:jobtrack_dashboard")
    assert not viewer.get(url).has_header("Refresh")
    assert not viewer.get(url, {"refresh": "0"}).has_header("Refresh")
    assert viewer.get(url, {"refresh": "60"})["Refresh"] == "60"


def test_who_may_see_it(client):
    url = reverse("admin:jobtrack_dashboard")
    assert url == "/admin/jobtrack/dashboard/"
    assert client.get(url).status_code == 302
    client.force_login(person("stranger"))
    assert client.get(url).status_code == 403
    client.force_login(person("no-staff", "view_operation", staff=False))
    assert client.get(url).status_code == 302
    client.force_login(person("viewer", "view_operation"))
    shown = page(client)
    assert not any("/escalation/" in (attrs.get("href") or "") for _tag, attrs in shown.tags)  # not theirs to see
    assert client.post(url).status_code == 405


def test_it_stands_in_the_list_of_pages(viewer):
    shown = read_page(viewer.get(reverse("admin:index")))
    assert any(attrs.get("href") == reverse("admin:jobtrack_dashboard") for _tag, attrs in shown.tags)


def test_the_page_of_questions_leads_to_it(viewer, client):
    tools = '<ul class="object-tools"><li><a href="/admin/jobtrack/dashboard/">Dashboard</a></li></ul>'
    url = reverse("admin:jobtrack_escalation_changelist")
    assert tools in viewer.get(url).content.decode()
    client.force_login(person("only-questions", "view_escalation"))
    assert tools not in client.get(url).content.decode()


def test_it_works_on_a_site_of_your_own(settings):
    site = AdminSite(name="ops")
    register(site)
    admin = site.get_model_admin(Dashboard)
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root")
    response = admin.page(request)
    assert response.context_data["title"] == "Dashboard"
    assert request.current_app == "ops"


def test_every_picture_says_what_it_shows_and_has_a_table(viewer):
    site_at_work()
    roll()
    shown = page(viewer)
    pictures = [attrs for tag, attrs in shown.tags if tag == "svg" and attrs.get("role") == "img"]
    assert len(pictures) == 8
    ids = [attrs["id"] for _tag, attrs in shown.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for picture in pictures:
        assert all(name in ids for name in picture["aria-labelledby"].split())
    assert [tag for tag, _ in shown.tags].count("table") >= len(pictures)


def test_the_number_of_queries_is_always_the_same(viewer):
    """R-METRIC: also with the reader's rows, which are the same for both."""
    counts = []
    for start, stop in ((0, 5), (5, 100)):
        at = now() - timedelta(days=1)
        for number in range(start, stop):
            plant(f"e{number}", f"provider{number % 7}", "succeeded", at, requests=1, seen_within=1)
            plant(f"r{number}", "acme", "running", None)
            ask(plant(f"q{number}", "acme", "escalated", None), list(Reason)[number % 20], at)
            AccountGate.objects.create(provider="acme", account=f"a{number}", reason="breaker")
            beat(f"worker:{number}", "worker", timedelta(minutes=number))
        figures.roll_up("default")
        DailyFigure.objects.update(measured_at=now() - timedelta(days=1))
        figures.roll_up("default")
        with CaptureQueriesContext(connection) as queries:
            page(viewer)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[0] <= 30


def test_counting_stops(viewer, monkeypatch):
    monkeypatch.setattr(read, "MOST", 3)
    for number in range(5):
        ask(plant(f"q{number}", "acme", "escalated", None), Reason.STALLED, now() - timedelta(minutes=5))
        plant(f"r{number}", "acme", "running", None, created_at=now() - timedelta(days=number))
    text = page(viewer).text
    assert "3+ questions wait for a person." in text
    assert "running 3+" in text
    assert read.standing("default").unseen.operation_id == "r4"
    assert read.standing("default").unseen.partial


def test_the_oldest_look_is_that_of_the_operation_seen_least(viewer):
    plant("new", "acme", "running", None, created_at=now() - timedelta(hours=1))
    plant("seen", "acme", "running", None, observed_at=now() - timedelta(minutes=1))
    plant("unseen", "acme", "running", None, observed_at=now() - timedelta(hours=5))
    plant("ended", "acme", "succeeded", now(), observed_at=now() - timedelta(days=9))
    assert read.standing("default").unseen.operation_id == "unseen"
    shown = page(viewer)
    assert "Oldest look 5" in shown.text
    assert any(
        attrs.get("href") == reverse("admin:jobtrack_operation_change", args=["unseen"]) for _t, attrs in shown.tags
    )


def test_numbers_and_days_are_written_as_the_reader_does(viewer):
    day = figures.utc_day(now())
    for measure, count in (("looks", 12345), ("early", 0)):
        DailyFigure.objects.create(day=day, provider="acme", measure=measure, count=count, measured_at=now())
    assert "0 of 12,345 looks came early" in page(viewer).text
    with translation.override("de"):
        assert say.number(12345) == "12.345"
        assert say.number(0.5, 1) == "0,5"
        assert say.day(day) == f"{day:%d.%m.%Y}"
        chart = bars("x", "x", "x", [Bar(label="a", parts=[("plain", 1), ("bad", 2)])])
    assert all(isinstance(box.x, float) for box in chart.boxes)


def test_geometry_is_not_localised(client, settings):
    settings.LANGUAGE_CODE = "de"
    site_at_work()
    roll()
    client.force_login(person("viewer", "view_operation"))
    with translation.override("de"):
        shown = page(client)
    numbers = [attrs[name] for tag, attrs in shown.tags if tag == "rect" for name in ("width", "height")]
    assert numbers
    assert not any("," in number for number in numbers)


@pytest.mark.parametrize(
    ("part", "whole", "expected"), [(0, 0, "–"), (1, 3, "33.3 %"), (2999, 3000, "99.9 %"), (3, 3, "100.0 %")]
)
def test_all_is_said_only_of_all(part, whole, expected):
    assert say.share(part, whole) == expected


def test_one_of_many_is_drawn():
    rows = [Bar(label="a", parts=[("plain", 100_000), ("bad", 1)]), Bar(label="b", parts=[("plain", 0)])]
    chart = columns("x", "x", "x", rows)
    assert {box.kind: box.height >= 1 for box in chart.boxes} == {"axis": True, "plain": True, "bad": True}
    assert all(box.x + box.width <= chart.width for box in chart.boxes)
    assert all(0 <= box.y <= chart.height for box in chart.boxes)


def test_every_reason_has_a_bar():
    for number, reason in enumerate(Reason):
        ask(plant(f"q{number}", "acme", "escalated", None), reason, now() - timedelta(hours=1))
    panel = panels.waiting(read.questions("default", now()))
    assert len(Reason) > 12
    assert len([box for box in panel.chart.boxes if box.width]) == len(panel.rows) == len(Reason)


@pytest.mark.parametrize(("providers", "drawn"), [(12, None), (14, "Drawn: 12 of 14 providers. The table has all.")])
def test_a_picture_says_what_it_leaves_out(viewer, providers, drawn):
    at = now() - timedelta(days=1)
    for number in range(providers):
        plant(f"e{number}", f"provider{number}", "succeeded", at, requests=1)
    roll()
    text = page(viewer).text
    assert text.count(drawn or "Drawn:") == (2 if drawn else 0)


def test_an_empty_chart_is_one():
    assert bars("x", "x", "x", []).boxes == []
    assert [box.kind for box in columns("x", "x", "x", []).boxes] == ["axis"]


# --- for monitoring ---------------------------------------------------------------------------------


def health(*arguments):
    out = StringIO()
    try:
        call_command("jobtrack_figures", "--json", *arguments, stdout=out)
        code = 0
    except SystemExit as error:
        code = error.code
    return json.loads(out.getvalue()), code


def test_a_healthy_site():
    site_at_work()
    roll()
    told, code = health()
    age = told["heartbeat_age_s"]
    assert 9 <= age["sweeper"] < 60
    assert age["worker"] >= 7200
    assert told["figures_age_s"] < 60
    fixed = {name: value for name, value in told.items() if name not in ("heartbeat_age_s", "figures_age_s")}
    assert fixed == {
        "needs_decision": 2,
        "needs_decision_high_risk": 1,
        "due": 0,
        "overdue_lag_s": 0.0,
        "looks": 2,
        "early": 0,
        "over_budget": 0,
        "without_next_step": 0,
        "past_deadline": 0,
        "open_all_read": True,
        "ended_or_asked_share": 1.0,
        "notices_failed": 0,
        "notices_late": 0,
        "days": 7,
        "problems": [],
    }
    assert code == 0


@pytest.mark.parametrize("problem", ["early", "over_budget", "without_next_step", "not_swept"])
def test_what_must_be_zero_and_is_not(problem):
    site_at_work()
    if problem in ("early", "over_budget"):
        measure = {"early": "early", "over_budget": "over"}[problem]
        day = figures.utc_day(now())
        DailyFigure.objects.create(day=day, provider="acme", measure=measure, count=1, measured_at=now())
    if problem == "without_next_step":
        plant("adrift", "acme", "running", None)
    if problem == "not_swept":
        plant("due", "acme", "running", None, wake_at=now() - timedelta(minutes=4))
        Heartbeat.objects.update(seen_at=now() - timedelta(minutes=6))
    told, code = health()
    assert told["problems"] == [problem]
    assert code == 1


def bad_tiles(viewer):
    """Titles of the tiles that want somebody's attention."""
    text = page(viewer).html
    tiles = re.findall(r'<li class="jobtrack-tile jobtrack-tile-bad">\s*<h2>(.*?)</h2>', text)
    return {re.sub("<[^>]*>", "", title) for title in tiles}


def test_work_that_nobody_looks_at_although_a_sweeper_lives(viewer):
    """A dead worker, or a queue that stands still."""
    beat("sweeper:web1:7", "sweeper", timedelta(seconds=9))
    plant("good", "acme", "succeeded", now())
    roll()
    ago = now() - timedelta(days=2)
    for number in range(5):
        plant(f"r{number}", "acme", "running", None, deadline=ago, wake_at=ago)
    told, code = health()
    assert (told["due"], told["past_deadline"], told["without_next_step"]) == (5, 5, 0)
    assert told["ended_or_asked_share"] == 0.166666
    assert told["problems"] == ["past_deadline", "overdue"]
    assert code == 1
    assert bad_tiles(viewer) == {"Due, and nobody looks", "Ended or asked"}
    text = page(viewer).text
    assert "Ended or asked 16.6 % Look here 5 are past their deadline, and nobody was asked" in text
    assert "running 5 0 5" in text


@pytest.mark.parametrize(("minutes", "late"), [(4, False), (6, True)])
def test_the_tile_and_the_command_say_late_at_the_same_time(viewer, minutes, late):
    beat("sweeper:web1:7", "sweeper", timedelta(seconds=9))
    roll()
    plant("r", "acme", "running", None, wake_at=now() - timedelta(minutes=minutes))
    assert health()[0]["problems"] == ["overdue"] * late
    assert bad_tiles(viewer) == ({"Due, and nobody looks"} if late else set())


@pytest.mark.parametrize(
    ("state", "minutes", "columns_", "past_"),
    [
        ("running", 14, {}, 0),  # it may be looked at just now
        ("running", 16, {}, 1),
        ("submitting", 16, {}, 1),
        ("running", 16, {"last_look": True}, 1),
        ("running", 99, {"last_look": True, "look_until": 14}, 0),  # a person granted one more look
        ("running", 99, {"last_look": True, "look_until": 16}, 1),
        ("running", 99, {"look_until": 14}, 0),  # that look was used: its request may be out
        ("running", 99, {"look_until": 16}, 1),
        ("running", 99, {"wake_at": None}, 0),  # told as one without a next step
        ("escalated", 99, {"wake_at": None}, 0),  # a person is asked
        ("succeeded", 99, {"wake_at": None}, 0),
    ],
)
def test_what_is_past_its_deadline(state, minutes, columns_, past_):
    at = {name: now() - timedelta(minutes=ago) for name, ago in columns_.items() if type(ago) is int}
    soon = now() + timedelta(minutes=1)
    plant(
        "a", "acme", state, None, **{"deadline": now() - timedelta(minutes=minutes), "wake_at": soon, **columns_, **at}
    )
    told, _code = health()
    assert told["past_deadline"] == past_
    assert ("past_deadline" in told["problems"]) is bool(past_)


@pytest.mark.parametrize(
    ("state", "minutes_ago", "columns_", "past_"),
    [
        # Limited by the time to submit by.
        ("ready", {"deadline": 5000, "submit_by": -1}, {}, 0),
        ("ready", {"deadline": -5000, "submit_by": 14}, {}, 0),
        ("ready", {"deadline": -5000, "submit_by": 16}, {}, 1),
        ("ready", {"deadline": 16}, {}, 1),
        ("ready", {"deadline": -5000, "submit_by": 16, "recover_until": -1, "last_sent_at": 1}, {}, 1),
        ("ready", {"deadline": 5000, "submit_by": 5000, "look_until": -1}, {"last_look": True}, 0),
        ("ready", {"deadline": -5000, "submit_by": -5000, "look_until": 16}, {"last_look": True}, 1),  # it holds alone
        ("ready", {"deadline": -5000, "submit_by": -5000, "look_until": 16}, {}, 0),
        ("ready", {"deadline": -5000, "submit_by": -5000}, {"last_look": True}, 0),
        # By the recovery deadline.
        ("unconfirmed", {"deadline": 5000, "recover_until": -1}, {}, 0),
        ("unconfirmed", {"deadline": -5000, "recover_until": 14}, {}, 0),
        ("unconfirmed", {"deadline": -5000, "recover_until": 16}, {}, 1),
        ("unconfirmed", {"deadline": 16}, {}, 1),
        ("unconfirmed", {"deadline": -5000, "recover_until": 16, "submit_by": -1, "last_sent_at": 1}, {}, 1),
        ("unconfirmed", {"deadline": 5000, "recover_until": 5000, "look_until": -1}, {"last_look": True}, 0),
        # By the deadline, and while a request may be out that a person had sent after it.
        ("submitting", {"deadline": -1, "submit_by": 5000, "recover_until": 5000, "last_sent_at": 99}, {}, 0),
        ("submitting", {"deadline": 5000, "submit_by": 5000, "last_sent_at": 14}, {}, 0),
        ("submitting", {"deadline": 5000, "submit_by": -1, "recover_until": -1, "last_sent_at": 16}, {}, 1),
        ("submitting", {"deadline": 5000, "last_sent_at": 16, "look_until": -1}, {"last_look": True}, 0),
        ("running", {"deadline": -1, "submit_by": 5000, "recover_until": 5000, "last_sent_at": 5000}, {}, 0),
        ("running", {"deadline": 16, "submit_by": -1, "recover_until": -1, "last_sent_at": 1}, {}, 1),
    ],
)
def test_each_state_is_judged_by_its_own_limit(state, minutes_ago, columns_, past_):
    """As ``core`` says it, so that what a person let go on after the deadline is no false alarm."""
    at = now()
    instants = {name: at - timedelta(minutes=ago) for name, ago in minutes_ago.items()}
    row = plant("a", "acme", state, None, wake_at=at + timedelta(hours=1), **instants, **columns_)
    last = row.to_core().last_instant
    assert health()[0]["past_deadline"] == past_
    late = last < at - read.GRACE
    assert past_ <= late
    assert past_ == late or state == "submitting"


@pytest.mark.parametrize("option", [Option.RESUBMIT, Option.LOOK_AGAIN, Option.ACCESS_REPAIRED, Option.LOOK_UP])
@pytest.mark.parametrize("doubt", ["", "There was no answer."])
@pytest.mark.parametrize("accepted", [False, True])
def test_a_question_that_was_answered_after_the_deadline(option, doubt, accepted):
    """After a long weekend. No option but an extension raises the deadline."""
    at = now()
    old = at - timedelta(days=3)
    row = plant("a", "acme", "escalated", None, deadline=old, submit_by=old, recover_until=old, doubt=doubt)
    stopped = replace(row.to_core(), accepted_at=old if accepted else None)
    after = grant(stopped, option, blocking=True, table=None, look=timedelta(minutes=5), now=at)
    Operation.objects.update(**Operation.from_core(after))
    assert Operation.objects.get().state != "escalated"
    assert (health()[0]["past_deadline"], health()[0]["without_next_step"]) == (0, 0)
    Operation.objects.update(last_look=False)  # a worker uses the grant: its request is out
    assert health()[0]["past_deadline"] == 0


def test_what_waits_for_a_person_has_arrived(viewer):
    plant("stop", "acme", "escalated", None)
    plant("adrift", "acme", "running", None)
    assert health()[0]["ended_or_asked_share"] == 0.5
    assert "Ended or asked 50.0 % Look here must be all" in page(viewer).text
    assert "Ended or asked" in bad_tiles(viewer)


def test_nothing_had_to_arrive_yet(viewer):
    plant("r", "acme", "running", None, wake_at=now() + timedelta(hours=1))
    assert health()[0]["ended_or_asked_share"] is None
    assert "Ended or asked – must be all" in page(viewer).text


def test_how_far_was_read_for_what_must_be_zero(viewer, monkeypatch):
    """Never a plain 0 that was not looked for: the oldest are read, and the page says how many."""
    monkeypatch.setattr(read, "MOST", 3)
    old, soon = now() - timedelta(days=1), now() + timedelta(hours=1)
    for number in range(4):
        plant(f"r{number}", "acme", "running", None, created_at=old, wake_at=soon)
    for number in range(3):
        plant(f"adrift{number}", "acme", "running", None, created_at=now())
    told, _code = health()
    assert (told["without_next_step"], told["open_all_read"]) == (0, False)
    text = page(viewer).text
    assert "Without a next step 0 must be 0; the 3 oldest in each state were read" in text
    assert "must be all; the 3 oldest in each state were read" in text
    Operation.objects.filter(pk__startswith="r").delete()
    told, code = health()
    assert (told["without_next_step"], told["open_all_read"], code) == (3, True, 1)
    assert "Without a next step 3 Look here must be 0 Ended" in page(viewer).text


def test_nothing_has_swept_but_nothing_is_due():
    assert health() == (health()[0], 0)
    assert health()[0]["heartbeat_age_s"] == {}
    assert health("--days", "90")[0]["days"] == 90


def test_the_command_counts_until_nothing_is_due():
    plant("a", "acme", "succeeded", now() - timedelta(days=80))
    out = StringIO()
    call_command("jobtrack_figures", stdout=out)
    assert out.getvalue() == f"counted days and audit entries: {figures.KEPT_DAYS + 1}\n"
    assert not figures.due("default")
    assert past.history("default", now(), 90).total.ends == 1


def test_notices_that_failed_or_are_late(viewer, settings):
    settings.JOBTRACK = {"NOTIFIERS": {"mail": {"kind": "email", "to": ["ops@example.com"]}}}
    question = ask(plant("q", "acme", "escalated", None), Reason.STALLED, now() - timedelta(hours=1))
    Notice.objects.create(escalation=question, notifier="mail", turn=1, outcome=Notice.FAILED)
    Notice.objects.create(escalation=question, notifier="mail", turn=2, due_at=now() - timedelta(hours=1))
    assert "Notices that failed 1 Look here 1 more wait for too long" in page(viewer).text


@pytest.mark.parametrize("problem", ["notices_failed", "notices_late"])
def test_people_who_are_not_told(settings, problem):
    settings.JOBTRACK = {"NOTIFIERS": {"mail": {"kind": "email", "to": ["ops@example.com"]}}}
    question = ask(plant("q", "acme", "escalated", None), Reason.STALLED, now() - timedelta(hours=1))
    row = {"outcome": Notice.FAILED} if problem == "notices_failed" else {"due_at": now() - timedelta(hours=1)}
    Notice.objects.create(escalation=question, notifier="mail", turn=1, **row)
    told, code = health()
    assert (told[problem], told["problems"], code) == (1, [problem], 1)


def test_a_failed_notice_of_a_decided_question_is_no_trouble(viewer, settings):
    """Nothing ever sends it again: it would be told for ever."""
    settings.JOBTRACK = {"NOTIFIERS": {"mail": {"kind": "email", "to": ["ops@example.com"]}}}
    question = ask(plant("q", "acme", "succeeded", None), Reason.STALLED, now() - timedelta(hours=1), decided=True)
    Notice.objects.create(escalation=question, notifier="mail", turn=1, outcome=Notice.FAILED)
    assert health()[0]["notices_failed"] == 0
    assert "Notices that failed" not in bad_tiles(viewer)


@pytest.mark.parametrize(
    ("failed", "others", "told"),
    [
        (("mail", 1), [("mail", 2, Notice.SENT)], 0),  # the reminder got through
        (("mail", 1), [("mail", 2, Notice.WAITING)], 1),
        (("mail", 1), [("mail", 2, Notice.FAILED)], 2),
        (("mail", 2), [("mail", 1, Notice.SENT)], 1),  # the reminder did not
        (("mail", 1), [("chat", 2, Notice.SENT)], 1),  # that reached others
        (("gone", 1), [], 0),  # a notifier that is no more
        (("gone", 1), [("mail", 1, Notice.FAILED)], 1),
    ],
)
def test_a_failed_notice_is_told_until_it_can_be_made_good(viewer, settings, failed, others, told):
    mail, chat = ({"kind": "email", "to": [f"{name}@example.com"]} for name in ("ops", "chat"))
    settings.JOBTRACK = {"NOTIFIERS": {"mail": mail, "chat": chat}}
    at = now() - timedelta(hours=1)
    question = ask(plant("q", "acme", "escalated", None), Reason.STALLED, at)
    another = ask(plant("p", "acme", "escalated", None), Reason.STALLED, at)
    Notice.objects.create(escalation=another, notifier=failed[0], turn=2, outcome=Notice.SENT)
    for notifier, turn, outcome in [(*failed, Notice.FAILED), *others]:
        Notice.objects.create(escalation=question, notifier=notifier, turn=turn, outcome=outcome)
    assert health()[0]["notices_failed"] == told
    assert ("notices_failed" in health()[0]["problems"]) is bool(told)
    assert ("Notices that failed" in bad_tiles(viewer)) is bool(told)


def test_failed_notices_of_the_oldest_questions_are_counted(settings, monkeypatch):
    settings.JOBTRACK = {"NOTIFIERS": {"mail": {"kind": "email", "to": ["ops@example.com"]}}}
    monkeypatch.setattr(read, "MOST", 3)
    for number, count in enumerate((1, 2, 3, 3)):
        question = ask(plant(f"q{number}", "acme", "escalated", None), Reason.STALLED, now())
        Notice.objects.create(escalation=question, notifier="mail", turn=1, outcome=Notice.FAILED)
        assert read.failed_notices("default") == read.Bounded(count=count, more=number == 3)


# --- plans ------------------------------------------------------------------------------------------


@pytest.mark.vendor("postgresql", "mysql")
def test_plans_use_indexes_on_a_large_table(viewer, settings):
    """INV: no page reads a whole table. Tens of thousands of rows, with statistics."""
    settings.JOBTRACK = {"NOTIFIERS": {"mail": {"kind": "email", "to": ["ops@example.com"]}}}
    plant("model", "acme", "succeeded", now() - timedelta(days=1))
    columns_ = [field.column for field in type(plant("x", "acme", "running", None))._meta.concrete_fields]
    copied = ", ".join(f"one.{name}" for name in columns_ if name not in ("id", "ended_at", "created_at"))
    numbers, ago = {
        "postgresql": ("generate_series(1, 40000) AS numbers(n)", "now() - n * interval '{} minutes'"),
        "mysql": ("(SELECT seq AS n FROM seq_1_to_40000) numbers", "UTC_TIMESTAMP(6) - INTERVAL {} * n MINUTE"),
    }[connection.vendor]
    many = (
        f"INSERT INTO jobtrack_operation (id, ended_at, created_at, {copied.replace('one.', '')})"  # noqa: S608 - our own columns
        f" SELECT CONCAT('op', n), {ago.format(5)}, {ago.format(6)}, {copied}"
        f" FROM jobtrack_operation one, {numbers} WHERE one.id = 'model'"
    )
    option = connection.ops.quote_name("option")
    with connection.cursor() as cursor:
        cursor.execute(many)
        cursor.execute(
            "INSERT INTO jobtrack_escalation (operation_id, provider, account, reason, risk, detail, blocking,"  # noqa: S608
            f" version, opened_at, decided_at, {option}, actor, actor_reason, job_id, proposed_job)"
            " SELECT id, provider, account, 'stalled', 2, '', true, 1, created_at, ended_at, 'close', 'x', 'x', '', ''"
            " FROM jobtrack_operation WHERE id <> 'x'"
        )
        for turn, outcome in ((1, Notice.FAILED), (2, Notice.SENT)):
            cursor.execute(
                "INSERT INTO jobtrack_notice (escalation_id, notifier, turn, attempts, lease_owner, outcome, message_id,"
                " last_error) SELECT id, 'mail', %s, 1, '', %s, '', '' FROM jobtrack_escalation",
                [turn, outcome],
            )
    question = ask(plant("q", "acme", "escalated", None), Reason.STALLED, now())
    Notice.objects.create(escalation=question, notifier="mail", turn=1, outcome=Notice.FAILED)
    analyze()
    day = figures.utc_day(now()) - timedelta(days=3)
    with CaptureQueriesContext(connection) as queries:
        page(viewer)
        figures._found("default", day)
        figures._read_batch("default", now())
    asked = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert [(found, sql) for sql in asked if (found := read_whole(sql))] == []


def test_a_notifier_that_is_no_more_is_not_late(viewer, settings):
    """Nobody will ever send its notices: a red tile for them could never be made good."""
    question = ask(plant("q", "acme", "escalated", None), Reason.STALLED, now() - timedelta(hours=1))
    Notice.objects.create(escalation=question, notifier="gone", turn=1, due_at=now() - timedelta(hours=1))
    assert "wait for too long" not in page(viewer).text
