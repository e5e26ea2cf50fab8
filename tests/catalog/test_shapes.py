"""Every shape a real provider's *status* answers have can be said in a table (R-TABLE-4).

One row a shape: the status part of a table, and answers with what they mean; the last ones must not be taken for a
state. The names are those of the project's collection of public APIs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobtrack.catalog import sample_operation
from jobtrack.catalog.examples import NOW
from jobtrack.core.observe import observe
from jobtrack.core.reply import Answered
from jobtrack.core.request import status_request, status_url
from tests.catalog.builders import STATES, answer, means, table
from tests.catalog.test_shapes_of_writes import COVERED

KNOWN = Path(__file__).with_name("shapes.txt")

ELSEWHERE = {
    # After the end: a terminal operation is never polled again, a contradiction is only reported
    "success_can_revert": "after the end",
    "superseded_after_success": "after the end",
    "terminal_can_reopen": "after the end",
    # Several operations
    "chained_job": "the next job is submitted by a follow-up",
    "success_depends_on_caller": "one table for each use, each with its own classes",
    "two_phase_job": "the second phase is a submission; the state between is resting_state",
    # Not needed
    "blocking_status_host": "the table names the host that answers at once",
    "long_poll_endpoint": "a look must end soon: the plain endpoint is asked",
    "long_poll_parameter": "a look must end soon: the parameter is left out",
    # Not about answers: two sources of the provider disagree; what no table lists stops and asks
    "docs_newer_than_sdk": "sources disagree",
    "docs_older_than_code": "sources disagree",
}
"""Shapes that no status answer has, and where they belong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    names: tuple[str, ...]
    status: str
    answers: tuple[tuple[Answered, str], ...]
    request: str = ""
    top: str = ""


SHAPES: list[Shape] = []


def shape(names: str, status: str, *answers: tuple[Any, str], request: str = "", top: str = "") -> None:
    """Add a row. An answer is a JSON body (sent with 200) or an ``answer(...)``."""
    read = tuple((said if isinstance(said, Answered) else answer(said), kind) for said, kind in answers)
    SHAPES.append(Shape(names=tuple(names.split()), status=status, answers=read, request=request, top=top))


# --- one field ---------------------------------------------------------------------------------------

