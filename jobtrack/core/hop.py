"""The requests on the way to a result: a second document, an item of a list, the file itself (R-END-4)."""

from __future__ import annotations

from collections.abc import Mapping

from jobtrack.core.actions import FetchSpec
from jobtrack.core.fetch import gets_credential
from jobtrack.core.operation import Operation
from jobtrack.core.place import RequestSpec
from jobtrack.core.reply import Request
from jobtrack.core.request import table_request, texts_of
from jobtrack.core.table import ProviderTable
from jobtrack.core.target import origin_of
from jobtrack.core.template import Values


def hop_request(
    table: ProviderTable,
    operation: Operation,
    spec: RequestSpec,
    values: Mapping[str, str],
    *,
    before: Request,
    handle: str = "",
) -> Request:
    """A request that the table writes, on its first host.

    Args:
        values: what was read from the answer before it.
        before: the request that brought that answer; its address is asked again if the table writes no path.
        handle: the secret handle of the operation, if it has one.

    Raises:
        UsageError: a placeholder has no value, or its value cannot be put in its place.
    """
    known = Values(texts={**texts_of(operation, handle), **values})
    return table_request(table, operation, spec, known, url="" if spec.path else before.url)


def file_request(table: ProviderTable, operation: Operation, spec: FetchSpec, url: str) -> Request:
    """The request for a file at a link that was judged: the credential goes only where the table sends it."""
    return Request(
        operation_id=operation.id,
        fence=operation.fence,
        provider=operation.provider,
        account=operation.account,
        method="GET",
        url=url,
        headers=(("Accept", ", ".join(spec.types) or "*/*"),),
        credentials=gets_credential(url, table, spec, operation.params),
        origins=(origin_of(url, loopback=table.allow_loopback),),
    )
