"""Deciding in the admin: who may, what happens, and what the second of two people sees (R-ESC, INV-28, INV-29)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from jobtrack.core.escalation import ALLOWED, Option, Question, Reason, Refusal
from jobtrack_django import get_operation, track, words
from jobtrack_django.admin import EscalationAdmin
from jobtrack_django.models import AuditEntry, Delivery, Escalation
from jobtrack_django.testing import Rehearsal, answer
from tests.django import handlers
from tests.django.admin_pages import DENIED, DONE, PAUSED, RUNNING, SITE, asks, decide_url, person, question_url, read

pytestmark = pytest.mark.database

ALL = ["view_escalation", "view_operation", *(choice.permission for choice in words.CHOICES.values())]
OPTIONS = [option.value for option in Option]


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


@pytest.fixture
def ann(db):
    return person("ann", *ALL)


@pytest.fixture
def bob(db):
    return person("bob", *ALL)


def logged_in(user, **options):
    client = Client(**options)
    client.force_login(user)
    return client


def state():
    """Everything a decision could change."""
    return (
        list(AuditEntry.objects.values_list("operation_id", "seq", "hash").order_by("operation_id", "seq")),
        list(Escalation.objects.values().order_by("pk")),
        list(Delivery.objects.values().order_by("pk")),
        LogEntry.objects.count(),
    )


def post(client, escalation, option, *, reason="I looked", version=None, follow=False):
    data = {"reason": reason, "version": escalation.version if version is None else version}
    return client.post(decide_url(escalation, option), data, follow=follow)


# --- the sentence of the issue ----------------------------------------------------------------------


def test_an_unlisted_state_costs_one_request_and_the_mended_table_finishes_the_operation(settings, tmp_path, ann):
    """One request, one question; after the table is mended, "look again" reads with the newest one (R-TABLE-2)."""
    text = (Path(__file__).parents[2] / "providers" / "acme-export.yaml").read_text()
    table = tmp_path / "house-export.yaml"
    table.write_text(text.replace("id: acme-export", "id: house-export"))
    settings.JOBTRACK = {
        "TABLES": [str(tmp_path)],
        "ACCOUNTS": {"house-export": {"default": {"port": "9"}}},
        "CREDENTIALS": {"house-export": {"default": "env:ACME"}},
        "ALLOW_LOOPBACK": True,
    }
    from jobtrack_django.testing import rehearsal

    with rehearsal() as here:
        here.provider.script("exp_1", answer(json={"id": "exp_1", "status": "archived"}))
        operation = track("house-export", job_id="exp_1")
        here.run_due()
        escalation = Escalation.objects.get()
        assert (escalation.reason, len(here.provider.log)) == ("unknown_state", 1)

        client = logged_in(ann)
        page = read(client.get(question_url(escalation))).text
        assert "Last read with revision 2. This site still has the same one." in page
        mended = table.read_text().replace("success: [succeeded]", "success: [succeeded, archived]")
        table.write_text(mended.replace("revision: 2\n", "revision: 3\n"))
        here.provider.script(
            "exp_1",
            answer(json={"id": "exp_1", "status": "archived", "result": {"url": "https://files.acme.example/1"}}),
        )
        assert "This site has another one now: revision 3." in read(client.get(question_url(escalation))).text
        response = post(client, escalation, "look_again", reason="archived means done", follow=True)
        assert "Decided: “Look again now”" in read(response).text
        here.run_due()

    operation.refresh_from_db()
    assert (operation.state, operation.revision, len(here.provider.log)) == ("succeeded", 3, 2)
    events = [json.loads(entry.body) for entry in operation.audit.order_by("seq")]
    assert [entry["event"] for entry in events] == ["track", "poll", "decision", "poll"]
    assert (events[2]["actor"], events[2]["why"]) == ("ann", "archived means done")
    by_right = ("jobtrack.look_again", str(ann.pk), escalation.version)  # INV-28
    assert (events[2]["permission"], events[2]["person"], events[2]["evidence_version"]) == by_right
    assert "with the permission jobtrack.look_again" in read(client.get(question_url(escalation))).text
    assert [entry["table"]["revision"] for entry in events] == [2, 2, 3, 3]


def test_a_decided_question_leads_to_the_next_one_about_its_operation(jobtrack: Rehearsal, ann):
    client, escalation = logged_in(ann), asks(jobtrack, PAUSED)
    post(client, escalation, "look_again")
    assert "Another question" not in read(client.get(question_url(escalation))).text
    jobtrack.run_due()  # the provider says the same again
    further = Escalation.objects.open().get()
    page = read(client.get(question_url(escalation)))
    assert "Another question about this operation is open: unknown state (operation" in page.text
    assert f'href="{question_url(further)}"' in page.html


def test_the_audit_names_no_right_that_a_person_does_not_have(jobtrack: Rehearsal, monkeypatch):
    """INV-28: a rule of the site's own lets them, not Django's permission."""
    monkeypatch.setattr(EscalationAdmin, "has_option_permission", lambda *_: True)
    escalation = asks(jobtrack, PAUSED)
    viewer = person("vic", "view_escalation", "view_operation")
    assert post(logged_in(viewer), escalation, "look_again").status_code == 302
    entry = json.loads(AuditEntry.objects.filter(body__contains='"event":"decision"').get().body)
    assert (entry["actor"], entry["permission"], entry["person"]) == ("vic", None, str(viewer.pk))


# --- each option, from the page to its effect -------------------------------------------------------


def test_extend_shows_its_cost_and_grants_just_that(jobtrack: Rehearsal, ann):
    """R-ESC-3, R-ESC-4."""
    escalation = asks(jobtrack, RUNNING)
    before = get_operation(escalation.operation_id)
    assert escalation.reason == "deadline_exceeded"
    client = logged_in(ann)
    assert "Extend once, by 15 minutes. Additional checks: 4." in read(client.get(question_url(escalation))).text
    confirm = read(client.get(decide_url(escalation, "extend"))).text
    assert "The deadline becomes 2030-01-07 12:17:00 UTC. Status requests allowed in all: 64. Polling" in confirm
    assert "What will not be done Nothing is submitted, repeated or cancelled" in confirm
    assert post(client, escalation, "extend").status_code == 302
    after = get_operation(escalation.operation_id)
    assert after.deadline - before.deadline == timedelta(minutes=15)
    assert after.limit_status_requests - before.limit_status_requests == 4
    assert (after.state, after.spent_extensions) == ("running", 1)
    jobtrack.provider.script("exp_1", DONE)
    jobtrack.run_due()
    assert get_operation(escalation.operation_id).state == "succeeded"
    # There was one extension: the next question would not offer it.
    assert "Extend" not in {b.label for b in client.get(question_url(escalation)).context["buttons"]}


def test_without_a_table_nothing_that_needs_one_is_offered(jobtrack: Rehearsal, ann, monkeypatch):
    escalation = asks(jobtrack, PAUSED)
    monkeypatch.setattr(type(jobtrack.runtime.tables), "get", lambda self, table_id: None)
    response = logged_in(ann).get(question_url(escalation))
    assert "This site has no usable table now." in read(response).text
    assert [button.option.value for button in response.context["buttons"]] == ["look_again", "close"]


def test_close_ends_the_operation_and_says_that_the_job_may_go_on(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    page = read(client.get(decide_url(escalation, "close"))).text
    assert "The job at the provider is not cancelled: it may still run, bill and have effects." in page
    asked = len(jobtrack.provider.log)
    assert post(client, escalation, "close").status_code == 302
    assert get_operation(escalation.operation_id).state == "abandoned"
    assert len(jobtrack.provider.log) == asked
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.get_change_message()) == (ann, str(escalation.pk), "Decided: Close.")
    page = read(client.get(question_url(escalation))).text
    assert "ann decided “Close”" in page
    assert "Why: “I looked”" in page
    assert "What can be done" not in page


def test_closing_the_question_of_an_ended_operation_only_acknowledges(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, answer(json={"id": "exp_1", "status": "failed", "error": {"message": "disk full"}}))
    client = logged_in(ann)
    page = read(client.get(decide_url(escalation, "close"))).text
    assert "The operation itself stays as it is." in page
    assert "may still run" not in page
    post(client, escalation, "close")
    assert get_operation(escalation.operation_id).state == "failed"
    assert Escalation.objects.open().count() == 0


def test_access_repaired_sends_one_request(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, DENIED)
    assert escalation.reason == "authorization_denied"
    client = logged_in(ann)
    offered = [button.option.value for button in client.get(question_url(escalation)).context["buttons"]]
    assert offered == ["access_repaired", "close"]  # not the same request again (R-ESC-4)
    jobtrack.provider.script("exp_1", DONE)
    asked = len(jobtrack.provider.log)
    post(client, escalation, "access_repaired")
    jobtrack.run_due()
    assert (get_operation(escalation.operation_id).state, len(jobtrack.provider.log)) == ("succeeded", asked + 1)


def test_a_follow_up_runs_again(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, DONE, on_success="tests.django.handlers.fail")
    assert escalation.reason == "delivery_failed"
    Delivery.objects.update(handler="tests.django.handlers.remember")
    handlers.calls.clear()
    post(logged_in(ann), escalation, "retry_delivery")
    jobtrack.run_due()
    assert handlers.calls == [(escalation.operation_id, "succeeded")]


# --- who may ----------------------------------------------------------------------------------------


def everybody():
    return {
        "view-only staff": person("viewer", "view_escalation", "view_operation"),
        "staff without permission": person("stranger"),
        "no staff, all permissions": person("outsider", *ALL, staff=False),
        "anonymous": None,
    }


@pytest.mark.parametrize(
    "who", ["view-only staff", "staff without permission", "no staff, all permissions", "anonymous"]
)
def test_nobody_without_permission_changes_anything(jobtrack: Rehearsal, who):
    """INV-29, S13: every address of both admins and every option."""
    escalation = asks(jobtrack, PAUSED)
    user, client = everybody()[who], Client()
    if user:
        client.force_login(user)
    before = state()
    base = ["/admin/jobtrack/escalation/", "/admin/jobtrack/operation/"]
    rows = [f"{base[0]}{escalation.pk}/", f"{base[1]}{escalation.operation_id}/"]
    urls = [
        *base,
        *rows,
        *(f"{url}add/" for url in base),
        *(f"{url}{end}/" for url in rows for end in ("change", "delete")),
    ]
    data = {
        "reason": "let me",
        "version": 1,
        "action": "delete_selected",
        "_selected_action": escalation.pk,
        "post": "yes",
    }
    for url in urls:
        response = client.post(url, data)
        assert response.status_code in ({302, 403, 200} if url in base else {302, 403}), url
    for option in OPTIONS:
        for response in (client.get(decide_url(escalation, option)), post(client, escalation, option)):
            assert response.status_code in (302, 403)
            assert response.status_code == 403 or response.url.startswith("/admin/login/")
    assert state() == before


@pytest.mark.parametrize("option", OPTIONS)
def test_the_permission_of_another_option_is_not_enough(jobtrack: Rehearsal, option):
    escalation = asks(jobtrack, DENIED if option == "access_repaired" else PAUSED)
    others = [choice.permission for name, choice in words.CHOICES.items() if name.value != option]
    client = logged_in(person("cem", "view_escalation", *others))
    before = state()
    assert post(client, escalation, option).status_code == 403
    assert state() == before
    page = client.get(question_url(escalation))
    assert [b.permitted for b in page.context["buttons"]] == [b.option.value != option for b in page.context["buttons"]]
    permission = dict(Escalation._meta.permissions)[words.CHOICES[Option(option)].permission]
    offered = {button.option.value for button in page.context["buttons"]}
    assert (f"it needs the permission “{permission}”" in read(page).text) == (option in offered)


def test_an_option_without_the_permission_to_see_the_question_is_not_enough(jobtrack: Rehearsal):
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(person("cem", "close_escalation"))
    assert post(client, escalation, "close").status_code == 403
    assert Escalation.objects.open().count() == 1


@pytest.mark.parametrize("option", OPTIONS)
def test_reading_and_missing_tokens_change_nothing(jobtrack: Rehearsal, ann, option):
    escalation = asks(jobtrack, PAUSED)
    before = state()
    strict = logged_in(ann, enforce_csrf_checks=True)
    for request in (strict.get, strict.head):
        assert request(decide_url(escalation, option)).status_code in (200, 409)
    assert post(strict, escalation, option).status_code == 403
    for request in (strict.put, strict.patch, strict.delete):
        assert request(decide_url(escalation, option)).status_code in (403, 405)
    assert state() == before


@pytest.mark.parametrize("path", ["{pk}/decide/submit_again/", "999/decide/close/", "x/decide/close/", "{pk}/decide/"])
def test_other_addresses_do_not_exist(jobtrack: Rehearsal, ann, path):
    escalation = asks(jobtrack, PAUSED)
    response = logged_in(ann).post(f"/admin/jobtrack/escalation/{path.format(pk=escalation.pk)}", {"reason": "x"})
    assert response.status_code in (302, 403, 404)  # Django's own page for "no such row" is a redirect
    assert Escalation.objects.open().count() == 1


# --- races ------------------------------------------------------------------------------------------


def test_the_second_of_two_deciders_is_told_and_keeps_what_they_wrote(jobtrack: Rehearsal, ann, bob):
    """R-ESC-5, INV-28."""
    escalation = asks(jobtrack, PAUSED)
    post(logged_in(ann), escalation, "look_again", reason="the table is mended")
    before = state()
    response = post(logged_in(bob), escalation, "close", reason="Bob's <b>own</b> words")
    page = read(response, status=409)
    assert "Nothing was changed. This question is already decided." in page.text
    assert "ann decided “Look again now”" in page.text
    assert "the table is mended" in page.text
    assert "Bob's <b>own</b> words" in page.text
    assert "<b>own</b>" not in page.html
    assert ("input", "submit") not in [
        (tag, attrs.get("type"))
        for tag, attrs in page.tags
        if "value" in attrs and attrs.get("value", "").startswith("Yes")
    ]
    assert state() == before


def test_a_replayed_decision_is_applied_once(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    assert post(client, escalation, "close").status_code == 302
    before = state()
    for again in (post(client, escalation, "close"), client.get(decide_url(escalation, "look_again"))):
        page = read(again, status=409).text
        assert ("You have already decided this: “Close”." in page, "Nothing was changed" in page) == (True, False)
    assert state() == before


def test_changed_evidence_is_shown_before_it_counts(jobtrack: Rehearsal, ann):
    """S20: the page that was opened before is a conflict; the fresh one works."""
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    Escalation.objects.update(detail="The provider says something new.", version=2)
    before = state()
    page = read(post(client, escalation, "close", reason="as I saw it", version=1), status=409)
    assert "Nothing was changed. The question has changed since you opened it." in page.text
    assert "The provider says something new." in page.text
    assert "as I saw it" in page.text
    assert [attrs["value"] for tag, attrs in page.tags if tag == "input" and attrs.get("name") == "version"] == ["2"]
    assert state() == before
    assert post(client, escalation, "close", reason="as I see it", version=2).status_code == 302


def test_an_option_that_is_no_longer_allowed_is_refused_in_words(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    before = state()
    page = read(post(logged_in(ann), escalation, "access_repaired", reason="it works"), status=409).text
    assert "Nothing was changed. This option is not offered for this question now." in page
    assert "it works" in page
    assert state() == before


@pytest.mark.parametrize(
    "given",
    [{"reason": ""}, {"reason": " \n "}, {"version": ""}, {"version": "x"}, {"reason": "x" * 2001}, {"reason": "a\0b"}],
)
def test_a_decision_needs_a_reason_and_a_version(jobtrack: Rehearsal, ann, given):
    escalation = asks(jobtrack, PAUSED)
    before = state()
    response = logged_in(ann).post(decide_url(escalation, "close"), {"reason": "ok", "version": 1, **given})
    assert "errorlist" in read(response).html
    assert state() == before


@pytest.mark.django_db(transaction=True)
def test_the_decision_is_committed_by_itself(jobtrack: Rehearsal, ann):
    """Also where every request is a transaction: the wake-up must find what was decided."""
    from django.urls import resolve as route

    escalation = asks(jobtrack, PAUSED)
    assert route(decide_url(escalation, "close")).func._non_atomic_requests == {"default"}
    assert post(logged_in(ann), escalation, "look_again").status_code == 302
    assert jobtrack.runtime.scheduler.woken == [escalation.operation_id]


# --- completeness -----------------------------------------------------------------------------------


def test_every_reason_and_option_has_its_words():
    assert set(words.QUESTIONS) == set(Reason)
    assert set(words.CHOICES) == set(Option)
    given = {codename for codename, _ in Escalation._meta.permissions}
    assert given - {choice.permission for choice in words.CHOICES.values()} == {"decide_in_bulk", "download_bundle"}
    assert set(words.REFUSALS) == set(Refusal)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_question_says_when_each_of_its_options_is_right(reason):
    """R-ESC-2: from the page's text alone; and no option that would be refused is recommended."""
    asked = words.QUESTIONS[reason]
    assert tuple(asked.fits) == ALLOWED[reason] or set(asked.fits) == set(ALLOWED[reason])
    assert all((str(asked.check), *map(str, asked.fits.values())))
    told = " ".join(map(str, (asked.ask, asked.check, *asked.fits.values())))
    assert len(told.split()) <= 70, told  # a question is read in a quarter of a minute


