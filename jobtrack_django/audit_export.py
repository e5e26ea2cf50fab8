"""Audit chains as lines of a file that `jobtrack verify-audit` checks (R-AUDIT-2, INV-37)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from jobtrack.core.audit import closing_line, entry_line
from jobtrack.errors import CredentialError
from jobtrack_django import conf
from jobtrack_django.models import AuditEntry
from jobtrack_django.runtime import secret

_CHUNK = 2000


def export(ids: Sequence[str], *, key: bytes | None) -> Iterator[str]:
    """The lines of an export. The heads are those of the entries written, so a busy system exports soundly.

    Args:
        ids: operations; empty: all.
        key: signs the closing line; None: it stays unsigned.
    """
    entries = AuditEntry.objects.using(conf.settings().database).order_by("operation_id", "seq")
    if ids:
        entries = entries.filter(operation_id__in=ids)
    heads: dict[str, tuple[int, str]] = {}
    columns = entries.values_list("operation_id", "seq", "prev", "hash", "body")
    for operation_id, seq, previous, digest, body in columns.iterator(chunk_size=_CHUNK):
        heads[operation_id] = (seq, digest)
        yield entry_line(operation_id, seq, previous, digest, body)
    yield closing_line(heads, at=datetime.now(UTC).isoformat(), key=key)


def signing_key() -> bytes | None:
    """The key that ``AUDIT_KEY`` refers to; None if there is no such setting.

    Raises:
        CredentialError: the reference leads nowhere.
    """
    reference = conf.settings().audit_key
    try:
        return secret(reference).encode() if reference else None
    except CredentialError as error:
        raise CredentialError(f"AUDIT_KEY: {error.message}.", **error.context) from None
