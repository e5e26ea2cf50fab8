"""What the tests of notices share: questions in rows, virtual time, and somebody who is told."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

from jobtrack.core.escalation import Question, Reason
from jobtrack.core.operation import OperationState
from jobtrack.testing import VirtualClock
from jobtrack_django.models import Escalation, Notice, Operation
from jobtrack_django.notify.dispatch import dispatch
from jobtrack_django.notify.message import Message
from jobtrack_django.store import DjangoStore
from tests.core.builders import OPERATION

SITE_URL = "https://desk.example"
CALL = {"kind": "callable", "path": "tests.django.notices_desk.take", "digest_s": 0}

told: list[Message] = []
"""What ``take`` was told."""


def take(message: Message) -> None:
    """A notifier of kind ``callable``."""
    told.append(message)


def refuse(message: Message) -> None:
    """One that fails; its words are its own affair."""
    raise RuntimeError(f"CANARY-error {message.subject}")


@dataclass
class Desk:
    """Operations that ask, on a clock of their own."""

    clock: VirtualClock
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def ask(
        self, reason: Reason = Reason.DEADLINE_EXCEEDED, *, count: int = 1, detail: str = "d", **columns: Any
    ) -> list[Escalation]:
        """So many operations that ask; returns their questions."""
        store = DjangoStore()
        ids = []
        for number in itertools.islice(self.numbers, count):
            stopped = replace(
                OPERATION,
                id=f"op-{number}",
                job_id=f"job-{number}",
                created_at=self.clock(),
                accepted_at=self.clock(),
                state=OperationState.ESCALATED,
                **columns,
            )
            Operation(**Operation.from_core(stopped)).save(force_insert=True)
            store._ask(stopped, [Question(reason=reason, detail=detail)])
            ids.append(stopped.id)
        return list(Escalation.objects.filter(operation_id__in=ids).order_by("pk"))

    def ask_again(self, question: Escalation, detail: str) -> None:
        """The evidence of an open question changes."""
        asked = Question(reason=Reason(question.reason), detail=detail)
        DjangoStore()._ask(question.operation.to_core(), [asked])

    def decide(self, *questions: Escalation) -> None:
        """A person answers."""
        rows = Escalation.objects.filter(pk__in=[each.pk for each in questions])
        rows.update(decided_at=self.clock(), open_blocking=None, open_advisory=None, option="close", actor="ann")

    def dispatch(self, *, after_s: float = 0) -> int:
        self.clock.advance(after_s)
        return dispatch("default")


def notices(**wanted: Any) -> list[tuple[str, int, str]]:
    rows = Notice.objects.filter(**wanted).order_by("escalation_id", "notifier", "turn")
    return [(row.notifier, row.turn, row.outcome) for row in rows]
