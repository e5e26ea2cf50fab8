"""`jobtrack explain`: what one answer means by a table, and what follows."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_never

import click

from jobtrack.catalog import sample_operation
from jobtrack.catalog.examples import NOW
from jobtrack.cli import screen
from jobtrack.cli.explain_write import explain_write, show_write
from jobtrack.cli.tables import find_table, tables_option
from jobtrack.core.decide import Conclude, Decision, Stop, Wait, charge, decide
from jobtrack.core.jsontext import parse
from jobtrack.core.locate import Answer, Found, read
from jobtrack.core.observation import Guidance, Observation
from jobtrack.core.observe import observe
from jobtrack.core.reply import Answered, Reply
from jobtrack.core.schedule import duration
from jobtrack.core.table import ProviderTable
from jobtrack.errors import UsageError
from jobtrack.testing.replies import load_reply

_SHORTEST, _LONGEST = 0.0, 1 - 2**-53
"""The jitter draws at both ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One answer, read and decided on."""

    job_id: str
    observation: Observation
    soonest: Decision  # with the least jitter
    latest: Decision  # with the most


@click.command(short_help="Say what one answer means by a table.")
@click.argument("table")
@click.argument("reply")
@click.option("--job-id", help="The job that was asked about; as the answer says it if left out.")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _ctx, _option, values: dict(map(_param, values)),
    help="A parameter of the table (repeatable).",
)
@click.option("--submit", "of", flag_value="submit", help="REPLY answers the submission.")
@click.option("--lookup", "of", flag_value="lookup", help="REPLY answers a look-up.")
@click.option("--payload", help="With --submit or --lookup: the payload, as JSON; made up if left out.")
@click.option("--looks", default=0, type=click.IntRange(0, 100_000), help="Looks made before this one.  [0]")
@tables_option
@screen.json_option
def explain(
    *,
    table: str,
    reply: str,
    job_id: str | None,
    params: dict[str, str],
    looks: int,
    of: str | None,
    payload: str | None,
    folders: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Say what REPLY means by TABLE (an id or a file), and what follows.

    REPLY is a file, or - for standard input, in YAML or JSON: {http: 200, headers: {...}, json: {...}} with text or
    base64 in place of json, or {error: read_timeout}.
    """
    found = find_table(table, folders)
    answer = load_reply(reply) if reply != "-" else load_reply("standard input", sys.stdin.buffer.read())
    if of is not None:
        document = explain_write(found, answer, params, _payload(payload), lookup=of == "lookup")
        screen.show_json(document) if as_json else show_write(document)
        return
    explained = _explain(found, answer, job_id, params, looks)
    if as_json:
        screen.show_json(_document(found, explained))
    else:
        _show(found, explained)


