"""Audit entries told as a story (R-AUDIT-1), and the badge that says whether to believe it (R-AUDIT-2)."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from jobtrack.core.audit import GENESIS, seal
from jobtrack_django import events, narrative, track
from jobtrack_django.models import AuditEntry, Operation
from jobtrack_django.narrative import Fold, check_chain, history, story, tell
from jobtrack_django.testing import Rehearsal, answer, no_answer
from tests.django.admin_pages import DENIED, DONE, PAUSED, RUNNING, SITE

ROOT = Path(__file__).parents[2]
NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
KEYED = "the provider recognises a repeat by its idempotency key, which is still valid"
MAY = "From here on the provider may have the job."


def entry(seq=1, *, at=NOON, **body):
    return AuditEntry(operation_id="op", seq=seq, hash="f" * 64, at=at, body=json.dumps({"at": at.isoformat(), **body}))


def look(seq, label="running", **rest):
    seen = {"kind": "pending", "label": label, "http": 200, **rest.pop("seen", {})}
    did = {"do": "wait", "at": "2030-01-07T12:05:00+00:00", "source": "local_backoff"}
    return entry(seq, at=NOON + timedelta(minutes=seq), event="poll", observation=seen, decision=did, **rest)


def shape(entries):
    """The story as numbers: a tuple for a fold."""
    return [tuple(line.seq for line in part.lines) if isinstance(part, Fold) else part.seq for part in story(entries)]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], []),
        ([look(1)], [1]),
        ([look(1), look(2)], [1, 2]),
        ([look(1), look(2), look(3)], [1, (2, 3)]),
        ([look(1), look(2), look(3), look(4, "queued"), look(5, "queued")], [1, (2, 3), 4, 5]),
        ([look(1), look(2), look(3, late=True), look(4), look(5), look(6)], [1, 2, 3, 4, (5, 6)]),
        ([look(1), look(2), look(3, lost_look=2), look(4), look(5), look(6)], [1, 2, 3, 4, (5, 6)]),
        ([look(1), look(2), look(3), look(4, questions=[{"reason": "stalled"}])], [1, (2, 3), 4]),
        ([look(1), look(2), look(3, seen={"guidance": {"raw": "-1", "problem": "negative"}})], [1, 2, 3]),
        ([look(1), entry(2, event="decision"), look(3), look(4), look(5)], [1, 2, 3, (4, 5)]),
        ([look(1), look(2, seen={"kind": "rate_limited", "http": 429}), look(3)], [1, 2, 3]),
    ],
)
def test_only_uneventful_looks_are_folded(entries, expected):
    assert shape(entries) == expected


def test_a_fold_says_how_many_when_and_what():
    _, fold = story([look(seq) for seq in range(1, 14)])
    assert fold.text == "12 unchanged looks, 12:02–12:13 UTC: “running”"
    assert len(fold.lines) == 12


def test_a_fold_over_midnight_names_both_days():
    looks = [entry(n, at=NOON + timedelta(hours=13 * n), event="poll") for n in range(2)]
    lines = tuple(replace(tell(look), quiet="running") for look in looks)
    assert Fold(lines=lines).text == "2 unchanged looks, 2030-01-07 12:00–2030-01-08 01:00 UTC: “running”"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"event": "track", "job_id": "exp_1"}, "The provider had accepted the job “exp_1”."),
        (
            {"observation": {"kind": "pending", "label": "running", "http": 200}},
            "The provider said “running” (HTTP 200).",
        ),
        (
            {"observation": {"kind": "transport_failure", "http": 503, "detail": "HTTP 503: it failed"}},
            "HTTP 503: it failed.",
        ),
        ({"observation": {"kind": "rate_limited", "http": 429}}, "The provider answered HTTP 429 without a state."),
        (
            {"observation": {"kind": "transport_failure", "trouble": "read_timeout"}},
            "There was no answer (read timeout).",
        ),
        ({"observation": {"kind": "pending", "label": "x", "http": 200, "progress": "40 %"}}, "Progress: 40 %."),
        (
            {"observation": {"kind": "failure", "label": "x", "http": 200, "error": "disk full"}},
            "Its error: “disk full”.",
        ),
        (
            {"observation": {"kind": "failure", "label": "x", "http": 200, "error": "This token was revoked."}},
            "Its error: “This token was revoked”.",
        ),
        (
            {"observation": {"kind": "pending", "label": "x", "http": 200, "progress": "Rendering."}},
            "Progress: Rendering.",
        ),
        (
            {
                "observation": {
                    "kind": "pending",
                    "label": "x",
                    "http": 200,
                    "guidance": {"raw": "-1", "problem": "negative"},
                }
            },
            "Its wish when to ask again is not valid (negative) and was not followed.",
        ),
        (
            {"decision": {"do": "wait", "at": "2030-01-07T12:05:00+00:00", "source": "provider_retry_after"}},
            "Next look 12:05:00 UTC: the provider asked for it (Retry-After).",
        ),
        (
            {"decision": {"do": "wait", "at": "2030-01-08T01:00:00+02:00", "source": "local_backoff"}},
            "Next look 23:00:00 UTC: the table's own pace.",
        ),
        (
            {"decision": {"do": "wait", "at": "2030-01-08T12:00:00+00:00", "source": "local_backoff"}},
            "Next look 2030-01-08 12:00:00 UTC: the table's own pace.",
        ),
        ({"decision": {"do": "wait", "at": "soon", "source": "gate"}}, "Next look ?: the account is held back."),
        ({"decision": {"do": "conclude", "state": "succeeded"}}, "The operation ended: succeeded."),
        ({"decision": {"do": "stop", "reason": "unknown_state"}}, "Polling stopped: unknown state. A person is asked."),
        ({"decision": {"do": "something new"}}, "something new"),
        ({"questions": [{"reason": "business_deadline_exceeded"}]}, "A person is told: needed by now."),
        ({"late": True}, "This came too late and changed nothing."),
        (
            {"lost_look": 3},
            "The look before this one never came to its end: its request may have been sent, its answer is lost.",
        ),
        ({"event": "decision", "option": "close", "actor": "ann", "why": "done"}, "ann chose “Close”: “done”"),
        (
            {
                "event": "decision",
                "state": "running",
                "before": {
                    "state": "escalated",
                    "spent": {"status_requests": [60, 60], "deadline": "2030-01-07T12:00:00+00:00"},
                },
                "spent": {"status_requests": [60, 64], "deadline": "2030-01-07T12:15:00+00:00"},
            },
            (
                "Changed: state needs a decision → running; status requests 60 of 60 → 60 of 64; "
                "deadline 12:00:00 UTC → 12:15:00 UTC."
            ),
        ),
        (
            {"event": "decision", "state": "failed", "before": {"state": "failed"}},
            "Nothing about the operation changed.",
        ),
        ({"event": "submit", "fingerprint": "f"}, "The job is to be submitted; nothing has been sent yet."),
        ({"event": "submit", "predecessor": "op-0", "fingerprint": "f"}, "It replaces operation “op-0”."),
        ({"event": "submit", "decision": {"do": "rest", "at": "2030-01-07T12:05:00+00:00"}}, "Nothing was sent."),
        (
            {"event": "attempt", "attempt": 2, "because": "idempotency", "spent": {"submissions": [2, 5]}},
            f"Submission 2 of 5 begins, because {KEYED}. {MAY}",
        ),
        (
            {"event": "attempt", "because": "absent", "spent": {"submissions": [2, 5]}, "attempt": 2},
            f"Submission 2 of 5 begins, because it is proven that the provider has no job of it. {MAY}",
        ),
        (
            {"event": "attempt", "because": "unsent", "attempt": 3},
            f"Submission 3 of ? begins, because it is proven that no request before was accepted. {MAY}",
        ),
        ({"event": "attempt", "doubt": "no answer"}, "An attempt before it is still in doubt: no answer."),
        (
            {
                "event": "submission",
                "meaning": "accepted",
                "observation": {"kind": "pending", "http": 202, "detail": "x"},
            },
            "The provider took the job (HTTP 202).",
        ),
        (
            {"event": "submission", "meaning": "unsent"},
            "It is proven that nothing was sent, so this request made no job.",
        ),
        ({"event": "submission", "meaning": "new_meaning"}, "new_meaning."),
        (
            {"event": "submission", "decision": {"do": "follow", "job_id": "pay-1", "end": None}},
            "From now on the job “pay-1” is followed.",
        ),
        (
            {"event": "submission", "decision": {"do": "follow", "job_id": "", "end": {"state": "succeeded"}}},
            "The operation ended: succeeded.",
        ),
        (
            {"event": "submission", "decision": {"do": "follow", "job_id": ""}},
            "From now on the job is followed by the address that the provider gave.",
        ),
        (
            {"event": "submission", "late": True, "decision": {"do": "follow", "job_id": "pay-1"}},
            "This came too late to count by itself; that the provider has the job “pay-1” is kept.",
        ),
        (
            {"decision": {"do": "later", "at": "2030-01-07T12:05:00+00:00", "source": "local_backoff"}},
            "It is sent again 12:05:00 UTC: the table's own pace.",
        ),
        (
            {"decision": {"do": "conclude", "state": "failed", "cause": "submission_rejected"}},
            "The operation ended: failed (submission refused).",
        ),
        (
            {
                "decision": {
                    "do": "doubt",
                    "why": "no answer",
                    "at": "2030-01-07T12:05:00+00:00",
                    "source": "local_backoff",
                    "until": "2030-01-07T13:00:00+00:00",
                }
            },
            (
                "It is not known whether the provider has the job. Next step 12:05:00 UTC: the table's own pace. "
                "By itself jobtrack tries until 13:00:00 UTC."
            ),
        ),
        (
            {"decision": {"do": "doubt", "why": "x", "reason": "submission_unknown"}},
            "Nobody knows whether the provider has the job, and jobtrack cannot find out. A person is asked.",
        ),
        (
            {"event": "lookup", "decision": {"do": "stop", "reason": "submission_unknown"}},
            "jobtrack stopped: not known whether submitted. A person is asked.",
        ),
        (
            {"event": "look_up", "request": 3, "spent": {"lookups": [3, 10]}},
            "Look-up request 3 of 10 begins: the provider is asked whether it has the job.",
        ),
        ({"event": "lookup", "kind": "found", "found": ["pay-1"]}, "The provider has the job “pay-1”."),
        ({"event": "lookup", "kind": "many", "found": ["a", "b"]}, "The provider has several jobs of it: a, b."),
        (
            {"event": "lookup", "kind": "absent", "observation": {"http": 404, "detail": "x"}},
            "The provider shows no job of it (HTTP 404).",
        ),
        ({"event": "lookup", "kind": "absent", "items": 2}, "2 jobs were listed."),
        ({"event": "lookup", "kind": "unreadable"}, "That does not tell whether the provider has the job."),
        (
            {"event": "attempt", "lost_look": 3},
            "The request before this one never came to its end: it may have been sent, its answer is lost.",
        ),
        ({"event": "decision", "option": "attach_job", "job_id": "pay-1"}, "The job named: “pay-1”."),
        ({"event": "cancel", "cancel": "unknown"}, "Nobody knows whether the provider heard it."),
        ({"event": "fetch", "outcome": "complete", "files": 2, "bytes": 7}, "2 files are stored, 7 bytes."),
        ({"event": "fetch", "outcome": "again", "reads": [2, 5]}, "Status requests for it: 2 of 5."),
        ({"event": "fetch", "outcome": "unavailable", "heard": ["200", "404"]}, "Answers: 200, 404."),
    ],
)
def test_each_entry_is_told_in_plain_sentences(body, sentence):
    assert sentence in tell(entry(**body)).sentences


def written_events():
    """Every event that the flows and this adapter write to the audit, read from their source."""
    files = [*(ROOT / "jobtrack" / "flow").glob("*.py"), *(ROOT / "jobtrack_django").glob("*.py")]
    return {event for path in files for node in ast.walk(ast.parse(path.read_text())) for event in _events_of(node)}


def _events_of(node):
    """Texts given to ``story.entry`` or as an argument ``event``, or chosen for a variable of that name."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "story.entry":
        given = [node.args[0]]
    elif isinstance(node, ast.Call) and ast.unparse(node.func) not in ("Followup", "records.Followup"):
        given = [keyword.value for keyword in node.keywords if keyword.arg == "event"]
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "event":
        given = [part for part in ast.walk(node.value) if not isinstance(node.value, ast.Tuple)]
    else:
        given = []
    return {
        part.value for part in given if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value
    }


