"""A made-up site that submits: its table, its views, its URLs. Each view ends at another line (docs: crash lines)."""

from __future__ import annotations

import json

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from jobtrack_django import submit

TABLE = """
jobtrack: 1
id: pay
name: Payments
docs: https://developer.pay.example/payments
revision: 1
hosts: ["https://api.pay.example"]
submit:
  request: {method: POST, path: /v1/payments}
  accepted: {http: [202], job_id: /id}
  rejected: {http: [422]}
  idempotency: {header: Idempotency-Key, lifetime: 24h}
status:
  request: {method: GET, path: "/v1/payments/{job_id}"}
  state: /status
  states: {pending: [running], success: [done], failure: [failed]}
polling: {first: 1s, base: 1s, factor: 2, cap: 5s}
examples:
  - {reply: {http: 200, json: {status: running}}, means: pending}
"""


class Crash(Exception):
    """The view ends here."""


def pay(request: HttpRequest, line: str) -> HttpResponse:
    """Submit one payment; ``line`` says where this request ends."""
    if line == "before":
        raise Crash
    operation = submit("pay", operation_id="order-7", payload=json.loads(request.body or b"{}"))
    if line == "after":
        raise Crash
    return JsonResponse({"operation": operation.pk})


def pay_in_block(request: HttpRequest, line: str) -> HttpResponse:
    """As ``pay``, with a block of its own."""
    with transaction.atomic():
        operation = submit("pay", operation_id="order-7", payload=json.loads(request.body or b"{}"))
        if line == "inside":
            raise Crash
    if line == "behind":
        raise Crash
    return JsonResponse({"operation": operation.pk})


urlpatterns = [path("pay/<line>/", pay), path("block/<line>/", pay_in_block)]
