"""Every address, action and option of the admin, asked for by people who may not: all refused, nothing changed (INV-29).

Addresses are found by asking the site, so a new one is walked as well. If this module does not know what to put into
one, the test fails and says what to add here.
"""

from __future__ import annotations

import itertools
import re

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client, RequestFactory
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone

from jobtrack.core.escalation import BULK, Option
from jobtrack_django.admin.bulk import Selection
from jobtrack_django.bulk import Chosen, Verdict
from jobtrack_django.models import DecisionBatch, DecisionItem, Escalation, JobResult, Notice, WebhookReceipt
from jobtrack_django.roles import ROLES
from jobtrack_django.testing import rehearsal
from tests.django.admin_pages import PAUSED, SITE, asks
from tests.django.admin_tills import TABLE, asked

pytestmark = [pytest.mark.database, pytest.mark.django_db]

HERE = "tests/django/test_admin_walk.py"
APP = "/admin/jobtrack/"
TO_LOGIN = "/admin/login/?next="
METHODS = ["get", "post", "put", "delete"]

# What to put into the arguments of an address, by their names. ``object_id`` is every row of the page's own model.
ARGUMENTS = {
    "option": [option.value for option in Option],
    "app_label": ["jobtrack"],
}


@pytest.fixture(autouse=True)
def desk(settings, tmp_path):
    """A site with a row of everything that has a page."""
    (tmp_path / "till.yaml").write_text(TABLE)
    settings.JOBTRACK = {
        **SITE,
        "TABLES": [str(tmp_path)],
        "ACCOUNTS": {**SITE["ACCOUNTS"], "till": {"default": {}}},
    }
    with rehearsal() as here:
        question = asks(here, PAUSED, operation_id="op-1")
        asked(here)
        batch = DecisionBatch.objects.create(option="look_again", actor="boss", reason="x", created_at=timezone.now())
        DecisionItem.objects.create(batch=batch, escalation=question, version=question.version)
        Notice.objects.create(escalation=question, notifier="mail", turn=1)
        JobResult.objects.get_or_create(operation_id="op-1", defaults={"state": "wanted"})
        WebhookReceipt.objects.create(provider="till", account="default", notice_id="n-1", received_at=timezone.now())
        yield here


# --- what there is ----------------------------------------------------------------------------------


