"""The part of the store in memory that keeps questions to people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from jobtrack.core.escalation import Proposal, Question, Reason, Resolution
from jobtrack.core.sentences_question import NO_QUESTION
from jobtrack.errors import AlreadyDecided, OperationNotFound, StaleEvidence
from jobtrack.records import Escalation
from jobtrack.stores.memory_notices import MemoryNotices


@dataclass(slots=True)
class MemoryQuestions(MemoryNotices, ABC):
    """Questions over a dictionary, under the same lock."""

    escalations: dict[str, Escalation] = field(default_factory=dict)

    @abstractmethod
    def _append(self, operation_id: str, entry: Mapping[str, Any]) -> None: ...

    def _ask(self, operation_id: str, question: Question) -> None:
        for escalation in self.open_escalations(operation_id):
            same = escalation.blocking if question.blocking else escalation.reason is question.reason
            if same and escalation.blocking == question.blocking:
                self.escalations[escalation.id] = replace(
                    escalation,
                    reason=question.reason,
                    detail=question.detail,
                    version=escalation.version + 1,
                    proposal=None,
                )
                return
        new = str(len(self.escalations) + 1)
        self.escalations[new] = Escalation(
            id=new,
            operation_id=operation_id,
            reason=question.reason,
            detail=question.detail,
            blocking=question.blocking,
            version=1,
            opened_at=self.clock(),
        )

    def escalation(self, escalation_id: str) -> Escalation:
        with self._lock:
            if escalation_id not in self.escalations:
                raise OperationNotFound(NO_QUESTION.of(question=repr(escalation_id)))
            return self.escalations[escalation_id]

    def open_escalations(self, operation_id: str) -> list[Escalation]:
        with self._lock:
            return [
                item
                for item in self.escalations.values()
                if item.operation_id == operation_id and item.closed_at is None
            ]

    def propose(self, escalation_id: str, proposal: Proposal, entry: Mapping[str, Any], *, version: int) -> Escalation:
        with self._lock:
            found = self.escalation(escalation_id)
            if found.resolution is not None:
                raise AlreadyDecided(f"Already decided by {found.resolution.actor}.", actor=found.resolution.actor)
            if found.version != version:
                raise StaleEvidence("The escalation changed since it was shown.")
            kept = replace(found, proposal=replace(proposal, at=self.clock()), version=version + 1)
            self.escalations[escalation_id] = kept
            self._append(found.operation_id, entry)
            return kept

    def unanswered(self, reason: Reason, *, since: timedelta, limit: int, after_id: str = "") -> list[Escalation]:
        with self._lock:
            before, beyond = self.clock() - since, int(after_id or 0)
            rows = (row for row in self.escalations.values() if row.reason is reason and row.closed_at is None)
            return [row for row in rows if row.opened_at <= before and int(row.id) > beyond][:limit]

    def _close(self, escalation: Escalation, resolution: Resolution) -> None:
        self.escalations[escalation.id] = replace(escalation, closed_at=resolution.at, resolution=resolution)
