"""The last line of defence: values that PostgreSQL, MySQL/MariaDB and SQLite all keep.

Provider text is cleaned where it is read. Should something slip through, losing a character is better than a
commit that fails for ever (INV-12).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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
