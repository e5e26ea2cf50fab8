"""The status request of an operation, built purely from its table (R-SUB-6): no address the table does not define."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, urlencode

from jobtrack.core.operation import Operation
from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.reply import Request
from jobtrack.core.table import ParamPattern, ProviderTable
from jobtrack.core.target import allowed_origins, origin_of, target_allowed
from jobtrack.errors import UsageError

__all__ = [
    "allowed_origins",
    "check_job_id",
    "check_params",
    "status_request",
    "status_url",
    "target_allowed",
]

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLACEHOLDER = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_-]*)\}")
_LEAF = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)(:int)?\}")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,63}")
_PATTERNS: Mapping[ParamPattern, re.Pattern[str]] = {
    ParamPattern.DNS_LABEL: re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"),
    ParamPattern.SLUG: re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,200}"),
    ParamPattern.SEGMENT: re.compile(r"(?!\.{1,2}$)[^/\\?#]{1,500}"),
    ParamPattern.UUID: re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    ParamPattern.INTEGER: _INTEGER,
}
_CONDITIONAL = frozenset({"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"})
"""A conditional status request could be answered with "unchanged", which says nothing about the job."""


# --- what may be put into a request ----------------------------------------------------------------


def check_job_id(job_id: str) -> None:
    """Raises UsageError if this cannot be a provider's job id: empty, ``.``, ``..``, or with control characters."""
    if job_id in ("", ".", ".."):
        raise UsageError(f"the job id may not be {job_id!r}")
    if _CONTROL.search(job_id):
        raise UsageError("the job id has a control character")


def check_params(table: ProviderTable, params: Mapping[str, object]) -> None:
    """Raises UsageError unless exactly the table's parameters are given and each fits its pattern."""
    missing = sorted(table.params.keys() - params.keys())
    unknown = sorted(params.keys() - table.params.keys(), key=str)
    if missing:
        raise UsageError(f"table {table.id} needs the parameter {missing[0]!r}", parameters=missing)
    if unknown:
        raise UsageError(f"table {table.id} has no parameter {unknown[0]!r}", parameters=unknown)
    for name, param in table.params.items():
        value = params[name]
        if not isinstance(value, str) or _CONTROL.search(value) or not _PATTERNS[param.pattern].fullmatch(value):
            raise UsageError(f"the parameter {name!r} of table {table.id} is not a {param.pattern}")


# --- the address ------------------------------------------------------------------------------------


def status_url(table: ProviderTable, *, job_id: str, params: Mapping[str, str]) -> str:
    """The address that status requests of a job go to, query included, fixed at the operation's start.

    Args:
        table: The provider's table; its first host is used.
        job_id: The provider's id, as text.
        params: The table's parameters.

    Returns:
        An absolute URL on one of the table's origins; "" if the table builds none (the provider gives the URL).

    Raises:
        UsageError: A job id or parameter that cannot be accepted.
    """
    check_job_id(job_id)
    check_params(table, params)
    spec = table.status.request
    if not spec.path:
        return ""
    values = {**params, "job_id": job_id}
    url = _fill(table.hosts[0], params) + _fill(spec.path, values, _segment, _segments)
    if spec.query:
        url += "?" + urlencode([(name, _fill(value, values)) for name, value in spec.query], quote_via=quote)
    if origin_of(url, loopback=table.allow_loopback) not in allowed_origins(table, params):
        raise UsageError(f"the status address of table {table.id} is not on one of its hosts with these parameters")
    return url


def _plain(value: str) -> str:
    return value


def _fill(
    template: str,
    values: Mapping[str, str],
    encode: Callable[[str], str] = _plain,
    spread: Callable[[str], str] | None = None,
) -> str:
    """Replace placeholders: ``{name}`` through ``encode``, ``{+name}`` through ``spread`` where slashes may stay."""
    return _PLACEHOLDER.sub(
        lambda match: (spread if spread and match[1] else encode)(_value(match[2], values)),
        template,
    )


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        raise UsageError(f"the table has no value for {{{name}}}", parameters=[name])
    return values[name]


