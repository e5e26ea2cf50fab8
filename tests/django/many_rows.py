"""Tens of thousands of rows in a second: copies of one row, made by the database."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from jobtrack_django.models import Escalation, Operation
from tests.django.plans import analyze

OPERATIONS = 30_000
OPEN_EVERY = 3  # each third question is open

_NUMBERS = {
    "postgresql": "generate_series(1, {most}) AS numbers(i)",
    "sqlite": "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most}) SELECT i FROM n) numbers",
    "mysql": "(SELECT seq AS i FROM seq_1_to_{most}) numbers",
}
_BEFORE = {
    "postgresql": "TIMESTAMPTZ '{at}+00' - i * INTERVAL '{step} second'",
    "sqlite": "datetime('{at}', '-' || (i * {step}) || ' seconds')",
    "mysql": "TIMESTAMP '{at}' - INTERVAL (i * {step}) SECOND",
}


def plant(most: int = OPERATIONS) -> None:
    """Operations ``op-1`` (the newest) to ``op-<most>``, each with a question. A minute apart."""
    now = timezone.now()
    Operation.objects.create(
        id="first", provider="acme-export", state="escalated", created_at=now, deadline=now + timedelta(days=1),
        limit_status_requests=9, limit_transport_failures=9, limit_rate_limited=9,
    )  # fmt: skip
    at = f"{now - timedelta(minutes=1):%Y-%m-%d %H:%M:%S}"
    before = _BEFORE[connection.vendor].format(at=at, step=60)
    _copies(Operation, most, id=_named("op-"), job_id=_named("job-"), reference="CASE WHEN i % 100 = 0 THEN 'many' ELSE '' END",
            provider=_pick("acme-export", "openai-batch", "till", rare="rare"), state=_pick("running", "succeeded", "failed", "escalated"), created_at=before)  # fmt: skip
    Escalation.objects.create(operation_id="first", reason="stalled", blocking=True, open_blocking=True, opened_at=now)
    opened = f"i % {OPEN_EVERY} = 0"
    yes = "1" if connection.vendor != "postgresql" else "TRUE"
    _copies(Escalation, most, id="i + 1000000", operation_id=_named("op-"), opened_at=before, detail="'stands still'",
            decided_at=f"CASE WHEN {opened} THEN NULL ELSE {before} END", open_blocking=f"CASE WHEN {opened} THEN {yes} ELSE NULL END",
            provider=_pick("acme-export", "openai-batch", "till", rare="rare"), reason=_pick("stalled", "unknown_state", "submission_unknown", "provider_failure"),
            risk="1 + i % 5 % 3")  # fmt: skip
    analyze()


def _named(prefix: str) -> str:
    return f"CONCAT('{prefix}', i)" if connection.vendor == "mysql" else f"'{prefix}' || i"


def _pick(*words: str, rare: str | None = None) -> str:
    """A word by the number of the row; ``rare`` for one in a thousand."""
    cases = " ".join(f"WHEN i % 7 % {len(words)} = {n} THEN '{word}'" for n, word in enumerate(words))
    return f"CASE {f'WHEN i % 1000 = 999 THEN {chr(39)}{rare}{chr(39)} ' if rare else ''}{cases} END"


def _copies(model: type, most: int, **changed: str) -> None:
    """Rows like the one that is there, but for these columns."""
    columns = [field.column for field in model._meta.concrete_fields]
    quote = connection.ops.quote_name
    values = ", ".join(changed.get(column) or f"one.{quote(column)}" for column in columns)
    numbers = _NUMBERS[connection.vendor].format(most=most)
    table = quote(model._meta.db_table)
    named = ", ".join(map(quote, columns))
    with connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({named}) SELECT {values} FROM {table} one, {numbers}")  # noqa: S608 - words of this file
