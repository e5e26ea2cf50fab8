"""``manage.py jobtrack_export_audit``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandError

from jobtrack.core.audit import closing_line, entry_line
from jobtrack.errors import CredentialError
from jobtrack_django import conf
from jobtrack_django.api import get_operation
from jobtrack_django.management.told import ToldCommand
from jobtrack_django.models import AuditEntry
from jobtrack_django.runtime import secret

_CHUNK = 2000


class Command(ToldCommand):
    help = "Write audit chains as JSON lines for `jobtrack verify-audit`; the last line states and signs their heads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", nargs="*", help="only these operations (default: all)")

    def handle(self, *_: Any, **options: Any) -> None:
        ids = [get_operation(operation_id).pk for operation_id in options["id"]]  # a mistyped id is no empty export
        for line in export(ids, key=_key()):
            self.stdout.write(line)


def export(ids: list[str], *, key: bytes | None) -> Iterator[str]:
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


def _key() -> bytes | None:
    reference = conf.settings().audit_key
    try:
        return secret(reference).encode() if reference else None
    except CredentialError as error:
        raise CommandError(f"AUDIT_KEY: {error.message}.") from None