shape(
    "json_state state_regression",
    STATES,
    ({"status": "running"}, "pending"),
    ({"status": "queued"}, "pending"),
    ({"status": "done"}, "success"),
    ({"status": "failed"}, "failure"),
    ({"status": "Done"}, "unknown_state"),
    ({}, "invalid_response"),
    ({"status": True}, "invalid_response"),
)
shape(
    "nested_json_state",
    "{state: /status/state, states: {pending: [PENDING], success: [DONE]}}",
    ({"status": {"state": "DONE"}}, "success"),
    ({"status": "DONE"}, "invalid_response"),
)
shape(
    "envelope envelope_status_trap",
    "{state: /data/status, states: {pending: [waiting], success: [finished], failure: [error]}, error: /status/message}",
    ({"status": "success", "data": {"status": "waiting"}}, "pending"),
    ({"status": "success", "data": {"status": "finished"}}, "success"),
    ({"status": "finished"}, "invalid_response"),
)
shape(
    "state_value_with_space enum_in_prose",
    '{state: /status, states: {pending: ["in progress"], success: [done], failure: [failed]}}',
    ({"status": "in progress"}, "pending"),
    ({"status": "in  progress"}, "unknown_state"),
)
shape(
    "proto_enum_prefix",
    "{state: /state, states: {pending: [JOB_STATE_RUNNING], success: [JOB_STATE_SUCCEEDED], failure: [JOB_STATE_FAILED]}}",
    ({"state": "JOB_STATE_RUNNING"}, "pending"),
    ({"state": "RUNNING"}, "unknown_state"),
    ({"state": "JOB_STATE_UNSPECIFIED"}, "unknown_state"),
)
shape(
    "case_insensitive",
    "{state: {at: /status, fold_case: true}, states: {pending: [notStarted, running], success: [succeeded]}}",
    ({"status": "Running"}, "pending"),
    ({"status": "NOTSTARTED"}, "pending"),
    ({"status": "Paused"}, "unknown_state"),
)
shape(
    "integer_state",
    "{state: {at: /data/status, type: integer}, states: {pending: [1, 2, 3], success: [10], failure: [20], stop: {cancelled: [30]}}}",
    ({"data": {"status": 3}}, "pending"),
    ({"data": {"status": 10}}, "success"),
    ({"data": {"status": "10"}}, "invalid_response"),
    ({"data": {"status": 10.0}}, "invalid_response"),
    ({"data": {"status": True}}, "invalid_response"),
    ({"data": {"status": 40}}, "unknown_state"),
)
shape(
    "numeric_string",
    '{state: /state, states: {pending: ["1"], success: ["2"]}, progress: /pctComplete}',
    ({"state": "1", "pctComplete": "33.5"}, "pending"),
    ({"state": 1}, "invalid_response"),
)
shape(
    "boolean_inverted",
    """
    rules:
      - {if: {/is_running: true}, then: pending}
      - {if: {/is_running: false, /is_partial: false, /completion_status: 200}, then: success}
      - {if: {/is_running: false}, then: failure}
    """,
    ({"is_running": True, "is_partial": True}, "pending"),
    ({"is_running": False, "is_partial": False, "completion_status": 200}, "success"),
    ({"is_running": False, "is_partial": False, "completion_status": 503}, "failure"),
    ({"is_running": False, "is_partial": True, "completion_status": 200}, "failure"),
    ({"is_running": 0}, "unknown_state"),
)
shape(
    "tagged_union",
    "{state: /.tag, states: {pending: [in_progress], success: [complete], failure: [failed]}, result: {require: {/entries: array}}}",
    ({".tag": "in_progress"}, "pending"),
    ({".tag": "complete", "entries": [1]}, "success"),
    ({".tag": "complete"}, "invalid_result"),
    ({".tag": "other"}, "unknown_state"),
)
shape(
    "header_state",
    "{state: {header: X-Job-State}, states: {pending: [running], success: [done]}}",
    (answer({}, X_Job_State="running"), "pending"),
    (answer({"X-Job-State": "done"}), "invalid_response"),
)

# --- words that say more or less than they seem ------------------------------------------------------

