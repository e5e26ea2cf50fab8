"""Lists of codes: what an HTTP answer alone can prove about a write, and what it cannot (R-SUB-2)."""

from __future__ import annotations

from collections.abc import Sequence

from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.lint_rules import codes_of
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.pieces import codes
from jobtrack.core.actions import SubmitMeaning, SubmitRule

_M = SubmitMeaning
_TIMES_OUT = frozenset({408})
_LATER = frozenset({408, 425, 429})

LISTS: dict[Path, SubmitMeaning] = {
    ("accepted",): _M.ACCEPTED,
    ("final",): _M.FINAL,
    ("already",): _M.ALREADY,
    ("rejected",): _M.REJECTED,
    ("denied",): _M.DENIED,
    ("busy",): _M.BUSY,
    ("idempotency", "mismatch"): _M.MISMATCH,
}
_WHY = {
    _M.ACCEPTED: "does not say that the provider has the job",
    _M.ALREADY: "does not say that the provider has the job",
    _M.REJECTED: "does not prove that this request can never make a job",
    _M.DENIED: "does not prove that access was refused before anything was done",
    _M.BUSY: "does not prove that nothing was done",
    _M.MISMATCH: "does not say that the key was used with other content",
}


def doubtful(meaning: SubmitMeaning, code: int) -> bool:
    """Whether a code alone, without a body that says more, cannot prove this."""
    match meaning:
        case _M.ACCEPTED:
            return not 200 <= code < 400
        case _M.ALREADY:
            return code in _LATER or not 200 <= code < 500
        case _M.REJECTED | _M.DENIED | _M.MISMATCH:
            return code in _LATER or not 400 <= code < 500
        case _M.BUSY:  # 503 is how many say "try again later"
            return code in _TIMES_OUT or not (400 <= code < 500 or code == 503)
    return False  # `final` is read as a status answer, `unknown` claims nothing


def check_lists(submit: Node, report: Report) -> None:
    """Report codes that stand in two lists and codes that prove less."""
    listed = [(path, submit.at(*path, "http")) for path in LISTS]
    nodes = [(LISTS[path], item) for path, node in listed if node is not None for item in node.items()]
    twice_listed([(str(meaning), item) for meaning, item in nodes], report)
    for meaning, item in nodes:
        doubt = sorted(code for code in codes_alone(item) if doubtful(meaning, code))
        if doubt:
            report.add(item.mark, item.path, "doubt", _advice(item, meaning, doubt[0]))


def codes_alone(item: Node) -> frozenset[int]:
    """The codes that one member of a list stands for."""
    return codes(Node(value=[item], mark=item.mark, path=item.path))


def _advice(item: Node, meaning: SubmitMeaning, code: int) -> str:
    held = f"{item.value} holds {code}, which" if item.value != code else f"{code} by itself"
    return f"{held} {_WHY[meaning]}; remove it, or write a rule that also tests what the body says."


def twice_listed(items: Sequence[tuple[str, Node]], report: Report) -> None:
    """Report codes that stand in two lists.

    Args:
        items: Name of the list and the node of one code, in order.
        report: Gets the findings.
    """
    seen: dict[int, tuple[str, Node]] = {}
    for name, item in items:
        for code in sorted(codes_alone(item)):
            first, where = seen.setdefault(code, (name, item))
            if first != name:
                message = f"{code} stands under {first} (line {where.mark.line}) already; keep it in one list."
                report.add(item.mark, item.path, "two_lists", message)
                break


def doubts_of_rules(listed: Node | None, rules: Sequence[SubmitRule], report: Report) -> None:
    """A rule that asks for nothing but a code proves no more than the code."""
    for node, rule in zip([] if listed is None else listed.items(), rules, strict=True):
        asked = codes_of(rule) if len(rule.conditions) == 1 else None
        doubt = sorted(code for code in asked or () if doubtful(rule.then, code))
        if doubt:
            message = f"{doubt[0]} by itself {_WHY[rule.then]}; add a test of what the body says."
            report.add(node.mark, node.path, "doubt", message)
