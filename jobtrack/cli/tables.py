"""How commands find a table: an id of a known table, or the path of a file."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from jobtrack import catalog
from jobtrack.core.table import ProviderTable
from jobtrack.errors import TableMissing

tables_option = click.option(
    "--tables",
    "folders",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Look up ids in this file or folder too (repeatable).",
)

_ELSEWHERE = "To use a table of your own, give its file, or say where it is with --tables PATH."


def find_table(name: str, folders: tuple[Path, ...]) -> ProviderTable:
    """A table by its file or id.

    Raises:
        TableError: the table has errors.
        TableMissing: there is no such file or id; says which ids there are.
    """
    path = Path(name)
    if path.suffix in {".yaml", ".yml"} or path.is_file():
        if not path.is_file():
            raise TableMissing(f"There is no file {name!r}.", table=name)
        return catalog.load_file(path)
    known = catalog.Catalog(folders, base=catalog.shipped_paths())
    ids = known.ids()
    if name not in ids:
        near = difflib.get_close_matches(name, ids, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known tables: {', '.join(ids) or 'none'}. {_ELSEWHERE}"
        raise TableMissing(f"There is no provider table {name!r}. {hint}", table=name)
    return known.require(name)
