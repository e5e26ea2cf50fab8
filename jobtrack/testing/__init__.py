"""Test your own use of jobtrack without a network, a broker or waiting.

``FakeProvider`` answers as you script it and counts the jobs it made, ``VirtualClock`` moves only when told,
``run_due`` does whatever is due and jumps to the next instant at which something will be, until nothing is left::

    clock = VirtualClock()
    provider = FakeProvider(clock)
    provider.script("exp_1", answer(json={"id": "exp_1", "status": "running"}), ...)
    runtime = memory_runtime(table, provider=provider, clock=clock)
    track(runtime, [Tracking(operation_id="op-1", provider="acme-export", job_id="exp_1")])
    run_due(runtime, clock)
"""

from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.files import MemoryFiles
from jobtrack.testing.provider import FakeProvider, Makes, answer, cut, makes, no_answer
from jobtrack.testing.runtime import Heard, NoScheduler, fixed_tables, memory_runtime, run_due

__all__ = [
    "FakeProvider",
    "Heard",
    "Makes",
    "MemoryFiles",
    "NoScheduler",
    "VirtualClock",
    "answer",
    "cut",
    "fixed_tables",
    "makes",
    "memory_runtime",
    "no_answer",
    "run_due",
]
