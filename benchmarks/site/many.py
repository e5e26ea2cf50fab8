"""Fills a PostgreSQL or MariaDB database with operations that the server makes from a few real ones.

Every audit chain is a real one: its hashes are computed by the server as ``core.audit.seal`` does, so that pages,
exports and pruning do what they do at a site.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from jobtrack_django.models import AuditEntry, DailyFigure, Delivery, Escalation, Operation, TableText
from jobtrack_django.store import DjangoStore

DONE, ASKED = "template-done", "template-asked"


REASONS = {"unknown_state": 2, "submission_unknown": 1, "provider_failure": 3, "result_unavailable": 1}
"""What is asked, and the risk of it."""


class _PostgreSQL:
    """What the two servers say differently."""

    before = (
        "SET session_replication_role = replica",  # no triggers and no foreign keys: these rows fit
        "SET synchronous_commit = off",
    )
    after = ("RESET session_replication_role", "VACUUM ANALYZE")
    now = "now()"
    numbers = "generate_series(1, {most}) AS numbers(n)"
    hashed = "hashtext({text})"
    sealed = "encode(sha256(convert_to({text}, 'UTF8')), 'hex')"
    seconds = duration = "interval '1 second' * ({number})"

    def emptied(self, tables: Iterable[str]) -> list[str]:
        return [f"TRUNCATE {', '.join(tables)} RESTART IDENTITY"]


class _MariaDB(_PostgreSQL):
    before = (
        "SET sql_mode = 'ANSI,STRICT_TRANS_TABLES'",  # || joins texts, and names stand in ""
        "SET foreign_key_checks = 0, unique_checks = 0",
    )
    after = ("SET sql_mode = DEFAULT, foreign_key_checks = DEFAULT, unique_checks = DEFAULT",)
    now = "UTC_TIMESTAMP(6)"
    numbers = "(SELECT seq AS n FROM seq_1_to_{most}) numbers"
    hashed = "CAST(conv(left(md5({text}), 7), 16, 10) AS SIGNED)"
    sealed = "sha2({text}, 256)"
    seconds = "INTERVAL ({number}) SECOND"
    duration = "1000000 * ({number})"  # Django keeps microseconds

    def emptied(self, tables: Iterable[str]) -> list[str]:
        return [f"TRUNCATE {table}" for table in tables]


SERVER = _MariaDB() if connection.vendor == "mysql" else _PostgreSQL()


def _chance(of: str, sides: int) -> str:
    """A number below ``sides`` that looks like chance and is the same in every run."""
    number = SERVER.hashed.format(text=f"'{of}' || n")
    return f"(abs({number}) % {sides})"


def _pick(number: str, words: Iterable[object]) -> str:
    cases = " ".join(f"WHEN {n} THEN {word!r}" for n, word in enumerate(words))
    return f"(CASE {number} {cases} END)"


PROVIDER = f"(CASE {_chance('provider', 8)} WHEN 0 THEN 'bench' ELSE 'provider-' || {_chance('provider', 8)} END)"
REASON = _pick(_chance("reason", 4), REASONS)
RISK = _pick(_chance("reason", 4), REASONS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is."""

    operations: int
    entries: int  # of each operation
    open_of_100: int  # how many of a hundred operations have not ended; half of them wait for a person


def fill(size: Size) -> None:
    """Replace all rows of jobtrack by those of ``size``."""
    ours = sorted(name for name in connection.introspection.table_names() if name.startswith("jobtrack_"))
    with connection.cursor() as cursor:
        _all(cursor, [*SERVER.before, *SERVER.emptied(ours)])
    _make_templates()
    chains = _Chains(size)
    made = [model._meta.db_table for model in (Operation, Escalation, Delivery)]  # noqa: SLF001 - documented by Django
    with connection.cursor() as cursor:
        # Copied, so that the tables are empty: MariaDB makes the first rows of an empty table fastest.
        _all(cursor, [f"CREATE TEMPORARY TABLE {_template(table)} AS SELECT * FROM {table}" for table in made])  # noqa: S608
        _all(cursor, SERVER.emptied(name for name in ours if name != TableText._meta.db_table))  # noqa: SLF001
        chains.write(cursor)
        for model, kinds in _rows(size).items():
            for template, which, values in kinds:
                cursor.execute(_copy(model, template, which, values))
        _all(cursor, [f"DROP TABLE {name}" for name in ("series", *map(_template, made))])
        _all(cursor, SERVER.after)
        if connection.vendor == "mysql":
            cursor.execute(f"ANALYZE TABLE {', '.join(ours)}")
            cursor.fetchall()
    _roll_up()


