"""R-SEC-3, INV-27, S18: who sent a notice, and what it names."""

from __future__ import annotations

import hmac
import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.core.actions import WebhookScheme, WebhookSpec
from jobtrack.core.webhook import (
    LONGEST_NOTICE_ID,
    MOST_EVENTS,
    Ignored,
    Notice,
    Refused,
    Verified,
    digest,
    read_notices,
    same_secret,
    verify,
)
from tests.core.builders import body as at

S = timedelta(seconds=1)

# --- published vectors ------------------------------------------------------------------------------

STANDARD = WebhookSpec(scheme=WebhookScheme.STANDARD, job_id=at("/data/id"))

# github.com/standard-webhooks/standard-webhooks: libraries/go/webhook_symmetric_test.go (TestSymmetricWebhookSign) and
# libraries/javascript/src/webhook.test.ts ("sign function works") publish this one.
VECTOR_SECRET = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
VECTOR_BODY = b'{"test": 2432232314}'
VECTOR_AT = datetime.fromtimestamp(1614265330, UTC)
VECTOR = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
VECTOR_ID = VECTOR["webhook-id"]


def judge(
    spec=STANDARD, headers=VECTOR, body=VECTOR_BODY, *, secrets=(VECTOR_SECRET,), now=VECTOR_AT, url="", **more
) -> Verified | Refused:
    pairs = tuple(headers.items()) if isinstance(headers, dict) else tuple(headers)
    return verify(spec, headers=pairs, body=body, url=url, secrets=secrets, now=now, **more)


def test_the_published_vector_of_standard_webhooks_is_verified() -> None:
    assert judge() == Verified(VECTOR_ID)


def test_the_published_vector_with_the_bare_secret_is_verified() -> None:
    assert judge(secrets=[VECTOR_SECRET.removeprefix(b"whsec_")]) == Verified(VECTOR_ID)


OTHER_SIGNATURE = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="  # in the published tests too: fits nothing


@pytest.mark.parametrize(
    ("signatures", "verified"),
    [
        # The list of the published "multi sig" test: any one that fits is enough, and other versions are passed over.
        (f"{OTHER_SIGNATURE} v2,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= {{}} {OTHER_SIGNATURE}", True),
        ("{} v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5B", True),
        (OTHER_SIGNATURE, False),
        ("v1,", False),  # published: "partial signature"
        ("v1,g0hM9", False),
        ("v1,dawfeoifkpqwoekfpqoekf", False),  # published: "invalid signature"
        ("v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", False),  # right bytes, another version
        ("v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", False),
        ("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", False),
        ("v1,{}", False),
        ("v1 ,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", False),
        ("", False),
        (" ".join([OTHER_SIGNATURE] * 20 + ["{}"]), False),  # more than any rotation needs
        ("v1,g0hM9SsE-OTPJTGt_tmIKtSyZlE3uFJELVlNIOLJ1OE=", False),  # base64url is not what the scheme says
    ],
)
def test_lists_of_signatures(signatures: str, verified: bool) -> None:
    headers = VECTOR | {"webhook-signature": signatures.replace("{}", VECTOR["webhook-signature"])}
    assert isinstance(judge(headers=headers), Verified) is verified


HMAC = WebhookSpec(scheme=WebhookScheme.HMAC, header="X-Signature")

PUBLISHED = [
    pytest.param(  # docs.svix.com, "Verifying webhooks manually": the older names of the same headers
        STANDARD,
        b'{"event_type":"ping","data":{"success":true}}',
        {
            "headers": {
                "svix-id": "msg_loFOjxBNrRLzqYUf",
                "svix-timestamp": "1731705121",
                "svix-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
            },
            "secrets": [b"whsec_plJ3nmyCDGBKInavdOK15jsl"],
            "now": datetime.fromtimestamp(1731705121, UTC),
        },
        id="svix",
    ),
    pytest.param(  # docs.github.com, "Validating webhook deliveries", its values for testing
        replace(HMAC, header="X-Hub-Signature-256", prefix="sha256="),
        b"Hello, World!",
        {
            "headers": {
                "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
            },
            "secrets": [b"It's a Secret to Everybody"],
        },
        id="github",
    ),
    pytest.param(  # developer.squareup.com, "Validate webhook notifications": the URL is signed before the body
        replace(HMAC, header="x-square-hmacsha256-signature", encoding="base64", signed=("url", "body")),
        b'{"hello":"world"}',
        {
            "headers": {"x-square-hmacsha256-signature": "2kRE5qRU2tR+tBGlDwMEw2avJ7QM4ikPYD/PJ3bd9Og="},
            "secrets": [b"asdf1234"],
            "url": "https://example.com/webhook",
        },
        id="square",
    ),
]


