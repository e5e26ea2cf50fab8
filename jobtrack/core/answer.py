"""What every answer carries, whatever it was asked for: its document, request id, error text and HTTP's own word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from jobtrack.core import sentences_answer as say
from jobtrack.core.guidance import read_guidance
from jobtrack.core.jsontext import Malformed, parse
from jobtrack.core.locate import Answer, Found, read
from jobtrack.core.observation import Kind, Observation
from jobtrack.core.place import Locator
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Trouble
from jobtrack.core.sentences_request import NO_ANSWER
from jobtrack.core.table import ProviderTable
from jobtrack.core.text import tell

REQUEST_ID_LIMIT = 128

FLAW_PROBLEM = {
    Flaw.OVERSIZED: say.OVERSIZED.of(),
    Flaw.UNDECODABLE: say.UNDECODABLE.of(),
}
_TROUBLE_KIND = {Trouble.TARGET_DENIED: Kind.TARGET_DENIED, Trouble.CREDENTIAL: Kind.DENIED}
_TOO_MANY_REQUESTS = 429
_REQUEST_ID_HEADERS = (
    "x-request-id",
    "request-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "x-ms-request-id",
    "x-github-request-id",
    "x-correlation-id",
)


def unanswered(reply: NoAnswer) -> Observation:
    """The observation of a request that got no answer."""
    kind = _TROUBLE_KIND.get(reply.trouble, Kind.TRANSPORT_FAILURE)
    detail = tell(reply.detail) or NO_ANSWER.of(trouble=reply.trouble)
    return Observation(kind=kind, detail=detail, trouble=reply.trouble)


def answer_of(reply: Answered) -> Answer:
    """The answer with its JSON document; ``Malformed`` becomes a fault only where somebody reads the body."""
    document = (
        parse(reply.body, reply.header("content-type")) if reply.flaw is None else Malformed(FLAW_PROBLEM[reply.flaw])
    )
    return Answer(status=reply.status, headers=reply.headers, document=document)


def signal(code: int, read_http: frozenset[int]) -> tuple[Kind, str] | None:
    """What a status code says before any body is read; None if its body may say more."""
    if code == _TOO_MANY_REQUESTS:
        return Kind.RATE_LIMITED, say.TOO_MANY_REQUESTS.of()
    if code in range(500, 600):
        return Kind.TRANSPORT_FAILURE, say.SERVER_FAILED.of(code=code)
    if code in read_http:
        return None
    if code in (404, 410):
        return Kind.NOT_FOUND, say.NO_SUCH_JOB.of(code=code)
    if code in range(300, 400):
        return Kind.TARGET_DENIED, say.REDIRECT.of(code=code)
    return Kind.INVALID_RESPONSE, say.NOT_READ.of(code=code)


def refused(code: int) -> tuple[Kind, str] | None:
    """What HTTP says of a request that the table does not explain; None for 2xx."""
    if code in (401, 403):
        return Kind.DENIED, say.ACCESS_DENIED.of(code=code)
    seen = signal(code, frozenset(range(200, 300)))
    if seen is not None and seen[0] is Kind.NOT_FOUND:
        return Kind.INVALID_RESPONSE, say.NOT_FOUND.of(code=code)
    return seen


def observation(
    table: ProviderTable,
    reply: Answered,
    answer: Answer,
    kind: Kind,
    detail: str,
    *,
    now: datetime | None,
    error: tuple[Locator, ...] = (),
) -> Observation:
    """An observation of an answer that is not about a job's state.

    Args:
        now: aware; None: guidance is not read.
        error: where the provider says what is wrong.
    """
    return Observation(
        kind=kind,
        detail=tell(detail),
        http=reply.status,
        request_id=request_id(reply),
        guidance=None if now is None else read_guidance(table, reply, answer.document, now),
        error=error_text(error, answer),
    )


def request_id(reply: Answered) -> str:
    """The provider's own id of the request."""
    values = (reply.header(name) for name in _REQUEST_ID_HEADERS)
    return tell(next((value for value in values if value), ""), REQUEST_ID_LIMIT)


def texts(locators: tuple[Locator, ...], answer: Answer) -> Iterator[str]:
    """Each located value as text, "" where there is none."""
    for locator in locators:
        seen = read(locator, answer)
        yield text_of(seen.value) if isinstance(seen, Found) else ""


def text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def error_text(locators: tuple[Locator, ...], answer: Answer) -> str:
    """The first error text that is there, redacted and bounded."""
    return tell(next(filter(None, texts(locators, answer)), ""))


def shown(value: object) -> str:
    """A foreign value inside a sentence of ours."""
    return repr(tell(text_of(value), 80))
