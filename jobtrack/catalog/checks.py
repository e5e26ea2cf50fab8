"""Findings by path, also at keys that a table leaves to their default."""

from __future__ import annotations

from jobtrack.catalog.findings import Mark, Path, Report
from jobtrack.catalog.nodes import Node


class Checks:
    """Places of a tree by path, also of keys that are left to their default."""

    def __init__(self, root: Node, report: Report) -> None:
        self._root = root
        self._report = report

    def error(self, path: Path, code: str, message: str) -> None:
        self._report.add(self._mark(path), path, code, message)

    def warn(self, path: Path, code: str, message: str) -> None:
        self._report.warn(self._mark(path), path, code, message)

    def written(self, path: Path) -> bool:
        return self._root.at(*path) is not None

    def touched(self, path: Path) -> bool:
        """True if something there was left out because it is wrong by itself."""
        return self._report.touched(path)

    def _mark(self, path: Path) -> Mark:
        while path and not self.written(path):
            path = path[:-1]
        node = self._root.at(*path)
        assert node is not None
        return node.mark
