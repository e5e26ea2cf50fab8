"""Processes that the demo starts, watches, and stops again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parent.parent
"""Where `python -m example_project` works."""

PATIENCE_S = 10.0
"""How long a process may take to end after it was asked to; then it is ended."""


class Trouble(Exception):
    """Something that keeps the demo from going on, in a sentence for a person.

    Args:
        message: what is wrong, and what to do if that is known.
        log: file whose last lines help.
    """

    def __init__(self, message: str, log: Path | None = None) -> None:
        super().__init__(message)
        self.log = log


class Interrupted(Exception):
    """Somebody asked the demo to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raise Trouble if it has ended by itself."""
        code = self.process.poll()
        if code is not None and code < 0:  # its log was cut short and does not say who did it
            raise Trouble(f"The {self.name} was ended by signal {-code} (exit code {code}).")
        if code is not None:
            raise Trouble(f"The {self.name} has ended unexpectedly (exit code {code}).", self.log)

    def signal(self, number: signal.Signals) -> None:
        """Signal the whole group: a child may have children of its own."""
        with suppress(ProcessLookupError):  # all of them are gone
            os.killpg(self.process.pid, number)


@dataclass(slots=True, kw_only=True)
class Children:
    """The processes of one run; leaving the ``with`` block stops them, the last one first.

    Signals to the demo set ``stop``, so that nothing is interrupted between a start and its record.
    """

    folder: Path  # for logs
    stop: Event
    root: Path = ROOT  # of the checkout they run in
    running: list[Child] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in reversed(self.running):
            self._end(child)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        """Start a process in a session of its own, so that Ctrl-C in the terminal reaches only the demo."""
        log = self.folder / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - the commands are written in demo.py
                command,
                cwd=self.root,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        child = Child(name=name, process=process, log=log)
        self.running.append(child)
        return child

    def wait(self, seconds: float) -> None:
        """Wait, and look after the processes meanwhile.

        Raises:
            Interrupted: the demo was asked to stop.
            Trouble: a process has ended by itself.
        """
        if self.stop.wait(seconds):
            raise Interrupted
        for child in self.running:
            child.check()

    def until(self, ready: Callable[[], bool], child: Child, *, within_s: float) -> None:
        """Wait until a process is of use.

        Raises:
            Trouble: it was not in time, or has ended.
        """
        end = time.monotonic() + within_s
        while not ready():
            if time.monotonic() > end:
                raise Trouble(f"The {child.name} was not ready after {within_s:.0f} seconds.", child.log)
            self.wait(0.1)

    def log_of(self, name: str) -> Path | None:
        """The log of a process by its name; None if it was not started."""
        return next((child.log for child in self.running if child.name == name), None)

    def _end(self, child: Child) -> None:
        child.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(PATIENCE_S)
        # Its own children may have outlived it.
        child.signal(signal.SIGKILL)
        child.process.wait()


def listens(port: int) -> bool:
    """True if something accepts connections on this port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(wanted: int = 0) -> int:
    """``wanted`` if nobody uses it, else any free port of loopback."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return free_port()
        return int(probe.getsockname()[1])


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log; "" if there are none."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
