"""Placeholders: which ones a request may use, and whether each stands where its value can go."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Node
from jobtrack.core.table import ProviderTable

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
PAYLOAD = re.compile(r"payload(?P<pointer>(/([^/~?]|~[01])*)*)(?P<optional>\?)?")
RESERVED = frozenset(
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
_OURS = frozenset({"operation_id", "reference"})
BUILT_IN = frozenset({"job_id", "handle", "idempotency_key", "payload", "item", *_OURS})
"""Names that no parameter may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What may stand in braces at one place of a table."""

    plain: frozenset[str]
    spread: frozenset[str] = frozenset()  # of these `{+name}` keeps slashes, in a path
    payload: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)  # of names that are known elsewhere: why not here

    def adding(self, names: frozenset[str]) -> Names:
        """With further names, each of which may span path segments."""
        return Names(
            plain=self.plain | names, spread=self.spread | names, payload=self.payload, reasons=dict(self.reasons)
        )


_LATER = "is known only once the provider has the job"


def before(table: ProviderTable) -> Names:
    """In a submission and in a look-up: nothing that only the acceptance gives."""
    key = _key(table)
    given = {name for name, param in table.params.items() if param.source != "answer"}
    reasons = {name: f"{{{name}}} is read from the answer" for name in table.params.keys() - given}
    return Names(
        plain=frozenset({*given, *_OURS, *key}),
        payload=True,
        reasons={**reasons, **_no_key(key), **{name: f"{{{name}}} {_LATER}" for name in ("job_id", "handle")}},
    )


def after(table: ProviderTable) -> Names:
    """In requests about a job that the provider has: the payload is erased by then."""
    key, handle = _key(table), _handle(table)
    return Names(
        plain=frozenset({*table.params, "job_id", *_OURS, *key, *handle}),
        spread=frozenset({"job_id"}),
        reasons={**_no_key(key), **_no_handle(handle)},
    )


def of_status(table: ProviderTable) -> Names:
    """In the status request, also of jobs that were submitted elsewhere."""
    handle = _handle(table)
    return Names(
        plain=frozenset({*table.params, "job_id", *handle}),
        spread=frozenset({"job_id"}),
        reasons=_no_handle(handle),
    )


def _key(table: ProviderTable) -> tuple[str, ...]:
    return ("idempotency_key",) if table.submit is not None and table.submit.idempotency is not None else ()


def _no_key(key: tuple[str, ...]) -> dict[str, str]:
    return {} if key else {"idempotency_key": "{idempotency_key} needs submit.idempotency"}


def _handle(table: ProviderTable) -> tuple[str, ...]:
    return ("handle",) if table.submit is not None and table.submit.accepted.handle is not None else ()


def _no_handle(handle: tuple[str, ...]) -> dict[str, str]:
    return {} if handle else {"handle": "{handle} needs submit.accepted.handle"}


# --- a request ---------------------------------------------------------------------------------------


def check_request(request: Node, names: Names, report: Report) -> set[str]:
    """Check the placeholders, headers and body of a request; gives the names it uses."""
    used: set[str] = set()
    path = request.get("path")
    if path is not None:
        used |= check_text(path, names, report, spread=True)
    for key in ("query", "headers"):
        for _, node in _pairs(request.get(key)):
            used |= check_text(node, names, report)
    _headers(request.get("headers"), report)
    return used | _body(request, names, report)


def _pairs(node: Node | None) -> list[tuple[str, Node]]:
    return [] if node is None else node.pairs()


def _headers(node: Node | None, report: Report) -> None:
    for name, _ in _pairs(node):
        if node is not None and name.lower() in RESERVED:
            message = f"{name} is set by jobtrack; remove it and describe the credential under auth."
            report.add(node.key_mark(name), (*node.path, name), "header", message)


def check_text(node: Node, names: Names, report: Report, *, spread: bool = False) -> set[str]:
    """Check the placeholders of a text that may mix them with other words; gives the names it uses."""
    text = str(node.value)
    found = set(PLACEHOLDER.findall(text))
    for name in sorted(found):
        _known(node, name, names, report, spread=spread)
        match = PAYLOAD.fullmatch(name) if names.payload else None
        if match is not None and not match["pointer"]:
            _bad(node, report, "The payload as a whole cannot stand here; write {payload/name} with a member of it.")
        elif match is not None and match["optional"] and spread:
            _bad(node, report, f"A path needs all of its values; write {{{name.removesuffix('?')}}} without the ?.")
    if {"{", "}"} & set(PLACEHOLDER.sub("", text)):
        _bad(node, report, f"A brace stands alone in {text}; write {{name}} or remove it.")
    return found


def _body(request: Node, names: Names, report: Report) -> set[str]:
    leaves = [request.get("json"), request.get("form"), request.at("graphql", "variables")]
    used: set[str] = set()
    for node in (below for leaf in leaves if leaf is not None for below in leaf.walk()):
        if not isinstance(node.value, str):
            continue
        found = [name.removesuffix(":int") for name in PLACEHOLDER.findall(node.value)]
        whole = PLACEHOLDER.fullmatch(node.value) is not None
        ours = sorted(name for name in found if name in names.plain or (names.payload and PAYLOAD.fullmatch(name)))
        if ours and not whole:
            _bad(node, report, f"In a body a placeholder is a whole value; write {{{ours[0]}}} alone.")
        elif whole:
            _known(node, found[0], names, report)
            used.add(found[0])
    return used


def _known(node: Node, name: str, names: Names, report: Report, *, spread: bool = False) -> None:
    plain = name.removeprefix("+")
    if name in names.plain or (spread and name != plain and plain in names.spread):
        return
    if _first(plain) == "payload":
        if names.payload and PAYLOAD.fullmatch(name):
            return
        known = "write it like {payload/name}" if names.payload else "it stands only under submit"
        _bad(node, report, f"The placeholder {{{name}}} is not known here; {known}.")
        return
    listed = ", ".join(f"{{{word}}}" for word in _listed(names, spread=spread)) or "none here"
    if (reason := names.reasons.get(plain)) is not None:
        _bad(node, report, f"{reason}; write one of: {listed}.")
    else:
        advice = f"write one of: {listed}, or add {name or 'it'} to params."
        _bad(node, report, f"The placeholder {{{name}}} is not known; {advice}")


def _first(name: str) -> str:
    return name.partition("/")[0].removesuffix("?")


def _listed(names: Names, *, spread: bool) -> Iterator[str]:
    words = {*names.plain, *({f"+{name}" for name in names.spread} if spread else ())}
    yield from sorted(words | ({"payload/name"} if names.payload else set()))


def _bad(node: Node, report: Report, message: str) -> None:
    report.add(node.mark, node.path, "placeholder", message)
