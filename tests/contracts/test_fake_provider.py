"""The fake provider of ``jobtrack.testing``: how it is scripted, and the truth that it keeps."""

from __future__ import annotations

import pytest

from jobtrack.core.reply import Answered, NoAnswer
from jobtrack.testing import FakeProvider, VirtualClock, answer, makes, no_answer
from tests.transports.faults import request, table

ORIGIN = "https://api.provider.example"


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider(VirtualClock())


def ask(provider: FakeProvider, method: str, path: str, body: bytes = b"", **more: object) -> int | str:
    """The status of the answer, or why there is none."""
    asked = request(ORIGIN + path, method=method, body=body, **more)
    ((_, reply),) = provider.send([(asked, table(ORIGIN))])
    return reply.status if isinstance(reply, Answered) else reply.trouble.value


def test_a_job_is_answered_by_its_script_and_the_last_answer_repeats(provider: FakeProvider) -> None:
    provider.script("j1", answer(201), answer(202))
    assert [ask(provider, "GET", "/v1/jobs/j1") for _ in range(3)] == [201, 202, 202]
    assert ask(provider, "GET", "/v1/jobs", body=b'{"id": "j1"}') == 202
    assert ask(provider, "GET", "/v1/jobs/j2") == 404


def test_a_route_comes_before_a_job_and_the_newest_route_before_an_older_one(provider: FakeProvider) -> None:
    provider.script("j1", answer(201))
    provider.on("POST", "/v1/jobs/j1/cancel", answer(202))
    provider.on("GET", "/v1/jobs/*", answer(203))
    provider.on("GET", "/v1/jobs/j1", answer(204))
    assert ask(provider, "POST", "/v1/jobs/j1/cancel") == 202
    assert ask(provider, "GET", "/v1/jobs/j1?x=1") == 204
    assert ask(provider, "GET", "/v1/jobs/j2") == 203
    assert ask(provider, "PUT", "/v1/jobs/j1") == 201
    provider.on("GET", "/v1/jobs/j1", answer(205))
    assert ask(provider, "GET", "/v1/jobs/j1") == 205


def test_what_stands_in_line_comes_first_and_once(provider: FakeProvider) -> None:
    provider.on("GET", "/v1/jobs", answer(200))
    provider.then(no_answer("dns"), answer(503))
    assert [ask(provider, "GET", "/v1/jobs") for _ in range(3)] == ["dns", 503, 200]


def test_it_counts_the_jobs_that_were_made_whatever_was_answered(provider: FakeProvider) -> None:
    """INV-18: effects at the provider are what duplicates are counted by."""
    provider.on("POST", "/v1/jobs", makes("j1", no_answer()), makes("j2", answer(202)), answer(422))
    said = [ask(provider, "POST", "/v1/jobs", operation_id=op) for op in ("op-1", "op-1", "op-2")]
    assert said == ["read_timeout", 202, 422]
    assert (provider.made_for("op-1"), provider.made_for("op-2")) == (["j1", "j2"], [])
    assert [made.request.method for made in provider.made] == ["POST", "POST"]
    assert len(provider.sent("POST", "/v1/jobs")) == len(provider.sent("POST")) == 3


def test_a_callable_gets_the_request_and_may_ask_in_its_turn(provider: FakeProvider) -> None:
    provider.on("GET", "/inner", answer(201))
    provider.on("GET", "/outer", lambda asked: answer(200 + ask(provider, "GET", "/inner") % 100, text=asked.url))
    assert ask(provider, "GET", "/outer") == 201
    assert [seen.request.url for seen in provider.log] == [f"{ORIGIN}/outer", f"{ORIGIN}/inner"]


@pytest.mark.parametrize("script", ["script", "on", "then"])
def test_a_script_without_answers_is_a_mistake(provider: FakeProvider, script: str) -> None:
    names = {"script": ("j1",), "on": ("GET", "/x"), "then": ()}[script]
    with pytest.raises(ValueError, match="at least one answer"):
        getattr(provider, script)(*names)


def test_a_trouble_before_sending_is_unsent_by_itself() -> None:
    """R-SUB-2."""
    troubles = ("dns", "connect_refused", "connect_timeout", "tls", "read_timeout", "connection_lost")
    sent = [no_answer(trouble).sent.value for trouble in troubles]
    assert sent == ["never"] * 4 + ["maybe"] * 2
    assert no_answer("read_timeout", sent="never") == NoAnswer(
        sent="never",  # type: ignore[arg-type]
        trouble="read_timeout",  # type: ignore[arg-type]
        detail="scripted read_timeout",
    )
