"""The progress box: words for every state and outcome, and nothing for staff in them (R-SUB-8, R-FACT-2)."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from jobtrack.core.cancel import CancelState
from jobtrack.core.escalation import ADVISORY, Reason
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer
from jobtrack_django import progress, track
from jobtrack_django.models import Delivery, Escalation, Operation
from jobtrack_django.progress import Tone, percentage, standing

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.fixture
def operation(site) -> Operation:
    return track("acme", job_id="job-1", operation_id="order-7", on_success="tests.django.handlers.remember")


def changed(operation: Operation, **values: object) -> Operation:
    Operation.objects.filter(pk=operation.pk).update(**values)
    return Operation.objects.get(pk=operation.pk)


def put(operation: Operation, state: str, **values: object) -> Operation:
    ended = {"wake_at": None, "lease_until": None, "wake_until": None} if state in TERMINAL else {}
    return changed(operation, state=state, **ended, **values)


def told(operation: Operation, reasons: tuple[Reason, ...] = (), **values: object) -> progress.Standing:
    """How it stands if the contract says so."""
    return standing(operation, told={**operation.outcome(), "needs_decision": list(reasons), **values})


def render(source: str, **context: object) -> str:
    return Template("{% load jobtrack %}" + source).render(Context(context))


# --- the words --------------------------------------------------------------------------------------


def test_every_state_has_words_and_a_symbol():
    assert set(progress.WORDS) == {*OperationState, progress.STORING, progress.HELD_UP, progress.NOT_HERE}
    assert set(progress.SYMBOLS) == set(Tone)
    assert set(progress.CANCELLING) == set(CancelState)


def test_a_state_of_a_newer_release_reads_as_one_under_way():
    assert progress.words_of("dreaming") is progress.WORDS["running"]


@pytest.mark.parametrize("state", [state for state in OperationState if state not in TERMINAL])
def test_what_has_not_ended_is_never_called_a_failure(operation, state):
    """R-FACT-2, R-SUB-8."""
    shown = standing(put(operation, state))
    assert (shown.name, shown.ended, shown.tone in (Tone.WAIT, Tone.CHECK)) == (state, False, True)
    assert "fail" not in f"{shown.state} {shown.sentence} {shown.hint}".lower()
    assert 1 <= shown.again_s <= progress.LONGEST_S


@pytest.mark.parametrize(
    ("state", "word", "tone"),
    [
        ("succeeded", "ready", Tone.GOOD),
        ("failed", "failed", Tone.BAD),
        ("cancelled", "cancelled", Tone.BAD),
        ("expired", "expired", Tone.BAD),
        ("abandoned", "given up", Tone.BAD),
    ],
)
def test_an_end_is_told_and_nothing_is_to_come(operation, state, word, tone):
    shown = standing(put(operation, state))
    assert (shown.state, shown.tone, shown.ended, shown.again_s, shown.next_look) == (word, tone, True, None, "")


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason not in ADVISORY])
def test_a_question_to_staff_reads_as_being_checked_whatever_it_is(site, operation, reason):
    """No reason, no detail, no name of staff reaches the person whose job it is."""
    row = put(operation, "escalated", wake_at=None)
    Escalation.objects.create(
        operation=row,
        reason=reason,
        detail="Staff only: <x>",
        opened_at=timezone.now(),
        blocking=True,
        open_blocking=True,
    )
    html = render("{% jobtrack_progress operation %}", operation=row)
    assert (standing(row).state, standing(row).tone, standing(row).again_s) == ("being checked", Tone.CHECK, 60)
    assert ("Somebody is looking into it" in html or "somebody is looking into it" in html) is True
    assert [word for word in (reason.value, "Staff only", "acme", "job-1") if word in html] == []


def test_an_attempt_whose_worker_vanished_reads_as_not_confirmed(operation):
    row = put(operation, "submitting")
    assert told(row, outcome="unknown").name == "unconfirmed"
    assert told(row, outcome="pending").name == "submitting"


@pytest.mark.parametrize("state", CancelState)
def test_a_cancellation_is_told_while_it_is_under_way_and_never_after_the_end(operation, state):
    """R-END-5."""
    row = changed(operation, cancel_state=state.value)
    assert standing(row).note == str(progress.CANCELLING[state])
    assert standing(put(row, "succeeded")).note == ""


# --- after a success --------------------------------------------------------------------------------


def succeed(site, operation: Operation) -> Operation:
    site.provider.script("job-1", answer(json={"status": "succeeded", "rows": 3}))
    site.make_due(operation.pk)
    poll(site.runtime, [operation.pk])
    return Operation.objects.get(pk=operation.pk)


def test_a_success_is_ready_once_its_follow_up_has_run(site, operation):
    row = succeed(site, operation)
    before = standing(row)
    Delivery.objects.update(due_at=timezone.now() + timedelta(seconds=7))
    soon = standing(row, now=timezone.now())
    Delivery.objects.update(delivered_at=timezone.now())
    after = standing(row)
    assert (before.name, before.ended, before.again_s) == ("storing", False, 2)
    assert (soon.name, 6 <= soon.again_s <= 9) == ("storing", True)
    assert (after.name, after.ended) == ("succeeded", True)


@pytest.mark.parametrize("reason", [Reason.RESULT_UNAVAILABLE, Reason.DELIVERY_FAILED])
def test_a_result_that_did_not_come_is_being_checked_until_a_person_gives_it_up(site, operation, reason):
    """R-END-4: the job stays a success."""
    row = succeed(site, operation)
    Delivery.objects.update(due_at=None)
    held_up, given_up = told(row, (reason,)), told(row)
    assert (held_up.name, held_up.state, held_up.again_s) == ("held_up", "being checked", 60)
    assert (given_up.name, given_up.ended, given_up.tone) == ("not_here", True, Tone.BAD)


# --- progress ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        *(("40 %", 40), ("40%", 40), (" 0 % ", 0), ("100%", 100), ("99.9 %", 99), ("3/7", 42), ("7 / 7", 100)),
        *(("101 %", None), ("40", None), ("", None), ("7/3", None), ("0/0", None), ("-1 %", None), ("٤٠ %", None)),
        *(("halfway", None), ("40 % of stage 2", None), ("9" * 13 + "/1", None)),
    ],
)
def test_a_percentage_is_shown_only_where_the_provider_tells_one(text, percent):
    assert percentage(text) == percent


def test_other_progress_is_shown_in_the_providers_words_bounded_and_escaped(operation):
    row = changed(operation, progress="<script>alert(1)</script>\x1b[2J" + "x" * 400)
    html = render("{% jobtrack_progress operation %}", operation=row)
    assert ("<progress" in html, "<script" in html, "&lt;script&gt;" in html, "x" * 200 in html) == (
        *(False, False, True, False),
    )


def test_a_percentage_is_a_progress_element_with_a_name(operation):
    html = render("{% jobtrack_progress operation %}", operation=changed(operation, progress="40 %"))
    assert '<progress max="100" value="40" aria-label="Progress"></progress> 40 %' in html


def test_of_a_job_that_has_ended_no_progress_is_told(operation):
    shown = standing(put(operation, "failed", progress="40 %", error="No column <b>\u202e" + "y" * 300))
    assert (shown.percent, shown.said, len(shown.error), "\u202e" in shown.error) == (None, "", 200, False)


def test_the_providers_error_is_shown_of_a_failure_alone_and_escaped(operation):
    rows = [put(operation, state, error="<img onerror=x>") for state in ("failed", "escalated")]
    failed, checked = (render("{% jobtrack_progress operation %}", operation=row) for row in rows)
    assert ("&lt;img onerror=x&gt;" in failed, "<img" in failed, "onerror" in checked) == (True, False, False)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (1, "in a few seconds"),
        (11, "in about a minute"),
        (90, "in about 2 minutes"),
        (1800, "in about 30 minutes"),
        (5400, "in about 2 hours"),
    ],
)
def test_the_next_look_is_told_coarsely(operation, seconds, words):
    assert told(operation, retry_after_s=seconds).next_look == words


@pytest.mark.parametrize(("seconds", "again"), [(1, 1), (59, 59), (3600, 60), (None, 60)])
def test_we_may_be_asked_again_before_the_provider_may(operation, seconds, again):
    assert told(operation, retry_after_s=seconds).again_s == again


# --- the tags ---------------------------------------------------------------------------------------


def test_the_box_carries_what_its_script_needs(operation):
    html = render("{% jobtrack_progress operation '/news/?fragment' '/file/' %}", operation=operation)
    assert 'data-jobtrack-progress data-state="running" data-url="/news/?fragment" data-again="' in html
    assert ("data-ended" in html, 'role="status"' in html, "/file/" in html, "Look again" in html) == (
        *(False, True, False, True),
    )


def test_the_box_links_to_the_result_once_it_is_ready(operation):
    row = put(operation, "succeeded")
    html = render(
        "{% jobtrack_progress operation url result %}", operation=row, url="/news/", result="/file/?a=1&b=<2>"
    )
    assert 'href="/file/?a=1&amp;b=&lt;2&gt;"' in html
    assert ("data-ended" in html, "data-again" in html, "Look again" in html) == (True, False, False)


def test_the_word_for_lists_costs_no_query(operation):
    rows = [operation, put(operation, "escalated")]
    with CaptureQueriesContext(connection) as asked:
        html = render("{% for row in rows %}{% jobtrack_status row %}{% endfor %}", rows=rows)
    assert len(asked) == 0
    assert ("in progress" in html, "being checked" in html, 'data-jobtrack-state="escalated"' in html) == (
        *(True, True, True),
    )


def test_the_head_names_files_and_the_pause_for_browsers_without_a_script(operation):
    shown = standing(operation)
    html = render("{% jobtrack_progress_head standing %}", standing=shown)
    assert f'<noscript><meta http-equiv="refresh" content="{shown.again_s}"></noscript>' in html
    assert ("/static/jobtrack/progress.js" in html, "/static/jobtrack/progress.css" in html) == (True, True)
    ended = render("{% jobtrack_progress_head standing %}", standing=standing(put(operation, "failed")))
    assert ("noscript" in ended, "noscript" in render("{% jobtrack_progress_head %}")) == (False, False)


def test_a_site_may_override_the_box(operation, settings, tmp_path):
    (tmp_path / "jobtrack" / "progress").mkdir(parents=True)
    (tmp_path / "jobtrack" / "progress" / "box.html").write_text("ours: {{ standing.state }}")
    settings.TEMPLATES = [{**settings.TEMPLATES[0], "DIRS": [tmp_path]}]
    assert render("{% jobtrack_progress operation %}", operation=operation) == "ours: in progress"


# --- the page of the docs ---------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "progress.md").read_text(encoding="utf-8")


def test_every_tag_and_every_word_for_scripts_is_on_the_page():
    from jobtrack_django.templatetags.jobtrack import register

    names = {*register.tags, progress.STORING, progress.HELD_UP, progress.NOT_HERE, *OperationState}
    assert {name for name in names if f"`{name}`" not in PAGE and f"{{% {name} " not in PAGE} == set()


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_code_of_the_page_can_be_pasted(block):
    compile(block, "docs/progress.md", "exec")
