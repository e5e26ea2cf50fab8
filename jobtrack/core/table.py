"""A provider table as frozen records: what a provider's answers mean and what may be asked of it (R-TABLE).

The catalog builds these from YAML; nothing here reads a file. Every duration is a ``timedelta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from jobtrack.core.actions import CancelSpec, FetchSpec, SubmitSpec, WebhookSpec
from jobtrack.core.place import Body, Condition, Gap, Header, Locator, RequestSpec, Scalar
from jobtrack.core.reply import Trouble


class Meaning(StrEnum):
    """What a declared state or rule says about the job (R-TABLE-2)."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTENTION = "attention"  # documented; waits for a person or the client
    NOT_FOUND = "not_found"  # rules only: says "I do not know this job" in another way than 404
    RATE_LIMITED = "rate_limited"  # rules only: says "too many requests" in another way than 429
    INVALID = "invalid"  # rules only: an answer that must never be read as a state


# --- what a value must be --------------------------------------------------------------------------


class FieldType(StrEnum):
    """Type a required result field must have."""

    ANY = "any"  # present and not null
    STRING = "string"  # not empty
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"  # not empty unless `empty_ok`
    OBJECT = "object"
    URL = "url"  # absolute https URL on an allowed result host


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """First matching rule wins. No rule: the state map; no row: unknown state."""

    conditions: tuple[Condition, ...]
    then: Meaning
    line: int = 0  # where it stands in the file, 1-based; 0: not from a file
    cite: str = ""  # the provider's document


class StateType(StrEnum):
    STRING = "string"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePart:
    """One of the values a state is made of (most providers have one part)."""

    at: Locator
    type: StateType = StateType.STRING
    fold: bool = False  # letter case does not count, as declared


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRow:
    """One declared state: a value or a gap for each part, and what it means."""

    values: tuple[Scalar | Gap, ...]
    meaning: Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStates:
    """The provider's published contract leaves non-terminal states open; unlisted words mean ``pending``."""

    cite: str  # where the contract says so
    starts_with: tuple[str, ...] = ()  # only words with these beginnings; (): any word


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The answer is a list: read the one item that matches. Other locators then start at that item."""

    list_at: Body
    where: tuple[Condition, ...] = ()  # located inside an item
    id_at: Body | None = None  # the item whose value here equals the job id
    none_means: Meaning = Meaning.INVALID  # INVALID, NOT_FOUND or PENDING


# --- parameters and credentials ---------------------------------------------------------------------


class ParamPattern(StrEnum):
    """Named, linear patterns; a table never carries a regular expression."""

    DNS_LABEL = "dns-label"
    SLUG = "slug"  # letters, digits, - _ .
    SEGMENT = "segment"  # one path segment: no slash, control character, `.` or `..`
    UUID = "uuid"
    INTEGER = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    source: str  # "account": settings ACCOUNTS; "caller": passed to track()/submit(); "answer": from the acceptance
    pattern: ParamPattern


class AuthKind(StrEnum):
    NONE = "none"
    BEARER = "bearer"  # Authorization: Bearer <secret>
    HEADER = "header"  # <name>: <prefix><secret>
    BASIC = "basic"  # secret is "user:password"
    QUERY = "query"  # ?<name>=<secret>
    SIGNER = "signer"  # <name> is the dotted path of a callable


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """Shape of the credential only; the secret is a reference in settings (R-SEC-2)."""

    kind: AuthKind = AuthKind.NONE
    name: str = ""
    prefix: str = ""


# --- what an answer carries besides the state ------------------------------------------------------


class HintUnit(StrEnum):
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    EPOCH_SECONDS = "epoch_seconds"
    EPOCH_MILLISECONDS = "epoch_milliseconds"
    TIMESTAMP = "timestamp"  # RFC 3339
    HTTP_DATE = "http_date"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A place where the provider says when to ask again, besides Retry-After."""

    at: Body | Header
    unit: HintUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A place where the provider states an instant (its own clock)."""

    at: Body | Header
    unit: HintUnit = HintUnit.TIMESTAMP


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSpec:
    """What success must carry (R-TABLE-3)."""

    require: tuple[tuple[Locator, FieldType], ...] = ()
    one_of: tuple[Locator, ...] = ()  # exactly one of these must be present
    keep: tuple[tuple[str, Locator], ...] = ()  # small values stored for follow-ups, at most 16 KiB together
    hosts: tuple[str, ...] = ()  # origins a result URL may have, besides the table's own
    secret: bool = False  # result URLs are capabilities: never stored
    empty_ok: bool = False  # an empty array or string is a valid result


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFound:
    """What 404 and 410 mean: pending for a while after acceptance or after a notice of the provider, then a stop."""

    window: timedelta = timedelta(0)  # from acceptance
    after_notice: timedelta = timedelta(0)  # from the last webhook: its sender may know before its API does
    then: str = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSpec:
    request: RequestSpec
    read_http: frozenset[int] = frozenset(range(200, 300))  # codes whose body may carry a state
    echo: Locator | None = None  # where the answer repeats the job id (R-ID-5)
    pick: Pick | None = None
    state: tuple[StatePart, ...] = ()
    rows: tuple[StateRow, ...] = ()
    rules: tuple[Rule, ...] = ()
    open: OpenStates | None = None
    result: ResultSpec = field(default_factory=ResultSpec)
    error: tuple[Locator, ...] = ()  # first that is present
    progress: tuple[Locator, ...] = ()  # joined by "/"
    expires_at: Instant | None = None
    hints: tuple[Hint, ...] = ()
    not_found: NotFound = field(default_factory=NotFound)
    stall_after: timedelta | None = None  # a state unchanged longer than this stops; None: never
    stop_on: frozenset[Trouble] = frozenset()  # network errors that stop at once instead of being retried (R-TABLE-5)


# --- schedule, budgets, limits ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """Local backoff (R-POLL-1): between half and all of min(cap, base * factor^n); never under ``min_interval``."""

    first: timedelta = timedelta(seconds=5)
    base: timedelta = timedelta(seconds=5)
    factor: float = 2.0  # >= 1
    cap: timedelta = timedelta(minutes=2)
    min_interval: timedelta = timedelta(seconds=1)
    max_guidance: timedelta = timedelta(days=7)  # a longer wish is invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What one extension grants, and how often."""

    time: timedelta
    status_requests: int
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpec:
    """Budgets granted at the start of an operation, unless the caller gives less or more."""

    deadline: timedelta = timedelta(hours=1)
    status_requests: int = 50
    transport_failures: int = 5
    rate_limited: int = 5
    extension: Extension | None = None