shape(
    "misleading_state_word error_named_state several_failure_words",
    "{state: /status, states: {pending: [pending], success: [errored], failure: [failed, busy, no-answer], stop: {cancelled: [canceled]}}}",
    ({"status": "errored"}, "success"),
    ({"status": "busy"}, "failure"),
    ({"status": "no-answer"}, "failure"),
    ({"status": "error"}, "unknown_state"),
)
shape(
    "deadline_state",
    "{state: /status, states: {pending: [starting], success: [succeeded], stop: {expired: [aborted]}}}",
    ({"status": "aborted"}, "expired"),
    ({"status": "Aborted"}, "unknown_state"),
)
shape(
    "human_action_state client_action_state resting_state",
    "{state: /status, states: {pending: [queued], success: [completed], stop: {attention: [requires_action, on_hold, PAUSED]}}}",
    ({"status": "requires_action"}, "attention"),
    ({"status": "PAUSED"}, "attention"),
    ({"status": "paused"}, "unknown_state"),
)
shape(
    "partial_state terminal_but_partial success_with_failed_items",
    """
    state: /status
    states: {pending: [RUNNING], success: [COMPLETED], stop: {attention: [PARTIALLY_COMPLETED, incomplete]}}
    result: {require: {/output: string}, keep: {failed: /counts/failed}}
    """,
    ({"status": "PARTIALLY_COMPLETED"}, "attention"),
    ({"status": "incomplete"}, "attention"),
    ({"status": "COMPLETED", "output": "f", "counts": {"failed": 3}}, "success"),
    ({"status": "COMPLETED", "output": ""}, "invalid_result"),
)
shape(
    "no_failure_state no_error_detail",
    "{state: /status, states: {pending: [processing], success: [verified], stop: {cancelled: [canceled]}}}",
    ({"status": "verified"}, "success"),
    ({"status": "failed"}, "unknown_state"),
)
shape(
    "failure_is_return_to_waiting",
    """
    rules:
      - {if: {/status: requires_input, /last_error: {present: true}}, then: failure}
    state: /status
    states: {pending: [processing], success: [verified], stop: {attention: [requires_input], cancelled: [canceled]}}
    """,
    ({"status": "requires_input", "last_error": None}, "attention"),
    ({"status": "requires_input", "last_error": {"code": "expired"}}, "failure"),
    ({"status": "processing", "last_error": {"code": "expired"}}, "pending"),
)
shape(
    "cancelled_may_mean_empty",
    "{state: /processingStatus, states: {pending: [IN_QUEUE], success: [DONE], failure: [FATAL], stop: {attention: [CANCELLED]}}}",
    ({"processingStatus": "CANCELLED"}, "attention"),
    ({"processingStatus": "CANCELED"}, "unknown_state"),
)
shape(
    "later_lifecycle_in_same_field expired_after_success",
    "{state: /status, states: {pending: [QUEUED], success: [SUCCESS, REFUNDED, REFUNDPENDING], failure: [ERROR], stop: {expired: [EXPIRED]}}}",
    ({"status": "REFUNDED"}, "success"),
    ({"status": "EXPIRED"}, "expired"),
    ({"status": "REFUNDREJECTED"}, "unknown_state"),
)
shape(
    "open_enum only_terminal_values_listed",
    """
    state: /status
    states: {success: [Succeeded], failure: [Failed], stop: {cancelled: [Canceled]}}
    open: {then: pending, cite: "https://docs.example/operations#states"}
    """,
    ({"status": "ProvisioningDisks"}, "pending"),
    ({"status": "Succeeded"}, "success"),
    ({"status": "failed"}, "unknown_state"),
    ({"status": ""}, "unknown_state"),
    ({"status": None}, "invalid_response"),
)
shape(
    "open_enum",
    """
    state: /status
    states: {pending: [queued], success: [ready]}
    open: {then: pending, cite: "https://docs.example/operations#states", starts_with: [processing_]}
    """,
    ({"status": "processing_audio"}, "pending"),
    ({"status": "rejected"}, "unknown_state"),
)

# --- several fields ----------------------------------------------------------------------------------

