"""Whether a notice comes from the provider, and which jobs it means (R-SEC-3, INV-27).

A notice is a hint: nothing in it is taken for a fact. Its body is read only after its sender was proven, and then only
for ids. Nothing here raises for anything a sender can do.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from types import MappingProxyType

from jobtrack.core.actions import WebhookScheme, WebhookSpec
from jobtrack.core.jsontext import Malformed, parse
from jobtrack.core.locate import Answer, Found, read
from jobtrack.core.place import Body
from jobtrack.core.text import clean

MOST_SIGNATURES = 20
"""Signatures in one notice; a rotation needs two."""

MOST_EVENTS = 1000
"""Events read of one notice; what comes after them is found by the ordinary looks."""

LONGEST_JOB_ID = 500
LONGEST_OPERATION_ID = 200
LONGEST_NOTICE_ID = 128
"""A longer id of a notice is replaced by its digest."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Verified:
    """The provider sent this very body. ``notice_id`` is its own id if that was signed, else the body's digest."""

    notice_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing proves who sent it. ``why`` is a clause for the log without any part of the notice."""

    why: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """The provider sent it, but it names no job. ``why`` is a clause without any part of the notice."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that a notice names; exactly one of ``job_id`` and ``operation_id`` is set."""

    notice_id: str
    job_id: str = ""
    operation_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """What the headers say, none of it proven yet."""

    signatures: tuple[bytes, ...]
    content: bytes  # what was signed, if it was
    timestamp: str  # "": the scheme has none
    notice_id: str  # "": the scheme signs none


# --- who sent it ------------------------------------------------------------------------------------


def verify(
    spec: WebhookSpec,
    *,
    headers: Headers,
    body: bytes,
    url: str,
    secrets: Sequence[bytes],
    now: datetime,
    token: str = "",
) -> Verified | Refused:
    """Judge who sent a notice.

    Every signature is compared with every secret in constant time, whether or not one has matched already.

    Args:
        spec: What the table says.
        headers: All headers of the request; a name may come several times.
        body: The bytes exactly as received.
        url: The address that the provider called, for schemes that sign it.
        secrets: All that may be in use; several during a rotation.
        now: This machine's clock, aware.
        token: What stands at the end of the path; only the scheme ``token`` may have one.
    """
    if spec.scheme is WebhookScheme.TOKEN:
        return _verify_token(token, body, secrets)
    if token:
        return Refused("this scheme has no token in its path")
    claim = _standard(headers, body) if spec.scheme is WebhookScheme.STANDARD else _hmac(spec, headers, body, url)
    if isinstance(claim, Refused):
        return claim
    keys = [key for key in map(_standard_key, secrets) if key] if spec.scheme is WebhookScheme.STANDARD else secrets
    if not _any_matches(claim, keys, spec.algorithm if spec.scheme is WebhookScheme.HMAC else "sha256"):
        return Refused("no signature fits" if any(keys) else "there is no usable secret")
    if claim.timestamp and not _is_fresh(claim.timestamp, spec, now):
        return Refused("the timestamp is not within the tolerance")
    return Verified(_bounded(claim.notice_id) if claim.notice_id else digest(body))


def digest(body: bytes) -> str:
    """What stands for the id of a notice that has none."""
    return sha256(body).hexdigest()


def same_secret(given: str, secrets: Iterable[bytes]) -> bool:
    """Whether a text is one of the secrets; takes as long for every text, whatever its length has in common."""
    shown = sha256(given.encode("utf-8", "surrogatepass")).digest()
    matches = False
    for secret in secrets:
        matches |= hmac.compare_digest(shown, sha256(secret).digest()) and bool(secret)
    return matches


def _verify_token(token: str, body: bytes, secrets: Sequence[bytes]) -> Verified | Refused:
    if not same_secret(token, secrets):
        return Refused("no token fits" if any(secrets) else "there is no usable secret")
    return Verified(digest(body))