class GateScope(StrEnum):
    ACCOUNT = "account"  # guidance on 429/503 holds every operation of the account (R-POLL-4)
    OPERATION = "operation"  # only the one that met it


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    scope: GateScope = GateScope.ACCOUNT
    max_hold: timedelta = timedelta(hours=1)  # longer guidance: a person is asked
    breaker_failures: int = 5  # connect failures or 5xx in a row on the account; 0: no breaker
    breaker_hold: timedelta = timedelta(seconds=30)  # then single probes at this interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Limits of one request (R-BUDGET-1). ``total`` is the whole exchange, name resolution included."""

    connect: timedelta = timedelta(seconds=5)
    read: timedelta = timedelta(seconds=10)
    total: timedelta = timedelta(seconds=20)
    max_bytes: int = 1 << 20  # of the body, on the wire and unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long the provider says it keeps things (R-TABLE-5). Told to people; nothing is decided by it."""

    job: timedelta | None = None  # the job, from its acceptance; None: not documented
    result: timedelta | None = None  # the result, from the end of the job; None: not documented


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An answer and what it means; runs as a test (R-TABLE-7)."""

    http: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    means: str  # an observation Kind; a SubmitMeaning or a LookupKind where `of` says so
    job_id: str  # of the operation it is read for; with `of`: the one that must be read from it, "" for any
    params: Mapping[str, str] = field(default_factory=dict)  # of that operation; made up if the table gives none
    of: str = "status"  # or "submit", "lookup": what was answered
    payload: object = None  # of the submission; None: made up
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTable:
    id: str
    name: str
    docs: str
    revision: int  # raised with every change of meaning
    digest: str  # sha256 hex of the text
    text: str  # as read; stored once per digest
    hosts: tuple[str, ...]  # origins `https://host[:port]`, may hold {param}; first one is used to build URLs
    status: StatusSpec
    submit: SubmitSpec | None = None  # None: jobs are submitted elsewhere and only tracked
    cancel: CancelSpec | None = None  # None: not documented, so never offered
    result: FetchSpec | None = None  # None: there is nothing to fetch
    webhook: WebhookSpec | None = None
    params: Mapping[str, Param] = field(default_factory=dict)
    auth: Auth = field(default_factory=Auth)
    polling: Polling = field(default_factory=Polling)
    budget: BudgetSpec = field(default_factory=BudgetSpec)
    gate: GatePolicy = field(default_factory=GatePolicy)
    limits: RequestLimits = field(default_factory=RequestLimits)
    retention: Retention = field(default_factory=Retention)
    on_failure: str = "escalate"  # or "close": failure, cancelled and expired need no decision
    allow_loopback: bool = False  # plain http to loopback hosts (demo, tests); settings must allow it too
    examples: tuple[Example, ...] = ()
    source: str = ""  # file name, for messages
