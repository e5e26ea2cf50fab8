"""What a table says about everything besides status: submit, look up, cancel, fetch the result, hear a webhook.

Records only. Nothing here is ever done on a guess: what a table does not list is an unknown outcome (R-SUB).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from jobtrack.core.place import Body, Condition, Header, Locator, RequestSpec

# --- submit -----------------------------------------------------------------------------------------


class SubmitMeaning(StrEnum):
    """What an answer to a submission proves (R-SUB-2)."""

    ACCEPTED = "accepted"  # the provider has the job
    FINAL = "final"  # the answer is the job's end itself; it is read like a status answer
    ALREADY = "already"  # it was submitted before: the provider has a job of this operation
    REJECTED = "rejected"  # proven: there is no job, and the same request will never make one
    DENIED = "denied"  # proven: there is no job; access has to be repaired first
    BUSY = "busy"  # proven: there is no job yet; the same request may be sent again later
    MISMATCH = "mismatch"  # the idempotency key was used with other content
    UNKNOWN = "unknown"  # proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRule:
    """First matching rule wins; then the lists of codes; else the outcome is unknown."""

    conditions: tuple[Condition, ...]
    then: SubmitMeaning
    line: int = 0  # where it stands in the file, 1-based


@dataclass(frozen=True, slots=True)
class Segment:
    """One path segment of a URL that the answer holds, percent-decoded; negative counts from the end."""

    at: Body | Header
    index: int


@dataclass(frozen=True, slots=True)
class SentText:
    """A value we sent ourselves, such as ``{operation_id}`` or ``{payload/name}``: the client chooses the id."""

    template: str


@dataclass(frozen=True, slots=True)
class SentUrl:
    """The URL of the submission itself: asking it again tells how the job stands."""


IdPart = Body | Header | Segment | SentText


@dataclass(frozen=True, slots=True, kw_only=True)
class IdPlace:
    """Where a job id is. Several parts make a composite id; all must be there (R-ID-1)."""

    parts: tuple[IdPart, ...]
    joiner: str = ""  # between the parts


UrlPlace = Body | Header | SentUrl


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSpec:
    """What an acceptance carries (R-SUB-6). Lists are alternatives: the first one that is there counts."""

    job_id: tuple[IdPlace, ...] = ()
    status_url: tuple[UrlPlace, ...] = ()  # relative ones are resolved against the submission's URL (RFC 3986)
    paths: tuple[str, ...] = ()  # beginnings a status URL's path must have, whole segments; (): any path
    handle: Body | Header | None = None  # secret to poll with, as {handle}; kept sealed only
    params: tuple[tuple[str, Locator], ...] = ()  # parameters `from: answer`
    reads_status: bool = False  # the answer is a status document as well: an end in it counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """How the provider recognises a repeated submission (R-TABLE-5). Exactly one place is set."""

    header: str = ""
    query: str = ""
    body: Body | None = None  # member of the request body
    lifetime: timedelta = timedelta(0)  # how long the provider keeps a key, from the first request
    scope: str = ""  # where the provider compares keys, in its own words; told to people
    uuid: bool = False  # the provider wants a UUID: one is derived from the operation id
    replays_errors: bool = False  # a repeat gets the first answer again, errors included: it cannot help after one


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPage:
    """How a list or a result goes on. Exactly one of: a URL in the answer, a Link header, or a token sent back."""

    url: Body | None = None
    link: bool = False  # Link header with rel="next" (RFC 8288)
    token: Body | Header | None = None
    query: str = ""  # the parameter that takes the token
    end: str = ""  # a token with this text also means "no more", besides absent, null and ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSpec:
    """How to ask whether an operation was accepted (R-SUB-3)."""

    request: RequestSpec
    found: tuple[IdPlace, ...]  # where the job id is, inside an item
    items: Body | None = None  # a list of jobs; None: the answer is one job, or none if `found` is missing
    match: tuple[tuple[Locator, str], ...] = ()  # inside an item: must equal this template, exactly
    absent_http: frozenset[int] = frozenset()  # codes that say "there is no such job"
    status_url: tuple[Body, ...] = ()  # inside an item, as in AcceptedSpec
    params: tuple[tuple[str, Locator], ...] = ()  # parameters `from: answer`, inside an item
    absence_is_proof_after: timedelta | None = None  # from the end of the last attempt; None: absence proves nothing
    next: NextPage | None = None
    pages: int = 5  # most pages of one look-up; an unread page leaves absence unproven


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Budget and schedule of the way out of an unknown outcome, separate from the request's time limit (R-SUB-3)."""

    deadline: timedelta = timedelta(hours=1)  # from the moment the doubt is written down
    requests: int = 10  # most look-ups, each page counted
    first: timedelta = timedelta(seconds=2)
    base: timedelta = timedelta(seconds=5)
    factor: float = 2.0
    cap: timedelta = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitSpec:
    """How a job is submitted, and what the answers prove."""

    request: RequestSpec
    accepted: AcceptedSpec
    accepted_http: frozenset[int] = frozenset()
    final_http: frozenset[int] = frozenset()
    already_http: frozenset[int] = frozenset()
    rejected_http: frozenset[int] = frozenset()
    denied_http: frozenset[int] = frozenset()
    busy_http: frozenset[int] = frozenset()
    mismatch_http: frozenset[int] = frozenset()
    rules: tuple[SubmitRule, ...] = ()
    error: tuple[Locator, ...] = ()  # first that is present
    idempotency: Idempotency | None = None
    preconditions: tuple[str, ...] = ()  # header names a caller may pass, such as If-Match (R-SUB-7)
    ignore: tuple[Body, ...] = ()  # members of the payload that do not count for "the same content" (R-ID-2)
    lookup: LookupSpec | None = None
    recovery: Recovery = field(default_factory=Recovery)
    within: timedelta = timedelta(hours=1)  # nothing is sent for the first time later than this after `submit()`
    attempts: int = 5  # most requests a machine may send, those proven unsent included


