"""Fetching results on a virtual clock: one sentence per test (R-END-2, R-END-4, R-SEC-1, R-READ-6, B039, B063)."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from typing import Any

import pytest

from jobtrack.core.actions import FetchSpec, Hop, NextPage
from jobtrack.core.escalation import Reason
from jobtrack.core.gate import GateState, HoldReason
from jobtrack.core.operation import OperationState
from jobtrack.core.place import Header, RequestSpec
from jobtrack.core.reply import Request
from jobtrack.core.sealed import Sealed
from jobtrack.core.table import ProviderTable, RequestLimits, ResultSpec, Retention
from jobtrack.flow.deliver import deliver, finish_errand
from jobtrack.flow.errand import Again, Done, Errand, GiveUp
from jobtrack.flow.fetch import fetch, lease_of
from jobtrack.ports import Runtime
from jobtrack.records import RESULT, Delivery, Followup, JobResult, ResultState
from jobtrack.stores.vault import FernetVault
from jobtrack.testing import FakeProvider, VirtualClock, answer, memory_runtime, no_answer, run_due
from jobtrack.testing.provider import Script, cut
from tests.core.builders import OPERATION, T0, S, body, table

API = "https://api.provider.example"
FILES = "https://files.provider.example"
STATUS = "/v1/jobs/job-1"
LINKED = FetchSpec(url=(body("/result/url"),))


def succeeded(url: str = f"{FILES}/r/1?sig=SIGSECRET", **more: object) -> Any:
    return answer(json={"id": "job-1", "status": "succeeded", "result": {"url": url}, **more})


def with_result(spec: FetchSpec, **changes: object) -> ProviderTable:
    return table(result=spec, **changes)


@dataclass
class Site:
    """One operation that has succeeded, and the errand to fetch its result."""

    spec: FetchSpec
    table: ProviderTable | None = None
    sealed: Sealed = field(default_factory=Sealed)
    id: str = "op-1"
    clock: VirtualClock = field(default_factory=lambda: VirtualClock(T0))
    kept_in: Any = None  # a store; None: in memory
    files: Any = None  # where results go; None: in memory

    def __post_init__(self) -> None:
        self.provider = FakeProvider(self.clock)
        self.runtime: Runtime = memory_runtime(
            self.table or with_result(self.spec), provider=self.provider, clock=self.clock, store=self.kept_in
        )
        if self.files is not None:
            self.runtime = replace(self.runtime, files=self.files)
        row = replace(
            OPERATION,
            id=self.id,
            state=OperationState.SUCCEEDED,
            observed_at=T0,
            sealed=self.runtime.vault.seal(self.id, self.sealed) if self.sealed else "",
        )
        self.store.add([row], {"event": "test"}, with_result(self.spec))
        self.want()

    @property
    def delivery_id(self) -> str:
        return f"{self.id}:{RESULT}"

    @property
    def store(self) -> Any:
        return self.runtime.store

    def want(self) -> None:
        self.store.note(self.id, {"event": "wanted"}, errand=Followup(event=RESULT))

    def script(self, path: str, *replies: Script, method: str = "GET") -> None:
        self.provider.on(method, path, *replies)

    def take(self) -> Delivery:
        taken = self.store.take_delivery(self.delivery_id, owner="me", lease=300 * S)
        assert taken is not None
        return taken

    def once(self) -> Errand:
        """One try, concluded as a delivery would."""
        (row,) = self.store.get([self.id])
        delivery = self.take()
        outcome = fetch(self.runtime, delivery, row)
        finish_errand(self.runtime, delivery, row, "me", outcome)
        return outcome

    def until_rest(self) -> list[Errand]:
        """Tries, each when it is due, until the errand is done or a person is asked."""
        outcomes = []
        for _ in range(50):
            outcomes.append(self.once())
            if not isinstance(outcomes[-1], Again):
                return outcomes
            due = self.store.next_due_at()
            self.clock.advance_to(due)
        raise AssertionError("it never ends")

    @property
    def result(self) -> JobResult:
        kept = self.store.result(self.id)
        assert kept is not None
        return kept

    def content(self) -> dict[str, bytes]:
        return {file.name: self.runtime.files.stored[file.path] for file in self.result.files}

    def asked(self, path: str) -> list[Request]:
        return [seen.request for seen in self.provider.log if path in seen.request.url]

    def entries(self) -> list[dict[str, Any]]:
        found = (json.loads(entry.text) for entry in self.store.audit[self.id])
        return [entry for entry in found if entry["event"] == "fetch"]

    def written(self) -> str:
        """Everything at rest, as text."""
        kept = [repr(self.store.result(self.id)), repr(self.store.escalations), repr(self.store.rows)]
        kept += [entry.text for entry in self.store.audit[self.id]]
        return "\n".join([*kept, repr(self.store.outbox)])


def linked(**changes: object) -> Site:
    site = Site(replace(LINKED, **changes))  # type: ignore[arg-type]
    site.script(STATUS, succeeded())
    return site


# --- one file -------------------------------------------------------------------------------------------


def test_a_linked_file_is_stored_with_size_type_and_checksum() -> None:
    site = linked()
    site.script("/r/1", answer(body=b"a,b\n", headers={"Content-Type": "text/csv; charset=utf-8"}))
    assert site.once() == Done()
    (file,) = site.result.files
    assert site.result.state is ResultState.COMPLETE
    assert (file.name, file.size, file.content_type, file.complete) == ("result", 4, "text/csv", True)
    assert file.sha256 == sha256(b"a,b\n").hexdigest()
    assert site.content() == {"result": b"a,b\n"}
    assert site.result.fetched_at == T0


def test_fetching_moves_neither_the_state_nor_the_budgets_of_the_operation() -> None:
    """R-END-2: a result is a record of its own."""
    site = linked()
    (before,) = site.store.get(["op-1"])
    site.script("/r/1", answer(body=b"x"))
    site.once()
    (after,) = site.store.get(["op-1"])
    assert replace(after, audit_seq=0, audit_head="") == replace(before, audit_seq=0, audit_head="")


def test_a_storage_host_gets_no_credential_and_the_own_host_does() -> None:
    """INV-32."""
    site = linked()
    site.script("/r/1", answer(body=b"x"))
    site.once()
    assert [seen.request.credentials for seen in site.provider.log] == [True, False]


def test_a_declared_result_host_gets_the_credential() -> None:
    site = linked(credential_hosts=(FILES,))
    site.script("/r/1", answer(body=b"x"))
    site.once()
    assert [seen.request.credentials for seen in site.provider.log] == [True, True]


def test_a_complete_result_is_not_fetched_again() -> None:
    """A process that ended before it closed the errand."""
    site = linked()
    site.script("/r/1", answer(body=b"x"))
    delivery, (row,) = site.take(), site.store.get(["op-1"])
    assert fetch(site.runtime, delivery, row) == Done()
    asked = len(site.provider.log)
    site.clock.advance(301 * S)
    assert site.once() == Done()
    assert len(site.provider.log) == asked
    assert [entry["outcome"] for entry in site.entries()] == ["complete", "complete"]


# --- B039 ---------------------------------------------------------------------------------------------


def test_a_plain_link_that_is_not_there_yet_costs_one_status_read() -> None:
    """B039: 404, 404, 200; the operation stays succeeded and no status is asked in between."""
    site = Site(LINKED)
    site.script(STATUS, succeeded(f"{API}/api/jobs/job-1/result"))
    site.script("/api/jobs/job-1/result", answer(404, json={}), answer(404, json={}), answer(body=b"# text"))
    outcomes = site.until_rest()
    assert [type(outcome) for outcome in outcomes] == [Again, Again, Done]
    times = [seen.at for seen in site.provider.log if "/result" in seen.request.url]
    assert len(times) == 3
    assert all(later - earlier >= S for earlier, later in pairwise(times))
    assert len(site.asked(STATUS)) == 1
    assert site.content() == {"result": b"# text"}
    assert {seen.request.method for seen in site.provider.log} == {"GET"}  # nothing is ever submitted


def test_a_link_that_never_comes_alive_ends_with_a_question_and_the_job_stays_succeeded() -> None:
    """B039, first variant."""
    site = Site(replace(LINKED, attempts=2))
    site.script(STATUS, succeeded(f"{API}/api/jobs/job-1/result"))
    site.script("/api/jobs/job-1/result", answer(404, json={}))
    *_, last = site.until_rest()
    assert isinstance(last, GiveUp)
    assert len(site.asked("/v1/jobs/")) == 2
    assert len(site.asked("/api/jobs/")) == 6
    assert site.store.reasons("op-1") == [Reason.RESULT_UNAVAILABLE]
    assert site.store.get(["op-1"])[0].state is OperationState.SUCCEEDED
    assert site.result.state is ResultState.UNAVAILABLE
    assert "HTTP 404" in site.result.detail


@pytest.mark.parametrize("empty_ok", [False, True])
def test_a_file_of_no_bytes_is_a_result_only_if_the_table_says_so(empty_ok: bool) -> None:
    """B039, second variant."""
    site = linked(empty_ok=empty_ok, attempts=2)
    site.script("/r/1", answer(body=b""))
    *_, last = site.until_rest()
    assert isinstance(last, Done if empty_ok else GiveUp)
    assert (site.runtime.files.stored == {}) is not empty_ok


def test_a_short_body_is_retried_and_never_complete() -> None:
    """B039, third variant; R-READ-6."""
    site = linked()
    site.script("/r/1", cut(answer(body=b"whole file"), after=5), answer(body=b"whole file"))
    first = site.once()
    assert isinstance(first, Again)
    assert (site.result.state, site.runtime.files.stored) == (ResultState.WANTED, {})
    site.clock.advance_to(site.store.next_due_at())
    assert site.once() == Done()
    assert site.content() == {"result": b"whole file"}


# --- dead links and doubtful answers ------------------------------------------------------------------


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_dead_link_asks_the_same_job_again(code: int) -> None:
    """R-END-4: a fresh link comes from a fresh status answer, never from a submission."""
    site = Site(LINKED)
    site.script(STATUS, succeeded(f"{FILES}/r/old?sig=1"), succeeded(f"{FILES}/r/new?sig=2"))
    site.script("/r/old", answer(code))
    site.script("/r/new", answer(body=b"x"))
    assert [type(outcome) for outcome in site.until_rest()] == [Again, Done]
    assert site.result.reads == 2


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (answer(json={"id": "job-1", "status": "running"}), "pending"),
        (answer(json={"id": "job-1", "status": "failed"}), "failure"),
        (answer(json={"id": "other", "status": "succeeded"}), "job_id_mismatch"),
        (answer(404, json={}), "not_found"),
        (answer(500), "transport_failure"),
        (no_answer(), "no answer"),
    ],
)
def test_a_status_that_no_longer_says_success_is_told_and_changes_nothing(reply: Script, word: str) -> None:
    site = Site(replace(LINKED, attempts=1))
    site.script(STATUS, reply)
    outcome = site.once()
    assert isinstance(outcome, GiveUp)
    assert word in outcome.question.detail
    assert site.store.get(["op-1"])[0].state is OperationState.SUCCEEDED


def test_reads_are_debited_before_they_are_sent() -> None:
    """A process that ends while it asks has used the read."""
    seen: list[int] = []
    site = Site(LINKED)
    site.script(STATUS, lambda _: seen.append(site.result.reads) or succeeded())  # type: ignore[func-returns-value]
    site.script("/r/1", answer(body=b"x"))
    site.once()
    assert seen == [1]


def test_a_wait_of_the_storage_host_is_kept_and_holds_nobody_else() -> None:
    site = linked()
    site.script("/r/1", answer(503, headers={"Retry-After": "90"}))
    assert site.once() == Again(after=90 * S, said="The answer was HTTP 503.")
    assert site.store.gates([("acme", "default")])["acme", "default"].reason is HoldReason.NONE


def test_a_wait_of_the_own_host_holds_the_account() -> None:
    """R-POLL-4."""
    site = Site(LINKED)
    site.script(STATUS, succeeded(f"{API}/files/1"))
    site.script("/files/1", answer(429, headers={"Retry-After": "90"}))
    assert isinstance(site.once(), Again)
    assert site.store.gates([("acme", "default")])["acme", "default"].reason is HoldReason.GUIDANCE


def test_a_held_account_costs_nothing() -> None:
    site = linked()
    held = GateState(reason=HoldReason.GUIDANCE, held_until=T0 + 60 * S)
    site.store.move_gate("acme", "default", GateState(), held)
    assert site.once() == Again(after=60 * S, said="The account is held back.")
    assert site.provider.log == []
    assert site.store.result("op-1") is None


def test_after_the_retention_a_dead_link_is_final_and_the_question_says_so() -> None:
    """R-TABLE-5."""
    site = Site(LINKED, table=with_result(LINKED, retention=Retention(result=timedelta(hours=1))))
    site.script(STATUS, succeeded())
    site.script("/r/1", answer(410))
    site.clock.advance(timedelta(hours=2))
    outcome = site.once()
    assert isinstance(outcome, GiveUp)
    assert "kept results until 2030-01-07 13:00" in outcome.question.detail


def test_a_person_who_asks_again_gets_fresh_tries() -> None:
    site = linked(attempts=1)
    site.script("/r/1", answer(404), answer(body=b"x"))
    assert isinstance(site.once(), GiveUp)
    site.want()
    assert site.once() == Done()
    assert site.result.reads == 1


def test_a_process_that_ended_after_giving_up_only_asks_again() -> None:
    site = linked(attempts=1)
    site.script("/r/1", answer(404))
    (row,) = site.store.get(["op-1"])
    first = fetch(site.runtime, site.take(), row)
    asked = len(site.provider.log)
    site.clock.advance(301 * S)
    second = site.once()
    assert isinstance(first, GiveUp)
    assert isinstance(second, GiveUp)
    assert len(site.provider.log) == asked


# --- what is no result -------------------------------------------------------------------------------


def test_html_is_no_result_unless_it_is_listed() -> None:
    page = answer(body=b"<html>", headers={"Content-Type": "text/html"})
    plain, listed = linked(attempts=1), linked(types=("text/html",))
    for site in (plain, listed):
        site.script("/r/1", page)
    assert isinstance(plain.once(), GiveUp)
    assert listed.once() == Done()


def test_another_type_than_those_listed_is_refused_before_its_first_byte() -> None:
    site = linked(types=("text/csv",), attempts=1)
    site.script("/r/1", answer(json={"error": "gone"}))
    outcome = site.once()
    assert isinstance(outcome, GiveUp)
    assert "application/json" in outcome.said
    assert site.runtime.files.stored == {}


@pytest.mark.parametrize("declared", [True, False])
def test_a_file_over_the_cap_is_given_up_at_once(declared: bool) -> None:
    """R-END-4: declared or not, no more than the cap is stored, and no second try is made."""
    site = linked(max_bytes=10)
    headers = {"Content-Length": "11"} if declared else {}
    site.script("/r/1", answer(body=b"x" * 11, headers=headers))
    assert isinstance(site.once(), GiveUp)
    assert site.runtime.files.stored == {}
    assert len(site.asked("/r/1")) == 1


@pytest.mark.parametrize(
    "url", ["https://evil.example/r", "http://files.provider.example/r", f"{FILES}.evil.example/r", "//evil.example/r"]
)
def test_a_link_elsewhere_is_never_asked(url: str) -> None:
    """R-SEC-1, INV-30. The status answer itself is refused where the table requires its link."""
    spec = FetchSpec(url=(body("/other"),))
    site = Site(spec)
    site.script(STATUS, succeeded(other=url))
    assert isinstance(site.once(), GiveUp)
    assert [seen.request.url for seen in site.provider.log] == [API + STATUS]


# --- redirects ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_declared_redirect_is_followed_without_the_credential(code: int) -> None:
    site = Site(replace(LINKED, redirects=("https://storage.example",)))
    site.script(STATUS, succeeded(f"{API}/files/1"))
    site.script("/files/1", answer(code, headers={"Location": "https://storage.example/o/1?sig=X"}))
    site.script("/o/1", answer(body=b"x"))
    assert site.once() == Done()
    assert [seen.request.credentials for seen in site.provider.log] == [True, True, False]


def test_a_relative_redirect_to_the_own_host_goes_without_the_credential_too() -> None:
    site = Site(LINKED)
    site.script(STATUS, succeeded(f"{API}/files/1"))
    site.script("/files/1", answer(302, headers={"Location": "../raw/1"}))
    site.script("/raw/1", answer(body=b"x"))
    assert site.once() == Done()
    assert site.provider.log[-1].request.url == f"{API}/raw/1"
    assert site.provider.log[-1].request.credentials is False


@pytest.mark.parametrize(
    "location",
    ["https://evil.example/x", "http://storage.example/x", "//evil.example/x", "https://storage.example:444/x", ""],
)
def test_any_other_redirect_is_refused(location: str) -> None:
    """A Location is data, not permission (R-SEC-1)."""
    site = Site(replace(LINKED, redirects=("https://storage.example",)))
    site.script(STATUS, succeeded(f"{API}/files/1"))
    site.script("/files/1", answer(302, headers={"Location": location} if location else {}))
    assert isinstance(site.once(), GiveUp)
    assert len(site.provider.log) == 2


def test_redirects_in_a_circle_end() -> None:
    site = Site(LINKED)
    site.script(STATUS, succeeded(f"{API}/files/1"))
    site.script("/files/1", answer(302, headers={"Location": "/files/1"}))
    assert isinstance(site.once(), GiveUp)
    assert len(site.asked("/files/1")) == 3  # two redirects are followed, the third is not


def test_two_redirects_lead_to_the_file() -> None:
    site = Site(LINKED)
    site.script(STATUS, succeeded(f"{API}/files/1"))
    site.script("/files/1", answer(302, headers={"Location": "/files/2"}))
    site.script("/files/2", answer(302, headers={"Location": "/files/3"}))
    site.script("/files/3", answer(body=b"x"))
    assert site.once() == Done()
    assert [seen.request.credentials for seen in site.provider.log] == [True, True, False, False]


# --- resume ------------------------------------------------------------------------------------------

TAGGED = {"ETag": '"v1"'}


def resumed(*replies: Script, **changes: object) -> Site:
    site = linked(ranges=True, **changes)
    site.script("/r/1", cut(answer(body=b"0123456789", headers=TAGGED), after=4), *replies)
    assert isinstance(site.once(), Again)
    site.clock.advance_to(site.store.next_due_at())
    return site


def part(start: int, end: int, whole: str = "10", **headers: str) -> Any:
    named = {"Content-Range": f"bytes {start}-{end}/{whole}", **TAGGED, **headers}
    return answer(206, body=b"0123456789"[start : end + 1], headers=named)


def test_a_cut_body_is_resumed_by_range_and_validator() -> None:
    site = resumed(part(4, 9))
    assert site.once() == Done()
    headers = dict(site.asked("/r/1")[1].headers)
    assert (headers["Range"], headers["If-Range"]) == ("bytes=4-", '"v1"')
    assert site.content() == {"result": b"0123456789"}
    assert site.result.files[0].sha256 == sha256(b"0123456789").hexdigest()


def test_a_changed_file_begins_anew() -> None:
    site = resumed(answer(body=b"other", headers={"ETag": '"v2"'}))
    assert site.once() == Done()
    assert site.content() == {"result": b"other"}


def test_a_range_that_cannot_be_given_begins_anew_at_once() -> None:
    site = resumed(answer(416), answer(body=b"0123456789"))
    assert site.once() == Done()
    assert "Range" not in dict(site.asked("/r/1")[2].headers)
    assert site.content() == {"result": b"0123456789"}


@pytest.mark.parametrize(
    "reply",
    [
        part(3, 9),
        part(5, 9),
        part(4, 8),
        answer(206, body=b"456789"),
        part(4, 9, ETag='"v2"'),
        answer(206, body=b"456789", headers={"Content-Type": "multipart/byteranges; boundary=x"}),
    ],
    ids=["earlier", "later", "short", "no range", "another validator", "several"],
)
def test_a_wrong_part_never_makes_a_file(reply: Any) -> None:
    site = resumed(reply, answer(body=b"0123456789"))
    assert isinstance(site.once(), Again)
    assert site.runtime.files.stored == {}


def test_an_error_page_in_between_does_not_change_what_is_resumed() -> None:
    """The validator belongs to the bytes that are stored, not to the last answer."""
    page = answer(body=b"<html>", headers={"Content-Type": "text/html", "ETag": '"page"'})
    site = resumed(page, part(4, 9))
    assert isinstance(site.once(), Again)
    site.clock.advance_to(site.store.next_due_at())
    assert site.once() == Done()
    assert dict(site.asked("/r/1")[2].headers)["If-Range"] == '"v1"'
    assert site.content() == {"result": b"0123456789"}


@pytest.mark.parametrize(("ranges", "etag"), [(False, '"v1"'), (True, 'W/"v1"'), (True, "")])
def test_without_ranges_or_a_strong_validator_a_file_begins_anew(ranges: bool, etag: str) -> None:
    site = linked(ranges=ranges)
    headers = {"ETag": etag} if etag else {}
    site.script("/r/1", cut(answer(body=b"0123456789", headers=headers), after=4), answer(body=b"0123456789"))
    assert [type(outcome) for outcome in site.until_rest()] == [Again, Done]
    assert "Range" not in dict(site.asked("/r/1")[1].headers)
    assert site.content() == {"result": b"0123456789"}


# --- other ways to a result ----------------------------------------------------------------------------


def test_an_inline_value_is_stored_as_one_json_file() -> None:
    site = Site(FetchSpec(value=body("/output")))
    site.script(STATUS, succeeded(output={"text": "häß", "n": [1, 2.5, None]}))
    assert site.once() == Done()
    assert json.loads(site.content()["result.json"]) == {"text": "häß", "n": [1, 2.5, None]}
    assert site.result.files[0].content_type == "application/json"


def test_a_second_request_brings_the_content() -> None:
    """Two hops, as with a file id."""
    hop = Hop(request=RequestSpec(path="/v1/files/{file_id}/content"), values=(("file_id", body("/output_file_id")),))
    site = Site(FetchSpec(hop=hop))
    site.script(STATUS, succeeded(output_file_id="file/7"))
    site.script("/v1/files/file%2F7/content", answer(body=b"{}\n"))
    assert site.once() == Done()
    assert site.content() == {"result": b"{}\n"}
    assert site.provider.log[-1].request.credentials is True


def test_a_second_document_holds_the_link() -> None:
    site = Site(FetchSpec(hop=Hop(request=RequestSpec(path="/v1/jobs/{job_id}/link")), url=(body("/href"),)))
    site.script(STATUS, succeeded())
    site.script("/v1/jobs/job-1/link", answer(json={"href": f"{FILES}/r/9?sig=1"}))
    site.script("/r/9", answer(body=b"x"))
    assert site.once() == Done()
    assert site.content() == {"result": b"x"}


def test_a_secret_handle_fills_the_second_request() -> None:
    hop = Hop(request=RequestSpec(path="/v1/out/{handle}"))
    site = Site(FetchSpec(hop=hop), sealed=Sealed(handle="HANDLESECRET"))
    site.script(STATUS, succeeded())
    site.script("/v1/out/HANDLESECRET", answer(body=b"x"))
    assert site.once() == Done()
    assert "HANDLESECRET" not in site.written()


def test_each_item_of_a_list_is_a_file_of_its_own_name() -> None:
    site = Site(FetchSpec(each=body("/files"), url=(body("/url"),), name=body("/name")))
    files = [
        {"url": f"{FILES}/a", "name": "a.csv"},
        {"url": f"{FILES}/b", "name": "../../A.CSV"},
        {"url": f"{FILES}/c", "name": None},
    ]
    site.script(STATUS, succeeded(files=files))
    for name in "abc":
        site.script(f"/{name}", answer(body=name.encode()))
    assert site.once() == Done()
    assert site.content() == {"a.csv": b"a", "A-2.CSV": b"b", "result-3": b"c"}


def test_items_that_are_ids_are_asked_one_by_one() -> None:
    per_item = Hop(request=RequestSpec(path="/v1/files/{item}"))
    site = Site(FetchSpec(each=body("/files"), per_item=per_item))
    site.script(STATUS, succeeded(files=["f1", "f2"]))
    site.script("/v1/files/f1", answer(body=b"1"))
    site.script("/v1/files/f2", answer(body=b"2"))
    assert site.once() == Done()
    assert site.content() == {"result-1": b"1", "result-2": b"2"}


TWO = FetchSpec(each=(body("/out"), body("/err")), per_item=Hop(request=RequestSpec(path="/v1/files/{item}")))


@pytest.mark.parametrize(
    ("document", "content"),
    [
        ({"out": "f1", "err": "f2"}, {"out": b"1", "err": b"2"}),
        ({"out": "f1", "err": None}, {"out": b"1"}),
        ({"err": "f2"}, {"err": b"2"}),
    ],
)
def test_each_place_that_is_there_is_a_file_called_after_it(
    document: dict[str, Any], content: dict[str, bytes]
) -> None:
    site = Site(TWO)
    site.script(STATUS, succeeded(**document))
    site.script("/v1/files/f1", answer(body=b"1"))
    site.script("/v1/files/f2", answer(body=b"2"))
    assert site.once() == Done()
    assert site.content() == content


@pytest.mark.parametrize("empty_ok", [False, True])
def test_places_without_a_value_are_a_result_only_if_the_table_says_so(empty_ok: bool) -> None:
    site = Site(replace(TWO, empty_ok=empty_ok))
    site.script(STATUS, succeeded(out=None))
    assert isinstance(site.once(), Done if empty_ok else Again)


def test_a_file_of_a_place_may_have_the_providers_name_and_its_item_may_be_the_link() -> None:
    site = Site(FetchSpec(each=(body("/a"), body("/b")), url=(body("/url"),), name=body("/name")))
    site.script(STATUS, succeeded(a={"url": f"{FILES}/a", "name": "x.csv"}, b={"url": f"{FILES}/b"}))
    site.script("/a", answer(body=b"a"))
    site.script("/b", answer(body=b"b"))
    assert site.once() == Done()
    assert site.content() == {"x.csv": b"a", "b": b"b"}
    linked_by_text = Site(FetchSpec(each=(body("/a"),), url=(body(""),)))
    linked_by_text.script(STATUS, succeeded(a=f"{FILES}/a"))
    linked_by_text.script("/a", answer(body=b"a"))
    assert linked_by_text.once() == Done()
    assert linked_by_text.content() == {"a": b"a"}


def test_a_file_of_a_place_is_not_fetched_again_by_the_next_try() -> None:
    site = Site(TWO)
    site.script(STATUS, succeeded(out="f1", err="f2"))
    site.script("/v1/files/f1", answer(body=b"1"))
    site.script("/v1/files/f2", answer(500), answer(body=b"2"))
    assert [type(outcome) for outcome in site.until_rest()] == [Again, Done]
    assert len(site.asked(f"{API}/v1/files/f1")) == 1
    assert site.content() == {"out": b"1", "err": b"2"}


def test_places_that_end_alike_never_stand_for_one_another() -> None:
    """The first place gets its value only after the second one's file is complete."""
    per_item = Hop(request=RequestSpec(path="/v1/files/{item}"))
    site = Site(FetchSpec(each=(body("/a/id"), body("/b/id"), body("/c")), per_item=per_item))
    late, early = {"b": {"id": "f2"}, "c": "f3"}, {"a": {"id": "f1"}, "b": {"id": "f2"}, "c": "f3"}
    site.script(STATUS, succeeded(**late), succeeded(**early))
    site.script("/v1/files/f1", answer(body=b"1"))
    site.script("/v1/files/f2", answer(body=b"2"))
    site.script("/v1/files/f3", answer(500), answer(body=b"3"))
    assert [type(outcome) for outcome in site.until_rest()] == [Again, Done]
    assert site.content() == {"result-1": b"1", "result-2": b"2", "c": b"3"}


