"""Replay one seed and tell its story: ``python -m tests.simulation SEED [OPERATION]``."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.simulation.machine import SECOND
from tests.simulation.plan import draw_plan
from tests.simulation.runs import run_world
from tests.simulation.world import World

TAIL = 40
"""How many of the last steps are shown."""


def main(seed: int, only: str = "") -> int:
    plan = draw_plan(seed)
    world = World(plan=plan)
    print(f"seed {seed}, {plan.kind}, {plan.workers} workers, mended after {plan.heals_us // SECOND} s")
    print("faults:", ", ".join(f"{name} {rate:.3f}" for name, rate in sorted(plan.rates.items())) or "none")
    said = ""
    try:
        run_world(world)
    except BaseException as error:  # noqa: BLE001 - whatever it was, its story is wanted
        said = f"{type(error).__name__}: {error}"
    for job in plan.jobs:
        if only in ("", job.op):
            print(f"\n{job}")
            for entry in world.store.audit.get(job.op, ()):
                print("  ", _line(json.loads(entry.text)))
    print(f"\nthe last {TAIL} steps (seconds, process, step):")
    for at_us, process, what in world.machine.trace[-TAIL:]:
        print(f"   {at_us / SECOND:10.6f} {process:12} {what}")
    print("\n" + (said or f"every invariant holds; trace {world.digest()}"))
    return 1 if said else 0


def _line(entry: dict[str, Any]) -> str:
    seen, decided = entry.get("observation") or {}, entry.get("decision") or {}
    words = (
        entry["at"][14:26],
        f"fence {entry['fence']}",
        entry["event"],
        "late" if entry.get("late") else "",
        seen.get("kind"),
        f"wait {seen['guidance']['wait_s']} s" if seen.get("guidance") else "",
        entry.get("option"),
        decided.get("do"),
        decided.get("reason"),
        f"-> {entry['state']}",
        f"requests {entry['spent']['status_requests']}",
    )
    return "  ".join(str(word) for word in words if word)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:3]))
