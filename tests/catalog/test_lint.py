"""What a schema cannot say about a table: contradictions, what can never happen, what nobody checks."""

from __future__ import annotations

import pytest

from jobtrack.catalog import check_text
from tests.catalog.builders import STATES, codes, table_text, warnings

PLAIN = {"no_echo", "no_result", "no_examples"}
"""Warnings of the bare table that the rows are built around."""


def test_the_bare_table_has_no_errors():
    assert codes(table_text()) == []
    assert set(warnings(table_text())) == PLAIN


RULES = "{rules: [%s, {if: {/z: 1}, then: success}]}"
TWO = "{state: [/a, /b], states: {success: [[x, w]], %s}}"

ERRORS = [
    # states
    ("two_classes", "{state: /s, states: {pending: [a], success: [a]}}"),
    ("two_classes", "{state: /s, states: {pending: [a], success: [A]}}"),
    ("two_classes", "{state: {at: /s, fold_case: true}, states: {pending: [a], success: [A]}}"),
    ("two_classes", "{state: /s, states: {pending: [{missing: either}], success: [x, {missing: null}]}}"),
    ("two_classes", TWO % "pending: [[a, {missing: absent}]], failure: [[A, {missing: either}]]"),
    ("two_classes", "{state: {at: /s, type: integer}, states: {pending: [1], success: [1]}}"),
    ("look_alike", "{state: {at: /s, type: integer}, states: {pending: [1], success: ['2']}}"),
    ("look_alike", "{state: {at: /s, type: boolean}, states: {pending: [false], success: [1]}}"),
    ("look_alike", "{state: /s, states: {pending: [1], success: [x]}}"),
    ("look_alike", "{state: /s, states: {pending: [true], success: [x]}}"),
    ("parts", "{state: /s, states: {pending: [[a, b]], success: [x]}}"),
    ("parts", TWO % "pending: [a]"),
    ("type", "{state: {http: status, type: string}, states: {success: [200]}}"),
    ("type", "{state: {header: X, type: integer}, states: {success: [x]}}"),
    ("place", "{state: {at: /s, header: X}, states: {success: [x]}}"),
    ("place", "{state: {fold_case: true}, states: {success: [x]}}"),
    ("wildcard", "{state: /s, states: {pending: ['*'], success: [x]}}"),
    ("wildcard", "{state: /s, states: {pending: [default], success: [x]}}"),
    ("wildcard", "{state: /s, states: {pending: ['.*'], success: [x]}}"),
    ("wildcard", RULES % "{if: {/a: ['*']}, then: pending}"),
    ("no_end", "{state: /s, states: {pending: [a], stop: {attention: [b]}}}"),
    ("no_success", "{state: /s, states: {pending: [a], failure: [b]}}"),
    ("no_state", "{states: {success: [a]}, rules: [{if: {/z: 1}, then: success}]}"),
    ("no_states", "{state: /s, rules: [{if: {/z: 1}, then: success}]}"),
    ("open", "{rules: [{if: {/z: 1}, then: success}], open: {then: pending, cite: 'https://x.example'}}"),
    ("unreachable", "{state: {http: status}, states: {pending: [404], success: [200]}}"),
    # rules
    ("unreachable", RULES % "{if: {/a: x}, then: pending}, {if: {/a: x, /b: w}, then: failure}"),
    ("unreachable", RULES % "{if: {/a: {present: true}}, then: pending}, {if: {/a: x}, then: failure}"),
    ("unreachable", RULES % "{if: {/a: [x, w]}, then: pending}, {if: {/a: x}, then: failure}"),
    ("unreachable", RULES % "{if: {/a: {fold_case: X}}, then: pending}, {if: {/a: x}, then: failure}"),
    (
        "unreachable",
        RULES % "{if: {/a: {missing: either}}, then: pending}, {if: {/a: {missing: absent}}, then: failure}",
    ),
    ("unreachable", RULES % "{if: {/a: {above: 1}}, then: pending}, {if: {/a: {above: 3}}, then: failure}"),
    ("unreachable", RULES % "{if: {/a: {above: 1}}, then: pending}, {if: {/a: [2, 3]}, then: failure}"),
    ("unreachable", RULES % "{if: {/a: {empty: false}}, then: pending}, {if: {/a: x}, then: failure}"),
    ("unreachable", RULES % "{if: {/a: {present: false}}, then: pending}, {if: {/a: {missing: null}}, then: failure}"),
    ("unreachable", RULES % "{if: {http: 401}, then: pending}"),
    ("unreachable", RULES % "{if: {http: [401, 403]}, then: pending}"),
    # places
    ("place", "{state: /a~b, states: {success: [x]}}"),
    ("place", "{state: $.a..b, states: {success: [x]}}"),
    ("place", "{state: '$.a[*]', states: {success: [x]}}"),
    ("place", "{state: '$.a[', states: {success: [x]}}"),
    ("place", "{state: '$.a | $.b', states: {success: [x]}}"),
    ("place", RULES % "{if: {/a~: 1}, then: pending}"),
    ("place", "{state: /s, states: {success: [x]}, hints: [{body: /a, header: X, unit: seconds}]}"),
    ("place", "{state: /s, states: {success: [x]}, hints: [{unit: seconds}]}"),
    ("place", "{state: /s, states: {success: [x]}, expires_at: {unit: timestamp}}"),
    # codes
    ("read_http", "{read_http: [2xx, 401], state: /s, states: {success: [x]}}"),
    ("read_http", "{read_http: [4xx], state: /s, states: {success: [x]}}"),
    ("read_http", "{read_http: [5xx], state: /s, states: {success: [x]}}"),
    ("read_http", "{read_http: [503], state: /s, states: {success: [x]}}"),
    # result
    (
        "secret_kept",
        "{state: /s, states: {success: [x]}, result: {require: {/u: url}, secret: true, hosts: ['https://f.example'], keep: {u: /u}}}",
    ),
]


