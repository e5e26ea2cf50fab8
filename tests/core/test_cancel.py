"""R-END-5: what an answer to a cancellation proves, and how it is asked for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.actions import CancelSpec
from jobtrack.core.cancel import CancelState, read_cancel
from jobtrack.core.observation import Kind
from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.reply import Answered, NoAnswer, Sent, Trouble
from jobtrack.core.request import cancel_request
from jobtrack.core.table import ProviderTable
from jobtrack.errors import UsageError
from tests.core.builders import OPERATION, T0, TABLE, S, answered

HOST = "https://api.provider.example"
REQUEST = RequestSpec(method="POST", path="/v1/jobs/{job_id}/cancel")
SPEC = CancelSpec(request=REQUEST, effect="Stops it.", refused_http=frozenset({409, 401}))
CANCELS = replace(TABLE, cancel=SPEC)
C = CancelState

ANSWERS = [
    (200, C.ACCEPTED, Kind.PENDING),
    (202, C.ACCEPTED, Kind.PENDING),
    (204, C.ACCEPTED, Kind.PENDING),
    (409, C.REFUSED, Kind.INVALID_RESPONSE),
    (401, C.REFUSED, Kind.DENIED),
    (403, C.UNKNOWN, Kind.DENIED),
    (201, C.UNKNOWN, Kind.INVALID_RESPONSE),
    (404, C.UNKNOWN, Kind.INVALID_RESPONSE),
    (302, C.UNKNOWN, Kind.TARGET_DENIED),
    (429, C.UNKNOWN, Kind.RATE_LIMITED),
    (500, C.UNKNOWN, Kind.TRANSPORT_FAILURE),
]


@pytest.mark.parametrize("raw", [b'{"error":"too late"}', b"<html>", b""])
@pytest.mark.parametrize(("code", "state", "kind"), ANSWERS)
def test_only_listed_codes_prove_something(code: int, state: CancelState, kind: Kind, raw: bytes) -> None:
    told, observation = read_cancel(CANCELS, answered(raw=raw, status=code))
    assert (told, observation.kind, observation.http) == (state, kind, code)
    assert f"HTTP {code}" in observation.detail
    assert observation.error == ("too late" if raw.startswith(b"{") and state is not C.ACCEPTED else "")


@pytest.mark.parametrize(("sent", "state"), [(Sent.NEVER, None), (Sent.MAYBE, C.UNKNOWN)])
def test_without_an_answer(sent: Sent, state: CancelState | None) -> None:
    told, observation = read_cancel(CANCELS, NoAnswer(sent=sent, trouble=Trouble.READ_TIMEOUT))
    assert (told, observation.kind, observation.trouble) == (state, Kind.TRANSPORT_FAILURE, Trouble.READ_TIMEOUT)


def test_guidance_is_read_with_a_clock() -> None:
    reply = answered({}, 429, ("Retry-After", "7"))
    assert read_cancel(CANCELS, reply)[1].guidance is None
    guidance = read_cancel(CANCELS, reply, now=T0)[1].guidance
    assert guidance
    assert guidance.wait == 7 * S


@given(st.integers(0, 999), st.binary(max_size=40))
def test_a_table_without_cancellation_explains_no_answer(code: int, raw: bytes) -> None:
    assert read_cancel(TABLE, Answered(status=code, body=raw), now=T0)[0] is C.UNKNOWN


# --- the request ------------------------------------------------------------------------------------


def cancelling(request: RequestSpec) -> ProviderTable:
    return replace(TABLE, cancel=replace(SPEC, request=request))


def test_the_request_is_as_the_table_writes_it() -> None:
    request = cancel_request(CANCELS, replace(OPERATION, job_id="a/b"))
    assert (request.method, request.url, request.body) == ("POST", f"{HOST}/v1/jobs/a%2Fb/cancel", b"")
    assert ("X-Request-Id", "op-1:7") in request.headers


def test_a_cancellation_takes_the_handle_and_our_own_ids() -> None:
    body = {"token": "{handle}", "id": "{operation_id}", "key": "{idempotency_key}", "ref": "{reference}"}
    by = cancelling(RequestSpec(method="POST", path="/cancel", body_kind=BodyKind.JSON, body=body))
    operation = replace(OPERATION, idempotency_key="k", reference="r")
    assert json.loads(cancel_request(by, operation, "h").body) == {"token": "h", "id": "op-1", "key": "k", "ref": "r"}
    with pytest.raises(UsageError, match=r"no value for \{handle\}"):
        cancel_request(by, operation)


def test_a_cancellation_may_go_to_the_jobs_own_address() -> None:
    by = cancelling(RequestSpec(method="DELETE"))
    assert cancel_request(by, replace(OPERATION, status_url=f"{HOST}/v9/1")).url == f"{HOST}/v9/1"
    with pytest.raises(UsageError, match="builds no address for a cancellation"):
        cancel_request(by, OPERATION)


def test_a_table_that_documents_none_sends_none() -> None:
    with pytest.raises(UsageError, match="documents no cancellation"):
        cancel_request(TABLE, OPERATION)


def test_a_job_without_an_id_is_not_cancelled_by_id() -> None:
    with pytest.raises(UsageError, match=r"no value for \{job_id\}"):
        cancel_request(CANCELS, replace(OPERATION, job_id=""))
