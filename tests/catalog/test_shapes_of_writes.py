"""Every shape that submissions, look-ups, cancellations, results and webhooks of real providers have can be said.

One row a shape: a small table, what it sends, and what answers mean by it (R-TABLE-5, R-SUB-2, R-SUB-6, R-ID-3).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64encode
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from jobtrack.catalog.examples import NOW, sample_operation, sample_submission
from jobtrack.core.accept import observe_submission
from jobtrack.core.cancel import read_cancel
from jobtrack.core.compose import prepare
from jobtrack.core.fetch import (
    Fault,
    after_redirect,
    answer_of,
    hop_values,
    items_of,
    link_in,
    may_fetch,
    may_follow,
    next_page,
)
from jobtrack.core.hop import hop_request
from jobtrack.core.lookup import read_lookup
from jobtrack.core.reply import Answered
from jobtrack.core.request import cancel_request, lookup_request, status_request, submit_request
from jobtrack.core.table import ProviderTable
from jobtrack.core.webhook import Ignored, Refused, Verified, read_notices, verify
from tests.catalog.builders import STATES, answer, table

BY_URL = "request: {method: GET}"

# --- submitting --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitting:
    names: tuple[str, ...]
    submit: str
    answers: tuple[tuple[Answered, str], ...]
    status: str = STATES
    request: str = ""
    top: str = ""
    payload: Any = field(default_factory=lambda: {"name": "n1"})
    sent: dict[str, Any] = field(default_factory=dict)

    def table(self) -> ProviderTable:
        return table(self.status, request=self.request, top=f"{self.top}\nsubmit: {self.submit}")


SUBMITTING: list[Submitting] = []


def submitting(names: str, submit: str, *answers: tuple[Any, str], **more: Any) -> None:
    """Add a row.

    An answer is a JSON body (sent with 200) or an ``answer(...)``. What it means is the meaning, and how the job is
    followed then.
    """
    read = tuple((said if isinstance(said, Answered) else answer(said), means) for said, means in answers)
    SUBMITTING.append(Submitting(names=tuple(names.split()), submit=submit, answers=read, **more))


submitting(
    "ambiguous_submit_500",
    "{request: {path: /transfer/create}, accepted: {http: [200], job_id: /transfer/id}, rejected: {http: [400]}}",
    ({"transfer": {"id": "t1"}}, "accepted t1"),
    (answer({"error": "oops"}, http=500), "unknown"),
    (answer({"error": "wrong"}, http=400), "rejected"),
    (answer({}, http=504), "unknown"),
    (answer({}, http=422), "unknown"),
    sent={"method": "POST", "url": "https://api.example/transfer/create", "body": b'{"name":"n1"}'},
)
submitting(
    "client_supplied_id conflict_means_already_submitted",
    """{
      request: {path: /jobs, json: {TranscriptionJobName: "{operation_id}", Media: "{payload/media}"}},
      accepted: {http: [200], job_id: [{sent: "{operation_id}"}]},
      rules: [{if: {http: 400, /__type: ConflictException}, then: already}],
      rejected: {http: [400]},
    }""",
    ({"TranscriptionJob": {}}, "accepted example"),
    (answer({"__type": "ConflictException"}, http=400), "already example"),
    (answer({"__type": "BadRequestException"}, http=400), "rejected"),
    (answer({"__type": "ConflictException"}, http=500), "unknown"),
    payload={"media": {"uri": "s3://b/a"}},
    sent={"body": b'{"TranscriptionJobName":"example","Media":{"uri":"s3://b/a"}}'},
)
submitting(
    "conflict_means_already_submitted",
    """{
      request: {path: /payments},
      accepted: {http: [201], job_id: [/payments/id, /error/links/conflicting_resource_id]},
      already: {http: [409]},
      idempotency: {header: Idempotency-Key, lifetime: 30d},
    }""",
    (answer({"payments": {"id": "PM1"}}, http=201), "accepted PM1"),
    (answer({"error": {"links": {"conflicting_resource_id": "PM1"}}}, http=409), "already PM1"),
    (answer({"error": {}}, http=409), "already"),
)
submitting(
    "empty_submit_body",
    """{
      request: {path: "/models/{model}:analyze"},
      accepted: {http: [202], status_url: {header: Operation-Location}, paths: [/operations]},
    }""",
    (answer("", http=202, Operation_Location="https://api.example/operations/1"), "accepted /operations/1"),
    (answer("", http=202), "accepted"),
    (answer("", http=202, Operation_Location="https://evil.example/operations/1"), "accepted"),
    (answer("", http=202, Operation_Location="https://api.example/other/1"), "accepted"),
    request=BY_URL,
    top="params: {model: {from: caller, pattern: slug}}",
    sent={"url": "https://api.example/models/sample:analyze"},
)
submitting(
    "header_priority_list",
    """{
      request: {method: PUT, path: /disks/d1},
      accepted: {
        http: [201, 202],
        status_url: [{header: Azure-AsyncOperation}, {header: Operation-Location}, {header: Location}],
      },
    }""",
    (
        answer({}, http=201, Location="https://api.example/r", Azure_AsyncOperation="https://api.example/o"),
        "accepted /o",
    ),
    (answer({}, http=202, Location="https://api.example/r"), "accepted /r"),
    (answer({}, http=202), "accepted"),
    request=BY_URL,
    sent={"method": "PUT"},
)
submitting(
    "idempotency_in_body",
    """{
      request: {path: /runs},
      accepted: {http: [200], job_id: /run_id},
      idempotency: {body: /idempotency_token, lifetime: 1d, scope: the workspace},
    }""",
    ({"run_id": 455}, "accepted 455"),
    ({"run_id": 45.5}, "accepted"),
    sent={"body": b'{"name":"n1","idempotency_token":"example"}'},
)
submitting(
    "idempotency_in_query",
    """{
      request: {path: /instances, query: {zone: a}},
      accepted: {http: [200], job_id: /name},
      idempotency: {query: requestId, lifetime: 0s, key: uuid},
    }""",
    ({"name": "operation-1"}, "accepted operation-1"),
    ({"name": ""}, "accepted"),
    sent={"url": "https://api.example/instances?zone=a&requestId=%s"},
)
submitting(
    "short_idempotency_window",
    """{
      request: {path: /jobs},
      accepted: {http: [201], job_id: /job/id},
      idempotency: {body: /clientRequestToken, lifetime: 1m},
      recovery: {deadline: 1m, requests: 5},
    }""",
    (answer({"job": {"id": "1-a"}}, http=201), "accepted 1-a"),
    (answer({"job": {"id": "1-a"}}, http=200), "unknown"),
)
submitting(
    "no_idempotency",
    "{request: {path: /}, accepted: {http: [200], job_id: /JobRunId}}",
    ({"JobRunId": "jr_1"}, "accepted jr_1"),
    (answer({}, http=408), "unknown"),
)
submitting(
    "one_submit_many_jobs",
    "{request: {path: /servers}, accepted: {http: [201], job_id: /action/id, params: {server: /server/id}}}",
    (
        answer({"server": {"id": 42}, "action": {"id": 1}, "next_actions": [{"id": 2}]}, http=201),
        "accepted 1 server=42",
    ),
    (answer({"action": {"id": 1}}, http=201), "accepted"),
    request='request: {path: "/servers/{server}/actions/{job_id}"}',
    top="params: {server: {from: answer, pattern: integer}}",
)
submitting(
    "redirect_303_submit",
    "{request: {path: /tasks/start}, accepted: {http: [303], job_id: {header: Location, segment: -1}}}",
    (answer("", http=303, Location="/rest/api/task/10641"), "accepted 10641"),
    (answer("", http=303), "accepted"),
    (answer("", http=302, Location="/rest/api/task/10641"), "unknown"),
)
submitting(
    "same_call_submit_and_poll",
    """{
      request: {method: GET, path: "/stats/{repo}"},
      accepted: {http: [202], status_url: [{request: true}]},
      final: {http: [200, 204]},
    }""",
    (answer({}, http=202), "accepted /stats/sample"),
    (answer({"total": 3}), "final success"),
    (answer("", http=500), "unknown"),
    status="""
    read_http: [200, 202, 204]
    state: {http: status}
    states: {pending: [202], success: [200, 204]}
    """,
    request=BY_URL,
    top="params: {repo: {from: caller, pattern: slug}}",
    sent={"method": "GET", "url": "https://api.example/stats/sample", "body": b""},
)
submitting(
    "submit_without_id",
    """{
      request: {path: /dispatches, json: {inputs: {id: "{operation_id}"}}},
      accepted: {http: [204]},
      lookup: {request: {path: /runs}, items: /runs, match: {/display_title: "export {operation_id}"}, found: /id},
    }""",
    (answer("", http=204), "accepted"),
    (answer("", http=404), "unknown"),
    sent={"body": b'{"inputs":{"id":"example"}}'},
)
submitting(
    "sync_or_async_same_endpoint",
    """{
      request: {path: /delete_batch},
      accepted: {job_id: /async_job_id},
      rules: [
        {if: {http: 200, /.tag: async_job_id}, then: accepted},
        {if: {http: 200, /.tag: complete}, then: final},
      ],
    }""",
    ({".tag": "async_job_id", "async_job_id": "j1"}, "accepted j1"),
    ({".tag": "complete", "entries": [1]}, "final success"),
    ({".tag": "other"}, "unknown"),
    status="{state: /.tag, states: {pending: [in_progress], success: [complete], failure: [failed]}}",
)
submitting(
    "three_urls_in_submit",
    "{request: {path: /app}, accepted: {http: [200], job_id: /request_id, status_url: {body: /status_url}}}",
    (
        {"request_id": "r1", "status_url": "https://api.example/r1/status", "cancel_url": "https://api.example/r1/c"},
        "accepted r1 /r1/status",
    ),
    ({"request_id": "r1"}, "accepted"),
    request=BY_URL,
)
submitting(
    "id_nested_in_operation_metadata",
    "{request: {path: /builds}, accepted: {http: [200], job_id: /metadata/build/id}}",
    ({"name": "operations/build/p/x", "metadata": {"build": {"id": "b1"}}}, "accepted b1"),
    ({"name": "operations/build/p/x"}, "accepted"),
)
submitting(
    "composite_id",
    '{request: {path: /jobs}, accepted: {http: [200], job_id: {join: [/region, /id], with: ":"}}}',
    ({"region": "eu", "id": 7}, "accepted eu:7"),
    ({"id": 7}, "accepted"),
)
submitting(
    "poll_handle_differs_from_id",
    "{request: {path: /asset_report/create}, accepted: {http: [200], job_id: /asset_report_id, handle: /token}}",
    ({"asset_report_id": "a1", "token": "assets-s3cret"}, "accepted a1 handle"),
    ({"asset_report_id": "a1"}, "accepted"),
    request='request: {method: POST, path: /asset_report/get, json: {asset_report_token: "{handle}"}}',
)


def followed(row_table: ProviderTable, row: Submitting, said: Answered) -> str:
    """What an answer proves, and how the job is followed then."""
    operation, sent = sample_submission(row_table, payload=row.payload)
    seen = observe_submission(row_table, said, operation=operation, sent=sent, now=NOW)
    words = [str(seen.meaning)]
    if seen.status is not None:
        words.append(str(seen.status.kind))
    elif seen.handover is not None:
        job = seen.handover
        words += [job.job_id, job.status_url.removeprefix("https://api.example"), job.handle and "handle"]
        words += [f"{name}={value}" for name, value in job.params.items()]
    return " ".join(word for word in words if word)


@pytest.mark.parametrize("row", SUBMITTING, ids=lambda row: row.names[0])
def test_answers_to_submissions_of_the_shape_are_read(row: Submitting):
    read_with = row.table()
    assert [followed(read_with, row, said) for said, _ in row.answers] == [means for _, means in row.answers]


@pytest.mark.parametrize("row", [row for row in SUBMITTING if row.sent], ids=lambda row: row.names[0])
def test_submissions_of_the_shape_are_built(row: Submitting):
    read_with = row.table()
    operation, sent = sample_submission(read_with, payload=row.payload)
    request = submit_request(read_with, operation, sent)
    wanted = {
        key: value % operation.idempotency_key if "%s" in str(value) else value for key, value in row.sent.items()
    }
    assert {key: getattr(request, key) for key in wanted} == wanted


def test_the_secret_to_poll_with_stands_in_the_status_request():
    row = next(row for row in SUBMITTING if row.names == ("poll_handle_differs_from_id",))
    read_with = row.table()
    request = status_request(read_with, sample_operation(read_with, job_id="a1"), handle="assets-s3cret")
    assert request.body == b'{"asset_report_token":"assets-s3cret"}'


def test_a_submission_of_several_steps_is_several_operations():
    """``multi_step_submit``: each step's answer ends it, and a follow-up submits the next; the last one is followed."""
    create = table(
        "{rules: [{if: {/state: Open}, then: success}], result: {require: {/id: string}, keep: {job: /id}}}",
        request='request: {path: "/jobs/{job_id}"}',
        top="submit: {request: {path: /jobs}, accepted: {job_id: /id}, final: {http: [200]}}",
    )
    upload = table(
        "{rules: [{if: {http: 201}, then: success}]}",
        request='request: {path: "/jobs/{job}"}',
        top="""
        params: {job: {from: caller, pattern: slug}}
        submit:
          request: {method: PUT, path: "/jobs/{job}/batches", json: "{payload/rows}"}
          accepted: {}
          final: {http: [201]}
        """,
    )
    close = table(
        "{state: /state, states: {pending: [UploadComplete, InProgress], success: [JobComplete], failure: [Failed]}}",
        top="""
        params: {job: {from: caller, pattern: slug}}
        submit:
          request: {method: PATCH, path: "/jobs/{job}", json: {state: UploadComplete}}
          accepted: {http: [200], job_id: /id}
        """,
    )
    steps = [
        (create, {"object": "Contact"}, answer({"id": "750R", "state": "Open"})),
        (upload, {"rows": [{"Name": "a"}]}, answer("", http=201)),
        (close, {}, answer({"id": "750R", "state": "UploadComplete"})),
    ]
    seen = []
    for read_with, payload, said in steps:
        operation, sent = sample_submission(read_with, payload=payload, params={"job": "750R"})
        read = observe_submission(read_with, said, operation=operation, sent=sent, now=NOW)
        seen.append((sent.method, sent.body, str(read.meaning), dict(read.status.kept) if read.status else None))
    assert seen == [
        ("POST", b'{"object":"Contact"}', "final", {"job": "750R"}),
        ("PUT", b'[{"Name":"a"}]', "final", {}),
        ("PATCH", b'{"state":"UploadComplete"}', "accepted", None),
    ]


