"""Who is told of a question, when and how often (R-ESC-6)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.urls import reverse

from jobtrack.core.escalation import Reason
from jobtrack_django.models import Escalation, Notice
from jobtrack_django.notify import dispatch as dispatching
from jobtrack_django.notify.kinds import pause
from tests.django import notices_desk
from tests.django.admin_pages import person, read
from tests.django.notices_desk import CALL, SITE_URL, notices

pytestmark = [pytest.mark.database, pytest.mark.django_db]

REFUSES = {**CALL, "path": "tests.django.notices_desk.refuse"}
H = 3600


@pytest.fixture
def site(settings):
    def use(**notifiers):
        settings.JOBTRACK = {"NOTIFIERS": notifiers, "SITE_URL": SITE_URL}

    return use


# --- planned with the question ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notifier", "wanted"),
    [
        ({}, True),
        ({"reasons": ["deadline_exceeded"]}, True),
        ({"reasons": ["unknown_state"]}, False),
        ({"providers": ["acme"]}, True),
        ({"providers": ["other"]}, False),
        ({"risk": "medium"}, True),
        ({"risk": "high"}, False),
    ],
)
def test_a_notifier_is_told_of_what_it_wants(desk, site, notifier, wanted):
    site(night={**CALL, **notifier})
    desk.ask(Reason.DEADLINE_EXCEEDED)
    assert notices() == ([("night", 1, "")] if wanted else [])


def test_a_question_whose_transaction_is_rolled_back_tells_nobody(desk, site):
    """As with every outbox: the notice lives and dies with what it is about."""
    site(night=CALL)
    with transaction.atomic():
        desk.ask()
        transaction.set_rollback(True)
    assert (notices(), desk.dispatch()) == ([], 0)


def test_changed_evidence_of_an_open_question_is_no_new_notice(desk, site):
    site(night=CALL)
    (question,) = desk.ask()
    for detail in "abc":
        desk.ask_again(question, detail)
    assert notices() == [("night", 1, "")]


def test_without_notifiers_nothing_is_written_or_read(desk, site, django_assert_num_queries):
    site()
    desk.ask()
    with django_assert_num_queries(0):
        assert desk.dispatch() == 0
        assert dispatching.due("default") is False
    assert notices() == []


# --- sent ---------------------------------------------------------------------------------------------


def test_a_notice_waits_for_its_delay_and_is_sent_once(desk, site):
    site(night={**CALL, "after_s": 600})
    desk.ask()
    assert [desk.dispatch(), desk.dispatch(after_s=599), desk.dispatch(after_s=1), desk.dispatch(after_s=H)] == [
        *(0, 0, 1, 0)
    ]
    (row,) = Notice.objects.all()
    assert (row.outcome, row.sent_at, row.due_at, row.attempts) == ("sent", desk.clock() - timedelta(hours=1), None, 1)
    assert [(m.id, m.notifier, m.total) for m in notices_desk.told] == [(row.message_id, "night", 1)]


def test_each_notifier_gets_its_own_message(desk, site):
    site(day=CALL, night=CALL)
    desk.ask(count=2)
    assert desk.dispatch() == 4
    assert [(m.notifier, m.total) for m in notices_desk.told] == [("day", 2), ("night", 2)]


def test_a_thousand_questions_cost_one_message(desk, site, django_assert_max_num_queries):
    """A dead account stops all its operations at once; the night shift's phone rings once."""
    site(night=CALL)
    desk.ask(Reason.UNKNOWN_STATE, count=260)
    with django_assert_max_num_queries(12):
        assert desk.dispatch() == 260
    (message,) = notices_desk.told
    assert (message.total, len(message.items), message.more) == (260, 20, 240)
    assert "and 240 more" in message.text
    assert f"All open questions: {SITE_URL}/admin/jobtrack/escalation/" in message.text
    assert message.subject == "[jobtrack] 260 decisions needed"


def test_the_most_urgent_come_first(desk, site):
    site(night=CALL)
    desk.ask(Reason.DEADLINE_EXCEEDED, count=1)
    desk.clock.advance(5)
    desk.ask(Reason.SUBMISSION_UNKNOWN, count=1)
    desk.dispatch()
    assert [item.reason for item in notices_desk.told[0].items] == ["submission_unknown", "deadline_exceeded"]


