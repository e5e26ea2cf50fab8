"""What each event of the audit is called, and what it says beside the answer that was read and what followed.

``narrative`` tells the entries with it. Events of another release are told by their stored name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from jobtrack_django import sentences, words

TITLES: Final[Mapping[str, Text]] = {
    "track": lazy("Tracking began"),
    "poll": lazy("Look"),
    "look": lazy("Nothing sent"),
    "decision": lazy("A person decided"),
    "proposal": lazy("A person proposed"),
    "table_missing": lazy("No table"),
    "submit": lazy("Submission"),
    "attempt": lazy("Submitting begins"),
    "submission": lazy("Submission answered"),
    "lapsed": lazy("Submission without an answer"),
    "look_up": lazy("Look-up begins"),
    "lookup": lazy("Look-up answered"),
    "evidence": lazy("Late acceptance"),
    "seal_broken": lazy("Sealed content not readable"),
    "conflict": lazy("Same id, other content"),
    "cancel_requested": lazy("Cancellation wanted"),
    "cancel_attempt": lazy("Cancelling begins"),
    "cancel": lazy("Cancellation answered"),
    "cancel_needless": lazy("Cancellation not needed"),
    "cancel_unsent": lazy("Cancellation not sent"),
    "result_wanted": lazy("Result wanted"),
    "fetch": lazy("Result fetched"),
}

SUBMITS: Final = frozenset({"submit", "attempt", "submission"})
"""Events whose small print counts submissions."""

LOOKS_UP: Final = frozenset({"look_up", "lookup"})
"""Events whose small print counts look-ups."""

BEFORE_A_JOB: Final = SUBMITS | LOOKS_UP | {"lapsed", "evidence", "seal_broken"}
"""Events that are no looks at a job: what stops with them is not polling."""

_BECAUSE: Final[Mapping[str, Text]] = {
    "first": lazy("it is the first one"),
    "unsent": lazy("it is proven that no request before was accepted"),
    "absent": lazy("it is proven that the provider has no job of it"),
    "idempotency": lazy("the provider recognises a repeat by its idempotency key, which is still valid"),
    "person": lazy("a person decided so"),
}
"""What permitted a request (INV-18)."""

_MEANT: Final[Mapping[str, Text]] = {
    "accepted": lazy("The provider took the job"),
    "final": lazy("The provider answered with the end of the job"),
    "already": lazy("The provider said that it has a job of it already"),
    "rejected": lazy("The provider refused the job, so this request made none"),
    "denied": lazy("The provider denied access, so this request made no job"),
    "busy": lazy("The provider did not take the job yet, so this request made none"),
    "mismatch": lazy("The provider said that the idempotency key was used with other content"),
    "unsent": lazy("It is proven that nothing was sent, so this request made no job"),
    "unknown": lazy("That proves nothing: the provider may have the job or not"),
}
"""What an answer to a submission proved (``core.actions.SubmitMeaning``)."""

_FETCHED: Final[Mapping[str, Text]] = {
    "complete": lazy("The result is complete."),
    "again": lazy("The result is not complete; another try follows."),
    "unavailable": lazy("The result could not be fetched; no further try is made."),
}

_ALWAYS: Final[Mapping[str, Text]] = {
    "lapsed": lazy("The worker that was submitting it ran out of time, and no answer of the provider was written."),
    "evidence": lazy("An answer that came late proves that the provider has the job. Nothing was sent."),
    "seal_broken": lazy("What is kept encrypted could not be read with the keys of this site. Nothing was sent."),
    "conflict": lazy("The operation id was used again with other content; that submission was refused and not sent."),
    "cancel_attempt": lazy("From here on the provider may hear it."),
    "cancel_needless": lazy("The operation had ended: nothing was sent."),
    "result_wanted": lazy("The result of the job is to be fetched."),
}
"""Events that say the same every time."""


def title(event: str) -> str:
    """The event in a few words; one of another release as it is stored."""
    return str(TITLES.get(event) or event or _("Not readable"))


def says(event: str, body: Mapping[str, Any]) -> Iterator[str]:
    """The sentences that are the event's own. Texts of the body are told as they are, whatever they are."""
    if event in _ALWAYS:
        yield str(_ALWAYS[event])
    teller = _TELLERS.get(event)
    if teller is not None:
        yield from teller(body)


def _code(body: Mapping[str, Any]) -> str:
    """The HTTP code of the answer in brackets; "" if there was none."""
    seen = body.get("observation")
    http = seen.get("http") if isinstance(seen, Mapping) else None
    return f" (HTTP {http})" if http else ""


def _limit(body: Mapping[str, Any], counter: str) -> object:
    spent = body.get("spent")
    pair = spent.get(counter) if isinstance(spent, Mapping) else None
    return pair[-1] if isinstance(pair, list) and pair else "?"