def test_every_event_that_is_written_has_its_words():
    found = written_events()
    assert {"poll", "track", "attempt", "submission", "look_up", "lookup", "evidence", "cancel", "fetch"} <= found
    found -= {"on_success", "on_failure"}  # of follow-ups, which are no audit entries
    assert found - set(events.TITLES) == set()
    for event in found:
        assert tell(entry(event=event)).title == str(events.TITLES[event])


def test_an_event_of_a_newer_release_is_told_by_its_name():
    line = tell(entry(event="of_a_newer_release", decision={"do": "something"}, meaning="x"))
    assert (line.title, line.sentences) == ("of_a_newer_release", ("something",))


@pytest.mark.parametrize("event", [*events.TITLES, "unknown"])
@pytest.mark.parametrize("odd", [None, 3, "x", [], [None, {}], {"a": 1}])
def test_an_event_with_odd_contents_is_still_told(event, odd):
    names = [
        "attempt",
        "because",
        "meaning",
        "found",
        "items",
        "kind",
        "reads",
        "heard",
        "files",
        "spent",
        "observation",
    ]
    assert tell(entry(event=event, **dict.fromkeys([*names, "decision", "job_id", "fingerprint", "cancel"], odd))).title


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("attempt", "submissions 2 of 5"),
        ("lookup", "look-ups 3 of 9"),
        ("poll", "requests 1 of 4"),
        ("x", "requests 1 of 4"),
    ],
)
def test_the_small_print_counts_what_the_event_used(event, said):
    spent = {"status_requests": [1, 4], "submissions": [2, 5], "lookups": [3, 9]}
    assert tell(entry(event=event, spent=spent)).facts[0] == said


