"""`jobtrack diagram`: a table's states as a picture, in Mermaid or DOT."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from jobtrack.cli import screen
from jobtrack.cli.tables import find_table, tables_option
from jobtrack.core.actions import SubmitMeaning, SubmitSpec
from jobtrack.core.place import Condition, Gap
from jobtrack.core.table import Meaning, ProviderTable, StateRow

_TARGET = {
    Meaning.PENDING: "running",
    Meaning.SUCCESS: "succeeded",
    Meaning.FAILURE: "failed",
    Meaning.CANCELLED: "cancelled",
    Meaning.EXPIRED: "expired",
    Meaning.ATTENTION: "escalated",
    Meaning.NOT_FOUND: "escalated",
    Meaning.RATE_LIMITED: "running",
    Meaning.INVALID: "escalated",
}
"""Where an operation goes when it meets a meaning."""

_PROVEN = {
    SubmitMeaning.ACCEPTED: "running",
    SubmitMeaning.ALREADY: "running",
    SubmitMeaning.FINAL: "succeeded",
    SubmitMeaning.REJECTED: "failed",
    SubmitMeaning.DENIED: "escalated",
    SubmitMeaning.BUSY: "ready",
    SubmitMeaning.MISMATCH: "escalated",
    SubmitMeaning.UNKNOWN: "unconfirmed",
}
"""Where an operation goes when an answer to its submission proves something; `final` may be another end too."""

_ENDS = ("succeeded", "failed", "cancelled", "expired")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One arrow of the picture."""

    source: str
    target: str
    label: str


def edges(table: ProviderTable) -> list[Edge]:
    """Every way out of a look, in the order of the table: rules, states, what is not named."""
    labels: dict[str, list[str]] = {}
    for rule in table.status.rules:
        words = " and ".join(_condition(condition) for condition in rule.conditions)
        labels.setdefault(_TARGET[rule.then], []).append(f"{words} ({rule.then.value})")
    for row in table.status.rows:
        labels.setdefault(_TARGET[row.meaning], []).append(_row(row))
    open_states = table.status.open
    if open_states is not None:
        begin = " or ".join(open_states.starts_with)
        labels.setdefault("running", []).append(f"any other word{f' that starts with {begin}' if begin else ''}")
    if open_states is None or open_states.starts_with:
        labels.setdefault("escalated", []).append("any other word (unknown_state)")
    return [
        *_beginning(table),
        *(Edge(source="running", target=target, label=", ".join(words)) for target, words in labels.items()),
        Edge(source="running", target="escalated", label="deadline, budgets, an answer that cannot be read"),
        Edge(source="escalated", target="running", label="a person looks again or extends"),
        Edge(source="escalated", target="abandoned", label="a person closes it"),
    ]


def _beginning(table: ProviderTable) -> list[Edge]:
    """The way to a job that is followed."""
    spec = table.submit
    if spec is None:
        return [Edge(source="start", target="running", label="accepted")]
    labels: dict[str, list[str]] = {}
    for rule in spec.rules:
        words = " and ".join(_condition(condition) for condition in rule.conditions)
        labels.setdefault(_PROVEN[rule.then], []).append(f"{words} ({rule.then.value})")
    for meaning, codes in _lists(spec).items():
        if codes:
            named = ", ".join(str(code) for code in sorted(codes)[:8])
            labels.setdefault(_PROVEN[meaning], []).append(f"HTTP {named} ({meaning.value})")
    labels.setdefault("unconfirmed", []).append("any other answer, or none")
    repeat = spec.idempotency is not None and spec.idempotency.lifetime
    proof = spec.lookup is not None and spec.lookup.absence_is_proof_after is not None
    return [
        Edge(source="start", target="ready", label="submit()"),
        Edge(source="start", target="running", label="track(): submitted elsewhere"),
        Edge(source="ready", target="submitting", label="sent"),
        *(Edge(source="submitting", target=target, label=", ".join(words)) for target, words in labels.items()),
        *([Edge(source="unconfirmed", target="running", label="the look-up finds the job")] if spec.lookup else []),
        *([Edge(source="unconfirmed", target="submitting", label="a permitted repeat")] if repeat or proof else []),
        Edge(source="unconfirmed", target="escalated", label="nothing proves the outcome"),
    ]