def test_what_comes_within_the_digest_is_put_together(desk, site):
    site(night={**CALL, "digest_s": 60})
    desk.ask()
    assert desk.dispatch() == 1
    for _ in range(5):
        desk.ask()
        assert desk.dispatch(after_s=10) == 0
    assert dispatching.due("default") is False  # nothing to look at before the window is over
    assert desk.dispatch(after_s=10) == 5
    assert [message.total for message in notices_desk.told] == [1, 5]


def test_a_decided_question_is_not_told(desk, site):
    site(night={**CALL, "after_s": 600, "remind_s": H})
    first, second = desk.ask(count=2)
    desk.decide(first)
    assert desk.dispatch(after_s=600) == 1
    assert notices(escalation=first) == [("night", 1, "dropped"), ("night", 2, "")]
    desk.dispatch(after_s=H)
    assert notices(escalation=first) == [("night", 1, "dropped"), ("night", 2, "dropped")]
    assert notices(escalation=second) == [("night", 1, "sent"), ("night", 2, "sent")]


def test_a_reminder_is_sent_only_when_nobody_has_acted(desk, site):
    site(night={**CALL, "remind_s": 4 * H})
    acted, _ = desk.ask(count=2)
    desk.dispatch()
    desk.decide(acted)
    assert [desk.dispatch(after_s=4 * H - 1), desk.dispatch(after_s=1), desk.dispatch(after_s=9 * H)] == [0, 1, 0]
    first, second = notices_desk.told
    assert [item.reminder for item in (*first.items, *second.items)] == [False, False, True]
    assert second.subject == "[jobtrack] Decision needed: deadline passed (acme) (reminder)"


# --- failing ------------------------------------------------------------------------------------------


def test_a_failing_notifier_is_tried_again_later_and_given_up_in_the_end(desk, site, caplog):
    site(night=REFUSES, day=CALL)
    desk.ask()
    assert desk.dispatch() == 1  # the other one is told all the same
    begun, tries = desk.clock(), []
    for _ in range(40):
        row = Notice.objects.get(notifier="night")
        if row.due_at is None:
            break
        tries.append((row.due_at - begun).total_seconds() / 60)
        assert desk.dispatch(after_s=(row.due_at - desk.clock()).total_seconds()) == 0
    assert tries == [1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]
    assert (row.outcome, row.attempts, row.last_error) == ("failed", 12, "RuntimeError")
    assert "CANARY" not in caplog.text + repr(list(Notice.objects.values()))


def test_a_message_that_is_sent_again_is_the_same_message(desk, site):
    """Its receiver may have taken it the first time: what was added meanwhile must not hide behind an id it knows."""
    site(night=REFUSES)
    desk.ask()
    desk.dispatch()
    (row,) = Notice.objects.all()
    desk.ask()
    assert desk.dispatch(after_s=30) == 0
    site(night=CALL)
    assert [desk.dispatch(after_s=30), desk.dispatch()] == [1, 1]
    first, second = notices_desk.told
    assert (first.id, first.total, second.total) == (row.message_id, 1, 1)
    assert second.id != first.id


def test_new_questions_do_not_hammer_a_notifier_that_fails(desk, site):
    site(night=REFUSES)
    desk.ask()
    desk.dispatch()
    for _ in range(5):
        desk.ask()
        desk.dispatch(after_s=1)
    assert sum(row.attempts for row in Notice.objects.all()) == 1
    assert dispatching.due("default") is False


@pytest.mark.parametrize(("wished", "minutes"), [(None, 4), (90, 4), (600, 10), (10**6, 360)])
def test_the_pause_is_what_the_other_side_wants_if_that_is_longer(wished, minutes):
    assert pause(3, None if wished is None else timedelta(seconds=wished)) == timedelta(minutes=minutes)


def test_notices_of_a_notifier_that_is_gone_wait_for_its_return(desk, site):
    """While a release is rolled out, some processes know a new notifier and some do not."""
    site(night=CALL)
    desk.ask()
    site(day=CALL)
    assert (desk.dispatch(), dispatching.due("default")) == (0, False)
    site(night=CALL)
    assert desk.dispatch() == 1


# --- seen ---------------------------------------------------------------------------------------------


