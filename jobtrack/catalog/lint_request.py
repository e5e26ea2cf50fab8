"""Hosts, addresses, placeholders and credentials of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobtrack.catalog import placeholders
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.placeholders import PLACEHOLDER
from jobtrack.core.table import AuthKind, ParamPattern, ProviderTable
from jobtrack.core.target import origin_of

_HOST = re.compile(r"(?P<scheme>[a-z]+)://(?P<rest>[^/?#]*)(?P<more>.*)", re.DOTALL)
_LOOPBACK = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:.*)?")
_NOT_READ = "401, 403, 429 and 5xx are signals of their own, whatever the body says"
_LABELS = frozenset({ParamPattern.DNS_LABEL, ParamPattern.UUID, ParamPattern.INTEGER})


def check_request(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with where a table sends requests, and how."""
    used: set[str] = set()
    for node in _hosts(root):
        _host(node, table, report)
        used |= placeholders.check_text(node, _host_names(table), report)
    used |= _requests(root, table, report)
    used |= _texts(root, table, report)
    _bodies(root, table, report)
    _params(root, table, used, report)
    _codes(root, report)


def _hosts(root: Node) -> Iterator[Node]:
    paths: list[Path] = [
        ("hosts",),
        ("status", "result", "hosts"),
        ("result", "redirects"),
        ("result", "credential_hosts"),
    ]
    for listed in (root.at(*path) for path in paths):
        yield from [] if listed is None else listed.items()


def _host_names(table: ProviderTable) -> placeholders.Names:
    """Never a value that an answer gave: it could lead anywhere."""
    answered = {name for name, param in table.params.items() if param.source == "answer"}
    return placeholders.Names(
        plain=frozenset(table.params.keys() - answered),
        reasons={name: f"{{{name}}} is read from an answer, which may not choose a host" for name in answered},
    )


# --- hosts -------------------------------------------------------------------------------------------


def _host(node: Node, table: ProviderTable, report: Report) -> None:
    problem = _host_problem(str(node.value), table)
    if problem:
        report.add(node.mark, node.path, "host", problem)


def _host_problem(host: str, table: ProviderTable) -> str:
    match = _HOST.fullmatch(host)
    if match is None:
        return f"{host} is no origin; write https:// and the name of the host, such as https://api.acme.example."
    loopback = _LOOPBACK.fullmatch(match["rest"])
    if match["more"]:
        scheme = match["scheme"] if loopback else "https"
        return f"{host} is more than an origin; write {scheme}://{match['rest']}, and the path under request."
    if loopback and not table.allow_loopback:
        return f"{host} is this very machine; write allow_loopback: true if the table is for a demo or a test."
    if match["scheme"] != "https" and not loopback:
        return f"{host} is not https; write https://{match['rest']}."
    open_ended = _free_choice(match["rest"], table)
    if open_ended:
        return (
            f"With {{{open_ended}}} a caller could choose any host; write the host's end out, or take it from: account."
        )
    if not origin_of(PLACEHOLDER.sub("1", host), loopback=True):
        return f"{host} cannot be a host; write letters, digits, hyphens and dots, and a port if needed."
    return ""


def _free_choice(host: str, table: ProviderTable) -> str:
    """A parameter by which a caller could leave the provider's domain; "" if there is none."""
    name = host.partition(":")[0] if not host.startswith("[") else host
    last = PLACEHOLDER.findall(name.rsplit(".", 1)[-1])
    for word in PLACEHOLDER.findall(name):
        param = table.params.get(word)
        if param is not None and param.source == "caller" and (word in last or param.pattern not in _LABELS):
            return str(word)
    return ""


# --- requests ----------------------------------------------------------------------------------------


def _requests(root: Node, table: ProviderTable, report: Report) -> set[str]:
    """Check every request of the table; gives the names that their placeholders use."""
    used: set[str] = set()
    for node, names in _each(root, table):
        used |= placeholders.check_request(node, names, report)
        _auth(node, table, report)
    return used


