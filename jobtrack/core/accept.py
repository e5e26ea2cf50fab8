"""What an answer to a submission proves: only what the table lists, else nothing (R-SUB-2, INV-18).

In this order: no answer; a failed precondition; the rules, first match; the lists of codes; else unknown, and that is
so for every code, 4xx as well as 5xx.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from jobtrack.core import sentences_answer as say
from jobtrack.core.actions import SubmitMeaning, SubmitSpec
from jobtrack.core.answer import answer_of, observation, refused, unanswered
from jobtrack.core.handover import Lacking, context_of, read_handover
from jobtrack.core.locate import Answer, Unreadable, all_hold
from jobtrack.core.observation import Kind, Observation
from jobtrack.core.observe import observe
from jobtrack.core.operation import Operation
from jobtrack.core.reply import Answered, NoAnswer, Reply, Sent
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.submission import Handover, SubmitSeen
from jobtrack.core.table import ProviderTable

_PRECONDITION_FAILED = 412

ENDS = frozenset({Kind.SUCCESS, Kind.FAILURE, Kind.CANCELLED, Kind.EXPIRED})
"""Observations that end a job."""

_M = SubmitMeaning
_KINDS = {
    _M.ACCEPTED: Kind.PENDING,
    _M.ALREADY: Kind.PENDING,
    _M.FINAL: Kind.PENDING,
    _M.DENIED: Kind.DENIED,
    _M.BUSY: Kind.RATE_LIMITED,
}
"""What the account's gate hears; of the other meanings it hears what HTTP itself says."""


def observe_submission(
    table: ProviderTable, reply: Reply, *, operation: Operation, sent: SubmitBytes, now: datetime
) -> SubmitSeen:
    """Say what a reply to a submission proves. Total: any reply becomes one value. Never raises.

    Args:
        table: the newest table.
        reply: the raw reply.
        operation: the row, without a job id yet.
        sent: the very bytes that were sent.
        now: aware; stands in where the answer has no ``Date``.
    """
    if isinstance(reply, NoAnswer):
        return SubmitSeen(meaning=None if reply.sent is Sent.NEVER else _M.UNKNOWN, observation=unanswered(reply))
    answer = answer_of(reply)
    seen = _Seen(table=table, operation=operation, sent=sent, now=now, reply=reply, answer=answer)
    spec = table.submit
    if spec is None:
        return seen.of(_M.UNKNOWN, say.SUBMITS_NO_MORE.of())
    return seen.read(spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One answer being read."""

    table: ProviderTable
    operation: Operation
    sent: SubmitBytes
    now: datetime
    reply: Answered
    answer: Answer

    def read(self, spec: SubmitSpec) -> SubmitSeen:
        code = self.reply.status
        if code == _PRECONDITION_FAILED and _conditional(spec, self.sent):
            return self.of(_M.REJECTED, say.PRECONDITION.of())
        for rule in spec.rules:
            held = all_hold(rule.conditions, self.answer)
            if isinstance(held, Unreadable):
                return self.of(_M.UNKNOWN, say.AND.of(code=code, what=held.problem))
            if held:
                return self.meant(spec, rule.then, say.BY_RULE.of(meaning=rule.then))
        for meaning, codes in _lists(spec):
            if code in codes:
                return self.meant(spec, meaning, say.LISTED.of(code=code, meaning=meaning))
        said = refused(code)
        what = said[1] if said else say.CODE.of(code=code)
        return self.of(_M.UNKNOWN, say.PROVES_NOTHING.of(what=what))

    def of(self, meaning: SubmitMeaning, detail: str, kind: Kind | None = None) -> SubmitSeen:
        return SubmitSeen(meaning=meaning, observation=self.observation(meaning, detail, kind))

    def observation(self, meaning: SubmitMeaning, detail: str, kind: Kind | None = None) -> Observation:
        said = refused(self.reply.status)
        kind = kind or _KINDS.get(meaning) or (said[0] if said else Kind.INVALID_RESPONSE)
        error = self.table.submit.error if self.table.submit else ()
        return observation(self.table, self.reply, self.answer, kind, detail, now=self.now, error=error)

    def meant(self, spec: SubmitSpec, meaning: SubmitMeaning, detail: str) -> SubmitSeen:
        """A listed meaning, with what it must carry."""
        if meaning not in (_M.ACCEPTED, _M.ALREADY, _M.FINAL):
            return self.of(meaning, detail)
        context = context_of(self.table, self.operation, self.sent, self.sent.url)
        handover = read_handover(context, spec.accepted, self.answer)
        if meaning is _M.FINAL:
            return self.final(handover if isinstance(handover, Handover) else None, detail)
        status = self.status(handover) if meaning is _M.ACCEPTED and spec.accepted.reads_status else None
        ended = status if status is not None and status.kind in ENDS else None
        return replace(self.taken(meaning, handover, detail), status=ended)

    def taken(self, meaning: SubmitMeaning, handover: Handover | Lacking | Unreadable, detail: str) -> SubmitSeen:
        """The provider has the job, or says so in a way that cannot be read."""
        if isinstance(handover, Handover):
            return replace(self.of(meaning, detail), handover=handover)
        if isinstance(handover, Lacking):
            kind = Kind.TARGET_DENIED if handover.denied else None
            return self.of(meaning, say.BUT.of(what=detail, why=handover.problem), kind)
        if meaning is _M.ALREADY:  # the code or the rule alone is the proof; such answers often carry nothing
            return self.of(meaning, say.BUT.of(what=detail, why=handover.problem))
        return self.of(_M.UNKNOWN, say.BUT_UNREADABLE.of(what=detail, why=handover.problem))

    def final(self, handover: Handover | None, detail: str) -> SubmitSeen:
        status = self.status(handover)
        if status.kind in ENDS:
            return replace(self.of(_M.FINAL, detail), handover=handover, status=status)
        problem = status.detail or say.ITS_STATE.of(word=status.label)
        return replace(self.of(_M.UNKNOWN, say.BUT_NO_END.of(what=detail, why=problem)), handover=handover)

    def status(self, handover: object) -> Observation:
        """The answer read like a status answer of the job it names."""
        operation = self.operation
        if isinstance(handover, Handover):
            params = {**operation.params, **handover.params}
            operation = replace(operation, job_id=handover.job_id, params=params)
        status = self.table.status
        readable = replace(status, read_http=status.read_http | {self.reply.status})
        return observe(replace(self.table, status=readable), self.reply, operation=operation, now=self.now)


def _conditional(spec: SubmitSpec, sent: SubmitBytes) -> bool:
    """Whether the submission carried a precondition of the caller (R-SUB-7)."""
    listed = {name.lower() for name in spec.preconditions}
    return any(name.lower() in listed for name, _ in sent.headers)


def _lists(spec: SubmitSpec) -> tuple[tuple[SubmitMeaning, frozenset[int]], ...]:
    return (
        (_M.ACCEPTED, spec.accepted_http),
        (_M.FINAL, spec.final_http),
        (_M.ALREADY, spec.already_http),
        (_M.REJECTED, spec.rejected_http),
        (_M.DENIED, spec.denied_http),
        (_M.BUSY, spec.busy_http),
        (_M.MISMATCH, spec.mismatch_http),
    )
