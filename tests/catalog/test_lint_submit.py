"""What a schema cannot say about submissions, look-ups, cancellation, results and webhooks (R-TABLE-1, R-TABLE-5)."""

from __future__ import annotations

import pytest

from jobtrack.catalog import check_text
from tests.catalog.builders import STATES, codes, table_text, warnings

PLAIN = {"no_echo", "no_result", "no_examples"}
"""Warnings of the bare table that the rows are built around."""

URL_STATUS = "request: {method: GET}"
"""The status request of a table whose jobs are followed by a URL from an answer."""


def submit(more: str = "", *, accepted: str = "http: [202], job_id: /id", request: str = "path: /jobs") -> str:
    """The submit part of a table."""
    return f"submit: {{request: {{{request}}}, accepted: {{{accepted}}}{', ' if more else ''}{more}}}"


def lookup(more: str = "", *, request: str = 'path: /jobs, query: {ref: "{operation_id}"}', found: str = "/id") -> str:
    return submit(f"lookup: {{request: {{{request}}}, found: {found}{', ' if more else ''}{more}}}")


PARAM = "params: {region: {from: answer, pattern: slug}}\n"
USES = 'request: {path: "/jobs/{job_id}", query: {region: "{region}"}}'

ERRORS: list[tuple[str, str, str]] = [
    # code, the part, request of the status part
    # one code, two meanings
    ("two_lists", submit("rejected: {http: [400]}, denied: {http: [400]}"), ""),
    ("two_lists", submit("final: {http: [204]}", accepted="http: [202, 204], job_id: /id"), ""),
    ("two_lists", submit("final: {http: [202]}"), ""),
    (
        "two_lists",
        submit("idempotency: {header: K, lifetime: 1d, mismatch: {http: [422]}}, rejected: {http: [422]}"),
        "",
    ),
    ("two_lists", submit("already: {http: [2xx]}"), ""),
    # a code that proves less than the list says
    ("doubt", submit("rejected: {http: [500]}"), ""),
    ("doubt", submit("rejected: {http: [408]}"), ""),
    ("doubt", submit("rejected: {http: [429]}"), ""),
    ("doubt", submit("rejected: {http: [4xx]}"), ""),
    ("doubt", submit("rejected: {http: [303]}"), ""),
    ("doubt", submit("denied: {http: [503]}"), ""),
    ("doubt", submit("busy: {http: [500]}"), ""),
    ("doubt", submit("busy: {http: [408]}"), ""),
    ("doubt", submit("busy: {http: [201]}"), ""),
    ("doubt", submit("already: {http: [500]}"), ""),
    ("doubt", submit("already: {http: [429]}"), ""),
    ("doubt", submit(accepted="http: [500], job_id: /id"), ""),
    ("doubt", submit(accepted="http: [409], job_id: /id"), ""),
    ("doubt", submit("idempotency: {header: K, lifetime: 1d, mismatch: {http: [500]}}"), ""),
    ("doubt", submit("rules: [{if: {http: 503}, then: rejected}]"), ""),
    ("doubt", submit("rules: [{if: {http: [400, 502]}, then: denied}]"), ""),
    ("doubt", lookup("absent: {http: [404, 500]}"), ""),
    ("doubt", lookup("absent: {http: [401]}"), ""),
    # rules
    ("unreachable", submit("rules: [{if: {/a: x}, then: already}, {if: {/a: x, /b: w}, then: rejected}]"), ""),
    ("unreachable", submit("rules: [{if: {/a: {present: true}}, then: busy}, {if: {/a: x}, then: busy}]"), ""),
    ("wildcard", submit("rules: [{if: {/code: '*'}, then: rejected}]"), ""),
    ("unreachable", submit("final: {http: [500]}"), ""),
    ("unreachable", submit("final: {http: [304]}"), ""),
    ("placeholder", submit(accepted='http: [202], job_id: /id, status_url: /u, paths: ["/{job_id}"]'), ""),
    # following
    ("no_acceptance", submit(accepted="job_id: /id"), ""),
    ("no_acceptance", submit("rules: [{if: {/a: x}, then: rejected}]", accepted="job_id: /id"), ""),
    ("unfollowed", submit(accepted="http: [202]"), "request: {path: /all}"),
    ("no_address", submit(), URL_STATUS),
    ("no_address", submit(accepted="http: [202], job_id: /id, paths: [/jobs]"), ""),
    (
        "submits_again",
        submit(accepted="http: [202], job_id: /id, status_url: [{request: true}]"),
        "request: {method: POST}",
    ),
    ("no_job_id", submit(accepted="http: [202], status_url: /url"), ""),
    (
        "no_job_id",
        submit(accepted="http: [202], status_url: /url"),
        'request: {method: POST, json: {id: "{job_id:int}"}}',
    ),
    ("no_job_id", submit(accepted="http: [202], status_url: /url"), "request: {method: GET}\necho: /id"),
    (
        "no_job_id",
        submit(accepted="http: [202], status_url: /url"),
        "request: {method: GET}\npick: {list: /items, id: /id}",
    ),
    (
        "no_job_id",
        submit(accepted="http: [202], status_url: /url") + '\nresult: {request: {path: "/f/{job_id}"}}',
        URL_STATUS,
    ),
    # placeholders
    ("placeholder", submit(request='path: "/jobs/{job_id}"'), ""),
    ("placeholder", submit(request='path: /jobs, query: {h: "{handle}"}'), ""),
    ("placeholder", submit(request='path: /jobs, query: {p: "{payload}"}'), ""),
    ("placeholder", submit(request='path: "/jobs/{payload/name?}"'), ""),
    ("placeholder", submit(request='path: "/jobs/{payload/~name}"'), ""),
    ("placeholder", submit(request='path: "/jobs/{payloads/name}"'), ""),
    ("placeholder", submit(request='path: /jobs, json: {a: "x {payload/a}"}'), ""),
    ("placeholder", submit(request='path: /jobs, json: {a: "{nobody}"}'), ""),
    ("placeholder", submit(request='path: /jobs, query: {k: "{idempotency_key}"}'), ""),
    ("placeholder", lookup(request='path: "/jobs/{job_id}", query: {ref: "{operation_id}"}'), ""),
    ("placeholder", lookup('match: {/ref: "{job}"}'), ""),
    ("placeholder", submit(accepted='http: [202], job_id: {sent: "{job_id}"}'), ""),
    ("placeholder", submit(), 'request: {path: "/jobs/{job_id}", query: {h: "{handle}"}}'),
    ("placeholder", submit(), 'request: {path: "/jobs/{job_id}", query: {h: "{payload/a}"}}'),
    ("placeholder", submit(), 'request: {path: "/jobs/{job_id}", query: {h: "{operation_id}"}}'),
    ("placeholder", 'cancel: {request: {path: "/jobs/{job_id}", json: {a: "{payload/a}"}}, effect: Stops.}', ""),
    ("placeholder", 'result: {request: {path: "/files/{file}"}}', ""),
    ("placeholder", 'result: {each: /files, item_request: {path: "/files/{file}"}}', ""),
    ("placeholder", 'result: {request: {path: "/files/{item}"}}', ""),
    ("param", "params: {handle: {from: caller, pattern: slug}}", ""),
    ("param", "params: {reference: {from: caller, pattern: slug}}", ""),
    ("not_sent", submit(accepted='http: [202], job_id: {sent: "{payload/name}"}', request="path: /jobs, json: {}"), ""),
    (
        "not_sent",
        submit(
            'lookup: {request: {path: /jobs, query: {name: "{payload/name}"}}, found: /id}',
            request='path: "/{payload/kind}/{payload/size}", json: {name: "{payload/named}"}',
        ),
        "",
    ),
    # parameters that an answer gives
    ("answer_param", "params: {region: {from: answer, pattern: slug}}", USES),
    ("answer_param", PARAM + submit(), USES),
    ("answer_param", submit(accepted="http: [202], job_id: /id, params: {region: /region}"), ""),
    (
        "answer_param",
        "params: {region: {from: caller, pattern: slug}}\n"
        + submit(accepted="http: [202], job_id: /id, params: {region: /region}"),
        USES,
    ),
    (
        "answer_param",
        PARAM
        + submit(
            'lookup: {request: {path: /jobs, query: {r: "{operation_id}"}}, found: /id}',
            accepted="http: [202], job_id: /id, params: {region: /region}",
        ),
        USES,
    ),
    (
        "placeholder",
        PARAM
        + submit(
            request='path: /jobs, query: {r: "{region}"}', accepted="http: [202], job_id: /id, params: {region: /r}"
        ),
        "",
    ),
    (
        "placeholder",
        'hosts: ["https://{region}.example"]\n'
        + PARAM
        + submit(accepted="http: [202], job_id: /id, params: {region: /r}"),
        "",
    ),
    # look-ups
    ("unidentified", lookup(request="path: /jobs"), ""),
    ("unidentified", lookup("items: /items", request="path: /jobs"), ""),
    ("unidentified", lookup("items: /items, match: {/kind: export}", request="path: /jobs"), ""),
    ("place", lookup("items: /items", found="{header: X-Id}"), ""),
    ("place", lookup('items: /items, match: {header X-Ref: "{operation_id}"}', request="path: /jobs"), ""),
    ("next", lookup("next: {link: true}"), ""),
    ("method", lookup(request='method: POST, path: /jobs, form: {ref: "{operation_id}"}'), ""),
    ("method", lookup(request='method: POST, path: "/jobs/{operation_id}"'), ""),
    ("method", lookup(request='path: /jobs, json: {ref: "{operation_id}"}'), ""),
    # keys and conditions
    ("idempotency", submit("idempotency: {lifetime: 1d}"), ""),
    ("idempotency", submit("idempotency: {header: K, query: k, lifetime: 1d}"), ""),
    ("idempotency", submit("idempotency: {header: k, lifetime: 1d}", request="path: /jobs, headers: {K: x}"), ""),
    ("idempotency", submit("idempotency: {query: k, lifetime: 1d}", request="path: /jobs, query: {k: x}"), ""),
    ("idempotency", submit("idempotency: {body: /k, lifetime: 1d}", request="method: GET, path: /jobs"), ""),
    ("place", submit("idempotency: {body: $.k, lifetime: 1d}"), ""),
    ("missing_key", submit("idempotency: {header: K}"), ""),
    ("header", submit("idempotency: {header: X-Request-Id, lifetime: 1d}"), ""),
    ("header", submit("preconditions: [Authorization]"), ""),
    ("header", submit(request="path: /jobs, headers: {Cookie: a}"), ""),
    ("auth", "auth: {query: key}\n" + submit(request="path: /jobs, query: {key: x}"), ""),
    # durations
    ("zero", submit("within: 0s"), ""),
    ("zero", submit("recovery: {deadline: 0s}"), ""),
    ("zero", submit("recovery: {base: 0s}"), ""),
    ("too_long", submit("recovery: {base: 5m, cap: 1m}"), ""),
    ("too_short", lookup("absence_is_proof_after: 1h"), ""),
    ("too_short", lookup("absence_is_proof_after: 2h"), ""),
    # ids, addresses and pages as they are written
    ("place", submit(accepted="http: [202], job_id: {body: /id, header: X}"), ""),
    ("place", submit(accepted="http: [202], job_id: {segment: -1}"), ""),
    ("place", submit(accepted='http: [202], job_id: {sent: "{operation_id}", segment: 1}'), ""),
    ("place", submit(accepted="http: [202], job_id: {join: [/a, /b], segment: 1}"), ""),
    ("place", submit(accepted="http: [202], job_id: {join: [/a, /b], body: /c}"), ""),
    ("place", submit(accepted='http: [202], job_id: {body: /c, with: ":"}'), ""),
    ("place", submit(accepted="http: [202], job_id: {join: [/a, {segment: 1}]}"), ""),
    ("place", submit(accepted="http: [202], job_id: /id, status_url: {header: X, request: true}"), ""),
    ("place", submit(accepted="http: [202], job_id: /id, status_url: {header: X, body: /u}"), ""),
    ("place", lookup('items: /items, match: {/r: "{reference}"}, next: {body: /n, link: true}'), ""),
    ("next", lookup('items: /items, match: {/r: "{reference}"}, next: {body: /n, query: p}'), ""),
    ("next", lookup('items: /items, match: {/r: "{reference}"}, next: {token: /n}'), ""),
    # cancelling
    (
        "two_lists",
        'cancel: {request: {path: "/{job_id}"}, effect: Stops., accepted: {http: [404]}, refused: {http: [404]}}',
        "",
    ),
    ("doubt", 'cancel: {request: {path: "/{job_id}"}, effect: Stops., refused: {http: [500]}}', ""),
    ("doubt", 'cancel: {request: {path: "/{job_id}"}, effect: Stops., refused: {http: [204]}}', ""),
    ("doubt", 'cancel: {request: {path: "/{job_id}"}, effect: Stops., accepted: {http: [429]}}', ""),
    ("unidentified", "cancel: {request: {path: /cancel}, effect: Stops.}", ""),
    ("effect", 'cancel: {request: {path: "/{job_id}"}, effect: " "}', ""),
    ("value", 'cancel: {request: {method: GET, path: "/{job_id}"}, effect: Stops.}', ""),
    # results
    ("no_start", "result: {total: 5m}", ""),
    ("two_starts", "result: {value: /a, url: /b}", ""),
    ("two_starts", "result: {value: /a, request: {path: /b}}", ""),
    ("two_starts", "result: {value: /a, each: /b}", ""),
    ("each", "result: {each: /files}", ""),
    ("each", "result: {each: [/a, /b]}", ""),
    ("each", "result: {each: [/a, /b, $.a], url: $}", ""),
    ("place", "result: {each: [/a, $..b], url: $}", ""),
    ("each", "result: {item_request: {path: /b}}", ""),
    ("each", 'result: {each: /files, url: /u, item_request: {path: "/{item}"}}', ""),
    ("next", "result: {url: /u, pages: 3}", ""),
    ("result", "result: {url: /u, values: {a: /a}}", ""),
    ("result", "result: {url: /u, item_values: {a: /a}}", ""),
    ("place", 'result: {request: {path: "/{a}"}, values: {a: {http: status}}}', ""),
    ("host", 'result: {url: /u, redirects: ["https://a.example/x"]}', ""),
    ("host", "result: {url: /u, redirects: [a.example]}", ""),
    ("host", 'result: {url: /u, credential_hosts: ["ftp://files.example"]}', ""),
    ("zero", "result: {url: /u, total: 0s}", ""),
    ("too_long", "result: {url: /u, total: 7h}", ""),
    # webhooks
    ("notice", "webhook: {scheme: standard-webhooks}", ""),
    ("notice", "webhook: {scheme: standard-webhooks, job_id: /a, operation_id: /b}", ""),
    ("scheme", "webhook: {scheme: hmac, job_id: /a}", ""),
    ("scheme", "webhook: {scheme: standard-webhooks, job_id: /a, header: X}", ""),
    ("scheme", "webhook: {scheme: token, job_id: /a, algorithm: sha1}", ""),
    ("scheme", "webhook: {scheme: token, job_id: /a, tolerance: 5m}", ""),
    ("scheme", "webhook: {scheme: hmac, header: X, job_id: /a, tolerance: 5m}", ""),
    ("signed", "webhook: {scheme: hmac, header: X, job_id: /a, signed: [url]}", ""),
    ("signed", 'webhook: {scheme: hmac, header: X, job_id: /a, signed: [timestamp, ".", body]}', ""),
    ("signed", "webhook: {scheme: hmac, header: X, job_id: /a, signed: [id, body]}", ""),
    ("signed", "webhook: {scheme: hmac, header: X, job_id: /a, timestamp: T}", ""),
    (
        "zero",
        "webhook: {scheme: hmac, header: X, job_id: /a, timestamp: T, signed: [timestamp, body], tolerance: 0s}",
        "",
    ),
]


