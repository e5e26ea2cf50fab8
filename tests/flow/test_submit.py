"""Submissions, from the intent to the proof (R-SUB, R-ID, INV-15 to INV-19). What the provider made is the judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from jobtrack.core.actions import (
    AcceptedSpec,
    CancelSpec,
    Idempotency,
    IdPlace,
    LookupSpec,
    NextPage,
    Recovery,
    SubmitSpec,
    WebhookScheme,
    WebhookSpec,
)
from jobtrack.core.escalation import Option, Reason, Resolution
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.place import BodyKind, Header, RequestSpec
from jobtrack.core.reply import Request, Trouble
from jobtrack.core.table import ProviderTable
from jobtrack.errors import IdempotencyConflict, OptionNotAllowed, UsageError
from jobtrack.flow.advance import advance
from jobtrack.flow.resolve import resolve
from jobtrack.flow.submit import Submission, report_conflict, submit
from jobtrack.flow.track import Tracking, track
from jobtrack.ports import Runtime
from jobtrack.records import Receipt
from jobtrack.stores.memory import MemoryStore
from jobtrack.testing import FakeProvider, VirtualClock, answer, memory_runtime, no_answer, run_due
from jobtrack.testing.provider import Script, makes
from tests.flow.test_flows import DONE, RUNNING, TABLE, at, says

S = timedelta(seconds=1)
H = timedelta(hours=1)
POST = ("POST", "/jobs")

LOOKUP = LookupSpec(
    request=RequestSpec(path="/jobs", query=(("ref", "{operation_id}"),)),
    items=at("/jobs"),
    match=((at("/ref"), "{operation_id}"),),
    found=(IdPlace(parts=(at("/id"),)),),
    absence_is_proof_after=30 * S,
)
PROVEN = LOOKUP
UNPROVEN = replace(LOOKUP, absence_is_proof_after=None)
KEY = Idempotency(header="Idempotency-Key", lifetime=24 * H)
SUBMIT = SubmitSpec(
    request=RequestSpec(method="POST", path="/jobs", body_kind=BodyKind.JSON, body="{payload}"),
    accepted=AcceptedSpec(job_id=(IdPlace(parts=(at("/id"),)),)),
    accepted_http=frozenset({202}),
    rejected_http=frozenset({400, 422}),
    denied_http=frozenset({401}),
    busy_http=frozenset({429}),
    already_http=frozenset({409}),
    error=(at("/error"),),
)


def table(*, lookup: LookupSpec | None = None, key: Idempotency | None = None, **more: Any) -> ProviderTable:
    return replace(TABLE, submit=replace(SUBMIT, lookup=lookup, idempotency=key, **more))


ACCEPTED = answer(202, json={"id": "job-1"})
LOST = no_answer()
FOUND = answer(json={"jobs": [{"id": "job-1", "ref": "op-1"}]})
ABSENT = answer(json={"jobs": []})


@dataclass
class World:
    """One clock, one provider, one store, one operation."""

    table: ProviderTable
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.provider = FakeProvider(self.clock)
        self.provider.script("job-1", RUNNING, DONE)
        self.store = MemoryStore(self.clock)
        self.runtime: Runtime = memory_runtime(
            self.table, provider=self.provider, clock=self.clock, store=self.store, draw=lambda: 0.0
        )

    def submit(self, **more: Any) -> Operation:
        wanted = {"operation_id": "op-1", "provider": "acme", "payload": {"rows": 7}, **more}
        (operation,) = submit(self.runtime, [Submission(**wanted)])
        return operation

    def run(self, *, until: timedelta | None = None) -> Operation:
        run_due(self.runtime, self.clock, until=None if until is None else self.clock() + until)
        return self.op()

    def op(self) -> Operation:
        (operation,) = self.store.get(["op-1"])
        return operation

    @property
    def reasons(self) -> list[Reason]:
        return self.store.reasons("op-1")

    @property
    def posts(self) -> list[Request]:
        return self.provider.sent("POST", "/jobs")

    def decide(self, option: Option, **more: Any) -> Operation:
        (asked,) = self.store.open_escalations("op-1")
        wanted = Resolution(
            escalation_id=asked.id, option=option, actor="ada", reason="seen", version=asked.version, **more
        )
        resolve(self.runtime, wanted)
        return self.op()


def world(spec: ProviderTable, *answers: Script) -> World:
    made = World(spec)
    if answers:
        made.provider.on(*POST, *answers)
    return made


# --- the good way ---------------------------------------------------------------------------------


def test_a_submission_is_stored_sent_once_followed_and_ended() -> None:
    here = world(table(key=KEY), makes("job-1", ACCEPTED))
    stored = here.submit()
    assert (stored.state, stored.accepted_at, stored.job_id) == (OperationState.READY, None, "")
    assert here.provider.log == []
    ended = here.run()
    assert (ended.state, ended.job_id, ended.kept) == (OperationState.SUCCEEDED, "job-1", {"rows": 7})
    assert [request.body for request in here.posts] == [b'{"rows":7}']
    assert ("Idempotency-Key", ended.idempotency_key) in here.posts[0].headers
    assert here.provider.made_for("op-1") == ["job-1"]


def test_the_bytes_are_erased_once_the_acceptance_is_proven() -> None:
    here = world(table(), makes("job-1", ACCEPTED))
    assert here.submit().sealed
    here.run(until=1 * S)
    assert (here.op().state, here.op().sealed) == (OperationState.RUNNING, "")


def test_the_time_to_follow_a_job_counts_from_its_acceptance() -> None:
    here = world(table(), makes("job-1", ACCEPTED))
    here.provider.script("job-1", RUNNING)
    here.submit(deadline=600 * S)
    here.run(until=1 * S)
    assert here.op().accepted_at is not None
    assert here.op().budget.deadline == here.op().accepted_at + 600 * S


def test_an_answer_that_is_final_ends_the_operation_without_a_look() -> None:
    spec = table(final_http=frozenset({200}))
    here = world(spec, makes("job-1", answer(200, json={"id": "job-1", "status": "succeeded", "rows": 3})))
    here.submit(on_success="app.store")
    ended = here.run()
    assert (ended.state, ended.kept) == (OperationState.SUCCEEDED, {"rows": 3})
    assert len(here.provider.log) == 1
    assert list(here.store.outbox) == ["op-1:on_success"]


def test_an_answer_that_was_to_be_final_and_is_not_is_followed_by_its_job_id() -> None:
    """INV-15: the job id is there, whatever the code was to mean."""
    here = world(
        table(final_http=frozenset({200})), makes("job-1", answer(200, json={"id": "job-1", "status": "running"}))
    )
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id, len(here.posts)) == (OperationState.SUCCEEDED, "job-1", 1)


def test_a_status_url_with_a_query_is_sealed_and_used() -> None:
    accepted = AcceptedSpec(status_url=(Header("Location"),))
    spec = table(accepted=accepted)
    url = "https://api.acme.example/jobs/job-1?sig=canary"
    here = world(spec, makes("job-1", answer(202, headers={"Location": url})))
    here.provider.on("GET", "/jobs/job-1", answer(json={"id": "job-1", "status": "succeeded", "rows": 1}))
    here.submit()
    ended = here.run()
    assert ended.state is OperationState.SUCCEEDED
    assert here.provider.log[-1].request.url == url
    assert "canary" not in repr(here.store.rows) + repr(here.store.audit)


# --- not accepted, proven ---------------------------------------------------------------------------


def test_a_failure_before_sending_is_tried_again_within_limits() -> None:
    here = world(table(), no_answer(Trouble.CONNECT_REFUSED), no_answer(Trouble.DNS), makes("job-1", ACCEPTED))
    here.submit()
    ended = here.run()
    assert ended.state is OperationState.SUCCEEDED
    assert ended.spent.submissions == len(here.posts) == 3


def test_what_cannot_be_sent_within_its_attempts_asks_a_person_and_can_be_sent_safely() -> None:
    here = world(table(attempts=2), no_answer(Trouble.CONNECT_REFUSED))
    here.submit()
    here.run()
    assert (here.op().state, here.reasons) == (OperationState.ESCALATED, [Reason.SUBMISSION_UNSENT])
    assert len(here.posts) == 2
    here.provider.on(*POST, makes("job-1", ACCEPTED))
    here.decide(Option.RESUBMIT)
    assert here.run().state is OperationState.SUCCEEDED


def test_nothing_is_sent_for_the_first_time_after_its_hour() -> None:
    here = world(table(within=600 * S), makes("job-1", ACCEPTED))
    here.submit()
    here.clock.advance(601 * S)
    here.run()
    assert (here.reasons, here.posts) == ([Reason.SUBMISSION_UNSENT], [])


def test_a_listed_rejection_fails_the_operation_and_says_the_providers_words() -> None:
    here = world(table(), answer(422, json={"error": "rows must be positive"}))
    here.submit(on_failure="app.warn")
    ended = here.run()
    assert (ended.state, ended.cause, ended.error) == (
        OperationState.FAILED,
        "submission_rejected",
        "rows must be positive",
    )
    assert (here.reasons, ended.sealed) == ([Reason.SUBMISSION_REJECTED], "")
    assert list(here.store.outbox) == ["op-1:on_failure"]


def test_busy_with_guidance_waits_as_asked_and_holds_the_account() -> None:
    here = world(table(), answer(429, headers={"Retry-After": "120"}), makes("job-1", ACCEPTED))
    here.submit()
    here.run()
    first, second = (seen.at for seen in here.provider.log if seen.request.method == "POST")
    assert second - first >= 120 * S
    assert here.op().state is OperationState.SUCCEEDED


def test_a_denial_holds_the_account_and_repaired_access_sends_it() -> None:
    here = world(table(), answer(401), makes("job-1", ACCEPTED))
    here.submit()
    here.run()
    assert here.reasons == [Reason.AUTHORIZATION_DENIED]
    here.decide(Option.ACCESS_REPAIRED)
    assert here.run().state is OperationState.SUCCEEDED


# --- unknown ------------------------------------------------------------------------------------------

UNKNOWN = [
    no_answer(Trouble.READ_TIMEOUT),
    no_answer(Trouble.CONNECTION_LOST),
    no_answer(Trouble.WRITE),
    answer(500),
    answer(502, text="bad gateway"),
    answer(404),
    answer(403),
    answer(302, headers={"Location": "https://evil.example/"}),
    answer(202, text="<html>accepted</html>"),
    answer(202, body=b'{"id": "job-'),
    answer(202, json={"id": None}),
    answer(202, json={"id": True}),
    answer(202, json={"id": ""}),
    answer(202, json={"id": ".."}),
    answer(202, json={}),
    answer(409, json={"error": "exists"}),
]


@pytest.mark.parametrize("reply", UNKNOWN, ids=str)
def test_without_look_up_and_key_an_unknown_outcome_is_one_post_and_one_question(reply: Any) -> None:
    """INV-18, R-SUB-5, B051: nothing proves anything, so nothing is repeated."""
    here = world(table(), makes("job-1", reply))
    here.submit()
    ended = here.run()
    assert (ended.state, here.reasons) == (OperationState.ESCALATED, [Reason.SUBMISSION_UNKNOWN])
    assert len(here.posts) == 1
    (asked,) = here.store.open_escalations("op-1")
    assert "nothing can prove it" in asked.detail


@pytest.mark.parametrize("reply", UNKNOWN, ids=str)
@pytest.mark.parametrize("lookup", [PROVEN, UNPROVEN], ids=["proof", "no proof"])
def test_with_a_look_up_an_unknown_outcome_is_found_and_never_repeated(reply: Any, lookup: LookupSpec) -> None:
    here = world(table(lookup=lookup), makes("job-1", reply))
    here.provider.on("GET", "/jobs", FOUND)
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id, here.reasons) == (OperationState.SUCCEEDED, "job-1", [])
    assert len(here.posts) == 1


def test_the_same_client_error_before_acceptance_is_proven_absent_and_sent_again() -> None:
    """R-PROOF: refused before acceptance, with the same client error as an answer that was lost."""
    here = world(table(lookup=PROVEN), LOST, makes("job-1", ACCEPTED))
    here.provider.on("GET", "/jobs", ABSENT)
    here.submit()
    ended = here.run()
    assert (ended.state, here.provider.made_for("op-1")) == (OperationState.SUCCEEDED, ["job-1"])
    sent = [dict(request.headers) for request in here.posts]
    assert len({headers.pop("X-Request-Id") for headers in sent}) == len(here.posts) == 2
    assert sent[0] == sent[1]
    assert len({request.body for request in here.posts}) == 1


def test_absence_is_no_proof_before_the_settle_time() -> None:
    here = world(table(lookup=PROVEN), makes("job-1", LOST), makes("job-2", ACCEPTED))
    asked_at = []

    def settles(request: Request) -> Any:
        asked_at.append(here.clock())
        return FOUND if here.clock() >= asked_at[0] + 20 * S else ABSENT

    here.provider.on("GET", "/jobs", settles)
    here.submit()
    here.run()
    assert here.provider.made_for("op-1") == ["job-1"]


def test_absence_that_proves_nothing_ends_in_a_question_and_no_post() -> None:
    here = world(table(lookup=UNPROVEN), makes("job-1", LOST))
    here.provider.on("GET", "/jobs", ABSENT)
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)
    assert here.op().spent.lookups <= 10
    (asked,) = here.store.open_escalations("op-1")
    assert "is no proof at this provider" in asked.detail


def test_the_key_permits_a_repeat_with_the_same_bytes() -> None:
    here = world(table(key=KEY), makes("job-1", LOST), ACCEPTED)
    here.submit()
    ended = here.run()
    assert ended.state is OperationState.SUCCEEDED
    first, second = here.posts
    without_id = [
        [header for header in request.headers if header[0].lower() != "x-request-id"] for request in (first, second)
    ]
    assert (first.url, first.body, without_id[0]) == (second.url, second.body, without_id[1])
    assert first.headers != second.headers  # each request has an id of its own


def test_a_key_that_could_end_before_the_answer_permits_nothing() -> None:
    """B053: the answer could come after the key has ended."""
    short = replace(KEY, lifetime=25 * S)
    here = world(table(key=short), makes("job-1", LOST), makes("job-2", ACCEPTED))
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)


def test_a_key_that_replays_errors_does_not_help_after_one() -> None:
    replays = replace(KEY, replays_errors=True)
    here = world(table(key=replays), makes("job-1", answer(500)), makes("job-2", ACCEPTED))
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)
    here = world(table(key=replays), makes("job-1", LOST), ACCEPTED)
    here.submit()
    assert here.run().state is OperationState.SUCCEEDED


def test_a_refused_repeat_says_nothing_about_the_attempt_before() -> None:
    here = world(table(key=KEY), makes("job-1", LOST), answer(400))
    here.submit()
    here.run()
    assert (here.op().state, here.reasons) == (OperationState.ESCALATED, [Reason.SUBMISSION_UNKNOWN])


def test_after_proven_absence_a_refusal_is_a_refusal() -> None:
    here = world(table(lookup=PROVEN), LOST, answer(400))
    here.provider.on("GET", "/jobs", ABSENT)
    here.submit()
    ended = here.run()
    assert (ended.state, ended.cause) == (OperationState.FAILED, "submission_rejected")


def test_accepted_without_an_id_is_never_sent_again_even_with_a_key_and_a_proof() -> None:
    here = world(table(lookup=PROVEN, key=KEY), makes("job-1", answer(202, json={})))
    here.provider.on("GET", "/jobs", ABSENT)
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)
    with pytest.raises(OptionNotAllowed):
        here.decide(Option.RESUBMIT)


def test_several_jobs_of_one_operation_are_shown_and_none_is_chosen() -> None:
    here = world(table(lookup=PROVEN), makes("job-1", LOST))
    both = [{"id": "job-1", "ref": "op-1"}, {"id": "job-2", "ref": "op-1"}]
    here.provider.on("GET", "/jobs", answer(json={"jobs": both}))
    here.submit()
    here.run()
    (asked,) = here.store.open_escalations("op-1")
    assert asked.reason is Reason.SUBMISSION_UNKNOWN
    assert "job-1" in asked.detail
    assert "job-2" in asked.detail


PAGED = replace(PROVEN, next=NextPage(token=at("/next"), query="page"), pages=3)


def paged(*pages: dict[str, Any]) -> Callable[[Request], Any]:
    def reply(request: Request) -> Any:
        number = int(request.url.partition("page=")[2] or 0)
        return answer(json=pages[min(number, len(pages) - 1)])

    return reply


def test_every_page_is_read_before_absence_counts() -> None:
    """B049."""
    here = world(table(lookup=PAGED), makes("job-1", LOST), makes("job-2", ACCEPTED))
    others = [{"id": f"other-{number}", "ref": "op-9"} for number in range(100)]
    pages = paged({"jobs": others, "next": "1"}, {"jobs": [{"id": "job-1", "ref": "op-1"}]})
    here.provider.on("GET", "/jobs", pages)
    here.submit()
    ended = here.run()
    assert (ended.job_id, len(here.posts), ended.spent.lookups) == ("job-1", 1, 2)
    ids = [dict(request.headers)["X-Request-Id"] for request in here.provider.sent("GET", "/jobs")]
    assert len(set(ids)) == len(ids)


def test_a_list_that_never_ends_proves_nothing() -> None:
    here = world(table(lookup=PAGED), LOST)
    here.provider.on(
        "GET", "/jobs", paged({"jobs": [], "next": "1"}, {"jobs": [], "next": "2"}, {"jobs": [], "next": "3"})
    )
    here.submit()
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 1)


def test_a_job_that_was_found_counts_although_the_list_goes_on() -> None:
    here = world(table(lookup=PAGED), makes("job-1", LOST))
    mine = {"jobs": [{"id": "job-1", "ref": "op-1"}], "next": "1"}
    here.provider.on("GET", "/jobs", paged(mine, {"jobs": [], "next": "2"}, {"jobs": [], "next": "3"}))
    here.submit()
    assert here.run().state is OperationState.SUCCEEDED


def test_the_recovery_deadline_ends_the_search() -> None:
    recovery = Recovery(deadline=60 * S, requests=100, first=2 * S, base=20 * S, factor=1, cap=20 * S)
    here = world(table(lookup=UNPROVEN, recovery=recovery), makes("job-1", LOST))
    here.provider.on("GET", "/jobs", answer(503))
    here.submit()
    started = here.clock()
    here.run()
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]
    assert here.provider.log[-1].at <= started + 60 * S


# --- late answers, dead workers -----------------------------------------------------------------------


class Died(BaseException):
    """The worker's process ends here."""