def _any_matches(claim: _Claim, keys: Iterable[bytes], algorithm: str) -> bool:
    matches = False
    for key in keys:
        if not key:  # anybody can sign with an empty key
            continue
        expected = hmac.new(key, claim.content, algorithm).digest()
        for signature in claim.signatures:
            matches |= hmac.compare_digest(expected, signature)
    return matches


# --- what its headers say ---------------------------------------------------------------------------


_ID = re.compile(r"[!-~]{1,500}")
_TIMESTAMP = re.compile(r"[0-9]{1,15}")
_SIGNATURE = re.compile(r"[ -~]{1,8000}")


def _standard(headers: Headers, body: bytes) -> _Claim | Refused:
    """Headers of Standard Webhooks 1.0.0: ``id.timestamp.body`` is signed; other versions than v1 are passed over.

    Without a ``webhook-id`` the older names ``svix-...`` count: many senders still use them.
    """
    named = "webhook" if any(key.lower() == "webhook-id" for key, _ in headers) else "svix"
    notice_id = _header(headers, f"{named}-id", _ID)
    timestamp = _header(headers, f"{named}-timestamp", _TIMESTAMP)
    listed = _header(headers, f"{named}-signature", _SIGNATURE)
    for value in (notice_id, timestamp, listed):
        if isinstance(value, Refused):
            return value
    versions = [item.partition(",") for item in str(listed).split(" ")]
    signatures = _decoded([value for version, _, value in versions if version == "v1"], "base64", "sha256")
    if isinstance(signatures, Refused):
        return signatures
    content = f"{notice_id}.{timestamp}.".encode() + body
    return _Claim(signatures=signatures, content=content, timestamp=str(timestamp), notice_id=str(notice_id))


def _standard_key(secret: bytes) -> bytes | None:
    """``whsec_`` and base64, or base64 alone; None if it is neither, such as a public key."""
    encoded = secret.strip().removeprefix(b"whsec_")
    try:
        return b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except ValueError:
        return None


def _hmac(spec: WebhookSpec, headers: Headers, body: bytes, url: str) -> _Claim | Refused:
    value = _header(headers, spec.header, _SIGNATURE)
    if isinstance(value, Refused):
        return value
    pairs = [(key.strip(), text.strip()) for key, _, text in (item.partition("=") for item in value.split(","))]
    timestamp: str | Refused = ""
    if spec.timestamp:
        timestamp = _header(pairs if spec.pairs else headers, spec.timestamp, _TIMESTAMP, exact=bool(spec.pairs))
    notice_id: str | Refused = _header(headers, spec.id_header, _ID) if "id" in spec.signed else ""
    for part in (timestamp, notice_id):
        if isinstance(part, Refused):
            return part
    given = [text for key, text in pairs if key == spec.pairs] if spec.pairs else value.split(" ")
    prefixed = [text.removeprefix(spec.prefix) for text in given if text.startswith(spec.prefix)]
    signatures = _decoded(prefixed, spec.encoding, spec.algorithm)
    if isinstance(signatures, Refused):
        return signatures
    values = {"timestamp": timestamp, "id": notice_id, "url": url}
    return _Claim(
        signatures=signatures,
        content=b"".join(body if part == "body" else _text(values, part) for part in spec.signed),
        timestamp=str(timestamp),
        notice_id=str(notice_id),
    )


def _text(values: Mapping[str, object], part: str) -> bytes:
    """The signed part that a word stands for; any other text stands for itself."""
    return str(values.get(part, part)).encode("utf-8", "surrogatepass")


def _header(headers: Headers, name: str, form: re.Pattern[str], *, exact: bool = False) -> str | Refused:
    """The one value of a header. Two different values prove nothing: others on the way may have read the other one.

    ``exact``: the letter case of the name counts.
    """
    wanted = name if exact else name.lower()
    values = {value for key, value in headers if (key if exact else key.lower()) == wanted}
    if not name or not values:
        return Refused("a header is missing")
    if len(values) > 1:
        return Refused("a header has two values")
    (value,) = values
    return value if form.fullmatch(value) else Refused("a header cannot be read")