def test_a_form_takes_the_fields_of_the_payload():
    """``form_encoded`` submissions."""
    read_with = table(top='submit: {request: {path: /m, form: "{payload}"}, accepted: {http: [201], job_id: /sid}}')
    assert sample_submission(read_with, payload={"To": "+1", "Body": "a b"})[1].body == b"To=%2B1&Body=a+b"


# --- looking up --------------------------------------------------------------------------------------

LOOKUPS: list[tuple[str, str, str, list[tuple[Any, str]]]] = [
    # names, look-up, URL that is asked, answers
    (
        "submit_without_id",
        '{request: {path: /runs, query: {event: dispatch}}, items: /runs, match: {/title: "export {operation_id}"}, found: /id}',
        "https://api.example/runs?event=dispatch",
        [
            ({"runs": [{"id": 6, "title": "export other"}, {"id": 7, "title": "export example"}]}, "found 7"),
            ({"runs": [{"id": 7, "title": "export example"}, {"id": 8, "title": "export example"}]}, "many 7 8"),
            ({"runs": []}, "absent"),
            ({}, "unreadable"),
            (answer({}, http=500), "unreadable"),
        ],
    ),
    (
        "eventually_consistent_lookup",
        '{request: {path: "/jobs/{operation_id}"}, found: /id, absent: {http: [404]}, absence_is_proof_after: 5m}',
        "https://api.example/jobs/example",
        [({"id": "j1"}, "found j1"), (answer({}, http=404), "absent"), (answer({}, http=410), "unreadable")],
    ),
    (
        "paged_lookup",
        '{request: {path: /jobs}, items: $, match: {/ref: "{reference}"}, found: /id, next: {link: true}}',
        "https://api.example/jobs",
        [
            (answer([], Link='<https://api.example/jobs?page=2>; rel="next"'), "more"),
            (answer([{"ref": "example", "id": 1}]), "found 1"),
            (answer([], Link='<https://evil.example/jobs?page=2>; rel="next"'), "unreadable"),
        ],
    ),
    (
        "token_paged_lookup",
        """{request: {path: /jobs}, items: /jobs, match: {/ref: "{operation_id}"}, found: /id,
            next: {token: /next_page_token, query: page_token, end: "null"}}""",
        "https://api.example/jobs",
        [({"jobs": [], "next_page_token": "t2"}, "more"), ({"jobs": [], "next_page_token": "null"}, "absent")],
    ),
]


