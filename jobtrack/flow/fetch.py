"""Fetch the result of a job that succeeded: one try of the errand (R-END-2, R-END-4).

A try asks the job how it stands, walks from that answer to the files as the table says, and stores them. It changes
no state, spends no poll budget and never submits anything; what it spends are status reads of its own grant. A dead
link leads to the same job again. Links are used and forgotten: they stand in no row, text, log line or exception.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from traceback import format_tb

from jobtrack.core import fetch as rules
from jobtrack.core import sentences_result as say
from jobtrack.core.actions import FetchSpec
from jobtrack.core.backoff import delivery_delay
from jobtrack.core.escalation import Question, Reason
from jobtrack.core.fetch import Fault
from jobtrack.core.gate import GateState
from jobtrack.core.observation import DelaySource, Guidance, Kind, Observation
from jobtrack.core.observe import observe
from jobtrack.core.operation import Operation
from jobtrack.core.reply import NoAnswer, Request
from jobtrack.core.request import status_request, target_allowed
from jobtrack.core.sentences_question import HELD_BACK, NO_TABLE
from jobtrack.core.table import ProviderTable
from jobtrack.core.text import clean
from jobtrack.errors import UsageError, VaultError
from jobtrack.flow import story
from jobtrack.flow.errand import Again, Done, Errand, GiveUp, move_gate, pass_gate
from jobtrack.flow.walk import Page, Walk
from jobtrack.ports import Runtime
from jobtrack.records import Delivery, JobResult, ResultFile, ResultState

logger = logging.getLogger(__name__)


HELD_TRIES = 40
"""Tries that meet a closed gate before a person is asked about the result as well: with their growing pauses more
than a day. The account's own question has been open all the time."""


def lease_of(runtime: Runtime, table: ProviderTable) -> timedelta:
    """Lease of a delivery that lets one try use the whole of its time."""
    timing, limits = runtime.timing, runtime.limits or table.limits
    longest = timedelta(0) if table.result is None else table.result.total + limits.total + timing.margin
    return max(timing.delivery_lease, longest)


def fetch(runtime: Runtime, delivery: Delivery, operation: Operation, *, lease: timedelta | None = None) -> Errand:
    """Make one try to fetch the result, under the lease of its delivery.

    Args:
        delivery: the errand's row, leased by the caller.
        operation: the row of the job.
        lease: of the delivery; the try ends before it does. None: ``Timing.delivery_lease``.

    Returns:
        Done if the result is complete; Again if another try makes sense; GiveUp with a question for a person. Never
        raises for what a provider or a storage does.
    """
    try:
        return _try_once(runtime, delivery, operation, lease or runtime.timing.delivery_lease)
    except Exception as error:  # noqa: BLE001 - the frames below hold links, which an error hook would show
        logger.warning("fetching for %s raised in:\n%s", operation.id, "".join(format_tb(error.__traceback__)))
        said = say.OWN_ERROR.of(error=type(error).__name__)
    return _without_read(runtime, delivery, operation, said)


