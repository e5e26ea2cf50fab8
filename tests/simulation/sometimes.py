"""What must have been met at least once in a hundred seeds: a fault that never strikes proves nothing.

Each row is a sentence with the counters that stand for it; they are added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from jobtrack.core.escalation import Option, Reason
from tests.simulation.plan import LOOKUP, PROVIDER, SUBMIT

_REASONS = frozenset(Reason) - {Reason.PROVIDER_WAITS, Reason.JOB_OVERDUE, Reason.STALLED, Reason.SEAL_BROKEN}
_REASONS -= {Reason.TARGET_DENIED, Reason.STATE_CONTRADICTION, Reason.RESULT_UNAVAILABLE, Reason.CANCEL_UNKNOWN}
_OPTIONS = frozenset(Option) - {Option.CANCEL, Option.FETCH_AGAIN}
# What is left out is met in other tests.

SOMETIMES: Mapping[str, tuple[str, ...]] = {
    # the broker
    "a message is lost": ("a message was lost",),
    "a message is doubled": ("a message was doubled",),
    "a message comes late": ("a message was late",),
    "messages come in another order": ("messages were reordered",),
    "a message is refused": ("a message was refused",),
    "the broker is down": ("the broker was down",),
    "the broker swallows everything": ("every message was swallowed",),
    "the queue is flushed": ("the queue was flushed",),
    "a message comes again after its worker died": ("a message was delivered again",),
    # processes
    "death before a claim": ("killed before claim",),
    "death after a claim, nothing sent": ("killed after claim", "killed before send"),
    "death with an acceptance in hand": ("killed after submission",),
    "a stop with an acceptance in hand": ("stopped after submission", "an acceptance was held for long"),
    "death with an answer in hand": ("killed after reply", "killed before commit"),
    "death between gate and row": ("killed after move_gate", "killed before move_gate"),
    "death after a commit, nothing published": ("killed after commit", "killed before wake"),
    "death of a sweeper that has marked rows": ("killed after due", "killed before publish"),
    "death around a handler": ("killed before handler", "killed after handler", "killed before close_delivery"),
    "death around a decision": ("killed before resolve", "killed after resolve"),
    "a stop before a claim": ("stopped before claim",),
    "a stop after a claim": ("stopped after claim",),
    "a stop before sending": ("stopped before send",),
    "a stop with an answer in hand": ("stopped after reply", "stopped before commit"),
    # the database
    "the database is away": ("the database was away",),
    "a claim's reply is lost": ("the reply to claim was lost",),
    "a commit's reply is lost": ("the reply to commit was lost",),
    # rare branches
    "a claim that is too old is not sent": ("claimed but not sent after a stop",),
    "a request leaves late": ("sent late after a stop",),
    "a late answer becomes evidence": ("late answer kept as evidence",),
    "guidance dies with its worker": ("guidance was lost before its commit",),
    "guidance reaches past the deadline": ("the floor lies past the deadline",),
    "a budget is met exactly": ("the last request of a budget was granted",),
    "a claim is only made to tell": ("claimed only to be told",),
    "the gate closes by guidance": ("gate: guidance",),
    "the gate closes by a denial": ("gate: auth",),
    "the breaker closes": ("gate: breaker",),
    "a single probe passes": ("gate: breaker probe", "gate: auth probe"),
    "a handler raises": ("a handler raised",),
    "a decision comes second": ("refused: already_decided",),
    "a decision is refused for stale evidence": ("refused: stale_evidence",),
    "somebody answers an old page": ("somebody answered an old page",),
    # submissions
    "a submission is repeated because it was proven not taken": ("repeated: proven not taken",),
    "a submission is repeated because the job is proven absent": ("repeated: proven absent",),
    "a submission is repeated because its key holds": ("repeated: the key holds",),
    "a submission is repeated because a person said so": ("repeated: a person said so",),
    "a repeat is recognised by its key": ("a key was recognised",),
    "a sender does not live to see the answer": ("a submission's sender did not live to see the answer",),
    "an answer to a submission comes too late": ("an answer to a submission was not written in time",),
    "a late acceptance is kept": ("a late acceptance became evidence",),
    "a late acceptance is acted on": ("a late acceptance was read",),
    "there is more than one job, as permitted": ("more than one job, as permitted",),
    "the same id comes with other content": ("refused: idempotency_conflict",),
    **{f"the provider: {fault}": (f"provider: {fault}",) for fault in (*SUBMIT, *LOOKUP)},
    "a hostile broker changes no outcome": ("a twin came to the same end",),
    "all goes well": ("roomy job of an honest provider",),
    **{f"the provider: {fault}": (f"provider: {fault}",) for fault in PROVIDER},
    **{f"a person is asked: {reason.value}": (f"asked: {reason.value}",) for reason in sorted(_REASONS)},
    **{f"a person chooses: {option.value}": (f"chosen: {option.value}",) for option in sorted(_OPTIONS)},
}


def never_met(met: Counter[str], *, at_least: int) -> list[str]:
    """The rows that were met too seldom."""
    return [row for row, names in SOMETIMES.items() if sum(met[name] for name in names) < at_least]
