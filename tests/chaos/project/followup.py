"""The follow-up of the chaos operations."""

import os
from pathlib import Path
from typing import Any


def ready(operation: Any, *_: Any, **__: Any) -> None:
    """Leave a line for each run."""
    with Path(os.environ["CHAOS_FOLLOWUPS"]).open("a", encoding="utf-8") as file:
        file.write(f"{operation.id}\n")


def told(message: Any) -> None:
    """Leave a line for each message: its id and the questions it lists."""
    with Path(os.environ["CHAOS_NOTICES"]).open("a", encoding="utf-8") as file:
        file.write(" ".join([message.id, *(item.id for item in message.items)]) + "\n")