_SIZES: Mapping[str, int] = MappingProxyType({"sha1": 20, "sha256": 32, "sha512": 64})
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")


def _decoded(given: Sequence[str], encoding: str, algorithm: str) -> tuple[bytes, ...] | Refused:
    """The signatures that can be one at all."""
    if len(given) > MOST_SIGNATURES:
        return Refused("there are too many signatures")
    found = [_bytes(text, encoding) for text in given]
    signatures = tuple(one for one in found if one is not None and len(one) == _SIZES[algorithm])
    return signatures or Refused("there is no signature that can be read")


def _bytes(text: str, encoding: str) -> bytes | None:
    if encoding == "hex":
        return bytes.fromhex(text) if _HEX.fullmatch(text) else None
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def _is_fresh(timestamp: str, spec: WebhookSpec, now: datetime) -> bool:
    """Within the tolerance, both ways: a clock may be ahead, and a replay is old. At most 15 digits: no overflow."""
    milliseconds = spec.scheme is WebhookScheme.HMAC and spec.timestamp_unit == "milliseconds"
    seconds = int(timestamp) / (1000 if milliseconds else 1)
    return abs(now.timestamp() - seconds) <= spec.tolerance / timedelta(seconds=1)


def _bounded(notice_id: str) -> str:
    return notice_id if len(notice_id) <= LONGEST_NOTICE_ID else digest(notice_id.encode())


# --- what it names ----------------------------------------------------------------------------------


def read_notices(spec: WebhookSpec, body: bytes, *, notice_id: str) -> tuple[Notice, ...] | Ignored:
    """The jobs that a verified notice names.

    One that names several gives each an id of its own, made of ``notice_id`` and what is named: the same job named
    twice in one notice counts once.

    Returns:
        At least one notice, or ``Ignored``: it is to be acknowledged, since sending it again would not help.
    """
    document = parse(body, None)
    if isinstance(document, Malformed):
        return Ignored(document.problem)
    if spec.events is None:
        named = _named(spec, document)
        return (_notice(notice_id, named),) if named else Ignored("it names no job")
    events = _value(spec.events, document)
    if not isinstance(events, list):
        return Ignored("there is no list of events")
    found = dict.fromkeys(one for one in (_named(spec, event) for event in events[:MOST_EVENTS]) if one)
    if not found:
        return Ignored("no event names a job")
    return tuple(_notice(digest("\0".join((notice_id, *one)).encode()), one) for one in found)


_Named = tuple[str, str]  # "job_id" or "operation_id", and the id


def _notice(notice_id: str, named: _Named) -> Notice:
    kind, value = named
    return Notice(notice_id=notice_id, **{kind: value})


def _named(spec: WebhookSpec, event: object) -> _Named | None:
    """The provider's own id of the job if it is there, since nobody else can have written it; else ours."""
    for kind, place, limit in (
        ("job_id", spec.job_id, LONGEST_JOB_ID),
        ("operation_id", spec.operation_id, LONGEST_OPERATION_ID),
    ):
        value = None if place is None else _id(_value(place, event), limit)
        if value:
            return kind, value
    return None


def _value(place: Body, document: object) -> object:
    """The value at a place; None if it is missing, or there is no single true one."""
    seen = read(place, Answer(status=0, document=document))
    return seen.value if isinstance(seen, Found) else None


def _id(value: object, limit: int) -> str:
    """Exact text, or an integer by its digits (R-ID-5); "" for anything else, and for what no id can hold."""
    text = str(value) if type(value) is int else value
    return text if isinstance(text, str) and len(text) <= limit and clean(text, len(text) or 1) == text else ""
