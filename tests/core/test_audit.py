"""R-AUDIT-2, INV-36 to 38: every kind of tampering with an export is found, and clean exports raise no alarm."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pytest

from jobtrack.core.audit import GENESIS, canonical, closing_heads, closing_line, entry_line, seal, verify

KEY = b"export key"


def export(chains: int = 3, entries: int = 5, key: bytes | None = KEY) -> list[str]:
    lines: list[str] = []
    heads: dict[str, tuple[int, str]] = {}
    for chain in range(chains):
        operation_id, previous = f"op-{chain}", GENESIS
        for seq in range(1, entries + 1):
            text = canonical({"event": "poll", "seq": seq, "text": "grün \u0000"})
            digest = seal(previous, operation_id, seq, text)
            lines.append(entry_line(operation_id, seq, previous, digest, text))
            previous = digest
            heads[operation_id] = (seq, digest)
    return [*lines, closing_line(heads, at="2030-01-07T12:00:00+00:00", key=key)]


def test_a_clean_export_has_no_faults() -> None:
    report = verify(export(), key=KEY)
    assert (report.good, report.signed, report.entries, report.operations) == (True, True, 15, 3)


def test_without_a_key_the_report_says_that_nothing_was_signed() -> None:
    assert verify(export()).signed is False


def _edit_body(lines: list[str], at: int) -> None:
    document = json.loads(lines[at])
    document["entry"][4] = document["entry"][4].replace("poll", "pull")
    lines[at] = canonical(document)


def _edit_and_reseal(lines: list[str], at: int) -> None:
    document = json.loads(lines[at])
    operation_id, seq, previous, _, text = document["entry"]
    text = text.replace("poll", "pull")
    document["entry"] = [operation_id, seq, previous, seal(previous, operation_id, seq, text), text]
    lines[at] = canonical(document)


def _swap_operations(lines: list[str], at: int) -> None:
    document = json.loads(lines[at])
    document["entry"][0] = "op-2" if document["entry"][0] != "op-2" else "op-1"
    lines[at] = canonical(document)


def _swap_neighbours(lines: list[str], at: int) -> None:
    other = at - 1 if at % 5 else at + 1  # of the same chain: the order between chains means nothing
    lines[at], lines[other] = lines[other], lines[at]


TAMPERING: dict[str, Callable[[list[str], int], None]] = {
    "edit": _edit_body,
    "edit and seal again": _edit_and_reseal,
    "delete": lambda lines, at: lines.__delitem__(at),
    "repeat": lambda lines, at: lines.insert(at, lines[at]),
    "reorder": _swap_neighbours,
    "move to another operation": _swap_operations,
    "garbage": lambda lines, at: lines.__setitem__(at, "{"),
    "another shape": lambda lines, at: lines.__setitem__(at, '{"entry":[1]}'),
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_tampering_is_found_at_every_place(kind: str) -> None:
    clean = export()
    for at in range(len(clean) - 1):
        lines = list(clean)
        TAMPERING[kind](lines, at)
        assert not verify(lines, key=KEY).good, (kind, at)


def test_a_cut_off_export_is_found() -> None:
    clean = export()
    found = [verify(clean[:length], key=KEY).good for length in range(len(clean))]
    assert found == [False] * len(clean)


def test_a_whole_chain_removed_with_its_head_is_found_by_an_earlier_export() -> None:
    earlier = closing_heads(export())
    assert earlier.keys() == {"op-0", "op-1", "op-2"}
    shorter = verify(export(chains=2), key=KEY, earlier=earlier)
    assert [fault.operation_id for fault in shorter.faults] == ["op-2"]


def test_a_chain_rolled_back_and_a_chain_rewritten_are_found_by_an_earlier_export() -> None:
    earlier = closing_heads(export())
    assert not verify(export(entries=4), earlier=earlier).good
    rewritten = {operation_id: (seq, "0" * 64) for operation_id, (seq, _) in earlier.items()}
    assert len(verify(export(), earlier=rewritten).faults) == 3
    assert verify(export(entries=9), earlier=earlier).good


@pytest.mark.parametrize(
    "line",
    [
        canonical({"closing": {"format": "other/1"}}),
        closing_line({}, at="2030", key=b"another key"),
        canonical({"closing": {"format": "jobtrack-audit/1", "heads": [], "signature": "x"}}),
        closing_line({"op-9": (1, "x")}, at="2030", key=KEY),
    ],
)
def test_a_forged_closing_line_is_found(line: str) -> None:
    assert not verify([*export()[:-1], line], key=KEY).good


def test_a_line_after_the_end_is_found_and_blank_lines_are_not() -> None:
    assert not verify([*export(), export()[0]], key=KEY).good
    assert verify([*export(), "\n"], key=KEY).good


def test_no_two_entries_have_the_same_bytes() -> None:
    sizes = range(3)
    seen = {
        seal("a" * previous, "b" * operation_id, seq, "c" * text)
        for previous, operation_id, seq, text in itertools.product(sizes, repeat=4)
    }
    assert len(seen) == 81


@pytest.mark.parametrize("lines", [[], ["x"], ['{"closing":{"heads":{"a":[1]}}}']])
def test_heads_of_a_file_without_a_good_closing_line_are_empty(lines: list[str]) -> None:
    assert closing_heads(lines) == {}


@pytest.mark.parametrize(
    "entry", ['["\\ud800",1,"","x","y"]', '["op-9",1,"","x","\\ud800"]', '["op-9",1,"\\udfff","x","y"]']
)
def test_text_without_bytes_is_a_changed_entry(entry: str) -> None:
    """A lone surrogate cannot be encoded; the verifier must not fall over it."""
    report = verify([f'{{"entry":{entry}}}', *export()], key=KEY)
    assert "entry 1 was changed after it was sealed" in [fault.problem for fault in report.faults]


@pytest.mark.parametrize("change", [{"signature": "é"}, {"signature": 7}, {"signature": None}, {"at": float("nan")}])
def test_a_closing_line_of_another_make_does_not_fit_the_key(change: dict[str, object]) -> None:
    *entries, closing = export()
    body = {**json.loads(closing)["closing"], **change}
    report = verify([*entries, json.dumps({"closing": body})], key=KEY)
    assert [fault.problem for fault in report.faults] == ["the signature of the closing line does not fit the key"]
