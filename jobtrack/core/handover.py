"""How to follow a job, read out of an answer: checked before anything is built from it (R-SUB-6, R-ID-1, INV-30)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from jobtrack.core import sentences_answer as say
from jobtrack.core.actions import AcceptedSpec, IdPart, IdPlace, LookupSpec, Segment, SentText, SentUrl, UrlPlace
from jobtrack.core.jsontext import Malformed
from jobtrack.core.locate import Answer, Found, Unreadable, read
from jobtrack.core.operation import Operation
from jobtrack.core.place import Body, Gap, Header, Locator
from jobtrack.core.request import check_job_id, fits, status_request, texts_of
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.sent import recovered
from jobtrack.core.submission import Handover
from jobtrack.core.table import ProviderTable
from jobtrack.core.target import origin_of, resolve, target_allowed
from jobtrack.core.template import CONTROL, Values, fill
from jobtrack.core.text import tell
from jobtrack.errors import UsageError

MAX_TEXT = 8000
"""Most characters of a status URL or of a secret handle."""

_ORIGIN = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/]*")


@dataclass(frozen=True, slots=True)
class Lacking:
    """The answer tells no way to follow the job."""

    problem: str  # a clause, clean
    denied: bool = False  # there is an address, but the table does not allow it
    nothing: bool = False  # there is no id and no address at all, not even a wrong one


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an answer is read with."""

    table: ProviderTable
    operation: Operation
    base: str  # the URL that was asked: relative ones start there
    values: Values  # what placeholders of texts that we sent ourselves stand for


def context_of(table: ProviderTable, operation: Operation, sent: SubmitBytes | None, base: str) -> Context:
    """The context of an answer.

    Args:
        table: the newest table.
        operation: the row, without a job id yet.
        sent: the submission, as long as it is kept.
        base: the URL that was asked.
    """
    payload = recovered(table.submit.request, sent) if table.submit else {}
    return Context(
        table=table, operation=operation, base=base, values=Values(texts=texts_of(operation), payload=payload)
    )


def read_handover(context: Context, spec: AcceptedSpec | LookupSpec, answer: Answer) -> Handover | Lacking | Unreadable:
    """Read how to follow the job. Never raises.

    Args:
        context: the table, the operation and what was sent.
        spec: where the parts are: in the answer to the submission, or in an item of a look-up.
        answer: the answer, its document narrowed to the item.

    Returns:
        A handover with which a status request can be built; ``Lacking`` with the reason; or ``Unreadable`` if the
        body would have to be read for it and cannot be, or says one thing twice.
    """
    blind = answer.document if isinstance(answer.document, Malformed) else None
    read_from = answer if blind is None else replace(answer, document=None)
    handover = _read(context, spec, read_from)
    if blind is not None and not blind.empty and isinstance(handover, Lacking) and _in_body(spec):
        return Unreadable(blind.problem)
    return handover


def _in_body(spec: AcceptedSpec | LookupSpec) -> bool:
    """Whether anything of it may stand in the body."""
    parts = (part for place in _id_places(spec) for part in place.parts)
    ids = (part.at if isinstance(part, Segment) else part for part in parts)
    params = (place for _, place in spec.params)
    return any(isinstance(place, Body) for place in (*ids, *params, *spec.status_url, _handle_place(spec)))


def _id_places(spec: AcceptedSpec | LookupSpec) -> tuple[IdPlace, ...]:
    return spec.job_id if isinstance(spec, AcceptedSpec) else spec.found


def _handle_place(spec: AcceptedSpec | LookupSpec) -> Body | Header | None:
    return spec.handle if isinstance(spec, AcceptedSpec) else None


def _read(context: Context, spec: AcceptedSpec | LookupSpec, answer: Answer) -> Handover | Lacking | Unreadable:
    job_id = _job_id(context, _id_places(spec), answer)
    if isinstance(job_id, Unreadable):
        return job_id
    if isinstance(job_id, Lacking) and job_id.nothing and not _elsewhere(spec, answer):
        return job_id
    params = _params(context.table, spec.params, answer)
    if isinstance(params, Lacking | Unreadable):
        return params
    handle = _handle(_handle_place(spec), answer)
    if isinstance(handle, Lacking | Unreadable):
        return handle
    url = _status_url(context, spec.status_url, answer, {**context.operation.params, **params})
    if isinstance(url, Unreadable):
        return url
    known = Handover(
        job_id="" if isinstance(job_id, Lacking) else job_id,
        status_url="" if isinstance(url, Lacking) else url,
        handle=handle,
        params=params,
    )
    why = next((part for part in (url, job_id) if isinstance(part, Lacking)), None)
    return _followable(context, known, why)


def _elsewhere(spec: AcceptedSpec | LookupSpec, answer: Answer) -> bool:
    """Whether there is an address or a handle, right or wrong."""
    places = (*spec.status_url, _handle_place(spec))
    return any(
        isinstance(place, SentUrl) or (place is not None and not isinstance(read(place, answer), Gap))
        for place in places
    )


def _followable(context: Context, known: Handover, why: Lacking | None) -> Handover | Lacking:
    """The handover, if the table builds a status request from it; ``why``: what it lacks."""
    params = {**context.operation.params, **known.params}
    accepted = replace(context.operation, job_id=known.job_id, status_url=known.status_url, params=params)
    try:
        status_request(context.table, accepted, handle=known.handle)
    except UsageError as error:
        if why is None:
            return Lacking(tell(say.NOT_FOLLOWABLE.of(job=known.job_id, why=error.message)))
        if known.job_id:  # the only trace of it (INV-15)
            why = replace(why, problem=say.NAMES_JOB.of(what=why.problem, job=known.job_id))
        return replace(why, problem=tell(why.problem))
    return known


