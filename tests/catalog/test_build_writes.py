"""Every key about submitting, cancelling, results, webhooks and their examples ends in its field of the record."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobtrack.catalog import check_text, schema
from jobtrack.catalog.examples import NOW, sample_submission
from jobtrack.core.actions import (
    AcceptedSpec,
    CancelSpec,
    FetchSpec,
    Hop,
    Idempotency,
    IdPlace,
    LookupSpec,
    NextPage,
    Recovery,
    Segment,
    SentText,
    SentUrl,
    SubmitMeaning,
    SubmitRule,
    SubmitSpec,
    WebhookScheme,
    WebhookSpec,
)
from jobtrack.core.observation import Kind
from jobtrack.core.operation import OperationState
from jobtrack.core.place import Body, BodyKind, Condition, Header, HttpStatus, RequestSpec
from jobtrack.core.submission import LookupKind
from jobtrack.core.table import Example, Param, ParamPattern
from tests.catalog.builders import STATES, codes, table, table_text

SUBMIT = """
params: {region: {from: answer, pattern: slug}}
submit:
  request:
    method: PUT
    path: /jobs
    query: {ref: "{reference}"}
    headers: {X-Kind: "{payload/kind?}"}
    json: {a: "{payload/a}", count: 1}
  accepted:
    http: [201, 202]
    job_id: [/id, {header: X-Id}, {body: /name, segment: -1}, {join: [/a, {sent: "{operation_id}"}], with: ":"}]
    status_url: [/url, {body: /u}, {header: Location}, {request: true}]
    paths: [/jobs, /v2]
    handle: {header: X-Token}
    params: {region: /region}
    reads_status: true
  final: {http: [200]}
  already: {http: [409]}
  rejected: {http: [400]}
  denied: {http: [401]}
  busy: {http: [429]}
  rules:
    - {if: {http: 500, /code: never}, then: rejected, cite: "https://docs.example"}
  error: [/error, {header: X-Error}]
  idempotency:
    body: /meta/key
    lifetime: 2h
    scope: one project
    key: uuid
    mismatch: {http: [422]}
    replays_errors: true
  preconditions: [If-Match]
  ignore: [/at]
  lookup:
    request: {path: /jobs, query: {ref: "{operation_id}"}}
    items: /items
    match: {/ref: "{operation_id}"}
    found: /id
    absent: {http: [404]}
    status_url: /url
    params: {region: /region}
    absence_is_proof_after: 30s
    next: {token: /next, query: page, end: none}
    pages: 3
  recovery: {deadline: 90m, requests: 9, first: 1s, base: 3s, factor: 3, cap: 1m}
  within: 10m
  attempts: 4