@pytest.mark.parametrize(("code", "status"), ERRORS)
def test_errors_of_the_status_part(code: str, status: str):
    assert codes(table_text(status)) == [code]


TOPS = [
    ("host", 'hosts: ["api.example"]'),
    ("host", 'hosts: ["http://api.example"]'),
    ("host", 'hosts: ["ftp://api.example"]'),
    ("host", 'hosts: ["https://api.example/"]'),
    ("host", 'hosts: ["https://api.example/v1"]'),
    ("host", 'hosts: ["https://user@api.example"]'),
    ("host", 'hosts: ["https://*.example"]'),
    ("host", 'hosts: ["https://api.example:99999"]'),
    ("host", 'hosts: ["http://127.0.0.1:8000"]'),
    ("host", 'hosts: ["https://localhost"]'),
    ("host", 'hosts: ["http://[::1]:8000"]'),
    ("host", 'hosts: ["http://127.0.0.1/x"]\nallow_loopback: true'),
    ("host", 'hosts: ["https://{host}"]\nparams: {host: {from: caller, pattern: dns-label}}'),
    ("host", 'hosts: ["https://api.{end}"]\nparams: {end: {from: caller, pattern: dns-label}}'),
    ("host", 'hosts: ["https://{shop}.example"]\nparams: {shop: {from: caller, pattern: slug}}'),
    ("placeholder", 'hosts: ["https://{region}.example"]'),
    ("placeholder", 'hosts: ["https://{job_id}.example"]'),
    ("param", "params: {job_id: {from: caller, pattern: slug}}"),
    ("auth", "auth: {header: X, query: w}"),
    ("auth", "auth: {prefix: x}"),
    ("auth", "auth: {query: x, prefix: w}"),
    ("no_look", "polling: {first: 2h}"),
    ("no_look", "budget: {deadline: 5s, status_requests: 1}"),
    ("too_long", "polling: {base: 5m, cap: 1m}"),
    ("too_long", "polling: {min_interval: 10m}"),
    ("too_long", "polling: {max_guidance: 60d}"),
    ("too_long", "gate: {max_hold: 900000000d}"),
    ("too_long", "limits: {connect: 30s, total: 20s}"),
    ("too_long", "limits: {read: 30s}"),
    ("too_long", "limits: {total: 5m}"),
    ("too_long", "limits: {connect: 600ms, read: 100ms, total: 500ms}"),
    ("zero", "polling: {base: 0s}"),
    ("zero", "polling: {min_interval: 0ms}"),
    ("zero", "budget: {extension: {time: 0s, status_requests: 1, times: 1}}"),
    ("zero", "gate: {breaker_hold: 0s}"),
    ("zero", "retention: {job: 0s}"),
    ("zero", "retention: {result: 0h}"),
    ("example", "examples: [{reply: {http: 200, json: {status: done}}, means: pending}]"),
    ("example", "examples: [{reply: {http: 500}, means: pending}]"),
    ("example", "examples: [{reply: {http: 200, json: {}, text: x}, means: pending}]"),
]