# --- the job id --------------------------------------------------------------------------------------


def _job_id(context: Context, places: Iterable[IdPlace], answer: Answer) -> str | Lacking | Unreadable:
    """The first id that is there. What cannot be an id is none: the next place is tried."""
    wrong = ""
    for place in places:
        parts = [_part(context, part, answer) for part in place.parts]
        unreadable = next((part for part in parts if isinstance(part, Unreadable)), None)
        if unreadable is not None:
            return unreadable
        texts = [part for part in parts if isinstance(part, str)]
        wrong = wrong or next((part.problem for part in parts if isinstance(part, Lacking) and not part.nothing), "")
        if len(texts) < len(parts):
            continue
        try:
            check_job_id(place.joiner.join(texts))
        except UsageError as error:
            wrong = wrong or error.message
            continue
        return place.joiner.join(texts)
    return Lacking(wrong or say.NO_JOB_ID.of(), nothing=not wrong)


def _part(context: Context, part: IdPart, answer: Answer) -> str | Lacking | Unreadable:
    if isinstance(part, SentText):
        try:
            return fill(part.template, context.values) or Lacking(say.SENT_NO_JOB_ID.of(), nothing=True)
        except UsageError:
            return Lacking(say.SENT_NO_JOB_ID.of(), nothing=True)
    if isinstance(part, Segment):
        text = exact_text(part.at, answer)
        return _segment(text, part.index, part.at.source) if isinstance(text, str) else text
    return exact_text(part, answer)


def exact_text(place: Locator, answer: Answer) -> str | Lacking | Unreadable:
    """A text or an integer at a place, exactly as it was written: a float, a boolean or a container is none."""
    seen = read(place, answer)
    if isinstance(seen, Unreadable):
        return seen
    if not isinstance(seen, Found):
        return Lacking(say.NOTHING_AT.of(place=place.source), nothing=True)
    if type(seen.value) is int:
        return str(seen.value)
    if isinstance(seen.value, str) and seen.value:
        return seen.value
    return Lacking(say.NEITHER.of(place=place.source))


def _segment(url: str, index: int, source: str) -> str | Lacking:
    """Written out: the standard library's parser drops tabs and line breaks, and so changes the id."""
    segments = _ORIGIN.sub("", re.split(r"[?#]", url, maxsplit=1)[0]).strip("/").split("/")
    if not -len(segments) <= index < len(segments):
        return Lacking(say.NO_SEGMENT.of(place=source, index=index))
    try:
        return unquote(segments[index], errors="strict") or Lacking(say.EMPTY_PATH.of(place=source))
    except UnicodeDecodeError:
        return Lacking(say.SEGMENT_NO_TEXT.of(index=index, place=source))


# --- parameters, handle ------------------------------------------------------------------------------


def _params(
    table: ProviderTable, places: Iterable[tuple[str, Locator]], answer: Answer
) -> Mapping[str, str] | Lacking | Unreadable:
    params: dict[str, str] = {}
    for name, place in places:
        text = exact_text(place, answer)
        if not isinstance(text, str):
            return text if isinstance(text, Unreadable) else Lacking(text.problem)
        if name not in table.params or not fits(text, table.params[name].pattern):
            return Lacking(say.NO_PARAMETER.of(place=place.source, name=name))
        params[name] = text
    return params


def _handle(place: Body | Header | None, answer: Answer) -> str | Lacking | Unreadable:
    if place is None:
        return ""
    text = exact_text(place, answer)
    if isinstance(text, Lacking):
        return Lacking(text.problem)
    if isinstance(text, str) and (CONTROL.search(text) or len(text) > MAX_TEXT):
        return Lacking(say.BAD_HANDLE.of(place=place.source))
    return text


# --- the status URL ----------------------------------------------------------------------------------


def _status_url(
    context: Context, places: Iterable[UrlPlace], answer: Answer, params: Mapping[str, str]
) -> str | Lacking | Unreadable:
    """The first address that is there, absolute and allowed; "" if there is none. A wrong one is not "none"."""
    for place in places:
        if isinstance(place, SentUrl):
            return _judged(context, context.base, params)
        seen = read(place, answer)
        if isinstance(seen, Unreadable):
            return seen
        if isinstance(seen, Found) and seen.value != "":
            return _judged(context, seen.value, params, place)
    return ""


def _judged(
    context: Context, value: object, params: Mapping[str, str], place: Body | Header | None = None
) -> str | Lacking:
    """An address as it may be followed; ``place``: where it stands; None: it is that of the submission."""
    url = resolve(value, context.base) if isinstance(value, str) and len(value) <= MAX_TEXT else ""
    if not url or not target_allowed(url, context.table, params):
        origin = origin_of(url, loopback=True) or say.NO_PLAIN_URL.of()
        sent = say.SENT_ADDRESS_DENIED.of(origin=origin)
        return Lacking(say.ADDRESS_DENIED.of(place=place.source, origin=origin) if place else sent, denied=True)
    submit = context.table.submit
    prefixes = submit.accepted.paths if submit else ()
    if prefixes and not any(_under(urlsplit(url).path, prefix, params) for prefix in prefixes):
        sent = say.SENT_PATH_DENIED.of()
        return Lacking(say.PATH_DENIED.of(place=place.source) if place else sent, denied=True)
    return url


def _under(path: str, prefix: str, params: Mapping[str, str]) -> bool:
    """Whether a path begins with these whole segments."""
    try:
        wanted = (fill(prefix, Values(texts=params)) or "").rstrip("/")
    except UsageError:
        return False
    return path == wanted or path.startswith(wanted + "/")
