"""What the commands of jobtrack have in common: trouble is told in a sentence, not in a traceback."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from jobtrack.errors import JobtrackError


class ToldCommand(BaseCommand):
    """A command that says what is wrong with the site. ``--traceback`` still shows where."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except JobtrackError as error:
            raise CommandError(error.message) from error
        except DatabaseError as error:
            said = str(error).strip() or type(error).__name__
            raise CommandError(f"The database cannot be used: {said}. Is it there, and migrated?") from error
        except BrokenPipeError:
            # The reader has seen enough; what Python still flushes at its end goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return None