@pytest.mark.parametrize(("code", "top"), TOPS)
def test_errors_of_the_top(code: str, top: str):
    assert set(codes(table_text(top=top))) == {code}


REQUESTS = [
    ("placeholder", 'request: {path: "/jobs/{jobid}"}'),
    ("placeholder", 'request: {path: "/jobs/{}"}'),
    ("placeholder", 'request: {path: "/jobs/{job_id"}'),
    ("placeholder", 'request: {path: /jobs, query: {id: "{+job_id}"}}'),
    ("placeholder", 'request: {path: /jobs, headers: {X-Job: "{id}"}}'),
    ("placeholder", 'request: {method: POST, path: /jobs, json: {id: "job {job_id}"}}'),
    ("placeholder", 'request: {method: POST, path: /jobs, json: [{id: "{jobid}"}]}'),
    ("placeholder", 'request: {method: POST, path: /jobs, graphql: {query: "{ x }", variables: {id: "{id}"}}}'),
    ("method", 'request: {path: /jobs, json: {id: "{job_id}"}}'),
    ("method", 'request: {method: GET, path: /jobs, form: {id: "{job_id}"}}'),
    ("request", 'request: {method: POST, path: /jobs, json: {id: "{job_id}"}, form: {id: "{job_id}"}}'),
    ("header", "request: {path: /jobs, headers: {Authorization: x}}"),
    ("header", "request: {path: /jobs, headers: {host: x.example}}"),
]


@pytest.mark.parametrize(("code", "request_text"), REQUESTS)
def test_errors_of_the_request(code: str, request_text: str):
    assert codes(table_text(request=request_text)) == [code]


def test_a_query_credential_may_not_stand_in_the_query_too():
    text = table_text(request="request: {path: /jobs, query: {key: x}}", top="auth: {query: key}")
    assert codes(text) == ["auth"]


WARNINGS = [
    ("overlap", RULES % "{if: {/a: x}, then: pending}, {if: {/b: w}, then: failure}", ""),
    ("overlap", RULES % "{if: {/a: {above: 1}}, then: pending}, {if: {/a: {above: 0}, /b: w}, then: failure}", ""),
    ("open", "{state: /s, states: {success: [x]}, open: {then: pending, cite: 'https://x.example'}}", ""),
    ("twice", "{state: /s, states: {success: [x, x]}}", ""),
    ("result_url", "{state: /s, states: {success: [x]}, result: {require: {/u: url}}}", ""),
    ("result_url", "{state: /s, states: {success: [x]}, result: {require: {/u: url}, secret: true}}", ""),
    ("never", "{state: /s, states: {success: [x]}, stall_after: 2h}", ""),
    ("never", "{state: /s, states: {success: [x]}, not_found: {for: 2h}}", ""),
    ("unit", "{state: /s, states: {success: [x]}, hints: [{body: /wait_ms, unit: seconds}]}", ""),
    ("too_few_requests", STATES, "budget: {status_requests: 5}"),
    ("too_few_requests", STATES, "polling: {factor: 1}"),
    ("too_few_requests", STATES, "budget: {deadline: 40m, status_requests: 40}"),
    ("removed", STATES, "retention: {job: 59m}"),
    ("unused_param", STATES, "params: {region: {from: caller, pattern: slug}}"),
]


@pytest.mark.parametrize(("code", "status", "top"), WARNINGS)
def test_warnings(code: str, status: str, top: str):
    text = table_text(status, top=top)
    assert codes(text) == []
    assert set(warnings(text)) - PLAIN == {code}


