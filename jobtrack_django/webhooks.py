"""The view that hears providers: verify, store, answer, and only then bring the next look forward (R-SEC-3, INV-27).

Whatever cannot be proven gets one and the same answer, whether the provider, the account or the job exists or not.
Nothing is read from or written to the database before the sender is proven. No log line of ours, and none of
Django's about these answers, holds the body, a header or the path: the path may end with a token.
"""

from __future__ import annotations

import logging
import secrets
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings as django_settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import DisallowedHost
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.log import log_response
from django.views.decorators.csrf import csrf_exempt

from jobtrack.core.actions import WebhookScheme, WebhookSpec
from jobtrack.core.webhook import Ignored, Refused, Verified, read_notices, verify
from jobtrack.errors import CredentialError
from jobtrack.flow import hear
from jobtrack.ports import Runtime
from jobtrack.records import Receipt
from jobtrack.worker.wiring import get_runtime
from jobtrack_django import conf

log = logging.getLogger("jobtrack.webhooks")

_NO_SPEC = WebhookSpec(scheme=WebhookScheme.STANDARD)
_NO_SECRETS = (b64encode(secrets.token_bytes(32)),)
"""What stands in for an account that does not exist: judging it is the same work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """What is known about the address that was called."""

    where: str  # for the log; never what a stranger wrote
    spec: WebhookSpec = _NO_SPEC
    secrets: tuple[bytes, ...] = _NO_SECRETS
    trouble: str = ""  # why nothing can be proven here, for the log
    most: int  # bytes of a body beyond which every address of this site answers 413


def _outside_transactions(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """With ATOMIC_REQUESTS a receipt would be committed only after the answer was made, or be taken back."""
    for alias in {DEFAULT_DB_ALIAS, *django_settings.DATABASES}:
        view = transaction.non_atomic_requests(alias)(view)
    return view


@_outside_transactions
@login_not_required
@csrf_exempt
def notice(request: HttpRequest, provider: str, account: str, token: str = "") -> HttpResponse:
    """Hear one notice.

    Returns:
        204: it is stored, or was before, or names no job. 401: nothing proves who sent it. 503: it could not be
        stored, the provider should send it again. 405, 411 and 413: as HTTP means them.
    """
    where = "of a provider"
    try:
        endpoint = _endpoint(get_runtime(), provider, account)
        where = endpoint.where
        return _hear(request, endpoint, provider, account, token)
    except Exception as error:  # noqa: BLE001 - whatever is broken here, the provider has to send it again
        # The text of an error may quote what was sent, or the address of the database.
        return _answer(503, where, f"error, {type(error).__name__}")


def _hear(request: HttpRequest, endpoint: _Endpoint, provider: str, account: str, token: str) -> HttpResponse:
    if request.method != "POST":
        return _answer(405, endpoint.where, "another method than POST")
    body = _body(request, endpoint.most)
    if isinstance(body, int):
        return _answer(body, endpoint.where, "too large" if body == 413 else "of unknown length")
    judged = _judge(request, endpoint, body, token)
    if isinstance(judged, Refused):
        return _answer(401, endpoint.where, judged.why)
    notices = read_notices(endpoint.spec, body, notice_id=judged.notice_id)
    if isinstance(notices, Ignored):
        return _answer(204, endpoint.where, f"ignored, {notices.why}")
    runtime = get_runtime()
    receipts = hear.receive(runtime, hear.receipts_for(notices, provider=provider, account=account))
    _bring_forward(runtime, receipts, endpoint.where)
    return _answer(204, endpoint.where, "stored" if receipts else "known already")


def _judge(request: HttpRequest, endpoint: _Endpoint, body: bytes, token: str) -> Verified | Refused:
    judged = verify(
        endpoint.spec,
        headers=tuple(request.headers.items()),
        body=body,
        url=_url(request) if "url" in endpoint.spec.signed else "",
        secrets=endpoint.secrets,
        now=timezone.now(),
        token=token,
    )
    if endpoint.trouble:
        return Refused(endpoint.trouble)
    return Refused("too large for this table") if len(body) > endpoint.spec.max_bytes else judged


def _bring_forward(runtime: Runtime, receipts: Sequence[Receipt], where: str) -> None:
    """The receipts are committed, so the answer is yes whatever happens here; a lost hint costs waiting only."""
    try:
        hear.bring_forward(runtime, receipts)
    except Exception as error:  # noqa: BLE001 - as said
        log.warning("webhook %s: stored, but no look was brought forward, %s", where, type(error).__name__)


# --- which address ----------------------------------------------------------------------------------


def _endpoint(runtime: Runtime, provider: str, account: str) -> _Endpoint:
    """What stands behind a path; behind an undeclared one is what no notice can pass."""
    declared = conf.settings().webhooks
    specs = {name: table.webhook for name in declared if (table := runtime.tables.get(name)) and table.webhook}
    # One limit for all addresses: an answer that depended on the table would tell which tables there are.
    most = max([_NO_SPEC.max_bytes, *(spec.max_bytes for spec in specs.values())])
    if account not in declared.get(provider, {}):
        return _Endpoint(where="of nobody", most=most, trouble="nothing is declared here")
    where, spec = f"{provider}/{account}", specs.get(provider)
    if spec is None:
        return _Endpoint(where=where, most=most, trouble="no usable table with a webhook")
    from jobtrack_django.runtime import webhook_secrets

    try:
        found = tuple(secret.reveal().encode() for secret in webhook_secrets(provider, account))
    except CredentialError:
        return _Endpoint(where=where, spec=spec, most=most, trouble="a secret cannot be read")
    return _Endpoint(where=where, spec=spec, secrets=found, most=most)


def _url(request: HttpRequest) -> str:
    """The address that the provider called; "" if its host is not one of ours."""
    base = conf.settings().webhook_base_url
    try:
        return request.build_absolute_uri() if base is None else base + request.get_full_path()
    except DisallowedHost:
        return ""


# --- the body and the answer ------------------------------------------------------------------------


def _body(request: HttpRequest, most: int) -> bytes | int:
    """The body, of which at most one byte more than ``most`` is read; or the status code that refuses it."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if length.isascii() and length.isdigit() and int(length[:20]) > most:
        return 413
    read = request.read
    if not length and "wsgi.input" in request.META and request.headers.get("Transfer-Encoding"):
        if not request.META.get("wsgi.input_terminated"):
            return 411  # this server does not tell where a chunked body ends
        read = request.META["wsgi.input"].read  # Django's own stream ends at Content-Length, which is not there
    parts, size = [], 0
    while size <= most and (part := read(min(1 << 16, most + 1 - size))):
        parts.append(part)
        size += len(part)
    return 413 if size > most else b"".join(parts)


_HEADERS = {401: {"WWW-Authenticate": "Webhook"}, 405: {"Allow": "POST"}, 503: {"Retry-After": "30"}}


def _answer(status: int, where: str, why: str) -> HttpResponse:
    response = HttpResponse(status=status, headers=_HEADERS.get(status, {}))
    if status < 400:
        log.info("webhook %s: %s", where, why)
    else:
        # Logged here, so that Django does not log the path.
        log_response("webhook %s: refused, %s", where, why, response=response, logger=log)
    return response
