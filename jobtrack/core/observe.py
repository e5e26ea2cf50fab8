"""What one reply means, by the table (R-READ). Pure and total: any reply becomes one storable observation.

The steps run in order and the first one that knows the answer ends the reading:

1. no answer at all;
2. what HTTP itself says: access denied, too many requests, server failure, not found, redirects (a rule that names
   the very status code may say otherwise, except for 401, 403 and 304);
3. a body that cannot be read, although the table looks into it;
4. the item, if the answer is a list;
5. rules that say "this is not about the job's state" (not found, rate limited, invalid);
6. the echo of the job id;
7. the state, by a rule or by the state map;
8. what success must carry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from jobtrack.core import sentences_answer as say
from jobtrack.core.answer import FLAW_PROBLEM, answer_of, error_text, request_id, shown, signal, texts, unanswered
from jobtrack.core.guidance import provider_now, read_guidance, read_instant
from jobtrack.core.jsontext import Malformed
from jobtrack.core.locate import Answer, Found, Unreadable, all_hold, choose, is_id, read
from jobtrack.core.observation import Kind, Observation
from jobtrack.core.operation import Operation
from jobtrack.core.place import Body, Gap, HttpStatus, Locator
from jobtrack.core.reply import Answered, NoAnswer, Reply
from jobtrack.core.result import read_result
from jobtrack.core.state import Named, label_of, nearest, read_state
from jobtrack.core.table import Meaning, ProviderTable, Rule, StatusSpec
from jobtrack.core.text import tell

_NOT_MODIFIED = 304

LABEL_LIMIT = 200
PROGRESS_LIMIT = 100

_MEANING_KIND = {
    Meaning.PENDING: Kind.PENDING,
    Meaning.SUCCESS: Kind.SUCCESS,
    Meaning.FAILURE: Kind.FAILURE,
    Meaning.CANCELLED: Kind.CANCELLED,
    Meaning.EXPIRED: Kind.EXPIRED,
    Meaning.ATTENTION: Kind.ATTENTION,
    Meaning.NOT_FOUND: Kind.NOT_FOUND,
    Meaning.RATE_LIMITED: Kind.RATE_LIMITED,
    Meaning.INVALID: Kind.INVALID_RESPONSE,
}
_NOT_ABOUT_THE_JOB = frozenset({Meaning.NOT_FOUND, Meaning.RATE_LIMITED, Meaning.INVALID})


def observe(table: ProviderTable, reply: Reply, *, operation: Operation, now: datetime) -> Observation:
    """Say what a reply means.

    Args:
        table: The newest table of the provider.
        reply: The raw reply to a status request.
        operation: Whose job was asked about: its job id must be echoed, its parameters fill host names.
        now: Aware; stands in where the answer has no ``Date``.

    Returns:
        Exactly one observation. Its texts are cleaned, redacted and bounded. Never raises.
    """
    if isinstance(reply, NoAnswer):
        return unanswered(reply)
    answer = answer_of(reply)
    answer = replace(answer, document=_document(table.status, answer.document))
    return _Reading(table=table, operation=operation, now=now, reply=reply, answer=answer).observation()


# --- the body ---------------------------------------------------------------------------------------


def _document(status: StatusSpec, document: object | Malformed) -> object | Malformed:
    """The body as the table expects it."""
    if isinstance(document, Malformed | dict) or (isinstance(document, list) and _expects_list(status)):
        return document
    return Malformed(say.NO_OBJECT.of())


def _expects_list(status: StatusSpec) -> bool:
    """Whether the table looks into a list at the root; in any other table a list is not an answer about a job."""
    if status.pick is not None:
        return _into_list(status.pick.list_at)
    conditions = (condition.at for rule in status.rules for condition in rule.conditions)
    required = (locator for locator, _ in status.result.require)
    return any(_into_list(locator) for locator in (*(part.at for part in status.state), *conditions, *required))


def _into_list(locator: Locator) -> bool:
    if not isinstance(locator, Body):
        return False
    first = locator.tokens[0] if locator.tokens else 0
    return isinstance(first, int) or (locator.pointer and first.isdigit())


# --- the steps --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """One answer being read with one table for one operation."""

    table: ProviderTable
    operation: Operation
    now: datetime
    reply: Answered
    answer: Answer

    def observation(self) -> Observation:
        return self.by_protocol() or self.by_body()

    def seen(self, kind: Kind, detail: str, *, label: str = "", nearest: str = "") -> Observation:
        """An observation with everything the answer carries besides the state."""
        return Observation(
            kind=kind,
            label=tell(label, LABEL_LIMIT),
            detail=tell(detail),
            nearest=tell(nearest, LABEL_LIMIT),
            http=self.answer.status,
            request_id=request_id(self.reply),
            guidance=read_guidance(self.table, self.reply, self.answer.document, self.now),
            progress=_progress(self.table.status, self.answer),
            error=error_text(self.table.status.error, self.answer),
            expires_at=self.expires_at(),
        )

    def expires_at(self) -> datetime | None:
        stated = self.table.status.expires_at
        return None if stated is None else read_instant(stated, self.answer, self.now)

    # 2. what HTTP itself says

    def by_protocol(self) -> Observation | None:
        code = self.answer.status
        if code in (401, 403):
            return self.seen(Kind.DENIED, say.ACCESS_DENIED.of(code=code))
        if code == _NOT_MODIFIED:
            return self.seen(Kind.INVALID_RESPONSE, say.NOT_MODIFIED.of())
        said = signal(code, self.table.status.read_http)
        if said is None:
            return None
        rule = self.override()
        if rule is not None:
            return self.by_rule(rule, outside=True)
        kind, detail = said
        if kind is Kind.TARGET_DENIED:
            to = self.reply.header("location")
            detail = say.REDIRECT_TO.of(code=code, address=to) if to else say.REDIRECT_NOWHERE.of(code=code)
        return self.seen(kind, detail)

    def override(self) -> Rule | None:
        """The first rule that names this very status code and holds. A body that cannot be read matches nothing."""
        rules = (rule for rule in self.table.status.rules if _names(rule, self.answer.status))
        return next((rule for rule in rules if all_hold(rule.conditions, self.answer) is True), None)

    # 3. to 7.

    def by_body(self) -> Observation:
        if self.reply.flaw is not None:
            return self.seen(Kind.INVALID_RESPONSE, FLAW_PROBLEM[self.reply.flaw])
        pick = self.table.status.pick
        if pick is None:
            return self.by_rules()
        item = choose(pick, self.answer, self.operation.job_id)
        if isinstance(item, Unreadable):
            return self.seen(Kind.INVALID_RESPONSE, item.problem)
        if isinstance(item, Gap):
            return self.seen(_MEANING_KIND[pick.none_means], say.NO_ITEM.of())
        return replace(self, answer=item).by_rules()

    def by_rules(self) -> Observation:
        for rule in self.table.status.rules:
            held = all_hold(rule.conditions, self.answer)
            if isinstance(held, Unreadable):
                return self.seen(Kind.INVALID_RESPONSE, held.problem)
            if held:
                return self.by_rule(rule)
        return self.echo_problem() or self.by_state()

    def by_rule(self, rule: Rule, *, outside: bool = False) -> Observation:
        """``outside``: an error answer that a rule gives a meaning; such answers often do not repeat the job id."""
        label = label_of(rule, self.answer)
        if rule.then in _NOT_ABOUT_THE_JOB:
            return self.seen(_MEANING_KIND[rule.then], say.BY_RULE.of(meaning=rule.then), label=label)
        may_lack = outside and rule.then is not Meaning.SUCCESS
        return self.echo_problem(may_lack=may_lack) or self.meaning(rule.then, label)

    def echo_problem(self, *, may_lack: bool = False) -> Observation | None:
        """The answer must be about this job (R-ID-5)."""
        echo = self.table.status.echo
        if echo is None or not self.operation.job_id:  # a job that only has an address has nothing to compare
            return None
        seen = read(echo, self.answer)
        if isinstance(seen, Found):
            if is_id(seen.value, self.operation.job_id):
                return None
            return self.seen(Kind.JOB_ID_MISMATCH, say.OTHER_JOB.of(shown=shown(seen.value)))
        if may_lack:
            return None
        if isinstance(seen, Unreadable):
            return self.seen(Kind.INVALID_RESPONSE, seen.problem)
        return self.seen(Kind.JOB_ID_MISMATCH, say.NO_ECHO.of(place=echo.source))

    def by_state(self) -> Observation:
        state = read_state(self.table.status, self.answer)
        if isinstance(state, Unreadable):
            return self.seen(Kind.INVALID_RESPONSE, state.problem)
        if state.meaning is None:
            return self.unknown(state)
        return self.meaning(state.meaning, state.label)

    def unknown(self, state: Named) -> Observation:
        near = nearest(self.table.status, state.label)
        word = shown(state.label)
        known = say.UNKNOWN_STATE_NEAR.of(shown=word, near=shown(near)) if near else say.UNKNOWN_STATE.of(shown=word)
        return self.seen(Kind.UNKNOWN_STATE, known, label=state.label, nearest=near)

    # 8. what a meaning must carry

    def meaning(self, meaning: Meaning, label: str) -> Observation:
        seen = self.seen(_MEANING_KIND[meaning], "", label=label)
        if meaning is Meaning.SUCCESS:
            result = read_result(self.table, self.answer, self.operation.params)
            return replace(seen, kind=result.kind, detail=tell(result.detail), kept=result.kept)
        if meaning is Meaning.PENDING and seen.expires_at is not None:
            return replace(seen, overdue=seen.expires_at < provider_now(self.answer.headers, self.now))
        return seen


def _names(rule: Rule, code: int) -> bool:
    return any(isinstance(condition.at, HttpStatus) and code in condition.equals for condition in rule.conditions)


# --- what else an answer carries --------------------------------------------------------------------


def _progress(status: StatusSpec, answer: Answer) -> str:
    said = list(texts(status.progress, answer))
    return tell("/".join(text or "?" for text in said), PROGRESS_LIMIT) if any(said) else ""
