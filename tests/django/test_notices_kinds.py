"""How people are told: e-mail over a real connection, signed JSON, Slack's shape, a function; and no secret in any."""

from __future__ import annotations

import base64
import contextlib
import email
import email.policy
import hashlib
import hmac
import json
import logging
import socketserver
import threading
from importlib import resources
from io import StringIO

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from jsonschema import Draft202012Validator

from jobtrack.core.escalation import Reason
from jobtrack_django import questions
from jobtrack_django.models import Notice, Operation
from jobtrack_django.notify import kinds, web
from jobtrack_django.notify.message import state_word
from tests.django import notices_desk
from tests.django.notices_desk import CALL, SITE_URL
from tests.transports.faults import FaultServer

pytestmark = [pytest.mark.database, pytest.mark.django_db]

SCHEMA = Draft202012Validator(
    json.loads((resources.files("jobtrack.catalog") / "schema" / "notice-1.json").read_text(encoding="utf-8"))
)
KEY = base64.b64encode(b"a secret of 24 bytes !!!").decode()
SECRET = f"whsec_{KEY}"
HOSTILE = "<!channel> @here http://evil.example\r\nBcc: x \u202e &lt;b&gt; *bold* `x` \x1b[31m"


@pytest.fixture
def receiver():
    """A real HTTP server on this machine: answers with the next status, and keeps what came."""
    servers = []

    def start(*statuses: str) -> FaultServer:
        answers = iter(statuses)

        def script(peer):
            peer.request()
            peer.say(f"HTTP/1.1 {next(answers, '204 No Content')}\r\nContent-Length: 0\r\n\r\n".encode())

        servers.append(FaultServer(script))
        return servers[-1]

    yield start
    for server in servers:
        with contextlib.suppress(OSError):
            server.close()


def mailer(settings, backend, **options):
    """The site's mail settings, as its Django wants them."""
    path = f"django.core.mail.backends.{backend}.EmailBackend"
    if hasattr(mail, "mailers"):
        settings.MAILERS = {"default": {"BACKEND": path, "OPTIONS": options}}
        return
    settings.EMAIL_BACKEND = path
    for name, value in options.items():
        setattr(settings, f"EMAIL_{name.upper()}", value)


@pytest.fixture
def site(settings):
    settings.HOOK_SECRET = SECRET
    mailer(settings, "locmem")

    def use(url="", **notifiers):
        settings.HOOK_URL = url
        settings.JOBTRACK = {"NOTIFIERS": notifiers, "SITE_URL": SITE_URL, "ALLOW_LOOPBACK": True}

    return use


WEBHOOK = {"kind": "webhook", "url": "setting:HOOK_URL", "secret": "setting:HOOK_SECRET", "digest_s": 0}
SLACK = {"kind": "slack", "url": "setting:HOOK_URL", "digest_s": 0}
MAIL = {"kind": "email", "to": ["night@desk.example", "day@desk.example"], "from": "jobs@desk.example", "digest_s": 0}


