"""The requests of an operation, built purely from its table (R-SUB-6): no address the table does not define."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from jobtrack.core import sentences_request as say
from jobtrack.core import template
from jobtrack.core.actions import NextPage
from jobtrack.core.operation import Operation
from jobtrack.core.paging import with_query
from jobtrack.core.place import RequestSpec
from jobtrack.core.reply import Request
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.sent import recovered
from jobtrack.core.table import ParamPattern, ProviderTable
from jobtrack.core.target import allowed_origins, origin_of, target_allowed
from jobtrack.core.template import CONTROL, INTEGER, Values
from jobtrack.errors import UsageError

__all__ = [
    "MAX_JOB_ID",
    "allowed_origins",
    "cancel_request",
    "check_job_id",
    "check_params",
    "fits",
    "lookup_request",
    "status_request",
    "status_url",
    "submit_request",
    "table_request",
    "table_url",
    "target_allowed",
    "texts_of",
]

MAX_JOB_ID = 500
"""Most characters of a job id: every store keeps it whole."""

_PATTERNS: Mapping[ParamPattern, re.Pattern[str]] = {
    ParamPattern.DNS_LABEL: re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"),
    ParamPattern.SLUG: re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,200}"),
    ParamPattern.SEGMENT: re.compile(r"(?!\.{1,2}$)[^/\\?#]{1,500}"),
    ParamPattern.UUID: re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    ParamPattern.INTEGER: INTEGER,
}
_CONDITIONAL = frozenset({"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"})
"""A conditional status request could be answered with "unchanged", which says nothing about the job."""


# --- what may be put into a request ----------------------------------------------------------------


def check_job_id(job_id: str) -> None:
    """Raises UsageError if this cannot be a job id: empty, ``.``, ``..``, too long, or with control characters."""
    if job_id in ("", ".", ".."):
        raise UsageError(say.JOB_ID_NOT.of(job=repr(job_id)))
    if CONTROL.search(job_id):
        raise UsageError(say.JOB_ID_CONTROL.of())
    if len(job_id) > MAX_JOB_ID:
        raise UsageError(say.JOB_ID_LONG.of(most=MAX_JOB_ID))


def check_params(table: ProviderTable, params: Mapping[str, str], *, submitting: bool = False) -> None:
    """Raises UsageError unless exactly the table's parameters are given and each fits its pattern.

    Args:
        submitting: the job does not exist yet: parameters that its acceptance will tell are not given now.
    """
    wanted = {name for name, param in table.params.items() if not submitting or param.source != "answer"}
    missing = sorted(wanted - params.keys())
    unknown = sorted(params.keys() - wanted, key=str)
    if missing:
        raise UsageError(say.NEEDS_PARAMETER.of(table=table.id, name=repr(missing[0])), parameters=missing)
    if unknown and submitting and unknown[0] in table.params:
        raise UsageError(say.TOLD_PARAMETER.of(name=repr(unknown[0]), table=table.id), parameters=unknown)
    if unknown:
        raise UsageError(say.NO_SUCH_PARAMETER.of(table=table.id, name=repr(unknown[0])), parameters=unknown)
    for name, value in params.items():
        if not fits(value, table.params[name].pattern):
            pattern = table.params[name].pattern
            raise UsageError(say.PARAMETER_MISFIT.of(name=repr(name), table=table.id, pattern=pattern))


def fits(value: object, pattern: ParamPattern) -> bool:
    """Whether a value may be a parameter with this pattern."""
    return isinstance(value, str) and not CONTROL.search(value) and _PATTERNS[pattern].fullmatch(value) is not None


# --- the address ------------------------------------------------------------------------------------


def status_url(table: ProviderTable, *, job_id: str, params: Mapping[str, str], handle: str = "") -> str:
    """The address that status requests of a job go to, query included, fixed when the job is first known.

    Args:
        table: The provider's table; its first host is used.
        job_id: The provider's id, as text; "" only if there is a handle.
        params: The table's parameters.
        handle: The secret to poll with, if the table asks for one. An address that has it must be kept sealed.

    Returns:
        An absolute URL on one of the table's origins; "" if the table builds none (the provider gives the URL).

    Raises:
        UsageError: A job id or parameter that cannot be accepted.
    """
    if job_id or not handle:
        check_job_id(job_id)
    check_params(table, params)
    spec = table.status.request
    if not spec.path:
        return ""
    return table_url(table, spec, Values(texts=_known({**params, "job_id": job_id, "handle": handle})), params)


def table_url(table: ProviderTable, spec: RequestSpec, values: Values, params: Mapping[str, str]) -> str:
    """An address that the table defines, on its first host.

    Args:
        params: The operation's parameters; only they fill the host.

    Raises:
        UsageError: A placeholder has no value or one that would change the address.
    """
    url = template.fill(table.hosts[0], Values(texts=params)) or ""
    url += template.path(spec.path, values)
    query = template.query(spec.query, values)
    if query:
        url += "?" + query
    if origin_of(url, loopback=table.allow_loopback) not in allowed_origins(table, params):
        raise UsageError(say.NOT_ON_HOSTS.of(table=table.id))
    return url


def _known(texts: Mapping[str, str]) -> dict[str, str]:
    """What is empty is not there: it must not quietly become a part of a request."""
    return {name: text for name, text in texts.items() if text}


def texts_of(operation: Operation, handle: str = "") -> dict[str, str]:
    """What placeholders of an operation's requests stand for, by name; what it does not have is left out."""
    return _known(
        {
            **operation.params,
            "operation_id": operation.id,
            "idempotency_key": operation.idempotency_key,
            "reference": operation.reference,
            "job_id": operation.job_id,
            "handle": handle,
        }
    )