def test_a_place_of_another_page_is_another_file() -> None:
    """The first page has no value in the first try, so the file of the second page had the name."""
    site = Site(replace(TWO, hop=Hop(request=RequestSpec(path="/v1/list")), next=NextPage(token=body("/n"), query="p")))
    site.script(STATUS, succeeded())
    pages = [{"n": "2"}, {"out": "f2", "err": "f3"}, {"out": "f1", "n": "2"}, {"out": "f2", "err": "f3"}]
    site.script("/v1/list", *(answer(json=page) for page in pages))
    site.script("/v1/files/f1", answer(body=b"1"))
    site.script("/v1/files/f2", answer(body=b"2"))
    site.script("/v1/files/f3", answer(500), answer(body=b"3"))
    assert [type(outcome) for outcome in site.until_rest()] == [Again, Done]
    assert site.content() == {"out": b"1", "out-2": b"2", "err": b"3"}


def test_files_that_are_complete_are_not_fetched_again_if_the_provider_names_them() -> None:
    site = Site(FetchSpec(each=body("/files"), url=(body("/url"),), name=body("/name")))
    files = [{"url": f"{FILES}/{name}", "name": name} for name in "ab"]
    site.script(STATUS, succeeded(files=files))
    site.script("/a", answer(body=b"a"))
    site.script("/b", answer(500), answer(body=b"b"))
    assert [type(outcome) for outcome in site.until_rest()] == [Again, Done]
    assert len(site.asked(f"{FILES}/a")) == 1
    assert site.content() == {"a": b"a", "b": b"b"}


