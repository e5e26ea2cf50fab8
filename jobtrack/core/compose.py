"""A submission as exact bytes, its idempotency key and the fingerprint of its content (R-ID-2, R-ID-3, INV-17)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from jobtrack.core import template
from jobtrack.core.actions import Idempotency, SubmitSpec
from jobtrack.core.audit import canonical
from jobtrack.core.paging import with_query
from jobtrack.core.place import Body, BodyKind, Gap
from jobtrack.core.request import check_params, lookup_request, submit_request, table_url
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.table import ProviderTable
from jobtrack.core.template import CONTROL, Values
from jobtrack.errors import UsageError

__all__ = ["Prepared", "idempotency_key", "json_value", "lookup_request", "prepare", "submit_request"]

MAX_DEPTH = 50
MAX_BODY = 1 << 20
"""Most bytes of a request body; the bytes are kept in the operation's row."""

MAX_URL = 8192
_MAX_BITS = 10_000  # of an integer: more digits than this no JSON reader takes

_NAMESPACE = bytes.fromhex("6f9d4c6e5b1e5f0c9a3a7d0f4b8e21c7")
"""Fixed for ever: the keys of all stored operations are derived with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is stored before anything is sent."""

    submission: SubmitBytes  # every attempt sends exactly this, plus its own request id and the credential
    key: str  # belongs to the operation; it is in the bytes where the table has a place for it
    fingerprint: str  # 64 hex digits


def prepare(
    table: ProviderTable,
    *,
    operation_id: str,
    account: str,
    payload: object,
    params: Mapping[str, str],
    reference: str = "",
    preconditions: Mapping[str, str] | None = None,
) -> Prepared:
    """Write a submission down, once and for all: equal arguments give equal bytes.

    Args:
        table: The provider's table.
        operation_id: The caller's own id of the business operation.
        account: Names one environment of the provider.
        payload: What the caller wants to have done: a JSON value. Members keep their order.
        params: The table's parameters, but for those that the acceptance will tell.
        reference: The caller's own word for it.
        preconditions: Headers such as ``If-Match`` (R-SUB-7), of those the table lists.

    Raises:
        UsageError: The table submits nothing, or something given cannot be put where the table wants it.
    """
    spec = table.submit
    if spec is None:
        raise UsageError(f"table {table.id} does not submit jobs; follow one that was submitted elsewhere with track()")
    for name, text in (("operation id", operation_id), ("reference", reference)):
        if CONTROL.search(text):
            raise UsageError(f"the {name} has a control character")
    check_params(table, params, submitting=True)
    content = json_value(payload)
    conditions = _conditions(spec, preconditions or {})
    key = idempotency_key(spec.idempotency, operation_id)
    texts = {**params, "operation_id": operation_id, "idempotency_key": key, "reference": reference}
    values = Values(texts={name: text for name, text in texts.items() if text}, payload={"": content})
    return Prepared(
        submission=_bytes(table, spec, values, key, conditions),
        key=key,
        fingerprint=_fingerprint(spec, operation_id, [table.id, account, dict(params), content, sorted(conditions)]),
    )


# --- what the caller gives ---------------------------------------------------------------------------


