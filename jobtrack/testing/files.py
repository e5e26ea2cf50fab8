"""Results kept in memory, in place of the site's storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

from jobtrack.records import ResultFile
from jobtrack.stores.names import clean_name, shortened


@dataclass(slots=True)
class MemoryFiles:
    """Implements ``ports.Files``. ``stored`` holds complete files and ``parts`` unfinished ones, by path."""

    stored: dict[str, bytes] = field(default_factory=dict)
    parts: dict[str, bytes] = field(default_factory=dict)

    def writer(self, operation_id: str, name: str, *, resume: ResultFile | None) -> MemoryWriter:
        kept = b""
        if resume is not None and not resume.complete:
            kept = self.parts.pop(resume.path, b"")[: resume.size]
        return MemoryWriter(files=self, folder=operation_id, name=clean_name(name), content=bytearray(kept))

    def free_path(self, path: str, content: bytes) -> str:
        """Where ``content`` goes: a file that is there already and has other bytes keeps its path."""
        folder, _, name = path.rpartition("/")
        number, free = 1, path
        while self.stored.get(free, content) != content:
            number += 1
            free = f"{folder}/{shortened(name, f'-{number}')}"
        return free


@dataclass(slots=True, kw_only=True)
class MemoryWriter:
    """Implements ``ports.FileWriter``."""

    files: MemoryFiles
    folder: str
    name: str
    content: bytearray

    @property
    def offset(self) -> int:
        return len(self.content)

    def restart(self) -> None:
        self.content.clear()

    def feed(self, chunk: bytes) -> None:
        self.content += chunk

    def finish(self) -> ResultFile:
        content = bytes(self.content)
        path = self.files.free_path(f"{self.folder}/{self.name}", content)
        self.files.stored[path] = content
        return ResultFile(
            name=self.name, path=path, size=len(content), sha256=sha256(content).hexdigest(), complete=True
        )

    def pause(self) -> ResultFile:
        path = f"{self.folder}/{self.name}.part"
        self.files.parts[path] = bytes(self.content)
        return ResultFile(name=self.name, path=path, size=len(self.content))
