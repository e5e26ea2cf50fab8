"""A page that tells how a job stands, for the person it is made for; beside ``OutcomeView``, which tells programs.

Asking reads rows. It never causes a request to a provider nor a message to a worker (R-CALL-2).
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils.cache import patch_vary_headers
from django.utils.encoding import escape_uri_path
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from jobtrack_django import progress
from jobtrack_django.contract import contract
from jobtrack_django.models import Operation
from jobtrack_django.templatetags.jobtrack import box
from jobtrack_django.views import OWN_COPY, OutcomeView, etag_of, known, problem

FRAGMENT = "fragment"
"""Query parameter with which the script of the page asks for the box alone."""

FRAGMENT_HEADER = "Jobtrack-Fragment"
"""The same as a header, for addresses whose query is taken."""


class ProgressView(OutcomeView):
    """How one operation stands as a page, or as its box alone for the script, to those who may see it.

    Who may see what, and where the result is, is overridden as in ``OutcomeView``. A site that has such a view already
    puts this one in front of it: ``class ReportProgress(ProgressView, ReportOutcome)``.
    """

    template_name = "jobtrack/progress/page.html"
    box_template_name = "jobtrack/progress/box.html"

    # --- what a site may override -------------------------------------------------------------------

    def get_operation(self, *_: Any, **named: Any) -> Operation | None:
        """The operation that the address means, with ``read_at``; by default by its ``operation_id``."""
        return self.find(named["operation_id"])

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """What the page is rendered with: ``operation``, ``standing``, ``box`` and ``result_url``."""
        return context

    def get_box_data(self, **context: Any) -> dict[str, Any]:
        """What the box is rendered with: ``operation``, ``standing``, ``url``, ``result_url`` and ``outcome``."""
        return context

    # --- the answer ---------------------------------------------------------------------------------

    def get(self, request: HttpRequest, *_: Any, **named: Any) -> HttpResponse:
        alone = FRAGMENT in request.GET or FRAGMENT_HEADER in request.headers
        if not self.may_ask(request):
            return self._unknown_asker(request, alone=alone)
        row = self.get_operation(**named)
        if row is None or not self.may_see(request, row):
            if alone:
                return problem(HTTPStatus.NOT_FOUND)
            raise Http404
        now = getattr(row, "read_at", None)
        told = contract(row, now=now)
        stands = progress.standing(row, told=told, now=now)
        response = self._fragment(request, row, stands, told) if alone else self._page(request, row, stands, told)
        if stands.again_s is not None:
            response["Retry-After"] = str(stands.again_s)
        response["Cache-Control"] = OWN_COPY
        patch_vary_headers(response, ["Cookie", "Accept-Language", FRAGMENT_HEADER])
        return response

    def _unknown_asker(self, request: HttpRequest, *, alone: bool) -> HttpResponse:
        """A script is told so; a person is sent to the login, and comes back."""
        if alone:
            return problem(HTTPStatus.UNAUTHORIZED, WWW_Authenticate=self.challenge)
        return redirect_to_login(request.get_full_path())

    def _result_url(self, row: Operation, stands: progress.Standing) -> str:
        ready = stands.ready
        return (self.result_url(row) or "") if ready else ""

    def _fragment(
        self, request: HttpRequest, row: Operation, stands: progress.Standing, told: Mapping[str, Any]
    ) -> HttpResponse:
        url = self._result_url(row, stands)
        etag = etag_of({**told, "words": [stands.state, stands.next_look, get_language()]}, url)
        if known(request, etag):
            response: HttpResponse = HttpResponseNotModified()
        else:
            response = HttpResponse(self._box(request, row, stands, told))
        response["ETag"] = etag
        return response

    def _page(
        self, request: HttpRequest, row: Operation, stands: progress.Standing, told: Mapping[str, Any]
    ) -> HttpResponse:
        context = self.get_context_data(
            operation=row,
            standing=stands,
            box=self._box(request, row, stands, told),
            result_url=self._result_url(row, stands),
        )
        return TemplateResponse(request, self.template_name, context)

    def _box(
        self, request: HttpRequest, row: Operation, stands: progress.Standing, told: Mapping[str, Any]
    ) -> SafeString:
        url = f"{escape_uri_path(request.path)}?{FRAGMENT}"
        told_to_box = box(row, stands, url=url, result_url=self._result_url(row, stands))
        return render_to_string(self.box_template_name, self.get_box_data(**told_to_box, outcome=told), request=request)
