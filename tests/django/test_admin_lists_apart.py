"""The lists of operations in a database of their own: their objects and people are in another."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from jobtrack_django.models import Escalation, Operation
from tests.django.admin_pages import read
from tests.django.test_two_databases import jobs, pay, till  # noqa: F401 - fixtures

pytestmark = [
    pytest.mark.database,
    pytest.mark.usefixtures("jobs"),
    pytest.mark.django_db(transaction=True, databases=["default", "jobs"]),
]


def test_a_list_links_objects_of_another_database(till):  # noqa: F811 - the fixture
    group = Group.objects.create(name="Miller")
    pay("order-7", subject=group)
    operation = Operation.objects.using("jobs").get()
    Escalation.objects.using("jobs").create(
        operation=operation, reason="stalled", blocking=True, open_blocking=True, opened_at=operation.created_at
    )
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    for url in ("/admin/jobtrack/escalation/", "/admin/jobtrack/operation/"):
        page = read(boss.get(url))
        assert (f"/admin/auth/group/{group.pk}/change/" in page.html, "Miller Group" in page.text) == (True, True)
        assert "Needs decision (1)" in page.text