def json_value(value: object, where: str = "", depth: int = 0) -> object:
    """A plain copy of a JSON value; tuples become lists.

    Raises:
        UsageError: It is none; the message names the place.
    """
    if depth > MAX_DEPTH:
        raise UsageError(f"the payload is nested deeper than {MAX_DEPTH} levels", pointer=where)
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, where)
        case int():
            return _integer(value, where)
        case float():
            return _float(value, where)
        case dict():
            return {_name(key, where): json_value(item, _below(where, key), depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [json_value(item, _below(where, index), depth + 1) for index, item in enumerate(value)]
        case _:
            raise _refused(where, f"is of type {type(value).__name__}, which JSON cannot say")


def _refused(where: str, problem: str) -> UsageError:
    return UsageError(f"the payload {f'at {where} ' if where else ''}{problem}", pointer=where)


def _below(where: str, token: object) -> str:
    text = str(token).encode("ascii", "backslashreplace").decode("ascii")
    return f"{where}/{text.replace('~', '~0').replace('/', '~1')}"[:500]


def _text(value: str, where: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(where, "has a lone surrogate, which is no text") from None
    return str.__str__(value)


def _integer(value: int, where: str) -> int:
    if value.bit_length() > _MAX_BITS:
        raise _refused(where, "is a number with too many digits")
    return int(value)


def _float(value: float, where: str) -> float:
    if not math.isfinite(value):
        raise _refused(where, "is not a finite number")
    return float(value)


def _name(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise _refused(where, f"has a member whose name is of type {type(key).__name__}; names are texts")
    return _text(key, where)


def _conditions(spec: SubmitSpec, given: Mapping[str, object]) -> list[tuple[str, str]]:
    """Preconditions by the names of the table.

    Raises:
        UsageError: One that the table does not list, that is given twice, or that no header can hold.
    """
    listed = {name.lower(): name for name in spec.preconditions}
    chosen: dict[str, str] = {}
    for name, value in given.items():
        known = listed.get(name.lower())
        if known is None:
            raise UsageError(f"the table lists no precondition {name!r}", preconditions=sorted(spec.preconditions))
        if known in chosen:
            raise UsageError(f"the precondition {known!r} is given twice")
        if not isinstance(value, str) or not value.strip() or value != value.strip():
            raise UsageError(f"the precondition {known!r} is empty, no text, or has spaces around it")
        chosen[known] = template.printable(value)
    return list(chosen.items())


# --- key and fingerprint -----------------------------------------------------------------------------


def idempotency_key(spec: Idempotency | None, operation_id: str) -> str:
    """The operation's one key (R-ID-3): its id, or a name-based UUID (RFC 9562, version 5) where one is wanted."""
    if spec is None or not spec.uuid:
        return operation_id
    digest = bytearray(hashlib.sha1(_NAMESPACE + operation_id.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _fingerprint(spec: SubmitSpec, operation_id: str, content: list[object]) -> str:
    """Of the content that counts; ``content[3]`` is the payload."""
    content[3] = _without(content[3], spec.ignore)
    return hashlib.sha256(canonical([operation_id, *content]).encode("ascii")).hexdigest()


def _without(value: object, ignored: tuple[Body, ...]) -> object:
    for place in ignored:
        value = _drop(value, [str(token) for token in place.tokens])
    return value


def _drop(value: object, tokens: list[str]) -> object:
    """A copy without one member. An item of a list leaves null behind, so that the others keep their places."""
    if not tokens or template.member(value, tokens[0]) is Gap.ABSENT:
        return value
    first, *rest = tokens
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name != first or rest}
        return {name: _drop(item, rest) if name == first else item for name, item in kept.items()}
    assert isinstance(value, list)  # nothing else has members
    return [item if index != int(first) else (_drop(item, rest) if rest else None) for index, item in enumerate(value)]


# --- the bytes ---------------------------------------------------------------------------------------


def _bytes(
    table: ProviderTable,
    spec: SubmitSpec,
    values: Values,
    key: str,
    conditions: list[tuple[str, str]],
) -> SubmitBytes:
    request, keyed = spec.request, spec.idempotency or Idempotency()
    params = {name: text for name, text in values.texts.items() if name in table.params}
    url = table_url(table, request, values, params)
    if keyed.query:
        url = with_query(url, keyed.query, key)
    content = template.content(request, values)
    if keyed.body is not None:
        content = _with_key(request.body_kind, content, keyed.body, key)
    content_type, body = template.written(request.body_kind, content)
    if len(body) > MAX_BODY or len(url) > MAX_URL:
        raise UsageError(f"the request is too large: its body may have {MAX_BODY} bytes, its address {MAX_URL}")
    extra = [*conditions, (keyed.header, template.printable(key))] if keyed.header else conditions
    return SubmitBytes(
        method=request.method, url=url, headers=_headers(request.headers, values, content_type, extra), body=body
    )


def _headers(
    written: tuple[tuple[str, str], ...], values: Values, content_type: str, extra: list[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Later ones win by name; the request id is each attempt's own."""
    chosen = {"accept": ("Accept", "application/json")}
    if content_type:
        chosen["content-type"] = ("Content-Type", content_type)
    for name, text in written:
        value = template.header(text, values)
        if value is not None:
            chosen[name.lower()] = (name, value)
    chosen.update({name.lower(): (name, value) for name, value in extra})
    chosen.pop("x-request-id", None)
    return tuple(chosen.values())


def _with_key(kind: BodyKind, content: object, place: Body, key: str) -> object:
    """The body with the key at its place, in GraphQL inside the variables.

    Raises:
        UsageError: The body has no such place, or something else is there already.
    """
    tokens = [str(token) for token in place.tokens]
    return _put(content, ["variables", *tokens] if kind is BodyKind.GRAPHQL else tokens, key, place.source)


def _put(value: object, tokens: list[str], key: str, source: str) -> object:
    if not isinstance(value, dict) or not tokens:
        raise UsageError(f"the body has no member {source}, where the table puts the idempotency key")
    first, *rest = tokens
    if rest:
        return {**value, first: _put(value.get(first, {}), rest, key, source)}
    if value.get(first, key) != key:
        raise UsageError(f"the payload has {source} already, where the table puts the idempotency key")
    return {**value, first: key}
