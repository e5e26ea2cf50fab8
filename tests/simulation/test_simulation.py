"""The real flows in a hostile world of virtual time, a few thousand times (INV-01 to 11, 13 to 15, 17 to 22, 24, 28, 36).

``JOBTRACK_SIM_SEEDS`` raises the number of seeds. A failing seed prints the one command that replays it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.defects import DEFECTS, Defect
from tests.simulation.oracle import Violation
from tests.simulation.runs import run_seed, run_seeds
from tests.simulation.sometimes import never_met

ROOT = Path(__file__).parents[2]
SEEDS = max(int(os.environ.get("JOBTRACK_SIM_SEEDS", "2000")), 2000)
CHUNKS = 4
PER_CHUNK = -(-SEEDS // CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.timeout(1200)
def test_every_invariant_holds_in_every_world_and_every_fault_strikes(chunk: int) -> None:
    met = run_seeds(range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK))
    # At least once in a hundred seeds, so at least twenty times in two thousand.
    rare = never_met(met, at_least=PER_CHUNK // 100)
    assert rare == [], "met too seldom to prove anything: raise their rates in plan.py"


DETERMINISTIC = range(20)
DIGESTS = f"from tests.simulation.runs import run_seed\nfor s in {DETERMINISTIC!r}: print(run_seed(s).digest())"


@pytest.fixture(scope="module")
def digests() -> list[str]:
    return [run_seed(seed).digest() for seed in DETERMINISTIC]


def test_a_seed_decides_everything(digests: list[str]) -> None:
    assert [run_seed(seed).digest() for seed in DETERMINISTIC] == digests
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_the_order_of_sets_decides_nothing(digests: list[str], hash_seed: str) -> None:
    there = subprocess.run(
        [sys.executable, "-c", DIGESTS],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert there.stdout.split() == digests


ENOUGH = 300
"""Seeds within which a planted defect must be seen."""


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.plant.__name__)
def test_a_planted_defect_is_found(defect: Defect, monkeypatch: pytest.MonkeyPatch) -> None:
    defect.plant(monkeypatch)
    with pytest.raises(Violation) as found:
        run_seeds(range(ENOUGH))
    assert str(found.value).startswith(defect.breaks)
    assert "replay it with: python -m tests.simulation" in found.value.__notes__[0]