@pytest.mark.parametrize(("name", "lookup", "url", "answers"), LOOKUPS, ids=[row[0] for row in LOOKUPS])
def test_look_ups_of_the_shape_are_asked_and_read(name: str, lookup: str, url: str, answers: list[tuple[Any, str]]):
    read_with = table(
        top=f"submit: {{request: {{path: /jobs}}, accepted: {{http: [202], job_id: /id}}, lookup: {lookup}}}"
    )
    operation, sent = sample_submission(read_with)
    assert lookup_request(read_with, operation, sent).url == url
    said = [(one if isinstance(one, Answered) else answer(one)) for one, _ in answers]
    seen = [read_lookup(read_with, one, operation=operation, sent=sent, now=NOW) for one in said]
    told = [" ".join([str(one.kind), *(job.job_id for job in one.found)]) for one in seen]
    assert told == [means for _, means in answers]


# --- cancelling --------------------------------------------------------------------------------------

CANCELS = [
    (
        "delete_is_cancel",
        '{request: {method: DELETE, path: "/jobs/{job_id}"}, effect: "Stops it.", accepted: {http: [202]}, refused: {http: [404]}}',
        {"method": "DELETE", "url": "https://api.example/jobs/j1", "body": b""},
        {202: "accepted", 404: "refused", 200: "unknown", 500: "unknown"},
    ),
    (
        "cancel_by_patch_state",
        '{request: {method: PATCH, path: "/jobs/{job_id}", json: {state: Aborted}}, effect: "Stops it."}',
        {"method": "PATCH", "body": b'{"state":"Aborted"}'},
        {200: "accepted", 204: "accepted", 409: "unknown"},
    ),
    (
        "cancel_by_form",
        '{request: {path: "/jobs/{job_id}.json", form: {Status: canceled}}, effect: "Stops it.", repeatable: true}',
        {"method": "POST", "url": "https://api.example/jobs/j1.json", "body": b"Status=canceled"},
        {202: "accepted"},
    ),
]


