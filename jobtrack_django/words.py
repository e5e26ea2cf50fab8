"""The machine's words in a reader's language: options, states, why a look is when it is; reasons from ``questions``.

One row for each word. A test holds that no word of ``core`` is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from jobtrack.core.escalation import Option, Refusal
from jobtrack.core.observation import DelaySource, Kind
from jobtrack.core.operation import OperationState
from jobtrack.core.place import Gap
from jobtrack.core.reply import Trouble
from jobtrack.records import CANCEL, RESULT
from jobtrack_django.questions import QUESTIONS, Question, knows, question, reason_title

__all__ = [
    "BEFORE_A_JOB",
    "CHOICES",
    "COUNTERS",
    "DELAYS",
    "FOLLOW_UPS",
    "GAPS",
    "KINDS",
    "QUESTIONS",
    "REFUSALS",
    "STATES",
    "TROUBLES",
    "UNDER_WAY",
    "WITHOUT_LOOKUP",
    "Choice",
    "Question",
    "choice",
    "counter_label",
    "delay_label",
    "follow_up_label",
    "knows",
    "no_answer_label",
    "option_label",
    "question",
    "reason_title",
    "state_label",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An option as a person reads it. Texts may name what ``admin.stakes.numbers`` computes, in braces."""

    label: Text
    permission: str  # codename, in the app ``jobtrack``
    cost: Text  # beside the button
    done: Text  # what will be done
    not_done: Text  # what will not be done
    idle: Text | None = None  # instead of cost and done, if the option changes nothing about the operation


CHOICES: Final[Mapping[Option, Choice]] = {
    Option.EXTEND: Choice(
        label=_("Extend"),
        permission="extend_operation",
        cost=_("Extend once, by {time}. Additional checks: {checks}."),
        done=_("The deadline becomes {deadline}. Status requests allowed in all: {requests}. Polling goes on."),
        not_done=_("Nothing is submitted, repeated or cancelled at the provider. What was used stays counted."),
    ),
    Option.LOOK_AGAIN: Choice(
        label=_("Look again now"),
        permission="look_again",
        cost=_("One request, also after the deadline. It is read with the newest table. {over}"),
        done=_(
            "One status request is sent, also after the deadline and above the budget, once the provider allows it."
        ),
        not_done=_(
            "Nothing is submitted, repeated or cancelled at the provider. The deadline does not move: if the job "
            "has not ended and the time is over, you are asked again."
        ),
    ),
    Option.ACCESS_REPAIRED: Choice(
        label=_("Access is repaired"),
        permission="repair_access",
        cost=_("You state that the credential works again. One request tests it for the whole account. {over}"),
        done=_("One request of the account is sent. If it is answered, all its operations go on."),
        not_done=_("No credential is changed here. If it is refused again, you are asked again."),
    ),
    Option.RETRY_DELIVERY: Choice(
        label=_("Run the follow-up again"),
        permission="retry_delivery",
        cost=_("The site's follow-up runs again, with fresh attempts. Nothing is sent to the provider."),
        done=_("Every follow-up of this operation that has not returned yet runs again, from its start."),
        not_done=_("Follow-ups that have returned are not repeated, and the job is not touched."),
    ),
    Option.FETCH_AGAIN: Choice(
        label=_("Fetch the result again"),
        permission="fetch_result",
        cost=_("Fresh tries: more status requests (at most {reads}), and the download. Nothing is submitted."),
        done=_(
            "The job's status is read again, and the files that are not complete yet are fetched. The status requests "
            "for it (at most {reads}) do not count against the operation's budget."
        ),
        not_done=_("Nothing is submitted or cancelled, complete files are kept, and the operation stays as it ended."),
    ),
    Option.LOOK_UP: Choice(
        label=_("Ask whether it has the job"),
        permission="look_up_submission",
        cost=_("One look-up, also after the recovery deadline. Nothing is submitted."),
        done=_(
            "The provider is asked whether it has the job. Look-up requests allowed in all: {lookups}. If it has the "
            "job, that one is followed. If not, you are asked again, with what was seen."
        ),
        not_done=_("Nothing is submitted, whatever the answer is."),
    ),
    Option.ATTACH_JOB: Choice(
        label=_("Name the job"),
        permission="attach_job",
        cost=_("You found the job at the provider and give its id, with your evidence. It is then followed."),
        done=_(
            "The operation follows the job that you name, for {follow}. This cannot be taken back: an operation never "
            "changes its job. What was to be submitted is erased."
        ),
        not_done=_(
            "Nothing is submitted or cancelled. jobtrack cannot check that the job belongs to this operation: with a "
            "wrong id somebody else's result is taken for this one's."
        ),
    ),
    Option.RESUBMIT: Choice(
        label=_("Submit once more"),
        permission="resubmit_operation",
        cost=_("One more submission, with the same key and content. {stakes}"),
        done=_(
            "The stored request is sent once more, byte for byte, as submission {submission}: until {until}, and not "
            "before the provider allows it. {stakes}"
        ),
        not_done=_(
            "Nothing is cancelled: if there is a first job, it goes on. If this attempt fails too, you are asked again."
        ),
    ),
    Option.CANCEL: Choice(
        label=_("Cancel the job"),
        permission="cancel_operation",
        cost=_("The provider is asked to cancel the job. {effect}"),
        done=_("The provider is asked to cancel the job. Its effect, as the table says: “{effect}” {look}"),
        not_done=_(
            "The operation does not end by this: it becomes “cancelled” only when the provider's status says so. "
            "What the job has done already is not undone."
        ),
    ),
    Option.CLOSE: Choice(
        label=_("Close"),
        permission="close_escalation",
        cost=_("jobtrack stops following; the job at the provider is not cancelled and may still run and bill."),
        done=_("The operation ends as “abandoned”, for good. jobtrack never asks about this job again."),
        not_done=_("The job at the provider is not cancelled: it may still run, bill and have effects."),
        idle=_("Notes that you have seen this. The operation itself stays as it is."),
    ),
}

