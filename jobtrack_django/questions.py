"""What each reason asks of a person: the question, what to look at first, and which option fits which finding.

One row for each reason. A test holds that none is missing, and that each says when each of its options is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext_lazy as _

from jobtrack.core.escalation import Option, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A reason as a person reads it."""

    title: Text | str  # a few words, for lists
    ask: Text  # what is to be decided
    check: Text  # what to look at first
    fits: Mapping[Option, Text]  # when each of its options is the right one
    risk: Text  # what it may mean if the decision is wrong


_BILLS = _("If you close it while the job still runs, nobody sees its result, and it may go on costing money.")
_WRONG_JOB = _("If the answers belong to another job, going on could hand over a stranger's result.")
_ENDED = _("The operation has ended. If its effect is still needed, somebody must start a new job.")
_ACCOUNT = _("Any answer here lets one request of this account out to test access; the rest wait for it.")

_RUNS = _("The job still runs, and is worth the wait.")
_MAY_HAVE_ENDED = _("It has ended there by now: read how.")
_UNWANTED = _("The job is no longer wanted.")
_NO_MATTER = _("Nobody needs to know how it ends.")
_KNOWN = _("Whoever needs the result knows.")
_CONSOLE = _("Open the job in the provider's console: does it still run?")


def _look(
    *, again: Text, extend: Text = _RUNS, cancel: Text = _UNWANTED, close: Text = _NO_MATTER
) -> dict[Option, Text]:
    """When each option of a stopped look is right."""
    return {Option.EXTEND: extend, Option.LOOK_AGAIN: again, Option.CANCEL: cancel, Option.CLOSE: close}


