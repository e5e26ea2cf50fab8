"""Reads a case: what a provider answered, and what should have come of it (docs/replay.md).

A case is strict YAML (or JSON) like a provider table: unknown keys, look-alikes and wrong words are findings with a
line and a column, all in one run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jobtrack.catalog import load_text
from jobtrack.catalog.findings import Report, path_text
from jobtrack.catalog.nodes import Node
from jobtrack.core.table import ProviderTable
from jobtrack.errors import TableError, TableMissing
from jobtrack.flow.submit import Submission
from jobtrack.flow.track import Tracking
from jobtrack.testing import expectations
from jobtrack.testing.clock import START
from jobtrack.testing.doing import Doing, read_doing
from jobtrack.testing.reading import CaseError, Reader, read_text, read_tree, refuse
from jobtrack.testing.replies import REPLY_KEYS, read_reply
from jobtrack.testing.script import KINDS, Scripted

FindTable = Callable[[str], ProviderTable]
"""Gives the table for an id or a path (relative to the case's folder); raises TableMissing or TableError."""

_DEFAULTS: Mapping[str, Any] = {
    "jobtrack": 1,
    "id": "case",
    "name": "Table of a case",
    "docs": "https://provider.example/docs",
    "revision": 1,
    "hosts": ["https://api.provider.example"],
}
"""What an inline table may leave out."""

_LIMITS = ("deadline", "needed_by", "status_requests", "transport_failures", "rate_limited")
_OPERATION = ("account", "draw", "job_id", "limits", "on_failure", "params", "started_at", "status_url", "submit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case, ready to be run."""

    name: str  # file name, with a number if the file holds several
    table: ProviderTable
    begins: Tracking | Submission
    replies: tuple[Scripted, ...]
    doing: tuple[Doing, ...] = ()
    started_at: datetime = START
    draw: float = 0.5  # jitter draw of every look, in [0, 1]
    needed_by: timedelta | None = None  # from the start
    expect: tuple[expectations.Expected, ...] = field(default=())


def load_cases(path: Path, find_table: FindTable) -> list[Case]:
    """The cases of a file: one mapping, or a list of them.

    Raises:
        CaseError: the file cannot be read or is not a case; lists every finding.
        TableError: a table that it names cannot be used.
    """
    return parse_cases(read_text(path), str(path), find_table)


def parse_cases(text: str, source: str, find_table: FindTable) -> list[Case]:
    """As ``load_cases``, from a text. ``source`` stands in findings."""
    report = Report(file=source)
    root = read_tree(text, report)
    reader = Reader(report=report)
    cases: list[Case | None] = []
    if root is not None:
        roots = root.items()
        names = [source] if not isinstance(root.value, list) else [f"{source}[{n}]" for n in range(len(roots))]
        cases = [_case(node, name, reader, find_table) for node, name in zip(roots, names, strict=True)]
    if report.findings:
        raise refuse(source, report.ordered())
    return [case for case in cases if case is not None]


def _case(node: Node, name: str, reader: Reader, find_table: FindTable) -> Case | None:
    keys = reader.mapping(node, required=("table", "replies"), allowed=("name", "operation", "do", "expect", "about"))
    if "table" not in keys or "replies" not in keys:
        return None
    table = _table(keys["table"], reader, find_table)
    replies = _replies(keys["replies"], reader)
    operation = reader.mapping(keys["operation"], allowed=_OPERATION) if "operation" in keys else {}
    limits = reader.mapping(operation["limits"], allowed=_LIMITS) if "limits" in operation else {}
    doing = read_doing(keys["do"], reader) if "do" in keys else ()
    expect = expectations.read_expect(keys["expect"], reader) if "expect" in keys else ()
    if table is None:
        return None
    return Case(
        name=reader.text(keys["name"]) if "name" in keys else name,
        table=table,
        begins=_beginning(table, operation, limits, reader),
        replies=replies,
        doing=doing,
        expect=expect,
        **reader.fill(operation, started_at=reader.instant, draw=reader.fraction),
        **reader.fill(limits, needed_by=reader.duration),
    )


def _beginning(
    table: ProviderTable, operation: Mapping[str, Node], limits: Mapping[str, Node], reader: Reader
) -> Tracking | Submission:
    granted: dict[str, Any] = reader.fill(
        limits,
        deadline=reader.duration,
        status_requests=reader.count,
        transport_failures=reader.count,
        rate_limited=reader.count,
    )
    told = reader.fill(operation, account=reader.text, params=reader.texts)
    if "on_failure" in operation:
        told["escalate_ends"] = reader.word(operation["on_failure"], ("escalate", "close")) == "escalate"
    told |= {"operation_id": "case", "provider": table.id, **granted}
    if "submit" in operation:
        return _submission(operation, told, reader)
    told |= reader.fill(operation, status_url=reader.text)
    job_id = reader.text(operation["job_id"]) if "job_id" in operation else "job-1"
    return Tracking(job_id=job_id, **told)


def _submission(operation: Mapping[str, Node], told: dict[str, Any], reader: Reader) -> Submission:
    for name in sorted(operation.keys() & {"job_id", "status_url"}):
        reader.add(operation[name], "operation", f"{name} belongs to a job that was submitted elsewhere; remove it.")
    keys = reader.mapping(operation["submit"], allowed=("payload", "preconditions", "reference"))
    payload = keys["payload"].plain() if "payload" in keys else {}
    said = reader.fill(keys, preconditions=reader.texts, reference=reader.text)
    return Submission(payload=payload, **said, **told)


def _replies(node: Node, reader: Reader) -> tuple[Scripted, ...]:
    scripted: list[Scripted] = []
    for item in reader.sequence(node):
        keys = reader.mapping(item, allowed=(*REPLY_KEYS, "at", "cut", "times", "to"))
        reply = read_reply(item, keys, reader)
        times = reader.count(keys["times"]) if "times" in keys else 1
        at = reader.duration(keys["at"]) if "at" in keys else None
        told = reader.fill(keys, to=lambda node: reader.word(node, KINDS), cut=reader.count)
        if reply is not None:
            line = Scripted(reply=reply, line=item.mark.line, **told)
            scripted += [replace(line, at=at)] + [line] * (times - 1)
    return tuple(scripted)


# --- the table --------------------------------------------------------------------------------------


def _table(node: Node, reader: Reader, find_table: FindTable) -> ProviderTable | None:
    if isinstance(node.value, dict):
        return _inline(node, reader)
    try:
        return find_table(reader.text(node))
    except TableMissing as error:
        reader.add(node, "table", error.message)
        return None


def _inline(node: Node, reader: Reader) -> ProviderTable | None:
    written = {key: item.plain() for key, item in node.pairs()}
    try:
        return load_text(json.dumps({**_DEFAULTS, **written}, ensure_ascii=False), reader.report.file)
    except TableError as error:
        for finding in error.context["findings"]:
            at = _place(node, finding["path"])
            reader.report.add(at.mark, at.path, finding["code"], finding["message"])
        return None


def _place(table: Node, path: str) -> Node:
    """The node that a finding of the inline table is about, or the nearest one above it."""
    prefix = path_text(table.path)
    nodes = {path_text(node.path): node for node in table.walk()}
    wanted = f"{prefix}.{path}" if prefix else path
    while wanted not in nodes and "." in wanted:
        wanted = wanted.rpartition(".")[0]
    return nodes.get(wanted, table)


__all__ = ["Case", "CaseError", "FindTable", "Scripted", "load_cases", "parse_cases"]
