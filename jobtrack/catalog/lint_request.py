"""Hosts, addresses, placeholders and credentials of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.nodes import Node
from jobtrack.core.table import AuthKind, ParamPattern, ProviderTable
from jobtrack.core.target import origin_of

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"(?P<scheme>[a-z]+)://(?P<rest>[^/?#]*)(?P<more>.*)", re.DOTALL)
_LOOPBACK = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:.*)?")
_RESERVED = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "x-request-id",
    }
)
_NOT_READ = "401, 403, 429 and 5xx are signals of their own, whatever the body says"
_LABELS = frozenset({ParamPattern.DNS_LABEL, ParamPattern.UUID, ParamPattern.INTEGER})


def check_request(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with where a table sends requests, and how."""
    used: set[str] = set()
    for node in _hosts(root):
        _host(node, table, report)
        used |= _placeholders(node, str(node.value), set(table.params), report)
    used |= _request(root, table, report)
    _params(root, table, used, report)
    _auth(root, table, report)
    _codes(root, report)


def _hosts(root: Node) -> Iterator[Node]:
    for listed in (root.get("hosts"), root.at("status", "result", "hosts")):
        yield from [] if listed is None else listed.items()


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
    if not origin_of(_PLACEHOLDER.sub("1", host), loopback=True):
        return f"{host} cannot be a host; write letters, digits, hyphens and dots, and a port if needed."
    return ""


def _free_choice(host: str, table: ProviderTable) -> str:
    """A parameter by which a caller could leave the provider's domain; "" if there is none."""
    name = host.partition(":")[0] if not host.startswith("[") else host
    last = _PLACEHOLDER.findall(name.rsplit(".", 1)[-1])
    for word in _PLACEHOLDER.findall(name):
        param = table.params.get(word)
        if param is not None and param.source == "caller" and (word in last or param.pattern not in _LABELS):
            return str(word)
    return ""


# --- placeholders ------------------------------------------------------------------------------------


def _request(root: Node, table: ProviderTable, report: Report) -> set[str]:
    """Check the request; gives the names its placeholders use."""
    request = root.at("status", "request")
    assert request is not None
    used: set[str] = set()
    path = request.get("path")
    if path is not None:
        used |= _placeholders(path, str(path.value), {*table.params, "job_id", "+job_id"}, report)
    for key in ("query", "headers"):
        for _, node in _pairs(request.get(key)):
            used |= _placeholders(node, str(node.value), {*table.params, "job_id"}, report)
    _headers(request.get("headers"), report)
    _method(request, report)
    return used | _body(request, table, report)


def _pairs(node: Node | None) -> list[tuple[str, Node]]:
    return [] if node is None else node.pairs()


def _headers(node: Node | None, report: Report) -> None:
    for name, _ in _pairs(node):
        if node is not None and name.lower() in _RESERVED:
            message = f"{name} is set by jobtrack; remove it and describe the credential under auth."
            report.add(node.key_mark(name), (*node.path, name), "header", message)


def _method(request: Node, report: Report) -> None:
    body = next((key for key in ("json", "form", "graphql") if request.get(key) is not None), None)
    method = request.get("method")
    if body is not None and (method is None or method.value == "GET"):
        report.add(request.key_mark(body), (*request.path, body), "method", "A GET has no body; write method: POST.")


def _body(request: Node, table: ProviderTable, report: Report) -> set[str]:
    leaves = [request.get("json"), request.get("form"), request.at("graphql", "variables")]
    allowed = {*table.params, "job_id"}
    used: set[str] = set()
    for node in (below for leaf in leaves if leaf is not None for below in leaf.walk()):
        if not isinstance(node.value, str):
            continue
        names = {name.removesuffix(":int") for name in _PLACEHOLDER.findall(node.value)}
        if names & allowed and not _PLACEHOLDER.fullmatch(node.value):
            message = f"In a body a placeholder is a whole value; write {{{min(names & allowed)}}} alone."
            report.add(node.mark, node.path, "placeholder", message)
        elif _PLACEHOLDER.fullmatch(node.value):
            bare = node.value.replace(":int}", "}")
            used |= _placeholders(node, bare, allowed, report)
    return used


def _placeholders(node: Node, text: str, allowed: set[str], report: Report) -> set[str]:
    """Check the placeholders of a text; gives the names it uses."""
    names = set(_PLACEHOLDER.findall(text))
    for name in sorted(names - allowed):
        known = ", ".join(f"{{{word}}}" for word in sorted(allowed)) or "none here"
        message = f"The placeholder {{{name}}} is not known; write one of: {known}, or add {name or 'it'} to params."
        report.add(node.mark, node.path, "placeholder", message)
    if {"{", "}"} & set(_PLACEHOLDER.sub("", text)):
        report.add(node.mark, node.path, "placeholder", f"A brace stands alone in {text}; write {{name}} or remove it.")
    return names


def _params(root: Node, table: ProviderTable, used: set[str], report: Report) -> None:
    params = root.get("params")
    if params is None:
        return
    for name in table.params:
        path: Path = ("params", name)
        if name == "job_id":
            report.add(params.key_mark(name), path, "param", "{job_id} is always there; remove it from params.")
        elif name not in used:
            message = (
                f"No place uses {{{name}}}; remove it, or write it into a host, a path, a query, a header or a body."
            )
            report.warn(params.key_mark(name), path, "unused_param", message)


def _auth(root: Node, table: ProviderTable, report: Report) -> None:
    query = root.at("status", "request", "query")
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
