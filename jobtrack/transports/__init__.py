"""Ways to reach a provider, or who is told of questions. Only this package knows httpx."""

from jobtrack.transports.credentials import CredentialResolver
from jobtrack.transports.egress import EgressPolicy
from jobtrack.transports.httpx_transport import HttpxTransport
from jobtrack.transports.post import post

__all__ = ["CredentialResolver", "EgressPolicy", "HttpxTransport", "post"]
