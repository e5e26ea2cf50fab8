"""Many questions decided at once: preview, batch, result, and what is never decided so (R-ESC, INV-28, INV-29)."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from threading import Barrier, Thread
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobtrack.core.escalation import BULK, Option, Refusal, Resolution
from jobtrack.errors import StoreError
from jobtrack.flow.resolve import propose
from jobtrack_django import bulk, get_operation, track_many, words
from jobtrack_django.admin.batches import OUTCOMES, plain
from jobtrack_django.admin.bulk import WHY, Selection
from jobtrack_django.bulk import Chosen, Verdict
from jobtrack_django.models import AuditEntry, DecisionBatch, DecisionItem, Escalation
from jobtrack_django.testing import answer, rehearsal
from tests.django.admin_pages import PAUSED, SITE, asks, decide_url, person, question_url, read
from tests.django.admin_tills import TABLE, asked
from tests.django.bulk_pages import (
    ALL,
    LIST,
    ask_many,
    choose,
    confirm,
    decide_all,
    details,
    logged_in,
    outcomes,
    result_url,
    staff,
)

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


GO_ON = '<input type="submit" value="Go on">'

ANYBODY = bulk.Decider(may=lambda _: True, person="7", permission="")


def decisions():
    """How often each question was decided, by the audit."""
    return decided_bodies().count()


def decided_bodies():
    return AuditEntry.objects.filter(body__contains='"event":"decision"').values_list("body", flat=True)


# --- the sentence of the issue ----------------------------------------------------------------------


def test_340_questions_are_looked_at_again_in_one_go(jobtrack):
    client, questions = staff(), ask_many(jobtrack, 340)
    page = read(_across(client, f"{LIST}?reason=unknown_state"))
    assert "340 questions will be decided, each by itself." in page.text
    assert "At most 500 questions are decided at once." in page.text
    response = confirm(client, page, follow=True)
    assert "“Look again now”: 340 questions decided." in read(response).text
    assert "340 decided" in read(response).text
    assert (Escalation.objects.open().count(), decisions(), LogEntry.objects.count()) == (0, 340, 340)
    said = {(told["permission"], told["person"]) for told in map(json.loads, decided_bodies())}
    assert said == {("jobtrack.look_again", str(User.objects.get().pk))}  # INV-28
    for n in range(1, 341):
        done = {"id": f"exp_{n}", "status": "succeeded", "result": {"url": "https://files.acme.example/1", "rows": 7}}
        jobtrack.provider.script(f"exp_{n}", answer(json=done))
    jobtrack.run_due()
    assert {get_operation(question.operation_id).state for question in questions} == {"succeeded"}


def _across(client, url=LIST):
    """One is ticked on the page, all that match are meant."""
    return choose(client, Escalation.objects.open()[:1], across=True, url=url)


def test_all_that_match_are_chosen_without_a_tick(jobtrack):
    """Without scripts there is no box that ticks all: one that says so is enough."""
    client = staff()
    ask_many(jobtrack, 3)
    url = f"{LIST}?reason=unknown_state"
    page = client.get(url).content.decode()
    assert '<noscript><label><input type="checkbox" name="select_across" value="1">' in page
    sent = {"action": "bulk_look_again", "index": "0", "select_across": "0"}
    page = read(client.post(url, {**sent, "select_across": ["0", "1"]}))  # Django's hidden field is sent as well
    assert "3 questions will be decided, each by itself." in page.text
    assert f'href="{url}"' in page.html  # "No, back" leads to what was chosen from
    refused = client.post(url, sent)
    assert (refused.status_code, refused.headers["Location"], decisions()) == (302, url, 0)


# --- the first step ---------------------------------------------------------------------------------


def test_the_preview_says_what_will_happen_to_each_and_changes_nothing(jobtrack):
    client, (first, second) = staff(), ask_many(jobtrack, 2)
    page = read(choose(client, [first, second]))
    assert page.text.count("One status request is sent") == 2
    assert "Nothing is submitted, repeated or cancelled at the provider." in page.text
    assert ("op-1" in page.text, "op-2" in page.text) == (True, True)
    assert (Escalation.objects.open().count(), DecisionBatch.objects.count(), LogEntry.objects.count()) == (2, 0, 0)


def test_the_preview_says_which_will_not_be_decided_and_why(jobtrack):
    client, (one,) = staff(), ask_many(jobtrack, 1)
    (ended,) = ask_many(jobtrack, 1, "failed", start=2)
    page = read(choose(client, [one, ended]))
    assert "1 question will be decided. 1 will not." in page.text
    assert str(words.REFUSALS[Refusal.NOT_AN_ANSWER]) in page.text
    batch = DecisionBatch.objects.latest("pk") if confirm(client, page).status_code == 302 else None
    assert outcomes(batch) == {"op-1": "done", "op-2": "refused"}
    assert str(words.REFUSALS[Refusal.NOT_AN_ANSWER]) in read(client.get(result_url(batch))).text


def test_a_preview_without_anything_to_decide_has_no_button(jobtrack):
    client, (ended,) = staff(), ask_many(jobtrack, 1, "failed")
    page = read(choose(client, [ended]))
    assert "0 questions will be decided" in page.text
    assert [attrs for tag, attrs in page.tags if attrs.get("name") == "chosen"] == []


def test_a_preview_costs_the_same_for_10_and_for_340_questions(jobtrack):
    client = staff()

    def ask(count, start):
        operations = track_many("acme-export", [{"job_id": f"exp_{n}"} for n in range(start, start + count)])
        Escalation.objects.bulk_create(
            Escalation(operation=o, reason="stalled", blocking=True, open_blocking=True, opened_at=jobtrack.clock())
            for o in operations
        )

    def queries():
        with CaptureQueriesContext(connection) as captured:
            read(_across(client))
        return len([query for query in captured if "jobtrack_" in query["sql"]])

    ask(10, 0)
    queries()  # content types and the like are read once
    few = queries()
    ask(330, 10)
    assert queries() == few <= 10


@pytest.mark.parametrize("across", [True, False])
def test_more_than_the_cap_are_refused_in_words(jobtrack, settings, across):
    settings.JOBTRACK = {**SITE, "BULK_LIMIT": 2}
    client, questions = staff(), ask_many(jobtrack, 3)
    page = read(choose(client, questions, across=across, follow=True))
    assert "At most 2 questions are decided at once. Nothing was changed" in page.text
    assert "At most 2 questions" in read(choose(client, questions[:2])).text


def test_500_questions_travel_in_one_field(jobtrack):
    """Django refuses a form of more than 1,000 fields; the second step has three, however many there are."""
    client, questions = staff(), ask_many(jobtrack, 5)
    page = read(choose(client, questions))
    names = [attrs["name"] for tag, attrs in page.tags if tag in ("input", "textarea") and "name" in attrs]
    assert [name for name in names if "csrf" not in name] == ["chosen", "reason"]


# --- the second step --------------------------------------------------------------------------------


def test_a_reason_is_needed_and_the_preview_is_shown_again(jobtrack):
    client, questions = staff(), ask_many(jobtrack, 2)
    page = read(confirm(client, read(choose(client, questions)), reason=" "))
    assert "Nothing was changed. Say why you decide so." in page.text
    assert confirm(client, page).status_code == 302
    assert decisions() == 2


def test_what_was_not_previewed_by_this_person_is_not_decided(jobtrack):
    ann, bob = staff("ann"), staff("bob")
    page = read(choose(ann, ask_many(jobtrack, 2)))
    answers = [
        confirm(bob, page),  # another person's preview
        confirm(ann, page, "close"),  # another option
        ann.post(reverse("admin:jobtrack_escalation_bulk", args=["look_again"]), {"chosen": "x", "reason": "y"}),
        ann.post(reverse("admin:jobtrack_escalation_bulk", args=["look_again"]), {"reason": "y"}),
    ]
    assert [(each.status_code, each.headers.get("Location")) for each in answers] == [(302, LIST)] * 4
    assert (decisions(), DecisionBatch.objects.count()) == (0, 0)


@pytest.mark.parametrize("option", [*sorted(set(Option) - BULK), "nonsense"])
def test_what_writes_at_a_provider_is_not_decided_for_many(jobtrack, option):
    client, questions = staff(), ask_many(jobtrack, 1)
    url = reverse("admin:jobtrack_escalation_bulk", args=[option])
    assert client.post(url, {"reason": "y"}).status_code == 404
    assert "No action selected" in read(choose(client, questions, option, follow=True)).text


def test_sending_the_same_preview_twice_is_one_batch(jobtrack):
    client, questions = staff(), ask_many(jobtrack, 2)
    page = read(choose(client, questions))
    confirm(client, page)
    confirm(client, page)
    assert (DecisionBatch.objects.count(), decisions(), LogEntry.objects.count()) == (1, 2, 2)


def test_two_previews_that_share_a_question_are_two_batches(jobtrack):
    """Two tabs of one person, with the same words: no question of the second one may be left out."""
    client, (first, second, third) = staff(), ask_many(jobtrack, 3)
    left, right = read(choose(client, [first, second])), read(choose(client, [first, third]))
    confirm(client, left)
    confirm(client, right)
    assert DecisionBatch.objects.count() == 2
    assert not Escalation.objects.filter(decided_at__isnull=True).exists()
    assert decisions() == 3


def test_who_and_why_are_in_the_audit_of_each(jobtrack):
    client, questions = staff(), ask_many(jobtrack, 2)
    decide_all(client, questions, reason="revision 3 knows it")
    for question in questions:
        question.refresh_from_db()
        assert (question.actor, question.actor_reason, question.seen_version) == ("ann", "revision 3 knows it", 1)


# --- what becomes of each ---------------------------------------------------------------------------


def test_what_was_decided_or_has_changed_meanwhile_is_skipped(jobtrack):
    client, (taken, changed, left) = staff(), ask_many(jobtrack, 3)
    page = read(choose(client, [taken, changed, left]))
    jobtrack.decide(taken.operation, "close", actor="bob")
    Escalation.objects.filter(pk=changed.pk).update(version=2)
    confirm(client, page)
    batch = DecisionBatch.objects.get()
    assert outcomes(batch) == {"op-1": "skipped", "op-2": "skipped", "op-3": "done"}
    shown = read(client.get(result_url(batch))).text
    assert "2 skipped 1 decided" in shown
    assert ("bob decided “Close”." in shown, "It has changed since it was shown." in shown) == (True, True)


def test_a_failure_is_told_and_tried_again_with_fresh_versions(jobtrack, monkeypatch):
    client, (one, two) = staff(), ask_many(jobtrack, 2)
    real = bulk.resolve

    def fails_for_one(runtime, resolution):
        if resolution.escalation_id == str(one.pk):
            raise StoreError("The disk is full.")
        return real(runtime, resolution)

    monkeypatch.setattr(bulk, "resolve", fails_for_one)
    batch = decide_all(client, [one, two])
    shown = read(client.get(result_url(batch)))
    assert ("1 failed 1 decided" in shown.text, "The disk is full." in shown.text) == (True, True)
    assert "Try 1 question again…" in shown.text
    monkeypatch.setattr(bulk, "resolve", real)
    Escalation.objects.filter(pk=one.pk).update(version=5)
    page = read(client.get(result_url(batch, "retry")))
    assert "1 question will be decided." in page.text
    assert confirm(client, page).status_code == 302
    again = DecisionBatch.objects.latest("pk")
    assert (again.retry_of, outcomes(again), decisions()) == (batch, {"op-1": "done"}, 2)
    assert "Try" not in read(client.get(result_url(batch))).text


def test_an_unforeseen_error_is_one_questions_trouble(jobtrack, monkeypatch, caplog):
    client, (one, two) = staff(), ask_many(jobtrack, 2)
    real = bulk.resolve
    monkeypatch.setattr(bulk, "resolve", lambda r, x: 1 / 0 if x.escalation_id == str(one.pk) else real(r, x))
    batch = decide_all(client, [one, two])
    assert (outcomes(batch), details(batch)["op-1"]) == ({"op-1": "failed", "op-2": "done"}, "ZeroDivisionError")


def test_an_error_after_the_decision_is_no_failure(jobtrack, monkeypatch):
    """The news did not get out, but the answer is written: the sweeper finds what is due."""
    client, questions = staff(), ask_many(jobtrack, 1)
    real = bulk.resolve

    def decides_and_fails(runtime, resolution):
        real(runtime, resolution)
        raise ConnectionError

    monkeypatch.setattr(bulk, "resolve", decides_and_fails)
    assert outcomes(decide_all(client, questions)) == {"op-1": "done"}
    assert LogEntry.objects.count() == 1


# --- time and crashes -------------------------------------------------------------------------------


def test_what_the_time_does_not_allow_waits_for_go_on(jobtrack, monkeypatch):
    client, questions = staff(), ask_many(jobtrack, 3)
    monkeypatch.setattr(bulk.go_on, "__kwdefaults__", {**bulk.go_on.__kwdefaults__, "budget": timedelta(0)})
    batch = decide_all(client, questions)
    shown = read(client.get(result_url(batch)))
    assert ("2 still to be decided 1 decided" in shown.text, batch.finished_at) == (True, None)
    assert GO_ON in shown.html
    for _ in range(2):
        assert client.post(result_url(batch, "go_on")).status_code == 302
    batch.refresh_from_db()
    assert (set(outcomes(batch).values()), decisions(), batch.finished_at is None) == ({"done"}, 3, False)
    assert GO_ON not in read(client.get(result_url(batch))).html
    assert LogEntry.objects.count() == 3


@pytest.mark.parametrize("decided_first", [True, False])
def test_a_crash_in_the_middle_loses_nothing_and_repeats_nothing(jobtrack, monkeypatch, decided_first):
    client, questions = staff(), ask_many(jobtrack, 4)
    page, real, calls = read(choose(client, questions)), bulk.resolve, []

    def dies(runtime, resolution):
        calls.append(resolution.escalation_id)
        if len(calls) == 2:
            if decided_first:
                real(runtime, resolution)
            raise KeyboardInterrupt
        return real(runtime, resolution)

    monkeypatch.setattr(bulk, "resolve", dies)
    with pytest.raises(KeyboardInterrupt):
        confirm(client, page)
    monkeypatch.setattr(bulk, "resolve", real)
    batch = DecisionBatch.objects.get()
    assert sorted(outcomes(batch).values()) == ["done", "pending", "pending", "pending"]
    client.post(result_url(batch, "go_on"))
    assert (set(outcomes(batch).values()), decisions(), LogEntry.objects.count()) == ({"done"}, 4, 4)


@pytest.mark.django_db(transaction=True)
def test_two_requests_of_one_batch_decide_nothing_twice(jobtrack):
    """Both have read the same items as pending; whoever comes second finds the answer there."""
    questions = ask_many(jobtrack, 6)
    chosen = [
        bulk.Chosen(id=each.pk, version=each.version, verdict=bulk.Verdict(outcome="pending")) for each in questions
    ]
    batch = bulk.begin(Option.LOOK_AGAIN, chosen, actor="ann", reason="twice", previewed_at=jobtrack.clock())
    logged, troubles, start = [], [], Barrier(2)

    def run():
        try:
            start.wait(10)
            bulk.go_on(jobtrack.runtime, batch, decider=ANYBODY, log=lambda row: logged.append(row.pk))
        except Exception as error:  # noqa: BLE001 - told below
            troubles.append(error)
        finally:
            connection.close()

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (troubles, set(outcomes(batch).values())) == ([], {"done"})
    assert (decisions(), sorted(logged)) == (6, [question.pk for question in questions])


def test_going_on_twice_does_nothing_twice(jobtrack):
    client, questions = staff(), ask_many(jobtrack, 2)
    batch = decide_all(client, questions)
    client.post(result_url(batch, "go_on"))
    assert (decisions(), LogEntry.objects.count()) == (2, 2)


# --- who may ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["view_escalation", "decide_in_bulk", "look_again"])
def test_each_permission_is_needed_for_each_step(jobtrack, missing):
    ann, questions = person("ann", *ALL), ask_many(jobtrack, 2)
    page = read(choose(logged_in(ann), questions))
    half = staff("half", *(set(ALL) - {missing}))
    refused = choose(half, questions)
    assert ('name="chosen"' in refused.content.decode(), refused.status_code in (200, 302, 403)) == (False, True)
    ann.user_permissions.remove(ann.user_permissions.get(codename=missing))
    assert confirm(logged_in(ann), page).status_code == 403  # checked again at the POST
    assert (decisions(), DecisionBatch.objects.count()) == (0, 0)


def test_the_list_offers_just_what_a_person_may_choose_for_many(jobtrack):
    ask_many(jobtrack, 1)

    def offered(*codenames):
        page = read(staff(str(len(codenames)), *codenames).get(LIST))
        values = [attrs.get("value") or "" for tag, attrs in page.tags if tag == "option"]
        return {value for value in values if value.startswith(("bulk_", "choose_"))}

    assert offered(*ALL) == {f"bulk_{option}" for option in BULK}
    assert offered("view_escalation", "decide_in_bulk", "look_again") == {"bulk_look_again"}
    assert offered("view_escalation", "look_again") == set()


FORBIDDEN = set()


def policy(user, option, operation):
    """A policy of a site (JOBTRACK["POLICY"])."""
    return operation.pk not in FORBIDDEN


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_policy_holds_for_one_and_for_many(settings, when, monkeypatch):
    settings.JOBTRACK = {**SITE, "POLICY": f"{__name__}.policy"}
    monkeypatch.setattr(f"{__name__}.FORBIDDEN", {"op-1"} if when == "before" else set())
    with rehearsal() as here:
        client, (one, two) = staff(), ask_many(here, 2)
        page = read(choose(client, [one, two]))
        assert ("You may not choose this for it." in page.text) == (when == "before")
        monkeypatch.setattr(f"{__name__}.FORBIDDEN", {"op-1"})
        confirm(client, page)
        assert outcomes(DecisionBatch.objects.get()) == {"op-1": "refused", "op-2": "done"}
        data = {"reason": "y", "version": one.version}
        assert client.post(decide_url(one, "look_again"), data).status_code == 403


@pytest.mark.parametrize("proposed", [False, True])
def test_two_people_cannot_be_replaced_by_a_batch(settings, proposed):
    """Four eyes: neither alone nor as the second word, since each of the two looks at this very question."""
    settings.JOBTRACK = {**SITE, "FOUR_EYES": ["look_again"]}
    with rehearsal() as here:
        client, (one,) = staff(), ask_many(here, 1)
        if proposed:
            word = Resolution(
                escalation_id=str(one.pk), option=Option.LOOK_AGAIN, actor="bob", reason="x", version=one.version
            )
            propose(here.runtime, word)
        page = read(choose(client, [one]))
        assert "This site wants the word of two people for it." in page.text
        one.refresh_from_db()
        chosen = [bulk.Chosen(id=one.pk, version=one.version, verdict=bulk.Verdict(outcome="pending"))]
        batch = bulk.begin(Option.LOOK_AGAIN, chosen, actor="ann", reason="forged", previewed_at=here.clock())
        bulk.go_on(here.runtime, batch, decider=ANYBODY, log=lambda _: None)
    assert (details(batch), decisions()) == ({"op-1": "second_person_needed"}, 0)


def test_a_choice_that_would_submit_is_not_made_for_many(settings, tmp_path):
    """INV-29: a first submission is for a person who looks at this very operation."""
    from jobtrack_django.testing import rehearsal

    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)], "ACCOUNTS": {"till": {"default": {}}}}
    with rehearsal() as till:
        question = asked(till, post=answer(401, json={"error": "bad key"}))
        client = staff()
        page = read(choose(client, [question], "access_repaired"))
        assert "This would submit a job. Decide it on its own page." in page.text
        chosen = [bulk.Chosen(id=question.pk, version=question.version, verdict=bulk.Verdict(outcome="pending"))]
        batch = bulk.begin(Option.ACCESS_REPAIRED, chosen, actor="ann", reason="forged", previewed_at=till.clock())
        bulk.go_on(till.runtime, batch, decider=ANYBODY, log=lambda _: None)
        assert (details(batch), decisions()) == ({"order-7": "submits"}, 0)


def test_only_who_began_it_or_may_view_it_sees_a_batch(jobtrack):
    batch = decide_all(staff(), ask_many(jobtrack, 1))
    pages = [result_url(batch), result_url(batch, "csv")]
    people = {
        "bob": (ALL, 403),
        "eve": (["view_decisionbatch"], 200),
    }
    for name, (codenames, status) in people.items():
        client = staff(name, *codenames)
        assert [client.get(url).status_code for url in pages] == [status, status]
    assert staff("lead", "view_decisionbatch").get("/admin/jobtrack/decisionbatch/").status_code == 200


def test_nobody_goes_on_in_anothers_name_but_may_take_over_what_is_left(jobtrack, monkeypatch):
    ann, questions = staff(), ask_many(jobtrack, 2)
    with monkeypatch.context() as patched:
        patched.setattr(bulk.go_on, "__kwdefaults__", {**bulk.go_on.__kwdefaults__, "budget": timedelta(0)})
        batch = decide_all(ann, questions)
    viewer, bob = staff("viewer", "view_decisionbatch", "view_escalation"), staff("bob", *ALL, "view_decisionbatch")
    assert [
        viewer.get(result_url(batch, "retry")).status_code,
        viewer.post(result_url(batch, "go_on")).status_code,
    ] == [
        403,
        403,
    ]
    assert bob.post(result_url(batch, "go_on")).status_code == 403
    shown = read(bob.get(result_url(batch)))
    assert (GO_ON in shown.html, "Try 1 question again…" in shown.text) == (False, True)
    assert confirm(bob, read(bob.get(result_url(batch, "retry")))).status_code == 302
    assert Escalation.objects.filter(actor="bob").count() == 1


# --- the result -------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["change", "csv"])
def test_a_result_costs_the_same_for_3_and_for_30_questions(jobtrack, page):
    client = staff()

    def queries(count, start):
        url = result_url(decide_all(client, ask_many(jobtrack, count, start=start)), page)
        client.get(url)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(url).status_code == 200
        return len(captured)

    assert queries(3, 1) == queries(30, 10) <= 12


def test_the_result_can_be_downloaded_and_no_cell_is_a_formula(jobtrack):
    client = staff()
    question = asks(jobtrack, PAUSED, operation_id="=cmd()", reference="@x")
    batch = decide_all(client, [question])
    response = client.get(result_url(batch, "csv"))
    rows = list(csv.reader(io.StringIO(response.content.decode())))
    assert rows[1] == [str(question.pk), "unknown state", "'=cmd()", "'@x", "acme-export", "default", "decided", ""]
    assert "attachment" in response.headers["Content-Disposition"]


@pytest.mark.parametrize(
    ("cell", "told"),
    [(f"{sign}1", f"'{sign}1") for sign in (*"=+-@\t\r\n\uff1d\uff20", " =", "\u200b=", "\x00+", "\ufeff@")]
    + [("a=1", "a=1"), (7, "7")],
)
def test_a_cell_is_text_for_a_spreadsheet(cell, told):
    assert plain(cell) == told


def test_a_batch_that_is_not_there_is_no_page(jobtrack):
    client = staff("ann", *ALL, "view_decisionbatch")
    for page, ask in {"retry": client.get, "csv": client.get, "go_on": client.post}.items():
        assert ask(reverse(f"admin:jobtrack_decisionbatch_{page}", args=[99])).status_code == 404


def test_every_outcome_and_every_reason_has_a_word():
    written = {DecisionItem.PENDING, DecisionItem.DONE, DecisionItem.SKIPPED, DecisionItem.REFUSED, DecisionItem.FAILED}
    assert set(OUTCOMES) == written
    assert set(bulk.Why) <= set(WHY)


def test_a_question_of_a_newer_release_is_left_alone(jobtrack):
    client, (one,) = staff(), ask_many(jobtrack, 1)
    Escalation.objects.update(reason="of_tomorrow")
    assert "A newer release of jobtrack asks this" in read(choose(client, [one])).text


# --- Django 6.1 -------------------------------------------------------------------------------------


def test_where_django_can_a_question_offers_its_options_as_actions_that_lead_to_the_second_step(jobtrack):
    from django.contrib import admin
    from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME

    client, (one,) = staff("ann", "view_escalation", "look_again", "resubmit_operation"), ask_many(jobtrack, 1)
    page = read(client.get(question_url(one)))
    values = {attrs.get("value") for tag, attrs in page.tags if tag == "option"} - {""}
    if not hasattr(admin, "ActionLocation"):
        assert values == set()  # before Django 6.1 a row has no actions; the buttons are there all the same
        assert decide_url(one, "look_again") in page.html
        return
    assert values == {"choose_look_again"}  # submitting again is no answer to this question
    sent = {"CHANGE_FORM-action": "choose_look_again", ACTION_CHECKBOX_NAME: one.pk}
    response = client.post(question_url(one), sent)
    assert (response.status_code, response.headers["Location"]) == (302, decide_url(one, "look_again"))
    refused = client.post(question_url(one), {**sent, "CHANGE_FORM-action": "choose_close"})
    assert (refused.headers["Location"], decisions()) == (question_url(one), 0)


def test_a_key_of_a_user_may_be_anything(jobtrack, rf):
    """Many sites name their users by a UUID."""
    (question,) = ask_many(jobtrack, 1)
    request = rf.get("/")
    request.user = User(pk=uuid4(), username="ann")
    chosen = (Chosen(id=question.pk, version=1, verdict=Verdict(outcome=DecisionItem.PENDING)),)
    selection = Selection(option=Option.CLOSE, chosen=chosen, previewed_at=jobtrack.clock())
    signed = selection.signed(request)
    assert Selection.read(request, Option.CLOSE, signed) == selection
    request.user = User(pk=uuid4(), username="bob")
    assert Selection.read(request, Option.CLOSE, signed) is None
