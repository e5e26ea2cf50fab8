"""What success must carry before it counts, and what of it is kept (R-TABLE-3, R-READ-3, INV-11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jobtrack.core import sentences_answer as say
from jobtrack.core.jsontext import JsonObject, Malformed
from jobtrack.core.locate import Answer, Found, Unreadable, read
from jobtrack.core.observation import Kind
from jobtrack.core.place import Gap, Locator
from jobtrack.core.table import FieldType, ProviderTable, ResultSpec
from jobtrack.core.target import origin_of, result_allowed
from jobtrack.core.text import MASK, storable

MAX_KEPT_BYTES = 16 * 1024
"""Most bytes of all kept values together, as compact UTF-8 JSON."""

MAX_KEPT_DEPTH = 20
"""Most levels of a kept value: MariaDB takes JSON of at most 31, this one included (INV-12, INV-42)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """``kind`` is SUCCESS with the kept values, or why the success is none, with a sentence."""

    kind: Kind = Kind.SUCCESS
    detail: str = ""
    kept: Mapping[str, object] = field(default_factory=dict)


def read_result(table: ProviderTable, answer: Answer, params: Mapping[str, str]) -> Result:
    """Check a success against the table and take what is to be kept. Never raises.

    Args:
        table: Its ``status.result`` says what success must carry.
        answer: The answer that said success.
        params: The operation's parameters, for hosts with placeholders.
    """
    spec = table.status.result
    for locator, wanted in spec.require:
        problem = _required(locator, wanted, table, answer, params)
        if problem is not None:
            return problem
    return _exactly_one(spec, answer) or _keep(spec, answer)


def _required(
    locator: Locator, wanted: FieldType, table: ProviderTable, answer: Answer, params: Mapping[str, str]
) -> Result | None:
    seen = read(locator, answer)
    if isinstance(seen, Unreadable):
        return Result(kind=_unreadable(answer), detail=seen.problem)
    if not isinstance(seen, Found):
        return Result(kind=Kind.INVALID_RESULT, detail=say.SUCCESS_WITHOUT.of(place=locator.source, gap=seen))
    if wanted is FieldType.URL:
        return _url_problem(locator, seen.value, table, params)
    if not _TYPES[wanted](seen.value):
        return Result(kind=Kind.INVALID_RESULT, detail=say.SUCCESS_OF_TYPE.of(place=locator.source, type=wanted))
    if not table.status.result.empty_ok and seen.value in ("", []) and wanted is not FieldType.ANY:
        return Result(kind=Kind.INVALID_RESULT, detail=say.SUCCESS_EMPTY.of(place=locator.source))
    return None


def _unreadable(answer: Answer) -> Kind:
    """A body that is there and cannot be read says nothing; a body that is not there lacks the result."""
    lacking = isinstance(answer.document, Malformed) and answer.document.empty
    return Kind.INVALID_RESULT if lacking else Kind.INVALID_RESPONSE


_TYPES: Mapping[FieldType, Callable[[object], bool]] = {
    FieldType.ANY: lambda _: True,
    FieldType.STRING: lambda value: isinstance(value, str),
    FieldType.INTEGER: lambda value: type(value) is int,
    FieldType.NUMBER: lambda value: type(value) in (int, float),
    FieldType.BOOLEAN: lambda value: isinstance(value, bool),
    FieldType.ARRAY: lambda value: isinstance(value, list),
    FieldType.OBJECT: lambda value: isinstance(value, dict),
}


def _url_problem(locator: Locator, value: object, table: ProviderTable, params: Mapping[str, str]) -> Result | None:
    if not isinstance(value, str) or "://" not in value:
        return Result(kind=Kind.INVALID_RESULT, detail=say.SUCCESS_NO_URL.of(place=locator.source))
    if result_allowed(value, table, params):
        return None
    origin = origin_of(value, loopback=True) or say.NO_PLAIN_URL.of()
    detail = say.RESULT_URL_DENIED.of(place=locator.source, origin=origin)
    return Result(kind=Kind.TARGET_DENIED, detail=detail)


def _exactly_one(spec: ResultSpec, answer: Answer) -> Result | None:
    if not spec.one_of:
        return None
    seen = [read(locator, answer) for locator in spec.one_of]
    unreadable = next((value for value in seen if isinstance(value, Unreadable)), None)
    if unreadable is not None:
        return Result(kind=Kind.INVALID_RESPONSE, detail=unreadable.problem)
    present = sum(isinstance(value, Found) and (spec.empty_ok or value.value not in ("", [])) for value in seen)
    if present == 1:
        return None
    names = ", ".join(locator.source for locator in spec.one_of)
    return Result(kind=Kind.INVALID_RESULT, detail=say.SUCCESS_ONE_OF.of(places=names, count=present))


# --- what is kept -----------------------------------------------------------------------------------


def _keep(spec: ResultSpec, answer: Answer) -> Result:
    kept: dict[str, object] = {}
    for name, locator in spec.keep:
        seen = read(locator, answer)
        if isinstance(seen, Unreadable):
            return Result(kind=Kind.INVALID_RESPONSE, detail=seen.problem)
        if isinstance(seen, Found) and repeats(seen.value):
            return Result(kind=Kind.INVALID_RESPONSE, detail=say.TWICE_INSIDE.of(place=locator.source))
        if isinstance(seen, Found) and _deeper(seen.value, MAX_KEPT_DEPTH):
            detail = say.KEPT_TOO_DEEP.of(place=locator.source, most=MAX_KEPT_DEPTH)
            return Result(kind=Kind.INVALID_RESULT, detail=detail)
        kept[name] = None if isinstance(seen, Gap) else _storable(seen.value, spec.secret)
    size = len(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_KEPT_BYTES:
        return Result(kind=Kind.INVALID_RESULT, detail=say.KEPT_TOO_LARGE.of(count=size, most=MAX_KEPT_BYTES))
    return Result(kept=kept)


def _deeper(value: object, levels: int) -> bool:
    """True if lists and objects are nested in each other more often than ``levels``."""
    match value:
        case dict():
            return levels == 0 or any(_deeper(item, levels - 1) for item in value.values())
        case list():
            return levels == 0 or any(_deeper(item, levels - 1) for item in value)
        case _:
            return False


def repeats(value: object) -> bool:
    match value:
        case JsonObject():
            return bool(value.duplicates) or any(repeats(item) for item in value.values())
        case list():
            return any(repeats(item) for item in value)
        case _:
            return False


def _storable(value: object, secret: bool) -> object:
    """A plain copy that every database takes. URLs of a secret result are capabilities: only their place is kept."""
    match value:
        case str():
            return MASK if secret and ("://" in value or value.startswith("//")) else storable(value)
        case dict():
            return {storable(name): _storable(item, secret) for name, item in value.items()}
        case list():
            return [_storable(item, secret) for item in value]
        case _:
            return value
