"""One file of a result, from its request to its place in the site's storage (R-END-4, R-READ-6).

Nothing is complete before every byte is there: a body that ends early is paused, and the next try asks for the rest
if the provider offers ranges and gave a strong validator. A redirect is followed without any credential.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from jobtrack.core import fetch as rules
from jobtrack.core import sentences_result as say
from jobtrack.core.actions import FetchSpec
from jobtrack.core.fetch import Fault
from jobtrack.core.hop import file_request
from jobtrack.core.operation import Operation
from jobtrack.core.reply import Answered, Flaw, NoAnswer, Request
from jobtrack.core.table import ProviderTable
from jobtrack.core.target import origin_of
from jobtrack.ports import FileWriter, Refused, Runtime
from jobtrack.records import ResultFile

_REDIRECTS = 2
"""Most redirects that one try for a file follows."""

_EXCHANGES = 2 + _REDIRECTS
"""Most requests for one file in one try: the first, two redirects, and one from the start after a refused range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One file to be fetched."""

    name: str
    request: Request
    room: int  # bytes of the result that may still be stored
    total: timedelta  # time left
    resume: ResultFile | None = None  # what an earlier try left of it
    copy: int = 0  # most bytes to hand back besides storing them; 0: none are wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """What came of it."""

    file: ResultFile | None  # complete; or what can be resumed; None: nothing is left of it
    fault: Fault | None = None  # why it is not complete
    answer: Answered | None = None  # status and headers, and the body if a copy was wanted
    heard: tuple[str, ...] = ()  # HTTP codes and troubles, in order


def download(runtime: Runtime, table: ProviderTable, spec: FetchSpec, operation: Operation, wanted: Wanted) -> Got:
    """Fetch one file. Never raises for what a peer or the storage does."""
    try:
        writer = runtime.files.writer(operation.id, wanted.name, resume=wanted.resume)
        if writer.offset and not (spec.ranges and wanted.resume is not None and wanted.resume.etag):
            writer.restart()
    except Exception as error:  # noqa: BLE001 - a storage may raise anything, and frames above hold links
        return Got(file=None, fault=_storage(error))
    work = _Work(runtime=runtime, table=table, spec=spec, operation=operation, wanted=wanted, writer=writer)
    return work.run()


@dataclass(slots=True, kw_only=True)
class _Sink:
    """Implements ``ports.Sink``: judges what comes before it is stored."""

    spec: FetchSpec
    writer: FileWriter
    room: int  # bytes that may be stored, those that are there already included
    copy: int
    late: Callable[[], bool]
    etag: str  # of the bytes that are stored; "": they cannot be gone on with
    fault: Fault | None = None
    copied: bytearray | None = None

    def begin(self, answer: Answered) -> None:
        offset = self.writer.offset
        self._refuse(rules.begin_fault(self.spec, answer, offset=offset, etag=self.etag, room=self.room - offset))
        if answer.status != 206:
            if offset:
                self._store(self.writer.restart)
            self.etag = rules.strong_etag(answer)
        self.copied = bytearray() if self.copy and not self.writer.offset else None

    def feed(self, chunk: bytes) -> None:
        if self.late():
            self._refuse(Fault(said=say.TIME_OVER.of()))
        if self.writer.offset + len(chunk) > self.room:
            self._refuse(rules.too_large(self.spec))
        self._store(lambda: self.writer.feed(chunk))
        if self.copied is not None:
            self.copied += chunk
            if len(self.copied) > self.copy:
                self._refuse(Fault(said=say.PAGE_LARGE.of(), final=True))

    def _refuse(self, fault: Fault | None) -> None:
        if fault is not None:
            self.fault = fault
            raise Refused(fault.said)

    def _store(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 - a storage may raise anything
            self.fault = _storage(error)
        self._refuse(self.fault)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One file on its way."""

    runtime: Runtime
    table: ProviderTable
    spec: FetchSpec
    operation: Operation
    wanted: Wanted
    writer: FileWriter
    started_s: float = 0.0
    etag: str = ""  # of the bytes that are there
    heard: tuple[str, ...] = ()
    redirected: int = 0

    def run(self) -> Got:
        self.started_s = self.runtime.elapsed()
        self.etag = self.wanted.resume.etag if self.wanted.resume is not None and self.writer.offset else ""
        request: Request | Fault = self.wanted.request
        sink = self._sink()
        for _ in range(_EXCHANGES):
            if isinstance(request, Fault):
                return self._ended(sink, request)
            sink = self._sink()
            reply = self._send(self._ranged(request), sink)
            if sink.fault is not None or (isinstance(reply, Answered) and reply.flaw is not None):
                return self._ended(sink, sink.fault or self._fault(reply))
            if isinstance(reply, Answered) and reply.status in (200, 206):
                return self._whole(sink, reply)
            if isinstance(reply, Answered) and reply.status == 416 and self.writer.offset:
                self.writer.restart()
            elif isinstance(reply, Answered) and reply.status in rules.REDIRECTS:
                request = self._redirected(request, reply)
            else:
                return self._ended(sink, self._fault(reply))
        return self._ended(sink, Fault(said=say.REDIRECTED_TOO_OFTEN.of(), final=True))

    def _sink(self) -> _Sink:
        return _Sink(
            spec=self.spec,
            writer=self.writer,
            room=self.wanted.room,
            copy=self.wanted.copy,
            late=self._late,
            etag=self.etag,
        )

    def _left(self) -> timedelta:
        return self.wanted.total - timedelta(seconds=self.runtime.elapsed() - self.started_s)

    def _late(self) -> bool:
        return self._left() <= timedelta(0)

    def _ranged(self, request: Request) -> Request:
        """Ask for the rest of what is there, if and only if it is still the same file (RFC 9110 13.1.5)."""
        if not self.writer.offset:
            return request
        asked = (("Range", f"bytes={self.writer.offset}-"), ("If-Range", self.etag))
        return replace(request, headers=(*request.headers, *asked))

    def _send(self, request: Request, sink: _Sink) -> Answered | NoAnswer | None:
        if self._late():
            sink.fault = Fault(said=say.TIME_OVER.of())
            return None
        try:
            reply = self.runtime.transport.download(
                request, self.table, sink, total=self._left(), max_bytes=max(self.wanted.room, 1)
            )
        except Refused:
            sink.fault = sink.fault or Fault(said=say.DOWNLOAD_REFUSED.of())
            return None
        self.heard += (str(reply.status) if isinstance(reply, Answered) else reply.trouble.value,)
        return reply

    def _fault(self, reply: Answered | NoAnswer | None) -> Fault:
        if reply is None:
            return Fault(said=say.NO_ANSWER.of())
        if isinstance(reply, Answered) and reply.flaw is Flaw.OVERSIZED:
            return rules.too_large(self.spec)
        return rules.fault_of(reply, self.table, self.runtime.store.now())

    def _redirected(self, request: Request, reply: Answered) -> Request | Fault:
        """The request that a redirect asks for: nothing of the account goes along, wherever it leads (INV-30)."""
        url = rules.resolved(request.url, reply.header("location"))
        method = rules.after_redirect(request.method, reply.status)
        if not method or not rules.may_follow(url, self.table, self.spec, self.operation.params):
            return self._fault(reply)
        self.redirected += 1
        if self.redirected > _REDIRECTS:
            return Fault(said=say.REDIRECTED_TOO_OFTEN.of(), final=True)
        # An origin that only `redirects` names is no origin of the table, so the request says that it is meant.
        onward = file_request(self.table, self.operation, self.spec, url)
        return replace(onward, credentials=False, origins=(origin_of(url, loopback=self.table.allow_loopback),))

    # --- after the last byte --------------------------------------------------------------------

    def _whole(self, sink: _Sink, reply: Answered) -> Got:
        fault = rules.end_fault(self.spec, reply, size=self.writer.offset)
        if fault is not None:
            return self._ended(sink, fault)
        try:
            file = self.writer.finish()
        except Exception as error:  # noqa: BLE001 - a storage may raise anything
            return Got(file=None, fault=_storage(error), heard=self.heard)
        kept = replace(file, content_type=rules.media_type(reply)[:100], complete=True)
        answer = replace(reply, body=bytes(sink.copied)) if sink.copied is not None else reply
        return Got(file=kept, answer=answer, heard=self.heard)

    def _ended(self, sink: _Sink, fault: Fault) -> Got:
        """It is not complete: keep what the next try can go on with, and nothing else."""
        usable = self.spec.ranges and sink.etag and not fault.final and sink.copied is None
        try:
            if not usable:
                self.writer.restart()
            paused = self.writer.pause()
        except Exception as error:  # noqa: BLE001 - a storage may raise anything
            return Got(file=None, fault=_storage(error), heard=self.heard)
        kept = replace(paused, etag=sink.etag, complete=False) if usable and paused.size else None
        return Got(file=kept, fault=fault, heard=self.heard)


def _storage(error: Exception) -> Fault:
    """What a storage says may hold its own addresses and keys: only the kind of error is told."""
    return Fault(said=say.STORAGE_FAILED.of(error=type(error).__name__))
