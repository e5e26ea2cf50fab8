"""The audit chain: canonical bytes, seal, and a verifier that needs nothing but an export file (R-AUDIT-2).

One chain per operation. Each entry's hash covers the hash before it, the operation id, its number and its exact
text, each with its length in front, so that no two different entries have the same bytes (INV-36, INV-38).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FORMAT = "jobtrack-audit/1"
GENESIS = ""
"""Hash before the first entry."""

Heads = Mapping[str, tuple[int, str]]
"""Operation id -> (number, hash) of its last entry."""


def canonical(value: object) -> str:
    """JSON text that is the same for equal values: sorted keys, no spaces, ASCII only.

    Raises:
        ValueError: NaN or infinity.
        TypeError: a value JSON cannot say.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _framed(*parts: str) -> bytes:
    # An export is hostile text: a lone surrogate has bytes too, and they are those of no other text.
    encoded = (part.encode("utf-8", "surrogatepass") for part in parts)
    return b"".join(b"%d:%s" % (len(raw), raw) for raw in encoded)


def seal(previous: str, operation_id: str, seq: int, text: str) -> str:
    """The hash (64 hex digits) of one entry.

    Args:
        previous: hash of the entry before it; ``GENESIS`` for the first.
        operation_id: whose chain it is.
        seq: its number, from 1.
        text: the entry as stored, byte for byte.
    """
    return hashlib.sha256(_framed(FORMAT, previous, operation_id, str(seq), text)).hexdigest()


def entry_line(operation_id: str, seq: int, previous: str, digest: str, text: str) -> str:
    """One entry as a line of an export."""
    return canonical({"entry": [operation_id, seq, previous, digest, text]})


def closing_line(heads: Heads, *, at: str, key: bytes | None = None) -> str:
    """The last line of an export: the heads of all chains in it, signed if there is a key (INV-37).

    Args:
        heads: every operation in the export.
        at: ISO 8601 instant of the export.
        key: secret of the signature (HMAC-SHA256); None leaves it unsigned.
    """
    body: dict[str, Any] = {"format": FORMAT, "at": at, "heads": {op: list(head) for op, head in heads.items()}}
    if key is not None:
        body["signature"] = _signature(body, key)
    return canonical({"closing": body})


def _signature(body: Mapping[str, Any], key: bytes) -> str:
    unsigned = {name: value for name, value in body.items() if name != "signature"}
    return hmac.new(key, canonical(unsigned).encode(), hashlib.sha256).hexdigest()


def _signed(body: Mapping[str, Any], key: bytes) -> bool:
    stated = str(body.get("signature", ""))
    try:
        return stated.isascii() and hmac.compare_digest(stated, _signature(body, key))
    except ValueError:  # NaN or infinity: no export of ours says that
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that must not be so."""

    line: int  # of the file, from 1; 0: the file as a whole
    operation_id: str  # "" if unknown
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a verification found."""

    entries: int
    operations: int
    signed: bool  # the closing line carries a signature that was checked with the key
    faults: tuple[Fault, ...]
    heads: Heads = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not self.faults


@dataclass(slots=True)
class _Reading:
    """State of one pass over an export."""

    heads: dict[str, tuple[int, str]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    entries: int = 0
    closing: Mapping[str, Any] | None = None

    def fault(self, line: int, operation_id: str, problem: str) -> None:
        self.faults.append(Fault(line=line, operation_id=operation_id, problem=problem))


def verify(lines: Iterable[str], *, key: bytes | None = None, earlier: Heads | None = None) -> Report:
    """Check an export: edits, deletions, insertions, reordering, swaps between operations, truncation.

    Args:
        lines: the export's lines.
        key: checks the signature of the closing line; None: it is not checked, and the report says so.
        earlier: heads of an older, trusted export; a chain that no longer contains them was rewritten or cut.
    """
    reading = _Reading()
    unmet = dict(earlier or {})
    for number, line in enumerate(lines, 1):
        if line.strip():
            _read_line(reading, number, line, unmet)
    _check_closing(reading, key)
    for operation_id, (seq, _) in unmet.items():
        reading.fault(0, operation_id, f"entry {seq}, which an earlier export contains, is gone")
    signed = key is not None and reading.closing is not None and "signature" in reading.closing
    return Report(
        entries=reading.entries,
        operations=len(reading.heads),
        signed=signed,
        faults=tuple(reading.faults),
        heads=dict(reading.heads),
    )


def _read_line(reading: _Reading, number: int, line: str, unmet: dict[str, tuple[int, str]]) -> None:
    if reading.closing is not None:
        reading.fault(number, "", "there is a line after the closing line")
        return
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        reading.fault(number, "", "this line is not JSON")
        return
    match document:
        case {"entry": [str(operation_id), int(seq), str(previous), str(digest), str(text)]}:
            _check_entry(reading, number, (operation_id, seq, previous, digest, text), unmet)
        case {"closing": dict(body)}:
            reading.closing = body
        case _:
            reading.fault(number, "", "this line is neither an entry nor the closing line")


def _check_entry(
    reading: _Reading, number: int, entry: tuple[str, int, str, str, str], unmet: dict[str, tuple[int, str]]
) -> None:
    operation_id, seq, previous, digest, text = entry
    reading.entries += 1
    last_seq, last_hash = reading.heads.get(operation_id, (0, GENESIS))
    if seq != last_seq + 1:
        reading.fault(number, operation_id, f"entry {last_seq + 1} was expected here, not {seq}")
    if previous != last_hash:
        reading.fault(number, operation_id, f"entry {seq} does not follow the entry before it")
    if seal(previous, operation_id, seq, text) != digest:
        reading.fault(number, operation_id, f"entry {seq} was changed after it was sealed")
    expected = unmet.get(operation_id)
    if expected is not None and expected[0] == seq:
        del unmet[operation_id]
        if expected[1] != digest:
            reading.fault(number, operation_id, f"entry {seq} differs from the one in an earlier export")
    reading.heads[operation_id] = (seq, digest)


def _check_closing(reading: _Reading, key: bytes | None) -> None:
    body = reading.closing
    if body is None:
        reading.fault(0, "", "the closing line is missing: the export was cut off")
        return
    if body.get("format") != FORMAT:
        reading.fault(0, "", f"the closing line names another format than {FORMAT}")
        return
    if key is not None and not _signed(body, key):
        reading.fault(0, "", "the signature of the closing line does not fit the key")
    stated = heads_of(body)
    for operation_id, head in stated.items():
        found = reading.heads.get(operation_id)
        if found is None:
            reading.fault(0, operation_id, "the whole chain of this operation is missing")
        elif found != head:
            reading.fault(0, operation_id, f"the chain ends at entry {found[0]}, the closing line says {head[0]}")
    for operation_id in sorted(reading.heads.keys() - stated.keys()):
        reading.fault(0, operation_id, "the closing line does not know this operation")


def heads_of(closing: Mapping[str, Any]) -> dict[str, tuple[int, str]]:
    """The heads stated by the body of a closing line; malformed ones are left out."""
    heads = closing.get("heads")
    if not isinstance(heads, dict):
        return {}
    return {
        op: (head[0], head[1])
        for op, head in heads.items()
        if isinstance(head, Sequence) and len(head) == 2 and isinstance(head[0], int) and isinstance(head[1], str)
    }


def closing_heads(lines: Iterable[str]) -> dict[str, tuple[int, str]]:
    """The heads an export states in its closing line; empty if it has none. For ``verify(earlier=...)``."""
    for line in lines:
        if line.startswith('{"closing"'):
            document = json.loads(line)
            return heads_of(document.get("closing", {}))
    return {}
