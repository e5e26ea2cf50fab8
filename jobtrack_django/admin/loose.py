"""The values that a column has, by an index that starts with it: one seek for each value, however many rows there are.

``SELECT DISTINCT`` reads every row or every entry of an index. A filter needs a dozen words.
"""

from __future__ import annotations

from django.db import connections
from django.db.models import Model

_MOST = 100
"""Most values that are found: nobody reads a longer filter."""


def values_of(model: type[Model], column: str, using: str, *, held: str | None = None) -> list[str]:
    """Values of ``column`` that are not empty, in order.

    Args:
        held: only values of rows where this column is null; None: of any rows. An index should have both in front.
    """
    connection = connections[using]
    quote = connection.ops.quote_name
    table, name = quote(model._meta.db_table), quote(_column(model, column))  # noqa: SLF001 - documented by Django
    seeks = connection.vendor == "mysql"  # by itself: there is DISTINCT that seeks, and the statement below reads all
    there = ""
    if held is not None:
        null = quote(_column(model, held))
        # LIMIT keeps PostgreSQL from joining all rows instead of looking one up, and ORDER BY from reading the table.
        # MySQL and MariaDB read all of them to sort them.
        one = f"SELECT 1 FROM {table} few WHERE few.{name} = found.word AND few.{null} IS NULL"  # noqa: S608
        there = f" AND ({one}{'' if seeks else f' ORDER BY few.{null}'} LIMIT 1) IS NOT NULL"
    # Every name is quoted, and none comes from a request.
    words = f"SELECT DISTINCT {name} AS word FROM {table} ORDER BY {name} LIMIT %s"  # noqa: S608
    steps = (
        f"SELECT MIN({name}), 1 FROM {table} UNION ALL "  # noqa: S608
        f"SELECT (SELECT MIN(later.{name}) FROM {table} later WHERE later.{name} > found.word), found.seen + 1 "
        f"FROM found WHERE found.word IS NOT NULL AND found.seen < %s"
    )
    statement = (
        f"WITH {f'found(word) AS ({words})' if seeks else f'RECURSIVE found(word, seen) AS ({steps})'} "  # noqa: S608
        f"SELECT word FROM found WHERE word IS NOT NULL AND word <> ''{there} ORDER BY word"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [_MOST])
        return [word for (word,) in cursor.fetchall()]


def _column(model: type[Model], name: str) -> str:
    return str(getattr(model._meta.get_field(name), "column"))  # noqa: B009, SLF001 - not every kind of field has one