"""


def at(text: str) -> Body:
    return Body(tuple(text.split("/")[1:]), text)


def one(text: str) -> IdPlace:
    return IdPlace(parts=(at(text),))


def test_every_key_of_submit_is_built():
    read = table(STATES, request='request: {path: "/jobs/{job_id}", query: {r: "{region}"}}', top=SUBMIT)
    assert read.params == {"region": Param(source="answer", pattern=ParamPattern.SLUG)}
    assert read.submit == SubmitSpec(
        request=RequestSpec(
            method="PUT",
            path="/jobs",
            query=(("ref", "{reference}"),),
            headers=(("X-Kind", "{payload/kind?}"),),
            body_kind=BodyKind.JSON,
            body={"a": "{payload/a}", "count": 1},
        ),
        accepted=AcceptedSpec(
            job_id=(
                one("/id"),
                IdPlace(parts=(Header("X-Id"),)),
                IdPlace(parts=(Segment(at("/name"), -1),)),
                IdPlace(parts=(at("/a"), SentText("{operation_id}")), joiner=":"),
            ),
            status_url=(at("/url"), at("/u"), Header("Location"), SentUrl()),
            paths=("/jobs", "/v2"),
            handle=Header("X-Token"),
            params=(("region", at("/region")),),
            reads_status=True,
        ),
        accepted_http=frozenset({201, 202}),
        final_http=frozenset({200}),
        already_http=frozenset({409}),
        rejected_http=frozenset({400}),
        denied_http=frozenset({401}),
        busy_http=frozenset({429}),
        mismatch_http=frozenset({422}),
        rules=(
            SubmitRule(
                conditions=(
                    Condition(at=HttpStatus(), equals=(500,)),
                    Condition(at=at("/code"), equals=("never",)),
                ),
                then=SubmitMeaning.REJECTED,
                line=30,
            ),
        ),
        error=(at("/error"), Header("X-Error")),
        idempotency=Idempotency(
            body=at("/meta/key"), lifetime=timedelta(hours=2), scope="one project", uuid=True, replays_errors=True
        ),
        preconditions=("If-Match",),
        ignore=(at("/at"),),
        lookup=LookupSpec(
            request=RequestSpec(path="/jobs", query=(("ref", "{operation_id}"),)),
            found=(one("/id"),),
            items=at("/items"),
            match=((at("/ref"), "{operation_id}"),),
            absent_http=frozenset({404}),
            status_url=(at("/url"),),
            params=(("region", at("/region")),),
            absence_is_proof_after=timedelta(seconds=30),
            next=NextPage(token=at("/next"), query="page", end="none"),
            pages=3,
        ),
        recovery=Recovery(
            deadline=timedelta(minutes=90),
            requests=9,
            first=timedelta(seconds=1),
            base=timedelta(seconds=3),
            factor=3.0,
            cap=timedelta(minutes=1),
        ),
        within=timedelta(minutes=10),
        attempts=4,
    )


SMALL = "submit: {request: {path: /jobs%s}, accepted: {http: [202], job_id: /id%s}%s}"


def test_what_a_submission_leaves_out_keeps_its_default():
    read = table(top=SMALL % ("", "", ""))
    assert read.submit == SubmitSpec(
        request=RequestSpec(method="POST", path="/jobs", body_kind=BodyKind.JSON, body="{payload}"),
        accepted=AcceptedSpec(job_id=(one("/id"),)),
        accepted_http=frozenset({202}),
    )
    bare = table()
    assert (bare.submit, bare.cancel, bare.result, bare.webhook) == (None, None, None, None)


@pytest.mark.parametrize(
    ("request_text", "kind", "body"),
    [
        (", method: DELETE", BodyKind.NONE, None),
        (", method: GET", BodyKind.NONE, None),
        (", method: PATCH", BodyKind.JSON, "{payload}"),
        (', form: "{payload}"', BodyKind.FORM, "{payload}"),
        (", form: {}", BodyKind.FORM, {}),
        (", json: []", BodyKind.JSON, []),
    ],
)
def test_the_body_of_a_submission(request_text: str, kind: BodyKind, body: object):
    spec = table(top=SMALL % (request_text, "", "")).submit
    assert spec is not None
    assert (spec.request.body_kind, spec.request.body) == (kind, body)


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("{body: /next}", NextPage(url=at("/next"))),
        ("{link: true}", NextPage(link=True)),
        ("{header: X-Next, query: c}", NextPage(token=Header("X-Next"), query="c")),
        ('{token: /t, query: c, end: "null"}', NextPage(token=at("/t"), query="c", end="null")),
    ],
)
def test_ways_a_list_goes_on(written: str, built: NextPage):
    spec = table(top=f"result: {{url: /u, next: {written}}}").result
    assert spec is not None
    assert spec.next == built


def test_every_key_of_cancel_is_built():
    read = table(
        STATES.replace("failed]", "failed], stop: {cancelled: [gone]}"),
        top="""
        cancel:
          request: {method: DELETE, path: "/jobs/{job_id}"}
          effect: "  Stops it. "
          accepted: {http: [202]}
          refused: {http: [409]}
          repeatable: true
        """,
    )
    assert read.cancel == CancelSpec(
        request=RequestSpec(method="DELETE", path="/jobs/{job_id}"),
        effect="Stops it.",
        accepted_http=frozenset({202}),
        refused_http=frozenset({409}),
        repeatable=True,
    )
    bare = table(top="cancel: {request: {}, effect: Stops it.}")  # the stored status URL is the address
    assert bare.cancel == CancelSpec(request=RequestSpec(method="POST"), effect="Stops it.")


def test_every_key_of_result_is_built():
    read = table(
        top="""
        result:
          request: {path: "/files/{file}"}
          values: {file: /file}
          each: /files
          item_request: {method: POST, path: /part, json: {id: "{part}", kind: "{file}"}}
          item_values: {part: /id}
          name: /name
          next: {link: true}
          pages: 7
          redirects: ["https://a.example"]
          credential_hosts: ["https://b.example"]
          types: [text/csv]
          max_bytes: 1000
          total: 1m
          attempts: 3
          ranges: true
          empty_ok: true
        """
    )
    assert read.result == FetchSpec(
        hop=Hop(request=RequestSpec(path="/files/{file}"), values=(("file", at("/file")),)),
        each=at("/files"),
        per_item=Hop(
            request=RequestSpec(
                method="POST", path="/part", body_kind=BodyKind.JSON, body={"id": "{part}", "kind": "{file}"}
            ),
            values=(("part", at("/id")),),
        ),
        name=at("/name"),
        next=NextPage(link=True),
        pages=7,
        redirects=("https://a.example",),
        credential_hosts=("https://b.example",),
        types=("text/csv",),
        max_bytes=1000,
        total=timedelta(minutes=1),
        attempts=3,
        ranges=True,
        empty_ok=True,
    )
    value = table(top="result: {value: /rows}").result
    assert value == FetchSpec(value=at("/rows"))
    for written, each in (("/a", at("/a")), ("[/a]", (at("/a"),)), ("[/a, /b/c]", (at("/a"), at("/b/c")))):
        places = table(top=f"result: {{each: {written}, url: /u}}").result
        assert places == FetchSpec(each=each, url=(at("/u"),))
    links = table(top="result: {url: [/u, {body: /w}, {header: Location}]}").result
    assert links == FetchSpec(url=(at("/u"), at("/w"), Header("Location")))


def test_every_key_of_webhook_is_built():
    read = table(
        top="""
        webhook:
          scheme: hmac
          header: X-Sig
          prefix: sha512=
          pairs: v1
          algorithm: sha512
          encoding: base64
          signed: [timestamp, ".", id, ".", body]
          timestamp: t
          timestamp_unit: milliseconds
          id_header: X-Id
          tolerance: 1m
          events: /events
          operation_id: /ref
          max_bytes: 100
        """
    )
    assert read.webhook == WebhookSpec(
        scheme=WebhookScheme.HMAC,
        header="X-Sig",
        prefix="sha512=",
        pairs="v1",
        algorithm="sha512",
        encoding="base64",
        signed=("timestamp", ".", "id", ".", "body"),
        timestamp="t",
        timestamp_unit="milliseconds",
        id_header="X-Id",
        tolerance=timedelta(minutes=1),
        events=at("/events"),
        operation_id=at("/ref"),
        max_bytes=100,
    )


# --- examples ----------------------------------------------------------------------------------------

LOOKUP = ', lookup: {request: {path: /jobs, query: {r: "{operation_id}"}}, found: /id, absent: {http: [404]}}'


def shown(example: str, request: str = "") -> str:
    return table_text(top=SMALL % (request, "", LOOKUP) + f"\nexamples: [{example}]")


@pytest.mark.parametrize(
    "example",
    [
        "{submit: true, reply: {http: 202, json: {id: j1}}, means: accepted, job_id: j1}",
        "{submit: true, reply: {http: 202, json: {id: j1}}, means: accepted}",
        "{submit: true, reply: {http: 500}, means: unknown, payload: {a: 1}}",
        "{lookup: true, reply: {http: 200, json: {id: j1}}, means: found, job_id: j1}",
        "{lookup: true, reply: {http: 404}, means: absent}",
        "{lookup: true, reply: {http: 500}, means: unreadable, payload: [1]}",
    ],
)
def test_good_examples(example: str):
    assert codes(shown(example)) == []


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (
            "{submit: true, reply: {http: 500}, means: accepted}",
            "reads as unknown, not as accepted (HTTP 500: the server failed; the table does not say what it proves)",
        ),
        (
            "{submit: true, reply: {http: 202, json: {id: j1}}, means: accepted, job_id: j2}",
            "The job id j1 is read here, not j2; mend the table or the example.",
        ),
        (
            "{submit: true, reply: {http: 202, json: {}}, means: accepted, job_id: j2}",
            "The job id none is read here, not j2",
        ),
        ("{lookup: true, reply: {http: 200, json: {}}, means: found}", "reads as absent, not as found"),
        (
            "{lookup: true, reply: {http: 200, json: {id: j1}}, means: found, job_id: j2}",
            "The job id j1 is read here, not j2",
        ),
        (
            "{submit: true, reply: {http: 202}, means: pending}",
            "pending is nothing that such an answer means; write one of accepted, final, already, rejected,",
        ),
        ("{lookup: true, reply: {http: 202}, means: denied}", "write one of found, many, absent, more, unreadable."),
        ("{reply: {http: 202}, means: accepted}", "write one of pending, success,"),
        (
            "{submit: true, lookup: true, reply: {http: 500}, means: unknown}",
            "Write either submit or lookup here, not both.",
        ),
        (
            "{reply: {http: 500}, means: transport_failure, payload: {}}",
            "payload goes with submit or lookup; remove it.",
        ),
    ],
)
def test_examples_that_say_something_else(example: str, message: str):
    (found,) = [finding for finding in check_text(shown(example)).findings if finding.level == "error"]
    assert (found.code, message in found.message) == ("example", True), found.message


def test_an_example_needs_a_submission_that_can_be_built():
    example = "{submit: true, reply: {http: 202, json: {id: j1}}, means: accepted, payload: {}}"
    request = ', json: {a: "{payload/a}"}'
    (found,) = [one for one in check_text(shown(example, request)).findings if one.code == "example"]
    assert "The submission cannot be built (the table needs a value at /a of the payload); write payload:" in str(found)
    assert codes(shown(example.replace(", payload: {}", ""), request)) == []
    tracked = table_text(top=f"examples: [{example}]")
    assert codes(tracked) == ["example"]


def test_examples_are_kept_with_what_was_answered():
    read = table(
        top=SMALL % ("", "", LOOKUP)
        + """