def _try_once(runtime: Runtime, delivery: Delivery, operation: Operation, lease: timedelta) -> Errand:
    stored = runtime.store.result(operation.id) or JobResult(operation_id=operation.id)
    if stored.state is ResultState.COMPLETE:
        _note(runtime, operation, None, delivery, stored, outcome="complete")
        return Done()
    table = runtime.tables.get(operation.provider)
    if table is None or table.revision < operation.revision:
        said = NO_TABLE.of(table=repr(operation.provider), count=operation.revision)
        return _without_read(runtime, delivery, operation, said, again=runtime.timing.table_missing_retry)
    if table.result is None or not operation.succeeded:
        return _give_up(say.NOTHING_TO_FETCH.of())
    if stored.state is ResultState.UNAVAILABLE:
        if delivery.attempts > 1:  # the process ended after writing that down
            return _give_up(stored.detail)
        stored = replace(stored, state=ResultState.WANTED, reads=0, link="", detail="")  # a person asked again
    gate = pass_gate(runtime, table, operation)
    if not isinstance(gate, GateState):
        said = HELD_BACK.of()
        if delivery.attempts >= HELD_TRIES:
            return _without_read(runtime, delivery, operation, said)
        wait = max(gate - runtime.store.now(), delivery_delay(delivery.attempts))
        return Again(after=wait, said=said)
    limits = runtime.limits or table.limits
    left = min(table.result.total, lease - limits.total - runtime.timing.margin)
    walk = Walk(
        runtime=runtime,
        table=table,
        spec=table.result,
        operation=operation,
        ends_s=runtime.elapsed() + left.total_seconds(),
        left=stored.files,
    )
    work = _Try(
        runtime=runtime,
        table=table,
        spec=table.result,
        operation=operation,
        delivery=delivery,
        gate=gate,
        result=stored,
        walk=walk,
    )
    walk.keep = work.keep_files
    return work.run()


def _give_up(said: str) -> GiveUp:
    detail = clean(f"{say.NOT_FETCHED.of()} {said}", 500)
    return GiveUp(question=Question(reason=Reason.RESULT_UNAVAILABLE, detail=detail), said=clean(said, 500))


def _without_read(
    runtime: Runtime, delivery: Delivery, operation: Operation, said: str, again: timedelta | None = None
) -> Errand:
    """The try used no status read of its grant, so the attempts of the delivery bound it."""
    if delivery.attempts < runtime.timing.delivery_attempts:
        return Again(after=again, said=said)
    before = runtime.store.result(operation.id) or JobResult(operation_id=operation.id)
    runtime.store.keep_result(replace(before, state=ResultState.UNAVAILABLE, detail=clean(said, 500)))
    return _give_up(said)


def _note(
    runtime: Runtime,
    operation: Operation,
    table: ProviderTable | None,
    delivery: Delivery,
    result: JobResult,
    *,
    outcome: str,
    heard: tuple[str, ...] = (),
) -> None:
    """What a try came to, for the audit: counts and codes, no address (INV-33)."""
    complete = sum(file.complete for file in result.files)
    entry = story.entry(
        "fetch",
        operation,
        at=runtime.store.now(),
        attempt=delivery.attempts,
        reads=[result.reads, None if table is None or table.result is None else table.result.attempts],
        heard=list(heard[-100:]),
        files=complete,
        bytes=sum(file.size for file in result.files if file.complete),
        outcome=outcome,
        detail=result.detail,
        table=story.table_mark(table),
    )
    runtime.store.note(operation.id, entry)


