"""Run seeds, and say how to run a failing one again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tests.simulation.plan import draw_plan
from tests.simulation.world import World

REPLAY = "python -m tests.simulation"


def run_world(world: World) -> World:
    """One world to its rest; a twin also with a perfect broker, for the same outcomes (INV-24)."""
    loud = [logging.getLogger(f"jobtrack.flow.{name}") for name in ("deliver", "settle", "submit")]
    for log in loud:
        log.disabled = True  # a world is nothing but trouble
    try:
        world.run()
        if world.plan.kind == "twin":
            clean = World(plan=replace(world.plan, rates={})).run()
            ours, theirs = world.outcomes(), clean.outcomes()
            world.oracle.demand(ours == theirs, "INV-24", f"{ours}, but with a perfect broker {theirs}")
            world.machine.count("a twin came to the same end")
    finally:
        for log in loud:
            log.disabled = False
    return world


def run_seed(seed: int) -> World:
    """Run the world of a seed.

    Raises:
        Violation: an invariant does not hold. This and any other error ends with the command that replays the seed.
    """
    try:
        return run_world(World(plan=draw_plan(seed)))
    except BaseException as error:
        error.add_note(f"seed {seed}; replay it with: {REPLAY} {seed}")
        raise


def run_seeds(seeds: Iterable[int]) -> Counter[str]:
    """Run each seed and add up what was met."""
    met: Counter[str] = Counter()
    for seed in seeds:
        met += run_seed(seed).machine.counts
    return met
