"""What a seed means: a small world with a subset of all fault kinds, each at a rate of its own (swarm testing)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from tests.simulation.machine import SECOND

BROKER = ("lose", "double", "delay", "shuffle", "flush", "refuse", "outage", "swallow")
PROCESS = ("kill", "stop", "sweeper_kill", "database", "ambiguous")
LATE = "late_answer"
PROVIDER = (
    "hint_200",
    "hint_429",
    "hint_503",
    "long_hint",
    "plain_429",
    "server_error",
    "timeout",
    "refused",
    "account_down",
    "lost",
    "unlisted",
    "wrong_id",
    "html",
    "no_result",
    "not_found",
    "denied",
)
SUBMIT = (
    "submit_lost",  # the job is made, the connection ends
    "submit_timeout",  # the job is made, the answer comes too late
    "submit_500",  # the job is made, the answer says something else
    "submit_late",  # the connection ends, the job is made after that
    "submit_no_id",
    "submit_cut",  # the job is made, the acceptance cannot be read
    "submit_gone",  # the connection ends, no job is made
    "submit_503",
    "submit_refused",
    "submit_busy",
    "submit_denied",
)
LOOKUP = ("lookup_pages", "lookup_endless", "lookup_503", "lookup_lost", "lookup_html")
WAYS = ("proof", "lookup", "key", "both", "none")
OTHER = ("staff", "hasty_staff", "deploy", "table_missing", "handler", "two_submitters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The truth at the provider, and what our side was told to do about it."""

    op: str
    account: str
    starts_us: int
    takes_us: int
    end: str | None  # the provider's last word; None: it never ends
    pauses: bool = False  # says `paused` for a while, which only the second table lists
    deadline_us: int = 60 * SECOND  # from the start
    needed_by_us: int | None = None
    status_requests: int = 200
    transport_failures: int = 100
    rate_limited: int = 100
    followups: bool = True
    escalate_ends: bool = True
    way: str = ""  # how a submission can be proved: one of WAYS; "": it was submitted elsewhere
    refused: bool = False  # the provider will not have it

    @property
    def id(self) -> str:
        """The provider's id; each job that a submission makes has one with a number behind it."""
        return f"job-{self.op}"

    @property
    def table(self) -> str:
        return f"acme-{self.way}" if self.way else "acme"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One world. ``rates`` has only the fault kinds that are on."""

    seed: int
    kind: str  # "mixed", "no broker", "twin"
    jobs: tuple[Job, ...]
    rates: dict[str, float] = field(default_factory=dict)
    workers: int = 2
    inline: bool = False  # sweepers look by themselves
    heals_us: int = 30 * SECOND

    def rate(self, fault: str) -> float:
        return self.rates.get(fault, 0.0)

    def without(self, *faults: str) -> Plan:
        return replace(self, rates={name: rate for name, rate in self.rates.items() if name not in faults})

    @property
    def honest(self) -> bool:
        """The provider tells the truth and every process can read it."""
        return not any(name in self.rates for name in (*PROVIDER, *SUBMIT, *LOOKUP, "table_missing", "deploy"))

    @property
    def steady(self) -> bool:
        """No process dies or stands still, and the database answers."""
        return not any(name in self.rates for name in (*PROCESS, LATE))


def draw_plan(seed: int) -> Plan:
    """The world of a seed."""
    chance = random.Random(f"jobtrack plan {seed}")
    kind = chance.choices(("mixed", "no broker", "twin"), (80, 10, 10))[0]
    jobs = tuple(_job(chance, f"op-{n}", twin=kind == "twin") for n in range(chance.randint(3, 6)))
    return Plan(
        seed=seed,
        kind=kind,
        jobs=jobs,
        rates=_rates(chance, kind),
        workers=chance.randint(1, 3),
        inline=kind == "no broker" and chance.random() < 0.5,
        heals_us=chance.randint(20, 40) * SECOND,
    )


def _rates(chance: random.Random, kind: str) -> dict[str, float]:
    if kind == "twin":
        return {name: chance.uniform(0.1, 0.7) for name in _some(chance, BROKER, 0.5)}
    rates = {name: chance.uniform(0.05, 0.6) for name in _some(chance, BROKER, 0.3) if kind == "mixed"}
    if chance.random() < 0.7:
        rates |= {name: chance.uniform(0.004, 0.03) for name in _some(chance, PROCESS, 0.5)}
        if "ambiguous" in rates:
            rates["ambiguous"] *= 5  # only at the few calls that write
    if chance.random() < 0.5:
        rates[LATE] = chance.uniform(0.2, 0.8)  # a worker stands still with an acceptance in hand
    if chance.random() < 0.75:
        # These have more chances. A denial is one question for a whole account, and much hangs on it; the others have
        # to meet a death or a young job to matter.
        twice = ("denied", "denied", "not_found", "hint_200", "hint_503")
        rates |= {name: chance.uniform(0.05, 0.25) for name in _some(chance, (*PROVIDER, *twice), 0.4)}
    if chance.random() < 0.75:
        rates |= {name: chance.uniform(0.05, 0.3) for name in _some(chance, (*SUBMIT, "submit_refused"), 0.4)}
        rates |= {name: chance.uniform(0.1, 0.6) for name in _some(chance, LOOKUP, 0.4)}
    if kind == "mixed" and rates.get("submit_refused", 0) > 0.2:
        rates["submit_refused"] = 0.85  # so often that submissions run out of attempts
    return rates | {name: chance.uniform(0.2, 0.9) for name in _some(chance, OTHER, 0.6)}


def _some(chance: random.Random, names: tuple[str, ...], share: float) -> list[str]:
    return [name for name in names if chance.random() < share]


def _job(chance: random.Random, op: str, *, twin: bool) -> Job:
    ends = ("succeeded", "succeeded", "succeeded", "failed", "canceled", "expired", "mystery", None)
    job = Job(
        op=op,
        account=chance.choice(("north", "south")),
        starts_us=chance.randrange(5 * SECOND),
        takes_us=chance.randrange(SECOND, 25 * SECOND),
        end=chance.choice(ends),
        followups=chance.random() < 0.8,
        escalate_ends=chance.random() < 0.8,
    )
    if chance.random() < 0.6:
        job = replace(job, way=chance.choices(WAYS, (3, 2, 3, 2, 2))[0], refused=not twin and chance.random() < 0.08)
    if twin or (job.end == "succeeded" and chance.random() < 0.4):
        # Roomy limits: only the job itself decides how this ends.
        return replace(job, deadline_us=(45 if job.end is None else 200) * SECOND)
    return replace(
        job,
        pauses=chance.random() < 0.25,
        deadline_us=chance.randint(8, 60) * SECOND,
        needed_by_us=chance.choice((None, chance.randint(2, 30) * SECOND)),
        status_requests=chance.choice((3, 6, 12, 40)),
        transport_failures=chance.randint(1, 5),
        rate_limited=chance.randint(1, 4),
    )
