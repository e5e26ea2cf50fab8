"""What may be done again, by the table of the start and by the newest one, and in words for a person (R-SUB-4)."""

from __future__ import annotations

from jobtrack.core import sentences_question as say
from jobtrack.core.actions import SubmitSpec
from jobtrack.core.decide import spoken
from jobtrack.core.operation import Operation
from jobtrack.core.submission import LookupSeen
from jobtrack.core.table import ProviderTable
from jobtrack.core.text import clean


def permits(spec: SubmitSpec) -> str:
    """What a table permits for a repeat of bytes that are written by it now, one term a line.

    The bytes are fixed at the start: a key that a later table asks for is not in them, and a look-up that a later
    table brings may not recognise them. So a repeat needs the term of its start as well (authority stays as granted).
    """
    terms = []
    rule, lookup = spec.idempotency, spec.lookup
    if rule is not None:
        place = rule.header.lower() or rule.query or (rule.body.source if rule.body else "")
        terms.append(f"key {place}")
    if lookup is not None and lookup.absence_is_proof_after is not None:
        terms.append("absence")
    return "\n".join(terms)


def granted(spec: SubmitSpec, operation: Operation, kind: str) -> bool:
    """Whether the newest table still has the very term of this kind that it had at the start."""
    before = {term for term in operation.permits.split("\n") if term.startswith(kind)}
    return bool(before & set(permits(spec).split("\n")))


def unknown_detail(table: ProviderTable, operation: Operation, seen: LookupSeen | None = None) -> str:
    """What is known, what would prove it, and what a resubmission may duplicate (R-SUB-5, R-ESC-2)."""
    spec = table.submit
    told = [say.UNKNOWN.of(why=operation.doubt.rstrip("."))]
    if operation.acceptance_seen:
        told.append(say.SEEN.of())
    if spec is not None and spec.lookup is not None:
        count, last = operation.spent.lookups, seen.observation.detail if seen else ""
        told.append(say.LOOKED_LAST.of(count=count, why=last) if last else say.LOOKED.of(count=count))
        ids = ", ".join(found.job_id for found in seen.found if found.job_id) if seen else ""
        if ids:
            told.append(say.SHOWN.of(jobs=clean(ids, 200)))
        if not granted(spec, operation, "absence"):
            told.append(say.ABSENCE_NO_PROOF.of())
    else:
        told.append(say.NO_LOOK_UP.of())
    if spec is not None and spec.idempotency is not None and operation.first_sent_at is not None:
        ends = operation.first_sent_at + spec.idempotency.lifetime
        told.append(say.KEY_HOLDS.of(instant=spoken(ends)))
    else:
        told.append(say.MAY_BE_TWICE.of())
    return " ".join(told)
