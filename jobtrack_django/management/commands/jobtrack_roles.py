"""``manage.py jobtrack_roles``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Permission
from django.db import transaction
from django.utils.translation import gettext as _

from jobtrack_django.management.told import ToldCommand
from jobtrack_django.roles import Change, apply, changes


class Command(ToldCommand):
    help = "Make a group for each role, with its permissions. Can be run again: what the site added stays."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument("--prefix", default="jobtrack ", help="stands before each name (default: 'jobtrack ')")
        parser.add_argument(
            "--reset", action="store_true", help="also remove permissions of jobtrack that a role does not name"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        with transaction.atomic():
            for change in changes(options["prefix"]):
                if not options["dry_run"]:
                    apply(change, reset=options["reset"])
                self._tell(change, reset=options["reset"])
        if options["dry_run"]:
            self.stdout.write("Nothing was changed: this was a dry run.")

    def _tell(self, change: Change, *, reset: bool) -> None:
        state = _("new") if change.new else _("there already")
        self.stdout.write(f"{change.group} ({state}): {change.role.does}")
        self._list("=", (each for each in change.permissions if each not in change.added))
        self._list("+", change.added)
        self._list("-" if reset else "*", change.extra)

    def _list(self, mark: str, permissions: Iterable[Permission]) -> None:
        for permission in permissions:
            self.stdout.write(f"  {mark} {_(permission.name)} ({permission.codename})")