@pytest.mark.parametrize(("name", "cancel", "sent", "answers"), CANCELS, ids=[row[0] for row in CANCELS])
def test_cancellations_of_the_shape(name: str, cancel: str, sent: dict[str, Any], answers: dict[int, str]):
    read_with = table(STATES.replace("failed]", "failed], stop: {cancelled: [gone]}"), top=f"cancel: {cancel}")
    request = cancel_request(read_with, sample_operation(read_with, job_id="j1"))
    assert {key: getattr(request, key) for key in sent} == sent
    assert {code: str(read_cancel(read_with, answer({}, http=code))[0]) for code in answers} == answers


def test_three_urls_of_one_submission():
    """``three_urls_in_submit``: the answer's URLs for status, cancelling and result all follow from the id."""
    read_with = table(
        "state: /status\nstates: {pending: [IN_QUEUE, IN_PROGRESS], success: [COMPLETED]}",
        request='request: {path: "/{owner}/{alias}/requests/{job_id}/status"}',
        top="""
        params: {owner: {from: caller, pattern: segment}, alias: {from: caller, pattern: segment}}
        submit: {request: {path: "/{owner}/{alias}"}, accepted: {http: [200], job_id: /request_id}}
        cancel: {request: {method: PUT, path: "/{owner}/{alias}/requests/{job_id}/cancel"}, effect: Stops it.}
        result: {request: {path: "/{owner}/{alias}/requests/{job_id}"}}
        """,
    )
    spec = read_with.result
    assert spec is not None
    assert spec.hop is not None
    operation = replace(sample_operation(read_with, job_id="r1"), params={"owner": "fal-ai", "alias": "flux"})
    looked, cancelled = status_request(read_with, operation), cancel_request(read_with, operation)
    fetched = hop_request(read_with, operation, spec.hop.request, {}, before=looked)
    asked_for = [(request.method, request.url) for request in (looked, cancelled, fetched)]
    job = "https://api.example/fal-ai/flux/requests/r1"
    assert asked_for == [("GET", f"{job}/status"), ("PUT", f"{job}/cancel"), ("GET", job)]