@pytest.mark.parametrize("reason", list(Reason))
def test_every_question_can_be_read_and_offers_what_core_allows(jobtrack: Rehearsal, ann, reason):
    from jobtrack.core.escalation import ADVISORY, options

    escalation = asks(jobtrack, PAUSED)
    blocking = Question(reason=reason, detail="").blocking
    assert blocking == (reason not in ADVISORY)
    place = (
        {"open_blocking": True, "open_advisory": None} if blocking else {"open_blocking": None, "open_advisory": True}
    )
    Escalation.objects.update(reason=reason.value, blocking=blocking, **place)
    response = logged_in(ann).get(question_url(escalation))
    page = read(response)
    operation, table = escalation.operation.to_core(), jobtrack.runtime.tables.get("acme-export")
    assert tuple(button.option for button in response.context["buttons"]) == options(reason, operation, table)
    assert str(words.QUESTIONS[reason].ask) in page.text
    for button in response.context["buttons"]:
        read(logged_in(ann).get(decide_url(escalation, button.option.value)))


# --- words of a newer release -----------------------------------------------------------------------

LISTS = ("/admin/jobtrack/escalation/?decided=all", "/admin/jobtrack/operation/")


def test_a_reason_of_a_newer_release_can_be_read_and_not_decided(jobtrack: Rehearsal, ann):
    """While a release is rolled out, its words are in the rows before every process knows them."""
    escalation, client = asks(jobtrack, PAUSED), logged_in(ann)
    Escalation.objects.update(reason="of_a_newer_release")
    for url in (question_url(escalation), *LISTS):
        assert "of_a_newer_release" in read(client.get(url)).text
    page = read(client.get(question_url(escalation)))
    assert "A newer release of jobtrack asks this, and this process does not know the word." in page.text
    before = state()
    for option in OPTIONS:
        assert decide_url(escalation, option) not in page.html
        read(client.get(decide_url(escalation, option)), status=409)
        refused = read(post(client, escalation, option), status=409).text
        assert "Nothing was changed. This option is not offered for this question now." in refused
        assert "I looked" in refused
    assert state() == before


