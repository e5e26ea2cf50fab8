"""The machine's words in a reader's language: reasons, options, states, and why a look is when it is.

One row for each word. A test holds that no word of ``core`` is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext_lazy as _

from jobtrack.core.escalation import Option, Reason
from jobtrack.core.observation import DelaySource
from jobtrack.core.operation import OperationState


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A reason as a person reads it."""

    title: Text | str  # a few words, for lists
    ask: Text  # what is to be decided, and what to look at first
    risk: Text  # what it may mean if the decision is wrong


_BILLS = _("If you close it while the job still runs, nobody sees its result, and it may go on costing money.")
_WRONG_JOB = _("If the answers belong to another job, going on could hand over a stranger's result.")
_ENDED = _("The operation has ended. If its effect is still needed, somebody must start a new job.")
_ACCOUNT = _("Any answer here lets one request of this account out to test access; the rest wait for it.")

QUESTIONS: Final[Mapping[Reason, Question]] = {
    Reason.DEADLINE_EXCEEDED: Question(
        title=_("deadline passed"),
        ask=_("The job has not ended in the time it was given. Is it worth waiting longer?"),
        risk=_BILLS,
    ),
    Reason.BUSINESS_DEADLINE_EXCEEDED: Question(
        title=_("needed by now"),
        ask=_("The result is late for whoever needs it. jobtrack goes on. Does somebody have to be told?"),
        risk=_("If nobody is told, others may count on a result that is not there yet."),
    ),
    Reason.REQUEST_BUDGET_EXHAUSTED: Question(
        title=_("status requests used up"),
        ask=_("All permitted status requests are used and the job has not ended. Should more be allowed?"),
        risk=_BILLS,
    ),
    Reason.TRANSPORT_FAILURES_EXHAUSTED: Question(
        title=_("provider not reachable"),
        ask=_("Too many requests got no usable answer. Is the provider up again?"),
        risk=_("The job may be fine although nobody could ask about it. Closing it loses its result."),
    ),
    Reason.RATE_LIMITED: Question(
        title=_("too many requests (429)"),
        ask=_("The provider keeps answering that we ask too often. Has its limit been lifted?"),
        risk=_("Asking on may prolong the block for the whole account."),
    ),
    Reason.UNKNOWN_STATE: Question(
        title=_("unknown state"),
        ask=_("The provider names a state that the table does not know. Mend the table first, then look again."),
        risk=_("If the state means that the job has ended, waiting is useless; if it still runs, closing loses it."),
    ),
    Reason.AUTHORIZATION_DENIED: Question(
        title=_("access denied"),
        ask=_("The provider refuses our credential. Repair access first, then say so here."),
        risk=_ACCOUNT,
    ),
    Reason.PROVIDER_FAILURE: Question(
        title=_("job failed"), ask=_("The provider says that the job failed. Who has to know?"), risk=_ENDED
    ),
    Reason.PROVIDER_CANCELLED: Question(
        title=_("job cancelled"), ask=_("The job was cancelled at the provider. Who has to know?"), risk=_ENDED
    ),
    Reason.PROVIDER_EXPIRED: Question(
        title=_("job expired"), ask=_("The job expired at the provider. Who has to know?"), risk=_ENDED
    ),
    Reason.PROVIDER_WAITS: Question(
        title=_("provider waits for us"),
        ask=_("The job waits for somebody to act at the provider. Act there first, then look again."),
        risk=_("Until somebody acts there, the job does not move, however often it is asked about."),
    ),
    Reason.TABLE_MISSING: Question(
        title=_("no provider table"),
        ask=_("No worker has a usable table for this provider. Deploy it first, then look again."),
        risk=_BILLS,
    ),
    Reason.INVALID_RESPONSE: Question(
        title=_("answer not readable"),
        ask=_("The answer is not what the table describes. Is it a passing fault, or has the API changed?"),
        risk=_("Nobody knows whether the job still runs. Closing it may lose its result."),
    ),
    Reason.JOB_ID_MISMATCH: Question(
        title=_("answer about another job"),
        ask=_("The answer names another job than the one asked about. Find out why before looking again."),
        risk=_WRONG_JOB,
    ),
    Reason.INVALID_RESULT: Question(
        title=_("success without a result"),
        ask=_("The provider says that the job succeeded, but the result is missing. Does it appear later?"),
        risk=_("The job may have succeeded. Closing it gives up a result that may only be late."),
    ),
    Reason.JOB_NOT_FOUND: Question(
        title=_("job not found"),
        ask=_("The provider does not know the job (any more). Is the id right, and the account?"),
        risk=_("It may never have existed, or may have ended and been removed. Only the provider can tell."),
    ),
    Reason.JOB_OVERDUE: Question(
        title=_("past its own expiry"),
        ask=_("The job says that it is running although its own expiry has passed. Does it still run?"),
        risk=_BILLS,
    ),
    Reason.STALLED: Question(
        title=_("no movement"),
        ask=_("The job has been in the same state for longer than its table expects. Does it still run?"),
        risk=_BILLS,
    ),
    Reason.STATE_CONTRADICTION: Question(
        title=_("contradiction after the end"),
        ask=_("The provider now says something else than when the job ended. Which one is true?"),
        risk=_("What was stored stays as it is. If it is wrong, its follow-ups have already run."),
    ),
    Reason.TARGET_DENIED: Question(
        title=_("address not allowed"),
        ask=_("The table does not allow the address to be asked. Check the table, then look again."),
        risk=_("A wrong address could send our credential to a stranger; that is why nothing was sent."),
    ),
    Reason.GUIDANCE_TOO_LONG: Question(
        title=_("asked to wait very long"),
        ask=_("The provider asks the account to wait longer than its table allows for. Is the account in order?"),
        risk=_("Every operation of this account waits meanwhile."),
    ),
    Reason.SUBMISSION_UNKNOWN: Question(
        title=_("not known whether submitted"),
        ask=_("Nobody knows whether the provider has the job. Does it show there, in its console for example?"),
        risk=_(
            "If it is submitted again although the first one arrived, there are two jobs, with their effects and their "
            "costs. If it is closed although it arrived, a job runs that nobody follows."
        ),
    ),
    Reason.SUBMISSION_UNSENT: Question(
        title=_("not submitted"),
        ask=_("The provider has no job of it, and jobtrack may not try again by itself. Is it still wanted?"),
        risk=_("If it is closed, the job is never made. If it is submitted late, it may no longer be wanted."),
    ),
    Reason.SUBMISSION_REJECTED: Question(
        title=_("submission refused"),
        ask=_(
            "The provider refused the job: there is none, and the same request will never make one. Who has to know?"
        ),
        risk=_("The operation has ended. If its effect is still needed, mend the content and submit a new operation."),
    ),
    Reason.IDEMPOTENCY_CONFLICT: Question(
        title=_("same id, other content"),
        ask=_("An operation id was used again with other content. Which of the two is right, and who sends the other?"),
        risk=_("Only the first content is submitted. Whoever sent the second one may believe that it is under way."),
    ),
    Reason.SEAL_BROKEN: Question(
        title=_("sealed content not readable"),
        ask=_(
            "What is kept encrypted cannot be read with the keys of this site. Bring the old key back, then try again."
        ),
        risk=_(
            "Without the key nothing can be sent for this operation: no submission, and no request that needs what "
            "the provider handed over. The job, if there is one, may run and bill unseen."
        ),
    ),
    Reason.RESULT_UNAVAILABLE: Question(
        title=_("result not fetched"),
        ask=_("The job succeeded, but its result could not be fetched. Mend the cause, then fetch it again."),
        risk=_("Providers delete results after some time. Then nobody can fetch it, and the job must be run again."),
    ),
    Reason.CANCEL_UNKNOWN: Question(
        title=_("not known whether cancelled"),
        ask=_("The job was to be cancelled, and nobody knows whether the provider heard it. Does the job still run?"),
        risk=_("If it was not heard, the job goes on, and bills. jobtrack goes on asking how it stands either way."),
    ),
    Reason.DELIVERY_FAILED: Question(
        title=_("follow-up failed"),
        ask=_("The job has ended, but the site's own follow-up keeps failing. Mend it first, then run it again."),
        risk=_("Until it has run, the site does not know the result. If it had half run, its effects may double."),
    ),
}


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
        cost=_("Extend once: {time} and {checks} checks more."),
        done=_("The deadline becomes {deadline} and {requests} status requests are allowed in all. Polling goes on."),
        not_done=_("Nothing is submitted, repeated or cancelled at the provider. What was used stays counted."),
    ),
    Option.LOOK_AGAIN: Choice(
        label=_("Look again now"),
        permission="look_again",
        cost=_("One request, also after the deadline. It is read with the newest table."),
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
        cost=_("You state that the credential works again. One request tests it for the whole account."),
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
        cost=_("Fresh tries: at most {reads} more status requests, and the download. Nothing is submitted."),
        done=_(
            "The job's status is read again, and the files that are not complete yet are fetched. At most {reads} "
            "status requests are used for it; they do not count against the operation's budget."
        ),
        not_done=_("Nothing is submitted or cancelled, complete files are kept, and the operation stays as it ended."),
    ),
    Option.LOOK_UP: Choice(
        label=_("Ask whether it has the job"),
        permission="look_up_submission",
        cost=_("One look-up, also after the recovery deadline. Nothing is submitted."),
        done=_(
            "The provider is asked whether it has the job; {lookups} look-up requests are allowed in all. If it has "
            "the job, that one is followed. If not, you are asked again, with what was seen."
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


STATES: Final[Mapping[str, Text]] = {
    OperationState.READY: _("ready"),
    OperationState.SUBMITTING: _("submitting"),
    OperationState.UNCONFIRMED: _("unconfirmed"),
    OperationState.RUNNING: _("running"),
    OperationState.ESCALATED: _("needs a decision"),
    OperationState.SUCCEEDED: _("succeeded"),
    OperationState.FAILED: _("failed"),
    OperationState.CANCELLED: _("cancelled"),
    OperationState.EXPIRED: _("expired"),
    OperationState.ABANDONED: _("abandoned"),
}

DELAYS: Final[Mapping[str, Text]] = {
    "": _("as soon as a worker takes it"),
    DelaySource.PROVIDER_RETRY_AFTER: _("the provider asked for it (Retry-After)"),
    DelaySource.PROVIDER_POLL_HINT: _("the provider asked for it (hint in its answer)"),
    DelaySource.LOCAL_BACKOFF: _("the table's own pace"),
    DelaySource.MANUAL_EXTENSION: _("a person decided so"),
    DelaySource.WEBHOOK: _("the provider sent a notice"),
    DelaySource.FIRST_DELAY: _("first look"),
    DelaySource.GATE: _("the account is held back"),
    DelaySource.DEADLINE: _("waits for the deadline"),
}

UNDER_WAY: Final = _("a request is under way, until {} at the latest")
"""Instead of the next look and why, while a row holds a lease: that look has begun, and its lease ends then."""


def reason_title(reason: str) -> str:
    """A reason in a few words; one of a newer release as it is stored."""
    return str(question(reason).title)


def knows(reason: str) -> bool:
    """Whether this release knows the reason; while a newer one is rolled out, its words are in the rows already."""
    return reason in set(Reason)


def question(reason: str) -> Question:
    """What a reason asks; of one of a newer release only the word is known."""
    if knows(reason):
        return QUESTIONS[Reason(reason)]
    return Question(title=reason, ask=_("A newer release of jobtrack asks this."), risk=_("Not known here."))


def option_label(option: str) -> str:
    """An option as its button says it; one of a newer release as it is stored."""
    return str(CHOICES[Option(option)].label) if option in set(Option) else option


def state_label(state: str) -> str:
    return str(STATES.get(state, state))


def delay_label(source: str) -> str:
    return str(DELAYS.get(source, source))