# --- results -----------------------------------------------------------------------------------------

STATUS_URL = "https://api.example/jobs/j1"


def fetching(result: str, *, hosts: str = "https://files.example") -> ProviderTable:
    return table(f'{STATES}result: {{require: {{}}, hosts: ["{hosts}"], secret: true}}', top=f"result: {result}")


def asked(read_with: ProviderTable, spec: Any, values: dict[str, str]) -> str:
    operation = sample_operation(read_with, job_id="j1")
    return hop_request(read_with, operation, spec, values, before=status_request(read_with, operation)).url


def test_a_result_that_is_a_second_get():
    """``result_is_second_binary_get``: a request of its own gives the content."""
    read_with = fetching('{request: {path: "/videos/{job_id}/content"}, types: [video/mp4], ranges: true}')
    spec = read_with.result
    assert spec is not None
    assert spec.hop is not None
    assert (asked(read_with, spec.hop.request, {}), spec.url) == ("https://api.example/videos/j1/content", ())


def test_a_result_at_another_address_of_the_status_answer():
    """``final_get_elsewhere``, ``short_lived_result_url``, ``result_url_refresh_by_refetch``: each try reads it anew."""
    read_with = fetching("{url: [/resourceLocation, {header: Location}, /output/0], attempts: 5}")
    spec = read_with.result
    assert spec is not None
    for said, url in (
        (answer({"resourceLocation": "https://files.example/a?sig=1"}, Location="/b"), "https://files.example/a?sig=1"),
        (answer({}, Location="/b"), "https://api.example/b"),
        (answer({"output": ["https://evil.example/c"]}), "https://evil.example/c"),
        (answer({}), ""),
    ):
        assert link_in(spec.url, answer_of(said), STATUS_URL) == url
        assert may_fetch(url, read_with, spec, {}) is (url not in ("", "https://evil.example/c"))


