"""Test your own use of jobtrack without a network, a broker or waiting.

``FakeProvider`` answers as you script it, ``VirtualClock`` moves only when told, ``run_due`` looks at whatever is due
and jumps to the next instant at which something will be, until nothing is left::

    clock = VirtualClock()
    provider = FakeProvider(clock)
    provider.script("exp_1", answer(json={"id": "exp_1", "status": "running"}), ...)
    runtime = memory_runtime(tables=..., provider=provider, clock=clock)
    track(runtime, [Tracking(operation_id="op-1", provider="acme-export", job_id="exp_1")])
    run_due(runtime, clock)
"""

from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.provider import FakeProvider, answer, no_answer
from jobtrack.testing.runtime import Heard, NoScheduler, fixed_tables, memory_runtime, run_due

__all__ = [
    "FakeProvider",
    "Heard",
    "NoScheduler",
    "VirtualClock",
    "answer",
    "fixed_tables",
    "memory_runtime",
    "no_answer",
    "run_due",
]
