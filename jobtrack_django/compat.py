"""What newer releases of Django can and older ones cannot, in one place."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from django.contrib import admin
from django.utils.text import format_lazy

from jobtrack.core.escalation import BULK, Option
from jobtrack_django import words

_LOCATIONS: Any = getattr(admin, "ActionLocation", None)
"""Where an action stands; None before Django 6.1, where all stand on the list."""

_MANY, _ONE = "bulk", "choose"
"""How the names of actions begin, which stand in forms: for many questions, for one."""

Act = Callable[[Any, Any, Any], Any]
"""What an action does: with the page's class, the request and the chosen rows."""


def decision_actions(for_many: Callable[[Option], Act], for_one: Callable[[Option], Act]) -> list[Act]:
    """The options as actions of the admin: those for many questions on the list, all of them on a question's own page.

    The page's class answers for each who may: ``has_bulk_<option>_permission`` and ``has_choose_<option>_permission``.
    One check each, because Django asks for any of several, not for all.

    Args:
        for_many: makes what an action on the list does.
        for_one: makes what an action on a question's page does; not used before Django 6.1.
    """
    on_list = [_action(for_many(option), _MANY, option) for option in Option if option in BULK]
    if _LOCATIONS is None:
        return on_list
    return on_list + [_action(for_one(option), _ONE, option, location=_LOCATIONS.CHANGE_FORM) for option in Option]


def menu_of(form: Any, offered: Collection[Option]) -> Any:
    """The menu of actions on a question's page, with the options of that very question; None: there is no menu.

    Django asks for the actions of a page before it says of which row. So the menu comes with every option that the
    reader may choose for any question at all, and is cut here. Actions of others stay.

    Args:
        form: Django's form of the menu; None: before Django 6.1, and where no action is there at all.
        offered: the options that this reader may choose for this question.
    """
    if form is None:
        return None
    out = {_name(_ONE, option) for option in Option if option not in offered}
    field = form.fields["action"]
    field.choices = [(name, label) for name, label in field.choices if name not in out]
    return form if any(name for name, _ in field.choices) else None


def _action(act: Act, kind: str, option: Option, **where: Any) -> Act:
    act.__name__ = _name(kind, option)
    label = format_lazy("{}…", words.CHOICES[option].label)
    named: Act = admin.action(act, permissions=[act.__name__], description=label, **where)
    return named


def _name(kind: str, option: Option) -> str:
    return f"{kind}_{option.value}"