def test_the_small_print_names_what_a_decision_was_made_with():
    line = tell(
        entry(
            7,
            event="poll",
            observation={"kind": "pending", "label": "x", "http": 200, "request_id": "req_1", "guidance": {"raw": "7"}},
            spent={"status_requests": [3, 60]},
            table={"id": "acme", "revision": 2, "digest": "0123456789"},
            evidence_version=4,
        )
    )
    assert line.facts == (
        *("requests 3 of 60", "asked to wait: 7", "request id req_1", "acme r2 01234567", "evidence version 4"),
        "entry 7, seal ffffffff",
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"at": 3, "observation": [], "decision": "x", "spent": 1}', "[" * 100_000]
)
def test_an_entry_that_was_tampered_with_is_still_told(text):
    line = tell(AuditEntry(operation_id="op", seq=1, hash="", at=NOON, body=text))
    assert line.at == NOON
    assert line.title


@pytest.mark.database
@pytest.mark.django_db
def test_a_whole_life_can_be_read(settings, jobtrack: Rehearsal):
    settings.JOBTRACK = SITE
    busy = answer(503, text="busy", headers={"Retry-After": "7"})
    jobtrack.provider.script("exp_1", RUNNING, RUNNING, RUNNING, busy, no_answer(), PAUSED)
    operation = track("acme-export", job_id="exp_1", operation_id="op-1")
    jobtrack.run_due()
    jobtrack.provider.script("exp_1", DENIED)
    jobtrack.decide(operation, "look_again", actor="ann", reason="mended")
    jobtrack.run_due()
    jobtrack.provider.script("exp_1", DONE)
    jobtrack.decide(operation, "access_repaired", actor="bob", reason="new key")
    jobtrack.run_due()
    operation.refresh_from_db()
    entries = history(operation)
    told = [part.text if isinstance(part, Fold) else f"{part.title}: {part.sentences[0]}" for part in story(entries)]
    assert told == [
        "Tracking began: The provider had accepted the job “exp_1”.",
        "Look: The provider said “running” (HTTP 200).",
        "2 unchanged looks, 12:00 UTC: “running”",
        "Look: HTTP 503: the server failed.",
        "Look: There was no answer (read timeout).",
        "Look: The provider said “paused” (HTTP 200).",
        "A person decided: ann chose “Look again now”: “mended”",
        "Look: HTTP 401: access denied.",
        "A person decided: bob chose “Access is repaired”: “new key”",
        "Look: The provider said “succeeded” (HTTP 200).",
    ]
    assert check_chain(operation, entries).text == "chain verified, 11 entries"
    out = StringIO()
    call_command("jobtrack_show", "op-1", stdout=out)
    shown = out.getvalue().splitlines()
    assert "  chain verified, 11 entries" in shown
    assert [line[22:] for line in shown if told[1] in line or told[2] in line][1] == told[2]


