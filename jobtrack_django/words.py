"""The machine's words in a reader's language: reasons, options, states, and why a look is when it is.

One row for each word. A test holds that no word of ``core`` is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
        ask=_("The result is late for whoever needs it. Polling goes on. Does somebody have to be told?"),
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
    Reason.DELIVERY_FAILED: Question(
        title=_("follow-up failed"),
        ask=_("The job has ended, but the site's own follow-up keeps failing. Mend it first, then run it again."),
        risk=_("Until it has run, the site does not know the result. If it had half run, its effects may double."),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An option as a person reads it. Texts may name ``{time}``, ``{checks}``, ``{deadline}`` and ``{requests}``."""

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
    Option.CLOSE: Choice(
        label=_("Close"),
        permission="close_escalation",
        cost=_("jobtrack stops following; the job at the provider is not cancelled and may still run and bill."),
        done=_("The operation ends as “abandoned”, for good. jobtrack never asks about this job again."),
        not_done=_("The job at the provider is not cancelled: it may still run, bill and have effects."),
        idle=_("Notes that you have seen this. The operation itself stays as it is."),
    ),
}

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

CONCLUSIONS: Final[Mapping[str, Text]] = {
    OperationState.READY: _("Nothing has been sent yet."),
    OperationState.SUBMITTING: _("The job is being submitted."),
    OperationState.UNCONFIRMED: _("It is not known whether the provider has the job."),
    OperationState.RUNNING: _("Not ended, as far as we know. jobtrack goes on asking."),
    OperationState.ESCALATED: _("Not known. jobtrack has stopped asking until a person decides."),
    OperationState.SUCCEEDED: _("Succeeded, as the provider said."),
    OperationState.FAILED: _("Failed, as the provider said."),
    OperationState.CANCELLED: _("Cancelled, as the provider said."),
    OperationState.EXPIRED: _("Expired, as the provider said."),
    OperationState.ABANDONED: _("A person closed it. The job itself was not seen to end: it may still run."),
}
"""The third of the three facts (R-FACT-1): what is known about the end of the job."""

DELAYS: Final[Mapping[str, Text]] = {
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