def test_an_option_of_a_newer_release_can_be_read(jobtrack: Rehearsal, ann):
    escalation, client = asks(jobtrack, PAUSED), logged_in(ann)
    jobtrack.decide(escalation.operation, "close", actor="bob", reason="no longer needed")
    Escalation.objects.update(option="of_a_newer_release")
    assert "of_a_newer_release bob" in read(client.get(LISTS[0])).text
    page = read(client.get(question_url(escalation))).text
    assert "bob decided “of_a_newer_release”" in page
    assert "Why: “no longer needed”" in page
    read(post(client, escalation, "close"), status=409)


# --- the list that a person comes from --------------------------------------------------------------

LIST = "/admin/jobtrack/escalation/"


def links(page, path):
    """What stands behind ``path`` in the links and forms of a page."""
    found = [attrs.get("href") or attrs.get("action") or "" for tag, attrs in page.tags if tag in ("a", "form")]
    return {urlsplit(url).query for url in found if urlsplit(url).path == path} - {""}


def test_the_filters_of_the_list_are_kept_until_the_question_is_decided(jobtrack: Rehearsal, ann):
    escalation, client = asks(jobtrack, PAUSED), logged_in(ann)
    chosen = {"reason": "unknown_state", "risk": str(escalation.risk)}
    one, two = question_url(escalation), decide_url(escalation, "look_again")
    kept = urlencode({"_changelist_filters": urlencode(chosen)})
    assert links(read(client.get(LIST, chosen)), one) == {kept}

    first = read(client.get(f"{one}?{kept}"))
    assert (links(first, LIST), links(first, two)) == ({urlencode(chosen)}, {kept})
    second = read(client.get(f"{two}?{kept}"))
    assert (links(second, LIST), links(second, one), links(second, two)) == ({urlencode(chosen)}, {kept}, {kept})
    again = read(client.post(f"{two}?{kept}", {"reason": "", "version": escalation.version}))
    assert (links(again, LIST), links(again, two)) == ({urlencode(chosen)}, {kept})

    response = client.post(f"{two}?{kept}", {"reason": "I looked", "version": escalation.version})
    assert response.headers["Location"] == f"{one}?{kept}"
    decided = read(client.get(response.headers["Location"]))
    assert links(decided, LIST) == {urlencode(chosen)}
    assert "Back to the questions" in decided.text


