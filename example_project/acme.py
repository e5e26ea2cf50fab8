"""The provider as the site knows it, and how the site asks it for an export: by a plain HTTP POST.

jobtrack follows a job from the moment the provider has it. Until then the usual doubt remains: if the answer to this
POST is lost, an export may have been started that nobody knows of, so the form says so and does not repeat it.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request

TABLE = "acme-export"
"""Id of the provider table that says what ACME's answers mean."""

PORT = os.environ.get("JOBTRACK_DEMO_ACME_PORT", "8100")
"""Where on loopback the simulator listens."""

TIMEOUT_S = 3


class NotStarted(Exception):
    """The provider did not accept the export. The message is for the person who asked."""


def start_export(scenario: str) -> str:
    """Start an export and return the provider's id of it.

    Raises:
        NotStarted: it was refused, or it is not known whether it was accepted.
    """
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/v1/exports",
        data=json.dumps({"scenario": scenario}).encode(),
        headers={"Authorization": f"Bearer {os.environ.get('ACME_TOKEN', '')}", "Content-Type": "application/json"},
    )
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            return str(json.load(answer)["id"])
    except urllib.error.HTTPError as error:
        error.close()  # it is also the response
        raise NotStarted(f"ACME refused the export (HTTP {error.code}). Nothing was started.") from error
    except ConnectionRefusedError as error:
        raise NotStarted("ACME cannot be reached. Nothing was started.") from error
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        if isinstance(getattr(error, "reason", None), ConnectionRefusedError):
            raise NotStarted("ACME cannot be reached. Nothing was started.") from error
        raise NotStarted(
            "ACME gave no clear answer. An export may have been started: ask them before you try again."
        ) from error


# The provider is on this machine: a proxy from the environment has no business between.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