_LOOKS_UP: Final = Choice(
    label=CHOICES[Option.LOOK_AGAIN].label,
    permission=CHOICES[Option.LOOK_AGAIN].permission,
    cost=_("One look-up: the provider is asked whether it has the job. Nothing is submitted."),
    done=CHOICES[Option.LOOK_UP].done,
    not_done=CHOICES[Option.LOOK_UP].not_done,
)
_SUBMITS: Final = Choice(
    label=CHOICES[Option.LOOK_AGAIN].label,
    permission=CHOICES[Option.LOOK_AGAIN].permission,
    cost=_("One submission: the provider has no job of it yet."),
    done=_(
        "The job is submitted: the stored request is sent, as submission {submission}, until {until}, and not before "
        "the provider allows it. {stakes}"
    ),
    not_done=_("Nothing is sent twice. If this attempt fails too, you are asked again."),
)

BEFORE_A_JOB: Final[Mapping[tuple[Option, str], Choice]] = {
    (Option.LOOK_AGAIN, OperationState.UNCONFIRMED): _LOOKS_UP,
    (Option.LOOK_AGAIN, OperationState.READY): _SUBMITS,
    (Option.ACCESS_REPAIRED, OperationState.UNCONFIRMED): replace(
        _LOOKS_UP,
        label=CHOICES[Option.ACCESS_REPAIRED].label,
        permission=CHOICES[Option.ACCESS_REPAIRED].permission,
        cost=_("You state that the credential works again. A look-up tests it; it asks whether the job is there."),
    ),
    (Option.ACCESS_REPAIRED, OperationState.READY): replace(
        _SUBMITS,
        label=CHOICES[Option.ACCESS_REPAIRED].label,
        permission=CHOICES[Option.ACCESS_REPAIRED].permission,
        cost=_(
            "You state that the credential works again. One submission tests it; the provider has no job of it yet."
        ),
    ),
    (Option.CLOSE, OperationState.ABANDONED): Choice(
        label=CHOICES[Option.CLOSE].label,
        permission=CHOICES[Option.CLOSE].permission,
        cost=_("jobtrack gives up: it submits nothing more, and cancels nothing. {doubt}"),
        done=_(
            "The operation ends as “abandoned”, for good, and what was to be sent is erased. jobtrack never submits "
            "it again, and never asks again whether there is a job. {doubt}"
        ),
        not_done=_("Nothing is cancelled: if the provider has the job after all, it runs, bills and has its effects."),
    ),
}
"""What an option means while no job is known, by the state that it leads to; all others mean what they always do."""