@pytest.mark.parametrize(("spec", "content", "arguments"), PUBLISHED)
def test_published_examples_of_providers_are_verified(spec, content, arguments) -> None:
    assert isinstance(judge(spec, body=content, **arguments), Verified)
    assert judge(spec, body=content + b" ", **arguments) == Refused("no signature fits")


# --- what is refused --------------------------------------------------------------------------------


def test_a_body_that_was_read_and_written_again_is_refused() -> None:
    again = json.dumps(json.loads(VECTOR_BODY), separators=(",", ":")).encode()
    assert json.loads(again) == json.loads(VECTOR_BODY)
    assert judge(body=again) == Refused("no signature fits")


@pytest.mark.parametrize("missing", list(VECTOR))
def test_a_missing_header_is_refused(missing: str) -> None:
    assert judge(headers={k: v for k, v in VECTOR.items() if k != missing}) == Refused("a header is missing")


@pytest.mark.parametrize("name", list(VECTOR))
def test_two_values_of_one_header_are_refused_whichever_comes_first(name: str) -> None:
    other = ("Webhook-" + name.removeprefix("webhook-").title(), "1614265331")
    for headers in ([*VECTOR.items(), other], [other, *VECTOR.items()]):
        assert judge(headers=headers) == Refused("a header has two values")


def test_the_same_header_twice_with_one_value_is_no_harm() -> None:
    assert judge(headers=[*VECTOR.items(), *VECTOR.items()]) == Verified(VECTOR_ID)


def test_values_that_a_server_joined_by_commas_are_refused() -> None:
    for name, value in VECTOR.items():
        assert isinstance(judge(headers=VECTOR | {name: f"{value},{value}"}), Refused)


def test_letter_case_of_header_names_does_not_matter() -> None:
    assert judge(headers={name.title(): value for name, value in VECTOR.items()}) == Verified(VECTOR_ID)


@pytest.mark.parametrize(
    ("shift", "verified"),
    [(0, True), (300, True), (-300, True), (301, False), (-301, False), (86_400 * 365, False), (-86_400 * 365, False)],
)
def test_old_and_future_notices_are_refused(shift: int, verified: bool) -> None:
    assert isinstance(judge(now=VECTOR_AT + shift * S), Verified) is verified


def test_another_tolerance_counts_both_ways() -> None:
    spec = replace(STANDARD, tolerance=1800 * S)  # ElevenLabs: half an hour
    assert isinstance(judge(spec, now=VECTOR_AT + 1800 * S), Verified)
    assert isinstance(judge(spec, now=VECTOR_AT - 1801 * S), Refused)


@pytest.mark.parametrize(
    "timestamp",
    [
        "",
        "hello",
        "1614265330.0",
        "-1614265330",
        "+1614265330",
        "1_614_265_330",
        " 1614265330",
        "1614265330\n",
        "९",
        "9" * 16,
        "9" * 5000,
        "1e9",
        "0x10",
        "1614265330\x00",
        "nan",
    ],
)
def test_timestamps_that_are_none(timestamp: str) -> None:
    assert judge(headers=VECTOR | {"webhook-timestamp": timestamp}) == Refused("a header cannot be read")


def test_a_signed_timestamp_cannot_be_renewed() -> None:
    later = VECTOR_AT + 3600 * S
    renewed = VECTOR | {"webhook-timestamp": str(int(later.timestamp()))}
    assert judge(headers=renewed, now=later) == Refused("no signature fits")