# --- the chain --------------------------------------------------------------------------------------


def chained(count):
    """An operation and its entries, as the store would have written them."""
    entries, previous = [], GENESIS
    for seq in range(1, count + 1):
        text = f'{{"seq":{seq}}}'
        digest = seal(previous, "op", seq, text)
        entries.append(AuditEntry(operation_id="op", seq=seq, prev=previous, hash=digest, body=text))
        previous = digest
    return Operation(id="op", audit_seq=count, audit_head=previous), entries


def edited(entries, seq, **values):
    for name, value in values.items():
        setattr(entries[seq - 1], name, value)
    return entries


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda entries: entries, "chain verified, 9 entries"),
        (lambda entries: edited(entries, 7, body="{}"), "chain broken at entry 7"),
        (lambda entries: edited(entries, 4, prev="0" * 64), "chain broken at entry 4"),
        (lambda entries: edited(entries, 4, hash="0" * 64), "chain broken at entry 4"),
        (lambda entries: entries[:4] + entries[5:], "chain broken at entry 5"),
        (lambda entries: entries[1:], "chain broken at entry 1"),
        (lambda entries: entries[:-1], "chain broken at entry 9"),
        (lambda entries: [], "chain broken at entry 1"),
    ],
    ids=["whole", "edited", "cut before", "resealed", "one gone", "first gone", "last gone", "all gone"],
)
def test_the_badge_names_the_first_entry_that_is_wrong(spoil, expected):
    operation, entries = chained(9)
    assert check_chain(operation, spoil(entries)).text == expected


def test_a_head_that_does_not_fit_and_an_empty_chain():
    operation, entries = chained(3)
    operation.audit_head = "0" * 64
    assert check_chain(operation, entries).broken_at == 3
    assert check_chain(*chained(0)).broken_at is None


def test_a_long_chain_is_checked_from_where_it_is_shown(monkeypatch):
    monkeypatch.setattr(narrative, "LIMIT", 4)
    operation, entries = chained(9)
    assert check_chain(operation, entries[-4:]).text == "chain verified, the last 4 of 9 entries"
    assert check_chain(operation, edited(entries, 8, body="{}")[-4:]).broken_at == 8