def test_a_single_file_may_have_the_providers_name() -> None:
    site = linked(name=body("/file"))
    site.script(STATUS, succeeded(file="Q1 report.csv"))
    site.script("/r/1", answer(body=b"x"))
    assert site.once() == Done()
    assert site.content() == {"Q1_report.csv": b"x"}


@pytest.mark.parametrize("empty_ok", [False, True])
def test_a_list_without_files_is_a_result_only_if_the_table_says_so(empty_ok: bool) -> None:
    site = Site(FetchSpec(each=body("/files"), url=(body("/url"),), empty_ok=empty_ok))
    site.script(STATUS, succeeded(files=[]))
    assert isinstance(site.once(), Done if empty_ok else Again)


def test_files_without_names_follow_the_order_of_the_newest_answer() -> None:
    """A list in another order must not make one file stand for another."""
    site = Site(FetchSpec(each=body("/files"), url=(body("/url"),)))
    one, two = {"url": f"{FILES}/a"}, {"url": f"{FILES}/b"}
    site.script(STATUS, succeeded(files=[one, two]), succeeded(files=[two, one]))
    site.script("/a", answer(body=b"a"))
    site.script("/b", answer(500), answer(body=b"b"))
    site.until_rest()
    assert site.content() == {"result-1": b"b", "result-2": b"a"}


