"""How a result is fetched: which address may be asked and with what, what an answer is worth, what a file is called.

(R-END-4, R-SEC-1, R-READ-6, INV-30, INV-33.) Rules only; ``flow.fetch`` walks and writes. No text made here holds an
address, a path or a provider's word: links are often capabilities, and two failures with other signatures read alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urljoin

from jobtrack.core import sentences_result as say
from jobtrack.core.actions import FetchSpec
from jobtrack.core.answer import answer_of
from jobtrack.core.guidance import read_guidance
from jobtrack.core.locate import Answer, Found, Unreadable, choose, read
from jobtrack.core.operation import Operation
from jobtrack.core.paging import next_of, with_query
from jobtrack.core.place import Body, Header, Locator
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Reply, Trouble
from jobtrack.core.result import repeats
from jobtrack.core.sentences_question import KEEPS_RESULT, KEPT_RESULTS
from jobtrack.core.table import ProviderTable
from jobtrack.core.target import allowed_origins, origin_of, origins_of, result_allowed

LINK_TRIES = 3
"""How many tries may use one link that is no capability, before the status is read anew."""

DEAD = frozenset({401, 403, 404, 410})
"""Answers that say that a link does not lead to the result (any more, or not yet)."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEPS_METHOD = frozenset({307, 308})

PAUSE = timedelta(seconds=1)
"""Least time between two tries, whatever a provider says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a try came to nothing."""

    said: str  # one clean sentence, without addresses
    final: bool = False  # another try would come to the same
    stale: bool = False  # the link is of no use any more: the job is asked for another
    wait: timedelta | None = None  # the provider asked to wait so long
    http: int | None = None  # the code of that answer


# --- which addresses --------------------------------------------------------------------------------


def may_fetch(url: str, table: ProviderTable, spec: FetchSpec, params: Mapping[str, str]) -> bool:
    """Whether a result may be asked for here: the table's own hosts and its result hosts."""
    return result_allowed(url, table, params) or gets_credential(url, table, spec, params)


def may_follow(url: str, table: ProviderTable, spec: FetchSpec, params: Mapping[str, str]) -> bool:
    """Whether a redirect of a download may lead here. A ``Location`` is data, not permission (R-SEC-1)."""
    origin = origin_of(url, loopback=table.allow_loopback)
    return origin in origins_of(spec.redirects, table, params) or may_fetch(url, table, spec, params)


def gets_credential(url: str, table: ProviderTable, spec: FetchSpec, params: Mapping[str, str]) -> bool:
    """Whether the account's credential goes along: to the table's own hosts, and to those it names (INV-32)."""
    origin = origin_of(url, loopback=table.allow_loopback)
    return origin in allowed_origins(table, params) | origins_of(spec.credential_hosts, table, params)


def is_plain(url: str, table: ProviderTable, params: Mapping[str, str]) -> bool:
    """Whether a link may be kept: no query, on the table's own hosts, and the table does not call links secret."""
    if table.status.result.secret or "?" in url or "#" in url:
        return False
    return origin_of(url, loopback=table.allow_loopback) in allowed_origins(table, params)


def resolved(base: str, reference: object) -> str:
    """A reference as an absolute URL (RFC 3986); "" if it is no text or cannot be resolved. Not judged yet."""
    if not isinstance(reference, str) or not reference:
        return ""
    try:
        return urljoin(base, reference)
    except ValueError:  # brackets that hold no address
        return ""


def after_redirect(method: str, status: int) -> str:
    """Method of the request that follows a redirect; "" if it would repeat a request that is no plain reading."""
    if status in _KEEPS_METHOD and method != "GET":
        return ""
    return "GET"


# --- documents on the way ---------------------------------------------------------------------------


def status_document(table: ProviderTable, reply: Answered, job_id: str) -> Answer | Fault:
    """The status answer, narrowed to the item of a list that is this job."""
    answer = answer_of(reply)
    if table.status.pick is None:
        return answer
    item = choose(table.status.pick, answer, job_id)
    return item if isinstance(item, Answer) else Fault(said=say.NO_ITEM.of(), stale=True)