QUESTIONS: Final[Mapping[Reason, Question]] = {
    Reason.DEADLINE_EXCEEDED: Question(
        title=_("deadline passed"),
        ask=_("The job has not ended in the time it was given. Wait longer?"),
        check=_CONSOLE,
        fits=_look(again=_MAY_HAVE_ENDED),
        risk=_BILLS,
    ),
    Reason.BUSINESS_DEADLINE_EXCEEDED: Question(
        title=_("needed by now"),
        ask=_("The result is late for whoever needs it. Has somebody to be told?"),
        check=_("Who waits for this result? jobtrack goes on asking."),
        fits={Option.CANCEL: _("It comes too late to be of use."), Option.CLOSE: _KNOWN},
        risk=_("If nobody is told, others may count on a result that is not there yet."),
    ),
    Reason.REQUEST_BUDGET_EXHAUSTED: Question(
        title=_("status requests used up"),
        ask=_("All permitted status requests are used and the job has not ended. Allow more?"),
        check=_CONSOLE,
        fits=_look(again=_MAY_HAVE_ENDED),
        risk=_BILLS,
    ),
    Reason.TRANSPORT_FAILURES_EXHAUSTED: Question(
        title=_("provider not reachable"),
        ask=_("Too many requests got no usable answer. Is the provider up again?"),
        check=_("Read the last answers below, and the provider's status page."),
        fits=_look(again=_("It is up again."), extend=_("It is up again, and the job needs more time.")),
        risk=_("The job may be fine although nobody could ask about it. Closing it loses its result."),
    ),
    Reason.RATE_LIMITED: Question(
        title=_("too many requests (429)"),
        ask=_("The provider keeps answering that we ask too often. Has its limit been lifted?"),
        check=_("Read the account's limits in the provider's console: who else uses it?"),
        fits=_look(again=_("The limit is lifted."), extend=_("The limit is lifted, and the job needs more time.")),
        risk=_("Asking on may prolong the block for the whole account."),
    ),
    Reason.UNKNOWN_STATE: Question(
        title=_("unknown state"),
        ask=_("The provider names a state that its table does not know. What does it mean?"),
        check=_("Find the state in its documentation, have its table mended, and wait for the new revision below."),
        fits=_look(again=_("The table is mended."), extend=_("The table is mended, and the job needs more time.")),
        risk=_("If the state means that the job has ended, waiting is useless; if it still runs, closing loses it."),
    ),
    Reason.AUTHORIZATION_DENIED: Question(
        title=_("access denied"),
        ask=_("The provider refuses our credential. Does it work again?"),
        check=_("Have the credential repaired first: nothing of this account is asked meanwhile."),
        fits={Option.ACCESS_REPAIRED: _("It is repaired."), Option.CLOSE: _NO_MATTER},
        risk=_ACCOUNT,
    ),
    Reason.PROVIDER_FAILURE: Question(
        title=_("job failed"),
        ask=_("The provider says that the job failed. Who has to know?"),
        check=_("Read its error below."),
        fits={Option.CLOSE: _KNOWN},
        risk=_ENDED,
    ),
    Reason.PROVIDER_CANCELLED: Question(
        title=_("job cancelled"),
        ask=_("The job was cancelled at the provider. Who has to know?"),
        check=_("Who cancelled it? If we did, it stands in the story below."),
        fits={Option.CLOSE: _KNOWN},
        risk=_ENDED,
    ),
    Reason.PROVIDER_EXPIRED: Question(
        title=_("job expired"),
        ask=_("The job expired at the provider. Who has to know?"),
        check=_("Is its result still needed?"),
        fits={Option.CLOSE: _KNOWN},
        risk=_ENDED,
    ),
    Reason.PROVIDER_WAITS: Question(
        title=_("provider waits for us"),
        ask=_("The job waits until somebody acts at the provider. Is that done?"),
        check=_("Open the job in the provider's console and do what it asks for: confirm, pay, upload."),
        fits=_look(again=_("It is done."), extend=_("It is done, and the job needs more time.")),
        risk=_("Until somebody acts there, the job does not move, however often it is asked about."),
    ),
    Reason.TABLE_MISSING: Question(
        title=_("no provider table"),
        ask=_("No worker has a usable table for this provider. Is one there now?"),
        check=_("Run “manage.py check” where the workers run, and deploy the table."),
        fits={Option.LOOK_AGAIN: _("The table is deployed."), Option.CLOSE: _NO_MATTER},
        risk=_BILLS,
    ),
    Reason.INVALID_RESPONSE: Question(
        title=_("answer not readable"),
        ask=_("The answer is not what the table describes. A passing fault, or has the API changed?"),
        check=_("Read the answer below, then the provider's status page and its documentation."),
        fits=_look(
            again=_("It has passed, or the table is mended."), extend=_("It has passed, and the job needs more time.")
        ),
        risk=_("Nobody knows whether the job still runs. Closing it may lose its result."),
    ),
    Reason.JOB_ID_MISMATCH: Question(
        title=_("answer about another job"),
        ask=_("The answer names another job than the one asked about. Why?"),
        check=_("Find both ids in the provider's console, and have the cause mended."),
        fits={
            Option.LOOK_AGAIN: _("The cause is found and mended."),
            Option.CLOSE: _("It cannot be told whose job this is."),
        },
        risk=_WRONG_JOB,
    ),
    Reason.INVALID_RESULT: Question(
        title=_("success without a result"),
        ask=_("The provider says that the job succeeded, but its result is missing. Does it come later?"),
        check=_("Open the job in the provider's console: is there a result?"),
        fits=_look(
            again=_("It is there now, or the table is mended."),
            extend=_("It comes, but takes more time."),
            close=_("There is none, and none will come."),
        ),
        risk=_("The job may have succeeded. Closing it gives up a result that may only be late."),
    ),
    Reason.JOB_NOT_FOUND: Question(
        title=_("job not found"),
        ask=_("The provider does not know the job (any more). Does it exist?"),
        check=_("Search its id in the provider's console, also in its other accounts."),
        fits=_look(
            again=_("It is there."),
            extend=_("It is there, and needs more time."),
            close=_("The provider does not have it."),
        ),
        risk=_("It may never have existed, or may have ended and been removed. Only the provider can tell."),
    ),
    Reason.JOB_OVERDUE: Question(
        title=_("past its own expiry"),
        ask=_("The job says that it is running although its own expiry has passed. Does it still run?"),
        check=_CONSOLE,
        fits=_look(again=_MAY_HAVE_ENDED),
        risk=_BILLS,
    ),
    Reason.STALLED: Question(
        title=_("no movement"),
        ask=_("The job has been in the same state for longer than its table expects. Does it still run?"),
        check=_CONSOLE,
        fits=_look(again=_("It has moved on there.")),
        risk=_BILLS,
    ),
    Reason.STATE_CONTRADICTION: Question(
        title=_("contradiction after the end"),
        ask=_("The provider now says something else than when the job ended. Which one is true?"),
        check=_("Compare the job in the provider's console with what was stored."),
        fits={Option.CLOSE: _("Whoever used the stored end knows what is true.")},
        risk=_("What was stored stays as it is. If it is wrong, its follow-ups have already run."),
    ),
    Reason.TARGET_DENIED: Question(
        title=_("address not allowed"),
        ask=_("The table does not allow the address to be asked. Is the address right?"),
        check=_("Compare the address with the table's hosts: a wrong one may be an attack."),
        fits={Option.LOOK_AGAIN: _("It is right, and the table allows it now."), Option.CLOSE: _("It is wrong.")},
        risk=_("A wrong address could send our credential to a stranger; that is why nothing was sent."),
    ),
    Reason.GUIDANCE_TOO_LONG: Question(
        title=_("asked to wait very long"),
        ask=_("The provider asks the account to wait longer than its table allows for. Is the account in order?"),
        check=_("Read the account's limits in the provider's console."),
        fits={Option.CLOSE: _("You know why. It waits as it was asked to.")},
        risk=_("Every operation of this account waits meanwhile."),
    ),
    Reason.SUBMISSION_UNKNOWN: Question(
        title=_("not known whether submitted"),
        ask=_("Nobody knows whether the provider has the job. Does it show there?"),
        check=_("Search the provider's console, by time, reference or amount."),
        fits={
            Option.LOOK_UP: _("Its look-up was only out of order: let jobtrack search again."),
            Option.ATTACH_JOB: _("It shows there."),
            Option.RESUBMIT: _("It does not show there, although new jobs show at once, and it is still wanted."),
            Option.CLOSE: _("It is no longer wanted. If it turns up, cancel it there."),
        },
        risk=_(
            "If it is submitted again although the first one arrived, there are two jobs, with their effects and their "
            "costs. If it is closed although it arrived, a job runs that nobody follows."
        ),
    ),
    Reason.SUBMISSION_UNSENT: Question(
        title=_("not submitted"),
        ask=_("The provider has no job of it, and jobtrack may not try again by itself. Is it still wanted?"),
        check=_("Read below why the attempts were refused: is the provider up again?"),
        fits={Option.RESUBMIT: _("It is still wanted."), Option.CLOSE: _("It is no longer wanted.")},
        risk=_("If it is closed, the job is never made. If it is submitted late, it may no longer be wanted."),
    ),
    Reason.SUBMISSION_REJECTED: Question(
        title=_("submission refused"),
        ask=_(
            "The provider refused the job: there is none, and the same request will never make one. Who has to know?"
        ),
        check=_("Read its error below."),
        fits={Option.CLOSE: _KNOWN},
        risk=_("The operation has ended. If its effect is still needed, mend the content and submit a new operation."),
    ),
    Reason.IDEMPOTENCY_CONFLICT: Question(
        title=_("same id, other content"),
        ask=_("An operation id was used again with other content. Which of the two is right?"),
        check=_("Ask whoever keeps the application who sent the second one; jobtrack keeps only when."),
        fits={Option.CLOSE: _("The first one is right, or what is missing is submitted under another id.")},
        risk=_("Only the first content is submitted. Whoever sent the second one may believe that it is under way."),
    ),
    Reason.SEAL_BROKEN: Question(
        title=_("sealed content not readable"),
        ask=_("What is kept encrypted cannot be read with the keys of this site. Is the old key back?"),
        check=_("Was SECRET_KEY or SEALING_KEYS changed? Put the old key behind the new one, and restart the workers."),
        fits={
            Option.LOOK_AGAIN: _("The old key is back."),
            Option.ATTACH_JOB: _("The key is lost, and the job shows at the provider."),
            Option.CLOSE: _("The key is lost, and no job is known."),
        },
        risk=_(
            "Without the key nothing can be sent for this operation: no submission, and no request that needs what "
            "the provider handed over. The job, if there is one, may run and bill unseen."
        ),
    ),
    Reason.RESULT_UNAVAILABLE: Question(
        title=_("result not fetched"),
        ask=_("The job succeeded, but its result could not be fetched. Is the cause mended?"),
        check=_("Read the cause below: a dead link, a wrong type, a file too large, or our own storage?"),
        fits={
            Option.FETCH_AGAIN: _("It is mended, or has passed."),
            Option.CLOSE: _("The result is gone for good, or not needed."),
        },
        risk=_("Providers delete results after some time. Then nobody can fetch it, and the job must be run again."),
    ),
    Reason.CANCEL_UNKNOWN: Question(
        title=_("not known whether cancelled"),
        ask=_("The job was to be cancelled, and nobody knows whether the provider heard it. Does it still run?"),
        check=_CONSOLE,
        fits={Option.CANCEL: _("It still runs."), Option.CLOSE: _("It has ended, or may run to its end.")},
        risk=_("If it was not heard, the job goes on, and bills. jobtrack goes on asking how it stands either way."),
    ),
    Reason.DELIVERY_FAILED: Question(
        title=_("follow-up failed"),
        ask=_("The job has ended, but the site's own follow-up keeps failing. Is it mended?"),
        check=_("Read its last error below, and have the handler mended."),
        fits={
            Option.RETRY_DELIVERY: _("It is mended, and may run from its start."),
            Option.CLOSE: _("Its effect was made by hand, or is not needed."),
        },
        risk=_("Until it has run, the site does not know the result. If it had half run, its effects may double."),
    ),
}
"""What each reason asks. A person who has read nothing else must be able to decide by it."""


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
    return Question(
        title=reason, ask=_("A newer release of jobtrack asks this."), check=_("–"), fits={}, risk=_("Not known here.")
    )