def test_the_cap_is_on_all_files_together() -> None:
    site = Site(FetchSpec(each=body("/files"), url=(body("/url"),), max_bytes=5))
    site.script(STATUS, succeeded(files=[{"url": f"{FILES}/a"}, {"url": f"{FILES}/b"}]))
    for name in "ab":
        site.script(f"/{name}", answer(body=b"xxx"))
    assert isinstance(site.once(), GiveUp)


CONTENT = Hop(request=RequestSpec(path="/v1/rows"))


@pytest.mark.parametrize(
    ("ways", "first", "second"),
    [
        (NextPage(token=body("/next"), query="cursor"), answer(json={"next": "t&2"}), "cursor=t%262"),
        (
            NextPage(token=Header("X-Next"), query="cursor", end="null"),
            answer(body=b"1", headers={"X-Next": "t2"}),
            "cursor=t2",
        ),
        (NextPage(url=body("/next")), answer(json={"next": "/v1/rows?page=2"}), "page=2"),
        (
            NextPage(link=True),
            answer(body=b"1", headers={"Link": '</v1/rows?page=9>; rel="last", </v1/rows?page=2>; rel="next"'}),
            "page=2",
        ),
    ],
    ids=["token in the body", "token in a header", "url", "link header"],
)
def test_pages_are_files_in_their_order(ways: NextPage, first: Any, second: str) -> None:
    site = Site(FetchSpec(hop=CONTENT, next=ways))
    last = answer(json={"next": None}, headers={"X-Next": "null", "Content-Type": "application/json"})
    site.script(STATUS, succeeded())
    site.script("/v1/rows", first, last)
    assert site.once() == Done()
    assert [request.url.partition("?")[2] for request in site.asked("/v1/rows")] == ["", second]
    assert list(site.content()) == ["result-1", "result-2"]
    assert site.content()["result-1"] == first.body


