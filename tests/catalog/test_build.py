"""Every key of a table ends in its field of the record."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256

import pytest

from jobtrack.catalog import load_text, places, sample_operation
from jobtrack.catalog.examples import NOW
from jobtrack.core.operation import OperationState
from jobtrack.core.place import Body, BodyKind, Condition, Gap, Header, HttpStatus, RequestSpec
from jobtrack.core.reply import Trouble
from jobtrack.core.table import (
    Auth,
    AuthKind,
    BudgetSpec,
    Example,
    Extension,
    FieldType,
    GatePolicy,
    GateScope,
    Hint,
    HintUnit,
    Instant,
    Meaning,
    NotFound,
    OpenStates,
    Param,
    ParamPattern,
    Pick,
    Polling,
    RequestLimits,
    ResultSpec,
    Retention,
    Rule,
    StatePart,
    StateRow,
    StateType,
    StatusSpec,
)

FULL = """\
jobtrack: 1
id: full
name: Everything at once
docs: https://docs.example/jobs
revision: 7
hosts: ["https://{region}.api.example", "https://api.example:8443"]
params:
  region: {from: account, pattern: dns-label}
  owner: {from: caller, pattern: segment}
auth: {header: X-Api-Key, prefix: "Token "}
polling: {first: 500ms, base: 2s, factor: 1.5, cap: 1m, min_interval: 250ms, max_guidance: 1d}
budget:
  deadline: 2h
  status_requests: 300
  transport_failures: 7
  rate_limited: 8
  extension: {time: 1h, status_requests: 40, times: 2}
gate: {scope: operation, max_hold: 2h, breaker_failures: 0, breaker_hold: 1m}
limits: {connect: 1s, read: 2s, total: 30s, max_bytes: 2048}
on_failure: close
status:
  request:
    method: POST
    path: "/{owner}/jobs/{+job_id}"
    query: {full: "1"}
    headers: {X-Version: "{owner}"}
    json: {id: "{job_id}", deep: [1, 1.5, true, null]}
  read_http: [2xx, 404]
  echo: {header: X-Job}
  pick: {list: $.items, id: /id, where: {/kind: [export, report], http: 200}, none: not_found}
  state: [{at: /s, fold_case: true}, {at: $.n, type: integer}, {header: X-S}, {http: status}]
  states:
    pending:
      - [a, 1, {missing: absent}, 200]
    success:
      - [b, {missing: null}, {missing: either}, 200]
    stop:
      attention:
        - [c, 2, {missing: "null"}, 200]
  rules:
    - {if: {/x: 1, header X-Y: {present: false}}, then: invalid, cite: "https://docs.example/errors"}
    - if:
        /a: {missing: either}
        /b: {empty: true}
        /c: {above: 3}
        /d: {same_as: {http: status}}
        /e: {fold_case: [Word, other]}
        /f: {fold_case: word}
        /g: true
        /h: {present: true}
      then: rate_limited
  open: {then: pending, cite: "https://docs.example/states", starts_with: [run]}
  result:
    require: {/url: url, header X-Size: string, "$.list[-1]": any}
    one_of: [/a, /b]
    keep: {size: {header: X-Size}, rows: /rows}
    hosts: ["https://files.example"]
    secret: true
    empty_ok: true
  error: [/error/message, {header: X-Error}]
  progress: /progress
  expires_at: {header: X-Expires, unit: http_date}
  hints: [{body: /wait, unit: seconds}, {header: X-Wait, unit: milliseconds}]
  not_found: {for: 90s, after_notice: 20s, then: stop}
  stall_after: 1h
  stop_on: [tls, dns, tls]