@pytest.mark.parametrize(("code", "top", "status"), ERRORS)
def test_errors(code: str, top: str, status: str):
    request, _, more = status.partition("\n")
    assert set(codes(table_text(STATES + more, request=request, top=top))) == {code}


WARNINGS = [
    ("overlap", submit("rules: [{if: {/a: x}, then: already}, {if: {/b: w}, then: rejected}]")),
    ("lifetime", submit("idempotency: {header: K, lifetime: 1m}")),
    ("no_cancelled", 'cancel: {request: {path: "/{job_id}"}, effect: Stops.}'),
]


@pytest.mark.parametrize(("code", "top"), WARNINGS)
def test_warnings(code: str, top: str):
    text = table_text(top=top)
    assert codes(text) == []
    assert set(warnings(text)) - PLAIN == {code}


SILENT: list[tuple[str, str]] = [
    (submit(), ""),
    (submit("busy: {http: [429, 503]}, rejected: {http: [400, 422]}, denied: {http: [401, 403]}"), ""),
    (submit("already: {http: [409]}, rules: [{if: {http: 503, /code: never_made}, then: rejected}]"), ""),
    (submit(accepted="http: [202]", more='lookup: {request: {path: "/jobs/{operation_id}"}, found: /id}'), ""),
    (submit("final: {http: [200]}", accepted="http: []").replace("http: [], ", "").replace("{http: []}", "{}"), ""),
    (submit(accepted="http: [202], status_url: {header: Location}, paths: [/jobs]"), URL_STATUS),
    (submit(accepted="http: [202], status_url: {request: true}", request="method: GET, path: /stats"), URL_STATUS),
    (
        submit(accepted="http: [202], job_id: /id, handle: /token"),
        'request: {path: "/jobs/{job_id}", headers: {X-T: "{handle}"}}',
    ),
    (submit(request='path: /jobs, json: {a: "{payload/a?}", b: ["{payload/b}"], ref: "{reference}"}'), ""),
    (submit(request='path: "/{payload/kind}", query: {k: "{payload/k?}"}, form: "{payload}"'), ""),
    (submit("idempotency: {header: K, lifetime: 0s}", request='path: /jobs, query: {k: "{idempotency_key}"}'), ""),
    (submit("idempotency: {body: /meta/k, lifetime: 1d, key: uuid}"), ""),
    (submit("preconditions: [If-Match], ignore: [/at, /by]"), ""),
    (lookup("absence_is_proof_after: 30s, absent: {http: [404]}"), ""),
    (
        lookup(
            'items: /items, match: {/ref: "job-{operation_id}", /kind: export}, next: {link: true}',
            request="path: /jobs",
        ),
        "",
    ),
    (lookup('items: /items, match: {/name: "{payload/name}"}', request="path: /jobs"), ""),
    (lookup(request='method: POST, path: /find, json: {ref: "{operation_id}"}'), ""),
    (submit(accepted='http: [202], job_id: [{sent: "{operation_id}"}, {join: [/a, {header: X}], with: "/"}]'), ""),
    (
        PARAM + submit(accepted="http: [202], job_id: /id, params: {region: {header: X-Region}}"),
        USES,
    ),
    ("result: {value: /rows, next: {body: /next}, pages: 3}", ""),
    ('result: {request: {path: "/files/{file}"}, values: {file: /file}, url: [/url, {header: Location}]}', ""),
    ('result: {each: /files, item_request: {path: "/f/{+item}/{kind}"}, item_values: {kind: /kind}, name: /name}', ""),
    ('result: {each: [/a_id, /b_id], item_request: {path: "/f/{item}"}}', ""),
    ('result: {each: [/a_url, "$.b[0]"], url: $, name: /name}', ""),
    ("webhook: {scheme: token, operation_id: /ref}", ""),
    ("webhook: {scheme: standard-webhooks, job_id: /data/id, tolerance: 1m}", ""),
    ('webhook: {scheme: hmac, header: X, pairs: v1, timestamp: t, signed: [timestamp, ".", body], job_id: /id}', ""),
]


