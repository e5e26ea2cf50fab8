"""What the schema refuses, as sentences with a place (R-TABLE-1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from jobtrack.catalog import check_text, schema
from tests.catalog.builders import table_text


def lines(text: str) -> list[str]:
    """Errors as ``line:column: message``."""
    found = [finding for finding in check_text(text, "f").findings if finding.level == "error"]
    return [str(finding).removeprefix("f:") for finding in found]


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ("polling: {frist: 5s}", "The key frist is not known here; did you mean first?"),
        (
            "polling: {base: 30}",
            "30 has no unit; write a whole number with its unit, such as 500ms, 30s, 5m, 2h or 1d.",
        ),
        (
            "polling: {base: 5 s}",
            "5 s does not fit here; write a whole number with its unit, such as 500ms, 30s, 5m, 2h or 1d.",
        ),
        (
            'polling: {base: "5s\\n"}',
            "does not fit here; write a whole number with its unit, such as 500ms, 30s, 5m, 2h or 1d.",
        ),
        ("polling: {factor: 0.5}", "0.5 does not fit here; write a number from 1 to 10."),
        (
            "polling: fast",
            "fast does not fit here; write a mapping with first, base, factor, cap, min_interval, max_guidance.",
        ),
        ("on_failure: {a: b}", "This mapping does not fit here; write one of escalate, close."),
        ("on_failure: closed", "closed is not known here; did you mean close?"),
        ("on_failure: [close]", "This list does not fit here; write one of escalate, close."),
        ("allow_loopback: 1", "1 does not fit here; write true or false."),
        (
            "budget: {extension: {time: 5m, times: 1}}",
            "The key status_requests is missing; write status_requests: with a whole number from 1 to 100000.",
        ),
        ("budget: {status_requests: 10.0}", "10.0 does not fit here; write a whole number from 1 to 100000."),
        ("budget: {status_requests: true}", "true does not fit here; write a whole number from 1 to 100000."),
        ("retention: {job: 30}", "30 has no unit; write a whole number with its unit,"),
        ("retention: {jobs: 30d}", "The key jobs is not known here; did you mean job?"),
        ("auth: baerer", "baerer is not known here; did you mean bearer?"),
        ("auth: {heder: X-Key}", "The key heder is not known here; did you mean header?"),
        ("auth: 7", '7 is not text as it stands; write "7".'),
        (
            "auth: [bearer]",
            'This list does not fit here; write bearer, none, {header: Name, prefix: "Token "}, {basic: true}, {query: name} or {signer: dotted.path}.',
        ),
        ("auth: {signer: sign}", "sign does not fit here; write a dotted path such as myapp.signers.sign."),
        ("auth: {}", "Too little stands here; write a mapping with header, prefix, basic, query, signer."),
        (
            "params: {Region: {from: account, pattern: slug}}",
            "The name Region cannot be used; write a name of lower-case letters, digits and underscores.",
        ),
        ("params: {region: {from: acount, pattern: slug}}", "acount is not known here; did you mean account?"),
        ("hosts: []", "Too little stands here; write a list of at least 1."),
        ('limits: {max_bytes: "1"}', "1 does not fit here; write a number of bytes from 1 to 67108864 (64 MiB)."),
        ("examples: [{reply: {http: 200}}]", "The key means is missing; write means: with one of pending, success,"),
        (
            'examples: [{reply: {http: 200}, means: pending, job_id: ""}]',
            "An empty text does not fit here; write some text.",
        ),
    ],
)
def test_sentences_about_the_top(top: str, message: str):
    (found,) = lines(table_text(top=top))
    assert message in found


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (
            "{state: status, states: {success: [done]}}",
            'status does not fit here; write a place in the JSON body: "/a/b" (JSON Pointer) or "$.a[0]" (JSONPath).',
        ),
        ("{state: {hedaer: X}, states: {success: [done]}}", "The key hedaer is not known here; did you mean header?"),
        ("{state: 5, states: {success: [done]}}", '5 is not text as it stands; write "5".'),
        ("{state: {at: {http: code}}, states: {success: [done]}}", "code does not fit here; write status."),
        (
            "{state: /s, states: {success: [done], failed: [x]}}",
            "The key failed is not known here; did you mean failure?",
        ),
        ("{state: /s, states: {success: done}}", "done does not fit here; write a list of at least 1, at most 1000."),
        ("{state: /s, states: {success: [done, 1.0]}}", '1.0 is not text as it stands; write "1.0".'),
        (
            "{state: /s, states: {success: [done, null]}}",
            'null is not text as it stands; write "null" for the word, or {missing: null} where a value may be missing.',
        ),
        (
            "{state: /s, states: {success: [done, {missing: maybe}]}}",
            "maybe is not known here; write one of absent, null, either.",
        ),
        (
            "{state: /s, states: {success: [done, {}]}}",
            "The key missing is missing; write missing: with absent, null or either.",
        ),
        ("{state: /s, states: {success: [done, []]}}", "Too little stands here"),
        ("{state: /s, states: {success: [done, [a, b, c, d, e, f, g, h, i]]}}", "Too much stands here"),
        (
            "{rules: [{if: {status: done}, then: success}]}",
            "The key status is not known here; write one of http, /a/place, header Name.",
        ),
        (
            "{rules: [{if: {}, then: success}]}",
            "Too little stands here; write tests by place, such as {/done: true, http: 200}.",
        ),
        (
            "{rules: [{if: {/a: {presnt: true}}, then: success}]}",
            "The key presnt is not known here; did you mean present?",
        ),
        ("{rules: [{if: {/a: {present: true, empty: false}}, then: success}]}", "Too much stands here"),
        ("{rules: [{if: {/a: 1.5}, then: success}]}", '1.5 is not text as it stands; write "1.5".'),
        ("{rules: [{if: {/a: b}, then: sucess}]}", "sucess is not known here; did you mean success?"),
        (
            "{state: /s, states: {success: [d]}, open: {then: pending}}",
            "The key cite is missing; write cite: with an address starting with https://.",
        ),
        (
            "{state: /s, states: {success: [d]}, result: {require: {/a: strng}}}",
            "strng is not known here; did you mean string?",
        ),
        ("{state: /s, states: {success: [d]}, read_http: [20]}", "20 does not fit here; write a code from 100 to 599."),
        ("{state: /s, states: {success: [d]}, read_http: [2x]}", "2x is not known here; did you mean 2xx?"),
        (
            "{state: /s, states: {success: [d]}, hints: [{body: /a}]}",
            "The key unit is missing; write unit: with one of seconds",
        ),
        (
            "{state: /s, states: {success: [d]}, error: {heder: X}}",
            "The key heder is not known here; did you mean header?",
        ),
        ("{state: /s, states: {success: [d]}, progress: 3}", '3 is not text as it stands; write "3".'),
    ],
)
def test_sentences_about_the_status_part(status: str, message: str):
    (found,) = lines(table_text(status))
    assert message in found


def test_a_list_that_is_too_long_is_refused_quickly():
    many = ", ".join(f"{{if: {{/a: x{number}}}, then: success}}" for number in range(201))
    (found,) = lines(table_text(f"{{rules: [{many}]}}"))
    assert "Too much stands here; write a list of at least 1, at most 200." in found


def test_a_misplaced_mapping_is_one_finding_and_not_many():
    text = table_text("{state: /s, states: {success: [done]}, result: [a, b]}")
    assert lines(text) == [
        "8:91: This list does not fit here; write a mapping with require, one_of, keep, hosts, secret, empty_ok."
    ]


@pytest.mark.parametrize("text", ["- a\n- b\n", "word\n", "7\n"])
def test_a_file_that_is_no_mapping_is_refused(text: str):
    assert lines(text) == [
        f"1:1: {'This list' if text[0] == '-' else text.strip()} does not fit here; write a provider table: a mapping that starts with jobtrack: 1."
    ]


def test_missing_keys_are_named_and_the_rest_is_still_read():
    found = lines("jobtrack: 1\nid: x\nstatus: {state: /s, states: {success: [a], failure: [a]}}\n")
    assert [line.split(";")[0] for line in found] == [
        "1:1: The key name is missing",
        "1:1: The key docs is missing",
        "1:1: The key revision is missing",
        "1:1: The key hosts is missing",
        "3:9: The key request is missing",
        "3:54: a stands under success (line 3) already",
    ]


def test_an_emptied_list_or_mapping_is_not_reported_twice():
    text = table_text("{state: /s, states: {pending: [[]], success: [done]}, result: {require: {a: b}}}")
    assert len(lines(text)) == 2


def test_a_member_that_lacks_two_keys_is_cut_once():
    text = table_text("{rules: [{}, {if: {/a: x}, then: success}]}")
    assert [line.split(";")[0] for line in lines(text)] == [
        "8:53: The key if is missing",
        "8:53: The key then is missing",
    ]


def test_several_bad_members_of_one_list_are_each_reported_once():
    text = table_text("{state: /s, states: {success: [done, 1.5, {}, [], 2.5, fine]}}")
    assert [line.split(": ")[0] for line in lines(text)] == ["8:81", "8:86", "8:90", "8:94"]


# --- the schema itself -------------------------------------------------------------------------------


def test_the_schema_is_valid_and_published_with_an_id():
    Draft202012Validator.check_schema(schema())
    assert schema()["$id"] == "urn:jobtrack:schema:provider-1"
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def properties(part: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        for word in ("properties", "patternProperties"):
            for key, item in part.get(word, {}).items():
                yield f"{path}/{key}", item
        for key, item in part.items():
            yield from properties(item, f"{path}/{key}")
    elif isinstance(part, list):
        for index, item in enumerate(part):
            yield from properties(item, f"{path}/{index}")


def test_every_key_has_a_description_that_editors_can_show():
    undescribed = [path for path, item in properties(schema()) if not item.get("description")]
    assert undescribed == []


def objects(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield part
        for item in part.values():
            yield from objects(item)
    elif isinstance(part, list):
        for item in part:
            yield from objects(item)


def test_no_mapping_of_the_schema_takes_unknown_keys():
    """A mapping either lists its keys or says what every value must be."""
    free = [part for part in objects(schema()) if "additionalProperties" not in part]
    assert [part["description"] for part in free] == ["Variables of the query."]


def test_a_plain_validator_agrees_on_a_good_table():
    """Editors know only the schema."""
    good = {
        "jobtrack": 1,
        "id": "x",
        "name": "X",
        "docs": "https://x.example",
        "revision": 1,
        "hosts": ["https://x.example"],
        "status": {"request": {"path": "/x"}, "state": "/s", "states": {"success": ["done", {"missing": None}]}},
    }
    validator = Draft202012Validator(schema())
    assert list(validator.iter_errors(good)) == []
    assert list(validator.iter_errors(json.loads(json.dumps(good).replace("hosts", "hots")))) != []