def test_what_became_of_notices_is_shown(desk, site, client):
    site(night=REFUSES, day={**CALL, "remind_s": H})
    desk.ask()
    desk.dispatch()
    client.force_login(person("ada", "view_notice", "view_escalation"))
    page = read(client.get(reverse("admin:jobtrack_notice_changelist")))
    for words in ("deadline passed op-1", "day sent", "day reminder waiting", "night waiting RuntimeError"):
        assert words in page.text
    failed = read(client.get(reverse("admin:jobtrack_notice_changelist"), {"outcome": "sent"}))
    assert "RuntimeError" not in failed.text
    row = Notice.objects.get(outcome="sent")
    assert row.message_id in read(client.get(reverse("admin:jobtrack_notice_change", args=[row.pk]))).text


def test_the_link_survives_the_login(desk, site, client):
    """From the phone at night: tap, log in, and be where the question is."""
    site(night=CALL)
    (question,) = desk.ask()
    desk.dispatch()
    link = notices_desk.told[0].items[0].link
    assert link == f"{SITE_URL}{reverse('admin:jobtrack_escalation_change', args=[question.pk])}"
    answer = client.get(link.removeprefix(SITE_URL))
    user = person("ada", "view_escalation")
    user.set_password("pw")
    user.save()
    answer = client.post(answer.headers["Location"], {"username": "ada", "password": "pw"})
    assert answer.headers["Location"] == link.removeprefix(SITE_URL)


def test_without_a_site_url_there_is_no_link(desk, settings):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}}
    desk.ask()
    desk.dispatch()
    (message,) = notices_desk.told
    assert (message.items[0].link, message.list_link) == ("", "")
    assert "http" not in message.text


@pytest.mark.parametrize(
    ("reason", "lapses", "words"),
    [
        (Reason.DEADLINE_EXCEEDED, {}, "If nobody acts, it stays as it is."),
        (Reason.PROVIDER_FAILURE, {}, "the question stays open."),
        (Reason.DEADLINE_EXCEEDED, {"deadline_exceeded": {"option": "close", "after_s": H}}, "this is chosen: Close."),
    ],
)
def test_a_notice_says_what_happens_if_nobody_acts(desk, settings, reason, lapses, words):
    settings.JOBTRACK = {"NOTIFIERS": {"night": CALL}, "LAPSES": lapses}
    desk.ask(reason)
    desk.dispatch()
    assert words in notices_desk.told[0].text


def test_a_notice_is_written_in_the_language_of_the_site(desk, site, settings, monkeypatch):
    from django.utils import translation

    seen = []
    monkeypatch.setattr(notices_desk, "take", lambda _message: seen.append(translation.get_language()))
    settings.LANGUAGE_CODE = "de"
    site(night=CALL)
    desk.ask()
    with translation.override("fr"):
        desk.dispatch()
    assert seen == ["de"]


def test_the_words_of_a_newer_release_are_told_as_they_are(desk, site):
    site(night=CALL)
    (question,) = desk.ask()
    Escalation.objects.filter(pk=question.pk).update(reason="of_tomorrow")
    assert desk.dispatch() == 1
    assert notices_desk.told[0].items[0].title == "of_tomorrow"


def test_one_notifier_that_breaks_does_not_silence_the_others(desk, settings, monkeypatch, caplog):
    """What is not foreseen for one of them is no other's trouble."""
    settings.JOBTRACK = {"NOTIFIERS": {"a": CALL, "b": CALL}}
    desk.ask()
    tell = dispatching._tell

    def breaks(using, name, notifier):
        if name == "a":
            raise RuntimeError("not foreseen")
        return tell(using, name, notifier)

    monkeypatch.setattr(dispatching, "_tell", breaks)
    assert desk.dispatch() == 1
    assert notices() == [("a", 1, ""), ("b", 1, "sent")]
    assert "Notifier a could not be served" in caplog.text


def test_a_risk_of_a_newer_release_is_told_as_a_high_one(desk, settings):
    settings.JOBTRACK = {"NOTIFIERS": {"a": CALL}}
    desk.ask()
    Escalation.objects.update(risk=0)
    assert desk.dispatch() == 1
    assert notices_desk.told[-1].items[0].risk == "high"


def test_a_decided_question_is_dropped_also_for_a_notifier_that_is_no_more(desk, settings):
    settings.JOBTRACK = {"NOTIFIERS": {"old": CALL}}
    (question,) = desk.ask()
    settings.JOBTRACK = {"NOTIFIERS": {"new": CALL}}
    desk.decide(question)
    desk.dispatch()
    assert notices() == [("old", 1, "dropped")]
