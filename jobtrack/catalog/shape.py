"""The published JSON Schema, and its findings as sentences with a place (R-TABLE-1)."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from jobtrack.catalog.findings import MOST_FINDINGS, Path, Report
from jobtrack.catalog.nodes import Leaf, Node
from jobtrack.catalog.strict import quoted

SCHEMA_FILE = "provider-1.json"
_ROUNDS = 6
_StandIn = Leaf | list[str] | dict[str, Node]
_STAND_INS: dict[Path, _StandIn] = {
    ("jobtrack",): 1,
    ("id",): "unnamed",
    ("name",): "unnamed",
    ("docs",): "https://unnamed.invalid",
    ("revision",): 1,
    ("hosts",): ["https://unnamed.invalid"],
    ("status", "request"): {},
}
"""Values for required keys that are missing, so that the rest of the table can still be checked."""


def schema() -> dict[str, Any]:
    """The published schema of provider tables (JSON Schema, draft 2020-12), as a fresh mapping."""
    text = (resources.files("jobtrack.catalog") / "schema" / SCHEMA_FILE).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def conform(root: Node, report: Report) -> bool:
    """Check a tree against the schema and cut away what does not fit, so that the rest can be read on.

    Each mistake is reported once. Cutting may uncover further mistakes, so the check is repeated.

    Returns:
        True if what is left fits the schema: the tree is then safe to build from.
    """
    for _ in range(_ROUNDS):
        mistakes = list(islice(_validator().iter_errors(root.plain()), MOST_FINDINGS))
        if not mistakes:
            return True
        mending = _Mending(root, report)
        for mistake in mistakes:
            mending.explain(mistake)
        mending.finish()
    return False


# --- exact types: 1.0 is no integer, `$` is the very end of a text -----------------------------------


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
    exact = pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
    if isinstance(value, str) and not re.search(exact, value):
        yield ValidationError("does not match")


@cache
def _validator() -> Any:
    checker = Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer)
    strict: Any = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, validators={"pattern": _pattern}, type_checker=checker
    )
    return strict(schema())


# --- sentences ---------------------------------------------------------------------------------------


class _Mending:
    """Reports the mistakes of one validation and cuts them out of the tree."""

    def __init__(self, root: Node, report: Report) -> None:
        self._root = root
        self._report = report
        self._dropped: list[tuple[list[Node], Node]] = []  # cut at the end: the mistakes count list members from 0

    def finish(self) -> None:
        for members, node in self._dropped:
            members.remove(node)

    def explain(self, error: ValidationError) -> None:
        node = self._root.at(*error.absolute_path)
        if node is None:
            return  # it went away with an earlier mistake
        if error.validator == "anyOf":
            self._any_of(error, node)
        elif error.validator == "additionalProperties":
            self._unknown_keys(error, node)
        elif error.validator == "required":
            self._missing_keys(error, node)
        elif "propertyNames" in error.absolute_schema_path:
            self._bad_name(error, node)
        else:
            self._bad_value(error, node)

    def _any_of(self, error: ValidationError, node: Node) -> None:
        """Follow the one branch that is meant, judged by the type of the value."""
        branches: dict[object, list[ValidationError]] = {}
        for nested in error.context or ():
            branches.setdefault(nested.relative_schema_path[0], []).append(nested)
        meant = [found for found in branches.values() if not any(_wrong_kind(nested) for nested in found)]
        if len(meant) == 1:
            for nested in meant[0]:
                self.explain(nested)
        else:
            self._bad_value(error, node)

    def _unknown_keys(self, error: ValidationError, node: Node) -> None:
        known = [
            *_rules(error).get("properties", {}),
            *_EXAMPLE_KEYS.get(tuple(_rules(error).get("patternProperties", {})), ()),
        ]
        patterns = _rules(error).get("patternProperties", {})
        for key, item in node.pairs():
            if key in _rules(error).get("properties", {}) or any(re.search(pattern, key) for pattern in patterns):
                continue
            message = f"The key {_short(key)} is not known here; {_instead(key, known)}"
            self._report.add(node.key_mark(key), (*node.path, key), "unknown_key", message)
            self._look_alikes(item)
            self._cut(node, key)

    def _look_alikes(self, node: Node) -> None:
        """Words under a misplaced key are words all the same."""
        for leaf in node.walk():
            if _is_look_alike(leaf) and (leaf.value is None or isinstance(leaf.value, float)):
                self._report.add(leaf.mark, leaf.path, "look_alike", _as_text(leaf))

    def _missing_keys(self, error: ValidationError, node: Node) -> None:
        properties = _rules(error)["properties"]
        for key in _rules(error)["required"]:
            if node.get(key) is not None:
                continue
            if not self._report.touched((*node.path, key)):
                message = f"The key {key} is missing; write {key}: with {_wanted(properties[key])}."
                self._report.add(node.mark, (*node.path, key), "missing_key", message)
            if not self._stand_in(node, key) and node.path:
                self._cut_away(node)

    def _stand_in(self, parent: Node, key: str) -> bool:
        path = (*parent.path, key)
        if path not in _STAND_INS or not isinstance(parent.value, dict):
            return False
        parent.value[key] = _stand_in(_STAND_INS[path], parent, path)
        return True

    def _bad_name(self, error: ValidationError, node: Node) -> None:
        key = str(error.instance)
        message = f"The name {_short(key)} cannot be used; write {_wanted(_rules(error))}."
        self._report.add(node.key_mark(key), (*node.path, key), "name", message)
        self._cut(node, key)

    def _bad_value(self, error: ValidationError, node: Node) -> None:
        emptied = error.validator in ("minItems", "minProperties") and self._report.touched(node.path)
        if not node.refused and not emptied:
            code, message = _sentence(error, node)
            self._report.add(node.mark, node.path, code, message)
        self._mend(error, node)

    def _mend(self, error: ValidationError, node: Node) -> None:
        """Keep a look-alike as the text it was meant to be; cut anything else away."""
        if _takes_text(error) and _is_look_alike(node):
            node.value, node.refused = node.text, True
        else:
            self._cut_away(node)

    def _cut_away(self, node: Node) -> None:
        node.refused = True
        for parent in self._root.walk():
            if isinstance(parent.value, list) and node in parent.value:
                if (parent.value, node) not in self._dropped:
                    self._dropped.append((parent.value, node))
                    self._report.cuts.append(node.path)
                return
            for key, item in parent.pairs():
                if item is node:
                    self._cut(parent, key)
                    return

    def _cut(self, parent: Node, key: str) -> None:
        assert isinstance(parent.value, dict)
        self._report.cuts.append((*parent.path, key))
        del parent.value[key]


def _stand_in(value: _StandIn, parent: Node, path: Path) -> Node:
    if isinstance(value, list):
        members = [_stand_in(item, parent, path) for item in value]
        return Node(value=members, mark=parent.mark, path=path, refused=True)
    return Node(value={} if isinstance(value, dict) else value, mark=parent.mark, path=path, refused=True)


def _rules(error: ValidationError) -> Mapping[str, Any]:
    """The part of the schema that was not met."""
    assert isinstance(error.schema, Mapping)
    return error.schema


def _wrong_kind(error: ValidationError) -> bool:
    """True if the value itself (not something inside it) is of another type than this branch wants."""
    return error.validator == "type" and len(error.relative_path) == 0


def _is_look_alike(node: Node) -> bool:
    return bool(node.text) and not node.refused and not isinstance(node.value, str | list | dict)


def _takes_text(error: ValidationError) -> bool:
    if error.validator == "anyOf":
        return any(_takes_text(nested) for nested in error.context or ())
    wanted = _rules(error).get("type", ())
    return error.validator == "type" and "string" in ([wanted] if isinstance(wanted, str) else wanted)


def _sentence(error: ValidationError, node: Node) -> tuple[str, str]:
    wanted = _wanted(_rules(error))
    if _is_look_alike(node) and _takes_text(error):
        if "duration" in wanted or "unit" in wanted:
            return "type", f"{_short(node.text)} has no unit; write {wanted}."
        return "look_alike", _as_text(node)
    if error.validator in ("minItems", "minProperties"):
        return "too_few", f"Too little stands here; write {wanted}."
    if error.validator in ("maxItems", "maxProperties"):
        return "too_many", f"Too much stands here; write {wanted}."
    if error.validator == "enum":
        known = [value for value in _rules(error)["enum"] if value]
        return "value", f"{_seen(node)} is not known here; {_instead(node.text, known)}"
    return "value", f"{_seen(node)} does not fit here; write {wanted}."


def _as_text(node: Node) -> str:
    advice = f"write {quoted(_short(node.text))}"
    if node.value is None:
        advice += " for the word, or {missing: null} where a value may be missing"
    return f"{_short(node.text)} is not text as it stands; {advice}."


def _wanted(schema: Mapping[str, Any]) -> str:
    """What a schema asks for, in words: its title, or its list of values, or its kind."""
    schema = _resolved(schema)
    if title := schema.get("title"):
        return str(title)
    if values := schema.get("enum"):
        return f"one of {', '.join(str(value) for value in values)}"
    if schema["type"] == "array":
        least, most = schema.get("minItems"), schema.get("maxItems")
        return "a list" + (f" of at least {least}" if least else "") + (f", at most {most}" if most else "")
    keys = ", ".join(schema.get("required") or schema.get("properties", {}))
    return f"a mapping with {keys}" if keys else "a mapping"


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    resolved: Mapping[str, Any] = _validator().schema["$defs"][reference.rsplit("/", 1)[1]]
    return resolved


_PLACES = ("^(/|\\$)", "^header [^ ]+$")
_EXAMPLE_KEYS: dict[tuple[str, ...], tuple[str, ...]] = {_PLACES: ("/a/place", "header Name")}


def _instead(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word.casefold(), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"write one of {', '.join(known)}."


def _seen(node: Node) -> str:
    if isinstance(node.value, list):
        return "This list"
    if isinstance(node.value, dict):
        return "This mapping"
    return _short(node.text) or "An empty text"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
