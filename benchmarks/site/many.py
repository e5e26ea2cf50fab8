"""Fills a PostgreSQL database with operations that the server makes from a few real ones.

Every audit chain is a real one: its hashes are computed by the server as ``core.audit.seal`` does, so that pages,
exports and pruning do what they do at a site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.models import F, Model

from jobtrack.catalog import load_text
from jobtrack.core.audit import FORMAT
from jobtrack.flow.poll import poll
from jobtrack.flow.track import Tracking, track
from jobtrack.testing.clock import VirtualClock
from jobtrack.testing.provider import FakeProvider, answer
from jobtrack.testing.runtime import memory_runtime
from jobtrack_django import figures
from jobtrack_django.models import AuditEntry, DailyFigure, Delivery, Escalation, Operation
from jobtrack_django.store import DjangoStore

DONE, ASKED = "template-done", "template-asked"


def _chance(of: str, sides: int) -> str:
    """A number below ``sides`` that looks like chance and is the same in every run."""
    return f"(abs(hashtext('{of}' || n)) % {sides})"


PROVIDER = f"(CASE {_chance('provider', 8)} WHEN 0 THEN 'bench' ELSE 'provider-' || {_chance('provider', 8)} END)"
REASONS = {"unknown_state": 2, "submission_unknown": 1, "provider_failure": 3, "result_unavailable": 1}
REASON = f"(ARRAY{list(REASONS)})[{_chance('reason', 4)} + 1]"
RISK = f"(ARRAY{list(REASONS.values())})[{_chance('reason', 4)} + 1]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is."""

    operations: int
    entries: int  # of each operation
    open_of_100: int  # how many of a hundred operations have not ended; half of them wait for a person


def fill(size: Size) -> None:
    """Replace all rows of jobtrack by those of ``size``."""
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no triggers and no foreign keys: these rows fit
        cursor.execute("SET synchronous_commit = off")
        tables = ", ".join(
            sorted(name for name in connection.introspection.table_names() if name.startswith("jobtrack_"))
        )
        cursor.execute(f"TRUNCATE {tables} RESTART IDENTITY")
    _make_templates()
    chains = _Chains(size)
    with connection.cursor() as cursor:
        chains.write(cursor)
        for model, kinds in _rows(size).items():
            for template, which, values in kinds:
                cursor.execute(_copy(model, template, which, values))
        for template in (DONE, ASKED):
            for table, column in (
                ("auditentry", "operation_id"),
                ("escalation", "operation_id"),
                ("delivery", "operation_id"),
                ("operation", "id"),
            ):
                cursor.execute(f"DELETE FROM jobtrack_{table} WHERE {column} = %s", [template])  # noqa: S608
        cursor.execute("DROP TABLE series")
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE")
    _roll_up()


def _make_templates() -> None:
    """One operation that succeeded and one whose state nobody knows, made by the flows."""
    table = load_text((Path(__file__).parent / "tables" / "bench.yaml").read_text(encoding="utf-8"), "bench.yaml")
    clock = VirtualClock(datetime.now(UTC))
    provider = FakeProvider(clock)
    runtime = memory_runtime(table, provider=provider, clock=clock, store=DjangoStore())
    for name, word in ((DONE, "succeeded"), (ASKED, "paused")):
        job = Tracking(operation_id=name, provider="bench", job_id=name, params={"port": "1"})
        track(runtime, [job])
        provider.script(name, *(answer(json={"id": name, "status": each}) for each in ("running", word)))
        for _ in range(2):
            Operation.objects.filter(pk=name).update(
                wake_at=F("created_at") - timedelta(minutes=1), not_before=None, wake_until=None
            )
            poll(runtime, [name])
    Delivery.objects.create(
        id=f"{DONE}:on_success",
        operation_id=DONE,
        event="on_success",
        handler="site.store",
        attempts=1,
        delivered_at=datetime.now(UTC),
    )
    states = dict(Operation.objects.values_list("pk", "state"))
    if states != {DONE: "succeeded", ASKED: "escalated"} or AuditEntry.objects.count() != 6:
        raise RuntimeError(f"The templates are not what they should be: {states}.")


