"""How an operation stands, over HTTP: for pages that wait, for agents, for other services (R-SUB-8, R-CALL-2).

Asking reads rows. It never causes a request to a provider nor a message to a worker.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, JsonResponse
from django.utils.decorators import method_decorator
from django.utils.encoding import iri_to_uri
from django.utils.http import parse_etags
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import View

from jobtrack_django import conf
from jobtrack_django.contract import contract
from jobtrack_django.fields import DatabaseNow
from jobtrack_django.models import Operation
from jobtrack_django.querysets import OperationQuerySet
from jobtrack_django.storable import storable

VIEW_PERMISSION = "jobtrack.view_operation"

OWN_COPY = "private, no-cache"
"""The asker's own browser may keep an answer, and asks each time whether it still holds; nobody else may."""

_PASSING = frozenset({"retry_after_s"})
"""What changes with every second although nothing has happened: it counts for no ETag."""

_ERRORS = {
    HTTPStatus.UNAUTHORIZED: "Log in to see how an operation stands.",
    HTTPStatus.NOT_FOUND: "There is no such operation, or it is not yours to see.",
    HTTPStatus.METHOD_NOT_ALLOWED: "An outcome can only be read: use GET or HEAD.",
}


def problem(status: HTTPStatus, **headers: str) -> HttpResponse:
    """An error as RFC 9457 problem details."""
    told = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": _ERRORS[status]}
    response = JsonResponse(told, status=status.value, content_type="application/problem+json")
    response["Cache-Control"] = "no-store"
    for name, value in headers.items():
        response[name.replace("_", "-")] = value
    return response


# This view says itself who may ask, in JSON; and it changes nothing, so that a forged request gains nothing.
@method_decorator(login_not_required, name="dispatch")
@method_decorator(csrf_exempt, name="dispatch")
class OutcomeView(View):
    """The outcome of one operation as JSON, for those who may see it.

    By default those are users with the permission to view operations. For owners, override ``get_queryset`` or
    ``may_see``. An operation that must not be seen is answered like one that does not exist.

    - ``done_url``: a callable that takes the operation's row and returns where its result is, or None. Once the
      operation has ended and there is a URL, the answer is 303 See Other with that ``Location``.
    - ``see_other``: False answers 200 with a ``Link`` (``rel="related"``) instead, for clients that follow redirects
      by themselves and want the JSON.
    - ``challenge``: the ``WWW-Authenticate`` of a 401.
    """

    http_method_names = ["get", "head"]  # noqa: RUF012 - a name and a type of Django's
    done_url: Callable[[Operation], str | None] | None = None
    see_other: bool = True
    challenge: str = 'Session realm="jobtrack"'

    # --- what a site may override -------------------------------------------------------------------

    def may_ask(self, request: HttpRequest) -> bool:
        """Whether it is known who asks. False: 401."""
        user = getattr(request, "user", None)
        return user is not None and user.is_authenticated

    def get_queryset(self) -> OperationQuerySet:
        """The operations that whoever asks may know of, in the database that takes the writes."""
        return Operation.objects.using(conf.settings().database).all()

    def may_see(self, request: HttpRequest, operation: Operation) -> bool:  # noqa: ARG002 - for those who override it
        """Whether this operation may be shown to whoever asks."""
        return request.user.has_perm(VIEW_PERMISSION)

    def result_url(self, operation: Operation) -> str | None:
        """Where the result of an operation that has ended is; None: nowhere."""
        return None if self.done_url is None else self.done_url(operation)

    # --- the answer ---------------------------------------------------------------------------------

    def get(self, request: HttpRequest, operation_id: str) -> HttpResponse:
        if not self.may_ask(request):
            return problem(HTTPStatus.UNAUTHORIZED, WWW_Authenticate=self.challenge)
        row = self.find(operation_id)
        if row is None or not self.may_see(request, row):
            return problem(HTTPStatus.NOT_FOUND)
        told = contract(row, now=row.read_at)  # type: ignore[attr-defined]  # annotated below
        response = self._answer(request, row, told)
        response["Cache-Control"] = OWN_COPY
        if told["retry_after_s"] is not None:
            response["Retry-After"] = str(told["retry_after_s"])
        return response

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        del request, args, kwargs
        return problem(HTTPStatus.METHOD_NOT_ALLOWED, Allow="GET, HEAD")

    def find(self, operation_id: str) -> Operation | None:
        """The row with this id, if whoever asks may know of it; ``read_at`` is the database's clock at that moment."""
        if storable(operation_id) != operation_id:
            return None  # no database has such an id, and some refuse to be asked for it
        return self.get_queryset().annotate(read_at=DatabaseNow()).filter(pk=operation_id).first()

    def _answer(self, request: HttpRequest, row: Operation, told: dict[str, Any]) -> HttpResponse:
        url = self.result_url(row) if row.to_core().terminal else None
        if url and self.see_other:
            response = JsonResponse(told, status=HTTPStatus.SEE_OTHER.value)
            response["Location"] = iri_to_uri(url)
            return response
        etag = etag_of(told, url)
        answer: HttpResponse = HttpResponseNotModified() if known(request, etag) else JsonResponse(told)
        answer["ETag"] = etag
        if url:
            answer["Link"] = f'<{iri_to_uri(url)}>; rel="related"'
        return answer


def etag_of(told: dict[str, Any], url: str | None) -> str:
    """Of what was told, weak: two answers a second apart are equal but for the time that is left."""
    stable = {name: value for name, value in told.items() if name not in _PASSING}
    text = json.dumps([stable, url], sort_keys=True)
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def known(request: HttpRequest, etag: str) -> bool:
    """``If-None-Match``, compared weakly (RFC 9110, 13.1.2)."""
    given = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in given or etag in {tag if tag.startswith("W/") else f"W/{tag}" for tag in given}
