"""The outcome over HTTP: who may see it, what it tells caches, and that asking causes nothing (R-SUB-8, R-CALL-2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from importlib import resources

import pytest
from django.contrib.auth.models import AnonymousUser, Permission
from django.db import connection
from django.db.models import F
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, reverse
from jsonschema import Draft202012Validator

from jobtrack.core.escalation import ADVISORY, Question, Reason
from jobtrack.flow.poll import poll
from jobtrack.testing.provider import answer, no_answer
from jobtrack.worker import wiring
from jobtrack_django import submit, track
from jobtrack_django.models import AuditEntry, Delivery, Escalation, Operation
from jobtrack_django.testing import rehearsal
from jobtrack_django.views import OutcomeView

pytestmark = [pytest.mark.database, pytest.mark.django_db]

SCHEMA = json.loads((resources.files("jobtrack.catalog") / "schema" / "outcome-1.json").read_text(encoding="utf-8"))


class Owned(OutcomeView):
    """Each user sees what is theirs."""

    def may_see(self, request, operation):
        return operation.subject == request.user


class Listed(OutcomeView):
    """As above, by the query."""

    def get_queryset(self):
        return super().get_queryset().for_object(self.request.user)

    def may_see(self, request, operation):
        return True


def result_of(operation):
    return f"/results/{operation.pk}/é" if operation.state == "succeeded" else None


urlpatterns = [
    path("jobs/", include("jobtrack_django.urls")),
    path("owned/<path:operation_id>/", Owned.as_view()),
    path("listed/<path:operation_id>/", Listed.as_view()),
    path("done/<path:operation_id>/", OutcomeView.as_view(done_url=result_of)),
    path("linked/<path:operation_id>/", OutcomeView.as_view(done_url=result_of, see_other=False)),
]


@pytest.fixture(autouse=True)
def _urls(settings) -> None:
    settings.ROOT_URLCONF = __name__


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


def url(operation_id: str) -> str:
    return reverse("jobtrack:outcome", args=[operation_id])


def succeed(site, operation: Operation) -> None:
    site.provider.script("job-1", answer(json={"status": "succeeded", "rows": 3}))
    site.make_due(operation.pk)
    poll(site.runtime, [operation.pk])


def shown(response) -> dict[str, object]:
    told = response.json()
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(told)] == []
    return told


# --- the object -------------------------------------------------------------------------------------


def test_it_is_the_outcome_of_the_row_with_the_time_to_ask_again(client, operation):
    response = client.get(url("order/7"))
    told = shown(response)
    assert {**told, "retry_after_s": 0} == {**operation.outcome(), "retry_after_s": 0}
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")
    assert response["Retry-After"] == str(told["retry_after_s"])
    assert response["Cache-Control"] == "private, no-cache"
    assert "Cookie" in response["Vary"]


def test_head_tells_the_same_headers_and_nothing_else(client, operation):
    get, head = client.get(url("order/7")), client.head(url("order/7"))
    names = ("ETag", "Cache-Control", "Content-Type")
    assert (head.status_code, head.content) == (200, b"")
    assert [head[name] for name in names] == [get[name] for name in names]


def test_nothing_says_when_to_ask_again_once_a_person_has_to_decide(client, site, operation):
    site.provider.script("job-1", answer(json={"status": "paused"}))
    site.make_due(operation.pk)
    poll(site.runtime, [operation.pk])
    response = client.get(url("order/7"))
    assert (shown(response)["outcome"], shown(response)["needs_decision"]) == ("unknown", ["unknown_state"])
    assert "Retry-After" not in response


# --- 304 --------------------------------------------------------------------------------------------


def test_what_has_not_changed_is_not_told_again(client, operation):
    tag = client.get(url("order/7"))["ETag"]
    response = client.get(url("order/7"), headers={"If-None-Match": f'"other", {tag}'})
    assert (response.status_code, response.content, response["ETag"]) == (304, b"", tag)
    assert (int(response["Retry-After"]) > 0, response["Cache-Control"]) == (True, "private, no-cache")
    assert tag.startswith('W/"')


@pytest.mark.parametrize("given", ["*", "{strong}", "{weak}"])
def test_tags_are_compared_weakly(client, operation, given):
    tag = client.get(url("order/7"))["ETag"]
    header = given.format(weak=tag, strong=tag.removeprefix("W/"))
    assert client.get(url("order/7"), headers={"If-None-Match": header}).status_code == 304


@pytest.mark.parametrize("given", ['"other"', "nonsense", "", 'W/"'])
def test_another_tag_gets_the_object(client, operation, given):
    assert client.get(url("order/7"), headers={"If-None-Match": given}).status_code == 200


def test_time_alone_changes_no_tag_and_each_event_does(client, site, operation):
    tags = [client.get(url("order/7"))["ETag"]]
    Operation.objects.update(created_at=F("created_at") + timedelta(seconds=1))
    tags.append(client.get(url("order/7"))["ETag"])
    site.runtime.store.note("order/7", {"event": "x"}, question=Question(reason=Reason.CANCEL_UNKNOWN, detail="?"))
    tags.append(client.get(url("order/7"))["ETag"])
    Operation.objects.update(progress="40")
    tags.append(client.get(url("order/7"))["ETag"])
    assert tags[0] == tags[1]
    assert len(set(tags)) == 3


# --- a submission whose answer is lost --------------------------------------------------------------

PAY = """
jobtrack: 1
id: pay
name: Payments
docs: https://developer.pay.example/payments
revision: 1
hosts: ["https://api.pay.example"]
submit:
  request: {method: POST, path: /v1/payments}
  accepted: {http: [202], job_id: /id}
  LOOKUP