retention: {job: 30d, result: 24h}
"""


def at(text: str) -> Body:
    return places.body(text)


def test_every_key_is_built():
    table = load_text(FULL, "full.yaml")
    assert (table.id, table.name, table.docs, table.revision, table.source) == (
        "full",
        "Everything at once",
        "https://docs.example/jobs",
        7,
        "full.yaml",
    )
    assert (table.text, table.digest) == (FULL, sha256(FULL.encode()).hexdigest())
    assert table.hosts == ("https://{region}.api.example", "https://api.example:8443")
    assert table.params == {
        "region": Param(source="account", pattern=ParamPattern.DNS_LABEL),
        "owner": Param(source="caller", pattern=ParamPattern.SEGMENT),
    }
    assert table.auth == Auth(kind=AuthKind.HEADER, name="X-Api-Key", prefix="Token ")
    assert table.polling == Polling(
        first=timedelta(milliseconds=500),
        base=timedelta(seconds=2),
        factor=1.5,
        cap=timedelta(minutes=1),
        min_interval=timedelta(milliseconds=250),
        max_guidance=timedelta(days=1),
    )
    assert table.budget == BudgetSpec(
        deadline=timedelta(hours=2),
        status_requests=300,
        transport_failures=7,
        rate_limited=8,
        extension=Extension(time=timedelta(hours=1), status_requests=40, times=2),
    )
    assert table.gate == GatePolicy(
        scope=GateScope.OPERATION,
        max_hold=timedelta(hours=2),
        breaker_failures=0,
        breaker_hold=timedelta(minutes=1),
    )
    assert table.limits == RequestLimits(
        connect=timedelta(seconds=1), read=timedelta(seconds=2), total=timedelta(seconds=30), max_bytes=2048
    )
    assert table.retention == Retention(job=timedelta(days=30), result=timedelta(hours=24))
    assert table.on_failure == "close"


def test_every_key_of_the_status_part_is_built():
    status = load_text(FULL, "full.yaml").status
    expected = StatusSpec(
        request=RequestSpec(
            method="POST",
            path="/{owner}/jobs/{+job_id}",
            query=(("full", "1"),),
            headers=(("X-Version", "{owner}"),),
            body_kind=BodyKind.JSON,
            body={"id": "{job_id}", "deep": [1, 1.5, True, None]},
        ),
        read_http=frozenset({*range(200, 300), 404}),
        echo=Header("X-Job"),
        pick=Pick(
            list_at=at("$.items"),
            where=(
                Condition(at=at("/kind"), equals=("export", "report")),
                Condition(at=HttpStatus(), equals=(200,)),
            ),
            id_at=at("/id"),
            none_means=Meaning.NOT_FOUND,
        ),
        state=(
            StatePart(at=at("/s"), fold=True),
            StatePart(at=at("$.n"), type=StateType.INTEGER),
            StatePart(at=Header("X-S")),
            StatePart(at=HttpStatus(), type=StateType.INTEGER),
        ),
        rows=(
            StateRow(values=("a", 1, Gap.ABSENT, 200), meaning=Meaning.PENDING),
            StateRow(values=("b", Gap.NULL, Gap.EITHER, 200), meaning=Meaning.SUCCESS),
            StateRow(values=("c", 2, Gap.NULL, 200), meaning=Meaning.ATTENTION),
        ),
        rules=(
            Rule(
                conditions=(
                    Condition(at=at("/x"), equals=(1,)),
                    Condition(at=Header("X-Y"), present=False),
                ),
                then=Meaning.INVALID,
                line=41,
                cite="https://docs.example/errors",
            ),
            Rule(
                conditions=(
                    Condition(at=at("/a"), gap=Gap.EITHER),
                    Condition(at=at("/b"), empty=True),
                    Condition(at=at("/c"), above=3),
                    Condition(at=at("/d"), same_as=HttpStatus()),
                    Condition(at=at("/e"), equals=("Word", "other"), fold=True),
                    Condition(at=at("/f"), equals=("word",), fold=True),
                    Condition(at=at("/g"), equals=(True,)),
                    Condition(at=at("/h"), present=True),
                ),
                then=Meaning.RATE_LIMITED,
                line=42,
            ),
        ),
        open=OpenStates(cite="https://docs.example/states", starts_with=("run",)),
        result=ResultSpec(
            require=(
                (at("/url"), FieldType.URL),
                (Header("X-Size"), FieldType.STRING),
                (at("$.list[-1]"), FieldType.ANY),
            ),
            one_of=(at("/a"), at("/b")),
            keep=(("size", Header("X-Size")), ("rows", at("/rows"))),
            hosts=("https://files.example",),
            secret=True,
            empty_ok=True,
        ),
        error=(at("/error/message"), Header("X-Error")),
        progress=(at("/progress"),),
        expires_at=Instant(at=Header("X-Expires"), unit=HintUnit.HTTP_DATE),
        hints=(
            Hint(at=at("/wait"), unit=HintUnit.SECONDS),
            Hint(at=Header("X-Wait"), unit=HintUnit.MILLISECONDS),
        ),
        not_found=NotFound(window=timedelta(seconds=90), after_notice=timedelta(seconds=20)),
        stall_after=timedelta(hours=1),
        stop_on=frozenset({Trouble.TLS, Trouble.DNS}),
    )
    assert status == expected


SMALL = """\
jobtrack: 1
id: small
name: Small
docs: https://docs.example/jobs
revision: 1
hosts: ["https://api.example"]
status:
  request: {}
  state: $.s
  states: {success: [done]}
  expires_at: /e
