"""A runtime without network, broker or clock, and the driver that runs what is due."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from jobtrack.core.escalation import Question, Resolution
from jobtrack.core.operation import Operation
from jobtrack.core.table import ProviderTable
from jobtrack.flow.sweep import sweep
from jobtrack.ports import RunHandler, Runtime, Store, Timing, Transport
from jobtrack.records import Delivery
from jobtrack.stores.memory import MemoryStore
from jobtrack.stores.vault import FernetVault
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.files import MemoryFiles


class NoScheduler:
    """Publishes nothing: as with a broker that is down, everything is found by the sweep. Remembers what was asked."""

    def __init__(self) -> None:
        self.horizon = timedelta(-1)  # no row ever counts as having a message out
        self.asked: list[tuple[str, int, timedelta]] = []
        self.woken: list[str] = []  # operations and deliveries that a wake-up was asked for at once
        self.conflicts: list[str] = []  # ids that came with other content

    def wake(self, operation_id: str, *, fence: int, delay: timedelta) -> bool:
        self.asked.append((operation_id, fence, delay))
        return False

    def wake_now(self, ids: Sequence[str]) -> int:
        self.woken.extend(ids)
        return 0

    def deliver(self, delivery_ids: Sequence[str]) -> int:
        self.woken.extend(delivery_ids)
        return 0

    def report_conflict(self, operation_id: str) -> bool:
        self.conflicts.append(operation_id)
        return False

    def attend(self) -> bool:
        return False


class Heard:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.ended: list[Operation] = []
        self.asked: list[tuple[Operation, tuple[Question, ...]]] = []
        self.decided: list[tuple[Operation, Resolution]] = []

    def finished(self, operation: Operation) -> None:
        self.ended.append(operation)

    def escalated(self, operation: Operation, questions: tuple[Question, ...]) -> None:
        self.asked.append((operation, questions))

    def resolved(self, operation: Operation, resolution: Resolution) -> None:
        self.decided.append((operation, resolution))


class _Fixed:
    def __init__(self, tables: Iterable[ProviderTable]) -> None:
        self.by_id = {table.id: table for table in tables}

    def get(self, table_id: str) -> ProviderTable | None:
        return self.by_id.get(table_id)


def fixed_tables(*tables: ProviderTable) -> _Fixed:
    """``ports.Tables`` over given tables; ``.by_id`` may be changed to deploy another version."""
    return _Fixed(tables)


def _no_handler(delivery: Delivery, operation: Operation) -> None:
    """Follow-ups do nothing unless a test brings a handler."""


def memory_runtime(
    *tables: ProviderTable,
    provider: Transport,
    clock: VirtualClock,
    store: Store | None = None,
    draw: Callable[[], float] | None = None,
    run_handler: RunHandler = _no_handler,
    timing: Timing | None = None,
) -> Runtime:
    """A runtime for tests.

    Args:
        tables: the provider tables known.
        provider: what answers, usually a ``FakeProvider``.
        clock: the world's clock.
        store: defaults to a ``MemoryStore`` on that clock.
        draw: jitter; defaults to a constant 1 - 2^-53, the longest delay.
        run_handler: runs follow-ups.
        timing: defaults to the production values.
    """
    tokens = itertools.count(1)
    return Runtime(
        store=store or MemoryStore(clock),
        transport=provider,
        scheduler=NoScheduler(),
        tables=fixed_tables(*tables),
        draw=draw or (lambda: 1 - 2**-53),
        elapsed=clock.elapsed,
        listener=Heard(),
        token=lambda: f"token-{next(tokens)}",
        run_handler=run_handler,
        vault=FernetVault(["a key for tests"]),
        files=MemoryFiles(),
        timing=timing or Timing(),
    )


def run_due(runtime: Runtime, clock: VirtualClock, *, until: datetime | None = None, rounds: int = 10_000) -> int:
    """Look at what is due, jump to the next instant at which something is, and go on until nothing is left.

    Args:
        until: stop before jumping past this instant (the clock then stands there); None: run to the end.
        rounds: a bound; more rounds than this mean that something never ends.

    Returns:
        How many looks were made.

    Raises:
        RuntimeError: the bound was reached.
    """
    looks = 0
    for _ in range(rounds):
        swept = sweep(runtime, inline=True)
        looks += swept.polled
        if swept.found or swept.deliveries:
            continue
        next_at = runtime.store.next_due_at()
        if next_at is None or (until is not None and next_at > until):
            if until is not None:
                clock.advance_to(until)
            return looks
        # Something due that could not be taken (marked, leased elsewhere) is tried again a second later.
        clock.advance_to(next_at if next_at > clock() else clock() + timedelta(seconds=1))
    raise RuntimeError(f"still not at rest after {rounds} rounds")
