"""Who may usually do what: groups of permissions that fit together (INV-29).

A site may use others. Nobody may add, change or delete rows: the flows are the only writers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import Group, Permission
from django.utils.functional import Promise as Text
from django.utils.translation import gettext_lazy as _

from jobtrack.core.escalation import BULK, Option
from jobtrack.errors import ConfigurationError
from jobtrack_django import words

APP: Final = "jobtrack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A group of people."""

    name: str  # of the group
    does: Text  # for whom it is, in a sentence
    permissions: tuple[str, ...]  # codenames in the app ``jobtrack``


def _decides(options: Iterable[Option]) -> tuple[str, ...]:
    return tuple(words.CHOICES[option].permission for option in Option if option in set(options))


_SEES = ("view_operation", "view_escalation")
_SEES_DESK = (*_SEES, "view_notice", "view_decisionbatch", "view_dailyfigure", "view_heartbeat")
_SEES_ALL = (
    *_SEES_DESK,
    "view_auditentry",
    "view_delivery",
    "view_jobresult",
    "view_accountgate",
    "view_tabletext",
    "view_webhookreceipt",
    "view_followupreceipt",
    "view_decisionitem",
    "view_prunedoperation",
)

ROLES: Final[tuple[Role, ...]] = (
    Role(
        name="viewer",
        does=_("Reads operations and questions. Decides nothing."),
        permissions=_SEES,
    ),
    Role(
        name="operator",
        does=_("Answers questions, one by one, with everything that writes nothing at a provider."),
        permissions=(*_SEES_DESK, *_decides(BULK)),
    ),
    Role(
        name="lead",
        does=_("Chooses every option: also submits again, cancels, names jobs, and decides many questions at once."),
        permissions=(*_SEES_DESK, *_decides(Option), "decide_in_bulk", "download_bundle"),
    ),
    Role(
        name="auditor",
        does=_("Reads everything, and downloads support bundles. Decides nothing."),
        permissions=(*_SEES_ALL, "download_bundle"),
    ),
)
"""From least to most, and the one who checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a group lacks, and what it has besides."""

    role: Role
    group: str
    new: bool
    added: tuple[Permission, ...]
    extra: tuple[Permission, ...]  # of jobtrack, that the role does not name; removed only by a reset
    permissions: tuple[Permission, ...]  # all that the role names


def changes(prefix: str) -> list[Change]:
    """What is to be done, so that each role has its group.

    Args:
        prefix: stands in front of each role's name.

    Raises:
        ConfigurationError: a permission is not in the database: the site is not migrated.
    """
    known = {each.codename: each for each in Permission.objects.filter(content_type__app_label=APP)}
    return [_change(role, f"{prefix}{role.name}", known) for role in ROLES]


def _change(role: Role, name: str, known: dict[str, Permission]) -> Change:
    missing = [codename for codename in role.permissions if codename not in known]
    if missing:
        raise ConfigurationError(f"There is no permission {missing[0]!r}. Run `manage.py migrate` first.")
    wanted = [known[codename] for codename in role.permissions]
    group = Group.objects.filter(name=name).first()
    has = list(group.permissions.filter(content_type__app_label=APP)) if group else []
    return Change(
        role=role,
        group=name,
        new=group is None,
        added=tuple(each for each in wanted if each not in has),
        extra=tuple(each for each in has if each not in wanted),
        permissions=tuple(wanted),
    )


def apply(change: Change, *, reset: bool) -> None:
    """Make the group as its role says.

    Args:
        reset: also remove what the site added of jobtrack's permissions; those of other apps always stay.
    """
    group, _made = Group.objects.get_or_create(name=change.group)
    group.permissions.add(*change.added)
    if reset:
        group.permissions.remove(*change.extra)
