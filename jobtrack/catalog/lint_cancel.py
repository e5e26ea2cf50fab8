"""Cancellation: answers that prove less than the table says, and an end that no state names."""

from __future__ import annotations

from jobtrack.catalog.checks import Checks
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.lint_answers import codes_alone, twice_listed
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.placeholders import PLACEHOLDER
from jobtrack.core.table import Meaning, ProviderTable

_CANCEL: Path = ("cancel",)
_JOB = frozenset({"job_id", "+job_id", "handle", "operation_id", "idempotency_key", "reference"})


def check_cancel(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with how a table cancels."""
    node, spec = root.get("cancel"), table.cancel
    if node is None or spec is None:
        return
    checks = Checks(root, report)
    if not spec.effect:
        checks.error((*_CANCEL, "effect"), "effect", "Nobody is told what it does; write what stops, costs or is lost.")
    _lists(node, report)
    _one_job(node, checks)
    meanings = {row.meaning for row in table.status.rows} | {rule.then for rule in table.status.rules}
    if Meaning.CANCELLED not in meanings and not report.touched(("status",)):
        message = "No state means cancelled, so nobody would see that it worked; write states.stop.cancelled."
        checks.warn(_CANCEL, "no_cancelled", message)


def _lists(node: Node, report: Report) -> None:
    listed = [(name, node.at(name, "http")) for name in ("accepted", "refused")]
    items = [(name, item) for name, found in listed if found is not None for item in found.items()]
    twice_listed(items, report)
    for name, item in items:
        doubt = sorted(code for code in codes_alone(item) if _doubtful(name, code))
        if doubt:
            message = f"{doubt[0]} by itself does not prove that the job was {_SAID[name]}; remove it."
            report.add(item.mark, item.path, "doubt", message)


_SAID = {"accepted": "taken for cancellation", "refused": "left alone"}


def _doubtful(name: str, code: int) -> bool:
    """A 4xx such as 404 may be documented as "there is nothing to cancel any more": either list may have it."""
    if code in (408, 425, 429) or code >= 500:
        return True
    return name == "refused" and code < 400


def _one_job(node: Node, checks: Checks) -> None:
    request = node.get("request")
    if request is None or request.get("path") is None:  # without a path the stored status URL is the address
        return
    leaves = (leaf.value for leaf in request.walk() if isinstance(leaf.value, str))
    names = {name.removesuffix(":int") for text in leaves for name in PLACEHOLDER.findall(text)}
    if not names & _JOB:
        checks.error((*_CANCEL, "request"), "unidentified", "Nothing says which job is meant; write {job_id} into it.")