class _Chains:
    """The audit entries; ``series`` then names each operation's number, kind and head."""

    def __init__(self, size: Size) -> None:
        self.size = size
        bodies = AuditEntry.objects.order_by("seq").values_list("operation_id", "body")
        self.bodies = {name: [body for each, body in bodies if each == name] for name in (DONE, ASKED)}

    def write(self, cursor: Any) -> None:
        size = self.size
        cursor.execute(
            f"CREATE UNLOGGED TABLE series AS SELECT n, 'op-' || lpad(n::text, 8, '0') AS id, ''::text AS head, "  # noqa: S608
            f"CASE WHEN n % 100 >= {size.open_of_100} THEN 'done' "
            f"WHEN {_chance('kind', 2)} = 0 THEN 'asked' ELSE 'runs' END AS kind, "
            f"now() - interval '365 days' * ({size.operations} - n) / {size.operations} - interval '1 hour' AS at "
            f"FROM generate_series(1, {size.operations}) n"
        )
        for seq in range(1, size.entries + 1):
            self._append(cursor, seq)

    def _append(self, cursor: Any, seq: int) -> None:
        done, asked = (self._body(name, seq) for name in (DONE, ASKED))
        body = "CASE kind WHEN 'asked' THEN %s ELSE %s END"
        sealed = f"encode(sha256(convert_to({_framed('head', 'id', repr(str(seq)), 'body')}, 'UTF8')), 'hex')"
        cursor.execute(
            f"CREATE UNLOGGED TABLE further AS SELECT n, id, head AS prev, {sealed} AS head, kind, at, body "  # noqa: S608
            f"FROM (SELECT *, {body} AS body FROM series OFFSET 0) each",
            [asked, done],
        )
        cursor.execute(
            "INSERT INTO jobtrack_auditentry (operation_id, seq, prev, hash, body, at) "  # noqa: S608
            f"SELECT id, {seq}, prev, head, body, at + interval '1 minute' * {seq} FROM further ORDER BY n"
        )
        cursor.execute("DROP TABLE series")
        cursor.execute("ALTER TABLE further DROP COLUMN prev, DROP COLUMN body")
        cursor.execute("ALTER TABLE further RENAME TO series")

    def _body(self, name: str, seq: int) -> str:
        """The first entry, the last one, and the look in the middle as often as is wanted."""
        first, look, last = self.bodies[name]
        return first if seq == 1 else last if seq == self.size.entries else look


def _framed(*parts: str) -> str:
    """``core.audit``: each part with its length in front. The texts here are ASCII."""
    framed = f"'{len(FORMAT)}:{FORMAT}'"
    return " || ".join([framed, *(f"length({part}) || ':' || {part}" for part in parts)])


Kind = tuple[str, str, Mapping[str, str]]
"""Template, condition on the series, and expressions by column."""


def _rows(size: Size) -> dict[type[Model], list[Kind]]:
    every = {
        "id": "s.id", "provider": PROVIDER, "job_id": "'job-' || s.n", "reference": "'ref-' || s.n",
        "created_at": "s.at", "accepted_at": "s.at", "observed_at": "s.at + interval '2 minutes'",
        "audit_head": "s.head", "audit_seq": str(size.entries), "deadline": "s.at + interval '30 days'",
    }  # fmt: skip
    ended = (
        "CASE WHEN s.n % 50 = 49 THEN 'expired' WHEN s.n % 50 = 48 THEN 'cancelled' "
        "WHEN s.n % 20 = 17 THEN 'failed' ELSE 'succeeded' END"
    )
    done = {
        "state": ended,
        "ended_at": "s.at + interval '10 minutes'",
        "seen_within": "interval '1 second' * (s.n % 900)",
    }
    runs = {"state": "'running'", "ended_at": "NULL", "wake_at": "now() + interval '1 hour'", "cause": "''"}
    asked = {
        "reason": REASON,
        "risk": RISK,
        "provider": PROVIDER,
        "account": "'default'",
        "opened_at": "s.at + interval '3 minutes'",
    }
    named = {**asked, "operation_id": "s.id"}
    decided = {
        "blocking": "false", "open_blocking": "NULL", "decided_at": "s.at + interval '1 day'",
        "option": "'acknowledge'", "actor": "'ada'", "actor_reason": "'seen'", "seen_version": "1",
    }  # fmt: skip
    advisory = {"blocking": "false", "open_blocking": "NULL", "open_advisory": "true"}
    return {
        Operation: [
            (DONE, "s.kind = 'done'", {**every, **done}),
            (DONE, "s.kind = 'runs'", {**every, **runs}),
            (ASKED, "s.kind = 'asked'", every),
        ],
        Escalation: [
            (ASKED, "s.kind = 'asked'", named),
            (ASKED, "s.kind = 'done' AND s.n % 500 = 99", {**named, **advisory}),
            (ASKED, "s.kind = 'done' AND s.n % 10 IN (0, 3, 6)", {**named, **decided}),
        ],
        Delivery: [
            (DONE, "s.kind = 'done' AND s.n % 3 = 0", {"id": "s.id || ':on_success'", "operation_id": "s.id"}),
        ],
    }


def _copy(model: type[Model], template: str, which: str, values: Mapping[str, str]) -> str:
    """Copies of the template's row, one for each of the series, with some columns of their own."""
    meta = model._meta  # noqa: SLF001 - documented by Django
    key = "id" if model is Operation else "operation_id"
    columns = [field.column for field in meta.local_fields if field.column in values or not _numbers_itself(field)]
    told = ", ".join(values.get(column, f't."{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    return (
        f"INSERT INTO {meta.db_table} ({names}) SELECT {told} FROM series s "  # noqa: S608 - all of it stands above
        f"CROSS JOIN {meta.db_table} t WHERE t.{key} = '{template}' AND {which} ORDER BY s.n"
    )


def _numbers_itself(field: Any) -> bool:
    return field.primary_key and field.get_internal_type() == "BigAutoField"


def _roll_up() -> None:
    """As a site that has kept its figures all the time; the audit is not read again for it."""
    last = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    outset = {"day": figures._OUTSET, "provider": "", "measure": figures.READ}  # noqa: SLF001
    DailyFigure.objects.create(**outset, count=last, measured_at=datetime.now(UTC))
    for _ in range(figures.KEPT_DAYS):
        if not figures.roll_up("default"):
            break
