"""Lists read an index, whatever is chosen: the plans of every statement of every page, on tens of thousands of rows."""

from __future__ import annotations

from itertools import product

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobtrack_django.admin.base import BoundedPaginator
from tests.django.admin_pages import SITE, person
from tests.django.many_rows import OPERATIONS, plant
from tests.django.plans import read_whole

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),  # MariaDB commits when it is told to look at its tables
]

OPERATION, ESCALATION = "/admin/jobtrack/operation/", "/admin/jobtrack/escalation/"
QUESTION_FILTERS = [
    {},
    {"risk": "1"},
    {"reason": "stalled"},
    {"provider": "till"},
    {"provider": "rare"},
    {"asked": "new"},
    {"asked": "day"},
    {"risk": "1", "provider": "till"},
    {"provider": "nobody"},
]
SEARCHES = ["op-7", "id:op-7", "job:job-7", "ref:many", "many", "7", "#1000007", "nothing"]

PAGES = {
    **{f"operations {q}": (OPERATION, q) for q in (
        {}, {"state": "running"}, {"state": "failed"}, {"provider": "till"}, {"provider": "rare"}, {"created": "1"}, {"created": "30"},
        {"state": "failed", "provider": "till"}, {"state": "failed", "created": "7"}, {"provider": "till", "created": "7"},
    )},
    **{f"open {q} {order}": (ESCALATION, {**q, **order}) for q, order in product(QUESTION_FILTERS, ({}, {"first": "oldest"}))},
    **{f"decided {q}": (ESCALATION, {**q, "decided": "yes"}) for q in QUESTION_FILTERS},
    "all": (ESCALATION, {"decided": "all"}),
    **{f"search operations {q}": (OPERATION, {"q": q}) for q in SEARCHES},
    **{f"search questions {q}": (ESCALATION, {"q": q}) for q in SEARCHES},
    "results": ("/admin/jobtrack/jobresult/", {}),
    "webhooks": ("/admin/jobtrack/webhookreceipt/", {}),
}  # fmt: skip


@pytest.fixture
def many():
    plant()
    client = Client()
    client.force_login(person("plans", "view_operation", "view_escalation", "view_jobresult", "view_webhookreceipt"))
    return client


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


def statements(client, url, query=None):
    """The statements of a page that touch jobtrack's tables, and the page's list."""
    with CaptureQueriesContext(connection) as captured:
        response = client.get(url, query)
        assert response.status_code == 200
    return [each["sql"] for each in captured if "jobtrack_" in each["sql"]], response.context["cl"]


def read_pages(client, url, query):
    """The statements of the first page, of the second, and of the way back."""
    asked, first = statements(client, url, query)
    if first.next_link:
        second, behind = statements(client, url + first.next_link)
        assert not {row.pk for row in behind.result_list} & {row.pk for row in first.result_list}
        back, before = statements(client, url + behind.previous_link)
        assert [row.pk for row in before.result_list] == [row.pk for row in first.result_list]
        asked += second + back
    return asked


def test_each_list_reads_an_index_and_counts_up_to_a_limit(many):
    """One test for all pages, since the rows are planted once."""
    bad = {}
    for name, (url, query) in PAGES.items():
        for sql in read_pages(many, url, query):
            found = read_whole(sql)
            found += ["OFFSET"] * ("OFFSET" in sql.upper()) + ["LIKE"] * (" LIKE " in sql)
            found += ["a count without end"] * ("COUNT(" in sql and "LIMIT" not in sql)
            if found:
                bad[name, sql] = found
    assert "\n".join(f"{name}: {found} {sql}" for (name, sql), found in bad.items()) == ""

    page = many.get(OPERATION)
    assert (page.context["cl"].result_count, BoundedPaginator.MOST < OPERATIONS) == (BoundedPaginator.MOST, True)
    html = page.content.decode()
    assert "1000 or more" in html
    assert "Needs decision (99+)" in html
