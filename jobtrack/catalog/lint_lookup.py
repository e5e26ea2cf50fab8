"""Look-ups: questions that would find another's job, or that change something."""

from __future__ import annotations

from collections.abc import Iterable

from jobtrack.catalog.build_submit import WITH_BODY
from jobtrack.catalog.checks import Checks
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.lint_answers import codes_alone
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.placeholders import PAYLOAD, PLACEHOLDER
from jobtrack.core.actions import LookupSpec
from jobtrack.core.place import BodyKind, Header
from jobtrack.core.table import ProviderTable

_LOOKUP: Path = ("submit", "lookup")
_NO_ANSWER = frozenset({401, 403, 408, 425, 429})
_OURS = frozenset({"operation_id", "idempotency_key", "reference"})


def check_lookup(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with how a table asks whether an operation was accepted."""
    _kept(root, report)
    node = root.at(*_LOOKUP)
    spec = None if table.submit is None else table.submit.lookup
    if node is None or spec is None:
        return
    checks = Checks(root, report)
    _identified(node, checks, spec)
    _one_item(checks, spec)
    _asks_only(checks, spec)
    _absent(node, report)


def _identified(node: Node, checks: Checks, spec: LookupSpec) -> None:
    """A job may be taken for this operation's only if something in the question or in the answer says so."""
    request, match = node.get("request"), node.get("match")
    asked = [leaf.value for leaf in request.walk()] if request is not None else []
    compared = [leaf.value for _, leaf in match.pairs()] if match is not None else []
    if _names_operation(asked):
        return
    ways = "{operation_id}, {idempotency_key}, {reference} or {payload/name}"
    if spec.items is not None and not spec.match:
        message = f"Every job of the list would be this operation's; write match: with {ways}."
        checks.error(_LOOKUP, "unidentified", message)
    elif not _names_operation(compared):
        message = f"Nothing says which operation is meant; write {ways} into the request or into match."
        checks.error(_LOOKUP, "unidentified", message)


def _names_operation(values: Iterable[object]) -> bool:
    names = (name for value in values if isinstance(value, str) for name in PLACEHOLDER.findall(value))
    return any(name.removesuffix(":int") in _OURS or name.startswith("payload/") for name in names)


def _kept(root: Node, report: Report) -> None:
    """The payload is kept only as the submission's bytes: what was not sent cannot be compared later."""
    request = root.at("submit", "request")
    kept = {"payload"} if request is None or _sends_payload(request) else set()
    for leaf in () if request is None else request.walk():
        found = PLACEHOLDER.findall(leaf.value) if isinstance(leaf.value, str) else []
        kept |= {name.removesuffix("?") for name in found if name.startswith("payload") and len(found) == 1}
    later = [root.at(*_LOOKUP), root.at("submit", "accepted", "job_id")]
    for leaf in (leaf for node in later if node is not None for leaf in node.walk()):
        for name in PLACEHOLDER.findall(leaf.value) if isinstance(leaf.value, str) else ():
            known = name.removesuffix("?")
            if PAYLOAD.fullmatch(name) and not any(known == one or known.startswith(f"{one}/") for one in kept):
                message = f"The submission does not send {{{known}}} by itself; write it into submit.request."
                report.add(leaf.mark, leaf.path, "not_sent", message)


def _sends_payload(request: Node) -> bool:
    """Whether the payload itself is the body, because nothing else is said."""
    method = request.get("method")
    bodies = [key for key in ("json", "form", "graphql") if request.get(key) is not None]
    return not bodies and (method is None or method.value in WITH_BODY)


def _one_item(checks: Checks, spec: LookupSpec) -> None:
    """What is said of an item must be in the item."""
    if spec.items is None:
        if spec.next is not None:
            checks.error((*_LOOKUP, "next"), "next", "Only a list goes on; write items: with its place, or remove it.")
        return
    headers = [part for place in spec.found for part in place.parts if isinstance(part, Header)]
    headers += [at for at, _ in spec.match if isinstance(at, Header)]
    headers += [at for _, at in spec.params if isinstance(at, Header)]
    for header in headers[:1]:
        message = f"{header.name} speaks of the whole list, not of one job; write a place inside an item."
        checks.error((*_LOOKUP, "found"), "place", message)


def _asks_only(checks: Checks, spec: LookupSpec) -> None:
    """A look-up changes nothing: where the provider asks by POST, the body says what is asked."""
    kind = spec.request.body_kind
    if spec.request.method == "POST" and kind not in (BodyKind.JSON, BodyKind.GRAPHQL):
        message = "A look-up may not change anything; write method: GET, or the question as json: or graphql:."
        checks.error((*_LOOKUP, "request", "method"), "method", message)


def _absent(node: Node, report: Report) -> None:
    """A failure to answer is no answer."""
    listed = node.at("absent", "http")
    for item in [] if listed is None else listed.items():
        doubt = sorted(code for code in codes_alone(item) if code in _NO_ANSWER or code >= 500)
        if doubt:
            message = f"{doubt[0]} does not say that there is no such job; remove it."
            report.add(item.mark, item.path, "doubt", message)
