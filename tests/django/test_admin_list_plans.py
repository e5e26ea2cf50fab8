"""Lists read an index, whatever is chosen: the plans of every statement of every page, on tens of thousands of rows.

A statement that reads a whole table is fast here and takes a minute on a large site; so the plans are asserted, not
the time.
"""

from __future__ import annotations

import json
from itertools import product

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobtrack_django.admin.base import BoundedPaginator
from tests.django.admin_pages import SITE, person
from tests.django.many_rows import OPERATIONS, plant

pytestmark = pytest.mark.database

OPERATION, ESCALATION = "/admin/jobtrack/operation/", "/admin/jobtrack/escalation/"
SMALL = 3_000
"""Rows that may be sorted: a search finds that many at most, and a rare word is sorted instead of skipped to."""

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
def many(db):
    plant()
    client = Client()
    client.force_login(person("plans", "view_operation", "view_escalation", "view_jobresult", "view_webhookreceipt"))
    return client


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


def read_whole(sql: str) -> list[str]:
    """What a statement reads or sorts without an index that leads to it."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = [row[3] for row in cursor.fetchall()]
            bare = [step for step in steps if step.startswith("SCAN ") and "INDEX" not in step]
            in_order = "ORDER BY" in sql and "LIMIT" in sql and not any("TEMP B-TREE" in step for step in steps)
            of_tables = [step for step in bare if "jobtrack" in step or "later" in step or "few" in step]
            return [step for step in of_tables if not (in_order and " WHERE " not in sql)]  # by key, and ends soon
        if connection.vendor == "mysql":
            cursor.execute(f"EXPLAIN {sql}")
            return list(_bad_steps(cursor.fetchall()))
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
        (plan,) = cursor.fetchone()
    plan = json.loads(plan) if isinstance(plan, str) else plan
    return list(_bad(plan[0]["Plan"]))


def _bad_steps(steps):
    """MariaDB's plan: a row for each table, with its way there, an estimate of its rows, and what else is done."""
    for _id, _select, table, way, _possible, key, _length, _ref, rows, extra in steps:
        if way == "ALL" and int(rows or 0) > SMALL:
            yield f"{table} read whole, {rows} rows"
        if "filesort" in (extra or "") and int(rows or 0) > SMALL:
            yield f"a sort of {rows} rows of {table} by {key}"


def _bad(node):
    if node["Node Type"] == "Seq Scan" and node["Relation Name"] in ("jobtrack_operation", "jobtrack_escalation"):
        yield f"Seq Scan of {node['Relation Name']}"
    if node["Node Type"] == "Sort" and node["Plan Rows"] > SMALL:
        yield f"Sort of {node['Plan Rows']} rows by {node['Sort Key']}"
    for child in node.get("Plans", ()):
        yield from _bad(child)


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