@pytest.mark.parametrize(
    ("requests", "sentence"),
    [
        (40, "40 requests last 36m 22s with the shortest waits, the deadline is 40m; write more"),
        (
            10,
            "10 requests last 6m 22s with the shortest waits and 12m 41s with the longest, the deadline is 40m; write more",
        ),
    ],
)
def test_the_reach_of_the_requests_is_told(requests: int, sentence: str):
    text = table_text(top=f"budget: {{deadline: 40m, status_requests: {requests}}}")
    (message,) = [finding.message for finding in check_text(text).findings if finding.code == "too_few_requests"]
    assert sentence in message


SILENT = [
    # an exception before the general rule, and rules that cannot meet
    RULES % "{if: {/a: x, /b: w, /z: 2}, then: pending}, {if: {/a: x, /z: 2}, then: failure}",
    RULES % "{if: {/a: x, /z: 2}, then: pending}, {if: {/a: w, /z: 2}, then: failure}",
    RULES % "{if: {/a: {fold_case: [X]}, /z: 2}, then: pending}, {if: {/a: w, /z: 2}, then: failure}",
    RULES % "{if: {/z: {missing: null}}, then: pending}, {if: {/z: {missing: absent}}, then: failure}",
    RULES % "{if: {/z: {missing: null}}, then: pending}, {if: {/z: {present: true}, /a: x}, then: success}",
    RULES % "{if: {/z: 2, /a: {empty: true}}, then: pending}, {if: {/z: 2, /a: {empty: false}}, then: failure}",
    RULES % "{if: {/z: 2, /a: {empty: true}}, then: pending}, {if: {/z: 2, /a: x}, then: failure}",
    RULES % "{if: {/z: 2, /a: {empty: true}}, then: pending}, {if: {/z: 2, /a: {above: 1}}, then: failure}",
    RULES % "{if: {/z: {above: 1}}, then: pending}",
    RULES % "{if: {http: [404, 401], /z: 2}, then: pending}",
    # the same meaning may be reached in two ways
    RULES % "{if: {/a: x}, then: success}, {if: {/b: w}, then: success}",
    # the same words in other letters, in one class
    "{state: /s, states: {success: [DONE, done], pending: ['1']}}",
    "{state: {at: /s, type: boolean}, states: {pending: [false], success: [true]}}",
    "{read_http: [200, 404], state: {http: status}, states: {pending: [404], success: [200]}}",
]


@pytest.mark.parametrize("status", SILENT)
def test_what_is_fine(status: str):
    assert codes(table_text(status)) == []
    assert set(warnings(table_text(status))) - PLAIN == set()


def test_a_good_table_is_silent():
    text = table_text(
        """
        echo: /id
        state: /status
        states: {pending: [running], success: [done]}
        result: {require: {}}
        """,
        top="""
        hosts: ["https://{region}.api.example", "https://{host}", "http://127.0.0.1:{port}", "http://[::1]"]
        allow_loopback: true
        params:
          region: {from: caller, pattern: dns-label}
          host: {from: account, pattern: slug}
          port: {from: account, pattern: integer}
        examples: [{reply: {http: 200, json: {id: 7, status: done}}, means: success}]
        """,
    )
    assert check_text(text).findings == ()


EXPLICIT = "{echo: /id, state: /s, states: {success: [x]}, result: %s}"


@pytest.mark.parametrize("result", ["{require: {}}", "{one_of: [/a, /b]}", "{require: {/a: any}}"])
def test_a_table_that_says_what_success_carries_is_not_warned(result: str):
    assert set(warnings(table_text(EXPLICIT % result))) == {"no_examples"}


def test_what_was_cut_away_is_not_reported_as_missing():
    """One mistake, one finding: a wrong echo is not "no echo" as well."""
    text = table_text(
        "{echo: 5, state: 6, states: {success: x}, result: 7}",
        top="examples: 8\npolling: {first: 9}\nhosts: ['https://a.example']",
    )
    lines = [finding.path for finding in check_text(text).findings]
    assert sorted(lines) == [
        "examples",
        "polling.first",
        "status.echo",
        "status.result",
        "status.state",
        "status.states.success",
    ]


def test_a_broken_table_does_not_run_its_examples():
    text = table_text(
        "{state: /s, states: {pending: [a], success: [a]}}",
        top="examples: [{reply: {http: 200, json: {s: a}}, means: success}]",
    )
    assert codes(text) == ["two_classes"]
