"""A YAML text as a tree that remembers where each value stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jobtrack.catalog.findings import Mark, Path

Leaf = str | int | float | bool | None


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One value of the text: a scalar, a list or a mapping."""

    value: Leaf | list[Node] | dict[str, Node]
    mark: Mark
    path: Path = ()
    text: str = ""  # of a scalar: as written, without quotes
    refused: bool = False  # a finding stands here already; the value is a stand-in
    keys: dict[str, Mark] = field(default_factory=dict)  # of a mapping: where each key stands

    def get(self, key: str) -> Node | None:
        """The value of a key of a mapping; None if it is not there."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    def at(self, *steps: str | int) -> Node | None:
        """The node at a path below this one; None if there is none."""
        node: Node | None = self
        for step in steps:
            node = None if node is None else node.child(step)
        return node

    def child(self, step: str | int) -> Node | None:
        """The node one step down; None if there is none."""
        if isinstance(self.value, list):
            return self.value[step] if isinstance(step, int) and step < len(self.value) else None
        return self.get(str(step))

    def pairs(self) -> list[tuple[str, Node]]:
        """Keys and values of a mapping, in order; none for anything else."""
        return list(self.value.items()) if isinstance(self.value, dict) else []

    def items(self) -> list[Node]:
        """Members of a list; of anything else the node itself, so that one may stand for a list of one."""
        return self.value if isinstance(self.value, list) else [self]

    def key_mark(self, key: str) -> Mark:
        return self.keys.get(key, self.mark)

    def leaf(self) -> Leaf:
        """The value of a scalar."""
        return None if isinstance(self.value, list | dict) else self.value

    def plain(self) -> object:
        """The value without positions."""
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        return self.value

    def walk(self) -> Iterator[Node]:
        """This node and all below it, from top to bottom."""
        yield self
        below = self.value if isinstance(self.value, list) else [item for _, item in self.pairs()]
        for item in below:
            yield from item.walk()
