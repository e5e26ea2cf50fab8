"""Database triggers that keep audit entries as they were written (INV-40). Used by the migrations.

DELETE is refused on PostgreSQL only: on the other databases Django's test runner empties tables with DELETE, and a
project's tests must go on working. The foreign key refuses to delete an operation that has entries on all of them,
and ``jobtrack verify-audit`` finds what was removed by hand.
"""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError

INSTALL = {
    "postgresql": [
        """CREATE FUNCTION jobtrack_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit entries are written once'; END $$""",
        """CREATE TRIGGER jobtrack_audit_frozen BEFORE UPDATE OR DELETE ON jobtrack_auditentry
        FOR EACH ROW EXECUTE FUNCTION jobtrack_audit_refuse()""",
    ],
    "sqlite": [
        """CREATE TRIGGER jobtrack_audit_frozen BEFORE UPDATE ON jobtrack_auditentry
        BEGIN SELECT RAISE(ABORT, 'audit entries are written once'); END""",
    ],
    "mysql": [
        """CREATE TRIGGER jobtrack_audit_frozen BEFORE UPDATE ON jobtrack_auditentry
        FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'audit entries are written once'""",
    ],
}

REMOVE = {
    "postgresql": [
        "DROP TRIGGER IF EXISTS jobtrack_audit_frozen ON jobtrack_auditentry",
        "DROP FUNCTION IF EXISTS jobtrack_audit_refuse()",
    ],
    "sqlite": ["DROP TRIGGER IF EXISTS jobtrack_audit_frozen"],
    "mysql": ["DROP TRIGGER IF EXISTS jobtrack_audit_frozen"],
}

ALLOW_PROVEN = {
    "postgresql": [
        """CREATE OR REPLACE FUNCTION jobtrack_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN
            IF TG_OP = 'DELETE' AND EXISTS (
                SELECT 1 FROM jobtrack_prunedoperation
                WHERE operation_id = OLD.operation_id AND audit_seq >= OLD.seq
            ) THEN
                RETURN OLD;
            END IF;
            RAISE EXCEPTION 'audit entries are written once';
        END $$""",
    ],
}
"""Since the third migration: entries of an operation may go once the head of its chain is written down (pruning)."""

ALLOW_NONE = {
    "postgresql": [
        """CREATE OR REPLACE FUNCTION jobtrack_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'audit entries are written once'; END $$""",
    ],
}

_MYSQL_NEEDS_SUPER = 1419
"""With binary logging on, an ordinary MySQL user may not create triggers; the rest of the protection still holds."""


def install(_apps: Any, schema_editor: Any) -> None:
    """Create the triggers of this database."""
    try:
        _run(INSTALL, schema_editor)
    except DatabaseError as error:
        if error.args[:1] != (_MYSQL_NEEDS_SUPER,):
            raise


def remove(_apps: Any, schema_editor: Any) -> None:
    """Drop them again."""
    _run(REMOVE, schema_editor)


def allow_proven(_apps: Any, schema_editor: Any) -> None:
    """Let entries go whose proof is written down."""
    _run(ALLOW_PROVEN, schema_editor)


def allow_none(_apps: Any, schema_editor: Any) -> None:
    """Let none go."""
    _run(ALLOW_NONE, schema_editor)


def _run(statements: dict[str, list[str]], schema_editor: Any) -> None:
    for statement in statements.get(schema_editor.connection.vendor, []):
        schema_editor.execute(statement)