shape(
    "two_fields conclusion_null_until_done",
    """
    state: [/status, /conclusion]
    states:
      pending: [[in_progress, {missing: "null"}], [queued, {missing: either}]]
      success: [[completed, success]]
      failure: [[completed, failure]]
    """,
    ({"status": "in_progress", "conclusion": None}, "pending"),
    ({"status": "queued"}, "pending"),
    ({"status": "completed", "conclusion": "success"}, "success"),
    ({"status": "in_progress"}, "unknown_state"),
    ({"status": "completed", "conclusion": None}, "unknown_state"),
    ({"status": "in_progress", "conclusion": "success"}, "unknown_state"),
)
shape(
    "verdict_in_second_field",
    """
    state: [/status, /result]
    states:
      pending: [[in_progress, {missing: either}]]
      success: [[complete, clear]]
      stop: {attention: [[complete, consider]], cancelled: [[withdrawn, {missing: either}]]}
    """,
    ({"status": "complete", "result": "clear"}, "success"),
    ({"status": "complete", "result": "consider"}, "attention"),
    ({"status": "complete"}, "unknown_state"),
)
shape(
    "verdict_as_state",
    "{state: /status, states: {pending: [processing], success: [approved], failure: [declined, error], stop: {attention: [review]}}, result: {require: {}, keep: {verdict: /status}}}",
    ({"status": "declined"}, "failure"),
    ({"status": "review"}, "attention"),
    ({"status": "undecided"}, "unknown_state"),
)
shape(
    "success_depends_on_other_field",
    """
    rules:
      - {if: {/status: settled, /type: credit}, then: success}
      - {if: {/status: settled, /type: debit}, then: pending}
    state: /status
    states: {pending: [pending, posted], success: [funds_available], failure: [failed, returned]}
    """,
    ({"status": "settled", "type": "credit"}, "success"),
    ({"status": "settled", "type": "debit"}, "pending"),
    ({"status": "settled"}, "unknown_state"),
)
shape(
    "reason_field_splits_state",
    """
    rules:
      - {if: {/status: CANCELED, /cancel_reason: TIMED_OUT}, then: expired}
    state: /status
    states: {pending: [PENDING], success: [COMPLETED], stop: {cancelled: [CANCELED]}}
    """,
    ({"status": "CANCELED", "cancel_reason": "TIMED_OUT"}, "expired"),
    ({"status": "CANCELED", "cancel_reason": "SELLER_CANCELED"}, "cancelled"),
    ({"status": "COMPLETED", "cancel_reason": "TIMED_OUT"}, "success"),
)
shape(
    "completed_but_failed",
    """
    rules:
      - {if: {/status: COMPLETED, /error: {present: true}}, then: failure}
    state: /status
    states: {pending: [IN_QUEUE], success: [COMPLETED]}
    error: /error
    """,
    ({"status": "COMPLETED", "error": "boom"}, "failure"),
    ({"status": "COMPLETED", "error": None}, "success"),
    ({"status": "COMPLETE", "error": "boom"}, "unknown_state"),
)
shape(
    "success_needs_result_check result_pointer_alternatives",
    """
    state: /state
    states: {pending: [dreaming], success: [completed], failure: [failed]}
    result: {require: {/assets: object}, one_of: [/assets/video, /assets/image]}
    """,
    ({"state": "completed", "assets": {"video": "v"}}, "success"),
    ({"state": "completed", "assets": {"image": "i"}}, "success"),
    ({"state": "completed", "assets": {}}, "invalid_result"),
    ({"state": "completed", "assets": {"video": "v", "image": "i"}}, "invalid_result"),
)
shape(
    "boolean_done_plus_error_union",
    """
    rules:
      - {if: {/done: true, /error/code: 1}, then: cancelled}
      - {if: {/done: true, /error: {present: true}}, then: failure}
      - {if: {/done: true, /response: {present: true}}, then: success}
      - {if: {/done: false}, then: pending}
      - {if: {/done: {missing: absent}}, then: pending}
    """,
    ({"name": "operations/1"}, "pending"),
    ({"done": False}, "pending"),
    ({"done": True, "response": {"x": 1}}, "success"),
    ({"done": True, "error": {"code": 13}}, "failure"),
    ({"done": True, "error": {"code": 1}}, "cancelled"),
    ({"done": True}, "unknown_state"),
    ({"done": 1}, "unknown_state"),
    ({"done": None}, "unknown_state"),
)
shape(
    "id_absent_means_done",
    """
    rules:
      - {if: {/id: {missing: absent}, /response: {present: true}}, then: success}
      - {if: {/id: {present: true}, /is_running: true}, then: pending}
    """,
    ({"response": {"hits": []}}, "success"),
    ({"id": "j1", "is_running": True}, "pending"),
    ({"id": None, "response": {}}, "unknown_state"),
)
shape(
    "one_of_two_fields error_field_overloaded",
    """
    rules:
      - {if: {/error: RATE_LIMIT_REACHED}, then: rate_limited}
      - {if: {/error: ASSEMBLY_NOT_FOUND}, then: not_found}
      - {if: {/error: {present: true}}, then: failure}
    state: /ok
    states: {pending: [EXECUTING], success: [COMPLETED], stop: {cancelled: [CANCELED]}}
    """,
    ({"ok": "EXECUTING"}, "pending"),
    ({"error": "RATE_LIMIT_REACHED"}, "rate_limited"),
    ({"error": "ASSEMBLY_NOT_FOUND"}, "not_found"),
    ({"error": "FILE_TYPE_UNKNOWN"}, "failure"),
    ({}, "invalid_response"),
)
shape(
    "substate",
    """
    state: [/readyState, /readySubstate]
    states:
      pending: [[BUILDING, {missing: either}], [READY, ROLLING]]
      success: [[READY, PROMOTED]]
      stop: {attention: [[READY, STAGED]]}
    """,
    ({"readyState": "READY", "readySubstate": "ROLLING"}, "pending"),
    ({"readyState": "READY", "readySubstate": "PROMOTED"}, "success"),
    ({"readyState": "READY"}, "unknown_state"),
)