# --- cancel -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelSpec:
    """Cancellation, where the provider documents it (R-END-5). Other answers leave its outcome unknown."""

    request: RequestSpec
    effect: str  # what a person is told before
    accepted_http: frozenset[int] = frozenset({200, 202, 204})
    refused_http: frozenset[int] = frozenset()  # proven: it will not be cancelled (too late, not allowed)
    repeatable: bool = False  # sending it twice does no harm, so a machine may try again after an unknown outcome


# --- result -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A second request on the way to a result, with values read from the answer before it."""

    request: RequestSpec
    values: tuple[tuple[str, Locator], ...] = ()  # placeholders of the request


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSpec:
    """How the result of a successful job is fetched (R-END-4). One of `value`, `url`, or `hop` alone starts it.

    The status answer is read first, anew for every try. Then, in this order where given: `hop` asks for another
    document (or for the content itself if `url` is not set), `each` takes every item, `url` is downloaded.
    """

    value: Body | None = None  # the result is this very value of the status answer, stored as JSON
    hop: Hop | None = None
    each: Body | tuple[Body, ...] | None = None  # one file for each item of this list, or for each place with a value
    url: tuple[Body | Header, ...] = ()  # in the item, or in the document read last
    name: Locator | None = (
        None  # what to call the file, in the item; cleaned; None: the place's end, result, result-1, ...
    )
    per_item: Hop | None = None  # request for each item of `each` instead of a URL; {item} is an item that is text
    next: NextPage | None = None  # pages of one result, joined in order as files of their own
    pages: int = 100
    redirects: tuple[str, ...] = ()  # origins that a download may be redirected to, without credentials
    credential_hosts: tuple[str, ...] = ()  # result origins that get the credential, besides the table's own hosts
    types: tuple[str, ...] = ()  # media types allowed, without parameters; (): any but text/html
    max_bytes: int = 1 << 30  # of all files together
    total: timedelta = timedelta(minutes=10)  # the whole of one try
    attempts: int = 5  # status reads granted, until retention ends
    ranges: bool = False  # the host answers Range with 206 and a strong ETag
    empty_ok: bool = False  # a file of no bytes is a result


# --- webhook ----------------------------------------------------------------------------------------


class WebhookScheme(StrEnum):
    STANDARD = "standard-webhooks"  # standardwebhooks.com: webhook-id, webhook-timestamp, webhook-signature
    HMAC = "hmac"
    TOKEN = "token"  # noqa: S105 - no signature: a shared secret at the end of the path


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSpec:
    """How a notice of the provider is verified and read (R-SEC-3). It is a hint: it never sets a state."""

    scheme: WebhookScheme
    header: str = ""  # HMAC: holds the signature
    prefix: str = ""  # HMAC: before the signature, such as "sha256="
    pairs: str = ""  # HMAC: the header is a list `t=...,v1=...`; this names the signature's key ("v1")
    algorithm: str = "sha256"  # sha256 | sha512 | sha1
    encoding: str = "hex"  # hex | base64
    signed: tuple[str, ...] = ("body",)  # what is signed, in order: body, timestamp, id, url, or literal text
    timestamp: str = ""  # HMAC: header with the instant, or its key if `pairs` is used; "": there is none
    timestamp_unit: str = "seconds"  # seconds | milliseconds
    id_header: str = ""  # HMAC: header with the notice's own id, for deduplication
    tolerance: timedelta = timedelta(minutes=5)  # of the timestamp, both ways
    events: Body | None = None  # a list of notices in one request; the places below start at an item
    job_id: Body | None = None
    operation_id: Body | None = None  # where the notice repeats our operation id
    max_bytes: int = 1 << 18
