"""The error tree. Every error has a stable ``code`` and survives pickling.

Expected trouble (a time-out, an unknown state, a closed gate) is a *value*, never an exception. What is
raised here is a mistake of the caller, a broken configuration, or a race that was lost::

    JobtrackError
    +-- ConfigurationError            settings, credentials, tables
    |   +-- TableError                a provider table that cannot be used; carries every finding
    |   +-- TableMissing              no table with this id on this machine
    |   +-- CredentialError           a reference that cannot be resolved; never names the secret
    |   +-- VaultError                what was kept encrypted cannot be read with this site's keys
    +-- UsageError                    an argument that cannot be accepted
    |   +-- IdempotencyConflict       same operation id, other content (R-ID-4)
    |   +-- OperationNotFound
    |   +-- OperationPruned           the id belongs to an operation whose rows were removed; it stays taken
    +-- ResultNotReady                the result is not fetched yet; a follow-up that raises it is tried again
    |   +-- ResultUnavailable         it cannot be fetched; a person was asked
    +-- DecisionError                 a decision on an escalation that cannot be applied
    |   +-- AlreadyDecided            somebody else was first (R-ESC-5)
    |   +-- StaleEvidence             the escalation changed since it was shown (INV-28)
    |   +-- OptionNotAllowed          the reason does not allow this option (R-ESC-3)
    |   +-- SecondPersonNeeded        the site asks for a second person's word
    +-- StoreError                    the store refused or could not keep a fact
"""

from __future__ import annotations

from typing import Any, ClassVar


class JobtrackError(Exception):
    """Base of all errors raised by jobtrack.

    Args:
        message: One sentence for a person. It never contains a secret.
        **context: JSON-compatible details, kept as attributes of ``context``.
    """

    code: ClassVar[str] = "error"

    def __init__(self, message: str, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.context = context

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.context)


def _rebuild(cls: type[JobtrackError], message: str, context: dict[str, Any]) -> JobtrackError:
    return cls(message, **context)


class ConfigurationError(JobtrackError):
    code = "configuration"


class TableError(ConfigurationError):
    code = "table_invalid"


class TableMissing(ConfigurationError):
    code = "table_missing"


class CredentialError(ConfigurationError):
    code = "credential_unavailable"


class VaultError(ConfigurationError):
    code = "vault"


class UsageError(JobtrackError):
    code = "usage"


class IdempotencyConflict(UsageError):
    code = "idempotency_conflict"


class OperationNotFound(UsageError):
    code = "operation_not_found"


class OperationPruned(UsageError):
    code = "operation_pruned"


class ResultNotReady(JobtrackError):
    code = "result_not_ready"


class ResultUnavailable(ResultNotReady):
    code = "result_unavailable"


class DecisionError(JobtrackError):
    code = "decision"


class AlreadyDecided(DecisionError):
    code = "already_decided"


class StaleEvidence(DecisionError):
    code = "stale_evidence"


class OptionNotAllowed(DecisionError):
    code = "option_not_allowed"


class SecondPersonNeeded(DecisionError):
    code = "second_person_needed"


class StoreError(JobtrackError):
    code = "store"
