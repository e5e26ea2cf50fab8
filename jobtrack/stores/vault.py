"""What operations keep secret, encrypted with the site's keys (R-AUDIT-3, INV-33)."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from jobtrack.core import sentences_question as say
from jobtrack.core.sealed import Sealed
from jobtrack.errors import VaultError

Keys = Sequence[str | bytes]

_INFO = b"jobtrack sealed column v1"  # another use of the same secret text gets another key


class FernetVault:
    """Implements ``ports.Vault`` with Fernet (AES-128-CBC and HMAC-SHA256).

    The operation's id is inside the encrypted text, so the text of one row is refused in another.

    Args:
        keys: Secret texts of any form, or a function that gives them, called for each text so that a changed key
            counts at once. The first one seals and every one opens: to rotate, put the new one in front and keep the
            old ones until no row needs them.
    """

    def __init__(self, keys: Keys | Callable[[], Keys]) -> None:
        self._keys = keys

    def seal(self, operation_id: str, content: Sealed) -> str:
        """An opaque text; "" for nothing.

        Raises:
            VaultError: There is no key.
        """
        if not content:
            return ""
        inside = json.dumps({"operation": operation_id, "content": content.text()})
        return self._fernet().encrypt(inside.encode()).decode("ascii")

    def open(self, operation_id: str, sealed: str) -> Sealed:
        """What was sealed for this operation; nothing for "".

        Raises:
            VaultError: No key opens it, it was changed, or it belongs to another operation. The message has nothing
                of the content.
        """
        if not sealed:
            return Sealed()
        try:
            inside = json.loads(self._fernet().decrypt(sealed.encode()))
            if inside["operation"] == operation_id:
                return Sealed.of(inside["content"])
        except (InvalidToken, ValueError, KeyError, TypeError):
            # The cause is dropped: a message about JSON quotes what it could not read.
            raise VaultError(say.SEAL_UNREADABLE.of()) from None
        raise VaultError(say.SEAL_OF_ANOTHER.of())

    def _fernet(self) -> MultiFernet:
        keys = self._keys() if callable(self._keys) else self._keys
        if not keys:
            raise VaultError(say.SEAL_NO_KEY.of())
        return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(secret: str | bytes) -> bytes:
    """A key of the form that Fernet wants, from a secret text of any form (RFC 5869)."""
    text = secret.encode() if isinstance(secret, str) else secret
    if not text:
        raise VaultError(say.SEAL_EMPTY_KEY.of())
    return urlsafe_b64encode(HKDF(algorithm=SHA256(), length=32, salt=None, info=_INFO).derive(text))