# --- counts ------------------------------------------------------------------------------------------

shape(
    "counts_only",
    """
    rules:
      - {if: {/queued: ["0"], /sent: {same_as: /batchSize}}, then: success}
      - {if: {/queued: ["0"], /failed: {same_as: /batchSize}}, then: failure}
      - {if: {/queued: ["0"]}, then: attention}
      - {if: {/queued: {empty: false}}, then: pending}
    """,
    ({"queued": "2", "sent": "1", "failed": "0", "batchSize": "3"}, "pending"),
    ({"queued": "0", "sent": "3", "failed": "0", "batchSize": "3"}, "success"),
    ({"queued": "0", "sent": "2", "failed": "1", "batchSize": "3"}, "attention"),
    ({"queued": "", "sent": "3", "batchSize": "3"}, "unknown_state"),
)
shape(
    "terminal_state_without_outcome outcome_in_counts",
    """
    rules:
      - {if: {/processing_status: ended, /request_counts/succeeded: {above: 0}, /request_counts/errored: 0}, then: success}
      - {if: {/processing_status: ended, /cancel_initiated_at: {present: true}}, then: cancelled}
      - {if: {/processing_status: ended, /request_counts/succeeded: 0}, then: failure}
      - {if: {/processing_status: ended}, then: attention}
    state: /processing_status
    states: {pending: [in_progress, canceling]}
    """,
    ({"processing_status": "in_progress", "request_counts": {"succeeded": 0}}, "pending"),
    ({"processing_status": "ended", "request_counts": {"succeeded": 3, "errored": 0}}, "success"),
    ({"processing_status": "ended", "request_counts": {"succeeded": 0, "errored": 3}}, "failure"),
    ({"processing_status": "ended", "request_counts": {"succeeded": 2, "errored": 1}}, "attention"),
    ({"processing_status": "ended", "request_counts": {"succeeded": "3", "errored": "0"}}, "attention"),
    ({"processing_status": "finished"}, "unknown_state"),
)

# --- HTTP has a say ----------------------------------------------------------------------------------

shape(
    "http_status_state 4xx_is_job_failure",
    "{read_http: [200, 202, 422], state: {http: status}, states: {pending: [202], success: [200], failure: [422]}, error: /message}",
    (answer({}, http=202), "pending"),
    (answer({"data": []}, http=200), "success"),
    (answer({"message": "bad SQL"}, http=422), "failure"),
    (answer({}, http=408), "invalid_response"),
    (answer({}, http=404), "not_found"),
)
shape(
    "no_job_id http_status_state",
    "{state: {http: status}, states: {pending: [202], success: [200, 204]}, result: {require: {}}}",
    (answer({}, http=202), "pending"),
    (answer(None, http=204), "success"),
    (answer({}, http=201), "unknown_state"),
    request='request: {path: "/repos/{owner}/{repo}/stats"}',
    top="params: {owner: {from: caller, pattern: slug}, repo: {from: caller, pattern: slug}}",
)
shape(
    "http_status_misleads",
    "{state: /status, states: {pending: [inProgress], success: [completed]}}",
    (answer({"status": "inProgress"}, http=202), "pending"),
    (answer({"status": "completed"}, http=202), "success"),
    (answer({"status": "failed"}, http=202), "unknown_state"),
)
shape(
    "http_425_not_ready",
    """
    rules:
      - {if: {http: 425}, then: pending}
    state: /status
    states: {pending: [dubbing], success: [dubbed], failure: [failed]}
    """,
    (answer({"detail": "too early"}, http=425), "pending"),
    (answer({"status": "dubbed"}), "success"),
    (answer({"detail": "bad"}, http=422), "invalid_response"),
)
shape(
    "error_code_means_pending",
    """
    rules:
      - {if: {http: 400, /error_code: PRODUCT_NOT_READY}, then: pending}
      - {if: {http: 200, /report: {present: true}}, then: success}
    """,
    (answer({"error_code": "PRODUCT_NOT_READY"}, http=400), "pending"),
    ({"report": {"id": 1}}, "success"),
    (answer({"error_code": "INVALID_INPUT"}, http=400), "invalid_response"),
    ({}, "unknown_state"),
    request='request: {method: POST, path: /asset_report/get, json: {asset_report_token: "{job_id}"}}',
)
shape(
    "errors_in_200",
    """
    rules:
      - {if: {/errors: {present: true}}, then: invalid}
    state: /data/node/status
    states: {pending: [RUNNING], success: [COMPLETED], failure: [FAILED]}
    """,
    ({"data": {"node": {"status": "RUNNING"}}}, "pending"),
    ({"errors": [{"message": "throttled"}], "data": {"node": {"status": "COMPLETED"}}}, "invalid_response"),
    ({"data": {"node": None}}, "invalid_response"),
)
shape(
    "retry_after_on_status",
    STATES,
    (answer({"status": "running"}, Retry_After="30"), "pending"),
    (answer({"status": "pausing"}, Retry_After="30"), "unknown_state"),
)

