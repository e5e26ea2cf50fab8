"""What one page of a look-up shows of an operation (R-SUB-3). Absence is said only where nothing was left unread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobtrack.core import sentences_answer as say
from jobtrack.core.actions import LookupSpec
from jobtrack.core.answer import answer_of, observation, refused, unanswered
from jobtrack.core.handover import Context, Lacking, context_of, read_handover
from jobtrack.core.jsontext import Malformed
from jobtrack.core.locate import Answer, Found, Unreadable, read, same
from jobtrack.core.observation import Kind
from jobtrack.core.operation import Operation
from jobtrack.core.paging import next_of
from jobtrack.core.place import Locator
from jobtrack.core.reply import Answered, NoAnswer, Reply
from jobtrack.core.request import lookup_request
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover, LookupKind, LookupSeen
from jobtrack.core.table import ProviderTable
from jobtrack.core.target import resolve, target_allowed
from jobtrack.core.template import LEAF, Values, fill, leaves
from jobtrack.errors import UsageError


def read_lookup(
    table: ProviderTable,
    reply: Reply,
    *,
    operation: Operation,
    sent: SubmitBytes | None,
    now: datetime,
    known: Sequence[Handover] = (),
    page: str = "",
) -> LookupSeen:
    """Read one page. Total: never raises.

    Args:
        table: the newest table.
        reply: the raw reply to this page's request.
        operation: the row, without a job id yet.
        sent: the submission, as long as it is kept.
        now: aware; stands in where the answer has no ``Date``.
        known: what the pages before this one had.
        page: what ``lookup_request`` was asked for; "" is the first page.
    """
    if isinstance(reply, NoAnswer):
        return LookupSeen(kind=LookupKind.UNREADABLE, observation=unanswered(reply), found=tuple(known))
    answer = answer_of(reply)
    spec = table.submit.lookup if table.submit else None
    seen = _Page(table=table, reply=reply, answer=answer, now=now, known=tuple(known))
    if spec is None:
        return seen.unread(say.LOOKS_UP_NO_MORE.of())
    try:
        base = lookup_request(table, operation, sent, page=page).url
    except UsageError as error:
        return seen.unread(error.message)
    return seen.read(spec, context_of(table, operation, sent, base), page)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """One page being read."""

    table: ProviderTable
    reply: Answered
    answer: Answer
    now: datetime
    known: tuple[Handover, ...]

    def read(self, spec: LookupSpec, context: Context, page: str) -> LookupSeen:
        code = self.reply.status
        if code in spec.absent_http:
            if page:
                return self.unread(say.ABSENT_IN_THE_MIDDLE.of(code=code))
            return self.of(LookupKind.ABSENT, say.ABSENT_BY_CODE.of(code=code))
        said = refused(code)
        if said is not None:
            return self.unread(said[1], kind=said[0])
        items = _items(spec, self.answer)
        if isinstance(items, Unreadable):
            return self.unread(items.problem)
        found = self.found(spec, context, items)
        if isinstance(found, Unreadable):
            ours = say.OURS_UNREADABLE.read(found.problem) is not None
            return replace(self.unread(found.problem, items=len(items)), ours=ours)
        if len(found) > 1:
            return replace(self.of(LookupKind.MANY, say.SEVERAL.of(count=len(found))), found=found)
        return replace(self.further(spec, context, page, found), items=len(items))

    def found(self, spec: LookupSpec, context: Context, items: list[Answer]) -> tuple[Handover, ...] | Unreadable:
        """Every job of this operation up to here, each once."""
        jobs = {_identity(job): job for job in self.known}
        wanted = _wanted(spec, context.values)
        if isinstance(wanted, Unreadable):
            return wanted
        for item in items:
            matches = _matches(wanted, item)
            if isinstance(matches, Unreadable):
                return matches
            if not matches:
                continue
            job = read_handover(context, spec, item)
            if isinstance(job, Lacking) and spec.items is None and job.nothing:
                continue  # an answer about one job, without the job
            if not isinstance(job, Handover):
                return Unreadable(say.OURS_UNREADABLE.of(why=job.problem))
            jobs[_identity(job)] = job
        return tuple(jobs.values())

    def further(self, spec: LookupSpec, context: Context, page: str, found: tuple[Handover, ...]) -> LookupSeen:
        """What follows from a page that was read to its end."""
        following = next_of(spec.next, self.answer) if spec.next else ""
        if isinstance(following, Unreadable):
            return self.unread(following.problem)
        if following and spec.next and spec.next.token is None:
            following = resolve(following, context.base)
            if not target_allowed(following, self.table, context.operation.params):
                return self.unread(say.PAGE_DENIED.of(), kind=Kind.TARGET_DENIED)
        if following and following in (page, context.base):
            return self.unread(say.SAME_PAGE.of())
        if following:
            return replace(self.of(LookupKind.MORE, say.FURTHER_PAGE.of()), found=found, next=following)
        if found:
            return replace(self.of(LookupKind.FOUND, say.FOUND.of()), found=found)
        return self.of(LookupKind.ABSENT, say.ABSENT.of())

    def of(self, kind: LookupKind, detail: str, *, seen: Kind = Kind.PENDING) -> LookupSeen:
        error = self.table.submit.error if self.table.submit and kind is LookupKind.UNREADABLE else ()
        told = observation(self.table, self.reply, self.answer, seen, detail, now=self.now, error=error)
        return LookupSeen(kind=kind, observation=told)

    def unread(self, problem: str, *, kind: Kind = Kind.INVALID_RESPONSE, items: int = 0) -> LookupSeen:
        return replace(self.of(LookupKind.UNREADABLE, problem, seen=kind), found=self.known, items=items)


def _identity(job: Handover) -> str:
    return job.job_id or job.status_url


def _items(spec: LookupSpec, answer: Answer) -> list[Answer] | Unreadable:
    """The jobs that the page lists; the answer itself if it is about one job."""
    if spec.items is None:
        if isinstance(answer.document, Malformed):
            return Unreadable(answer.document.problem)
        return [answer] if isinstance(answer.document, dict | list) else Unreadable(say.NO_OBJECT_AT_ALL.of())
    listed = read(spec.items, answer)
    if isinstance(listed, Unreadable):
        return listed
    if not isinstance(listed, Found) or not isinstance(listed.value, list):
        return Unreadable(say.NO_LIST.of(place=spec.items.source or say.ROOT.of()))
    return [replace(answer, document=item) for item in listed.value]


Wanted = tuple[tuple[Locator, object], ...]


def _wanted(spec: LookupSpec, values: Values) -> Wanted | Unreadable:
    """What an item must say to be a job of this operation; a part of the payload keeps its JSON type."""
    try:
        return tuple((place, _value(text, values)) for place, text in spec.match)
    except UsageError as error:
        return Unreadable(error.message)


def _value(text: str, values: Values) -> object:
    return leaves(text, values) if LEAF.fullmatch(text) else fill(text, values)


def _matches(wanted: Wanted, item: Answer) -> bool | Unreadable:
    """Whether an item says all of it, with exact types and letter case."""
    for place, value in wanted:
        seen = read(place, item)
        if isinstance(seen, Unreadable):
            return seen
        if not isinstance(seen, Found) or not same(seen.value, value):
            return False
    return True
