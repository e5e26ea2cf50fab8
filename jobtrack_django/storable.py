"""The last line of defence: values that PostgreSQL, MySQL/MariaDB and SQLite all keep.

Provider text is cleaned where it is read. Should something slip through, losing a character is better than a
commit that fails for ever (INV-12).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from django.db.models import Model

from jobtrack.core import text as texts


def storable(value: Any, limit: int | None = None) -> Any:
    """``value`` without NUL, lone surrogates, NaN and infinities; texts at most ``limit`` characters (None: any)."""
    match value:
        case str():
            return texts.storable(value)[:limit]
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {texts.storable(str(name)): storable(item) for name, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
        case _:
            return value


def text_limit(model: type[Model], column: str) -> int | None:
    """Most characters the column keeps; None: any number, or not a text."""
    limit: int | None = getattr(model._meta.get_field(column), "max_length", None)  # noqa: SLF001 - documented by Django
    return limit


def columns(model: type[Model], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that every database can keep in the columns of ``model``, whatever a provider sent (INV-12)."""
    return {name: storable(value, text_limit(model, name)) for name, value in values.items()}


def identity(model: type[Model], column: str, text: str) -> str:
    """``text`` if the column keeps it as it is, else its digest: a name that is clipped may be another's."""
    if storable(text, text_limit(model, column)) == text:
        return text
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
