"""`jobtrack check`: every mistake of every table in one run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from jobtrack import catalog
from jobtrack.catalog import Finding, Level
from jobtrack.cli import screen


@click.command(short_help="Find every mistake in provider tables.")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(exists=True, path_type=Path))
@screen.json_option
@click.pass_context
def check(ctx: click.Context, paths: tuple[Path, ...], *, as_json: bool) -> None:
    """Check provider tables: files or folders; the shipped tables if none is given.

    Reports every mistake with line and column, and runs the examples of each table.
    Warnings do not change the exit code.
    """
    wanted = paths or tuple(catalog.shipped_paths())
    files = catalog.table_files(wanted)
    if not files:
        message = "There is no .yaml file here."
        raise click.BadParameter(message, param_hint="PATH")
    findings = catalog.check_paths(wanted)
    errors = [finding for finding in findings if finding.level is Level.ERROR]
    if as_json:
        screen.show_json({"tables": len(files), "errors": len(errors), "findings": [asdict(each) for each in findings]})
    else:
        _show(files, findings, errors)
    ctx.exit(screen.FINDINGS if errors else screen.GOOD)


def _show(files: list[Path], findings: list[Finding], errors: list[Finding]) -> None:
    for finding in findings:
        show_finding(finding)
    warnings = len(findings) - len(errors)
    parts = [screen.bad(screen.count(len(errors), "error"))] if errors else []
    parts += [screen.warn(screen.count(warnings, "warning"))] if warnings else []
    click.echo(f"{screen.count(len(files), 'table')}: " + (", ".join(parts) or screen.good("no findings")))


def show_finding(finding: Finding) -> None:
    """One finding: place, level, message; below it where in the table that is."""
    level = screen.bad("error") if finding.level is Level.ERROR else screen.warn("warning")
    place = f"{finding.file}:{finding.line}:{finding.column}"
    click.echo(f"{screen.title(place)}  {level}  {screen.plain(finding.message)}")
    detail = f"{finding.path}  [{finding.code}]" if finding.path else f"[{finding.code}]"
    click.echo("    " + screen.faint(detail))
