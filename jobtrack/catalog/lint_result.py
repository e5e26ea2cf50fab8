"""Results: no start or two, lists that lead nowhere."""

from __future__ import annotations

from datetime import timedelta

from jobtrack.catalog.checks import Checks
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.nodes import Node
from jobtrack.core.actions import FetchSpec
from jobtrack.core.place import Body, HttpStatus
from jobtrack.core.table import ProviderTable

_RESULT: Path = ("result",)
LONGEST_TRY = timedelta(hours=6)
"""Of one try: a worker holds the delivery so long."""


def check_result(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with how a table fetches results."""
    spec = table.result
    if spec is None:
        return
    checks = Checks(root, report)
    _start(checks, spec)
    _each(checks, spec)
    _values(checks, spec)
    _limits(checks, spec)


def _start(checks: Checks, spec: FetchSpec) -> None:
    ways = {"value": spec.value is not None, "url": bool(spec.url), "request": spec.hop is not None}
    others = {**ways, "each": spec.each is not None, "item_request": spec.per_item is not None}
    if not any(others.values()):
        if not checks.touched(_RESULT):
            message = "Nothing says where the result is; write one of value, url and request."
            checks.error(_RESULT, "no_start", message)
    elif spec.value is not None:
        for key in [key for key, written in others.items() if written and key != "value"]:
            message = f"value is the whole result; remove {key}, or remove value."
            checks.error((*_RESULT, key), "two_starts", message)


def _each(checks: Checks, spec: FetchSpec) -> None:
    if spec.each is not None and spec.value is None and not spec.url and spec.per_item is None:
        message = "Nothing says what to fetch for an item; write url: with its place, or item_request."
        checks.error((*_RESULT, "each"), "each", message)
    if spec.per_item is not None and spec.each is None:
        checks.error(
            (*_RESULT, "item_request"), "each", "item_request goes with each: with the place of the list, or places."
        )
    if isinstance(spec.each, tuple):
        _twice(checks, spec.each)
    if spec.per_item is not None and spec.url:
        checks.error((*_RESULT, "url"), "each", "Write only one of url and item_request.")
    if checks.written((*_RESULT, "pages")) and spec.next is None:
        checks.error((*_RESULT, "pages"), "next", "pages goes with next; write both or remove it.")


def _twice(checks: Checks, places: tuple[Body, ...]) -> None:
    for index, place in enumerate(places):
        if place.tokens in [earlier.tokens for earlier in places[:index]]:
            message = "This place is in the list already, and its file would be fetched twice; remove it."
            checks.error((*_RESULT, "each", index), "each", message)


def _values(checks: Checks, spec: FetchSpec) -> None:
    for key, hop in (("values", spec.hop), ("item_values", spec.per_item)):
        for name, at in () if hop is None else hop.values:
            if isinstance(at, HttpStatus):
                checks.error((*_RESULT, key, name), "place", "A status code is no value; write a place in the answer.")


def _limits(checks: Checks, spec: FetchSpec) -> None:
    path: Path = (*_RESULT, "total")
    if not spec.total:
        checks.error(path, "zero", "total is zero; write a duration above zero, such as 10m.")
    if spec.total > LONGEST_TRY:
        checks.error(path, "too_long", "A worker would hold the result for too long; write at most 6h.")
