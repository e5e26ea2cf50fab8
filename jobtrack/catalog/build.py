"""From a checked tree to the record that the core reads."""

from __future__ import annotations

from hashlib import sha256

from jobtrack.catalog.build_result import build_result
from jobtrack.catalog.build_status import build_status
from jobtrack.catalog.build_submit import build_cancel, build_submit
from jobtrack.catalog.build_webhook import build_webhook
from jobtrack.catalog.examples import build_example
from jobtrack.catalog.findings import Report
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import Reader, fill, flag, number, text, texts, whole
from jobtrack.core.table import (
    Auth,
    AuthKind,
    BudgetSpec,
    Example,
    Extension,
    GatePolicy,
    GateScope,
    Param,
    ParamPattern,
    Polling,
    ProviderTable,
    RequestLimits,
    Retention,
    StatusSpec,
)


def build(root: Node, source_text: str, report: Report) -> ProviderTable:
    """Build the record of a tree that fits the schema.

    Args:
        root: The tree.
        source_text: The text it was read from; kept with its digest (R-TABLE-8).
        report: Gets what only shows while building, such as a place that cannot be read.
    """
    reader = Reader(report)
    status = root.get("status")
    assert status is not None
    built = build_status(status, reader)
    return ProviderTable(
        digest=sha256(source_text.encode("utf-8", "surrogatepass")).hexdigest(),
        text=source_text,
        source=report.file,
        status=built,
        submit=build_submit(root.get("submit"), reader),
        cancel=build_cancel(root.get("cancel"), reader),
        result=build_result(root.get("result"), reader),
        webhook=build_webhook(root.get("webhook"), reader),
        params=_params(root.get("params")),
        polling=_polling(root.get("polling"), reader),
        budget=_budget(root.get("budget"), reader),
        gate=_gate(root.get("gate"), reader),
        limits=_limits(root.get("limits"), reader),
        retention=_retention(root.get("retention"), reader),
        examples=_examples(root.get("examples"), built, reader),
        **fill(
            root,
            id=text,
            name=text,
            docs=text,
            revision=whole,
            hosts=texts,
            auth=lambda node: _auth(node, reader),
            on_failure=text,
            allow_loopback=flag,
        ),
    )


def _params(node: Node | None) -> dict[str, Param]:
    if node is None:
        return {}
    return {name: _param(item) for name, item in node.pairs()}


def _param(node: Node) -> Param:
    read = fill(node, **{"from": text}, pattern=lambda item: ParamPattern(text(item)))
    return Param(source=read["from"], pattern=read["pattern"])


def _auth(node: Node, reader: Reader) -> Auth:
    if isinstance(node.value, str):
        return Auth(kind=AuthKind(node.value))
    ways = [way for way in ("header", "basic", "query", "signer") if node.get(way) is not None]
    if len(ways) != 1:  # also none: the schema only asks for any key
        reader.report.add(node.mark, node.path, "auth", "Write exactly one of header, basic, query and signer here.")
        return Auth()
    way, value = next((way, value) for way, value in node.pairs() if way in ways)
    if node.get("prefix") is not None and way != "header":
        reader.report.add(node.key_mark("prefix"), node.path, "auth", "prefix goes with header only; remove it.")
    name = "" if way == "basic" else text(value)
    return Auth(kind=AuthKind(way), name=name, **fill(node, prefix=text))


def _polling(node: Node | None, reader: Reader) -> Polling:
    duration = reader.duration
    return Polling(
        **fill(
            node,
            first=duration,
            base=duration,
            factor=number,
            cap=duration,
            min_interval=duration,
            max_guidance=duration,
        )
    )


def _budget(node: Node | None, reader: Reader) -> BudgetSpec:
    return BudgetSpec(
        **fill(
            node,
            deadline=reader.duration,
            status_requests=whole,
            transport_failures=whole,
            rate_limited=whole,
            extension=lambda item: Extension(**fill(item, time=reader.duration, status_requests=whole, times=whole)),
        )
    )


def _gate(node: Node | None, reader: Reader) -> GatePolicy:
    return GatePolicy(
        **fill(
            node,
            scope=lambda item: GateScope(text(item)),
            max_hold=reader.duration,
            breaker_failures=whole,
            breaker_hold=reader.duration,
        )
    )


def _limits(node: Node | None, reader: Reader) -> RequestLimits:
    duration = reader.duration
    return RequestLimits(**fill(node, connect=duration, read=duration, total=duration, max_bytes=whole))


def _retention(node: Node | None, reader: Reader) -> Retention:
    return Retention(**fill(node, job=reader.duration, result=reader.duration))


def _examples(node: Node | None, status: StatusSpec, reader: Reader) -> tuple[Example, ...]:
    if node is None:
        return ()
    return tuple(build_example(item, status, reader) for item in node.items())
