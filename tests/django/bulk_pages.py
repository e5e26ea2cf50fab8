"""What the tests of bulk decisions share: many questions, people, and the two steps."""

from __future__ import annotations

from html import unescape

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.test import Client
from django.urls import reverse

from jobtrack_django import track, words
from jobtrack_django.models import DecisionBatch, Escalation
from jobtrack_django.testing import answer
from tests.django.admin_pages import person, read

OPTIONS = [choice.permission for choice in words.CHOICES.values()]
ALL = ["view_escalation", "view_operation", "decide_in_bulk", *OPTIONS]
LIST = "/admin/jobtrack/escalation/"


def logged_in(user, **options):
    client = Client(**options)
    client.force_login(user)
    return client


def staff(name="ann", *codenames):
    """Somebody who may decide everything, or only this."""
    return logged_in(person(name, *(codenames or ALL)))


def ask_many(rehearsal, count, status="paused", start=1):
    """As many questions, of operations that have stopped."""
    ids = range(start, start + count)
    for n in ids:
        rehearsal.provider.script(f"exp_{n}", answer(json={"id": f"exp_{n}", "status": status}))
        track("acme-export", job_id=f"exp_{n}", operation_id=f"op-{n}")
    rehearsal.run_due(raise_failures=False)
    return list(Escalation.objects.filter(operation_id__in=[f"op-{n}" for n in ids]).order_by("pk"))


def choose(client, questions, option="look_again", *, across=False, follow=False, url=LIST):
    """The first step: an action on the list."""
    chosen = [question.pk for question in questions]
    data = {"action": f"bulk_{option}", ACTION_CHECKBOX_NAME: chosen, "select_across": "1" if across else "0"}
    return client.post(url, data, follow=follow)


def hidden(page):
    """What the preview carries along."""
    (value,) = (attrs["value"] for tag, attrs in page.tags if tag == "input" and attrs.get("name") == "chosen")
    return unescape(value)


def confirm(client, page, option="look_again", *, reason="the table was mended", follow=False):
    """The second step, from the page of the first."""
    url = reverse("admin:jobtrack_escalation_bulk", args=[option])
    return client.post(url, {"chosen": hidden(page), "reason": reason}, follow=follow)


def decide_all(client, questions, option="look_again", **given):
    """Both steps; the batch."""
    page = read(choose(client, questions, option))
    response = confirm(client, page, option, **given)
    assert response.status_code == 302, response.content.decode()
    return DecisionBatch.objects.latest("pk")


def result_url(batch, page="change"):
    return reverse(f"admin:jobtrack_decisionbatch_{page}", args=[batch.pk])


def outcomes(batch):
    return dict(batch.items.values_list("escalation__operation_id", "outcome"))


def details(batch):
    return dict(batch.items.values_list("escalation__operation_id", "detail"))
