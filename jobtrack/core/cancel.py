"""What an answer to a cancellation proves: the provider heard it, refused it, or nobody knows (R-END-5)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from jobtrack.core import sentences_answer as say
from jobtrack.core.answer import answer_of, observation, refused, unanswered
from jobtrack.core.observation import Kind, Observation
from jobtrack.core.reply import NoAnswer, Reply, Sent
from jobtrack.core.table import ProviderTable


class CancelState(StrEnum):
    """How a cancellation stands. It says nothing about the job: only a status answer does."""

    REQUESTED = "requested"  # wanted, not answered yet
    ACCEPTED = "accepted"  # the provider heard it
    REFUSED = "refused"  # proven: it will not be cancelled
    UNKNOWN = "unknown"  # it may have been heard


def read_cancel(
    table: ProviderTable, reply: Reply, *, now: datetime | None = None
) -> tuple[CancelState | None, Observation]:
    """Say what a reply to a cancellation proves; None: proven unsent. Never raises.

    Args:
        table: the newest table; one that documents no cancellation explains no answer.
        reply: the raw reply.
        now: aware; without it the answer's own guidance (Retry-After) is not read.
    """
    if isinstance(reply, NoAnswer):
        return None if reply.sent is Sent.NEVER else CancelState.UNKNOWN, unanswered(reply)
    spec, answer, code = table.cancel, answer_of(reply), reply.status
    error = table.status.error
    if spec is not None and code in spec.accepted_http:
        detail = say.CANCEL_ACCEPTED.of(code=code)
        return CancelState.ACCEPTED, observation(table, reply, answer, Kind.PENDING, detail, now=now)
    kind, said = refused(code) or (Kind.INVALID_RESPONSE, say.CODE.of(code=code))
    if spec is not None and code in spec.refused_http:
        detail = say.CANCEL_REFUSED.of(code=code)
        return CancelState.REFUSED, observation(table, reply, answer, kind, detail, now=now, error=error)
    detail = say.CANCEL_UNEXPLAINED.of(what=said)
    return CancelState.UNKNOWN, observation(table, reply, answer, kind, detail, now=now, error=error)