@pytest.mark.parametrize(("top", "status"), SILENT)
def test_what_is_fine(top: str, status: str):
    text = table_text(request=status, top=top)
    assert [str(finding) for finding in check_text(text).findings if finding.code not in PLAIN] == []


@pytest.mark.parametrize(
    ("top", "finding"),
    [
        (
            submit("rejected: {http: [400, 500]}"),
            (
                "6:95: 500 by itself does not prove that this request can never make a job; remove it, "
                "or write a rule that also tests what the body says."
            ),
        ),
        (
            submit("already: {http: [409]}, busy: {http: [409]}"),
            "6:110: 409 stands under already (line 7) already; keep it in one list.",
        ),
        (
            submit(request='path: "/jobs/{job_id}"'),
            (
                "6:26: {job_id} is known only once the provider has the job; write one of: {operation_id}, "
                "{payload/name}, {reference}."
            ),
        ),
        (submit().replace("submit", "sumbit"), "6:1: The key sumbit is not known here; did you mean submit?"),
        (
            submit("lookup: {found: /id}"),
            "6:80: The key request is missing; write request: with a mapping with path.",
        ),
        (
            submit(accepted="http: 202, job_id: /id"),
            "6:51: 202 does not fit here; write a list of codes such as [200, 202].",
        ),
    ],
)
def test_a_finding_says_where_and_what_to_write(top: str, finding: str):
    (found,) = [one for one in check_text(table_text(top=top), "t").findings if one.level == "error"]
    assert str(found) == f"t:{int(finding.partition(':')[0]) + 1}:{finding.partition(':')[2]}"


def test_a_part_that_was_cut_away_is_not_reported_as_missing():
    """One mistake, one finding: a submit part without a path is not "no acceptance", "answer_param" or the like."""
    text = table_text(request=USES, top=PARAM + "submit: {request: {}, accepted: {http: [202], params: {region: /r}}}")
    assert codes(text) == ["missing_key"]