def test_pages_of_a_list_of_files_are_walked_to_the_end() -> None:
    listing = Hop(request=RequestSpec(path="/v1/list"))
    site = Site(FetchSpec(hop=listing, each=body("/f"), url=(body("/u"),), next=NextPage(token=body("/n"), query="p")))
    site.script(STATUS, succeeded())
    pages = [{"f": [{"u": f"{FILES}/a"}], "n": 2}, {"f": [{"u": f"{FILES}/b"}], "n": ""}]
    site.script("/v1/list", *(answer(json=page) for page in pages))
    for name in "ab":
        site.script(f"/{name}", answer(body=name.encode()))
    assert site.once() == Done()
    assert site.content() == {"result-1": b"a", "result-2": b"b"}


def test_pages_that_repeat_never_make_a_result() -> None:
    site = Site(FetchSpec(hop=CONTENT, next=NextPage(token=body("/next"), query="c"), attempts=1))
    site.script(STATUS, succeeded())
    site.script("/v1/rows", answer(json={"next": "same"}))
    outcome = site.once()
    assert isinstance(outcome, GiveUp)
    assert "repeat" in outcome.said
    assert len(site.asked("/v1/rows")) == 2


def test_more_pages_than_allowed_never_make_a_result() -> None:
    site = Site(FetchSpec(hop=CONTENT, next=NextPage(token=body("/next"), query="c"), pages=3))
    site.script(STATUS, succeeded())
    site.script("/v1/rows", *(answer(json={"next": str(number)}) for number in range(9)))
    assert isinstance(site.once(), GiveUp)
    assert len(site.asked("/v1/rows")) == 3
    assert site.result.state is ResultState.UNAVAILABLE