@pytest.mark.parametrize(
    "secret", [b"", b"whsec_", b"whsec_!!!", b"whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b"\xff", b"   "]
)
def test_secrets_that_are_none_prove_nothing(secret: bytes) -> None:
    """An empty key is a key for `hmac`: anybody could sign with it."""
    content = f"{VECTOR_ID}.1614265330.".encode() + VECTOR_BODY
    forged = "v1," + b64encode(hmac.new(b"", content, "sha256").digest()).decode()
    assert judge(headers=VECTOR | {"webhook-signature": forged}, secrets=[secret]) == Refused(
        "there is no usable secret"
    )


def test_no_secret_at_all() -> None:
    assert judge(secrets=()) == Refused("there is no usable secret")
    assert judge(HMAC, headers=signed(HMAC, b"", b"{}"), body=b"{}", secrets=(b"",)) == Refused(
        "there is no usable secret"
    )


def test_both_secrets_count_during_a_rotation() -> None:
    other = b"whsec_" + b64encode(b"another secret of 24 byte")
    for secrets in ([VECTOR_SECRET, other], [other, VECTOR_SECRET]):
        assert judge(secrets=secrets) == Verified(VECTOR_ID)
    assert judge(secrets=[other]) == Refused("no signature fits")
    assert judge(secrets=[b"whsec_!!!", VECTOR_SECRET]) == Verified(VECTOR_ID)  # one that cannot be read hides none


def test_every_secret_is_compared_with_every_signature(monkeypatch) -> None:
    """How long it takes must not tell which one fits."""
    compared = []
    same = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or same(a, b))
    other = b64encode(b"another secret of 24 byte")
    first, last = VECTOR["webhook-signature"], OTHER_SIGNATURE
    for signatures in (f"{first} {last}", f"{last} {first}"):
        for secrets in ([VECTOR_SECRET, other], [other, VECTOR_SECRET]):
            compared.clear()
            assert judge(headers=VECTOR | {"webhook-signature": signatures}, secrets=secrets) == Verified(VECTOR_ID)
            assert len(compared) == 4


def test_a_signed_scheme_takes_no_token() -> None:
    assert judge(token="anything") == Refused("this scheme has no token in its path")


# --- HMAC variants ----------------------------------------------------------------------------------

SECRET = b"hmac secret"
BODY = b'{"data":{"id":"job-1"}}'
NOW = datetime(2030, 1, 7, 12, tzinfo=UTC)
SECONDS = str(int(NOW.timestamp()))


def signature(spec: WebhookSpec, secret: bytes, content: bytes) -> str:
    raw = hmac.new(secret, content, spec.algorithm).digest()
    return spec.prefix + (raw.hex() if spec.encoding == "hex" else b64encode(raw).decode())


def signed(spec: WebhookSpec, secret: bytes, content: bytes) -> dict[str, str]:
    return {spec.header: signature(spec, secret, content)}


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
@pytest.mark.parametrize("prefix", ["", "sha256=", "v0:"])
def test_algorithms_encodings_and_prefixes(algorithm: str, encoding: str, prefix: str) -> None:
    spec = replace(HMAC, algorithm=algorithm, encoding=encoding, prefix=prefix)
    good = signed(spec, SECRET, BODY)
    assert judge(spec, good, BODY, secrets=[SECRET]) == Verified(digest(BODY))
    text = good["X-Signature"]
    bad = [text[:-2], text + "00", text.removeprefix(prefix)[1:], "x" + text, text + "," + text]
    if prefix:
        bad += [text.removeprefix(prefix), text.replace(prefix, prefix.upper())]
    for wrong in bad:
        assert isinstance(judge(spec, {"X-Signature": wrong}, BODY, secrets=[SECRET]), Refused), wrong


def test_one_of_several_signatures_is_enough() -> None:
    old, new = signature(HMAC, b"old", BODY), signature(HMAC, SECRET, BODY)
    for value in (f"{old} {new}", f"{new} {old}"):
        assert isinstance(judge(HMAC, {"X-Signature": value}, BODY, secrets=[SECRET]), Verified)


def test_hexadecimal_digits_may_be_capitals() -> None:
    spec = HMAC
    assert isinstance(
        judge(spec, {"X-Signature": signature(spec, SECRET, BODY).upper()}, BODY, secrets=[SECRET]), Verified
    )


PAIRS = replace(HMAC, header="Stripe-Signature", pairs="v1", timestamp="t", signed=("timestamp", ".", "body"))


def listed(*items: str) -> dict[str, str]:
    return {"Stripe-Signature": ",".join(items)}


def v1(timestamp: str = SECONDS, secret: bytes = SECRET, body: bytes = BODY) -> str:
    return "v1=" + hmac.new(secret, timestamp.encode() + b"." + body, "sha256").hexdigest()


