"""Which databases the suite can run on here.

``JOBTRACK_TEST_DB`` is ``sqlite``, ``postgres``, ``mariadb`` or a URL like ``postgres://user:secret@host:5432/name``.
``JOBTRACK_TEST_POSTGRES`` and ``JOBTRACK_TEST_MARIADB`` give URLs for the short names; without them the services are
looked for at their usual ports on this machine. ``python -m tests.databases`` prints the reachable ones.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

USUAL = {
    "postgres": "postgres://postgres@127.0.0.1:5432/jobtrack",
    "mariadb": "mysql://root@127.0.0.1:3306/jobtrack",
}

_ENGINES = {
    "postgres": ("django.db.backends.postgresql", "psycopg", 5432),
    "postgresql": ("django.db.backends.postgresql", "psycopg", 5432),
    "mysql": ("django.db.backends.mysql", "MySQLdb", 3306),
    "mariadb": ("django.db.backends.mysql", "MySQLdb", 3306),
}


def chosen() -> dict[str, Any]:
    """Django's settings for the database that the environment names."""
    name = os.environ.get("JOBTRACK_TEST_DB", "sqlite")
    return sqlite() if name == "sqlite" else by_url(url_of(name))


def url_of(name: str) -> str:
    """The URL a short name stands for; a URL stands for itself."""
    return os.environ.get(f"JOBTRACK_TEST_{name.upper()}") or USUAL.get(name, name)


def sqlite() -> dict[str, Any]:
    """A file, because threads must share it. Writers queue up instead of failing."""
    folder = Path(tempfile.gettempdir())
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": folder / "jobtrack.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 30, "init_command": "PRAGMA journal_mode=WAL"},
        "TEST": {"NAME": folder / f"test_jobtrack_{os.getpid()}.sqlite3"},
    }


def by_url(url: str) -> dict[str, Any]:
    """Django's settings for a server."""
    parts = urlsplit(url)
    engine, _, port = _ENGINES[parts.scheme]
    return {
        "ENGINE": engine,
        "NAME": parts.path.strip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname,
        "PORT": parts.port or port,
    }


def reachable() -> list[str]:
    """Short names of the databases that answer here and whose driver is installed. SQLite always does."""
    found = ["sqlite"]
    for name in USUAL:
        parts = urlsplit(url_of(name))
        _, driver, port = _ENGINES[parts.scheme]
        if find_spec(driver) and _answers(parts.hostname or "127.0.0.1", parts.port or port):
            found.append(name)
    return found


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.stdout.write("\n".join(reachable()) + "\n")