def _listed(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


# --- submitting -------------------------------------------------------------------------------------


def _track(body: Mapping[str, Any]) -> Iterator[str]:
    yield _("The provider had accepted the job “%s”.") % body.get("job_id")


def _submit(body: Mapping[str, Any]) -> Iterator[str]:
    if "fingerprint" in body:
        yield _("The job is to be submitted; nothing has been sent yet.")
    if body.get("idempotency_key"):
        yield _("Every attempt uses the key “%s”.") % body["idempotency_key"]
    if body.get("predecessor"):
        yield _("It replaces operation “%s”.") % body["predecessor"]
    if "decision" in body:
        yield _("Nothing was sent.")


def _attempt(body: Mapping[str, Any]) -> Iterator[str]:
    because = str(body.get("because"))
    yield _(
        "Submission %(number)s of %(limit)s begins, because %(why)s. From here on the provider may have the job."
    ) % {
        "number": body.get("attempt"),
        "limit": _limit(body, "submissions"),
        "why": _BECAUSE.get(because, because),
    }
    if body.get("doubt"):
        yield _("An attempt before it is still in doubt: %s.") % sentences.clause(str(body["doubt"]))


def _submission(body: Mapping[str, Any]) -> Iterator[str]:
    meaning = str(body.get("meaning"))
    yield _("%s.") % f"{_MEANT.get(meaning, meaning)}{_code(body)}"


def _look_up(body: Mapping[str, Any]) -> Iterator[str]:
    yield _("Look-up request %(number)s of %(limit)s begins: the provider is asked whether it has the job.") % {
        "number": body.get("request"),
        "limit": _limit(body, "lookups"),
    }


def _lookup(body: Mapping[str, Any]) -> Iterator[str]:
    found, code, kind = ", ".join(_listed(body.get("found"))), _code(body), body.get("kind")
    if kind == "found":
        yield _("The provider has the job “%(job)s”%(code)s.") % {"job": found, "code": code}
    elif kind == "many":
        yield _("The provider has several jobs of it%(code)s: %(jobs)s.") % {"jobs": found, "code": code}
    elif kind == "absent":
        yield _("The provider shows no job of it%s.") % code
    else:
        yield _("That does not tell whether the provider has the job%s.") % code
    if body.get("items"):
        count = int(body["items"]) if isinstance(body["items"], int) else 0
        yield ngettext("%d job was listed.", "%d jobs were listed.", count) % count


# --- cancelling -------------------------------------------------------------------------------------


def _cancel_requested(body: Mapping[str, Any]) -> Iterator[str]:
    who, why = body.get("actor") or _("Somebody"), body.get("why")
    if why:
        yield _("%(who)s wants the job cancelled at the provider: “%(why)s”") % {"who": who, "why": why}
    else:
        yield _("%s wants the job cancelled at the provider.") % who
    if body.get("effect"):
        yield _("They were told: “%s”") % body["effect"]


def _cancel_unsent(body: Mapping[str, Any]) -> Iterator[str]:
    yield _("It could not be sent: %s") % sentences.told(str(body.get("detail")))


def _cancel(body: Mapping[str, Any]) -> Iterator[str]:
    answered = {
        "accepted": _("The provider accepted it; only its status says what became of the job."),
        "refused": _("The provider refused it: the job goes on."),
        "requested": _("Nothing was sent."),
    }
    yield answered.get(str(body.get("cancel"))) or _("Nobody knows whether the provider heard it.")


# --- result and decisions ---------------------------------------------------------------------------


def _fetch(body: Mapping[str, Any]) -> Iterator[str]:
    outcome = str(body.get("outcome"))
    yield str(_FETCHED.get(outcome, outcome))
    files = body.get("files")
    if isinstance(files, int) and files:
        stored = ngettext(
            "%(files)d file is stored, %(bytes)s bytes.", "%(files)d files are stored, %(bytes)s bytes.", files
        )
        yield stored % {"files": files, "bytes": body.get("bytes")}
    if body.get("detail"):
        yield sentences.told(str(body["detail"]))
    reads, heard = _listed(body.get("reads")), _listed(body.get("heard"))
    if len(reads) == 2:
        yield _("Status requests for it: %(used)s of %(allowed)s.") % {"used": reads[0], "allowed": reads[1]}
    if heard:
        yield _("Answers: %s.") % ", ".join(str(words.TROUBLES.get(each, each)) for each in heard[-10:])


def _decision(body: Mapping[str, Any]) -> Iterator[str]:
    yield _("%(actor)s chose “%(option)s”: “%(why)s”") % {
        "actor": body.get("actor"),
        "option": words.option_label(str(body.get("option"))),
        "why": sentences.reason(str(body.get("actor")), str(body.get("why"))),
    }
    if body.get("job_id"):
        yield _("The job named: “%s”.") % body["job_id"]
    if body.get("proposed_by"):
        yield _("%s had proposed it; this is the second person's word.") % body["proposed_by"]


def _proposal(body: Mapping[str, Any]) -> Iterator[str]:
    yield _("%(actor)s proposed “%(option)s”: “%(why)s” It needs the word of a second person.") % {
        "actor": body.get("actor"),
        "option": words.option_label(str(body.get("option"))),
        "why": body.get("why"),
    }
    if body.get("job_id"):
        yield _("The job named: “%s”.") % body["job_id"]


_TELLERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    "track": _track,
    "submit": _submit,
    "attempt": _attempt,
    "submission": _submission,
    "look_up": _look_up,
    "lookup": _lookup,
    "cancel_requested": _cancel_requested,
    "cancel_unsent": _cancel_unsent,
    "cancel": _cancel,
    "fetch": _fetch,
    "decision": _decision,
    "proposal": _proposal,
}