def _segment(value: str) -> str:
    if value in ("", ".", ".."):
        raise UsageError("a path segment may not be empty, '.' or '..'")
    return quote(value, safe="")


def _segments(value: str) -> str:
    if "?" in value or "#" in value or "\\" in value:
        raise UsageError("a job id that spans path segments may not have '?', '#' or a backslash")
    return "/".join(_segment(segment) for segment in value.split("/"))


# --- the request ------------------------------------------------------------------------------------


def status_request(table: ProviderTable, operation: Operation) -> Request:
    """The next status request of a claimed operation, complete but for credentials.

    The stored status URL is the address if there is one: authority stays as granted. Ask ``target_allowed``
    first whether the table still allows it.

    Raises:
        UsageError: There is no address, or a job id or parameter cannot be put in its place.
    """
    url = operation.status_url or status_url(table, job_id=operation.job_id, params=operation.params)
    if not url:
        raise UsageError(f"table {table.id} builds no status address and the operation has none")
    spec = table.status.request
    values = {**operation.params, "job_id": operation.job_id}
    content_type, body = _body(spec, values)
    return Request(
        operation_id=operation.id,
        fence=operation.fence,
        provider=operation.provider,
        account=operation.account,
        method=spec.method,
        url=url,
        headers=_headers(spec, values, content_type, f"{operation.id}:{operation.fence}"),
        body=body,
        origins=tuple(sorted(allowed_origins(table, operation.params))),
    )


def _headers(
    spec: RequestSpec, values: Mapping[str, str], content_type: str, request_id: str
) -> tuple[tuple[str, str], ...]:
    """Our own headers first; a table may say another Accept or Content-Type, never another id or a condition."""
    chosen = {"accept": ("Accept", "application/json")}
    if content_type:
        chosen["content-type"] = ("Content-Type", content_type)
    for name, value in spec.headers:
        if name.lower() not in _CONDITIONAL:
            chosen[name.lower()] = (name, _fill(value, values, _field))
    chosen["cache-control"] = ("Cache-Control", "no-cache")
    chosen["x-request-id"] = ("X-Request-Id", request_id)
    return tuple(chosen.values())


def _field(value: str) -> str:
    if not value.isascii() or not value.isprintable():
        raise UsageError("a header can only hold printable ASCII characters")
    return value


def _body(spec: RequestSpec, values: Mapping[str, str]) -> tuple[str, bytes]:
    """Content type and bytes; "" and nothing for a request without a body."""
    if spec.body_kind is BodyKind.NONE:
        return "", b""
    if spec.body_kind is BodyKind.FORM:
        return "application/x-www-form-urlencoded", _form(_leaves(spec.body, values))
    if spec.body_kind is BodyKind.JSON:
        return "application/json", _json(_leaves(spec.body, values))
    # GraphQL: the query text is code of the table; only its variables take values.
    parts = spec.body if isinstance(spec.body, Mapping) else {}
    variables = _leaves(parts.get("variables", {}), values)
    return "application/json", _json({"query": parts.get("query", ""), "variables": variables})


def _form(fields: object) -> bytes:
    named = fields.items() if isinstance(fields, dict) else ()
    texts = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in named]
    return urlencode(texts).encode("ascii")


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def _leaves(value: object, values: Mapping[str, str]) -> object:
    """A copy with every whole-leaf placeholder replaced: ``{name}`` by the text, ``{name:int}`` by the integer."""
    match value:
        case str():
            leaf = _LEAF.fullmatch(value)
            return _leaf(leaf, values) if leaf else value
        case Mapping():
            return {str(name): _leaves(item, values) for name, item in value.items()}
        case list() | tuple():
            return [_leaves(item, values) for item in value]
        case _:
            return value


def _leaf(leaf: re.Match[str], values: Mapping[str, str]) -> str | int:
    text = _value(leaf[1], values)
    if not leaf[2]:
        return text
    if not _INTEGER.fullmatch(text):
        raise UsageError(f"the table needs {{{leaf[1]}}} as an integer")
    return int(text)
