"""Sentences that are stored in English: every one is told in the reader's language, and in English none changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import translation
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtrack.core import sentences_answer
from jobtrack.core.answer import shown
from jobtrack.core.observation import Kind
from jobtrack.core.place import Gap
from jobtrack.core.reply import Trouble
from jobtrack.core.sentences import OURS
from jobtrack.core.text import clean
from jobtrack.errors import OptionNotAllowed
from jobtrack_django import events, facts, sentences, words
from jobtrack_django.admin import evidence, stakes
from jobtrack_django.admin.bulk import why
from jobtrack_django.admin.deciding import _about_the_job
from jobtrack_django.admin.forms import AttachForm
from jobtrack_django.models import AuditEntry, Delivery, Escalation, JobResult, Notice, Operation
from jobtrack_django.narrative import tell
from jobtrack_django.testing import Rehearsal
from tests.core.test_sentences import HOSTILE, VALUES
from tests.django.admin_pages import PAUSED, RUNNING, SITE, asks, decide_url, question_url, read

pytestmark = pytest.mark.vendor("sqlite")  # texts are the same on every database

NOON = datetime(2030, 1, 7, 12, tzinfo=UTC)
IN_A_ROW = "%(before)s %(after)s"
UNKNOWN = "the state 'paused' is not in the table"
CUT = UNKNOWN.replace("in the table", "in the ta…")


def without_marks(text):
    return text.replace("«", "").replace("»", "")


@pytest.fixture
def marked(monkeypatch):
    """Every sentence of ours between brackets, instead of a language."""
    monkeypatch.setattr(sentences, "gettext", lambda text: text if text == IN_A_ROW else f"«{text}»")


TOLD = [
    (UNKNOWN, f"«{UNKNOWN}»"),
    ("HTTP 404: the provider does not know the job", "«HTTP 404: the provider does not know the job»"),
    # one inside another
    (
        "2 requests failed; the last one: GET https://x.example/y: no credential is configured for account 'a' of 'b'",
        (
            "«2 requests failed; the last one: «GET https://x.example/y: "
            "«no credential is configured for account 'a' of 'b'»»»"
        ),
    ),
    (
        "HTTP 200 is listed as accepted, but there is nothing at /id (the job is x1)",
        "««HTTP 200 is listed as accepted», but ««there is nothing at /id» (the job is x1)»»",
    ),
    (
        "HTTP 418; the table does not say what it proves",
        "««HTTP 418»; the table does not say what it proves»",
    ),
    # several in a row
    (
        "HTTP 404: the provider does not know the job The provider keeps a result for 7d after the job has ended.",
        "«HTTP 404: the provider does not know the job» «The provider keeps a result for 7d after the job has ended.»",
    ),
    (
        (
            "Nobody knows whether the provider accepted it: The worker ended before an answer was written. "
            "3 look-ups did not settle it: the body is empty. Its idempotency key holds until 2030-01-07 12:00:00 UTC."
        ),
        (
            "«Nobody knows whether the provider accepted it: «The worker ended before an answer was written.».» "
            "«3 look-ups did not settle it: «the body is empty».» "
            "«Its idempotency key holds until 2030-01-07 12:00:00 UTC.»"
        ),
    ),
    (
        "The job succeeded, but its result cannot be fetched. The answer was HTTP 500. The tries granted are used up.",
        (
            "«The job succeeded, but its result cannot be fetched.» «The answer was HTTP 500.» "
            "«The tries granted are used up.»"
        ),
    ),
    (
        "HTTP 404: the provider does not know the job. The provider keeps a result for 7d after the job has ended.",
        (
            "««HTTP 404: the provider does not know the job».» "
            "«The provider keeps a result for 7d after the job has ended.»"
        ),
    ),
    # somebody else's words before ours
    (
        "Quota exceeded. The provider keeps the job until 2030-01-07 12:00:00 UTC.",
        "Quota exceeded. «The provider keeps the job until 2030-01-07 12:00:00 UTC.»",
    ),
    (
        "The follow-up on_end failed 8 times; the last error: KeyError: 'rows'",
        "«The follow-up on_end failed 8 times; the last error: KeyError: 'rows'»",
    ),
    # words of ours where a value would be
    ("no list at the root", "«no list at «the root»»"),
    ("no list at /items", "«no list at /items»"),
    (
        "All 40 status requests are used; the provider's last word is: nothing yet.",
        "«All 40 status requests are used; the provider's last word is: «nothing yet».»",
    ),
    (
        "All 40 status requests are used; the provider's last word is: negative.",
        "«All 40 status requests are used; the provider's last word is: negative.»",
    ),
    (
        "The provider has several jobs of this operation: a, one without an id.",
        "«The provider has several jobs of this operation: a, «one without an id».»",
    ),
    (
        "The provider asked to wait 7 days, 0:00:00; the account is held for 1:00:00 at most.",
        "«The provider asked to wait «7 days, 0:00:00»; the account is held for 1:00:00 at most.»",
    ),
    # none of ours
    ("", ""),
    ("disk full", "disk full"),
    ("Disk is empty", "Disk is empty"),
    ("You tried, but it failed", "You tried, but it failed"),
    ("GET lost: come back later", "GET lost: come back later"),
    ("{0} {x} %(y)s %s", "{0} {x} %(y)s %s"),
    (CUT, CUT),
    (f"2 requests failed; the last one: {CUT}", f"2 requests failed; the last one: {CUT}"),
]


@pytest.mark.parametrize(("stored", "shown"), TOLD, ids=lambda text: text[:40])
def test_a_stored_text_is_told(marked, stored, shown):
    assert sentences.told(stored) == shown


def test_a_clause_has_no_full_stop(marked, monkeypatch):
    assert sentences.clause("The worker ended before an answer was written.") == (
        "«The worker ended before an answer was written.»"
    )
    assert sentences.clause("Quota exceeded.") == "Quota exceeded"
    assert sentences.clause("") == ""
    monkeypatch.setattr(sentences, "gettext", {"The worker ended before an answer was written.": "没有答复。"}.get)
    assert sentences.clause("The worker ended before an answer was written.") == "没有答复"


def test_only_jobtracks_own_reasons_are_told(marked):
    because = "Nobody acted for 7 days, 0:00:00: what the site set for this."
    assert sentences.reason("jobtrack", because) == "«Nobody acted for «7 days, 0:00:00»: what the site set for this.»"
    assert sentences.reason("mona", because) == because


# --- any text ---------------------------------------------------------------------------------------

PIECES = st.one_of(
    st.text(st.characters(codec=None, categories=None), max_size=20),
    st.sampled_from([sentence.template for sentence in sentences.SENTENCES]),
    st.sampled_from([stored for stored, _ in TOLD]),
    st.sampled_from([" ", ". ", ": ", ", but ", "; ", "…", "。", ".", "{", "}", "%s"]),
)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_in_english_every_text_is_as_it_is_stored(text):
    with translation.override("en"):
        assert sentences.told(text) == text
        assert sentences.clause(text) == text.rstrip(".")


@pytest.mark.parametrize("sentence", sentences.SENTENCES, ids=repr)
@settings(max_examples=5)
@given(st.data())
def test_every_sentence_is_told_with_its_values(sentence, data):
    """In a language that is not English, whatever stands in its fields."""
    values = {
        name: "the body is empty" if name in OURS else data.draw(VALUES.get(name, st.text("abc {}()%'…", min_size=1)))
        for name in sentence.fields
    }
    stored = sentence.of(**values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sentences, "gettext", lambda template: f"«{template.upper() if not sentence.fields else template}»"
        )
        told = sentences.told(stored)
    if stored.endswith("…"):
        assert told == stored
    else:
        assert told.startswith("«")
        assert told.endswith("»")
        assert all(without_marks(str(value)) in without_marks(told) for value in values.values())


@pytest.mark.parametrize("language", ["de", "es", "fr", "pt-br", "zh-hans"])
@given(st.lists(PIECES, max_size=8).map("".join))
def test_no_text_can_break_a_page(language, text):
    with translation.override(language):
        sentences.told(text)
        sentences.clause(text)


@pytest.mark.parametrize("text", [*HOSTILE, "A b: " * 400, ". The job says x" * 130], ids=lambda text: text[:20])
def test_hostile_texts_are_read_to_their_end(text):
    """Reading that tries every way to cut a text would not come back."""
    with translation.override("en"):
        assert sentences.told(text[:1999]) == text[:1999]


NAMED = "A late answer named the job."


@pytest.mark.parametrize(
    "word",
    [
        f"x {NAMED}",
        f"x {NAMED} {NAMED}",
        "x There was no answer.",
        "x' is not in the table; the nearest declared one is 'y",
    ],
)
@pytest.mark.parametrize("language", ["de", "es", "fr", "pt-br", "zh-hans"])
def test_a_provider_s_word_stays_its_own_also_if_it_speaks_as_we_do(language, word):
    said = sentences_answer.UNKNOWN_STATE.of(shown=shown(word))
    with translation.override(language):
        told = sentences.told(said)
        assert shown(word) in told
        assert told != said


@pytest.mark.parametrize(
    "text", ["ValueError: row 7 The result is empty.x", f"Quota exceeded. {NAMED}x", f"a {NAMED}x {NAMED}y"]
)
@pytest.mark.parametrize("language", ["de", "es", "fr", "pt-br", "zh-hans"])
def test_what_is_not_read_stays_as_it_is_stored(language, text):
    with translation.override(language):
        assert sentences.told(text) == text


def test_in_chinese_only_our_own_sentences_stand_without_a_space():
    with translation.override("zh-hans"):
        assert sentences.told(f"Quota exceeded. {NAMED}").startswith("Quota exceeded. ")
        assert " " not in sentences.told(f"{NAMED} {NAMED}")


# --- words ------------------------------------------------------------------------------------------


def test_every_word_is_known_and_in_english_as_it_is_stored():
    """Else an English page would not say what is stored."""
    assert set(words.TROUBLES) == set(Trouble)
    assert set(words.KINDS) == set(Kind)
    assert set(words.GAPS) == set(Gap)
    with translation.override("en"):
        for known in (words.TROUBLES, words.KINDS, words.GAPS):
            assert {word: str(text) for word, text in known.items()} == {word: word.value for word in known}
        ended = VALUES["state"].elements
        assert {state: str(words.STATES[state]) for state in ended} == {state: state.value for state in ended}


def test_words_in_a_sentence_are_told():
    with translation.override("de"):
        told = sentences.told("The operation has ended: succeeded.")
        assert str(words.STATES["succeeded"]) in told
        assert "succeeded" not in told


# --- pages ------------------------------------------------------------------------------------------


def on_a_page(test):
    """A test of one place of the admin where such a text stands."""
    return pytest.mark.database(pytest.mark.django_db(transaction=True)(test))


@pytest.fixture
def boss(settings, db):
    settings.JOBTRACK = SITE
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


@pytest.fixture
def question(boss, jobtrack: Rehearsal) -> Escalation:
    return asks(jobtrack, RUNNING, PAUSED, operation_id="op-1")


@on_a_page
def test_the_evidence_of_a_question(boss, question, marked):
    shown = f"«{question.detail}»"
    assert question.detail.startswith(UNKNOWN)
    assert shown in read(boss.get(question_url(question))).text
    assert shown in read(boss.get(decide_url(question, "look_again"))).text
    assert shown in read(boss.get("/admin/jobtrack/escalation/")).text


@on_a_page
def test_a_long_one_is_folded_in_the_readers_language(boss, question, marked):
    place = "/deep" * 60
    Escalation.objects.update(detail=f"no list at {place}")
    page = read(boss.get(question_url(question))).text
    assert f"«no list at {place}»" in page
    assert clean(f"«no list at {place}»", evidence._SHORT) in page


@on_a_page
def test_what_a_machine_gave_as_its_reason(boss, question, marked):
    because = "Nobody acted for 1:00:00: what the site set for this."
    decided = {"decided_at": NOON, "option": "close", "open_blocking": None, "open_advisory": None}
    Escalation.objects.update(**decided, actor="jobtrack", actor_reason=because)
    assert f"“«{because}»”" in read(boss.get(question_url(question))).text


@on_a_page
def test_the_story_of_an_operation(boss, question, marked):
    page = read(boss.get("/admin/jobtrack/operation/op-1/change/")).text
    assert f"«{question.detail}»." in page


@on_a_page
def test_a_doubt(boss, question, marked):
    doubt = "The worker ended before an answer was written."
    Operation.objects.update(doubt=doubt, accepted_at=None, fingerprint="f" * 64, first_sent_at=None)
    page = read(boss.get("/admin/jobtrack/operation/op-1/change/")).text
    assert f"«{doubt}»" in page
    assert f"(«{doubt}»)" in page


@on_a_page
def test_results_follow_ups_and_notices(boss, question, marked):
    JobResult.objects.create(operation_id="op-1", state="wanted", detail="The file is empty.")
    lost = "the handler never came back; its process ended or hung"
    Delivery.objects.create(operation_id="op-1", event="on_end", handler="site.end", attempts=1, last_error=lost)
    refused = "the mail server refused it (550)"
    Notice.objects.create(escalation=question, notifier="mail", turn=1, outcome=Notice.FAILED, last_error=refused)
    operation = read(boss.get("/admin/jobtrack/operation/op-1/change/")).text
    assert "«The file is empty.»" in operation
    assert f"“«{lost}»”" in operation
    assert "«The file is empty.»" in read(boss.get(reverse("admin:jobtrack_jobresult_changelist"))).text
    assert f"«{refused}»" in read(boss.get(reverse("admin:jobtrack_notice_changelist"))).text
    assert f"«{refused}»" in read(boss.get(question_url(question))).text


def test_why_one_of_many_was_not_decided(marked):
    assert why("There is no key to seal with.") == "«There is no key to seal with.»"
    assert why("KeyError") == "KeyError"


# --- the story --------------------------------------------------------------------------------------


def entry(**body):
    told = json.dumps({"at": NOON.isoformat(), **body})
    return AuditEntry(operation_id="op", seq=1, hash="f" * 64, at=NOON, body=told)


def test_an_entry_is_told_whole(marked):
    seen = {"kind": "invalid_response", "http": 200, "detail": "the body is empty"}
    seen["guidance"] = {"raw": "-1", "problem": "negative"}
    told = tell(entry(event="poll", observation=seen)).sentences
    assert "«the body is empty»." in told
    assert "Its wish when to ask again is not valid («negative») and was not followed." in told


@pytest.mark.parametrize(
    ("event", "body", "shown"),
    [
        ("attempt", {"doubt": "the body is empty"}, "An attempt before it is still in doubt: «the body is empty»."),
        ("cancel_unsent", {"detail": "The account is held back."}, "It could not be sent: «The account is held back.»"),
        ("fetch", {"outcome": "again", "detail": "The file is empty."}, "«The file is empty.»"),
        (
            "decision",
            {"actor": "jobtrack", "option": "close", "why": "A late answer named the job."},
            "jobtrack chose “Close”: “«A late answer named the job.»”",
        ),
        (
            "decision",
            {"actor": "mona", "option": "close", "why": "A late answer named the job."},
            "mona chose “Close”: “A late answer named the job.”",
        ),
    ],
)
def test_what_an_event_says_is_told(marked, event, body, shown):
    assert shown in list(events.says(event, body))


def test_a_doubt_in_the_facts_is_told(marked):
    told = facts.unaccepted("unconfirmed", sent=True, doubt="The total.", seen=False, evidence={})
    assert "(The total)" in told
    told = facts.unaccepted("unconfirmed", sent=True, doubt="the body is empty", seen=False, evidence={})
    assert "(«the body is empty»)" in told


def test_what_an_option_risks_is_told(marked):
    doubtful = Operation(doubt="There was no usable answer.")
    assert stakes.doubt(doubtful) == "Nobody knows whether the provider has the job («There was no usable answer.»)."


def test_a_job_that_cannot_be_named_is_refused_in_the_readers_language(marked):
    error = OptionNotAllowed("This job cannot be followed: the job id may not be '..'.", job_id="..")
    form = AttachForm(operation_id="op-1")
    told = "«This job cannot be followed: «the job id may not be '..'».»"
    assert _about_the_job(error, form, Escalation()) == told


def test_limits_and_troubles_are_named_in_the_readers_language(monkeypatch):
    monkeypatch.setattr(words, "COUNTERS", {"status_requests": "Anfragen"})
    monkeypatch.setattr(words, "TROUBLES", {"read_timeout": "keine Antwort"})
    raised = entry(event="decision", before={"spent": {"status_requests": [3, 3]}}, spent={"status_requests": [3, 7]})
    assert "Changed: Anfragen 3 of 3 → 3 of 7." in tell(raised).sentences
    lost = entry(event="poll", observation={"kind": "transport_failure", "trouble": "read_timeout"})
    assert "There was no answer (keine Antwort)." in tell(lost).sentences
    fetched = {"outcome": "again", "heard": ["200", "read_timeout"]}
    assert "Answers: 200, keine Antwort." in list(events.says("fetch", fetched))
