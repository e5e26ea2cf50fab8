"""Who may choose what: Django's permissions, and a policy of the site's own (INV-29).

One place for every way to decide: the pages of the admin, one question or many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from django.apps import apps
from django.utils.module_loading import import_string

from jobtrack.core import operation as core
from jobtrack.core.escalation import Lapse, Option, Proposal, Reason, lapse_for
from jobtrack_django import conf, words
from jobtrack_django.models import Operation

if TYPE_CHECKING:  # a site may do without these models, and then cannot even load them
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.contrib.auth.models import AnonymousUser


class Policy(Protocol):
    def __call__(self, user: AbstractBaseUser | AnonymousUser, option: Option, operation: Operation) -> bool:
        """Whether this person, who has the permission, may choose ``option`` for a question about ``operation``."""


def lapse_of(reason: str) -> Lapse | None:
    """What this site lets happen to a question that nobody answers; None: it waits, or the reason is a newer one."""
    settings = conf.settings()
    return lapse_for(Reason(reason), settings.lapses, settings.four_eyes) if words.knows(reason) else None


def permission_of(option: Option) -> str:
    """The permission an option needs, with its app."""
    return f"jobtrack.{words.CHOICES[option].permission}"


def may_choose(user: AbstractBaseUser | AnonymousUser, option: Option, operation: Operation | None) -> bool:
    """Whether ``user`` may choose ``option``.

    Args:
        operation: what the question is about; None: of any operation at all, so that only the permission is asked.
    """
    if not (user.is_active and getattr(user, "has_perm", lambda _: False)(permission_of(option))):
        return False
    path = conf.settings().policy
    if path is None or operation is None:
        return True
    policy: Policy = import_string(path)
    return bool(policy(user, option, operation))


def right_of(user: AbstractBaseUser | AnonymousUser, option: Option) -> str:
    """By which permission ``user`` chooses ``option``; "": a rule of the site's own lets them, without it."""
    permission = permission_of(option)
    return permission if getattr(user, "has_perm", lambda _: False)(permission) else ""


def person_of(user: AbstractBaseUser | AnonymousUser) -> str:
    """What stays of a user when they are renamed."""
    return str(user.pk) if user.pk is not None else ""


def stands(proposal: Proposal, operation: core.Operation) -> bool:
    """Whether whoever proposed it is still here and may still choose it (four eyes).

    A site without Django's users knows its people by other means, and asks them itself.
    """
    if not apps.is_installed("django.contrib.auth"):
        return True
    from django.contrib.auth import get_user_model

    users = get_user_model()._default_manager  # noqa: SLF001 - Django's documented name
    user = users.filter(pk=proposal.person).first() if proposal.person else None
    row = Operation.objects.using(conf.settings().database).filter(pk=operation.id).first()
    return user is not None and row is not None and may_choose(user, proposal.option, row)
