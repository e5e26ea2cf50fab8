"""What the tests of the admin share: people, operations that ask something, and a strict reader of pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

from django.contrib.auth.models import Permission, User
from django.urls import reverse

from jobtrack_django import track
from jobtrack_django.models import Escalation
from jobtrack_django.testing import answer

SITE = {
    "ACCOUNTS": {"acme-export": {"default": {"port": "9"}}},
    "CREDENTIALS": {"acme-export": {"default": "env:ACME"}},
    "ALLOW_LOOPBACK": True,
}

RUNNING = answer(json={"id": "exp_1", "status": "running"})
PAUSED = answer(json={"id": "exp_1", "status": "paused"})
DONE = answer(
    json={"id": "exp_1", "status": "succeeded", "result": {"url": "https://files.acme.example/1.csv", "rows": 7}}
)
FAILED = answer(json={"id": "exp_1", "status": "failed", "error": {"message": "disk full"}})
DENIED = answer(401, json={"error": {"message": "bad key"}})


def person(name, *codenames, staff=True):
    """Somebody with these permissions of the app."""
    user = User.objects.create_user(name, is_staff=staff)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="jobtrack", codename__in=codenames))
    assert user.user_permissions.count() == len(codenames)
    return user


def asks(rehearsal, *replies, job_id="exp_1", **job):
    """The question that an operation ends up with after these answers."""
    rehearsal.provider.script(job_id, *replies)
    operation = track("acme-export", job_id=job_id, **job)
    rehearsal.run_due(raise_failures=False)
    return Escalation.objects.get(operation=operation)


def question_url(escalation):
    return reverse("admin:jobtrack_escalation_change", args=[escalation.pk])


def decide_url(escalation, option):
    return reverse("admin:jobtrack_escalation_decide", args=[escalation.pk, option])


_BLOCKS = {"dd", "div", "dt", "h1", "h2", "li", "p", "td", "th"}


@dataclass
class Page(HTMLParser):
    """A page as a browser with a strict content security policy takes it."""

    html: str
    inline: list[str] = field(default_factory=list)  # what such a browser refuses
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self):
        super().__init__(convert_charrefs=True)
        self._open = ""
        self.feed(self.html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        self.inline += [f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name == "style"]
        self.inline += [f"{tag} {name}" for name, value in attrs if (value or "").startswith("javascript:")]
        if tag == "style":
            self.inline.append("style")

    def handle_endtag(self, tag):
        self._open = ""
        self.text += " " if tag in _BLOCKS else ""

    def handle_data(self, data):
        if self._open == "script" and data.strip():
            self.inline.append(f"script {data.strip()[:40]}")
        self.text += data


def read(response, status=200):
    """The page of a response, checked for anything inline."""
    assert response.status_code == status, response.status_code
    page = Page(response.content.decode())
    assert page.inline == []
    page.text = " ".join(page.text.split())
    return page
