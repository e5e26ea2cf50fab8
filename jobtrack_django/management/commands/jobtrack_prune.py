"""``manage.py jobtrack_prune``."""

from __future__ import annotations

import re
import signal
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

from django.core.management.base import CommandError

from jobtrack.errors import ConfigurationError, UsageError
from jobtrack_django import conf
from jobtrack_django.management.told import ToldCommand
from jobtrack_django.proofs import Proof
from jobtrack_django.prune import BOUND, Pruned, Survey, Terms, prune, survey

LEAST = timedelta(days=2)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}

NEEDS_A_PERSON, UNUSABLE, STOPPED = 1, 2, 3
"""Exit codes, besides 0: everything that is old enough is gone, or as much as ``--limit`` says."""


def _age(text: str) -> timedelta:
    """Such as ``90d``. At least two days: what ends later is still to be counted in the figures of its day."""
    found = re.fullmatch(r"([1-9]\d{0,4})([hdw])", text)
    if not found:
        raise ArgumentTypeError("must be a number of hours, days or weeks, such as 72h, 90d or 12w")
    age = timedelta(**{_UNITS[found[2]]: int(found[1])})
    if age < LEAST:
        raise ArgumentTypeError("must be at least 48h: figures of a day are counted until then")
    return age


def _number(most: int) -> Any:
    def count(text: str) -> int:
        value = int(text)
        if not 1 <= value <= most:
            raise ArgumentTypeError(f"must be from 1 to {most}")
        return value

    return count


class Command(ToldCommand):
    help = (
        "Remove the rows of operations that ended long ago, after their audit chains are exported and verified. "
        "It may be interrupted at any point and run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than", type=_age, required=True, metavar="AGE", help="72h, 90d or 12w; at least 48h"
        )
        parser.add_argument("--proof", type=Path, metavar="DIR", help="folder for proofs: absolute, existing")
        parser.add_argument("--batch", type=_number(2000), default=500, help="most operations of one transaction (500)")
        parser.add_argument("--limit", type=_number(10**9), help="most operations of this run (default: all)")
        parser.add_argument("--dry-run", action="store_true", help="count what could go, and change nothing")
        parser.add_argument("--delete-files", action="store_true", help="delete fetched results from the storage too")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["dry_run"]:
            self._tell_survey(survey(options["older_than"]))
            return
        if options["proof"] is None:
            raise CommandError("Say with --proof where the proofs go.", returncode=UNUSABLE)
        names = ("older_than", "batch", "limit", "delete_files")
        terms = Terms(proofs=options["proof"], **{name: options[name] for name in names})
        if conf.settings().audit_key is None:
            self.stderr.write("AUDIT_KEY is not set: the proofs are not signed.")
        try:
            with _stopping() as stop:
                done = prune(terms, stop=stop.is_set, tell=self._tell_batch)
        except (UsageError, ConfigurationError) as error:
            raise CommandError(error.message, returncode=UNUSABLE) from error
        except OSError as error:
            raise CommandError(f"The folder for proofs cannot be used: {error}.", returncode=UNUSABLE) from error
        self._tell_end(done)

    def _tell_survey(self, found: Survey) -> None:
        for count, what in (
            (found.ready, "can be pruned"),
            (found.waiting, "are as old and wait for a decision or a follow-up"),
        ):
            self.stdout.write(f"{'at least ' if count == BOUND else ''}{count} operations {what}")

    def _tell_batch(self, proof: Proof, done: Pruned) -> None:
        self.stdout.write(
            f"{done.operations} operations, {done.entries} audit entries pruned; proof {proof.name or '-'}"
        )
        self.stdout.flush()

    def _tell_end(self, done: Pruned) -> None:
        for operation_id, problem in done.broken.items():
            self.stderr.write(f"{operation_id}: BROKEN CHAIN, nothing was removed: {problem}")
        for operation_id in done.held:
            self.stderr.write(f"{operation_id}: a row of this site points at it and must not lose it")
        if done.kept_files:
            self.stderr.write(f"{done.kept_files} result files could not be deleted; the next run tries again")
        self.stdout.write(
            f"Pruned: {done.operations} operations, {done.entries} audit entries; proofs: {done.proofs}; "
            f"moved meanwhile: {done.moved}; result files: {done.files}; other old rows: {done.beside}"
        )
        if not done.clean:
            raise CommandError("Some operations need a person; see above.", returncode=NEEDS_A_PERSON)
        if done.stopped:
            raise CommandError("Stopped after a batch; run it again to go on.", returncode=STOPPED)


@contextmanager
def _stopping() -> Iterator[Event]:
    """The first SIGINT or SIGTERM lets the batch under way end; a second one ends the process at once."""
    stop = Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, _frame: FrameType | None) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    try:
        for each in before:
            signal.signal(each, handle)
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
