"""Ways to reach a provider. Only this package knows httpx."""

from jobtrack.transports.credentials import CredentialResolver
from jobtrack.transports.egress import EgressPolicy
from jobtrack.transports.httpx_transport import HttpxTransport

__all__ = ["CredentialResolver", "EgressPolicy", "HttpxTransport"]
