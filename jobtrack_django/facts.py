"""The facts about an operation in a reader's language: accepted, observed, concluded; cancellation and result.

``words`` has the machine's single words; here is what they add up to (R-FACT-1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise as Text
from django.utils.translation import gettext_lazy as _

from jobtrack.core.operation import OperationState
from jobtrack_django import sentences

CONCLUSIONS: Final[Mapping[str, Text]] = {
    OperationState.READY: _("Not ended: it is still to be submitted."),
    OperationState.SUBMITTING: _("Not ended: it is being submitted."),
    OperationState.UNCONFIRMED: _("Not known. jobtrack goes on finding out whether the provider has the job."),
    OperationState.RUNNING: _("Not ended, as far as we know. jobtrack goes on asking."),
    OperationState.ESCALATED: _("Not known. jobtrack has stopped asking until a person decides."),
    OperationState.SUCCEEDED: _("Succeeded, as the provider said."),
    OperationState.FAILED: _("Failed, as the provider said."),
    OperationState.CANCELLED: _("Cancelled, as the provider said."),
    OperationState.EXPIRED: _("Expired, as the provider said."),
    OperationState.ABANDONED: _("A person closed it. The job itself was not seen to end: it may still run."),
}
"""The third of the three facts (R-FACT-1): what is known about the end of the job."""

_ENDED_BECAUSE: Final[Mapping[str, Text]] = {
    "submission_rejected": _("Failed: the provider refused the submission, so there was never a job."),
}
_CONCLUDED_UNACCEPTED: Final[Mapping[str, Text]] = {
    OperationState.ESCALATED: _("Nothing: no job is known. Nothing more is sent until a person decides."),
    OperationState.ABANDONED: _("A person closed it before any job was known. Nothing more is submitted."),
}


_ERROR: Final = _("Its error: “%s”")
_ERRORS: Final[Mapping[str, Text]] = {OperationState.SUCCEEDED: _("An error before that: “%s”")}
"""How the provider's last error is told where it is not the end of the story."""


def error(state: str, said: str) -> str:
    """The last error that the provider told, in its words; "" if there was none."""
    return str(_ERRORS.get(state, _ERROR)) % said if said else ""


def conclusion(state: str, cause: str, *, accepted: bool) -> str:
    """What is known about the end; a state of a newer release as it is stored."""
    unaccepted = None if accepted else _CONCLUDED_UNACCEPTED.get(state)
    return str(_ENDED_BECAUSE.get(cause) or unaccepted or CONCLUSIONS.get(state) or state)


_UNACCEPTED: Final[Mapping[str, Text]] = {
    OperationState.READY: _("No: the provider has no job of it so far."),
    OperationState.SUBMITTING: _("Not known yet: a submission is under way, or its worker has just ended."),
    OperationState.UNCONFIRMED: _("No: it is proven that no request so far has made a job."),
    OperationState.FAILED: _("No: the provider refused the submission."),
}
"""The first of the three facts while there is no acceptance and nothing is in doubt."""

_NO_JOB: Final = _("No: it is proven that no request has made a job.")
_NOTHING_SENT: Final = _("No: nothing has been sent to the provider.")
_IN_DOUBT: Final = _("Not known: the provider may have the job or not ({doubt}).")
_SEEN: Final = _("Yes, as the provider said; but it gave no id by which the job can be followed ({doubt}).")
_EVIDENCE: Final = _("Yes: an answer that came late proves it, and jobtrack is about to follow the job {job}.")


def unaccepted(state: str, *, sent: bool, doubt: str, seen: bool, evidence: Mapping[str, object]) -> str:
    """What is known about the acceptance, where none is written down.

    Args:
        sent: whether a submission may have been sent at all.
        doubt: why the outcome is unknown; "": it is not.
        seen: the provider said that it has the job.
        evidence: a late acceptance that is not acted on yet.
    """
    if evidence:
        return str(_EVIDENCE).format(job=evidence.get("job_id") or "")
    if seen or doubt:
        return str(_SEEN if seen else _IN_DOUBT).format(doubt=sentences.clause(doubt) or "?")
    return str((_UNACCEPTED.get(state) or _NO_JOB) if sent else _NOTHING_SENT)


CANCELLATIONS: Final[Mapping[str, Text]] = {
    "requested": _("Wanted; the provider has not answered yet."),
    "accepted": _("The provider accepted it. Only its status tells what becomes of the job."),
    "refused": _("The provider refused it: the job goes on."),
    "unknown": _("It may have been heard: there is no usable answer."),
}
"""How a cancellation stands (``core.cancel.CancelState``)."""

RESULTS: Final[Mapping[str, Text]] = {
    "wanted": _("To be fetched"),
    "complete": _("Complete"),
    "unavailable": _("Not to be had; a person decides"),
}
"""How the fetching of a result stands (``records.ResultState``)."""
