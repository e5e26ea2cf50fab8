"""jobtrack for Django: durable records of jobs at external APIs, polled by Celery, decided by people.

The names below are loaded on first use, so that importing this package before Django is set up is safe.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobtrack_django.api import asubmit, atrack, get_operation, submit, submit_many, track, track_many
    from jobtrack_django.cancelling import cancel, cancel_effect
    from jobtrack_django.receipts import current_delivery, once
    from jobtrack_django.results import JobResult, fetch_result
    from jobtrack_django.signals import (
        escalation_opened,
        escalation_resolved,
        idempotency_conflict,
        operation_finished,
    )

_HOME = {
    "JobResult": "results",
    "asubmit": "api",
    "atrack": "api",
    "cancel": "cancelling",
    "cancel_effect": "cancelling",
    "current_delivery": "receipts",
    "escalation_opened": "signals",
    "escalation_resolved": "signals",
    "fetch_result": "results",
    "get_operation": "api",
    "idempotency_conflict": "signals",
    "once": "receipts",
    "operation_finished": "signals",
    "submit": "api",
    "submit_many": "api",
    "track": "api",
    "track_many": "api",
}

__all__ = [
    "JobResult",
    "asubmit",
    "atrack",
    "cancel",
    "cancel_effect",
    "current_delivery",
    "escalation_opened",
    "escalation_resolved",
    "fetch_result",
    "get_operation",
    "idempotency_conflict",
    "once",
    "operation_finished",
    "submit",
    "submit_many",
    "track",
    "track_many",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