# --- lists -------------------------------------------------------------------------------------------

shape(
    "list_pick_one id_in_query",
    """
    pick: {list: /items, id: /id, none: not_found}
    state: /status/uploadStatus
    states: {pending: [uploaded], success: [processed], failure: [failed, rejected]}
    """,
    ({"items": [{"id": "j1", "status": {"uploadStatus": "uploaded"}}]}, "pending"),
    ({"items": [{"id": "j1", "status": {"uploadStatus": "processed"}}]}, "success"),
    ({"items": []}, "not_found"),
    ({"items": [{"id": "j2", "status": {"uploadStatus": "processed"}}]}, "not_found"),
    ({"items": [{"id": "j1"}, {"id": "j1"}]}, "invalid_response"),
    ({}, "invalid_response"),
    request='request: {path: /videos, query: {part: status, id: "{job_id}"}}',
)
shape(
    "list_pick_by_predicate",
    """
    pick: {list: /data/tasks, where: {/operation: export/url}, none: pending}
    state: /status
    states: {pending: [waiting, processing], success: [finished], failure: [error]}
    result: {require: {"$.result.files[0].url": url}, secret: true, hosts: ["https://storage.example"]}
    """,
    ({"data": {"tasks": [{"operation": "import", "status": "finished"}]}}, "pending"),
    (
        {
            "data": {
                "tasks": [
                    {
                        "operation": "export/url",
                        "status": "finished",
                        "result": {"files": [{"url": "https://storage.example/x"}]},
                    }
                ]
            }
        },
        "success",
    ),
    ({"data": {"tasks": [{"operation": "export/url", "status": "finished"}]}}, "invalid_result"),
)
shape(
    "list_then_pick",
    """
    pick: {list: $, id: /id, none: not_found}
    state: /status
    states: {pending: [running, failing], success: [success], failure: [failed], stop: {attention: [on_hold]}}
    """,
    ([{"id": "j0", "status": "failed"}, {"id": "j1", "status": "failing"}], "pending"),
    ([{"id": "j1", "status": "on_hold"}], "attention"),
    ([], "not_found"),
    ({"id": "j1", "status": "success"}, "invalid_response"),
)

# --- identity ----------------------------------------------------------------------------------------

