"""What a statement reads or sorts without an index that leads to it, on each database.

A statement that reads a whole table is fast in a test and takes a minute on a large site; so this is asserted, not the
time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection

SMALL = 3_000
"""Rows that may be sorted: a search finds that many at most, and a rare word is sorted instead of skipped to."""

PASSED = 6_000
"""Entries of an index and rows that may be read on the way to a page, or to a thousand of them to be counted."""


def analyze() -> None:
    """Have the database look at the rows that were just made."""
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("ANALYZE TABLE jobtrack_operation, jobtrack_escalation")
            cursor.fetchall()
        else:
            cursor.execute("ANALYZE")


def read_whole(sql: str) -> list[str]:
    """What is wrong with the statement; nothing, if all is well."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = [row[3] for row in cursor.fetchall()]
            bare = [step for step in steps if step.startswith("SCAN ") and "INDEX" not in step]
            in_order = "ORDER BY" in sql and "LIMIT" in sql and not any("TEMP B-TREE" in step for step in steps)
            of_tables = [step for step in bare if "jobtrack" in step or "later" in step or "few" in step]
            return [step for step in of_tables if not (in_order and " WHERE " not in sql)]  # by key, and ends soon
        if connection.vendor == "mysql":
            return [f"{read} rows read" for read in [_rows_read(cursor, sql)] if read > PASSED]
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}")
        (plan,) = cursor.fetchone()
    plan = json.loads(plan) if isinstance(plan, str) else plan
    return list(_bad(plan[0]["Plan"]))


def _rows_read(cursor: Any, sql: str) -> int:
    """What MariaDB really reads, of tables and of indexes. Its plans do not tell where a LIMIT ends the reading."""
    told = []
    for statement in ("DO 0", sql):
        cursor.execute(statement)
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        told.append(sum(int(value) for _name, value in cursor.fetchall()))
    return told[1] - told[0]


def _bad(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Seq Scan" and node["Relation Name"] in ("jobtrack_operation", "jobtrack_escalation"):
        yield f"Seq Scan of {node['Relation Name']}"
    if node["Node Type"] == "Sort" and node["Plan Rows"] > SMALL:
        yield f"Sort of {node['Plan Rows']} rows by {node['Sort Key']}"
    for child in node.get("Plans", ()):
        yield from _bad(child)
