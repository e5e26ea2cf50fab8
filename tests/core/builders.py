"""Small tables, operations and answers for tests of reading. Instants start at T0 of the published cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobtrack.core.actions import AcceptedSpec, IdPlace, SubmitSpec
from jobtrack.core.jsontext import JsonObject
from jobtrack.core.locate import Answer
from jobtrack.core.operation import Budget, Operation, OperationState
from jobtrack.core.place import Body, BodyKind, Header, HttpStatus, Locator, RequestSpec
from jobtrack.core.reply import Answered
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.table import FieldType, Meaning, Polling, ProviderTable, ResultSpec, StatePart, StateRow, StatusSpec

T0 = datetime(2030, 1, 7, 12, tzinfo=UTC)
S = timedelta(seconds=1)
JSON = (("Content-Type", "application/json"),)


def at(text: str) -> Locator:
    """A locator from its short form: ``/pointer``, ``""`` (the root), ``header:X``, ``http``."""
    if text == "http":
        return HttpStatus()
    if text.startswith("header:"):
        return Header(text.removeprefix("header:"))
    return body(text)


def body(text: str) -> Body:
    tokens = tuple(token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:])
    return Body(tokens=tokens, source=text)


def jsonpath(*tokens: str | int) -> Body:
    return Body(tokens=tokens, source="$" + "".join(f"[{token!r}]" for token in tokens), pointer=False)


def rows(**states: list[object]) -> tuple[StateRow, ...]:
    """State rows by meaning; a tuple is a composite value."""
    return tuple(
        StateRow(values=value if isinstance(value, tuple) else (value,), meaning=Meaning(meaning))
        for meaning, values in states.items()
        for value in values
    )


STATES = rows(pending=["queued", "running"], success=["succeeded"], failure=["failed"], cancelled=["cancelled"])
STATUS = StatusSpec(
    request=RequestSpec(path="/v1/jobs/{job_id}"),
    echo=body("/id"),
    state=(StatePart(at=body("/status")),),
    rows=STATES,
    result=ResultSpec(require=((body("/result/url"), FieldType.URL),), hosts=("https://files.provider.example",)),
    error=(body("/error"),),
)
TABLE = ProviderTable(
    id="acme",
    name="ACME",
    docs="https://provider.example/docs",
    revision=1,
    digest="d",
    text="",
    hosts=("https://api.provider.example",),
    status=STATUS,
    polling=Polling(first=2 * S, base=2 * S, factor=2, cap=60 * S, max_guidance=3600 * S),
)
OPERATION = Operation(
    id="op-1",
    provider="acme",
    account="default",
    job_id="job-1",
    state=OperationState.RUNNING,
    budget=Budget(deadline=T0 + 3600 * S, status_requests=50, transport_failures=5, rate_limited=10),
    created_at=T0,
    accepted_at=T0,
    fence=7,
)


def table(status: Mapping[str, object] | None = None, **changes: object) -> ProviderTable:
    """The standard table with changes to ``status`` and to itself."""
    return replace(TABLE, status=replace(STATUS, **(status or {})), **changes)  # type: ignore[arg-type]


def answered(value: object = None, status: int = 200, *headers: tuple[str, str], raw: bytes | None = None) -> Answered:
    """A JSON answer; ``raw`` gives the bytes instead."""
    content = json.dumps(value).encode() if raw is None else raw
    return Answered(status=status, headers=(*headers, *JSON), body=content)


def members(**values: object) -> JsonObject:
    """A JSON object as the parser makes it."""
    return JsonObject(list(values.items()))


def answer(document: object, status: int = 200, *headers: tuple[str, str]) -> Answer:
    return Answer(status=status, headers=headers, document=document)


# --- submissions ------------------------------------------------------------------------------------

SUBMIT = SubmitSpec(
    request=RequestSpec(method="POST", path="/v1/jobs", body_kind=BodyKind.JSON, body="{payload}"),
    accepted=AcceptedSpec(job_id=(IdPlace(parts=(body("/id"),)),)),
    accepted_http=frozenset({202}),
    error=(body("/error"),),
)
SENT = SubmitBytes(
    method="POST",
    url="https://api.provider.example/v1/jobs",
    headers=(("Accept", "application/json"), ("Content-Type", "application/json")),
    body=b'{"name":"n-1","rows":3}',
)
SUBMITTED = replace(OPERATION, job_id="", state=OperationState.SUBMITTING, accepted_at=None, idempotency_key="op-1")


def submitting(submit: Mapping[str, object] | None = None, **changes: object) -> ProviderTable:
    """The standard table with a submission, with changes to it and to the table."""
    return table(submit=replace(SUBMIT, **(submit or {})), **changes)  # type: ignore[arg-type]
