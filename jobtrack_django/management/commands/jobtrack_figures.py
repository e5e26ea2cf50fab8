"""``manage.py jobtrack_figures``."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from jobtrack_django import conf, figures
from jobtrack_django.dashboard.health import health
from jobtrack_django.dashboard.history import WINDOWS
from jobtrack_django.management.told import ToldCommand

_MOST_CALLS = 10_000


class Command(ToldCommand):
    help = "Count the figures of the days that are due; or tell a monitoring system how the site stands."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--json",
            action="store_true",
            help="count nothing: print one JSON object; the exit code is 1 if something is wrong",
        )
        parser.add_argument(
            "--days", type=int, choices=WINDOWS, default=WINDOWS[0], help="days to look back with --json (default: 7)"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        using = conf.settings().database
        if options["json"]:
            told = health(using, options["days"])
            self.stdout.write(json.dumps(told))
            if told["problems"]:
                sys.exit(1)
            return
        counted = 0
        for _call in range(_MOST_CALLS):
            if not figures.due(using):
                break
            counted += figures.roll_up(using)
        self.stdout.write(f"counted days and audit entries: {counted}")
