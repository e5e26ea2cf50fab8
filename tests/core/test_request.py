"""R-SUB-6, R-SEC-1, INV-30: the status request goes only where the table allows, and says only what the table says."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.request import (
    allowed_origins,
    check_job_id,
    check_params,
    status_request,
    status_url,
    target_allowed,
)
from jobtrack.core.table import Param, ParamPattern, ProviderTable
from jobtrack.core.target import origin_of, result_allowed
from jobtrack.errors import UsageError
from tests.core.builders import OPERATION, TABLE, table

HOST = "https://api.provider.example"


def asking(path: str = "/v1/jobs/{job_id}", **spec: object) -> ProviderTable:
    return table({"request": RequestSpec(path=path, **spec)})  # type: ignore[arg-type]


def with_params(path: str, hosts: tuple[str, ...] = (HOST,), **patterns: ParamPattern) -> ProviderTable:
    params = {name: Param(source="caller", pattern=pattern) for name, pattern in patterns.items()}
    return replace(asking(path), hosts=hosts, params=params)


# --- the address ------------------------------------------------------------------------------------

ADDRESSES = [
    ("/v1/jobs/{job_id}", "job-1", "/v1/jobs/job-1"),
    ("/v1/jobs/{job_id}", "70403117937023", "/v1/jobs/70403117937023"),  # B031
    ("/v1/jobs/{job_id}", "20180814033130818988", "/v1/jobs/20180814033130818988"),  # B031
    ("/v1/jobs/{job_id}", "0", "/v1/jobs/0"),
    ("/v1/jobs/{job_id}", "a/b?c#d e%", "/v1/jobs/a%2Fb%3Fc%23d%20e%25"),
    ("/v1/jobs/{job_id}", "é😀", "/v1/jobs/%C3%A9%F0%9F%98%80"),
    ("/v1/jobs/{job_id}:wait", "..x", "/v1/jobs/..x:wait"),
    ("/v1/{+job_id}", "projects/p 1/operations/9", "/v1/projects/p%201/operations/9"),
    ("/v1/{+job_id}", "a%2e%2e/b", "/v1/a%252e%252e/b"),
    ("/v1/jobs", "job-1", "/v1/jobs"),
]


@pytest.mark.parametrize(("path", "job_id", "expected"), ADDRESSES)
def test_status_url(path: str, job_id: str, expected: str) -> None:
    assert status_url(asking(path), job_id=job_id, params={}) == HOST + expected


REFUSED_IDS = [
    ("/v1/{job_id}", ""),
    ("/v1/{job_id}", "."),
    ("/v1/{job_id}", ".."),
    ("/v1/{job_id}", "a\x00b"),
    ("/v1/{job_id}", "a\r\nX: y"),
    ("/v1/{job_id}", "a\x7f"),
    ("/v1/{job_id}", "a\x85"),
    ("/v1/{job_id}", "a\ud800"),
    ("/v1/{+job_id}", "a/../b"),
    ("/v1/{+job_id}", "a/./b"),
    ("/v1/{+job_id}", "a//b"),
    ("/v1/{+job_id}", "/a"),
    ("/v1/{+job_id}", "a/"),
    ("/v1/{+job_id}", "a?b"),
    ("/v1/{+job_id}", "a#b"),
    ("/v1/{+job_id}", "a\\b"),
]


@pytest.mark.parametrize(("path", "job_id"), REFUSED_IDS)
def test_job_ids_that_would_change_the_address_are_refused(path: str, job_id: str) -> None:
    with pytest.raises(UsageError):
        status_url(asking(path), job_id=job_id, params={})


@given(st.text(st.characters(codec=None, categories=None), max_size=20))
def test_an_accepted_job_id_is_exactly_one_segment(job_id: str) -> None:
    try:
        url = status_url(asking("/v1/jobs/{job_id}/state"), job_id=job_id, params={})
    except UsageError:
        return
    path = urlsplit(url).path.split("/")
    assert (path[:3], path[4:], urlsplit(url).query) == (["", "v1", "jobs"], ["state"], "")
    assert target_allowed(url, TABLE, {})


def test_query_values_are_quoted() -> None:
    asked = asking("/v1/status", query=(("id", "{job_id}"), ("view", "a b&c")))
    assert status_url(asked, job_id="x&y=1 é", params={}) == f"{HOST}/v1/status?id=x%26y%3D1%20%C3%A9&view=a%20b%26c"


def test_a_table_without_a_path_builds_no_address() -> None:
    assert status_url(asking(""), job_id="job-1", params={}) == ""
    with pytest.raises(UsageError, match="builds no status address"):
        status_request(asking(""), OPERATION)


def test_a_placeholder_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no value for \{region\}"):
        status_url(asking("/v1/{region}"), job_id="job-1", params={})


# --- parameters -------------------------------------------------------------------------------------

P = ParamPattern
PATTERNS = [
    (P.DNS_LABEL, ["eu", "eu-1", "a" * 63], ["", "-eu", "eu-", "eu.x", "a" * 64, "e_u", "é", "eu\n"]),
    (P.SLUG, ["my.repo_1-x", "..."], ["", ".", "..", "a/b", "a b", "é", "x\n", "a" * 201]),
    (P.SEGMENT, ["a b", "é", "x;y", "..."], ["", ".", "..", "a/b", "a\\b", "a?b", "a#b", "a\nb", "a\x00b", "\ud800"]),
    (P.UUID, ["0f8fad5b-d9cb-469f-a165-70867728950E"], ["", "0f8fad5b", "0f8fad5bd9cb469fa16570867728950e", "g" * 36]),
    (P.INTEGER, ["0", "7", "-7", "9" * 20], ["", "07", "-0", "1.0", "+1", "٣", "1 ", "9" * 65]),
]


@pytest.mark.parametrize(("pattern", "value"), [(pattern, value) for pattern, good, _ in PATTERNS for value in good])
def test_parameters_that_fit(pattern: ParamPattern, value: str) -> None:
    check_params(with_params("/v1", x=pattern), {"x": value})


@pytest.mark.parametrize(
    ("pattern", "value"), [(pattern, value) for pattern, _, bad in PATTERNS for value in [*bad, None, 7]]
)
def test_parameters_that_do_not_fit(pattern: ParamPattern, value: object) -> None:
    with pytest.raises(UsageError, match=f"the parameter 'x' of table acme is not a {pattern}"):
        check_params(with_params("/v1", x=pattern), {"x": value})


def test_missing_and_unknown_parameters_are_named() -> None:
    with pytest.raises(UsageError, match="table acme needs the parameter 'owner'"):
        check_params(with_params("/v1", owner=P.SLUG, repo=P.SLUG), {})
    with pytest.raises(UsageError, match="table acme has no parameter 'owner'"):
        check_params(with_params("/v1"), {"owner": "x"})


def test_parameters_of_the_answer_are_not_given_before_it() -> None:
    asked = with_params("/v1", x=P.SLUG)
    told = replace(asked, params={**asked.params, "y": Param(source="answer", pattern=P.SLUG)})
    check_params(told, {"x": "1"}, submitting=True)
    check_params(told, {"x": "1", "y": "2"})
    with pytest.raises(UsageError, match="needs the parameter 'y'"):
        check_params(told, {"x": "1"})
    with pytest.raises(UsageError, match="the provider tells the parameter 'y'"):
        check_params(told, {"x": "1", "y": "2"}, submitting=True)
    with pytest.raises(UsageError, match="has no parameter 'z'"):
        check_params(told, {"x": "1", "z": "2"}, submitting=True)


def test_parameters_fill_host_and_path() -> None:
    asked = with_params("/r/{repo}/{job_id}", ("https://{region}.api.example",), region=P.DNS_LABEL, repo=P.SEGMENT)
    assert status_url(asked, job_id="1", params={"region": "eu", "repo": "a b"}) == "https://eu.api.example/r/a%20b/1"


def test_a_parameter_cannot_lead_to_another_host() -> None:
    asked = with_params("/v1", ("https://{region}.api.example",), region=P.SEGMENT)
    for region in ("x@evil.example", "evil.example:443", "a b", "a%2e"):
        with pytest.raises(UsageError, match="not on one of its hosts"):
            status_url(asked, job_id="1", params={"region": region})


# --- origins ----------------------------------------------------------------------------------------

ORIGINS = [
    ("https://api.provider.example/a?b#c", "https://api.provider.example"),
    ("HTTPS://API.Provider.Example/", "https://api.provider.example"),
    ("https://api.provider.example:443/", "https://api.provider.example"),
    ("https://api.provider.example:8443", "https://api.provider.example:8443"),
    ("https://[2001:db8::1]:8443/", "https://[2001:db8::1]:8443"),
    ("https://api.provider.example/a..b/...", "https://api.provider.example"),
    ("http://api.provider.example/", ""),
    ("http://127.0.0.1:8000/", ""),
    ("ftp://api.provider.example/", ""),
    ("//api.provider.example/", ""),
    ("/v1/jobs", ""),
    ("", ""),
    ("https:///x", ""),
    ("https://user@api.provider.example/", ""),
    ("https://ok.example\\@evil.example/", ""),
    ("https://api.provider.example%00.evil.example/", ""),
    ("https://api.provider.example./", ""),
    ("https://api..example/", ""),
    ("https://api。provider。example/", ""),
    ("https://api.provider\t.example/", ""),
    (" https://api.provider.example/", ""),
    ("https://api.provider.example/\n", ""),
    ("https://api.provider.example:0443/", ""),
    ("https://api.provider.example:65535/", "https://api.provider.example:65535"),
    ("https://api.provider.example:65536/", ""),
    ("https://api.provider.example:99999/", ""),
    ("https://api.provider.example:/", ""),
    ("https://api.provider.example:x/", ""),
    ("https://api.provider.example:1:2/", ""),
    ("https://[::1/", ""),
    ("https://[fe80::1%25eth0]/", ""),
    ("https://api.provider.example/a/../b", ""),
    ("https://api.provider.example/a/%2E%2e/b", ""),
    ("https://api.provider.example/a%2f..", ""),
    ("https://api.provider.example/.", ""),
]


@pytest.mark.parametrize(("url", "expected"), ORIGINS)
def test_origin_of(url: str, expected: str) -> None:
    assert origin_of(url) == expected


LOOPBACK = [
    ("http://127.0.0.1:8000/x", "http://127.0.0.1:8000"),
    ("http://localhost/x", "http://localhost"),
    ("http://localhost:80/x", "http://localhost"),
    ("http://[::1]:8000/x", "http://[::1]:8000"),
    ("http://10.0.0.1/x", ""),
    ("http://127.0.0.1.evil.example/x", ""),
]


@pytest.mark.parametrize(("url", "expected"), LOOPBACK)
def test_plain_http_only_for_loopback(url: str, expected: str) -> None:
    assert origin_of(url, loopback=True) == expected


def test_a_request_names_the_origins_of_its_own_operation() -> None:
    regional = with_params("/jobs/{job_id}", ("https://{region}.api.example",), region=ParamPattern.DNS_LABEL)
    operation = replace(OPERATION, params={"region": "eu"}, status_url="https://eu.api.example/jobs/1")
    assert status_request(regional, operation).origins == ("https://eu.api.example",)


def test_allowed_origins() -> None:
    hosts = (
        HOST,
        "https://{region}.api.example:8443",
        "https://{other}.x.example",
        "https://y.example/path",
        "http://127.0.0.1:9",
    )
    many = replace(TABLE, hosts=hosts)
    assert allowed_origins(many, {"region": "eu"}) == {HOST, "https://eu.api.example:8443"}
    assert allowed_origins(replace(many, allow_loopback=True), {}) == {HOST, "http://127.0.0.1:9"}


TARGETS = [
    (f"{HOST}/v1/jobs/1", True),
    (f"{HOST}:443/v1/jobs/1", True),
    (f"{HOST}:8443/v1/jobs/1", False),
    ("https://files.provider.example/r/1", False),
    ("https://api.provider.example.evil.example/", False),
    ("https://xapi.provider.example/", False),
    ("not a url", False),
    ("", False),
]


@pytest.mark.parametrize(("url", "expected"), TARGETS)
def test_target_allowed(url: str, expected: bool) -> None:
    assert target_allowed(url, TABLE, {}) is expected


def test_results_may_also_be_on_result_hosts() -> None:
    assert result_allowed("https://files.provider.example/r/1?sig=x", TABLE, {})
    assert result_allowed(f"{HOST}/r/1", TABLE, {})
    assert not result_allowed("https://evil.example/r/1", TABLE, {})


# --- the request ------------------------------------------------------------------------------------


def test_the_request_is_complete_but_for_credentials() -> None:
    request = status_request(TABLE, OPERATION)
    assert (request.operation_id, request.fence, request.provider, request.account) == ("op-1", 7, "acme", "default")
    assert (request.method, request.url, request.body) == ("GET", f"{HOST}/v1/jobs/job-1", b"")
    assert request.headers == (
        ("Accept", "application/json"),
        ("Cache-Control", "no-cache"),
        ("X-Request-Id", "op-1:7"),
    )


def test_the_stored_address_is_the_address() -> None:
    stored = replace(OPERATION, status_url=f"{HOST}/v0/old/1?x=1")
    assert status_request(asking(query=(("a", "b"),)), stored).url == f"{HOST}/v0/old/1?x=1"


def test_a_sealed_address_counts_before_the_rows_own() -> None:
    stored = replace(OPERATION, status_url=f"{HOST}/v0/1")
    assert status_request(TABLE, stored, status_url=f"{HOST}/v0/1?sig=s").url == f"{HOST}/v0/1?sig=s"


def test_a_handle_is_what_some_providers_are_asked_with() -> None:
    asked = asking("/v1/get/{handle}", method="POST", body_kind=BodyKind.JSON, body={"token": "{handle}"})
    request = status_request(asked, replace(OPERATION, job_id=""), handle="a/b")
    assert (request.url, request.body) == (f"{HOST}/v1/get/a%2Fb", b'{"token":"a/b"}')
    assert status_url(asked, job_id="job-1", params={}, handle="h") == f"{HOST}/v1/get/h"
    with pytest.raises(UsageError, match=r"no value for \{handle\}"):
        status_request(asked, OPERATION)


def test_a_job_without_an_id_is_followed_by_its_address_alone() -> None:
    """What has no value is never sent as an empty text."""
    nameless = replace(OPERATION, job_id="", status_url=f"{HOST}/v0/1")
    assert status_request(TABLE, nameless).url == f"{HOST}/v0/1"
    with pytest.raises(UsageError, match=r"no value for \{job_id\}"):
        status_request(asking(headers=(("X-Job", "{job_id}"),)), nameless)


def test_a_table_adds_headers_but_never_a_condition_or_another_id() -> None:
    """B033: a conditional request could be answered with another job's "unchanged"."""
    headers = (
        ("accept", "application/vnd.x+json"),
        ("If-None-Match", "*"),
        ("x-request-id", "mine"),
        ("X-Job", "{job_id}"),
    )
    assert status_request(asking(headers=headers), OPERATION).headers == (
        ("accept", "application/vnd.x+json"),
        ("X-Job", "job-1"),
        ("Cache-Control", "no-cache"),
        ("X-Request-Id", "op-1:7"),
    )


