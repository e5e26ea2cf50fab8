"""A message was not sent."""

from __future__ import annotations

from datetime import timedelta

from jobtrack.core.sentences import Sentence

ENDED = Sentence("each process that tried to send it ended meanwhile")
NOT_WRITTEN = Sentence("it could not be written: {error}")
MAIL_REFUSED = Sentence("the mail server refused it ({code})")
MAIL_NOT_TAKEN = Sentence("the mail server did not take it ({error})")
NO_MAIL_SERVER = Sentence("no mail server took it")
NO_BASE64 = Sentence("the secret begins with whsec_ but is not base64")


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