shape(
    "integer_id",
    "{echo: /run_id, state: /state, states: {pending: [RUNNING], success: [DONE]}}",
    ({"run_id": "j1", "state": "RUNNING"}, "pending"),
    ({"run_id": 7, "state": "RUNNING"}, "job_id_mismatch"),
    ({"state": "RUNNING"}, "job_id_mismatch"),
)
shape(
    "singleton_resource_state stale_result_while_running",
    """
    state: /export_status
    states: {pending: [queued, started, regeneration_in_progress], success: [finished], stop: {attention: [none]}}
    result: {require: {/_links/api_url: url}, secret: false, hosts: ["https://gitlab.example"]}
    """,
    ({"export_status": "regeneration_in_progress", "_links": {"api_url": "https://gitlab.example/old"}}, "pending"),
    ({"export_status": "finished", "_links": {"api_url": "https://gitlab.example/new"}}, "success"),
    ({"export_status": "none"}, "attention"),
    ({"export_status": "finished"}, "invalid_result"),
    request='request: {path: "/projects/{job_id}/export"}',
)
shape(
    "partial_result_while_running two_result_files status_call_is_result_call",
    """
    state: /status
    states: {pending: [scraping], success: [completed], failure: [failed]}
    result: {require: {/data: array}, keep: {errors_file: /errors_file}}
    """,
    ({"status": "scraping", "data": [1]}, "pending"),
    ({"status": "completed", "data": [1, 2], "errors_file": "f"}, "success"),
    ({"status": "completed", "data": []}, "invalid_result"),
)


@pytest.mark.parametrize("row", SHAPES, ids=lambda row: row.names[0])
def test_answers_of_the_shape_are_read(row: Shape):
    read_with = table(row.status, request=row.request, top=row.top)
    assert [means(read_with, said) for said, _ in row.answers] == [kind for _, kind in row.answers]


# --- requests and credentials ------------------------------------------------------------------------

REQUESTS: list[tuple[str, str, str, str, dict[str, Any]]] = [
    # names, request, top, job id -> what is sent
    (
        "id_in_query extra_context_in_status_query",
        'request: {path: /jobs, query: {id: "{job_id}", location: "{place}"}}',
        "params: {place: {from: caller, pattern: slug}}",
        "a b",
        {"url": "https://api.example/jobs?id=a%20b&location=sample"},
    ),
    (
        "composite_id",
        'request: {path: "/threads/{thread}/runs/{job_id}"}',
        "params: {thread: {from: caller, pattern: segment}}",
        "r/1",
        {"url": "https://api.example/threads/sample/runs/r%2F1"},
    ),
    (
        "id_is_a_path",
        'request: {path: "/v1/{+job_id}"}',
        "",
        "projects/p/operations/1",
        {"url": "https://api.example/v1/projects/p/operations/1"},
    ),
    (
        "arn_as_path_segment",
        'request: {path: "/job/{job_id}"}',
        "",
        "arn:aws:x:1:job/2",
        {"url": "https://api.example/job/arn%3Aaws%3Ax%3A1%3Ajob%2F2"},
    ),
    ("colon_verb", 'request: {path: "/v1/jobs/{job_id}:wait"}', "", "7", {"url": "https://api.example/v1/jobs/7:wait"}),
    (
        "host_from_key",
        "",
        'hosts: ["https://{dc}.api.example"]\nparams: {dc: {from: account, pattern: dns-label}}',
        "7",
        {"url": "https://sample.api.example/jobs/7"},
    ),
    (
        "post_status_with_id_in_body",
        'request: {method: POST, path: /transfer/get, json: {transfer_id: "{job_id}", deep: {seq: "{job_id:int}", all: true}}}',
        "",
        "7",
        {"method": "POST", "body": b'{"transfer_id":"7","deep":{"seq":7,"all":true}}'},
    ),
    (
        "form_encoded",
        'request: {method: POST, path: /status, form: {id: "{job_id}", kind: export}}',
        "",
        "a b",
        {"method": "POST", "body": b"id=a+b&kind=export"},
    ),
    (
        "graphql_post_status",
        'request: {method: POST, path: /graphql.json, graphql: {query: "query($id: ID!) { node(id: $id) { id } }", variables: {id: "{job_id}"}}}',
        "",
        "gid://shop/Bulk/1",
        {"body": b'{"query":"query($id: ID!) { node(id: $id) { id } }","variables":{"id":"gid://shop/Bulk/1"}}'},
    ),
    (
        "rpc_post_header_verb",
        'request: {method: POST, path: /, headers: {X-Amz-Target: Athena.GetQueryExecution}, json: {QueryExecutionId: "{job_id}"}}',
        "",
        "q1",
        {"url": "https://api.example/", "body": b'{"QueryExecutionId":"q1"}'},
    ),
    (
        "empty_parameters",
        'request: {path: "/jobs/{job_id}", query: {full: "1"}}',
        "",
        "7",
        {"url": "https://api.example/jobs/7?full=1"},
    ),
]


