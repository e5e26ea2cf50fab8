"""The ``status`` part of a table: how to ask, and what the answers mean."""

from __future__ import annotations

from collections.abc import Iterator

from jobtrack.catalog import pieces
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.parts import NOWHERE, Reader, fill, flag, gap, text, texts, whole
from jobtrack.catalog.strict import quoted
from jobtrack.core.place import Body, Condition, Gap, HttpStatus, Scalar
from jobtrack.core.reply import Trouble
from jobtrack.core.table import (
    FieldType,
    Hint,
    HintUnit,
    Instant,
    Meaning,
    NotFound,
    OpenStates,
    Pick,
    ResultSpec,
    Rule,
    StatePart,
    StateRow,
    StateType,
    StatusSpec,
)

_KINDS: dict[StateType, type] = {StateType.STRING: str, StateType.INTEGER: int, StateType.BOOLEAN: bool}
_CLASSES: dict[tuple[str, ...], Meaning] = {
    ("pending",): Meaning.PENDING,
    ("success",): Meaning.SUCCESS,
    ("failure",): Meaning.FAILURE,
    ("stop", "cancelled"): Meaning.CANCELLED,
    ("stop", "expired"): Meaning.EXPIRED,
    ("stop", "attention"): Meaning.ATTENTION,
}


def build_status(node: Node, reader: Reader) -> StatusSpec:
    """Build the status part of a tree that fits the schema."""
    parts = tuple(_state_part(item, reader) for item in _listed(node, "state"))
    return StatusSpec(
        state=parts,
        rows=tuple(row for _, row in state_rows(node, parts, reader)),
        rules=tuple(_rule(item, reader) for item in _listed(node, "rules")),
        hints=tuple(_hint(item, reader) for item in _listed(node, "hints")),
        **fill(
            node,
            request=lambda item: pieces.request(item, reader),
            read_http=pieces.codes,
            echo=reader.place,
            pick=lambda item: _pick(item, reader),
            open=lambda item: OpenStates(**fill(item, cite=text, starts_with=texts)),
            result=lambda item: _result(item, reader),
            error=reader.places,
            progress=reader.places,
            expires_at=lambda item: _instant(item, reader),
            not_found=lambda item: _not_found(item, reader),
            stall_after=reader.duration,
            stop_on=lambda item: frozenset(Trouble(word) for word in texts(item)),
        ),
    )


def _listed(node: Node, key: str) -> list[Node]:
    """The members under a key; none if it is not there."""
    item = node.get(key)
    return [] if item is None else item.items()


# --- states ------------------------------------------------------------------------------------------


def _state_part(node: Node, reader: Reader) -> StatePart:
    if isinstance(node.value, str):
        return StatePart(at=reader.body(node))
    if sum(node.get(key) is not None for key in ("at", "header", "http")) != 1:
        reader.report.add(node.mark, node.path, "place", "Write exactly one of at, header and http here.")
        return StatePart(at=NOWHERE)
    place = reader.place(node.get("at") or node)
    kind, fold = node.get("type"), node.get("fold_case")
    natural = StateType.INTEGER if isinstance(place, HttpStatus) else StateType.STRING
    wanted = natural if kind is None else StateType(text(kind))
    if kind is not None and wanted is not natural and not isinstance(place, Body):
        reader.report.add(
            kind.mark, kind.path, "type", f"The {place.source} is always of type {natural}; write {natural}."
        )
        wanted = natural
    return StatePart(at=place, type=wanted, fold=fold is not None and flag(fold))


def state_rows(node: Node, parts: tuple[StatePart, ...], reader: Reader) -> Iterator[tuple[Node, StateRow]]:
    """Each declared state with the node it stands at, class by class."""
    for path, meaning in _CLASSES.items():
        listed = node.at("states", *path)
        for item in [] if listed is None else listed.items():
            values = _row(item, parts, reader)
            if values is None:
                reader.report.cuts.append(item.path)
            else:
                yield item, StateRow(values=values, meaning=meaning)


