"""States, rules and results of a table: what contradicts itself, what can never be met, what nobody checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from jobtrack.catalog.build_status import state_rows
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.lint_rules import WILDCARDS, check_rules
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import Reader
from jobtrack.core.place import Gap, HttpStatus, Scalar
from jobtrack.core.table import FieldType, Meaning, ProviderTable, StateRow, StatusSpec

_ENDS = frozenset({Meaning.SUCCESS, Meaning.FAILURE, Meaning.CANCELLED, Meaning.EXPIRED})
_NEVER_BY_RULE = frozenset({401, 403, 304})
_STATUS: Path = ("status",)


def check_states(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with how a table reads its answers."""
    status = root.get("status")
    assert status is not None
    rows = list(state_rows(status, table.status.state, Reader(report)))
    _two_classes(rows, table.status, report)
    _wildcards(rows, report)
    _codes(rows, table.status, report)
    check_rules(status.get("rules"), table.status.rules, report, never=_NEVER_BY_RULE)
    _ends(status, table.status, report)
    _pieces(status, table.status, report)
    _result(status, table, report)


# --- states ------------------------------------------------------------------------------------------

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    node: Node
    row: StateRow
    exact: _Key


def _two_classes(rows: list[tuple[Node, StateRow]], status: StatusSpec, report: Report) -> None:
    seen: dict[_Key, _Seen] = {}
    for node, row in rows:
        for folded, exact in _spellings(row, status):
            first = seen.setdefault(folded, _Seen(node, row, exact))
            if first.node is not node:
                _compare(first, _Seen(node, row, exact), report)


def _spellings(row: StateRow, status: StatusSpec) -> Iterator[tuple[_Key, _Key]]:
    """Each value a row stands for, without regard to letter case and as written."""
    choices = [[Gap.ABSENT, Gap.NULL] if value is Gap.EITHER else [value] for value in row.values]
    for values in product(*choices):
        folded = tuple(_folded(value) for value in values)
        exact = tuple(
            _folded(value) if part.fold else (type(value), value)
            for value, part in zip(values, status.state, strict=True)
        )
        yield folded, exact


def _folded(value: Scalar | Gap) -> tuple[type, object]:
    return type(value), value.casefold() if type(value) is str else value


def _compare(first: _Seen, second: _Seen, report: Report) -> None:
    differs = first.row.meaning is not second.row.meaning
    word, where = _words(second.row), f"{first.row.meaning} (line {first.node.mark.line})"
    if first.exact == second.exact and differs:
        message = f"{word} stands under {where} already; keep it in one class."
        report.add(second.node.mark, second.node.path, "two_classes", message)
    elif differs:
        message = (
            f"{word} and {_words(first.row)} under {where} differ only in letter case; keep one or say fold_case: true."
        )
        report.add(second.node.mark, second.node.path, "two_classes", message)
    elif first.exact == second.exact:
        report.warn(
            second.node.mark,
            second.node.path,
            "twice",
            f"{word} stands in line {first.node.mark.line} already; remove one.",
        )


def _words(row: StateRow) -> str:
    return " + ".join(str(value) for value in row.values)


def _wildcards(rows: list[tuple[Node, StateRow]], report: Report) -> None:
    for node, row in rows:
        for value in row.values:
            if type(value) is str and value.casefold() in WILDCARDS:
                message = f"{value} is no wildcard, it matches only itself; list the states the provider documents."
                report.add(node.mark, node.path, "wildcard", message)


def _codes(rows: list[tuple[Node, StateRow]], status: StatusSpec, report: Report) -> None:
    """A state that is an HTTP code must be one whose answers are read."""
    for node, row in rows:
        for value, part in zip(row.values, status.state, strict=True):
            if isinstance(part.at, HttpStatus) and value not in status.read_http:
                message = f"Answers with {value} are not read for a state; add {value} to read_http."
                report.add(node.mark, node.path, "unreachable", message)


# --- what is there and what is not -------------------------------------------------------------------


def _ends(node: Node, status: StatusSpec, report: Report) -> None:
    if any(report.touched((*_STATUS, key)) for key in ("state", "states", "rules")):
        return
    meanings = {row.meaning for row in status.rows} | {rule.then for rule in status.rules}
    if not meanings & _ENDS:
        message = "No state is an end; write states: with success: and failure:, or rules: that give them."
        report.add(node.key_mark("states"), (*_STATUS, "states"), "no_end", message)
    elif Meaning.SUCCESS not in meanings:
        message = "No state means success; write it under states: success:, or a rule with then: success."
        report.add(node.key_mark("states"), (*_STATUS, "states"), "no_success", message)


def _pieces(node: Node, status: StatusSpec, report: Report) -> None:
    """Keys that need each other, and keys that a good table has."""
    has_state, has_states = node.get("state") is not None, node.get("states") is not None
    if has_states and not has_state and not report.touched((*_STATUS, "state")):
        message = "states: needs the place of the state; write state: /status, or wherever it is."
        report.add(node.key_mark("states"), (*_STATUS, "states"), "no_state", message)
    if has_state and not has_states and not report.touched((*_STATUS, "states")):
        message = "state: needs the words it may have; write states: with pending:, success: and failure:."
        report.add(node.key_mark("state"), (*_STATUS, "state"), "no_states", message)
    if status.open is not None:
        _open(node, status, report)
    if status.echo is None and not report.touched((*_STATUS, "echo")):
        message = "Answers are not checked for the job id; write echo: with the place where the provider repeats it."
        report.warn(node.mark, (*_STATUS, "echo"), "no_echo", message)


def _open(node: Node, status: StatusSpec, report: Report) -> None:
    path: Path = (*_STATUS, "open")
    if not status.state:
        report.add(
            node.key_mark("open"), path, "open", "open: speaks of the words of a state; write state: and states: too."
        )
        return
    message = "Unlisted words keep the job pending; make sure that the cited contract says so and every end is listed."
    report.warn(node.key_mark("open"), path, "open", message)


def _result(node: Node, table: ProviderTable, report: Report) -> None:
    path: Path = (*_STATUS, "result")
    spec, result = table.status.result, node.get("result")
    if report.touched(path):
        return
    if result is None or (result.get("require") is None and not spec.one_of):
        mark = node.mark if result is None else result.mark
        message = "Success is not checked for its result; write result: {require: {/place: type}} or require: {}."
        report.warn(mark, path, "no_result", message)
        return
    urls = {locator for locator, kind in spec.require if kind is FieldType.URL}
    unsaid = [key for key in ("hosts", "secret") if result.get(key) is None]
    if urls and unsaid:
        report.warn(result.mark, path, "result_url", f"A result is a URL; write {' and '.join(map(_about, unsaid))}.")
    if spec.secret and urls & {locator for _, locator in spec.keep}:
        message = (
            "The result URL is secret and is masked when it is kept; remove it from keep:, or write secret: false."
        )
        report.add(result.mark, path, "secret_kept", message)


def _about(key: str) -> str:
    if key == "hosts":
        return "hosts: with the origins it may have besides the table's own"
    return "secret: true if whoever has it can read the result, else false"