def test_a_next_page_elsewhere_is_never_asked() -> None:
    site = Site(FetchSpec(hop=CONTENT, next=NextPage(url=body("/next"))))
    site.script(STATUS, succeeded())
    site.script("/v1/rows", answer(json={"next": "https://evil.example/v1/rows"}))
    assert isinstance(site.once(), GiveUp)
    assert not site.asked("evil.example")


LIST = Hop(request=RequestSpec(path="/v1/list"))


@pytest.mark.parametrize(
    ("spec", "document", "reply", "word"),
    [
        (FetchSpec(value=body("/output")), {}, answer(), "holds no result"),
        (FetchSpec(value=body("/output")), {"output": ""}, answer(), "empty"),
        (FetchSpec(url=(body("/other"),)), {}, answer(), "no link"),
        (FetchSpec(url=(body("/other"),), next=NextPage(link=True)), {}, answer(), "no link"),
        (FetchSpec(each=body("/files"), url=(body("/url"),)), {"files": {}}, answer(), "no list"),
        (FetchSpec(each=body("/files"), url=(body("/url"),)), {"files": [{"x": 1}]}, answer(), "no link"),
        (FetchSpec(hop=replace(LIST, values=(("x", body("/x")),))), {}, answer(), "lacks {x}"),
        (FetchSpec(hop=replace(LIST, values=(("x", body("/x")),)), each=body("")), {}, answer(), "lacks {x}"),
        (FetchSpec(hop=Hop(request=RequestSpec(path="/v1/{unknown}"))), {}, answer(), "cannot be put"),
        (
            FetchSpec(each=body("/f"), per_item=Hop(request=RequestSpec(path="/v1/{item}"))),
            {"f": [{}]},
            answer(),
            "put",
        ),
        (FetchSpec(hop=LIST, each=body("/f"), url=(body("/u"),)), {}, answer(500), "HTTP 500"),
        (FetchSpec(hop=LIST, each=body("/f"), url=(body("/u"),)), {}, no_answer(), "no answer"),
        (FetchSpec(hop=LIST, each=body("/f"), url=(body("/u"),)), {}, answer(json="text"), "not JSON"),
        (FetchSpec(hop=LIST, each=body("/f"), url=(body("/u"),)), {}, answer(body=b"<html>"), "not JSON"),
        (
            FetchSpec(hop=LIST, each=body("/f"), url=(body("/u"),), next=NextPage(url=body("/n")), empty_ok=True),
            {},
            answer(json={"f": [], "n": {}}),
            "next page",
        ),
        (
            FetchSpec(
                hop=LIST, each=body("/f"), url=(body("/u"),), next=NextPage(token=body("/n"), query="n"), pages=1
            ),
            {},
            answer(json={"f": [], "n": 2}),
            "after 1 pages",
        ),
    ],
)
def test_what_is_missing_on_the_way_is_told_and_never_guessed(
    spec: FetchSpec, document: dict[str, object], reply: Script, word: str
) -> None:
    site = Site(replace(spec, attempts=1))
    site.script(STATUS, succeeded(**document))
    site.script("/v1/list", reply)
    outcome = site.once()
    assert isinstance(outcome, GiveUp)
    assert word in outcome.said
    assert site.runtime.files.stored == {}


def test_a_request_without_a_path_asks_the_same_address_again() -> None:
    site = Site(FetchSpec(hop=Hop(request=RequestSpec(headers=(("Accept", "text/csv"),)))))
    site.script(STATUS, succeeded(), answer(body=b"a,b"))
    assert site.once() == Done()
    assert site.content() == {"result": b"a,b"}


def test_the_file_at_a_link_may_be_paged() -> None:
    site = Site(replace(LINKED, next=NextPage(link=True)))
    site.script(STATUS, succeeded(f"{API}/rows"))
    site.script("/rows", answer(body=b"1", headers={"Link": "<?page=2>; rel=next"}), answer(body=b"2"))
    assert site.once() == Done()
    assert site.content() == {"result-1": b"1", "result-2": b"2"}


