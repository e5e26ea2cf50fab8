"""How a peer's certificate is verified."""

from __future__ import annotations

import ssl


def context(ca_file: str) -> ssl.SSLContext:
    """Verify the peer and its name. The library's default context would read SSL_CERT_FILE and SSLKEYLOGFILE."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # requires a certificate for the host; TLS 1.2 or newer
    made.load_verify_locations(cafile=ca_file)
    return made
