"""`jobtrack verify-audit`: prove an audit export without a database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from jobtrack.cli import screen
from jobtrack.core.audit import Heads, Report, closing_heads, verify
from jobtrack.errors import UsageError


@click.command("verify-audit", short_help="Prove that an audit export was not changed.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--key", "reference", metavar="REF", help="Check the signature; REF is env:NAME or file:PATH.")
@click.option(
    "--earlier",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An older export that you trust: finds a chain that was rewritten or cut since.",
)
@screen.json_option
@click.pass_context
def verify_audit(ctx: click.Context, file: Path, reference: str | None, earlier: Path | None, *, as_json: bool) -> None:
    """Verify an audit export: edits, deletions, insertions, reordering, truncation.

    FILE may be - for standard input.
    """
    key = _secret(reference) if reference else None
    heads = _heads(earlier) if earlier else None
    report = verify(_lines(file), key=key, earlier=heads)
    if as_json:
        screen.show_json(_document(report))
    else:
        _show(report, key=key)
    ctx.exit(screen.GOOD if report.good else screen.FINDINGS)


def _secret(reference: str) -> bytes:
    """The key, found as credentials are: it never stands on the command line itself."""
    from jobtrack.transports import CredentialResolver

    if not reference.startswith(("env:", "file:/")):
        message = "--key needs a reference: env:NAME or file:/path."
        raise UsageError(message)
    resolver = CredentialResolver(references={"": {"": reference}})
    return resolver.resolve("", "").reveal().encode()


def _heads(path: Path) -> Heads:
    """The heads that an older export states."""
    try:
        heads = closing_heads(_lines(path))
    except (ValueError, AttributeError, RecursionError):
        heads = {}
    if not heads:
        message = f"{path} has no closing line with heads: it is not a complete export."
        raise UsageError(message)
    return heads


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file; a broken character is a changed entry, not a broken command."""
    try:
        with click.open_file(str(path), encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        message = f"{path} cannot be read: {(error.strerror or 'unknown trouble').lower()}."
        raise UsageError(message) from error


def _document(report: Report) -> dict[str, object]:
    return {
        "good": report.good,
        "entries": report.entries,
        "operations": report.operations,
        "signature_checked": report.signed,
        "faults": [asdict(fault) for fault in report.faults],
        "heads": {operation_id: list(head) for operation_id, head in report.heads.items()},
    }


def _show(report: Report, *, key: bytes | None) -> None:
    for fault in report.faults:
        place = f"line {fault.line}" if fault.line else "file"
        about = f"  operation {screen.plain(fault.operation_id)}" if fault.operation_id else ""
        click.echo(f"{screen.bad(place)}{about}  {screen.plain(fault.problem)}")
    seen = f"{screen.count(report.entries, 'entry', 'entries')} of {screen.count(report.operations, 'operation')}"
    verdict = screen.good("intact") if report.good else screen.bad(screen.count(len(report.faults), "fault"))
    click.echo(f"{seen}: {verdict}")
    if report.good and not report.signed:
        why = "the export carries no signature" if key else "give --key to check the signature"
        click.echo(screen.faint(f"The chains fit together; who closed the export was not checked ({why})."))
