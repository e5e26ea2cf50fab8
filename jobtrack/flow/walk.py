"""From a status answer to the files of a result, as the table leads: documents, pages, items, links (R-END-4).

Each address on the way is judged before it is asked, and none of them outlives the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from jobtrack.core import fetch as rules
from jobtrack.core import sentences_result as say
from jobtrack.core.actions import FetchSpec, Hop
from jobtrack.core.answer import answer_of
from jobtrack.core.fetch import Fault
from jobtrack.core.hop import file_request, hop_request
from jobtrack.core.locate import Answer, Found, read
from jobtrack.core.operation import Operation
from jobtrack.core.reply import Answered, NoAnswer, Request
from jobtrack.core.table import ProviderTable
from jobtrack.core.target import target_allowed
from jobtrack.errors import UsageError
from jobtrack.flow.download import Got, Wanted, download
from jobtrack.ports import Runtime
from jobtrack.records import ResultFile

LONGEST_LINK = 1000
"""A longer link is not kept; the status is read instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A document on the way, and the request that brought it."""

    answer: Answer
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """A file that the walk leads to."""

    name: str
    request: Request
    own_name: bool = False  # the provider's word names it, so it is the same file in every try
    pages: bool = False  # the file itself tells where the next page is


@dataclass(slots=True, kw_only=True)
class Walk:
    """One walk. ``done`` are its complete files, in order; ``left`` is what earlier tries have left besides them."""

    runtime: Runtime
    table: ProviderTable
    spec: FetchSpec
    operation: Operation
    ends_s: float  # monotonic
    left: tuple[ResultFile, ...]
    keep: Callable[[tuple[ResultFile, ...]], None] = lambda _: None  # writes down what is stored so far
    done: list[ResultFile] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)  # HTTP codes and troubles
    handle: str = field(default="", repr=False)
    link: str = field(default="", repr=False)  # a link that is no capability, for the record

    def send(self, request: Request) -> Answered | NoAnswer:
        reply: Answered | NoAnswer
        ((_, reply),) = self.runtime.transport.send([(request, self.table)])
        self.heard.append(str(reply.status) if isinstance(reply, Answered) else reply.trouble.value)
        return reply

    def by_link(self, url: str) -> Fault | None:
        """Fetch the one file of a result by a link that an earlier try has kept."""
        return self._file(_Target(name="result", request=file_request(self.table, self.operation, self.spec, url)))

    def from_status(self, status: Page, *, handle: str = "") -> Fault | None:
        """Fetch every file that the status answer leads to; None if all of them are complete."""
        self.handle = handle
        if self.spec.value is not None:
            return self._inline(status)
        if self.spec.hop is not None and not self.spec.url and self.spec.each is None:
            request = self._hop(self.spec.hop, status.answer, status.request)
            return request if isinstance(request, Fault) else self._files_by_pages(request)
        if self.spec.hop is None and self.spec.each is None:
            return self._linked_file(status)
        for page in self._documents(status):
            fault = page if isinstance(page, Fault) else self._files_of(page)
            if fault is not None:
                return fault
        return None if self.done or self.spec.empty_ok else Fault(said=say.NO_FILES.of())

    def _inline(self, status: Page) -> Fault | None:
        seen = None if self.spec.value is None else read(self.spec.value, status.answer)
        if not isinstance(seen, Found):
            return Fault(said=say.NO_RESULT_THERE.of())
        content = rules.inline(self.spec, seen.value)
        return content if isinstance(content, Fault) else self._store(content)

    def _store(self, content: bytes) -> Fault | None:
        try:
            writer = self.runtime.files.writer(self.operation.id, "result.json", resume=None)
            writer.feed(content)
            file = writer.finish()
        except Exception as error:  # noqa: BLE001 - a storage may raise anything
            return Fault(said=say.STORAGE_FAILED.of(error=type(error).__name__))
        self.done.append(replace(file, content_type="application/json"))
        return None

    def _linked_file(self, status: Page) -> Fault | None:
        request = self._link_request(status.answer, status.request.url)
        if isinstance(request, Fault):
            return request
        if self.spec.next is not None:
            return self._files_by_pages(request)
        plain = rules.is_plain(request.url, self.table, self.operation.params)
        if plain and self.spec.name is None and len(request.url) <= LONGEST_LINK:
            self.link = request.url
        name, own = self._name(status.answer, 0)
        return self._file(_Target(name=name, request=request, own_name=own))

    def _files_by_pages(self, first: Request) -> Fault | None:
        """The file itself is paged: each page is a file, and the answer tells where the next one is."""
        if self.spec.next is None:
            return self._file(_Target(name="result", request=first))
        request, seen = first, {first.url}
        for _ in range(self.spec.pages):
            name, _own = rules.file_name(None, len(self.done) + 1, self._taken())
            got = self._fetched(_Target(name=name, request=request, pages=True))
            if isinstance(got, Fault) or got.answer is None:
                return got if isinstance(got, Fault) else None
            onward = self._onward(answer_of(got.answer), request, seen)
            if not isinstance(onward, Request):
                return onward
            request = onward
        return rules.too_many(self.spec)

    def _documents(self, status: Page) -> Iterator[Page | Fault]:
        """The document that leads to the files, and the pages after it."""
        page: Page | Fault = status
        request = status.request
        if self.spec.hop is not None:
            asked = self._hop(self.spec.hop, status.answer, request)
            if isinstance(asked, Fault):
                yield asked
                return
            request = asked
            page = self._document(request)
        seen = {request.url}
        for _ in range(self.spec.pages):
            yield page
            if isinstance(page, Fault):
                return
            onward = self._onward(page.answer, request, seen)
            if not isinstance(onward, Request):
                if onward is not None:
                    yield onward
                return
            request = onward
            page = self._document(request)
        yield rules.too_many(self.spec)

    def _document(self, request: Request) -> Page | Fault:
        if self._left() <= timedelta(0):
            return Fault(said=say.TIME_OVER.of())
        reply = self.send(request)
        if isinstance(reply, NoAnswer) or reply.status not in range(200, 300) or reply.flaw is not None:
            return _of_account(request, rules.fault_of(reply, self.table, self.runtime.store.now()))
        answer = answer_of(reply)
        if not isinstance(answer.document, dict | list):
            return Fault(said=say.NO_JSON.of())
        return Page(answer=answer, request=request)

    def _onward(self, answer: Answer, request: Request, seen: set[str]) -> Request | Fault | None:
        """The request for the next page; None: that was the last one."""
        url = rules.next_page(self.spec, answer, request.url)
        if isinstance(url, Fault) or not url:
            return url or None
        if url in seen:
            return Fault(said=say.PAGES_REPEAT.of())
        seen.add(url)
        if not target_allowed(url, self.table, self.operation.params):
            return Fault(said=say.NEXT_DENIED.of(), final=True)
        return replace(request, url=url)

    # --- files ----------------------------------------------------------------------------------

    def _files_of(self, page: Page) -> Fault | None:
        if self.spec.each is None:
            number = 0 if self.spec.next is None else len(self.done) + 1
            return self._item(page, page.answer, number)
        items = rules.items_of(self.spec.each, page.answer)
        if isinstance(items, Fault):
            return items
        for item in items:
            answer = replace(page.answer, document=item.value)
            fault = self._item(page, answer, len(self.done) + 1, place=item.name)
            if fault is not None:
                return fault
        return None

    def _item(self, page: Page, item: Answer, number: int, *, place: str = "") -> Fault | None:
        request = self._item_request(page, item)
        if isinstance(request, Fault):
            return request
        name, own = self._name(item, number, place)
        return self._file(_Target(name=name, request=request, own_name=own))

    def _name(self, item: Answer, number: int, place: str = "") -> tuple[str, bool]:
        seen = None if self.spec.name is None else read(self.spec.name, item)
        if isinstance(seen, Found):
            return rules.file_name(seen.value, number, self._taken())
        name, own = rules.file_name(place, number, self._taken())
        return name, own and self.spec.next is None  # a place is the same in every page, its file is not

    def _item_request(self, page: Page, item: Answer) -> Request | Fault:
        if self.spec.per_item is not None:
            return self._hop(self.spec.per_item, item, page.request, text=rules.scalar(item.document))
        return self._link_request(item, page.request.url)

    def _link_request(self, answer: Answer, base: str) -> Request | Fault:
        url = rules.link_in(self.spec.url, answer, base)
        if not url:
            return Fault(said=say.NO_LINK.of())
        if not rules.may_fetch(url, self.table, self.spec, self.operation.params):
            return Fault(said=say.ADDRESS_DENIED.of(), final=True)
        return file_request(self.table, self.operation, self.spec, url)

    def _hop(self, hop: Hop, answer: Answer, before: Request, *, text: str = "") -> Request | Fault:
        values = rules.hop_values(hop.values, answer)
        if isinstance(values, Fault):
            return values
        if text:
            values["item"] = text
        try:
            return hop_request(self.table, self.operation, hop.request, values, handle=self.handle, before=before)
        except UsageError:  # its message may repeat a value of the answer
            return Fault(said=say.VALUE_MISFIT.of())

    def _taken(self) -> set[str]:
        return {file.name.casefold() for file in self.done}

    def _file(self, target: _Target) -> Fault | None:
        got = self._fetched(target)
        return got if isinstance(got, Fault) else None

    def _fetched(self, target: _Target) -> Got | Fault:
        """Fetch one file, unless an earlier try has stored it; what is complete is written down at once."""
        earlier = next((file for file in self.left if file.name == target.name), None)
        if earlier is not None and earlier.complete and target.own_name:
            self.done.append(earlier)
            return Got(file=earlier)
        resume = earlier if earlier is not None and not earlier.complete and not target.pages else None
        wanted = Wanted(
            name=target.name,
            request=target.request,
            room=self.spec.max_bytes - sum(file.size for file in self.done),
            total=self._left(),
            resume=resume,
            copy=self.table.limits.max_bytes if target.pages and rules.next_in_body(self.spec) else 0,
        )
        got = download(self.runtime, self.table, self.spec, self.operation, wanted)
        self.heard += got.heard
        self.left = tuple(file for file in self.left if file.name != target.name)
        if got.fault is not None:
            partial = () if got.file is None else (got.file,)
            self.keep((*self.done, *partial, *self._others()))
            return _of_account(target.request, got.fault)
        if got.file is not None:
            self.done.append(got.file)
        self.keep((*self.done, *self._others()))
        return got

    def _others(self) -> tuple[ResultFile, ...]:
        taken = self._taken()
        return tuple(file for file in self.left if file.name.casefold() not in taken)

    def _left(self) -> timedelta:
        return timedelta(seconds=self.ends_s - self.runtime.elapsed())


def _of_account(request: Request, fault: Fault) -> Fault:
    """A wait that a host without our credential asks for concerns nobody else."""
    return fault if request.credentials else replace(fault, http=None)
