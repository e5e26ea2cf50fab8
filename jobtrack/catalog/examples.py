"""Examples of a table: answers and what they mean, run whenever the table is read (R-TABLE-7)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import Reader, fill, named, text, whole
from jobtrack.core.jsontext import parse
from jobtrack.core.locate import Answer, Found, read
from jobtrack.core.observe import observe
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.reply import Answered
from jobtrack.core.table import Example, Param, ParamPattern, ProviderTable, StatusSpec

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
_LONG_AGO = timedelta(days=30)  # an example is read long after acceptance: no "not visible yet" any more
_MADE_UP = {
    ParamPattern.DNS_LABEL: "sample",
    ParamPattern.SLUG: "sample",
    ParamPattern.SEGMENT: "sample",
    ParamPattern.UUID: "00000000-0000-4000-8000-000000000000",
    ParamPattern.INTEGER: "1",
}


def build_example(node: Node, status: StatusSpec, reader: Reader) -> Example:
    """One example of a tree that fits the schema. Without a job id it is read for the id that the answer repeats."""
    reply = node.at("reply")
    assert reply is not None
    if reply.get("json") is not None and reply.get("text") is not None:
        reader.report.add(reply.mark, reply.path, "example", "Write either json or text here, not both.")
    answered = _answered(reply)
    chosen = fill(node, job_id=text, params=lambda item: dict(named(item)))
    return Example(
        http=answered.status,
        headers=answered.headers,
        body=answered.body,
        means=fill(node, means=text)["means"],
        job_id=chosen.get("job_id") or _echoed(status, answered),
        params=chosen.get("params", {}),
        line=node.mark.line,
    )


def _answered(reply: Node) -> Answered:
    content, words = reply.get("json"), reply.get("text")
    headers = fill(reply, headers=named).get("headers", ())
    if content is not None and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("Content-Type", "application/json"))
    body = json.dumps(content.plain()) if content is not None else "" if words is None else text(words)
    return Answered(status=fill(reply, http=whole)["http"], headers=headers, body=body.encode("utf-8", "replace"))


def _echoed(status: StatusSpec, answered: Answered) -> str:
    if status.echo is None:
        return "job-1"
    document = parse(answered.body, answered.header("Content-Type"))
    seen = read(status.echo, Answer(status=answered.status, headers=answered.headers, document=document))
    return str(seen.value) if isinstance(seen, Found) else "job-1"


def sample_operation(table: ProviderTable, *, job_id: str, params: dict[str, str] | None = None) -> Operation:
    """An operation under way at :data:`NOW`, accepted long ago. Missing parameters get a made-up value."""
    given = params or {}
    started = NOW - _LONG_AGO
    return Operation(
        id="example",
        provider=table.id,
        account="default",
        job_id=job_id,
        state=OperationState.RUNNING,
        budget=Budget(
            deadline=NOW + table.budget.deadline,
            status_requests=table.budget.status_requests,
            transport_failures=table.budget.transport_failures,
            rate_limited=table.budget.rate_limited,
        ),
        created_at=started,
        accepted_at=started,
        params={name: given.get(name, _made_up(param)) for name, param in table.params.items()},
    )


def _made_up(param: Param) -> str:
    return _MADE_UP[param.pattern]


def run_examples(table: ProviderTable, nodes: list[Node], report: Report) -> None:
    """Read each example with its table and report those that mean something else.

    Args:
        table: The table.
        nodes: Where its examples stand, in order.
        report: Gets a finding for each example that reads differently.
    """
    for example, node in zip(table.examples, nodes, strict=True):
        reply = Answered(status=example.http, headers=example.headers, body=example.body)
        operation = sample_operation(table, job_id=example.job_id, params=dict(example.params))
        seen = observe(table, reply, operation=operation, now=NOW)
        if seen.kind != example.means:
            because = f" ({seen.detail})" if seen.detail else ""
            message = (
                f"This answer reads as {seen.kind}, not as {example.means}{because}; mend the table or the example."
            )
            report.add(node.mark, node.path, "example", message)
