"""The pages in other languages: no page breaks, and nothing that people read stays English."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import translation

import jobtrack_django
from jobtrack_django import sentences, words
from jobtrack_django.admin.sheet import duration
from jobtrack_django.models import (
    DecisionBatch,
    Delivery,
    Escalation,
    JobResult,
    Notice,
    Operation,
    WebhookReceipt,
)
from jobtrack_django.progress import WORDS
from jobtrack_django.testing import Rehearsal
from tests.django.admin_pages import DENIED, PAUSED, RUNNING, SITE, asks, decide_url, person, question_url
from tests.django.bulk_pages import LIST, ask_many, choose, hidden

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.vendor("sqlite"),  # texts are the same on every database
]

TOOL = Path(__file__).parents[2] / "scripts" / "messages"
LANGUAGES = ["de", "es", "fr", "pt-br", "zh-hans"]

NAMES = {"acme-export", "ann", "boss", "default", "desk", "disk", "full", "jobtrack", "paused", "running", "UTC"}
"""What is the same in every language, besides ids and numbers: names, and what the provider said."""

NOT_OURS = ("Select an option", "Run", "Search", "Add link", "Change or view list link", "Model name")
"""Texts of Django that some of its own catalogues do not have yet."""


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = {**SITE, "FOUR_EYES": ["close"]}
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]


@pytest.fixture
def boss(site):
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


@pytest.fixture
def made_up(settings, tmp_path) -> str:
    """A language that has every text of ours, with accents: what has none does not come from a catalogue.

    Texts of Django are German in it, so that they are not taken for ours.
    """
    from babel.messages.catalog import Catalog
    from babel.messages.mofile import write_mo

    catalog = Catalog(locale="de")
    for message in runpy.run_path(str(TOOL), run_name="messages")["template"]():
        if message.id:
            texts = message.id if isinstance(message.id, tuple) else (message.id,)
            spoken = tuple(map(accented, texts))
            string = spoken if len(spoken) > 1 else spoken[0]
            catalog.add(message.id, string=string, context=message.context)
    place = tmp_path / "de" / "LC_MESSAGES"
    place.mkdir(parents=True)
    with (place / "django.mo").open("wb") as file:
        write_mo(file, catalog)
    settings.LOCALE_PATHS = [str(tmp_path)]
    return "de"


def accented(text: str) -> str:
    """A text with accents on every vowel and with other quotation marks; fields and tags stay as they are."""
    parts = re.split(r"(%\(\w+\)[sd]|%[sd]|%%|\{\w*\}|<[^<>]+>|&\w+;)", text)
    marks = str.maketrans("aeiouyAEIOUY“”", "áéíóúýÁÉÍÓÚÝ«»")
    return "".join(part if index % 2 else part.translate(marks) for index, part in enumerate(parts))


# --- pages ------------------------------------------------------------------------------------------


def asked(jobtrack: Rehearsal) -> Escalation:
    """A question after two looks, the second with a state that no table knows."""
    return asks(jobtrack, RUNNING, PAUSED, operation_id="op-1")


def many_things(jobtrack: Rehearsal) -> Escalation:
    """A question about an operation with something to tell in every part of its page."""
    question = asked(jobtrack)
    now = jobtrack.clock()
    Operation.objects.filter(pk="op-1").update(
        doubt="There was no usable answer.",
        fingerprint="1" * 64,
        first_sent_at=now,
        last_sent_at=now,
        submit_by=now,
        recover_until=now,
        needed_by=now + timedelta(days=1),
        cancel_state="unknown",
        error="disk full",
        progress="40 %",
        noticed_at=now,
    )
    for turn, (outcome, rest) in enumerate(
        {
            "sent": {"sent_at": now},
            "failed": {"last_error": "the mail server refused it (550)"},
            "dropped": {},
            "": {"due_at": now, "attempts": 1, "last_error": "the mail server refused it (550)"},
        }.items(),
        start=1,
    ):
        Notice.objects.create(escalation=question, notifier="desk", turn=turn, outcome=outcome, **rest)
    return question


def receipts_of(jobtrack: Rehearsal) -> None:
    """Results and webhooks, with everything and with nothing."""
    now = jobtrack.clock()
    files = [
        {"name": "report.csv", "path": "p", "size": 1, "sha256": "2" * 64, "complete": complete}
        for complete in (True, False)
    ]
    result = {"state": "wanted", "detail": "The file is empty.", "files": files, "fetched_at": now}
    JobResult.objects.create(operation_id="op-1", **result)
    JobResult.objects.create(operation_id="op-2", state="unavailable")
    WebhookReceipt.objects.create(provider="acme-export", account="default", notice_id="n-0", received_at=now)
    WebhookReceipt.objects.create(
        provider="acme-export", account="default", notice_id="n-1", job_id="exp_1", operation_id="op-1", received_at=now
    )


def follow_ups_of(question: Escalation, jobtrack: Rehearsal) -> None:
    """One that failed, one that was given up, one that is done, and one of our own."""
    now = jobtrack.clock()
    lost = "the handler never came back; its process ended or hung"
    for event, columns in {
        "on_success": {"due_at": now, "attempts": 2, "last_error": lost},
        "on_failure": {"attempts": 8, "last_error": lost},
        "on_end": {"attempts": 1, "delivered_at": now},
        "cancel": {"due_at": now},
    }.items():
        handler = "" if event == "cancel" else "site.end"
        Delivery.objects.create(
            id=f"{question.operation_id}:{event}",
            operation_id=question.operation_id,
            event=event,
            handler=handler,
            **columns,
        )


def every_page(jobtrack: Rehearsal, client: Client) -> list[str]:
    """Addresses of pages of each kind, and the operations, questions and decisions that they show."""
    answered = asks(jobtrack, PAUSED, job_id="exp_3", operation_id="op-3")
    decide(client, answered, "look_again")
    batch = decide_many(jobtrack, client)
    question = many_things(jobtrack)
    denied = asks(jobtrack, DENIED, job_id="exp_2", operation_id="op-2")  # the account is held back from here on
    Operation.objects.filter(pk="op-2").update(deadline=jobtrack.clock() - timedelta(days=1))
    decide(client, denied, "close")
    receipts_of(jobtrack)
    follow_ups_of(question, jobtrack)
    place = "admin:jobtrack_{}".format
    kinds = ("operation", "escalation", "decisionbatch", "notice", "jobresult", "webhookreceipt")
    notices = Notice.objects.values_list("pk", flat=True)
    return [
        *(reverse(place(f"{kind}_changelist")) for kind in kinds),
        f"{LIST}?decided=yes",
        f"{LIST}?q=nothing",
        *(question_url(each) for each in (question, denied, answered)),
        *(decide_url(question, option) for option in ("look_again", "cancel", "extend", "close")),
        decide_url(denied, "close"),
        decide_url(denied, "access_repaired"),
        *(reverse(place("operation_change"), args=[f"op-{number}"]) for number in (1, 2, 3)),
        *(reverse(place("notice_change"), args=[pk]) for pk in notices),
        *(reverse(place("jobresult_change"), args=[pk]) for pk in ("op-1", "op-2")),
        *(reverse(place("webhookreceipt_change"), args=[row.pk]) for row in WebhookReceipt.objects.all()),
        reverse(place("decisionbatch_change"), args=[batch.pk]),
        reverse(place("dashboard")),
        reverse(place("escalation_history"), args=[question.pk]),
        reverse("admin:app_list", args=["jobtrack"]),
    ]


def decide(client: Client, question: Escalation, option: str, **headers: str) -> str:
    """The page after the decision."""
    data = {"version": question.version, "reason": "x"}
    page = client.post(decide_url(question, option), data, follow=True, headers=headers)
    assert page.status_code == 200
    return page.content.decode()


def decide_many(jobtrack: Rehearsal, client: Client) -> DecisionBatch:
    """Some are decided, and one is not."""
    questions = ask_many(jobtrack, 2, start=4)
    page = choose(client, questions)
    Escalation.objects.filter(pk=questions[0].pk).update(version=99)
    sent = {"chosen": carried(page), "reason": "x"}
    assert client.post(reverse("admin:jobtrack_escalation_bulk", args=["look_again"]), sent).status_code == 302
    return DecisionBatch.objects.get()


def carried(response) -> str:
    from tests.django.admin_pages import read

    return hidden(read(response))


def texts(html: str) -> set[str]:
    """What a page says, in pieces; also to those who cannot see it."""
    body = re.sub(r"<(script|style)\b.*?</\1>|<!--.*?-->", " ", html.split("<title>", 1)[1], flags=re.DOTALL)
    said = re.findall(r'(?:aria-label|title|placeholder|alt)="([^"]+)"', body)
    said += re.findall(r'<input type="submit"[^>]* value="([^"]+)"', body)
    said += re.findall(r">([^<>]+)<", f">{body}")
    return {" ".join(piece.split()) for piece in said}


def english_words(piece: str) -> list[str]:
    """Words that are no names, ids or numbers."""
    bare = (word.strip("“”«».,:;!?()/·–…'") for word in piece.split())
    return [word for word in bare if word not in NAMES and re.fullmatch(r"[A-Za-z][A-Za-z'’-]+", word)]


def unspoken(english: Iterable[str], spoken: Iterable[str], *, least: int = 1) -> set[str]:
    """Pieces of so many words that are the same in both. A word by itself may be the same in two real languages."""
    same = {piece for piece in set(english) & set(spoken) if len(english_words(piece)) >= least}
    return {piece for piece in same if piece.strip(" -–") not in NOT_OURS}


def get(client: Client, url: str, language: str) -> set[str]:
    page = client.get(url, headers={"accept-language": language})
    assert page.status_code == 200, url
    assert page.headers["Content-Language"] == language
    return texts(page.content.decode())


def test_the_tests_own_eyes_see_what_is_english():
    assert english_words("Look again, op-1 (12 UTC)") == ["Look", "again"]
    english = {"Message id:", "boss", "State", "op-1 of report"}
    assert unspoken(english, english - {"op-1 of report"}) == {"Message id:", "State"}
    assert unspoken(english, english, least=2) == {"Message id:", "op-1 of report"}
    page = '<title>A b</title><p title="C d">E <b>f g</b></p><input type="submit" value="H i">'
    assert texts(page) >= {"A b", "C d", "E", "f g", "H i"}


def test_every_text_of_every_page_comes_from_a_catalogue(jobtrack: Rehearsal, boss, made_up):
    pages = every_page(jobtrack, boss)
    english = {url: get(boss, url, "en") for url in pages}
    spoken = {url: get(boss, url, made_up) for url in pages}
    assert {piece for pieces in spoken.values() for piece in pieces if "”" in piece} == set()  # not even the marks
    found = {url: unspoken(english[url], spoken[url]) for url in pages}
    assert {url: pieces for url, pieces in found.items() if pieces} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_page_speaks_the_readers_language(jobtrack: Rehearsal, boss, language):
    """Nothing of our pages is the same as in English, but for names, numbers and what the provider said."""
    pages = every_page(jobtrack, boss)
    english = {url: get(boss, url, "en") for url in pages}
    found = {url: unspoken(english[url], get(boss, url, language), least=2) for url in pages}
    assert {url: pieces for url, pieces in found.items() if pieces} == {}


def test_no_label_stands_before_an_instant_by_itself():
    """In other languages it may have to stand behind it: the instant is a field of the text."""
    templates = Path(jobtrack_django.__file__).parent.joinpath("templates").rglob("*.html")
    glued = re.compile(r'{% translate "[^"]*[^:"]" %}\s*{{ [\w.]+\.(?:html|exact) }}')
    assert [found for path in templates for found in glued.findall(path.read_text())] == []


def test_what_is_said_after_a_decision_comes_from_a_catalogue(jobtrack: Rehearsal, boss, made_up):
    one, other, third = (asks(jobtrack, PAUSED, job_id=f"exp_{n}", operation_id=f"op-{n}") for n in (1, 2, 3))
    english = texts(decide(boss, one, "look_again", accept_language="en"))
    english |= texts(decide(boss, other, "close", accept_language="en"))
    assert "Decided: “Look again now” for unknown state (operation op-1)." in english
    spoken = texts(decide(boss, third, "look_again", accept_language=made_up))
    four = asks(jobtrack, PAUSED, job_id="exp_4", operation_id="op-4")
    spoken |= texts(decide(boss, four, "close", accept_language=made_up))
    assert unspoken(english, spoken) == set()


def test_the_preview_of_many_comes_from_a_catalogue(jobtrack: Rehearsal, boss, made_up):
    questions = [*ask_many(jobtrack, 2), *ask_many(jobtrack, 1, "failed", start=3)]
    previews = []
    for language in ("en", made_up):
        boss.defaults["HTTP_ACCEPT_LANGUAGE"] = language
        previews.append(texts(choose(boss, questions).content.decode()))
    assert unspoken(*previews) == set()


# --- what is kept -----------------------------------------------------------------------------------


def test_djangos_history_is_written_in_the_language_of_the_site(jobtrack: Rehearsal, boss, made_up):
    """Its entries are texts: who reads them may speak another language than who acted."""
    question = asked(jobtrack)
    boss.defaults["HTTP_ACCEPT_LANGUAGE"] = made_up
    decide(boss, question, "look_again", accept_language=made_up)
    decide_many(jobtrack, boss)
    proposed = asks(jobtrack, DENIED, job_id="exp_2", operation_id="op-2")
    decide(boss, proposed, "close", accept_language=made_up)
    boss.get(reverse("admin:jobtrack_operation_bundle", args=["op-1"]))
    with translation.override("en"):
        entries = [(entry.object_repr, entry.get_change_message()) for entry in LogEntry.objects.order_by("pk")]
    assert entries == [
        ("unknown state (operation op-1)", "Decided: Look again now."),
        ("unknown state (operation op-5)", "Decided: Look again now."),
        ("access denied (operation op-2)", "Proposed: Close."),
        ("op-1", "Support bundle downloaded."),
    ]


def test_rows_name_themselves_in_the_readers_language(made_up):
    rows = [
        Escalation(reason="deadline_exceeded", operation_id="op-1"),
        Notice(notifier="desk", turn=1, escalation_id=7),
        Notice(notifier="desk", turn=2, escalation_id=7),
        DecisionBatch(option="close", pk=7),
        JobResult(operation_id="op-1"),
    ]
    with translation.override(made_up):
        assert [str(row) for row in rows] == [
            "déádlíné pásséd (ópérátíón op-1)",
            "Nótícé tó desk ábóút qúéstíón 7",
            "Rémíndér tó desk ábóút qúéstíón 7",
            "Clósé, búlk décísíón 7",
            "Résúlt óf ópérátíón op-1",
        ]


# --- words ------------------------------------------------------------------------------------------


def test_the_state_of_an_operation_and_the_word_for_its_owner_are_two_messages():
    """The word "ready" is said before anything was sent, and when the result is there."""
    messages = {
        (message.id, message.context) for message in runpy.run_path(str(TOOL), run_name="messages")["template"]()
    }
    for state, label in words.STATES.items():
        assert (str(label), "state of an operation") in messages, state
    assert {(str(each.state), None) for each in WORDS.values()} <= messages


def test_less_than_a_minute_is_told_in_words(made_up):
    with translation.override(made_up):
        assert duration(timedelta(seconds=30)) == "30 sécónds"
    assert [duration(timedelta(seconds=each)) for each in (1, 0.5, 90)] == ["1 second", "0.5 second", "1\xa0minute"]


def test_follow_ups_have_names_and_others_stay_as_they_are_stored(made_up):
    with translation.override(made_up):
        assert words.follow_up_label("on_success") == "áftér súccéss"
        assert words.follow_up_label("of_a_newer_release") == "of_a_newer_release"


def test_joined_sentences_are_read_back(made_up):
    """Of this release, and of earlier ones, which left out a full stop."""
    seen, kept = (
        "HTTP 404: the provider does not know the job",
        "The provider keeps a result for 7d after the job has ended.",
    )
    with translation.override(made_up):
        assert sentences.told(f"{seen}. {kept}") == f"{accented(seen)}. {sentences.told(kept)}"
        assert sentences.told(f"{seen} {kept}") == f"{accented(seen)} {sentences.told(kept)}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_story_of_an_operation_can_be_told(jobtrack: Rehearsal, language):
    """No sentence of the catalogue breaks over its fields."""
    from jobtrack_django.narrative import history, story

    operation = asked(jobtrack).operation
    with translation.override(language):
        told = [sentence for line in story(history(operation)) for sentence in getattr(line, "sentences", ())]
    assert told
    assert all("%(" not in sentence for sentence in told)


def test_a_page_that_may_not_be_seen_says_so_in_the_readers_language(jobtrack: Rehearsal, made_up):
    client, question = Client(), asked(jobtrack)
    client.force_login(person("ann", "view_operation"))
    pages = [client.get(question_url(question), headers={"accept-language": each}) for each in ("en", made_up)]
    assert [page.status_code for page in pages] == [403, 403]
    assert unspoken(*(texts(page.content.decode()) for page in pages)) == set()