def link_in(places: tuple[Body | Header, ...], answer: Answer, base: str) -> str:
    """The first link that is there, as an absolute URL; "" if there is none."""
    for place in places:
        seen = read(place, answer)
        if isinstance(seen, Found) and (url := resolved(base, seen.value)):
            return url
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What one file of a result is made from."""

    value: object
    name: str = ""  # last part of the place it came from, where only this place ends so; "": of a list, or not told


def items_of(each: Body | tuple[Body, ...], answer: Answer) -> tuple[Item, ...] | Fault:
    """The items of a list that a document holds, or those of several places that are there and not null."""
    if isinstance(each, tuple):
        return _items_at(each, answer)
    seen = read(each, answer)
    if isinstance(seen, Found) and isinstance(seen.value, list):
        return tuple(Item(value=value) for value in seen.value)
    return Fault(said=say.NO_LIST.of(place=each.source or say.ROOT.of()), stale=True)


def _items_at(places: tuple[Body, ...], answer: Answer) -> tuple[Item, ...] | Fault:
    items: list[Item] = []
    # With one of two equal names null in one try and not in the next, a file would stand for the other.
    ends = [_end(place).casefold() for place in places]
    for place, end in zip(places, ends, strict=True):
        seen = read(place, answer)
        if isinstance(seen, Unreadable):
            return Fault(said=say.PLACE_UNREADABLE.of(place=place.source), stale=True)
        if isinstance(seen, Found):
            items.append(Item(value=seen.value, name=_end(place) if ends.count(end) == 1 else ""))
    return tuple(items)


def _end(place: Body) -> str:
    """The last part of a place, as a file may be called; "" if it cannot be called so."""
    name, usable = file_name(place.tokens[-1] if place.tokens else None, 0, ())
    return name if usable else ""


def hop_values(places: tuple[tuple[str, Locator], ...], answer: Answer) -> dict[str, str] | Fault:
    """What a second request needs of the answer before it, as texts."""
    values: dict[str, str] = {}
    for name, place in places:
        seen = read(place, answer)
        text = scalar(seen.value) if isinstance(seen, Found) else ""
        if not text:
            return Fault(said=say.LACKS.of(name=f"{{{name}}}"), stale=True)
        values[name] = text
    return values


def scalar(value: object) -> str:
    """A text or an integer as text; "" for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else ""


def inline(spec: FetchSpec, value: object) -> bytes | Fault:
    """The bytes of a result that is a value of the status answer."""
    if isinstance(value, str | list | dict) and not value and not spec.empty_ok:
        return Fault(said=say.EMPTY.of())
    if repeats(value):
        return Fault(said=say.MEMBER_TWICE.of())
    content = json.dumps(value).encode("ascii")
    if len(content) > spec.max_bytes:
        return Fault(said=say.BYTES_MANY.of(count=len(content), most=spec.max_bytes), final=True)
    return content


# --- pages ------------------------------------------------------------------------------------------


def next_page(spec: FetchSpec, answer: Answer, url: str) -> str | Fault:
    """URL of the page after the one that came from ``url``; "" if that was the last one. Not judged yet."""
    if spec.next is None:
        return ""
    named = next_of(spec.next, answer)
    if isinstance(named, Unreadable):
        return Fault(said=say.NEXT_UNREADABLE.of())
    if not named:
        return ""
    if spec.next.token is not None:
        return with_query(url, spec.next.query, named)
    return resolved(url, named) or Fault(said=say.NEXT_UNREADABLE.of())


def too_many(spec: FetchSpec) -> Fault:
    return Fault(said=say.PAGES_GO_ON.of(count=spec.pages), final=True)


# --- what an answer is worth ------------------------------------------------------------------------


def fault_of(reply: Reply, table: ProviderTable, now: datetime) -> Fault:
    """Why an answer that should have been a document or a file is none."""
    if isinstance(reply, NoAnswer):
        return Fault(said=say.NO_ANSWER_FOR.of(trouble=reply.trouble), final=reply.trouble is Trouble.TARGET_DENIED)
    if reply.flaw is Flaw.OVERSIZED:
        return Fault(said=say.ANSWER_LARGE.of(), final=True)
    if reply.flaw is not None:
        return Fault(said=say.UNDECODABLE.of())
    if reply.status in REDIRECTS:
        return Fault(said=say.REDIRECT_DENIED.of(code=reply.status), final=True)
    guidance = read_guidance(table, reply, None, now)
    wait = None if guidance is None else guidance.wait
    # 404 often means "not yet" where a cache is in between; the others say that this very link is over (B039).
    stale = reply.status in DEAD and reply.status != 404
    return Fault(said=say.ANSWERED.of(code=reply.status), stale=stale, wait=wait, http=reply.status)


def media_type(answer: Answered) -> str:
    """The media type without parameters, lower case; "" if the answer names none."""
    return (answer.header("content-type") or "").partition(";")[0].strip().lower()


def type_fault(spec: FetchSpec, answer: Answered) -> Fault | None:
    """An error page is no result: only declared types count, and HTML only if it is declared."""
    found = media_type(answer)
    if spec.types:
        fits = found in {allowed.lower() for allowed in spec.types}
    else:
        fits = found not in ("text/html", "application/xhtml+xml")
    return None if fits else Fault(said=say.TYPE_DENIED.of(type=_plain_type(found)))


_TYPE = re.compile(r"[a-z0-9.+-]{1,60}/[a-z0-9.+-]{1,60}")


def _plain_type(text: str) -> str:
    return text if _TYPE.fullmatch(text) else "unknown"


