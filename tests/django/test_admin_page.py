"""What the page of a question says, so that a tired person decides rightly (R-ESC-2, INV-29)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.utils import timezone

from jobtrack.core.escalation import ALLOWED, Option, Question, Reason, Refusal
from jobtrack.errors import UsageError
from jobtrack_django import track, words
from jobtrack_django.admin.choices import choices_of
from jobtrack_django.models import Escalation, Notice, WebhookReceipt
from jobtrack_django.testing import Rehearsal, answer, rehearsal
from tests.django.admin_pages import DENIED, DONE, PAUSED, RUNNING, SITE, asks, decide_url, person, question_url, read
from tests.django.test_admin_decide import ALL, logged_in, post

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


@pytest.fixture
def ann(db):
    return person("ann", *ALL)


def test_options_are_told_with_what_they_fit_and_why_not(jobtrack: Rehearsal, ann):
    """R-ESC-3: what may be chosen is a link; what may not, is told with its reason and is none."""
    escalation = asks(jobtrack, PAUSED)
    Escalation.objects.update(reason="deadline_exceeded")
    operation = escalation.operation
    type(operation).objects.update(spent_extensions=operation.limit_extensions)
    page = read(logged_in(ann).get(question_url(escalation)))
    assert "Look again now… It has ended there by now: read how." in page.text
    assert "Extend The job still runs, and is worth the wait. Not possible now: Used as often as" in page.text
    assert decide_url(escalation, "look_again") in page.html
    assert decide_url(escalation, "extend") not in page.html
    others = page.text.split("Options that are no answer to this question")[1].split("Budgets")[0]
    assert "Submit once more" in others
    assert decide_url(escalation, "resubmit") not in page.html


def test_choices_say_all_options_with_those_of_the_reason_first(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    told = choices_of(jobtrack.runtime, escalation, ann)
    offered = ALLOWED[Reason.UNKNOWN_STATE]
    assert {each.option for each in told} == set(Option)
    assert tuple(each.option for each in told)[: len(offered)] == offered
    assert {each.refusal for each in told[len(offered) :]} == {Refusal.NOT_AN_ANSWER}
    for each in told:
        assert bool(each.fits) == (each.option in offered)
        assert bool(each.cost and each.done and each.not_done) == (each.refusal is None)
        assert each.open == (each.refusal is None)


def forbids(user, option, operation):
    return option is not Option.CLOSE


def test_a_policy_that_forbids_says_so(jobtrack: Rehearsal, ann, settings):
    """INV-29: the permission is there, the site's own rule is not met; and the POST is refused as well."""
    settings.JOBTRACK = {**SITE, "POLICY": "tests.django.test_admin_page.forbids"}
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    page = read(client.get(question_url(escalation)))
    assert "This site's own rules do not let you do this here." in page.text
    assert decide_url(escalation, "close") not in page.html
    assert post(client, escalation, "close").status_code == 403


# --- the menu of actions ----------------------------------------------------------------------------

MENU = hasattr(admin, "ActionLocation")
"""Whether a row has actions: from Django 6.1 on."""


def menu(page):
    """What the menu of a page offers: the text of each option, by its value."""
    return dict(re.findall(r'<option value="(\w+)">([^<]*)</option>', page.html))


def buttons(page):
    """The same of its buttons; nothing where Django has no such menu."""
    links = re.findall(r'<a class="button" href="[^"]*/decide/(\w+)/">([^<]*)</a>', page.html)
    return {f"choose_{option}": label for option, label in links} if MENU else {}


def ask(escalation, reason):
    """Have the question be one of this reason."""
    blocking = Question(reason=reason, detail="").blocking
    place = {"open_blocking": blocking or None, "open_advisory": None if blocking else True}
    Escalation.objects.filter(pk=escalation.pk).update(reason=reason.value, blocking=blocking, **place)


@pytest.mark.parametrize("reason", list(Reason))
def test_the_menu_offers_what_the_buttons_do(jobtrack: Rehearsal, ann, reason):
    """R-ESC-3: of every reason its own options and no others, in the same words."""
    escalation = asks(jobtrack, PAUSED)
    ask(escalation, reason)
    page = read(logged_in(ann).get(question_url(escalation)))
    assert decide_url(escalation, "close") in page.html
    assert menu(page) == buttons(page)


