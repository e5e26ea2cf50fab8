"""``manage.py jobtrack_sweep``."""

from __future__ import annotations

import signal
from argparse import ArgumentParser, ArgumentTypeError
from threading import Thread
from typing import Any

from django.db import close_old_connections

from jobtrack.flow.sweep import Swept, sweep
from jobtrack.worker.sweeper import Sweeper
from jobtrack.worker.wiring import get_runtime
from jobtrack_django.management.told import ToldCommand


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.01 <= value <= 3600:
        raise ArgumentTypeError("must be from 0.01 to 3600 seconds")
    return value


class Command(ToldCommand):
    help = "Find due operations and follow-ups that nobody has in hand, and wake them up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--loop", action="store_true", help="go on until interrupted")
        parser.add_argument("--inline", action="store_true", help="look at them here; no broker and no worker needed")
        parser.add_argument("--interval", type=_seconds, default=1.0, help="longest pause in seconds (default: 1)")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["loop"]:
            self._loop(inline=options["inline"], interval_s=options["interval"])
            return
        swept = self._round(inline=options["inline"])
        while swept.more:
            swept = self._round(inline=options["inline"])

    def _round(self, *, inline: bool) -> Swept:
        swept = sweep(get_runtime(), inline=inline)
        if swept.found or swept.deliveries:
            self.stdout.write(
                f"due: {swept.found}, published: {swept.published}, looked at here: {swept.polled}, "
                f"follow-ups: {swept.deliveries}"
            )
        return swept

    def _loop(self, *, inline: bool, interval_s: float) -> None:
        """Until SIGINT or SIGTERM; a round under way is finished."""
        sweeper = Sweeper(lambda: self._round(inline=inline), interval_s=interval_s, after_round=close_old_connections)
        for number in (signal.SIGINT, signal.SIGTERM):
            # In a thread: the handler may interrupt this one while it holds the very lock that `stop` takes.
            signal.signal(number, lambda *_: Thread(target=sweeper.stop).start())
        self._say(f"Sweeping, at least every {interval_s:g} s, until SIGINT or SIGTERM.")
        sweeper.run()
        self._say("Stopped.")

    def _say(self, line: str) -> None:
        """At once, also into a file or a pipe."""
        self.stdout.write(line)
        self.stdout.flush()
