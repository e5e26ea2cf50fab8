"""Signals, each sent after the commit that it tells of (but for ``idempotency_conflict``, which has none).

A receiver that raises is logged and harms nothing. A process that dies between commit and signal sends none: what
must happen belongs in a follow-up handler (``on_success``), which is delivered at least once.
"""

from __future__ import annotations

from django.db import transaction
from django.dispatch import Signal

from jobtrack.core.escalation import Question, Resolution
from jobtrack.core.operation import Operation

operation_finished = Signal()
"""An operation reached a terminal state. Arguments: ``operation`` (``jobtrack.core.operation.Operation``)."""

escalation_opened = Signal()
"""A person is asked, or the evidence of an open question changed. Arguments: ``operation``, ``questions``."""

escalation_resolved = Signal()
"""A person decided. Arguments: ``operation``, ``resolution``."""


idempotency_conflict = Signal()
"""``submit`` was called again with other content. Sent at once, since the exception may roll the caller's work back.

Arguments: ``operation_id``."""


class SignalListener:
    """Implements ``jobtrack.ports.Listener``.

    Args:
        using: alias of the database whose commit is waited for if the caller has a transaction open; None: none is.
    """

    def __init__(self, using: str | None = None) -> None:
        self._using = using

    def finished(self, operation: Operation) -> None:
        self._send(operation_finished, operation=operation)

    def escalated(self, operation: Operation, questions: tuple[Question, ...]) -> None:
        self._send(escalation_opened, operation=operation, questions=questions)

    def resolved(self, operation: Operation, resolution: Resolution) -> None:
        self._send(escalation_resolved, operation=operation, resolution=resolution)

    def _send(self, signal: Signal, **arguments: object) -> None:
        def tell() -> None:
            # Django logs each receiver's error itself, with the traceback.
            signal.send_robust(Operation, **arguments)

        if self._using is None:
            tell()
        else:
            transaction.on_commit(tell, using=self._using, robust=True)