def parts(raw: bytes):
    """Headers and JSON of a request as it came over the wire."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return lines[0], {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}, body


# --- signed JSON ----------------------------------------------------------------------------------------


def test_a_webhook_is_signed_and_fits_its_published_schema(desk, site, receiver):
    """The signature is computed here as the specification of Standard Webhooks says, not with our code."""
    server = receiver()
    site(f"{server.origin}/hooks/in?k=1", ops=WEBHOOK)
    (question,) = desk.ask(provider_state="running", reference="order 7")
    assert desk.dispatch() == 1
    line, headers, body = parts(server.requests[0])
    assert line == "POST /hooks/in?k=1 HTTP/1.1"
    row = Notice.objects.get()
    assert (headers["webhook-id"], headers["content-type"]) == (row.message_id, "application/json; charset=utf-8")
    assert int(headers["webhook-timestamp"]) == int(desk.clock().timestamp())
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    document = json.loads(body)
    assert [error.message for error in SCHEMA.iter_errors(document)] == []
    (told,) = document["data"]["questions"]
    properties = SCHEMA.schema["$defs"]["question"]
    assert set(told) == set(properties["properties"]) == set(properties["required"])
    assert (told["id"], told["operation"], told["reference"]) == (str(question.pk), "op-1", "order 7")
    assert (told["reason"], told["risk"], told["state"]) == ("deadline_exceeded", "medium", "running")
    assert told["link"] == f"{SITE_URL}/admin/jobtrack/escalation/{question.pk}/change/"


def test_the_key_may_be_any_text():
    signed = hmac.new(b"plain", b"msg_1.7.{}", hashlib.sha256).digest()
    assert web.sign("plain\n", "msg_1", "7", b"{}") == f"v1,{base64.b64encode(signed).decode()}"


def test_a_key_that_is_not_what_it_says_signs_nothing(desk, site, settings, receiver):
    server = receiver()
    site(server.origin, ops=WEBHOOK)
    settings.HOOK_SECRET = "whsec_CANARY!"
    desk.ask()
    assert desk.dispatch() == 0
    assert Notice.objects.get().last_error == "the secret begins with whsec_ but is not base64"
    assert server.requests == []


def test_a_repeated_message_keeps_its_id_and_gets_a_fresh_timestamp(desk, site, receiver):
    server = receiver("500 Oops", "200 OK")
    site(server.origin, ops=WEBHOOK)
    desk.ask()
    assert [desk.dispatch(), desk.dispatch(after_s=60)] == [0, 1]
    first, second = (parts(raw)[1] for raw in server.requests)
    assert first["webhook-id"] == second["webhook-id"]
    assert int(second["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 60


@pytest.mark.parametrize(
    ("status", "outcome", "error", "minutes"),
    [
        ("302 Found\r\nLocation: http://127.0.0.1:1/", "", "HTTP 302", 1),
        ("404 Not Found", "", "HTTP 404", 1),
        ("429 Slow\r\nRetry-After: 600", "", "HTTP 429", 10),
        ("503 Busy\r\nRetry-After: soon", "", "HTTP 503", 1),
        ("410 Gone", "failed", "HTTP 410", None),
    ],
)
def test_what_a_receiver_says_is_obeyed(desk, site, receiver, status, outcome, error, minutes):  # noqa: PLR0917
    server = receiver(status)
    site(server.origin, ops=WEBHOOK)
    desk.ask()
    assert desk.dispatch() == 0
    row = Notice.objects.get()
    waits = None if row.due_at is None else (row.due_at - desk.clock()).total_seconds() / 60
    assert (row.outcome, row.last_error, waits) == (outcome, error, minutes)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "url", ["http://example.com/CANARY", "https://10.0.0.1/CANARY", "https://u:CANARY@x.example/", "CANARY", "", "//"]
)
def test_an_address_that_may_not_be_reached_is_not_and_is_not_repeated(desk, site, caplog, url):
    """R-SEC-1, INV-33: whoever knows the address may post there."""
    site(url, ops=WEBHOOK, chat=SLACK)
    desk.ask()
    assert desk.dispatch() == 0
    for row in Notice.objects.all():
        assert row.last_error
        assert row.outcome == ""
    assert "CANARY" not in caplog.text + repr(list(Notice.objects.values()))


def test_a_receiver_that_is_not_there_is_tried_again(desk, site, receiver):
    server = receiver()
    site(f"{server.origin}/CANARY", ops=WEBHOOK)
    server.close()
    desk.ask()
    assert desk.dispatch() == 0
    assert Notice.objects.get().last_error == "POST: no connection could be made"


# --- Slack ----------------------------------------------------------------------------------------------


def test_slack_gets_text_and_blocks(desk, site, receiver):
    server = receiver("200 OK")
    site(f"{server.origin}/services/T/B/X", chat=SLACK)
    questions = desk.ask(count=30)
    assert desk.dispatch() == 30
    _, headers, body = parts(server.requests[0])
    assert "webhook-signature" not in headers
    document = json.loads(body)
    assert set(document) == {"text", "blocks"}
    assert document["text"] == "[jobtrack] 30 decisions needed"
    assert [block["type"] for block in document["blocks"]] == ["header", *["section"] * 21]
    first, last = document["blocks"][1]["text"], document["blocks"][-1]["text"]
    assert first["text"].startswith("*deadline passed*\n")
    assert f"<{SITE_URL}/admin/jobtrack/escalation/{questions[0].pk}/change/|Decide here>" in first["text"]
    assert last["text"].startswith("and 10 more · <")
    assert all(len(block["text"]["text"]) <= 3000 for block in document["blocks"])


def test_what_a_provider_says_means_nothing_to_slack(desk, site, receiver):
    """Mentions, links, formatting, control characters, reading direction."""
    server = receiver("200 OK")
    site(server.origin, chat=SLACK)
    desk.ask(provider_state=HOSTILE, reference="<!here> & co")
    desk.dispatch()
    document = json.loads(parts(server.requests[0])[2])
    text = document["blocks"][1]["text"]["text"]
    assert "&lt;!here&gt; &amp; co" in text
    assert "The provider calls it: ��channel� �here http���evil�example" in text
    for piece in ("<!", "@here", "evil.example", "\u202e", "\x1b", "`x`", "*bold*"):
        assert piece not in text
    assert all(block["text"].get("verbatim", True) for block in document["blocks"])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("running", "running"),
        ("läuft – 3/7", "läuft � 3�7"),
        ("", ""),
        ("x" * 99, "x" * 39 + "�"),
        ("in-progress", "in-progress"),
    ],
)
def test_a_state_is_one_harmless_word(text, word):
    assert state_word(text) == word


# --- e-mail ---------------------------------------------------------------------------------------------


def test_an_e_mail_says_what_is_asked_and_where(desk, site):
    site(night=MAIL)
    (question,) = desk.ask(reference="order 7", provider_state=HOSTILE)
    assert desk.dispatch() == 1
    (sent,) = mail.outbox
    message = sent.message()
    assert (sent.to, message["From"]) == (MAIL["to"], "jobs@desk.example")
    assert message["Subject"] == "[jobtrack] Decision needed: deadline passed (acme)"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == f"<{Notice.objects.get().message_id}@desk.example>"
    for line in (
        "deadline passed",
        str(questions.question("deadline_exceeded").ask),
        "acme: operation op-1 (order 7)",
        f"Waiting since: {question.opened_at:%Y-%m-%d %H:%M} UTC",
        "Risk: medium",
        "If nobody acts, it stays as it is.",
        f"Decide here: {SITE_URL}/admin/jobtrack/escalation/{question.pk}/change/",
    ):
        assert line in sent.body.splitlines()
    for piece in ("\x1b", "\u202e", "evil.example", "@here"):
        assert piece not in sent.body


def test_no_header_can_be_put_in(desk, site):
    site(night=MAIL)
    desk.ask(provider="a\r\nBcc: victim@x.example", reference="r\nX-Evil: 1")
    desk.dispatch()
    message = mail.outbox[0].message()
    assert (message["Bcc"], message["X-Evil"]) == (None, None)
    assert "\n" not in message["Subject"]


class Smtp(socketserver.ThreadingTCPServer):
    """A mail server of a few words: keeps what it takes, or refuses with ``says``."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, says: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.says, self.taken, self.recipients = says, [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self._say("220 ready")
        while line := self.rfile.readline():
            word = line.decode().strip().upper()
            if word == "DATA":
                self._say("354 go on")
                lines = iter(self.rfile.readline, b".\r\n")
                self.server.taken.append(b"".join(lines))
                self._say("250 taken")
            elif word.startswith("RCPT"):
                self.server.recipients.append(line.decode().strip())
                self._say(self.server.says or "250 ok")
            elif word == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say("250 ok")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def smtp(settings):
    """Django's own SMTP backend, and a server on this machine."""
    servers = []

    def start(says: str = "", **options) -> Smtp:
        servers.append(Smtp(says))
        host, port = servers[-1].server_address
        mailer(settings, "smtp", host=host, port=port, **options)
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_e_mail_goes_over_the_wire(desk, site, smtp):
    server = smtp()
    site(night=MAIL)
    desk.ask(count=3)
    assert desk.dispatch() == 3
    (raw,) = server.taken
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Subject"] == "[jobtrack] 3 decisions needed"
    assert message.get_content().count("Decide here: ") == 3
    assert len(server.recipients) == 2


