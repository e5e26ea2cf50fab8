"""Keeps httpcore's debug log from telling what a jobtrack exchange carries (INV-33).

httpcore logs response headers at DEBUG, which may hold signed URLs and cookies. Only records of our own
exchanges are dropped; the site's other use of the library logs as before.
"""

from __future__ import annotations

import logging

from jobtrack.transports.network import current

_LOGGERS = ("httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy", "httpx")


def _outside_exchange(_record: logging.LogRecord) -> bool:
    return current.get() is None


def install() -> None:
    """Filter the loggers; doing it again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_outside_exchange)
