"""Questions that nobody answers in time are answered as the site says (R-ESC-6). Never with a write at a provider."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping

from jobtrack.core.escalation import Lapse, Reason, Resolution, lapse_for
from jobtrack.core.grant import submits
from jobtrack.core.sentences_question import NOBODY_ACTED
from jobtrack.errors import DecisionError, UsageError
from jobtrack.flow.resolve import resolve, weigh
from jobtrack.ports import Runtime
from jobtrack.records import Escalation

log = logging.getLogger("jobtrack.flow")

ACTOR = "jobtrack"
"""Who decided, in the audit, when nobody else did."""

PAGE = 50


def lapse(runtime: Runtime, *, limit: int = 200, beyond: MutableMapping[Reason, str] | None = None) -> int:
    """Answer questions that have waited for as long as the site lets them.

    Args:
        limit: most questions of each reason that are looked at.
        beyond: where the call before has stopped, by reason; kept up to date. With it, questions that cannot be
            answered do not stand in the way of those behind them. None: from the oldest.

    Returns:
        How many were answered.
    """
    places = {} if beyond is None else beyond
    rules = {reason: lapse_for(reason, runtime.lapses, runtime.four_eyes) for reason in runtime.lapses}
    return sum(_lapse(runtime, reason, rule, limit, places) for reason, rule in rules.items() if rule is not None)


def _lapse(runtime: Runtime, reason: Reason, rule: Lapse, limit: int, beyond: MutableMapping[Reason, str]) -> int:
    answered = seen = 0
    while seen < limit:
        size = min(PAGE, limit - seen)
        waiting = runtime.store.unanswered(reason, since=rule.after, limit=size, after_id=beyond.get(reason, ""))
        answered += sum(_answer(runtime, escalation, rule) for escalation in waiting)
        seen += len(waiting)
        if len(waiting) < size:
            beyond.pop(reason, None)  # the end: begin anew next time
            break
        beyond[reason] = waiting[-1].id
    return answered


def _answer(runtime: Runtime, escalation: Escalation, rule: Lapse) -> bool:
    """Whether it could be answered: the option is offered now, and leads to no submission."""
    resolution = Resolution(
        escalation_id=escalation.id,
        option=rule.option,
        actor=ACTOR,
        reason=NOBODY_ACTED.of(wait=rule.after),
        version=escalation.version,
    )
    try:
        weighed = weigh(runtime, resolution)
        if weighed.wanted != weighed.operation and submits(weighed.wanted):
            return False
        resolve(runtime, resolution)
    except (DecisionError, UsageError):  # not offered now, or somebody was first
        return False
    except Exception:
        log.exception("The question %s could not be answered; the others are.", escalation.id)
        return False
    return True
