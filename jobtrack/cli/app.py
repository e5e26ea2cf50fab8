"""The command group and the one place where errors become exit codes."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

import click

from jobtrack import __version__
from jobtrack.cli import screen
from jobtrack.cli.check import check
from jobtrack.cli.diagram import diagram
from jobtrack.cli.explain import explain
from jobtrack.cli.replay import replay
from jobtrack.cli.schedule import schedule
from jobtrack.cli.schema import schema
from jobtrack.cli.verify_audit import verify_audit
from jobtrack.errors import JobtrackError, TableError


class _Group(click.Group):
    """A user's mistake is a sentence and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            return super().invoke(ctx)
        except TableError as error:
            click.echo(screen.plain_lines(error.message), err=True)
            ctx.exit(screen.FINDINGS)
        except JobtrackError as error:
            raise click.UsageError(screen.plain_lines(error.message)) from error

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As click's own, which ends quietly where the reader of a pipe has seen enough; other trouble is told."""
        if sys.stdin is None:  # closed by whoever started us; there is nothing to be read
            sys.stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            said = screen.plain(f"{(error.strerror or 'unknown trouble').capitalize()}.")
            with suppress(OSError):
                click.echo(f"Error: {said}", err=True)
            for stream in filter(None, (sys.stdout, sys.stderr)):
                _forget(stream)
            sys.exit(screen.USAGE)


def _forget(stream: TextIO) -> None:
    """What could not be written is not tried again at the end of the process, which would change its exit code."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="jobtrack", message="%(prog)s %(version)s")
def main() -> None:
    """Read, check and try out provider tables; verify an audit export.

    Exit codes: 0 good, 1 findings, 2 wrong usage. Each command takes --json.
    """


for command in (check, explain, replay, schedule, schema, diagram, verify_audit):
    main.add_command(command)