def dies(request: Request) -> Any:
    raise Died


def test_a_worker_that_dies_with_the_request_out_leaves_a_doubt_that_is_looked_up() -> None:
    here = world(table(lookup=PROVEN), dies)
    here.provider.on("GET", "/jobs", FOUND)
    here.submit()
    with pytest.raises(Died):
        here.run()
    assert here.op().state is OperationState.SUBMITTING
    assert here.run().state is OperationState.SUCCEEDED
    assert len(here.posts) == 1


def late(here: World, reply: Any, meanwhile: Callable[[], object]) -> Callable[[Request], Any]:
    """The worker stands still after it has sent; when its answer comes, others have gone on."""

    def stands_still(request: Request) -> Any:
        here.provider.on(*POST, answer(500))
        here.clock.advance(600 * S)
        meanwhile()
        return reply

    return stands_still


def test_a_late_acceptance_is_evidence_and_ends_the_doubt() -> None:
    """INV-15: the only link to a running job is never dropped, also after a person was asked."""
    here = world(table())
    asked: list[Reason] = []

    def goes_on() -> None:
        run_due(here.runtime, here.clock)
        asked.extend(here.reasons)

    here.provider.on(*POST, late(here, ACCEPTED, goes_on))
    here.submit()
    ended = here.run()
    assert asked == [Reason.SUBMISSION_UNKNOWN]
    assert (ended.state, ended.job_id, here.reasons, len(here.posts)) == (OperationState.SUCCEEDED, "job-1", [], 1)