@pytest.mark.parametrize(("given", "left"), [(["look_again"], {"choose_look_again"}), (["resubmit_operation"], set())])
def test_the_menu_offers_only_what_this_person_may_choose(jobtrack: Rehearsal, given, left):
    """Nobody is offered what is no answer to the question; without any answer there is no menu."""
    escalation = asks(jobtrack, PAUSED)
    page = read(logged_in(person("bob", "view_escalation", *given)).get(question_url(escalation)))
    assert set(menu(page)) == set(buttons(page)) == (left if MENU else set())
    assert ("CHANGE_FORM-action" in page.html) == bool(MENU and left)


def test_the_menu_asks_the_policy_of_the_site(jobtrack: Rehearsal, ann, settings):
    settings.JOBTRACK = {**SITE, "POLICY": "tests.django.test_admin_page.forbids"}
    escalation = asks(jobtrack, PAUSED)
    page = read(logged_in(ann).get(question_url(escalation)))
    assert menu(page) == buttons(page)
    assert "choose_close" not in menu(page)


def test_an_answered_question_has_no_menu(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    post(client, escalation, "close")
    page = read(client.get(question_url(escalation)))
    assert "CHANGE_FORM-action" not in page.html
    assert menu(page) == {}


def test_an_action_of_the_site_stays_in_the_menu(jobtrack: Rehearsal, ann, monkeypatch):
    """Only the options are jobtrack's to take out."""

    def copy(model_admin, request, queryset): ...

    if MENU:
        monkeypatch.setattr(copy, "locations", [admin.ActionLocation.CHANGE_FORM], raising=False)
        monkeypatch.setitem(admin.site._actions, "copy", copy)
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    post(client, escalation, "close")
    page = read(client.get(question_url(escalation)))
    assert menu(page) == ({"copy": "Copy"} if MENU else {})


def test_who_chooses_from_a_menu_that_is_out_of_date_is_told_why_not(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    client = logged_in(ann)
    post(client, escalation, "close")
    sent = {"CHANGE_FORM-action": "choose_look_again", ACTION_CHECKBOX_NAME: escalation.pk}
    response = client.post(question_url(escalation), sent)
    if MENU:
        page = read(client.get(response.headers["Location"]), 409)
        assert "You have already decided this: “Close”." in page.text
    assert Escalation.objects.get().option == "close"


def test_what_happens_if_nobody_acts(ann, settings):
    settings.JOBTRACK = {**SITE, "LAPSES": {"unknown_state": {"option": "look_again", "after_s": 7200}}}
    with rehearsal() as here:
        escalation = asks(here, PAUSED)
        page = read(logged_in(ann).get(question_url(escalation))).text
        assert (
            "If nobody acts This site chooses “Look again now” by itself. 2030-01-07 14:00:01 UTC · in 2 hours" in page
        )
    settings.JOBTRACK = SITE
    with rehearsal(here.clock()):
        assert "If nobody acts Nothing: it waits." in read(logged_in(ann).get(question_url(escalation))).text


def test_webhooks_stand_in_the_story_by_their_time(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, RUNNING, RUNNING, RUNNING, PAUSED)
    about = {"provider": "acme-export", "account": "default"}
    at = escalation.opened_at - timedelta(milliseconds=1)
    WebhookReceipt.objects.create(**about, notice_id="n1", job_id="exp_1", received_at=at)
    WebhookReceipt.objects.create(**about, notice_id="n2", job_id="exp_2", received_at=at)
    WebhookReceipt.objects.create(
        provider="acme-export", account="other", notice_id="n3", job_id="exp_1", received_at=at
    )
    story = read(logged_in(ann).get(question_url(escalation))).text.split("What happened")[1]
    assert story.count("The provider sent a verified webhook.") == 1
    assert story.index("unchanged looks") < story.index("Webhook") < story.index("person asked")


@pytest.mark.parametrize("early", [False, True])
def test_guidance_is_told_with_whether_it_was_obeyed(jobtrack: Rehearsal, ann, early):
    """INV-04: by the times in the entries and by nothing else."""
    import json

    from jobtrack_django.models import AuditEntry
    from jobtrack_django.narrative import tell

    waits = answer(json={"id": "exp_1", "status": "running"}, headers={"Retry-After": "7"})
    escalation = asks(jobtrack, waits, PAUSED)
    before, last = AuditEntry.objects.filter(operation_id=escalation.operation_id).order_by("seq")[1:3]
    assert tell(last).obeyed is None
    if early:
        body = json.loads(last.body)
        last.body = json.dumps({**body, "sent_at": json.loads(before.body)["at"], "at": json.loads(before.body)["at"]})
    told = tell(last, before)
    assert told.obeyed is not early
    said = "this request came too early." if early else "that was obeyed."
    assert any(sentence.endswith(said) for sentence in told.sentences)
    if not early:
        page = read(logged_in(ann).get(question_url(escalation))).text
        assert "The provider had asked to wait until 12:00:08 UTC: that was obeyed." in page


def test_who_was_told_and_how_it_stands(jobtrack: Rehearsal, ann):
    """R-ESC-6."""
    escalation = asks(jobtrack, PAUSED)
    rows = Notice.objects
    rows.create(escalation=escalation, notifier="night", turn=1, outcome="sent", sent_at=jobtrack.clock())
    rows.create(escalation=escalation, notifier="day", turn=2, due_at=jobtrack.clock(), attempts=2, last_error="<b>no")
    rows.create(escalation=escalation, notifier="chat", turn=1, outcome="failed", last_error="HTTP 500")
    page = read(logged_in(ann).get(question_url(escalation)))
    told = page.text.split("Who was told")[1].split("What happened")[0]
    assert "night the question was opened sent, 2030-01-07 12:00:01 UTC" in told
    assert "day nobody had acted being tried again" in told
    assert "chat the question was opened not delivered Last error: “HTTP 500”" in told
    assert "<b>no" not in page.html


def test_long_evidence_is_folded_away(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    Escalation.objects.update(detail="word " * 200 + "end")
    page = read(logged_in(ann).get(question_url(escalation)))
    question = page.html.split("<details>")[1].split("</details>")[0]
    summary, whole = question.split("</summary>")
    assert len(summary) < 450
    assert whole.endswith("word end")


def test_the_object_of_the_caller_is_linked_if_its_page_may_be_opened(jobtrack: Rehearsal, ann):
    from django.contrib.auth.models import User

    target = User.objects.create_user("report-42")
    escalation = asks(jobtrack, PAUSED, subject=target)
    page = read(logged_in(ann).get(question_url(escalation)))
    assert f"/auth/user/{target.pk}/change/" not in page.html
    ann.is_superuser = True
    ann.save()
    page = read(logged_in(ann).get(question_url(escalation)))
    assert f"/auth/user/{target.pk}/change/" in page.html
    assert "For: report-42" in page.text


def test_a_page_can_be_used_with_a_keyboard_and_a_screen_reader(jobtrack: Rehearsal, ann):
    """Every field has its label and help; headings follow each other; nothing needs JavaScript."""
    escalation = asks(jobtrack, DONE, on_success="tests.django.handlers.fail")
    client = logged_in(ann)
    for page in (
        read(client.get(question_url(escalation))),
        read(client.get(decide_url(escalation, "retry_delivery"))),
    ):
        labels = {attrs.get("for") for tag, attrs in page.tags if tag == "label"}
        ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
        assert len(ids) == len(set(ids))
        for tag, attrs in page.tags:
            if tag in ("textarea", "select") or (tag == "input" and attrs.get("type") in ("text", None)):
                assert attrs.get("id") in labels or attrs.get("aria-label") or attrs.get("name") == "action", attrs
            for name in ("aria-describedby", "aria-labelledby"):
                assert set((attrs.get(name) or "").split()) <= set(ids), attrs
        assert "h2" in [tag for tag, _ in page.tags]
    assert words.QUESTIONS[Reason.DELIVERY_FAILED].ask


def test_one_more_look_after_the_deadline_says_that_it_is_the_last(jobtrack: Rehearsal, ann):
    """A new operator chose it seven times, and was asked again seven times."""
    client, escalation = logged_in(ann), asks(jobtrack, PAUSED)
    passed = "The deadline is over: unless the job has ended there, you are asked again."
    assert passed not in read(client.get(question_url(escalation))).text
    operation = type(escalation.operation).objects
    operation.update(deadline=jobtrack.clock() - timedelta(minutes=1))
    assert f"{passed} To follow it longer, extend it." in read(client.get(question_url(escalation))).text
    assert "and the time is over, you are asked again." in read(client.get(decide_url(escalation, "look_again"))).text
    operation.update(limit_extensions=0)
    assert "extend it." not in read(client.get(question_url(escalation))).text


def test_a_question_that_offers_no_extension_does_not_speak_of_it(jobtrack: Rehearsal, ann):
    """Access denied after the deadline: there is no Extend on the page."""
    client, escalation = logged_in(ann), asks(jobtrack, DENIED)
    type(escalation.operation).objects.update(deadline=jobtrack.clock() - timedelta(minutes=1))
    page = read(client.get(question_url(escalation))).text
    assert "The deadline is over: unless the job has ended there, you are asked again." in page
    assert "extend it." not in page


def test_an_unknown_state_links_the_documentation_and_says_what_to_wait_for(jobtrack: Rehearsal, ann):
    page = read(logged_in(ann).get(question_url(asks(jobtrack, PAUSED))))
    assert "wait for the new revision below." in page.text
    (link,) = [attrs for tag, attrs in page.tags if tag == "a" and attrs.get("rel") == "noreferrer"]
    assert link["href"].startswith("https://")


def test_an_error_that_a_success_overtook_is_told_as_an_earlier_one(jobtrack: Rehearsal, ann):
    escalation = asks(jobtrack, PAUSED)
    operation = type(escalation.operation).objects
    operation.update(error="This token was revoked.")
    client = logged_in(ann)
    assert "Its error: “This token was revoked.”" in read(client.get(question_url(escalation))).text
    operation.update(state="succeeded", wake_at=None)
    assert "An error before that: “This token was revoked.”" in read(client.get(question_url(escalation))).text


@pytest.mark.parametrize(("blocking", "told"), [(True, "it goes on waiting"), (False, "the question stays open")])
def test_the_list_says_what_happens_if_nobody_acts(jobtrack: Rehearsal, ann, blocking, told):
    """Of an operation that has ended nothing waits; and what needs two people never happens by itself."""
    asks(jobtrack, PAUSED)
    place = {"open_blocking": True} if blocking else {"open_blocking": None, "open_advisory": True}
    Escalation.objects.update(blocking=blocking, **place)
    assert told in read(logged_in(ann).get("/admin/jobtrack/escalation/")).text


def test_what_needs_two_people_never_happens_by_itself(jobtrack: Rehearsal, ann, settings):
    rule = {"unknown_state": {"option": "close", "after_s": 60}}
    settings.JOBTRACK = {**SITE, "LAPSES": rule, "FOUR_EYES": ["close"]}
    asks(jobtrack, PAUSED)
    assert "it goes on waiting" in read(logged_in(ann).get("/admin/jobtrack/escalation/")).text


def test_the_end_of_the_calendar_breaks_no_page(jobtrack: Rehearsal, ann):
    """East of Greenwich the last hour of the year 9999 has no local time; and no caller may ask for it."""
    with pytest.raises(UsageError, match="years 1970 to 2999"):
        track("acme-export", job_id="exp_9", needed_by=datetime(9999, 12, 31, 23, 30, tzinfo=UTC))
    escalation = asks(jobtrack, PAUSED)
    type(escalation.operation).objects.update(expires_at=datetime(9999, 12, 31, 23, 30, tzinfo=UTC))
    with timezone.override("Europe/Berlin"):
        assert "9999-12-31 23:30:00 UTC" in read(logged_in(ann).get(question_url(escalation))).text