def test_a_page_too_large_to_be_searched_is_given_up() -> None:
    spec = FetchSpec(hop=CONTENT, next=NextPage(token=body("/next"), query="c"))
    site = Site(spec, table=with_result(spec, limits=RequestLimits(max_bytes=1000)))
    site.script(STATUS, succeeded())
    site.script("/v1/rows", answer(json={"rows": "x" * 1000}))
    assert isinstance(site.once(), GiveUp)
    assert site.runtime.files.stored == {}


# --- what is not there to fetch with -----------------------------------------------------------------


def test_a_worker_without_the_table_leaves_it_to_another_and_a_person_is_asked_in_the_end() -> None:
    site = linked()
    site.runtime.tables.by_id.clear()
    first, *_, last = site.until_rest()
    assert first.after == site.runtime.timing.table_missing_retry
    assert isinstance(last, GiveUp)
    assert site.provider.log == []
    assert site.result.state is ResultState.UNAVAILABLE


def test_a_table_that_names_no_result_any_more_is_told() -> None:
    site = Site(LINKED, table=table())
    assert isinstance(site.once(), GiveUp)
    assert site.provider.log == []


def test_a_broken_seal_asks_a_person() -> None:
    site = Site(LINKED, sealed=Sealed(handle="h"))
    site.runtime = replace(site.runtime, vault=FernetVault(["another key"]))
    assert isinstance(site.once(), GiveUp)
    assert site.provider.log == []


def test_a_status_address_that_is_no_longer_allowed_is_not_asked() -> None:
    site = Site(LINKED, sealed=Sealed(status_url="https://evil.example/v1/jobs/job-1?token=TOKSECRET"))
    outcome = site.once()
    assert isinstance(outcome, GiveUp)
    assert "TOKSECRET" not in repr(outcome) + site.written()
    assert site.provider.log == []


def test_a_sealed_status_address_is_asked() -> None:
    site = Site(LINKED, sealed=Sealed(status_url=f"{API}/s?token=TOKSECRET"))
    site.script("/s", succeeded())
    site.script("/r/1", answer(body=b"x"))
    assert site.once() == Done()
    assert "TOKSECRET" not in site.written()


def test_used_up_reads_are_not_overdrawn() -> None:
    """A process that ended after each of its reads has used them all."""
    site = linked(attempts=1)
    site.store.keep_result(JobResult(operation_id="op-1", reads=1))
    assert isinstance(site.once(), GiveUp)
    assert site.provider.log == []


def test_a_probe_of_a_closed_breaker_is_taken_and_opens_it() -> None:
    site = linked()
    site.script("/r/1", answer(body=b"x"))
    site.store.move_gate("acme", "default", GateState(), GateState(reason=HoldReason.BREAKER, held_until=T0))
    assert site.once() == Done()
    assert site.store.gates([("acme", "default")])["acme", "default"].reason is HoldReason.NONE


def test_a_denied_status_closes_no_account() -> None:
    """The question that opens it again belongs to an operation that still runs."""
    site = Site(LINKED)
    site.script(STATUS, answer(401))
    assert isinstance(site.once(), Again)
    assert site.store.gates([("acme", "default")])["acme", "default"].reason is HoldReason.NONE


class Breaks:
    """A storage that fails at one step."""

    def __init__(self, files: Any, step: str) -> None:
        self.files, self.step = files, step

    def writer(self, *args: Any, **kwargs: Any) -> Any:
        writer, step = self.files.writer(*args, **kwargs), self.step

        class Broken:
            offset = property(lambda _: writer.offset)

            def __getattr__(self, name: str) -> Any:
                if name == step:
                    raise OSError("s3://key:STORESECRET@bucket")
                return getattr(writer, name)

        return Broken()


@pytest.mark.parametrize("step", ["feed", "finish", "restart", "pause"])
@pytest.mark.parametrize("inline", [False, True])
def test_a_storage_that_fails_anywhere_costs_a_try(step: str, inline: bool) -> None:
    site = Site(FetchSpec(value=body("/output")) if inline else LINKED)
    site.script(STATUS, succeeded(output="x"))
    site.script("/r/1", cut(answer(body=b"xyz"), after=2) if step in ("restart", "pause") else answer(body=b"xyz"))
    site.runtime = replace(site.runtime, files=Breaks(site.runtime.files, step))
    outcome = site.once()
    if inline and step in ("restart", "pause"):
        assert outcome == Done()
    else:
        assert outcome == Again(after=None, said="The storage failed (OSError).")
    assert "STORESECRET" not in site.written()


# --- secrets -----------------------------------------------------------------------------------------

SIGNED = f"{FILES}/PATHSECRET/1?X-Amz-Signature={{}}&X-Amz-Security-Token=TOKSECRET&sig=AZSECRET"


def test_a_signed_link_is_nowhere_at_rest_and_in_no_text(caplog: pytest.LogCaptureFixture) -> None:
    """B063, INV-33: in no row, audit entry, question, log line, whatever the answer."""
    replies = [answer(500, text="<Error/>"), no_answer(), answer(302), answer(body=b""), answer(403)]
    caplog.set_level(logging.DEBUG)
    for reply in replies:
        site = Site(LINKED)
        site.script(STATUS, succeeded(SIGNED.format("SIGSECRET")))
        site.script("/PATHSECRET/1", reply)
        outcome = site.once()
        told = repr(outcome) + site.written() + caplog.text
        assert [word for word in ("SIGSECRET", "TOKSECRET", "AZSECRET", "PATHSECRET") if word in told] == []


def test_two_failures_with_other_signatures_read_alike() -> None:
    """B063."""
    told = []
    for signature in ("SIG1", "SIG2"):
        site = Site(LINKED)
        site.script(STATUS, succeeded(SIGNED.format(signature)))
        site.script("/PATHSECRET/1", answer(500))
        told.append(repr(site.once()))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("url", "secret", "kept"),
    [
        (f"{API}/files/1", False, f"{API}/files/1"),
        (f"{API}/files/1", True, ""),
        (f"{API}/files/1?sig=1", False, ""),
        (f"{FILES}/1", False, ""),
    ],
)
def test_only_a_plain_link_of_the_own_host_is_kept(url: str, secret: bool, kept: str) -> None:
    hosts = ResultSpec(hosts=(FILES,), secret=secret)
    site = Site(LINKED, table=table({"result": hosts}, result=LINKED))
    site.script(STATUS, succeeded(url))
    site.script("/files/1", answer(404))
    site.script("/1", answer(404))
    site.once()
    assert site.result.link == kept


