"""Webhooks of the simulated provider, signed as standardwebhooks.com says."""

from __future__ import annotations

import hmac
import json
import threading
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime

from example_project.ledger import Job, Ledger, Seen

SOON_S = 0.5
TIMES = 2
"""Providers promise to send a webhook at least once: this one always sends it twice."""


def signed(secret: str, body: bytes, notice_id: str) -> dict[str, str]:
    """The headers of one notice."""
    timestamp = str(int(time.time()))
    key = b64decode(secret.removeprefix("whsec_"))
    signature = b64encode(hmac.digest(key, f"{notice_id}.{timestamp}.".encode() + body, "sha256")).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": notice_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Notices:
    """Sends notices to one address."""

    url: str
    secret: str

    def send_soon(self, ledger: Ledger, job: Job) -> None:
        """Tell of the end of an export shortly, twice, and log what was answered."""
        timer = threading.Timer(SOON_S, self._send, (ledger, job))
        timer.daemon = True
        timer.start()

    def _send(self, ledger: Ledger, job: Job) -> None:
        body = json.dumps({"type": "export.succeeded", "data": {"id": job.id}}).encode()
        for _ in range(TIMES):
            at = datetime.now(UTC).isoformat(timespec="microseconds")
            http = self._post(body, notice_id=f"msg_{job.id}")
            ledger.note(
                Seen(
                    at=at,
                    kind="notice",
                    job=job.id,
                    made="",
                    scenario=job.scenario,
                    request_id="",
                    key="",
                    http=http,
                    word="notice",
                    wait_s=0,
                )
            )

    def _post(self, body: bytes, *, notice_id: str) -> int:
        request = urllib.request.Request(self.url, data=body, headers=signed(self.secret, body, notice_id))  # noqa: S310
        try:
            with _OPENER.open(request, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code
        except OSError:
            return 0


# The site is on this machine: a proxy from the environment has no business between.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