"""


def test_what_is_left_out_keeps_its_default():
    table = load_text(SMALL)
    assert (table.polling, table.budget, table.gate, table.limits) == (
        Polling(),
        BudgetSpec(),
        GatePolicy(),
        RequestLimits(),
    )
    assert (table.auth, table.params, table.examples, table.on_failure) == (Auth(), {}, (), "escalate")
    assert table.status == StatusSpec(
        request=RequestSpec(),
        state=(StatePart(at=at("$.s")),),
        rows=(StateRow(values=("done",), meaning=Meaning.SUCCESS),),
        expires_at=Instant(at=at("/e")),
    )


def test_examples_are_built():
    text = (
        SMALL.replace(
            "revision",
            "examples:\n  - {reply: {http: 200, json: {s: done}}, means: success}\n"
            "  - {reply: {http: 200, text: hello, headers: {Content-Type: text/html}}, means: invalid_response, job_id: j9}\n"
            "  - {reply: {http: 204}, means: invalid_response}\n"
            "  - {reply: {http: 200, json: {s: done}, headers: {content-type: application/problem+json}}, means: success}\n"
            "revision",
        )
        .replace("hosts", "params: {p: {from: caller, pattern: slug}}\nhosts")
        .replace("  request: {}", '  request: {path: "/{p}"}\n  echo: /id')
    )
    text = (
        text.replace("{s: done}", "{id: 7, s: done}")
        .replace("text: hello", "text: hello")
        .replace("job_id: j9", "job_id: j9, params: {p: x}")
    )
    assert load_text(text).examples == (
        Example(
            http=200,
            headers=(("Content-Type", "application/json"),),
            body=b'{"id": 7, "s": "done"}',
            means="success",
            job_id="7",
            line=6,
        ),
        Example(
            http=200,
            headers=(("Content-Type", "text/html"),),
            body=b"hello",
            means="invalid_response",
            job_id="j9",
            params={"p": "x"},
            line=7,
        ),
        Example(http=204, headers=(), body=b"", means="invalid_response", job_id="job-1", line=8),
        Example(
            http=200,
            headers=(("content-type", "application/problem+json"),),
            body=b'{"id": 7, "s": "done"}',
            means="success",
            job_id="7",
            line=9,
        ),
    )


@pytest.mark.parametrize(
    ("auth", "built"),
    [
        ("bearer", Auth(kind=AuthKind.BEARER)),
        ("none", Auth()),
        ("{basic: true}", Auth(kind=AuthKind.BASIC)),
        ("{query: key}", Auth(kind=AuthKind.QUERY, name="key")),
        ("{header: X-Key}", Auth(kind=AuthKind.HEADER, name="X-Key")),
        ("{signer: acme.sign}", Auth(kind=AuthKind.SIGNER, name="acme.sign")),
    ],
)
def test_ways_to_send_a_credential(auth: str, built: Auth):
    assert load_text(f"{SMALL}auth: {auth}\n").auth == built


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("/a/b", ("a", "b")),
        ("/", ("",)),
        ("/a~1b/~0c/0", ("a/b", "~c", "0")),
        ("$", ()),
        ("$.a[0]['b c'][-1]", ("a", 0, "b c", -1)),
    ],
)
def test_places_in_the_body(text: str, tokens: tuple[str | int, ...]):
    assert places.body(text) == Body(tokens, text, pointer=text.startswith("/"))


@pytest.mark.parametrize(
    "text", ["", "a", "/a~", "/~2", "$.a[*]", "$..a", "$.a[1:2]", "$[?@.a]", "$.a[", "$.a, $.b", "$['a','b']"]
)
def test_places_that_are_refused(text: str):
    with pytest.raises(places.BadPlace, match=r"write|name one"):
        places.body(text)


def test_header_places_are_checked():
    assert places.keyed("header X-Name") == Header("X-Name")
    with pytest.raises(places.BadPlace, match="header name"):
        places.keyed("header X\nY")


def test_the_operation_that_examples_are_read_for():
    operation = sample_operation(load_text(FULL), job_id="j1", params={"owner": "me"})
    assert (operation.state, operation.job_id, operation.params) == (
        OperationState.RUNNING,
        "j1",
        {"region": "sample", "owner": "me"},
    )
    assert operation.accepted_at < NOW < operation.budget.deadline
