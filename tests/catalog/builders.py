"""Small tables as text, and answers to read with them."""

from __future__ import annotations

import json
import re
import textwrap
from typing import Any

from jobtrack.catalog import check_text, load_text, sample_operation
from jobtrack.catalog.examples import NOW
from jobtrack.core.observe import observe
from jobtrack.core.reply import Answered
from jobtrack.core.table import ProviderTable

HEAD = """\
jobtrack: 1
id: shape
name: A shape
docs: https://docs.example/jobs
revision: 1
"""
REQUEST = 'request: {path: "/jobs/{job_id}"}'
STATES = """
state: /status
states: {pending: [queued, running], success: [done], failure: [failed]}
"""


def table_text(status: str = STATES, *, request: str = "", top: str = "") -> str:
    """A whole table around its ``status`` part. ``request`` and ``hosts`` get a default if they are not given."""
    head = HEAD if re.search(r"^\s*hosts:", top, re.MULTILINE) else HEAD + 'hosts: ["https://api.example"]\n'
    ask, rest = textwrap.dedent(request).strip() or REQUEST, textwrap.dedent(status).strip()
    if rest.startswith("{"):
        return f"{head}{textwrap.dedent(top)}\nstatus: {{{ask}, {rest[1:]}\n"
    block = textwrap.indent(ask + "\n" + rest, "  ")
    return f"{head}{textwrap.dedent(top)}\nstatus:\n{block}\n"


def table(status: str = STATES, *, request: str = "", top: str = "") -> ProviderTable:
    return load_text(table_text(status, request=request, top=top), "shape.yaml")


def codes(text: str) -> list[str]:
    """Codes of the errors of a text."""
    return [finding.code for finding in check_text(text, "shape.yaml").findings if finding.level == "error"]


def warnings(text: str) -> list[str]:
    return [finding.code for finding in check_text(text, "shape.yaml").findings if finding.level == "warning"]


def answer(body: Any = None, *, http: int = 200, **headers: str) -> Answered:
    """An answer with a JSON body; None for no body, text for a body that is not JSON."""
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    if body is None or isinstance(body, str):
        return Answered(status=http, headers=tuple(named), body=(body or "").encode())
    return Answered(status=http, headers=(("Content-Type", "application/json"), *named), body=json.dumps(body).encode())


def means(read_with: ProviderTable, reply: Answered, *, job_id: str = "j1") -> str:
    return str(observe(read_with, reply, operation=sample_operation(read_with, job_id=job_id), now=NOW).kind)
