"""The ``webhook`` part of a table: how a notice is verified and what it is about."""

from __future__ import annotations

from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import Reader, fill, text, texts, whole
from jobtrack.core.actions import WebhookScheme, WebhookSpec


def build_webhook(node: Node | None, reader: Reader) -> WebhookSpec | None:
    """Build the webhook part of a tree that fits the schema; None if the table has none."""
    if node is None:
        return None
    return WebhookSpec(
        **fill(
            node,
            scheme=lambda item: WebhookScheme(text(item)),
            header=text,
            prefix=text,
            pairs=text,
            algorithm=text,
            encoding=text,
            signed=texts,
            timestamp=text,
            timestamp_unit=text,
            id_header=text,
            tolerance=reader.duration,
            events=reader.body,
            job_id=reader.body,
            operation_id=reader.body,
            max_bytes=whole,
        )
    )
