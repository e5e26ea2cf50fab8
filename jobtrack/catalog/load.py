"""From text to table: every finding of one text in one run (R-TABLE-1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jobtrack.catalog.build import build
from jobtrack.catalog.findings import Finding, Mark, Report, errors, refuse
from jobtrack.catalog.lint import lint
from jobtrack.catalog.shape import conform
from jobtrack.catalog.strict import MAX_BYTES, parse
from jobtrack.core.table import ProviderTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was read from one text."""

    table: ProviderTable | None  # None: the text has errors
    table_id: str  # as written, also in a text with errors; "" if there is none
    findings: tuple[Finding, ...]  # from top to bottom, warnings too


def check_text(text: str, source: str = "") -> Checked:
    """Read a table and say everything that is wrong with it.

    Args:
        text: The YAML text.
        source: Name of the file, for messages.
    """
    report = Report(file=source)
    root = parse(text, report)
    if root is None:
        return _checked(None, "", report)
    if not conform(root, report) or root.get("status") is None:
        return _checked(None, _id(root.plain()), report)
    table = build(root, text, report)
    lint(root, table, report)
    return _checked(table, table.id, report)


def _id(plain: object) -> str:
    found = plain.get("id") if isinstance(plain, dict) else None
    return found if isinstance(found, str) else ""


def _checked(table: ProviderTable | None, table_id: str, report: Report) -> Checked:
    usable = None if errors(report.findings) else table
    return Checked(table=usable, table_id=table_id, findings=tuple(report.ordered()))


def check_file(path: Path) -> Checked:
    """Read the table in a file; see :func:`check_text`. The file is named after the table: ``<id>.yaml``."""
    report = Report(file=str(path))
    try:
        with path.open("rb") as file:  # a device or a huge file is never read to its end
            content = file.read(MAX_BYTES + 1)
        text = content.decode("utf-8") if len(content) <= MAX_BYTES else content.decode("latin-1")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        report.add(Mark(line=line), (), "encoding", "The file is not UTF-8; save it as UTF-8.")
        return _checked(None, "", report)
    except OSError as error:
        report.add(
            Mark(), (), "unreadable", f"The file cannot be read ({error.strerror}); check its name and permissions."
        )
        return _checked(None, "", report)
    checked = check_text(text, str(path))
    return _with_name(checked, path)


def _with_name(checked: Checked, path: Path) -> Checked:
    if not checked.table_id or checked.table_id == path.stem:
        return checked
    report = Report(file=str(path), findings=list(checked.findings))
    message = (
        f"The file is named {path.name} and the table {checked.table_id}; rename the file to {checked.table_id}.yaml."
    )
    report.add(Mark(), ("id",), "file_name", message)
    return _checked(checked.table, checked.table_id, report)


def load_text(text: str, source: str = "") -> ProviderTable:
    """Read a table from text.

    Raises:
        TableError: The text has errors. The message lists them; ``context["findings"]`` holds them as mappings.
    """
    return _usable(check_text(text, source), source)


def load_file(path: str | Path) -> ProviderTable:
    """Read a table from a file.

    Raises:
        TableError: The file cannot be read or has errors; see :func:`load_text`.
    """
    return _usable(check_file(Path(path)), str(path))


def _usable(checked: Checked, source: str) -> ProviderTable:
    if checked.table is None:
        raise refuse(source, checked.findings)
    return checked.table
