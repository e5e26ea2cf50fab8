"""What a site does besides operations: notices to people, lapsed questions, figures, signs of life."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from django.db import transaction

from jobtrack.core.escalation import Reason
from jobtrack.flow.lapse import lapse
from jobtrack.ports import Runtime
from jobtrack.worker import wiring
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Heartbeat
from jobtrack_django.statements import after

log = logging.getLogger("jobtrack.chores")

BEAT_S: Final = 15.0
LOOK_S: Final = 2.0
"""How often, at most, a process asks whether a notice is due."""

FIGURES_S: Final = 30.0
LAPSES_S: Final = 60.0

HEARTBEATS_KEPT: Final = timedelta(days=1)


class DjangoChores:
    """Implements ``jobtrack.ports.Chores``. Any number of processes may run them.

    Args:
        using: alias of the database with the rows.
        runtime: gives the runtime of this process.
        elapsed: monotonic seconds.
    """

    def __init__(
        self,
        using: str,
        *,
        runtime: Callable[[], Runtime] = wiring.get_runtime,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._using = using
        self._runtime = runtime
        self._elapsed = elapsed
        self._next: dict[str, float] = {}
        self._beyond: dict[Reason, str] = {}
        self._name = f"{socket.gethostname()[:150]}:{os.getpid()}"

    def beat(self, kind: str) -> None:
        first = f"beat:{kind}" not in self._next
        if not self._time_for(f"beat:{kind}", BEAT_S):
            return
        try:
            with transaction.atomic(using=self._using):
                self._write_beat(kind, first=first)
        except Exception as error:  # noqa: BLE001 - a sign of life must not stop what is alive
            log.debug("No sign of life was written (%s).", type(error).__name__)

    def _write_beat(self, kind: str, *, first: bool) -> None:
        rows, now = Heartbeat.objects.using(self._using), DatabaseNow()
        name = f"{kind}:{self._name}"
        began = {"started_at": now} if first else {}  # an earlier process may have had the same number
        if not rows.filter(pk=name).update(seen_at=now, **began):
            rows.create(name=name, kind=kind, started_at=now, seen_at=now)

    def due(self) -> bool:
        if not self._time_for("look", LOOK_S):
            return False
        try:
            return self._lapses_due() or self._notices_due() or self._figures_due()
        except Exception as error:  # noqa: BLE001 - the database may be away; whatever it is, ask again later
            log.warning("The chores could not be looked at (%s).", type(error).__name__)
            return False

    def run(self) -> int:
        chores = {
            "lapses": self._lapse,
            "notices": self._dispatch,
            "figures": self._roll_up,
            "heartbeats": self._forget_silent,
        }
        return sum(self._done(name, chore) for name, chore in chores.items())

    def _done(self, name: str, chore: Callable[[], int]) -> int:
        """One that fails does not stop the others."""
        try:
            return chore()
        except Exception as error:  # noqa: BLE001 - see above
            # The text of a database error may hold its address or values of a row.
            log.warning("The chore %r failed (%s); it is tried again.", name, type(error).__name__)
            return 0

    def _time_for(self, what: str, every_s: float) -> bool:
        now = self._elapsed()
        if now < self._next.get(what, now):
            return False
        self._next[what] = now + every_s
        return True

    # --- is there something to do ---------------------------------------------------------------

    def _lapses_due(self) -> bool:
        return bool(self._runtime().lapses) and self._time_for("lapses", LAPSES_S)

    def _notices_due(self) -> bool:
        from jobtrack_django.notify import dispatch  # mail and templates are for those who tell somebody

        return dispatch.due(self._using)

    def _figures_due(self) -> bool:
        from jobtrack_django import figures

        return self._time_for("figures", FIGURES_S) and figures.due(self._using)

    # --- do it ----------------------------------------------------------------------------------

    def _lapse(self) -> int:
        return lapse(self._runtime(), beyond=self._beyond)

    def _dispatch(self) -> int:
        from jobtrack_django.notify import dispatch

        return dispatch.dispatch(self._using)

    def _roll_up(self) -> int:
        from jobtrack_django import figures

        return figures.roll_up(self._using) if figures.due(self._using) else 0

    def _forget_silent(self) -> int:
        silent = Heartbeat.objects.using(self._using).filter(seen_at__lt=after(-HEARTBEATS_KEPT))
        return silent.delete()[0]