def test_a_late_acceptance_of_another_job_is_told_and_changes_nothing() -> None:
    here = world(table(lookup=PROVEN))
    here.provider.on("GET", "/jobs", FOUND)

    here.provider.on(*POST, late(here, answer(202, json={"id": "job-2"}), lambda: run_due(here.runtime, here.clock)))
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id) == (OperationState.SUCCEEDED, "job-1")
    assert here.reasons == [Reason.STATE_CONTRADICTION]


def test_late_evidence_overtakes_a_person_who_granted_one_more_submission() -> None:
    here = world(table())

    def person_resubmits() -> None:
        run_due(here.runtime, here.clock)
        here.decide(Option.RESUBMIT)

    here.provider.on(*POST, late(here, ACCEPTED, person_resubmits))
    here.submit()
    ended = here.run()
    assert (ended.state, ended.job_id, len(here.posts)) == (OperationState.SUCCEEDED, "job-1", 1)


# --- people ---------------------------------------------------------------------------------------------


def unknown(spec: ProviderTable, *answers: Script) -> World:
    here = world(spec, *(answers or (makes("job-1", LOST),)))
    here.provider.on("GET", "/jobs", ABSENT)
    here.submit()
    here.run()
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]
    return here


def test_a_person_names_the_job_and_it_is_followed() -> None:
    here = unknown(table())
    here.clock.advance(48 * H)
    assert here.decide(Option.ATTACH_JOB, job_id="job-1").state is OperationState.RUNNING
    ended = here.run()
    assert (ended.state, ended.job_id, len(here.posts), ended.sealed) == (OperationState.SUCCEEDED, "job-1", 1, "")


