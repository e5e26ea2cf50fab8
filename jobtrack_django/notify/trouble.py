"""A message was not sent."""

from __future__ import annotations

from datetime import timedelta


class NotSent(Exception):
    """Nobody took the message over, or nobody knows.

    Args:
        detail: why, without a secret or an address.
        again_in: how long the other side wants to be left alone; None: it did not say.
        final: trying again is of no use.
    """

    def __init__(self, detail: str, *, again_in: timedelta | None = None, final: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.again_in = again_in
        self.final = final
