"""Time that moves only when told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 7, 12, 0, tzinfo=UTC)


class VirtualClock:
    """A clock for tests. Calling it gives the current instant, as a store's clock does."""

    def __init__(self, start: datetime = START) -> None:
        self.start = start
        self._now = start

    def __call__(self) -> datetime:
        return self._now

    def elapsed(self) -> float:
        """Seconds since the start: the monotonic clock of the same world."""
        return (self._now - self.start).total_seconds()

    def advance(self, by: timedelta | float) -> datetime:
        """Move forward by a duration or a number of seconds."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if step < timedelta(0):
            raise ValueError("time does not run backwards")
        self._now += step
        return self._now

    def advance_to(self, instant: datetime) -> datetime:
        """Move forward to an instant; stays where it is if that is in the past."""
        self._now = max(self._now, instant)
        return self._now
