"""Test your own views, follow-ups and tables: no network, no broker, no waiting.

With pytest the fixture is there once jobtrack is installed::

    def test_an_export_is_stored(jobtrack, client):
        jobtrack.provider.script("exp_1", answer(json={"id": "exp_1", "status": "running"}), answer(json={...}))
        client.post("/exports/")
        jobtrack.run_due()
        assert Report.objects.get().rows == 7

With ``unittest`` use the context manager ``rehearsal()`` inside a test of ``TestCase`` or ``TransactionTestCase``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.core.files.storage import InMemoryStorage

from jobtrack.core import operation as core
from jobtrack.core.escalation import Option, Resolution, options
from jobtrack.errors import OptionNotAllowed
from jobtrack.flow.resolve import resolve
from jobtrack.ports import NoChores, Runtime
from jobtrack.records import Delivery
from jobtrack.testing import FakeProvider, NoScheduler, VirtualClock, answer, cut, makes, no_answer, run_due
from jobtrack.testing.clock import START
from jobtrack.worker import wiring
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.files import DjangoFiles
from jobtrack_django.models import Operation
from jobtrack_django.runtime import build_runtime, run_handler
from jobtrack_django.signals import SignalListener

__all__ = ["Rehearsal", "answer", "cut", "makes", "no_answer", "rehearsal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The site's own runtime, with the provider, the clock and the broker replaced."""

    clock: VirtualClock  # plays the database's clock as well
    provider: FakeProvider  # ``script()`` and ``on()`` say what it answers; ``log`` and ``made`` are the truth
    runtime: Runtime
    failures: list[BaseException] = field(default_factory=list)  # what follow-ups have raised

    def run_due(self, *, until: datetime | timedelta | None = None, raise_failures: bool = True) -> int:
        """Look at everything that falls due and run follow-ups, until nothing is left or ``until`` is reached.

        Args:
            until: an instant, or how long from now; None: to the end.
            raise_failures: raise what a follow-up raised. False: only keep it in ``failures``, as a worker goes on.

        Returns:
            How many looks were made.
        """
        if isinstance(until, timedelta):
            until = self.clock() + until
        earlier = len(self.failures)
        looks = run_due(self.runtime, self.clock, until=until)
        if raise_failures and self.failures[earlier:]:
            raise self.failures[earlier]
        return looks

    def decide(
        self,
        operation: Operation,
        option: Option | str,
        *,
        actor: str = "tester",
        reason: str = "test",
        job_id: str = "",
    ) -> None:
        """Answer the operation's oldest open question as a person would.

        Args:
            option: such as ``"extend"``, ``"resubmit"`` or ``"close"``; a wrong one is told with those offered.
            job_id: for ``"attach_job"``: the provider's id.

        Raises:
            LookupError: no question is open.
            DecisionError: the option is not offered, or cannot be taken.
        """
        asked = self.runtime.store.open_escalations(operation.pk)
        if not asked:
            raise LookupError(f"Operation {operation.pk} asks nothing.")
        table = self.runtime.tables.get(operation.provider)
        (row,) = self.runtime.store.get([operation.pk])
        offered = options(asked[0].reason, row, table)
        if option not in offered:
            names = ", ".join(offered)
            raise OptionNotAllowed(f"The question {asked[0].reason} offers no {str(option)!r}; it offers {names}.")
        resolution = Resolution(
            escalation_id=asked[0].id,
            option=Option(option),
            actor=actor,
            reason=reason,
            version=asked[0].version,
            job_id=job_id,
        )
        resolve(self.runtime, resolution)


@contextmanager
def rehearsal(start: datetime = START) -> Iterator[Rehearsal]:
    """Everything inside runs on virtual time with a scripted provider; settings and tables are the site's own.

    Args:
        start: what the clock says at first, aware.
    """
    clock = VirtualClock(start)
    provider = FakeProvider(clock)
    failures: list[BaseException] = []

    def run_and_remember(delivery: Delivery, operation: core.Operation) -> None:
        try:
            run_handler(delivery, operation)
        except BaseException as error:
            failures.append(error)
            raise

    runtime = replace(
        build_runtime(),
        transport=provider,
        scheduler=NoScheduler(),
        elapsed=clock.elapsed,
        draw=lambda: 0.5,
        run_handler=run_and_remember,
        files=DjangoFiles(storage=InMemoryStorage()),  # results of a test leave nothing behind
        chores=NoChores(),  # nobody is told of a test
        listener=SignalListener(),  # a test's own transaction never commits
    )
    DatabaseNow.virtual = clock
    try:
        with wiring.use_runtime(runtime):
            yield Rehearsal(clock=clock, provider=provider, runtime=runtime, failures=failures)
    finally:
        DatabaseNow.virtual = None