examples:
  - {submit: true, reply: {http: 202, json: {id: j1}}, means: accepted, payload: {a: 1}}
  - {lookup: true, reply: {http: 404}, means: absent}
"""
    )
    content = (("Content-Type", "application/json"),)
    assert read.examples == (
        Example(
            of="submit",
            http=202,
            headers=content,
            body=b'{"id": "j1"}',
            means="accepted",
            job_id="",
            payload={"a": 1},
            line=read.examples[0].line,
        ),
        Example(of="lookup", http=404, headers=(), body=b"", means="absent", job_id="", line=read.examples[0].line + 1),
    )


def test_the_submission_that_examples_are_read_for():
    """Nothing is known yet that only an acceptance tells; needed parts of the payload are made up."""
    read = table(
        STATES,
        request='request: {path: "/jobs/{job_id}", query: {r: "{region}"}}',
        top=SUBMIT.replace(
            "json: {a:", 'json: {deep: "{payload/x/y}", also: "{payload/x/z}", under: "{payload/a/b}", a:'
        ),
    )
    operation, sent = sample_submission(read)
    assert (operation.state, operation.job_id, operation.accepted_at) == (OperationState.SUBMITTING, "", None)
    assert (operation.params, operation.created_at, operation.reference) == ({}, NOW, "example")
    assert len(operation.idempotency_key) == 36
    assert operation.idempotency_key.encode() in sent.body
    assert b'"deep":"example","also":"example","under":"example"' in sent.body


def test_a_sample_of_another_payload_is_another_submission():
    read = table(top=SMALL % ("", "", ""))
    (_, first), (_, second) = sample_submission(read, payload={"a": 1}), sample_submission(read, payload={"a": 2})
    assert replace(first, body=b"") == replace(second, body=b"")
    assert (first.body, second.body) == (b'{"a":1}', b'{"a":2}')


def test_the_schema_knows_every_meaning_of_an_example():
    known = schema()["$defs"]["example"]["properties"]["means"]["enum"]
    meanings = {*Kind, *SubmitMeaning, *LookupKind} - {Kind.TARGET_DENIED}
    assert sorted(known) == sorted(str(meaning) for meaning in meanings)
    then = schema()["$defs"]["submit"]["properties"]["rules"]["items"]["properties"]["then"]["enum"]
    assert then == [meaning.value for meaning in SubmitMeaning]
    scheme = schema()["$defs"]["webhook"]["properties"]["scheme"]["enum"]
    assert scheme == [each.value for each in WebhookScheme]


def test_a_result_that_was_cut_away_is_no_missing_start():
    assert codes(table_text(top="result: {total: 5m, value: {a: b}}")) == ["value"]
