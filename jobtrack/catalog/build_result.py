"""The ``result`` part of a table: how the result of a successful job is fetched."""

from __future__ import annotations

from functools import partial

from jobtrack.catalog import pieces
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import Reader, fill, flag, texts, whole
from jobtrack.core.actions import FetchSpec, Hop


def build_result(node: Node | None, reader: Reader) -> FetchSpec | None:
    """Build the result part of a tree that fits the schema; None if the table has none."""
    if node is None:
        return None
    return FetchSpec(
        hop=_hop(node, "request", "values", reader),
        per_item=_hop(node, "item_request", "item_values", reader),
        **fill(
            node,
            value=reader.body,
            url=partial(pieces.carriers, reader=reader),
            each=partial(pieces.body_or_bodies, reader=reader),
            name=reader.place,
            next=partial(pieces.next_page, reader=reader),
            pages=whole,
            redirects=texts,
            credential_hosts=texts,
            types=texts,
            max_bytes=whole,
            total=reader.duration,
            attempts=whole,
            ranges=flag,
            empty_ok=flag,
        ),
    )


def _hop(node: Node, asked: str, named: str, reader: Reader) -> Hop | None:
    request, values = node.get(asked), node.get(named)
    if request is not None:
        return Hop(
            request=pieces.request(request, reader),
            values=() if values is None else pieces.placed(values, reader),
        )
    if values is not None and not reader.report.touched((*node.path, asked)):
        reader.report.add(
            node.key_mark(named), values.path, "result", f"{named} goes with {asked}; write both or remove it."
        )
    return None
