"""Webhooks: keys that do not go with the scheme, and signatures that leave something open."""

from __future__ import annotations

from jobtrack.catalog.checks import Checks
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.nodes import Node
from jobtrack.core.actions import WebhookScheme, WebhookSpec
from jobtrack.core.table import ProviderTable

_WEBHOOK: Path = ("webhook",)
_HMAC_ONLY = (
    "header",
    "prefix",
    "pairs",
    "algorithm",
    "encoding",
    "signed",
    "timestamp",
    "timestamp_unit",
    "id_header",
)


def check_webhook(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with how a table takes notices."""
    spec = table.webhook
    if spec is None:
        return
    checks = Checks(root, report)
    if (spec.job_id is None) == (spec.operation_id is None) and not report.touched(_WEBHOOK):
        message = "Write exactly one of job_id and operation_id: where the notice says which job it is about."
        checks.error(_WEBHOOK, "notice", message)
    if spec.scheme is WebhookScheme.HMAC:
        _hmac(checks, spec)
    else:
        _without_hmac(checks, spec)


def _without_hmac(checks: Checks, spec: WebhookSpec) -> None:
    for key in _HMAC_ONLY:
        if checks.written((*_WEBHOOK, key)):
            message = f"{key} goes with scheme: hmac; the scheme {spec.scheme} needs no {key}, remove it."
            checks.error((*_WEBHOOK, key), "scheme", message)
    if spec.scheme is WebhookScheme.TOKEN and checks.written((*_WEBHOOK, "tolerance")):
        checks.error((*_WEBHOOK, "tolerance"), "scheme", "Without a signature no time can be judged; remove it.")


def _hmac(checks: Checks, spec: WebhookSpec) -> None:
    if not spec.header and not checks.touched(_WEBHOOK):
        checks.error(_WEBHOOK, "scheme", "scheme: hmac needs header: with the name of the signature's header.")
    if "body" not in spec.signed:
        message = "A signature that leaves the body out proves nothing about it; write body into signed."
        checks.error((*_WEBHOOK, "signed"), "signed", message)
    for word, key, value in (("timestamp", "timestamp", spec.timestamp), ("id", "id_header", spec.id_header)):
        if word in spec.signed and not value:
            checks.error((*_WEBHOOK, "signed"), "signed", f"{word} is signed; write {key}: with where it stands.")
    if spec.timestamp and "timestamp" not in spec.signed:
        message = "A time that is not signed can be changed by anybody; write timestamp into signed, or remove it."
        checks.error((*_WEBHOOK, "timestamp"), "signed", message)
    if not spec.tolerance:
        checks.error((*_WEBHOOK, "tolerance"), "zero", "tolerance is zero; write a duration above zero, such as 5m.")
    if not spec.timestamp:
        for key in ("timestamp_unit", "tolerance"):
            if checks.written((*_WEBHOOK, key)):
                checks.error((*_WEBHOOK, key), "scheme", f"{key} goes with timestamp; write both or remove it.")