def test_a_mail_server_that_refuses_is_tried_again(desk, site, smtp):
    smtp("550 CANARY no such user")
    site(night=MAIL)
    desk.ask()
    assert desk.dispatch() == 0
    row = Notice.objects.get()
    assert (row.outcome, row.last_error) == ("", "the mail server did not take it (SMTPRecipientsRefused)")


def test_a_mail_server_that_is_not_there_is_tried_again(desk, site, smtp):
    server = smtp()
    server.shutdown()
    server.server_close()
    site(night=MAIL)
    desk.ask()
    assert desk.dispatch() == 0
    assert Notice.objects.get().last_error == "the mail server did not take it (ConnectionRefusedError)"


def test_a_silent_mail_server_does_not_hold_a_worker(smtp):
    from jobtrack_django.notify import mail as ours

    smtp()
    assert ours._connection().timeout == 10
    smtp(timeout=3)
    assert ours._connection().timeout == 3


# --- all of them ------------------------------------------------------------------------------------------


def test_there_is_a_sender_for_each_kind():
    from jobtrack_django.conf import NOTIFIER_KINDS

    assert set(kinds.SENDERS) == set(NOTIFIER_KINDS)


def test_a_secret_that_cannot_be_found_is_told_by_its_reference_alone(desk, site):
    site("https://x.example", ops={**WEBHOOK, "secret": "env:JOBTRACK_NOBODY_SET_THIS"})
    desk.ask()
    assert desk.dispatch() == 0
    assert "JOBTRACK_NOBODY_SET_THIS" in Notice.objects.get().last_error


