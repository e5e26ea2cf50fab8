"""The follow-up of the chaos operations."""

import os
from pathlib import Path
from typing import Any


def ready(operation: Any, *_: Any, **__: Any) -> None:
    """Leave a line for each run."""
    with Path(os.environ["CHAOS_FOLLOWUPS"]).open("a", encoding="utf-8") as file:
        file.write(f"{operation.id}\n")