_ASKS_AGAIN: Final = Choice(
    label=CHOICES[Option.LOOK_AGAIN].label,
    permission=CHOICES[Option.LOOK_AGAIN].permission,
    cost=_("Sends nothing: this provider offers no look-up. You are asked at once how to go on."),
    done=_("Nothing is sent. The question becomes whether the provider has the job, with the options for that."),
    not_done=_("Nothing is submitted."),
)

WITHOUT_LOOKUP: Final[Mapping[tuple[Option, str], Choice]] = {
    (Option.LOOK_AGAIN, OperationState.UNCONFIRMED): _ASKS_AGAIN,
    (Option.ACCESS_REPAIRED, OperationState.UNCONFIRMED): replace(
        _ASKS_AGAIN,
        label=CHOICES[Option.ACCESS_REPAIRED].label,
        permission=CHOICES[Option.ACCESS_REPAIRED].permission,
        cost=_("You state that the credential works again. Another request of the account tests it, if one is due."),
    ),
}
"""The same where the table documents no look-up: nothing can settle the doubt."""


def choice(option: Option, leads_to: str, *, accepted: bool, looks_up: bool) -> Choice:
    """What an option means for an operation.

    Args:
        leads_to: the state that its grant leads to.
        accepted: whether the provider is known to have the job.
        looks_up: whether the table documents a look-up.
    """
    if accepted:
        return CHOICES[option]
    special = None if looks_up else WITHOUT_LOOKUP.get((option, leads_to))
    return special or BEFORE_A_JOB.get((option, leads_to)) or CHOICES[option]


REFUSALS: Final[Mapping[Refusal, Text]] = {
    Refusal.NOT_AN_ANSWER: _("No answer to this question."),
    Refusal.NOT_ACCEPTED: _("No job is known yet."),
    Refusal.ACCEPTED: _("The job is known already."),
    Refusal.ENDED: _("The operation has ended."),
    Refusal.NO_TABLE: _("This site has no usable table of the provider now."),
    Refusal.NOT_IN_TABLE: _("The provider's table does not describe it."),
    Refusal.USED_UP: _("Used as often as the provider's table allows."),
    Refusal.NEEDS_ADDRESS: _("Its job can only be followed by an address that nobody has."),
    Refusal.PROVIDER_HAS_IT: _("The provider said that it has a job of it: a second one would be a duplicate."),
    Refusal.ERASED: _("What was to be sent is no longer kept."),
    Refusal.UNDER_WAY: _("It is already under way."),
}
"""Why an option cannot be chosen now."""


STATES: Final[Mapping[str, Text]] = {
    OperationState.READY: pgettext_lazy("state of an operation", "ready"),
    OperationState.SUBMITTING: pgettext_lazy("state of an operation", "submitting"),
    OperationState.UNCONFIRMED: pgettext_lazy("state of an operation", "unconfirmed"),
    OperationState.RUNNING: pgettext_lazy("state of an operation", "running"),
    OperationState.ESCALATED: pgettext_lazy("state of an operation", "needs a decision"),
    OperationState.SUCCEEDED: pgettext_lazy("state of an operation", "succeeded"),
    OperationState.FAILED: pgettext_lazy("state of an operation", "failed"),
    OperationState.CANCELLED: pgettext_lazy("state of an operation", "cancelled"),
    OperationState.EXPIRED: pgettext_lazy("state of an operation", "expired"),
    OperationState.ABANDONED: pgettext_lazy("state of an operation", "abandoned"),
}
"""Of an operation. The words have a context: the same words are told of results, notices and orders."""

FOLLOW_UPS: Final[Mapping[str, Text]] = {
    "on_success": pgettext_lazy("follow-up", "after success"),
    "on_failure": pgettext_lazy("follow-up", "after failure"),
    "on_end": pgettext_lazy("follow-up", "after any end"),
    RESULT: pgettext_lazy("follow-up", "fetching the result"),
    CANCEL: pgettext_lazy("follow-up", "cancelling at the provider"),
}
"""What is done once about an operation, by its event."""

DELAYS: Final[Mapping[str, Text]] = {
    "": _("as soon as a worker takes it"),
    DelaySource.PROVIDER_RETRY_AFTER: _("the provider asked for it (Retry-After)"),
    DelaySource.PROVIDER_POLL_HINT: _("the provider asked for it (hint in its answer)"),
    DelaySource.LOCAL_BACKOFF: _("the table's own pace"),
    DelaySource.MANUAL_EXTENSION: _("a person decided so"),
    DelaySource.WEBHOOK: _("the provider sent a webhook"),
    DelaySource.FIRST_DELAY: _("first look"),
    DelaySource.GATE: _("the account is held back"),
    DelaySource.DEADLINE: _("waits for the deadline"),
}