def test_a_result_behind_a_second_document():
    """``two_hop_result``: the status answer names a document, and the document has the URL."""
    read_with = fetching('{request: {path: "/documents/{doc}"}, values: {doc: /reportDocumentId}, url: /url}')
    spec = read_with.result
    assert spec is not None
    assert spec.hop is not None
    values = hop_values(spec.hop.values, answer_of(answer({"reportDocumentId": "amzn1/x"})))
    assert values == {"doc": "amzn1/x"}
    url = asked(read_with, spec.hop.request, {"doc": "amzn1/x"})
    assert url == "https://api.example/documents/amzn1%2Fx"
    document = answer_of(answer({"url": "https://files.example/f"}))
    assert link_in(spec.url, document, url) == "https://files.example/f"


def test_a_result_for_each_item():
    """``result_per_language``: a request for each item of a list, here a text."""
    read_with = fetching('{each: /target_languages, item_request: {path: "/dubbing/{job_id}/audio/{item}"}}')
    spec = read_with.result
    assert spec is not None
    assert spec.each is not None
    assert spec.per_item is not None
    items = items_of(spec.each, answer_of(answer({"target_languages": ["de", "fr"]})))
    assert not isinstance(items, Fault)
    urls = [asked(read_with, spec.per_item.request, {"item": str(item.value)}) for item in items]
    assert urls == ["https://api.example/dubbing/j1/audio/de", "https://api.example/dubbing/j1/audio/fr"]


