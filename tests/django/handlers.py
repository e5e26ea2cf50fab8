"""Follow-up handlers of the tests."""

from __future__ import annotations

calls: list[tuple[str, str]] = []


def remember(operation):
    """Keeps what it was called with."""
    calls.append((operation.pk, operation.state))


def fail(operation):
    """Never works."""
    raise RuntimeError(f"no room for {operation.pk}")


async def later(operation):
    """Would do nothing: nobody awaits it."""
    calls.append((operation.pk, "later"))


def parts(operation):
    """Would do nothing: nobody iterates over it."""
    yield calls.append((operation.pk, "parts"))