GOOD_LISTS = [
    listed(f"t={SECONDS}", v1()),
    listed(v1(), f"t={SECONDS}"),
    listed(f"t={SECONDS}", "v0=6ffbb59b2300aae63f27240", v1()),  # another scheme's signature beside it
    listed(f"t={SECONDS}", v1(secret=b"old"), v1()),  # the provider signs with both during a rotation
    listed(f"t={SECONDS}", f" {v1()}"),
    listed(f"t={SECONDS}", f"t={SECONDS}", v1()),
]
BAD_LISTS = [
    listed(f"t={SECONDS}"),
    listed(v1()),
    listed(f"t={SECONDS}", v1().replace("v1=", "v0=")),
    listed(f"t={SECONDS}", v1().replace("v1=", "V1=")),
    listed(f"T={SECONDS}", v1()),
    listed(f"t={int(SECONDS) + 1}", v1()),
    listed(f"t={int(SECONDS) + 1}", f"t={SECONDS}", v1()),  # two instants: which one was signed?
    listed(f"t={SECONDS}", f"t={int(SECONDS) + 1}", v1()),
    listed(f"t={SECONDS}", v1(secret=b"old")),
    listed(f"t={SECONDS}", v1(body=b"{}")),
    listed(f"t={SECONDS} {v1()}"),
    listed(""),
    listed("=", "=", "="),
    listed("t", "v1"),
    listed(f"t={'9' * 400}", v1(timestamp="9" * 400)),
    listed(f"t={int(SECONDS) - 301}", v1(timestamp=str(int(SECONDS) - 301))),
    listed(f"t={int(SECONDS) + 301}", v1(timestamp=str(int(SECONDS) + 301))),
    listed(f"t={SECONDS}", *["v1=00"] * 21, v1()),
]


@pytest.mark.parametrize("headers", GOOD_LISTS)
def test_lists_of_pairs(headers: dict[str, str]) -> None:
    assert judge(PAIRS, headers, BODY, secrets=[SECRET], now=NOW) == Verified(digest(BODY))


@pytest.mark.parametrize("headers", BAD_LISTS)
def test_lists_of_pairs_that_prove_nothing(headers: dict[str, str]) -> None:
    assert isinstance(judge(PAIRS, headers, BODY, secrets=[SECRET], now=NOW), Refused)


@pytest.mark.parametrize(
    "signed_as",
    [("timestamp", "body"), ("timestamp", ":", "id", ":", "url", ":", "body"), ("v0:", "timestamp", ":", "body")],
)
def test_parts_are_signed_in_the_order_of_the_table(signed_as: tuple[str, ...]) -> None:
    spec = replace(HMAC, signed=signed_as, timestamp="X-At", timestamp_unit="milliseconds", id_header="X-Id")
    values = {"timestamp": SECONDS + "250", "id": "n-1", "url": "https://us.example/hooks?a=b"}
    content = b"".join(BODY if part == "body" else values.get(part, part).encode() for part in signed_as)
    headers = signed(spec, SECRET, content) | {"X-At": values["timestamp"], "X-Id": "n-1"}
    arguments = {"secrets": [SECRET], "now": NOW}
    expected = Verified("n-1" if "id" in signed_as else digest(BODY))
    assert judge(spec, headers, BODY, url=values["url"], **arguments) == expected
    assert isinstance(judge(spec, headers | {"X-At": SECONDS + "251"}, BODY, url=values["url"], **arguments), Refused)
    for wrong in ({"url": "https://eu.example/hooks"}, {"now": NOW + 301 * S}, {"secrets": [b"x"]}):
        changed = {"url": values["url"], **arguments, **wrong}
        same = "url" not in signed_as and "url" in wrong
        assert isinstance(judge(spec, headers, BODY, **changed), Verified) is same


def test_an_id_that_is_not_signed_is_not_believed() -> None:
    """Else whoever holds one authentic notice could make any number of them."""
    spec = replace(HMAC, id_header="X-Delivery")
    headers = signed(spec, SECRET, BODY)
    for made_up in ("a", "b"):
        assert judge(spec, headers | {"X-Delivery": made_up}, BODY, secrets=[SECRET]) == Verified(digest(BODY))


def test_a_long_id_of_a_notice_is_replaced_by_its_digest() -> None:
    for length, expected in ((LONGEST_NOTICE_ID, "n" * LONGEST_NOTICE_ID), (129, sha256(b"n" * 129).hexdigest())):
        spec = replace(HMAC, signed=("id", "body"), id_header="X-Id")
        name = "n" * length
        headers = signed(spec, SECRET, name.encode() + BODY) | {"X-Id": name}
        assert judge(spec, headers, BODY, secrets=[SECRET]) == Verified(expected)


# --- tokens -----------------------------------------------------------------------------------------

TOKEN = WebhookSpec(scheme=WebhookScheme.TOKEN, job_id=at("/id"))


