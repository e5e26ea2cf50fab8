"""The part of `jobtrack explain` about submissions and look-ups: what one answer proves."""

from __future__ import annotations

from typing import Any

import click

from jobtrack.catalog.examples import NOW, sample_submission
from jobtrack.cli import screen
from jobtrack.core.accept import observe_submission
from jobtrack.core.actions import SubmitMeaning
from jobtrack.core.lookup import read_lookup
from jobtrack.core.observation import Observation
from jobtrack.core.reply import Reply
from jobtrack.core.submission import Handover, LookupKind
from jobtrack.core.table import ProviderTable

_FOLLOWS = {
    None: "nothing was sent; it is sent again",
    SubmitMeaning.ACCEPTED: "the job is followed",
    SubmitMeaning.FINAL: "the job ends",
    SubmitMeaning.ALREADY: "the job is followed",
    SubmitMeaning.REJECTED: "end as failed",
    SubmitMeaning.DENIED: "stop and ask a person",
    SubmitMeaning.BUSY: "the same request is sent again later",
    SubmitMeaning.MISMATCH: "stop and ask a person",
    SubmitMeaning.UNKNOWN: "look up, a permitted repeat, or a person",
}
_AFTER_LOOKUP = {
    LookupKind.FOUND: "the job is followed",
    LookupKind.MANY: "stop and ask a person",
    LookupKind.MORE: "the next page is asked for",
    LookupKind.UNREADABLE: "look up again, or a person",
}


def explain_write(
    table: ProviderTable, reply: Reply, params: dict[str, str], payload: object, *, lookup: bool
) -> dict[str, Any]:
    """What an answer to a submission or a look-up proves, as a document.

    Raises:
        UsageError: The table submits nothing, or the payload lacks what the submission needs.
    """
    operation, sent = sample_submission(table, payload=payload, params=params)
    if lookup:
        seen = read_lookup(table, reply, operation=operation, sent=sent, now=NOW)
        jobs, follows = list(seen.found), _AFTER_LOOKUP.get(seen.kind, _absent(table))
        return _document(table, str(seen.kind), seen.observation, jobs=jobs, follows=follows)
    read = observe_submission(table, reply, operation=operation, sent=sent, now=NOW)
    jobs = [] if read.handover is None else [read.handover]
    follows = _FOLLOWS[read.meaning]
    if read.status is not None:
        follows = _FOLLOWS[SubmitMeaning.FINAL]
    elif read.meaning in (SubmitMeaning.ACCEPTED, SubmitMeaning.ALREADY) and not jobs:
        follows = "the provider has the job; it is looked up, or a person says which it is"
    means = "unsent" if read.meaning is None else str(read.meaning)
    return _document(table, means, read.observation, jobs=jobs, follows=follows, status=read.status)


def _absent(table: ProviderTable) -> str:
    lookup = table.submit.lookup if table.submit else None
    if lookup is None or lookup.absence_is_proof_after is None:
        return "this proves nothing: look up again, a permitted repeat, or a person"
    return "after a while this proves that there is no job; then it is sent again"


def _document(
    table: ProviderTable,
    means: str,
    seen: Observation,
    *,
    jobs: list[Handover],
    follows: str,
    status: Observation | None = None,
) -> dict[str, Any]:
    return {
        "table": {"id": table.id, "revision": table.revision, "digest": table.digest},
        "means": means,
        "http": seen.http,
        "trouble": seen.trouble.value if seen.trouble else None,
        "detail": seen.detail,
        "error": seen.error or None,
        "status": None if status is None else status.kind.value,
        "jobs": [_job(job) for job in jobs],
        "follows": follows,
    }


def _job(job: Handover) -> dict[str, Any]:
    """A handle is a secret: only whether there is one is shown."""
    return {
        "job_id": job.job_id or None,
        "status_url": job.status_url or None,
        "handle": bool(job.handle),
        "params": dict(job.params),
    }


def show_write(document: dict[str, Any]) -> None:
    """The document for a reader."""
    click.echo(f"{screen.title(document['table']['id'])}  revision {document['table']['revision']}\n")
    answer = f"HTTP {document['http']}" if document["http"] is not None else f"none ({document['trouble']})"
    rows = [
        ("answer", screen.plain(answer)),
        ("means", screen.plain(document["means"])),
        ("because", screen.plain(document["detail"])),
        ("error", screen.plain(document["error"] or "")),
        ("status", screen.plain(document["status"] or "")),
    ]
    for job in document["jobs"]:
        told = [job["job_id"], job["status_url"], job["handle"] and "a secret handle", job["params"] or ""]
        rows.append(("job", screen.plain(", ".join(str(part) for part in told if part))))
    screen.fields([*rows, ("follows", screen.plain(document["follows"]))])