def _param(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        message = f"--param needs NAME=VALUE, not {text!r}."
        raise UsageError(message)
    return name, value


def _payload(text: str | None) -> object:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        message = f"--payload needs JSON, not {text!r}."
        raise UsageError(message) from None


def _explain(table: ProviderTable, reply: Reply, job_id: str | None, params: dict[str, str], looks: int) -> Explained:
    known = job_id or _echoed(table, reply)
    operation = sample_operation(table, job_id=known, params=params)
    observation = observe(table, reply, operation=operation, now=NOW)
    spent = charge(replace(operation.spent, status_requests=looks + 1), observation)
    soonest, latest = (
        decide(table, replace(operation, spent=spent), observation, now=NOW, draw=draw)
        for draw in (_SHORTEST, _LONGEST)
    )
    return Explained(job_id=known, observation=observation, soonest=soonest, latest=latest)


def _echoed(table: ProviderTable, reply: Reply) -> str:
    """The job id that the answer repeats, so that it is not read as another job's."""
    if table.status.echo is None or not isinstance(reply, Answered):
        return "job-1"
    document = parse(reply.body, reply.header("Content-Type"))
    seen = read(table.status.echo, Answer(status=reply.status, headers=reply.headers, document=document))
    return str(seen.value) if isinstance(seen, Found) else "job-1"


# --- output -----------------------------------------------------------------------------------------


def _document(table: ProviderTable, explained: Explained) -> dict[str, Any]:
    seen = explained.observation
    return {
        "table": {"id": table.id, "revision": table.revision, "digest": table.digest},
        "job_id": explained.job_id,
        "observation": {
            "kind": seen.kind.value,
            "label": seen.label,
            "detail": seen.detail,
            "http": seen.http,
            "trouble": seen.trouble.value if seen.trouble else None,
            "nearest": seen.nearest or None,
            "progress": seen.progress or None,
            "error": seen.error or None,
            "expires_at": seen.expires_at.isoformat() if seen.expires_at else None,
            "kept": dict(seen.kept),
            "guidance": _guidance(seen.guidance),
        },
        "decision": _decision(explained),
    }


def _guidance(guidance: Guidance | None) -> dict[str, Any] | None:
    if guidance is None:
        return None
    wait_s = None if guidance.wait is None else guidance.wait.total_seconds()
    return {"source": guidance.source.value, "raw": guidance.raw, "wait_s": wait_s, "problem": guidance.problem or None}


def _decision(explained: Explained) -> dict[str, Any]:
    match explained.soonest:
        case Wait(source=source, delay=least):
            most = explained.latest.delay if isinstance(explained.latest, Wait) else least
            limits = [round(each.total_seconds(), 3) for each in (least, most)]
            return {"do": "wait", "source": source.value, "delay_s": limits}
        case Stop(question=question):
            return {"do": "stop", "reason": question.reason.value, "detail": question.detail}
        case Conclude(state=state, question=asked):
            return {"do": "conclude", "state": state.value, "reason": asked.reason.value if asked else None}
    assert_never(explained.soonest)


def _show(table: ProviderTable, explained: Explained) -> None:
    seen = explained.observation
    click.echo(f"{screen.title(table.id)}  revision {table.revision}, job {screen.plain(explained.job_id)}\n")
    answer = f"HTTP {seen.http}" if seen.http is not None else f"none ({seen.trouble})"
    rows = [
        ("answer", screen.plain(answer)),
        ("means", _painted(seen)),
        ("state", screen.plain(seen.label)),
        ("nearest", screen.plain(seen.nearest)),
        ("because", screen.plain(seen.detail)),
        ("progress", screen.plain(seen.progress)),
        ("error", screen.plain(seen.error)),
        ("guidance", _guidance_text(seen.guidance)),
        ("kept", screen.plain(dict(seen.kept) or "")),
    ]
    screen.fields([*rows, ("decision", _decision_text(explained)), ("next look", _next_text(explained))])


def _painted(seen: Observation) -> str:
    paint = screen.good if seen.kind == "success" else screen.plain if seen.readable else screen.bad
    return paint(seen.kind.value)


def _guidance_text(guidance: Guidance | None) -> str:
    if guidance is None:
        return ""
    meaning = f"not valid: {guidance.problem}" if guidance.wait is None else duration(guidance.wait)
    return screen.plain(f"{guidance.source.value} {guidance.raw!r}: {meaning}")


def _decision_text(explained: Explained) -> str:
    decided = _decision(explained)
    match decided["do"]:
        case "wait":
            return "look again"
        case "stop":
            return screen.bad(f"stop and ask a person: {decided['reason']}")
    asked = f", a person is told: {decided['reason']}" if decided["reason"] else ""
    return screen.plain(f"end as {decided['state']}{asked}")


def _next_text(explained: Explained) -> str:
    decided = _decision(explained)
    if decided["do"] != "wait":
        return "none"
    soonest, latest = (duration(timedelta(seconds=each)) for each in decided["delay_s"])
    span = soonest if soonest == latest else f"{soonest} to {latest}"
    return f"in {span}  {screen.faint(decided['source'])}"