@pytest.mark.parametrize(
    ("token", "secrets", "expected"),
    [
        ("right", [b"right"], Verified(digest(BODY))),
        ("right", [b"old", b"right"], Verified(digest(BODY))),
        ("right", [b"right", b"new"], Verified(digest(BODY))),
        ("righ", [b"right"], Refused("no token fits")),
        ("right ", [b"right"], Refused("no token fits")),
        ("", [b"right"], Refused("no token fits")),
        ("", [b""], Refused("there is no usable secret")),
        ("", [], Refused("there is no usable secret")),
        ("\ud800\x00", [b"right"], Refused("no token fits")),
        ("schlüssel", ["schlüssel".encode()], Verified(digest(BODY))),
    ],
)
def test_tokens(token: str, secrets: list[bytes], expected: object) -> None:
    assert judge(TOKEN, {}, BODY, secrets=secrets, token=token) == expected


def test_tokens_are_compared_by_digests_of_one_length(monkeypatch) -> None:
    seen = []
    same = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append((len(a), len(b))) or same(a, b))
    assert same_secret("a", [b"a", b"much longer", b""])
    assert seen == [(32, 32)] * 3


# --- nothing raises ---------------------------------------------------------------------------------

SPECS = [
    STANDARD,
    HMAC,
    PAIRS,
    TOKEN,
    replace(
        HMAC,
        encoding="base64",
        prefix="x",
        signed=("url", "id", "timestamp", "body"),
        timestamp="webhook-timestamp",
        id_header="webhook-id",
        timestamp_unit="milliseconds",
        algorithm="sha512",
    ),
]
NAMES = st.sampled_from(
    ["webhook-id", "webhook-timestamp", "webhook-signature", "X-Signature", "Stripe-Signature", "WEBHOOK-ID"]
)
VALUES = st.one_of(
    st.text(max_size=40),
    st.from_regex(r"(v1,|v1=|t=|x)?[0-9A-Za-z+/=, .]{0,90}", fullmatch=True),
    st.integers().map(str),
    st.sampled_from([*VECTOR.values(), f"t={SECONDS},{v1()}"]),
)


@given(
    spec=st.sampled_from(SPECS),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=6),
    body=st.binary(max_size=60),
    url=st.text(max_size=20),
    secrets=st.lists(st.binary(max_size=40), max_size=3),
    token=st.text(max_size=10),
)
def test_no_request_raises_and_none_that_was_made_up_is_verified(spec, **request) -> None:
    judged = verify(spec, now=NOW, **request)
    if spec is TOKEN and any(request["token"].encode() == secret for secret in request["secrets"] if secret):
        return
    assert isinstance(judged, Refused)


@given(st.data())
def test_one_changed_byte_is_refused(data) -> None:
    """Flip one bit anywhere in what was signed, or in the signature."""
    where = data.draw(st.sampled_from(["body", "webhook-id", "webhook-timestamp", "webhook-signature"]))
    text = VECTOR_BODY if where == "body" else VECTOR[where].encode()
    index = data.draw(st.integers(0, len(text) - 1))
    changed = bytearray(text)
    changed[index] ^= 1 << data.draw(st.integers(0, 6))
    last = where == "webhook-signature" and index == len(text) - 2  # its lowest bits are padding in base64
    if where == "body":
        assert isinstance(judge(body=bytes(changed)), Refused)
    elif not last:
        assert isinstance(judge(headers=VECTOR | {where: changed.decode("latin-1")}), Refused)


# --- what it names ----------------------------------------------------------------------------------

NAMED = WebhookSpec(scheme=WebhookScheme.STANDARD, job_id=at("/data/id"), operation_id=at("/data/ref"))


def named(value: object, spec: WebhookSpec = NAMED) -> object:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_notices(spec, content, notice_id="n-1")


