"""``manage.py jobtrack_export_audit``."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from jobtrack_django.api import get_operation
from jobtrack_django.audit_export import export, signing_key
from jobtrack_django.management.told import ToldCommand


class Command(ToldCommand):
    help = "Write audit chains as JSON lines for `jobtrack verify-audit`; the last line states and signs their heads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("id", nargs="*", help="only these operations (default: all)")

    def handle(self, *_: Any, **options: Any) -> None:
        ids = [get_operation(operation_id).pk for operation_id in options["id"]]  # a mistyped id is no empty export
        for line in export(ids, key=signing_key()):
            self.stdout.write(line)