@pytest.mark.parametrize(("names", "request_text", "top", "job_id", "sent"), REQUESTS, ids=lambda row: str(row)[:30])
def test_requests_of_the_shape_are_built(names: str, request_text: str, top: str, job_id: str, sent: dict[str, Any]):
    read_with = table(STATES, request=request_text, top=top)
    request = status_request(read_with, sample_operation(read_with, job_id=job_id))
    assert {key: getattr(request, key) for key in sent} == sent


AUTHS: list[tuple[str, str, tuple[str, str, str]]] = [
    ("raw_key_auth", "{header: Authorization}", ("header", "Authorization", "")),
    (
        "custom_auth_scheme",
        '{header: Authorization, prefix: "ShippoToken "}',
        ("header", "Authorization", "ShippoToken "),
    ),
    ("basic_auth", "{basic: true}", ("basic", "", "")),
    ("key_in_query", "{query: api_key}", ("query", "api_key", "")),
    ("sigv4 jws_auth signed_params_auth", "{signer: acme.signers.sign}", ("signer", "acme.signers.sign", "")),
    ("bearer_auth", "bearer", ("bearer", "", "")),
    ("unauthenticated_capability_url", "none", ("none", "", "")),
]


@pytest.mark.parametrize(("names", "text", "built"), AUTHS, ids=lambda row: str(row)[:30])
def test_credentials_of_the_shape_are_described(names: str, text: str, built: tuple[str, str, str]):
    auth = table(STATES, top=f"auth: {text}").auth
    assert (auth.kind, auth.name, auth.prefix) == built


STORED = "header_status_url status_url_in_body relative_status_url unauthenticated_capability_url"


def test_a_status_url_that_the_provider_gave_is_asked_as_it_stands():
    """The table has no path then; the URL is stored with the operation."""
    read_with = table(STATES, request="request: {method: GET}")
    assert status_url(read_with, job_id="j1", params={}) == ""


PACE = "day_scale_polling tight_rate_limit"


def test_slow_providers_and_tight_limits_are_a_matter_of_the_schedule():
    read_with = table(
        STATES,
        top="""
        polling: {first: 6h, base: 6h, factor: 1, cap: 1d, min_interval: 1m}
        budget: {deadline: 14d, status_requests: 60}
        """,
    )
    assert (read_with.polling.min_interval.total_seconds(), read_with.budget.deadline.days) == (60, 14)


def test_a_lookup_that_lags_behind_has_a_window_for_404():
    """``eventually_consistent_lookup``: the job is accepted and not visible yet."""
    read_with = table(STATES + "not_found: {for: 1m, then: stop}")
    assert read_with.status.not_found.window.total_seconds() == 60
    assert means(read_with, answer({}, http=404)) == "not_found"


def test_guidance_and_error_texts_are_read_besides_the_state():
    read_with = table(
        STATES
        + "error: [/error/message, /message]\nprogress: [/done, /total]\nhints: [{body: /wait_ms, unit: milliseconds}]"
    )
    said = answer({"status": "running", "message": "slow", "done": 3, "total": 9, "wait_ms": 1500})
    seen = observe(read_with, said, operation=sample_operation(read_with, job_id="j1"), now=NOW)
    assert (seen.error, seen.progress) == ("slow", "3/9")
    assert seen.guidance is not None
    assert seen.guidance.wait is not None
    assert seen.guidance.wait.total_seconds() == 2


def covered() -> set[str]:
    names = [name for row in SHAPES for name in row.names]
    names += [name for row in (*REQUESTS, *AUTHS) for name in row[0].split()]
    return {*names, *STORED.split(), *PACE.split(), "eventually_consistent_lookup", *COVERED}


def test_every_known_shape_is_tested_or_belongs_elsewhere():
    known = {line for line in KNOWN.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")}
    assert known - covered() - set(ELSEWHERE) == set()
    assert set(ELSEWHERE) & covered() == set()
    assert set(ELSEWHERE) - known == set()