@pytest.mark.parametrize("job_id", ["é", "a\u2028b", "x\u00a0y"])
def test_a_header_holds_printable_ascii_only(job_id: str) -> None:
    with pytest.raises(UsageError):
        status_request(asking(headers=(("X-Job", "{job_id}"),)), replace(OPERATION, job_id=job_id))


JSON_BODIES = [
    ({"id": "{job_id}"}, {"id": "42"}),
    ({"id": "{job_id:int}"}, {"id": 42}),
    ({"ids": ["{job_id}", 1, None, True, 1.5]}, {"ids": ["42", 1, None, True, 1.5]}),
    ({"q": {"deep": ("{job_id}", "job {job_id}")}}, {"q": {"deep": ["42", "job {job_id}"]}}),
]


@pytest.mark.parametrize(("template", "expected"), JSON_BODIES)
def test_json_bodies_take_whole_leaves(template: object, expected: object) -> None:
    request = status_request(
        asking(method="POST", body_kind=BodyKind.JSON, body=template), replace(OPERATION, job_id="42")
    )
    assert ("Content-Type", "application/json") in request.headers
    assert (request.method, json.loads(request.body)) == ("POST", expected)


@pytest.mark.parametrize(
    ("template", "message"), [("{job_id:int}", "as an integer"), ("{nothing}", r"no value for \{nothing\}")]
)
def test_a_leaf_that_cannot_be_filled_is_refused(template: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        status_request(asking(body_kind=BodyKind.JSON, body={"id": template}), OPERATION)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"id": "{job_id}", "n": 3, "b": True}, b"id=a%26b+c&n=3&b=true"), ({}, b""), (None, b"")],
)
def test_form_bodies(fields: object, expected: bytes) -> None:
    request = status_request(
        asking(method="POST", body_kind=BodyKind.FORM, body=fields), replace(OPERATION, job_id="a&b c")
    )
    assert ("Content-Type", "application/x-www-form-urlencoded") in request.headers
    assert request.body == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            {"query": "query($id: ID!) { job(id: $id) { status } }", "variables": {"id": "{job_id}"}},
            {"query": "query($id: ID!) { job(id: $id) { status } }", "variables": {"id": "job-1"}},
        ),
        ({"query": "{viewer}"}, {"query": "{viewer}", "variables": {}}),
        (None, {"query": "", "variables": {}}),
    ],
)
def test_graphql_bodies_fill_variables_only(template: object, expected: object) -> None:
    request = status_request(asking("/graphql", method="POST", body_kind=BodyKind.GRAPHQL, body=template), OPERATION)
    assert json.loads(request.body) == expected


def test_the_job_id_alone_can_be_checked() -> None:
    check_job_id("job-1")
    with pytest.raises(UsageError, match="may not be ''"):
        check_job_id("")
    check_job_id("x" * 500)
    with pytest.raises(UsageError, match="more than 500 characters"):
        check_job_id("x" * 501)
