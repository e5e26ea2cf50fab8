"""`jobtrack replay`: run cases against the real flow and show where they differ."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from jobtrack.catalog import load_file
from jobtrack.cli import screen
from jobtrack.cli.tables import find_table, tables_option
from jobtrack.core.schedule import duration
from jobtrack.core.table import ProviderTable
from jobtrack.testing.replay import Case, Report, Step, load_cases, run_case


@click.command(short_help="Run cases against the real flow.")
@click.argument("cases", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="CASE...")
@click.option("-v", "--verbose", is_flag=True, help="Show the looks of good cases too.")
@tables_option
@screen.json_option
@click.pass_context
def replay(
    ctx: click.Context, cases: tuple[Path, ...], folders: tuple[Path, ...], *, verbose: bool, as_json: bool
) -> None:
    """Run CASE files, or all .yaml files of a folder, and compare with what they expect.

    The real flow runs on a virtual clock with a store in memory; nothing is sent. See docs/replay.md for the format.
    Exit code 1 if a case differs.
    """
    loaded = [case for path in _files(cases) for case in _load(path, folders)]
    reports = [(case, run_case(case)) for case in loaded]
    if as_json:
        screen.show_json([_document(report) for _, report in reports])
    else:
        _show(reports, verbose=verbose)
    ctx.exit(screen.GOOD if all(report.good for _, report in reports) else screen.FINDINGS)


def _files(paths: tuple[Path, ...]) -> list[Path]:
    found = [file for path in paths for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    if not found:
        message = "There is no .yaml file here."
        raise click.BadParameter(message, param_hint="CASE")
    return list(dict.fromkeys(found))


def _load(path: Path, folders: tuple[Path, ...]) -> list[Case]:
    def find(name: str) -> ProviderTable:
        """A path counts from the case's own folder."""
        beside = path.parent / name
        return load_file(beside) if beside.is_file() else find_table(name, folders)

    return load_cases(path, find)


# --- output -----------------------------------------------------------------------------------------


def _document(report: Report) -> dict[str, Any]:
    return {
        "case": report.name,
        "good": report.good,
        "state": report.operation.state.value,
        "outcome": report.outcome,
        "reasons": [each.reason.value for each in report.escalations],
        "requests": [asked.kind for asked in report.asked],
        "unasked_replies": report.unasked,
        "steps": [{**asdict(step), "at": step.at.total_seconds()} for step in report.steps],
        "differences": [asdict(difference) for difference in report.differences],
    }


def _show(reports: list[tuple[Case, Report]], *, verbose: bool) -> None:
    for case, report in reports:
        mark = screen.good("good") if report.good else screen.bad("differs")
        click.echo(f"{mark}  {screen.title(report.name)}  {_ending(report)}")
        if verbose or not report.good:
            _show_steps(report)
        if not report.good:
            _show_differences(report)
        elif not case.expect:
            click.echo(screen.faint("    nothing is expected: this case proves nothing yet"))
    differing = sum(not report.good for _, report in reports)
    verdict = screen.bad(f"{differing} differ") if differing else screen.good("all as expected")
    click.echo(f"{screen.count(len(reports), 'case')}: {verdict}")


def _ending(report: Report) -> str:
    reasons = ", ".join(each.reason.value for each in report.escalations)
    unasked = f", {screen.count(report.unasked, 'reply', 'replies')} not asked for" if report.unasked else ""
    state = report.operation.state.value + (f" ({reasons})" if reasons else "")
    return screen.plain(f"{state} after {screen.count(len(report.asked), 'request')}{unasked}")


def _show_steps(report: Report) -> None:
    click.echo()
    screen.grid(["at", "answer", "means", "state", "decision", "delay", "source"], list(map(_row, report.steps)))
    click.echo()


def _row(step: Step) -> list[str]:
    delay = "" if step.delay_s is None else f"{step.delay_s:g} s"
    cells = [step.reply or "-", step.observation or "-", step.label, step.decision, delay, step.source or ""]
    return ["  " + duration(step.at), *map(screen.plain, cells)]


def _show_differences(report: Report) -> None:
    for each in report.differences:
        click.echo(f"  line {each.line}: {screen.title(each.what)}")
        click.echo(f"    expected  {screen.good(each.expected)}")
        click.echo(f"    actual    {screen.bad(each.actual)}")
    click.echo()