def test_a_job_that_another_operation_follows_is_refused() -> None:
    """R-ID-1: its result would be handed out twice."""
    here = unknown(table())
    track(here.runtime, [Tracking(operation_id="op-2", provider="acme", job_id="job-1")])
    with pytest.raises(OptionNotAllowed, match="op-2"):
        here.decide(Option.ATTACH_JOB, job_id="job-1")


@pytest.mark.parametrize("named", ["", "..", "a\nb"])
def test_a_job_that_cannot_be_one_is_refused_and_the_question_stays(named: str) -> None:
    here = unknown(table())
    with pytest.raises(OptionNotAllowed):
        here.decide(Option.ATTACH_JOB, job_id=named)
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]


def test_a_person_resubmits_once_with_the_same_key_and_bytes() -> None:
    short = replace(KEY, lifetime=25 * S)
    here = unknown(table(key=short), makes("job-0", LOST))
    here.provider.on(*POST, makes("job-1", ACCEPTED))
    here.decide(Option.RESUBMIT)
    ended = here.run()
    assert (ended.state, len(here.posts)) == (OperationState.SUCCEEDED, 2)
    assert len({dict(request.headers)["Idempotency-Key"] for request in here.posts}) == 1
    assert len({request.body for request in here.posts}) == 1


def test_a_resubmission_that_is_lost_again_asks_again() -> None:
    here = unknown(table())
    here.decide(Option.RESUBMIT)
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], 2)


