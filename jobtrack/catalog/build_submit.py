"""The ``submit`` and ``cancel`` parts of a table: what is sent, and what the answers prove."""

from __future__ import annotations

from functools import partial
from typing import Any

from jobtrack.catalog import pieces
from jobtrack.catalog.build_status import conditions
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import NOWHERE, Reader, fill, flag, number, text, texts, whole
from jobtrack.core.actions import (
    AcceptedSpec,
    CancelSpec,
    Idempotency,
    LookupSpec,
    Recovery,
    SubmitMeaning,
    SubmitRule,
    SubmitSpec,
)
from jobtrack.core.place import Body, BodyKind, RequestSpec

_LISTS = ("accepted", "final", "already", "rejected", "denied", "busy")
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


def build_submit(node: Node | None, reader: Reader) -> SubmitSpec | None:
    """Build the submit part of a tree that fits the schema; None if the table has none."""
    if node is None:
        return None
    listed: dict[str, Any] = {f"{name}_http": pieces.answer_codes(node.get(name)) for name in _LISTS}
    rules = node.get("rules")
    return SubmitSpec(
        rules=() if rules is None else tuple(_rule(item, reader) for item in rules.items()),
        mismatch_http=pieces.answer_codes(node.at("idempotency", "mismatch")),
        recovery=_recovery(node.get("recovery"), reader),
        **listed,
        **fill(
            node,
            request=lambda item: _request(item, reader),
            accepted=lambda item: _accepted(item, reader),
            error=reader.places,
            idempotency=lambda item: _idempotency(item, reader),
            preconditions=texts,
            ignore=lambda item: pieces.bodies(item, reader),
            lookup=lambda item: _lookup(item, reader),
            within=reader.duration,
            attempts=whole,
        ),
    )


def _request(node: Node, reader: Reader) -> RequestSpec:
    """Without a body of its own the request sends the payload."""
    spec = pieces.request(node, reader, "POST")
    if spec.body_kind is not BodyKind.NONE or spec.method not in WITH_BODY:
        return spec
    return RequestSpec(
        method=spec.method,
        path=spec.path,
        query=spec.query,
        headers=spec.headers,
        body_kind=BodyKind.JSON,
        body="{payload}",
    )


def _rule(node: Node, reader: Reader) -> SubmitRule:
    tests = node.get("if")
    assert tests is not None
    return SubmitRule(
        conditions=conditions(tests, reader),
        line=node.mark.line,
        **fill(node, then=lambda item: SubmitMeaning(text(item))),
    )


def _accepted(node: Node, reader: Reader) -> AcceptedSpec:
    return AcceptedSpec(
        **fill(
            node,
            job_id=partial(pieces.ids, reader=reader),
            status_url=partial(pieces.urls, reader=reader),
            paths=texts,
            handle=partial(pieces.carrier, reader=reader),
            params=partial(pieces.placed, reader=reader),
            reads_status=flag,
        )
    )


def _idempotency(node: Node, reader: Reader) -> Idempotency:
    if sum(node.get(way) is not None for way in ("header", "query", "body")) != 1:
        message = "Write exactly one of header, query and body here: where the key goes."
        reader.report.add(node.mark, node.path, "idempotency", message)
    key = node.get("key")
    return Idempotency(
        uuid=key is not None and text(key) == "uuid",
        **fill(
            node,
            header=text,
            query=text,
            body=lambda item: _member(item, reader),
            lifetime=reader.duration,
            scope=text,
            replays_errors=flag,
        ),
    )


def _member(node: Node, reader: Reader) -> Body:
    """A member of a body that we write: only a pointer names one for certain."""
    if text(node).startswith("/"):
        return reader.body(node)
    reader.report.add(node.mark, node.path, "place", f"{node.text} names no member; write a JSON Pointer such as /key.")
    return NOWHERE


def _lookup(node: Node, reader: Reader) -> LookupSpec:
    return LookupSpec(
        absent_http=pieces.answer_codes(node.get("absent")),
        **fill(
            node,
            request=partial(pieces.request, reader=reader),
            found=partial(pieces.ids, reader=reader),
            items=reader.body,
            match=lambda item: tuple((reader.keyed(item, key), text(wanted)) for key, wanted in item.pairs()),
            status_url=partial(pieces.bodies, reader=reader),
            params=partial(pieces.placed, reader=reader),
            absence_is_proof_after=reader.duration,
            next=partial(pieces.next_page, reader=reader),
            pages=whole,
        ),
    )


def _recovery(node: Node | None, reader: Reader) -> Recovery:
    duration = reader.duration
    return Recovery(
        **fill(node, deadline=duration, requests=whole, first=duration, base=duration, factor=number, cap=duration)
    )


def build_cancel(node: Node | None, reader: Reader) -> CancelSpec | None:
    """Build the cancel part of a tree that fits the schema; None if the table has none."""
    if node is None:
        return None
    lists = {"accepted": "accepted_http", "refused": "refused_http"}
    codes: dict[str, Any] = {
        name: pieces.answer_codes(node.get(key)) for key, name in lists.items() if node.get(key) is not None
    }
    return CancelSpec(
        **codes,
        **fill(
            node,
            request=partial(pieces.request, reader=reader, method="POST"),
            effect=lambda item: text(item).strip(),
            repeatable=flag,
        ),
    )
