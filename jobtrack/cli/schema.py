"""`jobtrack schema`: the published JSON Schemas, for editors and for those who read outcomes or notices."""

from __future__ import annotations

from importlib import resources

import click

_FILES = {"provider": "provider-1.json", "outcome": "outcome-1.json", "notice": "notice-1.json"}


@click.command()
@click.argument("name", type=click.Choice(sorted(_FILES)), metavar="provider|outcome|notice")
@click.option("--json", "as_json", is_flag=True, help="For machines; it is JSON anyway.")
def schema(name: str, *, as_json: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of provider tables, outcomes of operations, or posted notices."""
    del as_json
    click.echo((resources.files("jobtrack.catalog") / "schema" / _FILES[name]).read_text(encoding="utf-8"), nl=False)
