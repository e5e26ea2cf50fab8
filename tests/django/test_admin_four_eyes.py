"""Four eyes: for some options a site wants two people's word (INV-28, INV-29). Nothing is decided by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import transaction

from jobtrack.core.escalation import Option, Proposal, Question, Reason, Resolution
from jobtrack_django import get_operation, words
from jobtrack_django.models import AuditEntry, Escalation
from jobtrack_django.testing import answer, rehearsal
from tests.django.admin_pages import decide_url, person, question_url, read
from tests.django.admin_tills import DONE, TABLE, TAKEN, asked
from tests.django.test_admin_submissions import logged_in, post, state

pytestmark = [pytest.mark.database, pytest.mark.django_db]

ALL = ["view_escalation", "view_operation", *(choice.permission for choice in words.CHOICES.values())]
TWO = ["resubmit", "attach_job"]


@pytest.fixture
def till(settings, tmp_path: Path):
    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)], "FOUR_EYES": TWO}
    with rehearsal() as here:
        yield here


@pytest.fixture
def ann(db):
    return logged_in(person("ann", *ALL))


@pytest.fixture
def bob(db):
    return logged_in(person("bob", *ALL))


def again(escalation):
    escalation.refresh_from_db()
    return escalation


def buttons(page):
    """What the second step can send."""
    return [attrs["value"] for tag, attrs in page.tags if tag == "input" and attrs.get("type") == "submit"]


def events():
    return [json.loads(body)["event"] for body in AuditEntry.objects.order_by("pk").values_list("body", flat=True)]


def test_one_person_proposes_and_another_confirms(till, ann, bob):
    """The pages say who proposed what, when and why; the chain has both words."""
    escalation = asked(till)
    page = read(ann.get(question_url(escalation))).text
    assert page.count("It needs the word of two people.") == 2
    page = read(ann.get(decide_url(escalation, "resubmit")))
    assert "You propose it now. It happens when another person confirms it." in page.text
    assert buttons(page) == ["Propose: Submit once more"]
    response = post(ann, escalation, "resubmit", reason="not in the console")
    assert (response.status_code, get_operation("order-7").state) == (302, "escalated")
    assert LogEntry.objects.get().get_change_message() == "Proposed: Submit once more."
    for client in (ann, bob):
        page = read(client.get(question_url(again(escalation)))).text
        assert "ann proposed “Submit once more”, 2030-01-07 12:0" in page
        assert "Why: “not in the console”" in page
        assert "Nothing happens until another person" in page
        assert "ann proposed “Submit once more”: “not in the console” It needs the word of a second person." in page
    assert "you cannot confirm your own proposal" in read(ann.get(question_url(escalation))).text
    confirm = read(bob.get(decide_url(escalation, "resubmit")))
    assert buttons(confirm) == ["Confirm: Submit once more"]
    till.provider.on("POST", "/v1/payments", TAKEN)
    assert post(bob, escalation, "resubmit", reason="I looked too").status_code == 302
    till.run_due()
    assert (get_operation("order-7").state, len(till.provider.sent("POST"))) == ("succeeded", 2)
    assert [event for event in events() if event in ("proposal", "decision")] == ["proposal", "decision"]
    assert "ann had proposed it; this is the second person's word." in read(bob.get(question_url(escalation))).text


def test_nothing_is_decided_by_one_person_whatever_they_post(till, ann):
    """INV-28: the flow holds it, not the page."""
    escalation = asked(till)
    assert post(ann, escalation, "resubmit").status_code == 302
    again(escalation)
    before = state()
    page = read(post(ann, escalation, "resubmit", reason="and again"), status=409)
    assert "Nothing was changed. You proposed this yourself: another person has to confirm it." in page.text
    assert "and again" in page.text
    assert "Confirm: Submit once more" not in page.html
    assert state() == before
    for given in (
        {},
        {"instead": "1"},
        {"version": "1"},
        {"version": escalation.version + 1},
        {"actor": "bob"},
        {"confirm": "order-7", "instead": ""},
    ):
        for option in TWO:
            post(ann, again(escalation), option, **given)
            assert Escalation.objects.get().decided_at is None
    assert len(till.provider.sent("POST")) == 1
    assert "decision" not in events()


def test_another_job_is_no_confirmation(till, ann, bob):
    """The second person names the same job, or proposes their own instead."""
    escalation = asked(till)
    post(ann, escalation, "attach_job", job_id="pay-1", reason="console, row 3")
    again(escalation)
    page = read(bob.get(decide_url(escalation, "attach_job")))
    assert "The job named: pay-1" in page.text
    assert [a["value"] for t, a in page.tags if a.get("name") == "job_id"] == ["pay-1"]
    before = state()
    page = read(post(bob, escalation, "attach_job", job_id="pay-2", reason="no, row 4"))
    assert "ann proposed another job: “pay-1”. Nothing was changed." in page.text
    assert "no, row 4" in page.text
    assert state() == before
    assert post(bob, escalation, "attach_job", job_id="pay-2", reason="row 4", instead="1").status_code == 302
    again(escalation)
    assert (escalation.proposed_by, escalation.proposed_job) == ("bob", "pay-2")
    assert read(post(bob, escalation, "attach_job", job_id="pay-2"), status=409)
    till.provider.on("GET", "/v1/payments/pay-2", DONE)
    assert post(ann, again(escalation), "attach_job", job_id="pay-2", reason="agreed").status_code == 302
    till.run_due()
    assert (get_operation("order-7").job_id, len(till.provider.sent("POST"))) == ("pay-2", 1)


def test_new_evidence_drops_the_proposal(till, ann, bob):
    """What was proposed was about the evidence of its time; the page opened before is stale."""
    escalation = asked(till)
    post(ann, escalation, "resubmit")
    shown = again(escalation).version
    store, operation = till.runtime.store, escalation.operation.to_core()
    with transaction.atomic():
        current = store._lock(operation.id)
        store._ask(current, [Question(reason=Reason.SUBMISSION_UNKNOWN, detail="Seen anew.")])
    page = read(post(bob, escalation, "resubmit", version=shown, reason="agreed"), status=409)
    assert "The question has changed since you opened it." in page.text
    assert "agreed" in page.text
    assert "ann proposed" not in read(bob.get(question_url(escalation))).text.split("What happened")[0]
    assert post(bob, again(escalation), "resubmit").status_code == 302  # a new proposal, and no decision
    assert (again(escalation).proposed_by, escalation.decided_at) == ("bob", None)


def test_other_options_need_one_person(till, ann):
    escalation = asked(till)
    post(ann, escalation, "resubmit")
    assert post(ann, again(escalation), "close", reason="not wanted").status_code == 302
    assert (again(escalation).option, get_operation("order-7").state) == ("close", "abandoned")


def test_both_need_the_permission(till, ann):
    """INV-29: each of the two."""
    escalation = asked(till)
    post(ann, escalation, "resubmit")
    viewer = logged_in(person("viewer", "view_escalation", "close_escalation"))
    assert post(viewer, again(escalation), "resubmit").status_code == 403
    page = read(viewer.get(question_url(escalation))).text
    assert "You may not do this: it needs the permission “Can submit a job once more”." in page
    assert "ann proposed" in page


def test_a_site_that_no_longer_wants_two_decides_with_one(till, ann, settings):
    escalation = asked(till)
    post(ann, escalation, "resubmit")
    settings.JOBTRACK = {**settings.JOBTRACK, "FOUR_EYES": []}
    with rehearsal(till.clock()) as here:
        here.provider.on("POST", "/v1/payments", answer(202, json={"id": "pay-1"}))
        assert post(ann, again(escalation), "resubmit").status_code == 302
    assert again(escalation).decided_at


def withdraw(user):
    user.user_permissions.clear()


def deactivate(user):
    User.objects.filter(pk=user.pk).update(is_active=False)


def delete(user):
    user.delete()


@pytest.mark.parametrize("happens", [withdraw, deactivate, delete])
def test_the_word_of_somebody_who_may_no_longer_give_it_does_not_count(till, ann, bob, happens):
    """INV-29: two people who may both choose it at the moment it happens. The second one's word is the first now."""
    escalation = asked(till)
    assert post(ann, escalation, "resubmit").status_code == 302
    happens(User.objects.get(username="ann"))
    page = read(bob.get(question_url(again(escalation))))
    assert "They may not choose it any more, so this does not count" in page.text
    assert buttons(read(bob.get(decide_url(escalation, "resubmit")))) == ["Propose: Submit once more"]
    assert post(bob, escalation, "resubmit").status_code == 302
    assert (again(escalation).decided_at, escalation.proposed_by) == (None, "bob")
    assert len(till.provider.sent("POST")) == 1


