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
    near = difflib.get_close_matches(name, known.ids(), n=1)
    if near and near[0] != name:
        raise TableMissing(f"There is no table {name!r}. Did you mean {near[0]!r}?", table=name)
    return known.require(name)
