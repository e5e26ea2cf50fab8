"""The progress page and its box over HTTP: for owners, with ETag and Retry-After, and asking causes nothing."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, reverse

from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer
from jobtrack_django import track
from jobtrack_django.models import AuditEntry, Operation
from jobtrack_django.views import OutcomeView
from jobtrack_django.views_progress import ProgressView

pytestmark = [pytest.mark.database, pytest.mark.django_db]


class Owned(OutcomeView):
    """Each user sees what is theirs."""

    def may_see(self, request, operation):
        return operation.subject == request.user

    def result_url(self, operation):
        return f"/results/{operation.pk}/"


class OwnedPage(ProgressView, Owned):
    def get_context_data(self, **context):
        return super().get_context_data(**context, more="x")


class Numbered(ProgressView):
    def get_operation(self, *, number):
        return self.find(f"order/{number}")


urlpatterns = [
    path("jobs/", include("jobtrack_django.urls")),
    path("owned/<path:operation_id>/", OwnedPage.as_view()),
    path("numbered/<int:number>/", Numbered.as_view()),
]


@pytest.fixture(autouse=True)
def _urls(settings) -> None:
    settings.ROOT_URLCONF = __name__
    settings.LOGIN_URL = "/login/"


@pytest.fixture
def operation(site) -> Operation:
    return track("acme", job_id="job-1", operation_id="order/7")


@pytest.fixture
def viewer(django_user_model):
    user = django_user_model.objects.create(username="ada")
    user.user_permissions.add(Permission.objects.get(codename="view_operation"))
    return user


@pytest.fixture
def client(viewer) -> Client:
    client = Client()
    client.force_login(viewer)
    return client


@pytest.fixture
def url() -> str:
    return reverse("jobtrack:progress", args=["order/7"])


def look(site, operation, **told: object) -> None:
    site.provider.script("job-1", answer(json=told))
    site.make_due(operation.pk)
    poll(site.runtime, [operation.pk])


def test_the_page_holds_the_box_and_the_script_is_given_the_box_alone(client, operation, url):
    page = client.get(url)
    alone = [client.get(f"{url}?fragment"), client.get(url, headers={"Jobtrack-Fragment": "1"})]
    assert page.content.startswith(b"<!doctype html>")
    assert [each.content.startswith(b'<section class="jobtrack-progress') for each in alone] == [True, True]
    assert alone[0].content in page.content
    assert f'data-url="{url}?fragment"' in page.text if hasattr(page, "text") else True
    for response in (page, *alone):
        assert int(response["Retry-After"]) >= 1
        assert response["Cache-Control"] == "private, no-cache"
        assert {"Cookie", "Accept-Language", "Jobtrack-Fragment"} <= set(response["Vary"].split(", "))


def test_the_pause_without_javascript_is_the_one_of_retry_after(client, operation, url):
    """R-CALL-2."""
    page = client.get(url)
    found = re.search(r'<noscript><meta http-equiv="refresh" content="(\d+)">', page.content.decode())
    assert found[1] == page["Retry-After"]


def test_the_page_has_no_inline_script_or_style(client, operation, url):
    html = client.get(url).content.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", html) == []


def test_a_box_that_has_not_changed_is_not_sent_again_and_each_event_sends_it(client, site, operation, url):
    first = client.get(f"{url}?fragment")
    same = client.get(f"{url}?fragment", headers={"If-None-Match": first["ETag"]})
    look(site, operation, status="running")
    changed = client.get(f"{url}?fragment", headers={"If-None-Match": first["ETag"]})
    assert (same.status_code, same.content, "Retry-After" in same, same["ETag"]) == (304, b"", True, first["ETag"])
    assert (changed.status_code, changed["ETag"] == first["ETag"]) == (200, False)
    assert "ETag" not in client.get(url)  # it may hold forms, whose tokens change


def test_an_end_says_nothing_about_asking_again(client, site, operation, url):
    look(site, operation, status="succeeded", rows=3)
    box = client.get(f"{url}?fragment")
    assert ("Retry-After" in box, b"data-ended" in box.content, b"ready" in box.content) == (False, True, True)
    assert b"http-equiv" not in client.get(url).content


def test_a_question_to_staff_is_asked_about_rarely(client, site, operation, url):
    look(site, operation, status="paused")
    box = client.get(f"{url}?fragment")
    assert (box["Retry-After"], b"being checked" in box.content, b"paused" in box.content) == ("60", True, False)


def test_asking_sends_nothing_writes_nothing_and_costs_the_same_few_queries(client, site, operation, url):
    """R-CALL-2, INV-03."""
    before = (len(site.provider.log), list(site.published), AuditEntry.objects.count())
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as asked:
            client.get(f"{url}?fragment")
        counts.append(len(asked))
        for _ in range(3):
            look(site, operation, status="running")
            before = (before[0] + 1, *before[1:])
    assert (counts[0], counts[0] <= 8) == (counts[1], True)
    assert len(site.provider.log) == before[0]


# --- who may see it ---------------------------------------------------------------------------------


def test_a_person_is_sent_to_the_login_and_a_script_is_told(operation, url):
    page, box = Client().get(url), Client().get(f"{url}?fragment")
    assert (page.status_code, page["Location"]) == (302, f"/login/?next={url}")
    assert (box.status_code, box["Content-Type"], box["Cache-Control"]) == (
        *(401, "application/problem+json", "no-store"),
    )


@pytest.mark.parametrize("query", ["", "?fragment"])
def test_what_is_not_theirs_looks_like_what_does_not_exist(operation, django_user_model, url, query):
    stranger = Client()
    stranger.force_login(django_user_model.objects.create(username="eve"))
    theirs, missing = stranger.get(f"{url}{query}"), stranger.get(f"/jobs/operations/none/progress/{query}")
    assert (theirs.status_code, missing.status_code, b"order" in theirs.content) == (404, 404, False)


def test_owners_see_theirs_by_the_same_methods_as_the_outcome(operation, site, viewer, django_user_model, client):
    mine = track("acme", job_id="job-2", operation_id="mine", subject=viewer)
    assert [client.get(f"/owned/{each.pk}/?fragment").status_code for each in (mine, operation)] == [200, 404]
    site.provider.script("job-2", answer(json={"status": "succeeded", "rows": 3}))
    before = client.get("/owned/mine/").content
    site.make_due("mine")
    poll(site.runtime, ["mine"])
    after = client.get("/owned/mine/").content
    assert (b"/results/mine/" in before, b'href="/results/mine/"' in after) == (False, True)


def test_an_address_of_the_sites_own_finds_the_operation(client, operation):
    assert client.get("/numbered/7/?fragment").status_code == 200
    assert client.get("/numbered/8/?fragment").status_code == 404


def test_it_can_only_be_read(client, operation, url):
    assert client.post(url).status_code == 405


def test_the_words_are_in_the_readers_language_and_so_is_the_tag(client, operation, url, settings):
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    tags = {client.get(f"{url}?fragment", headers={"Accept-Language": each})["ETag"] for each in ("en", "de")}
    assert len(tags) == 2


@pytest.mark.parametrize("name", ["a?b=1", "a#b", "a%2Fb", "x/progress/?y", "ü"])
def test_the_box_asks_for_the_very_operation_of_its_page(site, admin_client, name):
    """An id may hold what means something else in an address."""
    track("acme", job_id="job-2", operation_id="x")
    track("acme", job_id="job-1", operation_id=name)
    page = admin_client.get(reverse("jobtrack:progress", args=[name]))
    url = re.search(r'data-url="([^"]+)"', page.content.decode())[1].replace("&amp;", "&")
    alone = admin_client.get(url)
    assert alone.status_code == 200
    assert alone.wsgi_request.path == page.wsgi_request.path