def strong_etag(answer: Answered) -> str:
    """A validator that proves the same bytes (RFC 9110 8.8.1); "" if the answer has none."""
    etag = (answer.header("etag") or "").strip()
    return etag if _STRONG.fullmatch(etag) else ""


_STRONG = re.compile(r'"[\x21\x23-\x7e]{1,150}"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What a 206 carries."""

    start: int
    end: int  # of the last byte
    whole: int | None  # size of the whole file; None: not told


_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")


def range_of(answer: Answered) -> Range | None:
    """The one range of a 206; None if it does not say exactly one that makes sense."""
    match = _CONTENT_RANGE.fullmatch((answer.header("content-range") or "").strip())
    if match is None:
        return None
    start, end = int(match[1]), int(match[2])
    whole = None if match[3] == "*" else int(match[3])
    if start > end or (whole is not None and end >= whole):
        return None
    return Range(start=start, end=end, whole=whole)


def begin_fault(spec: FetchSpec, answer: Answered, *, offset: int, etag: str, room: int) -> Fault | None:
    """Whether a body may be taken, before its first byte.

    Args:
        offset: bytes that are there already and were not asked for.
        etag: their validator.
        room: bytes that may still be stored, those at ``offset`` not counted.
    """
    if answer.status == 206:
        part = range_of(answer)
        other = answer.header("etag") not in (None, etag)
        if part is None or part.start != offset or offset == 0 or other:
            return Fault(said=say.OTHER_PART.of(), stale=True)
    else:
        room += offset  # the file begins anew
    length = answer.header("content-length") or ""
    if length.isascii() and length.isdigit() and int(length[:18]) > room:
        return too_large(spec)
    return type_fault(spec, answer)


def too_large(spec: FetchSpec) -> Fault:
    return Fault(said=say.BYTES_OVER.of(most=spec.max_bytes), final=True)


def end_fault(spec: FetchSpec, answer: Answered, *, size: int) -> Fault | None:
    """Whether a file is whole, after its last byte (R-READ-6: a short body is no file).

    Args:
        size: bytes that are stored.
    """
    if answer.status == 206:
        part = range_of(answer)
        wanted = None if part is None else (part.end + 1 if part.whole is None else part.whole)
        if size != wanted:
            return Fault(said=say.FILE_SHORT.of())
    if size == 0 and not spec.empty_ok:
        return Fault(said=say.FILE_EMPTY.of())
    return None


# --- names ------------------------------------------------------------------------------------------

_ODD_IN_NAME = re.compile(r"[^\w.-]+")
_LONGEST = 80


def file_name(wanted: object, number: int, taken: Collection[str]) -> tuple[str, bool]:
    """What to call a file, unique in its result without regard to letter case.

    Args:
        wanted: what the provider calls it; None or nothing usable: ``result`` with its number.
        number: of the file in the result, from 1; 0: it is the only one.
        taken: names so far, by ``str.casefold``.

    Returns:
        The name, and whether the provider's own word alone made it, so that it means the same file in every try.
    """
    text = re.split(r"[/\\]", scalar(wanted))[-1]
    name = _ODD_IN_NAME.sub("_", text.encode("utf-8", "replace").decode()).strip("._")[-_LONGEST:].strip("._")
    own = bool(name)
    if not own:
        name = f"result-{number}" if number else "result"
    unique, again = name, 1
    while unique.casefold() in taken:
        again += 1
        stem, dot, ending = name.rpartition(".")
        unique = f"{stem}-{again}{dot}{ending}" if stem else f"{name}-{again}"
    return unique, own and unique == name


# --- how long ---------------------------------------------------------------------------------------


def reads_left(reads: int, spec: FetchSpec) -> bool:
    return reads < spec.attempts


def link_serves(link: str, reads: int, attempt: int) -> bool:
    """Whether the kept link is used once more instead of reading the status anew (B039).

    Args:
        reads: status reads used, the one that gave the link included.
        attempt: number of the try, from 1.
    """
    return bool(link) and attempt <= LINK_TRIES * reads


def kept_until(table: ProviderTable, operation: Operation) -> datetime | None:
    """Until when the provider keeps the result; None: not documented. The end was seen at ``observed_at``."""
    if table.retention.result is None or operation.observed_at is None:
        return None
    return operation.observed_at + table.retention.result


def retention_said(table: ProviderTable, operation: Operation, now: datetime) -> str:
    """A sentence about the provider's retention; "" if there is nothing to say."""
    until = kept_until(table, operation)
    if until is None:
        return ""
    spoken = until.isoformat(sep=" ", timespec="minutes")
    if until <= now:
        return " " + KEPT_RESULTS.of(minute=spoken)
    return " " + KEEPS_RESULT.of(minute=spoken)


def next_in_body(spec: FetchSpec) -> bool:
    """Whether the place that names the next page is in the page's own content."""
    return spec.next is not None and isinstance(spec.next.url or spec.next.token, Body)