@pytest.mark.parametrize(
    ("value", "job_id", "operation_id"),
    [
        ({"data": {"id": "job-1"}}, "job-1", ""),
        ({"data": {"id": "job-1", "ref": "op-1"}}, "job-1", ""),  # the provider's own id wins
        ({"data": {"ref": "op-1"}}, "", "op-1"),
        ({"data": {"id": None, "ref": "op-1"}}, "", "op-1"),
        ({"data": {"id": 20180814033130818988}}, "20180814033130818988", ""),  # every digit (R-ID-5)
        (b'{"data":{"id":12345678901234567890123}}', "12345678901234567890123", ""),
        ({"data": {"id": " spaced "}}, " spaced ", ""),  # exact
        ({"data": {"id": "J" * 500}}, "J" * 500, ""),
        ({"data": {"id": "ü/..?#%2F"}}, "ü/..?#%2F", ""),  # text only: it is quoted where it is used
    ],
)
def test_what_a_notice_names(value: object, job_id: str, operation_id: str) -> None:
    assert named(value) == (Notice(notice_id="n-1", job_id=job_id, operation_id=operation_id),)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "the body is empty"),
        (b"\xff\xfe", "the body is not UTF-8"),
        (b"{", "the body is not JSON (line 1, column 2)"),
        (b"[" * 200, "the body is nested deeper than 100 levels"),
        (b'{"data":{"id":NaN}}', "the body has NaN, which is not JSON"),
        ({}, "it names no job"),
        ([], "it names no job"),
        ("job-1", "it names no job"),
        ({"data": []}, "it names no job"),
        ({"data": {"id": ""}}, "it names no job"),
        ({"data": {"id": 1.0}}, "it names no job"),
        ({"data": {"id": True}}, "it names no job"),
        ({"data": {"id": {"id": "x"}}}, "it names no job"),
        ({"data": {"id": "a\x00b"}}, "it names no job"),
        ({"data": {"id": "a\nb"}}, "it names no job"),
        ({"data": {"id": "\ud800"}}, "it names no job"),
        ({"data": {"id": "J" * 501}}, "it names no job"),
        ({"data": {"ref": "r" * 201}}, "it names no job"),
        (b'{"data":{"id":"a","id":"b"}}', "it names no job"),  # there is no single true value
        (b'{"data":{"id":1' + b"0" * 4299 + b"}}", "it names no job"),
    ],
)
def test_an_authentic_notice_that_names_no_job_is_ignored(value: object, why: str) -> None:
    assert named(value) == Ignored(why)


EVENTS = replace(NAMED, events=at("/events"), job_id=at("/links/id"), operation_id=None)


def events(*ids: object) -> dict[str, object]:
    return {"events": [{"links": {"id": one}} for one in ids]}


def test_each_job_of_a_notice_gets_an_id_of_its_own() -> None:
    first, second = named(events("a", "b"), EVENTS)
    assert (first.job_id, second.job_id) == ("a", "b")
    assert len({first.notice_id, second.notice_id, "n-1"}) == 3
    assert named(events("b", "a"), EVENTS) == (second, first)  # the same when it comes again in another order
    other = read_notices(EVENTS, json.dumps(events("a")).encode(), notice_id="n-2")
    assert other[0].notice_id != first.notice_id


def test_a_job_that_one_notice_names_often_counts_once() -> None:
    assert [one.job_id for one in named(events(*["a", "b"] * 300), EVENTS)] == ["a", "b"]


def test_a_job_and_an_operation_of_the_same_name_are_two() -> None:
    spec = replace(EVENTS, operation_id=at("/ref"))
    both = named({"events": [{"links": {"id": "x"}}, {"ref": "x"}]}, spec)
    assert [(one.job_id, one.operation_id) for one in both] == [("x", ""), ("", "x")]
    assert both[0].notice_id != both[1].notice_id


def test_events_without_a_job_are_passed_over() -> None:
    mixed = {"events": [None, 7, {}, {"links": {"id": "a"}}, [], {"links": None}]}
    assert [one.job_id for one in named(mixed, EVENTS)] == ["a"]


def test_the_number_of_events_is_bounded() -> None:
    assert len(named(events(*map(str, range(MOST_EVENTS + 500))), EVENTS)) == MOST_EVENTS


@pytest.mark.parametrize("value", [{}, {"events": {}}, {"events": "a"}, {"events": None}, []])
def test_a_notice_without_its_list(value: object) -> None:
    assert named(value, EVENTS) == Ignored("there is no list of events")


def test_a_list_without_a_job() -> None:
    assert named(events(None, 1.5), EVENTS) == Ignored("no event names a job")


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["data", "id", "ref", "events", "links"]), inner, max_size=3)
        ),
        max_leaves=12,
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_body_raises(content: bytes) -> None:
    for spec in (NAMED, EVENTS):
        found = read_notices(spec, content, notice_id="n-1")
        if isinstance(found, Ignored):
            continue
        for one in found:
            assert bool(one.job_id) is not bool(one.operation_id)
            assert (one.job_id + one.operation_id).encode()
