"""The provider as the site knows it."""

from __future__ import annotations

import os

TABLE = "acme-export"
"""Id of the provider table that says what ACME's answers mean."""

# The same provider as it would be with less: they show what a list and a key are good for.
LISTED, KEYED, BARE = "acme-listed", "acme-keyed", "acme-bare"

PORT = os.environ.get("JOBTRACK_DEMO_ACME_PORT", "8100")
"""Where on loopback the simulator listens."""
