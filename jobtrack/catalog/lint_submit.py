"""Submissions: answers that prove less than the table says, jobs that nobody could follow, keys that go nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from jobtrack.catalog.checks import Checks
from jobtrack.catalog.findings import Path, Report
from jobtrack.catalog.lint_answers import check_lists, doubts_of_rules
from jobtrack.catalog.lint_request import never_read
from jobtrack.catalog.lint_rules import check_rules
from jobtrack.catalog.nodes import Node
from jobtrack.catalog.placeholders import PLACEHOLDER, RESERVED
from jobtrack.core.actions import SentUrl, SubmitMeaning, SubmitSpec
from jobtrack.core.place import BodyKind
from jobtrack.core.schedule import duration
from jobtrack.core.table import ProviderTable

_SUBMIT: Path = ("submit",)
_GIVEN = frozenset({SubmitMeaning.ACCEPTED, SubmitMeaning.ALREADY})
_ZERO = timedelta(0)


def check_submit(root: Node, table: ProviderTable, report: Report) -> None:
    """Report what is wrong with how a table submits."""
    checks = Checks(root, report)
    node, spec = root.get("submit"), table.submit
    if node is None or spec is None:
        _params_without_submit(checks, table, report)
        return
    check_lists(node, report)
    check_rules(node.get("rules"), spec.rules, report)
    doubts_of_rules(node.get("rules"), spec.rules, report)
    if not report.touched(_SUBMIT):  # what is missing may have been written, but wrongly
        _followed(checks, table, spec)
        _job_id(root, checks, table, spec)
        _params(checks, table, spec)
    _read_as_status(checks, spec)
    _key(node, checks, spec)
    _preconditions(checks, spec)
    _durations(checks, spec)


# --- following what was accepted ---------------------------------------------------------------------


def _gives(spec: SubmitSpec) -> bool:
    """Whether any answer says that the provider has the job, besides those that end it."""
    return bool(spec.accepted_http | spec.already_http) or any(rule.then in _GIVEN for rule in spec.rules)


def _followed(checks: Checks, table: ProviderTable, spec: SubmitSpec) -> None:
    path: Path = (*_SUBMIT, "accepted")
    accepted = spec.accepted
    if not _gives(spec):
        if not spec.final_http and all(rule.then is not SubmitMeaning.FINAL for rule in spec.rules):
            checks.error(path, "no_acceptance", "No answer means accepted; write http: with the codes that do.")
        return
    if not (accepted.job_id or accepted.status_url or accepted.handle or spec.lookup):
        message = "Nothing tells how to follow the job; write job_id: or status_url: here, or submit.lookup."
        checks.error(path, "unfollowed", message)
    given_urls = (*accepted.status_url, *(spec.lookup.status_url if spec.lookup else ()))
    if not table.status.request.path and not given_urls:
        message = "The status request has no path and no answer gives a URL; write one of the two."
        checks.error(path, "no_address", message)
    if accepted.paths and not given_urls:
        checks.error((*path, "paths"), "no_address", "paths limits a status URL; write status_url: or remove it.")
    if any(isinstance(place, SentUrl) for place in given_urls) and table.status.request.method != "GET":
        message = "Asking the submission's URL with POST would submit again; write method: GET under status.request."
        checks.error((*path, "status_url"), "submits_again", message)


def _read_as_status(checks: Checks, spec: SubmitSpec) -> None:
    """An end is read from the answer itself, as from a status answer."""
    for code in sorted(code for code in spec.final_http if never_read(code) or code == 304)[:1]:
        message = f"Answers with {code} never carry a state, so they end no job; remove {code}."
        checks.error((*_SUBMIT, "final", "http"), "unreachable", message)


def _job_id(root: Node, checks: Checks, table: ProviderTable, spec: SubmitSpec) -> None:
    """Requests that need a job id which no answer gives."""
    accepted = spec.accepted
    known = bool(accepted.job_id) or (spec.lookup is not None and not accepted.status_url)
    if known or not _gives(spec):
        return
    for path in _users(root, table):
        message = "No answer to a submission gives the job id; write submit.accepted.job_id, or do without it here."
        checks.error(path, "no_job_id", message)


def _users(root: Node, table: ProviderTable) -> Iterator[Path]:
    """Places that need the job id."""
    asked: list[Path] = [
        ("status", "request"),
        ("cancel", "request"),
        ("result", "request"),
        ("result", "item_request"),
    ]
    for path in asked:
        node = root.at(*path)
        for leaf in () if node is None else node.walk():
            names = PLACEHOLDER.findall(leaf.value) if isinstance(leaf.value, str) else ()
            if any(name.removeprefix("+").removesuffix(":int") == "job_id" for name in names):
                yield leaf.path
    if table.status.echo is not None:
        yield ("status", "echo")
    if table.status.pick is not None and table.status.pick.id_at is not None:
        yield ("status", "pick", "id")


# --- parameters that an answer gives -----------------------------------------------------------------


def _params_without_submit(checks: Checks, table: ProviderTable, report: Report) -> None:
    if report.touched(_SUBMIT):
        return
    for name, param in table.params.items():
        if param.source == "answer":
            message = "Jobs of this table are submitted elsewhere; write from: caller."
            checks.error(("params", name, "from"), "answer_param", message)


def _params(checks: Checks, table: ProviderTable, spec: SubmitSpec) -> None:
    wanted = {name for name, param in table.params.items() if param.source == "answer"}
    given: list[tuple[Path, set[str], bool]] = [
        (
            (*_SUBMIT, "accepted", "params"),
            {name for name, _ in spec.accepted.params},
            bool(spec.accepted.job_id or spec.accepted.status_url) or spec.lookup is None,
        )
    ]
    if spec.lookup is not None:
        given.append(((*_SUBMIT, "lookup", "params"), {name for name, _ in spec.lookup.params}, True))
    for path, names, needed in given:
        for name in sorted(names - wanted):
            message = f"{name} is no parameter that an answer gives; write params: {{{name}: {{from: answer, ...}}}}."
            checks.error((*path, name), "answer_param", message)
        for name in sorted(wanted - names) if needed and _gives(spec) else ():
            message = f"Nothing gives {{{name}}} here; write params: {{{name}: /place}} with its place in the answer."
            checks.error(path, "answer_param", message)


# --- the key, preconditions, durations ---------------------------------------------------------------


def _key(node: Node, checks: Checks, spec: SubmitSpec) -> None:
    key = spec.idempotency
    path: Path = (*_SUBMIT, "idempotency")
    if key is None:
        return
    if key.header.lower() in RESERVED:
        checks.error((*path, "header"), "header", f"{key.header} is set by jobtrack; write the provider's own header.")
    for place, named in (("headers", key.header), ("query", key.query)):
        written = node.at("request", place)
        names = [] if written is None or not named else [name for name, _ in written.pairs()]
        for name in names:
            if name == named or (place == "headers" and name.lower() == named.lower()):
                message = f"submit.idempotency sets {name}; remove it here."
                checks.error((*_SUBMIT, "request", place, name), "idempotency", message)
    if key.body is not None and spec.request.body_kind is BodyKind.NONE:
        checks.error((*path, "body"), "idempotency", "The request has no body; write json:, form: or graphql: for it.")


def _preconditions(checks: Checks, spec: SubmitSpec) -> None:
    path: Path = (*_SUBMIT, "preconditions")
    for index, name in enumerate(spec.preconditions):
        if name.lower() in RESERVED:
            checks.error((*path, index), "header", f"{name} is set by jobtrack; remove it.")


def _durations(checks: Checks, spec: SubmitSpec) -> None:
    recovery, lookup, key = spec.recovery, spec.lookup, spec.idempotency
    for name, length in (("deadline", recovery.deadline), ("base", recovery.base), ("cap", recovery.cap)):
        if length == _ZERO:
            message = f"{name} is zero; write a duration above zero, such as 1s."
            checks.error((*_SUBMIT, "recovery", name), "zero", message)
    if spec.within == _ZERO:
        checks.error((*_SUBMIT, "within"), "zero", "within is zero; write a duration above zero, such as 1h.")
    if recovery.base > recovery.cap:
        message = f"recovery.base is longer than recovery.cap; write at most {duration(recovery.cap)}."
        checks.error((*_SUBMIT, "recovery", "base"), "too_long", message)
    proof = None if lookup is None else lookup.absence_is_proof_after
    if proof is not None and recovery.deadline <= proof:
        message = (
            f"The recovery ends before absence is proof; write a deadline above {duration(proof)}, "
            "or an earlier absence_is_proof_after."
        )
        checks.error((*_SUBMIT, "recovery", "deadline"), "too_short", message)
    if key is not None and _ZERO < key.lifetime < recovery.deadline:
        message = (
            f"The key is kept for {duration(key.lifetime)} only; after that a repeat is never permitted. "
            "Write a recovery deadline within it."
        )
        checks.warn((*_SUBMIT, "recovery", "deadline"), "lifetime", message)
