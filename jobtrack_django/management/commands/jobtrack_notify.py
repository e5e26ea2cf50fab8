"""``manage.py jobtrack_notify``."""

from __future__ import annotations

import secrets
from argparse import ArgumentParser
from typing import Any

from django.conf import settings as django_settings
from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.translation import override

from jobtrack_django import conf
from jobtrack_django.management.told import ToldCommand
from jobtrack_django.notify import kinds
from jobtrack_django.notify.message import Message, page
from jobtrack_django.notify.trouble import NotSent


class Command(ToldCommand):
    help = "Send a test message to one of the notifiers in JOBTRACK['NOTIFIERS']."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--test", metavar="NAME", required=True, help="the notifier, by its name in the settings")

    def handle(self, *_: Any, **options: Any) -> None:
        name, notifiers = options["test"], conf.settings().notifiers
        if name not in notifiers:
            known = ", ".join(sorted(notifiers)) or "none"
            raise CommandError(f"There is no notifier {name!r}. There are: {known}.")
        message = Message(
            id=f"msg_{secrets.token_hex(16)}",
            notifier=name,
            at=timezone.now(),
            total=0,
            items=(),
            list_link=page("escalation_changelist"),
            test=True,
        )
        try:
            with override(django_settings.LANGUAGE_CODE):
                kinds.send(notifiers[name], message)
        except NotSent as failure:
            raise CommandError(f"{name!r} was not told: {failure.detail}.") from None
        self.stdout.write(f"{name!r} took the test message ({notifiers[name].kind}).")