def _all(cursor: Any, statements: Iterable[str]) -> None:
    for statement in statements:
        cursor.execute(statement)


def _template(table: str) -> str:
    return table.replace("jobtrack_", "template_")


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
        size, ago = self.size, SERVER.seconds.format(number="365 * 86400.0 * ({most} - n) / {most}")
        cursor.execute(
            f"CREATE TEMPORARY TABLE series AS SELECT n, 'op-' || lpad('' || n, 8, '0') AS id, '' AS head, "  # noqa: S608
            f"CASE WHEN n % 100 >= {size.open_of_100} THEN 'done' "
            f"WHEN {_chance('kind', 2)} = 0 THEN 'asked' ELSE 'runs' END AS kind, "
            f"{SERVER.now} - {ago.format(most=size.operations)} - INTERVAL '1' HOUR AS at "
            f"FROM {SERVER.numbers.format(most=size.operations)}"
        )
        for seq in range(1, size.entries + 1):
            self._append(cursor, seq)

    def _append(self, cursor: Any, seq: int) -> None:
        done, asked = (self._body(name, seq) for name in (DONE, ASKED))
        each = "(SELECT n, id, head, kind, at, CASE kind WHEN 'asked' THEN %s ELSE %s END AS body FROM series) each_one"
        sealed = SERVER.sealed.format(text=_framed("head", "id", repr(str(seq)), "body"))
        cursor.execute(
            "INSERT INTO jobtrack_auditentry (operation_id, seq, prev, hash, body, at) "  # noqa: S608
            f"SELECT id, {seq}, head, {sealed}, body, at + INTERVAL '{seq}' MINUTE FROM {each} ORDER BY n",
            [asked, done],
        )
        cursor.execute(
            f"CREATE TEMPORARY TABLE further AS SELECT n, id, {sealed} AS head, kind, at FROM {each}",  # noqa: S608
            [asked, done],
        )
        cursor.execute("DROP TABLE series")
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
        "created_at": "s.at", "accepted_at": "s.at", "observed_at": "s.at + INTERVAL '2' MINUTE",
        "audit_head": "s.head", "audit_seq": str(size.entries), "deadline": "s.at + INTERVAL '30' DAY",
    }  # fmt: skip
    ended = (
        "CASE WHEN s.n % 50 = 49 THEN 'expired' WHEN s.n % 50 = 48 THEN 'cancelled' "
        "WHEN s.n % 20 = 17 THEN 'failed' ELSE 'succeeded' END"
    )
    done = {
        "state": ended,
        "ended_at": "s.at + INTERVAL '10' MINUTE",
        "seen_within": SERVER.duration.format(number="s.n % 900"),
    }
    runs = {"state": "'running'", "ended_at": "NULL", "wake_at": f"{SERVER.now} + INTERVAL '1' HOUR", "cause": "''"}
    asked = {
        "reason": REASON,
        "risk": RISK,
        "provider": PROVIDER,
        "account": "'default'",
        "opened_at": "s.at + INTERVAL '3' MINUTE",
    }
    named = {**asked, "operation_id": "s.id"}
    decided = {
        "blocking": "false", "open_blocking": "NULL", "decided_at": "s.at + INTERVAL '1' DAY",
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
        f"CROSS JOIN {_template(meta.db_table)} t WHERE t.{key} = '{template}' AND {which} ORDER BY s.n"
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