@pytest.mark.parametrize(
    ("document", "files"),
    [
        ({"output_file_id": "f1", "error_file_id": "f2"}, {"output_file_id": "f1", "error_file_id": "f2"}),
        ({"output_file_id": "f1", "error_file_id": None}, {"output_file_id": "f1"}),
        ({"output_file_id": None, "error_file_id": "f2"}, {"error_file_id": "f2"}),
        ({"error_file_id": "f2"}, {"error_file_id": "f2"}),
        ({"output_file_id": None, "error_file_id": None}, {}),  # no result, unless the table has `empty_ok`
    ],
)
def test_two_files_of_one_result(document: dict[str, Any], files: dict[str, str]):
    """``two_result_files``: each of two places may be null, and the file is called after its place."""
    read_with = fetching('{each: [/output_file_id, /error_file_id], item_request: {path: "/files/{item}/content"}}')
    spec = read_with.result
    assert spec is not None
    assert spec.each is not None
    assert spec.per_item is not None
    items = items_of(spec.each, answer_of(answer(document)))
    assert not isinstance(items, Fault)
    urls = {item.name: asked(read_with, spec.per_item.request, {"item": str(item.value)}) for item in items}
    assert urls == {name: f"https://api.example/files/{file}/content" for name, file in files.items()}
    assert spec.empty_ok is False


def test_files_of_a_list():
    """``two_result_files`` of a list: each item has its URL and its name."""
    read_with = fetching("{each: /files, url: /url, name: /name}")
    spec = read_with.result
    assert spec is not None
    assert spec.each is not None
    items = items_of(spec.each, answer_of(answer({"files": [{"url": "/a", "name": "a.csv"}, {"url": "/b"}]})))
    assert not isinstance(items, Fault)
    links = [link_in(spec.url, answer_of(answer(item.value)), STATUS_URL) for item in items]
    assert links == ["https://api.example/a", "https://api.example/b"]


PAGES = [
    # names, result, answer, URL of the next page
    (
        "paged_result",
        "{value: /data, next: {body: /next}}",
        answer({"data": [1], "next": "/jobs/j1?skip=1"}),
        "?skip=1",
    ),
    ("paged_result", "{value: /data, next: {body: /next}}", answer({"data": [1]}), ""),
    (
        "paged_result_by_header",
        '{request: {path: "/jobs/{job_id}/results"}, next: {header: Sforce-Locator, query: locator, end: "null"}}',
        answer("a,b", Sforce_Locator="MTAw"),
        "?locator=MTAw",
    ),
    (
        "paged_result_by_header",
        '{request: {path: "/jobs/{job_id}/results"}, next: {header: Sforce-Locator, query: locator, end: "null"}}',
        answer("a,b", Sforce_Locator="null"),
        "",
    ),
]


@pytest.mark.parametrize(("name", "result", "said", "following"), PAGES, ids=str)
def test_pages_of_a_result(name: str, result: str, said: Answered, following: str):
    spec = fetching(result).result
    assert spec is not None
    assert next_page(spec, answer_of(said), STATUS_URL) == (STATUS_URL + following if following else "")


def test_a_result_that_is_redirected():
    """``redirect_result``: a redirect may lead to the hosts that the table names, and to no other."""
    read_with = fetching('{request: {path: "/migrations/{job_id}/archive"}, redirects: ["https://store.example"]}')
    spec = read_with.result
    assert spec is not None
    urls = ["https://store.example/a", "https://files.example/a", "https://evil.example/a", "http://store.example/a"]
    assert [may_follow(url, read_with, spec, {}) for url in urls] == [True, True, False, False]
    assert (after_redirect("GET", 302), after_redirect("POST", 307)) == ("GET", "")


def test_a_result_that_is_removed_soon():
    """``short_retention``: told to people, and to the follow-up that fetches."""
    read_with = table(STATES, top="retention: {result: 1h}\nresult: {value: /results}")
    assert read_with.retention.result is not None
    assert read_with.retention.result.total_seconds() == 3600


# --- webhooks ----------------------------------------------------------------------------------------

KEY = b"k3y"
HOOK = "https://our.example/hooks/shape"


