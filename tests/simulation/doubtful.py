"""Typical mistakes with submissions, planted one at a time (INV-15, INV-17 to INV-20)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jobtrack.core import recover
from jobtrack.core.actions import SubmitMeaning
from jobtrack.core.operation import OperationState
from jobtrack.core.reply import Answered, NoAnswer, Sent
from jobtrack.core.submission import Handover, LookupKind
from jobtrack.flow import attempt, look_up, reconcile, submit
from jobtrack.stores.memory import MemoryStore


def _means(patch: pytest.MonkeyPatch, wrong: Any) -> None:
    """Let answers to submissions be read in another way: ``wrong(seen, reply)``."""
    right = attempt.observe_submission

    def observe(table: Any, reply: Any, **named: Any) -> Any:
        return wrong(right(table, reply, **named), reply)

    patch.setattr(attempt, "observe_submission", observe)


def retried_after_a_timeout(patch: pytest.MonkeyPatch) -> None:
    _means(patch, lambda seen, reply: replace(seen, meaning=None) if isinstance(reply, NoAnswer) else seen)


def sent_and_unsent_swapped(patch: pytest.MonkeyPatch) -> None:
    right = attempt.observe_submission

    def observe(table: Any, reply: Any, **named: Any) -> Any:
        if isinstance(reply, NoAnswer):
            reply = replace(reply, sent=Sent.MAYBE if reply.sent is Sent.NEVER else Sent.NEVER)
        return right(table, reply, **named)

    patch.setattr(attempt, "observe_submission", observe)


def server_error_taken_for_not_accepted(patch: pytest.MonkeyPatch) -> None:
    def wrong(seen: Any, reply: Any) -> Any:
        failed = isinstance(reply, Answered) and reply.status >= 500
        return replace(seen, meaning=SubmitMeaning.BUSY) if failed else seen

    _means(patch, wrong)


def server_error_taken_for_a_rejection(patch: pytest.MonkeyPatch) -> None:
    def wrong(seen: Any, reply: Any) -> Any:
        failed = isinstance(reply, Answered) and reply.status >= 500
        return replace(seen, meaning=SubmitMeaning.REJECTED) if failed else seen

    _means(patch, wrong)


def conflict_taken_for_a_rejection(patch: pytest.MonkeyPatch) -> None:
    def wrong(seen: Any, reply: Any) -> Any:
        return replace(seen, meaning=SubmitMeaning.REJECTED) if seen.meaning is SubmitMeaning.ALREADY else seen

    _means(patch, wrong)
    right = recover._rejected
    patch.setattr(recover, "_rejected", lambda operation, seen: right(replace(operation, doubt=""), seen))


def acceptance_that_cannot_be_read_taken_for_none(patch: pytest.MonkeyPatch) -> None:
    def wrong(seen: Any, reply: Any) -> Any:
        accepted = isinstance(reply, Answered) and reply.status == 202
        return replace(seen, meaning=SubmitMeaning.BUSY) if accepted and seen.handover is None else seen

    _means(patch, wrong)


def fresh_key_for_each_try(patch: pytest.MonkeyPatch) -> None:
    right = attempt.submit_request

    def request(*args: Any, **named: Any) -> Any:
        wanted = right(*args, **named)
        headers = tuple(
            (name, f"{value}-{wanted.fence}" if name == "Idempotency-Key" else value) for name, value in wanted.headers
        )
        return replace(wanted, headers=headers)

    patch.setattr(attempt, "submit_request", request)


def bytes_built_anew(patch: pytest.MonkeyPatch) -> None:
    right = attempt.submit_request

    def request(*args: Any, **named: Any) -> Any:
        wanted = right(*args, **named)
        return replace(wanted, body=wanted.body.replace(b"}", b', "try": %d}' % wanted.fence, 1))

    patch.setattr(attempt, "submit_request", request)


def key_used_past_its_lifetime(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recover, "_key_holds", lambda table, spec, operation, now: spec.idempotency is not None)


def settle_time_ignored(patch: pytest.MonkeyPatch) -> None:
    def settled(scene: Any) -> bool:
        return scene.spec.lookup is not None and scene.spec.lookup.absence_is_proof_after is not None

    patch.setattr(recover, "_settled", settled)


def absence_always_taken_for_proof(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recover, "_settled", lambda scene: True)


def _looks(patch: pytest.MonkeyPatch, wrong: Any) -> None:
    """Let look-ups be read in another way: ``wrong(seen)``."""
    right = look_up.read_lookup
    patch.setattr(look_up, "read_lookup", lambda *args, **named: wrong(right(*args, **named)))


def page_one_taken_for_all(patch: pytest.MonkeyPatch) -> None:
    _looks(patch, lambda seen: replace(seen, kind=LookupKind.ABSENT) if seen.kind is LookupKind.MORE else seen)


def unreadable_look_up_taken_for_absence(patch: pytest.MonkeyPatch) -> None:
    _looks(patch, lambda seen: replace(seen, kind=LookupKind.ABSENT) if seen.kind is LookupKind.UNREADABLE else seen)


def first_item_taken_for_ours(patch: pytest.MonkeyPatch) -> None:
    def wrong(seen: Any) -> Any:
        if seen.items and seen.kind is LookupKind.ABSENT:
            return replace(seen, kind=LookupKind.FOUND, found=(Handover(job_id="job-0"),))
        return seen

    _looks(patch, wrong)


def dead_sender_taken_for_unsent(patch: pytest.MonkeyPatch) -> None:
    right = reconcile.lapsed
    patch.setattr(reconcile, "lapsed", lambda *args, **named: replace(right(*args, **named), doubt=""))


def intent_not_written_before_sending(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempt, "_intend", lambda *args: True)
    patch.setattr(attempt, "_read_again", lambda runtime, intended: list(intended))


def look_ups_cost_nothing(patch: pytest.MonkeyPatch) -> None:
    right = look_up.write

    def write(runtime: Any, wanted: Any, **named: Any) -> Any:
        if named["event"] == "look_up":
            wanted = replace(wanted, spent=replace(wanted.spent, lookups=wanted.spent.lookups - 1))
        return right(runtime, wanted, **named)

    patch.setattr(look_up, "write", write)


def late_acceptance_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "_keep_late", lambda store, row, commit: None)


def late_acceptance_never_read(patch: pytest.MonkeyPatch) -> None:
    right = MemoryStore._keep_late
    patch.setattr(
        MemoryStore, "_keep_late", lambda store, row, commit: right(store, row, replace(commit, evidence=None))
    )


def other_content_under_the_same_id(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(submit, "_refuse_other_content", lambda wanted, found: None)


def unknown_closed_as_failed(patch: pytest.MonkeyPatch) -> None:
    right = attempt.after_submission

    def after(scene: Any, seen: Any) -> Any:
        if seen.meaning is SubmitMeaning.UNKNOWN:
            return recover.Conclude(state=OperationState.FAILED, cause="submission_rejected")
        return right(scene, seen)

    patch.setattr(attempt, "after_submission", after)


DOUBTFUL = {
    retried_after_a_timeout: ("INV-18",),
    sent_and_unsent_swapped: ("INV-18",),
    server_error_taken_for_not_accepted: ("INV-18",),
    server_error_taken_for_a_rejection: ("INV-19",),
    conflict_taken_for_a_rejection: ("INV-19",),
    acceptance_that_cannot_be_read_taken_for_none: ("INV-18",),
    fresh_key_for_each_try: ("INV-17",),
    bytes_built_anew: ("INV-17",),
    key_used_past_its_lifetime: ("INV-18",),
    settle_time_ignored: ("INV-18",),
    absence_always_taken_for_proof: ("INV-18",),
    page_one_taken_for_all: ("INV-18",),
    unreadable_look_up_taken_for_absence: ("INV-18",),
    first_item_taken_for_ours: ("INV-19",),
    dead_sender_taken_for_unsent: ("INV-18",),
    intent_not_written_before_sending: ("INV-17",),
    look_ups_cost_nothing: ("INV-01",),
    late_acceptance_dropped: ("INV-09", "INV-15"),
    late_acceptance_never_read: ("INV-15",),
    other_content_under_the_same_id: ("INV-20",),
    unknown_closed_as_failed: ("INV-19",),
}
"""Each mistake, and the invariants of which one must be seen to break."""
