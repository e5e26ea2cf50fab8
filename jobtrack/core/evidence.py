"""A late acceptance in a form that may be stored: the only link to a running job is never dropped (INV-15)."""

from __future__ import annotations

from collections.abc import Mapping

from jobtrack.core.operation import Operation
from jobtrack.core.submission import Handover


def evidence_of(operation: Operation) -> Mapping[str, object]:
    """What an acceptance proves, in a form that may be stored: secrets only sealed (INV-15)."""
    return {
        "job_id": operation.job_id,
        "status_url": operation.status_url,
        "params": dict(operation.params),
        "sealed": operation.sealed,
    }


SEEN: Mapping[str, object] = {"seen": True}
"""Evidence that the provider has a job, without any way to follow it: nothing is submitted again on a guess."""


def handover_of(evidence: Mapping[str, object]) -> Handover:
    """The open part of stored evidence; its sealed part is used as it is."""
    params = evidence.get("params")
    return Handover(
        job_id=str(evidence.get("job_id", "")),
        status_url=str(evidence.get("status_url", "")),
        params={str(name): str(value) for name, value in params.items()} if isinstance(params, Mapping) else {},
    )