# --- the requests -----------------------------------------------------------------------------------


def table_request(
    table: ProviderTable, operation: Operation, spec: RequestSpec, values: Values, *, url: str = ""
) -> Request:
    """A request as the table writes it, complete but for credentials.

    Args:
        values: What its placeholders stand for; start from ``texts_of``.
        url: The address; "": as the table builds it.

    Raises:
        UsageError: A placeholder has no value, or one that cannot be put in its place.
    """
    content_type, body = template.written(spec.body_kind, template.content(spec, values))
    return _request(
        table,
        operation,
        SubmitBytes(
            method=spec.method,
            url=url or table_url(table, spec, values, operation.params),
            headers=_headers(spec, values, content_type),
            body=body,
        ),
    )


def _request(table: ProviderTable, operation: Operation, sent: SubmitBytes) -> Request:
    """With the one header that names this very request."""
    return Request(
        operation_id=operation.id,
        fence=operation.fence,
        provider=operation.provider,
        account=operation.account,
        method=sent.method,
        url=sent.url,
        headers=(*sent.headers, ("X-Request-Id", f"{operation.id}:{operation.fence}")),
        body=sent.body,
        origins=tuple(sorted(allowed_origins(table, operation.params))),
    )


def _headers(spec: RequestSpec, values: Values, content_type: str) -> tuple[tuple[str, str], ...]:
    """Our own headers first; a table may say another Accept or Content-Type, never an id or a condition."""
    chosen = {"accept": ("Accept", "application/json")}
    if content_type:
        chosen["content-type"] = ("Content-Type", content_type)
    for name, text in spec.headers:
        value = template.header(text, values)
        if value is not None and name.lower() not in _CONDITIONAL:
            chosen[name.lower()] = (name, value)
    chosen["cache-control"] = ("Cache-Control", "no-cache")
    chosen.pop("x-request-id", None)
    return tuple(chosen.values())


_built = status_url


def status_request(table: ProviderTable, operation: Operation, *, status_url: str = "", handle: str = "") -> Request:
    """The next status request of a claimed operation, complete but for credentials.

    The stored status URL is the address if there is one: authority stays as granted. Ask ``target_allowed``
    first whether the table still allows it.

    Args:
        status_url: One that is kept sealed; it counts before the row's own.
        handle: The secret to poll with, kept sealed as well.

    Raises:
        UsageError: There is no address, or a value cannot be put in its place.
    """
    url = status_url or operation.status_url
    if not url:
        url = _built(table, job_id=operation.job_id, params=operation.params, handle=handle)
    if not url:
        raise UsageError(say.NO_STATUS_ADDRESS.of(table=table.id))
    return table_request(table, operation, table.status.request, Values(texts=texts_of(operation, handle)), url=url)


def submit_request(table: ProviderTable, operation: Operation, sent: SubmitBytes) -> Request:
    """A submission as it was stored, byte for byte, plus the attempt's own X-Request-Id (INV-17). Never raises.

    If the newest table no longer allows the address the transport refuses it, unsent.
    """
    return _request(table, operation, sent)


def lookup_request(
    table: ProviderTable, operation: Operation, sent: SubmitBytes | None = None, *, page: str = ""
) -> Request:
    """One page of a look-up.

    Args:
        sent: The submission, as long as it is kept: placeholders of the payload are read back out of it.
        page: "" for the first page; else ``LookupSeen.next``, a URL or a token.

    Raises:
        UsageError: The table has no look-up, a placeholder has no value, or the page is not on an allowed origin.
    """
    submit = table.submit
    if submit is None or submit.lookup is None:
        raise UsageError(say.NO_LOOK_UP.of(table=table.id))
    spec, values = submit.lookup, Values(texts=texts_of(operation), payload=recovered(submit.request, sent))
    request = table_request(table, operation, spec.request, values)
    if not page or spec.next is None:
        return request
    url = _next_url(request.url, spec.next, page)
    _on_host(table, operation, url)
    return replace(request, url=url)


def _next_url(url: str, following: NextPage, page: str) -> str:
    return page if following.token is None else with_query(url, following.query, page)


def _on_host(table: ProviderTable, operation: Operation, url: str) -> None:
    if not target_allowed(url, table, operation.params):
        raise UsageError(say.ADDRESS_NOT_ALLOWED.of(table=table.id))


def cancel_request(table: ProviderTable, operation: Operation, handle: str = "") -> Request:
    """The request that asks the provider to cancel the job.

    A request without a path goes to the operation's status URL; ask ``target_allowed`` first.

    Raises:
        UsageError: The table documents no cancellation, or there is no address or no value for a placeholder.
    """
    if table.cancel is None:
        raise UsageError(say.NO_CANCELLATION.of(table=table.id))
    spec, values = table.cancel.request, Values(texts=texts_of(operation, handle))
    if not spec.path and not operation.status_url:
        raise UsageError(say.NO_CANCEL_ADDRESS.of(table=table.id))
    return table_request(table, operation, spec, values, url="" if spec.path else operation.status_url)
