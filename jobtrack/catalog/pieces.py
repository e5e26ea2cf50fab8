"""Pieces that several parts of a table are made of: requests, codes, ids, addresses, pages."""

from __future__ import annotations

from typing import Any

from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import NOWHERE, Reader, fill, flag, named, text, whole
from jobtrack.core.actions import IdPart, IdPlace, NextPage, Segment, SentText, SentUrl, UrlPlace
from jobtrack.core.place import Body, BodyKind, Header, Locator, RequestSpec

_NO_ID = IdPlace(parts=())


def request(node: Node, reader: Reader, method: str = "GET") -> RequestSpec:
    """A request as written.

    Args:
        node: The request.
        reader: Gets what is wrong with it.
        method: What it is if the table does not say.
    """
    bodies = [kind for kind in ("json", "form", "graphql") if node.get(kind) is not None]
    if len(bodies) > 1:
        reader.report.add(node.mark, node.path, "request", f"Write only one of {', '.join(bodies)} here.")
    kind = BodyKind(bodies[0]) if bodies else BodyKind.NONE
    body = node.get(kind)
    written = {"method": method, **fill(node, method=text, path=text, query=named, headers=named)}
    return RequestSpec(body_kind=kind, body=None if body is None else body.plain(), **written)


def codes(node: Node) -> frozenset[int]:
    """A list of codes, where ``4xx`` stands for a hundred of them."""
    found: set[int] = set()
    for item in node.items():
        if isinstance(item.value, int):
            found.add(item.value)
        else:
            hundred = int(text(item)[0]) * 100
            found.update(range(hundred, hundred + 100))
    return frozenset(found)


def answer_codes(node: Node | None) -> frozenset[int]:
    """The codes under ``http`` of a mapping such as ``rejected: {http: [400]}``; none if it is not there."""
    listed = None if node is None else node.get("http")
    return frozenset() if listed is None else codes(listed)


def placed(node: Node, reader: Reader) -> tuple[tuple[str, Locator], ...]:
    """Names and places of a mapping, in order."""
    return tuple((name, reader.place(place)) for name, place in node.pairs())


def bodies(node: Node, reader: Reader) -> tuple[Body, ...]:
    return tuple(reader.body(item) for item in node.items())


def body_or_bodies(node: Node, reader: Reader) -> Body | tuple[Body, ...]:
    """A place, or a list of places, which stays one if it has a single member."""
    return bodies(node, reader) if isinstance(node.value, list) else reader.body(node)


def carrier(node: Node, reader: Reader) -> Body | Header:
    """A place in the body, or a header."""
    return reader.body(node) if isinstance(node.value, str) else reader.body_or_header(node, "body")


def carriers(node: Node, reader: Reader) -> tuple[Body | Header, ...]:
    return tuple(carrier(item, reader) for item in node.items())


def urls(node: Node, reader: Reader) -> tuple[UrlPlace, ...]:
    """Places of a status URL, in order."""
    return tuple(_url(item, reader) for item in node.items())


def _url(node: Node, reader: Reader) -> UrlPlace:
    if node.get("request") is None:
        return carrier(node, reader)
    _one_of(node, ("body", "header", "request"), reader)
    return SentUrl()


# --- ids ---------------------------------------------------------------------------------------------


def ids(node: Node, reader: Reader) -> tuple[IdPlace, ...]:
    """Places of a job id, in order."""
    return tuple(_id(item, reader) for item in node.items())


def _id(node: Node, reader: Reader) -> IdPlace:
    joined = node.get("join")
    if joined is None:
        joiner = node.get("with")
        if joiner is not None:
            reader.report.add(node.key_mark("with"), joiner.path, "place", "with goes with join only; remove it.")
        return IdPlace(parts=(_part(node, reader, ("body", "header", "sent", "join")),))
    if not _one_of(node, ("body", "header", "sent", "join"), reader):
        return _NO_ID
    if (segment := node.get("segment")) is not None:
        reader.report.add(
            node.key_mark("segment"), segment.path, "place", "segment goes with one part; write it inside join."
        )
    parts = tuple(_part(item, reader, ("body", "header", "sent")) for item in joined.items())
    return IdPlace(parts=parts, joiner=fill(node, **{"with": text}).get("with", ""))


def _part(node: Node, reader: Reader, ways: tuple[str, ...]) -> IdPart:
    if isinstance(node.value, str):
        return reader.body(node)
    segment = node.get("segment")
    if not _one_of(node, ways, reader):
        return NOWHERE
    if (sent := node.get("sent")) is not None:
        if segment is not None:
            reader.report.add(
                node.key_mark("segment"), segment.path, "place", "segment goes with body or header; remove it."
            )
        return SentText(text(sent))
    at = reader.body_or_header(node, "body")
    return at if segment is None else Segment(at, whole(segment))


def _one_of(node: Node, ways: tuple[str, ...], reader: Reader) -> bool:
    """Whether exactly one of these keys is written; reported if not."""
    if sum(node.get(way) is not None for way in ways) == 1:
        return True
    listed = f"{', '.join(ways[:-1])} and {ways[-1]}"
    reader.report.add(node.mark, node.path, "place", f"Write exactly one of {listed} here.")
    return False


# --- pages -------------------------------------------------------------------------------------------

_WAYS = ("body", "link", "token", "header")


def next_page(node: Node, reader: Reader) -> NextPage | None:
    """How a list goes on; None if it cannot be read (reported)."""
    if not _one_of(node, _WAYS, reader):
        return None
    name, place = node.get("header"), node.get("token")
    token = Header(text(name)) if name is not None else None if place is None else reader.body(place)
    for key in ("query", "end"):
        if node.get(key) is not None and token is None:
            reader.report.add(
                node.key_mark(key), (*node.path, key), "next", f"{key} goes with token or header only; remove it."
            )
    if token is not None and node.get("query") is None:
        message = "A token needs the query parameter that takes it; write query: page_token, or whatever its name is."
        reader.report.add(node.mark, node.path, "next", message)
    return NextPage(token=token, **_renamed(node, reader))


def _renamed(node: Node, reader: Reader) -> dict[str, Any]:
    read = fill(node, body=reader.body, link=flag, query=text, end=text)
    return {"url" if key == "body" else key: value for key, value in read.items()}