def test_a_look_up_that_a_person_asks_for_sends_no_submission() -> None:
    here = unknown(table(lookup=UNPROVEN, key=replace(KEY, lifetime=25 * S)))
    posts = len(here.posts)
    here.decide(Option.LOOK_UP)
    here.run()
    assert (here.reasons, len(here.posts)) == ([Reason.SUBMISSION_UNKNOWN], posts)
    here.provider.on("GET", "/jobs", FOUND)
    here.decide(Option.LOOK_UP)
    assert here.run().state is OperationState.SUCCEEDED


def test_closing_an_unknown_submission_abandons_it_and_erases_what_it_kept() -> None:
    here = unknown(table())
    closed = here.decide(Option.CLOSE)
    assert (closed.state, closed.sealed) == (OperationState.ABANDONED, "")


# --- one operation, one submission ------------------------------------------------------------------


def test_the_same_content_is_the_same_operation_and_other_content_a_conflict() -> None:
    here = world(table(ignore=(at("/requested_at"),)), makes("job-1", ACCEPTED))
    here.submit(payload={"rows": 7, "requested_at": 1})
    here.submit(payload={"requested_at": 2, "rows": 7})
    with pytest.raises(IdempotencyConflict):
        here.submit(payload={"rows": 8})
    with pytest.raises(IdempotencyConflict):
        here.submit(account="other")
    here.run()
    assert [request.body for request in here.posts] == [b'{"rows":7,"requested_at":1}']


