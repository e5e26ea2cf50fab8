"""What one try of an errand came to, and the account gate that every errand asks before it sends (R-END-2, R-POLL-4).

An errand is a row of the outbox that this library runs itself: fetch a result, ask for a cancellation. Its function
takes ``(runtime, delivery, operation)``, makes one try under the delivery's lease and returns one of three values; it
writes what it learnt by itself, and ``flow.deliver`` closes the row, dates the next try, or asks a person.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobtrack.core import gate as gates
from jobtrack.core.escalation import Question
from jobtrack.core.gate import GateState
from jobtrack.core.observation import Kind, Observation
from jobtrack.core.operation import Operation
from jobtrack.core.table import ProviderTable
from jobtrack.ports import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Nothing is left to do: the row is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """It has to be tried again."""

    after: timedelta | None = None  # pause before the next try; None: the usual one, `core.backoff.delivery_delay`
    said: str = ""  # why, as one clean sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """No machine tries again; a person is asked."""

    question: Question  # advisory: an errand never moves the operation
    said: str = ""  # why, as one clean sentence


Errand = Done | Again | GiveUp


def pass_gate(runtime: Runtime, table: ProviderTable, operation: Operation) -> GateState | datetime:
    """The gate with which the errand may send now, or until when it has to wait. Nothing is debited."""
    account = (operation.provider, operation.account)
    gate = runtime.store.gates([account]).get(account, gates.OPEN)
    now = runtime.store.now()
    answer = gates.ask(gate, operation.id, now, table.gate)
    if isinstance(answer, gates.Held):
        return answer.until
    if answer.after is None:
        return gate
    if runtime.store.move_gate(*account, gate, answer.after):
        return replace(answer.after, version=gate.version + 1)
    return now + table.gate.breaker_hold


def move_gate(
    runtime: Runtime, table: ProviderTable, operation: Operation, before: GateState, observation: Observation
) -> None:
    """Store what the answer means for the whole account.

    A denial closes nothing here: the question that opens such a gate again belongs to an operation that still runs,
    and an errand's operation has often ended. Its next look meets the same denial and asks.
    """
    if observation.kind is Kind.DENIED:
        return
    account = (operation.provider, operation.account)
    for _ in range(3):
        after = gates.after(before, observation, runtime.store.now(), table.gate)
        if after is before or runtime.store.move_gate(*account, before, after):
            return
        before = runtime.store.gates([account]).get(account, gates.OPEN)
