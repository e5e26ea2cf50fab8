"""R-TABLE-4, R-READ-2: where values are, and exact tests on them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.jsontext import Malformed, parse
from jobtrack.core.locate import Answer, Found, Unreadable, all_hold, choose, gap_matches, holds, is_id, read, same
from jobtrack.core.place import Body, Condition, Gap, Locator
from jobtrack.core.table import Pick
from tests.core.builders import answer, at, body, jsonpath


def document(text: str) -> object:
    return parse(text.encode(), None)


DOCUMENT = document(
    '{"a":{"b":[10,{"c":null,"0":"zero"}],"":"empty name"},"x/y":1,"m~n":2,"null":null,"t":true,"s":"text",'
    '"twice":1,"twice":2,"in":{"k":1,"k":1,"v":3},"neg":{"-1":"minus"}}'
)
REPEATED = "a member on the way to {} appears more than once"

PLACES: list[tuple[Locator, object]] = [
    (body("/a/b/0"), Found(10)),
    (body("/a/b/1/c"), Gap.NULL),
    (body("/a/b/1/0"), Found("zero")),
    (body("/a/b/2"), Gap.ABSENT),
    (body("/a/b/00"), Gap.ABSENT),
    (body("/a/b/-"), Gap.ABSENT),
    (body("/a/b/-1"), Gap.ABSENT),
    (body("/a/b/\u0660"), Gap.ABSENT),
    (body("/a/b/" + "9" * 5000), Gap.ABSENT),
    (body("/a/"), Found("empty name")),
    (body("/x~1y"), Found(1)),
    (body("/m~0n"), Found(2)),
    (body("/null"), Gap.NULL),
    (body("/null/x"), Gap.ABSENT),
    (body("/t/x"), Gap.ABSENT),
    (body("/s/0"), Gap.ABSENT),
    (body("/nothing"), Gap.ABSENT),
    (body("/twice"), Unreadable(REPEATED.format("/twice"))),
    (body("/in/v"), Found(3)),
    (body("/in/k"), Unreadable(REPEATED.format("/in/k"))),
    (body(""), Found(DOCUMENT)),
    (jsonpath("a", "b", 0), Found(10)),
    (jsonpath("a", "b", -1, "0"), Found("zero")),
    (jsonpath("a", "b", -2), Found(10)),
    (jsonpath("a", "b", -3), Gap.ABSENT),
    (jsonpath("a", "b", 2), Gap.ABSENT),
    (jsonpath("a", "b", "0"), Gap.ABSENT),
    (jsonpath("neg", -1), Gap.ABSENT),
    (jsonpath("neg", "-1"), Found("minus")),
    (at("http"), Found(202)),
    (at("header:x-state"), Found("first")),
    (at("header:X-None"), Gap.ABSENT),
]


@pytest.mark.parametrize(("locator", "expected"), PLACES, ids=lambda value: getattr(value, "source", ""))
def test_read(locator: Locator, expected: object) -> None:
    assert read(locator, answer(DOCUMENT, 202, ("X-STATE", "first"), ("x-state", "second"))) == expected


def test_a_body_that_cannot_be_read_is_a_fault_only_where_it_is_read() -> None:
    broken = answer(Malformed("the body is empty"), 202)
    assert read(body("/id"), broken) == Unreadable("the body is empty")
    assert read(at("http"), broken) == Found(202)


VALUES = [None, True, False, 1, 0, 1.0, 10, 10.0, "10", "", "a", "A", [], {}, [1], [True], {"a": 1}, {"a": 1.0}, -0.0]


@pytest.mark.parametrize("left", VALUES, ids=repr)
@pytest.mark.parametrize("right", VALUES, ids=repr)
def test_same_has_exact_types_at_every_depth(left: object, right: object) -> None:
    assert same(left, right) is (repr(left) == repr(right))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("Done", "DONE", True), ("straße", "STRASSE", True), ("Done ", "done", False), (1, 1, True), (1, "1", False)],
)
def test_folded_letter_case(left: object, right: object, expected: bool) -> None:
    assert same(left, right, fold=True) is expected


IDS = [
    ("job-1", "job-1", True),
    ("JOB-1", "job-1", False),
    (70403117937023, "70403117937023", True),  # B031
    (20180814033130818988, "20180814033130818988", True),  # B031
    (7.0403117937023e13, "70403117937023", False),  # B031
    (0, "0", True),
    (7, "07", False),
    (True, "True", False),
    (None, "None", False),
    (["job-1"], "job-1", False),
]


@pytest.mark.parametrize(("value", "job_id", "expected"), IDS)
def test_job_ids_are_compared_as_exact_text(value: object, job_id: str, expected: bool) -> None:
    assert is_id(value, job_id) is expected


@pytest.mark.parametrize(
    ("wanted", "seen", "expected"),
    [
        (Gap.ABSENT, Gap.ABSENT, True),
        (Gap.NULL, Gap.ABSENT, False),
        (Gap.EITHER, Gap.NULL, True),
        (Gap.EITHER, "null", False),
        (Gap.NULL, "null", False),
    ],
)
def test_gaps_are_told_apart(wanted: Gap, seen: object, expected: bool) -> None:
    assert gap_matches(wanted, seen) is expected


VALUE = document(
    '{"s":"Done","n":10,"f":10.0,"t":true,"z":null,"e":"","l":[],"o":{},"l1":[0],"copy":"Done","d":1,"d":1}'
)
CONDITIONS = [
    (Condition(at=body("/s"), equals=("x", "Done")), True),
    (Condition(at=body("/s"), equals=("done",)), False),
    (Condition(at=body("/s"), equals=("done",), fold=True), True),
    (Condition(at=body("/n"), equals=(10,)), True),
    (Condition(at=body("/n"), equals=("10",)), False),
    (Condition(at=body("/f"), equals=(10,)), False),
    (Condition(at=body("/t"), equals=(1,)), False),
    (Condition(at=body("/t"), equals=(True,)), True),
    (Condition(at=body("/none"), equals=("x",)), False),
    (Condition(at=at("http"), equals=(400, 409)), True),
    (Condition(at=body("/z"), gap=Gap.NULL), True),
    (Condition(at=body("/z"), gap=Gap.ABSENT), False),
    (Condition(at=body("/none"), gap=Gap.EITHER), True),
    (Condition(at=body("/s"), gap=Gap.EITHER), False),
    (Condition(at=body("/s"), present=True), True),
    (Condition(at=body("/z"), present=True), False),
    (Condition(at=body("/z"), present=False), True),
    (Condition(at=body("/none"), present=False), True),
    (Condition(at=body("/e"), present=True), True),
    (Condition(at=body("/e"), empty=True), True),
    (Condition(at=body("/l"), empty=True), True),
    (Condition(at=body("/o"), empty=True), True),
    (Condition(at=body("/l1"), empty=True), False),
    (Condition(at=body("/l1"), empty=False), True),
    (Condition(at=body("/z"), empty=True), False),
    (Condition(at=body("/z"), empty=False), False),
    (Condition(at=body("/n"), empty=False), True),
    (Condition(at=body("/n"), above=9), True),
    (Condition(at=body("/f"), above=9), True),
    (Condition(at=body("/n"), above=10), False),
    (Condition(at=body("/t"), above=0), False),
    (Condition(at=body("/s"), above=0), False),
    (Condition(at=body("/s"), same_as=body("/copy")), True),
    (Condition(at=body("/n"), same_as=body("/f")), False),
    (Condition(at=body("/s"), same_as=body("/none")), False),
    (Condition(at=body("/d"), present=True), Unreadable(REPEATED.format("/d"))),
    (Condition(at=body("/s"), same_as=body("/d")), Unreadable(REPEATED.format("/d"))),
]


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS)
def test_holds(condition: Condition, expected: object) -> None:
    assert holds(condition, answer(VALUE, 409)) == expected


def test_conditions_are_anded_and_a_body_is_read_only_if_it_matters() -> None:
    broken = answer(Malformed("the body is empty"), 202)
    of_body, of_code = Condition(at=body("/d"), present=True), Condition(at=at("http"), equals=(400,))
    assert all_hold((of_body, of_code), broken) is False
    assert all_hold((of_body,), broken) == Unreadable("the body is empty")
    assert all_hold((), broken) is True
    assert all_hold((of_code, Condition(at=body("/s"), present=True)), answer(VALUE, 400)) is True


WHERE = (Condition(at=body("/name"), equals=("main",)),)
PICKS = [
    (
        Pick(list_at=body("/jobs"), id_at=body("/id")),
        '{"jobs":[{"id":"a"},{"id":"job-1","n":2}]}',
        '{"id":"job-1","n":2}',
    ),
    (Pick(list_at=body(""), id_at=body("/id")), '[{"id":"job-1"}]', '{"id":"job-1"}'),
    (Pick(list_at=body("/jobs"), where=WHERE), '{"jobs":[{"name":"x"},{"name":"main"}]}', '{"name":"main"}'),
    (Pick(list_at=body("/jobs"), id_at=body("/id"), where=WHERE), '{"jobs":[{"id":"job-1","name":"x"}]}', Gap.ABSENT),
    (Pick(list_at=body("/jobs"), id_at=body("/id")), '{"jobs":[{"id":"a"},{},7,null]}', Gap.ABSENT),
    (Pick(list_at=body("/jobs"), id_at=body("/id")), '{"jobs":[]}', Gap.ABSENT),
    (Pick(list_at=body("/jobs")), '{"jobs":[1,2]}', Unreadable("more than one item at /jobs matches")),
    (Pick(list_at=body("")), "[1,2]", Unreadable("more than one item at the root matches")),
    (Pick(list_at=body("/jobs")), '{"jobs":{}}', Unreadable("no list at /jobs")),
    (Pick(list_at=body("/jobs")), '{"jobs":null}', Unreadable("no list at /jobs")),
    (Pick(list_at=body("")), "{}", Unreadable("no list at the root")),
    (Pick(list_at=body("/jobs")), '{"jobs":[],"jobs":[]}', Unreadable(REPEATED.format("/jobs"))),
    (Pick(list_at=body("/jobs"), id_at=body("/id")), '{"jobs":[{"id":1,"id":1}]}', Unreadable(REPEATED.format("/id"))),
    (Pick(list_at=body("/jobs"), where=WHERE), '{"jobs":[{"name":1,"name":1}]}', Unreadable(REPEATED.format("/name"))),
]


@pytest.mark.parametrize(("pick", "text", "expected"), PICKS)
def test_choose(pick: Pick, text: str, expected: object) -> None:
    chosen = choose(pick, answer(document(text)), "job-1")
    assert chosen == (
        answer(document(expected)) if isinstance(expected, str) and not isinstance(expected, Gap) else expected
    )


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "0"]), children, max_size=3)
    ),
    max_leaves=8,
)
TOKENS = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "01"]) | st.integers(-3, 3), max_size=4).map(tuple)


@given(JSON_VALUES, TOKENS, st.booleans())
def test_reading_any_place_of_any_document_never_raises(
    value: object, tokens: tuple[str | int, ...], pointer: bool
) -> None:
    here = Answer(status=200, document=document(json.dumps(value)))
    seen = read(Body(tokens=tokens, source="$", pointer=pointer), here)
    assert isinstance(seen, Found | Gap)


@given(JSON_VALUES, JSON_VALUES)
def test_same_is_symmetric_and_knows_itself(left: object, right: object) -> None:
    assert same(left, left)
    assert same(left, right) is same(right, left)
