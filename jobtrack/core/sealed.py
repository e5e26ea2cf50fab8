"""What an operation keeps only encrypted: request bytes, secret handles, capability URLs (R-AUDIT-3, INV-33)."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitBytes:
    """A submission exactly as it is sent, credentials aside. Every attempt sends the same (INV-17)."""

    method: str
    url: str = field(repr=False)  # its query may hold a secret
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """The content of an operation's sealed column."""

    submission: SubmitBytes | None = field(default=None, repr=False)  # erased once acceptance or rejection is proven
    status_url: str = field(default="", repr=False)  # a status URL that has a query: it may hold a secret
    handle: str = field(default="", repr=False)  # secret to poll with

    def __bool__(self) -> bool:
        return self != Sealed()

    def text(self) -> str:
        """As JSON, for a vault."""
        sent = self.submission
        return json.dumps(
            {
                "submission": sent
                and {
                    "method": sent.method,
                    "url": sent.url,
                    "headers": sent.headers,
                    "body": b64encode(sent.body).decode("ascii"),
                },
                "status_url": self.status_url,
                "handle": self.handle,
            }
        )

    @classmethod
    def of(cls, text: str) -> Sealed:
        """From JSON; "" is nothing. Raises ValueError or KeyError if the text is something else."""
        if not text:
            return cls()
        kept = json.loads(text)
        sent = kept["submission"]
        return cls(
            submission=sent
            and SubmitBytes(
                method=sent["method"],
                url=sent["url"],
                headers=tuple((name, value) for name, value in sent["headers"]),
                body=b64decode(sent["body"]),
            ),
            status_url=kept["status_url"],
            handle=kept["handle"],
        )
