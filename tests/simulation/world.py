"""One world: a store, a broker, a provider, workers, two sweepers and the staff, run from a seed to its end."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from jobtrack.core.escalation import Option, Question, Reason, Resolution, options
from jobtrack.core.operation import Operation
from jobtrack.core.sealed import Sealed
from jobtrack.core.table import ProviderTable
from jobtrack.errors import AlreadyDecided, IdempotencyConflict, OptionNotAllowed, StaleEvidence, VaultError
from jobtrack.flow import advance as advance_flow
from jobtrack.flow import deliver as deliver_flow
from jobtrack.flow import resolve as resolve_flow
from jobtrack.flow import submit as submit_flow
from jobtrack.flow import sweep as sweep_flow
from jobtrack.flow import track as track_flow
from jobtrack.ports import Runtime, Timing
from jobtrack.records import Delivery
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing.files import MemoryFiles
from tests.simulation.broker import Broker, SimScheduler
from tests.simulation.machine import MS, SECOND, START, Machine, Outage, Process
from tests.simulation.oracle import ACTIVE, Oracle
from tests.simulation.plan import LATE, Job, Plan
from tests.simulation.provider import Provider, SimTransport
from tests.simulation.submissions import Desk, Ledger
from tests.simulation.tables import FIRST_EDITION, SECOND_EDITION
from tests.simulation.told import Told

S = timedelta(seconds=1)
_FLOWS: dict[str, Callable[[Runtime, Any], object]] = {
    "poll": advance_flow.advance,
    "deliver": deliver_flow.deliver,
    "conflict": lambda runtime, ids: submit_flow.report_conflict(runtime, ids[0]),
}
"""What a worker does with each message."""
TIMING = Timing(
    margin=S,
    early=S,
    look=10 * S,
    grace=3 * S,
    table_missing_retry=2 * S,
    table_missing_limit=6 * S,
    delivery_lease=5 * S,
    delivery_attempts=2,
)
SWEEP_US = 1500 * MS
WRITES = frozenset({"claim", "commit", "resolve", "close_delivery", "move_gate", "due"})
RARE = frozenset(
    {
        Reason.AUTHORIZATION_DENIED,
        Reason.DELIVERY_FAILED,
        Reason.GUIDANCE_TOO_LONG,
        Reason.SUBMISSION_UNKNOWN,
        Reason.SUBMISSION_UNSENT,
    }
)


class HandlerFailed(Exception):
    """A follow-up of the site raised."""


class SimStore:
    """``ports.Store`` over a memory store: each call is a place to be stopped, and may fail before or after it."""

    def __init__(self, machine: Machine, process: Process, oracle: Oracle, plan: Plan) -> None:
        self._machine = machine
        self._process = process
        self._oracle = oracle
        self._ambiguous = plan.rate("ambiguous")

    def __getattr__(self, method: str) -> Any:
        call = partial(self._call, method, getattr(self._oracle.store, method))
        setattr(self, method, call)
        return call

    def _call(self, method: str, real: Callable[..., Any], *args: Any, **named: Any) -> Any:
        machine = self._machine
        machine.point(f"before {method}")
        if machine.happens(self._process.outage_rate, "the database was away"):
            machine.disturb(2 * SECOND)
            raise Outage(method)
        result = real(*args, **named)
        self._oracle.after_call(self._process, method, args, named, result)
        if method in WRITES and machine.happens(self._ambiguous, f"the reply to {method} was lost"):
            machine.disturb(2 * SECOND)
            raise Outage(method)
        machine.point(f"after {method}")
        return result


@dataclass(slots=True, kw_only=True)
class Tables:
    """``ports.Tables`` of one process; a deploy reaches each process at a time of its own."""

    edition: dict[str, ProviderTable] = field(default_factory=lambda: FIRST_EDITION)

    def get(self, table_id: str) -> ProviderTable | None:
        return self.edition.get(table_id)


class PlainVault:
    """Keeps what is sealed readable, so that a seed decides every byte; still bound to its operation."""

    def seal(self, operation_id: str, content: Sealed) -> str:
        return f"{operation_id} {content.text()}" if content else ""

    def open(self, operation_id: str, sealed: str) -> Sealed:
        if not sealed:
            return Sealed()
        owner, _, text = sealed.partition(" ")
        if owner != operation_id:
            raise VaultError("it belongs to another operation")
        return Sealed.of(text)


class _Deaf:
    """A listener that does nothing; it is told after the commit, so that nothing depends on it."""

    def finished(self, operation: Operation) -> None: ...

    def escalated(self, operation: Operation, questions: tuple[Question, ...]) -> None: ...

    def resolved(self, operation: Operation, resolution: Resolution) -> None: ...


@dataclass(slots=True, kw_only=True)
class World:
    """Built from a plan; ``run`` runs it once."""

    plan: Plan
    machine: Machine = field(init=False)
    store: MemoryStore = field(init=False)
    ledger: Ledger = field(init=False)
    oracle: Oracle = field(init=False)
    broker: Broker = field(init=False)
    provider: Provider = field(init=False)
    workers: list[Process] = field(default_factory=list)
    sweepers: list[Process] = field(default_factory=list)
    tables: dict[str, Tables] = field(default_factory=dict)
    runtimes: dict[str, Runtime] = field(default_factory=dict)
    _tokens: int = 0

    def __post_init__(self) -> None:
        plan = self.plan
        self.machine = Machine(chance=random.Random(f"jobtrack run {plan.seed}"), restart=self._restart)
        self.store = MemoryStore(self.machine.clock)
        self.ledger = Ledger(machine=self.machine, jobs={job.op: job for job in plan.jobs})
        self.oracle = Oracle(machine=self.machine, plan=plan, store=self.store, ledger=self.ledger)
        self.broker = Broker(machine=self.machine, plan=plan, arrived=self._dispatch)
        desk, told = Desk(self.machine, plan, self.ledger), Told(self.machine, plan, self.ledger.find)
        answers = {"status": told.fill, "submit": desk.submit, "lookup": desk.look_up}
        self.provider = Provider(machine=self.machine, answers=answers)
        self.workers = [self._process(f"worker-{n}", kill=plan.rate("kill")) for n in range(plan.workers)]
        self.sweepers = [self._process(f"sweeper-{n}", kill=plan.rate("sweeper_kill")) for n in range(2)]

    # --- processes ----------------------------------------------------------------------------------

    def _process(self, name: str, *, kill: float = 0.0, steady: bool = False) -> Process:
        plan = self.plan
        process = Process(
            name=name,
            kill_rate=kill,
            pause_rate=0.0 if steady else plan.rate("stop"),
            outage_rate=0.0 if steady else plan.rate("database") / 2,
        )
        self.tables[name] = Tables()
        self.runtimes[name] = self._runtime(process)
        return process

    def _runtime(self, process: Process) -> Runtime:
        machine = self.machine
        return Runtime(
            store=SimStore(machine, process, self.oracle, self.plan),  # type: ignore[arg-type]
            transport=SimTransport(
                machine=machine, provider=self.provider, checks=self.oracle, late_rate=self.plan.rate(LATE)
            ),
            scheduler=SimScheduler(machine=machine, broker=self.broker),
            tables=self.tables[process.name],
            draw=machine.chance.random,
            elapsed=lambda: machine.clock.us / SECOND,
            listener=_Deaf(),
            token=self._token,
            run_handler=self._handle,
            vault=PlainVault(),
            files=MemoryFiles(),
            timing=TIMING,
        )

    def _token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens}"

    def _restart(self, process: Process) -> None:
        down_us = self.machine.chance.randrange(200 * MS, 8 * SECOND)
        self.machine.disturb(down_us)

        def back() -> None:
            process.dead = False
            self._dispatch()

        self.machine.after(down_us, back)

    def _handle(self, delivery: Delivery, operation: Operation) -> None:
        self.machine.point("before handler")
        self.oracle.runs(delivery)
        if self.machine.happens(self.plan.rate("handler"), "a handler raised"):
            raise HandlerFailed("no")
        self.oracle.returned[delivery.id] += 1
        self.machine.point("after handler")

    # --- workers and sweepers -----------------------------------------------------------------------

    def _dispatch(self) -> None:
        for process in self.workers:
            if self.broker.ready and not process.busy and not process.dead:
                self._give(process)

    def _give(self, process: Process) -> None:
        message = self.broker.take()
        what, ids = message
        flow = _FLOWS[what]

        def ended(killed: bool) -> None:
            if killed:
                self.broker.redeliver(message)
            self.machine.after(0, self._dispatch)

        self.machine.spawn(process, what, lambda: flow(self.runtimes[process.name], ids), ended)

    def _sweep(self, process: Process) -> None:
        self.oracle.in_time()
        self.machine.after(SWEEP_US, lambda: self._sweep(process))
        if not process.busy and not process.dead:
            limit = self.machine.chance.choice((1, 2, 200))
            runtime = self.runtimes[process.name]
            work = lambda: sweep_flow.sweep(runtime, limit=limit, inline=self.plan.inline)  # noqa: E731
            self.machine.spawn(process, "sweep", work, lambda killed: None)

    # --- staff --------------------------------------------------------------------------------------

    @property
    def _staff_until_us(self) -> int:
        return self.plan.heals_us + 10 * SECOND if "staff" in self.plan.rates else 0

    def _staff(self, number: int) -> None:
        """Look for a question now and then; sometimes two people decide the same one."""
        machine = self.machine
        if machine.clock.us > self._staff_until_us:
            return
        machine.after(machine.chance.randrange(SECOND, 3 * SECOND), lambda: self._staff(number + 1))
        asked = [item for item in self.store.escalations.values() if item.closed_at is None]
        if not asked:
            return
        rare = [item for item in asked if item.reason in RARE]
        escalation = machine.chance.choice(rare if rare and machine.chance.random() < 0.9 else asked)
        people = 2 if machine.happens(self.plan.rate("hasty_staff"), "two people answered") else 1
        for person in range(people):
            process = self._process(f"web-{number}-{person}", kill=self.plan.rate("kill"))
            self.tables[process.name].edition = self.tables["worker-0"].edition
            decide = partial(self._decide, self.runtimes[process.name], escalation.id, process.name)
            machine.spawn(process, "decide", decide, lambda killed: None)

    def _decide(self, runtime: Runtime, escalation_id: str, actor: str) -> None:
        escalation = runtime.store.escalation(escalation_id)
        (operation,) = runtime.store.get([escalation.operation_id])
        offered = options(escalation.reason, operation, runtime.tables.get(operation.provider))
        chance = self.machine.chance
        made = [effect.id for effect in self.ledger.of(operation.id)]
        if not made:  # whoever asks the provider learns that there is nothing to attach
            offered = tuple(option for option in offered if option is not Option.ATTACH_JOB)
        option = chance.choice(offered if chance.random() < 0.4 else offered[:-1] or offered)  # seldom gives up
        # What proves most, or may do most harm, is chosen more often than chance would have it.
        telling = next((o for o in (Option.LOOK_UP, Option.RESUBMIT, Option.RETRY_DELIVERY) if o in offered), option)
        if chance.random() < 0.6:
            option = telling
        old = self.machine.happens(self.plan.rate("hasty_staff") / 4, "somebody answered an old page")
        if chance.random() < 0.3:
            self.machine.sleep(chance.randrange(SECOND, 8 * SECOND))  # thinks about what the page says
        answer = Resolution(
            escalation_id=escalation_id,
            option=option,
            actor=actor,
            reason="why",
            version=escalation.version - old,
            job_id=made[-1] if option is Option.ATTACH_JOB else "",
        )
        try:
            resolve_flow.resolve(runtime, answer)
        except (AlreadyDecided, StaleEvidence, OptionNotAllowed) as refused:
            self.machine.count(f"refused: {refused.code}")
        else:
            self.machine.count(f"chosen: {Option(option).value}")

    # --- tables -------------------------------------------------------------------------------------

    def _deploy(self) -> None:
        """The second edition reaches one process after another; some miss their table for a while."""
        chance, heals_us = self.machine.chance, self.plan.heals_us
        for process in (*self.workers, *self.sweepers):
            tables = self.tables[process.name]
            if "deploy" in self.plan.rates:
                self._at(chance.randrange(heals_us), tables, SECOND_EDITION)
            if "table_missing" in self.plan.rates and chance.random() < 0.7:
                gone_us = chance.randrange(heals_us)
                self._at(gone_us, tables, {})
                self._at(gone_us + chance.randrange(SECOND, 20 * SECOND), tables, FIRST_EDITION)

    def _at(self, instant_us: int, tables: Tables, edition: dict[str, ProviderTable]) -> None:
        def change() -> None:
            if not self.machine.healed:
                tables.edition = edition
                self.machine.disturbed_us = self.plan.heals_us

        self.machine.at(instant_us, change)

    # --- the run ------------------------------------------------------------------------------------

    def run(self) -> World:
        """Faults on, then all is mended, then every operation must come to rest."""
        machine, plan = self.machine, self.plan
        for job in plan.jobs:
            self._start(job)
        for number, process in enumerate(self.sweepers):
            machine.at(number * SWEEP_US // 2, partial(self._sweep, process))
        if "staff" in plan.rates:
            machine.after(SECOND, lambda: self._staff(0))
        self._deploy()
        self.broker.start()
        machine.at(plan.heals_us, self._heal)
        try:
            machine.run(self._at_rest)
            self.oracle.at_end()
        finally:
            machine.stop()
        return self

    def _start(self, job: Job) -> None:
        """The site submits or tracks; sometimes two of its processes submit the same, or other content besides."""
        begin = self._submit if job.way else self._track
        people = 2 if job.way and self.plan.rate("two_submitters") > self.machine.chance.random() else 1
        for person in range(people):
            process = self._process(f"site-{job.op}-{person}", steady=True)
            other = person > 0 and self.machine.chance.random() < 0.3
            work = partial(begin, self.runtimes[process.name], job, "other work" if other else "work")
            self.machine.at(job.starts_us, partial(self.machine.spawn, process, "start", work, lambda killed: None))

    def _told(self, job: Job) -> dict[str, Any]:
        needed_by = job.starts_us + job.needed_by_us if job.needed_by_us is not None else None
        return {
            "operation_id": job.op,
            "provider": job.table,
            "account": job.account,
            "deadline": timedelta(microseconds=job.deadline_us),
            "needed_by": None if needed_by is None else START + timedelta(microseconds=needed_by),
            "status_requests": job.status_requests,
            "transport_failures": job.transport_failures,
            "rate_limited": job.rate_limited,
            "escalate_ends": job.escalate_ends,
            **({"on_success": "a.ok", "on_failure": "a.bad", "on_end": "a.end"} if job.followups else {}),
        }

    def _track(self, runtime: Runtime, job: Job, _: str) -> None:
        track_flow.track(runtime, [track_flow.Tracking(job_id=job.id, **self._told(job))])

    def _submit(self, runtime: Runtime, job: Job, work: str) -> None:
        try:
            submit_flow.submit(runtime, [submit_flow.Submission(payload={"do": work}, **self._told(job))])
        except IdempotencyConflict as refused:
            self.machine.count(f"refused: {refused.code}")
            runtime.scheduler.report_conflict(job.op)
        else:
            self.oracle.doubts.taken(job.op, work)

    def _heal(self) -> None:
        self.machine.healed = True
        self.machine.disturbed_us = max(self.machine.disturbed_us, self.machine.clock.us)
        for tables in self.tables.values():
            tables.edition = SECOND_EDITION if "deploy" in self.plan.rates else FIRST_EDITION

    def _at_rest(self) -> bool:
        """Nothing will happen any more, or it should have happened long ago."""
        machine = self.machine
        if machine.clock.us < self._staff_until_us or len(self.store.rows) < len(self.plan.jobs):
            return False
        if machine.clock.us > 600 * SECOND:
            return True
        active = any(row.state in ACTIVE for row in self.store.rows.values())
        return not active and not machine.tasks and self.store.next_due_at() is None

    def outcomes(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """How each operation ended and what was asked."""
        return {
            op: (
                row.state.value,
                tuple(sorted(e.reason.value for e in self.store.escalations.values() if e.operation_id == op)),
            )
            for op, row in self.store.rows.items()
        }

    def digest(self) -> str:
        """A hash of everything that happened, and of what is stored."""
        seen = hashlib.blake2b(repr(self.machine.trace).encode(), digest_size=16)
        for line in self.store.export():
            seen.update(line.encode())
        return seen.hexdigest()