def _row(node: Node, parts: tuple[StatePart, ...], reader: Reader) -> tuple[Scalar | Gap, ...] | None:
    """The values of one declared state; None if they do not fit the parts (reported)."""
    values = node.items()
    if not parts:
        return None
    if len(values) != len(parts):
        wanted = "one value" if len(parts) == 1 else f"a list of {len(parts)} values"
        reader.report.add(node.mark, node.path, "parts", f"The state has {_count(len(parts))}; write {wanted} here.")
        return None
    read = tuple(_value(item, part, reader) for item, part in zip(values, parts, strict=True))
    return None if None in read else tuple(value for value in read if value is not None)


def _count(parts: int) -> str:
    return "1 part" if parts == 1 else f"{parts} parts"


def _value(node: Node, part: StatePart, reader: Reader) -> Scalar | Gap | None:
    if (missing := node.get("missing")) is not None:
        return gap(missing)
    value = node.leaf()
    if type(value) is _KINDS[part.type] and isinstance(value, str | int):
        return value
    reader.report.add(node.mark, node.path, "look_alike", _wrong_type(node, part))
    return None


def _wrong_type(node: Node, part: StatePart) -> str:
    if part.type is StateType.STRING:
        return (
            f"{node.text} is not text as it stands; write {quoted(node.text)}, "
            "or give the state a type: integer or type: boolean."
        )
    wanted = "a whole number" if part.type is StateType.INTEGER else "true or false"
    return f"The state is of type {part.type}, and {node.text} is not; write {wanted} without quotes."


# --- tests -------------------------------------------------------------------------------------------


def conditions(node: Node, reader: Reader) -> tuple[Condition, ...]:
    """The tests of a mapping, one for each place."""
    return tuple(_condition(node, key, item, reader) for key, item in node.pairs())


def _condition(parent: Node, key: str, node: Node, reader: Reader) -> Condition:
    place = reader.keyed(parent, key)
    if not isinstance(node.value, dict):
        return Condition(at=place, equals=_scalars(node))
    if (words := node.get("fold_case")) is not None:
        return Condition(at=place, equals=_scalars(words), fold=True)
    if (missing := node.get("missing")) is not None:
        return Condition(at=place, gap=gap(missing))
    return Condition(at=place, **fill(node, present=flag, empty=flag, above=whole, same_as=reader.place))


def _scalars(node: Node) -> tuple[Scalar, ...]:
    leaves = (item.leaf() for item in node.items())
    return tuple(leaf for leaf in leaves if isinstance(leaf, str | int))


def _rule(node: Node, reader: Reader) -> Rule:
    tests = node.value["if"] if isinstance(node.value, dict) else node
    return Rule(
        conditions=conditions(tests, reader),
        line=node.mark.line,
        **fill(node, then=lambda item: Meaning(text(item)), cite=text),
    )


def _pick(node: Node, reader: Reader) -> Pick:
    wanted = fill(
        node,
        list=reader.body,
        id=reader.body,
        where=lambda item: conditions(item, reader),
        none=lambda item: Meaning(text(item)),
    )
    names = {"list": "list_at", "id": "id_at", "none": "none_means"}
    return Pick(**{names.get(key, key): value for key, value in wanted.items()})


# --- the request, and what an answer carries besides the state ---------------------------------------


def _result(node: Node, reader: Reader) -> ResultSpec:
    return ResultSpec(
        **fill(
            node,
            require=lambda item: tuple((reader.keyed(item, key), FieldType(text(kind))) for key, kind in item.pairs()),
            one_of=reader.places,
            keep=lambda item: pieces.placed(item, reader),
            hosts=texts,
            secret=flag,
            empty_ok=flag,
        )
    )


def _instant(node: Node, reader: Reader) -> Instant:
    if isinstance(node.value, str):
        return Instant(at=reader.body(node))
    return Instant(at=reader.body_or_header(node, "at"), **fill(node, unit=_unit))


def _hint(node: Node, reader: Reader) -> Hint:
    return Hint(at=reader.body_or_header(node, "body"), **fill(node, unit=_unit))


def _unit(node: Node) -> HintUnit:
    return HintUnit(text(node))


def _not_found(node: Node, reader: Reader) -> NotFound:
    window = fill(node, **{"for": reader.duration})
    return NotFound(window=window["for"], **fill(node, after_notice=reader.duration, then=text))