def _lists(spec: SubmitSpec) -> dict[SubmitMeaning, frozenset[int]]:
    return {
        SubmitMeaning.ACCEPTED: spec.accepted_http,
        SubmitMeaning.FINAL: spec.final_http,
        SubmitMeaning.ALREADY: spec.already_http,
        SubmitMeaning.REJECTED: spec.rejected_http,
        SubmitMeaning.DENIED: spec.denied_http,
        SubmitMeaning.BUSY: spec.busy_http,
        SubmitMeaning.MISMATCH: spec.mismatch_http,
    }


def _row(row: StateRow) -> str:
    return " + ".join(_value(value) for value in row.values)


def _value(value: str | int | bool | Gap) -> str:
    if isinstance(value, Gap):
        return f"({value.value})"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _condition(condition: Condition) -> str:
    where = condition.at.source
    if condition.equals:
        words = " or ".join(_value(value) for value in condition.equals)
        return f"{where} = {words}{' in any letter case' if condition.fold else ''}"
    if condition.gap is not None:
        return f"{where} is {condition.gap.value}"
    if condition.present is not None:
        return f"{where} is {'there' if condition.present else 'missing'}"
    if condition.empty is not None:
        return f"{where} is {'empty' if condition.empty else 'not empty'}"
    if condition.above is not None:
        return f"{where} > {condition.above}"
    assert condition.same_as is not None, "exactly one test of a condition is set"
    return f"{where} = {condition.same_as.source}"


def mermaid(table: ProviderTable) -> str:
    """A `stateDiagram-v2`."""
    known = edges(table)
    lines = [f"%% {screen.plain(table.id)}, revision {table.revision}", "stateDiagram-v2", "    direction LR"]
    for edge in known:
        source = "[*]" if edge.source == "start" else edge.source
        lines.append(f"    {source} --> {edge.target}: {_mermaid_text(edge.label)}")
    reached = [end for end in (*_ENDS, "abandoned") if any(edge.target == end for edge in known)]
    return "\n".join([*lines, *(f"    {end} --> [*]" for end in reached)])


def _mermaid_text(text: str) -> str:
    """Mermaid ends a label at some signs; those are written as their numbers."""
    return "".join(f"#{ord(sign)};" if sign in '#;:"<>{}`' else sign for sign in screen.plain(text))


def dot(table: ProviderTable) -> str:
    """A `digraph` for Graphviz."""
    known = edges(table)
    lines = [f"digraph {_dot_text(table.id)} {{", "    rankdir=LR;", "    node [shape=box, style=rounded];"]
    lines += ['    start [shape=point, label=""];']
    lines += [f"    {end} [peripheries=2];" for end in (*_ENDS, "abandoned") if any(e.target == end for e in known)]
    lines += [f"    {edge.source} -> {edge.target} [label={_dot_text(edge.label)}];" for edge in known]
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    escaped = screen.plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@click.command(short_help="Draw the states of a table.")
@click.argument("table")
@click.option("--dot", "as_dot", is_flag=True, help="Print DOT for Graphviz instead of Mermaid.")
@tables_option
@screen.json_option
def diagram(table: str, folders: tuple[Path, ...], *, as_dot: bool, as_json: bool) -> None:
    """Draw the states of TABLE (an id or a file) as Mermaid text."""
    found = find_table(table, folders)
    if as_json:
        arrows = [{"from": edge.source, "to": edge.target, "label": edge.label} for edge in edges(found)]
        screen.show_json({"table": found.id, "revision": found.revision, "edges": arrows})
    else:
        click.echo(dot(found) if as_dot else mermaid(found))