def test_a_new_name_makes_no_second_person(till, ann):
    """INV-28: it is the person that counts, not how they are called today."""
    escalation = asked(till)
    assert post(ann, escalation, "resubmit").status_code == 302
    User.objects.filter(username="ann").update(username="anna")
    page = read(ann.get(question_url(again(escalation))))
    assert "you cannot confirm your own proposal" in page.text
    assert read(post(ann, escalation, "resubmit"), status=409)
    assert again(escalation).decided_at is None
    assert len(till.provider.sent("POST")) == 1


@pytest.mark.parametrize(
    ("first", "second", "other"),
    [
        (("bob", ""), ("bob", ""), False),
        (("bob", ""), ("Bob ", ""), False),
        (("bob", "7"), ("robert", "7"), False),
        (("bob", "7"), ("bob", "8"), True),
        (("bob", ""), ("eve", "8"), True),
    ],
)
def test_who_is_another_person(first, second, other):
    proposal = Proposal(option=Option.CANCEL, actor=first[0], person=first[1], reason="r")
    word = Resolution(escalation_id="1", option=Option.CANCEL, actor=second[0], person=second[1], reason="r", version=1)
    assert proposal.seconded_by(word) is other


def test_a_proposal_of_a_newer_release_breaks_no_page(till, ann):
    escalation = asked(till)
    Escalation.objects.update(proposed_option="a_new_word", proposed_by="eve", proposed_why="w")
    assert ann.get(question_url(escalation)).status_code == 200
    assert ann.get(decide_url(escalation, "resubmit")).status_code == 200
    assert "a_new_word" in read(ann.get("/admin/jobtrack/escalation/")).text
