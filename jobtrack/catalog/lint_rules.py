"""Rules: what can never be met, and what two of them claim at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.overlap import covers, exclude
from jobtrack.core.place import Condition, HttpStatus

WILDCARDS = frozenset({"*", "**", ".*", ".+", "?", "%", "_", "default", "any", "otherwise", "else"})


class _Rule(Protocol):
    """What rules of all parts have."""

    @property
    def conditions(self) -> tuple[Condition, ...]: ...
    @property
    def then(self) -> str: ...
    @property
    def line(self) -> int: ...


def check_rules(
    listed: Node | None, rules: Sequence[_Rule], report: Report, *, never: frozenset[int] = frozenset()
) -> None:
    """Report rules that can never win, and rules that may meet.

    Args:
        listed: Where the rules stand; None if there are none.
        rules: The rules, in the same order.
        report: Gets the findings.
        never: HTTP codes whose answers no rule is asked about.
    """
    nodes = [] if listed is None else listed.items()
    for index, (node, rule) in enumerate(zip(nodes, rules, strict=True)):
        earlier = rules[:index]
        _wild_rule(node, rule, report)
        if (code := _never(rule, never)) is not None:
            message = f"Answers with {code} are never given another meaning; remove the rule."
            report.add(node.mark, node.path, "unreachable", message)
        elif (
            first := next((other for other in earlier if covers(other.conditions, rule.conditions)), None)
        ) is not None:
            message = f"The rule in line {first.line} matches first, always; move this rule before it or remove it."
            report.add(node.mark, node.path, "unreachable", message)
        else:
            _overlap(node, rule, earlier, report)


def codes_of(rule: _Rule) -> frozenset[int] | None:
    """The HTTP codes that a rule is about; None if it asks for none."""
    for condition in rule.conditions:
        if isinstance(condition.at, HttpStatus) and condition.equals:
            return frozenset(value for value in condition.equals if isinstance(value, int))
    return None


def _never(rule: _Rule, never: frozenset[int]) -> int | None:
    """The status code that keeps a rule from ever being asked; None if there is none."""
    codes = codes_of(rule)
    return min(codes) if codes and codes <= never else None


def _overlap(node: Node, rule: _Rule, earlier: Sequence[_Rule], report: Report) -> None:
    """An exception before a general rule is fine; two rules that merely may meet deserve another look."""
    for other in earlier:
        nested = covers(rule.conditions, other.conditions)
        if other.then != rule.then and not nested and not exclude(other.conditions, rule.conditions):
            message = (
                f"An answer can match this rule and the one in line {other.line}, which then wins with {other.then}; "
                "add a test that tells them apart."
            )
            report.warn(node.mark, node.path, "overlap", message)
            return


def _wild_rule(node: Node, rule: _Rule, report: Report) -> None:
    for condition in rule.conditions:
        for value in condition.equals:
            if isinstance(value, str) and value.casefold() in WILDCARDS:
                report.add(
                    node.mark,
                    node.path,
                    "wildcard",
                    f"{value} matches only itself; write the words out, or present: true.",
                )
