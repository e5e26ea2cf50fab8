"""The tables of this machine: found in directories, read when asked for, read again when they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jobtrack.catalog.findings import Finding, Mark, Report, refuse
from jobtrack.catalog.load import Checked, check_file
from jobtrack.core.table import ProviderTable
from jobtrack.errors import TableMissing

_Stamp = tuple[int, int, int]


def shipped_paths() -> list[Path]:
    """Where the tables that come with jobtrack are: inside the installed package, or ``providers/`` of a checkout."""
    package = Path(str(resources.files("jobtrack")))
    for place in (package / "_providers", package.parent / "providers"):
        if place.is_dir():
            return [place]
    return []


def table_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that may hold tables: files as given, and ``*.yaml`` of directories (not of their subdirectories)."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        found.update(dict.fromkeys(sorted(path.glob("*.yaml")) if _is(Path.is_dir, path) else [path]))
    return list(found)


def check_paths(paths: Iterable[str | Path]) -> list[Finding]:
    """Everything that is wrong with the tables in these files and directories, warnings included."""
    paths = list(paths)
    checked = [(path, check_file(path)) for path in table_files(paths)]
    findings = [finding for _, one in checked for finding in one.findings]
    return [*findings, *_same_ids(checked), *_other_endings(paths)]


def _same_ids(checked: list[tuple[Path, Checked]]) -> Iterator[Finding]:
    first: dict[str, Path] = {}
    for path, one in checked:
        if one.table_id and first.setdefault(one.table_id, path) != path:
            message = f"The table {one.table_id} is in {first[one.table_id]} too; keep one of the two files."
            yield _about_file(path, "same_id", message)


def _other_endings(paths: list[str | Path]) -> Iterator[Finding]:
    for directory in (path for path in map(Path, paths) if _is(Path.is_dir, path)):
        for path in sorted(directory.glob("*.yml")):
            yield _about_file(path, "file_name", f"The file is not read; rename it to {path.stem}.yaml.")


def _about_file(path: Path, code: str, message: str) -> Finding:
    report = Report(file=str(path))
    report.add(Mark(), (), code, message)
    return report.findings[0]


@dataclass(frozen=True, slots=True)
class _Read:
    stamp: _Stamp
    checked: Checked


class Catalog:
    """Tables by id. A file is read when its table is first asked for, and again when it has changed.

    Safe to use from several threads: at worst a file is read twice.

    Args:
        paths: Files and directories. A table is in the file ``<id>.yaml``.
        base: Files and directories that count for ids which ``paths`` do not have: a site mends a shipped table by
            a file of its own, without waiting for a release.
    """

    def __init__(self, paths: Iterable[str | Path], *, base: Iterable[str | Path] = ()) -> None:
        self._paths = tuple(Path(path) for path in paths)
        self._base = tuple(Path(path) for path in base)
        self._read: dict[Path, _Read] = {}

    def get(self, table_id: str) -> ProviderTable | None:
        """The newest usable table with this id; None if there is none, if it has errors, or if two files claim it."""
        checked = [self._check(path) for path in self._files(table_id)]
        return checked[0].table if len(checked) == 1 else None

    def require(self, table_id: str) -> ProviderTable:
        """The newest table with this id.

        Raises:
            TableMissing: No file holds it.
            TableError: Its file has errors, or two files claim it.
        """
        files = self._files(table_id)
        if not files:
            known = ", ".join(self.ids()) or "none"
            raise TableMissing(f"There is no provider table {table_id}. Known tables: {known}.", table=table_id)
        checked = [(path, self._check(path)) for path in files]
        if len(files) > 1:
            raise refuse(table_id, _same_ids(checked))
        table = checked[0][1].table
        if table is None:
            raise refuse(str(files[0]), checked[0][1].findings)
        return table

    def ids(self) -> list[str]:
        """Names of all tables, usable or not, sorted."""
        return sorted({path.stem for path in table_files([*self._paths, *self._base]) if _is(Path.is_file, path)})

    def findings(self) -> list[Finding]:
        """Everything that is wrong with the tables of this catalog."""
        mended = {path.name for path in table_files(self._paths)}
        return check_paths([*self._paths, *(path for path in table_files(self._base) if path.name not in mended)])

    def _files(self, table_id: str) -> list[Path]:
        """Files that may hold the table. The name tells, so that one look-up never reads every file."""
        name = f"{table_id}.yaml"
        return _named(self._paths, name) or _named(self._base, name)

    def _check(self, path: Path) -> Checked:
        stamp = _stamp(path)
        known = self._read.get(path)
        if known is None or known.stamp != stamp:
            known = self._read[path] = _Read(stamp, check_file(path))
        return known.checked


def _named(paths: Iterable[Path], name: str) -> list[Path]:
    places = dict.fromkeys(path / name if _is(Path.is_dir, path) else path for path in paths)
    return [path for path in places if path.name == name and _is(Path.is_file, path)]


def _is(kind: Callable[[Path], bool], path: Path) -> bool:
    """False also where this process may not look: one unreadable place never hides the other tables."""
    try:
        return kind(path)
    except OSError:
        return False


def _stamp(path: Path) -> _Stamp:
    """Changes whenever the file does; zeros if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
