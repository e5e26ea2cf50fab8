"""A run of the demo as a person starts it, and the site of a demo that keeps running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Demo:
    """One run of the demo. Its processes are known by a mark in their environment."""

    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    environment: dict[str, str] = field(default_factory=dict)
    root: Path = ROOT  # of the checkout it runs in
    process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "example_project.demo", *options],
            cwd=self.root,
            env={**os.environ, "TMPDIR": str(self.folder), "DEMO_MARK": self.mark, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        return self.process

    def finish(self, within_s: float) -> tuple[int, str]:
        """Exit code and everything it printed."""
        output, _ = self.process.communicate(timeout=within_s)
        return self.process.returncode, output

    def read_until(self, pattern: str) -> re.Match[str]:
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if found := re.search(pattern, line):
                return found
        pytest.fail(f"The demo ended without printing {pattern!r}:\n{''.join(lines)}")

    def marked(self) -> list[int]:
        """Processes of this run that are alive."""
        wanted = f"DEMO_MARK={self.mark}".encode()
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if wanted in _environment_of(entry)]


def _environment_of(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:  # ended meanwhile, or somebody else's
        return b""


@contextmanager
def demonstrating(folder: Path, root: Path = ROOT) -> Iterator[Demo]:
    """A demo that may be started; whatever it starts ends with it.

    Args:
        folder: for its temporary files.
        root: the checkout it runs in.
    """
    run = Demo(folder=folder, root=root)
    run.environment["JOBTRACK_DEMO_BROKER"] = ""  # the broker of its own, whatever this shell says
    yield run
    for pid in run.marked():
        os.kill(pid, signal.SIGKILL)
    if run.process is not None:
        run.process.stdout.close()
        run.process.wait()