status:
  request: {method: GET, path: "/v1/payments/{job_id}"}
  state: /status
  states: {pending: [running], success: [done]}
examples:
  - {reply: {http: 200, json: {status: running}}, means: pending}
"""
LOOKUP = """lookup:
    request: {path: /v1/payments, query: {ref: "{operation_id}"}}
    items: /items
    match: {/ref: "{operation_id}"}
    found: /id
    absence_is_proof_after: 30s"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("lookup", "expected"),
    [
        (LOOKUP, ("unknown", "unconfirmed", [], {"method": "GET", "path": "/v1/payments"})),
        ("", ("unknown", "escalated", ["submission_unknown"], None)),
    ],
    ids=["with a look-up", "B051: nothing can prove it"],
)
def test_an_answer_that_is_lost_is_told_as_unknown(settings, tmp_path, viewer, lookup, expected):
    """R-SUB-2, R-SUB-5: never as a failure, and no machine may submit again."""
    (tmp_path / "pay.yaml").write_text(PAY.replace("LOOKUP", lookup))
    settings.JOBTRACK = {"TABLES": [str(tmp_path)]}
    client = Client()
    client.force_login(viewer)
    with rehearsal() as here:
        here.provider.on("POST", "/v1/payments", no_answer("read_timeout"))
        here.provider.on("GET", "/v1/payments", answer(503))
        submit("pay", operation_id="order-7", payload={"amount": 5})
        ready = shown(client.get(url("order-7")))
        here.run_due(until=timedelta(seconds=1))
        told = shown(client.get(url("order-7")))
    assert (ready["outcome"], ready["state"], ready["retry_allowed"], ready["reconcile"], ready["job_id"]) == (
        *("pending", "ready", True, None, None),
    )
    assert (told["outcome"], told["state"], told["needs_decision"], told["reconcile"]) == expected
    assert (told["retry_allowed"], told["accepted_at"]) == (False, None)
    assert told["transport_observation"]["trouble"] == "read_timeout"
    assert told["submission"]["attempts"] == {"used": 1, "allowed": 5}
    assert told["submission"]["doubt"]


# --- when it is done --------------------------------------------------------------------------------


def test_the_asker_is_sent_on_to_the_result_once_there_is_one(client, site, operation):
    before = client.get("/done/order/7/")
    succeed(site, operation)
    after = client.get("/done/order/7/", headers={"If-None-Match": before["ETag"]})
    assert (before.status_code, after.status_code, after["Location"]) == (200, 303, "/results/order/7/%C3%A9")
    assert (shown(after)["outcome"], "Retry-After" in after) == ("succeeded", False)


def test_or_is_told_where_it_is(client, site, operation):
    before = client.get("/linked/order/7/")
    succeed(site, operation)
    after = client.get("/linked/order/7/")
    assert ("Link" in before, after.status_code, after["Link"]) == (
        False,
        200,
        '</results/order/7/%C3%A9>; rel="related"',
    )
    assert after["ETag"] not in (before["ETag"], client.get(url("order/7"))["ETag"])


def test_an_end_without_a_result_is_told_as_it_is(client, site, operation):
    site.provider.script("job-1", answer(json={"status": "failed"}))
    site.make_due(operation.pk)
    poll(site.runtime, [operation.pk])
    response = client.get("/done/order/7/")
    assert (response.status_code, shown(response)["outcome"]) == (200, "failed")


