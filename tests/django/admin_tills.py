"""What the tests of submissions in the admin share: a made-up provider that takes payments, and how they go wrong."""

from __future__ import annotations

from jobtrack.testing.provider import makes, no_answer
from jobtrack_django import submit
from jobtrack_django.models import Escalation
from jobtrack_django.testing import answer

CANARY = "canary-iban-4711"

TABLE = """
jobtrack: 1
id: till
name: Payments
docs: https://developer.till.example/payments
revision: 1
hosts: ["https://api.till.example"]
submit:
  request: {method: POST, path: /v1/payments}
  accepted: {http: [202], job_id: /id}
  rejected: {http: [422]}
  denied: {http: [401]}
  error: /error
  idempotency: {header: Idempotency-Key, lifetime: 24h, scope: one merchant}
  lookup:
    request: {method: GET, path: /v1/payments, query: {reference: "{operation_id}"}}
    items: /items
    match: {/reference: "{operation_id}"}
    found: /id
  recovery: {deadline: 1m, requests: 2, first: 1s, base: 1s, factor: 2, cap: 5s}
  attempts: 1
status:
  request: {method: GET, path: "/v1/payments/{job_id}"}
  state: /status
  states: {pending: [running], success: [done], failure: [failed]}
cancel:
  request: {method: POST, path: "/v1/payments/{job_id}/cancel"}
  effect: Stops it; <b>what was paid</b> stays paid.
result: {value: /receipt, attempts: 1}
polling: {first: 1s, base: 1s, factor: 2, cap: 5s}
budget: {deadline: 1h, status_requests: 40, transport_failures: 5, rate_limited: 5}
examples:
  - {reply: {http: 200, json: {status: running}}, means: pending}
"""

TAKEN = answer(202, json={"id": "pay-1"})
LOST = makes("pay-1", no_answer())
NOTHING = answer(json={"items": []})
DONE = answer(json={"status": "done", "receipt": {"paid": 5}})


def asked(till, post=LOST, listed=NOTHING, operation_id="order-7"):
    """The question that a submission ends up with after these answers."""
    till.provider.on("POST", "/v1/payments", post)
    till.provider.on("GET", "/v1/payments", listed)
    till.provider.on("GET", "/v1/payments/pay-1", DONE)
    submit("till", operation_id=operation_id, payload={"iban": CANARY}, reference="Order 7")
    till.run_due(raise_failures=False)
    return Escalation.objects.open().get(operation_id=operation_id)