def test_a_conflict_is_asked_about_once() -> None:
    here = world(table(), makes("job-1", ACCEPTED))
    here.submit()
    assert [report_conflict(here.runtime, "op-1") for _ in range(3)] == [True, False, False]
    assert here.reasons == [Reason.IDEMPOTENCY_CONFLICT]
    assert not report_conflict(here.runtime, "op-2")
    assert here.run().state is OperationState.SUCCEEDED


def test_a_table_without_submit_submits_nothing() -> None:
    here = world(TABLE)
    with pytest.raises(UsageError):
        here.submit()
    assert here.store.rows == {}


def test_a_message_never_makes_a_poll_into_a_submission() -> None:
    """R-SUB-1, S10."""
    here = world(table(), makes("job-1", ACCEPTED))
    here.submit()
    here.run(until=1 * S)
    for _ in range(20):
        advance(here.runtime, ["op-1"])
    assert len(here.posts) == 1


# --- hints, cancellation --------------------------------------------------------------------------------


def test_a_notice_before_our_own_acceptance_is_stored_waits_for_it() -> None:
    webhook = WebhookSpec(scheme=WebhookScheme.STANDARD, job_id=at("/id"))
    here = world(replace(table(), webhook=webhook), makes("job-1", ACCEPTED))
    here.provider.script("job-1", DONE)
    here.store.receive([Receipt(provider="acme", account="default", notice_id="n-1", job_id="job-1")])
    here.submit()
    here.run()
    post, look = (seen.at for seen in here.provider.log)
    assert look - post < TABLE.polling.first
    assert here.op().delay_source == "webhook"