def test_nothing_confidential_leaves(desk, site, receiver, caplog):
    """INV-33, R-SEC-4: what jobs contain, what opens them and who may be posted to is in no message, log or row."""
    caplog.set_level(logging.DEBUG)
    server = receiver("200 OK", "500 Oops", "200 OK")
    site(
        f"{server.origin}/CANARY-path?token=CANARY-query",
        a=CALL,
        b=MAIL,
        c=WEBHOOK,
        d=SLACK,
        e={**CALL, "path": "tests.django.notices_desk.refuse"},
    )
    canaries = {
        "params": {"region": "CANARY-params"},
        "status_url": "https://api.provider.example/v1/jobs/1?sig=CANARY-url",
        "kept": {"link": "CANARY-kept"},
        "error": "CANARY-error",
        "sealed": "CANARY-sealed",
        "progress": "CANARY-progress",
        "idempotency_key": "CANARY-key",
        "fingerprint": "CANARY-print",
    }
    desk.ask(detail="CANARY-detail", **canaries)
    assert Operation.objects.get().error == "CANARY-error"
    desk.dispatch()
    bodies = b"".join(parts(raw)[2] for raw in server.requests).decode()
    said = repr(notices_desk.told) + mail.outbox[0].message().as_string() + bodies
    assert len(server.requests) == 2
    assert "op-1" in said
    assert "CANARY" not in said
    assert SECRET not in said
    assert "CANARY" not in caplog.text
    assert KEY not in caplog.text
    assert "CANARY" not in repr(list(Notice.objects.values()))


# --- the command --------------------------------------------------------------------------------------------


def run(*args: str) -> str:
    out = StringIO()
    call_command("jobtrack_notify", *args, stdout=out)
    return out.getvalue()


def test_a_test_message_is_sent(site, receiver):
    server = receiver()
    site(server.origin, ops=WEBHOOK, night=MAIL)
    assert run("--test", "ops") == "'ops' took the test message (webhook).\n"
    document = json.loads(parts(server.requests[0])[2])
    assert (document["type"], document["data"]["questions"]) == ("jobtrack.test", [])
    assert [error.message for error in SCHEMA.iter_errors(document)] == []
    run("--test", "night")
    assert mail.outbox[0].subject == "[jobtrack] Test message"
    assert "This is a test: nothing is asked." in mail.outbox[0].body
    assert Notice.objects.count() == 0


def test_a_test_message_that_is_not_taken_is_told(site, receiver):
    site(f"{receiver('403 CANARY').origin}/CANARY", ops=WEBHOOK)
    with pytest.raises(CommandError) as caught:
        run("--test", "ops")
    assert (str(caught.value), caught.value.returncode) == ("'ops' was not told: HTTP 403.", 1)
    with pytest.raises(CommandError, match=r"There is no notifier 'opps'\. There are: ops\."):
        run("--test", "opps")


def test_every_reason_can_be_told(desk, site):
    site(night=CALL)
    for reason in Reason:
        desk.ask(reason)
    desk.dispatch()
    assert len(notices_desk.told[0].items) == 20
