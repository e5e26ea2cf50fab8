"""Under a theme of other people: its templates have few of Django's blocks, and its styles none of its variables."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib import admin
from django.urls import include, path, reverse

import jobtrack_django
from jobtrack_django.models import DecisionBatch, Escalation
from jobtrack_django.testing import rehearsal
from tests.django.admin_pages import PAUSED, SITE, asks, decide_url, person, question_url, read
from tests.django.admin_tills import TABLE, asked
from tests.django.bulk_pages import ALL, ask_many, choose, confirm, decide_all, logged_in, result_url
from tests.django.test_admin_decide import post

pytestmark = [pytest.mark.database, pytest.mark.django_db]

BASE = """<!doctype html><html lang="en"><head><title>{% block title %}{{ title }}{% endblock %}</title>
{% block extrastyle %}{% endblock %}{% block extrahead %}{% endblock %}</head>
<body class="{% block bodyclass %}{% endblock %}">{% block content %}{% endblock %}{% block footer %}{% endblock %}</body></html>"""
"""Neither a heading nor breadcrumbs: a theme tells where one is in its own way, or not at all."""

CHANGE_FORM = """{% extends "admin/base_site.html" %}{% load admin_modify %}
{% block extrahead %}{{ media }}{% endblock %}
{% block content %}{% block field_sets %}{% endblock %}{% endblock %}
{% block footer %}{% block submit_buttons_bottom %}{% submit_row %}{% endblock %}{% endblock %}"""
"""Its buttons stand outside the content."""

THEME = {
    "admin/base.html": BASE,
    "admin/base_site.html": '{% extends "admin/base.html" %}',
    "admin/change_form.html": CHANGE_FORM,
}

DOCS = Path(__file__).parents[2] / "docs" / "admin.md"
STYLES = Path(jobtrack_django.__file__).parent / "static" / "jobtrack"


@pytest.fixture(autouse=True)
def themed(settings):
    settings.JOBTRACK = SITE
    (engine,) = settings.TEMPLATES
    loaders = [
        ("django.template.loaders.locmem.Loader", THEME),
        "django.template.loaders.app_directories.Loader",
    ]
    settings.TEMPLATES = [{**engine, "APP_DIRS": False, "OPTIONS": {**engine["OPTIONS"], "loaders": loaders}}]


@pytest.fixture
def client(db):
    return logged_in(person("ann", *ALL, "view_decisionbatch"))


def headings(page):
    return re.findall(r"<h1>([^<]*)</h1>", page.html)


def test_a_question_is_decided_in_two_steps(jobtrack, client):
    escalation = asks(jobtrack, PAUSED)
    assert decide_url(escalation, "look_again") in read(client.get(question_url(escalation))).html
    assert headings(read(client.get(decide_url(escalation, "look_again")))) == [
        f"Look again now: {escalation.operation_id}?"
    ]
    assert post(client, escalation, "look_again").status_code == 302
    assert "decided “Look again now”" in read(client.get(question_url(escalation))).text


def test_the_id_to_be_typed_stands_in_the_heading(settings, tmp_path, client):
    """The page says that it stands there, and nothing is sent without it."""
    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {"TABLES": [str(tmp_path)]}
    with rehearsal() as till:
        page = read(client.get(decide_url(asked(till), "resubmit")))
    assert "It stands in the heading of this page." in page.text
    assert headings(page) == ["Submit once more: order-7?"]


def test_many_questions_are_decided_in_two_steps(jobtrack, client):
    page = read(choose(client, ask_many(jobtrack, 3)))
    assert headings(page) == ["Look again now: 3 questions?"]
    result = read(confirm(client, page, follow=True))
    assert "3 decided" in result.text


@pytest.mark.parametrize("kind", ["question", "operation", "batch"])
def test_no_button_to_leave_a_page_reads_like_a_decision(jobtrack, client, kind):
    """Django's button back to the list is called "Close", like an option."""
    (escalation,) = ask_many(jobtrack, 1)
    batch = decide_all(client, [escalation])
    urls = {
        "question": question_url(escalation),
        "operation": reverse("admin:jobtrack_operation_change", args=[escalation.operation_id]),
        "batch": result_url(batch),
    }
    assert 'class="closelink"' not in read(client.get(urls[kind])).html


# --- classes of a theme -----------------------------------------------------------------------------


class Themed(admin.ModelAdmin):
    """What a theme has its users derive from."""

    list_fullwidth = False

    def changelist_view(self, request, extra_context=None):
        return super().changelist_view(request, {**(extra_context or {}), "themed": True})


site = admin.AdminSite(name="themed")


def dress():
    """Register the pages with the site, by the recipe of the docs and for a theme of the name there."""
    recipe = DOCS.read_text(encoding="utf-8").split("## Themes\n")[1].split("```python\n")[1].split("```")[0]
    theme = SimpleNamespace(ModelAdmin=Themed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admin, "site", site)
        patch.setitem(sys.modules, "unfold", theme)
        patch.setitem(sys.modules, "unfold.admin", theme)
        exec(compile(recipe, str(DOCS), "exec"), {})  # noqa: S102 - our own words


dress()
urlpatterns = [
    path("themed/", site.urls),
    path("", include("tests.urls")),
]


@pytest.mark.urls("tests.django.test_admin_themes")
def test_the_pages_take_the_classes_of_a_theme(jobtrack, client):
    escalation = asks(jobtrack, PAUSED)
    for model, page in site._registry.items():
        assert isinstance(page, Themed)
        if model._meta.managed:
            response = client.get(reverse(f"themed:jobtrack_{model._meta.model_name}_changelist"))
            assert response.status_code in (200, 403), model
    response = client.get(reverse("themed:jobtrack_escalation_changelist"))
    assert response.context["themed"]
    assert f"themed/jobtrack/escalation/{escalation.pk}/change/" in read(response).html
    chosen = reverse("themed:jobtrack_escalation_decide", args=[escalation.pk, "look_again"])
    assert chosen in read(client.get(reverse("themed:jobtrack_escalation_change", args=[escalation.pk]))).html
    response = client.post(chosen, {"version": escalation.version, "reason": "seen"})
    assert response.status_code == 302
    assert Escalation.objects.get().option == "look_again"
    assert not DecisionBatch.objects.exists()


# --- styles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["admin.css", "dashboard.css"])
def test_what_shows_where_something_ends_does_not_hang_on_variables_of_the_admin(name):
    """Without the variable a border is none at all, and an alarm has the colour of everything else."""
    css = (STYLES / name).read_text(encoding="utf-8")
    found = re.findall(r"(?:border[a-z-]*|fill): [^;{}]*var\(--(?!jobtrack)[a-z-]+\)", css)
    assert found == [], "Write var(--the-admins, var(--jobtrack-line)), or --jobtrack-alarm."


def test_what_is_only_for_bare_themes_weighs_nothing():
    css = (STYLES / "admin.css").read_text(encoding="utf-8")
    bare = css.split("What a theme leaves bare.")[1].split("*/")[1].split("\n\n")[0]
    assert len(bare.split("{")) > 4
    assert all(line.startswith(":where(") and ") :where(" in line for line in bare.strip().splitlines())