def _each(root: Node, table: ProviderTable) -> Iterator[tuple[Node, placeholders.Names]]:
    """Every request with the names that it may use."""
    before, after = placeholders.before(table), placeholders.after(table)
    result = table.result
    hop, item = (result.hop, result.per_item) if result else (None, None)
    passed = frozenset(name for name, _ in (*(hop.values if hop else ()), *(item.values if item else ())))
    rows: list[tuple[Path, placeholders.Names]] = [
        (("submit", "request"), before),
        (("submit", "lookup", "request"), before),
        (("status", "request"), placeholders.of_status(table)),
        (("cancel", "request"), after),
        (("result", "request"), after.adding(frozenset(name for name, _ in hop.values) if hop else frozenset())),
        (("result", "item_request"), after.adding(passed | {"item"})),
    ]
    for path, names in rows:
        node = root.at(*path)
        if node is not None:
            yield node, names


def _texts(root: Node, table: ProviderTable, report: Report) -> set[str]:
    """Texts with placeholders that are no requests: what a look-up compares with, and ids that the client chose."""
    used: set[str] = set()
    match = root.at("submit", "lookup", "match")
    wanted = [] if match is None else [node for _, node in match.pairs()]
    accepted = [root.at("submit", "accepted", "job_id"), root.at("submit", "lookup", "found")]
    sent = [part for place in accepted if place is not None for part in place.walk() if part.path[-1:] == ("sent",)]
    for node in (*wanted, *sent):
        used |= placeholders.check_text(node, placeholders.before(table), report)
    paths = root.at("submit", "accepted", "paths")
    for node in [] if paths is None else paths.items():
        used |= placeholders.check_text(node, placeholders.Names(plain=frozenset(table.params)), report)
    return used


def _bodies(root: Node, table: ProviderTable, report: Report) -> None:
    """A body goes with some methods only."""
    for node, _ in _each(root, table):
        body = next((key for key in ("json", "form", "graphql") if node.get(key) is not None), None)
        method = node.get("method")
        default = "GET" if node.path[0] in ("status", "result") or "lookup" in node.path else "POST"
        if body is not None and (default if method is None else method.value) == "GET":
            report.add(node.key_mark(body), (*node.path, body), "method", "A GET has no body; write method: POST.")


def _params(root: Node, table: ProviderTable, used: set[str], report: Report) -> None:
    params = root.get("params")
    if params is None:
        return
    for name in table.params:
        path: Path = ("params", name)
        if name in placeholders.BUILT_IN:
            report.add(
                params.key_mark(name), path, "param", f"{{{name}}} has a meaning of its own; write another name."
            )
        elif name not in used:
            message = (
                f"No place uses {{{name}}}; remove it, or write it into a host, a path, a query, a header or a body."
            )
            report.warn(params.key_mark(name), path, "unused_param", message)


def _auth(request: Node, table: ProviderTable, report: Report) -> None:
    query = request.get("query")
    if query is not None and table.auth.kind is AuthKind.QUERY and query.get(table.auth.name) is not None:
        message = f"auth: adds {table.auth.name} to the query; remove it here."
        report.add(query.key_mark(table.auth.name), (*query.path, table.auth.name), "auth", message)


# --- codes -------------------------------------------------------------------------------------------


def never_read(code: int) -> bool:
    """True for codes that are signals of the protocol and never carry a state (R-READ-4)."""
    return code in (401, 403, 429) or code >= 500


def _codes(root: Node, report: Report) -> None:
    listed = root.at("status", "read_http")
    for node in [] if listed is None else listed.items():
        if node.value == "4xx":
            advice = "4xx holds 401, 403 and 429; write the single codes instead, such as 400."
        elif node.value == "5xx" or (isinstance(node.value, int) and never_read(node.value)):
            advice = f"{node.value} cannot carry a state: {_NOT_READ}; remove it."
        else:
            continue
        report.add(node.mark, node.path, "read_http", advice)
