"""ACME's own console: a page for people, where an operator looks up whether an export exists, and mends what is wrong.

It is plain HTML on loopback and needs no login, so that the demo has a place to look at before a decision.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from example_project.behaviour import Answer
from example_project.ledger import Job, Ledger

MOST = 200
"""Exports on the page, newest first."""

MENDED = "success"
"""The script that an export follows once it was mended."""


def page(ledger: Ledger, wanted: str) -> Answer:
    """The exports with ``wanted`` in their id, operation or reference; all of them if it is empty."""
    named = ((job, (job.id, job.operation, job.reference)) for job in ledger.newest())
    jobs = [job for job, names in named if any(wanted in name for name in names)]
    return _html(_head(wanted) + _table(jobs[:MOST], wanted))


def mended(job: str) -> Answer:
    """What is said after a repair."""
    back = '<p><a href="/console">All exports</a></p>'
    return _html(f"<p>Mended: <code>{escape(job)}</code>. It goes on as it should from now on.</p>{back}")


def no_such_job() -> Answer:
    return _html('<p>There is no such export.</p><p><a href="/console">All exports</a></p>', http=404)


def _head(wanted: str) -> str:
    return (
        '<form action="/console"><label for="q">Id of an export or operation, a reference, or part of one</label> '
        f'<input id="q" name="q" size="50" value="{escape(wanted)}"> <button>Search</button></form>'
    )


def _table(jobs: Iterable[Job], wanted: str) -> str:
    rows = "".join(_row(job) for job in jobs)
    if not rows:
        return f"<p>ACME has no export for <code>{escape(wanted)}</code>.</p>" if wanted else "<p>No exports yet.</p>"
    names = ("Export", "Made (UTC)", "Operation of the caller", "Status", "")
    heads = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _row(job: Job) -> str:
    button = ""
    if job.scenario != MENDED:
        button = f'<form method="post" action="/console/{escape(job.id)}/mend"><button>Mend it</button></form>'
    cells = (
        f"<code>{escape(job.id)}</code>",
        f"{job.at:%H:%M:%S}",
        f"<code>{escape(job.operation)}</code>",
        escape(job.word),
        button,
    )
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _html(body: str, *, http: int = 200) -> Answer:
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>ACME console</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"></head><body><h1>ACME console</h1>{body}</body></html>'
    )
    headers = {"Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'"}
    return Answer(
        word="console", http=http, body=text.encode(), content_type="text/html; charset=utf-8", headers=headers
    )
