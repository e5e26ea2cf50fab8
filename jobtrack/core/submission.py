"""What answers to submissions and look-ups prove, as values. ``core.accept`` and ``core.lookup`` read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jobtrack.core.actions import SubmitMeaning
from jobtrack.core.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """How to follow the job from now on. Every part is checked: patterns, origins, paths, control characters."""

    job_id: str = ""  # "": the job is followed by its status URL alone
    status_url: str = field(default="", repr=False)  # absolute, allowed; "": built from the job id
    handle: str = field(default="", repr=False)  # secret to poll with
    params: Mapping[str, str] = field(default_factory=dict)  # parameters `from: answer`


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitSeen:
    """One reply to a submission, read with one table.

    ``meaning`` None: proven that nothing was sent (R-SUB-2). ACCEPTED and ALREADY without ``handover``: the provider
    has the job, and nobody knows how to follow it. FINAL always has a ``status`` that ends the job.
    ``observation`` holds what every reply has: http, trouble, request id, guidance, error, and a ``kind`` for the
    account's gate (DENIED, RATE_LIMITED, TRANSPORT_FAILURE, TARGET_DENIED, INVALID_RESPONSE, or PENDING for "taken").
    """

    meaning: SubmitMeaning | None
    observation: Observation
    handover: Handover | None = None
    status: Observation | None = None  # the answer read as a status answer (FINAL, or `reads_status`)

    @property
    def proves_no_job(self) -> bool:
        """True if this very request made no job; it says nothing about the ones before it."""
        return self.meaning in (None, SubmitMeaning.REJECTED, SubmitMeaning.DENIED, SubmitMeaning.BUSY)


class LookupKind(StrEnum):
    FOUND = "found"  # exactly one job of this operation, on the pages read so far
    MANY = "many"  # more than one: nothing is chosen by a machine
    ABSENT = "absent"  # not on this page, and there is no further one
    MORE = "more"  # there is a further page
    UNREADABLE = "unreadable"  # the answer proves nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSeen:
    """One answer to a look-up. Pages are read one by one: what earlier pages had is passed in as ``known``."""

    kind: LookupKind
    observation: Observation  # as in SubmitSeen
    found: tuple[Handover, ...] = ()  # of this page and the ones before; several with one job id are one
    next: str = field(default="", repr=False)  # MORE: the URL of the next page, or the token for it; never stored
    items: int = 0  # on this page, whether or not they matched
    ours: bool = False  # a job of this operation is there, although it cannot be followed from what was read
