"""Columns and expressions that mean the same on PostgreSQL, MySQL/MariaDB and SQLite."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions import Now
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    _Text = models.CharField[str, str]
else:
    _Text = models.CharField


class IdentityField(_Text):
    """Text that names something: compared byte for byte.

    MySQL's usual collations hold ``Job-1``, ``job-1`` and ``job-1 `` for equal; then one job would answer for
    another. PostgreSQL and SQLite compare bytes already. The collation is not part of the field's migration state.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        parameters = super().db_parameters(connection)
        if connection.vendor == "mysql":
            mariadb = connection.mysql_is_mariadb  # type: ignore[attr-defined]  # of the MySQL backend only
            parameters["collation"] = "utf8mb4_nopad_bin" if mariadb else "utf8mb4_0900_bin"
        return parameters


class _Instant(models.Value):
    """An instant in a statement. MySQL gives a literal back as text if it is selected, unless its type is said."""

    def as_mysql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> Any:
        sql, parameters = self.as_sql(compiler, connection)
        return f"CAST({sql} AS datetime(6))", parameters


class DatabaseNow(Now):
    """The database's clock as an instant: leases, deadlines and wake-ups are judged by it alone (INV-45).

    Django's ``Now`` is the time in the zone of the connection on MySQL, while Django stores UTC there.
    """

    virtual: ClassVar[Callable[[], datetime] | None] = None
    """A clock that takes the database's place while tests run on virtual time; see ``jobtrack_django.testing``."""

    def resolve_expression(self, *args: Any, **kwargs: Any) -> Any:
        clock = DatabaseNow.virtual
        if clock is None:
            return super().resolve_expression(*args, **kwargs)
        return _Instant(clock(), output_field=models.DateTimeField()).resolve_expression(*args, **kwargs)

    def as_mysql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **extra)

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any) -> Any:
        """Six digits, as Django stores instants: SQLite compares them as text, and ".123" comes before ".123000"."""
        template = "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f000', 'NOW')"
        return self.as_sql(compiler, connection, template=template, **extra)
