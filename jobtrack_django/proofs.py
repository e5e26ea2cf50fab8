"""Files that keep the audit chains of operations whose rows are removed: written, verified, and only then named."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobtrack.core.audit import GENESIS, Report, verify
from jobtrack.errors import StoreError, UsageError
from jobtrack_django.audit_export import export

Head = tuple[int, str]
"""Number and hash of the last entry of a chain; of an empty one 0 and ``GENESIS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A file that was verified, and what it proves."""

    name: str  # of the file in its folder; "": no chain was sound, and there is no file
    heads: Mapping[str, Head]  # operation id -> head of its chain in the file
    broken: Mapping[str, str]  # operation id -> what is wrong with its chain, which is not in the file


def usable(folder: Path) -> Path:
    """The folder for proofs.

    Raises:
        UsageError: it cannot be used.
    """
    if not folder.is_absolute():
        raise UsageError(f"The folder for proofs must be an absolute path, not {str(folder)!r}.")
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"The folder {folder} cannot be written to.")
    return folder


def prove(folder: Path, known: Mapping[str, Head], *, key: bytes | None) -> Proof:
    """Export the chains of operations to a new file of ``folder``, and verify what was written.

    Args:
        folder: where the file goes.
        known: operation id -> the head its row named before this call.
        key: signs the closing line; None: it stays unsigned.

    Raises:
        StoreError: what was written does not verify.
        OSError: the file cannot be written.
    """
    name = f"jobtrack-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.jsonl"
    with naming(folder / name) as part:
        report = _exported(part, list(known), key)
        broken = _broken(report, known)
        sound = [operation_id for operation_id in known if operation_id not in broken]
        if not sound:
            return Proof(name="", heads={}, broken=broken)
        if broken:
            report = _exported(part, sound, key)
        if not report.good:
            raise StoreError(f"The export does not verify: {report.faults[0].problem}.")
        part.rename(folder / name)
    heads = {operation_id: report.heads.get(operation_id, (0, GENESIS)) for operation_id in sound}
    return Proof(name=name, heads=heads, broken=broken)


@contextmanager
def naming(path: Path) -> Iterator[Path]:
    """A name to write under before the file is called ``path``. In the end the folder is on the disk too."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        part.unlink(missing_ok=True)


def write(path: Path, lines: Iterable[str]) -> None:
    """Write a file that only its owner reads, and have it on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        os.fsync(file.fileno())


def _exported(path: Path, ids: Sequence[str], key: bytes | None) -> Report:
    write(path, export(ids, key=key))
    with path.open(encoding="utf-8") as lines:
        return verify(lines, key=key)


def _broken(report: Report, known: Mapping[str, Head]) -> dict[str, str]:
    """Chains that are not whole. One that has grown meanwhile is: its row is compared once more under lock."""
    broken = {fault.operation_id: fault.problem for fault in report.faults if fault.operation_id}
    for operation_id, head in known.items():
        found = report.heads.get(operation_id, (0, GENESIS))
        if found != head and found[0] <= head[0]:
            broken.setdefault(operation_id, f"the chain ends at entry {found[0]}, its row says {head[0]}")
    return broken