TROUBLES: Final[Mapping[str, Text]] = {
    Trouble.DNS: pgettext_lazy("no answer", "dns"),
    Trouble.CONNECT_REFUSED: pgettext_lazy("no answer", "connect_refused"),
    Trouble.CONNECT_TIMEOUT: pgettext_lazy("no answer", "connect_timeout"),
    Trouble.TLS: pgettext_lazy("no answer", "tls"),
    Trouble.WRITE: pgettext_lazy("no answer", "write"),
    Trouble.READ_TIMEOUT: pgettext_lazy("no answer", "read_timeout"),
    Trouble.TOTAL_TIMEOUT: pgettext_lazy("no answer", "total_timeout"),
    Trouble.CONNECTION_LOST: pgettext_lazy("no answer", "connection_lost"),
    Trouble.PROTOCOL: pgettext_lazy("no answer", "protocol"),
    Trouble.TARGET_DENIED: pgettext_lazy("no answer", "target_denied"),
    Trouble.CREDENTIAL: pgettext_lazy("no answer", "credential"),
    Trouble.LATE: pgettext_lazy("no answer", "late"),
}
"""Why there is no answer, in a word or two inside a sentence."""

KINDS: Final[Mapping[str, Text]] = {
    Kind.PENDING: pgettext_lazy("answer", "pending"),
    Kind.SUCCESS: pgettext_lazy("answer", "success"),
    Kind.FAILURE: pgettext_lazy("answer", "failure"),
    Kind.CANCELLED: pgettext_lazy("answer", "cancelled"),
    Kind.EXPIRED: pgettext_lazy("answer", "expired"),
    Kind.ATTENTION: pgettext_lazy("answer", "attention"),
    Kind.UNKNOWN_STATE: pgettext_lazy("answer", "unknown_state"),
    Kind.INVALID_RESPONSE: pgettext_lazy("answer", "invalid_response"),
    Kind.JOB_ID_MISMATCH: pgettext_lazy("answer", "job_id_mismatch"),
    Kind.INVALID_RESULT: pgettext_lazy("answer", "invalid_result"),
    Kind.NOT_FOUND: pgettext_lazy("answer", "not_found"),
    Kind.DENIED: pgettext_lazy("answer", "denied"),
    Kind.RATE_LIMITED: pgettext_lazy("answer", "rate_limited"),
    Kind.TRANSPORT_FAILURE: pgettext_lazy("answer", "transport_failure"),
    Kind.TARGET_DENIED: pgettext_lazy("answer", "target_denied"),
}
"""What an answer came to, in a word or two inside a sentence."""

GAPS: Final[Mapping[str, Text]] = {
    Gap.ABSENT: pgettext_lazy("value", "absent"),
    Gap.NULL: pgettext_lazy("value", "null"),
    Gap.EITHER: pgettext_lazy("value", "missing"),
}
"""How a value of an answer is missing. These three are in English as they are stored."""

COUNTERS: Final[Mapping[str, Text]] = {
    "status_requests": _("status requests"),
    "transport_failures": _("transport failures"),
    "rate_limited": _("rate limited"),
    "extensions": _("extensions"),
    "submissions": _("submissions"),
    "lookups": _("lookups"),
}
"""What each entry of the audit counts."""

UNDER_WAY: Final = _("a request is under way, until {} at the latest")
"""Instead of the next look and why, while a row holds a lease: that look has begun, and its lease ends then."""


def option_label(option: str) -> str:
    """An option as its button says it; one of a newer release as it is stored."""
    return str(CHOICES[Option(option)].label) if option in set(Option) else option


def state_label(state: str) -> str:
    return str(STATES.get(state, state))


def follow_up_label(event: str) -> str:
    """What a follow-up or an errand of our own is called; one of a newer release as it is stored."""
    return str(FOLLOW_UPS.get(event, event))


def delay_label(source: str) -> str:
    return str(DELAYS.get(source, source))


def no_answer_label(word: str) -> str:
    """Why there is no answer; a word of a newer release as it is stored."""
    return str(TROUBLES.get(word, KINDS.get(word, word))).replace("_", " ")


def counter_label(counter: str) -> str:
    return str(COUNTERS.get(counter, counter.replace("_", " ")))