def test_without_a_list_behind_it_a_decided_question_leads_to_the_list(jobtrack: Rehearsal, ann):
    escalation, client = asks(jobtrack, PAUSED), logged_in(ann)
    assert "Back to the questions" not in read(client.get(question_url(escalation))).text
    response = post(client, escalation, "close")
    assert response.headers["Location"] == question_url(escalation)
    page = read(client.get(question_url(escalation)))
    assert ("a", LIST) in [(tag, attrs.get("href")) for tag, attrs in page.tags if attrs.get("class") == "button"]


@pytest.mark.parametrize(
    "hostile",
    [
        "https://evil.example/", "//evil.example", "javascript:alert(1)", '"><script>alert(1)</script>', "'onclick='x",
        "reason=x&next=//evil.example", "reason=%22%3E%3Cscript%3E", "\x00", "\r\nSet-Cookie: a=b", "%", "&&==&", "#x", "é☃" * 1000,
        "_changelist_filters=_changelist_filters%3Dx", "p=x&p=y&e=1", "_popup=1",
    ],
)  # fmt: skip
def test_made_up_filters_lead_nowhere_else(jobtrack: Rehearsal, ann, hostile):
    """They stay the query of the site's own list, whatever they are."""
    escalation, client = asks(jobtrack, PAUSED), logged_in(ann)
    kept = urlencode({"_changelist_filters": hostile})
    one, two = question_url(escalation), decide_url(escalation, "look_again")
    response = client.post(f"{two}?{kept}", {"reason": "I looked", "version": escalation.version})
    to = urlsplit(response.headers["Location"])
    assert (response.status_code, to.scheme, to.netloc, to.path, to.fragment) == (302, "", "", one, "")
    assert parse_qs(to.query, keep_blank_values=True) == {"_changelist_filters": [hostile]}
    for url in (one, two):
        page = read(client.get(f"{url}?{kept}"), 409 if url == two else 200)
        assert "<script>alert" not in page.html
        for query in links(page, LIST):
            assert client.get(f"{LIST}?{query}").status_code in (200, 302, 400)
        for attrs in (attrs for tag, attrs in page.tags if tag in ("a", "form")):
            assert "evil" not in urlsplit(attrs.get("href") or attrs.get("action") or "").netloc


def test_who_may_not_see_a_question_is_told_what_is_missing(jobtrack: Rehearsal, db):
    """The link of a notice may reach anybody."""
    escalation, client = asks(jobtrack, PAUSED), logged_in(person("carl", "view_operation"))
    page = read(client.get(question_url(escalation)), 403).text
    assert (
        "You may not see this question. It needs a permission that “carl” does not have: jobtrack.view_escalation"
        in page
    )
    assert ("unknown" in page, client.post(question_url(escalation)).status_code) == (False, 403)