def test_a_notice_before_a_job_is_tracked_brings_its_first_look_forward() -> None:
    webhook = WebhookSpec(scheme=WebhookScheme.STANDARD, job_id=at("/id"))
    here = world(replace(table(), webhook=webhook))
    here.provider.script("job-1", DONE)
    here.store.receive([Receipt(provider="acme", account="default", notice_id="n-1", job_id="job-1")])
    started = here.clock()
    track(here.runtime, [Tracking(operation_id="op-1", provider="acme", job_id="job-1")])
    here.run()
    (look,) = (seen.at for seen in here.provider.log)
    assert look - started < TABLE.polling.first


def test_cancelling_is_asked_once_and_the_provider_has_the_last_word() -> None:
    cancel = CancelSpec(request=RequestSpec(method="POST", path="/jobs/{job_id}/cancel"), effect="Stops it.")
    here = world(replace(table(), cancel=cancel), makes("job-1", ACCEPTED))
    here.provider.script("job-1", RUNNING)
    here.submit(deadline=600 * S)
    here.run()
    assert here.reasons == [Reason.DEADLINE_EXCEEDED]
    here.provider.on("POST", "/jobs/job-1/cancel", answer(202))
    here.provider.script("job-1", says("canceled"))
    here.decide(Option.CANCEL)
    ended = here.run()
    assert (ended.state, ended.cancel_state) == (OperationState.CANCELLED, "accepted")
    assert len(here.provider.sent("POST", "/jobs/job-1/cancel")) == 1


def test_an_acceptance_that_says_when_to_ask_is_obeyed() -> None:
    """R-POLL-2: Retry-After on any status."""
    here = world(table(), makes("job-1", answer(202, json={"id": "job-1"}, headers={"Retry-After": "90"})))
    here.submit()
    here.run()
    post, look = (seen.at for seen in here.provider.log[:2])
    assert look - post >= 90 * S


def test_a_wish_of_the_provider_outlives_the_recovery_deadline_and_a_persons_impatience() -> None:
    """INV-04."""
    recovery = Recovery(deadline=10 * S, first=2 * S, base=2 * S)
    here = world(table(lookup=UNPROVEN, recovery=recovery), makes("job-1", answer(503, headers={"Retry-After": "60"})))
    here.provider.on("GET", "/jobs", FOUND)
    here.submit()
    here.run()
    assert here.reasons == [Reason.SUBMISSION_UNKNOWN]
    here.decide(Option.LOOK_UP)
    here.run()
    post, look = (seen.at for seen in here.provider.log[:2])
    assert look - post >= 60 * S
    assert here.op().state is OperationState.SUCCEEDED
