"""What is wrong with a table, said so that its author knows what to write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from jobtrack.core.text import clean
from jobtrack.errors import TableError

Path = tuple[str | int, ...]

MOST_FINDINGS = 200
"""Of one file; whoever has more mends these first."""


class Level(StrEnum):
    ERROR = "error"  # the table is refused
    WARNING = "warning"  # the table works; somebody should look at it


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mark:
    """A place in a text. Both numbers start at 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One mistake. ``str()`` gives ``file:line:column: message``."""

    file: str  # as given by the caller; "" if the text did not come from a file
    line: int  # from 1
    column: int  # from 1
    path: str  # where in the table, such as `status.states.pending[0]`; "" for the whole file
    code: str  # stable word for the kind of mistake
    message: str  # one sentence that says what to write
    level: Level = Level.ERROR

    def __str__(self) -> str:
        word = "" if self.level is Level.ERROR else "warning: "
        return f"{self.file or 'table'}:{self.line}:{self.column}: {word}{self.message}"


@dataclass(slots=True, kw_only=True)
class Report:
    """Collects the findings of one text."""

    file: str
    findings: list[Finding] = field(default_factory=list)
    cuts: list[Path] = field(default_factory=list)  # places whose value was reported and left out

    def add(self, mark: Mark, path: Path, code: str, message: str, level: Level = Level.ERROR) -> None:
        finding = Finding(
            file=self.file,
            line=mark.line,
            column=mark.column,
            path=path_text(path),
            code=code,
            message=clean(message),
            level=level,
        )
        if len(self.findings) < MOST_FINDINGS and finding not in self.findings:
            self.findings.append(finding)

    def warn(self, mark: Mark, path: Path, code: str, message: str) -> None:
        self.add(mark, path, code, message, Level.WARNING)

    def touched(self, path: Path) -> bool:
        """True if something at or below this place was left out: what is missing there was written, but wrongly."""
        return any(cut[: len(path)] == path for cut in self.cuts)

    def ordered(self) -> list[Finding]:
        """Findings from top to bottom."""
        return sorted(self.findings, key=lambda finding: (finding.line, finding.column, finding.code))


def path_text(path: Path) -> str:
    """``("status", "states", 0)`` as ``status.states[0]``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def errors(findings: Iterable[Finding]) -> list[Finding]:
    """Only those that refuse the table."""
    return [finding for finding in findings if finding.level is Level.ERROR]


def refuse(source: str, findings: Iterable[Finding]) -> TableError:
    """The error for a table that cannot be used.

    Its message lists every finding, one a line; ``context["findings"]`` holds them as mappings.
    """
    listed = errors(findings)
    lines = "\n".join(f"  {finding}" for finding in listed)
    count = "1 mistake" if len(listed) == 1 else f"{len(listed)} mistakes"
    return TableError(
        f"The provider table {source or 'given as text'} has {count}:\n{lines}",
        source=source,
        findings=[asdict(finding) for finding in listed],
    )
