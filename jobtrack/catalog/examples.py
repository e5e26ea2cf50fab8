"""Examples of a table: answers and what they mean, run whenever the table is read (R-TABLE-7)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import Reader, fill, named, text, whole
from jobtrack.catalog.placeholders import PAYLOAD, PLACEHOLDER
from jobtrack.core.accept import observe_submission
from jobtrack.core.actions import SubmitMeaning
from jobtrack.core.compose import prepare
from jobtrack.core.jsontext import parse
from jobtrack.core.locate import Answer, Found, read
from jobtrack.core.lookup import read_lookup
from jobtrack.core.observation import Kind
from jobtrack.core.observe import observe
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.place import RequestSpec
from jobtrack.core.reply import Answered
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover, LookupKind
from jobtrack.core.table import Example, Param, ParamPattern, ProviderTable, StatusSpec
from jobtrack.errors import UsageError

NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
_LONG_AGO = timedelta(days=30)  # an example is read long after acceptance: no "not visible yet" any more
_MADE_UP = {
    ParamPattern.DNS_LABEL: "sample",
    ParamPattern.SLUG: "sample",
    ParamPattern.SEGMENT: "sample",
    ParamPattern.UUID: "00000000-0000-4000-8000-000000000000",
    ParamPattern.INTEGER: "1",
}


_MEANS: dict[str, list[str]] = {
    "status": [kind.value for kind in Kind if kind is not Kind.TARGET_DENIED],
    "submit": [meaning.value for meaning in SubmitMeaning],
    "lookup": [kind.value for kind in LookupKind],
}
"""What each kind of answer can mean."""


def build_example(node: Node, status: StatusSpec, reader: Reader) -> Example:
    """One example of a tree that fits the schema. Without a job id it is read for the id that the answer repeats."""
    reply = node.at("reply")
    assert reply is not None
    if reply.get("json") is not None and reply.get("text") is not None:
        reader.report.add(reply.mark, reply.path, "example", "Write either json or text here, not both.")
    answered = _answered(reply)
    of = _of(node, reader)
    chosen = fill(node, means=text, job_id=text, params=lambda item: dict(named(item)))
    if chosen["means"] not in _MEANS[of]:
        message = f"{chosen['means']} is nothing that such an answer means; write one of {', '.join(_MEANS[of])}."
        reader.report.add(node.mark, node.path, "example", message)
    payload = node.get("payload")
    return Example(
        of=of,
        payload=None if payload is None else payload.plain(),
        http=answered.status,
        headers=answered.headers,
        body=answered.body,
        means=chosen["means"],
        job_id=chosen.get("job_id") or (_echoed(status, answered) if of == "status" else ""),
        params=chosen.get("params", {}),
        line=node.mark.line,
    )


def _of(node: Node, reader: Reader) -> str:
    """What was answered."""
    written = [key for key in ("submit", "lookup") if node.get(key) is not None]
    if len(written) > 1:
        reader.report.add(node.mark, node.path, "example", "Write either submit or lookup here, not both.")
    if node.get("payload") is not None and not written:
        reader.report.add(node.mark, node.path, "example", "payload goes with submit or lookup; remove it.")
    return written[0] if written else "status"


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
        problem = _run(table, example)
        if problem:
            report.add(node.mark, node.path, "example", problem)


def _run(table: ProviderTable, example: Example) -> str:
    """What is wrong with an example; "" if nothing is."""
    reply = Answered(status=example.http, headers=example.headers, body=example.body)
    if example.of == "status":
        operation = sample_operation(table, job_id=example.job_id, params=dict(example.params))
        seen = observe(table, reply, operation=operation, now=NOW)
        return _differs(example, seen.kind, seen.detail)
    try:
        operation, sent = sample_submission(table, payload=example.payload, params=dict(example.params))
    except UsageError as error:
        return (
            f"The submission cannot be built ({error.message}); write payload: with what it needs, or mend the table."
        )
    if example.of == "submit":
        submitted = observe_submission(table, reply, operation=operation, sent=sent, now=NOW)
        found = submitted.handover
        meaning = submitted.meaning or ""
        return _differs(example, meaning, submitted.observation.detail) or _other_job(example, found)
    looked = read_lookup(table, reply, operation=operation, sent=sent, now=NOW)
    found = looked.found[0] if len(looked.found) == 1 else None
    return _differs(example, looked.kind, looked.observation.detail) or _other_job(example, found)


def _differs(example: Example, read_as: str, detail: str) -> str:
    if read_as == example.means:
        return ""
    because = f" ({detail})" if detail else ""
    return f"This answer reads as {read_as}, not as {example.means}{because}; mend the table or the example."


def _other_job(example: Example, found: Handover | None) -> str:
    seen = "" if found is None else found.job_id
    if not example.job_id or seen == example.job_id:
        return ""
    return f"The job id {seen or 'none'} is read here, not {example.job_id}; mend the table or the example."


# --- submissions -------------------------------------------------------------------------------------


def sample_submission(
    table: ProviderTable, *, payload: object = None, params: dict[str, str] | None = None
) -> tuple[Operation, SubmitBytes]:
    """An operation under submission at :data:`NOW`, and what was sent. Its id and its reference are ``example``.

    Raises:
        UsageError: The table submits nothing, or the payload lacks what it needs.
    """
    operation = sample_operation(table, job_id="", params=params)
    known = {name: value for name, value in operation.params.items() if table.params[name].source != "answer"}
    content = _made_up_payload(table.submit.request) if payload is None and table.submit is not None else payload
    prepared = prepare(
        table,
        operation_id=operation.id,
        account=operation.account,
        payload=content,
        params=known,
        reference=operation.id,
    )
    submitting = replace(
        operation,
        state=OperationState.SUBMITTING,
        created_at=NOW,
        accepted_at=None,
        params=known,
        reference=operation.id,
        idempotency_key=prepared.key,
    )
    return submitting, prepared.submission


def _made_up_payload(spec: RequestSpec) -> dict[str, object]:
    """A payload with a word at each place that the request needs."""
    content: dict[str, object] = {}
    texts = [spec.path, *(value for _, value in (*spec.query, *spec.headers)), json.dumps(spec.body)]
    for match in (PAYLOAD.fullmatch(name) for each in texts for name in PLACEHOLDER.findall(each)):
        if match is not None and match["pointer"] and not match["optional"]:
            *way, last = (token.replace("~1", "/").replace("~0", "~") for token in match["pointer"].split("/")[1:])
            inner: dict[str, object] = content
            for token in way:
                below = inner.setdefault(token, {})
                inner = below if isinstance(below, dict) else {}
            inner.setdefault(last, "example")
    return content
