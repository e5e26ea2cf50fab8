"""A reply as a case or `jobtrack explain` writes it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path

from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Node
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Reply, Sent, Trouble
from jobtrack.testing.provider import no_answer
from jobtrack.testing.reading import Reader, decode, read_text, read_tree, refuse

_BODIES = ("json", "text", "base64")
REPLY_KEYS = ("http", "headers", *_BODIES, "flaw", "error", "sent")


def load_reply(source: str, raw: bytes | None = None) -> Reply:
    """The reply in a file, or in bytes that came from ``source``.

    Raises:
        CaseError: the file cannot be read, or is not a reply; lists every finding.
    """
    report = Report(file=source)
    root = read_tree(read_text(Path(source)) if raw is None else decode(raw, source), report)
    reader = Reader(report=report)
    reply = None if root is None else read_reply(root, reader.mapping(root, allowed=REPLY_KEYS), reader)
    if report.findings or reply is None:
        raise refuse(source, report.ordered())
    return reply


def read_reply(node: Node, keys: Mapping[str, Node], reader: Reader) -> Reply | None:
    """The reply of a mapping: an answer with ``http``, or no answer with ``error``; None if it is neither."""
    if ("http" in keys) == ("error" in keys):
        if isinstance(node.value, dict):
            reader.add(node, "reply", "Write either http (an answer came) or error (none came) here.")
        return None
    return _no_answer(keys, reader) if "error" in keys else _answer(node, keys, reader)


def _no_answer(keys: Mapping[str, Node], reader: Reader) -> NoAnswer | None:
    for name in sorted(keys.keys() & {"headers", "flaw", *_BODIES}):
        reader.add(keys[name], "reply", f"{name} goes with an answer; remove it, or write http instead of error.")
    troubles = {trouble.value for trouble in Trouble}
    trouble = reader.word(keys["error"], troubles)
    sent = reader.word(keys["sent"], {each.value for each in Sent}) if "sent" in keys else None
    return no_answer(trouble, sent=sent) if trouble in troubles and sent in {None, "never", "maybe"} else None


def _answer(node: Node, keys: Mapping[str, Node], reader: Reader) -> Answered | None:
    status = reader.count(keys["http"], 100, 599)
    if "sent" in keys:
        reader.add(keys["sent"], "reply", "sent goes with error; remove it.")
    if len(keys.keys() & set(_BODIES)) > 1:
        reader.add(node, "reply", "Write only one of json, text and base64.")
    headers = _headers(keys["headers"], reader) if "headers" in keys else ()
    if "json" in keys and not any(name.lower() == "content-type" for name, _ in headers):
        headers = (*headers, ("Content-Type", "application/json"))
    flaws = {flaw.value for flaw in Flaw}
    flaw = reader.word(keys["flaw"], flaws) if "flaw" in keys else ""
    return Answered(
        status=status, headers=headers, body=_body(keys, reader), flaw=Flaw(flaw) if flaw in flaws else None
    )


def _headers(node: Node, reader: Reader) -> tuple[tuple[str, str], ...]:
    """Names and values in order; a list of values is a repeated header."""
    reader.mapping(node, allowed=[name for name, _ in node.pairs()])
    return tuple((name, reader.text(value)) for name, item in node.pairs() for value in item.items())


def _body(keys: Mapping[str, Node], reader: Reader) -> bytes:
    if "json" in keys:
        return json.dumps(keys["json"].plain()).encode()
    if "text" in keys:
        return reader.text(keys["text"]).encode("utf-8", "surrogatepass")
    if "base64" in keys:
        try:
            return base64.b64decode("".join(reader.text(keys["base64"]).split()), validate=True)
        except binascii.Error:
            reader.add(keys["base64"], "value", "This is not base64; encode the body's bytes again.")
    return b""