def routes(patterns=None, prefix=""):
    """All routes of the site, as they are written."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route, pattern.name or ""
        else:
            yield from routes(pattern.url_patterns, route)


def ours():
    """Those of jobtrack, by their names."""
    return sorted({(route, name) for route, name in routes() if "jobtrack" in route + name})


def rows_of(route):
    """The rows of the model that a page belongs to."""
    models = {model._meta.model_name: model for model in admin.site._registry if model._meta.app_label == "jobtrack"}
    model = models.get(route.split("/")[2])
    keys = list(model._base_manager.values_list("pk", flat=True)) if model else []
    assert keys, f"{HERE}: no row for the page {route!r}; make one in the fixture `desk`"
    return [str(key) for key in keys]


def urls_of(route):
    """A route with its arguments filled in, in every way there is something for."""
    if not route.startswith("admin/jobtrack/"):
        return [reverse("admin:app_list", args=["jobtrack"])]
    names = re.findall(r"<(?:\w+:)?(\w+)>", route)
    unknown = [name for name in names if name not in ARGUMENTS and name != "object_id"]
    assert not unknown, f"{HERE}: say in ARGUMENTS what {unknown} of the page {route!r} may be, so that it is walked"
    assert "(?P" not in route, f"{HERE}: {route!r} is a regular expression; write the page with path()"
    values = [rows_of(route) if name == "object_id" else ARGUMENTS[name] for name in names]
    return ["/" + _filled(route, chosen) for chosen in itertools.product(*values)]


def _filled(route, values):
    for value in values:
        route = re.sub(r"<[^>]+>", value, route, count=1)
    return route


def all_urls():
    return [url for route, _ in ours() for url in urls_of(route)]


def actions_of(model_admin, locations):
    """Names of the actions of a page, as somebody who may do everything is offered them."""
    request = RequestFactory().get("/")
    request.user = User(username="all", is_superuser=True, is_active=True, is_staff=True)
    return [name for where in locations for name in model_admin.get_actions(request, **where)]


# --- what may not change ----------------------------------------------------------------------------


def digest(url=""):
    """All rows of jobtrack, and Django's own history.

    Args:
        url: what has been asked for. That a bundle was downloaded is noted in the history, and nothing else is.
    """
    if url.endswith("/bundle/"):
        LogEntry.objects.filter(change_message__contains="bundle").delete()
    models = [*apps.get_app_config("jobtrack").get_models(), LogEntry]
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


def body(user):
    """Something that each form would take."""
    question = Escalation.objects.get(operation_id="op-1")
    previewed = Selection(
        option=Option.LOOK_AGAIN,
        chosen=(Chosen(id=question.pk, version=question.version, verdict=Verdict(outcome="pending")),),
        previewed_at=timezone.now(),
    )
    request = RequestFactory().get("/")
    request.user = user
    return {
        "reason": "because",
        "version": question.version,
        "job_id": "pay-1",
        "confirm": "order-7",
        "chosen": previewed.signed(request),
        "post": "yes",
        "_save": "Save",
    }


# --- who --------------------------------------------------------------------------------------------


def permissions(*starts):
    """Those of jobtrack; all, or those that begin so."""
    found = Permission.objects.filter(content_type__app_label="jobtrack")
    return [each for each in found if not starts or each.codename.startswith(starts)]


def nobody():
    return None


def outsider():
    """Logged in, with every permission, and not staff."""
    user = User.objects.create_user("outsider")
    user.user_permissions.set(permissions())
    return user


def newcomer():
    """Staff without permissions."""
    return User.objects.create_user("newcomer", is_staff=True)


def viewer():
    """Staff who may see everything."""
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(permissions("view_"))
    return user


def auditor():
    """Staff in the group of another role."""
    user, group = User.objects.create_user("auditor", is_staff=True), Group.objects.create(name="auditor")
    (role,) = (role for role in ROLES if role.name == "auditor")
    group.permissions.set(each for each in permissions() if each.codename in role.permissions)
    user.groups.add(group)
    return user


def blind():
    """Staff in a wrong group: every permission of jobtrack, even to write rows, but none to see.

    To Django, who may change rows may see them.
    """
    user, group = User.objects.create_user("blind", is_staff=True), Group.objects.create(name="blind")
    group.permissions.set(each for each in permissions() if not each.codename.startswith(("view_", "change_")))
    user.groups.add(group)
    return user


def boss():
    """Somebody who may do everything."""
    return User.objects.create_superuser("boss")


def client_of(user, **options):
    client = Client(**options)
    if user is not None:
        client.force_login(user)
    return client


OUTSIDE = [nobody, outsider, newcomer, blind]  # may not even read
READERS = [viewer, auditor]


# --- the walk ---------------------------------------------------------------------------------------


def test_the_walk_finds_what_is_there():
    names = {name for _, name in ours()}
    assert {
        "jobtrack_operation_changelist",
        "jobtrack_escalation_decide",
        "jobtrack_escalation_bulk",
        "jobtrack_decisionbatch_go_on",
        "app_list",
    } <= names
    assert len(all_urls()) > 50


@pytest.mark.parametrize("make", OUTSIDE)
def test_who_may_not_read_is_refused_everywhere(make):
    user = make()
    client, sent, before = client_of(user), body(user or User()), digest()
    for url in all_urls():
        for method in METHODS:
            response = getattr(client, method)(url, sent if method == "post" else None)
            # Django's own list of an app's pages opens for whoever holds any permission of it, and names no row.
            assert _refused(url, response) or (make is blind and url == APP), (make.__name__, method, url, response)
        assert digest() == before, (make.__name__, url)


def _refused(url, response):
    """To log in first, or not at all. A redirect to the page of a row says nothing, and that page refuses."""
    to = response.headers.get("Location", "")
    return response.status_code in (403, 404, 405) or to.startswith(TO_LOGIN) or to == f"{url}change/"


@pytest.mark.parametrize("make", READERS)
def test_who_may_only_read_changes_nothing(make):
    user = make()
    client, sent, before = client_of(user), body(user), digest()
    for url in all_urls():
        for method in METHODS:
            response = getattr(client, method)(url, sent if method == "post" else None)
            assert response.status_code < 500, (make.__name__, method, url)
            if method == "post" and not _only_shows(url):
                assert _refused(url, response) or response.status_code == 400, (make.__name__, url, response)
        assert digest(url) == before, (make.__name__, url)


def _only_shows(url):
    """Lists and histories answer a POST that they do not know with themselves."""
    return url.count("/") <= 4 or url.endswith("/history/")


@pytest.mark.parametrize("make", OUTSIDE + READERS)
def test_no_action_of_a_list_does_anything(make):
    user = make()
    client, before = client_of(user), digest()
    for model, model_admin in _pages():
        url = reverse(f"admin:jobtrack_{model._meta.model_name}_changelist")
        chosen = list(model._base_manager.values_list("pk", flat=True))
        for name, across in itertools.product(actions_of(model_admin, [{}]), "01"):
            sent = {"action": name, ACTION_CHECKBOX_NAME: chosen, "select_across": across}
            response = client.post(url, sent)
            assert response.status_code in (200, 302, 403), (make.__name__, name)
            assert b'name="chosen"' not in response.content, (make.__name__, name)
            assert digest() == before, (make.__name__, name)


@pytest.mark.parametrize("make", OUTSIDE + READERS)
def test_no_action_of_a_row_does_anything(make):
    """Before Django 6.1 a row has no actions, and what posts one anyway changes nothing either."""
    user = make()
    client, before = client_of(user), digest()
    place = getattr(admin, "ActionLocation", None)
    for model, model_admin in _pages():
        for name in actions_of(model_admin, [{"action_location": place.CHANGE_FORM} if place else {}]):
            for key in model._base_manager.values_list("pk", flat=True):
                url = reverse(f"admin:jobtrack_{model._meta.model_name}_change", args=[key])
                response = client.post(url, {"CHANGE_FORM-action": name, ACTION_CHECKBOX_NAME: key})
                assert response.status_code in (302, 400, 403, 405), (make.__name__, name)
                assert "/decide/" not in response.headers.get("Location", "").split("?")[0], (make.__name__, name)
                assert digest() == before, (make.__name__, name)


def _pages():
    return [(model, page) for model, page in admin.site._registry.items() if model._meta.app_label == "jobtrack"]


def test_every_option_that_may_be_chosen_for_many_is_an_action_of_the_list():
    names = actions_of(admin.site.get_model_admin(Escalation), [{}])
    assert {name for name in names if name.startswith("bulk_")} == {f"bulk_{option}" for option in BULK}


def test_whoever_it_is_a_get_changes_nothing():
    client, before = client_of(boss()), digest()
    for url in all_urls():
        for method in ("get", "head", "options"):
            assert getattr(client, method)(url).status_code < 500, (method, url)
        assert digest(url) == before, url


def test_a_post_without_a_token_is_refused_everywhere():
    user = boss()
    client, sent, before = client_of(user, enforce_csrf_checks=True), body(user), digest()
    for url in all_urls():
        assert client.post(url, sent).status_code == 403, f"{url} takes a POST from another site"
        assert digest() == before, url


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("escalation_decide", [0, "look_again"]),
        ("escalation_decide", [1, "resubmit"]),
        ("escalation_decide", [1, "attach_job"]),
        ("escalation_decide", [1, "close"]),
        ("escalation_bulk", ["look_again"]),
        ("decisionbatch_go_on", [None]),
    ],
)
def test_the_same_is_taken_from_who_may(name, args):
    """The counter-example: what the walk sends is refused because of who sends it."""
    user = boss()
    sent, before = body(user), digest()
    questions = [Escalation.objects.get(operation_id=each) for each in ("op-1", "order-7")]
    known = {0: questions[0].pk, 1: questions[1].pk, None: DecisionBatch.objects.get().pk}
    sent["version"] = questions[1].version if 1 in args else questions[0].version
    url = reverse(f"admin:jobtrack_{name}", args=[known.get(each, each) for each in args])
    response = client_of(user).post(url, sent)
    assert (response.status_code, digest() == before) == (302, False), response.content.decode()[:3000]


def test_a_page_that_this_module_cannot_fill_in_is_told():
    with pytest.raises(AssertionError, match=r"say in ARGUMENTS what \['colour'\] of the page"):
        urls_of("admin/jobtrack/operation/<int:object_id>/paint/<slug:colour>/")
    with pytest.raises(AssertionError, match="no row for the page"):
        urls_of("admin/jobtrack/nothing/<int:object_id>/")
