"""The pages in other languages: no page breaks, and nothing that people read stays English."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from jobtrack_django.models import Escalation
from jobtrack_django.testing import Rehearsal
from tests.django.admin_pages import PAUSED, RUNNING, SITE, asks, question_url

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

NOT_OURS = ("Select an option",)
"""A text of Django 6.1 that its own catalogues do not have yet."""

WHOLE = ["de", "es", "fr", "pt-br", "zh-hans"]
LANGUAGES = ["de", "es", "fr", "pt-br", "zh-hans"]


@pytest.fixture(autouse=True)
def site(settings):
    settings.JOBTRACK = SITE


@pytest.fixture
def boss(settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def asked(jobtrack: Rehearsal) -> Escalation:
    """A question after two looks, the second with a state that no table knows."""
    return asks(jobtrack, RUNNING, PAUSED, operation_id="op-1")


def texts(client: Client, url: str, language: str) -> set[str]:
    """What a page says, in pieces."""
    page = client.get(url, headers={"accept-language": language})
    assert page.status_code == 200
    assert page.headers["Content-Language"] == language
    main = page.content.decode().split('id="content"', 1)[1]
    main = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", main, flags=re.DOTALL)
    pieces = (" ".join(piece.split()) for piece in re.findall(r">([^<>]+)<", main))
    return {piece for piece in pieces if re.search(r"[A-Za-z]{3}", piece)}


@pytest.mark.parametrize("language", WHOLE)
def test_every_page_speaks_the_readers_language(jobtrack: Rehearsal, boss, language):
    """Nothing of our pages is the same as in English, but for names, numbers and what the provider said."""
    question = asked(jobtrack)
    pages = [
        "/admin/jobtrack/escalation/",
        question_url(question),
        f"{question_url(question).removesuffix('change/')}decide/look_again/",
        "/admin/jobtrack/operation/op-1/change/",
        "/admin/jobtrack/dashboard/",
    ]
    english = {url: texts(boss, url, "en") for url in pages}
    for url in pages:
        spoken = texts(boss, url, language)
        assert spoken, url
        same = {piece for piece in english[url] & spoken if len(piece.split()) >= 4}
        assert {piece for piece in same if not any(part in piece for part in NOT_OURS)} == set(), url


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_story_of_an_operation_can_be_told(jobtrack: Rehearsal, language):
    """No sentence of the catalogue breaks over its fields."""
    from jobtrack_django.narrative import history, story

    operation = asked(jobtrack).operation
    with translation.override(language):
        told = [sentence for line in story(history(operation)) for sentence in getattr(line, "sentences", ())]
    assert told
    assert all("%(" not in sentence for sentence in told)