def signed(content: bytes, *, hexadecimal: bool = True) -> str:
    digest = hmac.new(KEY, content, hashlib.sha256)
    return digest.hexdigest() if hexadecimal else b64encode(digest.digest()).decode()


def heard(webhook: str, body: Any, *, token: str = "", **headers: str) -> str:
    """The ids that a notice names; "refused" or "ignored"."""
    spec = table(top=f"webhook: {webhook}").webhook
    assert spec is not None
    content = json.dumps(body).encode()
    named = [(name.replace("_", "-"), value.replace("BODY", signed(content))) for name, value in headers.items()]
    proof = verify(spec, headers=named, body=content, url=HOOK, secrets=[KEY], now=NOW, token=token)
    if isinstance(proof, Refused):
        return "refused"
    assert isinstance(proof, Verified)
    notices = read_notices(spec, content, notice_id=proof.notice_id)
    return "ignored" if isinstance(notices, Ignored) else " ".join(each.job_id or each.operation_id for each in notices)


HMAC = "{scheme: hmac, header: X-Signature, job_id: /id%s}"


def test_many_events_in_one_notice():
    """``many_events_per_webhook``: each names its job."""
    webhook = "{scheme: hmac, header: Webhook-Signature, events: /events, job_id: /links/payment}"
    events = {"events": [{"links": {"payment": "PM1"}}, {"links": {"mandate": "MD1"}}, {"links": {"payment": "PM2"}}]}
    assert heard(webhook, events, Webhook_Signature="BODY") == "PM1 PM2"
    assert heard(webhook, {"events": []}, Webhook_Signature="BODY") == "ignored"
    assert heard(webhook, events, Webhook_Signature="00" * 32) == "refused"


def test_a_signature_over_the_address():
    """``signature_includes_url``."""
    webhook = HMAC % ", encoding: base64, signed: [url, body]"
    good = signed(HOOK.encode() + json.dumps({"id": "c1"}).encode(), hexadecimal=False)
    other = signed(b"https://other.example" + json.dumps({"id": "c1"}).encode(), hexadecimal=False)
    assert [heard(webhook, {"id": "c1"}, X_Signature=one) for one in (good, other)] == ["c1", "refused"]


def test_a_notice_without_a_signature():
    """``unsigned_callback``: a secret in the address says who it is."""
    webhook = "{scheme: token, job_id: /id}"
    assert [heard(webhook, {"id": "g1"}, token=token) for token in ("k3y", "guess", "")] == ["g1", "refused", "refused"]


def test_a_notice_sets_no_state():
    """``webhook_only_failure``, ``webhook_vocabulary_differs``, ``webhooks_out_of_order``: only the id is read."""
    for body in ({"id": "j1", "status": "ERROR"}, {"id": "j1", "status": "OK"}, {"id": "j1", "occurred_at": "1970"}):
        assert heard(HMAC % ', prefix: "sha256="', body, X_Signature="sha256=BODY") == "j1"


COVERED = {
    *(name for row in SUBMITTING for name in row.names),
    *(name for name, *_ in (*LOOKUPS, *CANCELS, *PAGES)),
    *[
        "multi_step_submit",
        "form_encoded",
        "result_is_second_binary_get",
        "final_get_elsewhere",
        "short_lived_result_url",
    ],
    *["result_url_refresh_by_refetch", "two_hop_result", "result_per_language", "two_result_files", "redirect_result"],
    *[
        "short_retention",
        "many_events_per_webhook",
        "signature_includes_url",
        "unsigned_callback",
        "webhook_only_failure",
    ],
    *["webhook_vocabulary_differs", "webhooks_out_of_order"],
}
"""Shapes that this module shows; ``test_shapes`` accounts for all."""


def test_the_key_of_an_operation_never_changes():
    """R-ID-3: asked twice, the same bytes."""
    read_with = next(row for row in SUBMITTING if row.names == ("idempotency_in_query",)).table()
    first, again = (
        prepare(read_with, operation_id="o1", account="default", payload={"a": 1}, params={}) for _ in range(2)
    )
    assert first == again
    assert first.key in first.submission.url
    other = prepare(read_with, operation_id="o2", account="default", payload={"a": 1}, params={})
    assert replace(other, submission=first.submission) != first