@dataclass(slots=True, kw_only=True)
class _Try:
    """One try. ``result`` is the record as it is stored; ``done`` the files of this walk, in order."""

    runtime: Runtime
    table: ProviderTable
    spec: FetchSpec
    operation: Operation
    delivery: Delivery
    gate: GateState
    result: JobResult  # as it is stored
    walk: Walk

    def run(self) -> Errand:
        fault = self._by_link() if self._link_serves() else self._by_status()
        return self._complete() if fault is None else self._failed(fault)

    # --- how it ended ---------------------------------------------------------------------------

    def _complete(self) -> Errand:
        now = self.runtime.store.now()
        self._keep(state=ResultState.COMPLETE, files=tuple(self.walk.done), detail="", link="", fetched_at=now)
        self._noted("complete")
        return Done()

    def _failed(self, fault: Fault) -> Errand:
        now = self.runtime.store.now()
        link = "" if fault.stale else self.walk.link or self.result.link
        until = rules.kept_until(self.table, self.operation)
        more = rules.reads_left(self.result.reads, self.spec) or rules.link_serves(
            link, self.result.reads, self.delivery.attempts + 1
        )
        over = fault.final or not more or (until is not None and until <= now)
        said = fault.said if more or fault.final else f"{fault.said} {say.TRIES_USED.of()}"
        said = clean(said + rules.retention_said(self.table, self.operation, now), 500)
        state = ResultState.UNAVAILABLE if over else ResultState.WANTED
        self._keep(state=state, detail=said, link="" if over else link)
        self._noted("unavailable" if over else "again")
        self._hold_account(fault)
        if over:
            return _give_up(said)
        return Again(after=None if fault.wait is None else max(fault.wait, rules.PAUSE), said=said)

    def _noted(self, outcome: str) -> None:
        _note(
            self.runtime,
            self.operation,
            self.table,
            self.delivery,
            self.result,
            outcome=outcome,
            heard=tuple(self.walk.heard),
        )

    def keep_files(self, files: tuple[ResultFile, ...]) -> None:
        """Write down what is stored so far: a process that ends here loses no complete file."""
        self._keep(files=files)

    def _keep(self, **changes: object) -> None:
        self.result = replace(self.result, **changes)  # type: ignore[arg-type]
        self.runtime.store.keep_result(self.result)

    # --- the status, anew -----------------------------------------------------------------------

    def _link_serves(self) -> bool:
        link = self.result.link
        usable = rules.is_plain(link, self.table, self.operation.params)
        return usable and rules.link_serves(link, self.result.reads, self.delivery.attempts)

    def _by_link(self) -> Fault | None:
        """Use the link of an earlier try: it holds no secret, and the status would only say the same again."""
        url = self.result.link
        return self.walk.by_link(url)

    def _by_status(self) -> Fault | None:
        if not rules.reads_left(self.result.reads, self.spec):
            return Fault(said=say.READS_USED.of(), final=True)
        try:
            sealed = self.runtime.vault.open(self.operation.id, self.operation.sealed)
            request = status_request(self.table, self.operation, status_url=sealed.status_url, handle=sealed.handle)
        except (UsageError, VaultError) as error:
            return Fault(said=error.message, final=True)
        if not target_allowed(request.url, self.table, self.operation.params):
            return Fault(said=say.STATUS_ADDRESS_OVER.of(), final=True)
        # Debited before it is sent: a process that ends here has used it.
        self._keep(state=ResultState.WANTED, reads=self.result.reads + 1, link="")
        page = self._read_status(request)
        return page if isinstance(page, Fault) else self.walk.from_status(page, handle=sealed.handle)

    def _read_status(self, request: Request) -> Page | Fault:
        reply = self.walk.send(request)
        now = self.runtime.store.now()
        observation = observe(self.table, reply, operation=self.operation, now=now)
        move_gate(self.runtime, self.table, self.operation, self.gate, observation)
        if observation.kind is not Kind.SUCCESS or isinstance(reply, NoAnswer):
            wait = observation.guidance.wait if observation.guidance else None
            return Fault(said=_contradicted(observation), wait=wait)
        answer = rules.status_document(self.table, reply, self.operation.job_id)
        return answer if isinstance(answer, Fault) else Page(answer=answer, request=request)

    def _hold_account(self, fault: Fault) -> None:
        """A wait that the provider's own host asks for holds the whole account (R-POLL-4)."""
        if fault.wait is None or fault.http not in (429, 503):
            return
        guidance = Guidance(source=DelaySource.PROVIDER_RETRY_AFTER, raw="", wait=fault.wait)
        kind = Kind.RATE_LIMITED if fault.http == 429 else Kind.TRANSPORT_FAILURE
        seen = Observation(kind=kind, http=fault.http, guidance=guidance)
        move_gate(self.runtime, self.table, self.operation, self.gate, seen)


def _contradicted(observation: Observation) -> str:
    """Why the status read for a result did not say success: the operation stays as it ended (R-END-1)."""
    if observation.readable:
        return say.TOLD_OTHERWISE.of(kind=observation.kind)
    if observation.http is None:
        return say.STATUS_UNANSWERED.of(kind=observation.kind)
    return say.STATUS_UNUSABLE.of(kind=observation.kind, code=observation.http)