# --- who may see it ---------------------------------------------------------------------------------


def problem(response) -> dict[str, object]:
    told = response.json()
    assert response["Content-Type"] == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    assert (list(told), told["status"], told["type"]) == (
        ["type", "title", "status", "detail"],
        response.status_code,
        "about:blank",
    )
    return told


def test_nobody_is_sent_to_a_login_page(operation, settings):
    """Also on a site where every view needs a login."""
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.contrib.auth.middleware.LoginRequiredMiddleware"]
    response = Client().get(url("order/7"))
    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Session realm="jobtrack"')
    assert problem(response)["title"] == "Unauthorized"


def test_without_users_nobody_is_known(operation):
    request = RequestFactory().get("/")
    assert OutcomeView.as_view()(request, operation_id="order/7").status_code == 401
    request.user = AnonymousUser()
    assert OutcomeView.as_view()(request, operation_id="order/7").status_code == 401


UNKNOWN = ["order/8", "ORDER/7", "order/7 ", "x" * 5000, "nul\x00", "order/7/outcome"]


def test_what_may_not_be_seen_is_answered_like_what_is_not_there(operation, client, django_user_model):
    bob = Client()
    bob.force_login(django_user_model.objects.create(username="bob"))
    answers = [bob.get(url("order/7")), *(c.get(url(name)) for c in (bob, client) for name in UNKNOWN)]
    assert {response.status_code for response in answers} == {404}
    assert {json.dumps(problem(response)) for response in answers} == {json.dumps(problem(answers[0]))}
    same = [{k: v for k, v in response.headers.items() if k != "Content-Length"} for response in answers]
    assert same == same[:1] * len(same)


@pytest.mark.parametrize("place", ["owned", "listed"])
def test_a_site_shows_each_user_their_own(site, django_user_model, place):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    for user in (ada, bob):
        track("acme", job_id=f"job-{user.username}", operation_id=user.username, subject=user)
    client = Client()
    client.force_login(ada)
    assert [client.get(f"/{place}/{name}/").status_code for name in ("ada", "bob", "eve")] == [200, 404, 404]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete", "options", "trace"])
def test_it_can_only_be_read(viewer, operation, method):
    client = Client(enforce_csrf_checks=True)
    client.force_login(viewer)
    response = getattr(client, method)(url("order/7"))
    assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert problem(response)["title"] == "Method Not Allowed"


# --- what asking causes -----------------------------------------------------------------------------


class Untouched:
    """A runtime of tables alone: whoever wants its transport or its scheduler fails."""

    def __init__(self, tables: object) -> None:
        self.tables = tables

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"asking wanted {name}")


@pytest.fixture
def asleep(site) -> Iterator[None]:
    """Neither provider nor broker nor vault can be reached."""
    with wiring.use_runtime(Untouched(site.runtime.tables)):  # type: ignore[arg-type]
        yield


def test_asking_causes_no_request_no_message_and_no_write(client, operation, asleep):
    """R-CALL-2."""
    Operation.objects.update(wake_at=F("created_at"), state="running")
    before = [list(model.objects.order_by("pk").values()) for model in (Operation, AuditEntry, Delivery, Escalation)]
    with CaptureQueriesContext(connection) as queries:
        shown(client.get(url("order/7")))
    assert [query["sql"] for query in queries if not query["sql"].startswith("SELECT")] == []
    assert before == [
        list(model.objects.order_by("pk").values()) for model in (Operation, AuditEntry, Delivery, Escalation)
    ]


def queries_of(client: Client, where: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        client.get(where)
    return len(queries)


def test_it_costs_three_queries_besides_those_that_tell_who_asks(site, operation, django_user_model):
    """However long the story is. Two tell whose session it is, three make the outcome."""
    client = Client()
    client.force_login(django_user_model.objects.create(username="root", is_superuser=True))
    short = queries_of(client, url("order/7"))
    seen = {"http": 200, "trouble": None, "request_id": ""}
    for number in range(30):
        entry = {"event": "poll", "at": "2030-01-07T12:00:00+00:00", "number": number, "observation": seen}
        site.runtime.store.note("order/7", entry, question=Question(reason=sorted(ADVISORY)[number % 9], detail="?"))
    assert (short, queries_of(client, url("order/7"))) == (5, 5)