def test_an_error_of_the_storage_is_told_by_its_kind_only(caplog: pytest.LogCaptureFixture) -> None:
    class Full:
        def writer(self, *_: object, **__: object) -> object:
            raise OSError("s3://key:STORESECRET@bucket is full")

    site = linked()
    site.script("/r/1", answer(body=b"x"))
    site.runtime = replace(site.runtime, files=Full())  # type: ignore[arg-type]
    outcome = site.once()
    assert isinstance(outcome, Again)
    assert outcome.said == "The storage failed (OSError)."
    assert "STORESECRET" not in site.written() + caplog.text


def test_an_error_of_our_own_leaves_no_frame_with_a_link(caplog: pytest.LogCaptureFixture) -> None:
    """Error hooks show the variables of each frame."""
    site = linked()

    def broken(_: Request) -> Any:
        raise RuntimeError(SIGNED.format("SIGSECRET"))

    site.script("/r/1", broken)
    outcome = site.once()
    assert isinstance(outcome, Again)
    assert "TOKSECRET" not in repr(outcome) + site.written() + caplog.text
    assert "RuntimeError" in outcome.said


# --- the audit, the lease, and ends of processes --------------------------------------------------------


def test_each_try_leaves_an_audit_entry_with_counts_and_codes() -> None:
    site = linked()
    site.script("/r/1", answer(500), answer(body=b"xyz"))
    site.until_rest()
    first, second = site.entries()
    assert (first["outcome"], first["reads"], first["heard"], first["files"]) == ("again", [1, 5], ["200", "500"], 0)
    assert (second["outcome"], second["reads"], second["bytes"], second["files"]) == ("complete", [2, 5], 3, 1)


def test_a_try_ends_before_its_lease() -> None:
    """A worker that is slow must not write into the next one's work."""
    site = linked(total=timedelta(hours=1))
    site.script("/r/1", lambda _: site.clock.advance(271 * S) and answer(body=b"x"))
    outcome = site.once()
    assert isinstance(outcome, Again)
    assert "time for one try" in outcome.said


def test_a_lease_leaves_room_for_a_whole_try() -> None:
    site = linked(total=timedelta(hours=1))
    assert lease_of(site.runtime, with_result(site.spec)) > timedelta(hours=1)
    assert lease_of(site.runtime, table()) == site.runtime.timing.delivery_lease


class Killed(BaseException):
    """The process ends here."""


def steps(site: Site, kill_at: int) -> int:
    """Let the process end after step ``kill_at`` of everything it does outside; returns how many steps there were."""
    count = 0
    store = site.store
    writers: list[Any] = []

    def counted(owner: Any, name: str) -> Any:
        real = getattr(owner, name)

        def step(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            done = real(*args, **kwargs)
            count += 1
            if count == kill_at:
                raise Killed
            return done

        return step

    class Watched:
        def __getattr__(self, name: str) -> Any:
            watched = name in ("keep_result", "note", "close_delivery", "fail_delivery")
            return counted(store, name) if watched else getattr(store, name)

    class WatchedProvider:
        def __getattr__(self, name: str) -> Any:
            return counted(site.provider, name) if name in ("send", "download") else getattr(site.provider, name)

    class WatchedFiles:
        def writer(self, *args: Any, **kwargs: Any) -> Any:
            writer = site.runtime.files.writer(*args, **kwargs)
            writers.append(writer)

            class Writer:
                offset = property(lambda _: writer.offset)

                def __getattr__(self, name: str) -> Any:
                    return counted(writer, name) if name in ("feed", "finish", "pause") else getattr(writer, name)

            return Writer()

    runtime = replace(site.runtime, store=Watched(), transport=WatchedProvider(), files=WatchedFiles())  # type: ignore[arg-type]
    (row,) = store.get([site.id])
    delivery = site.take()
    try:
        finish_errand(runtime, delivery, row, "me", fetch(runtime, delivery, row))
    except Killed:
        for writer in writers:  # as the system does it for a process that has ended
            getattr(writer, "_handle", BytesIO()).close()
        return 0
    return count


def listed(**given: Any) -> Site:
    site = Site(FetchSpec(each=body("/files"), url=(body("/url"),), name=body("/name")), **given)
    files = [{"url": f"{FILES}/{name}", "name": name} for name in "ab"]
    site.script(STATUS, succeeded(files=files))
    for name in "ab":
        site.script(f"/{name}", answer(body=name.encode()))
    return site


def test_a_process_may_end_anywhere_and_the_next_try_completes_without_doubles() -> None:
    """Crash enumeration of a fetch: the end is the uncrashed end, and each file is there once (INV-06)."""
    whole = steps(listed(), kill_at=0)
    assert whole > 10
    for kill_at in range(1, whole + 1):
        site = listed()
        steps(site, kill_at)
        if site.store.outbox[site.delivery_id].delivered:
            continue
        site.clock.advance(301 * S)
        assert site.once() == Done(), kill_at
        assert site.content() == {"a": b"a", "b": b"b"}, kill_at
        assert len(site.runtime.files.stored) == 2, kill_at


def test_a_file_that_is_complete_is_written_down_before_the_next_one_is_asked_for() -> None:
    """A process that ends in the second download costs the first one nothing."""
    site = listed()

    def end(_: Request) -> Any:
        raise Killed

    site.script("/b", end, answer(body=b"b"))
    (row,) = site.store.get([site.id])
    with pytest.raises(Killed):
        fetch(site.runtime, site.take(), row)
    site.clock.advance(301 * S)
    assert site.once() == Done()
    assert len(site.asked(f"{FILES}/a")) == 1


def test_a_worker_takes_the_errand_for_as_long_as_its_table_grants() -> None:
    """A large file is not given up because a follow-up may only take five minutes."""
    site = Site(replace(LINKED, total=3600 * S))
    leases: list[timedelta] = []

    def looks_at_the_lease(request: Request) -> Script:
        until = site.runtime.store.outbox[site.delivery_id].lease_until
        leases.append(until - site.clock())
        return succeeded()

    site.provider.on("GET", STATUS, looks_at_the_lease)
    site.provider.on("GET", "/r/1", answer(text="rows"))
    assert deliver(site.runtime, [site.delivery_id]) == 1
    assert leases[0] >= 3600 * S


def test_an_account_that_stays_closed_ends_in_a_question_and_not_in_tries_without_end() -> None:
    """INV-06."""
    site = linked()
    site.store.move_gate("acme", "default", GateState(), GateState(reason=HoldReason.AUTH))
    run_due(site.runtime, site.clock)
    assert site.provider.log == []
    assert Reason.RESULT_UNAVAILABLE in site.store.reasons("op-1")
    assert site.store.outbox[site.delivery_id].delivery.attempts <= 40
