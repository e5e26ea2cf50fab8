"""The part of the store in memory that keeps what comes beside the looks: notices of providers, and results."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from jobtrack.core import meanwhile
from jobtrack.core.operation import Operation, OperationState
from jobtrack.core.sentences_question import NO_OPERATION
from jobtrack.errors import OperationNotFound
from jobtrack.records import JobResult, Receipt, ResultState


class Clock(Protocol):
    def __call__(self) -> datetime:
        """The current instant, aware."""


@dataclass(slots=True)
class MemoryNotices:
    """Rows, receipts and results over dictionaries; one lock for all."""

    clock: Clock
    rows: dict[str, Operation] = field(default_factory=dict)
    receipts: dict[tuple[str, str, str], Receipt] = field(default_factory=dict)  # by provider, account, notice
    results: dict[str, JobResult] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def _known(self, operation_id: str) -> None:
        if operation_id not in self.rows:
            raise OperationNotFound(NO_OPERATION.of(operation=repr(operation_id)), operation_id=operation_id)

    # --- notices of providers -------------------------------------------------------------------

    def receive(self, receipts: Sequence[Receipt]) -> list[bool]:
        with self._lock:
            return [self._receive(receipt) for receipt in receipts]

    def _receive(self, receipt: Receipt) -> bool:
        key = (receipt.provider, receipt.account, receipt.notice_id)
        known = key in self.receipts
        self.receipts.setdefault(key, receipt)
        return not known

    def hint(self, receipts: Sequence[Receipt]) -> list[str]:
        with self._lock:
            now, moved = self.clock(), []
            for row in list(self.rows.values()):
                if row.state is OperationState.RUNNING and any(_means(receipt, row) for receipt in receipts):
                    self.rows[row.id] = meanwhile.hinted(row, now)
                    if self.rows[row.id].wake_at != row.wake_at:
                        moved.append(row.id)
            return moved

    def receipts_of(self, operation: Operation) -> list[Receipt]:
        with self._lock:
            return [receipt for receipt in self.receipts.values() if _means(receipt, operation)]

    # --- results --------------------------------------------------------------------------------

    def result(self, operation_id: str) -> JobResult | None:
        with self._lock:
            return self.results.get(operation_id)

    def keep_result(self, result: JobResult) -> None:
        with self._lock:
            self._known(result.operation_id)
            kept = self.results.get(result.operation_id)
            if kept is None or kept.state is not ResultState.COMPLETE:
                self.results[result.operation_id] = result


def _means(receipt: Receipt, row: Operation) -> bool:
    if (receipt.provider, receipt.account) != (row.provider, row.account):
        return False
    return receipt.operation_id == row.id or (receipt.job_id != "" and receipt.job_id == row.job_id)
