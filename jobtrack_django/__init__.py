"""jobtrack for Django: durable records of jobs at external APIs, polled by Celery, decided by people.

The names below are loaded on first use, so that importing this package before Django is set up is safe.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobtrack_django.api import atrack, get_operation, track, track_many
    from jobtrack_django.signals import escalation_opened, escalation_resolved, operation_finished

_HOME = {
    "atrack": "api",
    "escalation_opened": "signals",
    "escalation_resolved": "signals",
    "get_operation": "api",
    "operation_finished": "signals",
    "track": "api",
    "track_many": "api",
}

__all__ = [
    "atrack",
    "escalation_opened",
    "escalation_resolved",
    "get_operation",
    "operation_finished",
    "track",
    "track_many",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
