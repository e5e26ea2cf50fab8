"""The provider's tables: one for jobs that are only followed, and one for each way to prove a submission."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from jobtrack.core.actions import AcceptedSpec, Idempotency, IdPlace, LookupSpec, NextPage, Recovery, SubmitSpec
from jobtrack.core.place import Body, BodyKind, RequestSpec
from jobtrack.core.table import (
    BudgetSpec,
    Extension,
    FieldType,
    GatePolicy,
    Meaning,
    NotFound,
    Polling,
    ProviderTable,
    RequestLimits,
    ResultSpec,
    StatePart,
    StateRow,
    StatusSpec,
)
from tests.simulation.machine import us

S = timedelta(seconds=1)
WORDS = {
    "queued": Meaning.PENDING,
    "running": Meaning.PENDING,
    "succeeded": Meaning.SUCCESS,
    "failed": Meaning.FAILURE,
    "canceled": Meaning.CANCELLED,
    "expired": Meaning.EXPIRED,
}


def _rows(words: dict[str, Meaning]) -> tuple[StateRow, ...]:
    return tuple(StateRow(values=(word,), meaning=meaning) for word, meaning in words.items())


def _at(name: str) -> Body:
    return Body(tokens=(name,), source=f"/{name}")


FIRST = ProviderTable(
    id="acme",
    name="ACME",
    docs="https://acme.example",
    revision=1,
    digest="digest-1",
    text="table text 1",
    hosts=("https://api.acme.example",),
    status=StatusSpec(
        request=RequestSpec(path="/jobs/{job_id}"),
        echo=_at("id"),
        state=(StatePart(at=_at("status")),),
        rows=_rows(WORDS),
        result=ResultSpec(require=((_at("rows"), FieldType.INTEGER),)),
        not_found=NotFound(window=3 * S),
    ),
    polling=Polling(first=S, base=S, factor=1.5, cap=4 * S, min_interval=0.5 * S),
    budget=BudgetSpec(extension=Extension(time=20 * S, status_requests=4)),
    gate=GatePolicy(max_hold=12 * S, breaker_failures=3, breaker_hold=3 * S),
    limits=RequestLimits(connect=0.5 * S, read=S, total=S),
)

# --- submission -------------------------------------------------------------------------------------

PROOF_AFTER = 13 * S
"""The provider's word: a job that no look-up shows so long after an attempt will never come to be.

It holds because a process stands still for 9 s at most, an accepted job comes to be within 1 s, and look-ups show it 1 s
later.
"""
LATE_US = us(S)  # the longest time between an answer and its job
SETTLE_US = us(S)  # until look-ups show a job
KEY_LIFETIME = 16 * S

_IDS = (IdPlace(parts=(_at("id"),)),)

_LOOKUP = LookupSpec(
    request=RequestSpec(path="/jobs", query=(("ref", "{operation_id}"),)),
    items=_at("jobs"),
    match=((_at("ref"), "{operation_id}"),),
    found=_IDS,
    next=NextPage(token=_at("next"), query="page"),
    pages=3,
)

_SUBMIT = SubmitSpec(
    request=RequestSpec(
        method="POST",
        path="/jobs",
        body_kind=BodyKind.JSON,
        body={"ref": "{operation_id}", "work": "{payload}"},
    ),
    accepted=AcceptedSpec(job_id=_IDS),
    accepted_http=frozenset({202}),
    already_http=frozenset({409}),
    rejected_http=frozenset({422}),
    denied_http=frozenset({401, 403}),
    busy_http=frozenset({429}),
    error=(_at("error"),),
    recovery=Recovery(deadline=30 * S, requests=20, first=0.5 * S, base=S, factor=1.5, cap=3 * S),
    within=60 * S,
    attempts=3,
)

_KEY = Idempotency(header="Idempotency-Key", lifetime=KEY_LIFETIME, scope="account")

WAYS: dict[str, SubmitSpec] = {
    "proof": replace(_SUBMIT, lookup=replace(_LOOKUP, absence_is_proof_after=PROOF_AFTER)),
    "lookup": replace(_SUBMIT, lookup=_LOOKUP),
    "key": replace(_SUBMIT, idempotency=_KEY),
    "both": replace(_SUBMIT, idempotency=_KEY, lookup=replace(_LOOKUP, absence_is_proof_after=PROOF_AFTER)),
    "none": _SUBMIT,
}
"""What a provider offers to somebody who does not know whether his submission was accepted."""

KEYED = frozenset({"key", "both"})
PROVING = frozenset({"proof", "both"})


def _edition(revision: int, words: dict[str, Meaning]) -> dict[str, ProviderTable]:
    """Every table, by its id."""
    text = {"revision": revision, "digest": f"digest-{revision}", "text": f"table text {revision}"}
    base = replace(FIRST, **text, status=replace(FIRST.status, rows=_rows(words)))  # type: ignore[arg-type]
    ways = {
        f"acme-{way}": replace(base, id=f"acme-{way}", submit=submit, digest=f"digest-{revision}-{way}")
        for way, submit in WAYS.items()
    }
    return {base.id: base, **ways}


FIRST_EDITION = _edition(1, WORDS)
SECOND_EDITION = _edition(2, {**WORDS, "paused": Meaning.PENDING})

MIN_INTERVAL_US = us(FIRST.polling.min_interval)
TOTAL_US = us(FIRST.limits.total)
TOLERATED_US = TOTAL_US // 2
"""A stop of half the margin, between a worker's last look at its watch and the sending, is what a lease bears."""
