"""Cancelling a job at its provider: a record, an effect that is told, and an outcome that may be unknown (R-END-5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from jobtrack.core.actions import CancelSpec
from jobtrack.core.audit import verify
from jobtrack.core.escalation import Reason
from jobtrack.core.gate import OPEN, GateState, HoldReason
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.place import Body, RequestSpec
from jobtrack.core.reply import Reply, Request, Sent
from jobtrack.core.sealed import Sealed
from jobtrack.core.table import Meaning, Polling, ProviderTable, StatePart, StateRow, StatusSpec
from jobtrack.errors import OperationNotFound, UsageError, VaultError
from jobtrack.flow.cancel import cancel, delivery_of, request_cancel
from jobtrack.flow.errand import Again, Done, Errand, GiveUp
from jobtrack.flow.poll import poll
from jobtrack.flow.track import Tracking, track
from jobtrack.ports import Runtime
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, VirtualClock, answer, memory_runtime, no_answer

S = timedelta(seconds=1)
STATUS = Body(("status",), "/status")
WORDS = {"running": "pending", "done": "success", "canceled": "cancelled"}
ONCE = CancelSpec(
    request=RequestSpec(method="POST", path="/jobs/{job_id}/cancel"),
    effect="Stops the export; the part already made is billed.",
    accepted_http=frozenset({202}),
    refused_http=frozenset({409}),
)
TWICE = replace(ONCE, repeatable=True)
TABLE = ProviderTable(
    id="acme",
    name="ACME",
    docs="https://acme.example",
    revision=1,
    digest="digest-1",
    text="table text 1",
    hosts=("https://api.acme.example",),
    status=StatusSpec(
        request=RequestSpec(path="/jobs/{job_id}"),
        state=(StatePart(at=STATUS),),
        rows=tuple(StateRow(values=(word,), meaning=Meaning(meaning)) for word, meaning in WORDS.items()),
    ),
    polling=Polling(first=60 * S, base=60 * S, factor=1, cap=60 * S),
    cancel=ONCE,
)
ACCEPTED, REFUSED, ODD = answer(202), answer(409, json={"error": "too late"}), answer(500)
LOST, UNSENT = no_answer("read_timeout"), no_answer("connect_refused")


@dataclass
class World:
    """One clock, one provider, one store, and the worker that runs errands."""

    cancel: CancelSpec | None = ONCE
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.provider = FakeProvider(self.clock)
        self.store = MemoryStore(self.clock)
        self.table = replace(TABLE, cancel=self.cancel)
        self.runtime: Runtime = memory_runtime(self.table, provider=self.provider, clock=self.clock, store=self.store)
        self.provider.script("job-1", answer(json={"status": "running"}))
        track(self.runtime, [Tracking(operation_id="op-1", provider="acme", job_id="job-1")])

    def answers(self, *replies: Reply | Callable[[Request], Reply]) -> None:
        self.provider.on("POST", "/jobs/job-1/cancel", *replies)

    def request(self, **more: Any) -> Operation:
        return request_cancel(self.runtime, "op-1", **{"actor": "ann", "reason": "no longer needed", **more})

    def work(self) -> Errand | None:
        """One try, as the worker makes it; None: nothing is due."""
        store, runtime = self.runtime.store, self.runtime
        owner = runtime.token()
        delivery = store.take_delivery("op-1:cancel", owner=owner, lease=runtime.timing.delivery_lease)
        if delivery is None:
            return None
        outcome = cancel(runtime, delivery, self.op)
        match outcome:
            case Done():
                store.close_delivery(delivery, owner=owner)
            case Again(after=after, said=said):
                store.fail_delivery(delivery, owner=owner, error=said, again_in=after or 10 * S, question=None)
            case GiveUp(question=question, said=said):
                store.fail_delivery(delivery, owner=owner, error=said, again_in=None, question=question)
        return outcome

    def work_on(self) -> None:
        """Try whenever a try falls due, until none will any more. A worker that died keeps its lease for a while."""
        for _ in range(100):
            box = self.store.outbox.get("op-1:cancel")
            if box is None or box.due_at is None or box.delivered:
                return
            self.clock.advance_to(max(box.due_at, box.lease_until or box.due_at))
            self.work()
        raise AssertionError("it never comes to rest")

    def look(self) -> None:
        self.clock.advance(600)
        poll(self.runtime, ["op-1"])

    @property
    def op(self) -> Operation:
        return self.store.rows["op-1"]

    @property
    def sent(self) -> list[Request]:
        return self.provider.sent("POST", "/jobs/job-1/cancel")

    @property
    def events(self) -> list[str]:
        return [entry["event"] for entry in self.entries]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(entry.text) for entry in self.store.audit["op-1"]]

    def change(self, **changes: Any) -> None:
        self.store.rows["op-1"] = replace(self.op, **changes)

    def gate(self, **state: Any) -> None:
        assert self.store.move_gate("acme", "default", OPEN, GateState(**state))


@pytest.fixture
def world() -> World:
    return World()


# --- the wish ---------------------------------------------------------------------------------------


def test_a_wish_is_written_down_and_moves_nothing(world: World) -> None:
    before = world.op
    after = world.request()
    same = {"cancel_state": before.cancel_state, "audit_seq": before.audit_seq, "audit_head": before.audit_head}
    assert replace(after, **same) == before
    assert (after.cancel_state, world.sent, world.runtime.scheduler.woken) == ("requested", [], ["op-1:cancel"])
    entry = world.entries[-1]
    assert {name: entry[name] for name in ("event", "actor", "why", "effect", "before")} == {
        "event": "cancel_requested",
        "actor": "ann",
        "why": "no longer needed",
        "effect": ONCE.effect,
        "before": None,
    }
    assert delivery_of("op-1") == "op-1:cancel"


REFUSALS: list[tuple[dict[str, Any], CancelSpec | None, str]] = [
    ({}, None, "documents no cancellation"),
    ({"state": OperationState.SUCCEEDED, "wake_at": None}, ONCE, "has ended"),
    ({"state": OperationState.READY, "accepted_at": None, "job_id": ""}, ONCE, "Abandon"),
    ({"state": OperationState.SUBMITTING, "accepted_at": None, "job_id": ""}, ONCE, "not known"),
    ({"state": OperationState.UNCONFIRMED, "accepted_at": None, "job_id": ""}, ONCE, "not known"),
    ({"job_id": ""}, ONCE, "no job id"),
    ({"cancel_state": "requested"}, TWICE, "already"),
    ({"cancel_state": "accepted"}, TWICE, "has accepted"),
    ({"cancel_state": "unknown"}, ONCE, "may have been heard"),
]


@pytest.mark.parametrize(("changes", "spec", "said"), REFUSALS)
def test_what_cannot_be_cancelled_is_refused_in_a_sentence_and_leaves_no_trace(changes, spec, said) -> None:
    world = World(cancel=spec)
    world.change(**changes)
    with pytest.raises(UsageError, match=said):
        world.request()
    assert (world.events, world.store.outbox) == (["track"], {})


def test_no_table_and_no_operation_are_refused(world: World) -> None:
    world.runtime.tables.by_id = {}  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="no usable table"):
        world.request()
    with pytest.raises(OperationNotFound):
        request_cancel(world.runtime, "op-2", actor="", reason="")


def test_a_person_who_knows_of_the_doubt_may_ask_once_more(world: World) -> None:
    world.answers(LOST, ACCEPTED)
    world.request()
    assert isinstance(world.work(), GiveUp)
    world.request(again=True)
    assert (world.work(), world.op.cancel_state, len(world.sent)) == (Done(), "accepted", 2)


# --- what the provider says -------------------------------------------------------------------------


def test_an_accepted_cancellation_leaves_the_state_alone_and_brings_the_next_look_forward(world: World) -> None:
    """R-FACT-1: heard is not done. Only a status answer makes the operation cancelled."""
    world.answers(ACCEPTED)
    world.look()
    world.request()
    later = world.op.wake_at
    assert world.work() == Done()
    assert (world.op.state, world.op.cancel_state) == (OperationState.RUNNING, "accepted")
    assert later is not None
    assert world.op.wake_at is not None
    assert world.clock() <= world.op.wake_at < later
    assert world.runtime.scheduler.woken[-1] == "op-1"
    world.provider.script("job-1", answer(json={"status": "canceled"}))
    world.look()
    assert (world.op.state, world.op.cancel_state) == (OperationState.CANCELLED, "accepted")
    assert verify(world.store.export()).good


def test_the_look_never_comes_before_what_the_provider_asked_for(world: World) -> None:
    """INV-26."""
    world.answers(ACCEPTED)
    world.provider.script("job-1", answer(json={"status": "running"}, headers={"Retry-After": "300"}))
    world.look()
    asked_at = world.clock()
    world.request()
    world.work()
    assert world.op.wake_at is not None
    assert world.op.wake_at >= asked_at + 300 * S


def test_a_job_may_end_otherwise_although_its_cancellation_was_accepted(world: World) -> None:
    world.answers(ACCEPTED)
    world.request()
    world.work()
    world.provider.script("job-1", answer(json={"status": "done"}))
    world.look()
    assert world.op.state is OperationState.SUCCEEDED


def test_a_refused_cancellation_is_recorded_and_may_be_asked_for_again(world: World) -> None:
    world.answers(REFUSED, ACCEPTED)
    world.request()
    assert (world.work(), world.op.cancel_state, world.store.reasons("op-1")) == (Done(), "refused", [])
    assert (world.op.state, world.events) == (
        OperationState.RUNNING,
        ["track", "cancel_requested", "cancel_attempt", "cancel"],
    )
    world.request()
    assert (world.work(), world.op.cancel_state) == (Done(), "accepted")


@pytest.mark.parametrize("reply", [LOST, ODD, answer(404), answer(302)], ids=["no answer", "500", "404", "302"])
def test_an_unclear_answer_is_not_repeated_and_a_person_is_asked(world: World, reply: Reply) -> None:
    world.answers(reply)
    world.request()
    assert isinstance(world.work(), GiveUp)
    world.work_on()
    assert (len(world.sent), world.op.cancel_state, world.op.state) == (1, "unknown", OperationState.RUNNING)
    assert world.store.reasons("op-1") == [Reason.CANCEL_UNKNOWN]
    (asked,) = world.store.open_escalations("op-1")
    assert (asked.blocking, "Nobody knows whether" in asked.detail) == (False, True)


def test_what_does_no_harm_is_repeated_until_it_is_clear() -> None:
    world = World(cancel=TWICE)
    world.answers(LOST, ODD, ACCEPTED)
    world.request()
    world.work_on()
    assert (len(world.sent), world.op.cancel_state, world.store.reasons("op-1")) == (3, "accepted", [])


def test_it_is_not_repeated_for_ever_and_the_provider_s_wish_is_kept() -> None:
    world = World(cancel=TWICE)
    world.answers(answer(503, headers={"Retry-After": "120"}))
    world.request()
    world.work_on()
    times = [seen.at for seen in world.provider.log]
    assert len(world.sent) == world.runtime.timing.delivery_attempts
    assert all(later - earlier >= 120 * S for earlier, later in pairwise(times))
    assert world.store.reasons("op-1") == [Reason.CANCEL_UNKNOWN]


# --- what is proven unsent --------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["connect_refused", "dns", "credential"])
def test_what_was_not_sent_is_tried_again_in_its_limits(world: World, trouble: str) -> None:
    world.answers(no_answer(trouble, sent="never"), no_answer(trouble, sent="never"), ACCEPTED)
    world.request()
    assert isinstance(world.work(), Again)
    assert world.op.cancel_state == "requested"
    world.work_on()
    assert (len(world.sent), world.op.cancel_state, world.store.reasons("op-1")) == (3, "accepted", [])


def test_after_too_many_a_person_is_asked_and_it_may_be_asked_for_anew(world: World) -> None:
    world.answers(UNSENT)
    world.request()
    world.work_on()
    (asked,) = world.store.open_escalations("op-1")
    assert (asked.reason, "could not be sent" in asked.detail, world.op.cancel_state) == (
        Reason.CANCEL_UNKNOWN,
        True,
        "",
    )
    world.answers(ACCEPTED)
    world.request()
    world.work_on()
    assert world.op.cancel_state == "accepted"


def test_a_target_that_is_not_allowed_is_not_tried_again(world: World) -> None:
    world.answers(no_answer("target_denied", sent="never"))
    world.request()
    assert isinstance(world.work(), GiveUp)
    assert (world.op.cancel_state, world.store.reasons("op-1")) == ("", [Reason.CANCEL_UNKNOWN])


def test_an_unsent_repeat_does_not_settle_the_doubt_before_it() -> None:
    world = World(cancel=TWICE)
    world.answers(LOST, UNSENT)
    world.request()
    world.work_on()
    (asked,) = world.store.open_escalations("op-1")
    assert (world.op.cancel_state, "Nobody knows" in asked.detail) == ("unknown", True)


def test_the_account_s_gate_is_asked_first(world: World) -> None:
    """R-POLL-4: nothing is sent, nothing is spent, and no try is called unknown."""
    world.gate(reason=HoldReason.GUIDANCE, held_until=world.clock() + 90 * S)
    world.answers(ACCEPTED)
    world.request()
    held = world.work()
    assert isinstance(held, Again)
    assert (held.after, world.sent, world.op.cancel_state) == (90 * S, [], "requested")
    world.clock.advance(90)
    assert (world.work(), len(world.sent)) == (Done(), 1)


def test_guidance_of_the_answer_holds_the_account_back(world: World) -> None:
    world.answers(answer(429, headers={"Retry-After": "50"}))
    world.request()
    world.work()
    assert world.store.gates([("acme", "default")])["acme", "default"].reason is HoldReason.GUIDANCE


@pytest.mark.parametrize(
    ("deployed", "said"),
    [
        (None, "No worker has a usable table"),
        (replace(TABLE, revision=0), "No worker has a usable table"),
        (replace(TABLE, revision=2, cancel=None), "no longer documents"),
        (replace(TABLE, cancel=replace(ONCE, request=RequestSpec(method="POST", path="/{tenant}/cancel"))), "tenant"),
        (
            replace(TABLE, cancel=replace(ONCE, request=RequestSpec(method="DELETE")), hosts=("https://b.example",)),
            "address",
        ),
    ],
    ids=["none", "older", "no cancel", "a parameter it has not", "address no longer allowed"],
)
def test_a_table_that_cannot_cancel_any_more_sends_nothing(
    world: World, deployed: ProviderTable | None, said: str
) -> None:
    world.request()
    world.change(revision=1)
    world.runtime.tables.by_id = {"acme": deployed} if deployed else {}  # type: ignore[attr-defined]
    world.work_on()
    assert (world.sent, world.provider.log, world.op.cancel_state) == ([], [], "")
    (asked,) = world.store.open_escalations("op-1")
    assert (asked.reason, said in asked.detail) == (Reason.CANCEL_UNKNOWN, True)


def test_a_capability_url_and_a_handle_are_used_and_never_written_down(world: World) -> None:
    spec = replace(ONCE, request=RequestSpec(method="DELETE", headers=(("X-Handle", "{handle}"),)))
    world.runtime.tables.by_id = {"acme": replace(TABLE, cancel=spec)}  # type: ignore[attr-defined]
    url = "https://api.acme.example/jobs/job-1?sig=s3cret-sig"
    sealed = world.runtime.vault.seal("op-1", Sealed(status_url=url, handle="s3cret-handle"))
    world.change(sealed=sealed, status_url="", job_id="")
    world.provider.on("DELETE", "/jobs/job-1", ACCEPTED)
    world.request()
    assert world.work() == Done()
    (request,) = world.provider.sent("DELETE", "/jobs/job-1")
    assert (request.url, dict(request.headers)["X-Handle"]) == (url, "s3cret-handle")
    assert "s3cret" not in json.dumps(world.entries) + repr(world.op)


def test_a_seal_that_cannot_be_opened_sends_nothing(world: World) -> None:
    world.change(sealed="broken")
    with pytest.raises(VaultError):
        world.runtime.vault.open("op-1", "broken")
    world.request()
    world.work_on()
    assert (world.sent, world.op.cancel_state, world.store.reasons("op-1")) == ([], "", [Reason.CANCEL_UNKNOWN])


def test_a_job_that_has_ended_meanwhile_is_left_in_peace(world: World) -> None:
    world.request()
    world.provider.script("job-1", answer(json={"status": "done"}))
    world.look()
    assert (world.work(), world.sent, world.op.cancel_state) == (Done(), [], "")
    assert world.events[-1] == "cancel_needless"


# --- a worker that dies -----------------------------------------------------------------------------


class Died(BaseException):
    """The process ended here."""


class Dying:
    """A store or a transport after whose n-th call the process ends. Reading is counted too."""

    def __init__(self, inner: Any, deaths: Iterator[bool]) -> None:
        self._inner, self._deaths = inner, deaths

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            if name == "send":
                result = list(result)  # the request has gone out
            if next(self._deaths):
                raise Died
            return result

        return call


def dies_at(number: int) -> Iterator[bool]:
    while True:
        number -= 1
        yield number == 0


def run_with_a_death(spec: CancelSpec, replies: Sequence[Reply], number: int) -> tuple[World, bool]:
    """The whole story; the process ends after its ``number``-th call. Another worker goes on."""
    world = World(cancel=spec)
    world.answers(*replies)
    whole, deaths = world.runtime, dies_at(number)
    world.runtime = replace(whole, store=Dying(whole.store, deaths), transport=Dying(whole.transport, deaths))
    died = False
    try:
        world.request()
        world.work_on()
    except Died:
        died = True
    world.runtime = whole
    if not world.op.cancel_state and "cancel_requested" not in world.events:
        world.request()  # the caller's own transaction never came to its end: they ask again
    world.clock.advance(whole.timing.delivery_lease)
    world.work_on()
    return world, died


STORIES = [
    (ONCE, (ACCEPTED,), {"accepted", "unknown"}),
    (ONCE, (REFUSED,), {"refused", "unknown"}),
    (ONCE, (LOST,), {"unknown"}),
    (ONCE, (UNSENT, ACCEPTED), {"accepted", "unknown"}),
    (ONCE, (no_answer("target_denied", sent="never"),), {"", "unknown"}),
    (TWICE, (ACCEPTED,), {"accepted"}),
    (TWICE, (LOST, ODD, ACCEPTED), {"accepted"}),
]


@pytest.mark.parametrize(("spec", "replies", "ends"), STORIES)
def test_whenever_a_worker_dies_nothing_is_cancelled_twice_and_nothing_is_silent(spec, replies, ends) -> None:
    """INV-18 for cancelling: intent first. Every doubt is told to a person; a second request goes out only if harmless."""
    number = 0
    while True:
        number += 1
        world, died = run_with_a_death(spec, replies, number)
        said = zip((*replies, *[replies[-1]] * 9), world.sent, strict=False)
        heard = [reply for reply, _ in said if getattr(reply, "sent", Sent.MAYBE) is not Sent.NEVER]
        assert world.op.cancel_state in ends, number
        assert spec.repeatable or len(heard) <= 1, number
        assert world.op.cancel_state in ("accepted", "refused") or world.store.reasons("op-1") == [
            Reason.CANCEL_UNKNOWN
        ], number
        assert world.op.state is OperationState.RUNNING
        assert verify(world.store.export()).good
        if not died:
            break
    assert number > 8


def test_a_worker_that_stood_still_sends_nothing(world: World) -> None:
    """INV-14: its delivery may be another's by now."""
    world.answers(ACCEPTED)
    world.request()
    whole = world.runtime

    class Slow(Dying):
        def gates(self, accounts: Any) -> Any:
            world.clock.advance(whole.timing.delivery_lease)
            return whole.store.gates(accounts)

    world.runtime = replace(whole, store=Slow(whole.store, dies_at(0)))
    world.work()
    world.runtime = whole
    assert (world.sent, world.op.cancel_state) == ([], "unknown")
    world.work_on()
    assert (world.sent, world.store.reasons("op-1")) == ([], [Reason.CANCEL_UNKNOWN])


def test_a_second_worker_that_gets_the_same_errand_sends_nothing(world: World) -> None:
    """The first one hangs in its request until its delivery is another's."""
    inner: list[Errand | None] = []

    def slow(request: Request) -> Reply:
        world.clock.advance(world.runtime.timing.delivery_lease)
        inner.append(world.work())
        return ACCEPTED

    world.answers(slow)
    world.request()
    assert (world.work(), len(world.sent), world.op.cancel_state) == (Done(), 1, "accepted")
    assert isinstance(inner[0], GiveUp)
