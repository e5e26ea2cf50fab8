"""Typical mistakes, planted one at a time: the simulator is only worth something if it finds each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from jobtrack.core import decide, gate
from jobtrack.core.observation import Kind
from jobtrack.core.operation import OperationState, Spent
from jobtrack.core.request import status_request
from jobtrack.flow import poll, resolve, sweep, turn
from jobtrack.records import Committed, Due
from jobtrack.stores import memory
from jobtrack.stores.memory import MemoryStore
from tests.simulation.doubtful import DOUBTFUL

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A mistake, and the invariants of which one must be seen to break."""

    plant: Plant
    breaks: tuple[str, ...]


def _overwrite(store: MemoryStore, commit: Any) -> Committed:
    """Write whatever was wanted over whatever is there."""
    row = store.rows[commit.operation.id]
    store.rows[row.id] = replace(commit.operation, audit_seq=row.audit_seq, audit_head=row.audit_head)
    store._append(row.id, commit.entry)
    for question in commit.questions:
        store._ask(row.id, question)
    store._follow(row.id, commit.followups)
    return Committed.DONE


def fence_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "_commit", _overwrite)


def late_answer_overwrites_an_ended_operation(patch: pytest.MonkeyPatch) -> None:
    right = MemoryStore._commit

    def commit(store: MemoryStore, commit: Any) -> Committed:
        ended = store.rows[commit.operation.id].terminal
        return _overwrite(store, commit) if ended else right(store, commit)

    patch.setattr(MemoryStore, "_commit", commit)


def debited_after_the_answer(patch: pytest.MonkeyPatch) -> None:
    taken, charged = memory._taken, poll._charged

    def no_debit(row: Any, *args: Any) -> Any:
        return replace(taken(row, *args), spent=row.spent)

    def debit(operation: Any, *args: Any) -> Any:
        row = charged(operation, *args)
        return replace(row, spent=replace(row.spent, status_requests=row.spent.status_requests + 1))

    patch.setattr(memory, "_taken", no_debit)
    patch.setattr(poll, "_charged", debit)


def floor_ignored(patch: pytest.MonkeyPatch) -> None:
    granted = memory._granted
    patch.setattr(memory, "_granted", lambda row, now: granted(replace(row, not_before=None), now))


def guidance_shortened(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "spread", lambda wait, draw: min(wait, timedelta(seconds=2)))


def guidance_forgotten_when_a_person_is_asked(patch: pytest.MonkeyPatch) -> None:
    charged = poll._charged
    patch.setattr(
        poll,
        "_charged",
        lambda operation, *args: replace(charged(operation, *args), not_before=operation.not_before),
    )


def no_pause_after_an_error(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "local_delay", lambda polling, polls, draw: timedelta(0))


def lease_shorter_than_the_request(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turn, "lease_for", lambda limits, margin: limits.total * 0.3)


def lease_ignored(patch: pytest.MonkeyPatch) -> None:
    right = memory._due

    def due(row: Any, now: Any) -> bool:
        return right(row, now) or (row.state is OperationState.RUNNING and row.wake_at is not None)

    patch.setattr(memory, "_due", due)


def late_worker_sends_all_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(poll, "_request", lambda runtime, turn: status_request(turn.table, turn.claim.operation))


def unknown_state_taken_for_pending(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(decide._STOPS, Kind.UNKNOWN_STATE)


def success_by_http_200_alone(patch: pytest.MonkeyPatch) -> None:
    right = poll.observe
    wrong = frozenset({Kind.INVALID_RESULT, Kind.JOB_ID_MISMATCH, Kind.INVALID_RESPONSE})

    def observe(*args: Any, **named: Any) -> Any:
        seen = right(*args, **named)
        return replace(seen, kind=Kind.SUCCESS) if seen.kind in wrong else seen

    patch.setattr(poll, "observe", observe)


def counters_reset_by_a_decision(patch: pytest.MonkeyPatch) -> None:
    right = resolve.grant
    patch.setattr(resolve, "grant", lambda *args, **named: replace(right(*args, **named), spent=Spent()))


def limit_raised_by_the_machine(patch: pytest.MonkeyPatch) -> None:
    charged = poll._charged

    def generous(operation: Any, *args: Any) -> Any:
        row = charged(operation, *args)
        more = max(row.budget.status_requests, row.spent.status_requests + 1)
        return replace(row, budget=replace(row.budget, status_requests=more))

    patch.setattr(poll, "_charged", generous)


def closed_gate_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gate, "ask", lambda *args: gate.Pass())


def no_sweeper(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "due", lambda store, **named: Due())


def sweeper_needs_a_broker(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "advance", lambda runtime, ids: [])


def unchanged_looks_leave_no_entry(patch: pytest.MonkeyPatch) -> None:
    right = MemoryStore._append

    def append(store: MemoryStore, operation_id: str, entry: Any) -> None:
        if entry.get("decision", {}).get("do") != "wait":
            right(store, operation_id, entry)

    patch.setattr(MemoryStore, "_append", append)


def follow_ups_are_not_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "_follow", lambda store, operation_id, followups: None)


def delivered_before_it_ran(patch: pytest.MonkeyPatch) -> None:
    right = MemoryStore.take_delivery

    def take(store: MemoryStore, delivery_id: str, *, owner: str, lease: timedelta) -> Any:
        taken = right(store, delivery_id, owner=owner, lease=lease)
        if taken is not None:
            store.close_delivery(taken, owner=owner)
        return taken

    patch.setattr(MemoryStore, "take_delivery", take)


def decided_twice(patch: pytest.MonkeyPatch) -> None:
    right = MemoryStore.escalation
    patch.setattr(MemoryStore, "escalation", lambda store, key: replace(right(store, key), resolution=None))


DEFECTS = (
    Defect(plant=fence_not_checked, breaks=("INV-02", "INV-07", "INV-13")),
    Defect(plant=late_answer_overwrites_an_ended_operation, breaks=("INV-07",)),
    Defect(plant=debited_after_the_answer, breaks=("INV-01",)),
    Defect(plant=floor_ignored, breaks=("INV-04", "INV-05")),
    Defect(plant=guidance_shortened, breaks=("INV-04",)),
    Defect(plant=guidance_forgotten_when_a_person_is_asked, breaks=("INV-04",)),
    Defect(plant=no_pause_after_an_error, breaks=("INV-05",)),
    Defect(plant=lease_shorter_than_the_request, breaks=("INV-14",)),
    Defect(plant=lease_ignored, breaks=("INV-13",)),
    Defect(plant=late_worker_sends_all_the_same, breaks=("INV-14",)),
    Defect(plant=unknown_state_taken_for_pending, breaks=("INV-08",)),
    Defect(plant=success_by_http_200_alone, breaks=("INV-08", "INV-11")),
    Defect(plant=counters_reset_by_a_decision, breaks=("INV-02",)),
    Defect(plant=limit_raised_by_the_machine, breaks=("INV-02",)),
    Defect(plant=closed_gate_ignored, breaks=("INV-44",)),
    Defect(plant=no_sweeper, breaks=("INV-06",)),
    Defect(plant=sweeper_needs_a_broker, breaks=("INV-06",)),
    Defect(plant=unchanged_looks_leave_no_entry, breaks=("INV-09",)),
    Defect(plant=follow_ups_are_not_stored, breaks=("INV-21",)),
    Defect(plant=delivered_before_it_ran, breaks=("INV-21",)),
    Defect(plant=decided_twice, breaks=("INV-28",)),
    *(Defect(plant=plant, breaks=breaks) for plant, breaks in DOUBTFUL.items()),
)
