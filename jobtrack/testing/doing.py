"""What else happens in a case besides the provider's answers: notices, second callers, cancellations, decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from jobtrack.catalog.nodes import Node
from jobtrack.core.escalation import Option, Resolution
from jobtrack.core.operation import OperationState
from jobtrack.errors import DecisionError, IdempotencyConflict, UsageError
from jobtrack.flow import story
from jobtrack.flow.cancel import request_cancel
from jobtrack.flow.hear import hear
from jobtrack.flow.resolve import resolve
from jobtrack.flow.submit import Submission, report_conflict, submit
from jobtrack.ports import Runtime
from jobtrack.records import RESULT, Followup, Receipt
from jobtrack.testing.reading import Reader

_ACTIONS = ("webhook", "submit", "cancel", "fetch", "decide")
_MORE = {"webhook": ("notice",), "decide": ("job_id",)}
_WORDS = ("done", "conflict", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """One thing that somebody does."""

    action: str  # one of _ACTIONS
    value: Any  # job id, payload or option; True for the others
    at: timedelta | None = None  # since the start; None: once nothing is due any more
    more: Mapping[str, str] | None = None  # further texts, by key
    expect: str = "done"  # what comes of it, one of _WORDS
    line: int = 0  # in the file, from 1


def read_doing(node: Node, reader: Reader) -> tuple[Doing, ...]:
    """The list ``do`` of a case; steps with a time come first, in the order of their times."""
    steps = [step for item in reader.sequence(node) if (step := _step(item, reader)) is not None]
    timed = sorted((step for step in steps if step.at is not None), key=lambda step: step.at or timedelta(0))
    return (*timed, *(step for step in steps if step.at is None))


def _step(node: Node, reader: Reader) -> Doing | None:
    more = {name for names in _MORE.values() for name in names}
    keys = reader.mapping(node, allowed=(*_ACTIONS, *sorted(more), "at", "expect"))
    actions = [name for name in _ACTIONS if name in keys]
    if len(actions) != 1:
        reader.add(node, "do", f"Write one of {', '.join(_ACTIONS)} here.")
        return None
    (action,) = actions
    for name in sorted(more & keys.keys() - set(_MORE.get(action, ()))):
        reader.add(keys[name], "do", f"{name} does not go with {action}; remove it.")
    return Doing(
        action=action,
        value=_value(action, keys[action], reader),
        more={name: reader.text(keys[name]) for name in _MORE.get(action, ()) if name in keys},
        line=node.mark.line,
        **reader.fill(keys, at=reader.duration, expect=lambda item: reader.word(item, _WORDS)),
    )


def _value(action: str, node: Node, reader: Reader) -> Any:
    if action == "webhook":
        return reader.text(node)
    if action == "decide":
        return reader.word(node, [option.value for option in Option])
    if action == "submit":
        keys = reader.mapping(node, required=("payload",))
        return keys["payload"].plain() if "payload" in keys else None
    if node.value is not True:
        reader.add(node, "value", "Write true here.")
    return True


# --- doing it ---------------------------------------------------------------------------------------


def perform(runtime: Runtime, step: Doing, operation_id: str, submission: Submission | None, number: int) -> str:
    """Do it; returns what came of it, one of _WORDS."""
    try:
        if step.action == "submit":
            return _submit_again(runtime, step, submission)
        _ACTS[step.action](runtime, step, operation_id, number)
    except (UsageError, DecisionError, LookupError):
        return "refused"
    return "done"


def _submit_again(runtime: Runtime, step: Doing, submission: Submission | None) -> str:
    if submission is None:
        return "refused"
    try:
        submit(runtime, [replace(submission, payload=step.value)])
    except IdempotencyConflict:
        # As a worker does after the message that a site sends from within the caller's transaction.
        report_conflict(runtime, submission.operation_id)
        return "conflict"
    return "done"


def _webhook(runtime: Runtime, step: Doing, operation_id: str, number: int) -> None:
    (row,) = runtime.store.get([operation_id])
    notice = (step.more or {}).get("notice") or f"notice-{number}"
    hear(runtime, [Receipt(provider=row.provider, account=row.account, notice_id=notice, job_id=step.value)])


def _cancel(runtime: Runtime, step: Doing, operation_id: str, number: int) -> None:  # noqa: ARG001
    request_cancel(runtime, operation_id, actor="case", reason="written in the case")


def _fetch(runtime: Runtime, step: Doing, operation_id: str, number: int) -> None:  # noqa: ARG001
    (row,) = runtime.store.get([operation_id])
    table = runtime.tables.get(row.provider)
    if table is None or table.result is None or row.state is not OperationState.SUCCEEDED:
        raise LookupError(operation_id)
    entry = story.entry("result_wanted", row, at=runtime.store.now(), table=story.table_mark(table))
    runtime.store.note(operation_id, entry, errand=Followup(event=RESULT))


def _decide(runtime: Runtime, step: Doing, operation_id: str, number: int) -> None:  # noqa: ARG001
    asked = runtime.store.open_escalations(operation_id)
    if not asked:
        raise LookupError(operation_id)
    resolve(
        runtime,
        Resolution(
            escalation_id=asked[0].id,
            option=Option(step.value),
            actor="case",
            reason="written in the case",
            version=asked[0].version,
            job_id=(step.more or {}).get("job_id", ""),
        ),
    )


_ACTS = {"webhook": _webhook, "cancel": _cancel, "fetch": _fetch, "decide": _decide}
